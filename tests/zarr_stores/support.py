# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of Zarr share: fields with special values, codecs of all kinds, arrays in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

import pyfilter
from pyfilter import dtypes
from pyfilter.codecs import CODECS

FILL = 1e20
SHAPE, CHUNK = (30, 41, 50), (16, 20, 32)


def field(dtype: str = "f4", shape: tuple[int, ...] = SHAPE, *, special: bool = True) -> NDArray[Any]:
    """Return a smooth field with noise; floats with a mask of the fill value, NaN with a payload and infinities."""
    rng = np.random.default_rng(5)
    values = 20 * np.sin(np.linspace(0, 30, int(np.prod(shape)))).reshape(shape) + rng.normal(0, 0.3, shape) + 50
    found = values.astype(dtype)
    if special and found.dtype.kind == "f":
        flat = found.reshape(-1)
        flat[100:900] = FILL
        flat[5:20:7] = np.nan
        bits = flat.astype(found.dtype.newbyteorder("=")).view(f"u{found.itemsize}")
        bits[41] = dtypes.pattern(np.nan, found.dtype) + 77
        flat[...] = bits.view(found.dtype.newbyteorder("="))
        flat[1000:1003] = np.inf, -np.inf, 0
    return found


def codecs() -> list[pyfilter.Codec]:
    """Return each codec with an absolute bound and other parameters than the usual ones."""
    found: list[pyfilter.Codec] = []
    for name, cls in CODECS.items():
        made: Any = cls
        if name == "particles":  # takes rows of coordinates alone: tests of their own
            continue
        found.append(made() if name == "lossless" else made(absolute=0.01))
    found += [pyfilter.Cuszp2(absolute=0.01, block_dims=3), pyfilter.HierarchicalDelta(pointwise_relative=1e-3)]
    return [*found, pyfilter.Lorenzo(absolute=0.01, coder="huffman")]


def within(original: NDArray[Any], stored: NDArray[Any], codec: Any, fill: float | None = FILL) -> bool:
    """Whether every value is within the bound; fill values, NaN and infinities bit for bit."""
    native = [np.ascontiguousarray(values, dtype=dtypes.native(values.dtype)) for values in (original, stored)]
    return pyfilter.verify(native[0], native[1], codec, fill_value=fill).ok


def create(codec: pyfilter.Codec | None, dtype: str = "f4", store: Any = None, **given: Any) -> zarr.Array:
    """Return an empty array of format 3 in memory."""
    settings: dict[str, Any] = {
        "shape": SHAPE,
        "chunks": CHUNK,
        "dtype": dtype,
        "fill_value": FILL if np.dtype(dtype).kind == "f" else 0,
        "compressors": None,
        "serializer": pyfilter.zarr.Serializer(codec),
        **given,
    }
    return zarr.create_array(zarr.storage.MemoryStore() if store is None else store, **settings)


def reopened(array: zarr.Array) -> zarr.Array:
    """Return the array as a reader finds it, by its metadata."""
    return zarr.open_array(array.store_path.store, path=array.path, mode="r")


def stored(array: zarr.Array) -> dict[str, bytes]:
    """Return the chunks of an array in a MemoryStore by their keys."""
    found: dict[str, Any] = array.store_path.store._store_dict
    return {
        key: value.to_bytes()
        for key, value in found.items()
        if not key.endswith((".json", ".zarray", ".zattrs", ".zgroup"))
    }
