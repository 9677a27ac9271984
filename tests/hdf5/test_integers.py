# SPDX-License-Identifier: BSD-3-Clause
"""Integers with a bound through HDF5's pipeline: every type and byte order, what is stored, fill values, tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

from .support import FILTER_ID, RELATIVE, Header, cd_values, compressed, frames, stored, words

Array = NDArray[Any]
Tool = Callable[..., str]
DELTA = 3
DTYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")


def counts(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    """A walk that stays between 0 and 110."""
    steps = np.random.default_rng(seed).integers(-2, 3, int(np.prod(shape)))
    return np.asarray(np.abs(np.cumsum(steps) % 220 - 110).reshape(shape)).astype(dtype)


def largest(a: Array, b: Array) -> int:
    """Largest error, in Python's integers."""
    return max(abs(int(x) - int(y)) for x, y in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type(tmp_path: Path, dtype: str, order: str) -> None:
    values = counts((50, 70), dtype)
    values[10:30, 20:50] = 111
    user, exact = words(2.0, codec=DELTA), words(0.0, codec=DELTA)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, given in (("bound", user), ("exact", exact)):
            keywords = {**compressed(given), "chunks": (20, 30), "fillvalue": 111}
            file.create_dataset(name, data=values.astype(order + dtype), dtype=order + dtype, **keywords)
    with h5py.File(tmp_path / "a.h5") as file:
        big_endian = order == ">" and dtype[1] != "1"
        assert cd_values(file["bound"]) == stored(user, dtype, (20, 30), big_endian, 111)
        found = file["bound"][...]
        assert found.dtype == np.dtype(order + dtype)
        assert 0 < largest(values, found) <= 2
        assert np.array_equal(found == 111, values == 111)
        assert np.array_equal(file["exact"][...], values)
        headers = [Header(frame) for frame in frames(file["bound"])]
        assert {(h.codec, h.big_endian) for h in headers} == {(DELTA, big_endian)}
        assert max(h.bound for h in headers) == 2


def test_rewriting_adds_no_error(tmp_path: Path) -> None:
    values = counts((60, 60), "i2")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(40, 40), **compressed(words(3.0, codec=DELTA)))
    for row in range(0, 60, 7):
        with h5py.File(tmp_path / "a.h5", "a") as file:
            file["x"][row] = values[row]
    with h5py.File(tmp_path / "a.h5") as file:
        assert largest(values, file["x"][...]) <= 3


def test_a_relative_bound_leaves_padding_out(tmp_path: Path) -> None:
    """A chunk's range is that of its values; chunks at the edge are padded with the fill value."""
    values = counts((25, 25), "i4") + 1_000_000
    for fill in (None, -7):
        with h5py.File(tmp_path / "a.h5", "w") as file:
            keywords = {**compressed(words(0.05, RELATIVE, codec=DELTA)), "chunks": (20, 20), "fillvalue": fill}
            file.create_dataset("x", data=values, **keywords)
        with h5py.File(tmp_path / "a.h5") as file:
            spread = int(values.max() - values.min())
            assert all(Header(frame).bound <= 0.05 * spread for frame in frames(file["x"]))
            assert largest(values, file["x"][...]) <= 0.05 * spread


def test_bounds_beyond_doubles_and_wide_values(tmp_path: Path) -> None:
    """Identifiers of 64 bits: their low bits are what a bound gives away."""
    values = np.random.default_rng(3).integers(-(2**63), 2**63, 4000)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(1000,), **compressed(words(2.0**53 + 2, codec=DELTA)))
    with h5py.File(tmp_path / "a.h5") as file:
        assert largest(values, file["x"][...]) <= 2**53 + 2
        assert file["x"].id.get_storage_size() < values.nbytes / 4


def test_h5repack(tmp_path: Path, tool: Tool) -> None:
    values = counts((40, 30), "u1")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("image", data=values, chunks=(20, 30))
    given = ",".join(map(str, words(1.0, codec=DELTA)))
    tool("h5repack", "-f", f"image:UD={FILTER_ID},0,6,{given}", tmp_path / "a.h5", tmp_path / "b.h5")
    tool("h5repack", "-l", "image:CHUNK=15x10", tmp_path / "b.h5", tmp_path / "c.h5")
    for name, chunk in (("b.h5", (20, 30)), ("c.h5", (15, 10))):
        with h5py.File(tmp_path / name) as file:
            assert cd_values(file["image"]) == stored(words(1.0, codec=DELTA), "u1", chunk)
            assert largest(values, file["image"][...]) <= 1
            assert frames(file["image"])
