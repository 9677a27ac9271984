# SPDX-License-Identifier: BSD-3-Clause
"""Channels: streams with buffers on the device and in pinned host memory. A few overlap copies, kernels and files.

For arrays on a device, one thread puts everything on the streams of three channels and waits for events. For arrays in
host memory, each channel has a thread of its own (device_threads.py). Only the calling thread calls HDF5.
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

#: bytes of values in a batch of chunks; a larger chunk is a batch of its own
BATCH_BYTES = 128 << 20
#: a smaller batch takes longer to launch than to copy
LEAST_BATCH_BYTES = 8 << 20
#: chunks in a batch, at most
MAX_CHUNKS = 32768
#: channels of a device, for arrays on the device
CHANNELS = 3
#: alignment of frames in a buffer of several
ALIGNMENT = 16

# idle streams of each device: CuPy keeps a memory pool for each stream, so streams are reused
_idle: dict[int, list[Any]] = {}
_idle_lock = threading.Lock()


class Channel:
    """One stream of one device and its buffers, which grow as needed and are reused from batch to batch.

    Its device, ``number``, must be the current device when it is used.
    """

    def __init__(self, cupy: Any, number: int, home: Any, stream: Any) -> None:
        self.cupy = cupy
        self.number = number
        self.stream = stream
        self._home = home
        self._device: dict[str, Any] = {}
        self._pinned: dict[str, NDArray[np.uint8]] = {}

    def device_bytes(self, name: str, size: int) -> Any:
        """Return ``size`` bytes of device memory; their contents are lost when the buffer grows."""
        buffer = self._device.get(name)
        if buffer is None or buffer.nbytes < size:
            self._device.pop(name, None)
            # from the pool of the caller's stream: other code could not reuse memory from the pool of our stream
            with self._home:
                buffer = self._empty(_rounded(size))
                self.stream.wait_event(self._home.record())
            self._device[name] = buffer
        return buffer[:size]

    def _empty(self, size: int) -> Any:
        try:
            return self.cupy.empty(size, dtype=np.uint8)
        except MemoryError:  # a pool with a limit does not free its unused blocks by itself
            self.cupy.get_default_memory_pool().free_all_blocks()
            return self.cupy.empty(size, dtype=np.uint8)

    def pinned_bytes(self, name: str, size: int) -> NDArray[np.uint8]:
        """Return ``size`` bytes of pinned host memory."""
        buffer = self._pinned.get(name)
        if buffer is None or buffer.nbytes < size:
            self._pinned.pop(name, None)
            buffer = self._pinned[name] = pinned_bytes(self.cupy, size)
        return buffer[:size]

    def drop(self) -> None:
        """Free the buffers after the stream's work is done."""
        self.stream.synchronize()
        self._device.clear()
        self._pinned.clear()

    def wait(self) -> None:
        """Wait for all work on the stream, without keeping a core busy."""
        done = self.cupy.cuda.Event(block=True, disable_timing=True)
        self.stream.record(done)
        done.synchronize()

    def to_device(self, target: Any, source: NDArray[Any]) -> None:
        """Put a copy from pinned host memory to the device on the stream."""
        runtime = self.cupy.cuda.runtime
        runtime.memcpyAsync(
            target.data.ptr, source.ctypes.data, source.nbytes, runtime.memcpyHostToDevice, self.stream.ptr
        )

    def to_host(self, target: NDArray[Any], source: Any) -> None:
        """Put a copy from the device to pinned host memory on the stream."""
        runtime = self.cupy.cuda.runtime
        runtime.memcpyAsync(
            target.ctypes.data, source.data.ptr, target.nbytes, runtime.memcpyDeviceToHost, self.stream.ptr
        )


def pinned_bytes(cupy: Any, size: int) -> NDArray[np.uint8]:
    """Return at least ``size`` bytes of pinned host memory, which every device can use.

    The size is rounded up to a power of two: allocating pinned memory is slow, and CuPy's pool reuses exact sizes only.
    """
    whole = 1 << max(size - 1, 1).bit_length()
    return np.frombuffer(cupy.cuda.alloc_pinned_memory(whole), dtype=np.uint8, count=whole)


def _rounded(size: int) -> int:
    """Return the size rounded up by at most 1/8, so that the pool can reuse buffers."""
    step = max(1 << max(size.bit_length() - 4, 0), 4096)
    return max(-(-size // step), 1) * step


def starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the offset of each frame in a buffer of all frames, and the end of the last."""
    found = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(-(-sizes // ALIGNMENT) * ALIGNMENT, out=found[1:])
    return found


def batch_bytes(chunk_bytes: int) -> int:
    """Return the most bytes of values in a batch of chunks of this size."""
    return min(BATCH_BYTES, MAX_CHUNKS * chunk_bytes)


def shared_batch_bytes(chunk_bytes: int, total_bytes: int, threads: int) -> int:
    """Return the batch size for work that several threads share: each thread should get a few batches."""
    return min(batch_bytes(chunk_bytes), max(total_bytes // (2 * threads), LEAST_BATCH_BYTES))


@contextmanager
def open_channels(count: int = CHANNELS) -> Iterator[list[Channel]]:
    """Give channels on the current device.

    Their work begins after the work on the current stream. All of it is done when the block ends.
    """
    cupy = arrays.import_cupy()
    number = int(cupy.cuda.Device().id)
    home = cupy.cuda.get_current_stream()
    streams = _borrow(cupy, number, count)
    try:
        channels = [Channel(cupy, number, home, stream) for stream in streams]
        begin = home.record()
        for channel in channels:
            channel.stream.wait_event(begin)
        yield channels
    finally:
        try:
            for stream in streams:
                stream.synchronize()
        finally:
            with _idle_lock:
                _idle.setdefault(number, []).extend(streams)


def _borrow(cupy: Any, number: int, count: int) -> list[Any]:
    """Return idle streams of the current device."""
    with _idle_lock:
        idle = _idle.setdefault(number, [])
        streams = [idle.pop() for _ in range(min(count, len(idle)))]
    return streams + [cupy.cuda.Stream(non_blocking=True) for _ in range(count - len(streams))]
