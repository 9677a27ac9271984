# SPDX-License-Identifier: BSD-3-Clause
"""CDO, NCO, GDAL's netCDF and HDF5 drivers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter

from .conftest import FILL, SHAPE, Pair, field, write

Tool = Callable[..., str]


def variable(path: Path, name: str = "tas") -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    with h5py.File(path) as file:
        values: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = file[name][...]
    return values


# -- CDO


def test_cdo_statistics(pair: Pair, tool: Tool) -> None:
    for operators in (["infon"], ["outputf,%.9g", "-fldmean"], ["outputf,%.9g", "-yearmean", "-selindexbox,5,20,3,9"]):
        compressed, plain = (tool("cdo", "-s", *operators, path) for path in (pair.compressed, pair.plain))
        assert compressed == plain
        assert re.search(r"\d\d\d\.\d", compressed)


def test_cdo_copies_values(pair: Pair, tool: Tool, tmp_path: Path) -> None:
    tool("cdo", "-s", "-f", "nc4", "copy", pair.compressed, tmp_path / "a.nc")
    assert np.array_equal(variable(tmp_path / "a.nc"), pair.values)


# -- NCO


def test_ncra_averages(pair: Pair, tool: Tool, tmp_path: Path) -> None:
    for name, path in (("a.nc", pair.compressed), ("b.nc", pair.plain)):
        tool("ncra", "-O", "--cmp=none", path, tmp_path / name)
    mean = variable(tmp_path / "a.nc")[0]
    assert np.array_equal(mean, variable(tmp_path / "b.nc")[0])
    ocean = pair.values[0] != np.float32(FILL)
    assert np.allclose(mean[ocean], pair.values[:, ocean].mean(axis=0), atol=1e-3)
    assert np.all(mean[~ocean] == np.float32(FILL))


def test_ncks_extracts(pair: Pair, tool: Tool, tmp_path: Path) -> None:
    """NCO repeats the filter of its input with one parameter alone (5.1), so it has to be told not to compress."""
    tool("ncks", "-O", "--cmp=none", "-d", "time,1,2", "-d", "lon,10,20", pair.compressed, tmp_path / "a.nc")
    assert np.array_equal(variable(tmp_path / "a.nc"), pair.values[1:3, :, 10:21])
    shown = tool("ncks", "-H", "-C", "-v", "tas", "-d", "time,3", "-d", "lat,4", "-d", "lon,5,6", pair.compressed)
    assert [float(item) for item in re.findall(r"\d+\.\d+", shown)] == pytest.approx(pair.values[3, 4, 5:7], abs=1e-3)


# -- GDAL


@pytest.mark.parametrize("source", ["NETCDF:{}:tas", "HDF5:{}://tas"])
def test_gdal_raster(pair: Pair, tool: Tool, tmp_path: Path, source: str) -> None:
    name = source.format(pair.compressed)
    tool("gdal_translate", "-q", "-of", "ENVI", name, tmp_path / "a.img")
    values = np.fromfile(tmp_path / "a.img", "<f4").reshape(SHAPE)
    if source.startswith("NETCDF"):
        values = values[:, ::-1]  # north up
    assert np.array_equal(values, pair.values)


def test_gdal_knows_what_is_missing(pair: Pair, tool: Tool) -> None:
    said = tool("gdalinfo", "-checksum", f"NETCDF:{pair.compressed}:tas")
    assert "NoData Value=1e+20" in said
    assert re.findall("Checksum=.*", said) == re.findall(
        "Checksum=.*", tool("gdalinfo", "-checksum", f"NETCDF:{pair.plain}:tas")
    )


# -- netCDF's own


def test_ncdump_and_nccopy(pair: Pair, tool: Tool, tmp_path: Path) -> None:
    data = [tool("ncdump", "-v", "tas", path).partition("data:")[2] for path in (pair.compressed, pair.plain)]
    assert data[0] == data[1]
    assert "_Filter" in tool("ncdump", "-hs", pair.compressed)
    tool("nccopy", pair.compressed, tmp_path / "a.nc")
    copied = variable(tmp_path / "a.nc")
    assert np.array_equal(copied, pair.values)


def test_nccopy_moves_no_value(tool: Tool, tmp_path: Path) -> None:
    """A value that equals one of another chunk by chance must not hide the frame that the chunk was read from."""
    original = field()
    there = original != np.float32(FILL)
    for seed in range(12):  # about one file in seven has such a value in the memory of an earlier chunk
        values = original.copy()
        values[there] += np.random.default_rng(seed).normal(0, 0.1, int(there.sum())).astype("f4")
        write(tmp_path / "a.nc", values, pyfilter.Adaptive(absolute=0.01))
        tool("nccopy", tmp_path / "a.nc", tmp_path / "b.nc")
        copied = variable(tmp_path / "b.nc")
        assert np.array_equal(copied, variable(tmp_path / "a.nc"))
        assert np.abs(copied[there].astype("f8") - values[there]).max() <= 0.01


@pytest.mark.parametrize("bound", [{"relative": 1e-3}, {"psnr": 60.0}], ids=["relative", "psnr"])
@pytest.mark.parametrize("name", ["lorenzo", "hierarchical_delta", "progressive", "adaptive"])
def test_nccopy_hides_the_fill_value(tool: Tool, tmp_path: Path, name: str, bound: dict[str, Any]) -> None:
    """HDF5 does not know of it in copies: 1e20 must not count for the range of a bound."""
    codec = pyfilter.FILTERS[name](**bound)
    write(tmp_path / "a.nc", field(), codec)
    values = variable(tmp_path / "a.nc")
    tool("nccopy", tmp_path / "a.nc", tmp_path / "same.nc")
    assert np.array_equal(variable(tmp_path / "same.nc"), values)
    tool("nccopy", "-c", "time/4,lat/25,lon/50", tmp_path / "a.nc", tmp_path / "other.nc")  # chunks at the edges too
    assert pyfilter.verify(values, variable(tmp_path / "other.nc"), codec, fill_value=np.float32(FILL)).ok
    tool("nccopy", tmp_path / "same.nc", tmp_path / "again.nc")
    assert np.array_equal(variable(tmp_path / "again.nc"), values)


def test_nccopy_with_a_relative_bound_is_refused(tool: Tool, tmp_path: Path, env: dict[str, str]) -> None:
    write(tmp_path / "a.nc", field(), None)
    words = pyfilter.Lorenzo(relative=1e-3).filter_options
    given = f"tas,{pyfilter.FILTER_ID}," + ",".join(map(str, words))
    done = subprocess.run(
        ["nccopy", "-F", given, tmp_path / "a.nc", tmp_path / "b.nc"],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "HDF error" in done.stderr


def test_models_that_do_not_fill(tmp_path: Path) -> None:
    """netCDF4's mode "no fill": a relative bound is kept where pyfilter says that there is no fill value."""
    netCDF4 = pytest.importorskip("netCDF4")
    values = np.where(field() == np.float32(FILL), np.float32(280), field())
    for codec in (pyfilter.Lorenzo(relative=1e-3), pyfilter.Adaptive(psnr=60.0)):
        with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
            file.set_fill_off()
            for name, extent in zip("tyx", values.shape, strict=True):
                file.createDimension(name, extent)
            tas = file.createVariable("tas", "f4", ("t", "y", "x"), chunksizes=(4, 25, 50))
            pyfilter.netcdf.compress(tas, codec)
            tas[:] = values
            assert pyfilter.netcdf.codec_of(tas) == codec
        assert pyfilter.verify(values, variable(tmp_path / "a.nc"), codec).ok
