# SPDX-License-Identifier: BSD-3-Clause
"""Speed of the codecs on a GPU, against the device's own copy and nvCOMP. python -m benchmarks.gpu_codec."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import cupy
import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks import bitcomp
from benchmarks.gpu_fields import FIELDS
from benchmarks.gpu_origin import gpu_origin
from benchmarks.report import Rows, keep
from pyfilter import frames
from pyfilter._lib import abi, cuda, host

if TYPE_CHECKING:
    from collections.abc import Callable

MARKER = "gpu_codec"
COLUMNS = ("field", "dtype", "codec", "rel", "ratio", "err/bound", "compress", "decompress", "C/copy", "D/copy")
LEGEND = (
    "GB/s (1e9 bytes) of original bytes on the device: medians of CUDA events around the call, with inputs in rotation "
    "that together are larger than the cache. 'copy' is a device-to-device copy of the same bytes in the same run, "
    "one way. Bitcomp (nvCOMP) takes the largest power of two below twice the bound as its quantum. Bounds are "
    "fractions of the range."
)
WARM_UP, ROUNDS = 3, 15


def event_seconds(work: Callable[[int], None]) -> float:
    """Return the median of the seconds that a round's work takes on the current stream."""
    for i in range(WARM_UP):
        work(i)
    events = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(ROUNDS)]
    for i, (begin, end) in enumerate(events):
        begin.record()
        work(i)
        end.record()
    events[-1][1].synchronize()
    return statistics.median(float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3 for begin, end in events)


class Batch:
    """Device memory for ``copies`` chunks, encoded and decoded by one call each."""

    def __init__(self, inputs: list[Any], request: abi.Request, copies: int = 1) -> None:
        self.inputs, self.request, self.copies = inputs, request, copies
        self.chunk_values = inputs[0].size // copies
        self.chunk_bytes = self.chunk_values * inputs[0].itemsize
        self.capacity = -(-host.max_frame_bytes(request) // 256) * 256
        self.frames = cupy.full(self.capacity * copies, 0xA5, dtype=cupy.uint8)
        self.sizes = cupy.zeros(copies, dtype=cupy.uint64)
        self.out = cupy.full(inputs[0].size, -1, dtype=inputs[0].dtype)
        self.faults = cupy.zeros(copies, dtype=cupy.uint32)
        self.stream = cupy.cuda.get_current_stream().ptr

    def encode(self, i: int) -> None:
        """Encode input number ``i``, modulo their number."""
        values = self.inputs[i % len(self.inputs)].data.ptr
        cuda.encode(
            self.request, self.copies, values, self.chunk_bytes, self.frames.data.ptr, self.capacity,
            self.sizes.data.ptr, self.stream,
        )  # fmt: skip

    def prepare_decode(self) -> int:
        """Read sizes and headers of the frames; return the bytes of all frames."""
        sizes = self.sizes.get()
        most = cuda.MAX_HEADER_BYTES
        self.heads = np.ascontiguousarray(self.frames.reshape(self.copies, self.capacity)[:, :most].get())
        numbers = np.arange(self.copies, dtype=np.uint64)
        self.table = np.zeros(self.copies, dtype=abi.CUDA_FRAME)
        self.table["header"] = self.heads.ctypes.data + self.heads.strides[0] * numbers
        self.table["header_bytes"] = self.heads.shape[1]
        self.table["frame"] = self.frames.data.ptr + self.capacity * numbers
        self.table["frame_bytes"] = sizes
        self.table["values"] = self.out.data.ptr + self.chunk_bytes * numbers
        return int(sizes.sum())

    def decode(self, _: int) -> None:
        """Decode the frames."""
        cuda.decode(self.table, 0, self.chunk_values, self.chunk_bytes, self.faults.data.ptr, self.stream)


def largest_error(a: Any, b: Any) -> float:
    """Return max |a - b| in double precision, piece by piece."""
    worst, piece = 0.0, 1 << 26
    for first in range(0, a.size, piece):
        x, y = a[first : first + piece].astype(cupy.float64), b[first : first + piece].astype(cupy.float64)
        worst = max(worst, float(cupy.abs(x - y).max()))
    return worst


def codec_of(kind: str, bound: float) -> pyfilter.Codec:
    """Return the codec of a row: "outlier 2-D", "Lossless 1-D", "lorenzo3d delta", "chain+outliers delta".

    Those of Lorenzo: "chain rans", "chain huffman", "chain unsynced" (Huffman without a gap array). Of Progressive:
    "bounds progressive", "measured progressive"; near-lossless where the bound is 0.
    """
    mode, dims = kind.split()
    if dims in ("rans", "huffman", "unsynced"):
        coder, gaps = ("rans", True) if dims == "rans" else ("huffman", dims == "huffman")
        return pyfilter.Lorenzo(absolute=bound, predictor=mode, coder=coder, gap_array=gaps)
    if dims == "progressive":
        return pyfilter.Progressive(absolute=bound or None, errors=mode)
    if dims == "delta":
        predictor, _, outliers = mode.partition("+")
        outliers = "on" if outliers else "auto"
        return pyfilter.HierarchicalDelta(absolute=bound, predictor=predictor, outliers=outliers)
    if mode == "Lossless":
        return pyfilter.Lossless(block_dims=int(dims[0]))
    return pyfilter.Cuszp2(absolute=bound, mode=mode, block_dims=int(dims[0]))


class Fields:
    """Measures all rows of one field."""

    def __init__(self, name: str, code: str, inputs: list[Any]) -> None:
        self.name, self.code, self.inputs = name, code, inputs
        out = cupy.empty_like(inputs[0])
        self.bytes = inputs[0].nbytes
        self.copy = self.bytes / event_seconds(lambda i: cupy.copyto(out, inputs[i % len(inputs)])) / 1e9
        self.span = float(inputs[0].max()) - float(inputs[0].min())
        self.good = True

    def row(self, kind: str, relative: str, ratio: float, error: float, seconds: tuple[float, float]) -> list[str]:
        """Return the cells of a row."""
        bound = float(relative) * self.span if relative else 0.0
        compress, decompress = (self.bytes / each / 1e9 for each in seconds)
        return [
            self.name, self.code, kind, relative, f"{ratio:.2f}", f"{error / bound:.4f}" if bound else f"{error:g}",
            f"{compress:.0f}", f"{decompress:.0f}", f"{compress / self.copy:.2f}", f"{decompress / self.copy:.2f}",
        ]  # fmt: skip

    def ours(self, kind: str, relative: str) -> list[str]:
        """Measure one of our codecs."""
        bound = float(relative) * self.span if relative else 0.0
        near = kind.endswith("progressive") and not bound
        first = self.inputs[0]
        batch = Batch(self.inputs, frames.make_request(codec_of(kind, bound), first.dtype, first.shape))
        compress = event_seconds(batch.encode)
        batch.encode(0)
        ratio = self.bytes / batch.prepare_decode()
        decompress = event_seconds(batch.decode)
        error = largest_error(first.reshape(-1), batch.out)
        limit = pyfilter.frame_info(batch.heads[0]).bound if near else bound
        self.good = self.good and error <= limit and not bool(batch.faults.any())
        return self.row(kind, relative, ratio, error, (compress, decompress))

    def peer(self, library: Any, algorithm: str, relative: str) -> list[str]:
        """Measure nvCOMP."""
        plan = bitcomp.Bitcomp(library, self.code, self.bytes, algorithm, float(relative) * self.span)
        compress = event_seconds(lambda i: plan.encode(self.inputs[i % len(self.inputs)]))
        plan.encode(self.inputs[0])
        ratio = self.bytes / plan.size()
        out = cupy.full(self.inputs[0].size, -1, dtype=self.inputs[0].dtype)
        decompress = event_seconds(lambda _: plan.decode(out))
        error = largest_error(self.inputs[0].reshape(-1), out)
        plan.close()
        return self.row(algorithm, relative, ratio, error, (compress, decompress))


def calls(planes: int) -> Rows:
    """Measure single chunks of 4 MB on the host's clock, and batches of many chunks."""
    rows = Rows("Latency and batches (turbulence, f4, rel 1e-3)", ("what", "ratio", "compress", "decompress"))
    values = FIELDS["turbulence"](4, "f4", 0)
    span = float(values.max()) - float(values.min())
    codecs = {"absolute": pyfilter.Cuszp2(absolute=1e-3 * span), "relative": pyfilter.Cuszp2(relative=1e-3)}
    for label, codec in codecs.items():
        batch = Batch([values], frames.make_request(codec, values.dtype, values.shape))
        stream = cupy.cuda.get_current_stream()
        times: tuple[list[float], list[float]] = ([], [])
        for i in range(60):
            for taken, work in zip(times, (batch.encode, batch.decode), strict=True):
                if work == batch.decode:
                    size = batch.prepare_decode()
                stream.synchronize()
                begin = time.perf_counter()
                work(i)
                stream.synchronize()
                taken.append(time.perf_counter() - begin)
        micros = [f"{statistics.median(taken[10:]) * 1e6:.1f} us" for taken in times]
        rows.add(f"one chunk of 4 MB, {label} bound, call to result", f"{values.nbytes / size:.2f}", *micros)
    inputs = [FIELDS["turbulence"](planes, "f4", seed) for seed in range(3)]
    span = float(inputs[0].max()) - float(inputs[0].min())
    for copies in (1, planes, 16 * planes):
        codec = pyfilter.Cuszp2(absolute=1e-3 * span)
        batch = Batch(inputs, frames.make_request(codec, inputs[0].dtype, (inputs[0].size // copies,)), copies)
        compress = event_seconds(batch.encode)
        ratio = inputs[0].nbytes / batch.prepare_decode()
        speeds = [f"{inputs[0].nbytes / each / 1e9:.0f} GB/s" for each in (compress, event_seconds(batch.decode))]
        rows.add(f"{copies} chunks of {batch.chunk_bytes} bytes in one call", f"{ratio:.2f}", *speeds)
    return rows


def main(
    only: Annotated[str, typer.Option("--fields", help="Parts of names, comma-separated.")] = "",
    kinds: Annotated[str, typer.Option(help="Codecs.")] = "outlier 1-D,outlier 2-D,outlier 3-D,plain 1-D,Lossless 1-D",
    dtypes: Annotated[str, typer.Option(help="Element types.")] = "f4,f8",
    bounds: Annotated[str, typer.Option(help="Fractions of the range.")] = "1e-2,1e-3,1e-4",
    mib: Annotated[int, typer.Option(help="Size of a field in MiB.")] = 1024,
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Measure every field, codec and bound, then single chunks and batches."""
    console = Console(width=200, highlight=False)
    peer = bitcomp.library()
    head = gpu_origin("gpu_codec")
    head.append(f"data: fields of {mib} MiB; nvCOMP {'beside ours' if peer is not None else 'not installed'}")
    console.print("\n".join(head), LEGEND, sep="\n")
    table, good = Rows("", COLUMNS), True
    for code in dtypes.split(","):
        for name, make in FIELDS.items():
            if not any(part in name for part in only.split(",")):
                continue
            field = Fields(
                name, code, [make((mib << 20) // (512 * 512 * int(code[1])), code, seed) for seed in range(3)]
            )
            table.add(name, code, "copy", "", "1", "0", f"{field.copy:.0f}", "", "1", "")
            for relative in bounds.split(","):
                for kind in kinds.split(","):
                    if not kind.startswith("Lossless"):
                        table.add(*field.ours(kind, relative))
                for algorithm in bitcomp.ALGORITHMS if peer is not None else ():
                    table.add(*field.peer(peer, algorithm, relative))
            for kind in kinds.split(","):
                if kind.startswith("Lossless") or kind.endswith("progressive"):
                    table.add(*field.ours(kind, ""))
            good = good and field.good
            del field
            cupy.get_default_memory_pool().free_all_blocks()
    table.show(console)
    more = calls(max(1, mib))
    more.show(console)
    for path in keep(head, LEGEND, [], [table, more], marker=MARKER, markdown=markdown, save=save):
        console.print(f"wrote {path}")
    if not good:
        console.print("a bound was not kept")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
