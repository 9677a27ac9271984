# SPDX-License-Identifier: BSD-3-Clause
"""The calls of libh5pyfilter.so that take many chunks through several devices (filter/c_api.h).

One call does with threads of the library what Python's threads would wait for each other at: a batch's copies and
launches are some 40 calls, and each of them lets go of Python's lock and has to take it again.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import _native

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: ``pyf_cuda_lane``: addresses
LANE = np.dtype(
    [("device", "i4"), ("reserved", "i4")]
    + [(name, "u8") for name in ("stream", "values", "frames", "notes", "host_values", "host_frames", "host_notes")]
    + [("host_value_bytes", "u8"), ("host_frame_bytes", "u8")]
)
#: ``pyf_chunk_state``
WAITING, DONE, LEFT = 0, 1, 2
#: ``pyf_progressive_choice``
CHOICE = np.dtype(
    [("end", "u8"), ("error", "f8"), ("chosen", "u4"), ("segments", "u4"), ("levels", "u4"), ("known", "u4")]
)
# seconds after which a call begins no further batch, so that Python sees signals and others come to h5py's lock
_SECONDS = 0.5


class Chunks(ctypes.Structure):
    """``pyf_cuda_chunks``: chunks in host memory, from an address on or of a grid."""

    _fields_ = (
        ("values", ctypes.c_void_p),
        ("grid", ctypes.POINTER(_native.Grid)),
        ("grid_first", ctypes.c_size_t),
        ("padding", ctypes.c_void_p),
        ("chunk_bytes", ctypes.c_size_t),
        ("count", ctypes.c_size_t),
        ("batch", ctypes.c_size_t),
        ("state", ctypes.c_void_p),
        ("seconds", ctypes.c_double),
    )

    def __init__(
        self,
        values: int | tuple[_native.Grid, int, NDArray[Any]],
        chunk_bytes: int,
        batch: int,
        state: NDArray[np.uint8],
    ) -> None:
        self._kept = values
        counts = chunk_bytes, len(state), batch, state.ctypes.data, _SECONDS
        if isinstance(values, int):
            super().__init__(values, None, 0, None, *counts)
        else:
            grid, first, padding = values
            super().__init__(None, ctypes.pointer(grid), first, padding.ctypes.data, *counts)


class Writer(ctypes.Structure):
    """``pyf_chunk_writer``: how and where HDF5 writes chunks."""

    _fields_ = (
        ("write", ctypes.c_void_p),
        ("dataset", ctypes.c_int64),
        ("origins", ctypes.c_void_p),
        ("rank", ctypes.c_uint64),
    )


def write_chunks(
    request: _native.Request, chunks: Chunks, lanes: NDArray[Any], frame_stride: int, writer: Writer
) -> None:
    """Encode chunks on lanes, an array of `LANE`, and write them; ``chunks.state`` says which were."""
    _native.check(
        _native.library().pyf_cuda_write_chunks(
            ctypes.byref(request),
            ctypes.addressof(chunks),
            lanes.ctypes.data,
            len(lanes),
            frame_stride,
            ctypes.addressof(writer),
        )
    )


def read_chunks(
    dtype: int,
    chunks: Chunks,
    lanes: NDArray[Any],
    descriptor: int,
    ranges: NDArray[Any],
    segments: NDArray[Any] | None,
) -> None:
    """Read frames, an array of `_native.RANGE`, and decode them, or so many segments of each; see `write_chunks`."""
    _native.check(
        _native.library().pyf_cuda_read_chunks(
            dtype,
            ctypes.addressof(chunks),
            lanes.ctypes.data,
            len(lanes),
            descriptor,
            ranges.ctypes.data,
            None if segments is None else segments.ctypes.data,
            0,
        )
    )


def choose(
    descriptor: int, ranges: NDArray[Any], head_bytes: int, like: _native.Request, tolerance: float, threads: int
) -> NDArray[Any]:
    """Read the heads of progressive frames, and return as `CHOICE` what a tolerance needs of each."""
    choices = np.zeros(len(ranges), CHOICE)
    _native.check(
        _native.library().pyf_progressive_choose(
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
