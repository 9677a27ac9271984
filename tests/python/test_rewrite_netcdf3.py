# SPDX-License-Identifier: BSD-3-Clause
"""netCDF-3 files with what netCDF-4 takes from nobody: a _FillValue of another type, names that it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyfilter
from pyfilter import Cuszp2, HierarchicalDelta
from pyfilter.errors import NetcdfError
from pyfilter.rewrite import Rules

from .rewriting import compress, rows
from .support import field, run_tool
from .test_cli import in_a_shell, run

netCDF4 = pytest.importorskip("netCDF4")

FILLS = [
    ("i2", np.float64(np.nan)), ("i2", np.float32(np.nan)), ("i2", np.float64(-999)), ("i4", np.int16(-9)),
    ("f4", np.float64(1e20)), ("f4", "NaN"), ("f4", np.array([1e20, 2e20], "f4")), ("f8", np.float32(1e20)),
    ("i1", np.int32(200)),
]  # fmt: skip


def make(path: Path, dtype: str, fill: Any, model: str = "NETCDF3_CLASSIC") -> None:
    with netCDF4.Dataset(path, "w", format=model) as file:
        file.createDimension("x", 5000)
        variable = file.createVariable("counts", dtype, ("x",))
        variable[:] = np.arange(5000) % 100
        variable.units = "1"
        variable.setncattr("_FillNumber", fill)
        variable.renameAttribute("_FillNumber", "_FillValue")  # netCDF refuses it under its own name
        variable.long_name = "counts"
        file.createVariable("t", "f4", ("x",))[:] = field((5000,))


@pytest.mark.parametrize("model", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA", "NETCDF4"])
@pytest.mark.parametrize(("dtype", "fill"), FILLS, ids=str)
def test_a_fill_value_of_another_type_is_copied_as_it_is(tmp_path: Path, model: str, dtype: str, fill: Any) -> None:
    source = tmp_path / "a.nc"
    make(source, dtype, fill, model)
    target, report = compress(source, Rules(Cuszp2(absolute=1e-3)))
    assert run_tool("ncdump", "-h", target).splitlines()[1:] == run_tool("ncdump", "-h", source).splitlines()[1:]
    with netCDF4.Dataset(source) as before, netCDF4.Dataset(target) as after:
        assert after["counts"].ncattrs() == ["units", "_FillValue", "long_name"]
        assert np.asarray(after["counts"]._FillValue).dtype == np.asarray(before["counts"]._FillValue).dtype
        for file in (before, after):
            file.set_auto_maskandscale(False)
        assert abs(after["counts"][:] - before["counts"][:].astype("f8")).max() <= (1e-3 if dtype[0] == "f" else 0)
        assert pyfilter.verify(before["t"][:], after["t"]).ok
    assert rows(report)["/counts"].note == ("" if dtype[0] == "f" else "integers")


def test_such_integers_are_compressed_by_name(tmp_path: Path) -> None:
    make(tmp_path / "a.nc", "i2", np.float64(np.nan))
    run("compress", tmp_path / "a.nc", tmp_path / "b.nc", "--var", "counts=hierarchical_delta:absolute:2")
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert pyfilter.codec_of(file["counts"]) == HierarchicalDelta(absolute=2)
        assert np.isnan(file["counts"]._FillValue)
        file.set_auto_maskandscale(False)
        assert abs(file["counts"][:] - np.arange(5000) % 100).max() <= 2


@pytest.mark.parametrize(
    ("name", "bad", "text"),
    [
        (b"counts", b"cou/ts", "variable cou/ts cannot be converted to netCDF-4: nc_def_var: "),
        (b"units", b"un/ts", "attribute un/ts of variable counts cannot be converted to netCDF-4: nc_copy_att: "),
        (b"title", b"ti/le", "attribute ti/le of the file cannot be converted to netCDF-4: nc_copy_att: "),
    ],
)
def test_what_netcdf4_refuses_is_named(tmp_path: Path, name: bytes, bad: bytes, text: str) -> None:
    source = tmp_path / "a.nc"
    with netCDF4.Dataset(source, "w", format="NETCDF3_CLASSIC") as file:
        file.title = "named"
        file.createDimension("x", 5)
        file.createVariable("counts", "i2", ("x",)).units = "1"
    content = source.read_bytes()
    assert content.count(name) == 1
    source.write_bytes(content.replace(name, bad))
    with pytest.raises(NetcdfError, match=text):
        compress(source)
    result = in_a_shell("compress", source, tmp_path / "b.nc", "--absolute", "1")
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert text in result.stderr
    assert [item.name for item in tmp_path.iterdir()] == ["a.nc"]
