# SPDX-License-Identifier: BSD-3-Clause
"""More of filter/c_api.h called wrongly (test_c_api.py): progressive frames, orders of particles, GPUs, settings."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from ctypes import byref, c_double, c_int, c_size_t, c_uint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference.library import Library, Request, abi

from .support import environment, field, stored, words
from .test_c_api import CORRUPT, DEVICE, INVALID_ARGUMENT, OK, TRUNCATED, UNSUPPORTED, request_for, text

PARTICLES, PROGRESSIVE = 5, 6


@pytest.fixture
def c(library: Library) -> Any:
    return library.c


def test_null_pointers_of_the_others(c: Any) -> None:
    values = field((20, 30))
    request, room, used = request_for(values), ctypes.create_string_buffer(10000), c_size_t()
    data, size, read = values.ctypes.data, values.nbytes, abi.ProgressiveSummary()
    given = (byref(request), data, size)
    calls: dict[str, list[tuple[Any, tuple[Any, ...]]]] = {
        "request": [
            (c.pyf_encode_updated, (None, data, size, room, 100, room, 10000, byref(used))),
            (c.pyf_particle_order, (None, data, size, room)),
            (c.pyf_cuda_encode, (None, 1, data, size, room, 10000, room, None)),
            (c.pyf_cuda_particle_order, (None, data, size, room, None)),
        ],
        "values": [
            (c.pyf_encode_updated, (byref(request), None, size, room, 100, room, 10000, byref(used))),
            (c.pyf_progressive_decode, (room, 100, 1, 0, None, 4)),
            (c.pyf_particle_order, (byref(request), None, size, room)),
            (c.pyf_cuda_particle_order, (byref(request), None, size, room, None)),
            (c.pyf_cuda_progressive_decode, (room, 100, 1, 0, None, 4, None)),
        ],
        "old": [(c.pyf_encode_updated, (*given, None, 100, room, 10000, byref(used)))],
        "frame": [
            (c.pyf_encode_updated, (*given, room, 100, None, 10000, byref(used))),
            (c.pyf_progressive_summary, (None, 100, byref(read))),
            (c.pyf_progressive_parts, (None, 100, 0, room, 1)),
            (c.pyf_progressive_decode, (None, 100, 1, 0, room, 4)),
            (c.pyf_cuda_progressive_decode, (None, 100, 1, 0, room, 4, None)),
        ],
        "frame_bytes": [
            (c.pyf_encode_updated, (*given, room, 100, room, 10000, None)),
            (c.pyf_cuda_encode, (byref(request), 1, data, size, room, 10000, None, None)),
        ],
        "summary": [(c.pyf_progressive_summary, (room, 100, None))],
        "parts": [(c.pyf_progressive_parts, (room, 100, 0, None, 1))],
        "particles": [
            (c.pyf_particle_order, (*given, None)),
            (c.pyf_cuda_particle_order, (*given, None, None)),
        ],
        "frames": [
            (c.pyf_cuda_encode, (byref(request), 1, data, size, None, 10000, room, None)),
            (c.pyf_cuda_decode, (None, 1, 0, 1, 4, room, None)),
        ],
        "faults": [(c.pyf_cuda_decode, (room, 1, 0, 1, 4, None, None))],
        "slots": [(c.pyf_cuda_pack, (None, 1, room, room, 1, room, None))],
        "sizes": [(c.pyf_cuda_pack, (room, 1, None, room, 1, room, None))],
        "ends": [(c.pyf_cuda_pack, (room, 1, room, None, 1, room, None))],
        "packed": [(c.pyf_cuda_pack, (room, 1, room, room, 1, None, None))],
    }
    for name, functions in calls.items():
        for function, arguments in functions:
            assert function(*arguments) == INVALID_ARGUMENT, name
            assert text(c) == f"{name} is NULL"


def test_gpus_that_are_not_there(c: Any) -> None:
    if c.pyf_config(b"cuda_devices") != b"0":
        pytest.skip("a GPU is here")
    values = field((20, 30))
    request, room = request_for(values), ctypes.create_string_buffer(10000)
    data, size = values.ctypes.data, values.nbytes
    wrong = request_for(values, codec=200)
    assert c.pyf_cuda_encode(byref(wrong), 1, data, size, room, 10000, room, None) == INVALID_ARGUMENT
    for code in (
        c.pyf_cuda_encode(byref(request), 1, data, size, room, 10000, room, None),
        c.pyf_cuda_decode(room, 1, 0, 1, 4, room, None),
        c.pyf_cuda_pack(room, 1, room, room, 1, room, None),
        c.pyf_cuda_particle_order(byref(request), data, size, room, None),
        c.pyf_cuda_progressive_decode(room, 100, 1, 0, room, 4, None),
    ):
        assert code == DEVICE


@pytest.mark.parametrize("word", [1, 2])
def test_stored_cd_values_beyond_a_byte(c: Any, word: int) -> None:
    values = list(stored(words(), "f4", [8]))
    values[word] = 256
    request = Request()
    assert c.pyf_parse_cd_values((c_uint * len(values))(*values), len(values), byref(request)) == CORRUPT
    assert "allowed: 0 to 255" in text(c)


def test_stored_cd_values_without_zeros(c: Any) -> None:
    values = list(stored(words(mode=2), "f4", [8], fill=5))
    values[6] |= 1 << 10
    request = Request()
    assert c.pyf_parse_cd_values((c_uint * len(values))(*values), len(values), byref(request)) == OK
    assert request.without_zeros == 1


def test_ranges_of_requests_that_are_none(c: Any) -> None:
    values = field((20, 30))
    number, found = c_double(), c_int()
    request = request_for(values, dtype=0, has_fill=1, fill=5)
    given = (values.ctypes.data, values.nbytes, byref(number), byref(number), byref(found))
    assert c.pyf_value_range(byref(request), *given) == INVALID_ARGUMENT
    assert "dtype code 0 is unknown" in text(c)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"fill_imaginary": 1}, "request.fill_imaginary must be zero: the values are not complex"),
        ({"has_fill": 1, "fill": 1 << 32}, "request.fill is 0x100000000, wider than a value of 32 bits"),
        ({"without_zeros": 2}, "request.without_zeros is 2, allowed: 0, 1"),
        ({"reserved": (0, 1)}, "request.reserved must be zero"),
        ({"reserved": (1, 0)}, "request.reserved must be zero"),
    ],
    ids=str,
)
def test_fields_of_requests(c: Any, fields: dict[str, Any], said: str) -> None:
    request = request_for(field((20, 30)), **fields)
    assert c.pyf_check_request(byref(request)) == INVALID_ARGUMENT
    assert text(c) == said


@pytest.mark.parametrize("fill", [0, 1 << 40, (1 << 64) - 1])
@pytest.mark.parametrize("dtype", [2, 12])
def test_fill_values_of_64_bits(c: Any, fill: int, dtype: int) -> None:
    request = request_for(field((20, 30)), dtype=dtype, has_fill=1, fill=fill)
    request.fill_imaginary = fill if dtype == 12 else 0
    assert c.pyf_check_request(byref(request)) == OK


def test_shapes_beyond_memory(c: Any) -> None:
    values = field((20, 30))
    for dims in ((1 << 61, 1), (1 << 40, 1 << 40), (1 << 46, 1)):
        request = request_for(values)
        request.dims[:2] = dims
        assert c.pyf_max_frame_bytes(byref(request)) == 0
        assert ("use smaller chunks" if max(dims) == 1 << 46 else "2^61 or more") in text(c)
        room, used = ctypes.create_string_buffer(8), c_size_t()
        assert c.pyf_encode(byref(request), values.ctypes.data, values.nbytes, room, 8, byref(used)) != OK


class Parts:
    """A progressive frame, and calls for parts of it."""

    def __init__(self, library: Library, shape: tuple[int, ...] = (40, 50), codec: int = PROGRESSIVE) -> None:
        self.values = field(shape)
        self.c = library.c
        self.frame = library.encode(request_for(self.values, codec), self.values)

    def summary(self, available: int | None = None) -> tuple[int, Any]:
        read = abi.ProgressiveSummary()
        return self.c.pyf_progressive_summary(self.frame, available or len(self.frame), byref(read)), read

    def table(self, level: int, count: int) -> int:
        room = ctypes.create_string_buffer(64 * max(count, 1))
        return int(self.c.pyf_progressive_parts(self.frame, len(self.frame), level, room, count))

    def decode(self, segments: int, level: int, size: int, available: int | None = None) -> int:
        room = ctypes.create_string_buffer(max(size, 1))
        return int(self.c.pyf_progressive_decode(self.frame, available or len(self.frame), segments, level, room, size))


def test_parts_of_progressive_frames(c: Any, library: Library) -> None:
    parts = Parts(library)
    code, read = parts.summary()
    assert code == OK
    size = parts.values.nbytes
    assert parts.table(0, read.segments) == parts.table(1, read.segments) == OK
    assert parts.decode(read.segments, 0, size) == parts.decode(1, 1, size // 4) == OK
    assert parts.summary(60)[0] == TRUNCATED
    calls: dict[str, Callable[[], int]] = {
        f"level is {read.levels + 1}, allowed: 0 to {read.levels}": lambda: parts.table(read.levels + 1, read.segments),
        f"room for {read.segments + 1} segments": lambda: parts.table(0, read.segments + 1),
        f"level is {read.levels + 1}": lambda: parts.decode(1, read.levels + 1, 4),
        f"{read.segments + 1} segments asked for": lambda: parts.decode(read.segments + 1, 0, size),
        f"exactly {size} are decoded": lambda: parts.decode(1, 0, size - 4),
        f"exactly {size // 4} are decoded": lambda: parts.decode(1, 1, size),
    }
    for said, call in calls.items():
        assert call() == INVALID_ARGUMENT
        assert said in text(c)
    assert parts.decode(read.segments, 0, size, len(parts.frame) - 1) == TRUNCATED
    assert parts.decode(read.segments, 0, size, read.prefix_bytes - 1) == TRUNCATED
    assert parts.decode(1, 0, size, 20) == TRUNCATED


@pytest.mark.parametrize(("codec", "shape"), [(1, (40, 50)), (PROGRESSIVE, (2,))])
def test_parts_of_other_frames(c: Any, library: Library, codec: int, shape: tuple[int, ...]) -> None:
    """Frames of other codecs, and those stored raw."""
    parts = Parts(library, shape, codec)
    for code in (parts.summary()[0], parts.table(0, 1), parts.decode(1, 0, parts.values.nbytes)):
        assert code == UNSUPPORTED
        assert "the frame is not a progressive one" in text(c)


def test_levels_of_more_than_three_dimensions(c: Any, library: Library) -> None:
    parts = Parts(library, (3, 4, 30, 30))
    _, read = parts.summary()
    assert read.levels > 0
    for code in (parts.table(1, read.segments), parts.decode(1, 1, 4)):
        assert code == UNSUPPORTED
        assert "have level 0 only" in text(c)


@pytest.mark.parametrize(
    ("shape", "fields", "size"),
    [
        ((20, 3), {"codec": 1}, None),
        ((20, 4), {}, None),
        ((60,), {}, None),
        ((20, 3), {}, 236),
        ((20, 3), {"bound": 0.0}, None),
    ],
    ids=str,
)
def test_orders_that_are_none(c: Any, shape: tuple[int, ...], fields: dict[str, Any], size: int | None) -> None:
    values = field(shape)
    request = request_for(values, **{"codec": PARTICLES, **fields})
    order = np.full(60, 77, "u4")
    code = c.pyf_particle_order(byref(request), values.ctypes.data, size or values.nbytes, order.ctypes.data)
    assert code == INVALID_ARGUMENT
    assert (order == 77).all()
    assert text(c)


@pytest.mark.parametrize("count", [0, 7])
def test_orders_of_few(c: Any, count: int) -> None:
    values = np.random.default_rng(0).normal(size=(count, 3)).astype("f4")
    request = request_for(values, PARTICLES)
    request.parameters[0] = 2
    order = np.full(count, 77, "u4")
    assert c.pyf_particle_order(byref(request), values.ctypes.data, values.nbytes, order.ctypes.data) == OK
    assert sorted(order.tolist()) == list(range(count))


def value_range(c: Any, request: Request, values: np.ndarray[Any, Any]) -> tuple[float, float] | None:
    low, high, found = c_double(), c_double(), c_int()
    code = c.pyf_value_range(byref(request), values.ctypes.data, values.nbytes, byref(low), byref(high), byref(found))
    assert code == OK
    return (low.value, high.value) if found.value else None


def test_ranges_of_derived_types(c: Any) -> None:
    """Real and imaginary parts have one range; values that are the fill value have none."""
    values = np.array([1 + 2j, -9 - 9.5j, 3 - 4j, np.nan], "c8")
    request = Request(codec=3, dtype=11, bound_mode=2, bound=1e-3, rank=1)
    request.dims[0] = 4
    assert value_range(c, request, values) == (-9.5, 3)
    request.has_fill = 1
    request.fill, request.fill_imaginary = (int(part.view("u4")) for part in (values[1].real, values[1].imag))
    assert value_range(c, request, values) == (-4, 3)
    halves = np.array([1, -2.5, np.inf, 9], "f2")
    request = Request(
        codec=3, dtype=14, bound_mode=2, bound=1e-3, rank=1, has_fill=1, fill=int(halves[3:].view("u2")[0])
    )
    request.dims[0] = 4
    assert value_range(c, request, halves) == (-2.5, 1)
    assert value_range(c, request, np.full(4, np.nan, "f2")) is None


SETTINGS = """
import ctypes, sys
c = ctypes.CDLL(sys.argv[1])
c.pyf_config.restype = ctypes.c_char_p
print(*(c.pyf_config(key).decode() for key in (b"cpu_level", b"threads", b"backend")))
"""


@pytest.mark.parametrize(
    ("level", "threads", "backend"),
    [
        ("baseline", "3", "cpu"),
        ("auto", "0", "auto"),
        ("z80", "3x", "tpu"),
        ("", "-1", ""),
        ("baseline", "99999", "cuda"),
        (None, None, None),
    ],
)
def test_environments(library_path: Path, level: str | None, threads: str | None, backend: str | None) -> None:
    """What is not known there is as if it were not there."""
    given = {"PYFILTER_CPU": level, "PYFILTER_NUM_THREADS": threads, "PYFILTER_BACKEND": backend}
    env = {key: value for key, value in environment(None).items() if key not in given}
    env |= {key: value for key, value in given.items() if value is not None}
    command = [sys.executable, "-c", SETTINGS, str(library_path)]
    said = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True).stdout.split()
    assert said[0] in (("baseline",) if level == "baseline" else ("baseline", "avx2", "avx512"))
    assert said[1] == "3" if threads == "3" else int(said[1]) >= 1
    assert said[2] == (backend if backend in ("cpu", "cuda", "auto") else "auto")


def test_updates_of_frames_that_are_none(c: Any, library: Library) -> None:
    """A damaged old frame or one of another type is an error; one of another shape is no origin: all values are new."""
    values = field((20, 30))
    request = request_for(values, 3)
    request.bound_mode = 2
    expected = library.encode(request, values)
    room, used = ctypes.create_string_buffer(c.pyf_max_frame_bytes(byref(request))), c_size_t()

    def update(old: bytes) -> int:
        given = (byref(request), values.ctypes.data, values.nbytes, old, len(old))
        return int(c.pyf_encode_updated(*given, room, len(room), byref(used)))

    for old, code in ((b"", TRUNCATED), (b"nothing", TRUNCATED), (expected[:-1], TRUNCATED), (bytes(100), CORRUPT)):
        assert update(old) == code
    for other, code in ((field((30, 20)), OK), (field((20, 30), "f8"), INVALID_ARGUMENT)):
        assert update(library.encode(request_for(other, 3), other)) == code
    assert update(expected) == OK
    assert (
        np.max(np.abs(np.frombuffer(library.decode(room.raw[: used.value], values.nbytes), "f4") - values.ravel())) < 1
    )
