# SPDX-License-Identifier: BSD-3-Clause
"""Compressed variables of dask arrays: xarray makes the file without their values, which are then streamed into it.

xarray itself has one worker at a time write, and compress while it holds the lock of HDF5. Here workers compress
blocks to frames, and the process that saves writes the frames (_chunks/blocks.py).
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
import numpy as np

from pyfilter import plugin
from pyfilter._chunks import blocks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path


class Later(NamedTuple):
    """A variable without its values: group and name, and the dask array to store."""

    group: str
    name: str
    array: Any


# set while xarray makes a file whose compressed dask arrays are left out
_later: ContextVar[list[Later] | None] = ContextVar("later", default=None)


class _Nowhere:
    """The target to which xarray writes in place of a variable."""

    def __setitem__(self, key: object, values: object) -> None:
        pass


@contextmanager
def collected() -> Iterator[list[Later]]:
    """Leave out values of compressed dask arrays that are saved in the block, and say which."""
    found: list[Later] = []
    token = _later.set(found)
    try:
        yield found
    finally:
        _later.reset(token)


def later(
    group: str | None, name: str, target: Any, source: Any, unlimited_dims: Collection[str], dims: tuple[str, ...]
) -> tuple[Any, Any]:
    """Return what xarray is to write of a new compressed variable, and where: nothing, if its values come later."""
    found = _later.get()
    if found is None or not hasattr(source, "dask") or source.size == 0:
        return target, source
    if any(dim in (unlimited_dims or ()) for dim in dims):  # one value gives it, and the dimension, its extent
        target[tuple(slice(extent - 1, extent) for extent in source.shape)] = np.zeros((1,) * source.ndim, source.dtype)
    found.append(Later("/" + (group or "").strip("/"), name, source))
    return _Nowhere(), np.zeros(source.shape[:0], source.dtype)


def write(path: Path, found: list[Later], progress: blocks.Progress | None) -> None:
    """Write the values that were left out."""
    plugin.refresh()
    with h5py.File(path, "r+") as file:
        jobs = []
        for group, name, array in found:
            inside = file[group]
            dataset = inside.get(f"_nc4_non_coord_{name}", inside[name])
            if dataset.shape != array.shape:
                dataset.resize(array.shape)
            how = blocks.encoding_of(dataset)
            if how is None:
                _by_hdf5(dataset, array)
            else:
                jobs.append(blocks.Job(blocks.aligned(array, how.chunk, rechunk=True), how, dataset))
        blocks.write(jobs, progress)


def _by_hdf5(dataset: h5py.Dataset, array: Any) -> None:
    """Write block by block through HDF5's filter pipeline, where frames cannot be written directly."""
    whole = blocks.aligned(array, dataset.chunks, rechunk=True)
    starts = [np.cumsum((0, *sizes)) for sizes in whole.chunks]
    for index in np.ndindex(whole.numblocks):
        region = tuple(slice(int(at[i]), int(at[i + 1])) for i, at in zip(index, starts, strict=True))
        dataset[region] = whole.blocks[index].compute()
