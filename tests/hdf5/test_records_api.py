# SPDX-License-Identifier: BSD-3-Clause
"""The C ABI of records called wrongly: a code and a text for every slip, and nothing written."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_size_t
from typing import Any

import numpy as np
import pytest
from reference.library import Library, Request, abi

from .support import HIERARCHICAL_DELTA, LOSSLESS, Array
from .test_c_api import CORRUPT, INVALID_ARGUMENT, NO_SPACE, OK, TRUNCATED, UNSUPPORTED, text

KIND = np.dtype([("x", ">f4"), ("v", "<f8", (3,)), ("s", "S5")])
SIZES = (4, 24, 5)
MAX_COLUMNS = 4096


def values_of(count: int = 40) -> Array:
    values = np.zeros(count, KIND)
    values["x"] = np.sin(np.arange(count) / 7) * 9
    values["v"] = np.arange(3 * count).reshape(count, 3) / 8
    values["s"] = b"text"
    return values


class Call:
    """Records with everything that calls need; what is to be wrong is changed before."""

    def __init__(self, c: Any, values: Array | None = None) -> None:
        self.c = c
        self.values = values_of() if values is None else values
        self.requests = (abi.Request * 3)()
        self.requests[0] = Request(codec=HIERARCHICAL_DELTA, dtype=1, bound_mode=2, bound=1e-3, source_big_endian=1)
        self.requests[1] = Request(codec=LOSSLESS, dtype=2, rank=1)
        self.requests[1].dims[0] = 3
        self.requests[2] = Request()
        self.sizes = (ctypes.c_uint32 * 3)(*SIZES)
        self.dims = (ctypes.c_uint64 * 40)(*self.values.shape)
        self.records = abi.Records(
            columns=3,
            requests=self.requests,
            bytes=ctypes.addressof(self.sizes),
            dims=ctypes.addressof(self.dims),
            rank=self.values.ndim,
        )
        self.room = ctypes.create_string_buffer(b"\xa5" * 10000, 10000)
        self.used = c_size_t(77)

    def most(self) -> int:
        return int(self.c.pyf_max_records_bytes(byref(self.records)))

    def encode(self, old: bytes | None = None, **given: Any) -> int:
        found: dict[str, Any] = {"records": byref(self.records), "values": self.values.ctypes.data}
        found |= {"bytes": self.values.nbytes, "frame": self.room, "capacity": 10000, "used": byref(self.used), **given}
        before = found["records"], found["values"], found["bytes"], old, 0 if old is None else len(old)
        return int(self.c.pyf_encode_records(*before, found["frame"], found["capacity"], found["used"]))

    def frame(self, old: bytes | None = None) -> bytes:
        assert self.encode(old) == OK, text(self.c)
        return self.room.raw[: self.used.value]

    def is_untouched(self) -> bool:
        return self.room.raw == b"\xa5" * 10000 and self.used.value == 77


@pytest.fixture
def c(library: Library) -> Any:
    return library.c


@pytest.fixture
def call(c: Any) -> Call:
    return Call(c)


def decoded(c: Any, frame: bytes, count: int = 40) -> Array:
    values = np.zeros(count, KIND)
    assert c.pyf_decode_records(frame, len(frame), values.ctypes.data, values.nbytes) == OK, text(c)
    return values


def test_good_ones(c: Any, call: Call) -> None:
    assert 0 < call.most() <= 10000
    frame = call.frame()
    got = decoded(c, frame)
    assert all(got[name].tobytes() == call.values[name].tobytes() for name in "vs")
    assert 0 < np.abs(got["x"] - call.values["x"]).max() <= 18e-3
    info, columns = abi.RecordsInfo(), (abi.Column * 5)()
    assert c.pyf_read_records(frame, len(frame), byref(info), columns, 5) == OK
    assert (info.columns, info.record_bytes, info.record_count) == (3, 33, 40)
    assert (info.value_bytes, info.frame_bytes, info.shape) == (40 * 33, len(frame), (40,))
    assert [column.bytes for column in columns] == [*SIZES, 0, 0]
    assert [column.has_values for column in columns] == [1, 1, 0, 0, 0]


def test_room_for_fewer_columns(c: Any, call: Call) -> None:
    """As many as there is room for are filled in; how many there are is said."""
    frame, columns = call.frame(), (abi.Column * 3)()
    for capacity in (0, 1, 2):
        info = abi.RecordsInfo()
        given = columns if capacity else None
        assert c.pyf_read_records(frame, len(frame), byref(info), given, capacity) == OK
        assert info.columns == 3
        assert [column.bytes for column in columns] == [*SIZES[:capacity], *(0,) * (3 - capacity)]


def test_null_pointers(c: Any, call: Call) -> None:
    frame = call.frame()
    call = Call(c)
    room, info, columns = ctypes.create_string_buffer(2000), abi.RecordsInfo(), (abi.Column * 3)()
    calls: dict[str, list[Callable[[], int]]] = {
        "records": [lambda: call.encode(records=None)],
        "values": [
            lambda: call.encode(values=None),
            lambda: c.pyf_decode_records(frame, len(frame), None, call.values.nbytes),
        ],
        "frame": [
            lambda: call.encode(frame=None),
            lambda: c.pyf_read_records(None, 100, byref(info), columns, 3),
            lambda: c.pyf_decode_records(None, 100, room, 1320),
        ],
        "frame_bytes": [lambda: call.encode(used=None)],
        "info": [lambda: c.pyf_read_records(frame, len(frame), None, columns, 3)],
        "columns": [lambda: c.pyf_read_records(frame, len(frame), byref(info), None, 3)],
    }
    for name, functions in calls.items():
        for function in functions:
            assert function() == INVALID_ARGUMENT, name
            assert text(c) == f"{name} is NULL"
    assert call.is_untouched()
    assert room.raw == bytes(2000)
    assert info.columns == 0
    assert c.pyf_max_records_bytes(None) == 0
    assert text(c) == "records is NULL"


#: what is changed, the code and the text
WRONG: dict[str, tuple[Callable[[Call], None], int, str]] = {}


def wrong(code: int, said: str) -> Callable[[Callable[[Call], None]], Callable[[Call], None]]:
    def note(change: Callable[[Call], None]) -> Callable[[Call], None]:
        WRONG[said] = change, code, said
        return change

    return note


def setting(structure: str, field: str, value: Any, code: int, said: str) -> None:
    def change(call: Call) -> None:
        setattr(getattr(call, structure), field, value)

    WRONG[said] = change, code, said


setting("records", "struct_bytes", 48, INVALID_ARGUMENT, "records.struct_bytes is 48, this library's is 40: header and")
setting("records", "struct_bytes", 0, INVALID_ARGUMENT, "records.struct_bytes is 0, this library's is 40")
setting("records", "reserved", 1, INVALID_ARGUMENT, "records.reserved must be zero")
setting("records", "rank", -1, INVALID_ARGUMENT, "records.rank is -1, allowed: 0 to 32")
setting("records", "rank", 33, INVALID_ARGUMENT, "records.rank is 33, allowed: 0 to 32")
setting("records", "columns", 4097, UNSUPPORTED, "records of 4097 columns, allowed: 1 to 4096")
setting("records", "columns", 0, UNSUPPORTED, "records of 0 columns, allowed: 1 to 4096")
setting("records", "dims", None, INVALID_ARGUMENT, "records.dims is NULL")
setting("records", "requests", None, INVALID_ARGUMENT, "records.requests is NULL")
setting("records", "bytes", None, INVALID_ARGUMENT, "records.bytes is NULL")


@wrong(INVALID_ARGUMENT, "request.struct_bytes is 8, this library's is 304")
def size_of_a_request(call: Call) -> None:
    call.requests[2].struct_bytes = 8


@wrong(INVALID_ARGUMENT, "request.reserved must be zero")
def reserved_of_a_request(call: Call) -> None:
    call.requests[1].reserved[1] = 1


@wrong(INVALID_ARGUMENT, "a column of 8 bytes, its dtype and dims need 4")
def size_of_a_column(call: Call) -> None:
    call.sizes[0] = 8


@wrong(INVALID_ARGUMENT, "a column of 24 bytes, its dtype and dims need 32")
def dims_of_a_column(call: Call) -> None:
    call.requests[1].dims[0] = 4


@wrong(INVALID_ARGUMENT, "a column of 24 bytes, its dtype and dims need 0")
def dims_beyond_a_column(call: Call) -> None:
    call.requests[1].dims[0] = 1 << 61


@wrong(UNSUPPORTED, "column 2 has no bytes, or 2^32 and more")
def a_column_without_bytes(call: Call) -> None:
    call.sizes[2] = 0


@wrong(INVALID_ARGUMENT, "a column of 4 bytes, its dtype and dims need 0")
def an_unknown_dtype(call: Call) -> None:
    call.requests[0].dtype = 99


@wrong(INVALID_ARGUMENT, "column 0: codec id 99 is unknown")
def an_unknown_codec(call: Call) -> None:
    call.requests[0].codec = 99


@wrong(INVALID_ARGUMENT, "column 0: the bound is -1, must be finite")
def a_bound(call: Call) -> None:
    call.requests[0].bound = -1


@wrong(UNSUPPORTED, "the product of the dims is 2^61 or more")
def too_many_records(call: Call) -> None:
    call.dims[0] = 1 << 61


@wrong(UNSUPPORTED, "4294967296 records of 33 bytes, at most")
def too_many_bytes(call: Call) -> None:
    call.dims[0] = 1 << 32


@wrong(INVALID_ARGUMENT, "request.rank is 33, allowed: 0 to 32")
def rank_of_a_column(call: Call) -> None:
    call.requests[1].rank = 33


@pytest.mark.parametrize(("change", "code", "said"), WRONG.values(), ids=WRONG)
def test_records_that_are_none(c: Any, call: Call, change: Callable[[Call], None], code: int, said: str) -> None:
    change(call)
    assert call.most() == 0
    assert said in text(c)
    assert call.encode() == code
    assert said in text(c)
    assert call.is_untouched()


def test_sizes_of_values_and_frames(c: Any, call: Call) -> None:
    most, size = call.most(), call.values.nbytes
    for more in (-1, 1):
        assert call.encode(bytes=size + more) == INVALID_ARGUMENT
        assert text(c) == f"{size + more} bytes of values, the records have {size}"
    assert call.encode(values=None, bytes=0) == INVALID_ARGUMENT
    assert text(c) == f"0 bytes of values, the records have {size}"
    assert call.encode(capacity=most - 1) == NO_SPACE
    assert text(c) == f"a buffer of {most - 1} bytes for the frame, {most} may be needed"
    assert call.is_untouched()
    assert call.encode(capacity=most) == OK


def test_no_records(c: Any) -> None:
    """Of 0 records there are no values, so their address may be NULL."""
    call = Call(c, values_of(0))
    assert call.encode(values=None) == OK
    frame = call.room.raw[: call.used.value]
    assert c.pyf_decode_records(frame, len(frame), None, 0) == OK
    info = abi.RecordsInfo()
    assert c.pyf_read_records(frame, len(frame), byref(info), None, 0) == OK
    assert (info.record_count, info.value_bytes, info.shape) == (0, 0, (0,))


def test_one_record_of_rank_0(c: Any) -> None:
    call = Call(c, values_of(1).reshape(()))
    call.records.dims = None
    frame = call.frame()
    assert decoded(c, frame, 1)["v"].tobytes() == call.values["v"].tobytes()


def test_columns_of_32_dimensions_and_one_more(c: Any) -> None:
    call = Call(c, values_of(2).reshape(2, *(1,) * 31))
    assert decoded(c, call.frame(), 2)["v"].tobytes() == call.values["v"].tobytes()


@pytest.mark.parametrize("rank", [0, 1, 2, 32])
def test_columns_of_32_dimensions_of_their_own(c: Any, rank: int) -> None:
    """The first of them are taken together, for there is no room for those of the records."""
    shape = (2, 1)[:rank] + (1,) * (rank - 2)
    call = Call(c, values_of(1 if rank == 0 else 2).reshape(shape))
    call.requests[1].rank = 32
    call.requests[1].dims[:] = [1] * 30 + [3, 1]
    assert decoded(c, call.frame(), call.values.size)["v"].tobytes() == call.values["v"].tobytes()


def test_most_columns(c: Any, call: Call) -> None:
    call.requests = (abi.Request * MAX_COLUMNS)(*[Request() for _ in range(MAX_COLUMNS)])
    call.sizes = (ctypes.c_uint32 * MAX_COLUMNS)(*[1] * MAX_COLUMNS)
    call.records.requests, call.records.bytes = call.requests, ctypes.addressof(call.sizes)
    call.records.columns, call.dims[0] = MAX_COLUMNS, 1
    most = call.most()
    assert most > 0, text(c)
    room, used, values = ctypes.create_string_buffer(most), c_size_t(), bytes(range(256)) * 16
    assert c.pyf_encode_records(byref(call.records), values, 4096, None, 0, room, most, byref(used)) == OK
    got = ctypes.create_string_buffer(4096)
    assert c.pyf_decode_records(room, used.value, got, 4096) == OK
    assert got.raw == values


def test_values_decoded_from_an_old_frame(c: Any, call: Call) -> None:
    """They do not move again, and keep their error; a frame of other records, or none, is as if it were not there."""
    call.values["x"] = np.random.default_rng(0).normal(size=40).cumsum()
    first = call.frame()
    again = Call(c, decoded(c, first))
    again.values["x"][5] += 3
    kept = decoded(c, again.frame(first))
    others = np.arange(40) != 5
    assert kept["x"][others].tobytes() == again.values["x"][others].tobytes()
    assert abs(kept["x"][5] - again.values["x"][5]) <= 1e-3 * np.ptp(again.values["x"])
    new = again.frame()
    for old in (b"", b"nothing", first[:-1], first + b"\0", bytes(100), Call(c, values_of(41)).frame()):
        assert again.frame(old) == new


def test_frames_that_are_none(c: Any, call: Call) -> None:
    frame, room = call.frame(), ctypes.create_string_buffer(b"\xa5" * 1320, 1320)
    of_values = bytes((*frame[:8], 1, *frame[9:]))
    for content, code in ((frame[:-1], TRUNCATED), (frame[:50], TRUNCATED), (b"", TRUNCATED), (bytes(90), CORRUPT)):
        assert c.pyf_decode_records(content, len(content), room, 1320) == code
        info = abi.RecordsInfo()
        read = c.pyf_read_records(content, len(content), byref(info), None, 0)
        assert read == (OK if len(content) == len(frame) - 1 else code)
    assert c.pyf_decode_records(frame + b"\0", len(frame) + 1, room, 1320) == CORRUPT
    assert c.pyf_decode_records(of_values, len(of_values), room, 1320) == CORRUPT
    assert c.pyf_decode_records(frame, len(frame), room, 1319) == INVALID_ARGUMENT
    assert text(c) == "a buffer of 1319 bytes for records, exactly 1320 are decoded"
    assert room.raw == b"\xa5" * 1320


@pytest.mark.parametrize("size", [0, 296, 312])
def test_sizes_of_infos(c: Any, call: Call, size: int) -> None:
    frame, info = call.frame(), abi.RecordsInfo(struct_bytes=size)
    assert c.pyf_read_records(frame, len(frame), byref(info), None, 0) == INVALID_ARGUMENT
    assert text(c) == f"info.struct_bytes is {size}, this library's is 304: header and library do not match"
    assert info.columns == 0
