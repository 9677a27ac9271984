# SPDX-License-Identifier: BSD-3-Clause
"""Chunk shapes of real data on a GPU: batches of chunks, and pyfilter.encode and decode of one chunk.

``python -m benchmarks.gpu_shapes``.
"""

from __future__ import annotations

import math
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import cupy
import typer
from rich.console import Console

import pyfilter
from benchmarks.gpu_codec import Batch, event_seconds, largest_error
from benchmarks.gpu_fields import waves
from benchmarks.gpu_origin import gpu_origin
from benchmarks.report import Rows, report
from pyfilter import frames

if TYPE_CHECKING:
    from collections.abc import Callable

MARKER = "gpu_shapes"
#: chunk shapes by what they are; each fills ``--mib`` with as many chunks as fit
SHAPES: dict[str, tuple[int, ...]] = {
    "one chunk of 1 GiB": (1024, 512, 512),
    "odd extents": (1024, 511, 513),
    "ERA5": (721, 1440),
    "CESM 2-D": (1800, 3600),
    "CESM 3-D": (14, 288, 320),
    "POP": (320, 384),
    "Hurricane": (100, 500, 500),
    "RTM plane": (199, 199),
    "RTM": (200, 199, 199),
    "MERRA": (361, 576),
    "rows of 513": (2048, 513),
    "rows of 500": (2048, 500),
    "prime rows": (1009, 1021),
    "64 KiB": (128, 128),
    "256 KiB": (16, 64, 64),
    "1 MiB": (512, 512),
    "4 MiB": (64, 128, 128),
    "4 MiB, 1-D": (1 << 20,),
    "16 MiB": (16, 512, 512),
    "64 MiB": (64, 512, 512),
}
COLUMNS = (
    "what", "chunk", "chunks", "codec", "ratio", "batch C", "batch D", "one C", "one D", "encode", "decode",
)  # fmt: skip
LEGEND = (
    "'batch': GB/s (1e9 bytes) of original bytes of all chunks in one call of the C ABI, medians of CUDA events. Then "
    "microseconds for the first chunk alone, medians on the host's clock until the result is there: 'one' through the "
    "C ABI with memory that is kept, 'encode' and 'decode' through pyfilter.encode and pyfilter.decode. C, D: compress "
    "and decompress. float32, a sum of waves, an absolute bound of 1e-3 of the range."
)
REPEATS, WARM_UP = 15, 4


def codecs(bound: float, rank: int) -> dict[str, pyfilter.Codec]:
    """Return the codecs of a chunk of so many dimensions."""
    found: dict[str, pyfilter.Codec] = {"Cuszp2": pyfilter.Cuszp2(absolute=bound)}
    if rank > 1:
        found["Cuszp2 2-D"] = pyfilter.Cuszp2(absolute=bound, block_dims=2)
    found["HierarchicalDelta"] = pyfilter.HierarchicalDelta(absolute=bound)
    found["Lorenzo"] = pyfilter.Lorenzo(absolute=bound)
    found["Progressive"] = pyfilter.Progressive(absolute=bound)
    return found


def micros(work: Callable[[], object]) -> float:
    """Return the median of the microseconds from a call until the device is done."""
    stream = cupy.cuda.get_current_stream()
    taken = []
    for _ in range(WARM_UP + REPEATS):
        stream.synchronize()
        begin = time.perf_counter()
        work()
        stream.synchronize()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken[WARM_UP:]) * 1e6


def field_of(shape: tuple[int, ...], mib: int) -> tuple[Any, int]:
    """Return a field of whole chunks, one after the other, and their number."""
    size = math.prod(shape)
    count = max(1, (mib << 20) // (4 * size))
    if len(shape) == 3:
        return waves((count * shape[0], *shape[1:]), "f4", 0), count
    plane = shape if len(shape) == 2 else (size // 1024, 1024)
    return waves((count, *plane), "f4", 0), count


def one_chunk(values: Any, request: Any) -> tuple[float, float]:
    """Return the microseconds of encoding and decoding one chunk through the C ABI, with memory that is kept."""
    batch = Batch([values], request)
    compress = micros(lambda: batch.encode(0))
    batch.prepare_decode()
    return compress, micros(lambda: batch.decode(0))


def measure(values: Any, chunk: tuple[int, ...], count: int, codec: pyfilter.Codec, bound: float) -> list[float]:
    """Return the ratio, speeds of the batch in GB/s, and microseconds of one chunk by both ways; checks the bound."""
    request = frames.make_request(codec, values.dtype, chunk)
    batch = Batch([values], request, count)
    compress = event_seconds(batch.encode)
    ratio = values.nbytes / batch.prepare_decode()
    decompress = event_seconds(batch.decode)
    error = largest_error(values.reshape(-1), batch.out)
    if error > bound or bool(batch.faults.any()):
        message = f"{codec!r} of {count} chunks of {chunk}: error {error:g}, bound {bound:g}"
        raise RuntimeError(message)
    del batch
    first = values.reshape(-1)[: math.prod(chunk)].reshape(chunk)
    one = one_chunk(first, request)
    frame = pyfilter.encode(first, codec)
    encode, decode = micros(lambda: pyfilter.encode(first, codec)), micros(lambda: pyfilter.decode(frame))
    speeds = (values.nbytes / each / 1e9 for each in (compress, decompress))
    return [ratio, *speeds, *one, encode, decode]


def main(
    only: Annotated[str, typer.Option("--shapes", help="Parts of names, with commas between.")] = "",
    kinds: Annotated[str, typer.Option("--codecs", help="Parts of names, with commas between.")] = "",
    mib: Annotated[int, typer.Option(help="Size of all chunks of a row in MiB.")] = 1024,
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Measure every shape and codec."""
    console = Console(width=200, highlight=False)
    rows = Rows("", COLUMNS)
    for name, chunk in SHAPES.items():
        if not any(part in name for part in only.split(",")):
            continue
        values, count = field_of(chunk, mib)
        bound = 1e-3 * (float(values.max()) - float(values.min()))
        for kind, codec in codecs(bound, len(chunk)).items():
            if not any(part in kind for part in kinds.split(",")):
                continue
            ratio, *speeds = measure(values, chunk, count, codec, bound)
            label = " x ".join(map(str, chunk))
            rows.add(name, label, str(count), kind, f"{ratio:.2f}", *(f"{each:.0f}" for each in speeds))
            cupy.get_default_memory_pool().free_all_blocks()
        del values
        cupy.get_default_memory_pool().free_all_blocks()
    report(console, gpu_origin("gpu_shapes"), LEGEND, [], [rows], marker=MARKER, markdown=markdown, save=save)


if __name__ == "__main__":
    typer.run(main)
