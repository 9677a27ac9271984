# SPDX-License-Identifier: BSD-3-Clause
"""Registration: every libhdf5 of the process, whatever is imported first, and nobody else's plugins lost."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import h5py
import pytest

import pyfilter
from pyfilter import plugin

from .support import clean_environment, field, run_script

SETUP = """
import os, sys
import numpy as np
path = sys.argv[1]
values = np.sin(np.arange(4000, dtype="f4") / 50).reshape(40, 100)
def by_h5py(name="h5py", **extra):
    import h5py, pyfilter
    with h5py.File(f"{path}/{name}.h5", "w") as file:
        file.create_dataset("a", data=values, chunks=(20, 50), **(extra or pyfilter.Cuszp2(absolute=1e-3)))
    with h5py.File(f"{path}/{name}.h5") as file:
        assert abs(file["a"][...] - values).max() <= 1e-3
        assert not pyfilter.check(file), pyfilter.check(file)
        assert file["a"].id.get_storage_size() < values.nbytes
def by_netcdf4(name="netcdf4", **extra):
    import netCDF4, pyfilter
    with netCDF4.Dataset(f"{path}/{name}.nc", "w") as file:
        file.createDimension("y", 40), file.createDimension("x", 100)
        variable = file.createVariable("a", "f4", ("y", "x"), **extra)
        if not extra:
            pyfilter.netcdf.compress(variable, pyfilter.Cuszp2(absolute=1e-3))
        variable[...] = values
    with netCDF4.Dataset(f"{path}/{name}.nc") as file:
        assert abs(file["a"][...] - values).max() <= 1e-3
    # h5py's HDF5, which check uses, may not know the filters of netCDF4
    assert not [item for item in pyfilter.check(f"{path}/{name}.nc") if not extra or item.problem != "filter missing"]
"""


@pytest.mark.parametrize("order", list(itertools.permutations(["h5py", "netCDF4", "pyfilter"])), ids=" ".join)
def test_any_order_of_imports(tmp_path: Path, order: tuple[str, ...]) -> None:
    pytest.importorskip("netCDF4")
    imports = "".join(f"import {name}\n" for name in order)
    run_script(f"{SETUP}{imports}assert len(pyfilter.register()) == 2\nby_h5py()\nby_netcdf4()", tmp_path)


@pytest.mark.parametrize("order", list(itertools.permutations(["hdf5plugin", "netCDF4", "pyfilter"])), ids=" ".join)
def test_hdf5plugin_works_as_it_would_without_us(tmp_path: Path, order: tuple[str, ...]) -> None:
    pytest.importorskip("netCDF4")
    pytest.importorskip("hdf5plugin")
    imports = "".join(f"import {name}\n" for name in order)
    check = 'by_h5py()\nby_netcdf4()\nby_h5py("zstd", **hdf5plugin.Zstd())\n'
    if order.index("netCDF4") > order.index("hdf5plugin"):
        # netCDF4 first breaks hdf5plugin's Blosc with or without us (its plugin is found instead)
        check += 'by_h5py("blosc", **hdf5plugin.Blosc())\n'
    if order == ("pyfilter", "hdf5plugin", "netCDF4"):
        check += 'by_h5py("sz3", **hdf5plugin.SZ3(absolute=1e-3))\n'
    run_script(f"{SETUP}{imports}{check}", tmp_path)


@pytest.mark.parametrize("first", ["netCDF4", "pyfilter"])
@pytest.mark.parametrize("compression", ["zstd", "bzip2", "blosc_lz4"])
def test_netcdf4_keeps_its_own_plugins(tmp_path: Path, first: str, compression: str) -> None:
    netCDF4 = pytest.importorskip("netCDF4")
    if not any((Path(netCDF4.__file__).parent / "plugins").glob("*zst*")):
        pytest.skip("this netCDF4 brings no such plugins of its own")
    run_script(f'{SETUP}import {first}\nby_netcdf4(compression="{compression}")\nby_netcdf4("ours")', tmp_path)


def test_appending_is_never_raw_in_silence(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        pyfilter.create_dataset(file, "a", field((40, 100)), pyfilter.Cuszp2(absolute=1e-3), maxshape=(None, 100))
    by_h5py = """
import sys, pyfilter, h5py
with h5py.File(sys.argv[1], "r+") as file:
    file["a"].resize((80, 100))
    file["a"][40:] = 1.25
"""
    run_script(by_h5py, tmp_path / "a.h5")
    assert pyfilter.check(tmp_path / "a.h5") == []


@pytest.mark.parametrize(
    "imports",
    [
        "import netCDF4, pyfilter",
        "import pyfilter, netCDF4",
        "import pyfilter, importlib; netCDF4 = importlib.import_module('netCDF4')",
    ],
)
def test_appending_by_netcdf4_is_never_raw_in_silence(tmp_path: Path, imports: str) -> None:
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("y", None)
        file.createDimension("x", 100)
        variable = file.createVariable("a", "f4", ("y", "x"), chunksizes=(20, 100), fill_value=1e20)
        pyfilter.netcdf.compress(variable, pyfilter.Cuszp2(absolute=1e-3))
        variable[:20] = field((20, 100))
    script = f"""
import sys
{imports}
with netCDF4.Dataset(sys.argv[1], "a") as file:
    file["a"][20:60] = 1.25
"""
    run_script(script, tmp_path / "a.nc")
    assert pyfilter.check(tmp_path / "a.nc") == []
    with h5py.File(tmp_path / "a.nc") as file:
        assert file["a"].shape == (60, 100)


def test_a_child_process_finds_the_plugin_by_the_path(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        pyfilter.create_dataset(file, "a", field((40, 100)), pyfilter.Cuszp2(absolute=1e-3))
    env = clean_environment(HDF5_PLUGIN_PATH=os.environ["HDF5_PLUGIN_PATH"])
    script = "import sys, h5py; print(h5py.File(sys.argv[1])['a'][...].shape, 'pyfilter' in sys.modules)"
    assert run_script(script, tmp_path / "a.h5", env=env).stdout.split() == ["(40,", "100)", "False"]


def test_register_says_which_libraries_know_the_filter() -> None:
    libraries = pyfilter.register()
    assert libraries
    assert all("libhdf5" in Path(path).name for path in libraries)
    assert sorted(pyfilter.register(force=True)) == sorted(libraries)
    assert h5py.h5z.filter_avail(pyfilter.FILTER_ID)


def test_a_libhdf5_that_python_does_not_see_loading_is_found_on_the_next_call() -> None:
    netCDF4 = pytest.importorskip("netCDF4")
    libraries = sorted((Path(netCDF4.__file__).parent.parent / "netcdf4.libs").glob("libhdf5-*"))
    if not libraries:
        pytest.skip("this netCDF4 brings no libhdf5 of its own")
    script = """
import sys, ctypes, pyfilter
assert len(pyfilter.register()) == 1
ctypes.CDLL(sys.argv[1])
assert len(pyfilter.register()) == 2, pyfilter.register()
"""
    run_script(script, libraries[0])


@pytest.mark.parametrize(
    ("current", "others", "expected"),
    [
        (None, [], ["/ours"]),
        (None, ["/a", "/b"], ["/a", "/b", "/ours"]),
        ("", ["/a"], ["/ours"]),
        ("/user", ["/a"], ["/user", "/ours"]),
        ("/user:/ours:/b", [], ["/user", "/ours", "/b"]),
        ("/ours", [], ["/ours"]),
    ],
)
def test_the_path_is_extended_and_never_shortened(current: str | None, others: list[str], expected: list[str]) -> None:
    assert plugin.extended_path(current, "/ours", others).split(os.pathsep) == expected


def test_a_path_of_the_users_is_kept(tmp_path: Path) -> None:
    env = clean_environment(HDF5_PLUGIN_PATH=str(tmp_path))
    script = "import os, pyfilter; print(os.environ['HDF5_PLUGIN_PATH'])"
    assert run_script(script, env=env).stdout.strip() == f"{tmp_path}{os.pathsep}{pyfilter.PLUGIN_PATH}"


def test_the_plugin_path_holds_the_library() -> None:
    assert list(Path(pyfilter.PLUGIN_PATH).glob("libh5pyfilter*"))
    assert pyfilter.PLUGIN_PATH in os.environ["HDF5_PLUGIN_PATH"].split(os.pathsep)


def test_importing_loads_no_optional_package() -> None:
    script = """
import sys, pyfilter
optional = ("netCDF4", "xarray", "h5netcdf", "hdf5plugin", "cupy", "click", "rich")
print([name for name in optional if name in sys.modules])
"""
    assert run_script(script).stdout.strip() == "[]"


def test_importing_is_quick() -> None:
    """What takes long to import is imported where it is used."""
    script = """
import sys, numpy, h5py
before = set(sys.modules)
import pyfilter
print([name for name in ("importlib.metadata", "email", "zipfile", "tempfile", "subprocess") if name in
       set(sys.modules) - before])
"""
    assert run_script(script).stdout.strip() == "[]"


def test_the_import_hook_leaves_modules_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "tables.py").write_text("value = 5\n", encoding="utf-8")  # a name that is watched
    (tmp_path / "osgeo").mkdir()
    (tmp_path / "osgeo" / "__init__.py").write_text("raise RuntimeError('broken')\n", encoding="utf-8")
    script = """
import sys, importlib, inspect
sys.path.insert(0, sys.argv[1])
import pyfilter
import tables
assert tables.value == 5
assert type(tables.__loader__).__name__ == "SourceFileLoader"
assert inspect.getsource(tables) == "value = 5\\n"
importlib.reload(tables)
try:
    import osgeo
except RuntimeError as error:
    assert str(error) == "broken"
else:
    raise SystemExit("no error")
try:
    import pyogrio
except ModuleNotFoundError:
    pass
"""
    run_script(script, tmp_path)


def test_xarray_here_is_not_the_real_one() -> None:
    xarray = pytest.importorskip("xarray")
    assert pyfilter.xarray is not xarray
    assert pyfilter.xarray.__name__ == "pyfilter.xarray"
    with pytest.raises(AttributeError, match="nothing"):
        _ = pyfilter.nothing
    assert "create_dataset" in dir(pyfilter)
