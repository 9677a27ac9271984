# SPDX-License-Identifier: BSD-3-Clause
"""A model of a device for machines without one: what pyfilter.gpu uses of CuPy, on host memory, and the library's CPU.

It shows that shapes, offsets and pipelines are right, not that streams are: everything is done at once. Like
CuPy's, its arrays are no NumPy arrays and refuse to become some.
"""

from __future__ import annotations

import ctypes
import sys
import types
from typing import Any

import numpy as np

from pyfilter import _native, _native_cuda, dtypes, errors


class Device:
    """The one device there is; a context like CuPy's."""

    def __init__(self, number: int | None = None) -> None:
        self.id = 0 if number is None else int(number)

    def __enter__(self) -> Device:
        assert self.id == 0
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Event:
    def synchronize(self) -> None:
        pass


class Stream:
    ptr = 0

    def __init__(self, non_blocking: bool = False) -> None:
        self.ptr = 1 if non_blocking else 0

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def record(self) -> Event:
        return Event()

    def wait_event(self, event: Event) -> None:
        assert isinstance(event, Event)

    def synchronize(self) -> None:
        pass


def bare(value: Any) -> Any:
    return value.values if isinstance(value, ndarray) else value


class ndarray:  # named as in CuPy
    """An array that is "on the device"."""

    __array_ufunc__ = None
    __module__ = "cupy"

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, *_: object, **__: object) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __getattr__(self, name: str) -> Any:
        if name not in ("shape", "dtype", "size", "itemsize", "nbytes", "ndim", "strides", "flags"):
            raise AttributeError(name)
        return getattr(self.values, name)

    @property
    def data(self) -> Any:
        return types.SimpleNamespace(ptr=self.values.ctypes.data if self.values.size else 0)

    @property
    def device(self) -> Device:
        return Device(0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self.dtype.str,
            "data": (self.data.ptr, False),
            "version": 3,
        }

    def get(self) -> Any:
        return np.array(self.values, order="C")

    def copy(self) -> ndarray:
        return ndarray(np.array(self.values, order="C"))

    def reshape(self, *shape: Any) -> ndarray:
        return ndarray(self.values.reshape(*shape))

    def transpose(self, *axes: int) -> ndarray:
        return ndarray(self.values.transpose(*axes))

    def view(self, dtype: Any) -> ndarray:
        return ndarray(self.values.view(dtype))

    def astype(self, dtype: Any) -> ndarray:
        return ndarray(self.values.astype(dtype))

    def min(self) -> ndarray:
        return ndarray(np.asarray(self.values.min()))

    def max(self) -> ndarray:
        return ndarray(np.asarray(self.values.max()))

    def all(self) -> ndarray:
        return ndarray(np.asarray(self.values.all()))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: Any) -> ndarray:
        found = self.values[bare(key)]
        return ndarray(found if isinstance(found, np.ndarray) else np.asarray(found))

    def __setitem__(self, key: Any, value: Any) -> None:
        assert isinstance(value, (ndarray, np.generic, int, float))  # CuPy takes no NumPy arrays here
        self.values[key] = bare(value)

    def __float__(self) -> float:
        return float(self.values)

    def __bool__(self) -> bool:
        return bool(self.values)

    def __ne__(self, other: object) -> Any:
        return ndarray(self.values != bare(other))

    def __eq__(self, other: object) -> Any:
        return ndarray(self.values == bare(other))

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Any) -> ndarray:
        return ndarray(self.values & bare(other))

    def __iand__(self, other: Any) -> ndarray:
        self.values &= bare(other)
        return self

    def __add__(self, other: Any) -> ndarray:
        return ndarray(self.values + bare(other))

    def __floordiv__(self, other: Any) -> ndarray:
        return ndarray(self.values // bare(other))

    def __mul__(self, other: Any) -> ndarray:
        return ndarray(self.values * bare(other))

    def __iadd__(self, other: Any) -> ndarray:
        self.values += bare(other)
        return self


def asarray(thing: Any) -> ndarray:
    if isinstance(thing, ndarray):
        return thing
    if isinstance(thing, (np.ndarray, np.generic, list)):
        return ndarray(np.array(thing, order="C"))
    found = thing.__cuda_array_interface__
    count = int(np.prod(found["shape"])) * np.dtype(found["typestr"]).itemsize
    assert found.get("strides") is None
    memory: Any = (ctypes.c_ubyte * count).from_address(found["data"][0])
    return ndarray(np.frombuffer(memory, dtype=found["typestr"]).reshape(found["shape"]))


def from_dlpack(thing: Any) -> ndarray:
    return asarray(thing.owner)


def copyto(target: ndarray, source: ndarray, casting: Any = "same_kind") -> None:
    assert target.shape == source.shape
    np.copyto(target.values, source.values, casting=casting)


def alloc_pinned_memory(size: int) -> bytearray:
    return bytearray(size)


def memcpy_async(target: int, source: int, size: int, kind: int, stream: int) -> None:
    assert kind in (1, 2)
    assert stream == 1
    ctypes.memmove(target, source, size)


class RawKernel:
    """The one kernel of pyfilter.gpu."""

    def __init__(self, text: str, name: str) -> None:
        assert name == "pyfilter_pack"
        assert name in text

    def __call__(self, grid: tuple[int, int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
        slots, slot_bytes, sizes, ends, packed = map(bare, arguments)
        assert (len(sizes), slot_bytes.dtype, ends.dtype) == (grid[1], np.uint64, np.uint64)
        assert grid[0] >= 1
        for frame, (size, end) in enumerate(zip(sizes.tolist(), ends.tolist(), strict=True)):
            whole = -(-size // 16) * 16
            first = frame * int(slot_bytes)
            packed[end - whole : end] = slots[first : first + whole]


def encode(
    request: Any, count: int, values: int, value_stride: int, frames: int, frame_stride: int, sizes: int, stream: int
) -> None:
    del stream
    value_bytes = int(np.prod(request.shape, dtype=np.int64)) * dtypes.from_code(request.dtype).itemsize
    most = _native.max_frame_bytes(request)
    assert count == 1 or frame_stride >= most
    assert frames % 8 == frame_stride % 8 == 0
    for number in range(count):
        size = ctypes.c_size_t(0)
        _native.check(
            _native.library().pyf_encode(
                ctypes.byref(request),
                (values + number * value_stride) or None,
                value_bytes,
                frames + number * frame_stride,
                most,
                ctypes.byref(size),
            )
        )
        ctypes.c_uint64.from_address(sizes + 8 * number).value = size.value


def decode(frames: Any, start: int, stop: int, value_bytes: int, faults: int, stream: int) -> None:
    del stream
    for number, frame in enumerate(frames):
        memory: Any = (ctypes.c_ubyte * int(frame["header_bytes"])).from_address(int(frame["header"]))
        header = np.frombuffer(memory, dtype=np.uint8)
        info = _native.frame_info(header)
        if info.frame_bytes != frame["frame_bytes"]:
            raise errors.TruncatedFrame("truncated")
        assert int(frame["frame"]) % 4 == 0
        code = _native.library().pyf_decode_range(
            int(frame["frame"]), int(frame["frame_bytes"]), start, stop, int(frame["values"]) or None, value_bytes
        )
        ctypes.c_uint32.from_address(faults + 4 * number).value = int(code != 0)


def progressive_decode(frame: Any, segments: int, level: int, values: int, nbytes: int, stream: int) -> None:
    del stream
    _native.check(
        _native.library().pyf_progressive_decode(frame.ctypes.data, frame.nbytes, segments, level, values, nbytes)
    )


def particle_order(request: Any, values: int, value_bytes: int, particles: int, stream: int) -> None:
    del stream
    _native.check(_native.library().pyf_particle_order(ctypes.byref(request), values or None, value_bytes, particles))


def check_fault(fault: int) -> None:
    if fault:
        raise errors.CorruptFrame("fault of the model")


def install() -> None:
    """Put the model in the place of CuPy and of the library's CUDA functions."""
    cupy: Any = types.ModuleType("cupy")
    cupy.__file__ = cupy.__version__ = "model"
    cupy.ndarray, cupy.asarray, cupy.from_dlpack, cupy.copyto = ndarray, asarray, from_dlpack, copyto
    cupy.array = asarray
    cupy.asnumpy = lambda values: values.get()
    cupy.RawKernel = RawKernel
    cupy.empty = lambda shape, dtype: ndarray(np.full(shape, 7, dtype=dtype))
    cupy.zeros = lambda shape, dtype: ndarray(np.zeros(shape, dtype=dtype))
    cupy.ascontiguousarray = lambda values: ndarray(np.ascontiguousarray(values.values))
    cupy.isfinite = lambda values: ndarray(np.isfinite(values.values))
    cupy.where = lambda mask, a, b: ndarray(np.where(bare(mask), bare(a), bare(b)))
    cupy.stack = lambda values, axis=0: ndarray(np.stack([value.values for value in values], axis=axis))
    cupy.arange = lambda stop, dtype: ndarray(np.arange(stop, dtype=dtype))
    cupy.uint32, cupy.int64 = np.uint32, np.int64
    cupy.cumsum = lambda values, dtype: ndarray(np.cumsum(values.values, dtype=dtype))
    cupy.lib = types.SimpleNamespace(
        stride_tricks=types.SimpleNamespace(
            as_strided=lambda values, shape, strides: ndarray(
                np.lib.stride_tricks.as_strided(values.values, shape, strides)
            )
        )
    )
    cupy.cuda = types.SimpleNamespace(
        Device=Device,
        Stream=Stream,
        get_current_stream=Stream,
        alloc_pinned_memory=alloc_pinned_memory,
        runtime=types.SimpleNamespace(memcpyAsync=memcpy_async, memcpyHostToDevice=1, memcpyDeviceToHost=2),
    )
    sys.modules["cupy"] = cupy
    patched: Any = _native_cuda
    patched.encode, patched.decode, patched.progressive_decode = encode, decode, progressive_decode
    patched.particle_order = particle_order
    patched.check_fault = check_fault
    patched.require = lambda: None
    patched.device_count = lambda: 1
