# SPDX-License-Identifier: BSD-3-Clause
"""Ratios and speed of Lorenzo against HierarchicalDelta and SZ3 (hdf5plugin). python -m benchmarks.lorenzo."""

from __future__ import annotations

import math
import shlex
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import h5py
import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

import pyfilter
from benchmarks.fields import Field, fields, find_data
from benchmarks.ratios import encoded, sz3_ratio
from benchmarks.report import Rows, origin, report

MARKER = "lorenzo"
CODERS: dict[str, dict[str, Any]] = {
    "rans": {}, "huffman": {"coder": "huffman"}, "no gaps": {"coder": "huffman", "gap_array": False}
}  # fmt: skip
COLUMNS = (
    "field", "rel", "SZ3", *CODERS, "HierarchicalDelta", "chose", "rans / SZ3", "huffman / SZ3", "rans / Hierarchical"
)  # fmt: skip
SPEEDS = (
    "field", "MB", "rel", "memcpy", "rans C", "rans D", "huffman C", "huffman D", "chain, rans C", "D",
    "Hierarchical C", "D", "SZ3 C", "rans C / SZ3 C",
)  # fmt: skip
FLOORS = {
    "rans": {"1e-2": 0.87, "1e-3": 1.22, "1e-4": 1.06},
    "huffman": {"1e-2": 0.70, "1e-3": 1.00, "1e-4": 0.92},
}
SPEED_FIELDS = ("turbulence_u", "turbulence_w", "rtm_late", "nbody_vx", "rayleigh_taylor", "md_lj_pos")
LEGEND = (
    "Ratios: bytes of the values by bytes of the frame, each field one chunk, the bound relative to its range without "
    "fill values, special values and their masks included; every value is checked. SZ3: hdf5plugin's, the same "
    "absolute bound; '-' where it crashed, took longer than the limit or lost the bound of finite values. "
    "HierarchicalDelta with outliers='on'. "
    "'chose': the predictor that 'auto' took, with the axes that it differences. Speeds in GB/s of values and CPU "
    "second, one thread, the best of some runs; C compresses, D decompresses; SZ3 through h5py into memory."
)


def seconds(run: Callable[[], object], least: int = 5) -> float:
    """Return the fewest CPU seconds of some runs."""
    best = math.inf
    for _ in range(least):
        before = time.process_time()
        run()
        best = min(best, time.process_time() - before)
    return best


def write_sz3(values: NDArray[Any], bound: float) -> None:
    """Write the values to a file in memory."""
    import hdf5plugin

    with h5py.File("sz3.h5", "w", driver="core", backing_store=False) as file:
        file.create_dataset("x", data=values, chunks=values.shape, **hdf5plugin.SZ3(absolute=bound))


def speed_row(field: Field, relative: str) -> tuple[str, ...]:
    """Measure a field at a bound."""
    values, bound = field.values, field.bound(float(relative))
    target = np.empty_like(values)
    cells = [values.nbytes / 1e9 / seconds(lambda: np.copyto(target, values), 9)]
    for codec in (
        pyfilter.Lorenzo(absolute=bound),
        pyfilter.Lorenzo(absolute=bound, coder="huffman"),
        pyfilter.Lorenzo(absolute=bound, predictor="chain"),
        pyfilter.HierarchicalDelta(absolute=bound),
    ):
        frame = pyfilter.encode(values, codec)
        cells.append(values.nbytes / 1e9 / seconds(partial(pyfilter.encode, values, codec)))
        cells.append(values.nbytes / 1e9 / seconds(partial(pyfilter.decode, frame)))
    cells.append(values.nbytes / 1e9 / seconds(lambda: write_sz3(values, bound), 2))
    shown = [f"{cell:.2f}" if cell >= 0.1 else f"{cell:.3f}" for cell in cells]
    return field.name, f"{values.nbytes / 1e6:.1f}", relative, *shown, f"{cells[1] / cells[-1]:.1f}"


def main(
    data: Annotated[Path | None, typer.Option(help="Folder of .npy files; default ../shared/data.")] = None,
    only: Annotated[str, typer.Option("--fields", help="Parts of field names, with commas between.")] = "",
    speed: Annotated[bool, typer.Option(help="Measure speeds, too.")] = True,
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Compress every field with every coder and print ratios and speeds."""
    console = Console(width=200, highlight=False)
    table, speeds = Rows("", COLUMNS), Rows("Speed on one CPU core", SPEEDS)
    logs: dict[tuple[str, str], list[float]] = {(coder, rel): [] for coder in FLOORS for rel in FLOORS[coder]}
    below: list[str] = []
    wanted = [part for part in only.split(",") if part]
    for field in fields(find_data(data), 0, wanted):
        values = field.values
        low, high = field.limits
        for relative in FLOORS["rans"]:
            bound = field.bound(float(relative))
            found = {
                name: encoded(values, pyfilter.Lorenzo(absolute=bound, **coder), field.fill)
                for name, coder in CODERS.items()
            }
            ratios = {name: ratio for name, (ratio, _) in found.items()}
            info = found["rans"][1]
            other = encoded(values, pyfilter.HierarchicalDelta(absolute=bound, outliers="on"), field.fill)[0]
            peer = sz3_ratio(values, bound) if high > low else None
            for (coder, rel), of in logs.items():
                if rel == relative and peer is not None:
                    of.append(math.log(ratios[coder] / peer))
            below += [f"{field.name} {relative}"] if ratios["rans"] < 0.99 * other else []
            table.add(
                field.name, relative, f"{peer:.2f}" if peer else "-", *(f"{ratios[name]:.2f}" for name in CODERS),
                f"{other:.2f}", f"{info.parameters['predictor']} {info.parameters['order']}",
                *(f"{ratios[coder] / peer:.3f}" if peer else "" for coder in FLOORS), f"{ratios['rans'] / other:.3f}",
            )  # fmt: skip
        if speed and (wanted or any(part in field.name for part in SPEED_FIELDS)):
            with pyfilter.config(threads=1):
                for relative in FLOORS["rans"]:
                    speeds.add(*speed_row(field, relative))
    summary = []
    for (coder, relative), of in logs.items():
        mean, floor = (math.exp(sum(of) / len(of)) if of else math.nan), FLOORS[coder][relative]
        state = "pass" if mean >= floor else "FAIL"
        which = f"{coder} / SZ3 at {relative}, geometric mean of {len(of)} fields"
        summary.append(f"{which} >= {floor}: {state}; {mean:.3f}")
    summary.append(f"rans never below 0.99 of HierarchicalDelta: {'FAIL, ' + ', '.join(below) if below else 'pass'}")
    head = origin(shlex.join(["python", "-m", "benchmarks.lorenzo", *sys.argv[1:]]))
    report(console, head, LEGEND, summary, (table, speeds), marker=MARKER, markdown=markdown, save=save)


if __name__ == "__main__":
    typer.run(main)
