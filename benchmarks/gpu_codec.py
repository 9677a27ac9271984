# SPDX-License-Identifier: BSD-3-Clause
"""Speed of the codecs on a GPU, against the device's own copy. python -m benchmarks.gpu_codec (needs CuPy)."""

from __future__ import annotations

import shlex
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import cupy
import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.gpu_fields import FIELDS
from benchmarks.report import Rows, keep, origin
from pyfilter import _native, frames
from tests.gpu import device

if TYPE_CHECKING:
    from collections.abc import Callable

MARKER = "gpu_codec"
COLUMNS = ("field", "dtype", "codec", "rel", "ratio", "err/bound", "compress", "decompress", "C/copy", "D/copy")
LEGEND = (
    "GB/s of original bytes on the device, medians of CUDA events over rotating inputs larger than the cache. "
    "'copy' is a device-to-device copy of the same bytes in the same run."
)
GIB = 1 << 30
WARM_UP, ROUNDS = 3, 15


def event_times(work: Callable[[int], None], rounds: int = ROUNDS) -> list[float]:
    """Return the seconds that each round's work takes on the current stream."""
    for i in range(WARM_UP):
        work(i)
    events = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(rounds)]
    for i, (begin, end) in enumerate(events):
        begin.record()
        work(i)
        end.record()
    events[-1][1].synchronize()
    return [cupy.cuda.get_elapsed_time(begin, end) / 1e3 for begin, end in events]


@dataclass
class Batch:
    """Device memory for `copies` chunks, encoded and decoded by one call each."""

    inputs: list[Any]
    request: _native.Request
    chunk_values: int
    copies: int

    def __post_init__(self) -> None:
        self.library = device.library()
        self.chunk_bytes = self.chunk_values * self.inputs[0].itemsize
        self.capacity = device.stride_of(_native.max_frame_bytes(self.request), 256)
        self.frames = cupy.full(self.capacity * self.copies, 0xA5, dtype=cupy.uint8)
        self.sizes = cupy.zeros(self.copies, dtype=cupy.uint64)
        self.out = cupy.full(self.inputs[0].size, -1, dtype=self.inputs[0].dtype)
        self.faults = cupy.zeros(self.copies, dtype=cupy.uint32)

    def encode(self, i: int) -> None:
        """Encode input number ``i``, modulo their number."""
        values = self.inputs[i % len(self.inputs)]
        device.raise_for(
            self.library.pyf_cuda_encode(
                self.request, self.copies, values.data.ptr, self.chunk_bytes, self.frames.data.ptr, self.capacity,
                self.sizes.data.ptr, cupy.cuda.get_current_stream().ptr,
            )
        )  # fmt: skip

    def prepare_decode(self) -> int:
        """Read sizes and headers of what was encoded; return the bytes of all frames."""
        sizes = self.sizes.get()
        heads = self.frames.reshape(self.copies, self.capacity)[:, :312].get()
        self.heads = np.ascontiguousarray(heads)
        self.table = (device.Frame * self.copies)()
        for k in range(self.copies):
            self.table[k] = device.Frame(
                self.heads.ctypes.data + 312 * k, 312, self.frames.data.ptr + k * self.capacity, int(sizes[k]),
                self.out.data.ptr + k * self.chunk_bytes,
            )  # fmt: skip
        return int(sizes.sum())

    def decode(self, _: int) -> None:
        """Decode the frames."""
        device.raise_for(
            self.library.pyf_cuda_decode(
                self.table, self.copies, 0, self.chunk_values, self.chunk_bytes, self.faults.data.ptr,
                cupy.cuda.get_current_stream().ptr,
            )
        )  # fmt: skip


def largest_error(a: Any, b: Any) -> float:
    """Return max |a - b| in double precision, piece by piece."""
    worst, piece = 0.0, 1 << 26
    for first in range(0, a.size, piece):
        x, y = a[first : first + piece].astype(cupy.float64), b[first : first + piece].astype(cupy.float64)
        worst = max(worst, float(cupy.abs(x - y).max()))
    return worst


def copy_speed(inputs: list[Any]) -> float:
    """Return GB/s (one way) of a device-to-device copy."""
    out = cupy.empty_like(inputs[0])
    seconds = statistics.median(event_times(lambda i: cupy.copyto(out, inputs[i % len(inputs)])))
    return float(inputs[0].nbytes / seconds / 1e9)


def codec_of(kind: str, bound: float) -> pyfilter.Codec:
    """Return the codec of a row: "outlier 2-D", "Lossless 1-D"."""
    mode, dims = kind.split()
    if mode == "Lossless":
        return pyfilter.Lossless(block_dims=int(dims[0]))
    return pyfilter.Cuszp2(absolute=bound, mode=mode, block_dims=int(dims[0]))


def main(
    fields: Annotated[str, typer.Option(help="parts of names, comma-separated")] = "",
    kinds: Annotated[str, typer.Option(help="codecs, comma-separated")] = "outlier 1-D,outlier 2-D,outlier 3-D,Lossless 1-D",
    dtypes: Annotated[str, typer.Option()] = "f4,f8",
    bounds: Annotated[str, typer.Option()] = "1e-2,1e-3,1e-4",
    mib: Annotated[int, typer.Option(help="size of a field")] = 1024,
    update_docs: Annotated[bool, typer.Option("--update-docs")] = False,
    markdown: Annotated[Path | None, typer.Option()] = None,
) -> None:
    """Measure and print the tables."""
    console = Console(width=200)
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    lines = [*origin(shlex.join(["python", "-m", "benchmarks.gpu_codec", *sys.argv[1:]])), f"GPU: {name}"]
    console.print("\n".join(lines))
    rows: list[tuple[str, ...]] = []
    good = True
    for code in dtypes.split(","):
        for field, make in FIELDS.items():
            if not any(part in field for part in fields.split(",")):
                continue
            inputs = [make((mib << 20) // (512 * 512 * int(code[1])), code, seed) for seed in range(3)]
            speed = copy_speed(inputs)
            console.print(f"{field} {code}: copy {speed:.0f} GB/s")
            span = float(inputs[0].max()) - float(inputs[0].min())
            for kind in kinds.split(","):
                for relative in bounds.split(",") if "Lossless" not in kind else [""]:
                    bound = float(relative) * span if relative else 0.0
                    codec = codec_of(kind, bound)
                    shape = inputs[0].shape
                    request = frames.make_request(codec, inputs[0].dtype, shape)
                    batch = Batch(inputs, request, inputs[0].size, 1)
                    compress = inputs[0].nbytes / statistics.median(event_times(batch.encode)) / 1e9
                    batch.encode(0)
                    ratio = inputs[0].nbytes / batch.prepare_decode()
                    decompress = inputs[0].nbytes / statistics.median(event_times(batch.decode)) / 1e9
                    error = largest_error(inputs[0].reshape(-1), batch.out.reshape(-1))
                    good = good and error <= bound and not batch.faults.any()
                    rows.append(
                        (field, code, kind, relative, f"{ratio:.2f}", f"{error / bound if bound else error:.4f}",
                         f"{compress:.0f}", f"{decompress:.0f}", f"{compress / speed:.2f}", f"{decompress / speed:.2f}")
                    )  # fmt: skip
                    console.print("  ".join(rows[-1]))
                    del batch
            del inputs
            cupy.get_default_memory_pool().free_all_blocks()
    latency_rows(console)
    raise typer.Exit(0 if good else 1)


def latency_rows(console: Console) -> None:
    """One chunk of 4 MB, launch to result on the host's clock; and 1000 chunks of 1 MB in one call."""
    values = FIELDS["turbulence"](4, "f4", 0)
    span = float(values.max()) - float(values.min())
    for label, codec in (("absolute", pyfilter.Cuszp2(absolute=1e-3 * span)), ("relative", pyfilter.Cuszp2(relative=1e-3))):
        batch = Batch([values], frames.make_request(codec, values.dtype, values.shape), values.size, 1)
        stream = cupy.cuda.get_current_stream()
        times: dict[str, list[float]] = {"encode": [], "decode": []}
        for i in range(60):
            for name, work in (("encode", batch.encode), ("decode", batch.decode)):
                if name == "decode":
                    batch.prepare_decode()
                stream.synchronize()
                begin = time.perf_counter()
                work(i)
                stream.synchronize()
                times[name].append(time.perf_counter() - begin)
        for name, seconds in times.items():
            console.print(f"4 MB chunk, {label}, {name}: median {statistics.median(seconds[10:]) * 1e6:.1f} us")
    inputs = [FIELDS["turbulence"](1000, "f4", seed) for seed in range(3)]
    span = float(inputs[0].max()) - float(inputs[0].min())
    for copies in (1, 1000, 16000):
        count = inputs[0].size // copies
        request = frames.make_request(pyfilter.Cuszp2(absolute=1e-3 * span), inputs[0].dtype, (count,))
        batch = Batch(inputs, request, count, copies)
        compress = inputs[0].nbytes / statistics.median(event_times(batch.encode)) / 1e9
        ratio = inputs[0].nbytes / batch.prepare_decode()
        decompress = inputs[0].nbytes / statistics.median(event_times(batch.decode)) / 1e9
        console.print(f"{copies} chunks of {count * 4} bytes: ratio {ratio:.2f}, {compress:.0f} / {decompress:.0f} GB/s")


if __name__ == "__main__":
    typer.run(main)
