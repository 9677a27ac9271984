# SPDX-License-Identifier: BSD-3-Clause
"""Lanes: streams with buffers on the device and in pinned host memory. Three overlap copies, kernels and files.

Everything is put on the lanes' streams by one thread and waited for by events, so that HDF5 is entered by the calling
thread alone while the device works on the batches before and behind.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter.gpu import arrays

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

#: values of a batch of chunks, on the device; chunks that are larger make a batch each
BATCH_BYTES = 128 << 20
#: of a batch, however small they are
MAX_CHUNKS = 32768
LANES = 3
#: where frames begin in a buffer of many
ALIGNMENT = 16

_streams = threading.local()


class Lane:
    """One stream and its buffers, which grow and are used again from batch to batch."""

    def __init__(self, cupy: Any, home: Any, stream: Any) -> None:
        self.cupy = cupy
        self.stream = stream
        self._home = home
        self._device: dict[str, Any] = {}
        self._pinned: dict[str, NDArray[np.uint8]] = {}

    def device_bytes(self, name: str, size: int) -> Any:
        """Return ``size`` bytes of device memory; what is in them is kept until they have to grow."""
        buffer = self._device.get(name)
        if buffer is None or buffer.nbytes < size:
            self._device.pop(name, None)
            # from the caller's part of CuPy's pool: memory of a stream of ours could be used by nobody else later
            with self._home:
                buffer = self.cupy.empty(_rounded(size), dtype=np.uint8)
                self.stream.wait_event(self._home.record())
            self._device[name] = buffer
        return buffer[:size]

    def pinned_bytes(self, name: str, size: int) -> NDArray[np.uint8]:
        """Return ``size`` bytes of pinned host memory."""
        buffer = self._pinned.get(name)
        if buffer is None or buffer.nbytes < size:
            self._pinned.pop(name, None)
            # a power of two: making such memory is slow, and CuPy's pool of it knows exact sizes only
            whole = 1 << max(size - 1, 1).bit_length()
            memory = self.cupy.cuda.alloc_pinned_memory(whole)
            buffer = np.frombuffer(memory, dtype=np.uint8, count=whole)
            self._pinned[name] = buffer
        return buffer[:size]

    def to_device(self, target: Any, source: NDArray[Any]) -> None:
        """Put a copy of pinned host memory to the device on the stream."""
        runtime = self.cupy.cuda.runtime
        runtime.memcpyAsync(
            target.data.ptr, source.ctypes.data, source.nbytes, runtime.memcpyHostToDevice, self.stream.ptr
        )

    def to_host(self, target: NDArray[Any], source: Any) -> None:
        """Put a copy of device memory to pinned host memory on the stream."""
        runtime = self.cupy.cuda.runtime
        runtime.memcpyAsync(
            target.ctypes.data, source.data.ptr, target.nbytes, runtime.memcpyDeviceToHost, self.stream.ptr
        )


def _rounded(size: int) -> int:
    """Return the size rounded up by at most an eighth, so that buffers of a pool fit again."""
    step = max(1 << max(size.bit_length() - 4, 0), 4096)
    return max(-(-size // step), 1) * step


def aligned(size: int) -> int:
    """Return the size rounded up to where another frame may begin."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def batch_bytes(chunk_bytes: int) -> int:
    """Return how much a batch of such chunks may have."""
    return min(BATCH_BYTES, MAX_CHUNKS * chunk_bytes)


@contextmanager
def open_lanes() -> Iterator[list[Lane]]:
    """Give lanes on the current device that begin behind what is on the current stream; all is done when they end."""
    cupy = arrays.import_cupy()
    home = cupy.cuda.get_current_stream()
    lanes = [Lane(cupy, home, stream) for stream in _lane_streams(cupy)]
    begin = home.record()
    for lane in lanes:
        lane.stream.wait_event(begin)
    try:
        yield lanes
    finally:
        for lane in lanes:
            lane.stream.synchronize()


def _lane_streams(cupy: Any) -> list[Any]:
    """Return this thread's streams of the current device, made once: CuPy has a pool of memory for each stream."""
    by_device: dict[int, list[Any]] | None = getattr(_streams, "by_device", None)
    if by_device is None:
        by_device = _streams.by_device = {}
    number = int(cupy.cuda.Device().id)
    if number not in by_device:
        by_device[number] = [cupy.cuda.Stream(non_blocking=True) for _ in range(LANES)]
    return by_device[number]
