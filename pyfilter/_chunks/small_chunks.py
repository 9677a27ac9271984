# SPDX-License-Identifier: BSD-3-Clause
"""Datasets of small chunks and arrays in memory: many chunks in one call of the library, by all its threads.

For a small chunk Python takes longer than the codecs; larger ones go through transfer.py. So do chunks that were never
written, are stored without the filter or are damaged: transfer.py fills, copies or raises the error.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyfilter import dtypes, settings
from pyfilter._chunks import layout
from pyfilter._chunks.stored import Frames
from pyfilter._lib import abi, host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from pyfilter._chunks.layout import Region
    from pyfilter._chunks.pipeline import ChunkCodec
    from pyfilter._chunks.stored import StoredChunks

#: the largest chunks that are written here
MAX_WRITE_BYTES = 1 << 20
#: the largest that are read here, where there are at least as many as threads
MAX_READ_BYTES = 4 << 20
#: bytes of values of one call, at least
BATCH_BYTES = 32 << 20


def to_write(how: ChunkCodec, dtype: np.dtype[Any], count: int) -> bool:
    """Whether this module writes so many chunks of a dataset, from values of this type."""
    return count > 1 and how.chunk_bytes <= MAX_WRITE_BYTES and dtype == how.dtype


def to_read(how: ChunkCodec, dtype: np.dtype[Any], count: int) -> bool:
    """Whether this module reads so many chunks of a dataset, to values of this type."""
    most = MAX_READ_BYTES if count >= settings.config().threads else MAX_WRITE_BYTES
    return count > 1 and how.chunk_bytes <= most and dtype == how.dtype


def read(
    how: ChunkCodec,
    region: Region,
    out: NDArray[Any],
    places: StoredChunks,
    read_others: Callable[[list[int], Region], None],
) -> None:
    """Decompress the part ``region`` of a dataset into ``out``, of its shape and element type.

    ``read_others`` is called for each box that has chunks left, with their numbers in C order and the box.
    """
    assert places.descriptor is not None
    code = dtypes.code_of(how.dtype)
    assert code is not None
    threads = settings.config().threads
    together = max(BATCH_BYTES, 4 * threads * how.chunk_bytes)
    for box in layout.batches(region, how.chunk, how.dtype.itemsize, together):
        stored = places.of_box(box)
        ranges = np.zeros(len(stored.sizes), abi.RANGE)
        usual = (stored.offsets >= 0) & (stored.masks == 0)
        ranges["offset"][usual] = stored.offsets[usual]
        ranges["bytes"][usual] = stored.sizes[usual]
        begin = [part.start % edge for part, edge in zip(box, how.chunk, strict=True)]
        grid = host.Grid(out[layout.shifted(box, [asked.start for asked in region])], begin, how.chunk)
        host.read_grid(grid, code, places.descriptor, ranges, threads)
        left = np.flatnonzero(ranges["done"] == 0)
        if left.size:
            read_others(left.tolist(), box)


class Encoded(NamedTuple):
    """The frames of a box of an array, chunks of ``size`` values in all; of 0 bytes where one could not be made."""

    box: Region
    size: int
    frames: Frames


def encoded(how: ChunkCodec, values: NDArray[Any]) -> Iterator[Encoded]:
    """Yield the frames of all of an array, box by box; one box is encoded while the one before it is used.

    A yielded box may be used until the next one is requested.
    """
    slot = -(-host.max_frame_bytes(how.request) // 64) * 64
    padding = np.asarray(how.padding, dtype=how.dtype).reshape(1)
    threads = settings.config().threads
    buffers = [np.empty(0, np.uint8), np.empty(0, np.uint8)]

    def encode(number: int, box: Region) -> Encoded:
        part = values[box]
        starts = np.arange(layout.count(part.shape, how.chunk) + 1, dtype=np.int64) * slot
        if buffers[number % 2].nbytes < starts[-1]:
            buffers[number % 2] = np.empty(starts[-1], np.uint8)
        buffer = buffers[number % 2][: starts[-1]]
        grid = host.Grid(part, [0] * part.ndim, how.chunk)
        sizes = host.encode_grid(how.request, grid, padding, buffer, slot, threads)
        return Encoded(box, part.size, Frames(buffer, starts[:-1], sizes))

    whole = tuple(slice(0, extent) for extent in values.shape)
    boxes = layout.batches(whole, how.chunk, how.dtype.itemsize, BATCH_BYTES)
    if threads == 1:
        yield from map(encode, count(), boxes)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="pyfilter-encode") as beside:
        waiting = None
        for number, box in enumerate(boxes):
            coming = beside.submit(encode, number, box)
            if waiting is not None:
                yield waiting.result()
            waiting = coming
        if waiting is not None:
            yield waiting.result()
