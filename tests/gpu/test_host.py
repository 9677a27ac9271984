# SPDX-License-Identifier: BSD-3-Clause
"""Values in host memory through one device and several: the same chunks and the same values as by the CPU."""

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
from python.test_h5 import CASES, case_values, stored_chunks
from python.test_h5_read import SELECTIONS

import pyfilter
from pyfilter import Cuszp2, HierarchicalDelta, Lossless, Progressive, _native_cuda, errors
from pyfilter.gpu import crew, host_memory, staging, writing

from . import conftest

BOUND = Cuszp2(absolute=1e-3)


def some_devices() -> list[Any]:
    count = _native_cuda.device_count() if conftest.why_not() is None else 0
    return ["cuda", *(["all", [1, 0]] if count > 1 else [])]


@pytest.fixture(params=some_devices(), ids=str)
def devices(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few chunks, some packed and some not, and copies by several threads."""
    monkeypatch.setattr(staging, "BATCH_BYTES", 20_000)
    monkeypatch.setattr(writing, "FEW", 2)
    monkeypatch.setattr(host_memory, "PART_BYTES", 1000)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("shape", "chunks", "dtype", "codec", "keywords"), CASES, ids=str)
def test_chunks_and_values_are_those_of_the_cpu(
    file: h5py.File,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    dtype: str,
    codec: pyfilter.Codec,
    keywords: dict[str, Any],
    devices: Any,
) -> None:
    values = case_values(shape, dtype, keywords)
    host = file.create_dataset("host", shape, dtype=dtype, chunks=chunks, compression=codec, **keywords)
    through = file.create_dataset("through", shape, dtype=dtype, chunks=chunks, compression=codec, **keywords)
    pyfilter.write(host, values)
    pyfilter.write(through, values, devices=devices)
    file.flush()
    assert stored_chunks(through) == stored_chunks(host)
    found = pyfilter.read(through, devices=devices)
    assert found.dtype == host.dtype
    np.testing.assert_array_equal(found, host[...])


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_selections(file: h5py.File, selection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "BATCH_BYTES", 5_000)
    dataset = pyfilter.create_dataset(file, "a", field((100, 40, 11)), BOUND, chunks=(32, 16, 5))
    expected = dataset[selection]
    found = pyfilter.read(dataset, selection, devices="all")
    assert (np.shape(found), found.dtype, type(found)) == (np.shape(expected), dataset.dtype, type(expected))
    np.testing.assert_array_equal(found, expected)
    for dtype in ("f4", "f8", ">f8"):
        out = np.zeros(np.shape(expected), dtype)
        assert pyfilter.read(dataset, selection, out=out, devices="all") is out
        np.testing.assert_array_equal(out, expected)
    turned = np.zeros(np.shape(expected)[::-1], "f4").T
    pyfilter.read(dataset, selection, out=turned, devices="all")
    np.testing.assert_array_equal(turned, expected)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("order", ["C", "F", "strided", "big-endian", "read-only"])
def test_memory_layouts(file: h5py.File, order: str, devices: Any) -> None:
    values = field((90, 70, 30))
    given = {
        "C": values,
        "F": np.asfortranarray(values),
        "strided": np.repeat(values, 2, axis=1)[:, ::2],
        "big-endian": values.astype(">f4"),
        "read-only": np.frombuffer(values.tobytes(), "f4").reshape(values.shape),
    }[order]
    host = pyfilter.create_dataset(file, "host", values, BOUND, chunks=(16, 20, 30))
    through = pyfilter.create_dataset(file, "through", given, BOUND, chunks=(16, 20, 30), dtype="f4", devices=devices)
    assert stored_chunks(through) == stored_chunks(host)


@pytest.mark.usefixtures("small")
def test_pinned_arrays_are_not_copied(cp: Any, file: h5py.File, monkeypatch: pytest.MonkeyPatch) -> None:
    values = field((90, 700))
    host = pyfilter.create_dataset(file, "host", values, BOUND, chunks=(10, 700))

    def pinned() -> Any:
        memory = cp.cuda.alloc_pinned_memory(values.nbytes)
        return np.frombuffer(memory, "f4", values.size).reshape(values.shape)

    assert not host_memory.is_pinned(values)
    given, out = pinned(), pinned()
    given[...], out[...] = values, 0
    assert host_memory.is_pinned(given)
    monkeypatch.setattr(host_memory.Copier, "copy", None)
    through = pyfilter.create_dataset(file, "through", given, BOUND, chunks=(10, 700), devices="all")
    assert stored_chunks(through) == stored_chunks(host)
    np.testing.assert_array_equal(pyfilter.read(through, out=out, devices="all"), host[...])


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("codec", [BOUND, Progressive(absolute=1e-3), Lossless()], ids=str)
def test_datasets_as_sources(file: h5py.File, codec: pyfilter.Codec) -> None:
    source = file.create_dataset("source", data=field((200, 60)).astype(">f4"), chunks=(7, 60))
    host = pyfilter.create_dataset(file, "host", source, codec, chunks=(20, 30))
    through = pyfilter.create_dataset(file, "through", source, codec, chunks=(20, 30), devices="all")
    assert stored_chunks(through) == stored_chunks(host)


def test_what_hdf5_must_do_it_does(file: h5py.File) -> None:
    values = field((60, 50))
    for name, keywords in (("plain", {}), ("gzip", {"compression": "gzip"}), ("sum", {**BOUND, "fletcher32": True})):
        dataset = file.create_dataset(name, values.shape, "f4", chunks=(16, 20), **keywords)
        pyfilter.write(dataset, values, devices="all")
        np.testing.assert_array_equal(pyfilter.read(dataset, devices="all"), dataset[...])
    pyfilter.write(file["sum"], values.astype("f8"), devices="all")
    assert pyfilter.verify(values, file["sum"][...], 1e-3).ok
    dataset = pyfilter.create_dataset(file, "list", values, BOUND, chunks=(16, 20))
    np.testing.assert_array_equal(pyfilter.read(dataset, np.s_[[1, 5]], devices="all"), dataset[[1, 5]])
    empty = pyfilter.create_dataset(file, "empty", np.zeros((0, 4), "f4"), BOUND, maxshape=(None, 4), devices="all")
    assert pyfilter.read(empty, devices="all").shape == (0, 4)


def test_integers_without_kernels_are_the_cpus(file: h5py.File) -> None:
    values = np.arange(10_000, dtype="i4").reshape(100, 100) % 77
    codec = HierarchicalDelta(absolute=1)
    host = pyfilter.create_dataset(file, "host", values, codec, chunks=(10, 100))
    through = pyfilter.create_dataset(file, "through", values, codec, chunks=(10, 100), devices="all")
    assert stored_chunks(through) == stored_chunks(host)
    np.testing.assert_array_equal(pyfilter.read(through, devices="all"), host[...])


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("fill", [-5.0, np.nan])
def test_unwritten_and_unfiltered_chunks(file: h5py.File, fill: float, devices: Any) -> None:
    dataset = file.create_dataset("a", (100, 90), ">f4", chunks=(32, 40), fillvalue=fill, compression=BOUND)
    dataset[40:60, 10:20] = field((20, 10))
    dataset.id.write_direct_chunk((64, 40), field((32, 40)).astype(">f4").tobytes(), 1)
    found = pyfilter.read(dataset, devices=devices)  # not what is in HDF5's cache, which no codec has touched
    np.testing.assert_array_equal(found, pyfilter.read(dataset))


KINDS_OF_FILES: dict[str, dict[str, Any]] = {
    "usual": {},
    "in memory": {"driver": "core", "backing_store": False},
    "user block": {"userblock_size": 512},
    "pages": {"fs_strategy": "page", "fs_page_size": 4096},
    "latest": {"libver": "latest"},
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", KINDS_OF_FILES)
def test_kinds_of_files(tmp_path: Path, kind: str, devices: Any) -> None:
    with h5py.File(tmp_path / "a.h5", "w", **KINDS_OF_FILES[kind]) as file:
        dataset = file.create_dataset("a", (100, 90), "f4", chunks=(10, 9), compression=BOUND, maxshape=(None, 90))
        dataset[12:80] = field((68, 90))  # in HDF5's cache
        np.testing.assert_array_equal(pyfilter.read(dataset, devices=devices), pyfilter.read(dataset))
        assert pyfilter.verify(field((68, 90)), dataset[12:80], 1e-3).ok
        pyfilter.write(dataset, field((100, 90), seed=3), devices=devices)
        dataset[50:60] = 7.0
        found = pyfilter.read(dataset, np.s_[5:95], devices=devices)
        np.testing.assert_array_equal(found, pyfilter.read(dataset, np.s_[5:95]))
    if kind != "in memory":
        with h5py.File(tmp_path / "a.h5", "r") as file:  # past HDF5, but for user blocks
            np.testing.assert_array_equal(pyfilter.read(file["a"], devices=devices), file["a"][...])


@pytest.mark.usefixtures("small", "threads_end")
def test_a_file_that_is_too_short(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = pyfilter.create_dataset(file, "a", field((100, 900)), BOUND, chunks=(10, 90))
        last = max(dataset.id.get_chunk_info(i).byte_offset for i in range(100))
    with h5py.File(tmp_path / "a.h5", "r") as file, (tmp_path / "a.h5").open("r+b") as raw:
        raw.truncate(last + 10)
        with pytest.raises(errors.TruncatedFrame, match=f"the file ends at byte {last + 10}"):
            pyfilter.read(file["a"], devices="all")


def test_devices_that_are_none(cp: Any, file: h5py.File) -> None:
    values = field((20, 30))
    dataset = pyfilter.create_dataset(file, "a", values, BOUND)
    count = _native_cuda.device_count()
    wrong: Any
    for wrong in ("gpu", "cuda:", "cuda:x", "cpu", "", [], True, -1, 1.5, [0, "all"], [[0]], {}, b"all"):
        with pytest.raises(ValueError, match="devices must be 'all', 'cuda'"):
            pyfilter.read(dataset, devices=wrong)
        with pytest.raises(ValueError, match="devices must be"):
            pyfilter.write(dataset, values, devices=wrong)
    with pytest.raises(ValueError, match=f"'cuda:{count}' is not there: {count} can be used"):
        pyfilter.read(dataset, devices=[0, count])
    with pytest.raises(ValueError, match="'cuda:99' is not there"):
        pyfilter.create_dataset(file, "b", values, BOUND, devices=99)
    assert "b" not in file
    with pytest.raises(ValueError, match="device 0 twice"):
        pyfilter.read(dataset, devices=["cuda:0", 0])
    with pytest.raises(ValueError, match="those of a device are worked on there"):
        pyfilter.write(dataset, cp.asarray(values), devices="all")
    with pytest.raises(ValueError, match="those of a device are worked on there"):
        pyfilter.read(dataset, out=cp.asarray(values), devices="all")
    with pytest.raises(ValueError, match="device or devices"):
        pyfilter.read(dataset, device="cuda", devices="all")
    assert isinstance(pyfilter.read(dataset, device="cpu", devices=0), np.ndarray)


# -- many batches, several devices, errors


class Watch:
    """What the threads of devices are at: batches under way on each device, and how many each one did."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now: dict[int, int] = {}
        self.most: dict[int, int] = {}
        self.done: dict[int, int] = {}

    def around(self, function: Callable[..., Any], wait: float = 0.0) -> Callable[..., Any]:
        def watched(serving: Any, lane: Any) -> Any:
            with self.lock:
                self.now[lane.number] = self.now.get(lane.number, 0) + 1
                self.most[lane.number] = max(self.most.get(lane.number, 0), self.now[lane.number])
            time.sleep(wait)
            try:
                return function(serving, lane)
            finally:
                with self.lock:
                    self.now[lane.number] -= 1
                    self.done[lane.number] = self.done.get(lane.number, 0) + 1

        return watched


@pytest.fixture
def threads_end() -> Iterator[None]:
    """No thread is left behind."""
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("pyfilter-")] == []


@pytest.mark.usefixtures("small", "threads_end")
def test_devices_share_the_batches(file: h5py.File, monkeypatch: pytest.MonkeyPatch) -> None:
    if _native_cuda.device_count() < 2:
        pytest.skip("one device only")
    watch = Watch()
    monkeypatch.setattr(crew.Crew, "_take_and_work", watch.around(crew.Crew._take_and_work, 0.002))
    values = field((400, 1000))
    host = pyfilter.create_dataset(file, "host", values, BOUND, chunks=(4, 1000))
    through = pyfilter.create_dataset(file, "through", values, BOUND, chunks=(4, 1000), devices="all")
    assert stored_chunks(through) == stored_chunks(host)
    np.testing.assert_array_equal(pyfilter.read(through, devices="all"), host[...])
    assert set(watch.done) == {0, 1}
    assert min(watch.done.values()) >= 3
    assert max(watch.most.values()) <= crew.THREADS


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

    def work(lane: staging.Lane, job: int) -> int:
        nonlocal at_work, most_at_work
        with lock:
            at_work += 1
            most_at_work = max(most_at_work, at_work)
        if job < 2:
            together.wait(20)
        with lock:
            at_work -= 1
        return job * job

    with crew.Crew((0,), work, held=held) as team:
        assert team.most == crew.THREADS + 1
        found = []
        for square in team.run(jobs()):
            found.append(square)
            used += 1
    assert sorted(found) == [i * i for i in range(100)]
    assert most <= team.most + 1  # one more is asked for than is on its way
    assert 2 <= most_at_work <= crew.THREADS


@pytest.mark.usefixtures("threads_end")
def test_a_held_result_is_kept_until_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread has one buffer; what is in it must last until the result has been used."""

    def work(lane: staging.Lane, job: int) -> Any:
        room = lane.pinned_bytes("room", 8)
        room[:] = job
        return room

    with crew.Crew((0,), work, held=True) as team:
        found = []
        for room in team.run(range(50)):
            time.sleep(0.0005)
            found.append(int(room[0]))
    assert sorted(found) == list(range(50))


class Interrupt(BaseException):
    """As KeyboardInterrupt, which would end pytest if it were lost."""


@pytest.mark.usefixtures("threads_end")
def test_an_interrupt_ends_all() -> None:
    def raise_it(*_: object) -> None:
        raise Interrupt

    def work(lane: staging.Lane, job: int) -> int:
        if job == 3:
            os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.02)
        return job

    before = signal.signal(signal.SIGUSR1, raise_it)
    taken: list[int] = []
    try:
        with pytest.raises(Interrupt), crew.Crew((0,), work) as team:
            taken.extend(team.run(range(1000)))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(taken) < 100


@pytest.mark.usefixtures("small", "threads_end")
@pytest.mark.parametrize("where", ["encode", "decode"])
def test_an_error_of_a_device_ends_all(file: h5py.File, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    values = field((400, 1000))
    dataset = pyfilter.create_dataset(file, "a", values, BOUND, chunks=(1, 1000))
    lock, calls, batches = threading.Lock(), 0, 400 * 4000 // staging.BATCH_BYTES
    real = getattr(_native_cuda, where)

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

    monkeypatch.setattr(_native_cuda, where, failing)
    with pytest.raises(errors.DeviceError, match="unspecified launch failure"):
        pyfilter.write(dataset, values, devices="all") if where == "encode" else pyfilter.read(dataset, devices="all")
    assert calls < batches - 10
    monkeypatch.setattr(_native_cuda, where, real)
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
        monkeypatch.setattr(pyfilter.h5, "_source", lambda data: data)
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
    for device in range(_native_cuda.device_count()):
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
        for device in range(_native_cuda.device_count()):
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
    real, calls = getattr(_native_cuda, where), itertools.count()

    def sometimes(*arguments: Any) -> Any:
        if next(calls) in (3, 5, 20):  # the first of encode asks whether there are kernels
            raise errors.NoMemory("no device memory: 7 bytes are needed")
        return real(*arguments)

    if where == "decode":
        pyfilter.write(through, values, devices="all")
    monkeypatch.setattr(_native_cuda, where, sometimes)
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
    most = crew.THREADS * 5 * batch
    values = field((16 * most // 4 // 1000, 1000))
    pool = cp.get_default_memory_pool()
    for device in range(_native_cuda.device_count()):
        with cp.cuda.Device(device):
            pool.free_all_blocks()
            pool.set_limit(size=pool.total_bytes() + most)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of batches that the CPU did
            dataset = pyfilter.create_dataset(file, "a", values, Cuszp2(absolute=0.5), chunks=(10, 500), devices="all")
            found = pyfilter.read(dataset, devices="all")
    finally:
        for device in range(_native_cuda.device_count()):
            with cp.cuda.Device(device):
                pool.set_limit(size=0)
    np.testing.assert_array_equal(found, pyfilter.read(dataset))
