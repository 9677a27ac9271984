# SPDX-License-Identifier: BSD-3-Clause
"""What can_apply and set_local refuse, with the text that the caller's HDF5 error stack then carries."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from ctypes import c_int, c_int64, c_size_t, c_uint, c_void_p
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from reference.library import Library

from .support import FILTER_ID, STAMP, compressed, double, field, loaded, lossless, stored, words

NEWER = r"layout version '3', pyfilter .* knows '1' and '2': a newer pyfilter is needed"
KNOWN = r"1 \(cuszp2\), 2 \(lossless\), 3 \(hierarchical_delta\), 4 \(lorenzo\), 5 \(particles\), 6 \(progressive\)"
DELTA, LORENZO, PROGRESSIVE = 3, 4, 6
BAD_WORDS: list[tuple[Sequence[int], str]] = [
    ((), "0 words given, at least 3 needed"),
    ((1, 1), "2 words given, at least 3 needed"),
    ((3, 1, 1, *double(1.0)), r"cd_values\[0\] is 3: unknown layout version, this pyfilter \(.*\) knows 1"),
    ((52907, 1, 1), r"cd_values\[0\] is 52907: unknown layout version"),
    ((1, 0, 1, *double(1.0)), rf"cd_values\[1\] is 0: unknown codec, .* knows {KNOWN}"),
    ((1, 9, 1, *double(1.0)), rf"cd_values\[1\] is 9: unknown codec, .* knows {KNOWN}"),
    ((1, 257, 1, *double(1.0)), rf"cd_values\[1\] is 257: unknown codec, .* knows {KNOWN}"),
    ((1, 1, 9, *double(1.0)), r"cd_values\[2\] is 9: unknown bound mode, allowed: 0 .*1 .*2 .*4"),
    ((1, 1, 258, *double(1.0)), r"cd_values\[2\] is 258: unknown bound mode"),
    ((1, 1, 1), "3 words given, but the bound is a double in words 3 and 4"),
    ((1, 1, 1, 0), "4 words given, but the bound"),
    ((1, 2, 0, 0), "4 words given, but the bound"),
    ((*words(), 0), "7 words given, at most 6 allowed"),
    ((*words(), *(0,) * 20), "26 words given, at most 6 allowed"),
    (words(0.0), r"the bound in cd_values\[3\] and \[4\] is 0, must be finite and > 0.*0\.001d"),
    (words(-1e-3), r"is -0\.001, must be finite and > 0"),
    (words(np.inf), "is inf, must be finite and > 0"),
    (words(np.nan), "is nan, must be finite and > 0"),
    (words(mode=0), "cuszp2 does not take bound mode 0"),
    ((1, 2, 1, *double(1.0)), "lossless does not take bound mode 1"),
    ((1, 2, 0, *double(1.0)), "lossless takes no bound"),
    (words(parameters=3), r"cuszp2: mode 3, allowed: 0 \(outlier\), 1 \(plain\), 2 \(fixed\)"),
    (words(parameters=0x400), "cuszp2: block_dims 4, allowed: 1, 2, 3"),
    (words(parameters=0x10000), "parameter byte 2 is 1, must be 0"),
    ((1, 2, 0, 0, 0, 2), r"lossless: effort 2, allowed: 0 \(fast\), 1 \(ratio\)"),
    ((1, 2, 0, 0, 0, 0x201), "lossless: block_dims 2, with effort 1 .ratio. there are no blocks: must be 0"),
    (words(mode=0, codec=DELTA), "hierarchical_delta does not take bound mode 0"),
    (words(codec=DELTA, parameters=6), r"hierarchical_delta: predictor 6, allowed: 0 \(auto\), .*5 \(fast\)"),
    (words(codec=DELTA, parameters=0x300), r"hierarchical_delta: outliers 3, allowed: 0 \(auto\), 1 \(on\), 2 \(off\)"),
    (words(codec=DELTA, parameters=0x10000), "hierarchical_delta: parameter byte 2 is 1, must be 0"),
    (words(codec=LORENZO, parameters=5), r"lorenzo: predictor 5, allowed: 0 \(auto\), .*4 \(columns\)"),
    (words(codec=LORENZO, parameters=0x300), r"lorenzo: coder 3, allowed: 0 \(rans\), 2 \(huffman\)"),
    (words(codec=LORENZO, parameters=0x30000), r"lorenzo: gap_array 3, allowed: 0 \(true\), 2 \(false\)"),
    (words(codec=LORENZO, parameters=0x20000), r"lorenzo: gap_array 2 \(false\) goes with coder 2 \(huffman\) only"),
    (words(codec=LORENZO, parameters=0x1000000), "lorenzo: parameter byte 3 is 1, must be 0"),
    (words(codec=PROGRESSIVE, parameters=1), r"progressive: errors 1, allowed: 0 \(measured\), 2 \(bounds\)"),
    (words(codec=PROGRESSIVE, parameters=0x100), "progressive: parameter byte 1 is 1, must be 0"),
    (words(mode=3, codec=PROGRESSIVE), "progressive does not take bound mode 3"),
    (words(codec=DELTA, parameters=3), "predictor 3 needs data of rank 3 or more, this has rank 2"),
    (words(parameters=0x300), "block_dims 3 needs data of at least that rank, this has rank 2"),
    ((STAMP + (2 << 24), *words()[1:], 1, 0, 0, 0), NEWER),
    ((STAMP, *words()[1:]), "6 words for a chunk of rank 0, must be 10"),
    ((*stored(words(), "f4", (5, 5)), 0), "15 words for a chunk of rank 2, must be 10"),
    (stored(words(), "f4", (5, 0)), "chunk dimension 1 is 0"),
    (stored(words(), "f4", (1 << 40, 1 << 40)), "chunk dimension 1 is 1099511627776, .* in a chunk below 2.64 bytes"),
    ((STAMP, *words()[1:], 77, 0, 0, 0), "word 6 is 0x4d, not a dtype"),
    ((STAMP, *words()[1:], 1 | 1 << 12, 0, 0, 0), "word 6 is 0x1001, not a dtype"),
    ((STAMP, *words()[1:], 1 | 1 << 9, 0, 1, 0), "fill value 0x100000000 does not fit the dtype"),
    ((STAMP, *words()[1:], 1, 5, 0, 0), "fill value 0x5 does not fit the dtype"),
    (stored(words(0.0), "f4", (5, 5)), "must be finite and > 0"),
    ((STAMP, 9, *words()[2:], 1, 0, 0, 0), "unknown codec"),
]


def create(path: Path, values: Sequence[int], **keywords: Any) -> None:
    given = {"shape": (10, 10), "chunks": (5, 5), "dtype": "f4", **compressed(values), **keywords}
    with h5py.File(path, "w") as file:
        file.create_dataset("x", **given)


@pytest.mark.parametrize(("values", "text"), BAD_WORDS)
def test_cd_values(tmp_path: Path, values: Sequence[int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        create(tmp_path / "a.h5", values)


TYPES = [
    ("i4", words(), "cuszp2 cannot compress dtype i32, allowed: f32, f64"),
    ("u8", words(), "cuszp2 cannot compress dtype u64, allowed: f32, f64"),
    ("i2", words(mode=3, codec=DELTA, bound=0.1), "relative bound needs floating-point values, these are i16"),
    ("f4", words(0.0, codec=DELTA), "the bound is 0, must be finite and > 0"),
    ("?", words(codec=DELTA), "of an enumeration"),
    ("f2", words(codec=6), "progressive cannot compress dtype f16, allowed: f32, f64"),
    (np.longdouble, words(), r"\(float, 16 bytes a value\), allowed: f32, f64, c64, c128"),
    (np.longdouble, lossless(), r"\(float, 16 bytes a value\), allowed: f32, f64, i8, .* f16, bf16"),
    (np.clongdouble, lossless(), r"\(compound, 32 bytes a value\), .* two equal floats of 32 or 64 bits"),
    ("S5", lossless(), r"\(string, 5 bytes a value\)"),
    (np.dtype([("a", "f4"), ("b", "f8")]), lossless(), r"\(compound, 12 bytes a value\), .* two equal floats"),
    (np.dtype([("a", "i4"), ("b", "i4")]), lossless(), r"\(compound, 8 bytes a value\), .* two equal floats"),
    (np.dtype([("a", "f4"), ("b", ">f4")]), lossless(), r"\(compound, 8 bytes a value\), .* two equal floats"),
    (np.dtype([("a", "f4"), ("b", "f4"), ("c", "f4")]), lossless(), r"\(compound, 12 bytes a value\)"),
    (np.dtype([("a", "f4")]), lossless(), r"\(compound, 4 bytes a value\)"),
    (
        np.dtype({"names": ["a", "b"], "formats": ["f4", "f4"], "offsets": [0, 8], "itemsize": 12}),
        lossless(),
        r"\(compound, 12 bytes a value\)",
    ),
    ("c8", words(codec=PROGRESSIVE), "progressive cannot compress dtype c64, allowed: f32, f64"),
    (np.dtype("V3"), lossless(), r"\(opaque, 3 bytes a value\)"),
    (np.dtype(("f4", (3,))), words(), r"\(array, 12 bytes a value\)"),
]


@pytest.mark.parametrize(("dtype", "values", "text"), TYPES)
def test_types(tmp_path: Path, dtype: Any, values: Sequence[int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        create(tmp_path / "a.h5", values, dtype=dtype)


@pytest.mark.parametrize("kind", ["NATIVE_LDOUBLE", "STD_B32LE", "C_S1", "STD_REF_OBJ", "UNIX_D32LE"])
def test_types_that_only_hdf5_has(tmp_path: Path, kind: str) -> None:
    plist = pipeline((FILTER_ID, lossless()))
    with h5py.File(tmp_path / "a.h5", "w") as file, pytest.raises(ValueError, match="cannot compress the dataset's"):
        h5py.h5d.create(file.id, b"x", getattr(h5py.h5t, kind), h5py.h5s.create_simple((10,)), plist)


def test_odd_precision_is_not_taken_for_a_standard_type(tmp_path: Path) -> None:
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_fields(30, 22, 8, 0, 22)
    kind.set_precision(31)
    plist = pipeline((FILTER_ID, words()))
    with h5py.File(tmp_path / "a.h5", "w") as file, pytest.raises(ValueError, match=r"\(float, 4 bytes a value\)"):
        h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((10,)), plist)


def pipeline(*filters: tuple[int, Sequence[int]]) -> Any:
    """A property list with these filters in this order."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((10,))
    for number, values in filters:
        plist.set_filter(number, h5py.h5z.FLAG_OPTIONAL, tuple(values))
    return plist


ORDERS = [
    ((2, (4,)), r"filter 'shuffle' \(id 2\) stands before pyfilter: .* put it before 'shuffle'"),
    ((1, (4,)), r"filter 'deflate' \(id 1\) stands before pyfilter"),
    ((3, ()), r"filter 'fletcher32' \(id 3\) stands before pyfilter"),
    ((6, (0, 2)), r"filter 'scaleoffset' \(id 6\) stands before pyfilter"),
    ((FILTER_ID, words()), "pyfilter is in the filter pipeline twice .*, allowed: once"),
]


@pytest.mark.parametrize(("before", "text"), ORDERS)
def test_only_first_in_the_pipeline(tmp_path: Path, before: tuple[int, Sequence[int]], text: str) -> None:
    plist = pipeline(before, (FILTER_ID, words()))
    with h5py.File(tmp_path / "a.h5", "w") as file, pytest.raises(ValueError, match=text):
        h5py.h5d.create(file.id, b"x", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((10,)), plist)


def test_h5py_shuffle(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'shuffle' .* stands before pyfilter"):
        create(tmp_path / "a.h5", words(), shuffle=True)


def test_other_compressor_before_ours(tmp_path: Path) -> None:
    hdf5plugin = pytest.importorskip("hdf5plugin")
    plist = pipeline((hdf5plugin.Zstd.filter_id, ()), (FILTER_ID, words()))
    with h5py.File(tmp_path / "a.h5", "w") as file, pytest.raises(ValueError, match=r"\(id 32015\) stands before"):
        h5py.h5d.create(file.id, b"x", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((10,)), plist)


def test_relative_bound_where_netcdf_may_hide_the_fill_value(tmp_path: Path) -> None:
    if h5py.version.version_tuple < (3, 12):
        pytest.skip("this h5py has no fill_time")
    tracked = {"fill_time": "never", "track_order": True}  # as netCDF-C creates variables in its mode "no fill"
    for mode, bound in ((2, 0.001), (4, 60.0)):
        with pytest.raises(ValueError, match="a relative bound needs the fill value, which nccopy"):
            create(tmp_path / "a.h5", words(bound, mode=mode), **tracked)
        create(tmp_path / "a.h5", words(bound, mode=mode), **tracked, fillvalue=-1.0)
        create(tmp_path / "a.h5", words(bound, mode=mode), fill_time="never")
    create(tmp_path / "a.h5", words(mode=1), **tracked)


def test_groups(tmp_path: Path) -> None:
    """A group's links can be filtered too, not by us. h5py has no call for it, its HDF5 has."""
    hdf5 = ctypes.CDLL(loaded("h5py.libs/libhdf5-"))
    values = words()
    plist = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
    hdf5.H5Pset_filter.argtypes = [c_int64, c_int, c_uint, c_size_t, c_void_p]
    assert hdf5.H5Pset_filter(plist.id, FILTER_ID, 1, len(values), (c_uint * len(values))(*values)) >= 0
    with h5py.File(tmp_path / "a.h5", "w") as file:
        group = h5py.Group(h5py.h5g.create(file.id, b"g", gcpl=plist))
        for link in range(8):
            group[str(link)] = h5py.SoftLink("/")
        with pytest.raises(OSError, match="groups cannot be compressed, only datasets"):
            group["8"] = h5py.SoftLink("/")  # from here on HDF5 keeps links in a heap, which it would filter


def test_a_refusal_leaves_the_file_usable(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for _ in range(3):
            with pytest.raises(ValueError, match="pyfilter"):
                file.create_dataset("x", data=field((10, 10)), chunks=(5, 5), **compressed(words(-1)))
        file.create_dataset("x", data=field((10, 10)), chunks=(5, 5), **compressed())
    with h5py.File(tmp_path / "a.h5") as file:
        assert list(file) == ["x"]


def test_words_of_a_newer_layout_in_a_file(tmp_path: Path, library: Library) -> None:
    """Neither read nor, as HDF5 asks can_apply again then, written. The file is patched: no library writes them yet."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=field((10, 10)), chunks=(5, 5), **compressed())
    content = path.read_bytes()
    assert content.count(b"PYF1") == 1
    path.write_bytes(content.replace(b"PYF1", b"PYF3"))
    with h5py.File(path, "r+") as file:
        with pytest.raises(
            OSError, match=r"filter returned failure|a newer pyfilter is needed"
        ):  # HDF5 2 drops the text
            file["x"][...]
        assert re.search(NEWER, library.c.pyf_last_error().decode())
        with pytest.raises(OSError, match=NEWER):
            file["x"][0, 0] = 1
