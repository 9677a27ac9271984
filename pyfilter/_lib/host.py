# SPDX-License-Identifier: BSD-3-Clause
"""Calls into libh5pyfilter.so on host memory: frames, parts of progressive frames, chunks of files, cd_values."""

from __future__ import annotations

import ctypes
import mmap
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import errors
from pyfilter._lib import abi, library

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_LARGE = 8 << 20  # bytes: a few huge pages
_ADVISES = hasattr(mmap, "MADV_HUGEPAGE") and sys.implementation.name == "cpython"
_libc = ctypes.CDLL(None)
_libc.madvise.argtypes, _libc.madvise.restype = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int), ctypes.c_int
_MAKES_BYTES = sys.implementation.name == "cpython" and hasattr(ctypes.pythonapi, "_PyBytes_Resize")
if _MAKES_BYTES:
    # without content, bytes may be filled before others see them; addresses, so that nothing else holds the object.
    # Functions of our own, by index: attributes of pythonapi are everybody's, and fsspec gives this one other types.
    _new_bytes = ctypes.pythonapi["PyBytes_FromStringAndSize"]
    _new_bytes.argtypes, _new_bytes.restype = (ctypes.c_void_p, ctypes.c_ssize_t), ctypes.c_void_p
    _resize_bytes = ctypes.pythonapi["_PyBytes_Resize"]
    _resize_bytes.argtypes, _resize_bytes.restype = (ctypes.c_void_p, ctypes.c_ssize_t), ctypes.c_int
    _release = ctypes.pythonapi["Py_DecRef"]
    _release.argtypes, _release.restype = (ctypes.c_void_p,), None


def check_request(request: abi.Request) -> None:
    """Raise InvalidArgument or Unsupported where the library would refuse to encode this."""
    library.check(library.load().pyf_check_request(ctypes.byref(request)))


def max_frame_bytes(request: abi.Request) -> int:
    """Return the size that a frame of this request never exceeds."""
    size = int(library.load().pyf_max_frame_bytes(ctypes.byref(request)))
    if size == 0:
        check_request(request)
        message = f"an array of shape {request.shape} is too large for one frame"
        raise errors.InvalidArgument(message)
    return size


def encode(
    request: abi.Request, values: NDArray[Any], out: NDArray[np.uint8], over: NDArray[np.uint8] | None = None
) -> int:
    """Write the frame of C-contiguous native ``values`` to the start of ``out`` and return its size in bytes.

    ``over`` is the frame that some of the values were decoded from.
    """
    return _encode_at(request, values, over, out.ctypes.data, out.nbytes)


def encode_to_bytes(request: abi.Request, values: NDArray[Any], over: NDArray[np.uint8] | None = None) -> bytes:
    """Return the same frame as bytes.

    The frame is made in the bytes themselves, which then give back what they do not need. A copy would cost a call with
    16 threads more than the codec does.
    """
    most = max_frame_bytes(request)
    if not _MAKES_BYTES:
        frame = np.empty(most, dtype=np.uint8)
        return frame[: encode(request, values, frame, over)].tobytes()
    made = ctypes.c_void_p(_new_bytes(None, most))
    try:
        address = (made.value or 0) + bytes.__basicsize__ - 1
        if most >= _LARGE and _ADVISES:
            first = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
            _libc.madvise(first, (address + most - first) // mmap.PAGESIZE * mmap.PAGESIZE, mmap.MADV_HUGEPAGE)
        _resize_bytes(ctypes.byref(made), _encode_at(request, values, over, address, most))
        return bytes(ctypes.cast(made, ctypes.py_object).value)  # the object itself
    finally:
        if made.value:
            _release(made)


def _encode_at(
    request: abi.Request, values: NDArray[Any], over: NDArray[np.uint8] | None, address: int, capacity: int
) -> int:
    size = ctypes.c_size_t(0)
    given = ctypes.byref(request), values.ctypes.data, values.nbytes
    made = address, capacity, ctypes.byref(size)
    if over is None:
        library.check(library.load().pyf_encode(*given, *made))
    else:
        library.check(library.load().pyf_encode_updated(*given, over.ctypes.data, over.nbytes, *made))
    return size.value


def frame_info(frame: NDArray[np.uint8]) -> abi.Info:
    """Return what the header at the start of ``frame`` says."""
    return frame_info_at(frame.ctypes.data, frame.nbytes)


def frame_info_at(address: int, size: int) -> abi.Info:
    """Return what the header at an address says; ``size`` bytes are there."""
    info = abi.Info()
    library.check(library.load().pyf_frame_info(address, size, ctypes.byref(info)))
    return info


def decode(frame: NDArray[np.uint8], out: NDArray[Any]) -> None:
    """Decode a whole frame into the C-contiguous array ``out``, whose size in bytes must be the frame's."""
    library.check(library.load().pyf_decode(frame.ctypes.data, frame.nbytes, out.ctypes.data, out.nbytes))


def decode_range(frame: NDArray[np.uint8], start: int, stop: int, out: NDArray[Any]) -> None:
    """Decode the values ``start`` to ``stop`` (C order) into the C-contiguous array ``out``."""
    library.check(
        library.load().pyf_decode_range(frame.ctypes.data, frame.nbytes, start, stop, out.ctypes.data, out.nbytes)
    )


def value_range(request: abi.Request, values: NDArray[Any]) -> tuple[float, float] | None:
    """Return the lowest and highest finite value other than the fill value, None where there is none."""
    low, high, found = ctypes.c_double(), ctypes.c_double(), ctypes.c_int()
    library.check(
        library.load().pyf_value_range(
            ctypes.byref(request),
            values.ctypes.data,
            values.nbytes,
            ctypes.byref(low),
            ctypes.byref(high),
            ctypes.byref(found),
        )
    )
    return (low.value, high.value) if found.value else None


def particle_order(request: abi.Request, values: NDArray[Any]) -> NDArray[np.uint32]:
    """Return the indices of the particles of C-contiguous native ``values`` in the order that the request asks for."""
    out = np.empty(max(int(np.prod(values.shape[:-1])), 1), np.uint32)
    library.check(
        library.load().pyf_particle_order(ctypes.byref(request), values.ctypes.data, values.nbytes, out.ctypes.data)
    )
    return out[: int(np.prod(values.shape[:-1]))]


def progressive_summary(frame: NDArray[np.uint8]) -> abi.ProgressiveSummary:
    """Return the size of a progressive frame's head and the numbers of its segments and levels."""
    summary = abi.ProgressiveSummary()
    library.check(library.load().pyf_progressive_summary(frame.ctypes.data, frame.nbytes, ctypes.byref(summary)))
    return summary


def progressive_parts(frame: NDArray[np.uint8], level: int, count: int) -> NDArray[Any]:
    """Return the segments of a frame as `abi.PROGRESSIVE_PART`; ``frame`` must hold at least the head."""
    parts = np.empty(count, abi.PROGRESSIVE_PART)
    library.check(
        library.load().pyf_progressive_parts(frame.ctypes.data, frame.nbytes, level, parts.ctypes.data, count)
    )
    return parts


def progressive_decode(frame: NDArray[np.uint8], segments: int, level: int, out: NDArray[Any]) -> None:
    """Decode the first ``segments`` segments of a frame, or of a grid of ``level``, into the C-contiguous ``out``."""
    library.check(
        library.load().pyf_progressive_decode(
            frame.ctypes.data, frame.nbytes, segments, level, out.ctypes.data, out.nbytes
        )
    )


def progressive_choose(
    descriptor: int, ranges: NDArray[Any], head_bytes: int, like: abi.Request, tolerance: float, threads: int
) -> NDArray[Any]:
    """Read the heads of progressive frames, and return as `abi.PROGRESSIVE_CHOICE` what a tolerance needs of each."""
    choices = np.zeros(len(ranges), abi.PROGRESSIVE_CHOICE)
    library.check(
        library.load().pyf_progressive_choose(
            descriptor,
            ranges.ctypes.data,
            len(ranges),
            head_bytes,
            ctypes.byref(like),
            tolerance,
            choices.ctypes.data,
            threads,
        )
    )
    return choices


def read_ranges(descriptor: int, ranges: NDArray[Any], threads: int) -> None:
    """Read ranges of an open file, an array of `abi.RANGE`; ``done`` becomes how many bytes of each were read."""
    library.check(library.load().pyf_read_ranges(descriptor, ranges.ctypes.data, len(ranges), threads))


class Grid(abi.Grid):
    """``pyf_grid`` of an array, the first of whose chunks begins ``begin`` values before the array does.

    It keeps the lists whose addresses it has, not the array.
    """

    def __init__(self, values: NDArray[Any], begin: Sequence[int], chunk: Sequence[int]) -> None:
        self._lists = np.array([values.strides, values.shape, begin, chunk], dtype=np.int64)
        rows = [self._lists.ctypes.data + number * self._lists.strides[0] for number in range(4)]
        super().__init__(values.ctypes.data, *rows, values.ndim, values.itemsize)


def read_grid(grid: Grid, dtype: int, descriptor: int, ranges: NDArray[Any], threads: int) -> None:
    """Read and decode the chunks of a grid, one `abi.RANGE` each; ``done`` stays 0 for chunks that failed."""
    library.check(
        library.load().pyf_read_grid(ctypes.byref(grid), dtype, descriptor, ranges.ctypes.data, len(ranges), threads)
    )


def write_grid(
    request: abi.Request,
    grid: Grid,
    padding: NDArray[Any],
    writer: abi.ChunkWriter,
    chunks: tuple[int, int],
    threads: int,
    seconds: float,
) -> int:
    """Encode chunks of a grid, ``chunks`` from the first up to the second, and write them in C order.

    Returns how many were written: not all after ``seconds``, or before a chunk that cannot be encoded or that HDF5
    refuses.
    """
    first, end = chunks
    written = ctypes.c_uint64(0)
    library.check(
        library.load().pyf_write_grid(
            ctypes.byref(request),
            ctypes.byref(grid),
            padding.ctypes.data,
            ctypes.byref(writer),
            first,
            end - first,
            threads,
            seconds,
            ctypes.byref(written),
        )
    )
    return int(written.value)


def parse_cd_values(cd_values: Sequence[int]) -> abi.Request:
    """Return the request that cd_values stand for; the stored form brings shape, dtype and fill value along."""
    words = (ctypes.c_uint * len(cd_values))(*(word & 0xFFFFFFFF for word in cd_values))
    request = abi.Request()
    library.check(library.load().pyf_parse_cd_values(words, len(cd_values), ctypes.byref(request)))
    return request
