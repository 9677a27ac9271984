# SPDX-License-Identifier: BSD-3-Clause
"""Values in host memory into datasets through devices: `pyfilter.write` with ``devices=`` comes here.

Batches of chunks are copied to pinned memory, then to the next free device, which encodes them; frames are written as
they come back. So neither the array nor the dataset need fit the devices. Threads of the library do most chunks
(channels.py), threads of Python the rest (device_threads.py).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyfilter._chunks import layout, transfer
from pyfilter._lib import cuda
from pyfilter.errors import NoMemory
from pyfilter.gpu import arrays, channels, host_memory, staging, writing
from pyfilter.gpu.device_threads import DeviceThreads
from pyfilter.gpu.fallback import Fallbacks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import h5py
    from numpy.typing import NDArray

    from pyfilter._chunks.layout import Region
    from pyfilter._chunks.pipeline import ChunkCodec
    from pyfilter._chunks.transfer import Source
    from pyfilter.gpu.staging import Channel


class _Job(NamedTuple):
    """The values of a box."""

    box: Region
    values: NDArray[Any]


class _CpuBatch:
    """A batch that the CPU encodes."""

    def __init__(self, how: ChunkCodec, job: _Job, shape: tuple[int, ...]) -> None:
        self._how = how
        first = [part.start for part in job.box]
        self._chunks = [
            (origin, job.values[layout.shifted(layout.box(origin, how.chunk, shape), first)])
            for origin in layout.origins(shape, how.chunk, job.box)
        ]
        self._frames = [transfer.encode_chunk(how, values) for _, values in self._chunks]

    def store(self, dataset: h5py.Dataset) -> None:
        """Write the frames."""
        for (origin, values), frame in zip(self._chunks, self._frames, strict=True):
            transfer.store_chunk(dataset, self._how, origin, frame, partial(transfer.padded, self._how, values))


@arrays.device_errors()
def write(dataset: h5py.Dataset, how: ChunkCodec, source: Source, devices: Sequence[int]) -> None:
    """Compress all of ``source``, which has the dataset's shape and element type, into the dataset's chunks.

    Parameters
    ----------
    dataset
        Where to write.
    how
        From `pipeline.chunk_codec`. If it has no CUDA kernels, the CPU's threads encode.
    source
        The values, of either byte order; read box by box if they are not in memory.
    devices
        Numbers of devices.

    Raises
    ------
    DeviceError
        If CUDA fails on one of them. Chunks written before stay.

    Warns
    -----
    RuntimeWarning
        If the CPU encoded chunks because a device had no memory for them.
    """
    if not cuda.has_kernels(how.request):
        transfer.write_chunks(dataset, how, source)
        return
    shape = dataset.shape
    whole = tuple(slice(0, extent) for extent in shape)
    done = channels.write(dataset, how, source, devices)
    if len(done) == layout.count(shape, how.chunk) and done.all():
        return
    fallbacks = Fallbacks("encoded")
    pinned = host_memory.is_pinned(source)

    def encoded(channel: Channel, job: _Job) -> writing.Batch | _CpuBatch:
        try:
            with arrays.device_errors():
                return on_device(channel, job)
        except NoMemory as error:
            fallbacks.take_over(channel, error)
        return _CpuBatch(how, job, shape)

    def on_device(channel: Channel, job: _Job) -> writing.Batch:
        batch = writing.Batch(channel, how, job.box, shape)
        size = job.values.size * how.dtype.itemsize
        if pinned and job.values.flags.c_contiguous and job.values.dtype == how.dtype:
            staged = job.values.reshape(-1).view(np.uint8)
        else:
            staged = channel.pinned_bytes("box", size)
            copier.copy(staged.view(how.dtype).reshape(job.values.shape), job.values)
        there = channel.device_bytes("box", size)
        channel.to_device(there, staged)
        batch.encode(there.view(how.dtype).reshape(job.values.shape))
        channel.wait()
        batch.fetch()
        channel.wait()
        return batch

    def jobs(threads: int) -> Iterator[_Job]:
        limit = staging.shared_batch_bytes(how.chunk_bytes, dataset.size * how.dtype.itemsize, threads)
        boxes = layout.batches(whole, how.chunk, how.dtype.itemsize, limit)
        for box in channels.remaining(shape, whole, how.chunk, done) if done.any() else boxes:
            yield _Job(box, np.asarray(source[box]))

    count = 0
    with host_memory.Copier(len(devices)) as copier, DeviceThreads(devices, encoded, held=True) as threads:
        for batch in threads.run(jobs(threads.most)):
            batch.store(dataset)
            count += 1
    fallbacks.warn(count)
