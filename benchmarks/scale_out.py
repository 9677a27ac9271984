# SPDX-License-Identifier: BSD-3-Clause
"""xarray's engine, Dask and MPI against what they replace, and their floors. python -m benchmarks.scale_out.

All works of a row take turns, so that other load of the machine affects all of them. Ranks of MPI are measured where
PYFILTER_MPI_PYTHON names a Python whose h5py is built with MPI (scripts/clients makes one).
"""

from __future__ import annotations

import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import h5py
import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.fields import ROOT
from benchmarks.report import Floor, Rows, origin, report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from distributed import Client
    from numpy.typing import NDArray

MARKER = "scale_out"
SHAPE = (96, 361, 720)
CHUNKS = ((1, 361, 720), (4, 361, 720), (12, 361, 720), (24, 121, 240))
#: times that workers write the values, and time steps in a block of Dask
REPEATED = 8
BLOCK = 16
COLUMNS = ("what", "GB/s", "GB/s of the other", "ratio", "of best times", "of CPU time")
LEGEND = (
    "GB/s of values, medians of turns; 'ratio': of the medians, 'of best times': of the shortest ones, 'of CPU time': "
    "of user and system time of this process (not measured for works of other processes). A field like one of a "
    "reanalysis: 96 times (Dask: repeated 8 times), 361 x 720 points, float32, 100 and 800 MB; bound 1e-4 of "
    "its range; files in memory. Engine: open, read all, close, by engine pyfilter and by engine netcdf4, whose "
    "filter uses all threads for a chunk, or one. Dask: "
    "pyfilter.dask.to_hdf5 by two workers of a cluster and by one (a thread each), blocks of 16 times from memory. "
    "4 workers: against pyfilter.create_dataset with 4 threads. MPI: pyfilter.create_dataset with "
    "comm= by two ranks and by one, a thread each."
)
#: name of the floor, and the smallest ratio
ENGINE, ALONE, DASK, FILE, RANKS = (
    ("engine pyfilter / engine netcdf4, Lorenzo", 3.0),
    ("engine pyfilter / engine netcdf4 with a filter of one thread, Lorenzo", None),
    ("Dask, two workers / one", 1.7),
    ("one HDF5 file, 4 workers / one process with 4 threads", 1 / 1.2),
    ("MPI, two ranks / one", 1.7),
)
FLOORS = (ENGINE, ALONE, DASK, FILE, RANKS)
RANK = """
import sys, time
import h5py, numpy as np
from mpi4py import MPI
import pyfilter
comm = MPI.COMM_WORLD
values = np.load(sys.argv[1], mmap_mode="r")
rows = len(values) // comm.size
part = np.array(values[rows * comm.rank : rows * (comm.rank + 1)])
codec = getattr(pyfilter, sys.argv[3])(absolute=float(sys.argv[4]))
with pyfilter.config(threads=1):
    for turn in range(2):
        comm.Barrier()
        begin = time.perf_counter()
        with h5py.File(sys.argv[2], "w", driver="mpio", comm=comm) as file:
            pyfilter.create_dataset(file, "t", part, codec, comm=comm, chunks=(4, *part.shape[1:]))
        comm.Barrier()
        taken = time.perf_counter() - begin
if comm.rank == 0:
    print(taken)
"""


def field() -> NDArray[np.float32]:
    """Temperature-like values with weather that moves on from step to step."""
    random = np.random.default_rng(1)
    lat, lon = np.linspace(0, np.pi, SHAPE[1])[:, None], np.linspace(0, 2 * np.pi, SHAPE[2])[None, :]
    values = np.empty(SHAPE, "f4")
    waves = [(random.uniform(1, 12), random.uniform(1, 12), random.uniform(0, 6), random.normal()) for _ in range(40)]
    noise = random.normal(0, 0.02, SHAPE[1:])
    for step in range(SHAPE[0]):
        total = 280 + 20 * np.sin(lat) + noise + random.normal(0, 0.02, SHAPE[1:])
        for k, m, phase, height in waves:
            total += height * np.sin(round(k) * lon + phase + 0.05 * step) * np.sin(m * lat)
        values[step] = total
    return values


def repeated(values: NDArray[Any], folder: Path) -> Path:
    """Return a file of the values several times over."""
    path = folder / "values.npy"
    if not path.exists():
        np.save(path, np.concatenate([values] * REPEATED))
    return path


def in_turns(works: Sequence[Callable[[], float | None]], rounds: int) -> list[tuple[list[float], list[float]]]:
    """Return seconds and CPU seconds of each, after a round that does not count; a work may report its own seconds."""
    taken: list[tuple[list[float], list[float]]] = [([], []) for _ in works]
    for turn in range(rounds + 1):
        for (times, cpu), work in zip(taken, works, strict=True):
            begin, before = time.perf_counter(), time.process_time()
            told = work()
            if turn:
                cpu.append(time.process_time() - before)
                times.append(time.perf_counter() - begin if told is None else told)
    return taken


class Table:
    """Rows, and the figures of the floors."""

    def __init__(self) -> None:
        self.rows = Rows("", COLUMNS)
        self.floors: dict[str, Floor] = {}

    def add(self, floor: tuple[str, float | None], what: str, taken: Any, nbytes: int, *, cpu: bool = False) -> None:
        """Add what two works have taken, the new one first."""
        (new, new_cpu), (old, old_cpu) = taken
        ratio = statistics.median(old) / statistics.median(new)
        name, wanted = floor
        self.floors.setdefault(name, Floor(name, wanted, [])).values.append((ratio, what))
        self.rows.add(
            what,
            *(f"{nbytes / 1e9 / statistics.median(each):.2f}" for each in (new, old)),
            f"{ratio:.2f}",
            f"{min(old) / min(new):.2f}",
            f"{min(old_cpu) / min(new_cpu):.2f}" if cpu else "",
        )


def engines(table: Table, values: NDArray[Any], bound: float, folder: Path, rounds: int) -> None:
    """Measure reading by both engines."""
    import xarray

    data = xarray.Dataset({"t": (("time", "lat", "lon"), values)})
    path = folder / "engine.nc"

    def read(engine: str, threads: int = 0) -> Callable[[], None]:
        def work() -> None:
            with pyfilter.config(threads=threads), xarray.open_dataset(path, engine=engine) as opened:
                found = opened["t"].values
            assert found.shape == values.shape

        return work

    for chunk in CHUNKS:
        encoding = {"t": {"chunksizes": chunk}}
        pyfilter.xarray.to_netcdf(data, path, codecs={"t": pyfilter.Lorenzo(absolute=bound)}, encoding=encoding)
        new, old, alone = in_turns([read("pyfilter"), read("netcdf4"), read("netcdf4", 1)], rounds)
        name = f"engine, chunks of {'x'.join(map(str, chunk))}"
        table.add(ENGINE, name, (new, old), values.nbytes, cpu=True)
        table.add(ALONE, f"{name}, filter of one thread", (new, alone), values.nbytes, cpu=True)


def _block(path: str, block_info: Any = None) -> Any:
    region = tuple(slice(*ends) for ends in block_info[None]["array-location"])
    return np.array(np.load(path, mmap_mode="r")[region])


def clusters(table: Table, values: NDArray[Any], bound: float, folder: Path, rounds: int) -> None:
    """Measure writing by workers of Dask."""
    from dask import array

    source = repeated(values, folder)
    steps = REPEATED * SHAPE[0]
    lazy = array.map_blocks(
        _block, str(source), chunks=((BLOCK,) * (steps // BLOCK), (SHAPE[1],), (SHAPE[2],)), dtype="f4",
        meta=np.empty((0, 0, 0), "f4"),
    )  # fmt: skip

    def by_workers(client: Client, codec: pyfilter.Codec) -> Callable[[], None]:
        def work() -> None:
            path = folder / "dask.h5"
            path.unlink(missing_ok=True)
            with client.as_current():
                pyfilter.dask.to_hdf5(lazy, path, "t", codec, chunks=(4, *SHAPE[1:]))

        return work

    def by_threads(codec: pyfilter.Codec) -> Callable[[], None]:
        def work() -> None:
            with pyfilter.config(threads=4), h5py.File(folder / "one.h5", "w") as file:
                pyfilter.create_dataset(file, "t", np.load(source), codec, chunks=(4, *SHAPE[1:]))

        return work

    size, few = REPEATED * values.nbytes, max(rounds // 3, 3)
    slow, fast = pyfilter.Adaptive(absolute=bound), pyfilter.Lorenzo(absolute=bound)
    with _cluster(2) as two, _cluster(1) as one:  # by the codec that is bound by the CPU
        table.add(DASK, "Dask, Adaptive", in_turns([by_workers(two, slow), by_workers(one, slow)], few), size)
    with _cluster(4) as four:
        for codec in (slow, fast):
            taken = in_turns([by_workers(four, codec), by_threads(codec)], few)
            table.add(FILE, f"one file, {type(codec).__name__}", taken, size)


@contextmanager
def _cluster(workers: int) -> Iterator[Client]:
    """Give a cluster of workers with a thread each; a cluster without work takes time of the cores, too."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.run(pyfilter.register)
        yield client


def ranks(table: Table, values: NDArray[Any], bound: float, folder: Path, rounds: int) -> None:
    """Measure writing by ranks of MPI."""
    python = os.environ.get("PYFILTER_MPI_PYTHON")
    if python is None:
        return
    source = folder / "once.npy"
    np.save(source, values)

    def run(count: int, codec: str) -> Callable[[], float]:
        def work() -> float:
            command = ["mpirun", "-n", str(count), "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
            arguments = [str(source), str(folder / "ranks.h5"), codec, repr(bound)]
            done = subprocess.run(
                [*command, python, "-c", RANK, *arguments],
                capture_output=True, text=True, check=False, cwd=ROOT,
                env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
            )  # fmt: skip
            if done.returncode:
                raise RuntimeError(done.stderr)
            return float(done.stdout)

        return work

    for codec in ("Adaptive", "Lorenzo"):
        taken = in_turns([run(2, codec), run(1, codec)], max(rounds // 3, 3))
        table.add(RANKS, f"MPI, {codec}", taken, values.nbytes)


PARTS = {"engine": engines, "dask": clusters, "mpi": ranks}


def main(
    rounds: Annotated[int, typer.Option(help="that count; a third of them for Dask and MPI")] = 9,
    only: Annotated[str, typer.Option(help=f"Some of {', '.join(PARTS)}, with commas between.")] = ",".join(PARTS),
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Measure and print the table."""
    if save and set(only.split(",")) != set(PARTS):
        raise typer.BadParameter("--save keeps a whole table: it cannot be used with some parts only")
    if not set(only.split(",")) <= set(PARTS):
        message = f"parts are {', '.join(PARTS)}; got {only}"
        raise typer.BadParameter(message)
    console = Console(width=200, highlight=False)
    values = field()
    bound = float(np.ptp(values)) * 1e-4
    table = Table()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        for name in only.split(","):
            PARTS[name](table, values, bound, Path(folder), rounds)
    head = origin(shlex.join(["python", "-m", "benchmarks.scale_out", *sys.argv[1:]]))
    head.append(f"cores of this process: {len(os.sched_getaffinity(0))}")
    floors = [table.floors.get(name, Floor(name, wanted, [])).line() for name, wanted in FLOORS]
    report(console, head, LEGEND, floors, [table.rows], marker=MARKER, markdown=markdown, save=save)


if __name__ == "__main__":
    typer.run(main)
