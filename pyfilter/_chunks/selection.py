# SPDX-License-Identifier: BSD-3-Clause
"""Selections of a dataset: which of them are boxes, and those boxes."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyfilter._chunks.layout import Region

#: the first index along each dimension, and the one behind the last
Box = tuple[tuple[int, int], ...]


def basic_selection(selection: Any, shape: tuple[int, ...]) -> tuple[Region, tuple[bool, ...]] | None:
    """Return a selection of integers and slices of step 1 as one box, and which of its dimensions stay.

    None for all other selections, invalid ones included: h5py reads them or reports the error.
    """
    items = list(selection) if isinstance(selection, tuple) else [selection]
    dots = [position for position, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1 or len(items) - len(dots) > len(shape):
        return None
    position = dots[0] if dots else len(items)
    missing = len(shape) - (len(items) - len(dots))
    items[position : position + len(dots)] = [slice(None)] * missing
    region: list[slice] = []
    kept: list[bool] = []
    for item, extent in zip(items, shape, strict=True):
        if isinstance(item, slice):
            start, stop, step = _slice_indices(item, extent)
            if step != 1:
                return None
            region.append(slice(start, max(start, stop)))
        elif isinstance(item, Integral) and not isinstance(item, (bool, np.bool_)):
            index = int(item) + (extent if item < 0 else 0)
            if not 0 <= index < extent:
                return None
            region.append(slice(index, index + 1))
        else:
            return None
        kept.append(isinstance(item, slice))
    return tuple(region), tuple(kept)


def _slice_indices(item: slice, extent: int) -> tuple[int, int, int]:
    try:
        return item.indices(extent)
    except TypeError:  # bounds that are not integers
        return 0, 0, 0


def box_of(selection: Any, shape: tuple[int, ...]) -> tuple[Box, tuple[Any, ...]]:
    """Return the first and last indices of a selection, and an index that drops the dimensions chosen by integers.

    Raises
    ------
    InvalidArgument
        If it is anything but integers in range, slices without steps and an ellipsis.
    """
    given = selection if isinstance(selection, tuple) else (selection,)
    if sum(item is ... for item in given) > 1 or sum(item is not ... for item in given) > len(shape):
        message = f"the selection {selection!r} does not fit {len(shape)} dimensions"
        raise InvalidArgument(message)
    at = next((i for i, item in enumerate(given) if item is ...), len(given))
    middle = (slice(None),) * (len(shape) - sum(item is not ... for item in given))
    full = (*given[:at], *middle, *given[at + 1 :])
    box: list[tuple[int, int]] = []
    squeezed: list[slice | int] = []
    for item, extent in zip(full, shape, strict=True):
        start, stop, step = _slice_indices(item, extent) if isinstance(item, slice) else (0, 0, 0)
        if step == 1:
            box.append((start, max(start, stop)))
            squeezed.append(slice(None))
        elif isinstance(item, (int, np.integer)) and not isinstance(item, bool) and -extent <= item < extent:
            index = int(item) % extent
            box.append((index, index + 1))
            squeezed.append(0)
        else:
            message = f"a selection has integers in range and slices without steps; got {item!r} for {extent} values"
            raise InvalidArgument(message)
    return tuple(box), tuple(squeezed)


def expanded(
    out: NDArray[Any], shape: tuple[int, ...], squeezed: tuple[Any, ...], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Return ``out``, an array for what `box_of` selects, as one of the box's shape.

    Raises
    ------
    Unsupported
        If it is no NumPy array.
    InvalidArgument
        If it has another shape, may not be written to, or does not hold every value of ``dtype``.
    """
    if not isinstance(out, np.ndarray):
        message = f"out must be a numpy.ndarray, got {type(out).__name__}"
        raise Unsupported(message)
    kept = tuple(extent for extent, item in zip(shape, squeezed, strict=True) if isinstance(item, slice))
    if out.shape != kept or not out.flags.writeable or not np.can_cast(dtype, out.dtype, casting="safe"):
        raise InvalidArgument(wrong_out(out, kept, dtype))
    return out[tuple(slice(None) if isinstance(item, slice) else np.newaxis for item in squeezed)]


def wrong_out(out: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    """Return the text of the error that ``out`` does not fit a shape and type."""
    found = f"{out.shape}, {out.dtype}{'' if out.flags.writeable else ', read-only'}"
    return f"out must be writeable, of shape {shape} and a type that holds {dtype}; got {found}"


def with_kept_axes(out: NDArray[Any], kept: tuple[bool, ...]) -> NDArray[Any]:
    """Return a view with an extent of 1 where an integer index took a dimension away."""
    return out[tuple(slice(None) if keep else np.newaxis for keep in kept)]
