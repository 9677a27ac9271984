# SPDX-License-Identifier: BSD-3-Clause
"""Values in host memory through one device and several: the same chunks and the same values as by the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from python.support import field
from python.test_h5 import CASES, case_values, stored_chunks
from python.test_h5_read import SELECTIONS

import pyfilter
from pyfilter import Cuszp2, HierarchicalDelta, Lossless, Progressive, errors
from pyfilter._lib import cuda
from pyfilter.gpu import host_memory, staging

from . import conftest

BOUND = Cuszp2(absolute=1e-3)


def some_devices() -> list[Any]:
    count = cuda.device_count() if conftest.why_not() is None else 0
    return ["cuda", *(["all", [1, 0]] if count > 1 else [])]


@pytest.fixture(params=some_devices(), ids=str)
def devices(request: pytest.FixtureRequest) -> Any:
    return request.param


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
    count = cuda.device_count()
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
    with pytest.raises(ValueError, match="arrays on a device are compressed and decompressed there"):
        pyfilter.write(dataset, cp.asarray(values), devices="all")
    with pytest.raises(ValueError, match="arrays on a device are compressed and decompressed there"):
        pyfilter.read(dataset, out=cp.asarray(values), devices="all")
    with pytest.raises(ValueError, match=r"device= .* or devices="):
        pyfilter.read(dataset, device="cuda", devices="all")
    assert isinstance(pyfilter.read(dataset, device="cpu", devices=0), np.ndarray)
