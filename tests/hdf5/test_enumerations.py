# SPDX-License-Identifier: BSD-3-Clause
"""Enumerations, h5py's bool among them, through HDF5's pipeline: bit for bit, and never with a bound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from .support import FILTER_ID, Header, cd_values, compressed, frames, lossless, stored, words

Tool = Callable[..., str]
EXACT = {"fast": lossless(), "ratio": (1, 2, 0, 0, 0, 1), "hierarchical_delta": words(0.0, codec=3)}
NAMES = {"RED": 0, "GREEN": 1, "BLUE": 42}


@pytest.mark.parametrize("how", EXACT)
@pytest.mark.parametrize("base", ["i1", "u1", "<i2", ">i2", "<u4", ">i8"])
def test_every_base(tmp_path: Path, base: str, how: str) -> None:
    values = np.random.default_rng(0).choice([0, 1, 42], (60, 70)).astype(base)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        kind = h5py.enum_dtype(NAMES, basetype=base)
        file.create_dataset("x", data=values, dtype=kind, chunks=(32, 32), fillvalue=42, **compressed(EXACT[how]))
    with h5py.File(tmp_path / "a.h5") as file:
        big_endian = base[0] == ">"
        assert cd_values(file["x"]) == stored(EXACT[how], base.strip("<>"), (32, 32), big_endian, 42)
        assert h5py.check_enum_dtype(file["x"].dtype) == NAMES
        assert np.array_equal(file["x"][...], values)
        assert {Header(frame).big_endian for frame in frames(file["x"])} == {big_endian}


@pytest.mark.parametrize("how", EXACT)
def test_bool(tmp_path: Path, tool: Tool, how: str) -> None:
    values = np.random.default_rng(0).random((60, 70)) < 0.1
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(32, 32), **compressed(EXACT[how]))
        file["x"][3:5, 2] = values[3:5, 2] = True
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["x"].dtype == np.bool_
        assert np.array_equal(file["x"][...], values)
        assert frames(file["x"])
    text = tool("h5dump", "-d", "x", "-y", "-w", "1", tmp_path / "a.h5").partition("DATA {")[2]
    assert [
        word == "TRUE" for word in text.replace(",", " ").split() if word in ("TRUE", "FALSE")
    ] == values.ravel().tolist()
    given = ",".join(map(str, lossless()))
    tool("h5repack", "-f", f"x:UD={FILTER_ID},0,3,{given}", tmp_path / "a.h5", tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as file:
        assert np.array_equal(file["x"][...], values)


@pytest.mark.parametrize(
    "given", [words(1.0, codec=3), words(0.5, codec=7), words(1e-3, 2, codec=3), words(60.0, 4, 3)]
)
def test_a_bound_is_refused(tmp_path: Path, given: Any) -> None:
    for kind in ("?", h5py.enum_dtype(NAMES, basetype="i4")):
        with (
            h5py.File(tmp_path / "a.h5", "w") as file,
            pytest.raises(ValueError, match=r"of an enumeration .* allowed: codec lossless, or an absolute bound of 0"),
        ):
            file.create_dataset("x", shape=(10, 10), dtype=kind, chunks=(5, 5), **compressed(given))


def test_other_codecs_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file, pytest.raises(ValueError, match="of an enumeration"):
        file.create_dataset("x", shape=(10, 10), dtype="?", chunks=(5, 5), **compressed(words()))
