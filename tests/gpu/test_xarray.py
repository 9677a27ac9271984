# SPDX-License-Identifier: BSD-3-Clause
"""xarray's engine "pyfilter" with device="cuda": variables that pyfilter compressed are decoded on the device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyfilter

xr = pytest.importorskip("xarray")
pytest.importorskip("netCDF4")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    values = np.cumsum(rng.normal(0, 0.1, (6, 40, 64)), axis=0).astype("f4")
    data = xr.Dataset(
        {
            "t": (("time", "y", "x"), values),
            "u": (("time", "y", "x"), values),
            "masked": (("time", "y", "x"), np.where(values > 0.2, np.nan, values)),
            "plain": (("y", "x"), values[0]),
            "when": ("time", np.datetime64("2000-01-01", "ns") + np.arange(6)),
        },
        {"x": np.arange(64.0)},
    )
    codecs = {
        "t": pyfilter.Lorenzo(absolute=1e-3),
        "u": pyfilter.Progressive(absolute=1e-5),
        "masked": pyfilter.Lorenzo(absolute=1e-3),
        "when": pyfilter.Lossless(),
        "x": pyfilter.Lossless(),
    }
    chunks = {name: {"chunksizes": (2, 40, 32)} for name in ("t", "u", "masked")}
    chunks["masked"]["_FillValue"] = 1e20  # type: ignore[assignment]
    pyfilter.xarray.to_netcdf(data, tmp_path / "a.nc", codecs=codecs, encoding=chunks)
    return tmp_path / "a.nc"


PARTS: list[dict[str, Any]] = [{}, {"time": 3, "x": slice(5, 50, 7)}, {"time": slice(4, 1, -1), "y": slice(3, 3)}]


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_variables_are_on_the_device(path: Path, cp: Any, part: dict[str, Any]) -> None:
    with (
        xr.open_dataset(path, engine="netcdf4", decode_cf=False) as expected,
        xr.open_dataset(path, engine="pyfilter", device="cuda", decode_cf=False) as found,
        xr.open_dataset(path, engine="pyfilter", device="cuda", tolerance=0.1, decode_cf=False) as coarse,
    ):
        for name in ("t", "u", "masked"):
            values = found[name].isel(part).data
            assert isinstance(values, cp.ndarray)
            np.testing.assert_array_equal(values.get(), expected[name].isel(part).values)
        near = coarse["u"].isel(part).data.get()
        assert np.all(np.abs(near - expected["u"].isel(part).values) <= 0.1)
        assert near.size == 0 or not np.array_equal(near, expected["u"].isel(part).values)
        for name in ("plain", "when", "x"):
            assert isinstance(found[name].values, np.ndarray)
            xr.testing.assert_identical(found[name].variable, expected[name].variable)


def test_an_address(path: Path, cp: Any) -> None:
    pytest.importorskip("fsspec")
    with (
        xr.open_dataset(path, engine="netcdf4", decode_cf=False) as expected,
        xr.open_dataset(f"file://{path}", engine="pyfilter", device="cuda", decode_cf=False, tolerance=0.0) as found,
    ):
        for name in ("t", "u"):
            assert isinstance(found[name].data, cp.ndarray)
            np.testing.assert_array_equal(found[name].data.get(), expected[name].values)


@pytest.mark.device_only
def test_decoding_on_the_device(path: Path, cp: Any) -> None:
    """Fill values become NaN there; times and coordinates are NumPy's."""
    with (
        xr.open_dataset(path, engine="netcdf4") as expected,
        xr.open_dataset(path, engine="pyfilter", device="cuda") as found,
    ):
        for name in ("t", "u", "masked"):
            assert isinstance(found[name].data, cp.ndarray)
            np.testing.assert_array_equal(found[name].data.get(), expected[name].values)
        mean = found.masked.isel(time=slice(0, 2)).max()
        assert float(mean.data.get()) == float(expected.masked.isel(time=slice(0, 2)).max())
        xr.testing.assert_identical(found.when, expected.when)
