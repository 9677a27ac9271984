# SPDX-License-Identifier: BSD-3-Clause
"""The C ABI's device calls with NumPy arrays in and out, for tests that look at frames: one chunk or a batch."""

from __future__ import annotations

import ctypes
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from pyfilter import _native, errors

Array = NDArray[Any]


class Frame(ctypes.Structure):
    """``pyf_cuda_frame``."""

    _fields_ = (
        ("header", ctypes.c_void_p),
        ("header_bytes", ctypes.c_size_t),
        ("frame", ctypes.c_void_p),
        ("frame_bytes", ctypes.c_size_t),
        ("values", ctypes.c_void_p),
    )


def library() -> ctypes.CDLL:
    """The library with the prototypes of its device calls."""
    loaded = _native.library()
    size, pointer = ctypes.c_size_t, ctypes.c_void_p
    loaded.pyf_cuda_encode.argtypes = (
        *(ctypes.POINTER(_native.Request), size, pointer, size, pointer, size, pointer, pointer),
    )
    loaded.pyf_cuda_decode.argtypes = (
        *(ctypes.POINTER(Frame), size, ctypes.c_uint64, ctypes.c_uint64, size, pointer, pointer),
    )
    loaded.pyf_cuda_fault.argtypes = (ctypes.c_uint32,)
    return loaded


def raise_for(code: int) -> None:
    if code != 0:
        raise errors.from_code(code, _native.library().pyf_last_error().decode())


def stride_of(size: int, unit: int = 16) -> int:
    return max(unit, -(-size // unit) * unit)


def poison(size: int) -> Any:
    """Device memory with bytes that no result may keep."""
    return cupy.full(max(size, 1), 0xA5, dtype=cupy.uint8)


def encode(request: _native.Request, chunks: list[Array]) -> list[bytes]:
    """Frames of chunks of one shape, encoded in one call."""
    value_stride = stride_of(chunks[0].nbytes)
    capacity = stride_of(_native.max_frame_bytes(request))
    values, frames = poison(value_stride * len(chunks)), poison(capacity * len(chunks))
    for i, chunk in enumerate(chunks):
        flat = np.frombuffer(np.ascontiguousarray(chunk).tobytes(), np.uint8)
        values[i * value_stride : i * value_stride + flat.size] = cupy.asarray(flat)
    sizes = cupy.full(len(chunks), 0xFFFFFFFF, dtype=cupy.uint64)
    raise_for(
        library().pyf_cuda_encode(
            ctypes.byref(request), len(chunks), values.data.ptr, value_stride, frames.data.ptr, capacity,
            sizes.data.ptr, cupy.cuda.get_current_stream().ptr,
        )
    )  # fmt: skip
    cupy.cuda.get_current_stream().synchronize()
    done = sizes.get()
    return [frames[i * capacity : i * capacity + int(size)].get().tobytes() for i, size in enumerate(done)]


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
    table = (Frame * len(frames))()
    host = [np.frombuffer(frame, np.uint8) for frame in frames]
    for i, frame in enumerate(host):
        packed[int(offsets[i]) : int(offsets[i]) + frame.size] = cupy.asarray(frame)
        table[i] = Frame(
            frame.ctypes.data, min(frame.size, 312), packed.data.ptr + int(offsets[i]), frame.size,
            values.data.ptr + i * value_stride,
        )  # fmt: skip
    stream = cupy.cuda.get_current_stream()
    raise_for(library().pyf_cuda_decode(table, len(frames), start, stop, wanted, faults.data.ptr, stream.ptr))
    stream.synchronize()
    for fault in faults.get():
        raise_for(library().pyf_cuda_fault(int(fault)))
    return [values[i * value_stride : i * value_stride + wanted].get().view(dtype) for i in range(len(frames))]
