# SPDX-License-Identifier: BSD-3-Clause
"""Calls into libh5pyfilter.so by ctypes: filter/c_api.h in Python. ctypes drops the GIL for the length of each call.

The CUDA functions have their wrappers in _native_cuda.py, those for many chunks in _native_lanes.py. Libraries of other
people (libhdf5, libnetcdf) are called from _foreign.py. Nothing else in the package uses ctypes.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

ABI_VERSION = 1
LIBRARY_NAME = "libh5pyfilter.so"
MAX_RANK = 32


class Request(ctypes.Structure):
    """``pyf_request``: what to encode and how."""

    _fields_ = (
        ("struct_bytes", ctypes.c_uint32),
        ("codec", ctypes.c_uint8),
        ("dtype", ctypes.c_uint8),
        ("bound_mode", ctypes.c_uint8),
        ("has_fill", ctypes.c_uint8),
        ("bound", ctypes.c_double),
        ("fill", ctypes.c_uint64),
        ("parameters", ctypes.c_uint8 * 8),
        ("source_big_endian", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 3),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.c_uint64 * MAX_RANK),
    )

    def __init__(self, **fields: Any) -> None:
        super().__init__(struct_bytes=ctypes.sizeof(Request), **fields)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, slowest dimension first."""
        return tuple(self.dims[: self.rank])


class Info(ctypes.Structure):
    """``pyf_info``: what a frame's header says."""

    _fields_ = (
        ("struct_bytes", ctypes.c_uint32),
        ("format_version", ctypes.c_uint8),
        ("codec", ctypes.c_uint8),
        ("dtype", ctypes.c_uint8),
        ("stored_raw", ctypes.c_uint8),
        ("source_big_endian", ctypes.c_uint8),
        ("has_sentinel", ctypes.c_uint8),
        ("pointwise", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8),
        ("rank", ctypes.c_int32),
        ("bound", ctypes.c_double),
        ("step", ctypes.c_double),
        ("sentinel", ctypes.c_uint64),
        ("parameters", ctypes.c_uint8 * 8),
        ("header_bytes", ctypes.c_uint64),
        ("frame_bytes", ctypes.c_uint64),
        ("value_count", ctypes.c_uint64),
        ("value_bytes", ctypes.c_uint64),
        ("dims", ctypes.c_uint64 * MAX_RANK),
        ("carried_bound", ctypes.c_double),
    )

    def __init__(self) -> None:
        super().__init__(struct_bytes=ctypes.sizeof(Info))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, slowest dimension first."""
        return tuple(self.dims[: self.rank])


class ProgressiveSummary(ctypes.Structure):
    """``pyf_progressive``: what must be known of a progressive frame before its table is read."""

    _fields_ = (("prefix_bytes", ctypes.c_uint64), ("segments", ctypes.c_uint32), ("levels", ctypes.c_uint32))


#: ``pyf_progressive_part``: a segment
PROGRESSIVE_PART = np.dtype([("offset", "u8"), ("size", "u8"), ("error", "f8"), ("level", "u4"), ("unit", "u4")])

#: ``pyf_range``: bytes of a file, the address where they go, and how many came
RANGE = np.dtype([("offset", "u8"), ("bytes", "u8"), ("to", "u8"), ("done", "u8")])


class ChunkList(ctypes.Structure):
    """``pyf_chunk_list``: what ``pyf_list_chunk`` fills, addresses of arrays."""

    _fields_ = (
        ("room", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
        ("rank", ctypes.c_uint64),
        ("origins", ctypes.c_void_p),
        ("offsets", ctypes.c_void_p),
        ("sizes", ctypes.c_void_p),
        ("masks", ctypes.c_void_p),
    )


class Grid(ctypes.Structure):
    """``pyf_grid``: chunks of an array; addresses of lists."""

    _fields_ = (
        ("values", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("extents", ctypes.c_void_p),
        ("begin", ctypes.c_void_p),
        ("chunk", ctypes.c_void_p),
        ("rank", ctypes.c_uint32),
        ("item_bytes", ctypes.c_uint32),
    )

    def __init__(self, values: NDArray[Any], begin: Sequence[int], chunk: Sequence[int]) -> None:
        self._lists = np.array([values.strides, values.shape, begin, chunk], dtype=np.int64)
        rows = [self._lists.ctypes.data + number * self._lists.strides[0] for number in range(4)]
        super().__init__(values.ctypes.data, *rows, values.ndim, values.itemsize)


_SIZE = ctypes.c_size_t
_POINTER = ctypes.c_void_p
_REQUEST = ctypes.POINTER(Request)
_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "pyf_abi_version": (ctypes.c_uint32, ()),
    "pyf_version": (ctypes.c_char_p, ()),
    "pyf_last_error": (ctypes.c_char_p, ()),
    "pyf_check_request": (ctypes.c_int, (_REQUEST,)),
    "pyf_max_frame_bytes": (_SIZE, (_REQUEST,)),
    "pyf_encode": (ctypes.c_int, (_REQUEST, _POINTER, _SIZE, _POINTER, _SIZE, ctypes.POINTER(_SIZE))),
    "pyf_encode_updated": (
        ctypes.c_int,
        (_REQUEST, _POINTER, _SIZE, _POINTER, _SIZE, _POINTER, _SIZE, ctypes.POINTER(_SIZE)),
    ),
    "pyf_frame_info": (ctypes.c_int, (_POINTER, _SIZE, ctypes.POINTER(Info))),
    "pyf_decode": (ctypes.c_int, (_POINTER, _SIZE, _POINTER, _SIZE)),
    "pyf_decode_range": (ctypes.c_int, (_POINTER, _SIZE, ctypes.c_uint64, ctypes.c_uint64, _POINTER, _SIZE)),
    "pyf_value_range": (
        ctypes.c_int,
        (
            _REQUEST,
            _POINTER,
            _SIZE,
            ctypes.POINTER(ctypes.c_double),
            ctypes.POINTER(ctypes.c_double),
            ctypes.POINTER(ctypes.c_int),
        ),
    ),
    "pyf_particle_order": (ctypes.c_int, (_REQUEST, _POINTER, _SIZE, _POINTER)),
    "pyf_progressive_summary": (ctypes.c_int, (_POINTER, _SIZE, ctypes.POINTER(ProgressiveSummary))),
    "pyf_progressive_parts": (ctypes.c_int, (_POINTER, _SIZE, ctypes.c_uint32, _POINTER, ctypes.c_uint32)),
    "pyf_progressive_decode": (
        ctypes.c_int,
        (_POINTER, _SIZE, ctypes.c_uint32, ctypes.c_uint32, _POINTER, _SIZE),
    ),
    "pyf_progressive_choose": (
        ctypes.c_int,
        (ctypes.c_int, _POINTER, _SIZE, _SIZE, _REQUEST, ctypes.c_double, _POINTER, ctypes.c_int),
    ),
    "pyf_list_chunk": (ctypes.c_int, (_POINTER, ctypes.c_uint, ctypes.c_uint64, ctypes.c_uint64, _POINTER)),
    "pyf_read_ranges": (ctypes.c_int, (ctypes.c_int, _POINTER, _SIZE, ctypes.c_int)),
    "pyf_read_grid": (
        ctypes.c_int,
        (ctypes.POINTER(Grid), ctypes.c_uint8, ctypes.c_int, _POINTER, _SIZE, ctypes.c_int),
    ),
    "pyf_encode_grid": (
        ctypes.c_int,
        (_REQUEST, ctypes.POINTER(Grid), _POINTER, _POINTER, _SIZE, _POINTER, _SIZE, ctypes.c_int),
    ),
    "pyf_configure": (ctypes.c_int, (ctypes.c_char_p, ctypes.c_char_p)),
    "pyf_config": (ctypes.c_char_p, (ctypes.c_char_p,)),
    "pyf_register": (ctypes.c_int, (ctypes.c_char_p,)),
    "pyf_parse_cd_values": (ctypes.c_int, (ctypes.POINTER(ctypes.c_uint), _SIZE, _REQUEST)),
    "pyf_cuda_particle_order": (ctypes.c_int, (_REQUEST, _POINTER, _SIZE, _POINTER, _POINTER)),
    "pyf_cuda_encode": (ctypes.c_int, (_REQUEST, _SIZE, _POINTER, _SIZE, _POINTER, _SIZE, _POINTER, _POINTER)),
    "pyf_cuda_decode": (ctypes.c_int, (_POINTER, _SIZE, ctypes.c_uint64, ctypes.c_uint64, _SIZE, _POINTER, _POINTER)),
    "pyf_cuda_fault": (ctypes.c_int, (ctypes.c_uint32,)),
    "pyf_cuda_progressive_decode": (
        ctypes.c_int,
        (_POINTER, _SIZE, ctypes.c_uint32, ctypes.c_uint32, _POINTER, _SIZE, _POINTER),
    ),
    "pyf_cuda_write_chunks": (ctypes.c_int, (_REQUEST, _POINTER, _POINTER, _SIZE, _SIZE, _POINTER)),
    "pyf_cuda_read_chunks": (
        ctypes.c_int,
        (ctypes.c_uint8, _POINTER, _POINTER, _SIZE, ctypes.c_int, _POINTER, _POINTER, ctypes.c_uint32),
    ),
}


def _candidates() -> Iterator[Path]:
    """Yield the places where the library may be, in the order of their precedence."""
    import pyfilter

    override = os.environ.get("PYFILTER_LIBRARY")
    if override:
        yield Path(override)
        return  # who names a file wants that file, not another one
    for folder in pyfilter.__path__:  # two entries in an editable install: the source tree and site-packages
        yield Path(folder) / "lib" / LIBRARY_NAME
    try:
        installed = importlib.metadata.distribution("pyfilter").locate_file(f"pyfilter/lib/{LIBRARY_NAME}")
    except importlib.metadata.PackageNotFoundError:
        return
    yield Path(str(installed))


@cache
def library_path() -> Path | None:
    """Return the library's file, None where it is not found. PYFILTER_LIBRARY names another file."""
    return next((path.resolve() for path in _candidates() if path.is_file()), None)


@cache
def library() -> ctypes.CDLL:
    """Return the loaded library with its prototypes set.

    Raises
    ------
    LibraryMissing
        If there is no library, it cannot be loaded, or it belongs to another release.
    """
    path = library_path()
    if path is None:
        places = ", ".join(str(place) for place in _candidates())
        message = f"pyfilter's compiled library is missing (looked for {places}); reinstall pyfilter"
        raise errors.LibraryMissing(message)
    try:
        loaded = ctypes.CDLL(str(path))
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(loaded, name)
            function.restype = result
            function.argtypes = arguments
    except (OSError, AttributeError) as error:
        message = f"pyfilter's compiled library {path} cannot be used: {error}"
        raise errors.LibraryMissing(message) from error
    abi = int(loaded.pyf_abi_version())
    if abi != ABI_VERSION:
        message = f"{path} has interface version {abi}, this package needs {ABI_VERSION}; reinstall pyfilter"
        raise errors.LibraryMissing(message)
    return loaded


def check(code: int) -> None:
    """Raise the exception for a status code other than 0."""
    if code != 0:
        message = library().pyf_last_error()
        raise errors.from_code(code, message.decode("utf-8", "replace") if message else "")


def version() -> str:
    """Return the release of the compiled library."""
    return str(library().pyf_version().decode("ascii"))


def check_request(request: Request) -> None:
    """Raise InvalidArgument or Unsupported where the library would refuse to encode this."""
    check(library().pyf_check_request(ctypes.byref(request)))


def max_frame_bytes(request: Request) -> int:
    """Return the size that a frame of this request never exceeds."""
    size = int(library().pyf_max_frame_bytes(ctypes.byref(request)))
    if size == 0:
        check_request(request)
        message = f"an array of shape {request.shape} is too large for one frame"
        raise errors.InvalidArgument(message)
    return size


def encode(request: Request, values: NDArray[Any], out: NDArray[np.uint8]) -> int:
    """Write the frame of C-contiguous native ``values`` to the start of ``out`` and return its size in bytes."""
    size = ctypes.c_size_t(0)
    check(
        library().pyf_encode(
            ctypes.byref(request), values.ctypes.data, values.nbytes, out.ctypes.data, out.nbytes, ctypes.byref(size)
        )
    )
    return size.value


def encode_updated(request: Request, values: NDArray[Any], old: NDArray[np.uint8], out: NDArray[np.uint8]) -> int:
    """Do the same for values of which some come from the frame ``old``, decoded."""
    size = ctypes.c_size_t(0)
    check(
        library().pyf_encode_updated(
            ctypes.byref(request),
            values.ctypes.data,
            values.nbytes,
            old.ctypes.data,
            old.nbytes,
            out.ctypes.data,
            out.nbytes,
            ctypes.byref(size),
        )
    )
    return size.value


def frame_info(frame: NDArray[np.uint8]) -> Info:
    """Return what the header at the start of ``frame`` says."""
    info = Info()
    check(library().pyf_frame_info(frame.ctypes.data, frame.nbytes, ctypes.byref(info)))
    return info


def decode(frame: NDArray[np.uint8], out: NDArray[Any]) -> None:
    """Decode a whole frame into the C-contiguous array ``out``, whose size in bytes must be the frame's."""
    check(library().pyf_decode(frame.ctypes.data, frame.nbytes, out.ctypes.data, out.nbytes))


def decode_range(frame: NDArray[np.uint8], start: int, stop: int, out: NDArray[Any]) -> None:
    """Decode the values ``start`` to ``stop`` (C order) into the C-contiguous array ``out``."""
    check(library().pyf_decode_range(frame.ctypes.data, frame.nbytes, start, stop, out.ctypes.data, out.nbytes))


def value_range(request: Request, values: NDArray[Any]) -> tuple[float, float] | None:
    """Return the lowest and highest finite value other than the fill value, None where there is none."""
    low, high, found = ctypes.c_double(), ctypes.c_double(), ctypes.c_int()
    check(
        library().pyf_value_range(
            ctypes.byref(request),
            values.ctypes.data,
            values.nbytes,
            ctypes.byref(low),
            ctypes.byref(high),
            ctypes.byref(found),
        )
    )
    return (low.value, high.value) if found.value else None


def particle_order(request: Request, values: NDArray[Any]) -> NDArray[np.uint32]:
    """Return the indices of the particles of C-contiguous native ``values`` in the order that the request asks for."""
    out = np.empty(max(int(np.prod(values.shape[:-1])), 1), np.uint32)
    check(library().pyf_particle_order(ctypes.byref(request), values.ctypes.data, values.nbytes, out.ctypes.data))
    return out[: int(np.prod(values.shape[:-1]))]


def progressive_summary(frame: NDArray[np.uint8]) -> ProgressiveSummary:
    """Return the size of a progressive frame's head and the numbers of its segments and levels."""
    summary = ProgressiveSummary()
    check(library().pyf_progressive_summary(frame.ctypes.data, frame.nbytes, ctypes.byref(summary)))
    return summary


def progressive_parts(frame: NDArray[np.uint8], level: int, count: int) -> NDArray[Any]:
    """Return the segments of a frame whose head is at hand, as `PROGRESSIVE_PART`."""
    parts = np.empty(count, PROGRESSIVE_PART)
    check(library().pyf_progressive_parts(frame.ctypes.data, frame.nbytes, level, parts.ctypes.data, count))
    return parts


def progressive_decode(frame: NDArray[np.uint8], segments: int, level: int, out: NDArray[Any]) -> None:
    """Decode the first ``segments`` segments of a frame, or of a grid of ``level``, into the C-contiguous ``out``."""
    check(
        library().pyf_progressive_decode(frame.ctypes.data, frame.nbytes, segments, level, out.ctypes.data, out.nbytes)
    )


def read_ranges(descriptor: int, ranges: NDArray[Any], threads: int) -> None:
    """Read ranges of an open file, an array of `RANGE`, as far as that goes: ``done`` says how far."""
    check(library().pyf_read_ranges(descriptor, ranges.ctypes.data, len(ranges), threads))


def read_grid(grid: Grid, dtype: int, descriptor: int, ranges: NDArray[Any], threads: int) -> None:
    """Read and decode the chunks of a grid, `RANGE` each: ``done`` is 0 of those that could not be."""
    check(library().pyf_read_grid(ctypes.byref(grid), dtype, descriptor, ranges.ctypes.data, len(ranges), threads))


def encode_grid(
    request: Request, grid: Grid, padding: NDArray[Any], frames: NDArray[np.uint8], stride: int, threads: int
) -> NDArray[np.int64]:
    """Encode the chunks of a grid to frames every ``stride`` bytes; return their sizes, 0 where one could not be."""
    sizes = np.zeros(len(frames) // stride, dtype=np.int64)
    check(
        library().pyf_encode_grid(
            ctypes.byref(request),
            ctypes.byref(grid),
            padding.ctypes.data,
            frames.ctypes.data,
            stride,
            sizes.ctypes.data,
            len(sizes),
            threads,
        )
    )
    return sizes


def configure(key: str, value: str) -> None:
    """Set one of the library's settings."""
    check(library().pyf_configure(key.encode(), value.encode()))


def config(key: str) -> str | None:
    """Return the value of a setting in use, None for a key that the library does not know."""
    value = library().pyf_config(key.encode())
    return None if value is None else str(value.decode())


def register(path: str) -> None:
    """Register the filter with a libhdf5 that is loaded already, by the file's path."""
    check(library().pyf_register(os.fsencode(path)))


def parse_cd_values(cd_values: Sequence[int]) -> Request:
    """Return the request that cd_values stand for; the stored form brings shape, dtype and fill value along."""
    words = (ctypes.c_uint * len(cd_values))(*(word & 0xFFFFFFFF for word in cd_values))
    request = Request()
    check(library().pyf_parse_cd_values(words, len(cd_values), ctypes.byref(request)))
    return request
