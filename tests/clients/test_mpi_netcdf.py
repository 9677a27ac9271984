# SPDX-License-Identifier: BSD-3-Clause
"""netCDF-C with MPI: parallel_netcdf.c, by 2 and 4 processes, with every codec; it needs HDF5_PLUGIN_PATH alone."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

import pyfilter
from clients.test_mpi import PROCESSES

CODECS = {
    name: cls() if name == "lossless" else cls(absolute=1e-3)  # type: ignore[call-arg]
    for name, cls in pyfilter.FILTERS.items()
    if name != "particles"
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled; skips where there is no netCDF-C with MPI."""
    found = [shutil.which(name) for name in ("mpicc", "mpirun", "pkg-config")]
    flags = "netcdf-mpi"
    if None in found or subprocess.run(["pkg-config", "--exists", flags], check=False).returncode != 0:
        pytest.skip("no mpicc, mpirun or netCDF-C with MPI (scripts/clients installs them)")
    asked, prefix = (
        subprocess.run(["pkg-config", *what, flags], capture_output=True, text=True, check=True).stdout.split()
        for what in (("--cflags", "--libs"), ("--variable=prefix",))
    )
    target = tmp_path_factory.mktemp("mpi") / "parallel_netcdf"
    source = Path(__file__).with_name("parallel_netcdf.c")
    done = subprocess.run(
        ["mpicc", "-Wall", "-Werror", "-o", target, source, "-I" + prefix[0] + "/include", *asked, "-lm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def run(program: Path, env: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def go(processes: int, codec: pyfilter.Codec, *more: str) -> subprocess.CompletedProcess[str]:
        words = ",".join(map(str, codec.filter_options))
        return subprocess.run(
            ["mpirun", "-n", str(processes), "--allow-run-as-root", "--oversubscribe", program, tmp_path / "a.nc",
             *more],
            env={**env, "WORDS": words}, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip

    return go


@pytest.mark.parametrize("name", CODECS)
def test_collective_writes(run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, name: str) -> None:
    for processes in PROCESSES if name == "lorenzo" else PROCESSES[:1]:
        done = run(processes, CODECS[name])
        assert done.returncode == 0, done.stdout + done.stderr
        rows, columns = np.meshgrid(np.arange(32 * processes), np.arange(100), indexing="ij")
        values = (np.sin(rows * 0.1) * 20 + np.cos(columns * 0.05)).astype("f4")
        with h5py.File(tmp_path / "a.nc") as file:
            assert pyfilter.codec_of(file["t"]) is not None
            assert np.abs(file["t"][...].astype("f8") - values).max() <= 1e-3
            assert pyfilter.check(file) == []


def test_independent_writes_fail(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """netCDF-C switches variables with filters to collective access, or says that HDF5 refuses."""
    done = run(2, CODECS["lorenzo"], "independent")
    assert done.returncode == 3
    assert "nc_var_par_access" in done.stdout or "nc_put_vara_float" in done.stdout
