# SPDX-License-Identifier: BSD-3-Clause
"""The clients that write: h5py with chunk caches of any size, and netCDF4, each on a file of its own kind."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
from numpy.typing import NDArray

import pyfilter

Array = NDArray[Any]
NAME = "x"


class H5pyFile:
    """A file that h5py makes, and opens with a chunk cache of ``cache`` bytes."""

    def __init__(self, path: Path, cache: int):
        self.path, self.cache = path, cache
        self.file: Any = None

    def create(
        self, shape: tuple[int, ...], chunk: tuple[int, ...], dtype: str, fill: float, codec: pyfilter.Codec
    ) -> None:
        """Make the dataset, and leave the file open."""
        self.file = h5py.File(self.path, "w", rdcc_nbytes=self.cache)
        self.file.create_dataset(
            NAME,
            shape,
            dtype,
            chunks=chunk,
            maxshape=(None,) * len(shape),
            fillvalue=np.dtype(dtype).type(fill),
            **codec,
        )

    def open(self) -> None:
        """Open it for changes."""
        self.file = h5py.File(self.path, "r+", rdcc_nbytes=self.cache)

    def close(self) -> None:
        """All that was written goes to the file."""
        if self.file is not None:
            self.file.close()
        self.file = None

    def flush(self) -> None:
        """The same, and chunks stay cached."""
        self.file.flush()

    def resize(self, shape: tuple[int, ...]) -> None:
        """Cut values off, or add fill values."""
        self.file[NAME].resize(shape)

    def write(self, where: tuple[slice, ...], values: Array) -> None:
        """Write a part."""
        self.file[NAME][where] = values

    def read(self, where: tuple[slice, ...] | None = None) -> Array:
        """Read a part, or all."""
        return np.asarray(self.file[NAME][... if where is None else where])


class NetcdfFile(H5pyFile):
    """A file that netCDF4 makes; all dimensions are unlimited, so that writing beyond the end resizes it."""

    def create(
        self, shape: tuple[int, ...], chunk: tuple[int, ...], dtype: str, fill: float, codec: pyfilter.Codec
    ) -> None:
        self.file = netCDF4.Dataset(self.path, "w")
        self._settings()
        names = tuple(f"d{i}" for i in range(len(shape)))
        for name in names:
            self.file.createDimension(name, None)
        variable = self.file.createVariable(
            NAME, dtype, names, chunksizes=chunk, fill_value=np.dtype(dtype).type(fill), endian="native"
        )
        pyfilter.netcdf.compress(variable, codec)
        self._use(variable)

    def open(self) -> None:
        self.file = netCDF4.Dataset(self.path, "a")
        self._settings()
        self._use(self.file[NAME])

    def _settings(self) -> None:
        self.file.set_auto_mask(False)
        self.file.set_auto_scale(False)

    def _use(self, variable: Any) -> None:
        variable.set_auto_maskandscale(False)
        variable.set_var_chunk_cache(size=self.cache, nelems=53)

    def flush(self) -> None:
        self.file.sync()

    def resize(self, shape: tuple[int, ...]) -> None:
        """Variables grow by being written to; netCDF cannot cut them."""


def repack(path: Path) -> None:
    """Run h5repack over a file, in its place."""
    copy = path.with_name("repacked")
    subprocess.run(["h5repack", path, copy], check=True, capture_output=True)
    copy.replace(path)


def transcode(path: Path) -> None:
    """Copy the dataset by reading and writing it, chunks of the same shape and settings, within this process."""
    copy = path.with_name("copied")
    with h5py.File(path) as old, h5py.File(copy, "w") as new:
        plist = old[NAME].id.get_create_plist()
        dataset = h5py.Dataset(
            h5py.h5d.create(new.id, NAME.encode(), old[NAME].id.get_type(), old[NAME].id.get_space(), plist)
        )
        if dataset.size:
            dataset[...] = old[NAME][...]
    copy.replace(path)
