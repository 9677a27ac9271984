# SPDX-License-Identifier: BSD-3-Clause
"""The CUDA functions of libh5pyfilter.so (filter/c_api.h). Addresses and streams are integers, as CuPy gives them.

All work on the current device, put their work on a stream and return; the caller keeps the memory alive until that
work is done.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from pyfilter import errors
from pyfilter._lib import abi, library

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: a header is never longer
MAX_HEADER_BYTES = 312


def require() -> None:
    """Raise DeviceError, with the library's reason, where CUDA cannot be used here and now.

    Asking initialises CUDA.
    """
    faults = ctypes.c_uint32(0)  # a batch of no frames: nothing is written
    library.check(library.load().pyf_cuda_decode(None, 0, 0, 0, 0, ctypes.byref(faults), None))


def device_count() -> int:
    """Return the number of devices that can be used, 0 where there are none or the CUDA library is missing."""
    return int(library.config("cuda_devices") or 0)


def encode(
    request: abi.Request,
    count: int,
    values: int,
    value_stride: int,
    frames: int,
    frame_stride: int,
    frame_bytes: int,
    stream: int,
) -> None:
    """Encode ``count`` chunks in device memory, one every ``value_stride`` bytes, to frames every ``frame_stride``.

    ``frame_bytes`` is the address of ``count`` unsigned 64-bit integers (device) for the sizes of the frames.
    """
    library.check(
        library.load().pyf_cuda_encode(
            ctypes.byref(request),
            count,
            values or None,
            value_stride,
            frames,
            frame_stride,
            frame_bytes,
            stream or None,
        )
    )


def pack(slots: int, slot_bytes: int, sizes: int, ends: int, count: int, packed: int, stream: int) -> None:
    """Move ``count`` frames from slots of ``slot_bytes`` bytes to where they end before ``packed`` + ends.

    All are addresses of device memory; ``sizes`` and ``ends`` hold unsigned 64-bit integers.
    """
    library.check(library.load().pyf_cuda_pack(slots, slot_bytes, sizes, ends, count, packed, stream or None))


def has_kernels(request: abi.Request) -> bool:
    """Return whether devices can encode this; where not, the CPU can."""
    anywhere = 256  # a batch of no chunks: nothing is written
    try:
        encode(request, 0, anywhere, 0, anywhere, 0, anywhere, 0)
    except errors.Unsupported:
        return False
    return True


def decode(frames: NDArray[Any], start: int, stop: int, value_bytes: int, faults: int, stream: int) -> None:
    """Decode the values ``start`` to ``stop`` of frames of one shape and element type.

    ``frames`` has the element type `abi.CUDA_FRAME`; ``faults`` is the address of as many unsigned 32-bit integers
    (device).
    """
    decode_at(frames.ctypes.data, len(frames), start, stop, value_bytes, faults, stream)


def decode_at(frames: int, count: int, start: int, stop: int, value_bytes: int, faults: int, stream: int) -> None:
    """Do the same for ``count`` frames at an address; ``faults`` may be in pinned host memory."""
    library.check(library.load().pyf_cuda_decode(frames, count, start, stop, value_bytes, faults, stream or None))


def particle_order(request: abi.Request, values: int, value_bytes: int, particles: int, stream: int) -> None:
    """Write the row that comes to each place of sorted positions to ``particles``: 32-bit integers on the device."""
    library.check(
        library.load().pyf_cuda_particle_order(
            ctypes.byref(request), values or None, value_bytes, particles, stream or None
        )
    )


def check_fault(fault: int) -> None:
    """Raise CorruptFrame for a fault word that `decode` left, nothing for 0."""
    library.check(library.load().pyf_cuda_fault(fault))


def progressive_decode(
    frame: NDArray[np.uint8], segments: int, level: int, values: int, nbytes: int, stream: int
) -> None:
    """Decode the first segments of a progressive frame in host memory to ``nbytes`` at ``values`` (device). Waits."""
    library.check(
        library.load().pyf_cuda_progressive_decode(
            frame.ctypes.data, frame.nbytes, segments, level, values, nbytes, stream or None
        )
    )
