# SPDX-License-Identifier: BSD-3-Clause
"""Selections inside a chunk, as zarr-python hands them to codecs: which values to decode for one, how to assign one."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, NamedTuple


class Rows(NamedTuple):
    """Values ``start`` to ``stop`` of a chunk in C order: as ``shape`` they have ``selection`` in them."""

    start: int
    stop: int
    shape: tuple[int, ...]
    selection: tuple[Any, ...]


def _bounds(item: Any, extent: int) -> tuple[int, int] | None:
    """Return the first index of an integer or a slice and the one behind the last, None for anything else."""
    if isinstance(item, Integral):
        index = int(item)
        return (index, index + 1) if 0 <= index < extent else None
    if isinstance(item, slice):
        start, stop, step = item.indices(extent)
        return (start, stop) if step > 0 and start < stop else None
    return None


def rows(selection: Any, shape: tuple[int, ...]) -> Rows | None:
    """Return the consecutive values that hold a selection, None where the whole chunk is to be decoded.

    Leading axes of which one index is selected are fixed; of the next axis the rows from the first to the last
    selected one are taken, and all of the axes behind it.
    """
    items = selection if isinstance(selection, tuple) else (selection,)
    if len(items) != len(shape) or not shape:
        return None
    bounds = [_bounds(item, extent) for item, extent in zip(items, shape, strict=True)]
    start, rest = 0, list(shape)
    for axis, bound in enumerate(bounds):
        if bound is None:
            return None
        low, high = bound
        stride = math.prod(shape[axis + 1 :])
        start += low * stride
        rest[axis] = high - low
        if high - low > 1 or axis == len(shape) - 1:
            if any(later is None for later in bounds[axis + 1 :]):
                return None
            count = (high - low) * stride
            if count == math.prod(shape):
                return None
            inner = tuple(_shifted(items[at], bounds[at]) for at in range(axis + 1))
            return Rows(start, start + count, tuple(rest), (*inner, *items[axis + 1 :]))
    return None


def _shifted(item: Any, bound: tuple[int, int] | None) -> Any:
    """Return an index as one into an axis that begins at the first index selected."""
    return slice(None, None, item.step) if isinstance(item, slice) and bound is not None else 0


def is_whole(selection: Any, shape: tuple[int, ...]) -> bool:
    """Whether a selection is all of a chunk, in its order."""
    items = selection if isinstance(selection, tuple) else (selection,)
    return len(items) == len(shape) and all(
        isinstance(item, slice) and item.indices(extent) == (0, extent, 1)
        for item, extent in zip(items, shape, strict=True)
    )


def assign(chunk: Any, selection: Any, value: Any) -> None:
    """Put a value, an ``NDBuffer`` that may have lost axes of one index, into a selection of a chunk."""
    if value.shape:
        there = chunk[selection].shape
        if value.shape != there:
            value = value.reshape(there)
    chunk[selection] = value
