# SPDX-License-Identifier: BSD-3-Clause
"""Chunks of many sizes: HDF5's pipeline against pyfilter.write and read. python -m benchmarks.small_chunks."""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import h5py
import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.report import Rows, origin, report
from benchmarks.timing import in_turns

if TYPE_CHECKING:
    from collections.abc import Callable

MARKER = "small_chunks"
SHAPE = (256, 512, 512)
CHUNKS = ((1, 16, 512), (16, 32, 32), (1, 32, 512), (8, 64, 64), (1, 128, 512), (1, 512, 512), (4, 512, 512))
COLUMNS = (
    "chunk", "KiB", "ratio", "write, HDF5", "pyfilter.write", "all threads", "read, HDF5", "pyfilter.read",
    "all threads", "same",
)  # fmt: skip
LEGEND = (
    "GB/s of values, medians; a walk of 268 MB along rows, float32, Cuszp2 with an absolute bound of 1e-3, to a file "
    "on a tmpfs and back to an array whose pages are there. 'HDF5': write_direct and read_direct, the filter called by "
    "HDF5; the others with one thread and with all. 'same': whether the chunks and the values are."
)


def chunks_of(dataset: h5py.Dataset) -> list[bytes]:
    """Return the stored bytes of all chunks."""
    places = sorted(dataset.id.get_chunk_info(number).chunk_offset for number in range(dataset.id.get_num_chunks()))
    return [dataset.id.read_direct_chunk(place)[1] for place in places]


def row(values: np.ndarray[Any, Any], chunk: tuple[int, ...], folder: Path, rounds: int) -> tuple[bool, list[str]]:
    """Measure one chunk shape."""
    codec = pyfilter.Cuszp2(absolute=1e-3)
    out, expected = np.ones_like(values), np.ones_like(values)

    def write(name: str, put: Callable[[h5py.Dataset], object]) -> None:
        with h5py.File(folder / name, "w") as file:
            put(file.create_dataset("x", values.shape, values.dtype, chunks=chunk, **codec))

    def read(get: Callable[[h5py.Dataset], object]) -> None:
        with h5py.File(folder / "ours") as file:
            get(file["x"])

    def alone(work: Callable[[], object]) -> None:
        with pyfilter.config(threads=1):
            work()

    def ours() -> None:
        write("ours", lambda dataset: pyfilter.write(dataset, values))

    def back() -> None:
        read(lambda dataset: pyfilter.read(dataset, out=out))

    times = in_turns(
        [
            lambda: alone(lambda: write("theirs", lambda dataset: dataset.write_direct(values))),
            lambda: alone(ours),
            ours,
            lambda: alone(lambda: read(lambda dataset: dataset.read_direct(expected))),
            lambda: alone(back),
            back,
        ],
        rounds,
    )
    with h5py.File(folder / "ours") as file, h5py.File(folder / "theirs") as other:
        same = np.array_equal(out, expected)
        if file["x"].id.get_num_chunks() <= 2048:  # h5py's call for one chunk walks over all
            same = same and chunks_of(file["x"]) == chunks_of(other["x"])
        ratio = values.nbytes / file["x"].id.get_storage_size()
    speeds = [f"{values.nbytes / each / 1e9:.2f}" for each in times]
    label = " x ".join(map(str, chunk))
    cells = [label, str(int(np.prod(chunk)) * 4 // 1024), f"{ratio:.1f}", *speeds, "yes" if same else "NO"]
    return same, cells


def main(
    folder: Annotated[Path, typer.Option(help="on a tmpfs")] = Path("/dev/shm"),
    rounds: Annotated[int, typer.Option(help="that count")] = 7,
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Measure and print the table."""
    console = Console(width=200, highlight=False)
    random = np.random.default_rng(0)
    values = np.cumsum(random.normal(0, 1e-2, SHAPE).astype("f4"), axis=-1, dtype="f4")
    rows, good = Rows("", COLUMNS), True
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for chunk in CHUNKS:
            same, cells = row(values, chunk, Path(scratch), rounds)
            good = good and same
            rows.add(*cells)
    head = origin(shlex.join(["python", "-m", "benchmarks.small_chunks", *sys.argv[1:]]))
    report(console, head, LEGEND, [], [rows], marker=MARKER, markdown=markdown, save=save)
    raise typer.Exit(0 if good else 1)


if __name__ == "__main__":
    typer.run(main)
