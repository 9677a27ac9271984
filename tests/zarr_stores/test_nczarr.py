# SPDX-License-Identifier: BSD-3-Clause
"""NCZarr stores of netCDF-C in zarr-python and xarray, and what netCDF-C reads of what zarr-python writes.

netCDF-C reads its plugin path once, so each use of it is a process of its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from python.support import clean_environment, run_script

import pyfilter
from pyfilter.zarr import create_array, encoding

from .support import FILL, within

SHAPE, CHUNK = (6, 36, 72), (2, 20, 50)
CODECS = [pyfilter.HierarchicalDelta(absolute=0.01), pyfilter.Cuszp2(relative=1e-3, block_dims=2), pyfilter.Lossless()]
WRITE = """
import sys, warnings, numpy as np
warnings.simplefilter("ignore", UserWarning)  # netCDF4 of a big-endian type
import pyfilter, netCDF4
values = np.load(sys.argv[1])
with netCDF4.Dataset(sys.argv[2], "w") as file:
    for name, extent in zip("tyx", values.shape):
        file.createDimension(name, extent)
    endian = {"<": "little", ">": "big"}[sys.argv[4][0]]
    v = file.createVariable("v", "f4", ("t", "y", "x"), fill_value=1e20, chunksizes=(2, 20, 50), endian=endian)
    pyfilter.netcdf.compress(v, pyfilter.Codec.from_cd_values(map(int, sys.argv[3].split(","))))
    v[:] = values
"""
READ = """
import sys, numpy as np, pyfilter, netCDF4
with netCDF4.Dataset(sys.argv[1]) as file:
    file.set_auto_mask(False)
    v = file["v"]
    assert pyfilter.netcdf.codec_of(v) is not None
    np.save(sys.argv[2], v[:].astype("=" + v.dtype.str[1:]))
"""


def field() -> Any:
    """Return temperatures with a mask of the fill value."""
    values = 280 + 20 * np.sin(np.linspace(0, 40, np.prod(SHAPE))).reshape(SHAPE)
    values[:, :9, 5:20] = FILL
    return values.astype("f4")


@pytest.fixture(autouse=True)
def _needs_netcdf4() -> None:
    pytest.importorskip("netCDF4")


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: type(codec).__name__)
@pytest.mark.parametrize("dtype", ["<f4", ">f4"])
@pytest.mark.parametrize("mode", ["nczarr", "zarr"])
def test_stores_of_netcdf_open(tmp_path: Path, codec: pyfilter.Codec, dtype: str, mode: str) -> None:
    np.save(tmp_path / "values.npy", field())
    url = f"{(tmp_path / 'a').as_uri()}#mode={mode},file"
    if dtype[0] == ">" and codec.range_fraction is not None:
        words = ",".join(map(str, codec.filter_options))
        done = run_script(WRITE, tmp_path / "values.npy", url, words, dtype, check=False)
        assert "pads chunks with a fill value of the wrong byte order" in done.stderr
        return
    run_script(WRITE, tmp_path / "values.npy", url, ",".join(map(str, codec.filter_options)), dtype)
    group = zarr.open_group(tmp_path / "a", mode="r", zarr_format=2)
    assert group["v"].compressors[0].codec.filter_options == codec.filter_options
    assert group["v"].dtype == np.dtype(dtype)
    assert within(field(), group["v"][...].astype("f4"), codec, np.float32(FILL))
    xarray = pytest.importorskip("xarray")
    with xarray.open_zarr(tmp_path / "a", consolidated=False, zarr_format=2) as dataset:
        masked = np.where(field() > 1e19, np.nan, field())
        assert within(masked, dataset["v"].values.astype("f4"), codec, None)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: type(codec).__name__)
@pytest.mark.parametrize("mode", ["nczarr", "zarr"])
def test_netcdf_reads_what_zarr_python_writes(tmp_path: Path, codec: pyfilter.Codec, mode: str) -> None:
    group = zarr.open_group(tmp_path / "a", mode="w", zarr_format=2)
    array = create_array(group, field(), codec, name="v", chunks=CHUNK, fill_value=FILL)
    array.attrs["_ARRAY_DIMENSIONS"] = ["t", "y", "x"]
    url = f"{(tmp_path / 'a').as_uri()}#mode={mode},file"
    run_script(READ, url, tmp_path / "b.npy", env=clean_environment())
    assert within(field(), np.load(tmp_path / "b.npy"), codec, np.float32(FILL))


def test_netcdf_reads_what_xarray_writes(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    masked = np.where(field() > 1e19, np.nan, field()).astype("f4")
    dataset = xarray.Dataset({"v": (("t", "y", "x"), masked)})
    dataset["v"].encoding["_FillValue"] = np.float32(FILL)
    codec = pyfilter.Lorenzo(absolute=0.01)
    given = encoding(dataset, codec, zarr_format=2)
    dataset.to_zarr(tmp_path / "a", zarr_format=2, encoding=given, consolidated=False)
    said = json.loads((tmp_path / "a" / "v" / ".zarray").read_text())["compressor"]
    assert said["cd_values"] == list(codec.filter_options)
    run_script(READ, f"{(tmp_path / 'a').as_uri()}#mode=zarr,file", tmp_path / "b.npy")
    assert within(field(), np.load(tmp_path / "b.npy"), codec, np.float32(FILL))
