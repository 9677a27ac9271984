# SPDX-License-Identifier: BSD-3-Clause
"""h5py with MPI: processes that write one file together. PYFILTER_MPI_PYTHON names a Python that has such an h5py."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from python.support import REPOSITORY

import pyfilter

PROCESSES = (2, 4)
BEGIN = """
import json, sys
import numpy as np
from mpi4py import MPI
import h5py
comm = MPI.COMM_WORLD
rank = comm.rank
values = np.load(sys.argv[2])
part = slice(rank * len(values) // comm.size, (rank + 1) * len(values) // comm.size)
errors = {}
def attempt(name, action):
    try:
        action()
    except Exception as error:
        errors[name] = [type(error).__name__, str(error)]
def collective(dataset, where, what):
    with dataset.collective:
        dataset[where] = what
"""
END = """
with open(sys.argv[1] + "." + str(rank), "w") as out:
    json.dump(errors, out)
"""

Run = Callable[..., list[dict[str, list[str]]]]


@pytest.fixture
def values() -> np.ndarray[Any, np.dtype[np.float32]]:
    rng = np.random.default_rng(2)
    return np.cumsum(rng.normal(0, 0.1, (90, 40)), axis=0).astype("f4")


@pytest.fixture
def run(
    tmp_path: Path,
    env: dict[str, str],
    values: np.ndarray[Any, np.dtype[np.float32]],
    request: pytest.FixtureRequest,
) -> Run:
    """Run a script in all processes, two by default; what each of them was refused."""
    processes = int(getattr(request, "param", PROCESSES[0]))
    python = os.environ.get("PYFILTER_MPI_PYTHON")
    if python is None:
        pytest.skip("no h5py with MPI: PYFILTER_MPI_PYTHON is not set (scripts/clients sets it)")
    np.save(tmp_path / "values.npy", values)

    def go(script: str, **more: str) -> list[dict[str, list[str]]]:
        done = subprocess.run(
            ["mpirun", "-n", str(processes), "--allow-run-as-root", "--oversubscribe", python, "-c",
             BEGIN + script + END, tmp_path / "a.h5", tmp_path / "values.npy"],
            env={**env, **more}, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return [json.loads((tmp_path / f"a.h5.{rank}").read_text()) for rank in range(processes)]

    return go


@pytest.fixture
def ours() -> dict[str, str]:
    """What lets the other Python import pyfilter from here."""
    return {name: os.environ[name] for name in ("PYTHONPATH", "PYFILTER_LIBRARY") if name in os.environ}


@pytest.mark.parametrize("run", PROCESSES, indirect=True)
def test_collective_writes(
    run: Run, ours: dict[str, str], tmp_path: Path, values: np.ndarray[Any, np.dtype[np.float32]]
) -> None:
    """By parts and whole, with chunks that two processes share, and a process that has nothing to write."""
    refused = run(
        """
import pyfilter
codec = pyfilter.Lorenzo(absolute=1e-3)
with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as file:
    parts = file.create_dataset("parts", values.shape, "f4", chunks=(25, 40), **codec)
    collective(parts, part, values[part])
    whole = file.create_dataset("whole", values.shape, "f4", chunks=(25, 40), **codec)
    with whole.collective:
        pyfilter.write(whole, values)
    first = file.create_dataset("first", values.shape, "f4", chunks=(25, 40), **codec)
    mine = np.full(len(values), rank == 0)  # h5py makes no call for a slice without values
    collective(first, slice(None) if rank == 0 else mine, values[mine])
    assert pyfilter.create_dataset(file, "none", values[:0], codec).shape == (0, 40)
with h5py.File(sys.argv[1], driver="mpio", comm=comm) as file:
    for dataset in (file["parts"], file["whole"], file["first"]):
        found = pyfilter.read(dataset, part)
        assert np.abs(found.astype("f8") - values[part]).max() <= 1e-3
        with dataset.collective:
            assert np.array_equal(pyfilter.read(dataset, part), found)
    attempt("progressive", lambda: pyfilter.progressive.open(file["parts"]))
""",
        **ours,
    )
    assert all(set(each) == {"progressive"} for each in refused)
    with h5py.File(tmp_path / "a.h5") as file:
        assert pyfilter.check(file) == []
        alone = file["parts"].id.read_direct_chunk((25, 0))[1]
        assert alone == pyfilter.encode(values[25:50], pyfilter.Lorenzo(absolute=1e-3))
        for name in ("parts", "whole", "first"):
            assert pyfilter.verify(values, file[name]).ok
            assert file[name].id.read_direct_chunk((25, 0))[1] == alone


def test_independent_writes_are_refused_and_say_what_to_do(run: Run, ours: dict[str, str], tmp_path: Path) -> None:
    refused = run(
        """
import pyfilter
codec = pyfilter.Cuszp2(absolute=1e-3)
with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as file:
    dataset = file.create_dataset("a", values.shape, "f4", chunks=(25, 40), **codec)
    attempt("h5py", lambda: dataset.__setitem__(part, values[part]))
    attempt("write", lambda: pyfilter.write(dataset, values))
    attempt("create", lambda: pyfilter.create_dataset(file, "b", values, codec))
    attempt("particles", lambda: pyfilter.particles.write(
        file.require_group("g"), position=values[:, :3], codec=pyfilter.Particles(absolute=1e-3)))
    assert list(file) == ["a", "g"] and list(file["g"]) == []
    plain = file.create_dataset("plain", values.shape, "f4")
    pyfilter.write(plain, values)
    collective(dataset, part, values[part])
""",
        **ours,
    )
    text = (REPOSITORY / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    shown = [title for title in re.findall(r"^### `(.*)`$", text, re.MULTILINE) if "independent" in title]
    for each in refused:
        assert set(each) == {"h5py", "write", "create", "particles"}
        assert each["h5py"][0] == "OSError"
        assert [title in each["h5py"][1] for title in shown] == [True]
        for name, start, advice in (
            ("write", "/a is compressed", "'pyfilter.write(dataset, array)'"),
            ("create", "b is compressed", "group.create_dataset(name, shape, dtype, chunks=..., **codec)"),
            ("particles", "position is compressed", "group.create_dataset(name, shape, dtype, chunks=..., **codec)"),
        ):
            kind, message = each[name]
            assert kind == "Unsupported"
            assert message.startswith(f"{start} and its file is open with driver 'mpio'")
            assert "with dataset.collective:" in message
            assert advice in message
    assert pyfilter.check(tmp_path / "a.h5") == []


def test_programs_that_have_no_pyfilter(
    run: Run, tmp_path: Path, values: np.ndarray[Any, np.dtype[np.float32]]
) -> None:
    """HDF5_PLUGIN_PATH is enough to write and to read."""
    run(
        f"""
options = {tuple(pyfilter.HierarchicalDelta(absolute=0.01).filter_options)}
with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as file:
    dataset = file.create_dataset(
        "a", values.shape, "f4", chunks=(25, 40), compression={pyfilter.FILTER_ID}, compression_opts=options)
    collective(dataset, part, values[part])
with h5py.File(sys.argv[1], driver="mpio", comm=comm) as file:
    assert np.abs(file["a"][...] - values).max() <= 0.01 + 1e-6
assert "pyfilter" not in sys.modules
"""
    )
    with h5py.File(tmp_path / "a.h5") as file:
        assert pyfilter.verify(values, file["a"]).ok
