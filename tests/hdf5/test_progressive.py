# SPDX-License-Identifier: BSD-3-Clause
"""Datasets of progressive chunks: any reader gets the full stored precision, and the same as h5py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from . import support
from .support import field, frames
from .test_tools import numbers

Tool = Callable[..., str]
PROGRESSIVE = 6
SHAPE, CHUNKS = (40, 37, 33), (16, 37, 20)  # chunks at the edges are cut
BOUND, FILL = 1e-3, 1e20


def words(bound: float = BOUND) -> dict[str, object]:
    return support.compressed(support.words(bound, codec=PROGRESSIVE))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Both byte orders, missing values, a dataset that grows, chunks that were never written."""
    with h5py.File(tmp_path / "a.nc", "w") as file:
        for name, n in zip("zyx", SHAPE, strict=True):
            file[name] = np.arange(float(n))
            file[name].make_scale()
        for name, dtype in (("le", "<f4"), ("be", ">f4"), ("f8", "<f8"), ("be8", ">f8")):
            file.create_dataset(name, data=field(SHAPE, dtype), chunks=CHUNKS, **words())
        holes = field(SHAPE, "f4")
        holes[5:20, :9], holes[30:, 5] = FILL, np.nan
        file.create_dataset("holes", data=holes, chunks=CHUNKS, fillvalue=np.float32(FILL), **words())
        file["holes"].attrs["_FillValue"] = np.float32(FILL)
        grown = file.create_dataset("grown", (0, 5), "f4", chunks=(7, 5), maxshape=(None, 5), **words())
        for rows in (3, 7, 20):
            grown.resize(rows, axis=0)
            grown[...] = field((20, 5))[:rows]
        part = file.create_dataset("part", (40, 40), "f4", chunks=(16, 16), fillvalue=-9.0, **words())
        part[17:30, 5] = 1.5
        for name in ("le", "be", "f8", "be8", "holes"):
            for i, axis in enumerate("zyx"):
                file[name].dims[i].attach_scale(file[axis])
        assert {frame[8] for name in ("le", "be", "f8", "be8", "holes") for frame in frames(file[name])} == {
            PROGRESSIVE
        }
    return tmp_path / "a.nc"


def test_h5py(path: Path) -> None:
    with h5py.File(path) as file:
        for name in ("le", "be", "f8", "be8"):
            assert support.largest_error(file[name][...], field(SHAPE, file[name].dtype)) <= BOUND
            assert np.array_equal(file[name][3:20:2, 5, -3:], file[name][...][3:20:2, 5, -3:])
        assert file["be"][...].tobytes() == file["le"][...].byteswap().tobytes()
        holes, missing = file["holes"][...], np.zeros(SHAPE, bool)
        missing[5:20, :9] = True
        assert np.array_equal(holes == np.float32(FILL), missing)
        assert np.isnan(holes[30:, 5]).all()
        assert np.isnan(holes).sum() == holes[30:, 5].size
        assert support.largest_error(file["grown"][...], field((20, 5))) <= BOUND
        part = np.full((40, 40), -9.0, "f4")
        part[17:30, 5] = 1.5
        assert np.abs(file["part"][...] - part).max() <= BOUND
        assert np.array_equal(file["part"][...] == -9, part == -9)
        assert file["part"].id.get_num_chunks() == 1


@pytest.mark.parametrize("name", ["le", "be8", "holes"])
def test_h5dump(path: Path, tool: Tool, name: str) -> None:
    with h5py.File(path) as file:
        expected = file[name][...].ravel()
    said = tool("h5dump", "-m", "%.17g", "-w", "0", "-d", f"/{name}", path)
    shown = numbers(said[: said.index("ATTRIBUTE")])
    assert np.array_equal(np.array(shown, expected.dtype), expected, equal_nan=True)


def test_ncdump_and_nccopy(path: Path, tmp_path: Path, tool: Tool) -> None:
    shown = tool("ncdump", "-s", "-v", "be", "-p", "9,17", path)
    assert f'be:_Filter = "{support.FILTER_ID},' in shown
    block = shown[shown.index(" be =") + 5 :]
    values = np.array([float(number) for number in block[: block.index(";")].split(",")], "f4")
    with h5py.File(path) as file:
        assert np.array_equal(values, file["be"][...].ravel())
    tool("nccopy", path, tmp_path / "b.nc")  # decodes, and encodes again with the same filter
    with h5py.File(path) as a, h5py.File(tmp_path / "b.nc") as b:
        assert str(support.FILTER_ID) in b["holes"]._filters
        for name in ("le", "f8", "holes"):
            assert np.array_equal(np.isnan(a[name][...]), np.isnan(b[name][...]))
            same = np.isfinite(a[name][...]) & (a[name][...] < FILL)
            assert np.abs(a[name][...] - b[name][...])[same].max() <= BOUND
            assert np.array_equal(a[name][...][~same], b[name][...][~same], equal_nan=True)


def test_h5repack(path: Path, tmp_path: Path, tool: Tool) -> None:
    tool("h5repack", "-f", "GZIP=1", path, tmp_path / "plain.h5")
    tool("h5repack", path, tmp_path / "same.h5")
    with h5py.File(path) as a, h5py.File(tmp_path / "plain.h5") as b, h5py.File(tmp_path / "same.h5") as c:
        for name in ("le", "be", "holes", "grown", "part"):
            assert str(support.FILTER_ID) not in b[name]._filters
            assert a[name][...].tobytes() == b[name][...].tobytes()
            assert frames(a[name]) == frames(c[name]) or np.nanmax(np.abs(a[name][...] - c[name][...])) <= BOUND


def test_xarray(path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    with xarray.open_dataset(path, engine="h5netcdf", phony_dims="sort") as dataset, h5py.File(path) as file:
        assert np.array_equal(dataset["le"].values, file["le"][...])
        holes = dataset["holes"].isel(z=6, y=2).values
        assert np.isnan(holes).all()  # the fill value, masked


def test_calls_for_other_types_and_ranks(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "b.h5", "w") as file:
        with pytest.raises(ValueError, match="progressive cannot compress dtype i32, allowed: f32, f64"):
            file.create_dataset("i", (9, 9), "i4", chunks=(3, 3), **words())
        values = field((3, 4, 9, 10), "f8")
        file.create_dataset("r4", data=values, chunks=(2, 4, 9, 10), **words())
        assert support.largest_error(file["r4"][...], values) <= BOUND
        scalar = field((1,), "f4")
        file.create_dataset("one", data=scalar, chunks=(1,), **words())
        assert support.largest_error(file["one"][...], scalar) <= BOUND
