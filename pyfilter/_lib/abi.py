# SPDX-License-Identifier: BSD-3-Clause
"""The C ABI of libh5pyfilter.so: filter/c_api.h as ctypes declarations, and the only place where Python repeats it.

`STRUCTURES` and `FUNCTIONS` have all of the header by the names there; tests/python/test_abi.py compares them with it,
field by field and argument by argument. `declare` sets the prototypes of a loaded library. Arrays of structures are
NumPy arrays whose element types (`RANGE`, ...) are made from the structures. Where callers have an address, of a NumPy
array or of device memory, pointers are declared as ``c_void_p``. This file imports nothing of the package.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

import numpy as np

ABI_VERSION = 1
MAX_RANK = 32
#: ``pyf_chunk_state``
CHUNK_WAITING, CHUNK_DONE, CHUNK_LEFT = 0, 1, 2


class Sized(ctypes.Structure):
    """A structure that begins with its own size, by which the library knows its layout."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**{"struct_bytes": ctypes.sizeof(type(self)), **fields})


class Shaped(Sized):
    """One that has the rank and dims of an array."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, slowest dimension first."""
        return tuple(self.dims[: self.rank])


class Request(Shaped):
    """``pyf_request``: what to encode and how."""

    _fields_ = (
        ("struct_bytes", c_uint32),
        ("codec", c_uint8),
        ("dtype", c_uint8),
        ("bound_mode", c_uint8),
        ("has_fill", c_uint8),
        ("bound", c_double),
        ("fill", c_uint64),
        ("parameters", c_uint8 * 8),
        ("source_big_endian", c_uint8),
        ("without_zeros", c_uint8),
        ("reserved", c_uint8 * 2),
        ("rank", c_int32),
        ("dims", c_uint64 * MAX_RANK),
        ("fill_imaginary", c_uint64),
    )


class Info(Shaped):
    """``pyf_info``: what a frame's header says."""

    _fields_ = (
        ("struct_bytes", c_uint32),
        ("format_version", c_uint8),
        ("codec", c_uint8),
        ("dtype", c_uint8),
        ("stored_raw", c_uint8),
        ("source_big_endian", c_uint8),
        ("has_sentinel", c_uint8),
        ("pointwise", c_uint8),
        ("reserved", c_uint8),
        ("rank", c_int32),
        ("bound", c_double),
        ("step", c_double),
        ("sentinel", c_uint64),
        ("parameters", c_uint8 * 8),
        ("header_bytes", c_uint64),
        ("frame_bytes", c_uint64),
        ("value_count", c_uint64),
        ("value_bytes", c_uint64),
        ("dims", c_uint64 * MAX_RANK),
        ("carried_bound", c_double),
    )


class Records(Sized):
    """``pyf_records``: an array of records, and how each of their columns is encoded."""

    _fields_ = (
        ("struct_bytes", c_uint32),
        ("columns", c_uint32),
        ("requests", POINTER(Request)),
        ("bytes", c_void_p),
        ("dims", c_void_p),
        ("rank", c_int32),
        ("reserved", c_uint32),
    )


class RecordsInfo(Shaped):
    """``pyf_records_info``: what the header of a frame of records says."""

    _fields_ = (
        ("struct_bytes", c_uint32),
        ("columns", c_uint32),
        ("record_bytes", c_uint64),
        ("record_count", c_uint64),
        ("value_bytes", c_uint64),
        ("frame_bytes", c_uint64),
        ("rank", c_int32),
        ("reserved", c_uint32),
        ("dims", c_uint64 * MAX_RANK),
    )


class Column(ctypes.Structure):
    """``pyf_column``: where the frame of a column of records is."""

    _fields_ = (("offset", c_uint64), ("frame_bytes", c_uint64), ("bytes", c_uint32), ("has_values", c_uint32))


class ChunkList(ctypes.Structure):
    """``pyf_chunk_list``: the arrays that ``pyf_list_chunk`` fills."""

    _fields_ = (
        ("capacity", c_uint64),
        ("count", c_uint64),
        ("rank", c_uint64),
        ("origins", c_void_p),
        ("offsets", c_void_p),
        ("sizes", c_void_p),
        ("masks", c_void_p),
    )


class Range(ctypes.Structure):
    """``pyf_range``: bytes of a file, the address where they go, and how many were read."""

    _fields_ = (("offset", c_uint64), ("bytes", c_uint64), ("to", c_void_p), ("done", c_uint64))


class Grid(ctypes.Structure):
    """``pyf_grid``: chunks of an array in host memory."""

    _fields_ = (
        ("values", c_void_p),
        ("strides", c_void_p),
        ("extents", c_void_p),
        ("begin", c_void_p),
        ("chunk", c_void_p),
        ("rank", c_uint32),
        ("item_bytes", c_uint32),
    )


class ProgressiveSummary(ctypes.Structure):
    """``pyf_progressive``: what must be known of a progressive frame before its table is read."""

    _fields_ = (("prefix_bytes", c_uint64), ("segments", c_uint32), ("levels", c_uint32))


class ProgressivePart(ctypes.Structure):
    """``pyf_progressive_part``: a segment of a progressive frame."""

    _fields_ = (("offset", c_uint64), ("size", c_uint64), ("error", c_double), ("level", c_uint32), ("unit", c_uint32))


class ProgressiveChoice(ctypes.Structure):
    """``pyf_progressive_choice``: the segments of a frame that a tolerance needs."""

    _fields_ = (
        ("end", c_uint64),
        ("error", c_double),
        ("chosen", c_uint32),
        ("segments", c_uint32),
        ("levels", c_uint32),
        ("known", c_uint32),
    )


class CudaFrame(ctypes.Structure):
    """``pyf_cuda_frame``: addresses of a copy of the header (host), of the frame and of its values (device)."""

    _fields_ = (
        ("header", c_void_p),
        ("header_bytes", c_size_t),
        ("frame", c_void_p),
        ("frame_bytes", c_size_t),
        ("values", c_void_p),
    )


class CudaChannel(ctypes.Structure):
    """``pyf_cuda_channel``: a stream and the memory of one batch of chunks."""

    _fields_ = (
        ("device", c_int32),
        ("reserved", c_int32),
        ("stream", c_void_p),
        ("values", c_void_p),
        ("frames", c_void_p),
        ("notes", c_void_p),
        ("host_values", c_void_p),
        ("host_frames", c_void_p),
        ("host_notes", c_void_p),
        ("host_value_bytes", c_size_t),
        ("host_frame_bytes", c_size_t),
    )


class CudaChunks(ctypes.Structure):
    """``pyf_cuda_chunks``: chunks in host memory, contiguous or of a grid."""

    _fields_ = (
        ("values", c_void_p),
        ("grid", POINTER(Grid)),
        ("grid_first", c_size_t),
        ("padding", c_void_p),
        ("chunk_bytes", c_size_t),
        ("count", c_size_t),
        ("batch", c_size_t),
        ("state", c_void_p),
        ("seconds", c_double),
    )


#: HDF5's H5Dwrite_chunk
WRITE_CHUNK = CFUNCTYPE(c_int, c_int64, c_int64, c_uint32, c_void_p, c_size_t, c_void_p)


class ChunkWriter(ctypes.Structure):
    """``pyf_chunk_writer``: how and where HDF5 writes chunks."""

    _fields_ = (("write", WRITE_CHUNK), ("dataset", c_int64), ("origins", c_void_p), ("rank", c_uint64))


#: by the name in the header
STRUCTURES: dict[str, type[ctypes.Structure]] = {
    "pyf_request": Request,
    "pyf_info": Info,
    "pyf_records": Records,
    "pyf_records_info": RecordsInfo,
    "pyf_column": Column,
    "pyf_chunk_list": ChunkList,
    "pyf_range": Range,
    "pyf_grid": Grid,
    "pyf_progressive": ProgressiveSummary,
    "pyf_progressive_part": ProgressivePart,
    "pyf_progressive_choice": ProgressiveChoice,
    "pyf_cuda_frame": CudaFrame,
    "pyf_cuda_channel": CudaChannel,
    "pyf_cuda_chunks": CudaChunks,
    "pyf_chunk_writer": ChunkWriter,
}

# element types of NumPy arrays of these structures
RANGE: np.dtype[Any] = np.dtype(Range)
COLUMN: np.dtype[Any] = np.dtype(Column)
PROGRESSIVE_PART: np.dtype[Any] = np.dtype(ProgressivePart)
PROGRESSIVE_CHOICE: np.dtype[Any] = np.dtype(ProgressiveChoice)
CUDA_FRAME: np.dtype[Any] = np.dtype(CudaFrame)
CUDA_CHANNEL: np.dtype[Any] = np.dtype(CudaChannel)

_REQUEST, _GRID, _SIZE_OUT = POINTER(Request), POINTER(Grid), POINTER(c_size_t)
_DOUBLE_OUT, _WORDS = POINTER(c_double), POINTER(c_uint)
_RECORDS = POINTER(Records)
_CHUNKS, _WRITER = POINTER(CudaChunks), POINTER(ChunkWriter)

#: result and arguments of each function
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "pyf_abi_version": (c_uint32, ()),
    "pyf_version": (c_char_p, ()),
    "pyf_last_error": (c_char_p, ()),
    # frames of arrays in host memory
    "pyf_check_request": (c_int, (_REQUEST,)),
    "pyf_max_frame_bytes": (c_size_t, (_REQUEST,)),
    "pyf_encode": (c_int, (_REQUEST, c_void_p, c_size_t, c_void_p, c_size_t, _SIZE_OUT)),
    "pyf_encode_updated": (
        c_int,
        (_REQUEST, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, _SIZE_OUT),
    ),
    "pyf_frame_info": (c_int, (c_void_p, c_size_t, POINTER(Info))),
    "pyf_decode": (c_int, (c_void_p, c_size_t, c_void_p, c_size_t)),
    "pyf_decode_range": (c_int, (c_void_p, c_size_t, c_uint64, c_uint64, c_void_p, c_size_t)),
    "pyf_value_range": (c_int, (_REQUEST, c_void_p, c_size_t, _DOUBLE_OUT, _DOUBLE_OUT, POINTER(c_int))),
    "pyf_particle_order": (c_int, (_REQUEST, c_void_p, c_size_t, c_void_p)),
    # records (compound types)
    "pyf_max_records_bytes": (c_size_t, (_RECORDS,)),
    "pyf_encode_records": (
        c_int,
        (_RECORDS, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, _SIZE_OUT),
    ),
    "pyf_read_records": (c_int, (c_void_p, c_size_t, POINTER(RecordsInfo), c_void_p, c_size_t)),
    "pyf_decode_records": (c_int, (c_void_p, c_size_t, c_void_p, c_size_t)),
    # chunks of files
    "pyf_list_chunk": (c_int, (c_void_p, c_uint, c_uint64, c_uint64, c_void_p)),
    "pyf_read_ranges": (c_int, (c_int, c_void_p, c_size_t, c_int)),
    "pyf_read_grid": (c_int, (_GRID, c_uint8, c_int, c_void_p, c_size_t, c_int)),
    "pyf_encode_grid": (c_int, (_REQUEST, _GRID, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_int)),
    "pyf_write_grid": (
        c_int,
        (_REQUEST, _GRID, c_void_p, _WRITER, c_size_t, c_size_t, c_int, c_double, POINTER(c_uint64)),
    ),
    # parts of progressive frames
    "pyf_progressive_summary": (c_int, (c_void_p, c_size_t, POINTER(ProgressiveSummary))),
    "pyf_progressive_parts": (c_int, (c_void_p, c_size_t, c_uint32, c_void_p, c_uint32)),
    "pyf_progressive_decode": (c_int, (c_void_p, c_size_t, c_uint32, c_uint32, c_void_p, c_size_t)),
    "pyf_progressive_choose": (c_int, (c_int, c_void_p, c_size_t, c_size_t, _REQUEST, c_double, c_void_p, c_int)),
    # settings, the filter
    "pyf_configure": (c_int, (c_char_p, c_char_p)),
    "pyf_config": (c_char_p, (c_char_p,)),
    "pyf_register": (c_int, (c_char_p,)),
    "pyf_parse_cd_values": (c_int, (_WORDS, c_size_t, _REQUEST)),
    # devices
    "pyf_cuda_pack": (c_int, (c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p)),
    "pyf_cuda_encode": (c_int, (_REQUEST, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p)),
    "pyf_cuda_decode": (c_int, (c_void_p, c_size_t, c_uint64, c_uint64, c_size_t, c_void_p, c_void_p)),
    "pyf_cuda_fault": (c_int, (c_uint32,)),
    "pyf_cuda_progressive_decode": (c_int, (c_void_p, c_size_t, c_uint32, c_uint32, c_void_p, c_size_t, c_void_p)),
    "pyf_cuda_write_chunks": (c_int, (_REQUEST, _CHUNKS, c_void_p, c_size_t, c_size_t, _WRITER)),
    "pyf_cuda_read_chunks": (c_int, (c_uint8, _CHUNKS, c_void_p, c_size_t, c_int, c_void_p, c_void_p, c_uint32)),
    "pyf_cuda_particle_order": (c_int, (_REQUEST, c_void_p, c_size_t, c_void_p, c_void_p)),
}


def declare(library: ctypes.CDLL) -> None:
    """Set the prototypes of all functions of a loaded library.

    Raises
    ------
    AttributeError
        If it lacks one of them.
    """
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
