# SPDX-License-Identifier: BSD-3-Clause
"""Selections of integers, slices and lists along each axis ("outer" ones), read as boxes of the chunks they touch.

selection.py has the selections that are one box.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from pyfilter._chunks.layout import Region

    #: puts the values of a region into an array of its shape
    ReadBox = Callable[[Region, NDArray[Any]], None]


class _Piece(NamedTuple):
    """Part of a selection along one axis: indices to read, their destination, and the indices kept (None: all)."""

    box: slice
    target: slice
    chosen: NDArray[np.int64] | None


def read(
    key: Sequence[Any], shape: Sequence[int], chunk: Sequence[int], dtype: np.dtype[Any], read_box: ReadBox
) -> NDArray[Any]:
    """Return what an outer selection chooses; of lists and slices with steps, only chunks that they touch are read.

    Parameters
    ----------
    key
        For each axis an integer, a slice with a positive step, or an ascending array of integers.
    shape, chunk
        Of the dataset.
    dtype
        Of the result.
    read_box
        Called for each box.

    Returns
    -------
    numpy.ndarray
        Without the axes of integers.

    Raises
    ------
    IndexError
        If an index is out of range.
    """
    axes = [_pieces(item, extent, edge) for item, extent, edge in zip(key, shape, chunk, strict=True)]
    counts = [sum(piece.target.stop - piece.target.start for piece in pieces) for pieces in axes]
    values = np.empty(counts, dtype=dtype)
    for pieces in itertools.product(*axes):
        target = values[tuple(piece.target for piece in pieces)]
        region = tuple(piece.box for piece in pieces)
        if all(piece.chosen is None for piece in pieces):
            read_box(region, target)
            continue
        found = np.empty([part.stop - part.start for part in region], dtype=dtype)
        read_box(region, found)
        target[...] = found[np.ix_(*(_indices(piece) for piece in pieces))]
    dropped: list[Any] = [slice(None) if isinstance(item, (slice, np.ndarray)) else 0 for item in key]
    dropped.append(...)
    result: NDArray[Any] = values[tuple(dropped)]  # an array also where all axes are dropped
    return result


def _pieces(item: Any, extent: int, edge: int) -> list[_Piece]:
    """Cut a selection along one axis where it leaves out whole chunks."""
    if isinstance(item, slice):
        start, stop, step = item.indices(extent)
        if step == 1:
            return [_Piece(slice(start, stop), slice(0, stop - start), None)] if stop > start else []
        indices = np.arange(start, stop, step, dtype=np.int64)
    else:
        indices = np.asarray(item, dtype=np.int64).reshape(-1)
        wrong = indices[(indices < -extent) | (indices >= extent)]
        if wrong.size:
            message = f"index {wrong[0]} is out of range for an axis of {extent} values"
            raise IndexError(message)
        indices = np.where(indices < 0, indices + extent, indices)
    cuts = np.flatnonzero(np.diff(indices // edge) > 1) + 1
    pieces: list[_Piece] = []
    for first, last in itertools.pairwise((0, *cuts.tolist(), indices.size)):
        if last == first:
            continue
        low, high = int(indices[first]), int(indices[last - 1]) + 1
        chosen = indices[first:last] - low
        whole = high - low == last - first and bool((np.diff(chosen) == 1).all())
        pieces.append(_Piece(slice(low, high), slice(first, last), None if whole else chosen))
    return pieces


def _indices(piece: _Piece) -> NDArray[np.int64]:
    return np.arange(piece.box.stop - piece.box.start) if piece.chosen is None else piece.chosen
