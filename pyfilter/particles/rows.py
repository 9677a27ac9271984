# SPDX-License-Identifier: BSD-3-Clause
"""The order in which `pyfilter.particles.write` writes the rows of a set of particles.

Sorted rows usually make positions smaller. They make fields larger that were in an order of their own: positions of a
crystal, ascending ids. So all fields of each chunk are encoded in both orders, and rows are sorted only where that
takes fewer bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import dtypes, h5
from pyfilter._lib import host
from pyfilter.codecs import Particles
from pyfilter.frames import encode, make_request
from pyfilter.gpu.arrays import is_device_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pyfilter.codecs import Codec


@dataclass(frozen=True)
class Column:
    """A future dataset: its values in NumPy or CuPy, and its codec."""

    values: Any
    codec: Codec

    def resolved(self, rows: int) -> Column:
        """Return it with its dataset's absolute bound, for chunks of ``rows`` rows."""
        return Column(self.values, h5.resolve(self.codec, self.values, None, (rows, *self.values.shape[1:])))

    def by_coordinate(self, codec: Codec) -> list[Column]:
        """Return positions (N, k) as k columns (N, 1) of another codec, and a coordinate (N,) as itself."""
        if self.values.ndim == 1:
            return [Column(self.values, codec)]
        return [Column(self.values[:, axis : axis + 1], codec) for axis in range(self.values.shape[1])]

    def frame_bytes(self, index: Any, rows: int) -> int:
        """Return the size of a chunk that has the rows of ``index``, padded to ``rows`` as HDF5 pads it."""
        return len(encode(_padded(rearranged(self.values, index), rows), self.codec))


def sorted_index(positions: Any, codec: Codec, order: str, rows: int) -> Any:
    """Return the row for each row number, on the device of the positions; rows stay in their chunk.

    Parameters
    ----------
    positions : ndarray or cupy.ndarray (N, 2) or (N, 3)
        Coordinates, float32 or float64.
    codec : Codec
        Gives the bound.
    order : {"tile", "chunk"}
        How far rows may move.
    rows : int
        Particles in a chunk.
    """
    sorting = Particles(**{codec.bound[0]: codec.bound[1]}, order=order)
    if is_device_array(positions):
        from pyfilter.gpu import order as on_device

        return on_device.permutation(positions, sorting, rows)
    native = np.ascontiguousarray(positions, dtypes.native(positions.dtype))
    index = np.arange(len(native))
    for first in range(0, len(native), rows):
        part = native[first : first + rows]
        request = make_request(sorting, part.dtype, part.shape)
        index[first : first + rows] = first + host.particle_order(request, part).astype(np.int64)
    return index


def worthwhile(
    index: Any, columns: Sequence[Column], position: Sequence[Column], apart: Sequence[Column], rows: int
) -> Any:
    """Return ``index`` with the rows of a chunk unsorted unless sorting makes its fields smaller in all.

    Parameters
    ----------
    index : ndarray or cupy.ndarray of int64
        From `sorted_index`; it is changed.
    columns : sequence of Column
        The fields but the position.
    position : sequence of Column
        The position as it is stored where rows are sorted.
    apart : sequence of Column
        The position as it is stored where no row moves; ``position`` where that is the same.
    rows : int
        Particles in a chunk.

    Returns
    -------
    ndarray, cupy.ndarray or None
        None where all fields take fewer bytes, or as many, if no row moves at all.
    """
    count = len(index)
    chosen = unmoved = 0
    for first in range(0, count, rows):
        stop = min(first + rows, count)
        given, wanted = slice(first, stop), index[first:stop]
        others = sum(column.frame_bytes(given, rows) for column in columns)
        kept = others + sum(column.frame_bytes(given, rows) for column in position)
        changed = sum(column.frame_bytes(wanted, rows) for column in (*columns, *position))
        unmoved += others + sum(column.frame_bytes(given, rows) for column in apart) if apart is not position else kept
        chosen += min(kept, changed)
        if changed >= kept:
            _keep(index, first, stop)
    return index if chosen < unmoved else None


def rearranged(values: Any, index: Any) -> Any:
    """Return the rows of an array at ``index`` (numbers or a slice), on the array's device."""
    if isinstance(index, slice):
        return values[index]
    if not is_device_array(values):
        return values[on_host(index)]
    from pyfilter.gpu import arrays

    return arrays.rows(values, index)


def on_host(values: Any) -> NDArray[Any]:
    """Return a NumPy array of an array's values."""
    if not is_device_array(values):
        return np.asarray(values)
    from pyfilter.gpu import arrays

    copied: NDArray[Any] = arrays.to_host(values)
    return copied


def _keep(index: Any, first: int, stop: int) -> None:
    """Set rows to stay at their positions."""
    if is_device_array(index):
        from pyfilter.gpu import order

        order.keep(index, first, stop)
    else:
        index[first:stop] = np.arange(first, stop)


def _padded(values: Any, rows: int) -> Any:
    """Return an array padded with rows of zeros."""
    if len(values) == rows:
        return values
    if is_device_array(values):
        from pyfilter.gpu import order

        return order.padded(values, rows)
    block = np.zeros((rows, *values.shape[1:]), dtype=values.dtype)
    block[: len(values)] = values
    return block
