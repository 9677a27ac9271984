# SPDX-License-Identifier: BSD-3-Clause
"""Speed of Progressive on a GPU, with errors that are bounds and measured. python -m benchmarks.gpu_progressive."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import cupy
import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.gpu_codec import Batch, event_seconds
from benchmarks.gpu_fields import turbulence
from benchmarks.gpu_origin import gpu_origin
from benchmarks.report import Rows, report
from pyfilter import frames

MARKER = "gpu_progressive"
COLUMNS = ("values", "dtype", "rel", "ratio", "compress, bounds", "measured", "decompress")
COMPRESS_FLOOR, DECOMPRESS_FLOOR = 100, 150
GIB = 1 << 30
MOST_CHUNKS = 128  # of a GiB, as the floors mean it: chunks of 8 MiB and more
LEGEND = (
    "GB/s (1e9 bytes) of values on the device: medians of CUDA events around the call, two inputs in rotation. "
    "'turbulence' is that of benchmarks.gpu_codec, 'spectrum' random fields whose amplitudes fall with the wavenumber "
    "as those of turbulence do, each chunk scaled and turned otherwise, 'walk' sums of normal numbers. Near-lossless "
    "where no bound is named, else the fraction of the range. 'bounds' and 'measured' are the errors of the table; "
    "decompression is the same for both. '30 %': that "
    "many values are missing, in lumps. Every value is checked."
)


@dataclasses.dataclass(frozen=True)
class Chunks:
    """Inputs, each as many chunks one behind the other."""

    name: str
    inputs: list[Any]
    chunk: tuple[int, ...]
    fill: float | None = None

    @property
    def count(self) -> int:
        """Return how many chunks an input has."""
        return int(self.inputs[0].size) // int(np.prod(self.chunk))


def spectrum(sides: tuple[int, ...], dtype: str, seed: int) -> Any:
    """Return a periodic random field, the same density of energy as turbulence has at each wavenumber."""
    generator = cupy.random.default_rng(seed)
    squares = cupy.zeros((), dtype=dtype)
    for axis, n in enumerate(sides):
        numbers = (cupy.fft.rfftfreq if axis + 1 == len(sides) else cupy.fft.fftfreq)(n) * n
        squares = squares + (numbers**2).astype(dtype).reshape([-1 if i == axis else 1 for i in range(len(sides))])
    squares[(0,) * len(sides)] = cupy.inf
    squares **= -((5 / 3 + len(sides) - 1) / 4)  # a shell has k^(d - 1) of them
    noise = cupy.fft.rfftn(generator.standard_normal(sides, dtype=dtype))
    noise *= squares
    return cupy.fft.irfftn(noise, s=sides).astype(dtype)


def spectra(side: int, count: int, dtype: str) -> Chunks:
    """Return chunks with three axes of the same length."""
    made = [spectrum((side,) * 3, dtype, seed) for seed in range(4)]
    inputs = [cupy.stack([made[(i + first) % 4] * (1 + i / 50) for i in range(count)]) for first in range(2)]
    inputs = [values.astype(dtype, copy=False) for values in inputs]
    return Chunks(f"spectrum, {count} of {side} x {side} x {side}", inputs, (side,) * 3)


def missing(side: int, fill: float, dtype: str) -> Chunks:
    """Return chunks of which 30 % of the values are missing, in lumps as land and sea are."""
    given = spectra(side, GIB // (side**3 * int(dtype[1])), dtype)
    land = spectrum((side,) * 3, dtype, 99)
    land = land > cupy.quantile(land, 0.7)
    for values in given.inputs:
        values[:, land] = fill
    kind = "NaN" if np.isnan(fill) else "the fill value"
    return Chunks(f"{given.name}, 30 % {kind}", given.inputs, given.chunk, None if np.isnan(fill) else fill)


def one(name: str, inputs: list[Any]) -> Chunks:
    """Return one chunk an input."""
    return Chunks(f"{name}, one chunk of {inputs[0].nbytes >> 20} MiB", inputs, inputs[0].shape)


def sets(dtype: str, parts: list[str]) -> list[Any]:
    """Return functions that make the inputs of the named sets."""
    planes = GIB >> (20 if dtype == "f4" else 21)
    walk, rows = GIB // int(dtype[1]), GIB // int(dtype[1]) // 16384
    made = {
        "turbulence": lambda: one("turbulence", [turbulence(planes, dtype, seed) for seed in range(2)]),
        "spectrum 128": lambda: spectra(128, GIB // (128**3 * int(dtype[1])), dtype),
        "spectrum 8": lambda: spectra(128, 8, dtype),
        "spectrum 64": lambda: spectra(64, GIB // (64**3 * int(dtype[1])), dtype),
        "missing, fill": lambda: missing(128, 1e20, dtype),
        "missing, NaN": lambda: missing(128, float("nan"), dtype),
        "missing 64": lambda: missing(64, 1e20, dtype),
        "plane": lambda: one("spectrum", [spectrum((rows, 16384), dtype, seed) for seed in range(2)]),
        "line": lambda: one(
            "walk", [cupy.cumsum(cupy.random.default_rng(s).standard_normal(walk)).astype(dtype) for s in range(2)]
        ),
    }
    return [make for name, make in made.items() if not parts or any(part in name for part in parts)]


def measure(table: Rows, given: Chunks, relative: str) -> tuple[bool, float, float]:
    """Add a row; return whether every bound is kept, GB/s with measured errors, and GB/s of decompression."""
    first = given.inputs[0]
    special = cupy.isnan(first) if given.fill is None else first == first.dtype.type(given.fill)
    ordinary = first[~special]
    bound = float(relative) * float(ordinary.max() - ordinary.min()) if relative else None
    del ordinary
    speeds = []
    for errors in ("bounds", "measured"):
        request = frames.make_request(
            pyfilter.Progressive(absolute=bound, errors=errors), first.dtype, given.chunk, given.fill
        )
        batch = Batch(given.inputs, request, given.count)
        speeds.append(first.nbytes / 1e9 / event_seconds(batch.encode))
    batch.encode(0)
    ratio = first.nbytes / batch.prepare_decode()
    speeds.append(first.nbytes / 1e9 / event_seconds(batch.decode))
    good = not bool(batch.faults.any())
    values, decoded = first.reshape(given.count, -1), batch.out.reshape(given.count, -1)
    special = special.reshape(given.count, -1)
    bits = "u4" if first.dtype.itemsize == 4 else "u8"
    good = good and bool((values[special].view(bits) == decoded[special].view(bits)).all())
    for i in range(given.count):
        limit = pyfilter.frame_info(batch.heads[i]).bound
        worst = cupy.abs(values[i].astype("f8") - decoded[i].astype("f8"))[~special[i]].max()
        good = good and float(worst) <= (limit if bound is None else min(limit, bound))
    cells = (f"{speed:.0f}" for speed in speeds)
    table.add(given.name, first.dtype.name, relative, f"{ratio:.2f}", *cells)
    return good, speeds[1], speeds[2]


def main(
    parts: Annotated[str, typer.Option("--sets", help="Parts of turbulence, spectrum 128, missing, plane, line.")] = "",
    dtypes: Annotated[str, typer.Option(help="Element types.")] = "f4,f8",
    bounds: Annotated[str, typer.Option(help="Fractions of the range, with 0 for near-lossless.")] = "0,1e-3",
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Measure all sets, element types and bounds."""
    console = Console(width=200, highlight=False)
    head = gpu_origin("gpu_progressive")
    table, good, of_a_gib = Rows("", COLUMNS), True, []
    for dtype in dtypes.split(","):
        for make in sets(dtype, [part.strip() for part in parts.split(",") if part]):
            given = make()
            for relative in bounds.split(","):
                kept, compress, decompress = measure(table, given, "" if relative == "0" else relative)
                good = good and kept
                if given.inputs[0].nbytes == GIB and len(given.chunk) > 1 and given.count <= MOST_CHUNKS:
                    of_a_gib.append((compress, decompress))
            del given
            cupy.get_default_memory_pool().free_all_blocks()
    summary = []
    for name, floor, column in (
        ("compress, measured errors", COMPRESS_FLOOR, 0),
        ("decompress", DECOMPRESS_FLOOR, 1),
    ):
        least = min((row[column] for row in of_a_gib), default=float("inf"))
        verdict = "pass" if least >= floor else "FAIL"
        what = "1 GiB in chunks of 8 MiB or more, more than one axis"
        summary.append(f"{name}, {what} >= {floor} GB/s: {verdict}; {least:.0f}")
    report(console, head, LEGEND, summary, [table], marker=MARKER, markdown=markdown, save=save)
    if not good:
        console.print("a bound was not kept")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
