# SPDX-License-Identifier: BSD-3-Clause
"""Speed of the CPU codecs in memory, against memcpy of the same bytes (memory.py). python -m benchmarks.cpu_codec."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.fields import MIB, Field, fields, find_data
from benchmarks.memory import METHOD, Bench, Measured
from benchmarks.report import Floor, Rows, keep, load, origin

MARKER, DELTA_MARKER = "cpu_codec", "cpu_delta"
DELTA = "hierarchical_delta"
SCALING_MIN_BYTES = 8 * MIB  # work is handed out in pieces of half a megabyte: smaller calls have few of them
MODES = ("outlier", "plain", "fixed")
COLUMNS = (
    "field", "MB", "codec", "rel", "ratio", "err/bound", "memcpy", "compress", "decompress", "C/memcpy", "D/memcpy",
    "C 2 threads", "D 2 threads", "cached: memcpy", "C", "D",
)  # fmt: skip
LEGEND = (
    "Speeds in GB/s of original bytes; C, D: compress, decompress. '2 threads' is the speed-up of one call with two "
    "threads over one with one. 'cached': one copy again and again, where it fits the last-level cache three times "
    "over. '1e-3 (lossless)': that bound gained nothing, the frame is lossless. Where a field has no range "
    "(a constant, nothing but fill), the bound is relative to the value instead. 2-D and 3-D blocks (8x8, 4x4x4) only "
    "where the field's last dimensions have these extents."
)


@dataclass(frozen=True)
class Row:
    """A measurement, and the field, codec and bound that it is of."""

    field: str
    field_bytes: int
    label: str
    relative: str
    measured: Measured

    @property
    def where(self) -> str:
        """Name of the row in a floor."""
        return f"{self.field} {self.label} {self.relative}".strip()

    def cells(self) -> list[str]:
        """Return the cells for COLUMNS."""
        m = self.measured
        wanted = "lossless" if self.label.startswith("Lossless") else "cuszp2" if "-D" in self.label else DELTA
        note = "" if m.stored_as == wanted else f" ({m.stored_as})"
        error = f"{m.outcome.max_error / m.bound:.4f}" if m.bound else "0"
        return [
            self.field, f"{self.field_bytes / 1e6:.2f}", self.label, self.relative + note, f"{m.ratio:.2f}",
            error if m.ok else f"BROKEN {error}", f"{m.memcpy:.2f}", f"{m.encode:.2f}", f"{m.decode:.2f}",
            f"{m.encode / m.memcpy:.2f}", f"{m.decode / m.memcpy:.2f}",
            _number(m.encode_gain), _number(m.decode_gain), *map(_number, m.cached),
        ]  # fmt: skip


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"


def codecs(bound: float, shape: tuple[int, ...], all_modes: bool, delta: bool) -> list[tuple[str, pyfilter.Codec]]:
    """Return the lossy codecs to measure, the default one first; no blocks that are longer than the field."""
    if delta:
        return [
            (predictor, pyfilter.HierarchicalDelta(absolute=bound, predictor=predictor))
            for predictor, rank in (("chain", 0), ("auto", 0), ("lorenzo2d", 2), ("lorenzo3d", 3), ("columns", 2))
            if len(shape) >= rank and (predictor != "columns" or shape[-1] <= 16)
        ]
    return [
        (f"{mode} {dims}-D", pyfilter.Cuszp2(absolute=bound, mode=mode, block_dims=dims))
        for mode in (MODES if all_modes else MODES[:1])
        for dims, edge in ((1, 1), (2, 8), (3, 4))
        if dims <= len(shape) and min(shape[-dims:]) >= edge
    ]


def measure_field(
    bench: Bench, field: Field, bounds: list[str], rounds: int, all_modes: bool, delta: bool
) -> list[Row]:
    """Return the rows of one field."""
    bench.load(field)
    rows: list[Row] = []
    for relative in bounds:
        chosen = codecs(field.bound(float(relative)), field.values.shape, all_modes, delta)
        for position, (label, codec) in enumerate(chosen):
            measured = bench.measure(codec, rounds=rounds, two_threads=position == 0, cached=position == 0)
            rows.append(Row(field.name, field.values.nbytes, label, relative, measured))
    if delta:
        return rows
    measured = bench.measure(pyfilter.Lossless(), rounds=rounds, two_threads=True, cached=True)
    rows.append(Row(field.name, field.values.nbytes, "Lossless 1-D", "", measured))
    return rows


def floors(rows: list[Row], delta: bool) -> list[Floor]:
    """Return the issue's demands with the measured figures."""
    found: list[Floor] = []
    lossy = [row for row in rows if not row.label.startswith("Lossless")]
    for label in dict.fromkeys(row.label for row in lossy):
        chosen = [row for row in lossy if row.label == label]
        for what in ("encode", "decode"):
            values = [(getattr(row.measured, what) / row.measured.memcpy, row.where) for row in chosen]
            name = f"{'HierarchicalDelta' if delta else 'Cuszp2'} {label}"
            found.append(Floor(f"{name} {_VERB[what]} against memcpy, one thread", 0.22 if delta else 0.25, values))
    for what in ("encode", "decode"):
        values = [
            (getattr(row.measured, f"{what}_gain"), row.where)
            for row in lossy
            if row.field_bytes >= SCALING_MIN_BYTES and not np.isnan(row.measured.encode_gain)
        ]
        found.append(Floor(f"{_VERB[what]}, two threads against one (fields >= 8 MiB)", 1.7, values))
        if delta:
            continue
        exact = [row for row in rows if row not in lossy]
        values = [(getattr(row.measured, what) / row.measured.memcpy, row.where) for row in exact]
        found.append(Floor(f"Lossless 1-D {_VERB[what]} against memcpy, one thread", None, values))
    return found


_VERB = {"encode": "compress", "decode": "decompress"}


def main(
    data: Annotated[Path | None, typer.Option(help="Folder of .npy files; default ../shared/data.")] = None,
    only: Annotated[str, typer.Option("--fields", help="Parts of field names, with commas between.")] = "",
    generated_mib: Annotated[int, typer.Option(help="Size of a generated field in MiB; 0 for none.")] = 256,
    bounds: Annotated[str, typer.Option(help="Bounds relative to a field's range.")] = "1e-2,1e-3,1e-4",
    rounds: Annotated[int, typer.Option(help="Rounds; the median counts.", min=5)] = 9,
    all_modes: Annotated[bool, typer.Option("--all-modes", help="Also modes plain and fixed.")] = False,
    delta: Annotated[bool, typer.Option("--delta", help="HierarchicalDelta instead of Cuszp2 and Lossless.")] = False,
    level: Annotated[str, typer.Option(help="Instruction set: auto, baseline, avx2, avx512.")] = "auto",
    cpu_time: Annotated[
        bool, typer.Option("--cpu-time", help="One thread's speeds by CPU time: for a machine that is busy.")
    ] = False,
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Measure compress and decompress of every field against memcpy."""
    console = Console(width=max(190, Console().width), highlight=False)
    started = time.monotonic()
    with pyfilter.config(cpu_level=level):
        head = origin(shlex.join(["python", "-m", "benchmarks.cpu_codec", *sys.argv[1:]]))
        folder = find_data(data)
        head.append(f"data: {folder.name if folder else 'none found'}; generated fields of {generated_mib} MiB")
        if cpu_time:
            head.append("speeds of one thread by its CPU time, not by the clock")
        console.print("\n".join(head), METHOD, LEGEND, sep="\n")
        bench = Bench(cpu_time)
        rows: list[Row] = []
        wanted = [part for part in only.split(",") if part]
        for field in fields(folder, generated_mib * MIB, wanted):
            table = Rows(f"{field.name} {'x'.join(map(str, field.values.shape))}", COLUMNS)
            found = measure_field(bench, field, bounds.split(","), rounds, all_modes, delta)
            rows += found
            for row in found:
                table.add(*row.cells())
            table.show(console)
    if not rows:
        console.print("no field has such a name")
        raise typer.Exit(2)
    everything = Rows("", COLUMNS)
    for row in rows:
        everything.add(*row.cells())
    busy = float(np.median([row.measured.busy for row in rows]))
    tail = [floor.line() for floor in floors(rows, delta)]
    tail.append(
        f"CPU time by wall time of the single-thread rounds: median {busy:.2f} (below 1, other work took part); "
        f"load at the end {load()}; {time.monotonic() - started:.0f} s"
    )
    console.print("\n".join(["", *tail]))
    marker = DELTA_MARKER if delta else MARKER
    for path in keep(head, LEGEND, tail, [everything], marker=marker, markdown=markdown, save=save):
        console.print(f"wrote {path}")
    if markdown is None and not save:
        print(f"\n{everything.table().markdown()}")
    if not all(row.measured.ok for row in rows):
        console.print("a bound or a special value was not kept: see BROKEN above")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
