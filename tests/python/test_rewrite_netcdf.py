# SPDX-License-Identifier: BSD-3-Clause
"""netCDF files compressed: ncdump, netCDF4 and xarray read the copy as they read the original."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter import Cuszp2, Lossless
from pyfilter.rewrite import Report, Rules, compress_file

from .support import field, run_tool

netCDF4 = pytest.importorskip("netCDF4")

RELATIVE = Cuszp2(relative=1e-3)
MODELS = ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA", "NETCDF4_CLASSIC", "NETCDF4"]


def make(path: Path, model: str) -> None:
    """Write a file with coordinates, bounds, missing values, packed integers, text and an unlimited dimension."""
    with netCDF4.Dataset(path, "w", format=model) as file:
        file.title = "a test"
        file.history = "made by a test"
        file.numbers = np.arange(3, dtype="f4")
        for name, extent in {"time": None, "lat": 60, "lon": 80, "nv": 2, "unused": 7, "letters": 5}.items():
            file.createDimension(name, extent)
        lat = file.createVariable("lat", "f8", ("lat",))
        lat[:] = np.linspace(-90, 90, 60)
        lat.bounds = "lat_bnds"
        file.createVariable("lat_bnds", "f8", ("lat", "nv"))[:] = np.linspace(-90, 90, 120).reshape(60, 2)
        time = file.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        variable = file.createVariable("t", "f4", ("time", "lat", "lon"), fill_value=1e20)
        variable.units = "K"
        variable.coordinates = "height area"
        values = field((5, 60, 80)) + 280
        values[:, 10:30, 5:25] = 1e20
        variable[:] = values
        time[:] = np.arange(5) * 0.25
        missing = file.createVariable("missing", "f4", ("lat", "lon"))
        missing.missing_value = np.float32(-999)
        values[0, :10] = -999
        values[0, 10:30, 5:25] = 270
        missing[:] = values[0]
        file.createVariable("area", "f8", ("lat", "lon"))[:] = field((60, 80), "f8")
        packed = file.createVariable("packed", "i2", ("lat", "lon"), fill_value=-32768)
        packed.scale_factor, packed.add_offset = 0.01, 20.0
        packed[:] = field((60, 80), "f8")
        file.createVariable("letters", "S1", ("letters",))[:] = np.array(list("hello"), "S1")
        file.createVariable("height", "f4", ())[...] = 2.0


def add_netcdf4(path: Path) -> None:
    """Add what only the NETCDF4 format has: groups, strings and types of one's own."""
    with netCDF4.Dataset(path, "a") as file:
        file.createVariable("names", str, ("letters",))[:] = np.array(["a", "bb", "", "dddd", "ü"], object)
        file.setncattr_string("strings", ["one", "two"])
        compound = file.createCompoundType(np.dtype([("x", "f4"), ("y", "i8")]), "point")
        file.createVariable("points", compound, ("letters",))[:] = np.ones(5, compound.dtype)
        twin = file.createCompoundType(np.dtype([("x", "f4"), ("y", "i8")]), "twin")  # the same type by another name
        file.createVariable("twins", twin, ("letters",))[:] = np.zeros(5, twin.dtype)
        enum = file.createEnumType("u1", "sky", {"clear": 0, "cloudy": 1})
        file.createVariable("skies", enum, ("letters",), fill_value=1)[:] = 0
        ragged = file.createVLType("i4", "row")
        rows = file.createVariable("rows", ragged, ("letters",))
        for index in range(5):
            rows[index] = np.arange(index + 1, dtype="i4")
        group = file.createGroup("one/two")
        group.note = "inner"
        group.createDimension("depth", 50)
        group.createDimension("more", None)
        deep = group.createVariable(
            "deep", "f8", ("more", "depth", "lon"), chunksizes=(1, 50, 80), zlib=True, shuffle=True
        )
        deep[:] = field((3, 50, 80), "f8")
        group.createVariable("checked", "f4", ("depth", "lon"), fletcher32=True)[:] = field((50, 80))
        group.createVariable("big", ">f4", ("depth", "lon"), endian="big")[:] = field((50, 80))
        file.createGroup("empty")


def compress(source: Path, rules: Rules) -> tuple[Path, Report]:
    target = source.with_name("out") / source.name
    target.parent.mkdir(exist_ok=True)
    report = compress_file(source, target, rules)
    assert report.ok
    return target, report


def contents(path: Path) -> dict[str, Any]:
    """Return everything that netCDF4 says of a file, values as they are stored."""
    found: dict[str, Any] = {}

    def walk(group: Any) -> None:
        group.set_auto_maskandscale(False)
        group.set_auto_chartostring(False)
        where = group.path
        found[f"{where} groups"] = list(group.groups)
        found[f"{where} types"] = (list(group.cmptypes), list(group.vltypes), list(group.enumtypes))
        found[f"{where} dimensions"] = [
            (name, len(item), item.isunlimited()) for name, item in group.dimensions.items()
        ]
        found[f"{where} attributes"] = [(name, group.getncattr(name)) for name in group.ncattrs()]
        found[f"{where} variables"] = list(group.variables)
        for name, item in group.variables.items():
            kind = (
                item.datatype
                if isinstance(item.datatype, np.dtype)
                else (item.datatype if item.datatype is str else item.datatype.name)
            )
            found[f"{where}/{name}"] = (kind, item.dimensions, [(key, item.getncattr(key)) for key in item.ncattrs()])
            values = item[...]
            if values.dtype == object:  # sequences and strings
                values = [np.asarray(value).tolist() for value in values]
            found[f"{where}/{name} values"] = values
        for inner in group.groups.values():
            walk(inner)

    with netCDF4.Dataset(path) as file:
        walk(file)
    return found


def check_same(source: Path, target: Path, report: Report) -> None:
    before, after = contents(source), contents(target)
    assert list(before) == list(after)
    bounds = {row.path: row.bound for row in report.compressed}
    for key, value in before.items():
        path = "/" + key.removesuffix(" values").lstrip("/")
        if key.endswith(" values") and path in bounds:
            assert pyfilter.verify(value, after[key], bounds[path], fill_value=None).ok
        else:
            np.testing.assert_equal(after[key], value)
    assert run_tool("ncdump", "-h", target) == run_tool("ncdump", "-h", source)
    assert pyfilter.check(target) == []


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("codec", [RELATIVE, Lossless()], ids=repr)
def test_all_formats(tmp_path: Path, model: str, codec: pyfilter.Codec) -> None:
    make(tmp_path / "a.nc", model)
    if model == "NETCDF4":
        add_netcdf4(tmp_path / "a.nc")
    target, report = compress(tmp_path / "a.nc", Rules(codec))
    check_same(tmp_path / "a.nc", target, report)
    names = {row.path for row in report.compressed}
    assert {"/t", "/missing", "/area"} <= names
    with netCDF4.Dataset(target) as file:
        expected = "NETCDF4" if model in ("NETCDF4", "NETCDF3_64BIT_DATA") else "NETCDF4_CLASSIC"
        assert file.data_model == expected
        assert pyfilter.codec_of(file["t"]) is not None


def test_coordinates_stay_bit_for_bit(tmp_path: Path) -> None:
    make(tmp_path / "a.nc", "NETCDF4")
    _, report = compress(tmp_path / "a.nc", Rules(RELATIVE))
    notes = {row.path: (row.codec, row.note) for row in report.rows}
    assert notes["/area"] == ("Lossless()", "coordinate, kept lossless")
    assert notes["/lat"] == notes["/time"] == (None, "small")
    assert "/unused" not in notes  # the placeholder of a dimension
    _, report = compress(tmp_path / "a.nc", Rules(RELATIVE, lossy_coordinates=True))
    assert {row.path: row.codec for row in report.rows}["/area"].startswith("Cuszp2")  # type: ignore[union-attr]


def test_missing_values_are_kept_and_left_out_of_the_range(tmp_path: Path) -> None:
    make(tmp_path / "a.nc", "NETCDF4")
    target, report = compress(tmp_path / "a.nc", Rules(RELATIVE))
    bounds = {row.path: row.bound for row in report.compressed}
    assert 0 < bounds["/t"] < 0.02  # type: ignore[operator]
    assert 0 < bounds["/missing"] < 0.02  # type: ignore[operator]
    with netCDF4.Dataset(tmp_path / "a.nc") as before, netCDF4.Dataset(target) as after:
        for name in ("t", "missing"):
            np.testing.assert_array_equal(np.ma.getmaskarray(after[name][:]), np.ma.getmaskarray(before[name][:]))


def test_what_cf_computes_positions_and_areas_from_is_kept(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("lev", 50)
        file.createDimension("x", 100)
        for name in ("t", "ps", "areas"):
            file.createVariable(name, "f4", ("lev", "x"))[:] = field((50, 100))
        file["t"].cell_measures = "area: areas"
        file["t"].setncattr("quantization", "info")  # CF's own attributes are about what was done before: they stay
        file["t"].quantization_nsb = np.int32(9)
        lev = file.createVariable("lev", "f8", ("lev",))
        lev.formula_terms = "sigma: lev ps: ps"
    report = compress_file(tmp_path / "a.nc", tmp_path / "b.nc", Rules(RELATIVE))
    notes = {row.path: row.note for row in report.rows}
    assert notes["/t"] == ""
    assert notes["/ps"] == notes["/areas"] == "coordinate, kept lossless"
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert (file["t"].getncattr("quantization"), file["t"].quantization_nsb) == ("info", 9)


@pytest.mark.parametrize("before", ["made by a test", "", None, "naïve", np.arange(3)], ids=repr)
def test_a_line_in_the_history(tmp_path: Path, before: Any) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("x", 5000)
        file.createVariable("t", "f4", ("x",))[:] = field((5000,))
        if before is not None:
            file.setncattr("history", before)
    compress_file(tmp_path / "a.nc", tmp_path / "b.nc", Rules(Cuszp2(absolute=1e-3)), history=True)
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        after = file.history
    if isinstance(before, np.ndarray):
        assert np.array_equal(after, before)  # no text: left as it is
        return
    line = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: pyfilter compress \(pyfilter .*\): t Cuszp2\(absolute=0\.001\)"
    assert re.fullmatch(line + (f"\n{before}" if before else ""), after)
    assert "pyfilter compress" in run_tool("ncdump", "-h", tmp_path / "b.nc")


def test_no_history_where_it_means_nothing_or_nothing_was_done(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["t"] = field((5000,))
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.title = "empty"
    for name in ("a.h5", "a.nc"):
        compress_file(tmp_path / name, tmp_path / "b", Rules(Cuszp2(absolute=1e-3)), history=True)
        with h5py.File(tmp_path / "b") as file:
            assert "history" not in file.attrs


def test_xarray_reads_the_same(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    make(tmp_path / "a.nc", "NETCDF4")
    target, report = compress(tmp_path / "a.nc", Rules(RELATIVE))
    for engine in ("netcdf4", "h5netcdf"):
        with (
            xr.open_dataset(tmp_path / "a.nc", engine=engine) as before,
            xr.open_dataset(target, engine=engine) as after,
        ):
            lossy = [row.path[1:] for row in report.compressed if row.bound]
            xr.testing.assert_identical(before.drop_vars(lossy), after.drop_vars(lossy))
            for name in lossy:
                assert before[name].attrs == after[name].attrs
                assert list(before[name].coords) == list(after[name].coords)
                np.testing.assert_array_equal(np.isnan(before[name]), np.isnan(after[name]))


def test_a_copy_can_be_appended_to(tmp_path: Path) -> None:
    make(tmp_path / "a.nc", "NETCDF4")
    target, _ = compress(tmp_path / "a.nc", Rules(RELATIVE))
    with netCDF4.Dataset(target, "a") as file:
        file["t"][5:7] = 281.5
        file["time"][5:7] = [1.25, 1.5]
    with netCDF4.Dataset(target) as file:
        assert file["t"].shape == (7, 60, 80)
        np.testing.assert_allclose(file["t"][5:7], 281.5, atol=0.02)
    assert pyfilter.check(target) == []


def test_a_compressed_file_is_compressed_again(tmp_path: Path) -> None:
    make(tmp_path / "a.nc", "NETCDF4")
    once, _ = compress(tmp_path / "a.nc", Rules(Cuszp2(absolute=1e-3)))
    twice, report = compress(once, Rules(Cuszp2(absolute=1e-1)))
    check_same(once, twice, report)
    assert twice.stat().st_size < once.stat().st_size


def test_real_files(shared_files: list[Path], tmp_path: Path) -> None:
    for source in shared_files:
        target = tmp_path / source.name
        report = compress_file(source, target, Rules(RELATIVE))
        assert report.ok
        if source.suffix == ".nc":
            check_same(source, target, report)
        else:
            before, after = run_tool("h5dump", "-A", source), run_tool("h5dump", "-A", target)
            assert before.splitlines()[1:] == after.splitlines()[1:]
        with h5py.File(target) as file:
            assert all(pyfilter.codec_of(file[row.path]) is not None for row in report.compressed)


def test_without_netcdf4_a_netcdf3_file_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "a.nc", "NETCDF3_CLASSIC")
    monkeypatch.setitem(__import__("sys").modules, "netCDF4", None)
    with pytest.raises(ImportError, match=r"h5pyfilter\[netcdf\]"):
        compress_file(tmp_path / "a.nc", tmp_path / "b.nc", Rules(RELATIVE))
    assert [item.name for item in tmp_path.iterdir()] == ["a.nc"]
