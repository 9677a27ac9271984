# SPDX-License-Identifier: BSD-3-Clause
"""Datasets whose fill value HDF5 does not know (fill time "never"), created from the words of another dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter

from .support import cd_values

CHUNK = (20, 30)
CASES = [
    ("f4", 1e20, "f4", 1e20),
    ("f4", np.nan, "f8", None),  # NaN comes back anyway
    ("f4", -9999.0, "f8", -9999.0),
    ("f8", 1e20, "f4", None),  # no f4 is 1e20
    ("f8", -9999.0, "f4", -9999.0),
    ("f8", -9999.0, "i2", -9999),
    ("f8", -99999.0, "i2", None),
    ("f4", 0.5, "i4", None),
    ("i2", -32768, "i2", -32768),
    ("i2", -32768, "i8", -32768),
    ("i2", -32768, "f4", -32768.0),
    ("u1", 255, "i1", None),
    ("i8", 2**62, "i8", 2**62),
    ("u8", 2**64 - 1, "f8", None),
]


def stored_words(path: Path, dtype: str, fill: Any, codec: pyfilter.Codec) -> tuple[int, ...]:
    """Return the cd_values of a dataset with a fill value."""
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("x", (40, 60), dtype, chunks=CHUNK, fillvalue=fill, **codec)
        return cd_values(dataset)


def create(file: h5py.File, shape: tuple[int, ...], dtype: str, words: tuple[int, ...]) -> h5py.Dataset:
    """Create a dataset as nccopy does."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(CHUNK)
    plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    plist.set_attr_creation_order(h5py.h5p.CRT_ORDER_TRACKED)
    plist.set_filter(pyfilter.FILTER_ID, 0, words)
    space = h5py.h5s.create_simple(shape)
    return h5py.Dataset(h5py.h5d.create(file.id, b"y", h5py.h5t.py_create(np.dtype(dtype)), space, plist))


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(("source", "fill", "dtype", "kept"), CASES)
def test_fill_value_of_the_words_is_kept(
    tmp_path: Path, source: str, fill: Any, dtype: str, kept: Any, order: str
) -> None:
    words = stored_words(tmp_path / "a.h5", source, fill, pyfilter.HierarchicalDelta(relative=1e-3))
    with h5py.File(tmp_path / "b.h5", "w") as file:
        made = cd_values(create(file, (40, 60), order + dtype, words))
    bits = 0 if kept is None else int(np.array([kept], dtype).view(f"u{np.dtype(dtype).itemsize}")[0])
    assert made[7] | made[8] << 32 == bits
    assert bool(made[6] & 0x200) == bool(made[6] & 0x400) == (bits != 0)


@pytest.mark.parametrize("bound", [{"relative": 1e-3}, {"psnr": 60.0}], ids=["relative", "psnr"])
@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4", "i2", "u4", "i8"])
def test_neither_padding_nor_fill_widens_the_range(tmp_path: Path, dtype: str, bound: dict[str, Any]) -> None:
    """A dataset of which each chunk at the edge is padded with zeros, also when it is written in steps."""
    fill, codec = np.dtype(dtype).type(-9999 if dtype[-2] != "u" else 99999999), pyfilter.HierarchicalDelta(**bound)
    words = stored_words(tmp_path / "a.h5", dtype, fill, codec)
    values = np.random.default_rng(0).integers(20000, 29000, (50, 50)).astype(dtype)
    values[10:20, 5:] = fill
    with h5py.File(tmp_path / "b.h5", "w") as file:
        dataset = create(file, values.shape, dtype, words)
        dataset[:, :35] = values[:, :35]
        file.flush()
        dataset[:, 35:] = values[:, 35:]
        read = dataset[...]
    for rows in (slice(0, 20), slice(20, 40), slice(40, 50)):
        for columns in (slice(0, 30), slice(30, 50)):
            part = values[rows, columns].astype(dtype.lstrip(">"))
            report = pyfilter.verify(part, read[rows, columns].astype(part.dtype), codec, fill_value=fill)
            assert report.ok, report
