# SPDX-License-Identifier: BSD-3-Clause
"""Arrays on CUDA devices: recognising them, and views of them as cupy.ndarray. CuPy is imported when first needed."""

from __future__ import annotations

import os
from contextlib import ContextDecorator
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import dtypes
from pyfilter._lib import cuda
from pyfilter.errors import (
    DeviceError,
    InvalidArgument,
    MissingExtra,
    NoMemory,
    PyfilterError,
    Unsupported,
    missing_extra,
)

if TYPE_CHECKING:
    from types import TracebackType


_HOST = (np.ndarray, np.generic, bytes, bytearray, memoryview, str, list, tuple, int, float, type(None))
_DLPACK_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged
_OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY

_found = 0  # the process in which the library could use CUDA


def is_device_array(thing: object) -> bool:
    """Return whether an object is an array on a CUDA device.

    Parameters
    ----------
    thing : object
        Anything. CuPy, Numba, PyTorch and JAX arrays, and whatever else has ``__cuda_array_interface__``, or
        ``__dlpack__`` with a ``__dlpack_device__()`` that is a CUDA device, are device arrays.
    """
    if isinstance(thing, _HOST):
        return False
    if _is_cupys(thing):  # without reading the attribute: in a forked process that raises an error
        return True
    return _interface(thing) is not None or _dlpack_device(thing) is not None


def _is_cupys(thing: object) -> bool:
    kind = type(thing)
    return kind.__module__.partition(".")[0] == "cupy" and hasattr(kind, "__cuda_array_interface__")


def _interface(thing: object) -> dict[str, Any] | None:
    """Return the array's ``__cuda_array_interface__``, None where it has none or does not give it."""
    try:
        found = getattr(thing, "__cuda_array_interface__", None)
    except Exception:  # PyTorch: a tensor that requires a gradient; JAX: an array on several devices
        return None
    return found if isinstance(found, dict) else None


def _dlpack_device(thing: object) -> int | None:
    """Return the number of the CUDA device that an object of the DLPack protocol is on, else None."""
    if not hasattr(type(thing), "__dlpack__") or not hasattr(type(thing), "__dlpack_device__"):
        return None
    try:
        kind, number = thing.__dlpack_device__()  # type: ignore[attr-defined]
    except Exception:  # an object with such an attribute cannot be read on a device
        return None
    return int(number) if int(kind) in _DLPACK_CUDA else None


def import_cupy() -> Any:
    """Return the module cupy.

    Raises
    ------
    MissingExtra
        If it is not installed, or cannot be imported.
    """
    try:
        import cupy
    except ModuleNotFoundError as error:
        if error.name == "cupy":
            raise missing_extra("cupy", "gpu") from None
        message = f"cupy cannot be imported: {error}"
        raise MissingExtra(message) from error
    except ImportError as error:
        message = f"cupy cannot be imported: {error}"
        raise MissingExtra(message) from error
    return cupy


def require() -> Any:
    """Return the module cupy, after checking that the library can use CUDA.

    Raises
    ------
    MissingExtra
        If cupy is not installed.
    DeviceError
        If there is no driver or no device, the library has no CUDA, or the process was forked after CUDA was used.
    """
    global _found
    cupy = import_cupy()
    if _found != os.getpid():
        cuda.require()
        _found = os.getpid()
    return cupy


class device_errors(ContextDecorator):
    """Turn CuPy's exceptions for CUDA errors into DeviceError and NoMemory."""

    def __enter__(self) -> None:
        """Do nothing: a generator would cost each call of a small chunk a microsecond or two."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Raise the library's exception in place of CuPy's."""
        if error is None or isinstance(error, PyfilterError):
            return
        if isinstance(error, MemoryError):
            raise NoMemory(str(error)) from error
        if isinstance(error, RuntimeError) and type(error).__name__ in ("CUDARuntimeError", "CUDADriverError"):
            mapped = NoMemory if getattr(error, "status", None) == _OUT_OF_MEMORY else DeviceError
            raise mapped(str(error)) from error


def device_array(thing: Any) -> Any:
    """Return a device array as a cupy.ndarray of the same memory.

    CuPy's current stream waits for earlier work on the array's stream, if the array names it: DLPack always does, an
    interface of version 3 may.

    Raises
    ------
    Unsupported
        If the values are big-endian, or CuPy cannot take the array over; the text says why.
    """
    cupy = require()
    if isinstance(thing, cupy.ndarray):
        return thing
    described = _interface(thing)
    if described is not None and str(described.get("typestr", ""))[:1] == ">":
        message = f"device arrays must be in this machine's byte order, got {described['typestr']}"
        raise Unsupported(message)
    reason: Exception | None = None
    # DLPack first: PyTorch's interface names no stream, so CuPy would not wait for the values
    if _dlpack_device(thing) is not None:
        try:
            return cupy.from_dlpack(thing)
        except Exception as error:  # try the other protocol
            reason = error
    if described is not None:
        try:
            return cupy.asarray(thing)
        except Exception as error:  # raised below
            reason = reason or error
    message = f"this {type(thing).__name__} cannot be used as a device array: {reason}"
    raise Unsupported(message) from reason


@device_errors()
def converted(values: Any, dtype: np.dtype[Any]) -> Any:
    """Return a cupy.ndarray's values in another element type, on their device."""
    with import_cupy().cuda.Device(values.device.id):
        return values.astype(dtype)


@device_errors()
def rows(values: Any, index: Any) -> Any:
    """Return the rows of a cupy.ndarray in the order of ``index``, on its device."""
    cupy = import_cupy()
    with cupy.cuda.Device(values.device.id):
        return values[cupy.asarray(index)]


def out_array(out: Any) -> Any:
    """Return a cupy.ndarray of the memory of ``out``, which must be a device array that may be written to."""
    if not is_device_array(out):
        message = f"out must be a numpy.ndarray or an array on a CUDA device, got {type(out).__name__}"
        raise Unsupported(message)
    described = None if _is_cupys(out) else _interface(out)
    if described is not None and described.get("data", (0, False))[1]:
        message = "out is read-only: give a writeable array"
        raise InvalidArgument(message)
    return device_array(out)


def check_shape(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise InvalidArgument unless a device array has this shape and element type."""
    if out.shape != shape or out.dtype != dtype:
        message = f"out must have shape {shape} and type {dtype.name}, got {out.shape} and {out.dtype.name}"
        raise InvalidArgument(message)


def writable_by_library(out: Any) -> bool:
    """Whether the library can write to this cupy.ndarray itself: C-contiguous and aligned."""
    return bool(out.flags.c_contiguous) and out.data.ptr % out.dtype.itemsize == 0


def readable_by_library(values: Any) -> Any:
    """Return a cupy.ndarray, C-contiguous and aligned to its element type: ``values`` itself or a copy."""
    cupy = import_cupy()
    if values.flags.c_contiguous and values.data.ptr % values.dtype.itemsize == 0:
        return values
    copy = cupy.empty(values.shape, dtype=values.dtype)
    cupy.copyto(copy, values)
    return copy


def device_number(device: object) -> int | None:
    """Return the number of a device named "cuda" (the current one) or "cuda:1", None for "cpu".

    Raises
    ------
    InvalidArgument
        If it is no such name, or there is no such device.
    """
    if device == "cpu":
        return None
    if isinstance(device, str):
        name, _, number = device.partition(":")
        if name == "cuda" and (number.isdecimal() or device == "cuda"):
            cupy = require()
            if not number:
                return int(cupy.cuda.Device().id)
            count = cuda.device_count()
            if int(number) < count:
                return int(number)
            message = f"device {device!r} is not there: {count} can be used"
            raise InvalidArgument(message)
    message = f"device must be 'cpu', 'cuda' or 'cuda:0', 'cuda:1', ...; got {device!r}"
    raise InvalidArgument(message)


def fill_bits(blocks: Any, value: np.generic) -> None:
    """Fill a C-contiguous cupy.ndarray with the bits of one value; a NaN keeps its bits."""
    bits = dtypes.bits_dtype(value.dtype)
    patterns = np.asarray(value).reshape(1).view(bits)
    for part, pattern in enumerate(patterns):  # of complex numbers two
        blocks.view(bits)[..., part :: len(patterns)] = pattern


def to_host(values: Any) -> Any:
    """Return a cupy.ndarray's values as a NumPy array."""
    return import_cupy().asnumpy(values)
