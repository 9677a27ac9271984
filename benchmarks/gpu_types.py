# SPDX-License-Identifier: BSD-3-Clause
"""Derived types on a GPU: float16, bfloat16 and complex numbers beside float32, in batches of chunks and in one.

``python -m benchmarks.gpu_types``.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import cupy
import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.gpu_codec import Batch, event_seconds, largest_error
from benchmarks.gpu_fields import waves
from benchmarks.gpu_origin import gpu_origin
from benchmarks.gpu_shapes import micros
from benchmarks.report import Rows, report
from pyfilter import dtypes, frames

MARKER = "gpu_types"
CHUNK = (64, 128, 128)
COLUMNS = ("type", "bound", "codec", "ratio", "batch C", "batch D", "encode", "decode")
LEGEND = (
    "'batch': GB/s (1e9 bytes) of original bytes of all chunks in one call of the C ABI, medians of CUDA events. "
    "'encode' and 'decode': microseconds of pyfilter.encode and pyfilter.decode for one chunk. C, D: compress and "
    "decompress. A sum of waves in chunks of 64 x 128 x 128 values; complex numbers have it as both parts. Bounds are "
    "absolute, as a fraction of the range."
)
TYPES = ("f4", "f2", "bfloat16", "c8", "c16")
FRACTIONS = (1e-2, 1e-3)


def values_of(name: str, mib: int) -> Any:
    """Return chunks one after the other; bfloat16 as the upper halves of float32."""
    parts = 2 if name[0] == "c" else 1
    count = (mib << 20) // (math.prod(CHUNK) * {"f4": 4, "f2": 2, "bfloat16": 2, "c8": 8, "c16": 16}[name])
    found = waves((count * parts * CHUNK[0], *CHUNK[1:]), "f8" if name == "c16" else "f4", 0)
    if name == "bfloat16":
        return (found.view(np.uint32) >> 16).astype(np.uint16).view(np.int16)
    if name[0] == "c":
        return found.reshape(-1).view(name).reshape(-1, *CHUNK[1:])
    return found.astype(name)


def as_floats(values: Any, name: str) -> Any:
    """Return the parts of the values as real numbers."""
    flat = values.reshape(-1)
    if name == "bfloat16":
        return (flat.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return flat.view(f"f{values.itemsize // 2}") if name[0] == "c" else flat.astype("f4")


def measure(values: Any, name: str, codec: pyfilter.Codec, bound: float) -> list[str]:
    """Return the ratio, GB/s of a batch and microseconds of one chunk; checks the bound."""
    code = dtypes.from_code(15) if name == "bfloat16" else values.dtype
    request = frames.make_request(codec, code, CHUNK)
    count = values.size // math.prod(CHUNK)
    batch = Batch([values], request, count)
    compress = event_seconds(batch.encode)
    ratio = values.nbytes / batch.prepare_decode()
    decompress = event_seconds(batch.decode)
    error = largest_error(as_floats(values, name), as_floats(batch.out, name))
    if error > bound or bool(batch.faults.any()):
        message = f"{codec!r} of {name}: error {error:g}, bound {bound:g}"
        raise RuntimeError(message)
    del batch
    found = [f"{ratio:.2f}", *(f"{values.nbytes / each / 1e9:.0f}" for each in (compress, decompress))]
    if name == "bfloat16":
        return [*found, "-", "-"]
    first = values.reshape(-1)[: math.prod(CHUNK)].reshape(CHUNK)
    frame = pyfilter.encode(first, codec)
    both = (lambda: pyfilter.encode(first, codec)), (lambda: pyfilter.decode(frame))
    return [*found, *(f"{micros(each):.0f}" for each in both)]


def main(
    only: Annotated[str, typer.Option("--types", help="Names, with commas between.")] = ",".join(TYPES),
    mib: Annotated[int, typer.Option(help="Size of all chunks of a row in MiB.")] = 1024,
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Measure every type and codec."""
    if save and set(only.split(",")) != set(TYPES):
        raise typer.BadParameter("--save keeps a whole table: it cannot be used with some types only")
    console = Console(width=200, highlight=False)
    rows = Rows("", COLUMNS)
    for name in only.split(","):
        values = values_of(name, mib)
        floats = as_floats(values, name)
        spread = float(floats.max()) - float(floats.min())
        del floats
        for fraction in FRACTIONS:
            for kind in (pyfilter.Cuszp2, pyfilter.HierarchicalDelta, pyfilter.Lorenzo):
                bound = fraction * spread
                found = measure(values, name, kind(absolute=bound), bound)
                rows.add(name, f"{fraction:g}", kind.__name__, *found)
                cupy.get_default_memory_pool().free_all_blocks()
        rows.add(name, "0", "Lossless", *measure(values, name, pyfilter.Lossless(), 0.0))
        del values
        cupy.get_default_memory_pool().free_all_blocks()
    report(console, gpu_origin("gpu_types"), LEGEND, [], [rows], marker=MARKER, markdown=markdown, save=save)


if __name__ == "__main__":
    typer.run(main)
