# SPDX-License-Identifier: BSD-3-Clause
"""A GPU array to an HDF5 file in memory (tmpfs) and back. python -m benchmarks.gpu_files (needs CuPy)."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import cupy
import h5py
import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.gpu_fields import FIELDS
from benchmarks.gpu_origin import gpu_origin
from benchmarks.report import Rows, keep
from pyfilter._chunks.layout import origins

if TYPE_CHECKING:
    from collections.abc import Callable

MARKER = "gpu_files"
COLUMNS = (
    "chunk", "codec", "ratio", "write", "write/(ratio x raw)", "write/file", "read", "read/(ratio x raw)", "read/file",
    "kept",
)  # fmt: skip
LEGEND = (
    "GB/s of original bytes, medians. 'raw' is the rate at which h5py writes and reads the same bytes uncompressed and "
    "contiguous on the same file system; what a perfect codec could reach is the ratio times that. 'file': the rate of "
    "the file alone; written: the same frames, from host memory, by h5py's write_direct_chunk, file and dataset made "
    "and closed; read: the bytes of the whole file by one thread."
)
ROUNDS = 5


def seconds(work: Callable[[], Any]) -> float:
    """Return the median of some rounds, after one that does not count."""
    work()
    taken = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        cupy.cuda.get_current_stream().synchronize()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def raw_rates(folder: Path, size: int) -> tuple[float, float]:
    """Return GB/s of writing and reading uncompressed bytes."""
    values = np.random.default_rng(0).integers(0, 255, size, np.uint8)
    out = np.ones_like(values)

    def write() -> None:
        with h5py.File(folder / "raw.h5", "w") as file:
            file.create_dataset("x", data=values)

    def read() -> None:
        with h5py.File(folder / "raw.h5") as file:
            file["x"].read_direct(out)

    return size / seconds(write) / 1e9, size / seconds(read) / 1e9


def file_rates(path: Path, shape: tuple[int, ...], codec: pyfilter.Codec, nbytes: int) -> tuple[float, float]:
    """Return GB/s of original bytes when the CPU writes and reads the file."""
    with h5py.File(path) as file:
        dataset = file["x"]
        chunks = dataset.chunks
        frames = {place: dataset.id.read_direct_chunk(place)[1] for place in origins(shape, chunks)}
    room = np.empty(path.stat().st_size, np.uint8)
    room.fill(0)

    def write() -> None:
        with h5py.File(path.with_suffix(".again"), "w") as file:
            dataset = file.create_dataset("x", shape, "f4", chunks=chunks, **codec)
            for place, frame in frames.items():
                dataset.id.write_direct_chunk(place, frame, 0)

    def read() -> None:
        with path.open("rb", buffering=0) as file:
            view = room.data
            while view.nbytes:
                view = view[file.readinto(view[: 8 << 20]) :]

    return nbytes / seconds(write) / 1e9, nbytes / seconds(read) / 1e9


def main(
    folder: Annotated[Path, typer.Option(help="on a tmpfs")] = Path("/dev/shm"),
    mib: Annotated[int, typer.Option()] = 2048,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
    markdown: Annotated[Path | None, typer.Option()] = None,
) -> None:
    """Measure and print the table."""
    console = Console(width=200, highlight=False)
    lines = gpu_origin("gpu_files")
    console.print("\n".join(lines))
    values = FIELDS["turbulence"](mib, "f4", 0)
    span = float(values.max()) - float(values.min())
    rows = Rows("", COLUMNS)
    good = True
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        place = Path(scratch)
        raw_write, raw_read = raw_rates(place, 1 << 28)
        console.print(f"raw: {raw_write:.2f} GB/s written, {raw_read:.2f} read")
        for chunks in ((4, 512, 512), (64, 512, 512), (1, 256, 512)):
            for relative in (1e-2, 1e-3):
                codec = pyfilter.Cuszp2(absolute=relative * span)
                path = place / "ours.h5"
                out = cupy.empty_like(values)

                def write(codec: pyfilter.Codec = codec, chunks: tuple[int, ...] = chunks, path: Path = path) -> None:
                    with h5py.File(path, "w") as file:
                        dataset = file.create_dataset("x", values.shape, "f4", chunks=chunks, **codec)
                        pyfilter.write(dataset, values)

                def read(path: Path = path, out: Any = out) -> None:
                    with h5py.File(path) as file:
                        pyfilter.read(file["x"], out=out)

                written = values.nbytes / seconds(write) / 1e9
                ratio = values.nbytes / path.stat().st_size
                read_back = values.nbytes / seconds(read) / 1e9
                file_write, file_read = file_rates(path, values.shape, codec, values.nbytes)
                kept = float(cupy.abs(values - out).max()) <= relative * span
                good = good and kept
                rows.add(
                    f"{np.prod(chunks) * 4 / 1e6:.2f} MB", f"outlier 1-D, {relative:g}", f"{ratio:.2f}",
                    f"{written:.1f}", f"{written / (ratio * raw_write):.2f}", f"{written / file_write:.2f}",
                    f"{read_back:.1f}", f"{read_back / (ratio * raw_read):.2f}", f"{read_back / file_read:.2f}",
                    "yes" if kept else "NO",
                )  # fmt: skip
        raw = f"raw: {raw_write:.2f} GB/s written, {raw_read:.2f} GB/s read"
    rows.show(console)
    for done in keep([*lines, raw], LEGEND, [], [rows], marker=MARKER, markdown=markdown, save=save):
        console.print(f"wrote {done}")
    raise typer.Exit(0 if good else 1)


if __name__ == "__main__":
    typer.run(main)
