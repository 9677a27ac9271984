# SPDX-License-Identifier: BSD-3-Clause
"""Ours against hdf5plugin's filters at the same absolute bound (files.py does the work). python -m benchmarks.peers."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

os.environ.update(PYFILTER_NUM_THREADS="1", OMP_NUM_THREADS="1", BLOSC_NTHREADS="1")

import hdf5plugin
import numpy as np
import typer
from rich.console import Console

from benchmarks import files
from benchmarks.fields import MIB, Field, fields, find_data
from benchmarks.files import LOSSLESS, LOSSY, NONE, OURS, OURS_CORE, OURS_MEMORY, OURS_TWO, SZ3_CORE, Result
from benchmarks.report import Floor, Rows, geometric_mean, keep, load, origin

MARKER = "peers"
COLUMNS = (
    "field", "rel", "filter", "ratio", "write MB/s", "read MB/s", "err/bound", "specials", "ours/it: write", "read",
    "both", "ratio",
)  # fmt: skip
SCALING_MIN_BYTES = 8 * MIB
LEGEND = (
    "write: make the file, create_dataset, close; read: open, read all into an array whose pages are there. MB/s: 1e6 "
    "original bytes. 'ours/it': our speed (1-D outlier mode through the plain filter path, one thread) divided by the "
    "filter's; 'both': with the sum of both times; the last column divides the ratios. One thread throughout, except "
    "in 'ours, 2 threads': pyfilter.create_dataset and pyfilter.read with two. 'specials': whether NaN, infinities and "
    "fill values came back. err/bound above 1 is a broken bound; above 1.01, or where a special value is lost, the "
    "case counts neither in the summary's multiples nor in the floors. crash: the process that used the filter died."
)


def run_field(field: Field, bounds: list[str], names: Sequence[str], timeout: float, least: int) -> list[Result]:
    """Return the results of every filter on a field, each in a process of its own."""
    found: list[Result] = []
    for name in names:
        asked = [""] if name in (NONE, *LOSSLESS) else bounds
        found += files.in_own_process(field, name, asked, timeout, least)
    return found


def multiples(result: Result, ours: Result | None) -> tuple[float, float, float, float]:
    """Return how many times ours is faster writing, reading and in both, and how many times smaller."""
    if ours is None or ours.problem or result.problem:
        return (float("nan"),) * 4
    return ours.write / result.write, ours.read / result.read, ours.both / result.both, ours.ratio / result.ratio


def cells(result: Result, ours: Result | None) -> list[str]:
    """Return the cells for COLUMNS."""
    start = [result.field, result.relative, result.name]
    if result.problem:
        return [*start, result.problem, *[""] * (len(COLUMNS) - 4)]
    shown = [f"{result.ratio:.2f}", f"{1000 * result.write:.0f}", f"{1000 * result.read:.0f}"]
    shown.append(_error(result))
    shown.append({True: "kept", False: "LOST"}[result.specials_kept] if result.has_specials else "")
    if result.name == OURS:
        return [*start, *shown, *[""] * 4]
    return [*start, *shown, *("" if np.isnan(value) else f"{value:.2f}" for value in multiples(result, ours))]


def _error(result: Result) -> str:
    if result.bound == 0.0:
        return "0" if result.max_error == 0.0 else "BROKEN"
    share = result.max_error / result.bound
    return f"{share:.4f}" if share < 1000 else f"{share:.1e}"


def compact(results: list[Result], names: Sequence[str]) -> Rows:
    """Return one row for each field and bound: ratio, write and read of every filter in a cell."""
    table = Rows("ratio: write / read MB/s", ["field", "rel", *names])
    for field in dict.fromkeys(result.field for result in results):
        mine = [result for result in results if result.field == field]
        for relative in dict.fromkeys(result.relative for result in mine if result.relative):
            by_name = {result.name: result for result in mine if result.relative in (relative, "")}
            table.add(field, relative, *(_compact_cell(by_name.get(name)) for name in names))
    return table


def _compact_cell(result: Result | None) -> str:
    if result is None or result.problem:
        return result.problem if result is not None else ""
    text = f"{result.ratio:.2f}: {1000 * result.write:.0f} / {1000 * result.read:.0f}"
    broken = " b" if not result.bound_kept else ""
    return text + broken + (" s" if not result.specials_kept else "")


def summary(results: list[Result]) -> Rows:
    """Return one row for each filter over all fields and bounds."""
    columns = [
        "filter",
        "cases",
        "crashes",
        "timeouts",
        "refused",
        "bound broken",
        "specials lost",
        "ours/it: write",
        "read",
    ]
    table = Rows("Summary: geometric mean (worst) of the multiples", [*columns, "both", "ratio"])
    for name in dict.fromkeys(result.name for result in results if result.name not in (OURS, OURS_MEMORY)):
        mine = [result for result in results if result.name == name]
        good = [result for result in mine if not result.problem]
        counts = (
            len(mine),
            *(sum(result.problem.startswith(kind) for result in mine) for kind in ("crash", "timeout", "refused")),
            sum(not result.bound_kept for result in good),
            sum(not result.specials_kept for result in good),
        )
        base = OURS_CORE if name == SZ3_CORE else OURS
        pairs = [multiples(item, _ours_of(results, item, base)) for item in good if item.useful]
        shown: list[str] = []
        for position in range(4):
            values = [pair[position] for pair in pairs if not np.isnan(pair[position])]
            shown.append(f"{geometric_mean(values):.2f} ({min(values):.2f})" if values else "")
        table.add(name, *map(str, counts), *shown)
    return table


def _ours_of(results: list[Result], other: Result, name: str) -> Result | None:
    """Return our result to compare with another; lossless ones are compared with ours at the middle bound."""
    mine = [item for item in results if item.name == name and item.field == other.field and not item.problem]
    exact = [item for item in mine if item.relative == other.relative]
    return exact[0] if exact else (mine[len(mine) // 2] if mine else None)


def _against(results: list[Result], name: str, base: str) -> list[list[tuple[float, str]]]:
    """Return our multiples of a filter for writing, reading and both, for every case in which it worked."""
    cases = [result for result in results if result.name == name and result.useful]
    pairs = [(multiples(item, _ours_of(results, item, base)), item.where) for item in cases]
    return [[(pair[position], where) for pair, where in pairs] for position in range(3)]


def floors(results: list[Result]) -> list[Floor]:
    """Return the issue's demands with the measured figures."""
    memory = [result for result in results if result.name == OURS_MEMORY and not result.problem]
    large = [item for item in memory if item.field_bytes >= SCALING_MIN_BYTES]
    found = [
        Floor("Cuszp2 compress against memcpy, one thread", 0.25, [(i.write / i.memcpy, i.where) for i in memory]),
        Floor("Cuszp2 decompress against memcpy, one thread", 0.25, [(i.read / i.memcpy, i.where) for i in memory]),
        Floor("compress, two threads against one (>= 8 MiB)", 1.7, [(i.write_gain, i.where) for i in large]),
        Floor("decompress, two threads against one (>= 8 MiB)", 1.7, [(i.read_gain, i.where) for i in large]),
    ]
    for text, base in (("C ABI in memory", OURS_MEMORY), ("core-driver file", OURS_CORE)):
        write, read, both = _against(results, SZ3_CORE, base)
        found.append(Floor(f"ours ({text}) against SZ3 (core-driver file), compress + decompress", 20.0, both))
        found.append(Floor(f"ours ({text}) against SZ3, compress alone", None, write))
        found.append(Floor(f"ours ({text}) against SZ3, decompress alone", None, read))
    for peer in LOSSY:
        write, read, both = _against(results, peer, OURS)
        found.append(Floor(f"through h5py, write + read, against {peer}", 5.0, both))
        found.append(Floor(f"through h5py, write alone, against {peer}", None, write))
        found.append(Floor(f"through h5py, read alone, against {peer}", None, read))
    return found


def main(
    data: Annotated[Path | None, typer.Option(help="Folder of .npy files; default ../shared/data.")] = None,
    only: Annotated[str, typer.Option("--fields", help="Parts of field names, with commas between.")] = "",
    generated_mib: Annotated[int, typer.Option(help="Size of a generated field in MiB; 0 for none.")] = 16,
    bounds: Annotated[str, typer.Option(help="Bounds relative to a field's range.")] = "1e-2,1e-3,1e-4",
    filters: Annotated[str, typer.Option(help="Parts of names of filters; ours are always run.")] = "",
    timeout: Annotated[float, typer.Option(help="Seconds for one filter on one field.")] = 15.0,
    at_least_mib: Annotated[int, typer.Option(help="Repeat smaller fields to this size; 0: as they are.")] = 8,
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Write and read every field through h5py with every filter."""
    console = Console(width=max(170, Console().width), highlight=False)
    started = time.monotonic()
    folder = find_data(data)
    versions = f"hdf5plugin {hdf5plugin.version} with its own {', '.join(files.peer_versions())}"
    head = origin(shlex.join(["python", "-m", "benchmarks.peers", *sys.argv[1:]]), [versions])
    head.append(
        f"data: {folder.name if folder else 'none found'}; generated fields of {generated_mib} MiB; "
        f"files in {files.scratch_folder()}, "
        f"datasets of at least {at_least_mib} MiB"
    )
    console.print("\n".join(head), files.METHOD, LEGEND, sep="\n")
    chosen = [part for part in filters.lower().split(",") if part]
    theirs = [name for name in (*LOSSY, SZ3_CORE, *LOSSLESS) if not chosen or any(p in name.lower() for p in chosen)]
    names = [NONE, OURS, OURS_TWO, OURS_CORE, OURS_MEMORY, *theirs]
    results: list[Result] = []
    for field in fields(folder, generated_mib * MIB, [part for part in only.split(",") if part]):
        found = run_field(field, bounds.split(","), names, timeout, at_least_mib * MIB)
        results += found
        shape = "x".join(map(str, field.values.shape))
        table = Rows(f"{field.name} {shape}, {field.values.nbytes / 1e6:.2f} MB", COLUMNS)
        for result in sorted(found, key=lambda item: (item.relative == "", -float(item.relative or 0))):
            base = OURS_CORE if result.name == SZ3_CORE else OURS
            table.add(*cells(result, _ours_of(found, result, base)))
        table.show(console)
    if not results:
        console.print("no field has such a name")
        raise typer.Exit(2)
    overview = summary(results)
    overview.show(console)
    tail = [floor.line() for floor in floors(results)]
    tail.append(f"load at the end {load()}; {time.monotonic() - started:.0f} s")
    table = compact(results, [name for name in names if name not in (OURS_CORE, SZ3_CORE)])
    console.print("\n".join(["", *tail]))
    legend = LEGEND + " In the last table b: bound broken, s: specials lost."
    for path in keep(head, legend, tail, [overview, table], marker=MARKER, markdown=markdown, save=save):
        console.print(f"wrote {path}")
    if markdown is None and not save:
        print(f"\n{table.table().markdown()}")
    ours_bad = [item for item in results if item.name in files.OUR_NAMES and (item.problem or not item.kept)]
    if ours_bad:
        console.print("ours failed: " + ", ".join(f"{item.where} ({item.name}: {item.problem})" for item in ours_bad))
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
