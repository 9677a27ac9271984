# SPDX-License-Identifier: BSD-3-Clause
"""Floats of 16 bits through HDF5's pipeline: binary16 and bfloat16, bit for bit and with a bound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

from .support import FILTER_ID, LORENZO, Header, cd_values, compressed, frames, lossless, stored, words

Array = NDArray[Any]
Tool = Callable[..., str]
F16, BF16 = 14, 15
EFFORTS = {"fast": (*lossless(), 0, 0, 0), "ratio": (*lossless(), 0, 0, 1)}


def every_pattern() -> Array:
    """All 65536, in an order that is none of theirs."""
    return np.random.default_rng(0).permutation(1 << 16).astype("u2").reshape(256, 256)


def bfloat16(order: str) -> Any:
    """As programs make it where HDF5 has no name for it."""
    kind = (h5py.h5t.IEEE_F32LE if order == "<" else h5py.h5t.IEEE_F32BE).copy()
    kind.set_fields(15, 7, 8, 0, 7)
    kind.set_size(2)
    kind.set_ebias(127)
    return kind


def create(file: h5py.File, kind: Any, settings: tuple[int, ...]) -> Any:
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((100, 100))
    dcpl.set_filter(FILTER_ID, h5py.h5z.FLAG_MANDATORY, settings)
    return h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((256, 256)), dcpl)


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("code", [F16, BF16])
def test_every_pattern(tmp_path: Path, code: int, order: str, effort: str) -> None:
    kind = bfloat16(order) if code == BF16 else h5py.h5t.py_create(np.dtype(f"{order}f2"))
    patterns = every_pattern()
    patterns[:, 128:] = np.sort(patterns[:, 128:], axis=1)
    values = patterns.astype(f"{order}u2")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        create(file, kind, EFFORTS[effort]).write(h5py.h5s.ALL, h5py.h5s.ALL, values, mtype=kind)
    with h5py.File(tmp_path / "a.h5") as file:
        words_there = list(stored(EFFORTS[effort], "f4", (100, 100), order == ">"))
        words_there[6] += code - 1
        assert cd_values(file["x"]) == tuple(words_there)
        found = np.empty_like(values)
        file["x"].id.read(h5py.h5s.ALL, h5py.h5s.ALL, found, mtype=kind)
        assert found.tobytes() == values.tobytes()
        assert {(h.frame[4], h.frame[9], h.big_endian) for h in map(Header, frames(file["x"]))} == {
            (8, code, order == ">")
        }


def test_smooth_values_are_small(tmp_path: Path) -> None:
    """Patterns in the order of the values: differences across zero are small too."""
    values = np.linspace(-3, 3, 65536).astype("f2").reshape(256, 256)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for effort, given in EFFORTS.items():
            file.create_dataset(effort, data=values, chunks=(256, 256), **compressed(given))
    with h5py.File(tmp_path / "a.h5") as file:
        for effort in EFFORTS:
            assert file[effort][...].tobytes() == values.tobytes()
            assert file[effort].id.get_storage_size() < values.nbytes / 4


@pytest.mark.parametrize("codec", [1, 3, 4, 7])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("code", [F16, BF16])
def test_a_bound(tmp_path: Path, code: int, order: str, codec: int) -> None:
    """Written in four parts, each of which cuts chunks; a row of NaN with their payload."""
    kind = bfloat16(order) if code == BF16 else h5py.h5t.py_create(np.dtype(f"{order}f2"))
    wide = np.sin(np.linspace(0, 60, 65536)).reshape(256, 256).astype("f4")
    wide += 0.01 * np.random.default_rng(0).standard_normal(wide.shape).astype("f4")
    patterns = wide.astype("f2").view("u2") if code == F16 else (wide.view("u4") >> 16).astype("u2")
    patterns[17] = 0x7FC1 if code == BF16 else 0x7E03
    values = patterns.astype(f"{order}u2")
    with h5py.File(tmp_path / "a.h5", "w", rdcc_nbytes=0) as file:
        dataset = create(file, kind, words(0.05, codec=codec))
        for first in range(0, 256, 64):
            target = h5py.h5s.create_simple((256, 256))
            target.select_hyperslab((first, 0), (64, 256))
            part = np.ascontiguousarray(values[first : first + 64])
            dataset.write(h5py.h5s.create_simple((64, 256)), target, part, mtype=kind)
    with h5py.File(tmp_path / "a.h5") as file:
        found = np.empty_like(values)
        file["x"].id.read(h5py.h5s.ALL, h5py.h5s.ALL, found, mtype=kind)
        assert file["x"].id.get_storage_size() < values.nbytes / 3
        headers = [Header(frame) for frame in frames(file["x"])]
        assert {(h.frame[4], h.frame[9], h.big_endian) for h in headers} == {
            (10 if h.frame[8] == LORENZO else 8, code, order == ">") for h in headers
        }
    x, y = (numbers(item.astype("u2"), code) for item in (values, found))
    assert found[17].tobytes() == values[17].tobytes()
    assert np.abs(np.delete(x, 17, 0) - np.delete(y, 17, 0)).max() <= 0.05


def numbers(patterns: Array, code: int) -> Array:
    """As float64."""
    return (patterns.view("f2") if code == F16 else (patterns.astype("u4") << 16).view("f4")).astype("f8")


@pytest.mark.parametrize("codec", [5, 6])
def test_a_bound_is_refused(tmp_path: Path, codec: int) -> None:
    text = "cannot compress dtype f16, allowed: f32, f64"
    with h5py.File(tmp_path / "a.h5", "w") as file, pytest.raises(ValueError, match=text):
        file.create_dataset("x", shape=(8, 8), dtype="f2", chunks=(4, 4), **compressed(words(codec=codec)))


@pytest.mark.parametrize("change", ["bias", "fields", "size"])
def test_other_floats_are_refused(tmp_path: Path, change: str) -> None:
    kind = bfloat16("<")
    if change == "bias":
        kind.set_ebias(100)
    elif change == "fields":
        kind.set_fields(15, 9, 6, 0, 9)
    else:
        kind = h5py.h5t.IEEE_F64LE.copy()
        kind.set_fields(23, 16, 7, 0, 16)
        kind.set_size(3)
        kind.set_ebias(63)
    with h5py.File(tmp_path / "a.h5", "w") as file, pytest.raises(ValueError, match=r"\(float, [23] bytes a value\)"):
        create(file, kind, EFFORTS["fast"])


def test_tools(tmp_path: Path, tool: Tool) -> None:
    values = np.linspace(-3, 3, 6000).astype("f2").reshape(60, 100)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(32, 64), **compressed(EFFORTS["ratio"]))
    text = tool("h5dump", "-d", "x", "-y", "-w", "1", "-m", "%.9g", tmp_path / "a.h5").partition("DATA {")[2]
    numbers = text.replace(",", " ").replace("}", " ").split()
    assert np.array_equal(np.array(numbers, "f4").astype("f2"), values.ravel())
    tool("h5repack", "-l", "x:CHUNK=20x20", tmp_path / "a.h5", tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["x"][...].tobytes() == values.tobytes()
        assert frames(file["x"])
