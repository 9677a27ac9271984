# SPDX-License-Identifier: BSD-3-Clause
"""Datasets into device arrays: `pyfilter.read` with ``device=`` or a device array as ``out`` comes here.

Frames are read by HDF5's direct chunk calls into pinned memory, go to the device as they are and are decoded there,
where they belong if chunks lie so in the result. While one batch is read from the file, those before are on the device.
"""

from __future__ import annotations

from collections import deque
from itertools import cycle
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from pyfilter import _native, _native_cuda, dtypes, h5, pipeline
from pyfilter.errors import CorruptFrame, InvalidArgument, Unsupported
from pyfilter.gpu import arrays, staging, tiling
from pyfilter.stored import StoredChunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyfilter.chunks import Region
    from pyfilter.gpu.staging import Lane
    from pyfilter.pipeline import ChunkCodec

# of a frame's header: its size, the element type and rank, and the shape (docs/format.md, section 2)
_UNITS_AT, _TYPE_AT, _DIMS_AT = 7, (9, 11), 56


@arrays.device_errors()
def read(dataset: h5py.Dataset, selection: Any, out: Any, number: int | None) -> Any:
    """Read a dataset, or a part of it, into device memory; as `pyfilter.read`.

    Parameters
    ----------
    dataset
        What to read. What is not compressed by pyfilter alone is read by h5py and copied to the device.
    selection
        Anything that ``dataset[selection]`` takes; other than integers and slices of step 1 are left to h5py.
    out
        A device array of the selection's shape and of a type that holds the dataset's, or None.
    number
        The device, where ``out`` is None.
    """
    target = None if out is None else arrays.out_array(out)
    cupy = arrays.require()
    how = pipeline.chunk_codec(dataset)
    basic = h5.basic_selection(selection, dataset.shape) if how is not None else None
    with cupy.cuda.Device(number if target is None else target.device.id):
        if how is None or basic is None:
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
        # an extent of 1 where an integer index took a dimension away
        values = target[tuple(slice(None) if keep else None for keep in kept)]
    if values.size > 0:
        _read_chunks(dataset, how, region, values)
    return values.reshape(shape) if target is None else target


def _read_chunks(dataset: h5py.Dataset, how: ChunkCodec, region: Region, values: Any) -> None:
    places = StoredChunks(dataset, how.chunk, region)
    with staging.open_lanes() as lanes:
        under_way: deque[_Batch] = deque()
        boxes = tiling.batches(region, how.chunk, how.dtype.itemsize, staging.batch_bytes(how.chunk_bytes))
        for lane, box in zip(cycle(lanes), boxes):
            if len(under_way) == len(lanes):
                under_way.popleft().finish()
            place = tuple(
                slice(part.start - asked.start, part.stop - asked.start)
                for part, asked in zip(box, region, strict=True)
            )
            batch = _Batch(lane, how, box)
            batch.fetch(places)
            batch.decode(values[place])
            under_way.append(batch)
        for batch in under_way:
            batch.finish()


class _Batch:
    """A box of chunks on its way: `fetch`, `decode` and `finish`, in this order, other batches' in between."""

    def __init__(self, lane: Lane, how: ChunkCodec, box: Region) -> None:
        self.lane = lane
        self.how = how
        self.box = box
        self.faults: NDArray[np.uint32] | None = None

    def fetch(self, places: StoredChunks) -> None:
        """Read the stored chunks into pinned memory."""
        found = places.of_box(self.box)
        there = found.offsets >= 0  # reading a chunk that was never written would raise the error of a damaged one
        sizes = np.where(there, found.sizes, 0)
        self.count = len(sizes)
        self.missing = np.flatnonzero(~there).tolist()
        self.unfiltered = np.flatnonzero(there & (found.masks & 1 != 0)).tolist()
        self.starts = np.zeros(self.count + 1, dtype=np.int64)
        np.cumsum(-(-sizes // staging.ALIGNMENT) * staging.ALIGNMENT, out=self.starts[1:])
        self.stored = self.lane.pinned_bytes("stored", int(self.starts[-1]))
        self.parts = [
            self.stored[first : first + size] for first, size in zip(self.starts.tolist(), sizes.tolist(), strict=False)
        ]
        places.read(self.box, found, self.parts)

    def decode(self, values: Any) -> None:
        """Put the copy to the device and the decoding on the stream; ``values`` is where the box goes."""
        lane, how = self.lane, self.how
        others = set(self.missing) | set(self.unfiltered)
        groups = self._groups([number for number in range(self.count) if number not in others])
        with lane.stream:
            found = tiling.same_memory(values, self.box, how.chunk) if values.dtype == how.dtype else None
            stack = found
            if stack is None:
                buffer = lane.device_bytes("values", self.count * how.chunk_bytes)
                stack = buffer.view(how.dtype).reshape((self.count, *how.chunk))
            on_device = lane.device_bytes("stored", self.stored.nbytes)
            if self.stored.nbytes:
                lane.to_device(on_device, self.stored)
            for first, last in _runs(self.missing):
                arrays.fill_bits(stack[first:last], how.padding)
            for number in self.unfiltered:
                self._copy_unfiltered(number, on_device, stack)
            self._decode_frames(groups, on_device, stack)
            if found is None:
                tiling.scatter(stack, self.box, how.chunk, values)
            self.done = lane.stream.record()

    def _groups(self, numbers: list[int]) -> list[list[int]]:
        """Return the numbers of frames by their shape, after a look at the headers: a call takes frames of one."""
        how = self.how
        groups: dict[tuple[int, ...], list[int]] = {}
        code = dtypes.code_of(how.dtype)
        alike = self._alike(numbers)  # the first then speaks for all
        for number in numbers[:1] if alike else numbers:
            info = _native.frame_info(self.parts[number])
            if info.value_bytes != how.chunk_bytes or info.dtype != code:
                found = f"a frame of shape {info.shape}, {dtypes.from_code(info.dtype)}"
                message = f"a chunk of shape {how.chunk}, {how.dtype} holds {found}"
                raise CorruptFrame(message)
            groups.setdefault(info.shape, []).append(number)
        return [numbers] if alike else list(groups.values())

    def _alike(self, numbers: list[int]) -> bool:
        """Whether all these frames say the same type and shape, as those of a dataset do; the rest is not looked at."""
        shortest = min((self.parts[number].nbytes for number in numbers), default=0)
        units = int(self.parts[numbers[0]][_UNITS_AT]) if shortest > _DIMS_AT else 0
        if shortest < max(8 * units, _DIMS_AT + 1):
            return False
        places = np.array([_UNITS_AT, *_TYPE_AT, *range(_DIMS_AT, 8 * units)])
        fields = self.stored[self.starts[numbers][:, np.newaxis] + places]
        return bool((fields == fields[0]).all())

    def _decode_frames(self, groups: list[list[int]], on_device: Any, stack: Any) -> None:
        lane, chunk_bytes = self.lane, self.how.chunk_bytes
        total = sum(map(len, groups))
        if total == 0:
            return
        faults = lane.device_bytes("faults", 4 * total).view(np.uint32)
        done = 0
        for numbers in groups:
            entries = np.zeros(len(numbers), dtype=_native_cuda.FRAME)
            entries["header"] = self.stored.ctypes.data + self.starts[numbers]
            entries["header_bytes"] = entries["frame_bytes"] = [self.parts[number].nbytes for number in numbers]
            entries["frame"] = on_device.data.ptr + self.starts[numbers]
            entries["values"] = stack.data.ptr + np.asarray(numbers, dtype=np.int64) * chunk_bytes
            count = chunk_bytes // self.how.dtype.itemsize
            _native_cuda.decode(entries, 0, count, chunk_bytes, faults.data.ptr + 4 * done, lane.stream.ptr)
            done += len(numbers)
        self.faults = lane.pinned_bytes("faults", 4 * total).view(np.uint32)
        lane.to_host(self.faults, faults)

    def _copy_unfiltered(self, number: int, on_device: Any, stack: Any) -> None:
        """Copy a chunk that HDF5 stored as it was."""
        how, part = self.how, self.parts[number]
        if part.nbytes != how.chunk_bytes:
            message = f"an unfiltered chunk has {part.nbytes} bytes, it should have {how.chunk_bytes}"
            raise CorruptFrame(message)
        first, itemsize = int(self.starts[number]), how.dtype.itemsize
        stored = on_device[first : first + part.nbytes].reshape(-1, itemsize)
        if dtypes.is_big_endian(how.file_dtype) != dtypes.is_big_endian(how.dtype):
            stored = stored[:, ::-1]
        target = stack[number].reshape(-1).view(np.uint8).reshape(-1, itemsize)
        arrays.import_cupy().copyto(target, stored)

    def finish(self) -> None:
        """Wait for the values, and raise CorruptFrame where a frame was damaged."""
        self.done.synchronize()
        if self.faults is not None and self.faults.any():
            _native_cuda.check_fault(int(self.faults[np.flatnonzero(self.faults)[0]]))


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Return runs of ascending numbers as (first, behind the last)."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number:
            runs[-1] = (runs[-1][0], number + 1)
        else:
            runs.append((number, number + 1))
    return runs
