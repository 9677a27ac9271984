# SPDX-License-Identifier: BSD-3-Clause
"""Stored cd_values of records: malformed ones are refused with a text; those of another dataset keep its fill values.

A dataset gets them by a copy (h5repack, nccopy), so they may be damaged, or of another type.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from reference import records
from reference.library import Library

from .filter_calls import DECODE, Chunk, FilterClass
from .support import (
    ABSOLUTE,
    FILTER_ID,
    HIERARCHICAL_DELTA,
    RELATIVE,
    cd_values,
    frames,
    halves,
    lossless,
    stored,
    words,
)
from .test_records import PACKED, STAMP, compressed, made, user

KIND = np.dtype([("x", "f4"), ("v", "f4", (2,)), ("s", "S3"), ("flag", "u1")])
SETTINGS = (STAMP, *user({"x": words(0.25)})[1:])  # 8 words, the last of them the name
FIVE = 0x40A00000  # a float
GOOD = (*SETTINGS, 1 | 4 << 16, 5, 0, 1 | 0x200 | 1 << 16, FIVE, 1 | 0x800, 1, 2, 0, 3, 4 | 0x200, 7)
HEAD, NAME, COLUMNS, DIM, X, FIELD_V, RANK_V, DIM_V, BYTES, SIZE, FLAG_FILL = 3, 7, 8, 9, 11, 13, 14, 15, 16, 17, 19

IN_FIELD, OF_COLUMNS = "they end within a field, or a name", "the rank is above 32, there are no columns"
NO_BYTES, NO_ARRAY = "a column without bytes, or of 2^32 and more", "an array of rank 0, or above 32"
#: words that are changed, and what is said
MALFORMED: list[tuple[dict[int, int], str]] = [
    ({1: 257}, "more fields than words"),
    ({1: 9}, "a field without a name"),
    ({HEAD: GOOD[HEAD] & 0xFFFF}, "a field without a name"),
    ({HEAD: GOOD[HEAD] & 0xFFFF | 2000 << 16}, IN_FIELD),
    ({NAME: GOOD[NAME] | 1 << 8}, IN_FIELD),
    ({COLUMNS: 33 | 4 << 16}, OF_COLUMNS),
    ({COLUMNS: 1}, OF_COLUMNS),
    ({COLUMNS: GOOD[COLUMNS] | 0x100}, OF_COLUMNS),
    ({COLUMNS: 1 | 0xFFFF << 16}, OF_COLUMNS),
    ({COLUMNS: 1 | 5 << 16}, NO_BYTES),  # beyond the end words are 0
    ({DIM: 0}, "a chunk dimension of 0"),
    ({DIM + 1: 1 << 29}, "chunks of 2^64 bytes or more"),
    ({X: GOOD[X] + (1 << 16)}, "a column's word"),
    ({X: GOOD[X] | 1 << 12}, "a column's word"),
    ({FIELD_V: 99 | 0x800}, "an unknown dtype"),
    ({RANK_V: 0}, NO_ARRAY),
    ({RANK_V: 33}, NO_ARRAY),
    ({DIM_V: 0}, NO_BYTES),
    ({DIM_V: 1 << 30}, NO_BYTES),
    ({BYTES: 0x100}, "bytes with a field's settings"),
    ({BYTES: 1 << 16}, "bytes with a field's settings"),
    ({SIZE: 0}, NO_BYTES),
    ({FLAG_FILL: 256}, "a fill value that does not fit its dtype"),
    ({COLUMNS: 1 | 3 << 16}, "too few words, or too many"),
]


def changed(words_given: tuple[int, ...], change: dict[int, int]) -> tuple[int, ...]:
    return tuple(change.get(at, word) for at, word in enumerate(words_given))


BAD = [(changed(GOOD, change), text) for change, text in MALFORMED]
BAD += [(GOOD[:-1], "too few words, or too many"), ((*GOOD, 0), "too few words, or too many"), ((STAMP,), "too few")]
BAD += [(GOOD[:4], IN_FIELD), (SETTINGS, OF_COLUMNS)]


def create(
    file: h5py.File, dtype: np.dtype[Any], given: tuple[int, ...], fill: Any = None, tracked: bool = False
) -> h5py.Dataset:
    """A dataset "h" into which HDF5 writes no fill value, as netCDF's mode "no fill" makes them; nccopy tracks."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((5,))
    plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    if tracked:
        plist.set_attr_creation_order(h5py.h5p.CRT_ORDER_TRACKED)
    if fill is not None:
        plist.set_fill_value(np.asarray(fill, dtype))
    plist.set_filter(FILTER_ID, 0, given)
    made_of = h5py.h5t.py_create(dtype, logical=True), h5py.h5s.create_simple((12,)), plist
    return h5py.Dataset(h5py.h5d.create(file.id, b"h", *made_of))


def filled(dtype: np.dtype[Any] = KIND, **fields: Any) -> Any:
    """A record of zeros, and these."""
    fill = np.zeros((), dtype)
    for name, value in fields.items():
        fill[name] = value
    return fill


def test_good_ones(tmp_path: Path, filter_class: FilterClass) -> None:
    values = made(KIND, (5,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        given = compressed(user({"x": words(0.25)}))
        one = file.create_dataset("x", data=values, chunks=(5,), fillvalue=filled(x=5, flag=7)[()], **given)
        assert cd_values(one) == GOOD
        assert np.abs(one["x"] - values["x"]).max() <= 0.25
        frame, expected = frames(one)[0], one[...].tobytes()
    chunk = Chunk(frame)
    assert chunk.call(filter_class, DECODE, GOOD) == len(expected)
    assert chunk.content == expected


@pytest.mark.parametrize(("given", "text"), BAD, ids=[f"{text} {n}" for n, (_, text) in enumerate(BAD)])
def test_malformed_ones_make_no_dataset(tmp_path: Path, given: tuple[int, ...], text: str) -> None:
    said = re.escape(f"cd_values of records: {text}")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(ValueError, match=said):
            file.create_dataset("x", (10,), KIND, chunks=(5,), **compressed(given))
        assert list(file) == []


@pytest.mark.parametrize(("given", "text"), BAD, ids=[f"{text} {n}" for n, (_, text) in enumerate(BAD)])
@pytest.mark.parametrize("flags", [0, DECODE], ids=["encode", "decode"])
def test_malformed_ones_leave_chunks_alone(
    filter_class: FilterClass, library: Library, flags: int, given: tuple[int, ...], text: str
) -> None:
    content = made(KIND, (5,)).tobytes()
    chunk = Chunk(content)
    assert chunk.call(filter_class, flags, given) == 0
    assert text in library.c.pyf_last_error().decode()
    assert chunk.content == content


def test_a_codec_that_is_not_known(tmp_path: Path, filter_class: FilterClass, library: Library) -> None:
    """Frames can be read, but none is made."""
    newer = changed(GOOD, {HEAD: GOOD[HEAD] & ~0xFF | 99})
    values = made(KIND, (5,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(ValueError, match=r"field 'x': .*99: unknown codec"):
            file.create_dataset("x", (10,), KIND, chunks=(5,), **compressed(newer))
        frame = frames(file.create_dataset("x", data=values, chunks=(5,), **compressed(GOOD)))[0]
        expected = file["x"][...].tobytes()
    chunk = Chunk(frame)
    assert chunk.call(filter_class, DECODE, newer) == len(expected)
    assert chunk.content == expected
    assert chunk.call(filter_class, 0, newer) == 0
    assert "codec id 99 is unknown" in library.c.pyf_last_error().decode()
    assert chunk.content == expected


def test_a_bound_without_a_mode(tmp_path: Path) -> None:
    given = changed(GOOD, {HEAD: GOOD[HEAD] & ~0xFFFF | 2})
    with h5py.File(tmp_path / "a.h5", "w") as file, pytest.raises(ValueError, match=r"field 'x': a bound of 0\.25 wi"):
        file.create_dataset("x", (10,), KIND, chunks=(5,), **compressed(given))


def test_chunks_of_another_size(filter_class: FilterClass, library: Library) -> None:
    content = bytes(KIND.itemsize * 5 + 1)
    chunk = Chunk(content)
    assert chunk.call(filter_class, 0, GOOD) == 0
    assert "HDF5 gave a chunk of 81 bytes, the stored cd_values say 80" in library.c.pyf_last_error().decode()
    assert chunk.content == content


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (changed(GOOD, {DIM: 1 << 29}), "536870912 records of 16 bytes, at most 7516192768 bytes are allowed"),
        (stored(words(), "f4", [1 << 31]), "the chunk is too large: use smaller chunks"),
    ],
    ids=["records", "values"],
)
def test_chunks_beyond_memory(filter_class: FilterClass, library: Library, given: tuple[int, ...], text: str) -> None:
    """Words of more bytes than a frame may have, even if HDF5 gave as many: neither read nor written."""
    content = bytes(80)
    chunk = Chunk(content)
    assert chunk.call(filter_class, 0, given, used=1 << 33) == 0
    assert text in library.c.pyf_last_error().decode()
    assert chunk.call(filter_class, DECODE, given) == 0
    assert chunk.content == content


def test_more_words_than_a_filter_has(tmp_path: Path) -> None:
    names = {f"f{n:02}": words() for n in range(50)}
    given = (*user(names), *[0] * 3)
    assert len(given) == 256
    dtype = np.dtype([(name, "f4") for name in names])
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(ValueError, match="257 words given, at most 256 allowed"):
            create(file, dtype, (*given, 0))  # h5py itself reads no more
        with pytest.raises(ValueError, match="3 words behind the last field"):
            create(file, dtype, given)
        assert list(file) == []


def test_fill_values_that_have_no_room(tmp_path: Path) -> None:
    """The stored words fit without fill values, and do not with them."""
    dtype = np.dtype([(f"field_{n}", "f4") for n in range(40)])
    given = compressed(user({f"field_{n}": words() for n in range(30)}))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (10,), dtype, chunks=(5,), **given)
        fill = np.full((), 3, dtype)
        with pytest.raises(ValueError, match="too many fields: 266 words of cd_values would be stored, allowed: 256"):
            file.create_dataset("y", (10,), dtype, chunks=(5,), fillvalue=fill[()], **given)
        assert list(file) == ["x"]


def test_chunks_of_32_dimensions(tmp_path: Path) -> None:
    """A field that is an array has more than codecs take: the first ones are taken together, and found again."""
    shape = (2, *(1,) * 30, 3)
    values = made(KIND, shape)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        given = compressed(user({"v": words(0.25)}))
        one = file.create_dataset("x", data=values, chunks=shape, **given)
        dims = [half for dim in shape for half in halves(dim)]
        columns = (32 | 4 << 16, *dims, 1, 1 | 0x800 | 1 << 16, 1, 2, 0, 3, 4)
        assert cd_values(one) == (STAMP, *user({"v": words(0.25)})[1:], *columns)
        again = file.create_dataset("y", data=values, chunks=shape, **compressed(cd_values(one)))
        assert cd_values(again) == cd_values(one)
    with h5py.File(tmp_path / "a.h5") as file:
        for name in "xy":
            got, flat = file[name][...].ravel(), values.ravel()
            assert np.abs(got["v"] - flat["v"]).max() <= 0.25
            assert all(got[field].tobytes() == flat[field].tobytes() for field in ("x", "s", "flag"))


def test_arrays_of_32_dimensions(tmp_path: Path, filter_class: FilterClass) -> None:
    """The first two are taken together, in the dataset's words as well. Words with all of them are understood."""
    array = h5py.h5t.array_create(h5py.h5t.IEEE_F32LE, (2, 3, *(1,) * 30))
    kind = h5py.h5t.create(h5py.h5t.COMPOUND, 24)
    kind.insert(b"v", 0, array)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((5,))
    plist.set_filter(FILTER_ID, 0, user({"v": words(0.25)}))
    values = np.sin(np.arange(30, dtype="f4")) * 9
    with h5py.File(tmp_path / "a.h5", "w") as file:
        one = h5py.Dataset(h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((5,)), plist))
        one.id.write(h5py.h5s.ALL, h5py.h5s.ALL, values, kind)
        settings = STAMP, *user({"v": words(0.25)})[1:], 1 | 1 << 16, 5, 0
        assert cd_values(one) == (*settings, 1 | 0x800 | 1 << 16, 31, 6, *(1,) * 30)
        frame = frames(one)[0]
    for rank in (2, 31, 32):
        chunk = Chunk(frame)
        assert chunk.call(filter_class, DECODE, (*settings, 1 | 0x800 | 1 << 16, rank, 2, 3, *(1,) * (rank - 2))) == 120
        assert np.abs(np.frombuffer(chunk.content, "f4") - values).max() <= 0.25
        assert chunk.call(filter_class, 0, (*settings, 1 | 0x800 | 1 << 16, rank, 2, 3, *(1,) * (rank - 2))) > 0
        assert chunk.call(filter_class, DECODE, (*settings, 1 | 0x800 | 1 << 16, rank, 6, *(1,) * (rank - 1))) == 120


def test_names_of_many_fields(tmp_path: Path) -> None:
    """The text has as many as there is room for, and none of padding."""
    names = [f"name_{n:03}" for n in range(60)]
    dtype = np.dtype([("first", "u1"), *((name, "f4") for name in names)], align=True)
    with h5py.File(tmp_path / "a.h5", "w") as file, pytest.raises(ValueError, match="field 'other'") as said:
        file.create_dataset("x", (10,), dtype, chunks=(5,), **compressed(user({"other": words()})))
    assert "has: first, name_000, name_001, " in str(said.value)
    assert "name_019" in str(said.value)
    assert "name_030" not in str(said.value)


def test_lossless_for_text(tmp_path: Path) -> None:
    """A codec without a bound may be given for bytes, and for a compound that has some; they are stored as ever."""
    values = made(KIND, (5,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        given = compressed(user({"s": lossless(), "x": words(0.25, ABSOLUTE)}))
        one = file.create_dataset("x", data=values, chunks=(5,), **given)
        assert cd_values(one)[-3:] == (0, 3, 4)
        assert one["s"].tobytes() == values["s"].tobytes()


OF_RANGE = {"x": words(1e-3, RELATIVE, HIERARCHICAL_DELTA)}


def test_a_hidden_fill_value(tmp_path: Path) -> None:
    """A bound that follows the range needs the fill value, which netCDF (it tracks attributes) may hide."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(ValueError, match="a relative bound needs the fill value"):
            create(file, KIND, user(OF_RANGE), tracked=True)
        assert list(file) == []
        create(file, KIND, user({"x": words()}), tracked=True)
        del file["h"]
        create(file, KIND, user(OF_RANGE))


def stored_of(tmp_path: Path) -> tuple[int, ...]:
    """The words of a dataset that has fill values and a bound that follows the range."""
    with h5py.File(tmp_path / "from.h5", "w") as file:
        fill = filled(x=5, v=3, flag=7)[()]
        return cd_values(
            file.create_dataset("x", (12,), KIND, chunks=(5,), fillvalue=fill, **compressed(user(OF_RANGE)))
        )


def test_a_hidden_fill_value_is_kept(tmp_path: Path) -> None:
    """The stored words have it. Zeros, with which HDF5 pads then, are left out of the range."""
    given = stored_of(tmp_path)
    values = made(KIND, (12,))
    values["x"] = np.linspace(20000, 20001, 12)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        one = create(file, KIND, given, tracked=True)
        assert cd_values(one) == changed(given, {X: given[X] | 0x400})
        one[...] = values
        file.flush()
        one.id.refresh()
        assert np.abs(one["x"] - values["x"]).max() <= 1.1e-3


@pytest.mark.parametrize(
    ("dtype", "columns"),
    [
        ([("x", "f4"), ("v", "f4", (2,)), ("s", "S4"), ("flag", "u1")], (1 | 0x800, 1, 2, 0, 4, 4)),
        ([("x", "f4"), ("v", "i4", (2,)), ("s", "S3"), ("flag", "u1")], (7 | 0x800, 1, 2, 0, 3, 4)),
        ([("x", "f4"), ("v", "f4", (2,)), ("s", "S3")], (1 | 0x800, 1, 2, 0, 3)),
    ],
    ids=["size", "type", "count"],
)
def test_fill_values_of_another_layout_are_not_kept(tmp_path: Path, dtype: Any, columns: tuple[int, ...]) -> None:
    given = stored_of(tmp_path)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        one = create(file, np.dtype(dtype), given, tracked=True)
        count = len(dtype) << 16
        assert cd_values(one) == (*given[:COLUMNS], 1 | count, 5, 0, 1 | 1 << 16, *columns)


def test_declared_fill_values_that_are_never_written(tmp_path: Path) -> None:
    """Zeros are left out of the range of a field whose fill value is not zero, and of no other field."""
    asked = {name: words(1e-3, RELATIVE, HIERARCHICAL_DELTA) for name in "xy"} | {"t": words()}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        found = cd_values(create(file, PACKED, user(asked), filled(PACKED, x=5, t=5, id=9), tracked=True))
    columns = (9 | 0x200, 9, 0, 1 | 0x200 | 0x400 | 1 << 16, FIVE, 1 | 2 << 16, 2 | 0x200 | 3 << 16)
    assert found[-10:] == (*columns, 0, 0x40140000, 4)


def test_damaged_columns(tmp_path: Path, library: Library) -> None:
    """Behind a right header of the records: the text names the column."""
    values = made(KIND, (5,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        one = file.create_dataset("x", data=values, chunks=(5,), **compressed(GOOD))
        other = file.create_dataset("y", data=made(KIND, (6,)), chunks=(6,), **compressed(GOOD))
        frame, longer = frames(one)[0], frames(other)[0]
    column = records.parse_records(frame).columns[1]
    end = column.start + column.frame_bytes
    text = records.parse_records(frame).columns[2]
    bytes_end = text.start + text.frame_bytes
    assert bytes_end % 8 != 0
    bad = {
        "corrupt chunk: its frame holds 96 bytes in records of 16, the dataset's chunks have 80": longer,
        "column 1: corrupt frame": flipped(frame, column.start + 12),
        "column 1": flipped(frame, column.start),
        "corrupt frame of records: bytes between columns are not zero": flipped(frame, bytes_end),
        "truncated chunk": frame[: end - 1],
        "corrupt chunk": frame + bytes(8),
    }
    for said, content in bad.items():
        with h5py.File(tmp_path / "a.h5", "r+") as file:
            file["x"].id.write_direct_chunk((0,), content)
        with h5py.File(tmp_path / "a.h5") as file, pytest.raises(OSError, match="filter returned failure during read"):
            file["x"][...]
        assert said in library.c.pyf_last_error().decode()


def flipped(frame: bytes, at: int) -> bytes:
    return frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1 :]
