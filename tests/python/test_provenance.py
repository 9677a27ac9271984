# SPDX-License-Identifier: BSD-3-Clause
"""What compress says of each variable in the file, and that verify reads it, also where the filter is gone."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest

import pyfilter

from .support import field
from .test_cli import run

netCDF4 = pytest.importorskip("netCDF4")


@pytest.fixture(params=["NETCDF4", "NETCDF3_CLASSIC"])
def source(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format=request.param) as file:
        file.createDimension("y", 96)
        file.createDimension("x", 128)
        file.createVariable("t", "f4", ("y", "x"))[:] = field((96, 128)) + 280
        file.createVariable("p", "f8", ("y", "x"))[:] = np.exp(field((96, 128), "f8"))
        file.createVariable("count", "i4", ("y", "x"))[:] = np.arange(96 * 128).reshape(96, 128)
    return tmp_path / "a.nc"


def compress(source: Path, *options: str) -> Path:
    target = source.with_name("b.nc")
    run("compress", source, target, "--var", "t=lorenzo:absolute:0.01", "--var", "p=lorenzo:pointwise_relative:0.001",
        "--var", "count=lossless", *options)  # fmt: skip
    return target


def test_what_is_said(source: Path) -> None:
    target = compress(source)
    with netCDF4.Dataset(source) as before, netCDF4.Dataset(target) as after:
        found = pyfilter.verify(before["t"][:].data, after["t"][:].data, 0.01)
        said = {name: after["t"].getncattr(name) for name in after["t"].ncattrs() if name.startswith("lossy_")}
        assert said == {
            "lossy_compression": "error-bounded",
            "lossy_compression_algorithm": "lorenzo",
            "lossy_compression_implementation": f"pyfilter {pyfilter.__version__}, HDF5 filter 52907",
            "lossy_compression_bound_type": "absolute",
            "lossy_compression_bound": 0.01,
            "lossy_compression_maximum_error": found.max_error,
            "lossy_compression_psnr": pytest.approx(found.psnr),
            "lossy_compression_verified_values": 96 * 128,
        }
        assert after["p"].lossy_compression_bound_type == "pointwise_relative"
        assert not any(name.startswith("lossy") for name in after["count"].ncattrs())
    subprocess.run(["ncdump", "-h", target], check=True, capture_output=True)
    with netCDF4.Dataset(compress(source, "--no-attributes")) as after:
        assert not any(name.startswith("lossy") for name in after["t"].ncattrs())


def test_a_file_is_compressed_again(source: Path) -> None:
    once = compress(source)
    run("compress", once, once.with_name("c.nc"), "--var", "t=cuszp2:absolute:0.1")
    with netCDF4.Dataset(once.with_name("c.nc")) as after:
        assert after["t"].lossy_compression_bound == 0.1
        assert after["t"].lossy_compression_algorithm == "cuszp2"
        assert after["p"].lossy_compression_bound == 0.001


def test_verify_reads_it_where_the_filter_is_gone(source: Path) -> None:
    target, plain = compress(source), source.with_name("plain.nc")
    with h5py.File(target) as before, h5py.File(plain, "w") as after:
        for name in ("t", "p", "count"):
            after[name] = before[name][()]
            for key, value in before[name].attrs.items():
                if key.startswith("lossy_"):
                    after[name].attrs[key] = value
    with netCDF4.Dataset(source) as before, h5py.File(source.with_name("first.h5"), "w") as first:
        for name in ("t", "p", "count"):
            first[name] = before[name][:].data
    arguments: list[str | Path] = ["verify", source.with_name("first.h5"), plain]
    found = json.loads(run(*arguments, "--json"))
    assert {name: (row["ok"], row["bound"]) for name, row in found.items()} == {
        "/t": (True, 0.01), "/p": (True, 0.001), "/count": (True, 0.0),
    }  # fmt: skip
    with h5py.File(plain, "r+") as file:
        file["t"].attrs["lossy_compression_maximum_error"] = 1e-9
    assert "the largest error is 0.009" in (text := run(*arguments))
    assert "B's attributes say 1e-09: B was changed" in text
    with h5py.File(plain, "r+") as file:
        file["t"][3, 4] += 1
    assert json.loads(run(*arguments, "--json", status=1))["/t"]["violations"] == 1
