# SPDX-License-Identifier: BSD-3-Clause
"""Variables of netCDF4: both netCDF-4 formats, groups, fill values, and what is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter import Cuszp2, HierarchicalDelta, Lorenzo, Lossless

from .support import field, run_tool

netCDF4 = pytest.importorskip("netCDF4")

BOUND = Cuszp2(absolute=1e-3)


def make(path: Path, model: str = "NETCDF4") -> Any:
    dataset = netCDF4.Dataset(path, "w", format=model)
    dataset.createDimension("time", None)
    dataset.createDimension("lat", 30)
    dataset.createDimension("lon", 40)
    return dataset


@pytest.mark.parametrize("codec", [BOUND, HierarchicalDelta(absolute=1e-3), Lorenzo(absolute=1e-3)], ids=repr)
@pytest.mark.parametrize("fill", [1e20, -999.0, np.nan, None, False])
def test_compress(tmp_path: Path, fill: Any, codec: pyfilter.Codec) -> None:
    values = field((7, 30, 40))
    if fill not in (None, False):
        values[2] = fill
    with make(tmp_path / "a.nc") as dataset:
        variable = dataset.createVariable("t", "f4", ("time", "lat", "lon"), fill_value=fill)
        pyfilter.netcdf.compress(variable, codec)
        variable.units = "K"
        variable[:] = values
        assert pyfilter.codec_of(variable) == codec
    with netCDF4.Dataset(tmp_path / "a.nc") as dataset:
        variable = dataset["t"]
        variable.set_auto_mask(False)
        assert pyfilter.codec_of(variable) == codec
        assert pyfilter.verify(values, variable[:], codec, fill_value=fill or None).ok
    with h5py.File(tmp_path / "a.nc") as file:
        assert file["t"].id.get_storage_size() < values.nbytes / 2
    assert pyfilter.check(tmp_path / "a.nc") == []
    assert "52907" in run_tool("ncdump", "-hs", tmp_path / "a.nc")


def test_groups_types_and_contiguous_variables(tmp_path: Path) -> None:
    with make(tmp_path / "a.nc") as dataset:
        group = dataset.createGroup("a/b")
        one = group.createVariable("one", "f8", ("lat", "lon"), contiguous=True)
        two = group.createVariable("two", "i2", ("lat", "lon"), fill_value=-32768)
        pyfilter.netcdf.compress(one, Cuszp2(absolute=1e-3, block_dims=2))
        pyfilter.netcdf.compress(two, Lossless())
        one[:] = field((30, 40), "f8")
        two[:] = np.arange(1200).reshape(30, 40)
    with netCDF4.Dataset(tmp_path / "a.nc") as dataset:
        assert pyfilter.codec_of(dataset["a/b/one"]) == Cuszp2(absolute=1e-3, block_dims=2)
        assert pyfilter.verify(field((30, 40), "f8"), np.asarray(dataset["a/b/one"][:]), BOUND).ok
        np.testing.assert_array_equal(dataset["a/b/two"][:], np.arange(1200).reshape(30, 40))


def test_in_memory_files(tmp_path: Path) -> None:
    with netCDF4.Dataset("memory.nc", "w", diskless=True) as dataset:
        dataset.createDimension("x", 1000)
        variable = dataset.createVariable("t", "f4", ("x",))
        pyfilter.netcdf.compress(variable, BOUND)
        variable[:] = field((1000,))
        assert pyfilter.codec_of(variable) == BOUND
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("model", ["NETCDF4", "NETCDF4_CLASSIC"])
@pytest.mark.parametrize("fill", [1e20, None, False])
def test_create_variable(tmp_path: Path, model: str, fill: Any) -> None:
    values = field((7, 30, 40))
    values[3] = 1e20
    with make(tmp_path / "a.nc", model) as dataset:
        before = dataset.createVariable("before", "f8", ("lat",))
        before[:] = 1.0
        variable = pyfilter.netcdf.create_variable(
            dataset, "t", "f4", ("time", "lat", "lon"), BOUND, fill_value=fill, chunksizes=(2, 30, 40)
        )
        variable.units = "K"
        variable[:] = values
        after = pyfilter.netcdf.create_variable(dataset, "after", np.dtype("f8"), ("lat", "lon"), Lossless())
        after[:] = field((30, 40), "f8")
        assert list(dataset.variables) == ["before", "t", "after"]
    with netCDF4.Dataset(tmp_path / "a.nc") as dataset:
        variable = dataset["t"]
        assert dataset.data_model == model
        assert variable.chunking() == [2, 30, 40]
        assert pyfilter.codec_of(variable) == BOUND
        assert pyfilter.codec_of(dataset["after"]) == Lossless()
        assert ("_FillValue" in variable.ncattrs()) == (fill not in (None, False))
        variable.set_auto_mask(False)
        assert pyfilter.verify(values, variable[:], BOUND, fill_value=fill or None).ok
    assert pyfilter.check(tmp_path / "a.nc") == []
    run_tool("ncdump", tmp_path / "a.nc")


def test_create_variable_finds_dimensions_of_the_groups_above(tmp_path: Path) -> None:
    with make(tmp_path / "a.nc") as dataset:
        group = dataset.createGroup("a/b")
        group.createDimension("own", 5)
        variable = pyfilter.netcdf.create_variable(group, "t", "f4", ("lat", "own"), BOUND)
        assert variable.shape == (30, 5)
        with pytest.raises(ValueError, match="dimension 'nothing'"):
            pyfilter.netcdf.create_variable(group, "u", "f4", ("nothing",), BOUND)


def test_a_classic_variable_that_exists_points_to_create_variable(tmp_path: Path) -> None:
    with make(tmp_path / "a.nc", "NETCDF4_CLASSIC") as dataset:
        variable = dataset.createVariable("t", "f4", ("lat", "lon"))
        with pytest.raises(TypeError, match="create_variable"):
            pyfilter.netcdf.compress(variable, BOUND)
        variable[:] = field((30, 40))  # the file goes on working
    with netCDF4.Dataset(tmp_path / "a.nc") as dataset:
        np.testing.assert_array_equal(dataset["t"][:], field((30, 40)))


def test_a_refusal_in_a_classic_file_leaves_define_mode(tmp_path: Path) -> None:
    with make(tmp_path / "a.nc", "NETCDF4_CLASSIC") as dataset:
        dataset.createVariable("t", "f4", ("lat", "lon"))
        with pytest.raises(pyfilter.PyfilterError):
            pyfilter.netcdf.create_variable(dataset, "t", "f4", ("lat", "lon"), BOUND)
        dataset["t"][:] = 1.0


def test_netcdf3_files_are_refused(tmp_path: Path) -> None:
    with make(tmp_path / "a.nc", "NETCDF3_CLASSIC") as dataset:
        variable = dataset.createVariable("t", "f4", ("lat", "lon"))
        with pytest.raises(TypeError, match="netCDF-3 has no compression"):
            pyfilter.netcdf.compress(variable, BOUND)
        with pytest.raises(TypeError, match="netCDF-3 has no compression"):
            pyfilter.netcdf.create_variable(dataset, "u", "f4", ("lat", "lon"), BOUND)
        assert pyfilter.codec_of(variable) is None


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"zlib": True}, "gzip"),
        ({"compression": "zlib", "shuffle": True}, "shuffle"),
        ({"fletcher32": True}, "fletcher32"),
        ({"compression": "zstd"}, "zstd"),
    ],
    ids=str,
)
def test_other_filters_are_refused(tmp_path: Path, keywords: dict[str, Any], text: str) -> None:
    with make(tmp_path / "a.nc") as dataset:
        try:
            variable = dataset.createVariable("t", "f4", ("lat", "lon"), **keywords)
        except RuntimeError as error:
            pytest.skip(f"this netCDF4 has no such filter: {error}")
        with pytest.raises(ValueError, match=rf"'t' has .*{text}.* set"):
            pyfilter.netcdf.compress(variable, BOUND)


def test_a_second_codec_is_refused(tmp_path: Path) -> None:
    with make(tmp_path / "a.nc") as dataset:
        variable = dataset.createVariable("t", "f4", ("lat", "lon"))
        pyfilter.netcdf.compress(variable, BOUND)
        with pytest.raises(ValueError, match="already"):
            pyfilter.netcdf.compress(variable, BOUND)


def test_a_variable_with_values_is_refused(tmp_path: Path) -> None:
    with make(tmp_path / "a.nc") as dataset:
        variable = dataset.createVariable("t", "f4", ("lat", "lon"))
        variable[:] = 1.0
        with pytest.raises(ValueError, match="before values are written"):
            pyfilter.netcdf.compress(variable, BOUND)


def test_scalars_and_other_types_are_refused(tmp_path: Path) -> None:
    with make(tmp_path / "a.nc") as dataset:
        with pytest.raises(TypeError, match="scalar"):
            pyfilter.netcdf.compress(dataset.createVariable("a", "f4", ()), BOUND)
        with pytest.raises(TypeError, match="scalar"):
            pyfilter.netcdf.create_variable(dataset, "b", "f4", (), BOUND)
        with pytest.raises(TypeError, match="float32, float64"):
            pyfilter.netcdf.compress(dataset.createVariable("c", "i4", ("lat",)), BOUND)
        with pytest.raises(TypeError, match="string"):
            pyfilter.netcdf.compress(dataset.createVariable("d", str, ("lat",)), BOUND)
        kind = dataset.createCompoundType(np.dtype([("a", "f4")]), "kind")
        with pytest.raises(TypeError, match="user-defined"):
            pyfilter.netcdf.compress(dataset.createVariable("e", kind, ("lat",)), BOUND)
        with pytest.raises(TypeError, match="codec"):
            pyfilter.netcdf.compress(dataset.createVariable("f", "f4", ("lat",)), 1e-3)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"netCDF4\.Variable"):
            pyfilter.netcdf.compress(dataset, BOUND)
        with pytest.raises(ValueError, match="chunksizes must have 2"):
            pyfilter.netcdf.create_variable(dataset, "g", "f4", ("lat", "lon"), BOUND, chunksizes=(3,))


@pytest.mark.parametrize(
    "codec", [Cuszp2(absolute=1.0, block_dims=3), HierarchicalDelta(absolute=1.0, predictor="lorenzo3d")], ids=repr
)
def test_codecs_of_more_dimensions_are_refused_with_a_reason(tmp_path: Path, codec: pyfilter.Codec) -> None:
    dataset = make(tmp_path / "a.nc")
    variable = dataset.createVariable("t", "f4", ("lat", "lon"))
    pyfilter.netcdf.compress(variable, codec)  # netCDF asks the filter later only
    with pytest.raises(RuntimeError, match="HDF error"):
        dataset.sync()


def test_nccopy_and_ncgen_read_what_we_write(tmp_path: Path) -> None:
    values = field((7, 30, 40))
    with make(tmp_path / "a.nc") as dataset:
        variable = dataset.createVariable("t", "f4", ("time", "lat", "lon"), fill_value=1e20)
        pyfilter.netcdf.compress(variable, BOUND)
        variable[:] = values
    run_tool("nccopy", tmp_path / "a.nc", tmp_path / "b.nc")
    with netCDF4.Dataset(tmp_path / "b.nc") as dataset:
        copied = np.asarray(dataset["t"][:])
    with netCDF4.Dataset(tmp_path / "a.nc") as dataset:
        assert pyfilter.verify(np.asarray(dataset["t"][:]), copied, BOUND).ok
    header = subprocess.run(["ncdump", "-h", tmp_path / "b.nc"], capture_output=True, text=True, check=True).stdout
    assert header.replace("netcdf b", "netcdf a") == run_tool("ncdump", "-h", tmp_path / "a.nc")
