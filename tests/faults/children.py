# SPDX-License-Identifier: BSD-3-Clause
"""The processes that scenarios.py ends, starves and lets run side by side: `python children.py NAME ARGUMENT...`."""

from __future__ import annotations

import functools
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

import pyfilter

BOUND = 1e-3
SHAPE = (2048, 3)  # so that a step can be positions of particles
CODECS: dict[str, pyfilter.Codec] = {
    "cuszp2": pyfilter.Cuszp2(absolute=BOUND),
    "hierarchical_delta": pyfilter.HierarchicalDelta(absolute=BOUND),
    "lorenzo": pyfilter.Lorenzo(absolute=BOUND),
    "lossless": pyfilter.Lossless(),
    "particles": pyfilter.Particles(absolute=BOUND),
    "progressive": pyfilter.Progressive(absolute=BOUND),
    "adaptive": pyfilter.Adaptive(absolute=BOUND),
    "lossless by ratio": pyfilter.Lossless(effort="ratio"),
}


@functools.cache
def cloud() -> NDArray[Any]:
    """Positions in a box, sorted as the codec of particles sorts them."""
    sorting = pyfilter.Particles(absolute=BOUND, order="chunk")
    drawn = np.random.default_rng(1).random(SHAPE, np.float32)
    frame = pyfilter.encode(drawn, sorting)
    assert pyfilter.frame_info(frame).codec == "particles"
    values: NDArray[Any] = pyfilter.decode(frame)
    return values


def step_of(number: int) -> NDArray[Any]:
    """The field of a time step: a cloud that moves along x."""
    return cloud() + np.array([number, 0, 0], np.float32)


def check_steps(dataset: h5py.Dataset, count: int) -> None:
    """Assert that the first steps are there and keep the bound."""
    for number in range(count):
        error = np.abs(dataset[number].astype(np.float64) - step_of(number).astype(np.float64)).max()
        assert error <= BOUND, f"step {number} is off by {error}"


def say(word: object) -> None:
    print(word, flush=True)


def create(path: str, codec: str, swmr: bool) -> h5py.File:
    file = h5py.File(path, "w", libver="latest" if swmr else None)
    keywords = {"maxshape": (None, *SHAPE), "chunks": (1, *SHAPE), "dtype": "f4", **CODECS[codec]}
    file.create_dataset("x", (0, *SHAPE), **keywords)
    if swmr:
        file.swmr_mode = True
    return file


def write(path: str, codec: str, how: str, steps: str) -> None:
    """Write steps, flush after each, and say its number; `how` is swmr or plain."""
    file = create(path, codec, how == "swmr")
    for number in range(int(steps)):
        file["x"].resize(number + 1, axis=0)
        file["x"][number] = step_of(number)
        file.flush()
        say(number + 1)
    file.close()


def read_beside(path: str) -> None:
    """Follow a writer in single-writer multiple-reader mode until it has written 40 steps; say how often it looked."""
    looks = 0
    with h5py.File(path, "r", libver="latest", swmr=True) as file:
        say("open")
        seen = 0
        while seen < 40:
            file["x"].refresh()
            seen = file["x"].shape[0]
            check_steps(file["x"], max(0, seen - 1))  # the last one may be resized and not written yet
            looks += 1
            time.sleep(0.002)
    say(looks)


def read_all(path: str, steps: str, times: str) -> None:
    """Read a finished file over and over."""
    for _ in range(int(times)):
        with h5py.File(path) as file:
            check_steps(file["x"], int(steps))
            assert np.array_equal(pyfilter.read(file["x"]), file["x"][...])
    say("read")


def limit_files(size: int) -> None:
    """As a full disk: writing beyond this size of a file fails (EFBIG), without the signal."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def fill_disk(path: str, codec: str, size: str) -> None:
    """Write steps until a file may not grow any more; say what was flushed, then the error."""
    if int(size) > 0:
        limit_files(int(size))
    file = create(path, codec, swmr=True)
    dataset = file["x"]  # kept open: HDF5 crashes in the next flush where a chunk could not be written on closing
    try:
        for number in range(1000):
            dataset.resize(number + 1, axis=0)
            dataset[number] = step_of(number)
            dataset.flush()
            say(number + 1)
    except (OSError, RuntimeError) as error:
        say(f"error: {str(error)!r}")
    os._exit(0)  # what a program does that gives up: HDF5 cannot close the file


def fork_beside_threads(seed: str, forks: str) -> None:
    """Fork while threads encode; each child encodes as well. Say what a frame should be."""
    values, codec = np.stack([step_of(n + int(seed)) for n in range(20)]), CODECS["lorenzo"]
    frame, end = pyfilter.encode(values, codec), threading.Event()

    def work() -> None:
        while not end.is_set():
            pyfilter.encode(values, codec)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(int(forks)):
        pid = os.fork()
        if pid == 0:
            os._exit(0 if pyfilter.encode(values, codec) == frame else 1)
        status = os.waitpid(pid, 0)[1]
        assert status == 0, status
    end.set()
    for thread in threads:
        thread.join()
    say(frame.hex())


COMMANDS: dict[str, Callable[..., None]] = {
    "write": write,
    "read_beside": read_beside,
    "read_all": read_all,
    "fill_disk": fill_disk,
    "fork_beside_threads": fork_beside_threads,
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
