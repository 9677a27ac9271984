# SPDX-License-Identifier: BSD-3-Clause
"""Speed of Particles on a GPU, batches of 100 million particles on the device. python -m benchmarks.gpu_particles."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import cupy
import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.fields import find_data
from benchmarks.gpu_codec import Batch, event_seconds
from benchmarks.gpu_origin import gpu_origin
from benchmarks.report import Rows, keep
from pyfilter import frames
from pyfilter.gpu.order import permutation

MARKER = "gpu_particles"
COLUMNS = ("positions", "order", "rel", "ratio", "codec", "compress", "decompress")
LEGEND = (
    "GB/s (1e9 bytes) of values on the device: medians of CUDA events around the call. N-body: as many chunks as asked "
    "for of nbody_pos_nx3_f32, all alike; even: chunks of 2^24 particles spread evenly over a cube. Bounds are "
    "absolute, fractions of the longest extent. 'sorted, kept': rows that were sorted through the chunk before, as "
    "pyfilter.particles.write gives them. Codec: what the frames are; every decoded value is checked where rows keep "
    "their place."
)
EVEN_PARTICLES = 1 << 24


@dataclasses.dataclass(frozen=True)
class Positions:
    """Chunks of particles, one behind the other on the device."""

    name: str
    chunk: Any  # one of them
    values: Any
    chunks: int

    @property
    def extent(self) -> float:
        """Return the longest extent of a chunk."""
        return float((self.chunk.max(axis=0) - self.chunk.min(axis=0)).max())


def nbody(folder: Path, dtype: str, particles: int) -> Positions:
    """Return the N-body positions of the test data, repeated."""
    chunk = cupy.asarray(np.load(folder / "nbody_pos_nx3_f32.npy").astype(dtype))
    chunks = max(1, particles // len(chunk))
    return Positions("N-body", chunk, cupy.tile(chunk, (chunks, 1)), chunks)


def even(dtype: str, particles: int) -> Positions:
    """Return particles spread evenly over a cube."""
    chunks = max(1, round(particles / EVEN_PARTICLES))
    generator = cupy.random.default_rng(7)
    values = generator.random((chunks * EVEN_PARTICLES, 3), dtype=dtype)
    return Positions("even", values[:EVEN_PARTICLES], values, chunks)


def sorted_rows(given: Positions, bound: float) -> Positions:
    """Return the same particles, with each chunk sorted as by order "chunk"."""
    order = permutation(given.chunk, pyfilter.Particles(absolute=bound, order="chunk"), len(given.chunk))
    chunk = given.chunk[order]
    return Positions(given.name, chunk, cupy.tile(chunk, (given.chunks, 1)), given.chunks)


def measure(table: Rows, given: Positions, order: str, relative: str) -> bool:
    """Add a row; False where a bound is not kept."""
    bound = float(relative) * given.extent
    kept = order.endswith("kept")
    if order == "sorted, kept":
        given = sorted_rows(given, bound)
    codec = pyfilter.Particles(absolute=bound, order="kept" if kept else order)
    batch = Batch([given.values], frames.make_request(codec, given.chunk.dtype, given.chunk.shape), given.chunks)
    compress = event_seconds(batch.encode)
    ratio = given.values.nbytes / batch.prepare_decode()
    decompress = event_seconds(batch.decode)
    name = pyfilter.frame_info(batch.heads[0]).codec
    good = not bool(batch.faults.any())
    if kept:
        for first in range(0, given.values.size, 1 << 26):
            part = slice(first, first + (1 << 26))
            error = given.values.reshape(-1)[part].astype(cupy.float64) - batch.out[part].astype(cupy.float64)
            good = good and float(cupy.abs(error).max()) <= bound
    speeds = (f"{given.values.nbytes / each / 1e9:.0f}" for each in (compress, decompress))
    table.add(f"{given.name}, {given.chunk.dtype.name}", order, relative, f"{ratio:.2f}", name, *speeds)
    return good


def main(
    data: Annotated[Path | None, typer.Option(help="Folder of the test data.")] = None,
    sets: Annotated[str, typer.Option(help="Of nbody, even.")] = "nbody,even",
    dtypes: Annotated[str, typer.Option(help="Element types; f8 with half as many particles.")] = "f4,f8",
    orders: Annotated[str, typer.Option(help="Of tile, chunk, sorted, kept.")] = "tile,chunk,sorted,kept",
    bounds: Annotated[str, typer.Option(help="Fractions of the extent.")] = "1e-2,1e-3,1e-4",
    millions: Annotated[int, typer.Option(help="Particles of a batch of f4.")] = 100,
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Measure all sets, element types, orders and bounds."""
    console = Console(width=200, highlight=False)
    head = gpu_origin("gpu_particles", f"; {millions} million particles, f8 half as many")
    console.print("\n".join(head), LEGEND, sep="\n")
    folder, table, good = find_data(data), Rows("", COLUMNS), True
    for name in sets.split(","):
        for dtype in dtypes.split(","):
            particles = millions * 4_000_000 // int(dtype[1])
            if name == "nbody" and folder is None:
                console.print("no test data: N-body left out")
                continue
            given = nbody(folder, dtype, particles) if name == "nbody" and folder else even(dtype, particles)
            for order in orders.split(","):
                if order in ("kept", "sorted") and name != "nbody":
                    continue
                for relative in bounds.split(","):
                    good = measure(table, given, {"sorted": "sorted, kept"}.get(order, order), relative) and good
            del given
            cupy.get_default_memory_pool().free_all_blocks()
    table.show(console)
    for path in keep(head, LEGEND, [], [table], marker=MARKER, markdown=markdown, save=save):
        console.print(f"wrote {path}")
    if not good:
        console.print("a bound was not kept")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
