# SPDX-License-Identifier: BSD-3-Clause
"""Datasets into device arrays: `pyfilter.read` with ``device=`` or a device array as ``out`` comes here.

Frames are read into pinned memory, copied to the device and decoded there: straight into the result if chunks are
contiguous in it. While one batch is read from the file, earlier batches are on the device.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from pyfilter import dtypes
from pyfilter._chunks import layout, pipeline
from pyfilter._chunks.selection import basic_selection
from pyfilter._chunks.stored import Frames, StoredChunks
from pyfilter._lib import abi, cuda, host
from pyfilter.errors import CorruptFrame, InvalidArgument, Unsupported
from pyfilter.gpu import arrays, staging, tiling

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from pyfilter._chunks.layout import Region
    from pyfilter._chunks.pipeline import ChunkCodec
    from pyfilter.gpu.staging import Channel

# fields of a frame's header (docs/format.md, section 2), all in the first two words: byte offsets of its size in 8-byte
# words, of element type and of rank. The shape begins at word 7
_UNITS_AT, _TYPE_AND_RANK_AT, _DIMS_AT = 7, (9, 11), 7
_ALIKE = np.isin(np.arange(16), (_UNITS_AT, *_TYPE_AND_RANK_AT)).astype(np.uint8) * np.uint8(255)


@arrays.device_errors()
def read(dataset: h5py.Dataset, selection: Any, out: Any, number: int | None) -> Any:
    """Read a dataset, or a part of it, into device memory; as `pyfilter.read`.

    Parameters
    ----------
    dataset
        The dataset. If it has other filters than pyfilter, h5py reads it and the values are copied to the device.
    selection
        Anything that ``dataset[selection]`` takes; h5py reads selections other than integers and slices of step 1.
    out
        A device array of the selection's shape and of a type that can hold the dataset's values, or None.
    number
        The device, if ``out`` is None.
    """
    target = None if out is None else arrays.out_array(out)
    cupy = arrays.require()
    how = pipeline.chunk_codec(dataset)
    basic = basic_selection(selection, dataset.shape) if how is not None else None
    with cupy.cuda.Device(number if target is None else target.device.id):
        if how is None or basic is None or not dtypes.on_devices(how.dtype):
            values = _by_h5py(dataset, selection, target)
        else:
            values = _by_chunks(cupy, dataset, how, basic, target)
        if target is not None:
            cupy.cuda.get_current_stream().synchronize()
    return values if out is None else out


def _check_out(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if out.shape != shape or not np.can_cast(dtype, out.dtype, casting="same_kind"):
        message = f"out must be of shape {shape} and a type that holds {dtype}; got {out.shape}, {out.dtype}"
        raise InvalidArgument(message)


def _by_h5py(dataset: h5py.Dataset, selection: Any, target: Any) -> Any:
    """Read through HDF5 and copy to the device."""
    cupy = arrays.import_cupy()
    read_values = np.asarray(dataset[selection])
    if read_values.dtype.kind not in "biufc":
        message = f"values of type {read_values.dtype} cannot be in device memory"
        raise Unsupported(message)
    values = cupy.asarray(np.asarray(read_values, dtype=dtypes.native(read_values.dtype), order="C"))
    if target is not None:
        _check_out(target, values.shape, values.dtype)
        cupy.copyto(target, values, casting="same_kind")
    return values


def _by_chunks(
    cupy: Any, dataset: h5py.Dataset, how: ChunkCodec, basic: tuple[Region, tuple[bool, ...]], target: Any
) -> Any:
    region, kept = basic
    full = tuple(part.stop - part.start for part in region)
    shape = tuple(extent for extent, keep in zip(full, kept, strict=True) if keep)
    if target is None:
        values = cupy.empty(full, dtype=how.dtype)
    else:
        _check_out(target, shape, how.dtype)
        # an integer index removed a dimension: add it with extent 1
        values = target[tuple(slice(None) if keep else None for keep in kept)]
    if values.size > 0:
        _read_chunks(dataset, how, region, values)
    return values.reshape(shape) if target is None else target


def _read_chunks(dataset: h5py.Dataset, how: ChunkCodec, region: Region, values: Any) -> None:
    with StoredChunks(dataset, how.chunk, region) as stored_chunks, staging.open_channels() as channels:
        under_way: deque[Batch] = deque()
        boxes = layout.batches(region, how.chunk, how.dtype.itemsize, staging.batch_bytes(how.chunk_bytes))
        for channel, box in zip(cycle(channels), boxes):
            if len(under_way) == len(channels):
                under_way.popleft().finish()
            place = layout.shifted(box, [asked.start for asked in region])
            found = StoredFrames(stored_chunks, box)
            found.read(partial(channel.pinned_bytes, "stored"))
            batch = Batch(channel, how, found)
            batch.decode(values[place])
            under_way.append(batch)
        for batch in under_way:
            batch.finish()


class StoredFrames:
    """The stored chunks of a box: located by the constructor, read by `read`.

    Attributes
    ----------
    count
        Number of chunks.
    missing, unfiltered
        Numbers of the chunks that were never written, and of those that HDF5 stored without filtering.
    frames
        The chunks' bytes in host memory, of size 0 for a chunk that was never written.
    """

    def __init__(self, stored_chunks: StoredChunks, box: Region) -> None:
        self.box = box
        self._stored_chunks = stored_chunks
        self._found = stored_chunks.of_box(box)
        # reading a chunk that was never written would raise the error of a damaged chunk
        there = self._found.offsets >= 0
        self._sizes = np.where(there, self._found.sizes, 0)
        self.count = len(self._sizes)
        self.missing = np.flatnonzero(~there).tolist()
        self.unfiltered = np.flatnonzero(there & (self._found.masks & 1 != 0)).tolist()

    def read(self, allocate: Callable[[int], NDArray[np.uint8]]) -> None:
        """Read the bytes to memory of ``allocate(size)``; with a file descriptor any thread may call this."""
        starts = staging.starts(self._sizes)
        self.frames = Frames(allocate(int(starts[-1])), starts[:-1], self._sizes)
        self._stored_chunks.read(self.box, self._found, self.frames)


class Batch:
    """A box of chunks to be decoded: call `decode`, then `finish`; calls for other batches may come between."""

    def __init__(self, channel: Channel, how: ChunkCodec, stored: StoredFrames) -> None:
        self.channel = channel
        self.how = how
        self.stored = stored
        self.faults: NDArray[np.uint32] | None = None

    def decode(self, values: Any) -> None:
        """Put the copy to the device and the decoding on the stream; ``values`` receives the box."""
        channel, how, stored = self.channel, self.how, self.stored
        groups = self._groups(np.delete(np.arange(stored.count), stored.missing + stored.unfiltered))
        with channel.stream:
            found = tiling.same_memory(values, stored.box, how.chunk) if values.dtype == how.dtype else None
            stack = found
            if stack is None:
                buffer = channel.device_bytes("values", stored.count * how.chunk_bytes)
                stack = buffer.view(how.dtype).reshape((stored.count, *how.chunk))
            on_device = channel.device_bytes("stored", stored.frames.buffer.nbytes)
            if stored.frames.buffer.nbytes:
                channel.to_device(on_device, stored.frames.buffer)
            for first, last in _runs(stored.missing):
                arrays.fill_bits(stack[first:last], how.padding)
            for number in stored.unfiltered:
                self._copy_unfiltered(number, on_device, stack)
            self._decode_frames(groups, on_device, stack)
            if found is None:
                tiling.scatter(stack, stored.box, how.chunk, values)
            self.done = channel.stream.record()

    def _groups(self, numbers: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        """Return the numbers of frames grouped by shape, from their headers: a call decodes frames of one shape."""
        how = self.how
        groups: dict[tuple[int, ...], list[int]] = {}
        code = dtypes.code_of(how.dtype)
        alike = self._alike(numbers)  # then only the first header is checked
        for number in (numbers[:1] if alike else numbers).tolist():
            info = host.frame_info(self.stored.frames[number])
            if info.value_bytes != how.chunk_bytes or info.dtype != code:
                found = f"a frame of shape {info.shape}, {dtypes.from_code(info.dtype)}"
                message = f"a chunk of shape {how.chunk}, {how.dtype} holds {found}"
                raise CorruptFrame(message)
            groups.setdefault(info.shape, []).append(number)
        return [numbers] if alike else [np.array(group) for group in groups.values()]

    def _alike(self, numbers: NDArray[np.intp]) -> bool:
        """Whether all these headers have the same type and shape, as usual; their other fields are not compared."""
        frames = self.stored.frames
        if numbers.size == 0:
            return False
        shortest = int(frames.sizes[numbers].min())
        units = int(frames[int(numbers[0])][_UNITS_AT]) if shortest > 8 * _DIMS_AT else 0
        if shortest < 8 * max(units, _DIMS_AT + 1):
            return False
        words = frames.buffer.view(np.uint64)[
            frames.starts[numbers][:, np.newaxis] // 8 + [0, 1, *range(_DIMS_AT, units)]
        ]
        words[:, :2] &= _ALIKE.view(np.uint64)
        return bool((words == words[0]).all())

    def _decode_frames(self, groups: list[NDArray[np.intp]], on_device: Any, stack: Any) -> None:
        channel, frames, chunk_bytes = self.channel, self.stored.frames, self.how.chunk_bytes
        total = sum(map(len, groups))
        if total == 0:
            return
        faults = channel.device_bytes("faults", 4 * total).view(np.uint32)
        done = 0
        for numbers in groups:
            entries = np.zeros(len(numbers), dtype=abi.CUDA_FRAME)
            entries["header"] = frames.addresses[numbers]
            entries["header_bytes"] = entries["frame_bytes"] = frames.sizes[numbers]
            entries["frame"] = on_device.data.ptr + frames.starts[numbers]
            entries["values"] = stack.data.ptr + numbers * chunk_bytes
            count = chunk_bytes // self.how.dtype.itemsize
            cuda.decode(entries, 0, count, chunk_bytes, faults.data.ptr + 4 * done, channel.stream.ptr)
            done += len(numbers)
        self.faults = channel.pinned_bytes("faults", 4 * total).view(np.uint32)
        channel.to_host(self.faults, faults)

    def _copy_unfiltered(self, number: int, on_device: Any, stack: Any) -> None:
        """Copy a chunk that HDF5 stored without filtering."""
        how, size = self.how, int(self.stored.frames.sizes[number])
        if size != how.chunk_bytes:
            message = f"an unfiltered chunk has {size} bytes, it should have {how.chunk_bytes}"
            raise CorruptFrame(message)
        first, width = int(self.stored.frames.starts[number]), dtypes.part_of(how.dtype).itemsize
        stored = on_device[first : first + size].reshape(-1, width)
        if dtypes.is_big_endian(how.file_dtype) != dtypes.is_big_endian(how.dtype):
            stored = stored[:, ::-1]
        target = stack[number].reshape(-1).view(np.uint8).reshape(-1, width)
        arrays.import_cupy().copyto(target, stored)

    def finish(self) -> None:
        """Wait for the values, and raise CorruptFrame if a frame is damaged."""
        self.done.synchronize()
        self.check()

    def check(self) -> None:
        """Raise CorruptFrame if a frame is damaged; the decoding must be done."""
        if self.faults is not None and self.faults.any():
            cuda.check_fault(int(self.faults[np.flatnonzero(self.faults)[0]]))


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Return runs of consecutive numbers as (first, last + 1)."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number:
            runs[-1] = (runs[-1][0], number + 1)
        else:
            runs.append((number, number + 1))
    return runs
