# SPDX-License-Identifier: BSD-3-Clause
"""A model of two devices for machines without one: what pyfilter.gpu uses of CuPy, in host memory.

Devices, streams and memory are in model_machine.py. The model shows that shapes, offsets and pipelines are right, and
that the host waits for streams. It does not show that kernels are right. Like CuPy's, its arrays are no NumPy arrays
and refuse to become some.
"""

from __future__ import annotations

import ctypes
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from pyfilter import dtypes, errors
from pyfilter._lib import abi, cuda, device_chunks, host, library
from pyfilter.registry import registry

from . import model_machine as machine

# what waits for the device inside of a call, as the library says
_WAITING = ("particles", "progressive")


def kernel(compute: Callable[[], Any]) -> ndarray:
    """A new array of what is computed, when the current stream comes to it."""
    like = np.asarray(compute())  # for its shape and type: it may be of values that are not there yet
    found = machine.allocate(like.shape, like.dtype)
    machine.current_stream().put(lambda: np.copyto(found, compute()))
    return ndarray(found, machine.current_device())


def bare(value: Any) -> Any:
    """The values of an array, which must be one of the current device."""
    if not isinstance(value, ndarray):
        return value
    if value.number != machine.current_device():
        raise ValueError(
            f"Array device must be same as the current device: array device = {value.number} "
            f"while current = {machine.current_device()}"
        )
    return value.values


class ndarray:  # named as in CuPy
    """An array that is "on a device"."""

    __array_ufunc__ = None
    __module__ = "cupy"

    def __init__(self, values: Any, number: int) -> None:
        self.values = values
        self.number = number

    def __array__(self, *_: object, **__: object) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __array_function__(self, *_: object) -> Any:  # xarray takes arrays that have it
        return NotImplemented

    def __getattr__(self, name: str) -> Any:
        if name not in ("shape", "dtype", "size", "itemsize", "nbytes", "ndim", "strides", "flags"):
            raise AttributeError(name)
        return getattr(self.values, name)

    @property
    def data(self) -> Any:
        return types.SimpleNamespace(ptr=self.values.ctypes.data if self.values.size else 0)

    @property
    def device(self) -> Any:
        return machine.Device(self.number)

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
        with self.device:
            machine.current_stream().synchronize()
        return np.array(self.values, order="C")

    def reshape(self, *shape: Any) -> ndarray:
        found = self.values.reshape(*shape)
        assert self.values.size == 0 or np.shares_memory(found, self.values), "a copy that the model does not make"
        return ndarray(found, self.number)

    def transpose(self, *axes: int) -> ndarray:
        return ndarray(self.values.transpose(*axes), self.number)

    def view(self, dtype: Any) -> ndarray:
        return ndarray(self.values.view(dtype), self.number)

    def copy(self) -> ndarray:
        with self.device:
            return kernel(lambda: np.array(self.values, order="C"))

    def astype(self, dtype: Any) -> ndarray:
        bare(self)
        return kernel(lambda: self.values.astype(dtype))

    def min(self) -> ndarray:
        return kernel(lambda: bare(self).min())

    def max(self) -> ndarray:
        return kernel(lambda: bare(self).max())

    def all(self) -> ndarray:
        return kernel(lambda: bare(self).all())

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: Any) -> ndarray:
        if isinstance(key, ndarray):
            values, index = bare(self), bare(key)
            return kernel(lambda: values[index])
        found = self.values[key]
        return ndarray(found if isinstance(found, np.ndarray) else np.asarray(found), self.number)

    def __setitem__(self, key: Any, value: Any) -> None:
        assert isinstance(value, (ndarray, np.generic, int, float))  # CuPy takes no NumPy arrays here
        target, source = bare(self), bare(value)
        machine.current_stream().put(lambda: target.__setitem__(key, source))

    def __float__(self) -> float:
        return float(self.get())

    def __bool__(self) -> bool:
        return bool(self.get())

    def __ne__(self, other: object) -> Any:
        a, b = bare(self), bare(other)
        return kernel(lambda: a != b)

    def __eq__(self, other: object) -> Any:
        a, b = bare(self), bare(other)
        return kernel(lambda: a == b)

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Any) -> ndarray:
        a, b = bare(self), bare(other)
        return kernel(lambda: a & b)

    def __iand__(self, other: Any) -> ndarray:
        a, b = bare(self), bare(other)
        machine.current_stream().put(lambda: np.bitwise_and(a, b, out=a))
        return self

    def __add__(self, other: Any) -> ndarray:
        a, b = bare(self), bare(other)
        return kernel(lambda: a + b)

    def __floordiv__(self, other: Any) -> ndarray:
        a, b = bare(self), bare(other)
        return kernel(lambda: a // b)

    def __mul__(self, other: Any) -> ndarray:
        a, b = bare(self), bare(other)
        return kernel(lambda: a * b)

    def __iadd__(self, other: Any) -> ndarray:
        a, b = bare(self), bare(other)
        machine.current_stream().put(lambda: np.add(a, b, out=a))
        return self


def asarray(thing: Any) -> ndarray:
    if isinstance(thing, ndarray):
        return thing
    if isinstance(thing, (np.ndarray, np.generic, list)):
        taken = np.array(thing, order="C")
        return kernel(lambda: taken)
    found = thing.__cuda_array_interface__
    assert found.get("strides") is None
    count = int(np.prod(found["shape"])) * np.dtype(found["typestr"]).itemsize
    memory: Any = (ctypes.c_ubyte * count).from_address(found["data"][0])
    values = np.frombuffer(memory, dtype=found["typestr"]).reshape(found["shape"])
    return ndarray(values, machine.current_device())


def from_dlpack(thing: Any) -> ndarray:
    return asarray(thing.owner)


def copyto(target: ndarray, source: ndarray, casting: Any = "same_kind") -> None:
    assert target.shape == source.shape
    machine.current_stream().put(lambda: np.copyto(target.values, source.values, casting=casting))


def pack(slots: int, slot_bytes: int, sizes: int, ends: int, count: int, packed: int, stream: int) -> None:
    assert slots % 16 == packed % 16 == slot_bytes % 16 == 0
    machine.check_here(slots, count * slot_bytes)
    machine.check_here(sizes, 8 * count)
    machine.check_here(ends, 8 * count)
    machine.check_here(packed, 1)

    def work() -> None:
        for frame in range(count):
            size = ctypes.c_uint64.from_address(sizes + 8 * frame).value
            end = ctypes.c_uint64.from_address(ends + 8 * frame).value
            whole = -(-size // 16) * 16
            machine.check_here(packed + end - whole, whole)
            ctypes.memmove(packed + end - whole, slots + frame * slot_bytes, whole)

    machine.Stream.of(stream).put(work)


def encode(
    request: Any, count: int, values: int, value_stride: int, frames: int, frame_stride: int, sizes: int, stream: int
) -> None:
    on = machine.Stream.of(stream)
    dtype = dtypes.from_code(request.dtype)
    value_bytes = int(np.prod(request.shape, dtype=np.int64)) * dtype.itemsize
    most = host.max_frame_bytes(request)
    codec = registry().codec_by_id(request.codec)
    assert codec is not None
    if codec.name == "adaptive" or (codec.name != "lossless" and dtype.kind not in "fcV"):
        raise errors.Unsupported(f"{codec.name} of {dtype} has no CUDA kernels: encode values in host memory")
    assert count <= 1 or frame_stride >= most
    assert frames % 8 == frame_stride % 8 == 0
    if count == 0:
        return
    if value_bytes:
        machine.check_here(values, (count - 1) * value_stride + value_bytes)
    machine.check_here(frames, (count - 1) * frame_stride + most)
    machine.check_here(sizes, 8 * count)
    kept = abi.Request.from_buffer_copy(request)

    def work() -> None:
        for number in range(count):
            size = ctypes.c_size_t(0)
            library.check(
                library.load().pyf_encode(
                    ctypes.byref(kept),
                    (values + number * value_stride) or None,
                    value_bytes,
                    frames + number * frame_stride,
                    most,
                    ctypes.byref(size),
                )
            )
            ctypes.c_uint64.from_address(sizes + 8 * number).value = size.value

    if codec.name in _WAITING:
        on.synchronize()  # for what was put there before; of its own work some may still be to come
    on.put(work)


def decode_at(frames: int, count: int, start: int, stop: int, value_bytes: int, faults: int, stream: int) -> None:
    on = machine.Stream.of(stream)
    given: Any = (abi.CudaFrame * count).from_address(frames)
    entries = np.frombuffer(given, abi.CUDA_FRAME).copy()  # the library copies what it needs before it returns
    if machine.memory_type(faults) != machine.HOST:
        machine.check_here(faults, 4 * count)
    for frame in entries:
        memory: Any = (ctypes.c_ubyte * int(frame["header_bytes"])).from_address(int(frame["header"]))
        header = np.frombuffer(memory, dtype=np.uint8)
        info = host.frame_info(header)
        if info.frame_bytes != frame["frame_bytes"]:
            raise errors.TruncatedFrame("truncated")
        assert int(frame["frame"]) % 4 == 0
        machine.check_here(int(frame["frame"]), int(frame["frame_bytes"]))
        if value_bytes:
            machine.check_here(int(frame["values"]), value_bytes)

    def work() -> None:
        for number, frame in enumerate(entries):
            code = library.load().pyf_decode_range(
                int(frame["frame"]), int(frame["frame_bytes"]), start, stop, int(frame["values"]) or None, value_bytes
            )
            ctypes.c_uint32.from_address(faults + 4 * number).value = int(code != 0)

    on.put(work)


def progressive_decode(frame: Any, segments: int, level: int, values: int, nbytes: int, stream: int) -> None:
    machine.check_here(values, nbytes)
    machine.Stream.of(stream).synchronize()
    library.check(
        library.load().pyf_progressive_decode(frame.ctypes.data, frame.nbytes, segments, level, values, nbytes)
    )


def particle_order(request: Any, values: int, value_bytes: int, particles: int, stream: int) -> None:
    machine.Stream.of(stream).synchronize()
    library.check(library.load().pyf_particle_order(ctypes.byref(request), values or None, value_bytes, particles))


def check_fault(fault: int) -> None:
    if fault:
        raise errors.CorruptFrame("fault of the model")


def cumsum(values: ndarray, dtype: Any) -> ndarray:
    given = bare(values)
    return kernel(lambda: np.cumsum(given, dtype=dtype))


def install() -> None:
    """Put the model in the place of CuPy and of the library's CUDA functions."""
    cupy: Any = types.ModuleType("cupy")
    cupy.__file__, cupy.__version__ = "model", "13.0.0"
    cupy.ndarray, cupy.asarray, cupy.from_dlpack, cupy.copyto = ndarray, asarray, from_dlpack, copyto
    cupy.array = asarray
    cupy.asnumpy = lambda values: values.get()
    cupy.empty = lambda shape, dtype=float: ndarray(machine.allocate(shape, dtype), machine.current_device())
    cupy.zeros = lambda shape, dtype=float: kernel(lambda: np.zeros(shape, dtype=dtype))
    cupy.ascontiguousarray = lambda values: kernel(lambda: np.ascontiguousarray(bare(values)))
    cupy.isfinite = lambda values: kernel(lambda: np.isfinite(bare(values)))
    cupy.where = lambda mask, a, b: kernel(lambda: np.where(bare(mask), bare(a), bare(b)))
    cupy.stack = lambda values, axis=0: kernel(lambda: np.stack([bare(value) for value in values], axis=axis))
    cupy.arange = lambda stop, dtype: kernel(lambda: np.arange(stop, dtype=dtype))
    cupy.uint32, cupy.int64 = np.uint32, np.int64
    cupy.cumsum = cumsum
    cupy.lib = types.SimpleNamespace(
        stride_tricks=types.SimpleNamespace(
            as_strided=lambda values, shape, strides: ndarray(
                np.lib.stride_tricks.as_strided(values.values, shape, strides), values.number
            )
        )
    )
    pool = machine.Pool()
    cupy.get_default_memory_pool = lambda: pool
    cupy.cuda = types.SimpleNamespace(
        Device=machine.Device,
        Stream=machine.Stream,
        Event=machine.Event,
        get_current_stream=machine.current_stream,
        alloc=machine.Allocation,
        alloc_pinned_memory=machine.alloc_pinned_memory,
        runtime=types.SimpleNamespace(
            memcpyAsync=machine.memcpy_async,
            memcpyHostToDevice=1,
            memcpyDeviceToHost=2,
            memcpyDeviceToDevice=3,
            memoryTypeHost=machine.HOST,
            pointerGetAttributes=lambda address: types.SimpleNamespace(type=machine.memory_type(address)),
            getDeviceCount=lambda: machine.DEVICES,
        ),
    )
    sys.modules["cupy"] = cupy
    from . import model_channels

    many: Any = device_chunks
    many.write_chunks, many.read_chunks = model_channels.write_chunks, model_channels.read_chunks
    patched: Any = cuda
    patched.encode, patched.decode_at, patched.progressive_decode = encode, decode_at, progressive_decode
    patched.pack, patched.particle_order = pack, particle_order
    patched.check_fault = check_fault
    patched.require = lambda: None
    patched.device_count = lambda: machine.DEVICES
