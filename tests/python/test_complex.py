# SPDX-License-Identifier: BSD-3-Clause
"""Complex numbers through the package: h5py, whole-array bounds, verify, the command, netCDF4, xarray, Zarr."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

import pyfilter
from pyfilter.cli.main import app

Array = NDArray[Any]
CODECS = (
    pyfilter.Cuszp2(relative=1e-4),
    pyfilter.HierarchicalDelta(pointwise_relative=1e-3),
    pyfilter.Lorenzo(psnr=70),
    pyfilter.Adaptive(absolute=0.01),
    pyfilter.Lossless(),
    pyfilter.Lossless(effort="ratio"),
    pyfilter.Auto(relative=1e-4),
)


def walk(dtype: str = "c8", shape: tuple[int, int] = (100, 150)) -> Array:
    steps = np.random.default_rng(3).standard_normal((*shape, 2))
    values: Array = np.ascontiguousarray(np.cumsum(steps, axis=1).astype("f8")).view("c16")[..., 0].astype(dtype)
    return values


@pytest.mark.parametrize("codec", CODECS, ids=repr)
@pytest.mark.parametrize("fill", [None, -999, -999 - 999j, 3 - 7j])
def test_create_dataset(tmp_path: Path, codec: pyfilter.Codec, fill: complex | None) -> None:
    """The same chunks as through HDF5, fill values bit for bit, parts of the dataset, the codec."""
    for dtype in ("<c8", ">c16"):
        values = walk(dtype)
        if fill is not None:
            values[20:40, 30:60] = fill
        with h5py.File(tmp_path / "a.h5", "w") as file:
            made = pyfilter.create_dataset(file, "x", values, codec, chunks=(64, 64), fillvalue=fill)
            stored = pyfilter.codec_of(made)
            fillvalue = None if fill is None else np.complex128(fill)
            file.create_dataset("y", data=values, chunks=(64, 64), fillvalue=fillvalue, compression=stored)
        with h5py.File(tmp_path / "a.h5") as file:
            for origin in ((0, 0), (64, 64), (64, 128)):
                assert file["x"].id.read_direct_chunk(origin) == file["y"].id.read_direct_chunk(origin)
            found = pyfilter.read(file["x"])
            assert found.tobytes() == file["x"][...].tobytes()
            assert np.array_equal(pyfilter.read(file["x"], np.s_[3:70, 20]), found[3:70, 20])
            assert pyfilter.verify(values, file["x"], codec if codec.is_lossless else None, fill_value=fill).ok
            assert pyfilter.check(file) == []
            if fill is not None:
                assert found[20:40, 30:60].tobytes() == values[20:40, 30:60].tobytes()


def test_verify_looks_at_each_part() -> None:
    values = walk()
    moved = values.copy()
    moved[3, 4] += 0.02j
    result = pyfilter.verify(values, moved, 0.01)
    assert (result.ok, result.violations, result.first_violation, result.values) == (False, 1, 3 * 150 + 4, 15000)
    assert abs(result.max_error - 0.02) < 1e-5
    assert pyfilter.verify(values, moved, 0.021).ok
    values[0, 0] = moved[0, 0] = complex(np.nan, 1)
    assert pyfilter.verify(values, moved, 0.021).ok
    moved[0, 0] = complex(np.nan, 1.01)
    assert pyfilter.verify(values, moved, 0.021).specials_kept
    moved[0, 0] = complex(0, 1)
    assert not pyfilter.verify(values, moved, 0.021).specials_kept
    values[1, 1] = moved[1, 1] = -999
    moved[1, 1] += 0.001j
    assert not pyfilter.verify(values, moved, 0.021, fill_value=-999).ok


def test_range_is_that_of_all_parts(tmp_path: Path) -> None:
    values = np.linspace(0, 1, 1000) + 5j * np.linspace(0, 1, 1000)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = pyfilter.create_dataset(file, "x", values, pyfilter.Cuszp2(relative=1e-3))
        assert pyfilter.codec_of(made) == pyfilter.Cuszp2(absolute=0.005)


def test_decode_to_an_array_of_the_other_order() -> None:
    frame = pyfilter.encode(walk(), pyfilter.Cuszp2(absolute=0.01))
    out = np.empty((100, 150), ">c8")
    assert pyfilter.decode(frame, out=out) is out
    assert np.array_equal(out, pyfilter.decode(frame))


def test_guarantees_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file, pytest.raises(TypeError, match="a bound alone can be held"):
        pyfilter.create_dataset(file, "x", walk(), CODECS[0], guarantee=pyfilter.Guarantee(low=0))


@pytest.mark.parametrize("bound", ["--relative=1e-4", "--absolute=0.01", "--pointwise-relative=1e-3", "--lossless"])
def test_compress(tmp_path: Path, bound: str) -> None:
    values = walk("c16")
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["z"] = values
        values[3:9] = -999
        file.create_dataset("missing", data=values, fillvalue=np.complex128(-999))
    for words in (["compress", "in.h5", "out.h5", bound], ["verify", "in.h5", "out.h5"], ["inspect", "out.h5"]):
        paths = [str(tmp_path / word) if word.endswith(".h5") else word for word in words]
        done = CliRunner().invoke(app, paths)
        assert done.exit_code == 0, done.output
    assert "complex128" in done.output
    with h5py.File(tmp_path / "out.h5") as file:
        assert (file["missing"][3:9] == -999).all()
        assert file["z"].id.get_storage_size() < values.nbytes


def test_netcdf4(tmp_path: Path) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    values = walk()
    try:
        dataset = netcdf4.Dataset(tmp_path / "a.nc", "w", auto_complex=True)
    except TypeError:
        pytest.skip("this netCDF4 has no complex numbers")
    with dataset:
        dataset.createDimension("y", 100)
        dataset.createDimension("x", 150)
        for name, fill in (("filled", None), ("unfilled", False)):
            variable = dataset.createVariable(name, "c8", ("y", "x"), fill_value=fill)
            pyfilter.netcdf.compress(variable, pyfilter.Lorenzo(relative=1e-4))
            variable[:] = values
    with h5py.File(tmp_path / "a.nc") as file:
        for name in ("filled", "unfilled"):
            assert pyfilter.verify(values, file[name]).ok
            assert file[name].id.get_storage_size() < values.nbytes / 3


def test_xarray(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    values = walk()
    dataset = xarray.Dataset({"z": (("y", "x"), values), "lazy": (("y", "x"), values)})
    if pytest.importorskip("dask"):
        dataset["lazy"] = dataset["lazy"].chunk({"y": 50})
    codecs = pyfilter.Lorenzo(relative=1e-4)
    with pytest.warns(UserWarning, match="invalid netcdf"):
        pyfilter.xarray.to_netcdf(dataset, tmp_path / "a.nc", engine="h5netcdf", codecs=codecs, invalid_netcdf=True)
    with h5py.File(tmp_path / "a.nc") as file:
        assert pyfilter.codec_of(file["z"]) == pyfilter.codec_of(file["lazy"]) != codecs
        assert pyfilter.verify(values, file["z"]).ok
        assert pyfilter.verify(values, file["lazy"]).ok


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr(tmp_path: Path, zarr_format: int) -> None:
    pytest.importorskip("zarr")
    import pyfilter.zarr

    values, codec = walk(), pyfilter.Cuszp2(relative=1e-4)
    made = pyfilter.zarr.create_array(tmp_path / "z", values, codec, chunks=(64, 64), zarr_format=zarr_format)
    assert made.dtype == np.dtype("c8")
    assert pyfilter.verify(values, made[...], codec).ok
