# SPDX-License-Identifier: BSD-3-Clause
"""read into device memory: what h5py reads, for every selection and every kind of chunk."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np
import pytest
from python.support import field
from python.test_h5_read import SELECTIONS

import pyfilter
from pyfilter import Cuszp2, Lossless
from pyfilter.gpu import reading, staging

BOUND = Cuszp2(absolute=1e-3)


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
@pytest.mark.parametrize("batch", [1, 20_000, 128 << 20])
def test_selections(cp: Any, file: h5py.File, selection: Any, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "BATCH_BYTES", batch)
    dataset = pyfilter.create_dataset(file, "a", field((100, 40, 11)), BOUND, chunks=(32, 16, 5))
    expected = dataset[selection]
    found = pyfilter.read(dataset, selection, device="cuda")
    assert isinstance(found, cp.ndarray)
    assert (found.shape, found.dtype) == (np.shape(expected), dataset.dtype)
    np.testing.assert_array_equal(found.get(), expected)
    for dtype in ("f4", "f8"):
        out = cp.zeros(np.shape(expected), dtype)
        assert pyfilter.read(dataset, selection, out=out) is out
        np.testing.assert_array_equal(out.get(), expected)


@pytest.mark.parametrize("selection", [np.s_[100], np.s_[0, 0, 0, 0], np.s_[..., ...], np.s_["a"], np.s_[1.5]])
def test_bad_selections_are_refused_by_h5py(cp: Any, file: h5py.File, selection: Any) -> None:
    dataset = pyfilter.create_dataset(file, "a", field((100, 40, 11)), BOUND)
    with pytest.raises((IndexError, ValueError, TypeError)):
        pyfilter.read(dataset, selection, device="cuda")


def test_views(cp: Any, file: h5py.File) -> None:
    dataset = pyfilter.create_dataset(file, "a", field((60, 50)), BOUND, chunks=(16, 50))
    wide = cp.zeros((60, 100), "f4")
    pyfilter.read(dataset, out=wide[:, ::2])
    np.testing.assert_array_equal(wide.get()[:, ::2], dataset[...])
    assert not wide.get()[:, 1::2].any()
    turned = cp.zeros((50, 60), "f4")
    pyfilter.read(dataset, out=turned.transpose(1, 0))
    np.testing.assert_array_equal(turned.get().T, dataset[...])
    row = cp.zeros((60, 3), "f4")
    pyfilter.read(dataset, np.s_[:, 7], out=row[:, 1])
    np.testing.assert_array_equal(row.get()[:, 1], dataset[:, 7])
    assert not row.get()[:, ::2].any()


def test_one_header_speaks_for_all_chunks_of_a_dataset(
    cp: Any, file: h5py.File, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raw frames and such with missing values among them: their flags are not what is compared."""
    values = field((60, 50))
    values[:20] = np.random.default_rng(0).integers(0, 2**32, (20, 50), "u4").view("f4")
    values[20:30] = -9
    dataset = pyfilter.create_dataset(file, "a", values, Lossless(), chunks=(10, 50), fillvalue=-9)
    flags = {dataset.id.read_direct_chunk((row, 0))[1][10] for row in range(0, 60, 10)}
    assert len(flags) > 1
    told: list[bool] = []
    plain = reading.Batch._alike

    def note(batch: reading.Batch, numbers: Any) -> bool:
        told.append(plain(batch, numbers))
        return told[-1]

    monkeypatch.setattr(reading.Batch, "_alike", note)
    np.testing.assert_array_equal(pyfilter.read(dataset, device="cuda").get().view("u4"), values.view("u4"))
    assert told == [True]


def test_an_out_that_does_not_fit_is_refused(cp: Any, file: h5py.File) -> None:
    for dataset in (
        pyfilter.create_dataset(file, "a", field((60, 50)), BOUND),
        file.create_dataset("b", data=field((60, 50))),
    ):
        for shape, dtype in [((60, 51), "f4"), ((3000,), "f4"), ((60, 50), "i4")]:
            with pytest.raises(ValueError, match="out must be"):
                pyfilter.read(dataset, out=cp.zeros(shape, dtype))
        with pytest.raises(ValueError, match="not both"):
            pyfilter.read(dataset, out=cp.zeros((60, 50), "f4"), device="cuda")
        with pytest.raises(ValueError, match="device must be"):
            pyfilter.read(dataset, device="gpu")
        assert isinstance(pyfilter.read(dataset, device="cpu"), np.ndarray)


@pytest.mark.parametrize("fill", [-5.0, np.nan, 0.0])
@pytest.mark.parametrize("dtype", ["f4", ">f8"])
def test_unwritten_chunks_are_fill(cp: Any, file: h5py.File, dtype: str, fill: float) -> None:
    dataset = file.create_dataset("a", (100, 90), dtype, chunks=(32, 40), fillvalue=fill, compression=BOUND)
    np.testing.assert_array_equal(pyfilter.read(dataset, device="cuda").get(), np.full((100, 90), fill))
    dataset[40:60, 10:20] = field((20, 10))
    np.testing.assert_array_equal(pyfilter.read(dataset, device="cuda").get(), dataset[...])


def test_grown_and_shrunk(cp: Any, file: h5py.File) -> None:
    dataset = pyfilter.create_dataset(
        file, "a", cp.asarray(field((50, 40))), BOUND, chunks=(16, 40), maxshape=(None, 40)
    )
    dataset.resize((90, 40))
    dataset[60:70] = 3.0
    np.testing.assert_array_equal(pyfilter.read(dataset, device="cuda").get(), dataset[...])
    dataset.resize((20, 40))
    np.testing.assert_array_equal(pyfilter.read(dataset, device="cuda").get(), dataset[...])
    pyfilter.write(dataset, cp.asarray(field((20, 40), seed=4)))
    assert pyfilter.verify(field((20, 40), seed=4), dataset[...], 1e-3).ok


@pytest.mark.parametrize("dtype", ["f4", ">f4", ">i8", "u1"])
@pytest.mark.parametrize("chunks", [(32, 40), (32, 80)])
def test_unfiltered_chunks(cp: Any, file: h5py.File, dtype: str, chunks: tuple[int, int]) -> None:
    values = (field((64, 80), "f8") * 100).clip(0).astype(dtype)
    codec = BOUND if values.dtype.kind == "f" else Lossless()
    dataset = pyfilter.create_dataset(file, "a", values, codec, chunks=chunks, dtype=dtype)
    place = (32, 80 - chunks[1])
    dataset.id.write_direct_chunk(place, values[place[0] :, place[1] :].tobytes(), 1)
    np.testing.assert_array_equal(pyfilter.read(dataset, device="cuda").get(), dataset[...])
    np.testing.assert_array_equal(pyfilter.read(dataset, np.s_[33:, 41], device="cuda").get(), dataset[33:, 41])
    dataset.id.write_direct_chunk(place, b"12", 1)
    with pytest.raises(pyfilter.errors.FrameError, match="unfiltered"):
        pyfilter.read(dataset, device="cuda")


def test_frames_of_other_shapes_with_as_many_values(cp: Any, file: h5py.File) -> None:
    values = field((64, 80))
    dataset = pyfilter.create_dataset(file, "a", values, BOUND, chunks=(16, 40))
    dataset.id.write_direct_chunk((16, 40), pyfilter.encode(values[:8, :80], BOUND), 0)
    np.testing.assert_array_equal(pyfilter.read(dataset, device="cuda").get(), dataset[...])


def test_damaged_chunks_are_errors(cp: Any, file: h5py.File) -> None:
    dataset = pyfilter.create_dataset(file, "a", field((64, 80)), BOUND, chunks=(32, 40))
    _, frame = dataset.id.read_direct_chunk((0, 0))
    other = pyfilter.encode(field((10, 10)), BOUND)
    for damaged in (frame[:-3], b"x" * len(frame), other, pyfilter.encode(field((32, 40), "f8"), BOUND), b"\0"):
        dataset.id.write_direct_chunk((0, 0), damaged, 0)
        with pytest.raises(pyfilter.errors.FrameError):
            pyfilter.read(dataset, device="cuda")
        np.testing.assert_array_equal(pyfilter.read(dataset, np.s_[32:], device="cuda").get(), dataset[32:])


def test_flipped_bits_are_errors_or_values(cp: Any, file: h5py.File) -> None:
    dataset = pyfilter.create_dataset(file, "a", field((64, 80)), BOUND, chunks=(32, 40))
    _, frame = dataset.id.read_direct_chunk((0, 0))
    rng = np.random.default_rng(7)
    for _ in range(200):
        damaged = bytearray(frame)
        damaged[int(rng.integers(len(frame)))] ^= 1 << int(rng.integers(8))
        dataset.id.write_direct_chunk((0, 0), bytes(damaged), 0)
        try:
            found = pyfilter.read(dataset, device="cuda").get()
        except pyfilter.errors.FrameError:
            continue
        np.testing.assert_array_equal(found[32:], pyfilter.read(dataset, np.s_[32:]))


def test_what_is_in_the_chunk_cache_is_read(cp: Any, file: h5py.File) -> None:
    dataset = pyfilter.create_dataset(file, "a", np.zeros((64, 80), "f4"), BOUND, chunks=(32, 40))
    dataset[...] = 3.0
    np.testing.assert_array_equal(pyfilter.read(dataset, device="cuda").get(), dataset[...])
    pyfilter.write(dataset, cp.asarray(np.full((64, 80), 5.0, "f4")))
    np.testing.assert_allclose(dataset[...], 5.0, atol=1e-3)


def test_what_no_device_holds_is_refused(cp: Any, file: h5py.File) -> None:
    file["a"] = ["one", "two"]
    with pytest.raises(TypeError, match="cannot be in device memory"):
        pyfilter.read(file["a"], device="cuda")
