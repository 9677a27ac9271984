# SPDX-License-Identifier: BSD-3-Clause
"""The HDF5 matrix with the libraries that are here: h5py's, netCDF4's, the system's. scripts/hdf5-matrix has more."""

from __future__ import annotations

import ctypes.util
import importlib.util
from pathlib import Path

import pytest

from . import matrix


def libraries() -> list[str]:
    found = []
    for package in ("h5py", "netCDF4"):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            beside = Path(spec.origin).resolve().parents[1]
            found += [str(path) for path in sorted(beside.glob(f"{package.lower()}.libs/libhdf5-*.so*"))]
    system = ctypes.util.find_library("hdf5_serial") or ctypes.util.find_library("hdf5")
    return [*found, *([system] if system else [])]


def test_each_reads_what_each_wrote(tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HDF5_PLUGIN_PATH", env["HDF5_PLUGIN_PATH"])
    table = matrix.matrix(libraries(), tmp_path)
    assert table
    assert {pair: wrong for pair, wrong in table.items() if wrong} == {}
