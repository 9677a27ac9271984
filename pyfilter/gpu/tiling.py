# SPDX-License-Identifier: BSD-3-Clause
"""Copies between boxes of an array and stacks of whole chunks, on the device: a few strided copies for many chunks.

A stack has the shape ``(chunks, *chunk)``, chunks in C order of the grid.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from pyfilter.gpu import arrays

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyfilter._chunks.layout import Region

# CuPy has at most 32 dimensions, and the views here have twice the array's
_MAX_VIEW_RANK = 12

Segment = tuple[slice, slice, slice]


def segments(start: int, stop: int, edge: int) -> list[Segment]:
    """Cut one axis of a box into a leading part of a chunk, whole chunks, and a trailing part of a chunk, if any.

    A segment has the numbers of its chunks (0 is the first chunk that overlaps the box), its part of each chunk, and
    its part of the box.
    """
    base = start // edge * edge
    found: list[Segment] = []
    here = start
    while here < stop:
        number, inside = divmod(here - base, edge)
        count = (stop - here) // edge if inside == 0 else 0
        length = count * edge if count else min(stop - here, edge - inside)
        part = slice(0, edge) if count else slice(inside, inside + length)
        found.append((slice(number, number + max(count, 1)), part, slice(here - start, here - start + length)))
        here += length
    return found


def stack_size(box: Region, chunk: tuple[int, ...]) -> int:
    """Return the number of chunks that a box overlaps."""
    return math.prod(_grid(box, chunk))


def _grid(box: Region, chunk: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-(-part.stop // edge) - part.start // edge for part, edge in zip(box, chunk, strict=True))


def same_memory(values: Any, box: Region, chunk: tuple[int, ...]) -> Any:
    """Return a view of ``values``, the box, as a stack; None if its chunks are not contiguous."""
    cut = [segments(part.start, part.stop, edge) for part, edge in zip(box, chunk, strict=True)]
    if len(chunk) > _MAX_VIEW_RANK or any(
        len(axis) != 1 or axis[0][1] != slice(0, edge) for axis, edge in zip(cut, chunk, strict=True)
    ):
        return None
    view = _split(values, tuple(axis[0] for axis in cut))
    if not arrays.writable_by_library(view):
        return None
    return view.reshape((-1, *chunk))


def gather(values: Any, box: Region, chunk: tuple[int, ...], stack: Any) -> None:
    """Copy the values of a box into a stack; points of the stack outside of the box do not change."""
    for inner, outer in _pairs(values, box, chunk, stack):
        arrays.import_cupy().copyto(inner, outer)


def scatter(stack: Any, box: Region, chunk: tuple[int, ...], values: Any) -> None:
    """Copy the values of a box from a stack to ``values``, converted to its type."""
    for inner, outer in _pairs(values, box, chunk, stack):
        arrays.import_cupy().copyto(outer, inner, casting="same_kind")


def _pairs(values: Any, box: Region, chunk: tuple[int, ...], stack: Any) -> Iterator[tuple[Any, Any]]:
    """Yield views of equal shape of the stack and of the box's values that together cover the box."""
    cut = [segments(part.start, part.stop, edge) for part, edge in zip(box, chunk, strict=True)]
    grid = _grid(box, chunk)
    if len(chunk) > _MAX_VIEW_RANK:
        yield from _pairs_by_chunk(values, cut, grid, stack)
        return
    blocks = stack.reshape(grid + tuple(chunk))
    for combination in itertools.product(*cut):
        numbers = tuple(segment[0] for segment in combination)
        insides = tuple(segment[1] for segment in combination)
        outer = values[tuple(segment[2] for segment in combination)]
        yield blocks[numbers + insides], _split(outer, combination)


def _split(values: Any, combination: tuple[Segment, ...]) -> Any:
    """Return a view with each axis split in two: first the axes of chunk numbers, then the axes within a chunk."""
    counts = tuple(numbers.stop - numbers.start for numbers, _, _ in combination)
    lengths = tuple(inside.stop - inside.start for _, inside, _ in combination)
    strides = tuple(stride * length for stride, length in zip(values.strides, lengths, strict=True))
    as_strided = arrays.import_cupy().lib.stride_tricks.as_strided
    return as_strided(values, counts + lengths, strides + tuple(values.strides))


def _pairs_by_chunk(
    values: Any, cut: list[list[Segment]], grid: tuple[int, ...], stack: Any
) -> Iterator[tuple[Any, Any]]:
    """As `_pairs`, one chunk at a time, for arrays of too many dimensions to split."""
    single: list[list[Segment]] = [
        [
            (slice(number, number + 1), inside, slice(first, first + inside.stop - inside.start))
            for numbers, inside, outside in axis
            for number, first in zip(
                range(numbers.start, numbers.stop),
                itertools.count(outside.start, inside.stop - inside.start),
                strict=False,
            )
        ]
        for axis in cut
    ]
    for combination in itertools.product(*single):
        place = 0
        for segment, extent in zip(combination, grid, strict=True):
            place = place * extent + segment[0].start
        inner = stack[place][tuple(segment[1] for segment in combination)]
        yield inner, values[tuple(segment[2] for segment in combination)]
