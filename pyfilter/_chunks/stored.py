# SPDX-License-Identifier: BSD-3-Clause
"""The chunks of a dataset as they are stored: where they are, and their bytes.

HDF5's call for the location of one chunk walks over all chunks, so one walk lists many locations at once. HDF5's call
for their bytes admits one thread at a time. Any thread reads a plain file that is open for reading only, past HDF5.
"""

from __future__ import annotations

import copy
import os
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
import numpy as np

from pyfilter import settings
from pyfilter._chunks import layout
from pyfilter._lib import abi, hdf5, host
from pyfilter._lib.hdf5 import ChunkLocations
from pyfilter.errors import TruncatedFrame

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from numpy.typing import NDArray
    from typing_extensions import Self

    from pyfilter._chunks.layout import Region

# HDF5 walks over its whole index for each chunk asked for: of more chunks than this, one walk lists all locations
_MIN_CHUNKS_FOR_INDEX = 8
_READS_INTO_BUFFERS = h5py.version.version_tuple[:2] >= (3, 9)
_READERS = 8
# bytes that a thread reads at a time
_PIECE_BYTES = 512 << 10
_EXTENSIBLE_ARRAY = 4  # H5D_CHUNK_IDX_EARRAY
# in files of several parts (driver "split") offsets are from 2**63 on: only HDF5 can use those
_MAX_OFFSET = (1 << 63) - 1


class Stored(NamedTuple):
    """A chunk in the file; ``offset`` is None where it was never written."""

    offset: int | None
    size: int
    filter_mask: int


class Frames:
    """Frames in one buffer.

    Attributes
    ----------
    buffer : uint8
        All of them.
    starts, sizes : int64
        Where each begins, and its bytes.
    addresses : int64
        Where each begins in memory.
    """

    def __init__(self, buffer: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
        self.buffer, self.starts, self.sizes = buffer, starts, sizes
        self.addresses = starts + buffer.ctypes.data

    def __getitem__(self, number: int) -> NDArray[np.uint8]:
        start = int(self.starts[number])
        return self.buffer[start : start + int(self.sizes[number])]


class StoredBox(NamedTuple):
    """The chunks that a box overlaps, in C order of the grid, each array of their number.

    Attributes
    ----------
    offsets : int64
        First byte in the file, -1 where a chunk was never written.
    sizes : int64
        Bytes in the file.
    masks : uint32
        Filter masks: bit 0 is set where the chunk is stored without our filter.
    """

    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    masks: NDArray[np.uint32]


def offsets_are_reliable(dataset: h5py.Dataset) -> bool:
    """Whether HDF5's calls for the locations of chunks report the right offsets.

    ``H5Dchunk_iter``, ``H5Dget_chunk_info`` and ``_by_coord`` report wrong coordinates, in every release up to 2.0 at
    least, if the index is an extensible array and the unlimited dimension is not the first. The index has moved this
    dimension to the front, and the calls do not move it back. Such datasets have ``libver="latest"`` (or 1.10) and one
    unlimited dimension. Calls that move values or bytes of a chunk are right.
    """
    limits: Sequence[int | None] = dataset.maxshape
    if None not in limits or hdf5.chunk_index(dataset.id.id) != _EXTENSIBLE_ARRAY:
        return True
    before = list(zip(limits, dataset.chunks, strict=True))[: list(limits).index(None)]
    return all(extent is not None and extent <= edge for extent, edge in before)


def origins_of(dataset: h5py.Dataset) -> Iterator[tuple[int, ...]]:
    """Return the first coordinates of the chunks that were written."""
    if not offsets_are_reliable(dataset):
        grid = layout.origins(dataset.shape, dataset.chunks)
        return (origin for origin in grid if hdf5.chunk_size(dataset.id.id, origin) > 0)
    return map(tuple, listed(dataset).origins.tolist())


def listed(dataset: h5py.Dataset) -> ChunkLocations:
    """Return the chunks that were written, in the order of the file's index.

    Their coordinates are right only where `offsets_are_reliable`.
    """
    found = hdf5.chunk_locations(dataset.id.id, len(dataset.chunks))
    if found is None:  # no such call, no library of ours, or the walk failed, and h5py says why
        infos: list[Any] = []
        if hasattr(dataset.id, "chunk_iter"):
            dataset.id.chunk_iter(infos.append)
        else:  # an h5py built with HDF5 before 1.12.3
            infos += [dataset.id.get_chunk_info(number) for number in range(dataset.id.get_num_chunks())]
        found = ChunkLocations(
            np.array([info.chunk_offset for info in infos], np.uint64).reshape(len(infos), len(dataset.chunks)),
            np.array([info.byte_offset for info in infos], np.uint64),
            np.array([info.size for info in infos], np.uint64),
            np.array([info.filter_mask for info in infos], np.uint32),
        )
    return found


def place_of(dataset: h5py.Dataset, origin: tuple[int, ...]) -> Stored:
    """Return what is stored of one chunk.

    The mask that a read returns may be that of the chunk's previous content (HDF5 2.0); this one is not.
    """
    info = dataset.id.get_chunk_info_by_coord(origin)
    if info.byte_offset is None:  # the other fields may then be anything
        return Stored(None, 0, 0)
    return Stored(min(info.byte_offset, _MAX_OFFSET), int(info.size), int(info.filter_mask))


class StoredChunks:
    """The chunks that a region of a dataset overlaps, as they are stored when this object is made.

    Parameters
    ----------
    dataset
        A chunked dataset of an open file, whose `offsets_are_reliable`.
    chunk
        The shape of its chunks.
    region
        The part of the dataset that will be asked for; of many chunks, 20 bytes are kept for each.
    whole
        Whether to list the locations of few chunks too, so that the dataset is not needed afterwards.

    A context manager, as it holds a descriptor of the file.

    Attributes
    ----------
    grid
        How many chunks the region overlaps along each axis.
    """

    def __init__(self, dataset: h5py.Dataset, chunk: tuple[int, ...], region: Region, *, whole: bool = False) -> None:
        self._dataset: Any = dataset
        self._chunk = chunk
        self._first, self.grid = _grid(region, chunk)
        # a writer of the same file may move chunks meanwhile: each is then looked up when it is read
        file = dataset.file
        moving = bool(file.swmr_mode)
        many = int(np.prod(self.grid, dtype=np.int64)) > _MIN_CHUNKS_FOR_INDEX
        self._indexed = whole or (many and not moving and hasattr(dataset.id, "chunk_iter"))
        if self._indexed:
            self._offsets = np.full(self.grid, -1, dtype=np.int64)
            self._sizes = np.zeros(self.grid, dtype=np.int64)
            self._masks = np.zeros(self.grid, dtype=np.uint32)
            self._build_index()
        #: a descriptor that any thread may read the file's bytes from, None where only HDF5 may
        self.descriptor = None if moving else _descriptor(file)
        self._close_descriptor: weakref.finalize[..., Any] | None = None
        if self.descriptor is not None:
            self._close_descriptor = weakref.finalize(self, os.close, self.descriptor)

    def without_dataset(self) -> Self:
        """Return the locations alone, which can be pickled; needs ``whole``."""
        return self._copied(None)

    def in_file(self, descriptor: int) -> Self:
        """Return the same locations with a descriptor of the file, which stays the caller's to close."""
        return self._copied(descriptor)

    def _copied(self, descriptor: int | None) -> Self:
        found = copy.copy(self)
        found._dataset = None
        found.descriptor = descriptor
        found._close_descriptor = None
        return found

    def _place(self, origin: Sequence[int]) -> tuple[int, ...]:
        return tuple(at // edge - first for at, edge, first in zip(origin, self._chunk, self._first, strict=True))

    def _build_index(self) -> None:
        """List the locations of all chunks of the region."""
        found = listed(self._dataset)
        places = found.origins.astype(np.int64) // self._chunk - self._first
        inside = ((places >= 0) & (places < self.grid)).all(axis=1)
        at = tuple(places[inside].T)
        self._offsets[at] = np.minimum(found.offsets, np.uint64(_MAX_OFFSET)).astype(np.int64)[inside]
        self._sizes[at] = found.sizes[inside]
        self._masks[at] = found.masks[inside]

    def find(self, origin: tuple[int, ...]) -> Stored:
        """Return the stored chunk at ``origin``, which overlaps the region."""
        if not self._indexed:
            return place_of(self._dataset, origin)
        place = self._place(origin)
        offset = int(self._offsets[place])
        return Stored(None if offset < 0 else offset, int(self._sizes[place]), int(self._masks[place]))

    def of_box(self, box: Region) -> StoredBox:
        """Return the stored chunks that overlap ``box``, a part of the region."""
        first, grid = _grid(box, self._chunk)
        if self._indexed:
            part = tuple(
                slice(low - start, low - start + extent)
                for low, start, extent in zip(first, self._first, grid, strict=True)
            )
            return StoredBox(
                self._offsets[part].reshape(-1), self._sizes[part].reshape(-1), self._masks[part].reshape(-1)
            )
        found = [self.find(origin) for origin in layout.origins(self._dataset.shape, self._chunk, box)]
        return StoredBox(
            np.array([-1 if one.offset is None else one.offset for one in found], dtype=np.int64),
            np.array([one.size for one in found], dtype=np.int64),
            np.array([one.filter_mask for one in found], dtype=np.uint32),
        )

    def read(self, box: Region, stored: StoredBox, into: Frames) -> None:
        """Read the bytes of the chunks of a box, each to its part of ``into``; chunks never written are left out.

        Raises
        ------
        TruncatedFrame
            If the file ends before a chunk does.
        OSError
            If the file cannot be read.
        """
        numbers = np.flatnonzero(stored.offsets >= 0)
        if self.descriptor is None:
            origins = list(layout.origins(self._dataset.shape, self._chunk, box))
            for number in numbers.tolist():
                _read_chunk(self._dataset, origins[number], into[number])
            return
        ranges = _pieces(stored.offsets[numbers], stored.sizes[numbers], into.addresses[numbers])
        host.read_ranges(self.descriptor, ranges, min(settings.config().threads, _READERS))
        if (ranges["done"] < ranges["bytes"]).any():
            for number in numbers.tolist():  # the loop raises the error
                _read_range(self.descriptor, int(stored.offsets[number]), into[number].data)

    def close(self) -> None:
        """Close the descriptor."""
        self.descriptor = None
        if self._close_descriptor is not None:
            self._close_descriptor()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _grid(region: Region, chunk: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the number along each axis of the first chunk that a region overlaps, and how many it overlaps."""
    first = tuple(part.start // edge for part, edge in zip(region, chunk, strict=True))
    counts = tuple(
        max(-(-part.stop // edge) - low, 0) if part.stop > part.start else 0
        for part, edge, low in zip(region, chunk, first, strict=True)
    )
    return first, counts


def _descriptor(file: h5py.File) -> int | None:
    """Return a descriptor of a file whose bytes are certainly those that HDF5 would read, None for other files.

    It must be a plain file, open for reading only and without a user block. Some releases of HDF5 count offsets of
    chunks from the end of the user block.
    """
    if file.driver != "sec2" or file.mode != "r" or file.userblock_size != 0:
        return None
    try:
        return own_descriptor(file)
    except OSError:  # too many open files, or no permission to open it again: HDF5 reads it
        return None


def own_descriptor(file: h5py.File) -> int:
    """Return a new descriptor of a file that HDF5 has open with its driver "sec2".

    HDF5's own number may belong to another file as soon as this one is closed, and a duplicate of it would keep the
    file locked.

    Raises
    ------
    OSError
        If the file cannot be opened again.
    """
    with h5py._objects.phil:  # nobody closes it in between
        number = int(file.id.get_vfd_handle())
        try:
            return os.open(f"/proc/self/fd/{number}", os.O_RDONLY)
        except FileNotFoundError:  # /proc is not mounted
            found = os.open(file.filename, os.O_RDONLY)
            if os.path.samestat(os.fstat(found), os.fstat(number)):
                return found
            os.close(found)
            message = f"{file.filename} was replaced while it was open: open it again"
            raise FileNotFoundError(message) from None


def _read_chunk(dataset: h5py.Dataset, origin: tuple[int, ...], into: NDArray[np.uint8]) -> None:
    if _READS_INTO_BUFFERS:
        dataset.id.read_direct_chunk(origin, out=into)
        return
    into[:] = np.frombuffer(dataset.id.read_direct_chunk(origin)[1], dtype=np.uint8)


def _pieces(offsets: NDArray[np.int64], sizes: NDArray[np.int64], addresses: NDArray[np.int64]) -> NDArray[Any]:
    """Return what to read as `abi.RANGE`, large chunks in pieces."""
    counts = np.maximum(-(-sizes // _PIECE_BYTES), 1)
    chunk = np.repeat(np.arange(len(sizes)), counts)
    begin = (np.arange(len(chunk)) - np.repeat(np.cumsum(counts) - counts, counts)) * _PIECE_BYTES
    ranges = np.zeros(len(chunk), abi.RANGE)
    ranges["offset"] = offsets[chunk] + begin
    ranges["bytes"] = np.minimum(sizes[chunk] - begin, _PIECE_BYTES)
    ranges["to"] = addresses[chunk] + begin
    return ranges


def _read_range(descriptor: int, offset: int, into: memoryview) -> None:
    done = 0
    while done < into.nbytes:
        more = os.preadv(descriptor, [into[done:]], offset + done)
        if more == 0:
            message = (
                f"the file ends at byte {offset + done}, within a chunk that should reach to {offset + into.nbytes}"
            )
            raise TruncatedFrame(message)
        done += more


def read_bytes(descriptor: int, stored: Stored) -> bytes:
    """Return the bytes of a chunk that was written; by any thread.

    Raises
    ------
    TruncatedFrame
        If the file ends before the chunk does.
    OSError
        If the file cannot be read.
    """
    assert stored.offset is not None
    data = os.pread(descriptor, stored.size, stored.offset)
    if len(data) < stored.size:
        buffer = np.empty(stored.size, dtype=np.uint8)
        _read_range(descriptor, stored.offset, buffer.data)
        return buffer.tobytes()
    return data
