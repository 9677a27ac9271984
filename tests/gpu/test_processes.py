# SPDX-License-Identifier: BSD-3-Clause
"""Threads, forked processes, device memory that is full, and what is left behind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from python.support import field, run_script

import pyfilter
from pyfilter import Cuszp2
from pyfilter.gpu import staging

BOUND = Cuszp2(absolute=1e-3)

FORKED = """
import warnings
warnings.simplefilter("ignore")
import os, sys
import cupy, numpy as np, pyfilter

codec = pyfilter.Cuszp2(absolute=1e-3)
values = np.sin(np.arange(100000, dtype="f4") / 100)
given = cupy.asarray(values)
if sys.argv[1] == "library":
    expected = pyfilter.encode(given, codec).get().tobytes()
else:
    cupy.cuda.get_current_stream().synchronize()
    expected = pyfilter.encode(values, codec)
if sys.argv[1] == "backend":
    pyfilter.config(backend="cuda")
child = os.fork()
if child == 0:
    good = pyfilter.encode(values, codec) == expected
    good = good and np.array_equal(pyfilter.decode(expected), pyfilter.decode(expected))
    for action in (
        lambda: pyfilter.encode(given, codec),
        lambda: pyfilter.decode(expected, device="cuda"),
        lambda: pyfilter.decode(expected, out=given),
    ):
        try:
            action()
            good = False
        except pyfilter.errors.DeviceError as error:
            good = good and "fork" in str(error)
    os._exit(0 if good else 1)
assert os.waitpid(child, 0)[1] == 0
assert pyfilter.encode(given, codec).get().tobytes() == expected
"""


@pytest.mark.device_only
@pytest.mark.parametrize("used_by", ["library", "cupy", "backend"])
def test_forked_processes_use_the_cpu(used_by: str) -> None:
    run_script(FORKED, used_by)


POOL = """
import warnings
warnings.simplefilter("ignore")
import multiprocessing, sys
import cupy, numpy as np, pyfilter

def work(seed):
    values = np.random.default_rng(seed).normal(size=100000).astype("f4")
    return pyfilter.encode(values, pyfilter.Cuszp2(absolute=1e-3))

if __name__ == "__main__":
    cupy.zeros(3)
    pyfilter.encode(cupy.zeros(1000, "f4"), pyfilter.Cuszp2(absolute=1e-3))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(work, range(4)) == [work(seed) for seed in range(4)]
"""


@pytest.mark.device_only
def test_pools_of_forked_processes() -> None:
    run_script(POOL)


def test_threads(cp: Any, tmp_path: Path) -> None:
    def work(seed: int) -> bool:
        values = field((300, 200), seed=seed)
        given = cp.asarray(values)
        same = True
        with h5py.File(tmp_path / f"{seed}.h5", "w") as file:
            for _ in range(5):
                same = same and pyfilter.encode(given, BOUND).get().tobytes() == pyfilter.encode(values, BOUND)
                dataset = pyfilter.create_dataset(file, None, given, BOUND, chunks=(30, 70))
                found = pyfilter.read(dataset, device="cuda").get()
                same = same and np.array_equal(found, dataset[...])
                same = same and pyfilter.verify(values, found, 1e-3).ok
        return same

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(work, range(4)))


@pytest.mark.device_only
@pytest.mark.whole_device
def test_full_device_memory(cp: Any, file: h5py.File) -> None:
    values = field((4000, 4000))
    expected = pyfilter.encode(values, BOUND)
    given = cp.asarray(values)
    held: list[Any] = []
    cp.get_default_memory_pool().free_all_blocks()
    pyfilter.gpu.release_memory()
    try:
        size = cp.cuda.runtime.memGetInfo()[0]
        while size >= 1 << 20:
            try:
                held.append(cp.cuda.runtime.malloc(size))
            except cp.cuda.runtime.CUDARuntimeError:
                size //= 2
        with pyfilter.config(backend="cuda"):  # values in host memory: the CPU does it
            assert pyfilter.encode(values, BOUND) == expected
            np.testing.assert_array_equal(pyfilter.decode(expected)[0], pyfilter.decode(expected, 0, 4000))
        with pytest.raises(pyfilter.errors.NoMemory):
            pyfilter.encode(given, BOUND)
    finally:
        for memory in held:
            cp.cuda.runtime.free(memory)
    assert pyfilter.encode(given, BOUND).get().tobytes() == expected
    dataset = pyfilter.create_dataset(file, "a", given, BOUND)
    assert pyfilter.verify(values, dataset[...], 1e-3).ok


@pytest.mark.device_only
def test_backend_cuda_gives_the_same_bytes(cp: Any, file: h5py.File) -> None:
    values = field((500, 700))
    with pyfilter.config(backend="cpu"):
        expected = pyfilter.encode(values, BOUND)
        decoded = pyfilter.decode(expected)
    with pyfilter.config(backend="cuda") as settings:
        assert settings.backend == "cuda"
        assert settings.cuda_devices >= 1
        assert pyfilter.encode(values, BOUND) == expected
        np.testing.assert_array_equal(pyfilter.decode(expected), decoded)
        file.create_dataset("a", data=values, chunks=(100, 100), compression=BOUND)
        np.testing.assert_array_equal(file["a"][:100], pyfilter.read(file["a"])[:100])


@pytest.mark.device_only
def test_memory_is_bounded_and_given_back(cp: Any, file: h5py.File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "BATCH_BYTES", 4 << 20)
    given = cp.asarray(field((16 << 20,)))
    pool = cp.get_default_memory_pool()
    pool.free_all_blocks()
    before = pool.total_bytes()
    dataset = pyfilter.create_dataset(file, "a", given, BOUND, chunks=(1 << 16,))
    assert pool.total_bytes() - before <= staging.CHANNELS * 4 * (4 << 20)
    out = cp.empty_like(given)
    pool.free_all_blocks()
    before = pool.total_bytes()
    pyfilter.read(dataset, out=out)
    assert pool.total_bytes() - before <= staging.CHANNELS * 4 * (4 << 20)
    pyfilter.gpu.release_memory()
    np.testing.assert_array_equal(out.get(), dataset[...])


def test_device_count() -> None:
    assert pyfilter.gpu.device_count() >= 1


@pytest.mark.device_only
def test_many_batches(cp: Any, file: h5py.File, monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels that are used again and again, with frames of very different sizes."""
    monkeypatch.setattr(staging, "BATCH_BYTES", 1 << 20)
    values = field((64, 512, 512))
    values[::3] = np.random.default_rng(1).normal(size=(512, 512)).astype("f4") * 1e6
    values[1::3] = 0
    for chunks in ((1, 512, 512), (1, 100, 512), (3, 60, 60), (64, 64, 64)):
        host = pyfilter.create_dataset(file, None, values, BOUND, chunks=chunks)
        device = pyfilter.create_dataset(file, None, cp.asarray(values), BOUND, chunks=chunks)
        file.flush()
        for index in range(host.id.get_num_chunks()):
            place = host.id.get_chunk_info(index).chunk_offset
            assert device.id.read_direct_chunk(place) == host.id.read_direct_chunk(place)
        np.testing.assert_array_equal(pyfilter.read(device, device="cuda").get(), pyfilter.read(host))
