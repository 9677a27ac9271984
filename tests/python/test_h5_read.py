# SPDX-License-Identifier: BSD-3-Clause
"""read, and write to what exists: the same values as through h5py, whatever is stored."""

from __future__ import annotations

import ctypes
import io
import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t, h5z

import pyfilter
from pyfilter import Cuszp2, Lossless
from pyfilter._chunks import pipeline
from pyfilter._lib import hdf5

from .support import field

BOUND = Cuszp2(absolute=1e-3)

SELECTIONS: list[Any] = [
    ..., (), np.s_[:], np.s_[10], np.s_[-1], np.s_[10:20], np.s_[:, 5], np.s_[..., 5], np.s_[3, ..., 4],
    np.s_[10:20, 30:31, 2:9], np.s_[50:40], np.s_[0:1, 0, 0], np.s_[99, 39, 10], np.s_[np.int32(4), 3:],
    np.s_[::3], np.s_[5:90:7, :, ::2], np.s_[[1, 5, 7]], np.s_[:, [0, 3]], np.s_[-5:, -5:-2],
]  # fmt: skip


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_read_gives_what_h5py_gives(file: h5py.File, selection: Any, threads: int) -> None:
    dataset = pyfilter.create_dataset(file, "a", field((100, 40, 11)), BOUND, chunks=(32, 16, 5))
    expected = dataset[selection]
    found = pyfilter.read(dataset, selection)
    assert type(found) is type(expected)
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_array_equal(found, expected)
    out = np.zeros(np.shape(expected), "f8")
    assert pyfilter.read(dataset, selection, out=out) is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("selection", [np.s_[100], np.s_[0, 0, 0, 0], np.s_[..., ...], np.s_["a"], np.s_[1.5]])
def test_bad_selections_are_refused_by_h5py(file: h5py.File, selection: Any) -> None:
    dataset = pyfilter.create_dataset(file, "a", field((100, 40, 11)), BOUND)
    with pytest.raises((IndexError, ValueError, TypeError)):
        pyfilter.read(dataset, selection)


def test_write_beside_other_threads_that_use_hdf5(tmp_path: Path) -> None:
    """Chunks are written without the GIL, but with h5py's lock: other threads go on, HDF5 is entered by one."""
    values = field((40, 64, 64))

    def work(number: int) -> None:
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            for repeat in range(3):
                own = (values + number).astype("f4")
                dataset = pyfilter.create_dataset(file, f"a{repeat}", own, BOUND, chunks=(1, 64, 64))
                assert abs(dataset[...].astype("f8") - own).max() <= 1e-3

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))


def test_write_into_a_file_of_python() -> None:
    memory = io.BytesIO()
    values = field((60, 50))
    with h5py.File(memory, "w") as file:
        pyfilter.create_dataset(file, "a", values, BOUND, chunks=(16, 50))
    with h5py.File(memory) as file:
        np.testing.assert_array_equal(pyfilter.read(file["a"]), file["a"][...])
        assert abs(file["a"][...].astype("f8") - values).max() <= 1e-3


@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
def test_what_a_file_of_python_raises_is_raised(kind: type[BaseException]) -> None:
    class Full(io.BytesIO):
        full = False

        def write(self, data: Any, /) -> int:
            if self.full:
                raise kind("no space")
            return super().write(data)

    memory = Full()
    with h5py.File(memory, "w") as file:
        dataset = file.create_dataset("a", (60, 50), "f4", chunks=(16, 16), compression=BOUND)
        file.flush()
        memory.full = True
        with pytest.raises(kind, match="no space"):
            pyfilter.write(dataset, field((60, 50)))
        memory.full = False


def test_a_chunk_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        pyfilter.create_dataset(file, "a", field((60, 50)), BOUND)
    with h5py.File(tmp_path / "a.h5") as file, pytest.raises((OSError, RuntimeError), match=r"[Ww]rite|intent"):
        pyfilter.write(file["a"], field((60, 50)))


def test_read_into_views(file: h5py.File) -> None:
    values = field((60, 50))
    dataset = pyfilter.create_dataset(file, "a", values, BOUND, chunks=(16, 50))
    for out in (np.zeros((60, 100), "f4")[:, ::2], np.zeros((60, 50), "f4", order="F"), np.zeros((60, 50), ">f8")):
        pyfilter.read(dataset, out=out)
        np.testing.assert_array_equal(out, dataset[...])
    row = np.zeros((60, 3), "f4")
    pyfilter.read(dataset, np.s_[:, 7], out=row[:, 1])
    np.testing.assert_array_equal(row[:, 1], dataset[:, 7])
    assert not row[:, [0, 2]].any()


@pytest.mark.parametrize(
    ("out", "error"),
    [
        (np.zeros((60, 51)), ValueError),
        (np.zeros(3000), ValueError),
        (np.zeros((60, 50), "i4"), ValueError),
        ([[0.0] * 50] * 60, TypeError),
    ],
)
def test_an_out_that_does_not_fit_is_refused(file: h5py.File, out: Any, error: type[Exception]) -> None:
    for dataset in (
        pyfilter.create_dataset(file, "a", field((60, 50)), BOUND),
        file.create_dataset("b", data=field((60, 50))),
    ):
        with pytest.raises(error):
            pyfilter.read(dataset, out=out)


def test_unwritten_chunks_are_fill(file: h5py.File) -> None:
    dataset = file.create_dataset("a", (100, 90), "f4", chunks=(32, 40), fillvalue=-5.0, compression=BOUND)
    np.testing.assert_array_equal(pyfilter.read(dataset), np.full((100, 90), -5, "f4"))
    dataset[40:60, 10:20] = field((20, 10))
    np.testing.assert_array_equal(pyfilter.read(dataset), dataset[...])


@pytest.mark.parametrize("dtype", ["f4", ">f4", ">i8"])
def test_raw_chunks_are_read(file: h5py.File, dtype: str) -> None:
    values = (field((64, 80), "f8") * 100).astype(dtype)
    codec = Lossless() if dtype[1:] == "i8" else BOUND
    dataset = pyfilter.create_dataset(file, "a", values, codec, chunks=(32, 40), dtype=dtype)
    dataset.id.write_direct_chunk((32, 40), values[32:, 40:].tobytes(), 1)
    np.testing.assert_array_equal(pyfilter.read(dataset), dataset[...])
    np.testing.assert_array_equal(pyfilter.read(dataset)[32:, 40:], values[32:, 40:])


def test_what_is_in_the_chunk_cache_is_read(file: h5py.File) -> None:
    dataset = pyfilter.create_dataset(file, "a", np.zeros((64, 80), "f4"), BOUND, chunks=(32, 40))
    dataset[...] = 3.0
    np.testing.assert_allclose(pyfilter.read(dataset), 3.0, atol=1e-3)
    pyfilter.write(dataset, np.full((64, 80), 5.0, "f4"))
    np.testing.assert_allclose(dataset[...], 5.0, atol=1e-3)


def test_damaged_chunks_are_errors(file: h5py.File) -> None:
    dataset = pyfilter.create_dataset(file, "a", field((64, 80)), BOUND, chunks=(32, 40))
    _, frame = dataset.id.read_direct_chunk((0, 0))
    other = pyfilter.encode(field((10, 10)), BOUND)
    for damaged in (frame[:-3], b"x" * len(frame), other, pyfilter.encode(field((32, 40), "f8"), BOUND), b""):
        dataset.id.write_direct_chunk((0, 0), damaged or b"\0", 0)
        with pytest.raises(pyfilter.errors.FrameError):
            pyfilter.read(dataset)
        np.testing.assert_array_equal(pyfilter.read(dataset, np.s_[32:]), dataset[32:])
    dataset.id.write_direct_chunk((0, 0), b"12", 1)
    with pytest.raises(pyfilter.errors.FrameError, match="unfiltered"):
        pyfilter.read(dataset)


def test_a_frame_as_long_as_the_raw_chunk_before_it_is_read_rightly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # HDF5 keeps the filter mask of a chunk that is overwritten with as many bytes
    noise = np.random.default_rng(3).integers(0, 2**32, 1000, "u4")
    fitting = []
    for count, bits in itertools.product(range(1, 7), range(32)):
        values = noise.copy()
        values[: 32 * count] >>= np.uint32(bits)
        if len(pyfilter.encode(values, Lossless())) == values.nbytes:
            fitting.append(values)
    values = fitting[0]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("a", (1000,), "u4", chunks=(1000,), compression=Lossless())
        dataset.id.write_direct_chunk((0,), bytes(4000), 1)
        written: list[Any] = []
        write = hdf5.write_chunk

        def note(*given: Any) -> bool:
            written.append(given[2:])
            return write(*given)

        monkeypatch.setattr(hdf5, "write_chunk", note)
        pyfilter.write(dataset, values)
        assert written == [(values.tobytes(), 1)]  # so that an HDF5 that takes the new mask is right, too
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["a"], values)
        np.testing.assert_array_equal(pyfilter.read(file["a"]), values)


def test_other_datasets_are_left_to_h5py(file: h5py.File) -> None:
    values = field((60, 50))
    kinds: dict[str, dict[str, Any]] = {
        "a": {},
        "b": {"chunks": (10, 10)},
        "c": {"compression": "gzip", "shuffle": True},
    }
    for name, keywords in kinds.items():
        dataset = file.create_dataset(name, (60, 50), "f4", **keywords)
        pyfilter.write(dataset, values)
        np.testing.assert_array_equal(pyfilter.read(dataset, np.s_[3:7]), values[3:7])
    layout = h5py.VirtualLayout((60, 50), "f4")
    layout[:] = h5py.VirtualSource(file["a"])
    virtual = file.create_virtual_dataset("v", layout)
    np.testing.assert_array_equal(pyfilter.read(virtual), values)
    file["s"] = "text"
    assert pyfilter.read(file["s"], ()) == b"text"


def test_write_lets_hdf5_convert_other_types(file: h5py.File) -> None:
    dataset = file.create_dataset("a", (60, 50), "f4", chunks=(16, 16), compression=BOUND)
    values = field((60, 50), "f8")
    pyfilter.write(dataset, values)
    assert pyfilter.verify(values.astype("f4"), pyfilter.read(dataset), 1e-3).ok
    pyfilter.write(dataset, np.arange(3000).reshape(60, 50))
    np.testing.assert_allclose(pyfilter.read(dataset), np.arange(3000).reshape(60, 50), atol=1e-3)
    pyfilter.write(dataset, values.astype(">f4"))
    assert pyfilter.verify(values.astype("f4"), pyfilter.read(dataset), 1e-3).ok


def test_write_needs_the_shape(file: h5py.File) -> None:
    dataset = file.create_dataset("a", (60, 50), "f4", chunks=(16, 16), compression=BOUND)
    with pytest.raises(ValueError, match=r"\(60, 50\).*\(50, 60\)"):
        pyfilter.write(dataset, np.zeros((50, 60)))
    with pytest.raises(ValueError, match="masked"):
        pyfilter.write(dataset, np.ma.array(np.zeros((60, 50)), mask=True))


@pytest.mark.parametrize("thing", [None, "a", np.zeros(3)])
def test_datasets_are_needed(thing: Any) -> None:
    with pytest.raises(TypeError, match=r"h5py\.Dataset"):
        pyfilter.write(thing, np.zeros(3))
    with pytest.raises(TypeError, match=r"h5py\.Dataset"):
        pyfilter.read(thing)


def test_unfiltered_edge_chunks_are_left_to_hdf5(tmp_path: Path) -> None:
    values = field((100, 90))
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_chunk((32, 40))
        set_options = ctypes.CDLL(h5z.__file__).H5Pset_chunk_opts
        set_options.argtypes = (ctypes.c_int64, ctypes.c_uint)
        assert set_options(dcpl.id, 2) == 0  # H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS
        dcpl.set_filter(pyfilter.FILTER_ID, h5z.FLAG_OPTIONAL, BOUND.filter_options)
        made = h5d.create(file.id, b"a", h5t.IEEE_F32LE, h5s.create_simple((100, 90)), dcpl)
        assert pipeline.chunk_codec(h5py.Dataset(made)) is None
        pyfilter.write(h5py.Dataset(made), values)
    with h5py.File(tmp_path / "a.h5") as file:
        assert pyfilter.verify(values, pyfilter.read(file["a"]), BOUND).ok


def test_opened_again_and_written_in_part(tmp_path: Path) -> None:
    values = field((64, 80))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        pyfilter.create_dataset(file, "a", values, BOUND, chunks=(32, 40), fillvalue=-999.0, maxshape=(None, 80))
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["a"].resize((96, 80))
        file["a"][60:96] = values[:36]
    with h5py.File(tmp_path / "a.h5") as file:
        expected = np.concatenate([values[:60], values[:36]])
        assert pyfilter.verify(expected, pyfilter.read(file["a"]), BOUND).ok
        assert pyfilter.check(file) == []
