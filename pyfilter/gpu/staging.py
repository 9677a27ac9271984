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

#: values of a batch of chunks, on the device; chunks that are larger make a batch each
BATCH_BYTES = 128 << 20
#: smaller ones take longer to launch than to move
LEAST_BATCH_BYTES = 8 << 20
#: of a batch, however small they are
MAX_CHUNKS = 32768
CHANNELS = 3
#: where frames begin in a buffer of many
ALIGNMENT = 16

# idle streams by device: CuPy has a pool of memory for each stream, so streams are made once and used again
_idle: dict[int, list[Any]] = {}
_idle_lock = threading.Lock()


class Channel:
    """One stream of one device and its buffers, which grow and are used again from batch to batch.

    To be used where its device, ``number``, is the current one.
    """

    def __init__(self, cupy: Any, number: int, home: Any, stream: Any) -> None:
        self.cupy = cupy
        self.number = number
        self.stream = stream
        self._home = home
        self._device: dict[str, Any] = {}
        self._pinned: dict[str, NDArray[np.uint8]] = {}

    def device_bytes(self, name: str, size: int) -> Any:
        """Return ``size`` bytes of device memory; what is in them is kept until they have to grow."""
        buffer = self._device.get(name)
        if buffer is None or buffer.nbytes < size:
            self._device.pop(name, None)
            # from the pool of the caller's stream: memory from the pool of ours could not be used by other code later
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
        """Free the buffers once the stream is done with them."""
        self.stream.synchronize()
        self._device.clear()
        self._pinned.clear()

    def wait(self) -> None:
        """Wait for all that is on the stream, without keeping a core busy."""
        done = self.cupy.cuda.Event(block=True, disable_timing=True)
        self.stream.record(done)
        done.synchronize()

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


def pinned_bytes(cupy: Any, size: int) -> NDArray[np.uint8]:
    """Return at least ``size`` bytes of pinned host memory, which every device can use.

    Their number is a power of two: making such memory is slow, and CuPy's pool of it knows exact sizes only.
    """
    whole = 1 << max(size - 1, 1).bit_length()
    return np.frombuffer(cupy.cuda.alloc_pinned_memory(whole), dtype=np.uint8, count=whole)


def _rounded(size: int) -> int:
    """Return the size rounded up by at most an eighth, so that buffers of a pool fit again."""
    step = max(1 << max(size.bit_length() - 4, 0), 4096)
    return max(-(-size // step), 1) * step


def starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each of some frames begins in a buffer of all, and where the last ends."""
    found = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(-(-sizes // ALIGNMENT) * ALIGNMENT, out=found[1:])
    return found


def batch_bytes(chunk_bytes: int) -> int:
    """Return how much a batch of such chunks may have."""
    return min(BATCH_BYTES, MAX_CHUNKS * chunk_bytes)


def shared_batch_bytes(chunk_bytes: int, total_bytes: int, threads: int) -> int:
    """Return how much a batch may have where several threads share the work: each is to have a few."""
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
