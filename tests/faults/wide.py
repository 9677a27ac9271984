# SPDX-License-Identifier: BSD-3-Clause
"""Faults where several workers write: Zarr arrays, dask, MPI, folders of files. They are added to scenarios.py's.

What needs a package that is not there says "not run" and why.
"""

from __future__ import annotations

import importlib.util
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from python.support import clean_environment

import pyfilter

from .children import BOUND, CODECS, SHAPE, check_steps, step_of
from .scenarios import TIMEOUT, command, of_ended_writer, pick_codec, scenario, text_of_failure
from .wide_children import STEPS, create_zarr, steps_array

TESTS = Path(__file__).resolve().parents[1]


def missing(*packages: str) -> str:
    """Why a scenario is not run, or nothing."""
    absent = [name for name in packages if importlib.util.find_spec(name) is None]
    return f"not run: no {' or '.join(absent)} here" if absent else ""


def environment() -> dict[str, str]:
    env = clean_environment()
    return {**env, "PYTHONPATH": f"{TESTS}{os.pathsep}{env['PYTHONPATH']}"}


def child(*words: object, before: Sequence[str] = (sys.executable,)) -> subprocess.Popen[str]:
    full = [*before, "-m", "faults.wide_children", *map(str, words)]
    return subprocess.Popen(full, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment())


def killed_after_first_line(process: subprocess.Popen[str], seconds: float) -> list[str]:
    """Kill a process a while after its first line; all the lines."""
    assert process.stdout is not None
    first = process.stdout.readline()
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    lines = [first, *process.stdout.read().splitlines()]
    process.wait(TIMEOUT)
    timer.cancel()
    return lines


def zarr_steps(folder: Path, count: int) -> Any:
    """The array of a folder, whose first steps must be right."""
    import zarr

    array = zarr.open_array(folder / "a.zarr", mode="r")
    check_steps(array, count)
    return array


@scenario("kill -9 while a Zarr array is written")
def kill_zarr_writer(folder: Path, seed: int) -> str:
    if why := missing("zarr"):
        return why
    with child("write_zarr", folder / "a.zarr", pick_codec(seed), 0) as process:
        lines = killed_after_first_line(process, random.Random(seed).uniform(0, 0.3))
    assert process.returncode == -9, lines[-3:]
    written = int(lines[-1])
    array = zarr_steps(folder, written)
    if text := text_of_failure(lambda: array[written]):
        assert f"/{written}/0/0: " in text, text
        return "all that was written is read; the chunk in work is refused"
    last = array[written]
    assert np.isnan(last).all() or np.abs(last - step_of(written)).max() <= BOUND
    return "all that was written is read; the chunk in work is whole or not there"


@scenario("files may not grow while a Zarr array is written")
def full_disk_under_zarr(folder: Path, seed: int) -> str:
    if why := missing("zarr"):
        return why
    largest = max(len(pyfilter.encode(step_of(n)[None], CODECS[pick_codec(seed)])) for n in range(3))
    size = random.Random(seed).randrange(1, largest)
    with child("write_zarr", folder / "a.zarr", pick_codec(seed), size) as process:
        said = process.communicate(timeout=TIMEOUT)[0].splitlines()
    assert process.returncode == 0, said
    assert said[-1].startswith("error: "), said[-1:]
    assert "File too large" in said[-1], said[-1]
    written = int(said[-2]) if len(said) > 1 else 0
    array = zarr_steps(folder, written)
    if text_of_failure(lambda: array[written]):
        return "an error that names the cause; the chunk in work is refused"
    assert np.isnan(array[written]).all()
    return "an error that names the cause; the chunk in work is not there"


def damaged_zarr(folder: Path, seed: int, cut: bool) -> str:
    """A chunk with flipped bits, or cut short. Its frame has no checksum of the payload."""
    array = create_zarr(str(folder / "a.zarr"), pick_codec(seed), 4)
    array[...] = np.stack([step_of(n) for n in range(4)])
    before, draw = array[...], random.Random(seed)
    number = draw.randrange(4)
    chunk = folder / "a.zarr" / "c" / str(number) / "0" / "0"
    data = bytearray(chunk.read_bytes())
    if cut:
        del data[draw.randrange(len(data)) :]
    for _ in range(0 if cut else draw.randrange(1, 4)):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    chunk.write_bytes(data)
    if text := text_of_failure(lambda: array[...]):
        assert f"/{number}/0/0: " in text, text
        return "an error that names the chunk"
    after = array[...]
    assert not cut
    assert all(np.array_equal(after[n], before[n]) for n in range(4) if n != number)
    return "other values in that chunk" if (after != before).any() else "the same values"


@scenario("bits flipped in a chunk of a Zarr array")
def flips_in_zarr(folder: Path, seed: int) -> str:
    return missing("zarr") or damaged_zarr(folder, seed, cut=False)


@scenario("chunk of a Zarr array cut short")
def cut_zarr(folder: Path, seed: int) -> str:
    return missing("zarr") or damaged_zarr(folder, seed, cut=True)


def the_file(folder: Path) -> str:
    """What became of a file that is written whole or not at all."""
    if not (folder / "a.h5").exists():
        return "no file"
    with h5py.File(folder / "a.h5") as file:
        assert file["x"].shape == (STEPS, *SHAPE)
        check_steps(file["x"], STEPS)
    return "the file is whole"


@scenario("kill -9 while pyfilter.dask.to_hdf5 writes")
def kill_dask_writer(folder: Path, seed: int) -> str:
    if why := missing("dask"):
        return why
    with child("write_dask", folder / "a.h5", pick_codec(seed), 0) as process:
        lines = killed_after_first_line(process, random.Random(seed).uniform(0, 0.4))
    assert process.returncode in (0, -9), lines[-3:]
    assert process.returncode == -9 or (folder / "a.h5").exists(), lines[-3:]
    return the_file(folder)


@scenario("kill -9 while pyfilter.dask.to_hdf5 adds a dataset to a file")
def kill_dask_addition(folder: Path, seed: int) -> str:
    """The dataset is made beside the file, then copied into it: HDF5 promises nothing of a file that it writes to."""
    if why := missing("dask"):
        return why
    with h5py.File(folder / "a.h5", "w") as file:
        file["old"] = np.stack([step_of(n) for n in range(20)])
    with child("write_dask", folder / "a.h5", pick_codec(seed), 0, "last") as process:
        killed_after_first_line(process, random.Random(seed).uniform(0, 0.1))
    try:
        with h5py.File(folder / "a.h5") as file:
            assert np.array_equal(file["old"][...], np.stack([step_of(n) for n in range(20)]))
            if "x" not in file:
                return "the older dataset is read"
            check_steps(file["x"], STEPS)
            return "both datasets are read"
    except (OSError, KeyError, RuntimeError):
        return "HDF5 refuses the file or a chunk with an error"


@scenario("file may not grow while pyfilter.dask.to_hdf5 writes")
def full_disk_under_dask(folder: Path, seed: int) -> str:
    if why := missing("dask"):
        return why
    with child(
        "write_dask", folder / "a.h5", pick_codec(seed), random.Random(seed).randrange(5_000, 400_000)
    ) as process:
        said = process.communicate(timeout=TIMEOUT)[0].splitlines()
    assert process.returncode == 0, said
    assert said[-1].startswith("error: "), said[-1:]
    assert "File too large" in said[-1] or "write" in said[-1], said[-1]
    assert list(folder.iterdir()) == []
    return "an error that names the cause; no file is left"


@scenario("a worker of dask.distributed is killed while pyfilter.dask.to_hdf5 writes")
def kill_dask_worker(folder: Path, seed: int) -> str:
    """Workers are started again, and their blocks are computed again; or an error says so and there is no file."""
    if why := missing("dask", "distributed"):
        return why
    import dask
    from dask import distributed

    draw = random.Random(seed)
    quiet = {"distributed.worker.memory.terminate": False, "logging.distributed": "critical"}
    env = {"PYTHONPATH": environment()["PYTHONPATH"]}
    with (
        dask.config.set({**quiet, "distributed.nanny.environ": env}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        processes = list(client.run(os.getpid).values())
        at = draw.randrange(1, 60)

        def kill_at(done: int, _: int) -> None:
            if done == at:
                os.kill(processes[seed % 2], signal.SIGKILL)

        codec = CODECS[pick_codec(seed)]
        text = text_of_failure(
            lambda: pyfilter.dask.to_hdf5(steps_array(), folder / "a.h5", "x", codec, progress=kill_at)
        )
    if text:
        assert list(folder.iterdir()) == [], text
        return "an error; no file is left"
    assert [path.name for path in folder.iterdir()] == ["a.h5"]
    return the_file(folder)


def mpi_python() -> str:
    """The Python whose h5py has MPI, or why there is none."""
    if shutil.which("mpirun") is None or "PYFILTER_MPI_PYTHON" not in os.environ:
        return "not run: no mpirun, or PYFILTER_MPI_PYTHON is not set (scripts/clients sets it)"
    return os.environ["PYFILTER_MPI_PYTHON"]


def ranks(folder: Path, seed: int, size: int) -> subprocess.Popen[str]:
    mpirun = ["mpirun", "-n", "2", "--allow-run-as-root", "--oversubscribe", mpi_python()]
    return child("write_mpi", folder / "a.h5", pick_codec(seed), size, before=mpirun)


def of_ranks(folder: Path, said: str) -> str:
    """What is read of a file that ranks had flushed when they were ended. HDF5 promises nothing of an open file."""
    flushed = max(map(int, re.findall(r"flushed (\d+)", said)), default=0)
    return of_ended_writer(folder / "a.h5", flushed)


@scenario("a rank of MPI is killed while all write one file")
def kill_rank(folder: Path, seed: int) -> str:
    if (python := mpi_python()).startswith("not run"):
        return python
    said = ""
    with ranks(folder, seed, 0) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said += line
            if "flushed " in line:
                break
        victims = dict(re.findall(r"rank (\d+) (\d+)", said))  # lines of ranks may run into each other
        time.sleep(random.Random(seed).uniform(0, 0.2))
        os.kill(int(victims[str(seed % 2)]), signal.SIGKILL)
        said += process.communicate(timeout=TIMEOUT)[0]
    assert process.returncode != 0
    return f"all ranks end with an error; {of_ranks(folder, said)}"


@scenario("file may not grow while ranks of MPI write it")
def full_disk_under_ranks(folder: Path, seed: int) -> str:
    if (python := mpi_python()).startswith("not run"):
        return python
    with ranks(folder, seed, random.Random(seed).randrange(40_000, 200_000)) as process:
        said = process.communicate(timeout=TIMEOUT)[0]
    assert process.returncode != 0
    assert "error: " in said, said
    return f"all ranks end with an error; {of_ranks(folder, said)}"


def folder_of_files(folder: Path) -> list[str]:
    """Files for `pyfilter compress`, and the words of the command."""
    for number in range(6):
        with h5py.File(folder / f"in{number}.h5", "w") as file:
            file["v"] = np.stack([step_of(n + number) for n in range(30)])
    (folder / "out").mkdir()
    sources = sorted(str(path) for path in folder.glob("in*.h5"))
    return ["compress", *sources, str(folder / "out"), "--absolute", str(BOUND)]


def whole_results(folder: Path) -> int:
    """How many results there are, each of which must be whole."""
    results = sorted(folder.glob("out/in*.h5"))
    for path in results:
        with h5py.File(path) as file:
            expected = np.stack([step_of(n + int(path.stem[2:])) for n in range(30)])
            assert np.abs(file["v"][...].astype("f8") - expected.astype("f8")).max() <= BOUND
    return len(results)


@scenario("kill -9 while `pyfilter compress` writes a folder, then `--resume`")
def kill_folder(folder: Path, seed: int) -> str:
    words = folder_of_files(folder)
    full = [sys.executable, "-m", "pyfilter", *words]
    process = subprocess.Popen(full, env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not list(folder.glob("out/*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(random.Random(seed).uniform(0, 0.6))
    process.kill()
    process.wait(TIMEOUT)
    there = whole_results(folder)
    done = command(*words, "--resume")
    assert done.returncode == 0, done.stderr
    assert whole_results(folder) == 6
    return "what was there is whole, --resume made the rest" if there < 6 else "all was written before"


@scenario("two `pyfilter compress` write into one folder at once")
def two_folders(folder: Path, seed: int) -> str:
    words = folder_of_files(folder)
    full = [sys.executable, "-m", "pyfilter", *words]
    both = []
    for _ in range(2):
        both.append(subprocess.Popen(full, env=clean_environment(), stdout=subprocess.DEVNULL))
        time.sleep(random.Random(seed).uniform(0, 0.3))
    statuses = [process.wait(TIMEOUT) for process in both]
    assert set(statuses) <= {0, 2}, statuses
    assert whole_results(folder) == 6
    return "all results are whole"
