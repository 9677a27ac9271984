# SPDX-License-Identifier: BSD-3-Clause
"""Chunks between arrays and files, compressed and decompressed by several threads.

Only the calling thread calls HDF5, by its direct chunk calls; worker threads call the C library, which needs no GIL.
They write the same bytes as the filter. h5.py has the functions for users.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from pyfilter import dtypes, settings
from pyfilter._chunks import grids, layout, stored
from pyfilter._lib import abi, hdf5, host, library
from pyfilter.errors import CorruptFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import h5py
    from numpy.typing import NDArray

    from pyfilter._chunks.layout import Region
    from pyfilter._chunks.pipeline import ChunkCodec
    from pyfilter._chunks.stored import Frames, Stored

    #: a chunk to read: its first coordinate and its location; and then its bytes, None where there are none
    Job = tuple[tuple[int, ...], Stored]
    FetchedJob = tuple[tuple[int, ...], Stored, bytes | None]

Item = TypeVar("Item")
Result = TypeVar("Result")

# bytes that are read at a time from a source that is not in memory
SLAB_BYTES = 64 << 20
# smaller chunks take less time to code than to hand over to a thread of Python
_MIN_BYTES_FOR_THREADS = 128 << 10
_scratch = threading.local()


class Source(Protocol):
    """Anything with a shape that gives an array for a tuple of slices: an ndarray, an h5py dataset."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def __getitem__(self, region: Any, /) -> Any: ...


def _scratch_bytes(name: str, size: int) -> NDArray[np.uint8]:
    """Return a buffer of this thread of at least ``size`` bytes: fresh memory for each chunk costs as much as a copy.

    The buffers of a pool's threads go with them; the calling thread's are given back after a call (`_pool`).
    """
    buffer: NDArray[np.uint8] | None = getattr(_scratch, name, None)
    if buffer is None or buffer.nbytes < size:
        buffer = np.empty(size, dtype=np.uint8)
        setattr(_scratch, name, buffer)
    return buffer


def _scratch_block(how: ChunkCodec) -> NDArray[Any]:
    """Return this thread's array for the values of one chunk."""
    buffer = _scratch_bytes("block", how.chunk_bytes)[: how.chunk_bytes]
    return buffer.view(how.dtype).reshape(how.chunk)


def _one_thread() -> None:
    """Make a pool's thread compute alone: the parallelism is between chunks."""
    library.configure("local_threads", "1")


@contextmanager
def _pool(count: int) -> Iterator[Callable[[Callable[[Item], Result], Iterable[Item]], Iterator[Result]]]:
    """Give a function like ``map`` that works ahead by a few items, in order, with bounded memory.

    With one worker the calls are made by the calling thread, where the library uses all its threads on one chunk.
    """
    if count <= 1:
        try:
            yield map
        finally:
            vars(_scratch).clear()
        return
    with ThreadPoolExecutor(count, thread_name_prefix="pyfilter", initializer=_one_thread) as pool:
        waiting: deque[Future[Any]] = deque()

        def ordered(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

        try:
            yield ordered
        finally:
            for future in waiting:
                future.cancel()


def _workers(chunk_count: int, chunk_bytes: int) -> int:
    """Return the number of threads for so many chunks; 1 leaves the parallelism to the library."""
    wanted = settings.config().threads
    return min(wanted, chunk_count) if chunk_count >= wanted and chunk_bytes >= _MIN_BYTES_FOR_THREADS else 1


def padded(how: ChunkCodec, values: NDArray[Any]) -> NDArray[Any]:
    """Return the values of a whole chunk in C order, those outside the dataset as HDF5 makes them.

    The array is ``values`` itself or this thread's scratch.
    """
    if values.shape == how.chunk and values.flags.c_contiguous and values.dtype == how.dtype:
        return values
    block = _scratch_block(how)
    if values.shape != how.chunk:
        block[...] = how.padding
    block[tuple(slice(0, extent) for extent in values.shape)] = values
    return block


def encode_chunk(how: ChunkCodec, values: NDArray[Any]) -> bytes:
    """Return the frame for one chunk; ``values`` may be smaller than the chunk at the dataset's edge."""
    block = padded(how, values)
    scratch = _scratch_bytes("frame", host.max_frame_bytes(how.request))
    size = host.encode(how.request, block, scratch)
    return scratch[:size].tobytes()


def decode_chunk(
    how: ChunkCodec, stored: bytes | NDArray[np.uint8], filter_mask: int, out: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Return the values of one stored chunk: in ``out`` where its memory is laid out like the chunk, else in scratch.

    Raises
    ------
    CorruptFrame
        If the frame is not one of this dataset's chunks.
    """
    data = np.frombuffer(stored, dtype=np.uint8)
    if filter_mask & 1:  # HDF5 stored the chunk unfiltered
        if data.nbytes != how.chunk_bytes:
            message = f"an unfiltered chunk has {data.nbytes} bytes, it should have {how.chunk_bytes}"
            raise CorruptFrame(message)
        return data.view(how.file_dtype).reshape(how.chunk)
    info = host.frame_info(data)
    if info.value_bytes != how.chunk_bytes or info.dtype != dtypes.code_of(how.dtype):
        found = f"a frame of shape {info.shape}, {dtypes.from_code(info.dtype)}"
        message = f"a chunk of shape {how.chunk}, {how.dtype} holds {found}"
        raise CorruptFrame(message)
    fits = out is not None and out.shape == how.chunk and out.dtype == how.dtype and out.flags.c_contiguous
    target = out if out is not None and fits else _scratch_block(how)
    host.decode(data, target)
    return target


def store_chunk(
    dataset: h5py.Dataset,
    how: ChunkCodec,
    origin: tuple[int, ...],
    frame: bytes | NDArray[np.uint8],
    values: Callable[[], NDArray[Any]],
) -> None:
    """Write one frame to the file; ``values`` gives the values of its whole chunk, where they are needed."""
    data: Any = frame
    mask = 0
    if len(frame) == how.chunk_bytes and stored.place_of(dataset, origin).filter_mask:
        # HDF5 keeps the mask of the unfiltered chunk that is there, as the size is the same; a release may not
        data, mask = values().astype(how.file_dtype).tobytes(), 1
    if not hdf5.write_chunk(dataset.id.id, origin, data, mask):
        dataset.id.write_direct_chunk(origin, data, mask)  # says why


def store_chunks(
    dataset: h5py.Dataset,
    how: ChunkCodec,
    origins: Sequence[tuple[int, ...]],
    frames: Frames,
    values: Callable[[int], NDArray[Any]],
) -> None:
    """Write frames to the file in their order; ``values`` is asked for a chunk's by its number, where needed."""
    places = np.array(origins, dtype=np.uint64).reshape(len(origins), -1)
    alone = np.flatnonzero(frames.sizes == how.chunk_bytes).tolist()  # of these store_chunk reads the mask
    done = 0
    for number in (*alone, len(origins)):
        while done < number:
            part = slice(done, number)
            done += hdf5.write_chunks(dataset.id.id, places[part], frames.sizes[part], frames.addresses[part])
            if done < number:
                dataset.id.write_direct_chunk(origins[done], frames[done], 0)  # says why
                done += 1
        if number < len(origins):
            store_chunk(dataset, how, origins[number], frames[number], partial(values, number))
            done += 1


def write_chunks(
    dataset: h5py.Dataset,
    how: ChunkCodec,
    source: Source,
    progress: Callable[[int], None] | None = None,
    slab_bytes: int = SLAB_BYTES,
    encoder: Callable[[ChunkCodec, NDArray[Any], tuple[int, ...]], bytes] | None = None,
) -> None:
    """Compress all of ``source``, which has the dataset's shape, into the dataset's chunks.

    Parameters
    ----------
    dataset, how
        Where to write, and how (`pipeline.chunk_codec`).
    source
        The values; read in slabs where they are not in memory.
    progress
        Called with the number of values of each chunk written.
    slab_bytes
        Number of bytes read at a time; twice as much is held. ``encoder`` makes a frame from a chunk and its origin.
    """
    if encoder is None:
        for slab, values in _slabs(source, how, slab_bytes):
            for size in _write_slab(dataset, how, slab, values):
                if progress is not None:
                    progress(size)
        return
    shape = dataset.shape

    def regions() -> Iterator[tuple[tuple[int, ...], NDArray[Any]]]:
        for slab, values in _slabs(source, how, slab_bytes):
            for origin in layout.origins(shape, how.chunk, slab):
                part = layout.box(origin, how.chunk, shape)
                yield origin, values[layout.shifted(part, [whole.start for whole in slab])]

    def encode(job: tuple[tuple[int, ...], NDArray[Any]]) -> tuple[tuple[int, ...], bytes, NDArray[Any]]:
        origin, block = job
        return origin, encoder(how, block, origin), block

    with _pool(_workers(layout.count(shape, how.chunk), how.chunk_bytes)) as ordered:
        for origin, frame, block in ordered(encode, regions()):
            store_chunk(dataset, how, origin, frame, partial(padded, how, block))
            if progress is not None:
                progress(block.size)


def _slabs(source: Source, how: ChunkCodec, slab_bytes: int) -> Iterator[tuple[Region, NDArray[Any]]]:
    """Yield all of a source in the dataset's element type: slab by slab where it is not so in memory."""
    if isinstance(source, np.ndarray) and source.dtype == how.dtype:
        yield tuple(slice(0, extent) for extent in source.shape), source
        return
    for slab in layout.slabs(source.shape, how.chunk, how.dtype.itemsize, slab_bytes):
        yield slab, np.asarray(source[slab], dtype=how.dtype)


def _write_slab(dataset: h5py.Dataset, how: ChunkCodec, slab: Region, values: NDArray[Any]) -> Iterator[int]:
    """Write a slab; yield how many values were written."""
    corner = [part.start for part in slab]
    places = layout.places(values.shape, how.chunk, corner)
    for first, count in grids.write(dataset, how, values, places):
        if count == 0:  # the library leaves it; an error is raised here
            origin = tuple(places[first].tolist())
            part = layout.shifted(layout.box(origin, how.chunk, dataset.shape), corner)
            block = partial(padded, how, values[part])
            store_chunk(dataset, how, origin, encode_chunk(how, block()), block)
        written = places[first : first + max(count, 1)]
        ends = np.minimum(written + np.array(how.chunk, np.uint64), np.array(dataset.shape, np.uint64))
        yield int((ends - written).prod(axis=1).sum())


def read_chunks(dataset: h5py.Dataset, how: ChunkCodec, region: Region, out: NDArray[Any]) -> None:
    """Decompress the part ``region`` of the dataset into ``out``, an array of the region's shape of any type."""

    def by_hdf5(jobs: Iterator[Job]) -> Iterator[FetchedJob]:
        for origin, place in jobs:
            # for a chunk that was never written reading it would raise the error of a damaged one
            yield origin, place, None if place.offset is None else dataset.id.read_direct_chunk(origin)[1]

    with stored.StoredChunks(dataset, how.chunk, region) as places:
        read_located(how, dataset.shape, region, out, places, None if places.descriptor is not None else by_hdf5)


def read_located(
    how: ChunkCodec,
    shape: tuple[int, ...],
    region: Region,
    out: NDArray[Any],
    places: stored.StoredChunks,
    fetch: Callable[[Iterator[Job]], Iterator[FetchedJob]] | None = None,
) -> None:
    """Decompress the part ``region`` of a dataset of this shape whose chunks' locations are known, as `read_chunks`.

    ``fetch`` gives the bytes of chunks, called by this thread; without it the descriptor of ``places`` does.
    """
    descriptor = places.descriptor
    count = layout.count([part.stop - part.start for part in region], how.chunk)

    def jobs() -> Iterator[Job]:
        for origin in layout.origins(shape, how.chunk, region):
            yield origin, places.find(origin)

    def decode(job: FetchedJob) -> None:
        origin, place, data = job
        if place.offset is not None and data is None:
            assert descriptor is not None
            data = stored.read_bytes(descriptor, place)
        place_chunk(how, (origin, data, place.filter_mask), shape, region, out)

    def others(numbers: list[int], box: Region) -> None:
        origins = list(layout.origins(shape, how.chunk, box))
        for number in numbers:
            decode((origins[number], places.find(origins[number]), None))

    if fetch is None and out.dtype == how.dtype:
        grids.read(how, region, out, places, others)
        return
    with _pool(_workers(count, how.chunk_bytes)) as ordered:
        waiting = ((origin, place, None) for origin, place in jobs()) if fetch is None else fetch(jobs())
        for _ in ordered(decode, waiting):
            pass


def place_chunk(
    how: ChunkCodec,
    chunk: tuple[tuple[int, ...], bytes | NDArray[np.uint8] | None, int],
    shape: tuple[int, ...],
    region: Region,
    out: NDArray[Any],
) -> None:
    """Decode a chunk, and copy its part of ``region`` of a dataset of this shape to ``out``.

    ``chunk`` is its first coordinate, its bytes (None where it was never written) and its filter mask.
    """
    origin, data, mask = chunk
    covered = layout.box(origin, how.chunk, shape)
    wanted = tuple(
        slice(max(part.start, asked.start), min(part.stop, asked.stop))
        for part, asked in zip(covered, region, strict=True)
    )
    target = out[layout.shifted(wanted, [asked.start for asked in region])]
    if data is None:
        target[...] = how.padding
        return
    values = decode_chunk(how, data, mask, target)
    if values is not target:
        np.copyto(target, values[layout.shifted(wanted, origin)], casting="same_kind")


def value_range(
    source: Source, request: abi.Request, chunk: tuple[int, ...], slab_bytes: int = SLAB_BYTES
) -> tuple[float, float] | None:
    """Return the lowest and the highest finite value of a source, its fill value left out.

    Of 64-bit integers that are no floats the next float inwards, so that the range is not too large.

    Parameters
    ----------
    source
        The values.
    request
        Says the type and the fill value; its shape is not used.
    chunk, slab_bytes
        In what pieces a source that is not in memory is best read, and their size.
    """
    low, high = np.inf, -np.inf
    dtype = dtypes.native(source.dtype)
    request.parameters[:] = bytes(8)  # a shape of blocks that may not fit the pieces
    for slab in layout.slabs(source.shape, chunk, dtype.itemsize, slab_bytes):
        values = np.asarray(source[slab], dtype=dtype, order="C")
        request.rank = 1
        request.dims[0] = values.size
        found = host.value_range(request, values)
        if found is not None:
            low, high = min(low, found[0]), max(high, found[1])
    return (low, high) if low <= high else None
