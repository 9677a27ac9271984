# SPDX-License-Identifier: BSD-3-Clause
"""Byte ranges of a file: local files by pread, others by fsspec."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

from pyfilter._chunks.stored import own_descriptor
from pyfilter.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

    import h5py

Range = tuple[int, int]  # first byte, the one behind the last
#: concurrent requests
_REQUESTS = 16


class Source(Protocol):
    """A file's bytes."""

    def fetch(self, ranges: Sequence[Range]) -> list[bytes]:
        """Return the bytes of each range, fewer where the file ends."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class LocalSource:
    """A local file, by path or by a descriptor, which `close` closes."""

    def __init__(self, file: str | int) -> None:
        self._file = os.open(file, os.O_RDONLY) if isinstance(file, str) else file

    @property
    def descriptor(self) -> int:
        """The open file."""
        return self._file

    def fetch(self, ranges: Sequence[Range]) -> list[bytes]:
        """Return the bytes of each range."""
        return [_whole(self._read(start, stop), start, stop) for start, stop in ranges]

    def _read(self, start: int, stop: int) -> bytes:
        data = os.pread(self._file, stop - start, start)
        while len(data) < stop - start:  # a call gives 2 GiB at most
            more = os.pread(self._file, stop - start - len(data), start + len(data))
            if not more:
                break
            data += more
        return data

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def source_of(file: h5py.File) -> LocalSource:
    """Return a source of the current bytes of a file that HDF5 has open.

    Raises
    ------
    Unsupported
        If its HDF5 driver is not one for plain files.
    """
    file.flush()
    if file.driver == "sec2":
        return LocalSource(own_descriptor(file))  # whatever has the file's name by now
    if file.driver in ("stdio", "direct"):
        return LocalSource(os.fsdecode(file.filename))
    message = (
        f"{file.filename} is open with HDF5's driver {file.driver!r}, but parts of chunks can be read of plain files"
        " only: open it without a driver, or give its path or URL and the dataset's name"
    )
    raise Unsupported(message)


class RemoteSource:
    """A file at an fsspec address; ranges are requested concurrently."""

    def __init__(self, filesystem: Any, path: str) -> None:
        self._filesystem, self._path = filesystem, path
        self._pool = ThreadPoolExecutor(_REQUESTS)

    def fetch(self, ranges: Sequence[Range]) -> list[bytes]:
        """Return the bytes of each range."""

        def one(wanted: Range) -> bytes:
            start, stop = wanted
            return _whole(bytes(self._filesystem.cat_file(self._path, start=start, end=stop)), start, stop)

        return list(self._pool.map(one, ranges))

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


def _whole(data: bytes, start: int, stop: int) -> bytes:
    if len(data) != stop - start:
        message = f"the file is cut short: its index names bytes {start} to {stop}, of which {len(data)} are there"
        raise InvalidArgument(message)
    return data
