# SPDX-License-Identifier: BSD-3-Clause
"""Ranges of bytes of a file: with pread from a local one, by fsspec from any other place."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

from pyfilter.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

Range = tuple[int, int]  # first byte, the one behind the last
#: requests under way at a time
_REQUESTS = 16


class Source(Protocol):
    """A file's bytes."""

    def fetch(self, ranges: Sequence[Range]) -> list[bytes]:
        """Return the bytes of each range, as many as there are."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class LocalSource:
    """A file of this machine."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY)

    def fetch(self, ranges: Sequence[Range]) -> list[bytes]:
        """Return the bytes of each range."""
        return [_whole(os.pread(self._file, stop - start, start), start, stop) for start, stop in ranges]

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class RemoteSource:
    """A file behind an fsspec address; ranges are requested side by side."""

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
        message = f"the file has {len(data)} of the bytes {start} to {stop}: it is shorter than its own index says"
        raise InvalidArgument(message)
    return data
