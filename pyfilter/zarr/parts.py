# SPDX-License-Identifier: BSD-3-Clause
"""Chunks as zarr-python hands them to codecs: which values to decode for a selection, how to assign one, whether a
chunk is empty, and errors that name the chunk.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyfilter import dtypes
from pyfilter.errors import PyfilterError
from pyfilter.gpu.arrays import is_device_array

if TYPE_CHECKING:
    from zarr.core.buffer import NDBuffer


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


class Named:
    """Have errors of pyfilter name the chunk that they are about."""

    def __init__(self, place: Any) -> None:
        self._place = place

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        """Raise the error again with the chunk's name."""
        if isinstance(error, PyfilterError) and (name := _name_of(self._place)):
            raise type(error)(f"{name}: {error}") from error


def _name_of(place: Any) -> str:
    coordinates = getattr(place, "chunk_coords", None)  # inside of a shard
    return f"chunk {coordinates} of a shard" if coordinates is not None else str(place)


def is_empty(chunk: NDBuffer, fill: Any) -> bool:
    """Whether a chunk has nothing but the fill value, bit for bit as Zarr's metadata keep it.

    zarr-python compares all values, the first would mostly do; and it takes any NaN for any other.
    """
    values = chunk.as_ndarray_like()
    if is_device_array(values) or values.size == 0:
        return bool(chunk.all_equal(fill))
    first = values[(0,) * values.ndim]
    if not is_nan(fill):
        return bool(first == fill) and bool(chunk.all_equal(fill))
    native = dtypes.native(values.dtype)
    bits = np.asarray(values, dtype=native, order="C").view(dtypes.bits_dtype(native))
    return is_nan(first) and bool(np.all(bits == dtypes.pattern(np.nan, native)))


def is_nan(value: Any) -> bool:
    return bool(value != value)
