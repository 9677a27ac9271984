# SPDX-License-Identifier: BSD-3-Clause
"""The calls of libh5pyfilter.so that take many chunks through several devices (filter/c_api.h).

Threads of the library do a batch without the GIL. Threads of Python would wait for it at each of the batch's copies and
launches, some 40 calls.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from pyfilter._lib import abi, library

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pyfilter._lib.host import Grid

# seconds after which a call begins no further batch, so that Python handles signals and other threads get h5py's lock
_SECONDS = 0.5


class Chunks(abi.CudaChunks):
    """``pyf_cuda_chunks``: chunks in host memory, from an address on or of a grid."""

    def __init__(
        self,
        values: int | tuple[Grid, int, NDArray[Any]],
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
            super().__init__(None, ctypes.POINTER(abi.Grid)(grid), first, padding.ctypes.data, *counts)


def write_chunks(
    request: abi.Request, chunks: Chunks, channels: NDArray[Any], frame_stride: int, writer: abi.ChunkWriter
) -> None:
    """Encode chunks on channels (an array of `abi.CUDA_CHANNEL`) and write them; sets ``chunks.state`` of each."""
    library.check(
        library.load().pyf_cuda_write_chunks(
            ctypes.byref(request),
            ctypes.byref(chunks),
            channels.ctypes.data,
            len(channels),
            frame_stride,
            ctypes.byref(writer),
        )
    )


def read_chunks(
    dtype: int,
    chunks: Chunks,
    channels: NDArray[Any],
    descriptor: int,
    ranges: NDArray[Any],
    segments: NDArray[Any] | None,
) -> None:
    """Read frames, an array of `abi.RANGE`, and decode them, or their first ``segments``; see `write_chunks`."""
    library.check(
        library.load().pyf_cuda_read_chunks(
            dtype,
            ctypes.byref(chunks),
            channels.ctypes.data,
            len(channels),
            descriptor,
            ranges.ctypes.data,
            None if segments is None else segments.ctypes.data,
            0,
        )
    )
