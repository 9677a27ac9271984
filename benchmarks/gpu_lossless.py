# SPDX-License-Identifier: BSD-3-Clause
"""Speed of encoding chunks with Lossless(effort="ratio") on a GPU, and of decoding frames.

python -m benchmarks.gpu_lossless
"""

from __future__ import annotations

from typing import Annotated, Any

import cupy
import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.gpu_adaptive import SHAPES, chunks, measure, measure_encoding
from benchmarks.report import Rows

COLUMNS = (
    "field", "shape", "dtype", "ratio", "frames", "decode GB/s", "one frame, us", "same values",
    "encode GB/s", "one chunk, us", "same bytes",
)  # fmt: skip
RATIO = pyfilter.Lossless(effort="ratio")


def inputs_of(name: str, kind: str, dtype: str) -> list[Any]:
    """Return distinct chunks of a million values: of a field, or `walk`, `hundredths` (a walk rounded) or `list`."""
    shape, random = SHAPES[kind], np.random.default_rng(0)
    if name == "list":
        return [random.choice(random.normal(size=40), shape).astype(dtype) for _ in range(4)]
    if name in ("walk", "hundredths"):
        walks = [np.cumsum(random.normal(size=shape), axis=-1) for _ in range(4)]
        return [(walk if name == "walk" else np.round(walk, 2)).astype(dtype) for walk in walks]
    return chunks(name, shape, dtype)


def main(
    fields: Annotated[
        str, typer.Option(help="Names, comma-separated.")
    ] = "turbulence,sparse,noise,walk,hundredths,list",
    shapes: Annotated[str, typer.Option(help="Of volume, plane, line.")] = "volume,plane,line",
    dtypes: Annotated[str, typer.Option(help="Element types.")] = "f4,f8",
    count: Annotated[int, typer.Option(help="Frames in a call.")] = 256,
) -> None:
    """Batches of chunks, and single ones; end with status 1 if a value or a byte differs from the CPU's."""
    console = Console(width=160, highlight=False)
    table, good = Rows("", COLUMNS), True
    for name in fields.split(","):
        for kind in shapes.split(","):
            for dtype in dtypes.split(","):
                inputs = inputs_of(name, kind, dtype)
                cells, same = measure(inputs, RATIO, dtype, count)
                encoding, same_bytes = measure_encoding(inputs, RATIO, count)
                cupy.get_default_memory_pool().free_all_blocks()
                good = good and same and same_bytes
                table.add(name, kind, dtype, *cells, *encoding)
    table.show(console)
    if not good:
        console.print("values or bytes are not those of the CPU")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
