# SPDX-License-Identifier: BSD-3-Clause
"""Integers with a bound in Python: h5py, netCDF4, xarray, whole files, verify."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import pyfilter
from pyfilter import Cuszp2, HierarchicalDelta, Lossless
from pyfilter.rewrite import Rules, compress_file

from .support import run_tool

netCDF4 = pytest.importorskip("netCDF4")

TWO = HierarchicalDelta(absolute=2)
Array = NDArray[Any]


def counts(shape: tuple[int, ...], dtype: str = "i4", seed: int = 0) -> Array:
    """Return a walk that stays between 0 and 110."""
    steps = np.random.default_rng(seed).integers(-2, 3, int(np.prod(shape)))
    return np.asarray(np.abs(np.cumsum(steps) % 220 - 110).reshape(shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["i1", "u1", ">i2", "u2", "i4", ">u4", "i8", "u8"])
def test_create_dataset_takes_the_whole_range(tmp_path: Path, dtype: str) -> None:
    values = counts((60, 50), dtype)
    values[:9] = 127
    with h5py.File(tmp_path / "a.h5", "w") as file:
        pyfilter.create_dataset(file, "a", values, HierarchicalDelta(relative=0.03), chunks=(20, 50), fillvalue=127)
        pyfilter.create_dataset(file, "tight", values, HierarchicalDelta(relative=0.001), fillvalue=127)
        pyfilter.create_dataset(file, "zero", values, HierarchicalDelta(absolute=0))
    with h5py.File(tmp_path / "a.h5") as file:
        spread = int(values[values != 127].max()) - int(values.min())
        assert pyfilter.codec_of(file["a"]) == HierarchicalDelta(absolute=int(Fraction(0.03) * spread))
        assert pyfilter.verify(values, file["a"]).ok
        assert pyfilter.verify(values, pyfilter.read(file["a"]), 3, fill_value=127).ok
        assert pyfilter.codec_of(file["tight"]) == pyfilter.codec_of(file["zero"]) == HierarchicalDelta(absolute=0)
        for name in ("tight", "zero"):
            np.testing.assert_array_equal(file[name][...], values)
            np.testing.assert_array_equal(pyfilter.read(file[name]), values)


def test_codecs() -> None:
    assert HierarchicalDelta(absolute=0) == HierarchicalDelta(absolute=0.0) != HierarchicalDelta(absolute=1)
    assert repr(HierarchicalDelta(absolute=np.int16(3))) == "HierarchicalDelta(absolute=3.0)"
    for codec in (HierarchicalDelta(absolute=0), TWO):
        assert pyfilter.Codec.from_cd_values(codec.filter_options) == codec
    assert HierarchicalDelta(absolute=2**63 - 1).absolute == 2**63 - 1024
    with pytest.raises(ValueError, match="absolute must be a finite number > 0"):
        Cuszp2(absolute=0)
    with pytest.raises(ValueError, match="relative must be a finite number > 0"):
        HierarchicalDelta(relative=0)


integers = st.integers(-(2**63), 2**63 - 1)


@given(integers, integers, st.integers(0, 2**64))
def test_verify_is_exact(x: int, y: int, bound: int) -> None:
    wanted = float(bound) if float(bound) <= bound else float(np.nextafter(float(bound), 0))
    found = pyfilter.verify(np.array([x]), np.array([y]), wanted)
    assert found.ok == (abs(x - y) <= int(wanted))
    assert found.max_error == float(abs(x - y))


def test_verify_keeps_an_eye_on_the_fill_value() -> None:
    values, near = np.array([-999, 1, -998], "i2"), np.array([-999, 2, -999], "i2")
    assert pyfilter.verify(values, near, 1).ok
    appeared = pyfilter.verify(values, near, 1, fill_value=-999)
    assert (appeared.ok, appeared.specials_kept, appeared.first_violation) == (False, False, 2)
    changed = pyfilter.verify(near, values, 1, fill_value=-999)
    assert (changed.ok, changed.specials_kept, changed.first_violation) == (False, False, 2)
    assert pyfilter.verify(values[:2], near[:2], 1, fill_value=-999).max_error == 1


def packed_file(path: Path, unsigned: bool = False) -> None:
    """Write a file with packed integers, a mask of bytes and identifiers."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("y", 60)
        file.createDimension("x", 80)
        packed = file.createVariable("packed", "i2", ("y", "x"), fill_value=-32768)
        packed.set_auto_maskandscale(False)
        packed.scale_factor, packed.add_offset = 0.01, 20.0
        values = counts((60, 80), "i2") * 50
        values[:20, :30] = -32768
        packed[:] = values
        missing = file.createVariable("missing", "i4", ("y", "x"))
        missing.missing_value = np.int32(-5)
        values = counts((60, 80))
        values[20:40] = -5
        missing[:] = values
        image = file.createVariable("image", "i1" if unsigned else "u1", ("y", "x"))
        if unsigned:
            image._Unsigned = "true"
        image[:] = counts((60, 80), "i1")
        file.createVariable("ids", "i8", ("y", "x"))[:] = np.arange(4800).reshape(60, 80)


def test_netcdf_packed_integers(tmp_path: Path) -> None:
    """The bound is one of what is stored; netCDF4 and xarray unpack as ever."""
    xr = pytest.importorskip("xarray")
    packed_file(tmp_path / "a.nc")
    with netCDF4.Dataset(tmp_path / "a.nc") as before, netCDF4.Dataset(tmp_path / "b.nc", "w") as after:
        for name in ("y", "x"):
            after.createDimension(name, len(before.dimensions[name]))
        variable = after.createVariable("packed", "i2", ("y", "x"), fill_value=-32768)
        pyfilter.netcdf.compress(variable, TWO)
        variable.scale_factor, variable.add_offset = 0.01, 20.0
        variable[:] = before["packed"][:]
    with netCDF4.Dataset(tmp_path / "a.nc") as before, netCDF4.Dataset(tmp_path / "b.nc") as after:
        assert np.array_equal(before["packed"][:].mask, after["packed"][:].mask)
        assert np.abs(before["packed"][:] - after["packed"][:]).max() < 0.0201
        for file in (before, after):
            file.set_auto_maskandscale(False)
        assert pyfilter.verify(before["packed"][:], after["packed"][:], TWO, fill_value=-32768).ok
    with xr.open_dataset(tmp_path / "b.nc") as found:
        assert np.isnan(found.packed.values[:20, :30]).all()
    run_tool("ncdump", tmp_path / "b.nc")


def test_unsigned_attribute_is_refused(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    packed_file(tmp_path / "a.nc", unsigned=True)
    with netCDF4.Dataset(tmp_path / "b.nc", "w") as file:
        file.createDimension("x", 80)
        variable = file.createVariable("a", "i1", ("x",))
        variable._Unsigned = "true"
        with pytest.raises(TypeError, match=r"'a' is stored as int8 with _Unsigned = 'true'.*use Lossless"):
            pyfilter.netcdf.compress(variable, TWO)
        pyfilter.netcdf.compress(variable, Lossless())
    with pytest.raises(TypeError, match=r"image.* is stored as int8 with _Unsigned"):
        compress_file(tmp_path / "a.nc", tmp_path / "c.nc", Rules(named={"image": TWO}))
    assert compress_file(tmp_path / "a.nc", tmp_path / "c.nc", Rules(named={"image": Lossless()})).ok
    with xr.open_dataset(tmp_path / "a.nc") as dataset:
        with pytest.raises(TypeError, match="_Unsigned"):
            pyfilter.xarray.encoding(dataset, image=TWO)
        assert "image" in pyfilter.xarray.encoding(dataset, image=Lossless())


@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
def test_xarray_leaves_integers_unless_named(tmp_path: Path, engine: str) -> None:
    xr = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    packed_file(tmp_path / "a.nc")
    with xr.open_dataset(tmp_path / "a.nc") as dataset:
        assert pyfilter.xarray.encoding(dataset, HierarchicalDelta(absolute=1e-3)) == {}
        named = {"packed": HierarchicalDelta(relative=0.01), "ids": TWO}
        pyfilter.xarray.to_netcdf(dataset, tmp_path / "b.nc", engine=engine, codecs=named)
    with h5py.File(tmp_path / "a.nc") as before, h5py.File(tmp_path / "b.nc") as after:
        assert {name: pyfilter.codec_of(after[name]) for name in named} == named
        assert pyfilter.codec_of(after["image"]) is None
        packed = before["packed"][...]
        most = int(Fraction(0.01) * int(np.ptp(packed[packed != -32768])))
        assert 1 < pyfilter.verify(packed, after["packed"][...], most, fill_value=-32768).max_error <= most
        assert pyfilter.verify(before["ids"], after["ids"], TWO).ok


def test_whole_files(tmp_path: Path) -> None:
    packed_file(tmp_path / "a.nc")
    untouched = compress_file(tmp_path / "a.nc", tmp_path / "b.nc", Rules(HierarchicalDelta(absolute=2)))
    assert untouched.ok
    assert untouched.compressed == ()
    named: dict[str, Any] = {
        "packed": TWO, "missing": TWO, "image": Cuszp2(absolute=3), "ids": HierarchicalDelta(relative=1e-9),
    }  # fmt: skip
    report = compress_file(tmp_path / "a.nc", tmp_path / "b.nc", Rules(named=named, integers=True))
    assert report.ok
    codecs = {row.path: row.codec for row in report.compressed}
    assert codecs == {
        "/packed": repr(TWO), "/missing": repr(TWO), "/image": "HierarchicalDelta(absolute=3.0)", "/ids": "Lossless()",
    }  # fmt: skip
    assert {row.path: row.note for row in report.compressed if row.note} == {
        "/ids": "the bound is below 1, of integers: kept lossless"
    }
    with h5py.File(tmp_path / "a.nc") as before, h5py.File(tmp_path / "b.nc") as after:
        assert after["missing"].fillvalue == -5
        for name, fill in (("packed", -32768), ("missing", -5)):
            one, two = before[name][...], after[name][...]
            assert np.array_equal(one == fill, two == fill)
            assert pyfilter.verify(one, two, 2, fill_value=fill).ok
        assert pyfilter.verify(before["image"], after["image"], 3).ok
        np.testing.assert_array_equal(before["ids"], after["ids"])
    relative = compress_file(
        tmp_path / "a.nc", tmp_path / "b.nc", Rules(named={"missing": HierarchicalDelta(relative=0.02)})
    )
    assert relative.ok
    assert relative.compressed[0].bound == int(Fraction(0.02) * 110)


def test_a_bound_is_refused_for_bool_and_enumerations(tmp_path: Path) -> None:
    """A bound would change names; Lossless keeps them."""
    flags = np.arange(5000) % 3 == 0
    enum = h5py.enum_dtype({"no": 0, "yes": 1})
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(TypeError, match="cannot encode bool"):
            pyfilter.create_dataset(file, "a", flags, TWO)
        with pytest.raises(ValueError, match="enumeration"):
            file.create_dataset("b", (5000,), enum, chunks=(100,), **TWO)
        assert not list(file)
        pyfilter.create_dataset(file, "a", flags, Lossless())
        file.create_dataset("b", data=flags.astype(enum), dtype=enum, chunks=(5000,), **Lossless())
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.array_equal(file["a"][...], flags)
        assert file["a"].dtype == np.bool_
        assert np.array_equal(file["b"][...], flags)
        assert h5py.check_enum_dtype(file["b"].dtype) == {"no": 0, "yes": 1}
        assert file["b"].id.get_storage_size() < 5000 // 2
