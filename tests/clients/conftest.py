# SPDX-License-Identifier: BSD-3-Clause
"""A compressed netCDF file, a plain one with the values that a reader of it must get, and how programs are run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hdf5 import support
from numpy.typing import NDArray

import pyfilter

FILL = 1e20
SHAPE = (6, 36, 72)
CHUNK = (1, 36, 72)


@dataclass(frozen=True)
class Pair:
    """``compressed`` and ``plain`` hold the same values: those that come out of the codec."""

    folder: Path
    values: NDArray[Any]

    @property
    def compressed(self) -> Path:
        return self.folder / "compressed.nc"

    @property
    def plain(self) -> Path:
        return self.folder / "plain.nc"


def field() -> NDArray[np.float32]:
    """Temperature in K with a land mask."""
    lat, lon = np.radians(np.linspace(-87.5, 87.5, SHAPE[1]))[:, None], np.radians(np.arange(0, 360, 5.0))[None, :]
    rng = np.random.default_rng(3)
    values = 280 + 20 * np.cos(lat) + np.sin(3 * lon) + rng.normal(0, 0.1, SHAPE)
    values[:, np.sin(2 * lon) * np.cos(lat) > 0.7] = FILL
    return np.asarray(values.astype("f4"))


def write(path: Path, values: NDArray[Any], codec: pyfilter.Codec | None) -> None:
    """Write a CF file by netCDF4."""
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(path, "w") as file:
        coordinates = (
            ("time", np.arange(6.0) * 30, "days since 2000-01-01", "time"),
            ("lat", np.linspace(-87.5, 87.5, SHAPE[1]), "degrees_north", "latitude"),
            ("lon", np.arange(0, 360, 5.0), "degrees_east", "longitude"),
        )
        for name, numbers, units, standard in coordinates:
            file.createDimension(name, None if name == "time" else numbers.size)
            variable = file.createVariable(name, "f8", (name,))
            variable.units, variable.standard_name = units, standard
            variable[:] = numbers
        tas = file.createVariable("tas", "f4", ("time", "lat", "lon"), fill_value=FILL, chunksizes=CHUNK)
        tas.units = "K"
        if codec is not None:
            pyfilter.netcdf.compress(tas, codec)
        tas[:] = values


@pytest.fixture(scope="session", params=[cls for cls in pyfilter.FILTERS])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """One for each codec."""
    cls: Any = pyfilter.FILTERS[request.param]
    codec = cls(absolute=0.01) if "none" not in cls.spec().bounds else cls()
    folder = tmp_path_factory.mktemp(request.param)
    write(folder / "compressed.nc", field(), codec)
    with h5py.File(folder / "compressed.nc") as file:
        values = file["tas"][...]
        assert pyfilter.verify(field(), file["tas"]).ok
    write(folder / "plain.nc", values, None)
    return Pair(folder, values)


@pytest.fixture(scope="session")
def env() -> dict[str, str]:
    return support.environment(pyfilter.PLUGIN_PATH)


@pytest.fixture(scope="session")
def tool(env: dict[str, str]) -> Callable[..., str]:
    """Run a program; skips the test where it is not installed."""
    return lambda name, *arguments: support.run_tool(name, *arguments, env=env)


@pytest.fixture(scope="session")
def script(env: dict[str, str]) -> Callable[..., str]:
    """Run Python in a fresh interpreter that knows of the filter by its path only, not by entry points."""
    env = {**env, "PYTHONPATH": os.pathsep.join([str(support.TESTS / "uninstalled"), env["PYTHONPATH"]])}
    env["PYFILTER_LIBRARY"] = str(Path(pyfilter.PLUGIN_PATH) / "libh5pyfilter.so")  # the installed one is hidden

    def run(text: str, *arguments: str | Path) -> str:
        done = subprocess.run(
            [sys.executable, "-c", text, *map(str, arguments)],
            env=env, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
