# SPDX-License-Identifier: BSD-3-Clause
"""The value range of a device array, for relative bounds; _chunks/transfer.py finds the range of host arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import dtypes
from pyfilter._chunks import layout, transfer
from pyfilter.gpu import arrays

if TYPE_CHECKING:
    from pyfilter._lib import abi

# bytes of values in a step; masks and copies of them are as large
SLAB_BYTES = 256 << 20


@arrays.device_errors()
def value_range(source: Any, request: abi.Request) -> tuple[float, float] | None:
    """Return the lowest and the highest finite value of a cupy.ndarray, its fill value left out.

    As in kernels/stages/sample.hpp, finite values that differ from the fill value count. Of complex numbers all parts
    count; with a fill value, the host finds their range.
    """
    cupy = arrays.import_cupy()
    if source.dtype.kind == "c":
        if request.has_fill:
            return transfer.value_range(arrays.to_host(source), request, source.shape)
        with cupy.cuda.Device(source.device.id):
            source = arrays.readable_by_library(source).reshape(-1).view(dtypes.part_of(source.dtype))
    dtype = source.dtype
    uncounted = [dtypes.value_of(request.fill, dtype)] if request.has_fill else []
    if request.without_zeros:
        uncounted.append(dtype.type(0))
    limits = np.iinfo(dtype) if dtype.kind != "f" else None
    highest, lowest = (np.inf, -np.inf) if limits is None else (limits.max, limits.min)
    with cupy.cuda.Device(source.device.id):
        lows, highs = [], []
        for slab in layout.slabs(source.shape, (1,) * source.ndim, dtype.itemsize, SLAB_BYTES):
            values = source[slab]
            if values.size == 0:
                continue
            counts = cupy.isfinite(values)
            for other in uncounted:
                counts &= values != other
            lows.append(cupy.where(counts, values, dtype.type(highest)).min())
            highs.append(cupy.where(counts, values, dtype.type(lowest)).max())
        if not lows:
            return None
        low, high = cupy.stack(lows).min().get().item(), cupy.stack(highs).max().get().item()
    return (low, high) if low <= high else None
