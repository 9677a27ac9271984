# SPDX-License-Identifier: BSD-3-Clause
"""filter/c_api.h called as C would call it, wrongly too: a code and a text for every slip, never a crash."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from ctypes import byref, c_double, c_int, c_size_t, c_uint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference.library import Info, Library, Request, abi

from .support import DTYPES, LOSSLESS, Array, field, largest_error, loaded, lossless, stored, words

OK, INVALID_ARGUMENT, UNSUPPORTED, CORRUPT, TRUNCATED, TOO_NEW, NO_SPACE, DEVICE = 0, 10, 20, 30, 31, 32, 40, 60


@pytest.fixture
def c(library: Library) -> Iterator[Any]:
    """The functions; settings are put back."""
    yield library.c
    library.c.pyf_configure(b"threads", b"0")
    library.c.pyf_configure(b"local_threads", b"0")
    library.c.pyf_configure(b"cpu_level", b"auto")


def request_for(values: Array, codec: int = 1, bound: float = 1e-3, **fields: Any) -> Request:
    dtype = DTYPES[values.dtype.str[1:]]
    request = Request(codec=codec, dtype=dtype, rank=values.ndim)
    request.bound_mode, request.bound = (0, 0) if codec == 2 else (1, bound)
    request.dims[: values.ndim] = values.shape
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def text(c: Any) -> str:
    said: str = c.pyf_last_error().decode()
    return said


def test_versions(c: Any) -> None:
    assert c.pyf_abi_version() == 1
    assert c.pyf_version().count(b".") == 2


@pytest.mark.parametrize(
    ("fields", "code", "said"),
    [
        ({"struct_bytes": 0}, INVALID_ARGUMENT, "request.struct_bytes is 0, this library's is 304"),
        ({"struct_bytes": 312}, INVALID_ARGUMENT, "request.struct_bytes is 312"),
        ({"codec": 0}, INVALID_ARGUMENT, "codec id 0 is unknown"),
        ({"codec": 200}, INVALID_ARGUMENT, "codec id 200 is unknown"),
        ({"dtype": 0}, INVALID_ARGUMENT, "dtype code 0 is unknown"),
        ({"dtype": 99}, INVALID_ARGUMENT, "dtype code 99 is unknown"),
        ({"dtype": 7}, UNSUPPORTED, "cuszp2 cannot compress dtype i32"),
        ({"bound_mode": 0}, INVALID_ARGUMENT, "bound mode 0"),
        ({"bound_mode": 9}, INVALID_ARGUMENT, "bound mode 9"),
        ({"bound": 0.0}, INVALID_ARGUMENT, "the bound is 0, must be finite and > 0"),
        ({"bound": float("nan")}, INVALID_ARGUMENT, "the bound is .*nan, must be finite and > 0"),
        ({"bound": float("inf")}, INVALID_ARGUMENT, "the bound is inf, must be finite and > 0"),
        ({"codec": 3, "bound_mode": 3, "bound": 1.0}, INVALID_ARGUMENT, "the pointwise relative bound is 1, must be"),
        ({"bound_mode": 4, "bound": 9000.0}, INVALID_ARGUMENT, "the psnr is .* dB, must be > 0 and at most"),
        ({"codec": 2, "bound_mode": 0, "bound": 1.0}, INVALID_ARGUMENT, "takes no bound, but 1 is given"),
        ({"bound": -1.0}, INVALID_ARGUMENT, "the bound is -1, must be finite and > 0"),
        ({"has_fill": 2}, INVALID_ARGUMENT, "request.has_fill is 2, allowed: 0, 1"),
        ({"has_fill": 1, "fill": 1 << 32}, INVALID_ARGUMENT, "request.fill is 0x100000000, wider than"),
        ({"source_big_endian": 7}, INVALID_ARGUMENT, "request.source_big_endian is 7, allowed: 0, 1"),
        ({"reserved": (ctypes.c_uint8 * 2)(0, 1)}, INVALID_ARGUMENT, "request.reserved must be zero"),
        ({"rank": -1}, INVALID_ARGUMENT, "request.rank is -1, allowed: 0 to 32"),
        ({"rank": 33}, INVALID_ARGUMENT, "request.rank is 33, allowed: 0 to 32"),
        ({"rank": 2**31 - 1}, INVALID_ARGUMENT, "request.rank is 2147483647"),
        ({"parameters": (ctypes.c_uint8 * 8)(3)}, INVALID_ARGUMENT, "mode 3"),
        (
            {"codec": 3, "dtype": 7, "bound_mode": 3, "bound": 0.1},
            INVALID_ARGUMENT,
            "needs floating-point values, these are",
        ),
        (
            {"codec": 3, "dtype": 7, "bound": -1.0},
            INVALID_ARGUMENT,
            r"must be finite and >= 0 \(0: integers bit for bit\)",
        ),
        ({"codec": 3, "dtype": 1, "bound": 0.0}, INVALID_ARGUMENT, "the bound is 0, must be finite and > 0"),
        (
            {"codec": 3, "dtype": 7, "bound_mode": 2, "bound": 0.0},
            INVALID_ARGUMENT,
            "the bound is 0, must be finite and > 0",
        ),
        ({"codec": 3, "parameters": (ctypes.c_uint8 * 8)(6)}, INVALID_ARGUMENT, "predictor 6"),
        ({"codec": 3, "parameters": (ctypes.c_uint8 * 8)(3)}, INVALID_ARGUMENT, "predictor 3 needs data of rank 3"),
        ({"codec": 3, "parameters": (ctypes.c_uint8 * 8)(0, 3)}, INVALID_ARGUMENT, "outliers 3"),
        ({"codec": 3, "parameters": (ctypes.c_uint8 * 8)(0, 0, 1)}, INVALID_ARGUMENT, "parameter byte 2 is 1"),
        ({"parameters": (ctypes.c_uint8 * 8)(0, 3)}, INVALID_ARGUMENT, "block_dims 3 needs data of at least that rank"),
    ],
)
def test_bad_requests(c: Any, fields: dict[str, Any], code: int, said: str) -> None:
    values = field((20, 30))
    request = request_for(values, **fields)
    request.bound = fields.get("bound", request.bound)  # of a codec that takes none, too
    frame, used = ctypes.create_string_buffer(10000), c_size_t(77)
    assert c.pyf_check_request(byref(request)) == code
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(text(c))
    assert c.pyf_max_frame_bytes(byref(request)) == 0
    assert c.pyf_encode(byref(request), values.ctypes.data, values.nbytes, frame, 10000, byref(used)) == code


def test_null_pointers(c: Any) -> None:
    values = field((20, 30))
    request, frame, used, info = request_for(values), ctypes.create_string_buffer(10000), c_size_t(), Info()
    number, found = c_double(), c_int()
    data, size = values.ctypes.data, values.nbytes
    calls: dict[str, list[tuple[Any, tuple[Any, ...]]]] = {
        "request": [
            (c.pyf_check_request, (None,)),
            (c.pyf_encode, (None, data, size, frame, 10000, byref(used))),
            (c.pyf_value_range, (None, data, size, byref(number), byref(number), byref(found))),
            (c.pyf_parse_cd_values, ((c_uint * 3)(*lossless()), 3, None)),
        ],
        "values": [
            (c.pyf_encode, (byref(request), None, size, frame, 10000, byref(used))),
            (c.pyf_decode, (frame, 100, None, size)),
            (c.pyf_decode_range, (frame, 100, 0, 1, None, 4)),
            (c.pyf_value_range, (byref(request), None, size, byref(number), byref(number), byref(found))),
        ],
        "frame": [
            (c.pyf_encode, (byref(request), data, size, None, 10000, byref(used))),
            (c.pyf_frame_info, (None, 100, byref(info))),
            (c.pyf_decode, (None, 100, data, size)),
            (c.pyf_decode_range, (None, 100, 0, 1, data, 4)),
        ],
        "frame_bytes": [(c.pyf_encode, (byref(request), data, size, frame, 10000, None))],
        "info": [(c.pyf_frame_info, (frame, 100, None))],
        "low": [(c.pyf_value_range, (byref(request), data, size, None, byref(number), byref(found)))],
        "high": [(c.pyf_value_range, (byref(request), data, size, byref(number), None, byref(found)))],
        "found": [(c.pyf_value_range, (byref(request), data, size, byref(number), byref(number), None))],
        "cd_values": [(c.pyf_parse_cd_values, (None, 3, byref(request)))],
    }
    for name, functions in calls.items():
        for function, arguments in functions:
            assert function(*arguments) == INVALID_ARGUMENT, name
            assert text(c) == f"{name} is NULL"
    assert c.pyf_max_frame_bytes(None) == 0
    assert c.pyf_configure(None, b"1") == c.pyf_configure(b"threads", None) == INVALID_ARGUMENT
    assert c.pyf_config(None) is None


def test_nothing_needs_no_memory(c: Any) -> None:
    """NULL with a size of 0, as an empty vector has it."""
    values = np.empty((0, 5), "f4")
    request, frame, used = request_for(values), ctypes.create_string_buffer(1000), c_size_t()
    assert c.pyf_encode(byref(request), None, 0, frame, 1000, byref(used)) == OK
    assert c.pyf_decode(frame, used.value, None, 0) == OK
    assert c.pyf_frame_info(None, 0, byref(Info())) == TRUNCATED
    assert c.pyf_decode(None, 0, None, 0) == TRUNCATED


def test_sizes_that_do_not_fit(c: Any, library: Library) -> None:
    values = field((20, 30))
    request, used = request_for(values), c_size_t()
    capacity = c.pyf_max_frame_bytes(byref(request))
    frame = ctypes.create_string_buffer(capacity)
    for wrong in (0, values.nbytes - 1, values.nbytes + 4):
        assert c.pyf_encode(byref(request), values.ctypes.data, wrong, frame, capacity, byref(used)) == INVALID_ARGUMENT
        assert str(wrong) in text(c)
    assert c.pyf_encode(byref(request), values.ctypes.data, values.nbytes, frame, 0, byref(used)) == NO_SPACE
    encoded = library.encode(request, values)
    out = np.empty(700, "f4")
    for wrong in (0, values.nbytes - 4, values.nbytes + 4):
        assert c.pyf_decode(encoded, len(encoded), out.ctypes.data, wrong) == INVALID_ARGUMENT
    assert c.pyf_decode(encoded, len(encoded) - 1, out.ctypes.data, values.nbytes) == TRUNCATED
    assert c.pyf_decode(encoded + b"\0", len(encoded) + 1, out.ctypes.data, values.nbytes) == CORRUPT
    for start, stop, size in ((1, 0, 0), (0, 601, 2404), (600, 601, 4), (0, 10, 44), (2**63, 2**63 + 1, 4)):
        code = c.pyf_decode_range(encoded, len(encoded), start, stop, out.ctypes.data, size)
        assert code == INVALID_ARGUMENT, (start, stop, size)


@pytest.mark.parametrize("offset", range(8))
@pytest.mark.parametrize("codec", [1, LOSSLESS])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_unaligned_memory(c: Any, library: Library, dtype: str, codec: int, offset: int) -> None:
    """Values and frame at any address, in and out: the same bytes."""
    values = field((45, 67), dtype)
    request = request_for(values, codec)
    expected = library.encode(request, values)
    capacity, used = c.pyf_max_frame_bytes(byref(request)), c_size_t()
    memory = (ctypes.create_string_buffer(values.nbytes + 64), ctypes.create_string_buffer(capacity + 64))
    source, target = (-(-ctypes.addressof(one) // 64) * 64 + offset for one in memory)
    ctypes.memmove(source, values.ctypes.data, values.nbytes)
    assert c.pyf_encode(byref(request), source, values.nbytes, target, capacity, byref(used)) == OK
    assert ctypes.string_at(target, used.value) == expected
    assert c.pyf_decode(target, used.value, source, values.nbytes) == OK
    back = np.frombuffer(ctypes.string_at(source, values.nbytes), dtype).reshape(values.shape)
    assert largest_error(back, values) <= (1e-3 if codec == 1 else 0)
    assert c.pyf_decode_range(target, used.value, 1001, 2003, source, 1002 * values.itemsize) == OK
    assert ctypes.string_at(source, 1002 * values.itemsize) == back.ravel()[1001:2003].tobytes()


def test_info(c: Any, library: Library) -> None:
    values = field((20, 30), "f8")
    request = request_for(values, has_fill=1, fill=0x4415AF1D78B58C40, source_big_endian=1)
    values[3] = 1e20
    frame = library.encode(request, values)
    info = library.info(frame)
    assert (info.format_version, info.codec, info.dtype, info.rank, list(info.dims[:2])) == (1, 1, 2, 2, [20, 30])
    assert (info.source_big_endian, info.has_sentinel, info.sentinel) == (1, 1, 0x4415AF1D78B58C40)
    assert (info.value_count, info.value_bytes, info.frame_bytes) == (600, 4800, len(frame))
    assert 0 < info.bound <= 1e-3
    wrong = Info(struct_bytes=12)
    assert c.pyf_frame_info(frame, len(frame), byref(wrong)) == INVALID_ARGUMENT
    assert "info.struct_bytes is 12, this library's is 344" in text(c)


def test_value_range(c: Any) -> None:
    values = np.array([3, -1, np.nan, np.inf, 1e20, 2, 0], "f4")
    low, high, found = c_double(), c_double(), c_int()
    request = request_for(values, has_fill=1, fill=0x60AD78EC)
    arguments = (values.ctypes.data, values.nbytes, byref(low), byref(high), byref(found))
    assert c.pyf_value_range(byref(request), *arguments) == OK
    assert (low.value, high.value, found.value) == (-1, 3, 1)
    values[:] = np.nan
    assert c.pyf_value_range(byref(request), *arguments) == OK
    assert found.value == 0
    whole = np.arange(7, dtype="i4")
    assert c.pyf_value_range(byref(request_for(whole, LOSSLESS)), whole.ctypes.data, 28, *arguments[2:]) == OK
    assert (low.value, high.value, found.value) == (0, 6, 1)
    for kind in ("i8", "u8"):  # what no double is becomes the next one inwards
        ends = np.array([np.iinfo(kind).min + 1, np.iinfo(kind).max, 5], kind)
        request = request_for(ends, LOSSLESS)
        assert c.pyf_value_range(byref(request), ends.ctypes.data, 24, *arguments[2:]) == OK
        assert int(low.value) == (-(2**63) + 1024 if kind == "i8" else 1)
        assert int(high.value) == (2**63 - 1024 if kind == "i8" else 2**64 - 2048)
        request = request_for(ends, LOSSLESS, has_fill=1, fill=5)
        assert c.pyf_value_range(byref(request), ends[2:].ctypes.data, 8, *arguments[2:]) == OK
        assert found.value == 0


@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("fill", [None, 0xC479C000])
def test_parse_stored_cd_values(c: Any, fill: int | None, big_endian: bool) -> None:
    values = stored(words(0.25, 2, parameters=0x0201), "f4", (5, 2**33), big_endian, fill)
    request = Request()
    assert c.pyf_parse_cd_values((c_uint * len(values))(*values), len(values), byref(request)) == OK
    assert (request.codec, request.dtype, request.bound_mode, request.bound) == (1, 1, 2, 0.25)
    assert list(request.parameters) == [1, 2, 0, 0, 0, 0, 0, 0]
    assert (request.rank, list(request.dims[:2])) == (2, [5, 2**33])
    assert (request.has_fill, request.fill, request.source_big_endian) == (1, fill or 0, int(big_endian))


def test_parse_user_cd_values(c: Any) -> None:
    request = Request(rank=9)
    values = words(1e-7)
    assert c.pyf_parse_cd_values((c_uint * 6)(*values), 6, byref(request)) == OK
    assert (request.codec, request.dtype, request.bound_mode, request.bound, request.rank) == (1, 0, 1, 1e-7, 0)
    assert c.pyf_parse_cd_values((c_uint * 6)(*values), 4, byref(request)) == INVALID_ARGUMENT
    assert c.pyf_parse_cd_values(None, 0, byref(request)) == INVALID_ARGUMENT
    assert "0 words given" in text(c)
    assert c.pyf_parse_cd_values((c_uint * 6)(*values), 6, byref(Request(struct_bytes=3))) == INVALID_ARGUMENT


def test_settings(c: Any) -> None:
    for value in (b"3", b"1024", b"1"):
        assert c.pyf_configure(b"threads", value) == OK
        assert c.pyf_config(b"threads") == value
    assert c.pyf_configure(b"local_threads", b"2") == OK
    assert c.pyf_config(b"local_threads") == b"2"
    assert c.pyf_configure(b"local_threads", b"0") == c.pyf_configure(b"threads", b"0") == OK
    assert int(c.pyf_config(b"threads")) >= 1
    assert c.pyf_configure(b"cpu_level", b"baseline") == OK
    assert c.pyf_config(b"cpu_level") == b"baseline"
    assert c.pyf_config(b"backend") in (b"cpu", b"cuda", b"auto")
    assert c.pyf_config(b"cuda") in (b"0", b"1")
    for key, value in [
        (b"threads", b"-1"), (b"threads", b"1025"), (b"threads", b"many"), (b"threads", b""), (b"threads", b"2x"),
        (b"threads", b"99999999999999999999"), (b"local_threads", b"-1"), (b"cpu_level", b"z80"), (b"backend", b"tpu"),
        (b"cuda", b"1"), (b"nothing", b"1"),
    ]:  # fmt: skip
        assert c.pyf_configure(key, value) == INVALID_ARGUMENT, (key, value)
        assert key.decode() in text(c)
    if c.pyf_config(b"cuda_devices") == b"0":
        before = c.pyf_config(b"backend")
        assert c.pyf_configure(b"backend", b"cuda") == DEVICE
        assert "CUDA" in text(c)
        assert c.pyf_config(b"backend") == before
    assert c.pyf_configure(b"release_memory", b"1") == (OK if c.pyf_config(b"cuda") == b"1" else DEVICE)
    assert c.pyf_config(b"nothing") is None


def test_register(c: Any) -> None:
    assert c.pyf_register(loaded("h5py.libs/libhdf5-").encode()) == OK
    for path in (b"/nowhere/libhdf5.so", b"", b"libm.so.6"):
        assert c.pyf_register(path) == INVALID_ARGUMENT
        assert "is not loaded in this process or is no libhdf5" in text(c)
    assert c.pyf_register(None) in (OK, INVALID_ARGUMENT)  # whether python itself shows an HDF5 is not for us to say


def test_errors_are_of_the_thread_that_made_them(c: Any) -> None:
    said = []

    def other() -> None:
        said.append(text(c))
        c.pyf_configure(b"threads", b"x")
        said.append(text(c))

    c.pyf_configure(b"nothing", b"1")
    before = text(c)
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert said[0] == ""
    assert "threads" in said[1]
    assert text(c) == before


def test_ranges_are_read_as_far_as_the_file_goes(c: Any, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(range(200)))
    into = np.zeros(300, "u1")
    ranges = np.zeros(4, np.dtype([("offset", "u8"), ("bytes", "u8"), ("to", "u8"), ("done", "u8")]))
    ranges["offset"], ranges["bytes"] = [10, 150, 200, 1 << 63], [20, 100, 5, 5]
    ranges["to"] = into.ctypes.data + np.array([0, 20, 120, 125])
    with path.open("rb") as file:
        assert c.pyf_read_ranges(file.fileno(), ranges.ctypes.data, 4, 2) == OK
    assert ranges["done"].tolist() == [20, 50, 0, 0]
    assert into.tolist() == [*range(10, 30), *range(150, 200), *[0] * 230]
    assert c.pyf_read_ranges(-1, ranges.ctypes.data, 4, 1) == OK
    assert not ranges["done"].any()
    assert c.pyf_read_ranges(0, None, 0, 1) == OK
    assert c.pyf_read_ranges(0, None, 1, 1) == INVALID_ARGUMENT
    assert text(c) == "ranges is NULL"


def test_a_list_of_chunks_ends_the_walk_when_it_is_full(c: Any) -> None:
    origins, sizes, masks = np.zeros((2, 3), "u8"), np.zeros((2, 2), "u8"), np.zeros(2, "u4")
    listed = abi.ChunkList(2, 0, 3, *(array.ctypes.data for array in (origins, *sizes, masks)))
    for number, ended in enumerate((0, 0, 1)):
        place = (ctypes.c_uint64 * 3)(number, number + 1, number + 2)
        assert c.pyf_list_chunk(place, number + 5, 100 + number, 1000 + number, byref(listed)) == ended
    assert listed.count == 2
    assert (origins.tolist(), sizes.tolist(), masks.tolist()) == (
        [[0, 1, 2], [1, 2, 3]],
        [[100, 101], [1000, 1001]],
        [5, 6],
    )
