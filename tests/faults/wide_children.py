# SPDX-License-Identifier: BSD-3-Clause
"""The processes that wide.py ends and starves: `python -m faults.wide_children NAME ARGUMENT...` in `tests`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

import pyfilter

from .children import CODECS, SHAPE, limit_files, say, step_of

STEPS = 400  # of the arrays that are written whole


def create_zarr(path: str, codec: str, steps: int = 100_000) -> Any:
    """An array of steps, of which a chunk is one."""
    import zarr

    serializer = pyfilter.zarr.Serializer(CODECS[codec])
    shapes: dict[str, Any] = {"shape": (steps, *SHAPE), "chunks": (1, *SHAPE)}
    return zarr.create_array(path, dtype="f4", serializer=serializer, compressors=None, fill_value=np.nan, **shapes)


def write_zarr(path: str, codec: str, size: str) -> None:
    """Write steps and say the number of each; with a size of files, until a step is refused."""
    array = create_zarr(path, codec)
    if int(size) > 0:
        limit_files(int(size))
    try:
        for number in range(array.shape[0]):
            array[number] = step_of(number)
            say(number + 1)
    except OSError as error:
        say(f"error: {str(error)!r}")


def step_block(block: NDArray[Any], block_id: tuple[int, ...] = (0,)) -> NDArray[Any]:
    """A block of one step."""
    made: NDArray[Any] = block + step_of(block_id[0])[None]
    return made


def steps_array(count: int = STEPS) -> Any:
    """A dask array of steps, a block each."""
    import dask.array as da

    return da.zeros((count, *SHAPE), chunks=(1, *SHAPE), dtype="f4").map_blocks(step_block, dtype="f4")


def write_dask(path: str, codec: str, size: str, when: str = "first") -> None:
    """Write an HDF5 file from a dask array of threads, and say when the first block is there, or the last."""
    if int(size) > 0:
        limit_files(int(size))

    def tell(done: int, count: int) -> None:
        if done == (count if when == "last" else 1):
            say("begun")

    try:
        pyfilter.dask.to_hdf5(steps_array(), path, "x", CODECS[codec], progress=tell)
        say("written")
    except (OSError, RuntimeError) as error:
        say(f"error: {str(error)!r}")


def write_mpi(path: str, codec: str, size: str) -> None:
    """Write steps in all ranks, half of a step in each; rank 0 says what is flushed, each its process."""
    from mpi4py import MPI  # type: ignore[import-not-found,unused-ignore]

    comm = MPI.COMM_WORLD
    say(f"rank {comm.rank} {os.getpid()}")
    half = SHAPE[0] // 2
    rows = slice(half * comm.rank, half * (comm.rank + 1))
    file = h5py.File(path, "w", driver="mpio", comm=comm)
    chunks = {"maxshape": (None, *SHAPE), "chunks": (1, half, SHAPE[1])}
    dataset = file.create_dataset("x", (0, *SHAPE), "f4", **chunks, **CODECS[codec])
    file.flush()
    comm.Barrier()
    if int(size) > 0:
        limit_files(int(size))
    try:
        for number in range(100_000):
            dataset.resize(number + 1, axis=0)
            with dataset.collective:
                dataset[number, rows] = step_of(number)[rows]
            file.flush()
            comm.Barrier()
            if comm.rank == 0:
                say(f"flushed {number + 1}")
    except (OSError, RuntimeError) as error:
        say(f"error: {str(error)!r}")
        comm.Abort(3)


COMMANDS: dict[str, Callable[..., None]] = {"write_zarr": write_zarr, "write_dask": write_dask, "write_mpi": write_mpi}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
