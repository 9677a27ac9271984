# SPDX-License-Identifier: BSD-3-Clause
"""The order of particles on a device (`pyfilter.particles.write` of device arrays)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyfilter._lib import cuda
from pyfilter.frames import make_request
from pyfilter.gpu import arrays

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyfilter.codecs import Codec


def stacked(columns: Sequence[Any]) -> Any:
    """Stack coordinates, arrays (N,), into a cupy.ndarray (N, 2) or (N, 3); at least one must be a cupy.ndarray."""
    cupy = arrays.import_cupy()
    device = next(column.device.id for column in columns if isinstance(column, cupy.ndarray))
    with cupy.cuda.Device(device):
        return cupy.stack([cupy.asarray(column) for column in columns], axis=-1)


def permutation(positions: Any, sorting: Codec, rows: int) -> Any:
    """Return for each row of the result its row in ``positions``, as int64 on the device; rows stay in their chunk.

    Parameters
    ----------
    positions : cupy.ndarray (N, 2) or (N, 3)
        Coordinates, float32 or float64.
    sorting : Codec
        `Particles` with the wanted order.
    rows : int
        Particles in a chunk.
    """
    cupy = arrays.import_cupy()
    with cupy.cuda.Device(positions.device.id):
        values = cupy.ascontiguousarray(positions)
        found = cupy.empty(len(values), dtype=cupy.uint32)
        stream = cupy.cuda.get_current_stream().ptr
        for first in range(0, len(values), rows):
            part = values[first : first + rows]
            request = make_request(sorting, part.dtype, part.shape)
            cuda.particle_order(request, part.data.ptr, part.nbytes, found[first:].data.ptr, stream)
        return found + cupy.arange(len(values), dtype=cupy.int64) // rows * rows


@arrays.device_errors()
def keep(index: Any, first: int, stop: int) -> None:
    """Keep the order of the rows from ``first`` to ``stop`` in a cupy.ndarray from `permutation`."""
    cupy = arrays.import_cupy()
    with cupy.cuda.Device(index.device.id):
        index[first:stop] = cupy.arange(stop - first, dtype=cupy.int64) + first


@arrays.device_errors()
def padded(values: Any, rows: int) -> Any:
    """Return a cupy.ndarray with rows of zeros appended, as HDF5 fills a chunk."""
    cupy = arrays.import_cupy()
    with cupy.cuda.Device(values.device.id):
        block = cupy.empty((rows, *values.shape[1:]), dtype=values.dtype)
        block[: len(values)] = values
        block[len(values) :] = 0
        return block
