# SPDX-License-Identifier: BSD-3-Clause
"""One field through h5py with one filter, in a process of its own: some filters crash. METHOD says how it is timed."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import statistics
import tempfile
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import hdf5plugin
import numpy as np

import pyfilter
from benchmarks.compare import Outcome, compare
from benchmarks.memory import Bench
from pyfilter._chunks import layout

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from benchmarks.fields import Field

NONE = "no filter"
OURS = "ours"
OURS_TWO = "ours, 2 threads"
OURS_CORE = "ours, core driver"
OURS_MEMORY = "ours, in memory"
SZ3_CORE = "SZ3, core driver"
OUR_NAMES = (OURS, OURS_TWO, OURS_CORE, OURS_MEMORY)
LOSSY = ("SZ3", "Zfp", "Sperr", "SZ")
LOSSLESS = ("Blosc2", "Bitshuffle", "Zstd")
MAX_ROUNDS, ENOUGH_SECONDS = 7, 0.12
METHOD = (
    "Through h5py: a field smaller than the least size (--at-least-mib) is repeated along its first axis until the "
    "dataset has it, so that making and opening a file (0.3 ms) does not hide the filters. Chunks are those that "
    "pyfilter chooses for the field itself, up to 4 MiB and the same for all, so that none holds two "
    f"copies. A new file for every round; up to {MAX_ROUNDS} rounds until {ENOUGH_SECONDS} s are spent, after one that "
    "does not count, unless that took so long by itself; medians. 'core driver': the file is in the process' memory, "
    "never on disk (HDF5's core driver without backing store, no chunk cache), one chunk for each copy of the field. "
    "hdf5plugin has SZ3 only as an HDF5 filter, so this is the nearest to a codec in memory; HDF5's own work is in it, "
    "nothing is subtracted. 'in memory': our C ABI with one thread, the field as one frame, streaming from memory "
    "(memory.py). Fields with fill values or NaN are given as they are. Blosc2 (level 5) and Bitshuffle (level 3) with "
    "zstd; Zstd with level 3."
)


@dataclass(frozen=True)
class Result:
    """The result of a filter on a field at a bound.

    Attributes
    ----------
    field, name, relative : str
        The field, the filter and the bound; an empty bound for lossless ones.
    field_bytes : int
        Original bytes.
    problem : str
        Empty, or why there are no figures: "crash (SIGSEGV)", "timeout", "refused: ...".
    write, read : float
        Median speeds in GB/s; compress and decompress for 'in memory'.
    write_gain, read_gain, memcpy : float
        For 'in memory' only: speed-up by a second thread, and memcpy in GB/s.
    """

    field: str
    name: str
    relative: str
    field_bytes: int
    problem: str = ""
    ratio: float = math.nan
    bound: float = 0.0
    write: float = math.nan
    read: float = math.nan
    max_error: float = math.nan
    bound_kept: bool = True
    specials_kept: bool = True
    has_specials: bool = False
    write_gain: float = math.nan
    read_gain: float = math.nan
    memcpy: float = math.nan

    @property
    def where(self) -> str:
        """Name of the case in a floor."""
        return f"{self.field} {self.relative}".strip()

    @property
    def kept(self) -> bool:
        """Whether the filter kept all its promises."""
        return self.bound_kept and self.specials_kept

    @property
    def useful(self) -> bool:
        """Whether the speed is comparable with ours: special values are kept, the bound is exceeded by 1 % at most."""
        return not self.problem and self.specials_kept and self.max_error <= 1.01 * self.bound

    @property
    def both(self) -> float:
        """Speed of writing and then reading, in GB/s of original bytes that go there and back."""
        return 1.0 / (1.0 / self.write + 1.0 / self.read)


@dataclass(frozen=True)
class Job:
    """The task of a process: a field, a filter, bounds (relative; "" for lossless filters), and the folder to write to.

    Fields smaller than ``least_bytes`` are repeated (METHOD).
    """

    field: Field
    name: str
    bounds: list[str]
    least_bytes: int
    path: Path


@cache
def scratch_folder() -> Path:
    """Return the folder for files: /dev/shm (tmpfs) where it can be written, else the usual one."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())


def peer_versions() -> list[str]:
    """Return the filters that this hdf5plugin brings, of those used here."""
    wanted = (*LOSSY, *LOSSLESS)
    return [name for name in wanted if hasattr(hdf5plugin, name)]


def _codec(name: str, bound: float) -> dict[str, Any]:
    """Return the arguments of create_dataset for a filter."""
    base = name.split(",")[0]
    if base == NONE:
        return {}
    makers: dict[str, Callable[[], Any]] = {
        OURS: lambda: pyfilter.Cuszp2(absolute=bound),
        "SZ3": lambda: hdf5plugin.SZ3(absolute=bound),
        "Zfp": lambda: hdf5plugin.Zfp(accuracy=bound),
        "Sperr": lambda: hdf5plugin.Sperr(absolute=bound),
        "SZ": lambda: hdf5plugin.SZ(absolute=bound),
        "Blosc2": lambda: hdf5plugin.Blosc2(cname="zstd", clevel=5, filters=hdf5plugin.Blosc2.SHUFFLE),
        "Bitshuffle": lambda: hdf5plugin.Bitshuffle(cname="zstd", clevel=3),
        "Zstd": lambda: hdf5plugin.Zstd(clevel=3),
    }
    return {"compression": makers[base]()}


def in_own_process(field: Field, name: str, bounds: list[str], timeout: float, least_bytes: int) -> list[Result]:
    """Return one result for each bound, whatever happens to the process.

    Parameters
    ----------
    field, name, bounds
        The field, the filter and the bounds: relative, or "" for lossless filters.
    timeout
        Seconds after which the process is ended.
    least_bytes
        Smaller fields are repeated to this size (METHOD).
    """
    missing = Result(field.name, name, "", field.values.nbytes)
    base = name.split(",")[0]
    if base in (*LOSSY, *LOSSLESS) and not hasattr(hdf5plugin, base):
        return [replace(missing, relative=relative, problem="refused: not in this hdf5plugin") for relative in bounds]
    with tempfile.TemporaryDirectory(dir=scratch_folder(), prefix="pyfilter-bench-") as folder:
        job = Job(field, name, bounds, least_bytes, Path(folder) / "field.h5")
        found, problem = _run(job, timeout)
    rest = bounds[len(found) :]
    failed = [replace(missing, relative=relative, problem=problem) for relative in rest]
    if len(rest) > 1 and problem.startswith("crash"):  # cases that did not run yet may work
        return found + failed[:1] + in_own_process(field, name, rest[1:], timeout, least_bytes)
    return found + failed


def _run(job: Job, timeout: float) -> tuple[list[Result], str]:
    """Return the results so far, and the reason why there are no more."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(job, sender), daemon=True)
    child.start()
    sender.close()
    found: list[Result] = []
    deadline = time.monotonic() + timeout
    try:
        while len(found) < len(job.bounds):
            if not receiver.poll(max(0.0, deadline - time.monotonic())):
                child.kill()
                child.join()
                return found, f"timeout ({timeout:g} s)"
            found.append(receiver.recv())
    except EOFError:
        pass
    child.join()
    code = child.exitcode or 0  # some filters call exit(0)
    return found, f"crash ({signal.Signals(-code).name})" if code < 0 else f"crash (exit status {code})"


def _child(job: Job, sender: Connection) -> None:
    output = os.open(os.devnull, os.O_WRONLY)
    os.dup2(output, 1)  # some filters print
    os.dup2(output, 2)
    work = _in_memory(job) if job.name == OURS_MEMORY else _through_h5py(job)
    for relative in job.bounds:
        try:
            result = work(relative)
        except Exception as error:  # any behaviour of a filter is a finding
            text = " ".join(str(error).split())[:60]
            result = Result(job.field.name, job.name, relative, job.field.values.nbytes, problem=f"refused: {text}")
        sender.send(result)
    sender.close()
    os._exit(0)


def _in_memory(job: Job) -> Callable[[str], Result]:
    """Return a function that measures ours in memory at a bound."""
    field, name = job.field, job.name
    bench = Bench()
    bench.load(field)

    def work(relative: str) -> Result:
        bound = field.bound(float(relative))
        measured = bench.measure(pyfilter.Cuszp2(absolute=bound), two_threads=True)
        result = _result(field, name, relative, bound, measured.outcome)
        return replace(
            result,
            ratio=measured.ratio,
            write=measured.encode,
            read=measured.decode,
            write_gain=measured.encode_gain,
            read_gain=measured.decode_gain,
            memcpy=measured.memcpy,
        )

    return work


def _through_h5py(job: Job) -> Callable[[str], Result]:
    """Return a function that writes and reads files with a filter at a bound."""
    field, name, path = job.field, job.name, job.path
    copies = -(-job.least_bytes // field.values.nbytes)
    values = np.concatenate([field.values] * copies) if copies > 1 else field.values
    core, two = name.endswith("core driver"), name == OURS_TWO
    pyfilter.config(threads=2 if two else 1)
    out = np.empty_like(values)
    # a chunk that stayed in HDF5's cache would be read without being decompressed
    how: dict[str, Any] = {"driver": "core", "backing_store": False, "rdcc_nbytes": 0} if core else {}

    def write(arguments: dict[str, Any]) -> h5py.File:
        file = h5py.File(path, "w", **how)
        if two:
            rest = dict(arguments)
            pyfilter.create_dataset(file, "field", values, rest.pop("compression"), **rest)
        else:
            file.create_dataset("field", data=values, **arguments)
        if core:
            file.flush()
        else:
            file.close()
        return file

    def read(file: h5py.File) -> h5py.File:
        if not core:
            file = h5py.File(path, "r")
        if two:
            pyfilter.read(file["field"], out=out)
        else:
            file["field"].read_direct(out)
        return file

    def work(relative: str) -> Result:
        bound = field.bound(float(relative)) if relative else 0.0
        arguments = _codec(name, bound)
        shape = field.values.shape
        arguments["chunks"] = shape if core else layout.choose(shape, values.dtype.itemsize)
        if field.fill is not None:
            arguments["fillvalue"] = field.fill
        writes: list[float] = []
        reads: list[float] = []
        while not writes or (len(writes) <= MAX_ROUNDS and sum(writes) + sum(reads) < ENOUGH_SECONDS):
            out.view(np.uint8).fill(0xA5)
            start = time.perf_counter()
            file = write(arguments)
            middle = time.perf_counter()
            file = read(file)
            stop = time.perf_counter()
            stored = file["field"].id.get_storage_size()
            file.close()
            path.unlink(missing_ok=True)
            writes.append(middle - start)
            reads.append(stop - middle)
        first = int(len(writes) > 1)
        result = _result(field, name, relative, bound, compare(values, out, bound, field.fill))
        return replace(
            result,
            ratio=values.nbytes / stored,
            write=values.nbytes * 1e-9 / statistics.median(writes[first:]),
            read=values.nbytes * 1e-9 / statistics.median(reads[first:]),
        )

    return work


def _result(field: Field, name: str, relative: str, bound: float, outcome: Outcome) -> Result:
    return Result(
        field=field.name,
        name=name,
        relative=relative,
        field_bytes=field.values.nbytes,
        bound=bound,
        max_error=outcome.max_error,
        bound_kept=outcome.bound_kept,
        specials_kept=outcome.specials_kept,
        has_specials=field.has_specials,
    )
