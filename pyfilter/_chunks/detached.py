# SPDX-License-Identifier: BSD-3-Clause
"""Datasets read without HDF5: HDF5 reports the chunks' locations once; their bytes come by pread, or by ranges of an
address.

So threads never wait for HDF5's lock, and no file need be kept open. stored.py is for datasets that are open.
"""

from __future__ import annotations

import itertools
import os
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
import numpy as np

from pyfilter._chunks import outer, pipeline, transfer
from pyfilter._chunks.selection import basic_selection
from pyfilter._chunks.sharing import share_of_threads
from pyfilter._chunks.stored import StoredChunks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from pyfilter._chunks.layout import Region
    from pyfilter._chunks.pipeline import ChunkCodec
    from pyfilter._chunks.stored import Stored
    from pyfilter.progressive.source import Source

#: the datasets whose locations a process keeps, 20 bytes for each chunk
_KEPT = 64
#: limits of one request to an address: chunks, and bytes
_FETCHED_CHUNKS = 32
_FETCHED_BYTES = 32 << 20


class Detached(NamedTuple):
    """A dataset's properties that reading needs: how its chunks are decoded, its shape, and their locations."""

    how: ChunkCodec
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    places: StoredChunks

    def read(self, key: Sequence[Any], source: Source | int) -> NDArray[Any]:
        """Return a part of the dataset, its chunks decoded by several threads.

        Parameters
        ----------
        key
            As for `outer.read`.
        source
            A descriptor of the file, or what gives ranges of its bytes.

        Raises
        ------
        FrameError
            If a chunk is damaged, or the file ends before it does.
        IndexError
            If an index is out of range.
        """
        with share_of_threads():
            read_box = partial(self._read_box, source)
            return outer.read(key, self.shape, self.how.chunk, self.dtype, read_box)

    def _read_box(self, source: Source | int, region: Region, out: NDArray[Any]) -> None:
        if isinstance(source, int):
            transfer.read_located(self.how, self.shape, region, out, self.places.in_file(source))
        else:
            transfer.read_located(self.how, self.shape, region, out, self.places, partial(_fetched, source))


def of_dataset(dataset: h5py.Dataset) -> Detached | None:
    """Return what reading the chunks of an open dataset needs, None where only HDF5 can read them.

    HDF5 is needed where `pipeline.chunk_codec` is None, or the file has a user block.
    """
    how = pipeline.chunk_codec(dataset)
    if how is None or dataset.file.userblock_size != 0 or dataset.file.driver not in ("sec2", "fileobj"):
        return None
    region = tuple(slice(0, extent) for extent in dataset.shape)
    with StoredChunks(dataset, how.chunk, region, whole=True) as places:
        return Detached(how, dataset.shape, dataset.dtype, places.without_dataset())


def version_of(file: str | int) -> tuple[int, ...]:
    """Return a version of a file that every write changes; equal on all machines.

    Raises
    ------
    OSError
        If there is no such file.
    """
    status = os.stat(file)  # noqa: PTH116  # of a descriptor too
    return status.st_ino, status.st_mtime_ns, status.st_size


def read_file(
    path: str, version: tuple[int, ...], names: tuple[str, ...], shape: tuple[int, ...], key: Sequence[Any]
) -> NDArray[Any] | None:
    """Return a part of a dataset of a local file; None where only HDF5 can read it.

    Parameters
    ----------
    path
        The file, which is opened for this call.
    version
        Of the file, when its datasets were looked at; None is returned for another one.
    names
        Paths of the dataset; the first existing one counts.
    shape
        The shape that it must have; None is returned otherwise.
    key
        As for `outer.read`.

    Raises
    ------
    OSError
        If the file cannot be opened.
    FrameError, IndexError
        As `Detached.read`.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = _in_file(path, names, version) if version_of(descriptor) == version else None
        return None if found is None or found.shape != shape else found.read(key, descriptor)
    finally:
        os.close(descriptor)


def read_through_mpi(dataset: h5py.Dataset, selection: Any) -> NDArray[Any] | None:
    """Return a part of a dataset of a file that is open for reading with driver "mpio", read by this process alone.

    None where only HDF5 can read it: another mode, a selection that is no box, or what `read_file` refuses.
    """
    file, name = dataset.file, dataset.name
    basic = basic_selection(selection, dataset.shape) if file.mode == "r" and name else None
    if basic is None or not Path(file.filename).is_file():
        return None
    key = [part if keep else part.start for part, keep in zip(*basic, strict=True)]
    return read_file(file.filename, version_of(file.filename), (name,), dataset.shape, key)


@lru_cache(maxsize=_KEPT)
def _in_file(path: str, names: tuple[str, ...], version: tuple[int, ...]) -> Detached | None:
    with h5py.File(path, "r") as file:
        dataset = next((file[name] for name in names if name in file), None)
        if not isinstance(dataset, h5py.Dataset) or dataset.file.driver != "sec2":
            return None
        if version_of(int(dataset.file.id.get_vfd_handle())) != version:
            return None  # linked from another file, or replaced at this moment
        return of_dataset(dataset)


def _fetched(source: Source, jobs: Iterator[tuple[tuple[int, ...], Stored]]) -> Iterator[tuple[Any, Stored, Any]]:
    """Yield jobs with the bytes of their chunks, None where there are none; some are fetched at a time."""
    waiting = itertools.chain(jobs)
    while batch := _batch(waiting):
        ranges = [
            (place.offset, place.offset + place.size) for _, place in batch if place.offset is not None and place.size
        ]
        data = iter(source.fetch(ranges))
        for origin, place in batch:
            yield origin, place, None if place.offset is None else next(data) if place.size else b""


def _batch(jobs: Iterator[tuple[tuple[int, ...], Stored]]) -> list[tuple[tuple[int, ...], Stored]]:
    """Return the next jobs that are fetched at once."""
    found: list[tuple[tuple[int, ...], Stored]] = []
    size = 0
    for job in jobs:
        found.append(job)
        size += job[1].size
        if len(found) == _FETCHED_CHUNKS or size >= _FETCHED_BYTES:
            break
    return found
