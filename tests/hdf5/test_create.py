# SPDX-License-Identifier: BSD-3-Clause
"""Datasets of every kind through h5py: what set_local stores, and that the values come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from .support import (
    ABSOLUTE,
    CUSZP2,
    DTYPES,
    HIERARCHICAL_DELTA,
    RELATIVE,
    STAMP,
    Header,
    cd_values,
    compressed,
    field,
    frames,
    largest_error,
    lossless,
    stored,
    words,
)


def write(path: Path, **keywords: Any) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", **keywords)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_in_both_byte_orders(tmp_path: Path, dtype: str, order: str) -> None:
    values = (field((30, 40), "f8") * 40).astype(order + dtype)
    write(tmp_path / "a.h5", data=values, chunks=(16, 16), **compressed(lossless()))
    with h5py.File(tmp_path / "a.h5") as file:
        dataset, swapped = file["x"], order == ">" and dtype[1] != "1"
        assert cd_values(dataset) == stored(lossless(), dtype, (16, 16), swapped)
        assert dataset.dtype == values.dtype
        assert dataset[...].tobytes() == values.tobytes()
        assert {Header(frame).big_endian for frame in frames(dataset)} == {swapped}


@pytest.mark.parametrize("mode", [ABSOLUTE, RELATIVE])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">f8"])
def test_the_bound_is_kept(tmp_path: Path, dtype: str, mode: int) -> None:
    values = field((50, 60, 30), dtype)
    write(tmp_path / "a.h5", data=values, chunks=(20, 20, 20), **compressed(words(1e-3, mode)))
    with h5py.File(tmp_path / "a.h5") as file:
        written = frames(file["x"])
        bound = max(Header(frame).bound for frame in written)
        assert {Header(frame).codec for frame in written} == {CUSZP2}
        assert 0 < largest_error(file["x"][...], values) <= bound <= (1e-3 if mode == ABSOLUTE else 1e-3 * 7)


@pytest.mark.parametrize("outliers", [0, 1, 2])
@pytest.mark.parametrize("predictor", range(5))
@pytest.mark.parametrize("dtype", ["<f4", ">f8"])
def test_every_predictor(tmp_path: Path, dtype: str, predictor: int, outliers: int) -> None:
    """Chunks at the edge, which HDF5 pads with the fill value, among them."""
    values = field((50, 60, 30), dtype)
    values[20:30, 10:50] = -999
    user = words(1e-3, codec=HIERARCHICAL_DELTA, parameters=predictor | outliers << 8)
    write(tmp_path / "a.h5", data=values, chunks=(17, 23, 20), fillvalue=-999, **compressed(user))
    with h5py.File(tmp_path / "a.h5") as file:
        dataset = file["x"]
        assert cd_values(dataset)[:6] == (STAMP, *user[1:])
        found = dataset[...]
        assert 0 < largest_error(found, values) <= 1e-3
        assert (found[values == -999] == -999).all()
        for frame in frames(dataset):
            header = Header(frame)
            assert (header.codec, frame[4], header.big_endian) == (HIERARCHICAL_DELTA, 2, dtype[0] == ">")
            assert frame[48] == predictor or (predictor == 0 and 1 <= frame[48] <= 4)
            assert frame[49] == (outliers or (2 if predictor == 1 else 1))
            assert 1 <= frame[50] <= {1: 1, 2: 2, 3: 3, 4: 1}[frame[48]]


@pytest.mark.parametrize("predictor", range(5))
def test_packed_chunks_of_any_rank(tmp_path: Path, predictor: int) -> None:
    """Above rank 5 the leading dimensions are multiplied together."""
    user = words(1e-3, codec=HIERARCHICAL_DELTA, parameters=predictor)
    for shape in ((100,), (40, 3), (7, 9, 5), (3, 4, 5, 6, 7), (2, 3, 4, 3, 2, 5), (2,) * 9):
        if len(shape) < (0, 0, 2, 3, 2)[predictor]:
            continue
        values = field(shape)
        write(tmp_path / "a.h5", data=values, chunks=shape, **compressed(user))
        with h5py.File(tmp_path / "a.h5") as file:
            assert largest_error(file["x"][...], values) <= 1e-3
            assert {frame[11] for frame in frames(file["x"])} <= {min(len(shape), 5)}


@pytest.mark.parametrize(
    ("shape", "chunks", "stored_chunk"),
    [
        ((100,), (30,), (30,)),
        ((7, 9), (7, 9), (7, 9)),
        ((3, 4, 5, 6, 7), (3, 2, 5, 3, 7), (3, 2, 5, 3, 7)),
        ((2, 3, 4, 3, 2, 5), (2, 3, 2, 3, 2, 5), (6, 2, 3, 2, 5)),
        ((2,) * 9, (2,) * 9, (32, 2, 2, 2, 2)),
    ],
)
def test_chunk_shapes(
    tmp_path: Path, shape: tuple[int, ...], chunks: tuple[int, ...], stored_chunk: tuple[int, ...]
) -> None:
    values = field(shape)
    write(tmp_path / "a.h5", data=values, chunks=chunks, **compressed())
    with h5py.File(tmp_path / "a.h5") as file:
        assert cd_values(file["x"]) == stored(words(), "f4", stored_chunk)
        assert len(cd_values(file["x"])) <= 20
        assert largest_error(file["x"][...], values) <= 1e-3


def test_codec_parameters_are_kept(tmp_path: Path) -> None:
    user = words(1e-2, parameters=0x0302)
    write(tmp_path / "a.h5", data=field((20, 20, 20)), chunks=(8, 8, 8), **compressed(user))
    with h5py.File(tmp_path / "a.h5") as file:
        assert cd_values(file["x"]) == stored(user, "f4", (8, 8, 8))
        assert {frame[48:56] for frame in frames(file["x"])} == {bytes((2, 3, 0, 0, 0, 0, 0, 0))}


@pytest.mark.parametrize("user", [(1, 2, 0), (1, 2, 0, 0, 0), (1, 2, 0, 0, 0, 0x200), words()[:5]])
def test_short_user_forms(tmp_path: Path, user: tuple[int, ...]) -> None:
    write(tmp_path / "a.h5", data=field((20, 20)), chunks=(20, 20), **compressed(user))
    with h5py.File(tmp_path / "a.h5") as file:
        assert cd_values(file["x"]) == stored(user, "f4", (20, 20))


FILLS = [
    ("f4", -999.0, 0xC479C000),
    ("f4", 1e20, 0x60AD78EC),
    ("f4", 9.969209968386869e36, 0x7CF00000),
    ("f8", 1e20, 0x4415AF1D78B58C40),
    ("f8", -np.inf, 0xFFF0000000000000),
    ("f4", 0.0, None),
    ("f4", None, None),
]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(("dtype", "fill", "bits"), FILLS)
def test_fill_values(tmp_path: Path, dtype: str, fill: float | None, bits: int | None, order: str) -> None:
    """Stored as bits, and bit-exact where the data has them."""
    values = field((40, 50), order + dtype)
    if fill is not None:
        values[10:20, 5:45:3] = fill
    write(tmp_path / "a.h5", data=values, chunks=(16, 16), fillvalue=fill, **compressed())
    with h5py.File(tmp_path / "a.h5") as file:
        assert cd_values(file["x"]) == stored(words(), dtype, (16, 16), order == ">", bits)
        back = file["x"][...]
    marked = np.zeros(values.shape, bool)
    marked[10:20, 5:45:3] = fill is not None
    assert back[marked].tobytes() == values[marked].tobytes()
    assert largest_error(back[~marked], values[~marked]) <= 1e-3


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">f8"])
def test_nan_as_fill_value(tmp_path: Path, dtype: str) -> None:
    """Which of the NaNs is up to HDF5's conversion; those of the data come back as they were."""
    values = field((40, 50), dtype)
    values[10:20] = np.nan
    write(tmp_path / "a.h5", data=values, chunks=(16, 16), fillvalue=np.nan, **compressed())
    with h5py.File(tmp_path / "a.h5") as file:
        bits = sum(word << 32 * i for i, word in enumerate(cd_values(file["x"])[7:9]))
        assert np.isnan(np.array(bits, f"u{values.itemsize}").view(dtype[1:]))
        back = file["x"][...]
    assert back[10:20].tobytes() == values[10:20].tobytes()
    assert largest_error(back[20:], values[20:]) <= 1e-3


@pytest.mark.parametrize("fill", [0.0, 1e20, np.nan])
def test_padding_does_not_loosen_a_relative_bound(tmp_path: Path, fill: float) -> None:
    """HDF5 pads the last chunk with the fill value; the range is that of the values."""
    values = np.linspace(100, 101, 70, dtype="f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        keywords = compressed(words(1e-3, RELATIVE))
        file.create_dataset("x", data=values, chunks=(64,), fillvalue=fill, **keywords)
    with h5py.File(tmp_path / "a.h5") as file:
        last = frames(file["x"])[1]
        assert Header(last).bound <= 1e-3 * float(np.ptp(values[64:]))
        assert largest_error(file["x"][64:], values[64:]) <= 1e-3 * float(np.ptp(values[64:]))


def test_chunks_beyond_the_edge(tmp_path: Path) -> None:
    values = field((10, 11))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(64, 64), maxshape=(None, None), **compressed())
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        assert largest_error(file["x"][...], values) <= 1e-3
        file["x"].resize((100, 100))
        file["x"][50:60, 50:61] = values
    with h5py.File(tmp_path / "a.h5") as file:
        assert len(frames(file["x"])) == 1
        assert largest_error(file["x"][50:60, 50:61], values) <= 1e-3
        assert not file["x"][80:, 80:].any()


def test_growing_along_an_unlimited_dimension(tmp_path: Path) -> None:
    values = field((40, 30))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", (0, 30), "f4", chunks=(7, 30), maxshape=(None, 30), **compressed())
        for row in range(40):
            dataset.resize(row + 1, axis=0)
            dataset[row] = values[row]
    with h5py.File(tmp_path / "a.h5") as file:
        assert len(frames(file["x"])) == 6
        assert largest_error(file["x"][...], values) <= 1e-3


def test_empty_dataset(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (0, 5), "f8", chunks=(4, 5), maxshape=(None, 5), **compressed())
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["x"][...].shape == (0, 5)


def test_unwritten_chunks_read_as_the_fill_value(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", (30,), "f4", chunks=(10,), fillvalue=-999, **compressed())
        dataset[10:20] = 1
    with h5py.File(tmp_path / "a.h5") as file:
        assert len(frames(file["x"])) == 1
        assert (file["x"][:10] == -999).all()
        assert largest_error(file["x"][10:20], np.ones(10)) <= 1e-3


def test_early_allocation_encodes_chunks_of_fill_values(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((10,))
        plist.set_filter(52907, h5py.h5z.FLAG_OPTIONAL, words())
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        plist.set_fill_value(np.array(1e20, "f4"))
        h5py.h5d.create(file.id, b"x", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((35,)), plist)
    with h5py.File(tmp_path / "a.h5") as file:
        assert len(frames(file["x"])) == 4
        assert (file["x"][...] == np.float32(1e20)).all()


@pytest.mark.parametrize("data", [1.0, h5py.Empty("f4")])
def test_scalars_and_null_dataspaces_are_refused_by_h5py(tmp_path: Path, data: Any) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file, pytest.raises(TypeError, match="chunk/filter options"):
        file.create_dataset("x", data=data, **compressed())


def test_committed_type(tmp_path: Path) -> None:
    values = field((20, 20))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["kind"] = np.dtype(">f4")
        file.create_dataset("x", data=values, dtype=file["kind"], chunks=(20, 20), **compressed())
    with h5py.File(tmp_path / "a.h5") as file:
        assert cd_values(file["x"]) == stored(words(), "f4", (20, 20), big_endian=True)
        assert largest_error(file["x"][...], values) <= 1e-3


def test_special_values_come_back_bit_exact(tmp_path: Path) -> None:
    values = field((64, 64), "f8")
    special = np.zeros(values.shape, bool)
    special[::5, ::7] = True
    patterns = np.array([0x7FF8000000000000, 0x7FF8000000000BAD, 0x7FF0000000000000, 0xFFF0000000000000], "u8")
    values[special] = np.resize(patterns, special.sum()).view("f8")
    write(tmp_path / "a.h5", data=values, chunks=(64, 64), **compressed())
    with h5py.File(tmp_path / "a.h5") as file:
        back = file["x"][...]
    assert back[special].tobytes() == values[special].tobytes()
    assert largest_error(back[~special], values[~special]) <= 1e-3


def test_partial_writes(tmp_path: Path) -> None:
    """A chunk that is written in parts is decoded and encoded again; what was not touched stays within the bound."""
    values = field((60, 60))
    write(tmp_path / "a.h5", shape=(60, 60), dtype="f4", chunks=(25, 25), **compressed())
    for row in range(0, 60, 20):
        with h5py.File(tmp_path / "a.h5", "r+") as file:
            file["x"][row : row + 20] = values[row : row + 20]
    with h5py.File(tmp_path / "a.h5") as file:
        assert largest_error(file["x"][...], values) <= 3e-3
