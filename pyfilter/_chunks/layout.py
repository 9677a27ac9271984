# SPDX-License-Identifier: BSD-3-Clause
"""Chunk shapes and chunk grids: pure arithmetic on shapes, no HDF5."""

from __future__ import annotations

import itertools
import math
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

#: chunks chosen here have about this many bytes, or the whole array if it is smaller
TARGET_BYTES = 4 << 20
#: along unlimited dimensions chunks grow up to this size only: appending to a chunk means encoding it again
APPEND_BYTES = 1 << 20

# the last dimension is cut where it is this many times longer than the others
_ROW_WEIGHT = 16

Region = tuple[slice, ...]


def chosen(
    asked: Any,
    shape: Sequence[int],
    itemsize: int,
    maxshape: Sequence[int | None] | None,
    edges: Sequence[int],
) -> tuple[int, ...]:
    """Return the chunk shape that was asked for, or one of `choose` where it is None or True.

    Raises
    ------
    InvalidArgument
        If it is none, or ``maxshape`` has other dimensions than ``shape``.
    """
    if maxshape is not None and len(maxshape) != len(shape):
        message = f"maxshape must have the {len(shape)} dimensions of the data, got {maxshape!r}"
        raise InvalidArgument(message)
    if asked is None or asked is True:
        return choose(shape, itemsize, maxshape, edges)
    given: Any = (asked,) if isinstance(asked, Integral) and not isinstance(asked, bool) else asked
    valid = isinstance(given, (tuple, list)) and len(given) == len(shape)
    if not valid or not all(isinstance(edge, Integral) and int(edge) > 0 for edge in given):
        message = f"chunks must be None, True or {len(shape)} integers > 0, got {asked!r}"
        raise InvalidArgument(message)
    return tuple(int(edge) for edge in given)


def choose(
    shape: Sequence[int],
    itemsize: int,
    maxshape: Sequence[int | None] | None = None,
    edges: Sequence[int] = (32,),
) -> tuple[int, ...]:
    """Return a chunk shape for a dataset.

    Fixed dimensions are cut into equal parts, the longest first, until a chunk has at most 4 MiB; the last one only
    where it is by far the longest, because whole rows are fastest to move. Extents are multiples of a block's or
    tile's edge where that fits. Unlimited dimensions get extents of 1 that grow while a chunk is smaller than 1 MiB.

    Parameters
    ----------
    shape
        The dataset's shape; extents of 0 count as unknown.
    itemsize
        Bytes of one value.
    maxshape
        The largest shape; None in it is an unlimited dimension.
    edges
        Extents of the codec's blocks or tiles along the last dimensions (`Codec.edges`).
    """
    rank = len(shape)
    unlimited = [maxshape is not None and maxshape[axis] is None for axis in range(rank)]
    grown = [
        maxshape[axis] or 1 if maxshape is not None and not unlimited[axis] and extent == 0 else extent
        for axis, extent in enumerate(shape)
    ]
    fixed = [1 if unlimited[axis] else max(grown[axis], 1) for axis in range(rank)]
    chunk = _cut(fixed, itemsize, edges)
    for axis in reversed(range(rank)):
        if unlimited[axis]:
            room = APPEND_BYTES // (math.prod(chunk) * itemsize)
            longest = grown[axis] if grown[axis] > 0 else room
            chunk[axis] = max(1, min(room, longest))
    return tuple(chunk)


def _cut(shape: list[int], itemsize: int, last: Sequence[int]) -> list[int]:
    """Cut the longest extent into one more part until the target is met."""
    rank = len(shape)
    edges = [1] * (rank - len(last)) + list(last[max(len(last) - rank, 0) :])
    parts = [1] * rank
    chunk = list(shape)
    while math.prod(chunk) * itemsize > TARGET_BYTES:
        axis = max(range(rank), key=lambda index: chunk[index] if index < rank - 1 else chunk[index] / _ROW_WEIGHT)
        if chunk[axis] == 1:
            axis = rank - 1
        # jump near the target at once where one extent is very long
        excess = math.prod(chunk) * itemsize / TARGET_BYTES
        parts[axis] = max(parts[axis] + 1, int(parts[axis] * min(excess, chunk[axis] / _second(chunk, axis))))
        even = -(-shape[axis] // parts[axis])
        chunk[axis] = min(shape[axis], _round_up(even, edges[axis]) if even > edges[axis] else even)
    return chunk


def _second(chunk: list[int], axis: int) -> int:
    return max((extent for index, extent in enumerate(chunk) if index != axis), default=1)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def origins(shape: Sequence[int], chunk: Sequence[int], region: Region | None = None) -> Iterator[tuple[int, ...]]:
    """Yield the first coordinates of the chunks of the grid that overlap ``region`` (by default all), in C order."""
    if region is None:
        region = tuple(slice(0, extent) for extent in shape)
    axes = [
        range(part.start // edge * edge, part.stop, edge) if part.stop > part.start else range(0)
        for part, edge in zip(region, chunk, strict=True)
    ]
    return itertools.product(*axes)


def places(shape: Sequence[int], chunk: Sequence[int], corner: Sequence[int] | None = None) -> NDArray[np.uint64]:
    """Return the first coordinates of all chunks of an array that begins at ``corner``, in C order of their grid.

    An array of shape (chunks, rank).
    """
    grid = [-(-extent // edge) for extent, edge in zip(shape, chunk, strict=True)]
    numbers = np.stack(np.unravel_index(np.arange(math.prod(grid)), grid), axis=1)
    first = numbers * np.array(chunk) + np.array(corner or [0] * len(grid))
    return np.ascontiguousarray(first, dtype=np.uint64)


def count(shape: Iterable[int], chunk: Iterable[int]) -> int:
    """Return the number of chunks of an array."""
    return math.prod(-(-extent // edge) for extent, edge in zip(shape, chunk, strict=True))


def box(origin: Sequence[int], chunk: Sequence[int], shape: Sequence[int]) -> Region:
    """Return the part of a dataset that the chunk at ``origin`` covers."""
    return tuple(
        slice(first, min(first + edge, extent)) for first, edge, extent in zip(origin, chunk, shape, strict=True)
    )


def slabs(shape: Sequence[int], chunk: Sequence[int], itemsize: int, limit_bytes: int) -> Iterator[Region]:
    """Yield regions of whole chunks that together cover the dataset, each as large as ``limit_bytes`` allows.

    A region is never smaller than a chunk. Read in these pieces, a dataset of any chunk shape is read but once.
    """
    extents = list(chunk)
    for axis in reversed(range(len(shape))):
        size = math.prod(extents) * itemsize // extents[axis]  # bytes of one step along this axis
        fitting = max(limit_bytes // max(size, 1), 1)
        if fitting >= shape[axis]:
            extents[axis] = max(shape[axis], 1)
            continue
        extents[axis] = max(fitting // chunk[axis] * chunk[axis], chunk[axis])
        break
    return (box(origin, extents, shape) for origin in origins(shape, extents))


def batches(region: Region, chunk: Sequence[int], itemsize: int, limit_bytes: int) -> Iterator[Region]:
    """Yield the region's parts in boxes of chunks of up to ``limit_bytes``, in C order.

    A box is never smaller than a chunk; chunks count as whole, even if they reach beyond the region.
    """
    first = [part.start // edge * edge for part, edge in zip(region, chunk, strict=True)]
    whole = [
        -(-part.stop // edge) * edge - low if part.stop > part.start else 0
        for part, edge, low in zip(region, chunk, first, strict=True)
    ]
    for slab in slabs(whole, chunk, itemsize, limit_bytes):
        yield tuple(
            slice(max(part.start, low + piece.start), min(part.stop, low + piece.stop))
            for part, piece, low in zip(region, slab, first, strict=True)
        )


def shifted(region: Region, origin: Iterable[int]) -> Region:
    """Return a region as seen from ``origin``."""
    return tuple(slice(part.start - first, part.stop - first) for part, first in zip(region, origin, strict=True))
