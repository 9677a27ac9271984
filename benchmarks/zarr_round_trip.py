# SPDX-License-Identifier: BSD-3-Clause
"""Zarr arrays in memory against pyfilter.encode and decode of the same chunks. python -m benchmarks.zarr_round_trip."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
import zarr
from rich.console import Console

import pyfilter
from benchmarks.report import Rows, origin, report
from benchmarks.timing import in_turns
from pyfilter._chunks import layout

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

MARKER = "zarr_round_trip"
SHAPE = (128, 512, 512)
CHUNKS = ((1, 512, 512), (4, 512, 512), (16, 512, 512))
CODECS = {
    "Cuszp2": pyfilter.Cuszp2(absolute=1e-3),
    "HierarchicalDelta": pyfilter.HierarchicalDelta(absolute=1e-3),
    "Lorenzo": pyfilter.Lorenzo(absolute=1e-3),
}
COLUMNS = (
    "codec", "chunk, MiB", "ratio", "encode", "Zarr 3", "Zarr 2", "plain", "decode", "Zarr 3", "Zarr 2", "plain",
    "round trip, Zarr 3", "Zarr 2", "within",
)  # fmt: skip
LEGEND = (
    "GB/s of values, medians; a walk of 134 MB along rows, float32, absolute bound of 1e-3. 'encode' and 'decode': "
    "pyfilter.encode and decode of each chunk, from and to parts of one array. 'Zarr': the same array in a "
    "MemoryStore, array[...] = values and array.get_basic_selection(out=...); in format 2 with write_empty_chunks, "
    "without which zarr-python compares every value with the fill value. 'plain': format 3 without compression. "
    "'round trip': speed of writing and reading, as a fraction of that of encode and decode. 'within': whether every "
    "value is within the bound."
)


def buffer_of(out: NDArray[Any]) -> Any:
    """Return an array as what zarr-python reads into."""
    return zarr.core.buffer.cpu.NDBuffer.from_numpy_array(out)


def row(name: str, values: NDArray[Any], chunk: tuple[int, ...], rounds: int) -> tuple[bool, list[str]]:
    """Measure one codec with one chunk shape."""
    codec = CODECS[name]
    regions = [layout.box(origin, chunk, SHAPE) for origin in layout.origins(SHAPE, chunk)]
    frames: list[bytes] = []
    outs = [np.ones_like(values) for _ in range(4)]
    settings: dict[str, Any] = {"shape": SHAPE, "dtype": "f4", "chunks": chunk}
    third = zarr.create_array(
        zarr.storage.MemoryStore(), serializer=pyfilter.zarr.Serializer(codec), compressors=None, **settings
    )
    second = zarr.create_array(
        zarr.storage.MemoryStore(), zarr_format=2, compressors=pyfilter.zarr.Compressor(codec), filters=None,
        config={"write_empty_chunks": True}, **settings,
    )  # fmt: skip
    plain = zarr.create_array(zarr.storage.MemoryStore(), compressors=None, **settings)

    def encode() -> None:
        frames[:] = [pyfilter.encode(values[region], codec) for region in regions]

    def decode() -> None:
        for region, frame in zip(regions, frames, strict=True):
            pyfilter.decode(frame, out=outs[0][region])

    def write(array: Any) -> Callable[[], None]:
        return lambda: array.__setitem__(Ellipsis, values)

    def read(array: Any, out: NDArray[Any]) -> Callable[[], None]:
        return lambda: array.get_basic_selection(Ellipsis, out=buffer_of(out))

    works = [encode, write(third), write(second), write(plain)]
    works += [decode, read(third, outs[1]), read(second, outs[2]), read(plain, outs[3])]
    times = in_turns(works, rounds)
    good = all(bool(np.all(np.abs(out.astype("f8") - values) <= 1e-3)) for out in outs)
    speeds = [f"{values.nbytes / each / 1e9:.2f}" for each in times]
    whole = times[0] + times[4]
    trips = [f"{whole / (times[at] + times[at + 4]):.0%}" for at in (1, 2)]
    mib = f"{int(np.prod(chunk)) * 4 / 2**20:g}"
    ratio = f"{values.nbytes / sum(map(len, frames)):.1f}"
    return good, [name, mib, ratio, *speeds, *trips, "yes" if good else "NO"]


def main(
    rounds: Annotated[int, typer.Option(help="that count")] = 7,
    threads: Annotated[int, typer.Option(help="of pyfilter, 0 for one for each core")] = 0,
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Measure and print the table."""
    console = Console(width=200, highlight=False)
    random = np.random.default_rng(0)
    values = np.cumsum(random.normal(0, 1e-2, SHAPE).astype("f4"), axis=-1, dtype="f4")
    rows, good = Rows("", COLUMNS), True
    with pyfilter.config(threads=threads):
        for name in CODECS:
            for chunk in CHUNKS:
                within, cells = row(name, values, chunk, rounds)
                good = good and within
                rows.add(*cells)
    head = origin(shlex.join(["python", "-m", "benchmarks.zarr_round_trip", *sys.argv[1:]]))
    report(console, head, LEGEND, [], [rows], marker=MARKER, markdown=markdown, save=save)
    raise typer.Exit(0 if good else 1)


if __name__ == "__main__":
    typer.run(main)
