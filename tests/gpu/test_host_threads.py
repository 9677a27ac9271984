# SPDX-License-Identifier: BSD-3-Clause
"""Many batches of values in host memory: threads of devices, what they share, errors, and memory that is short."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from python.support import field
from python.test_h5 import stored_chunks

import pyfilter
from pyfilter import Cuszp2, errors
from pyfilter._lib import cuda
from pyfilter.gpu import device_threads, staging

from . import conftest

BOUND = Cuszp2(absolute=1e-3)


class Watch:
    """What the threads of devices are at: batches under way on each device, and how many each one did."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now: dict[int, int] = {}
        self.most: dict[int, int] = {}
        self.done: dict[int, int] = {}

    def around(self, function: Callable[..., Any], wait: float = 0.0) -> Callable[..., Any]:
        def watched(serving: Any, channel: Any) -> Any:
            with self.lock:
                self.now[channel.number] = self.now.get(channel.number, 0) + 1
                self.most[channel.number] = max(self.most.get(channel.number, 0), self.now[channel.number])
            time.sleep(wait)
            try:
                return function(serving, channel)
            finally:
                with self.lock:
                    self.now[channel.number] -= 1
                    self.done[channel.number] = self.done.get(channel.number, 0) + 1

        return watched


@pytest.mark.usefixtures("small", "threads_end")
def test_devices_share_the_batches(file: h5py.File, monkeypatch: pytest.MonkeyPatch) -> None:
    if cuda.device_count() < 2:
        pytest.skip("one device only")
    watch = Watch()
    monkeypatch.setattr(
        device_threads.DeviceThreads, "_take_and_work", watch.around(device_threads.DeviceThreads._take_and_work, 0.002)
    )
    values = field((400, 1000))
    host = pyfilter.create_dataset(file, "host", values, BOUND, chunks=(4, 1000))
    through = pyfilter.create_dataset(file, "through", values, BOUND, chunks=(4, 1000), devices="all")
    assert stored_chunks(through) == stored_chunks(host)
    np.testing.assert_array_equal(pyfilter.read(through, devices="all"), host[...])
    assert set(watch.done) == {0, 1}
    assert min(watch.done.values()) >= 3
    assert max(watch.most.values()) <= device_threads.THREADS


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.usefixtures("threads_end")
def test_jobs_are_bounded(held: bool) -> None:
    made, used, most = 0, 0, 0

    def jobs() -> Iterator[int]:
        nonlocal made, most
        for i in range(100):
            made += 1
            most = max(most, made - used)
            yield i

    lock, at_work, most_at_work = threading.Lock(), 0, 0
    together = threading.Barrier(2)

    def work(channel: staging.Channel, job: int) -> int:
        nonlocal at_work, most_at_work
        with lock:
            at_work += 1
            most_at_work = max(most_at_work, at_work)
        if job < 2:
            together.wait(20)
        with lock:
            at_work -= 1
        return job * job

    with device_threads.DeviceThreads((0,), work, held=held) as threads:
        assert threads.most == device_threads.THREADS + 1
        found = []
        for square in threads.run(jobs()):
            found.append(square)
            used += 1
    assert sorted(found) == [i * i for i in range(100)]
    assert most <= threads.most + 1  # one more is asked for than is on its way
    assert 2 <= most_at_work <= device_threads.THREADS


@pytest.mark.usefixtures("threads_end")
def test_a_held_result_is_kept_until_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread has one buffer; what is in it must last until the result has been used."""

    def work(channel: staging.Channel, job: int) -> Any:
        room = channel.pinned_bytes("room", 8)
        room[:] = job
        return room

    with device_threads.DeviceThreads((0,), work, held=True) as threads:
        found = []
        for room in threads.run(range(50)):
            time.sleep(0.0005)
            found.append(int(room[0]))
    assert sorted(found) == list(range(50))


class Interrupt(BaseException):
    """As KeyboardInterrupt, which would end pytest if it were lost."""


@pytest.mark.usefixtures("threads_end")
def test_an_interrupt_ends_all() -> None:
    def raise_it(*_: object) -> None:
        raise Interrupt

    def work(channel: staging.Channel, job: int) -> int:
        if job == 3:
            os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.02)
        return job

    before = signal.signal(signal.SIGUSR1, raise_it)
    taken: list[int] = []
    try:
        with pytest.raises(Interrupt), device_threads.DeviceThreads((0,), work) as threads:
            taken.extend(threads.run(range(1000)))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(taken) < 100


@pytest.mark.usefixtures("small", "threads_end")
@pytest.mark.parametrize("where", ["encode", "decode"])
def test_an_error_of_a_device_ends_all(file: h5py.File, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    values = field((400, 1000))
    dataset = pyfilter.create_dataset(file, "a", values, BOUND, chunks=(1, 1000))
    lock, calls, batches = threading.Lock(), 0, 400 * 4000 // staging.BATCH_BYTES
    real = getattr(cuda, where)

    def failing(*arguments: Any) -> Any:
        nonlocal calls
        if where == "encode" and arguments[1] == 0:  # whether there are kernels
            return real(*arguments)
        with lock:
            calls += 1
            here = calls
        if here == 7:
            raise errors.DeviceError("unspecified launch failure")
        return real(*arguments)

    monkeypatch.setattr(cuda, where, failing)
    with pytest.raises(errors.DeviceError, match="unspecified launch failure"):
        pyfilter.write(dataset, values, devices="all") if where == "encode" else pyfilter.read(dataset, devices="all")
    assert calls < batches - 10
    monkeypatch.setattr(cuda, where, real)
    pyfilter.write(dataset, values, devices="all")
    np.testing.assert_array_equal(pyfilter.read(dataset, devices="all"), pyfilter.read(dataset))


@pytest.mark.usefixtures("small", "threads_end")
def test_an_error_of_the_file_ends_all(file: h5py.File, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = field((400, 1000))
    pyfilter.create_dataset(file, "a", values, BOUND, chunks=(4, 1000))
    file.close()
    with h5py.File(tmp_path / "a.h5", "r") as reopened, pytest.raises(Exception, match=r"[Ww]rit"):
        pyfilter.write(reopened["a"], values, devices="all")

    class Source:
        """A dataset that cannot be read to its end."""

        shape, dtype, ndim, size = values.shape, values.dtype, 2, values.size

        def __getitem__(self, region: Any) -> Any:
            if region[0].start > 100:
                raise OSError("the disk is gone")
            return values[region]

    with h5py.File(tmp_path / "b.h5", "w") as other:
        dataset = other.create_dataset("a", values.shape, "f4", chunks=(4, 1000), compression=BOUND)
        monkeypatch.setattr(pyfilter.h5, "source_of", lambda data: data)
        with pytest.raises(OSError, match="the disk is gone"):
            pyfilter.write(dataset, Source(), devices="all")


@pytest.mark.usefixtures("small", "threads_end")
def test_damaged_chunks_are_errors(file: h5py.File) -> None:
    dataset = pyfilter.create_dataset(file, "a", field((400, 1000)), BOUND, chunks=(4, 1000))
    _, frame = dataset.id.read_direct_chunk((200, 0))
    rng = np.random.default_rng(7)
    for position in [None, *rng.integers(8, len(frame), 10)]:
        damaged = bytearray(frame[:-3] if position is None else frame)
        if position is not None:
            damaged[position] ^= 1 << int(rng.integers(8))
        dataset.id.write_direct_chunk((200, 0), bytes(damaged), 0)
        try:
            expected = pyfilter.read(dataset)
        except errors.FrameError:
            with pytest.raises(errors.FrameError):
                pyfilter.read(dataset, devices="all")
        else:
            np.testing.assert_array_equal(pyfilter.read(dataset, devices="all"), expected)


@pytest.mark.usefixtures("small", "threads_end")
def test_what_a_device_has_no_memory_for_the_cpu_does(
    cp: Any, file: h5py.File, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = field((403, 1000))
    host = pyfilter.create_dataset(file, "host", values, BOUND, chunks=(4, 700))
    through = file.create_dataset("through", values.shape, "f4", chunks=(4, 700), compression=BOUND)
    through.id.write_direct_chunk((0, 0), bytes(4 * 4 * 700), 1)
    pool = cp.get_default_memory_pool()
    gc.collect()  # else arrays of other tests, given back later, are memory that the limit does not see
    for device in range(cuda.device_count()):
        with cp.cuda.Device(device):
            pool.free_all_blocks()
            pool.set_limit(size=pool.total_bytes() + 10_000)
    try:
        with pytest.warns(RuntimeWarning, match=r"(\d+) of \1 batches of chunks were encoded by the CPU: device \d: "):
            pyfilter.write(through, values, devices="all")
        assert stored_chunks(through) == stored_chunks(host)
        with pytest.warns(RuntimeWarning, match=r"(\d+) of \1 batches of chunks were decoded by the CPU: device \d: "):
            np.testing.assert_array_equal(pyfilter.read(through, devices="all"), host[...])
    finally:
        for device in range(cuda.device_count()):
            with cp.cuda.Device(device):
                pool.set_limit(size=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(pyfilter.read(through, devices="all"), host[...])


@pytest.mark.usefixtures("small", "threads_end")
@pytest.mark.parametrize("where", ["encode", "decode"])
def test_single_batches_without_memory(file: h5py.File, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    values = field((400, 1000))
    host = pyfilter.create_dataset(file, "host", values, BOUND, chunks=(4, 1000))
    through = file.create_dataset("through", values.shape, "f4", chunks=(4, 1000), compression=BOUND)
    real, calls = getattr(cuda, where), itertools.count()

    def sometimes(*arguments: Any) -> Any:
        if next(calls) in (3, 5, 20):  # the first of encode asks whether there are kernels
            raise errors.NoMemory("no device memory: 7 bytes are needed")
        return real(*arguments)

    if where == "decode":
        pyfilter.write(through, values, devices="all")
    monkeypatch.setattr(cuda, where, sometimes)
    found = np.empty_like(values)
    message = rf"^3 of \d+ batches of chunks were {where}d by the CPU: device \d: no device memory"
    with pytest.warns(RuntimeWarning, match=message):  # noqa: PT031
        if where == "encode":
            pyfilter.write(through, values, devices="all")
        else:
            pyfilter.read(through, out=found, devices="all")
    assert stored_chunks(through) == stored_chunks(host)
    if where == "decode":
        np.testing.assert_array_equal(found, host[...])


@pytest.mark.usefixtures("threads_end")
def test_device_memory_is_bounded(cp: Any, file: h5py.File, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen times the cap goes through: a thread has four buffers of a batch, each an eighth too large at most."""
    batch = 1 << (16 if conftest.MODEL else 20)
    monkeypatch.setattr(staging, "BATCH_BYTES", batch)
    most = device_threads.THREADS * 5 * batch
    values = field((16 * most // 4 // 1000, 1000))
    pool = cp.get_default_memory_pool()
    for device in range(cuda.device_count()):
        with cp.cuda.Device(device):
            pool.free_all_blocks()
            pool.set_limit(size=pool.total_bytes() + most)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of batches that the CPU did
            dataset = pyfilter.create_dataset(file, "a", values, Cuszp2(absolute=0.5), chunks=(10, 500), devices="all")
            found = pyfilter.read(dataset, devices="all")
    finally:
        for device in range(cuda.device_count()):
            with cp.cuda.Device(device):
                pool.set_limit(size=0)
    np.testing.assert_array_equal(found, pyfilter.read(dataset))
