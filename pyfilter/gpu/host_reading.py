# SPDX-License-Identifier: BSD-3-Clause
"""Datasets into host memory through devices: `pyfilter.read` with ``devices=`` comes here.

Frames are read into pinned memory: by the devices' threads from a file descriptor if possible, else by the calling
thread through HDF5. The next free device decodes them. Values go back through pinned memory into the result. As in
host_writing.py, neither array nor dataset need fit a device, and threads of the library do most chunks (channels.py).
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter._chunks import layout, transfer
from pyfilter._chunks.stored import StoredChunks
from pyfilter.errors import NoMemory, Unsupported
from pyfilter.gpu import arrays, channels, host_memory, reading, staging
from pyfilter.gpu.device_threads import DeviceThreads
from pyfilter.gpu.fallback import Fallbacks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import h5py
    from numpy.typing import NDArray

    from pyfilter._chunks.layout import Region
    from pyfilter._chunks.pipeline import ChunkCodec
    from pyfilter.gpu.staging import Channel


def _pinned(cupy: Any, size: int) -> NDArray[np.uint8]:
    try:
        with arrays.device_errors():
            return staging.pinned_bytes(cupy, size)
    except NoMemory:  # pageable memory works too, more slowly
        return np.empty(max(size, 1), dtype=np.uint8)


def _frame_buffer(channel: Channel, size: int) -> NDArray[np.uint8]:
    """Return a channel's buffer for frames, pageable if there is no pinned memory."""
    try:
        with arrays.device_errors():
            return channel.pinned_bytes("stored", size)
    except NoMemory:
        return np.empty(size, dtype=np.uint8)


class _PinnedBuffers:
    """Pinned buffers for frames, reused from job to job; only the calling thread takes them and gives them back."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._free: list[NDArray[np.uint8]] = []
        self._lent: dict[int, NDArray[np.uint8]] = {}

    def take(self, size: int) -> NDArray[np.uint8]:
        self._free.sort(key=lambda buffer: buffer.nbytes)
        fitting = next((i for i, buffer in enumerate(self._free) if buffer.nbytes >= size), None)
        if fitting is not None:
            buffer = self._free.pop(fitting)
        else:
            del self._free[-1:]  # the largest is too small: a larger one replaces it
            buffer = _pinned(self._cupy, size)
        self._lent[buffer.ctypes.data] = buffer
        return buffer[:size]

    def give_back(self, part: NDArray[np.uint8]) -> None:
        self._free.append(self._lent.pop(part.ctypes.data))


@arrays.device_errors()
def read(dataset: h5py.Dataset, how: ChunkCodec, region: Region, out: NDArray[Any], devices: Sequence[int]) -> None:
    """Decompress the part ``region`` of the dataset into ``out``, an array of the region's shape of any type.

    Parameters
    ----------
    dataset
        What to read.
    how
        From `pipeline.chunk_codec`.
    region
        A box that is not empty.
    out
        Where to put the values.
    devices
        Numbers of devices.

    Raises
    ------
    FrameError
        If a chunk is damaged; the values in ``out`` are then undefined.
    DeviceError
        If CUDA fails on one of the devices.

    Warns
    -----
    RuntimeWarning
        If the CPU decoded chunks because a device had no memory for them.
    """
    cupy = arrays.require()
    shape = dataset.shape
    fallbacks = Fallbacks("decoded")
    pinned = out.dtype == how.dtype and host_memory.is_pinned(out)
    first = [part.start for part in region]

    def decoded(channel: Channel, stored: reading.StoredFrames) -> reading.StoredFrames:
        target = out[layout.shifted(stored.box, first)]
        if stored_chunks.descriptor is not None:
            stored.read(partial(_frame_buffer, channel))
        try:
            with arrays.device_errors():
                values = on_device(channel, stored, target)
        except (NoMemory, Unsupported) as error:
            fallbacks.take_over(channel, error)
            by_cpu(stored)
        else:
            if values is not target:
                copier.copy(target, values)
        return stored

    def on_device(channel: Channel, stored: reading.StoredFrames, target: NDArray[Any]) -> NDArray[Any]:
        size = target.size * how.dtype.itemsize
        there = channel.device_bytes("box", size)
        batch = reading.Batch(channel, how, stored)
        batch.decode(there.view(how.dtype).reshape(target.shape))
        direct = pinned and target.flags.c_contiguous
        values = target if direct else channel.pinned_bytes("box", size).view(how.dtype).reshape(target.shape)
        channel.to_host(values, there)
        channel.wait()
        batch.check()
        return values

    def by_cpu(stored: reading.StoredFrames) -> None:
        origins = layout.origins(shape, how.chunk, stored.box)
        for number, origin in enumerate(origins):
            data = None if number in stored.missing else stored.frames[number]
            transfer.place_chunk(how, (origin, data, int(number in stored.unfiltered)), shape, region, out)

    def jobs(threads: int) -> Iterator[reading.StoredFrames]:
        limit = staging.shared_batch_bytes(how.chunk_bytes, out.size * how.dtype.itemsize, threads)
        boxes = layout.batches(region, how.chunk, how.dtype.itemsize, limit)
        for box in channels.remaining(shape, region, how.chunk, done) if done.any() else boxes:
            stored = reading.StoredFrames(stored_chunks, box)
            if stored_chunks.descriptor is None:
                stored.read(buffers.take)
            yield stored

    count = 0
    buffers = _PinnedBuffers(cupy)
    with StoredChunks(dataset, how.chunk, region) as stored_chunks:
        done = channels.read(stored_chunks, how, shape, region, out, devices)
        if len(done) == math.prod(stored_chunks.grid) and done.all():
            return
        with (
            cupy.cuda.Device(devices[0]),
            host_memory.Copier(len(devices)) as copier,
            DeviceThreads(devices, decoded) as threads,
        ):
            for stored in threads.run(jobs(threads.most)):
                if stored_chunks.descriptor is None:
                    buffers.give_back(stored.frames.buffer)
                count += 1
    fallbacks.warn(count)
