# SPDX-License-Identifier: BSD-3-Clause
"""docs/troubleshooting.md: each text in it is provoked here, so that it stays what people see."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import pyfilter
from pyfilter import Cuszp2, verification
from pyfilter.cli import app
from pyfilter.compare import figures

from .support import REPOSITORY, clean_environment, field, without_entry_points
from .test_foreign import foreign_package
from .test_foreign import run as run_elsewhere

TEXTS = re.findall(
    r"^### `(.*)`$", (REPOSITORY / "docs" / "troubleshooting.md").read_text(encoding="utf-8"), re.MULTILINE
)
BOUND = Cuszp2(absolute=1e-3)


def command(*arguments: str | Path) -> str:
    """Run pyfilter; what it prints, or the text of its error."""
    result = CliRunner().invoke(app, [str(item) for item in arguments])
    return f"{result.output}\n{result.exception}"


def error_of(action: Callable[[], object]) -> str:
    try:
        action()
    except Exception as error:  # its text is what is asked for
        return str(error)
    return "no error"


def program(name: str, *arguments: str | Path, path: str) -> str:
    """Run a program with a plugin path; what it prints."""
    try:
        done = subprocess.run(
            [name, *map(str, arguments)], env={**clean_environment(), "HDF5_PLUGIN_PATH": path},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip(f"{name} is not installed")
    return done.stdout + done.stderr


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with one compressed dataset, which netCDF can read too."""
    with h5py.File(tmp_path / "a.nc", "w") as file:
        pyfilter.create_dataset(file, "t", field((40, 50)), BOUND, chunks=(20, 50), maxshape=(None, 50))
    return tmp_path / "a.nc"


def plain_h5py(text: str, path: Path, plugins: str) -> str:
    """Run a script that has h5py and no pyfilter."""
    script = f"import sys, h5py\nwith h5py.File(sys.argv[1], 'r+') as file:\n    {text}"
    return program(sys.executable, "-c", script, path, path=plugins)


def damage(path: Path, change: Callable[[bytes], bytes]) -> str:
    with h5py.File(path, "r+") as file:
        _, frame = file["t"].id.read_direct_chunk((0, 0))
        file["t"].id.write_direct_chunk((0, 0), change(frame))
    with h5py.File(path) as file:
        return error_of(lambda: pyfilter.read(file["t"])) + error_of(lambda: file["t"][...])


def broken_bound(path: Path) -> str:
    honest = verification.Comparison._within
    try:
        verification.Comparison._within = lambda self, x, y, both: np.zeros(x.shape, bool)  # type: ignore[method-assign]
        return command("compress", path, path.with_name("b.nc"), "--absolute", "1e-3")
    finally:
        verification.Comparison._within = honest  # type: ignore[method-assign]


def create(path: Path, codec: Any, **keywords: Any) -> str:
    with h5py.File(path, "r+") as file:
        return error_of(lambda: file.create_dataset("x", data=field((10, 10)), chunks=(5, 5), **codec, **keywords))


def hidden_fill_value(path: Path) -> str:
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((5,))
    plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    plist.set_attr_creation_order(h5py.h5p.CRT_ORDER_TRACKED)
    plist.set_filter(pyfilter.FILTER_ID, 0, Cuszp2(relative=1e-3).filter_options)
    space = h5py.h5s.create_simple((10,))
    with h5py.File(path, "r+") as file:
        return error_of(lambda: h5py.h5d.create(file.id, b"x", h5py.h5t.IEEE_F32LE, space, plist))


def resave(path: Path) -> str:
    xr = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    with xr.open_dataset(path, engine="h5netcdf", phony_dims="sort") as dataset:
        return error_of(lambda: dataset.to_netcdf(path.with_name("b.nc"), engine="h5netcdf"))


def xarray_says(path: Path, what: str) -> str:
    """Save by xarray what netCDF4 or h5netcdf has read; the warning or the error."""
    xr = pytest.importorskip("xarray")
    pytest.importorskip("netCDF4")
    pytest.importorskip("h5netcdf")
    values = {"t": (("y", "x"), field((40, 50)))}
    two = {"t": (("y", "x"), field((40, 50)), {"missing_value": np.array([-999, -998], "f4")})}
    other = path.with_name("b.nc")
    pyfilter.xarray.to_netcdf(xr.Dataset(values), path, codecs={"t": BOUND})
    engine = "h5netcdf" if what == "unknown" else "netcdf4"
    with xr.open_dataset(path, engine=engine) as dataset:
        actions: dict[str, Callable[[], object]] = {
            "unknown": lambda: dataset.to_netcdf(other, engine="netcdf4"),
            "lost": lambda: dataset.to_netcdf(other, engine="netcdf4"),
            "there": lambda: pyfilter.xarray.to_netcdf(
                xr.Dataset(values), path, codecs={"t": pyfilter.Lossless()}, mode="a", engine="h5netcdf"
            ),
            "missing": lambda: pyfilter.xarray.to_netcdf(xr.Dataset(two), other, codecs={"t": BOUND}),
        }
        if what == "there":
            dataset.close()
        return error_of(actions[what])  # warnings are errors here


def netcdf(path: Path, model: str = "NETCDF4", values: bool = False, **keywords: Any) -> str:
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(path.with_name("c.nc"), "w", format=model) as file:
        file.createDimension("x", 100)
        variable = file.createVariable("v", "f4", ("x",), **keywords)
        if values:
            variable[:] = 0.0
            file.sync()
        return error_of(lambda: pyfilter.netcdf.compress(variable, BOUND))


def without_matplotlib() -> str:
    before = sys.modules.get("matplotlib.figure")
    sys.modules["matplotlib.figure"] = None  # type: ignore[assignment]
    try:
        return error_of(figures.require)
    finally:
        del sys.modules["matplotlib.figure"]
        if before is not None:
            sys.modules["matplotlib.figure"] = before


def constant(path: Path) -> str:
    np.save(path.with_suffix(".npy"), np.ones(100))
    return command("compare", path.with_suffix(".npy"), "--relative", "1e-3", "--no-peers")


def in_program(path: Path, name: str, *arguments: str, change: Callable[[bytes], bytes]) -> str:
    """Run a program with the plugin on a file with a damaged chunk."""
    damage(path, change)
    return program(name, *arguments, path, path=pyfilter.PLUGIN_PATH)


def numcodecs_alone() -> str:
    """Ask numcodecs for the codec where pyfilter is on the path, but not installed."""
    pytest.importorskip("numcodecs")
    text = "from numcodecs.registry import get_codec\nget_codec({'id': 'pyfilter'})"
    command = [sys.executable, "-c", text]
    return subprocess.run(command, env=without_entry_points(), capture_output=True, text=True, check=False).stderr


def kerchunk_alone(path: Path) -> str:
    hdf = pytest.importorskip("kerchunk.hdf")
    return error_of(lambda: hdf.SingleHdf5ToZarr(str(path), error="raise").translate())


def virtualizarr_alone() -> str:
    pytest.importorskip("hdf5plugin")
    filters = pytest.importorskip("virtualizarr.parsers.hdf.filters")
    return error_of(lambda: filters._filter_to_codec(str(pyfilter.FILTER_ID)))


def dask_blocks(path: Path) -> str:
    array = pytest.importorskip("dask.array").from_array(field((20, 20)), chunks=(7, 20))
    return error_of(lambda: pyfilter.dask.to_hdf5(array, path.with_name("b.h5"), "v", BOUND, chunks=(10, 20)))


def overwritten(path: Path) -> str:
    """The text of `import pyfilter` after PyPI's pyfilter was installed over ours."""
    return run_elsewhere(foreign_package(path.parent), "-c", "import pyfilter").stderr


PROVOKED: dict[str, Callable[[Path], str]] = {
    "a bound does not hold": broken_bound,
    "a relative bound needs the fill value": hidden_fill_value,
    "can't open directory": lambda path: plain_h5py("file['t'][...]", path, "/nonexistent"),
    "cannot compress": lambda path: create(path, BOUND, dtype="i4"),
    "codec not available:": lambda path: numcodecs_alone(),
    'Compression filter "unknown" is unavailable': resave,
    "end inside of chunks of": dask_blocks,
    "exists already, and a NETCDF4_CLASSIC file takes a filter only together with a new variable": (
        lambda path: netcdf(path, "NETCDF4_CLASSIC")
    ),
    "exists in the file already: compress it before values are written": lambda path: netcdf(path, values=True),
    "exists in the file and is compressed by": lambda path: xarray_says(path, "there"),
    "filter 'shuffle' (id 2) stands before pyfilter": lambda path: create(path, BOUND, shuffle=True),
    "filter returned failure": lambda path: damage(path, lambda frame: bytes(len(frame))),
    "h5dump error: unable to print data": lambda path: program("h5dump", path, path=str(path.parent)),
    "is another project's": overwritten,
    "is needed here and not installed: pip install": lambda path: without_matplotlib(),
    "is the input itself": lambda path: command("compress", path, path, "--lossless"),
    "needs pyfilter >=": lambda path: damage(path, lambda frame: frame[:4] + b"\x0c\x03\x01" + frame[7:]),
    "NetCDF: Filter error: undefined filter encountered": (
        lambda path: program("ncdump", path, path=str(path.parent))
    ),
    "NetCDF: HDF error": lambda path: in_program(path, "ncdump", change=lambda frame: bytes(len(frame))),
    "required filter 52907 is not registered": (
        lambda path: plain_h5py("file['t'][0] = 1", path, str(path.parent))
        + plain_h5py("file['t'].resize((80, 50)); file['t'][60:] = 1", path, str(path.parent))
    ),
    "required filter 'pyfilter": lambda path: program("h5dump", "--enable-error-stack", path, path=str(path.parent)),
    "several values for missing ones": lambda path: xarray_says(path, "missing"),
    "the bound in cd_values[3] and [4] is 0": (
        lambda path: create(path, {"compression": pyfilter.FILTER_ID, "compression_opts": (1, 1, 1, 0, 0, 0)})
    ),
    "there is no range for a bound": constant,
    "truncated chunk": (
        lambda path: in_program(path, "h5dump", "--enable-error-stack", change=lambda frame: frame[:-5])
    ),
    "Unknown filter: 52907": lambda path: virtualizarr_alone(),
    "Unsupported value for compression kwarg": lambda path: xarray_says(path, "unknown"),
    "uses filter id 52907": kerchunk_alone,
    "which netCDF would put before the codec": lambda path: netcdf(path, zlib=True),
    "which xarray does not keep": lambda path: xarray_says(path, "lost"),
}  # fmt: skip


#: provoked by tests/clients/test_mpi.py, as it takes an h5py with MPI
BY_CLIENTS = {"Can't perform independent write with filters in pipeline"}


def test_every_text_is_tried_and_they_are_in_order() -> None:
    assert set(TEXTS) == set(PROVOKED) | BY_CLIENTS
    key = [re.sub(r"\W", "", text).lower() for text in TEXTS]
    assert key == sorted(key)


@pytest.mark.parametrize("text", PROVOKED)
def test_the_text_is_what_people_see(path: Path, text: str) -> None:
    assert text in PROVOKED[text](path)
