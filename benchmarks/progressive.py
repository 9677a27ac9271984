# SPDX-License-Identifier: BSD-3-Clause
"""Bytes of a progressive dataset at each tolerance, against SZ3 at that bound. python -m benchmarks.progressive."""

from __future__ import annotations

import math
import shlex
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import h5py
import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.fields import Field, fields, find_data
from benchmarks.lorenzo import seconds
from benchmarks.ratios import sz3_ratio
from benchmarks.report import Rows, geometric_mean, origin, report

if TYPE_CHECKING:
    from numpy.typing import NDArray

MARKER = "progressive"
TOLERANCES = ("1e-1", "1e-2", "1e-3", "1e-4", "1e-5", "1e-6")
ERRORS = ("measured", "bounds")
FLOOR, AIM, SPEED_FLOOR = 2.2, 1.8, 0.25
LEAST_VALUES = 50_000
COLUMNS = ("field", "stored", *(f"{tolerance}" for tolerance in TOLERANCES), *(f"/ SZ3 {t}" for t in TOLERANCES))
SPEEDS = ("field", "encode, measured", "encode, bounds", "decode all", "decode to 1e-2")
LEGEND = (
    "Each field is one chunk of a file, near-lossless, read through pyfilter.progressive to tolerances that are "
    "fractions of its range. 'stored': bytes of the chunk, the others: bytes fetched, both as percent of the original; "
    "'/ SZ3': bytes fetched by those of hdf5plugin's SZ3 at that one absolute bound ('-' where it crashed or took "
    "longer than the limit). Every value is checked against the error that the reader names, and that against "
    "the tolerance. Fields of 50 000 values or more that are neither constant nor all missing; positions of particles, "
    "which have no neighbours along an axis, are left out (their codec is Particles). Speeds in GB/s of values and CPU "
    "second, one thread, the best of some runs."
)


def usable(field: Field) -> bool:
    """Whether a field has neighbours, values and a range."""
    low, high = field.limits
    return high > low and field.values.size >= LEAST_VALUES and "_nx3_" not in field.name


def check(field: Field, read: NDArray[Any], error: float) -> None:
    """Compare every value with the original: within an error, or the same where it is special."""
    ordinary = np.isfinite(field.values)
    if field.fill is not None:
        ordinary &= field.values != field.fill
    given = field.values[ordinary].astype(np.longdouble)
    worst = float(np.abs(given - read[ordinary]).max())
    same = np.array_equal(field.values[~ordinary], read[~ordinary], equal_nan=True)
    if not (worst <= error and same):
        message = f"{field.name}: {worst} is beyond {error}, or a special value changed"
        raise AssertionError(message)


def fetched(field: Field, errors: str, folder: Path) -> tuple[int, list[int]]:
    """Return the bytes of a field's chunk, and the bytes fetched for each tolerance."""
    path = folder / "field.h5"
    with h5py.File(path, "w") as file:
        codec = pyfilter.Progressive(errors=errors)
        made = file.create_dataset(
            "x", data=field.values, chunks=field.values.shape, fillvalue=field.fill, **codec
        )  # fmt: skip
        stored = int(made.id.get_storage_size())
    costs = []
    for tolerance in TOLERANCES:
        wanted = field.bound(float(tolerance))
        with pyfilter.progressive.open(str(path), "x") as reader:
            check(field, reader.read(wanted), reader.max_error)
            costs.append(reader.bytes_read)
            if reader.max_error > wanted and reader.bytes_read < stored:
                message = f"{field.name}: {reader.max_error} is beyond {wanted}, and not all was read"
                raise AssertionError(message)
    return stored, costs


def speeds(field: Field, folder: Path) -> list[float]:
    """Measure a field; `fetched` with errors="measured" has left its file."""
    values, cells = field.values, []
    for errors in ERRORS:
        codec = pyfilter.Progressive(errors=errors)
        cells.append(seconds(partial(pyfilter.encode, values, codec, fill_value=field.fill), 3))
    with pyfilter.progressive.open(str(folder / "field.h5"), "x") as reader:
        for wanted in (None, field.bound(1e-2)):
            reader.read(wanted)  # fetched before, so that only decoding is measured
            cells.append(seconds(partial(reader.read, wanted), 3))
    return [values.nbytes / 1e9 / cell for cell in cells]


def main(
    data: Annotated[Path | None, typer.Option(help="Folder of .npy files; default ../shared/data.")] = None,
    only: Annotated[str, typer.Option("--fields", help="Parts of field names, with commas between.")] = "",
    speed: Annotated[bool, typer.Option(help="Measure speeds, too.")] = True,
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Write every field once, read it to every tolerance, and print bytes and speeds."""
    console = Console(width=220, highlight=False)
    folder = find_data(data)
    if folder is None:
        message = "no fields: give --data"
        raise typer.BadParameter(message)
    tables = {errors: Rows(f"errors={errors!r}", COLUMNS) for errors in ERRORS}
    by_tolerance: dict[str, dict[str, list[float]]] = {errors: {t: [] for t in TOLERANCES} for errors in ERRORS}
    speed_rows, found = Rows("Speed on one CPU core", SPEEDS), []
    with tempfile.TemporaryDirectory() as scratch, pyfilter.config(threads=1):
        for field in fields(folder, 0, [part for part in only.split(",") if part]):
            if not usable(field):
                continue
            size = field.values.nbytes
            peers = [sz3_ratio(field.values, field.bound(float(tolerance))) for tolerance in TOLERANCES]
            for errors in reversed(ERRORS):
                stored, costs = fetched(field, errors, Path(scratch))
                times = [
                    math.nan if peer is None else cost * peer / size for cost, peer in zip(costs, peers, strict=True)
                ]
                for tolerance, ratio in zip(TOLERANCES, times, strict=True):
                    by_tolerance[errors][tolerance] += [] if math.isnan(ratio) else [ratio]
                tables[errors].add(
                    field.name, f"{100 * stored / size:.1f}", *(f"{100 * cost / size:.2f}" for cost in costs),
                    *("-" if math.isnan(ratio) else f"{ratio:.2f}" for ratio in times),
                )  # fmt: skip
            if speed:
                found.append(speeds(field, Path(scratch)))
                speed_rows.add(field.name, *(f"{one:.3f}" for one in found[-1]))
    summary = []
    for errors in ERRORS:
        of = by_tolerance[errors]
        mean = geometric_mean([ratio for ratios in of.values() for ratio in ratios])
        verdict = "pass" if mean <= FLOOR else "FAIL"
        count = len(of[TOLERANCES[0]])
        summary.append(
            f"errors={errors!r}: bytes fetched / bytes of SZ3, geometric mean of {count} fields and all tolerances "
            f"<= {FLOOR} (aim {AIM}): {verdict}; {mean:.2f}"
            + "".join(f"; {tolerance}: {geometric_mean(of[tolerance]):.2f}" for tolerance in TOLERANCES)
        )
    for column, name in enumerate(SPEEDS[1:]) if found else ():
        values = [row[column] for row in found]
        floor = f" >= {SPEED_FLOOR}: {'pass' if min(values) >= SPEED_FLOOR else 'FAIL'}" if column < 2 else ""
        summary.append(f"{name}{floor}; worst {min(values):.3f}, geometric mean {geometric_mean(values):.3f} GB/s")
    head = origin(shlex.join(["python", "-m", "benchmarks.progressive", *sys.argv[1:]]))
    shown = (*(tables[errors] for errors in ERRORS), *([speed_rows] if speed else []))
    report(console, head, LEGEND, summary, shown, marker=MARKER, markdown=markdown, save=save)


if __name__ == "__main__":
    typer.run(main)
