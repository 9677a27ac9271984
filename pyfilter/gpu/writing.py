# SPDX-License-Identifier: BSD-3-Clause
"""Device arrays into datasets: `pyfilter.write` of a device array comes here.

Batches of chunks are made contiguous and encoded on the device. Only their frames are copied to the host, and written
by HDF5's direct chunk calls. While one batch is written, the next is copied and the one after that is encoded.
"""

from __future__ import annotations

from collections import deque
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import dtypes
from pyfilter._chunks import layout, transfer
from pyfilter._chunks.stored import Frames
from pyfilter._lib import cuda, host
from pyfilter.errors import InternalError
from pyfilter.gpu import arrays, staging, tiling

if TYPE_CHECKING:
    import h5py
    from numpy.typing import NDArray

    from pyfilter._chunks.layout import Region
    from pyfilter._chunks.pipeline import ChunkCodec
    from pyfilter.gpu.staging import Channel

#: up to so many frames of a batch are copied one by one; more are packed first, which is faster
FEW = 16


class Batch:
    """A box of chunks to be written: call `encode`, `fetch`, `store`; calls for other batches may come between."""

    def __init__(self, channel: Channel, how: ChunkCodec, box: Region, shape: tuple[int, ...]) -> None:
        self.channel = channel
        self.how = how
        self.box = box
        self.origins = list(layout.origins(shape, how.chunk, box))
        self.count = len(self.origins)
        self.slot_bytes = -(-host.max_frame_bytes(how.request) // 256) * 256

    def encode(self, values: Any) -> None:
        """Put gathering and encoding on the stream; ``values`` are the values of the box, on the channel's device."""
        channel, how, cupy = self.channel, self.how, self.channel.cupy
        with channel.stream:
            self.stack = self._stack(values)
            slots = channel.device_bytes("slots", self.count * self.slot_bytes)
            sizes = channel.device_bytes("sizes", 8 * self.count).view(np.uint64)
            cuda.encode(
                how.request,
                self.count,
                self.stack.data.ptr,
                how.chunk_bytes,
                slots.data.ptr,
                self.slot_bytes,
                sizes.data.ptr,
                channel.stream.ptr,
            )
            self.slots, self.packed = slots, None
            if self.count > FEW:
                self.packed = channel.device_bytes("packed", self.count * self.slot_bytes)
                self.ends = cupy.cumsum((sizes + np.uint64(15)) & np.uint64(0xFFFFFFFFFFFFFFF0), dtype=np.uint64)
                cuda.pack(
                    slots.data.ptr,
                    self.slot_bytes,
                    sizes.data.ptr,
                    self.ends.data.ptr,  # kept: the kernel reads it later
                    self.count,
                    self.packed.data.ptr,
                    channel.stream.ptr,
                )
            self.sizes = channel.pinned_bytes("sizes", 8 * self.count).view(np.uint64)
            channel.to_host(self.sizes, sizes)
            self.encoded = channel.stream.record()

    def _stack(self, values: Any) -> Any:
        """Return the chunks of the box, contiguous; points outside of the dataset are padded as HDF5 does."""
        found = tiling.same_memory(values, self.box, self.how.chunk)
        if found is not None:
            return found
        buffer = self.channel.device_bytes("values", self.count * self.how.chunk_bytes)
        stack = buffer.view(self.how.dtype).reshape((self.count, *self.how.chunk))
        if values.size != stack.size:
            arrays.fill_bits(stack, self.how.padding)
        tiling.gather(values, self.box, self.how.chunk, stack)
        return stack

    def fetch(self) -> None:
        """Wait for the sizes and put the copy of the frames on the stream."""
        self.encoded.synchronize()
        channel = self.channel
        sizes = self.sizes.astype(np.int64)
        if int(sizes.max()) > self.slot_bytes:
            message = f"the device reports a frame of {sizes.max()} bytes in a slot of {self.slot_bytes}"
            raise InternalError(message)
        starts = staging.starts(sizes)
        self.frames = Frames(channel.pinned_bytes("frames", int(starts[-1])), starts[:-1], sizes)
        with channel.stream:
            if self.packed is not None:
                channel.to_host(self.frames.buffer, self.packed)
            else:
                for number in range(self.count):
                    channel.to_host(self.frames[number], self.slots[number * self.slot_bytes :])
            self.fetched = channel.stream.record()

    def store(self, dataset: h5py.Dataset) -> None:
        """Wait for the frames and write them."""
        self.fetched.synchronize()
        transfer.store_chunks(dataset, self.how, self.origins, self.frames, self._chunk)

    def _chunk(self, number: int) -> NDArray[Any]:
        """Return the values of a chunk."""
        with self.channel.cupy.cuda.Device(self.channel.number), self.channel.stream:
            values: NDArray[Any] = arrays.to_host(self.stack[number])
        return values


@arrays.device_errors()
def write(dataset: h5py.Dataset, how: ChunkCodec | None, source: Any) -> None:
    """Write all of a dataset that is not empty from a cupy.ndarray of its shape.

    Parameters
    ----------
    dataset
        The dataset to write.
    how
        From `pipeline.chunk_codec`. If it is None or of another element type, the values are copied to the host and
        written through HDF5, piece by piece.
    source
        The values.
    """
    cupy = arrays.require()
    with cupy.cuda.Device(source.device.id):
        if how is None or dtypes.code_of(source.dtype) != dtypes.code_of(how.dtype):
            _through_hdf5(dataset, source)
        else:
            _write_chunks(dataset, how, source)


def _through_hdf5(dataset: h5py.Dataset, source: Any) -> None:
    chunk = dataset.chunks or (1,) * source.ndim
    for slab in layout.slabs(source.shape, chunk, source.dtype.itemsize, transfer.SLAB_BYTES):
        dataset[slab] = arrays.to_host(source[slab])


def _write_chunks(dataset: h5py.Dataset, how: ChunkCodec, source: Any) -> None:
    shape = dataset.shape
    whole = tuple(slice(0, extent) for extent in shape)
    boxes = layout.batches(whole, how.chunk, how.dtype.itemsize, staging.batch_bytes(how.chunk_bytes))
    with staging.open_channels() as channels:
        under_way: deque[Batch] = deque()  # batches that are encoded or fetched
        for channel, box in zip(cycle(channels), boxes):
            batch = Batch(channel, how, box, shape)
            batch.encode(source[box])
            under_way.append(batch)
            if len(under_way) > 1:
                under_way[-2].fetch()
            if len(under_way) == len(channels):
                under_way.popleft().store(dataset)
        if under_way:
            under_way[-1].fetch()
        for batch in under_way:
            batch.store(dataset)
