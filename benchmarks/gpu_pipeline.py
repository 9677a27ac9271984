# SPDX-License-Identifier: BSD-3-Clause
"""Chunks in host memory, as HDF5 hands them to the filter: CPU or GPU. python -m benchmarks.gpu_pipeline."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.gpu_fields import FIELDS
from benchmarks.gpu_origin import gpu_origin
from benchmarks.report import Rows, keep
from pyfilter import frames
from pyfilter._lib import host

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

MARKER = "gpu_pipeline"
COLUMNS = ("codec", "chunk", "CPU, 1 thread", "2", "4", "8", "all", "GPU with copies")
LEGEND = (
    "GB/s of original bytes, compress / decompress, medians. 'GPU with copies' is the way of PYFILTER_BACKEND=cuda: "
    "from and to pageable memory."
)
THREADS = (1, 2, 4, 8, 0)
ROUNDS = 7


def speed(size: int, work: Callable[[], object]) -> float:
    """Return GB/s of the median round."""
    taken = []
    for i in range(ROUNDS + 2):
        begin = time.perf_counter()
        work()
        if i >= 2:
            taken.append(time.perf_counter() - begin)
    return size / statistics.median(taken) / 1e9


def both_ways(values: NDArray[np.float32], codec: pyfilter.Codec) -> str:
    """Return the speeds of a cell under the settings in force."""
    request = frames.make_request(codec, values.dtype, values.shape)
    frame = np.ones(host.max_frame_bytes(request), np.uint8)
    out = np.ones_like(values)
    compress = speed(values.nbytes, lambda: host.encode(request, values, frame))
    done = frame[: host.encode(request, values, frame)]
    return f"{compress:.1f} / {speed(values.nbytes, lambda: host.decode(done, out)):.1f}"


def main(
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Measure chunks of several sizes."""
    console = Console(width=200, highlight=False)
    head = gpu_origin("gpu_pipeline")
    console.print("\n".join(head), LEGEND, sep="\n")
    table = Rows("", COLUMNS)
    field = FIELDS["turbulence"](128, "f4", 0).get()
    span = float(field.max()) - float(field.min())
    for label, codec in (("Cuszp2, 1e-3", pyfilter.Cuszp2(absolute=1e-3 * span)), ("Lossless", pyfilter.Lossless())):
        for planes in (1, 4, 16, 64, 128):
            values = np.ascontiguousarray(field[:planes])
            cells = []
            for threads in THREADS:
                with pyfilter.config(backend="cpu", threads=threads):
                    cells.append(both_ways(values, codec))
            with pyfilter.config(backend="cuda"):
                cells.append(both_ways(values, codec))
            table.add(label, f"{values.nbytes / 1e6:.1f} MB", *cells)
    table.show(console)
    for path in keep(head, LEGEND, [], [table], marker=MARKER, markdown=markdown, save=save):
        console.print(f"wrote {path}")


if __name__ == "__main__":
    typer.run(main)
