# SPDX-License-Identifier: BSD-3-Clause
"""Large chunks between host memory and files through devices, by threads of the library.

A channel is a stream with memory for a batch, used by one thread of the library. Where chunks are contiguous in pinned
memory, the device copies from and to that memory itself. Otherwise the channel's thread copies, through a small staging
buffer of pinned memory. Chunks that were never written, are damaged or failed are left to the threads of
device_threads.py, which raise the error.
"""

from __future__ import annotations

import math
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyfilter import dtypes, settings
from pyfilter._chunks import layout
from pyfilter._lib import abi, cuda, device_chunks, hdf5, host
from pyfilter.errors import NoMemory
from pyfilter.gpu import arrays, host_memory, staging

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import h5py
    from numpy.typing import NDArray

    from pyfilter._chunks.layout import Region
    from pyfilter._chunks.pipeline import ChunkCodec
    from pyfilter._chunks.stored import StoredChunks

#: smaller chunks are left to device_threads.py, where a kernel packs the many frames of a batch
LEAST_CHUNK_BYTES = 256 << 10
#: channels of a device, and bytes of values in a batch, if devices copy from and to the caller's own memory
PINNED_CHANNELS, PINNED_BYTES = 4, 64 << 20
#: the same if the channels' threads copy
COPYING_CHANNELS, COPYING_BYTES = 12, 32 << 20
#: bytes of a channel's staging buffer of pinned memory: small, so that it stays in the cache
STAGING_TO_DEVICE, STAGING_TO_HOST = 4 << 20, 8 << 20
#: chunks that are not contiguous in the array are staged whole, so they may not be larger
MAX_STAGED_CHUNK = 16 << 20


class Run(NamedTuple):
    """The chunks of an array that go through channels: the first ones in C order of their grid.

    Attributes
    ----------
    values
        The array.
    grid
        The grid of its chunks; None if the chunks are contiguous, one after the other from the first value on.
    padding
        The value of a chunk's points outside of the array.
    chunks
        Number of chunks; after contiguous chunks, parts of chunks may follow that do not count.
    chunk_bytes
        Bytes of the values of a chunk.
    batch
        Number of chunks that a channel takes at a time.
    channels
        Number of channels of each device.
    pinned
        Whether devices copy from and to the array themselves.
    """

    values: NDArray[Any]
    grid: host.Grid | None
    padding: NDArray[Any]
    chunks: int
    chunk_bytes: int
    batch: int
    channels: int
    pinned: bool

    def remaining(self, done: int, state: NDArray[np.uint8]) -> device_chunks.Chunks:
        """Return all chunks but the first ``done``; ``state`` has the states of these remaining chunks."""
        if self.grid is not None:
            return device_chunks.Chunks((self.grid, done, self.padding), self.chunk_bytes, self.batch, state)
        first = self.values.ctypes.data + done * self.chunk_bytes
        return device_chunks.Chunks(first, self.chunk_bytes, self.batch, state)

    def staging_bytes(self, least: int) -> int:
        """Return the size of a channel's staging buffer: 0 if devices copy from and to the array themselves."""
        if self.pinned:
            return 0
        return max(least, -(-2 * self.chunk_bytes // 128) * 128) if self.grid is not None else least


def run_of(
    values: object,
    dtype: np.dtype[Any],
    shape: Sequence[int],
    region: Region,
    chunk: tuple[int, ...],
    padding: object,
    devices: int,
) -> Run | None:
    """Return the chunks of an array, for a region of a dataset, that may go through channels; None if none may."""
    chunk_bytes = math.prod(chunk) * dtype.itemsize
    if not isinstance(values, np.ndarray) or values.dtype != dtype or chunk_bytes < LEAST_CHUNK_BYTES:
        return None
    whole = math.prod(-(-part.stop // edge) - part.start // edge for part, edge in zip(region, chunk, strict=True))
    count = _contiguous_chunks(shape, region, chunk) if values.flags.c_contiguous else 0
    pinned = count > 0 and host_memory.is_pinned(values)
    grid = None
    if count < whole and not pinned:
        count = whole if chunk_bytes <= MAX_STAGED_CHUNK and values.size > 0 else count
        begin = [part.start % edge for part, edge in zip(region, chunk, strict=True)]
        grid = host.Grid(values, begin, chunk) if count == whole else None
    if count == 0:
        return None
    channels = PINNED_CHANNELS if pinned else max(min(COPYING_CHANNELS, settings.config().threads // devices), 1)
    share = count * chunk_bytes // (2 * channels * devices)  # so that each channel gets a few batches
    most = min(PINNED_BYTES if pinned else COPYING_BYTES, staging.BATCH_BYTES)
    batch = max(min(most, max(share, staging.LEAST_BATCH_BYTES)) // chunk_bytes, 1)
    fitting = max(8 * staging.BATCH_BYTES // (batch * chunk_bytes), PINNED_CHANNELS)  # fewer channels for large chunks
    channels = min(channels, fitting, -(-count // (batch * devices)))
    return Run(values, grid, np.array(padding, dtype), count, chunk_bytes, batch, channels, pinned)


def _contiguous_chunks(shape: Sequence[int], region: Region, chunk: tuple[int, ...]) -> int:
    """Return how many whole chunks of a region are contiguous in an array of the region, from its first value on."""
    cut = next((axis for axis, edge in enumerate(chunk) if edge > 1), len(chunk) - 1)
    whole = all(
        part.start == 0 and part.stop == extent == edge
        for part, extent, edge in zip(region[cut + 1 :], shape[cut + 1 :], chunk[cut + 1 :], strict=True)
    )
    if not whole or region[cut].start % chunk[cut] != 0:
        return 0
    before = math.prod(part.stop - part.start for part in region[:cut])
    along, rest = divmod(region[cut].stop - region[cut].start, chunk[cut])
    return before * along if rest == 0 or before == 1 else 0


class _ChannelMemory(NamedTuple):
    """Sizes of a channel's buffers, in bytes."""

    values: int
    frames: int
    notes: int
    host_values: int
    host_frames: int


@contextmanager
def _opened(devices: Sequence[int], count: int, memory: _ChannelMemory) -> Iterator[NDArray[Any]]:
    """Open channels on devices; yield an array of `abi.CUDA_CHANNEL`."""
    cupy = arrays.import_cupy()
    table = np.zeros((len(devices), count), abi.CUDA_CHANNEL)
    kept: list[Any] = []
    frames_at = -(-memory.values // 256) * 256
    notes_at = frames_at + -(-memory.frames // 256) * 256
    with ExitStack() as stack:
        for number, row in zip(devices, table, strict=True):
            stack.enter_context(cupy.cuda.Device(number))
            for channel, entry in zip(stack.enter_context(staging.open_channels(count)), row, strict=True):
                there = channel.device_bytes("channel", notes_at + memory.notes).data.ptr
                notes = channel.pinned_bytes("notes", memory.notes)
                frames = channel.pinned_bytes("frames", memory.host_frames)
                values = channel.pinned_bytes("values", memory.host_values).ctypes.data if memory.host_values else 0
                entry["device"], entry["stream"] = number, channel.stream.ptr
                entry["values"], entry["frames"], entry["notes"] = there, there + frames_at, there + notes_at
                entry["host_values"], entry["host_frames"], entry["host_notes"] = (
                    values,
                    frames.ctypes.data,
                    notes.ctypes.data,
                )
                entry["host_value_bytes"], entry["host_frame_bytes"] = memory.host_values, memory.host_frames
                kept.append(channel)
        # neighbouring channels are on different devices
        yield np.ascontiguousarray(table.T).reshape(-1)


def write(dataset: h5py.Dataset, how: ChunkCodec, source: object, devices: Sequence[int]) -> NDArray[np.bool_]:
    """Write the chunks that channels can write.

    Returns which chunks were written: an entry for each of the first chunks, in C order of the grid.
    """
    shape = dataset.shape
    whole = tuple(slice(0, extent) for extent in shape)
    run = run_of(source, how.dtype, shape, whole, how.chunk, how.padding, len(devices))
    if run is None:
        return np.zeros(0, np.bool_)
    state = np.zeros(run.chunks, np.uint8)
    slot = -(-host.max_frame_bytes(how.request) // 256) * 256
    batch_bytes = run.batch * run.chunk_bytes
    staged = run.staging_bytes(STAGING_TO_DEVICE)
    memory = _ChannelMemory(batch_bytes, run.batch * slot, 8 * run.batch, staged, max(slot, batch_bytes // 4))
    origins = layout.places(shape, how.chunk)[: run.chunks]
    done = 0
    try:
        with arrays.device_errors(), _opened(devices, run.channels, memory) as channels:
            while done < run.chunks:
                some = run.remaining(done, state[done:])
                with hdf5.writer_of(dataset.id.id, origins[done:]) as writer:
                    if writer is None:
                        break
                    device_chunks.write_chunks(how.request, some, channels, slot, writer)
                done += _begun(state[done:])
    except NoMemory:  # the threads of device_threads.py need less memory
        pass
    return _done(state)


def read(
    stored_chunks: StoredChunks,
    how: ChunkCodec,
    shape: Sequence[int],
    region: Region,
    out: NDArray[Any],
    devices: Sequence[int],
) -> NDArray[np.bool_]:
    """Read the chunks of a region that channels can read.

    Returns which chunks were read: an entry for each of the first chunks, in C order of the grid.
    """
    usable = stored_chunks.descriptor is not None and cuda.has_kernels(how.request)
    run = run_of(out, how.dtype, shape, region, how.chunk, how.padding, len(devices)) if usable else None
    if run is None or stored_chunks.descriptor is None:
        return np.zeros(0, np.bool_)
    if run.grid is not None and host_memory.is_pinned(out):
        slab = how.chunk[0] * (out.nbytes // len(out))
        # device_threads.py is faster: the device arranges a slab of chunks, then copies it
        if slab <= staging.batch_bytes(how.chunk_bytes):
            return np.zeros(0, np.bool_)
    found = stored_chunks.of_box(region)
    usual = (found.offsets >= 0) & (found.masks & 1 == 0) & (found.sizes <= host.max_frame_bytes(how.request))
    ranges = np.zeros(run.chunks, abi.RANGE)
    # 0 bytes: the library leaves such a chunk to the caller
    ranges["offset"], ranges["bytes"] = (
        np.where(usual, part, 0)[: run.chunks] for part in (found.offsets, found.sizes)
    )
    return decode(stored_chunks.descriptor, ranges, None, run, devices)


def decode(
    descriptor: int, ranges: NDArray[Any], segments: NDArray[np.uint32] | None, run: Run, devices: Sequence[int]
) -> NDArray[np.bool_]:
    """Read the frames of chunks (ranges of a file) and decode them; return which chunks were decoded."""
    state = np.zeros(run.chunks, np.uint8)
    sizes = -(-ranges["bytes"].astype(np.int64) // staging.ALIGNMENT) * staging.ALIGNMENT
    most = max(int(np.add.reduceat(sizes, np.arange(0, run.chunks, run.batch)).max()), 1)
    code = dtypes.code_of(run.values.dtype)
    assert code is not None
    memory = _ChannelMemory(run.batch * run.chunk_bytes, most, 8 * run.batch, run.staging_bytes(STAGING_TO_HOST), most)
    done = 0
    try:
        with arrays.device_errors(), _opened(devices, run.channels, memory) as channels:
            while done < run.chunks:
                chosen = None if segments is None else segments[done:]
                some = run.remaining(done, state[done:])
                device_chunks.read_chunks(code, some, channels, descriptor, ranges[done:], chosen)
                done += _begun(state[done:])
    except NoMemory:
        pass
    return _done(state)


def remaining(shape: Sequence[int], region: Region, chunk: Sequence[int], done: NDArray[np.bool_]) -> Iterator[Region]:
    """Yield the parts of a region that are in chunks not done; ``done`` is for the first chunks in C order."""
    for number, origin in enumerate(layout.origins(shape, chunk, region)):
        if number < len(done) and done[number]:
            continue
        yield tuple(
            slice(max(first, part.start), min(first + edge, part.stop))
            for first, edge, part in zip(origin, chunk, region, strict=True)
        )


def _done(state: NDArray[np.uint8]) -> NDArray[np.bool_]:
    done: NDArray[np.bool_] = state == abi.CHUNK_DONE
    return done


def _begun(state: NDArray[np.uint8]) -> int:
    """Return the number of chunks that a call has begun: all before the first waiting chunk."""
    waiting = np.flatnonzero(state == abi.CHUNK_WAITING)
    return int(waiting[0]) if waiting.size else len(state)
