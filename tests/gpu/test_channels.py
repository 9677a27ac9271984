# SPDX-License-Identifier: BSD-3-Clause
"""Chunks that go through devices by threads of the library: the same chunks and values, errors, and what is left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from python.support import field
from python.test_h5 import stored_chunks

import pyfilter
from pyfilter import Cuszp2, HierarchicalDelta, Lorenzo, Lossless, Progressive, errors, progressive
from pyfilter._lib import cuda, device_chunks
from pyfilter.gpu import channels, device_threads, host_memory, staging

CODECS = (
    Cuszp2(absolute=1e-3), Lorenzo(absolute=1e-3), HierarchicalDelta(relative=1e-3), Lossless(),
    Progressive(absolute=1e-3), Progressive(absolute=1e-3, errors="bounds"),
)  # fmt: skip
Array = Any


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small chunks come here, too, in batches of a few."""
    monkeypatch.setattr(channels, "LEAST_CHUNK_BYTES", 1)
    monkeypatch.setattr(staging, "LEAST_BATCH_BYTES", 1)
    monkeypatch.setattr(staging, "BATCH_BYTES", 40_000)
    monkeypatch.setattr(channels, "STAGING_TO_DEVICE", 128 * 77)
    monkeypatch.setattr(channels, "STAGING_TO_HOST", 128 * 99)


@pytest.fixture(params=["pageable", "pinned"])
def host(request: pytest.FixtureRequest, cp: Any) -> Callable[[Array], Array]:
    """Gives values in one of the two kinds of host memory."""

    def pinned(values: Array) -> Array:
        memory = cp.cuda.alloc_pinned_memory(values.nbytes)
        found = np.frombuffer(memory, values.dtype, values.size).reshape(values.shape)
        found[...] = values
        assert host_memory.is_pinned(found)
        return found

    return pinned if request.param == "pinned" else np.array


@pytest.fixture
def no_device_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left to threads of Python."""
    monkeypatch.setattr(device_threads.DeviceThreads, "__enter__", None)


@pytest.mark.usefixtures("no_device_threads")
@pytest.mark.parametrize("devices", ["cuda", "all"])
@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_whole_chunks(tmp_path: Path, codec: pyfilter.Codec, host: Callable[[Array], Array], devices: str) -> None:
    values = host(field((160, 30, 40)))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        expected = pyfilter.create_dataset(file, "expected", values, codec, chunks=(4, 30, 40))
        found = pyfilter.create_dataset(file, "found", values, codec, chunks=(4, 30, 40), devices=devices)
        assert stored_chunks(found) == stored_chunks(expected)
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(
            pyfilter.read(file["found"], out=host(np.zeros_like(values)), devices=devices), file["expected"][...]
        )
        np.testing.assert_array_equal(
            pyfilter.read(file["found"], np.s_[8:16], devices=devices), file["expected"][8:16]
        )


LAYOUTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], Any]] = {
    "rows": ((100, 90), (1, 90), ...),
    "one dimension": ((10_000,), (300,), ...),
    "a part of a chunk is last": ((101, 30), (10, 30), ...),
    "several axes": ((6, 40, 30), (1, 8, 30), ...),
    "several axes with a part": ((6, 42, 30), (1, 8, 30), ...),
    "one of several": ((6, 42, 30), (1, 8, 30), np.s_[3:4]),
    "columns": ((60, 90), (60, 9), ...),
    "within a chunk": ((100, 30), (10, 30), np.s_[5:80]),
    "from a chunk on": ((100, 30), (10, 30), np.s_[20:85]),
    "not all of a row": ((100, 30), (10, 30), np.s_[20:80, 3:]),
    "beyond": ((15, 20), (20, 20), ...),
    "blocks": ((40, 50, 60), (16, 20, 25), ...),
    "a part of blocks": ((40, 50, 60), (16, 20, 25), np.s_[5:33, 20:40, 3:59]),
    "one value": ((40, 50, 60), (16, 20, 25), np.s_[7, 8, 9]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(tmp_path: Path, layout: str, host: Callable[[Array], Array]) -> None:
    shape, chunk, selection = LAYOUTS[layout]
    values = host(field(shape))
    keywords: dict[str, Any] = {"chunks": chunk, "maxshape": tuple(2 * extent for extent in shape)}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        expected = pyfilter.create_dataset(file, "expected", values, CODECS[0], **keywords)
        found = pyfilter.create_dataset(file, "found", values, CODECS[0], devices="all", **keywords)
        assert stored_chunks(found) == stored_chunks(expected)
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(
            pyfilter.read(file["found"], selection, devices="all"), file["expected"][selection]
        )


@pytest.mark.usefixtures("no_device_threads")
@pytest.mark.parametrize("order", ["F", "strided", "turned"])
def test_memory_layouts(tmp_path: Path, order: str) -> None:
    values = field((40, 50, 60))
    arrange: dict[str, Callable[[Array], Array]] = {
        "F": np.asfortranarray,
        "strided": lambda given: np.repeat(given, 2, axis=1)[:, ::2],
        "turned": lambda given: np.ascontiguousarray(given[::-1, :, ::-1])[::-1, :, ::-1],
    }
    given, out = arrange[order](values), arrange[order](np.zeros_like(values))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        expected = pyfilter.create_dataset(file, "expected", values, Progressive(), chunks=(16, 20, 25))
        found = pyfilter.create_dataset(file, "found", given, Progressive(), chunks=(16, 20, 25), devices="all")
        assert stored_chunks(found) == stored_chunks(expected)
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(pyfilter.read(file["found"], out=out, devices="all"), file["expected"][...])
    with progressive.open(tmp_path / "a.h5", "found") as reader, progressive.open(tmp_path / "a.h5", "found") as cpu:
        out[...] = 0
        np.testing.assert_array_equal(reader.read(0.1, out=out, devices="all"), cpu.read(0.1))
        assert (reader.bytes_read, reader.max_error) == (cpu.bytes_read, cpu.max_error)


def test_what_is_unusual_is_left(tmp_path: Path, host: Callable[[Array], Array]) -> None:
    """Chunks that were not written, stored plainly, or have another shape; values of another type."""
    values = host(field((100, 500)))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("a", (100, 500), "f4", chunks=(5, 500), compression=CODECS[0], fillvalue=3)
        for first in (0, 30, 35, 40, 90):
            dataset[first : first + 5] = values[first : first + 5]
        dataset.id.write_direct_chunk((95, 0), values[95:].tobytes(), 1)
        turned = pyfilter.encode(np.ascontiguousarray(values[10:15].reshape(500, 5)), CODECS[0])
        dataset.id.write_direct_chunk((10, 0), turned, 0)
    with h5py.File(tmp_path / "a.h5") as file:
        expected = pyfilter.read(file["a"])
        np.testing.assert_array_equal(
            pyfilter.read(file["a"], out=host(np.zeros_like(values)), devices="all"), expected
        )
        out = np.zeros(values.shape, "f8")
        np.testing.assert_array_equal(pyfilter.read(file["a"], out=out, devices="all"), expected)


@pytest.mark.usefixtures("threads_end")
def test_errors_are_those_of_others(tmp_path: Path) -> None:
    values = field((100, 500))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = pyfilter.create_dataset(file, "a", values, CODECS[0], chunks=(5, 500), devices="all")
        _, frame = dataset.id.read_direct_chunk((50, 0))
        dataset.id.write_direct_chunk((50, 0), frame[:8] + bytes(len(frame) - 8), 0)
        last = max(dataset.id.get_chunk_info(i).byte_offset for i in range(20))
    with h5py.File(tmp_path / "a.h5") as file, pytest.raises(errors.FrameError):
        pyfilter.read(file["a"], devices="all")
    with h5py.File(tmp_path / "a.h5") as file, pytest.raises(OSError, match=r"(?i)write"):
        pyfilter.write(file["a"], values, devices="all")
    with h5py.File(tmp_path / "a.h5") as file, (tmp_path / "a.h5").open("r+b") as raw:
        raw.truncate(last + 10)
        with pytest.raises(errors.FrameError):
            pyfilter.read(file["a"], devices="all")


@pytest.mark.usefixtures("threads_end")
@pytest.mark.parametrize("kind", [errors.NoMemory, errors.DeviceError])
def test_errors_of_devices(file: h5py.File, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]) -> None:
    """Channels without memory leave all to others; a device's own error ends all."""
    values = field((100, 500))
    expected = pyfilter.create_dataset(file, "expected", values, CODECS[0], chunks=(5, 500))

    def fail(*_: object) -> None:
        raise kind("of the device")

    for name in ("write_chunks", "read_chunks"):
        monkeypatch.setattr(device_chunks, name, fail)
    dataset = file.create_dataset("a", values.shape, "f4", chunks=(5, 500), compression=CODECS[0])
    if kind is errors.NoMemory:
        pyfilter.write(dataset, values, devices="all")
        assert stored_chunks(dataset) == stored_chunks(expected)
        return
    with pytest.raises(errors.DeviceError, match="of the device"):
        pyfilter.write(dataset, values, devices="all")


def test_a_call_may_end_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_chunks, "_SECONDS", 0.0)
    values = field((200, 1000))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        expected = pyfilter.create_dataset(file, "expected", values, CODECS[0], chunks=(5, 1000))
        found = pyfilter.create_dataset(file, "found", values, CODECS[0], chunks=(5, 1000), devices="all")
        assert stored_chunks(found) == stored_chunks(expected)
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(pyfilter.read(file["found"], devices="all"), file["expected"][...])


@pytest.mark.parametrize("devices", ["cuda", "all"])
def test_tolerances(tmp_path: Path, host: Callable[[Array], Array], devices: str) -> None:
    """Values, bytes and errors are the CPU's, whatever was read before; some chunks are not progressive ones."""
    values = field((105, 64, 32))
    values[3:9, ::7] = np.nan
    noise = np.random.default_rng(1).integers(0, 2**32, (12, 64, 32), "u4").view("f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, part in (("smooth", values), ("mixed", np.concatenate((values[:42], noise, values[42:93])))):
            pyfilter.create_dataset(file, name, part, Progressive(), chunks=(6, 64, 32))
        hole = file.create_dataset("hole", values.shape, "f4", chunks=(10, 64, 32), compression=Progressive())
        hole[:70] = values[:70]
    for name in ("smooth", "mixed", "hole"):
        for order in ((0.1, 1e-3, None), (None, 0.1), (1e-3, 0.1)):
            with progressive.open(tmp_path / "a.h5", name) as cpu, progressive.open(tmp_path / "a.h5", name) as reader:
                for tolerance in order:
                    out = host(np.zeros_like(values))
                    np.testing.assert_array_equal(reader.read(tolerance, out=out, devices=devices), cpu.read(tolerance))
                    assert (reader.bytes_read, reader.max_error) == (cpu.bytes_read, cpu.max_error)
                assert reader.cost(1e-4) == cpu.cost(1e-4)
                assert reader.next_error(0.01) == cpu.next_error(0.01)
                assert reader.first_error() == cpu.first_error()
                np.testing.assert_array_equal(reader.read(0.01, np.s_[20:60]), cpu.read(0.01, np.s_[20:60]))
                np.testing.assert_array_equal(reader.read(0.01, level=1), cpu.read(0.01, level=1))
                assert (reader.bytes_read, reader.max_error) == (cpu.bytes_read, cpu.max_error)


def test_a_damaged_head(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", data=field((70, 64, 32)), chunks=(10, 64, 32), **Progressive())
        frame = bytearray(dataset.id.read_direct_chunk((20, 0, 0))[1])
        frame[8 * frame[7] + 3] ^= 255
        dataset.id.write_direct_chunk((20, 0, 0), bytes(frame), 0)
        with progressive.open(dataset) as reader:
            with pytest.raises(errors.FrameError):
                reader.read(0.01, devices="all")
            np.testing.assert_array_equal(reader.read(0.01, np.s_[30:], devices="all"), reader.read(0.01, np.s_[30:]))
    assert cuda.device_count() >= 1
