# SPDX-License-Identifier: BSD-3-Clause
"""PyTables, Octave, and Python programs that have no pyfilter."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter import Cuszp2

from .conftest import SHAPE, Pair

Script = Callable[..., str]


def need(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


READERS = {
    "h5py": "import h5py, numpy as np\nx = h5py.File(sys.argv[1])['tas'][...]",
    "tables": "import tables\nfile = tables.open_file(sys.argv[1])\nx = file.root.tas[...]\nfile.close()",
    "netCDF4": "import netCDF4\nfile = netCDF4.Dataset(sys.argv[1])\nx = file['tas'][:].filled(1e20)\nfile.close()",
    "xarray": "import xarray\nx = xarray.open_dataset(sys.argv[1], mask_and_scale=False)['tas'].values",
}


@pytest.mark.parametrize("package", READERS)
def test_readers_that_have_no_pyfilter(pair: Pair, script: Script, tmp_path: Path, package: str) -> None:
    need(package)
    text = f"import sys\n{READERS[package]}\nassert 'pyfilter' not in sys.modules\nx.tofile(sys.argv[2])"
    script(text, pair.compressed, tmp_path / "a")
    assert np.array_equal(np.fromfile(tmp_path / "a", "f4").reshape(SHAPE), pair.values)


def test_pytables_appends(script: Script, tmp_path: Path) -> None:
    """Values that it appends are compressed, or it fails: they are never stored raw."""
    need("tables")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        pyfilter.create_dataset(
            file, "x", np.sin(np.arange(3000.0)), Cuszp2(absolute=1e-3), chunks=(1000,), maxshape=(None,)
        )
    text = """
import sys, numpy as np, tables, pyfilter
with tables.open_file(sys.argv[1], "a") as file:
    array = file.root.x
    array[500:600] = np.sin(np.arange(500.0, 600.0))
    array.truncate(4000)
    array[3000:] = np.sin(np.arange(3000.0, 4000.0))
"""
    script(text, tmp_path / "a.h5")
    assert pyfilter.check(tmp_path / "a.h5") == []
    with h5py.File(tmp_path / "a.h5") as file:
        assert pyfilter.verify(np.sin(np.arange(4000.0)), file["x"]).ok


def test_octave_loads(pair: Pair, tool: Callable[..., str]) -> None:
    if shutil.which("octave-cli") is None:
        pytest.skip("octave-cli is not installed")
    text = f"x = load('{pair.compressed}'); printf('%.9g\\n', x.tas);"
    values = np.array(tool("octave-cli", "--no-gui", "--quiet", "--eval", text).split()[: pair.values.size], "f4")
    assert np.array_equal(values.reshape(SHAPE), pair.values)
