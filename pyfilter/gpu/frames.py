# SPDX-License-Identifier: BSD-3-Clause
"""Frames in device memory: `pyfilter.encode` and `decode` of device arrays come here."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyfilter import dtypes
from pyfilter import frames as host_frames
from pyfilter._lib import abi, cuda, host
from pyfilter.errors import InvalidArgument
from pyfilter.gpu import arrays, staging

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyfilter.codecs.base import Codec

_kept = threading.local()
_SIZE_BYTES = 256  # keeps the frame aligned as memory of its own


@arrays.device_errors()
def encode(array: Any, codec: Codec, fill_value: object = None) -> Any:
    """Compress a device array into one frame on its device; as `pyfilter.encode`.

    Returns
    -------
    cupy.ndarray
        The frame: one dimension of uint8, the same bytes as from `pyfilter.encode` of the same values on the host.
    """
    values = arrays.device_array(array)
    cupy = arrays.import_cupy()
    request, most = _request_of(codec, values.dtype, values.shape, fill_value)
    with cupy.cuda.Device(values.device.id):
        values = arrays.readable_by_library(values)
        stream = cupy.cuda.get_current_stream()
        pinned, buffer = _pinned(cupy), cupy.cuda.alloc(_SIZE_BYTES + most)  # the size of the frame, then the frame
        at = buffer.ptr
        cuda.encode(request, 1, values.data.ptr, 0, at + _SIZE_BYTES, 0, at, stream.ptr)
        pinned.copy(at, 8, stream)
        size = pinned.number.value
        # memory of its own, so that the buffer can be used again. CuPy copies a slice of uint8 by a kernel, a byte for
        # each thread: cudaMemcpyAsync is 5 times as fast
        frame = cupy.empty(size, dtype=np.uint8)
        runtime = cupy.cuda.runtime
        runtime.memcpyAsync(frame.data.ptr, at + _SIZE_BYTES, size, runtime.memcpyDeviceToDevice, stream.ptr)
        return frame


def _request_of(
    codec: Codec, dtype: np.dtype[Any], shape: tuple[int, ...], fill_value: object
) -> tuple[abi.Request, int]:
    """Return the request, and the most bytes that its frame may have.

    Those without a fill value are kept: two fill values may be equal and have other bits. So may two types, one of
    which is an enumeration.
    """
    if fill_value is None and dtype.metadata is None:
        with contextlib.suppress(TypeError):  # a codec that cannot be hashed: refused below
            return _kept_request(codec, dtype, shape)
    return _new_request(codec, dtype, shape, fill_value)


def _new_request(
    codec: Codec, dtype: np.dtype[Any], shape: tuple[int, ...], fill_value: object = None
) -> tuple[abi.Request, int]:
    request = host_frames.make_request(codec, dtype, shape, fill_value)
    return request, host.max_frame_bytes(request)


_kept_request = lru_cache(maxsize=64)(_new_request)


class _Header(NamedTuple):
    """Where the first bytes of a frame are in host memory, at least its header; how many; and who has the memory."""

    address: int
    size: int
    owner: object


class _Pinned:
    """A little pinned host memory, which spares a call the driver's staging of pageable memory."""

    def __init__(self, cupy: Any) -> None:
        bytes_ = staging.pinned_bytes(cupy, cuda.MAX_HEADER_BYTES + 4)
        self.head = bytes_[: cuda.MAX_HEADER_BYTES]
        self.address = int(bytes_.ctypes.data)
        self.number = ctypes.c_uint64.from_address(self.address)
        #: kernels write to this memory themselves
        self.fault_address = self.address + cuda.MAX_HEADER_BYTES
        self.fault = ctypes.c_uint32.from_address(self.fault_address)
        self._runtime = cupy.cuda.runtime

    def copy(self, address: int, size: int, stream: Any) -> None:
        """Copy bytes of device memory here; waits until the stream has done its work."""
        if size:
            self._runtime.memcpyAsync(self.address, address, size, self._runtime.memcpyDeviceToHost, stream.ptr)
        stream.synchronize()


def _pinned(cupy: Any) -> _Pinned:
    """Return this thread's pinned memory, whose content lasts until the next call."""
    try:
        pinned: _Pinned = _kept.pinned
    except AttributeError:
        pinned = _kept.pinned = _Pinned(cupy)
    return pinned


@arrays.device_errors()
def decode(frame: Any, start: int | None, stop: int | None, out: Any, device: str | None) -> Any:
    """Decompress a frame of either memory into either memory; as `pyfilter.decode`.

    Values go to ``out`` or, without it, to ``device`` or, without either, to the memory of the frame. Only compressed
    bytes are copied between host and device.
    """
    if out is not None and device is not None:
        message = "give out or device, not both: the values go to the memory of out"
        raise InvalidArgument(message)
    number = arrays.device_number(device) if device is not None else None
    to_host = device is not None and number is None
    if to_host or (out is not None and not arrays.is_device_array(out)):
        return host_frames.decode(host_bytes(frame).data, start, stop, out)
    target = None if out is None else arrays.out_array(out)
    given = arrays.device_array(frame) if arrays.is_device_array(frame) else None
    if target is not None:
        number = target.device.id
    elif number is None:
        number = given.device.id if given is not None else arrays.device_number("cuda")
    cupy = arrays.import_cupy()
    with cupy.cuda.Device(number):
        data, header = _of_device(cupy, given, number) if given is not None else _of_host(cupy, frame)
        info = host.frame_info_at(header.address, header.size)
        host_frames.check_size(info, data.nbytes)
        dtype = dtypes.from_code(info.dtype)
        first, last, shape = host_frames.asked_range(info, start, stop)
        if target is not None:
            arrays.check_shape(target, shape, dtype)
        direct = target is not None and arrays.writable_by_library(target)
        values = target if direct else cupy.empty(shape, dtype=dtype)
        _decode_one(cupy, data, header, first, last, values)
        if target is None:
            return values
        if not direct:
            cupy.copyto(target, values)
            cupy.cuda.get_current_stream().synchronize()
        return out


def _decode_one(cupy: Any, data: Any, header: _Header, first: int, last: int, values: Any) -> None:
    """Decode a frame on the current device, and wait until it is decoded."""
    pinned, stream = _pinned(cupy), cupy.cuda.get_current_stream()
    entry = abi.CudaFrame(header.address, header.size, data.data.ptr, data.nbytes, values.data.ptr)
    cuda.decode_at(ctypes.addressof(entry), 1, first, last, values.nbytes, pinned.fault_address, stream.ptr)
    stream.synchronize()
    if pinned.fault.value:
        cuda.check_fault(pinned.fault.value)


def _of_host(cupy: Any, frame: Any) -> tuple[Any, _Header]:
    """Return a copy of a host frame on the current device, and its header."""
    data = host_frames.frame_bytes(frame)
    return cupy.asarray(data), _Header(data.ctypes.data, data.nbytes, data)


def _of_device(cupy: Any, given: Any, number: int | None) -> tuple[Any, _Header]:
    """Return a device frame on the current device ``number``, and a host copy of its header."""
    if given.device.id == number:
        data = _bytes_of(given)
        if data.data.ptr % 4 != 0:
            data = data.copy()
        return data, _head_of(cupy, data)
    with cupy.cuda.Device(given.device.id):
        data = _bytes_of(given)
        header = _head_of(cupy, data)  # waits until the frame is complete
    there = cupy.empty(data.nbytes, dtype=np.uint8)
    cupy.copyto(there, data)
    cupy.cuda.get_current_stream().synchronize()  # before the other device's pool reuses the memory of `data`
    return there, header


def _bytes_of(given: Any) -> Any:
    """Return the bytes of a cupy.ndarray in one dimension, without a copy if it is contiguous."""
    if given.ndim == 1 and given.dtype == np.uint8 and given.flags.c_contiguous:
        return given
    return arrays.import_cupy().ascontiguousarray(given).reshape(-1).view(np.uint8)


def header_bytes(frame: Any) -> NDArray[np.uint8]:
    """Return a host copy of the first bytes of a device frame, at least its header."""
    given = arrays.device_array(frame)
    cupy = arrays.import_cupy()
    with arrays.device_errors(), cupy.cuda.Device(given.device.id):
        size = _head_of(cupy, _bytes_of(given)).size
        head: NDArray[np.uint8] = _pinned(cupy).head[:size].copy()
    return head


def _head_of(cupy: Any, data: Any) -> _Header:
    """Copy the first bytes of a cupy.ndarray of bytes to this thread's pinned memory, and wait for them."""
    pinned, size = _pinned(cupy), min(data.nbytes, cuda.MAX_HEADER_BYTES)
    pinned.copy(data.data.ptr, size, cupy.cuda.get_current_stream())
    return _Header(pinned.address, size, pinned)


def host_bytes(frame: Any) -> NDArray[np.uint8]:
    """Return the bytes of a frame of either memory as a NumPy array."""
    if not arrays.is_device_array(frame):
        return host_frames.frame_bytes(frame)
    given = arrays.device_array(frame)
    cupy = arrays.import_cupy()
    with cupy.cuda.Device(given.device.id):
        data: NDArray[np.uint8] = _bytes_of(given).get()
    return data
