# SPDX-License-Identifier: BSD-3-Clause
"""xarray in several processes: clusters of dask whose workers do and do not know pyfilter, spawned processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import pyfilter
from pyfilter import Cuszp2

from .support import field, run_script

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
