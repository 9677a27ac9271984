# SPDX-License-Identifier: BSD-3-Clause
"""The C ABI's device calls with NumPy arrays in and out, for tests that look at frames: one chunk or a batch."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from pyfilter._lib import abi, cuda, host

Array = NDArray[Any]


def stride_of(size: int, unit: int = 16) -> int:
    return max(unit, -(-size // unit) * unit)


def poison(size: int) -> Any:
    """Device memory with bytes that no result may keep."""
    return cupy.full(max(size, 1), 0xA5, dtype=cupy.uint8)


def encode(request: abi.Request, chunks: list[Array]) -> list[bytes]:
    """Frames of chunks of one shape, encoded in one call."""
    value_stride = stride_of(chunks[0].nbytes)
    capacity = stride_of(host.max_frame_bytes(request))
    values, frames = poison(value_stride * len(chunks)), poison(capacity * len(chunks))
    for i, chunk in enumerate(chunks):
        flat = np.frombuffer(np.ascontiguousarray(chunk).tobytes(), np.uint8)
        values[i * value_stride : i * value_stride + flat.size] = cupy.asarray(flat)
    sizes = cupy.full(len(chunks), 0xFFFFFFFF, dtype=cupy.uint64)
    cuda.encode(
        request, len(chunks), values.data.ptr, value_stride, frames.data.ptr, capacity, sizes.data.ptr,
        cupy.cuda.get_current_stream().ptr,
    )  # fmt: skip
    cupy.cuda.get_current_stream().synchronize()
    done = sizes.get()
    return [frames[i * capacity : i * capacity + int(size)].get().tobytes() for i, size in enumerate(done)]


def particle_order(request: abi.Request, positions: Array) -> Array:
    """The rows that come to the places of sorted positions."""
    values = cupy.asarray(np.ascontiguousarray(positions))
    found = cupy.full(len(positions), 0xFFFFFFFF, dtype=cupy.uint32)
    stream = cupy.cuda.get_current_stream()
    cuda.particle_order(request, values.data.ptr, values.nbytes, found.data.ptr, stream.ptr)
    order: Array = found.get()
    return order


def decode(
    frames: list[bytes], dtype: np.dtype[Any], count: int, start: int = 0, stop: int | None = None
) -> list[Array]:
    """Values [start, stop) of frames of one shape, decoded in one call; raises what the first fault stands for."""
    stop = count if stop is None else stop
    wanted = (stop - start) * dtype.itemsize
    offsets = np.cumsum([0] + [stride_of(len(frame)) for frame in frames])
    packed = poison(int(offsets[-1]))
    value_stride = stride_of(wanted)
    values = poison(value_stride * len(frames))
    faults = cupy.full(len(frames), 77, dtype=cupy.uint32)
    table = np.zeros(len(frames), dtype=abi.CUDA_FRAME)
    arrays = [np.frombuffer(frame, np.uint8) for frame in frames]
    for i, frame in enumerate(arrays):
        packed[int(offsets[i]) : int(offsets[i]) + frame.size] = cupy.asarray(frame)
        table[i] = (
            frame.ctypes.data, min(frame.size, cuda.MAX_HEADER_BYTES), packed.data.ptr + int(offsets[i]),
            frame.size, values.data.ptr + i * value_stride,
        )  # fmt: skip
    stream = cupy.cuda.get_current_stream()
    cuda.decode(table, start, stop, wanted, faults.data.ptr, stream.ptr)
    stream.synchronize()
    for fault in faults.get():
        cuda.check_fault(int(fault))
    return [values[i * value_stride : i * value_stride + wanted].get().view(dtype) for i in range(len(frames))]


def decode_part(frame: NDArray[np.uint8], segments: int, level: int, like: Array) -> Array:
    """Values of the grid of `level` of a progressive frame, from its first segments."""
    values = poison(like.nbytes)
    stream = cupy.cuda.get_current_stream()
    cuda.progressive_decode(frame, segments, level, values.data.ptr, like.nbytes, stream.ptr)
    found: Array = values[: like.nbytes].get().view(like.dtype)
    return found
