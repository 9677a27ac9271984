# SPDX-License-Identifier: BSD-3-Clause
"""The part of a dataset on which codecs are compared: all of it, or whole chunks spread evenly over it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from pyfilter import dtypes
from pyfilter._chunks import layout
from pyfilter.errors import Unsupported
from pyfilter.rewrite.plan import chunk_of, missing_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EDGES = (8, 64, 64)  # suit the blocks of every codec


@dataclass(frozen=True)
class Sample:
    """A sample of a dataset.

    Attributes
    ----------
    name : str
        Where it is from.
    values : numpy.ndarray
        The sample, C-contiguous and of the machine's byte order. Where it is not the whole dataset, chunks stand one
        behind the other along the first dimension.
    chunk : tuple of int
        The chunk shape to compress it in: no chunk of the sample spans two of the dataset.
    fill : scalar or None
        The dataset's fill value.
    specials : tuple
        All values that stand for "missing": they have to come back bit for bit.
    of_shape : tuple of int
        Shape of the whole dataset.
    """

    name: str
    values: NDArray[Any]
    chunk: tuple[int, ...]
    fill: np.generic | None
    specials: tuple[np.generic, ...]
    of_shape: tuple[int, ...]

    @property
    def share(self) -> float:
        """The share of the dataset that the sample is."""
        return self.values.size / max(math.prod(self.of_shape), 1)


def take(dataset: h5py.Dataset | NDArray[Any], name: str, limit_bytes: int) -> Sample:
    """Return a sample of at most ``limit_bytes``, but of one chunk at least.

    Parameters
    ----------
    dataset : h5py.Dataset or numpy.ndarray
        Numbers in one dimension or more.
    name : str
        What to call it.
    limit_bytes : int
        Up to this size the whole dataset is the sample.

    Raises
    ------
    TypeError
        If it has no values, no dimensions or is not of numbers.
    """
    shape = tuple(dataset.shape or ())
    if not shape or 0 in shape or not dtypes.is_base(np.dtype(dataset.dtype)):
        message = f"{name} cannot be compressed: it is of type {dataset.dtype} and shape {shape}"
        raise Unsupported(message)
    dtype = dtypes.native(dataset.dtype)
    if isinstance(dataset, h5py.Dataset):
        fill, _, others = missing_values(dataset)
        chunk = chunk_of(dataset, _EDGES[-len(shape) :])
    else:
        fill, others = None, ()
        chunk = layout.choose(shape, dtype.itemsize, None, _EDGES[-len(shape) :])
    chunk = tuple(min(edge, extent) for edge, extent in zip(chunk, shape, strict=True))
    specials = tuple(value for value in (fill, *others) if value is not None)
    if math.prod(shape) * dtype.itemsize <= limit_bytes:
        values = dataset[...]
    else:
        values = _chunks(dataset, shape, chunk, limit_bytes)
    return Sample(name, np.ascontiguousarray(values, dtype=dtype), chunk, fill, specials, shape)


def _chunks(dataset: Any, shape: tuple[int, ...], chunk: tuple[int, ...], limit_bytes: int) -> NDArray[Any]:
    """Return whole chunks, evenly spread, one behind the other."""
    counts = [extent // edge for extent, edge in zip(shape, chunk, strict=True)]
    total = math.prod(counts)
    wanted = min(max(limit_bytes // (math.prod(chunk) * dataset.dtype.itemsize), 1), total)
    parts = []
    for step in range(wanted):
        place = np.unravel_index((2 * step + 1) * total // (2 * wanted), counts)
        region = tuple(slice(int(at) * edge, (int(at) + 1) * edge) for at, edge in zip(place, chunk, strict=True))
        parts.append(np.asarray(dataset[region]))
    return np.concatenate(parts, axis=0)
