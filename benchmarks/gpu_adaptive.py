# SPDX-License-Identifier: BSD-3-Clause
"""Speed of Adaptive on a GPU, in batches of chunks and alone. python -m benchmarks.gpu_adaptive."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import cupy
import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.gpu_codec import event_seconds
from benchmarks.gpu_fields import FIELDS
from benchmarks.report import Rows
from pyfilter import frames as requests
from pyfilter._lib import abi, cuda, host

COLUMNS = (
    "field", "shape", "predictor", "rel", "ratio", "frames", "decode GB/s", "one frame, us", "same values",
    "encode GB/s", "one chunk, us", "same bytes",
)  # fmt: skip
#: chunks of a million values, cut from 64 planes of 512 x 512
SHAPES: dict[str, tuple[int, ...]] = {"volume": (64, 128, 128), "plane": (1024, 1024), "line": (1 << 20,)}
DISTINCT = 16


class Frames:
    """Frames on the device, in one table: the distinct ones again and again."""

    def __init__(self, encoded: list[bytes], dtype: Any, size: int, count: int) -> None:
        room = -(-max(len(frame) for frame in encoded) // 256) * 256
        self.packed = cupy.zeros(room * count, cupy.uint8)
        self.values = cupy.full(size * count, -1, dtype)
        self.faults = cupy.zeros(count, cupy.uint32)
        self.heads = [np.frombuffer(frame, np.uint8) for frame in encoded]
        self.size, self.value_bytes, self.count = size, size * np.dtype(dtype).itemsize, count
        self.table = np.zeros(count, dtype=abi.CUDA_FRAME)
        for i in range(count):
            head = self.heads[i % len(encoded)]
            self.packed[i * room : i * room + head.size] = cupy.asarray(head)
            self.table[i] = (
                head.ctypes.data, min(head.size, cuda.MAX_HEADER_BYTES), self.packed.data.ptr + i * room, head.size,
                self.values.data.ptr + i * self.value_bytes,
            )  # fmt: skip
        self.stream = cupy.cuda.get_current_stream().ptr

    def decode(self, count: int) -> None:
        """Decode the first frames."""
        cuda.decode(self.table[:count], 0, self.size, self.value_bytes, self.faults.data.ptr, self.stream)

    def decode_all(self, _: int) -> None:
        """Decode all frames in one call."""
        self.decode(self.count)

    def decode_first(self, _: int) -> None:
        """Decode one frame."""
        self.decode(1)

    def check(self) -> bool:
        """Return whether all values equal the CPU's bit for bit."""
        wanted = [pyfilter.decode(head.tobytes()).reshape(-1) for head in self.heads]
        same = not bool(self.faults.any())
        for i in range(self.count):
            got = self.values[i * self.size : (i + 1) * self.size].get()
            same = same and got.tobytes() == wanted[i % len(wanted)].tobytes()
        return same


def chunks(name: str, shape: tuple[int, ...], dtype: str) -> list[Any]:
    """Return distinct chunks of a field."""
    field = FIELDS[name](64, dtype, 0).get()
    if len(shape) == 3:
        blocks = [field[:, y : y + 128, x : x + 128] for y in range(0, 512, 128) for x in range(0, 512, 128)]
    else:
        blocks = [field[4 * i : 4 * i + 4] for i in range(DISTINCT)]
        if len(shape) == 2:
            blocks = [block.reshape(2, 2, 512, 512).swapaxes(1, 2) for block in blocks]
    return [np.ascontiguousarray(block).reshape(shape) for block in blocks]


def measure(inputs: list[Any], codec: pyfilter.Codec, dtype: str, count: int) -> tuple[list[str], bool]:
    """Return cells for ratio, frames, GB/s, microseconds of one frame and "yes", and whether values are the CPU's."""
    with ThreadPoolExecutor() as pool:
        encoded = list(pool.map(lambda x: pyfilter.encode(x, codec), inputs))
    held = Frames(encoded, dtype, inputs[0].size, count)
    seconds = event_seconds(held.decode_all)
    same = held.check()
    single = event_seconds(held.decode_first)
    ratio = sum(x.nbytes for x in inputs) / sum(map(len, encoded))
    speed = held.value_bytes * count / seconds / 1e9
    del held
    cupy.get_default_memory_pool().free_all_blocks()
    return [f"{ratio:.2f}", str(count), f"{speed:.1f}", f"{single * 1e6:.0f}", "yes" if same else "NO"], same


def measure_encoding(inputs: list[Any], codec: pyfilter.Codec, count: int) -> tuple[list[str], bool]:
    """Return cells for GB/s, microseconds of one chunk and "yes", and whether the frames are the CPU's."""
    first = inputs[0]
    request = requests.make_request(codec, first.dtype, first.shape)
    capacity = -(-host.max_frame_bytes(request) // 256) * 256
    values = cupy.concatenate([cupy.asarray(inputs[i % len(inputs)]).reshape(-1) for i in range(count)])
    encoded, sizes = cupy.zeros(capacity * count, cupy.uint8), cupy.zeros(count, cupy.uint64)
    stream = cupy.cuda.get_current_stream().ptr

    def encode(chunks: int) -> None:
        cuda.encode(request, chunks, values.data.ptr, first.nbytes, encoded.data.ptr, capacity, sizes.data.ptr, stream)

    seconds = event_seconds(lambda _: encode(count))
    same = True
    for i, size in enumerate(sizes.get().tolist()):
        if i < len(inputs):
            same = same and encoded[i * capacity :][:size].get().tobytes() == pyfilter.encode(inputs[i], codec)
    single = event_seconds(lambda _: encode(1))
    return [f"{first.nbytes * count / seconds / 1e9:.1f}", f"{single * 1e6:.0f}", "yes" if same else "NO"], same


def main(
    fields: Annotated[str, typer.Option(help="Names, comma-separated.")] = "turbulence,noise",
    shapes: Annotated[str, typer.Option(help="Of volume, plane, line.")] = "volume,plane,line",
    predictors: Annotated[str, typer.Option(help="Of auto, regression, interpolation.")] = "auto,interpolation",
    bounds: Annotated[str, typer.Option(help="Fractions of the range.")] = "1e-2,1e-3,1e-4",
    efforts: Annotated[str, typer.Option(help="Of best, fast.")] = "best",
    dtype: Annotated[str, typer.Option(help="Element type.")] = "f4",
    count: Annotated[int, typer.Option(help="Frames in a call.")] = 256,
) -> None:
    """Batches of chunks, and single ones; end with status 1 if a value or a byte differs from the CPU's."""
    console = Console(width=160, highlight=False)
    table, good = Rows("", COLUMNS), True
    for name in fields.split(","):
        for kind in shapes.split(","):
            inputs = chunks(name, SHAPES[kind], dtype)
            span = max(float(x.max()) for x in inputs) - min(float(x.min()) for x in inputs)
            for predictor in predictors.split(","):
                for relative in bounds.split(","):
                    for effort in efforts.split(","):
                        codec: Any = pyfilter.Adaptive(
                            absolute=float(relative) * span,
                            predictor=predictor,
                            effort=effort,
                        )
                        cells, same = measure(inputs, codec, dtype, count)
                        encoding, same_bytes = measure_encoding(inputs, codec, count)
                        cupy.get_default_memory_pool().free_all_blocks()
                        good = good and same and same_bytes
                        table.add(name, kind, f"{predictor} {effort}", relative, *cells, *encoding)
    table.show(console)
    if not good:
        console.print("values or bytes are not those of the CPU")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
