# SPDX-License-Identifier: BSD-3-Clause
"""One thread to all cores: arrays in memory, and files on a tmpfs. python -m benchmarks.cores."""

from __future__ import annotations

import os
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
from benchmarks.fields import MIB, fields
from benchmarks.report import Rows, origin, report
from benchmarks.timing import in_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

MARKER = "cores"
CHUNK = (4, 512, 512)  # 4 MiB of float32
LEGEND = (
    "GB/s (1e9 bytes) of original bytes, medians on the host's clock; float32, a generated turbulence, an absolute "
    "bound of 1e-3 of the range. In memory: pyfilter.encode of one array, and pyfilter.decode into an array whose "
    "pages are there. Files: pyfilter.create_dataset on a tmpfs, chunks of 4 x 512 x 512 values, and pyfilter.read "
    "into an array whose pages are there. 'gain': the fastest by one thread."
)


def codecs(bound: float) -> dict[str, pyfilter.Codec]:
    """Return the codecs by the names of the rows."""
    return {
        "Cuszp2": pyfilter.Cuszp2(absolute=bound),
        "HierarchicalDelta": pyfilter.HierarchicalDelta(absolute=bound),
        "Lorenzo": pyfilter.Lorenzo(absolute=bound),
        "Progressive": pyfilter.Progressive(absolute=bound),
    }


def thread_counts(most: int) -> Iterator[int]:
    """Yield 1, 2, 4, ... and the number of cores."""
    threads = 1
    while threads < most:
        yield threads
        threads *= 2
    yield most


def in_memory(values: NDArray[Any], codec: pyfilter.Codec, out: NDArray[Any], rounds: int) -> tuple[float, float]:
    """Return the seconds of encoding and decoding one array."""
    frame = pyfilter.encode(values, codec)
    encode, decode = in_turns(
        [lambda: pyfilter.encode(values, codec), lambda: pyfilter.decode(frame, out=out)],
        rounds,
    )
    return encode, decode


def to_file(
    values: NDArray[Any], codec: pyfilter.Codec, out: NDArray[Any], rounds: int, folder: Path
) -> tuple[float, float]:
    """Return the seconds of writing and reading a file."""

    def write() -> None:
        with h5py.File(folder / "a.h5", "w") as file:
            pyfilter.create_dataset(file, "x", values, codec, chunks=CHUNK)

    def read() -> None:
        with h5py.File(folder / "a.h5") as file:
            pyfilter.read(file["x"], out=out)

    written, back = in_turns([write, read], rounds)
    return written, back


def rows_of(
    rows: tuple[Rows, Rows], name: str, size: int, counts: Iterable[int], work: Callable[[], tuple[float, float]]
) -> None:
    """Measure with every number of threads, and add a row to the table of each direction."""
    found: list[tuple[float, float]] = []
    for threads in counts:
        with pyfilter.config(threads=threads):
            found.append(work())
    for table, seconds in zip(rows, zip(*found, strict=True), strict=True):
        gain = seconds[0] / min(seconds)
        table.add(name, *(f"{size / each / 1e9:.2f}" for each in seconds), f"{gain:.1f}")


def main(
    mib: Annotated[int, typer.Option(help="Size of the array in MiB.")] = 512,
    most: Annotated[int | None, typer.Option("--threads", help="The most threads; default: all cores.")] = None,
    only: Annotated[str, typer.Option("--codecs", help="Parts of names, with commas between.")] = "",
    folder: Annotated[Path, typer.Option(help="On a tmpfs.")] = Path("/dev/shm"),
    rounds: Annotated[int, typer.Option(help="Rounds that count.")] = 5,
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Measure and print the tables."""
    console = Console(width=200, highlight=False)
    head = origin(shlex.join(["python", "-m", "benchmarks.cores", *sys.argv[1:]]))
    (field,) = fields(None, min(mib, 64) * MIB, ["turbulence_f32"])
    values = np.concatenate([field.values] * max(1, mib // 64))  # making the waves takes long
    counts = list(thread_counts(most or os.cpu_count() or 1))
    columns = ("codec", *(f"{threads} threads" if threads > 1 else "1 thread" for threads in counts), "gain")
    encode, decode = Rows("In memory, encode", columns), Rows("In memory, decode", columns)
    write, read = Rows("Files, create_dataset", columns), Rows("Files, read", columns)
    out = np.full_like(values, field.limits[1] + 1)
    bound = field.bound(1e-3)

    def kept() -> bool:
        """Return whether the decoded values keep the bound, and wipe them."""
        error = float(np.abs(values.astype(np.float64) - out).max())
        out[...] = field.limits[1] + 1
        return error <= bound

    good = True
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for name, codec in codecs(bound).items():
            if not any(part in name for part in only.split(",")):
                continue
            memory = partial(in_memory, values, codec, out, rounds)
            rows_of((encode, decode), name, values.nbytes, counts, memory)
            good = kept() and good
            files = partial(to_file, values, codec, out, rounds, Path(scratch))
            rows_of((write, read), name, values.nbytes, counts, files)
            good = kept() and good
    report(console, head, LEGEND, [], [encode, decode, write, read], marker=MARKER, markdown=markdown, save=save)
    if not good:
        console.print("a bound was not kept")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
