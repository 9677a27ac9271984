# SPDX-License-Identifier: BSD-3-Clause
"""Blocks of dask arrays: compressed to frames where they are computed, written by the calling process as they come.

Only compressed bytes go to the writing process, and only those of a few blocks at a time. Threads write their own
frames, one thread at a time. Other processes get more blocks as their frames are written.
"""

from __future__ import annotations

import itertools
import socket
import threading
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyfilter._chunks import layout, pipeline
from pyfilter._chunks.sharing import share_of_threads
from pyfilter._lib import host
from pyfilter.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import h5py
    from numpy.typing import NDArray

    Progress = Callable[[int, int], None]

#: blocks sent to other processes at a time, for each of their threads
_BLOCKS_FOR_THREAD = 6
#: finished blocks that are waited for before they are fetched, at most
_MAX_TOGETHER = 8
#: a host of workers that does not answer in this time is asked by way of the scheduler
_SECONDS_TO_CONNECT = 1.0
_writers: dict[str, _Writer] = {}


class Encoding(NamedTuple):
    """A worker's settings to make frames: the stored cd_values, the element type, the chunk's shape, the padding."""

    words: tuple[int, ...]
    dtype: np.dtype[Any]
    chunk: tuple[int, ...]
    padding: Any


class Frames(NamedTuple):
    """The frames of a block: the first coordinates of their chunks, their sizes, and their bytes in one buffer."""

    origins: list[tuple[int, ...]]
    sizes: list[int]
    buffer: NDArray[np.uint8]


class Job(NamedTuple):
    """A dask array whose blocks are of whole chunks, and the open dataset that it goes to."""

    array: Any
    how: Encoding
    dataset: h5py.Dataset


def encoding_of(dataset: h5py.Dataset) -> Encoding | None:
    """Return how chunks of an open dataset are encoded, None where HDF5 must do it."""
    how, words = pipeline.chunk_codec(dataset), pipeline.pipeline_of(dataset).words
    return None if how is None or words is None else Encoding(words, how.dtype, how.chunk, how.padding)


def aligned(array: Any, chunk: tuple[int, ...], rechunk: bool) -> Any:
    """Return an array none of whose blocks ends inside of a chunk.

    Raises
    ------
    InvalidArgument If a block does, and the array is not to be rechunked.
    """
    cut = [
        axis
        for axis, (sizes, edge) in enumerate(zip(array.chunks, chunk, strict=True))
        if any(size % edge for size in sizes[:-1])
    ]
    if not cut:
        return array
    if not rechunk:
        axis = cut[0]
        message = (
            f"blocks of {array.chunks[axis]} along axis {axis} end inside of chunks of {chunk[axis]}: two workers "
            "would have parts of a chunk. Give chunks= that divide the blocks, or rechunk=True"
        )
        raise InvalidArgument(message)
    whole = [-(-max(sizes) // edge) * edge for sizes, edge in zip(array.chunks, chunk, strict=True)]
    return array.rechunk(tuple(whole))


def encode_block(block: NDArray[Any], start: tuple[int, ...], how: Encoding) -> Frames:
    """Return the frames of a block with the coordinates of their chunks; runs on a worker."""
    request = host.parse_cd_values(how.words)
    places = list(layout.origins(block.shape, how.chunk))
    room = host.max_frame_bytes(request)
    # the kernel gives memory for the bytes that are written: so the frames need no second place
    buffer = np.empty(len(places) * room, np.uint8)
    sizes: list[int] = []
    at = 0
    with share_of_threads():
        for origin in places:
            values = np.asarray(block[layout.box(origin, how.chunk, block.shape)], dtype=how.dtype, order="C")
            if values.shape != how.chunk:
                whole = np.full(how.chunk, how.padding, how.dtype)
                whole[tuple(slice(0, extent) for extent in values.shape)] = values
                values = whole
            sizes.append(host.encode(request, values, buffer[at:]))
            at += sizes[-1]
    origins = [tuple(first + offset for first, offset in zip(start, origin, strict=True)) for origin in places]
    return Frames(origins, sizes, buffer[:at])


def store(dataset: h5py.Dataset, frames: Frames) -> None:
    """Write the frames of a block."""
    at = 0
    for origin, size in zip(frames.origins, frames.sizes, strict=True):
        dataset.id.write_direct_chunk(origin, frames.buffer[at : at + size])
        at += size


def scheduler() -> str | None:
    """Return the name of dask's scheduler where it has other processes, or a cluster, do the work."""
    import dask.base
    import dask.multiprocessing

    get = dask.base.get_scheduler()
    if get is dask.multiprocessing.get:
        return "processes"
    return "distributed" if type(getattr(get, "__self__", None)).__module__.startswith("distributed") else None


class _Writer:
    """Writes frames of jobs, one block at a time, and reports the progress."""

    def __init__(self, jobs: Sequence[Job], progress: Progress | None) -> None:
        self._datasets = [job.dataset for job in jobs]
        self._progress = progress
        self._lock = threading.Lock()
        self._done = 0
        self._count = sum(job.array.npartitions for job in jobs)

    def put(self, number: int, frames: Frames) -> None:
        """Write the frames of a block of the job of this number."""
        with self._lock:
            store(self._datasets[number], frames)
            self._done += 1
            if self._progress is not None:
                self._progress(self._done, self._count)


def write(jobs: Sequence[Job], progress: Progress | None = None) -> None:
    """Compute dask arrays by the scheduler in force, and write them.

    Parameters
    ----------
    jobs
        Arrays and their datasets, all of files that this process has open.
    progress
        Called with the number of blocks written and the number of all blocks.
    """
    writer = _Writer(jobs, progress)
    kind = scheduler()
    if kind == "distributed":
        _by_futures(jobs, writer)
    elif kind == "processes":
        _by_rounds(jobs, writer)
    else:
        _by_threads(jobs, writer)


def _blocks(jobs: Sequence[Job]) -> Iterator[tuple[int, Any, tuple[int, ...], Encoding]]:
    """Yield, for each block, the number of its job, its value as a Delayed, where it begins, and how it is encoded."""
    for number, job in enumerate(jobs):
        blocks = job.array.to_delayed()
        starts = [list(itertools.accumulate((0, *sizes[:-1]))) for sizes in job.array.chunks]
        for index in np.ndindex(blocks.shape):
            yield number, blocks[index], tuple(starts[axis][at] for axis, at in enumerate(index)), job.how


def _tasks(jobs: Sequence[Job]) -> list[Any]:
    """Return a Delayed for each block: the number of its job and its frames."""
    import dask

    encode = dask.delayed(_encode, pure=False)
    return [encode(number, block, start, how) for number, block, start, how in _blocks(jobs)]


def _encode(number: int, block: Any, start: tuple[int, ...], how: Encoding) -> tuple[int, Frames]:
    return number, encode_block(block, start, how)


def _by_threads(jobs: Sequence[Job], writer: _Writer) -> None:
    """Let each thread write its own frames; a thread that waits to write computes nothing meanwhile."""
    import dask

    name = uuid.uuid4().hex
    _writers[name] = writer
    try:
        put = dask.delayed(_encode_and_put, pure=False)
        dask.compute(*(put(name, number, block, start, how) for number, block, start, how in _blocks(jobs)))
    finally:
        del _writers[name]


def _encode_and_put(name: str, number: int, block: Any, start: tuple[int, ...], how: Encoding) -> None:
    _writers[name].put(number, encode_block(block, start, how))


def _by_rounds(jobs: Sequence[Job], writer: _Writer) -> None:
    """Compute some blocks at a time: dask's pool of processes returns results only when all are done."""
    import dask
    from dask.system import CPU_COUNT

    tasks = _tasks(jobs)
    many = 4 * (dask.config.get("num_workers", None) or CPU_COUNT)
    for first in range(0, len(tasks), many):
        for number, frames in dask.compute(*tasks[first : first + many]):
            writer.put(number, frames)


def _by_futures(jobs: Sequence[Job], writer: _Writer) -> None:
    """Keep a cluster busy with a few blocks for each of its threads; more go out as frames are written."""
    import distributed

    client = distributed.get_client()
    tasks = _tasks(jobs)
    workers = client.nthreads()
    threads = sum(workers.values())
    room, together = max(4, _BLOCKS_FOR_THREAD * threads), min(2 * threads, _MAX_TOGETHER)
    gather = partial(client.gather, direct=_reachable(workers))
    out: set[Any] = set()
    done = distributed.as_completed()
    try:
        for first in range(0, len(tasks), room // 2):
            while len(out) > room - room // 2:
                _take(gather, _finished(done, min(len(out), together)), out, writer)
            more = client.compute(tasks[first : first + room // 2])
            out.update(more)
            done.update(more)
            tasks[first : first + len(more)] = [None] * len(more)
            del more
        while out:
            _take(gather, _finished(done, min(len(out), together)), out, writer)
    finally:
        client.cancel(list(out))


def _finished(done: Any, count: int) -> list[Any]:
    """Return at least so many finished blocks, waiting for them: each request for blocks costs a worker some time."""
    batch: list[Any] = done.next_batch()
    while len(batch) < count:
        batch.extend(done.next_batch())
    return batch


def _take(gather: Callable[[list[Any]], Any], batch: list[Any], out: set[Any], writer: _Writer) -> None:
    """Write the finished blocks, fetched by one request: a request costs some milliseconds."""
    results = gather(batch)
    out.difference_update(batch)
    for number, frames in results:
        writer.put(number, frames)


def _reachable(workers: Iterable[str]) -> bool | None:
    """Whether frames can come from the workers at these addresses, and not by way of the scheduler.

    None, distributed's own choice, where a host cannot be reached from here at once.
    """
    found: dict[str, str] = {}
    for address in workers:
        scheme, _, place = address.partition("://")
        host, _, port = place.rpartition(":")
        if scheme not in ("tcp", "tls") or not port.isdigit():
            return None
        found[host.strip("[]")] = port
    try:
        for host, port in found.items():
            socket.create_connection((host, int(port)), timeout=_SECONDS_TO_CONNECT).close()
    except OSError:
        return None
    return True
