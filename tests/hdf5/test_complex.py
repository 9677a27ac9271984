# SPDX-License-Identifier: BSD-3-Clause
"""Complex numbers through HDF5's pipeline: compound types and HDF5 2's own class, stored words, fill values, tools."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

from .support import (
    CUSZP2,
    FILTER_ID,
    LORENZO,
    RELATIVE,
    Header,
    cd_values,
    compressed,
    field,
    frames,
    loaded,
    lossless,
    stored,
    words,
)

Array = NDArray[Any]
Tool = Callable[..., str]
CODECS = (1, 3, 4, 7)
FILLS = (0, -999, -999 - 999j, 3 - 7j, complex(np.nan, 0), complex(np.nan, 5))


def waves(dtype: str) -> Array:
    values = np.empty((50, 70), dtype)
    values.real, values.imag = field((50, 70)), field((50, 70), seed=1)
    return values


def largest(a: Array, b: Array) -> float:
    """Largest error of a part."""
    return float(max(np.abs(a.real - b.real).max(), np.abs(a.imag - b.imag).max()))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("dtype", ["<c8", ">c8", "<c16", ">c16"])
def test_every_type(tmp_path: Path, dtype: str, codec: int) -> None:
    values = waves(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, given in (("bound", words(codec=codec)), ("exact", lossless())):
            file.create_dataset(name, data=values, chunks=(20, 30), **compressed(given))
    with h5py.File(tmp_path / "a.h5") as file:
        big_endian = dtype[0] == ">"
        assert cd_values(file["bound"]) == (*stored(words(codec=codec), dtype[1:], (20, 30), big_endian), 0, 0)
        found = file["bound"][...]
        assert found.dtype == np.dtype(dtype)
        assert 0 < largest(values, found) <= 1e-3
        assert file["exact"][...].tobytes() == values.tobytes()
        headers = [Header(frame) for frame in frames(file["bound"])]
        assert {(h.frame[4], h.frame[9], h.big_endian) for h in headers} == {
            (10 if codec == LORENZO else 8, {"8": 11, "6": 12}[dtype[-1]], big_endian)
        }


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("dtype", ["<c8", ">c16"])
def test_fill_values(tmp_path: Path, dtype: str, fill: complex) -> None:
    """They come back bit for bit, and those that pad edge chunks do not widen the range."""
    values = waves(dtype)
    values[10:30, 20:50] = fill
    given = {"chunks": (20, 30), "fillvalue": np.array(fill, dtype)[()]}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, **given, **compressed(words(1e-2, RELATIVE)))
        alone = file.create_dataset("edge", shape=(50, 70), dtype=dtype, **given, **compressed(words(1e-2, RELATIVE)))
        alone[40:, 60:] = values[40:, 60:]
    with h5py.File(tmp_path / "a.h5") as file:
        found = file["x"][...]
        assert found[10:30, 20:50].tobytes() == values[10:30, 20:50].tobytes()
        rest = np.ones(values.shape, np.bool_)
        rest[10:30, 20:50] = False
        parts = np.concatenate([values[rest].real, values[rest].imag])
        assert largest(values[rest], found[rest]) <= 1e-2 * (parts.max() - parts.min())
        corner, edge = values[40:, 60:], file["edge"][40:, 60:]
        spread = np.ptp(np.concatenate([corner.real.ravel(), corner.imag.ravel()]))
        assert largest(corner, edge) <= 1e-2 * spread


def test_any_two_equal_floats(tmp_path: Path) -> None:
    """The names of the members do not matter."""
    pairs = np.zeros(1000, [("lat", "<f4"), ("lon", "<f4")])
    pairs["lat"], pairs["lon"] = np.linspace(-90, 90, 1000), np.linspace(0, 360, 1000)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=pairs, chunks=(1000,), **compressed(words(0.5)))
    with h5py.File(tmp_path / "a.h5") as file:
        found = file["x"][...]
        assert found.dtype == pairs.dtype
        for name in ("lat", "lon"):
            assert 0 < np.abs(found[name] - pairs[name]).max() <= 0.5
        assert file["x"].id.get_storage_size() < pairs.nbytes / 4


@pytest.mark.parametrize("codec", CODECS)
def test_written_in_parts(tmp_path: Path, codec: int) -> None:
    """A bound of the range, rows appended with a growing one."""
    rng = np.random.default_rng(2)
    values = np.zeros((30, 40), "c8")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset(
            "x", shape=values.shape, dtype="c8", chunks=(30, 40), **compressed(words(1e-3, RELATIVE, codec))
        )
    for row in range(30):
        values[row] = (row + 1) * (rng.standard_normal(40) + 1j * rng.standard_normal(40))
        with h5py.File(tmp_path / "a.h5", "r+") as file:
            file["x"][row] = values[row]
    parts = np.concatenate([values.real.ravel(), values.imag.ravel()])
    with h5py.File(tmp_path / "a.h5") as file:
        assert largest(values, file["x"][...]) <= 1e-3 * (parts.max() - parts.min())


@pytest.mark.skipif(h5py.version.hdf5_version_tuple < (2, 0, 0), reason="HDF5 2.0 brought the class of complex numbers")
def test_the_class_of_hdf5_2(tmp_path: Path) -> None:
    create = ctypes.CDLL(loaded("h5py.libs/libhdf5-")).H5Tcomplex_create
    create.restype, create.argtypes = ctypes.c_int64, (ctypes.c_int64,)
    for base, dtype in ((h5py.h5t.IEEE_F32LE, "<c8"), (h5py.h5t.IEEE_F64BE, ">c16")):
        kind = h5py.h5t.TypeID(create(base.id))
        assert kind.get_class() == 11
        values = waves(dtype)
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((20, 30))
        dcpl.set_filter(FILTER_ID, h5py.h5z.FLAG_MANDATORY, words(codec=CUSZP2))
        with h5py.File(tmp_path / "a.h5", "w") as file:
            space = h5py.h5s.create_simple(values.shape)
            made = h5py.h5d.create(file.id, b"x", kind, space, dcpl)
            made.write(h5py.h5s.ALL, h5py.h5s.ALL, values, mtype=kind)
        with h5py.File(tmp_path / "a.h5") as file:
            found = np.empty_like(values)
            file["x"].id.read(h5py.h5s.ALL, h5py.h5s.ALL, found, mtype=kind)
            assert 0 < largest(values, found) <= 1e-3
            assert {Header(frame).frame[9] for frame in frames(file["x"])} == {{"<c8": 11, ">c16": 12}[dtype]}


def test_tools(tmp_path: Path, tool: Tool) -> None:
    """h5dump prints them, h5repack reads and writes them."""
    values = waves("c8")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(20, 30))
    given = ",".join(map(str, words()))
    tool("h5repack", "-f", f"x:UD={FILTER_ID},0,6,{given}", tmp_path / "a.h5", tmp_path / "b.h5")
    tool("h5repack", "-l", "x:CHUNK=15x10", tmp_path / "b.h5", tmp_path / "c.h5")
    for name, chunk in (("b.h5", (20, 30)), ("c.h5", (15, 10))):
        with h5py.File(tmp_path / name) as file:
            assert cd_values(file["x"]) == (*stored(words(), "c8", chunk), 0, 0)
            found = file["x"][...]
            assert 0 < largest(values, found) <= 1e-3
            assert frames(file["x"])
        text = tool("h5dump", "-d", "x", "-y", "-w", "1", "-m", "%.9g", tmp_path / name).partition("DATA {")[2]
        numbers = np.array(re.findall(r"-?\d[\d.e+-]*", text), "f4")
        assert np.array_equal(numbers, found.reshape(-1).view("f4"))
