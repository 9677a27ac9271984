# SPDX-License-Identifier: BSD-3-Clause
"""Coordinates in whole files that are compressed: kept bit for bit, and named with what shows that they are some."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter import Cuszp2, Lossless
from pyfilter.rewrite import Rules

from .rewriting import compress, rows
from .support import field
from .test_cli import run

netCDF4 = pytest.importorskip("netCDF4")
xr = pytest.importorskip("xarray")

RELATIVE = Cuszp2(relative=1e-3)
SHAPE = (60, 80)
MODELS = ["NETCDF3_CLASSIC", "NETCDF4_CLASSIC", "NETCDF4"]


def ocean(path: Path, model: str, **attributes: dict[str, Any]) -> None:
    """Write a curvilinear grid as NEMO does, with attributes by variable."""
    y, x = np.meshgrid(np.linspace(-78, 90, SHAPE[0]), np.linspace(-180, 180, SHAPE[1]), indexing="ij")
    with netCDF4.Dataset(path, "w", format=model) as file:
        for name, extent in zip("yx", SHAPE, strict=True):
            file.createDimension(name, extent)
        values = {"plate": y + field(SHAPE) * 5, "plong": x + field(SHAPE, seed=1) * 5, "sst": field(SHAPE, seed=2)}
        for name, value in values.items():
            file.createVariable(name, "f4", ("y", "x"))[:] = value
            file[name].setncatts(attributes.get(name, {}))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("attributes", "reasons"),
    [
        (
            {"sst": {"coordinates": "plate plong"}},
            {"/plate": "named by coordinates of /sst", "/plong": "named by coordinates of /sst"},
        ),
        (
            {"plate": {"units": "degrees_north"}, "plong": {"units": "degrees_east"}},
            {"/plate": "units degrees_north", "/plong": "units degrees_east"},
        ),
    ],
)
def test_a_grid_stays_where_it_is(tmp_path: Path, model: str, attributes: Any, reasons: dict[str, str]) -> None:
    ocean(tmp_path / "a.nc", model, **attributes)
    arguments: list[str | Path] = ["compress", tmp_path / "a.nc", tmp_path / "b.nc", "--relative", "1e-3"]
    out = run(*arguments)
    listed = ", ".join(f"{path} ({reason})" for path, reason in reasons.items())
    heading = "coordinates, kept bit for bit (--var NAME=SPEC or --lossy-coordinates compresses them)"
    assert f"{heading}: {listed}\n" in out
    with xr.open_dataset(tmp_path / "a.nc") as before, xr.open_dataset(tmp_path / "b.nc") as after:
        for name in ("plate", "plong"):
            xr.testing.assert_identical(before[name].variable, after[name].variable)
        assert 0 < abs(after["sst"] - before["sst"]).max() <= 1e-3 * np.ptp(before["sst"].values)
    found = {row["path"]: row["coordinate"] for row in json.loads(run(*arguments, "--json"))["datasets"]}
    assert found == {**reasons, "/sst": ""}


def test_what_is_named_by_var_is_no_longer_kept(tmp_path: Path) -> None:
    ocean(tmp_path / "a.nc", "NETCDF4", sst={"coordinates": "plate plong"})
    out = run(
        "compress",
        tmp_path / "a.nc",
        tmp_path / "b.nc",
        "--relative",
        "1e-3",
        "--var",
        "plate=cuszp2:absolute:0.01",
        "--codec",
        "cuszp2",
    )
    assert "kept bit for bit (--var NAME=SPEC or --lossy-coordinates compresses them): /plong (" in out
    with h5py.File(tmp_path / "b.nc") as file:
        assert pyfilter.codec_of(file["plate"]) == Cuszp2(absolute=0.01)
        assert pyfilter.codec_of(file["plong"]) == Lossless()
    out = run("compress", tmp_path / "a.nc", tmp_path / "b.nc", "--relative", "1e-3", "--lossy-coordinates")
    assert "kept bit for bit" not in out
    with h5py.File(tmp_path / "b.nc") as file:
        assert not any(pyfilter.codec_of(file[name]).is_lossless for name in ("plate", "plong", "sst"))  # type: ignore[union-attr]


def reasons_in(path: Path) -> dict[str, str]:
    """Compress a file, and return what was kept and why; all of it must be the same bits, all else lossy."""
    target, report = compress(path, Rules(RELATIVE))
    with h5py.File(path) as before, h5py.File(target) as after:
        for row in report.compressed:
            exact = np.array_equal(before[row.path][()], after[row.path][()])
            assert exact is bool(row.coordinate), row
    return {path: row.coordinate for path, row in rows(report).items() if row.coordinate}


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("units", "degrees_north"), ("units", "degree_north"), ("units", "degree_N"), ("units", "degrees_N"),
        ("units", "degreeN"), ("units", "degreesN"), ("units", "degrees_east"), ("units", "degree_east"),
        ("units", "degree_E"), ("units", "degrees_E"), ("units", "degreeE"), ("units", "degreesE"),
        ("units", "Degrees_East"), ("units", "degrees_west"), ("units", "days since 2000-01-01"),
        ("units", "hours since 1-1-1 00:00:0.0"), ("standard_name", "latitude"), ("standard_name", "longitude"),
        ("standard_name", "time"), ("standard_name", "grid_latitude"), ("standard_name", "projection_x_coordinate"),
        ("axis", "Z"), ("positive", "down"), ("positive", "up"), ("_CoordinateAxisType", "Lat"),
    ],
)  # fmt: skip
def test_an_attribute_of_its_own_makes_a_coordinate(tmp_path: Path, attribute: str, value: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["p"] = field(SHAPE)
        file["p"].attrs[attribute] = value
        file["q"] = field(SHAPE)
        file["q"].attrs["units"] = "K"
    assert reasons_in(tmp_path / "a.h5") == {"/p": f"{attribute} {value}"}


@pytest.mark.parametrize(
    "attributes",
    [
        {"units": "degrees"}, {"units": "degree"}, {"units": "degrees_C"}, {"units": "s"}, {"units": "since"},
        {"units": "degree_true"}, {"standard_name": "sea_surface_temperature"}, {"standard_name": ""},
        {"positive": "down", "cell_methods": "time: mean"}, {"positive": "up", "cell_measures": "area: areacella"},
        {"positive": "down", "standard_name": "surface_downwelling_shortwave_flux_in_air"}, {"positive": "yes"},
        {"coordinates": "nothing p"},
    ],
    ids=str,
)  # fmt: skip
def test_data_are_no_coordinates(tmp_path: Path, attributes: dict[str, str]) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["p"] = field(SHAPE)
        file["p"].attrs.update(attributes)
    assert reasons_in(tmp_path / "a.h5") == {}


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        ("coordinates", "a b"), ("coordinates", "a, b"), ("coordinates", ["a", "b"]), ("bounds", "a b"),
        ("climatology", "a b"), ("ancillary_variables", "a b"), ("grid_mapping", "a: x y b: x"),
        ("cell_measures", "area: a volume: b"), ("formula_terms", "c: a ps: b"), ("node_coordinates", "a b"),
        ("coordinates", "/a ./b"),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("holder", ["/", "data"])
def test_what_an_attribute_names_is_kept(tmp_path: Path, attribute: str, text: Any, holder: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in ("data", "a", "b", "c"):
            file[name] = field(SHAPE)
        file[holder].attrs[attribute] = text
    whose = "the file" if holder == "/" else "/data"
    assert reasons_in(tmp_path / "a.h5") == dict.fromkeys(["/a", "/b"], f"named by {attribute} of {whose}")


def test_names_are_looked_for_upwards(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in ("p", "near", "one/near", "one/p", "one/two/data", "one/two/cell/area"):
            file[name] = field(SHAPE)
        file["one/two/data"].attrs["coordinates"] = "near p cell/area"
        file["one/two"].attrs["coordinates"] = "data"
    assert reasons_in(tmp_path / "a.h5") == {
        "/one/near": "named by coordinates of /one/two/data",
        "/one/p": "named by coordinates of /one/two/data",
        "/one/two/cell/area": "named by coordinates of /one/two/data",
        "/one/two/data": "named by coordinates of /one/two",
    }


def test_dimension_scales_of_plain_hdf5(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["depth_of_layer"] = np.linspace(0, 1, 5000) ** 3
        file["depth_of_layer"].make_scale()
        file["few"] = np.arange(2.0)
        file["few"].make_scale()
        file["values"] = field((5000, 2))
        for axis, name in enumerate(("depth_of_layer", "few")):
            file["values"].dims[axis].attach_scale(file[name])
        file["Latitude"] = field(SHAPE)
    assert reasons_in(tmp_path / "a.h5") == {
        "/depth_of_layer": "dimension scale", "/few": "dimension scale", "/Latitude": "the name Latitude",
    }  # fmt: skip


def test_a_variable_with_the_name_of_a_dimension_that_it_lacks(tmp_path: Path) -> None:
    """HDF5 has it by another name, which netCDF-4 made."""
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        for name, extent in (("y", 60), ("x", 80), ("deg", 5)):
            file.createDimension(name, extent)
        file.createVariable("deg", "f4", ("y", "x"))[:] = field(SHAPE)
        file.createVariable("t", "f4", ("y", "x"))[:] = field(SHAPE)
        file["t"].coordinates = "deg"
    assert reasons_in(tmp_path / "a.nc") == {"/_nc4_non_coord_deg": "named by coordinates of /t"}


def test_what_xarray_has_for_coordinates_is_kept(tmp_path: Path) -> None:
    values = {name: (("y", "x"), field(SHAPE, seed=seed)) for seed, name in enumerate(("t", "p1", "p2"))}
    ds = xr.Dataset({"t": values["t"]}, coords={"p1": values["p1"], "p2": values["p2"]})
    ds.to_netcdf(tmp_path / "a.nc")
    xr.Dataset(coords={"p1": values["p1"]}).to_netcdf(tmp_path / "global.nc")  # the file's attribute names it
    assert set(reasons_in(tmp_path / "a.nc")) == {"/p1", "/p2"}
    assert reasons_in(tmp_path / "global.nc") == {"/p1": "named by coordinates of the file"}
