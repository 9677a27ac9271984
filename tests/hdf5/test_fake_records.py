# SPDX-License-Identifier: BSD-3-Clause
"""A libhdf5 that describes compound types wrongly, or cannot: an error with a text, and nothing stored.

fake_types.h takes the place of the functions for types (test_fake_libraries.py).
"""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_int64, c_size_t, c_uint64
from typing import Any, ClassVar

import pytest

from . import test_fake_libraries
from .support import HIERARCHICAL_DELTA, RELATIVE, words
from .test_fake_libraries import COMPOUND, F32, START, Fake, Fakes, round_trip, run
from .test_records import STAMP, user

fakes = test_fake_libraries.fakes
STRING, ARRAY, I16 = 3, 10, 9
RECORD, VECTOR, PAIR, OTHER = 200, 201, 202, 203
UNREADABLE = "HDF5 did not describe the compound type"


class Type(ctypes.Structure):
    """fake_type."""

    _fields_: ClassVar[Any] = (
        ("type_class", c_int),
        ("members", c_int),
        ("size", c_size_t),
        ("member", c_int64 * 4),
        ("offset", c_size_t * 4),
        ("name", c_char_p * 4),
        ("super", c_int64),
        ("rank", c_int),
        ("variable", c_int),
        ("dims", c_uint64 * 32),
    )


#: a record of x, v (an array) and n (a compound); `changed` has other types
TYPES: dict[int, dict[str, Any]] = {
    RECORD: {"type_class": COMPOUND, "members": 3, "size": 16, "member": (F32, VECTOR, PAIR), "offset": (0, 4, 12)},
    VECTOR: {"type_class": ARRAY, "size": 8, "super": F32, "rank": 1, "dims": (2,)},
    PAIR: {"type_class": COMPOUND, "members": 2, "size": 4, "member": (I16, I16), "offset": (0, 2)},
    OTHER: {"type_class": ARRAY, "size": 4, "super": F32, "rank": 1, "dims": (1,)},
}
TYPES[RECORD]["name"], TYPES[PAIR]["name"] = (b"x", b"v", b"n"), (b"a", b"b")
ASKED = user({"x": words()})
STORED = (STAMP, *ASKED[1:], 1 | 4 << 16, 8, 0, 1 | 1 << 16, 1 | 0x800, 1, 2, 5, 5)
COLUMNS = 11  # where they begin in STORED


def reset(fake: Fake) -> Fake:
    fake.tell(**START, after=0)
    fake.words(ASKED)
    describe(fake, {})
    c_size_t.in_dll(fake.c, "fake_fill_bytes").value = TYPES[RECORD]["size"]
    c_size_t.in_dll(fake.c, "fake_stored_count").value = 0
    fake.pushed()
    return fake


def describe(fake: Fake, changed: dict[int, dict[str, Any]]) -> None:
    found = (Type * 8).in_dll(fake.c, "fake_types")
    for number, fields in TYPES.items():
        found[number - RECORD] = Type(**{**fields, **changed.get(number, {})})


@pytest.fixture(scope="session")
def shared(fakes: Fakes) -> Fake:
    return fakes("-DFAKE_ALL", "-DFAKE_TYPES")


@pytest.fixture
def fake(shared: Fake) -> Fake:
    return reset(shared)


def refused(fake: Fake, text: str, callback: str) -> None:
    assert fake.check(callback, RECORD) < 0
    assert text in fake.pushed()
    assert fake.stored() == ()


def test_nothing_is_wrong(fake: Fake) -> None:
    assert fake.check("can_apply", RECORD) == 1
    assert fake.check("set_local", RECORD) == 0
    assert fake.stored() == STORED
    assert fake.pushed() == ""
    values = bytes(range(128))
    used, frame = run(fake, 0, bytes(128))
    assert used > 0
    assert run(fake, 0x100, frame) == (128, bytes(128))
    assert run(fake, 0, values[1:])[0] == 0
    assert "HDF5 gave a chunk of 127 bytes, the stored cd_values say 128" in fake.pushed()


@pytest.mark.parametrize("callback", ["can_apply", "set_local"])
@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({RECORD: {"members": -1}}, {}),
        ({RECORD: {"member": (-1, VECTOR, PAIR)}}, {}),
        ({PAIR: {"member": (I16, -1)}}, {}),
        ({PAIR: {"members": -1}}, {}),
        ({VECTOR: {"size": 0}}, {}),
        ({VECTOR: {"size": 1 << 32}}, {}),
        ({VECTOR: {"rank": 0}}, {}),
        ({VECTOR: {"rank": 33}}, {}),
        ({VECTOR: {"rank": -1}}, {}),
        ({VECTOR: {"super": -1}}, {}),
        ({VECTOR: {"super": OTHER}, OTHER: {"rank": 0}}, {}),
        ({VECTOR: {"super": PAIR}, PAIR: {"member": (I16, -1)}}, {}),
        ({VECTOR: {"super": VECTOR}}, {}),  # of arrays of arrays, and so on
        ({PAIR: {"member": (PAIR, I16)}}, {}),
        ({RECORD: {"offset": (0, 3, 12)}}, {}),
        ({RECORD: {"offset": (0, 4, 13)}}, {}),
        ({RECORD: {"offset": (0, 4, 1 << 40)}}, {}),
        ({RECORD: {"offset": (0, (1 << 64) - 4, 12)}}, {"dim": 1}),
        ({RECORD: {"size": 15}}, {}),
        ({VECTOR: {"dims": (3,)}}, {}),
        ({VECTOR: {"dims": (0,)}}, {}),
        ({}, {"failing": b"H5Tget_member_type"}),
        ({}, {"failing": b"H5Tget_array_dims2"}),
        ({}, {"failing": b"H5Tget_super"}),
        ({}, {"failing": b"H5Tget_super", "after": 1}),  # the type is looked at twice
    ],
    ids=str,
)
def test_types_that_are_not_described(
    fake: Fake, callback: str, changed: dict[int, dict[str, Any]], told: dict[str, Any]
) -> None:
    describe(fake, changed)
    fake.tell(**told)
    refused(fake, UNREADABLE, callback)


@pytest.mark.parametrize("callback", ["can_apply", "set_local"])
@pytest.mark.parametrize(
    ("changed", "told", "text"),
    [
        ({RECORD: {"size": 1 << 32}}, {}, "does not describe compound types, or records have 4 GiB or more"),
        ({RECORD: {"members": 0, "size": 0}}, {}, "records of 0 fields, allowed: 1 to 4096"),
        (
            {RECORD: {"members": 4097, "size": 4 * 4097, "member": (F32,) * 4, "offset": (0, 4, 8, 12)}},
            {},
            "records of 4097 fields, allowed: 1 to 4096",
        ),
        (
            {RECORD: {"members": 4096, "size": 4 * 4096, "member": (F32,) * 4, "offset": (0, 4, 8, 12)}},
            {},
            "the type has too many fields: 4107 words of cd_values would be stored, allowed: 256",
        ),
        ({VECTOR: {"type_class": STRING, "variable": 1}}, {}, "field 'v' is text of variable length"),
        ({VECTOR: {"type_class": STRING, "variable": -1}}, {}, "field 'v' is text of variable length"),
        ({}, {"failing": b"H5Tget_member_name"}, "a codec is given for field 'x', but the dataset's type has: "),
        ({}, {"failing": b"H5Pget_chunk"}, "HDF5 did not report the chunk's shape"),
        ({}, {"rank": 33}, "HDF5 did not report the chunk's shape"),
        ({}, {"dim": 1 << 29}, "536870912 records of 16 bytes, at most 7516192768 bytes are allowed"),
        ({}, {"dim": 1 << 61}, "the product of the dims is 2^61 or more"),
        ({}, {"words": 300}, "300 words given, at most 256 allowed"),
        ({}, {"first": 2}, "filter 'named' (id 2) stands before"),
    ],
    ids=str,
)
def test_types_that_are_refused(
    fake: Fake, callback: str, changed: dict[int, dict[str, Any]], told: dict[str, Any], text: str
) -> None:
    describe(fake, changed)
    fake.tell(**told)
    refused(fake, text, callback)


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({"failing": b"H5Pfill_value_defined"}, "HDF5 did not report the fill value"),
        ({"failing": b"H5Pget_fill_time"}, "HDF5 did not report the fill time"),
        ({"failing": b"H5Pget_fill_value", "fill": 2}, "HDF5 cannot convert the fill value to the dataset's type"),
        ({"failing": b"H5Pmodify_filter"}, "HDF5 refused the stored cd_values (H5Pmodify_filter)"),
    ],
    ids=str,
)
def test_words_that_cannot_be_stored(fake: Fake, told: dict[str, Any], text: str) -> None:
    fake.tell(**told)
    assert fake.check("can_apply", RECORD) == 1
    refused(fake, text, "set_local")


@pytest.mark.parametrize("told", [{"attributes": 1}, {"attributes": 2}, {"failing": b"H5Pget_attr_creation_order"}])
def test_a_fill_value_that_may_be_hidden(fake: Fake, told: dict[str, Any]) -> None:
    fake.words(user({"x": words(1e-3, RELATIVE, HIERARCHICAL_DELTA)}))
    fake.tell(fill_time=1, **told)
    assert fake.check("set_local", RECORD) == (-1 if told == {"attributes": 1} else 0)
    assert ("a relative bound needs the fill value" in fake.pushed()) == (told == {"attributes": 1})


def test_fill_values(fake: Fake) -> None:
    fake.tell(fill=2)
    assert fake.check("set_local", RECORD) == 0
    number = 0x21212121
    columns = (1 | 0x200 | 1 << 16, number, 1 | 0xA00, 1, 2, number, 5 | 0x200, 0x2121, 5 | 0x200, 0x2121)
    assert fake.stored() == (*STORED[:COLUMNS], *columns)


@pytest.mark.parametrize(
    ("changed", "count", "columns"),
    [
        ({RECORD: {"offset": (12, 4, 0)}}, 4, (5, 5, 1 | 0x800, 1, 2, 1 | 1 << 16)),
        ({RECORD: {"size": 20}}, 5, (*STORED[COLUMNS:], 0, 4)),
        ({RECORD: {"offset": (1, 6, 15), "size": 19}}, 7, (0, 1, 1 | 1 << 16, 0, 1, 1 | 0x800, 1, 2, 0, 1, 5, 5)),
        ({PAIR: {"members": 0}}, 3, (*STORED[COLUMNS:-2], 0, 4)),
        ({PAIR: {"members": 1}}, 4, (*STORED[COLUMNS:-1], 0, 2)),
        ({VECTOR: {"type_class": STRING}}, 4, (1 | 1 << 16, 0, 8, 5, 5)),
        ({VECTOR: {"super": PAIR, "members": 1}}, 4, (1 | 1 << 16, 0, 8, 5, 5)),
        ({VECTOR: {"super": OTHER}}, 4, (1 | 1 << 16, 1 | 0x800, 2, 2, 1, 5, 5)),
    ],
    ids=str,
)
def test_layouts(fake: Fake, changed: dict[int, dict[str, Any]], count: int, columns: tuple[int, ...]) -> None:
    """In the order of their bytes, with what lies between and behind; text and arrays of compounds are bytes."""
    describe(fake, changed)
    assert fake.check("set_local", RECORD) == 0
    assert fake.stored() == (*STORED[: COLUMNS - 3], 1 | count << 16, 8, 0, *columns)


def test_arrays_of_more_dimensions_than_there_are(fake: Fake) -> None:
    """An array of arrays: with more than 32 in all it is stored as bytes."""
    outer = {"rank": 20, "dims": (2, *(1,) * 19), "super": OTHER}
    of_values = 1 | 0x800, 31, 2, *(1,) * 30  # one is for the records
    for rank, columns in (11, of_values), (12, of_values), (13, (0, 8)):
        describe(fake, {VECTOR: outer, OTHER: {"rank": rank, "dims": (1,) * rank}})
        assert fake.check("set_local", RECORD) == 0
        assert fake.stored()[COLUMNS:] == (1 | 1 << 16, *columns, 5, 5)


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        ((b"r", b"i"), (11,)),
        ((b"r", b"j"), (1, 1)),
        ((b"q", b"i"), (1, 1)),
        ((None, None), (1, 1)),
    ],
)
def test_pairs_of_floats(fake: Fake, names: tuple[bytes | None, ...], columns: tuple[int, ...]) -> None:
    """Those of h5py's complex numbers are one field, others two."""
    pair = {"member": (F32, F32), "offset": (0, 4), "size": 8, "name": names}
    describe(fake, {RECORD: {"size": 20}, PAIR: pair})
    assert fake.check("set_local", RECORD) == 0
    assert fake.stored()[COLUMNS:] == (*STORED[COLUMNS:-2], *columns)


def test_names_that_are_not_reported(fake: Fake) -> None:
    """Nothing can be asked for a field then, and all are stored bit for bit."""
    fake.words(user({}))
    fake.tell(failing=b"H5Tget_member_name")
    assert fake.check("set_local", RECORD) == 0
    assert fake.stored() == (STAMP, 0, 0, 1 | 4 << 16, 8, 0, 1, *STORED[COLUMNS + 1 :])


LOOKS = (
    *("H5Tget_nmembers", "H5Tget_member_type", "H5Tget_member_offset", "H5Tget_member_name", "H5Tclose"),
    *("H5Tget_super", "H5Tget_array_ndims", "H5Tget_array_dims2", "H5Tis_variable_str"),
)


@pytest.mark.parametrize("missing", LOOKS)
def test_a_libhdf5_without_a_look_into_compounds(fakes: Fakes, missing: str) -> None:
    fake = reset(fakes("-DFAKE_ALL", "-DFAKE_TYPES", f"-D{missing}={missing}_renamed"))
    for callback in ("can_apply", "set_local"):
        refused(fake, "the HDF5 library does not describe compound types", callback)


def test_names_without_their_allocator(fakes: Fakes) -> None:
    """They go back to malloc's."""
    fake = reset(fakes("-DFAKE_ALL", "-DFAKE_TYPES", "-DH5free_memory=H5free_memory_renamed"))
    assert fake.check("set_local", RECORD) == 0
    assert fake.stored() == STORED


def test_memory(fake: Fake) -> None:
    """None for a frame or records is an error, none to shrink a frame is not."""
    fake.tell(dim=2)
    fake.check("set_local", RECORD)
    _, frame = run(fake, 0, bytes(32))
    fake.tell(failing=b"H5resize_memory")
    assert round_trip(fake)
    fake.tell(failing=b"H5allocate_memory")
    for flags, content, text in (0, bytes(32), "no memory for a frame"), (0x100, frame, "no memory for 32 bytes"):
        assert run(fake, flags, content) == (0, content)
        assert text in fake.pushed()
