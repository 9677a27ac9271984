# SPDX-License-Identifier: BSD-3-Clause
"""xarray in several processes: clusters of dask whose workers do and do not know pyfilter, spawned processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
from numpy.typing import NDArray

import pyfilter
from pyfilter import Cuszp2

from . import support
from .support import REPOSITORY, TIMEOUT, field, without_entry_points

ENGINES = ["h5netcdf", "netcdf4"]
BOUND = Cuszp2(absolute=1e-3)
RELATIVE = Cuszp2(relative=1e-4)

# the cluster is there before pyfilter: its workers get neither the module nor HDF5_PLUGIN_PATH from this process
CLUSTER = """
import sys
from distributed import Client, LocalCluster
cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")
client = Client(cluster)
def knows():
    import os, sys
    return "pyfilter" in sys.modules, "HDF5_PLUGIN_PATH" in os.environ
path, engine = sys.argv[1:3]
"""
END = "\nclient.close()\ncluster.close()\n"
SAVE = """
assert set(client.run(knows).values()) == {(False, False)}
import numpy as np
import pyfilter, xarray as xr
values = np.load(f"{path}/values.npy")
data = xr.Dataset({"t": (("time", "y", "x"), values)}).chunk({"time": 3})  # blocks end inside of chunks of 4
codecs = {"t": pyfilter.Cuszp2(relative=1e-4)}
chunks = {"t": {"chunksizes": (4, 30, 40)}}
"""


def run_script(
    text: str, *arguments: str | Path, env: Mapping[str, str] | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a script where no entry point of pyfilter is installed, unless ``env`` brings them."""
    return support.run_script(text, *arguments, env=env or without_entry_points(), check=check)


@pytest.fixture
def values(tmp_path: Path) -> NDArray[Any]:
    values = field((12, 30, 40))
    np.save(tmp_path / "values.npy", values)
    return values


def assert_saved(path: Path, values: NDArray[Any]) -> None:
    """The file has the whole variable's bound, and every value keeps it, though chunks were written in parts."""
    with h5py.File(path) as file:
        found = pyfilter.codec_of(file["t"])
        assert isinstance(found, Cuszp2)
        assert found.absolute == pytest.approx(float(np.ptp(values)) * 1e-4, rel=1e-6)
        assert file["t"].chunks == (4, 30, 40)
        assert pyfilter.verify(values, file["t"], RELATIVE).ok
    assert pyfilter.check(path) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cluster_writes(tmp_path: Path, values: NDArray[Any], engine: str) -> None:
    save = f"""{CLUSTER}{SAVE}
assert pyfilter.xarray.to_netcdf(data, f"{{path}}/a.nc", engine=engine, codecs=codecs, encoding=chunks) is None
later = pyfilter.xarray.to_netcdf(
    data, f"{{path}}/b.nc", engine=engine, codecs=codecs, encoding=chunks, compute=False
)
later.compute()
"""
    run_script(save + END, tmp_path, engine)
    assert_saved(tmp_path / "a.nc", values)
    assert_saved(tmp_path / "b.nc", values)


TREES = """
import dask
tree = xr.DataTree.from_dict({"/": data, "/a": data * 2})
pyfilter.xarray.to_netcdf(tree, f"{path}/a.nc", engine=engine, codecs=pyfilter.Lossless())
refused = {
    "to memory": dict(dataset=data, codecs=codecs),
    "of a DataTree with compute=False": dict(dataset=tree, path=f"{path}/b.nc", codecs=codecs["t"], compute=False),
}
for where, arguments in refused.items():
    try:
        pyfilter.xarray.to_netcdf(**arguments, engine=engine)
    except TypeError as error:
        assert f"{where} by dask's scheduler 'distributed'. Save them with" in str(error), error
    else:
        raise SystemExit("no error")
with dask.config.set(scheduler="threads"):
    assert len(pyfilter.xarray.to_netcdf(data, engine=engine, codecs=codecs)) > 0
    lossless = pyfilter.Lossless()
    pyfilter.xarray.to_netcdf(tree, f"{path}/b.nc", engine=engine, codecs=lossless, compute=False).compute()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cluster_writes_trees_and_says_what_it_cannot(tmp_path: Path, values: NDArray[Any], engine: str) -> None:
    run_script(f"{CLUSTER}{SAVE}{TREES}{END}", tmp_path, engine)
    for name in ("a.nc", "b.nc"):
        with h5py.File(tmp_path / name) as file:
            for group, factor in (("/", 1), ("/a", 2)):
                assert pyfilter.codec_of(file[group]["t"]) == pyfilter.Lossless()
                np.testing.assert_array_equal(file[group]["t"], values * factor)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_needs_no_filter_needs_no_pyfilter_in_workers(tmp_path: Path, values: NDArray[Any], engine: str) -> None:
    save = f"""{CLUSTER}{SAVE}
data.to_netcdf(f"{{path}}/a.nc", engine=engine)
data.to_netcdf(f"{{path}}/b.nc", engine=engine, compute=False).compute()
assert {{known for known, _ in client.run(knows).values()}} == {{False}}
"""
    run_script(save + END, tmp_path, engine)
    for name in ("a.nc", "b.nc"):
        with h5py.File(tmp_path / name) as file:
            np.testing.assert_array_equal(file["t"], values)


def test_dasks_own_settings_have_workers_import_it(compressed: Path) -> None:
    """What docs/howto/dask.md says for a cluster that is to be started."""
    assert "`distributed.worker.preload: [pyfilter]`" in (REPOSITORY / "docs" / "howto" / "dask.md").read_text(
        encoding="utf-8"
    )
    setting = "import dask\ndask.config.set({'distributed.worker.preload': ['pyfilter']})\n"
    done = run_script(f"{setting}{CLUSTER}{READ}{END}", compressed.parent, "h5netcdf")
    with xr.open_dataset(compressed) as data:
        assert float(done.stdout) == pytest.approx(float(data.t.sum()))


@pytest.fixture
def installed(tmp_path: Path) -> str:
    """A folder for PYTHONPATH that has pyfilter installed, so far as entry points go: those of pyproject.toml."""
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    groups = re.findall(r'^\[project\.entry-points\."(.+)"\]\n((?:[\w"].*\n)+)', project, re.MULTILINE)
    assert [group for group, _ in groups] == ["xarray.backends", "dask.sizeof", "zarr.codecs", "numcodecs.codecs"]
    assert groups[2][1].count("\n") == 2
    info = tmp_path / "site" / "h5pyfilter-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: h5pyfilter\nVersion: 0.1.0\n", encoding="utf-8")
    text = "".join(f"[{group}]\n{points}".replace('"', "") for group, points in groups)
    (info / "entry_points.txt").write_text(text, encoding="utf-8")
    return os.pathsep.join([str(tmp_path / "site"), without_entry_points()["PYTHONPATH"]])


@pytest.fixture
def compressed(tmp_path: Path, values: NDArray[Any]) -> Path:
    data = xr.Dataset({"t": (("time", "y", "x"), values)})
    chunks = {"t": {"chunksizes": (4, 30, 40)}}
    pyfilter.xarray.to_netcdf(data, tmp_path / "in.nc", codecs={"t": BOUND}, encoding=chunks)
    return tmp_path / "in.nc"


READ = """
import xarray as xr
data = xr.open_dataset(f"{path}/in.nc", engine=engine, chunks={"time": 4})
print(float(data.t.sum().compute()))
data.close()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_an_installed_pyfilter_needs_no_import(compressed: Path, installed: str, engine: str) -> None:
    """Neither here nor in the workers: the entry points bring it."""
    with xr.open_dataset(compressed) as data:
        expected = float(data.t.sum())
    env = without_entry_points(PYTHONPATH=installed)
    knows = "\nassert {known for known, _ in client.run(knows).values()} == {True}\n"
    script = f"{CLUSTER}{knows}{READ}{END}"
    assert float(run_script(script, compressed.parent, engine, env=env).stdout) == pytest.approx(expected)


def test_the_engine_brings_the_filter_to_workers(compressed: Path, installed: str) -> None:
    """Where only this process has the entry points, what it opened has the workers import pyfilter."""
    engine = f"\nsys.path.insert(0, {str(Path(installed.split(os.pathsep)[0]))!r})\n"
    before = "\nassert {known for known, _ in client.run(knows).values()} == {False}\n"
    after = "\nassert True in {known for known, _ in client.run(knows).values()}\n"
    done = run_script(f"{CLUSTER}{before}{engine}{READ}{after}{END}", compressed.parent, "pyfilter")
    with xr.open_dataset(compressed, engine="netcdf4") as data:
        assert float(done.stdout) == pytest.approx(float(data.t.sum()))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "line",
    [
        "client.register_worker_callbacks(pyfilter.register)",
        "client.run(pyfilter.register)",
    ],
)
def test_a_line_has_running_workers_import_it(compressed: Path, engine: str, line: str) -> None:
    """What docs/howto/dask.md says for a pyfilter that is not installed but on the path."""
    assert line in (REPOSITORY / "docs" / "howto" / "dask.md").read_text(encoding="utf-8")
    script = f"{CLUSTER}import pyfilter\n{line}\n{READ}{END}"
    with xr.open_dataset(compressed) as data:
        assert float(run_script(script, compressed.parent, engine).stdout) == pytest.approx(float(data.t.sum()))


@pytest.mark.parametrize(("engine", "text"), [("h5netcdf", "can't open directory"), ("netcdf4", "undefined filter")])
def test_workers_without_it_fail_by_a_text_that_the_docs_have(compressed: Path, engine: str, text: str) -> None:
    done = run_script(f"{CLUSTER}import pyfilter\n{READ}", compressed.parent, engine, check=False)
    assert done.returncode != 0
    assert text in done.stderr
    assert text in (REPOSITORY / "docs" / "howto" / "dask.md").read_text(encoding="utf-8")


SPAWN = """
import multiprocessing, sys
import xarray as xr
def total(data):
    return float(data.t.sum())
def opened(path, engine):
    with xr.open_dataset(path, engine=engine) as data:
        return total(data)
if __name__ == "__main__":
    path = sys.argv[1]
    with multiprocessing.get_context("spawn").Pool(1) as pool:  # a process from before pyfilter was there
        print(pool.apply(eval, ("'pyfilter' in __import__('sys').modules",)))
        data = xr.open_dataset(path, engine="pyfilter")
        print(pool.apply(total, (data,)))
        data.close()
    for engine in (None, "pyfilter"):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.apply(opened, (path, engine)))
"""


def test_processes_that_import_xarray_alone(compressed: Path, installed: str, tmp_path: Path) -> None:
    """Spawned before pyfilter was there: data is sent to them, or they open the file."""
    (tmp_path / "spawn.py").write_text(SPAWN, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", tmp_path / "spawn.py", compressed],
        env=without_entry_points(PYTHONPATH=installed),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, *totals = done.stdout.split()
    assert first == "False"
    with xr.open_dataset(compressed) as data:
        assert list(map(float, totals)) == pytest.approx([float(data.t.sum())] * 3)


def test_the_engine_opens_groups_and_bytes(tmp_path: Path, values: NDArray[Any], installed: str) -> None:
    when = np.datetime64("2000-01-01", "ns") + np.arange(12)
    data = xr.Dataset({"t": (("time", "y", "x"), values), "when": ("time", when)})
    pyfilter.xarray.to_netcdf(data, tmp_path / "g.nc", codecs={"t": BOUND}, group="inner")
    script = f"""
import sys
sys.path.insert(0, {str(Path(installed.split(os.pathsep)[0]))!r})
import io, numpy as np, xarray as xr
with xr.open_dataset(sys.argv[1], engine="pyfilter", group="inner") as data:
    first = data.load()
with xr.open_dataset(io.BytesIO(open(sys.argv[1], "rb").read()), engine="pyfilter", group="inner") as data:
    assert data.identical(first)
with xr.open_dataset(sys.argv[1], engine="netcdf4", group="inner") as data:
    assert data.identical(first)
"""
    run_script(script, tmp_path / "g.nc")
