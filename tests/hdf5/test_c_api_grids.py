# SPDX-License-Identifier: BSD-3-Clause
"""Chunks of arrays, and segments that a tolerance needs, by filter/c_api.h itself: shapes, damage, and slips."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Sequence
from ctypes import byref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference.library import Library, Request, abi

from .support import DTYPES, Array, field
from .test_c_api import INVALID_ARGUMENT, OK, request_for, text

PROGRESSIVE = 6
RANGE = np.dtype([("offset", "u8"), ("bytes", "u8"), ("to", "u8"), ("done", "u8")])


class Chunks:
    """An array, the shape of its chunks, and what pyf_grid says of them."""

    def __init__(self, array: Array, chunk: Sequence[int], begin: Sequence[int] | None = None) -> None:
        self.array, self.chunk = array, tuple(chunk)
        begin = begin or (0,) * array.ndim
        counts = [-(-(b + n) // c) for b, n, c in zip(begin, array.shape, chunk, strict=True)]
        self.count = math.prod(counts)
        self.numbers = [np.array(x, "i8") for x in (array.strides, array.shape, begin, chunk)]
        addresses = [numbers.ctypes.data for numbers in self.numbers]
        self.grid = abi.Grid(array.ctypes.data, *addresses, array.ndim, array.itemsize)

    def request(self) -> Request:
        dtype = DTYPES[self.array.dtype.str[1:]]
        request = Request(codec=2, dtype=dtype, rank=len(self.chunk))
        request.dims[: len(self.chunk)] = self.chunk
        return request

    def encode(self, c: Any, threads: int = 1) -> list[bytes]:
        padding = np.full(1, 7, self.array.dtype)
        request = self.request()
        stride = c.pyf_max_frame_bytes(byref(request))
        frames, sizes = np.zeros((self.count, stride), "u1"), np.zeros(self.count, "u8")
        code = c.pyf_encode_grid(
            byref(request), byref(self.grid), padding.ctypes.data, frames.ctypes.data, stride, sizes.ctypes.data,
            self.count, threads,
        )  # fmt: skip
        assert code == OK, text(c)
        return [frames[i, : int(size)].tobytes() for i, size in enumerate(sizes)]

    def read(self, c: Any, path: Path, frames: Sequence[bytes], dtype: int | None = None) -> Array:
        """Write frames to a file and read them into the array; which chunks were decoded."""
        path.write_bytes(b"".join(frames))
        ranges = np.zeros(self.count, RANGE)
        ranges["bytes"] = [len(frame) for frame in frames]
        ranges["offset"] = np.cumsum(ranges["bytes"]) - ranges["bytes"]
        dtype = dtype or DTYPES[self.array.dtype.str[1:]]
        with path.open("rb") as file:
            code = c.pyf_read_grid(byref(self.grid), dtype, file.fileno(), ranges.ctypes.data, self.count, 1)
        assert code == OK
        done: Array = np.asarray(ranges["done"] == ranges["bytes"]) & (ranges["bytes"] != 0)
        return done


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
@pytest.mark.parametrize(
    ("shape", "chunk", "begin"),
    [
        ((40,), (16,), None),
        ((32, 24), (8, 24), None),
        ((33, 21), (8, 10), (3, 2)),
        ((5, 40, 50), (2, 16, 16), None),
        ((3, 4, 9, 11), (2, 3, 4, 5), (1, 0, 2, 3)),
        ((300, 4), (150, 4), None),
    ],
    ids=str,
)
@pytest.mark.parametrize("layout", ["C", "F", "reversed", "unaligned"])
def test_grids(library: Library, tmp_path: Path, dtype: str, shape: Any, chunk: Any, begin: Any, layout: str) -> None:
    values = field(shape, "f8").astype(dtype) if dtype != "i2" else (field(shape) * 100).astype("i2")
    room = np.zeros(values.nbytes + 1, "u1")
    array = np.ndarray(shape, values.dtype, room.data, 1) if layout == "unaligned" else np.empty(shape, values.dtype)
    array = np.asfortranarray(array) if layout == "F" else array[::-1] if layout == "reversed" else array
    array[...] = values
    chunks = Chunks(array, chunk, begin)
    frames = chunks.encode(library.c)
    first = np.full(chunk, 7, values.dtype)
    start = begin or (0,) * len(shape)
    inside = tuple(slice(b, b + n) for b, n in zip(start, shape, strict=True))
    first[inside] = values[tuple(slice(0, c - b) for b, c in zip(start, chunk, strict=True))]
    assert library.decode(frames[0], first.nbytes) == first.tobytes()
    array[...] = 0
    assert chunks.read(library.c, tmp_path / "frames", frames).all()
    assert np.array_equal(array, values)


def test_chunks_that_are_left_out(library: Library, tmp_path: Path) -> None:
    """Nothing is stored, the file ends, the frame is damaged, of another shape or another type."""
    values = field((6, 40))
    chunks = Chunks(values.copy(), (1, 40))
    frames = chunks.encode(library.c)
    other = library.encode(request_for(field((1, 30)), 2), field((1, 30)))
    doubles = library.encode(request_for(field((1, 20), "f8"), 2), field((1, 20), "f8"))
    damaged = frames[4][:-1] + bytes([frames[4][-1] ^ 255])
    head = b"\0" + frames[3][1:]
    chunks.array[...] = 0
    done = chunks.read(library.c, tmp_path / "a", [frames[0], b"", other, head, damaged[:-4], doubles])
    assert done.tolist() == [True, False, False, False, False, False]
    assert np.array_equal(chunks.array[0], values[0])
    assert not chunks.read(library.c, tmp_path / "a", frames, dtype=2).any()
    path = tmp_path / "a"
    ranges = np.zeros(6, RANGE)
    ranges["bytes"] = len(frames[0])
    path.write_bytes(frames[0][:-1])
    with path.open("rb") as file:
        code = library.c.pyf_read_grid(byref(chunks.grid), 1, file.fileno(), ranges.ctypes.data, 6, 1)
    assert code == OK
    assert not ranges["done"].any()


def test_chunks_that_cannot_be_encoded(library: Library) -> None:
    values = field((2, 40))
    chunks = Chunks(values, (1, 40))
    request = chunks.request()
    frames, sizes, padding = np.zeros((2, 8), "u1"), np.full(2, 5, "u8"), np.zeros(1, "f4")
    code = library.c.pyf_encode_grid(
        byref(request), byref(chunks.grid), padding.ctypes.data, frames.ctypes.data, 8, sizes.ctypes.data, 2, 1
    )
    assert code == OK
    assert not sizes.any()


def test_grids_that_are_none(library: Library) -> None:
    c = library.c
    chunks = Chunks(field((6, 40)), (2, 40))
    ranges, request, room = np.zeros(9, RANGE), chunks.request(), np.zeros(100, "u1")

    def codes(grid: Any, count: int) -> set[int]:
        rest = (room.ctypes.data, room.ctypes.data, 10, room.ctypes.data, count, 1)
        return {
            c.pyf_read_grid(grid, 1, 0, ranges.ctypes.data, count, 1),
            c.pyf_encode_grid(byref(request), grid, *rest),
        }

    assert codes(None, 3) == {INVALID_ARGUMENT}
    assert text(c) == "grid is NULL"
    assert codes(byref(chunks.grid), 4) == {INVALID_ARGUMENT}
    assert text(c) == "the grid has 3 chunks, but count is 4"
    for rank in (0, 33):
        chunks.grid.rank = rank
        assert codes(byref(chunks.grid), 3) == {INVALID_ARGUMENT}
        assert text(c) == f"the grid has {rank} dimensions, allowed: 1 to 32"
    chunks.grid.rank = 2
    for begin, chunk in ((2, 2), (0, 0)):
        chunks.numbers[2][0], chunks.numbers[3][0] = begin, chunk
        assert codes(byref(chunks.grid), 3) == {INVALID_ARGUMENT}
        assert text(c).startswith(f"the first chunk begins {begin} values before the array")
    rest = (room.ctypes.data, room.ctypes.data, 10, room.ctypes.data, 3, 1)
    assert c.pyf_encode_grid(None, byref(chunks.grid), *rest) == INVALID_ARGUMENT


class Written:
    """Takes the place of HDF5's H5Dwrite_chunk, and refuses some calls."""

    def __init__(self, chunks: Chunks, refused: int = -1) -> None:
        self.calls: list[tuple[tuple[int, ...], bytes]] = []
        self.refused = refused
        grid = [-(-n // c) for n, c in zip(chunks.array.shape, chunks.chunk, strict=True)]
        self.origins = np.array([np.array(place) * chunks.chunk for place in np.ndindex(*grid)], "u8")
        self.thread = threading.get_ident()
        self.function = abi.WRITE_CHUNK(self.call)
        self.writer = abi.ChunkWriter(self.function, 77, self.origins.ctypes.data, chunks.array.ndim)

    def call(self, dataset: int, transfer: int, mask: int, origin: int, size: int, frame: int) -> int:
        assert (dataset, transfer, mask, threading.get_ident()) == (77, 0, 0, self.thread)
        if len(self.calls) == self.refused:
            return -1
        place = ctypes.cast(origin, ctypes.POINTER(ctypes.c_uint64))
        self.calls.append((tuple(place[: self.writer.rank]), ctypes.string_at(frame, size)))
        return 0

    def write(self, c: Any, chunks: Chunks, first: int = 0, threads: int = 1, seconds: float = 9.0) -> int:
        padding, written, request = np.full(1, 7, chunks.array.dtype), ctypes.c_uint64(99), chunks.request()
        code = c.pyf_write_grid(
            byref(request), byref(chunks.grid), padding.ctypes.data, byref(self.writer), first, chunks.count - first,
            threads, seconds, byref(written),
        )  # fmt: skip
        assert code == OK, text(c)
        return written.value


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize(
    ("shape", "chunk"),
    [((40,), (16,)), ((70, 90), (7, 10)), ((12, 300, 500), (1, 300, 500)), ((3, 1000, 700), (1, 1000, 700))],
    ids=str,
)
def test_frames_are_written_in_order(library: Library, shape: Any, chunk: Any, threads: int) -> None:
    chunks = Chunks(field(shape), chunk)
    frames = chunks.encode(library.c)
    written = Written(chunks)
    assert written.write(library.c, chunks, threads=threads) == chunks.count
    assert [frame for _, frame in written.calls] == frames
    assert [place for place, _ in written.calls] == [tuple(place) for place in written.origins.tolist()]
    for refused in {0, 1, chunks.count // 2, chunks.count - 1}:
        some = Written(chunks, refused)
        assert some.write(library.c, chunks, threads=threads) == refused
        some.refused = -1
        assert some.write(library.c, chunks, refused, threads) == chunks.count - refused
        assert some.calls == written.calls


@pytest.mark.parametrize("threads", [1, 3])
def test_writing_ends_when_time_is_up(library: Library, threads: int) -> None:
    chunks = Chunks(field((12, 600, 500)), (1, 600, 500))
    written, done, calls = Written(chunks), 0, 0
    while done < chunks.count:
        now = written.write(library.c, chunks, done, threads, 0.0)
        assert now > 0
        done, calls = done + now, calls + 1
    assert calls > 1
    assert [frame for _, frame in written.calls] == chunks.encode(library.c)


def test_chunks_are_left_to_the_caller(library: Library) -> None:
    """A frame as large as its values is not written, since HDF5 may take it for these."""
    found = 0
    for size in (1000, 2000, 3000, 4000):
        values = np.zeros((1000, size), "u1")
        for i, row in enumerate(values):
            row[: size - i] = np.frombuffer(np.random.default_rng(i).bytes(size - i), "u1")
        chunks = Chunks(values, (1, size))
        sizes = [len(frame) for frame in chunks.encode(library.c)]
        if size in sizes:
            found += 1
            assert Written(chunks).write(library.c, chunks) == sizes.index(size)
    assert found > 0


def test_writing_what_is_no_grid(library: Library) -> None:
    c, chunks = library.c, Chunks(field((6, 40)), (2, 40))
    written, padding, request, done = Written(chunks), np.zeros(1, "f4"), chunks.request(), ctypes.c_uint64(99)

    def code(**other: Any) -> int:
        usual: dict[str, Any] = {
            "request": byref(request), "grid": byref(chunks.grid), "padding": padding.ctypes.data,
            "writer": byref(written.writer), "first": 0, "count": 3, "threads": 1, "seconds": 1.0, "done": byref(done),
        }  # fmt: skip
        return int(c.pyf_write_grid(*(usual | other).values()))

    for slip, said in (
        ({"grid": None}, "grid is NULL"),
        ({"request": None}, "request is NULL"),
        ({"padding": None}, "padding or written is NULL"),
        ({"done": None}, "padding or written is NULL"),
        ({"writer": None}, "writer is NULL"),
        ({"first": 2, "count": 2}, "the grid has 3 chunks, but first + count is 2 + 2"),
        ({"first": 4, "count": 0}, "the grid has 3 chunks, but first + count is 4 + 0"),
    ):
        assert code(**slip) == INVALID_ARGUMENT
        assert text(c) == said
    request.codec = 99
    assert code() != OK
    assert not written.calls


def choose(library: Library, path: Path, frames: Sequence[bytes], head: int, like: Request, tolerance: float) -> Any:
    path.write_bytes(b"".join(frames))
    ranges, room = np.zeros(len(frames), RANGE), np.zeros((len(frames), head), "u1")
    ranges["bytes"] = [len(frame) for frame in frames]
    ranges["offset"] = np.cumsum(ranges["bytes"]) - ranges["bytes"]
    ranges["to"] = room.ctypes.data + head * np.arange(len(frames))
    ranges["bytes"][-1] += 1 if tolerance == 77 else 0  # the file ends within it
    choices = (abi.ProgressiveChoice * len(frames))()
    with path.open("rb") as file:
        code = library.c.pyf_progressive_choose(
            file.fileno(), ranges.ctypes.data, len(frames), head, byref(like), tolerance, byref(choices), 1
        )
    assert code == OK
    return choices


def test_choices(library: Library, tmp_path: Path) -> None:
    values = field((40, 50))
    like = request_for(values, PROGRESSIVE)
    frame = library.encode(like, values)
    [coarse] = choose(library, tmp_path / "a", [frame], 4096, like, 0.1)
    [all_of_it] = choose(library, tmp_path / "a", [frame], 4096, like, 1e-9)
    assert coarse.known == all_of_it.known == 1
    assert 0 < coarse.chosen < all_of_it.chosen == coarse.segments == all_of_it.segments
    assert coarse.end < all_of_it.end == len(frame)
    assert coarse.error <= 0.1
    assert all_of_it.error > 1e-9


def test_choices_of_other_frames(library: Library, tmp_path: Path) -> None:
    """Another size, type, rank, shape, codec; a header that is damaged, a head that is too short, the file's end."""
    values = field((40, 50))
    like = request_for(values, PROGRESSIVE)
    frame = library.encode(like, values)
    others = [field((40, 50), "f8"), field((2000,)), field((50, 40))]
    frames = [library.encode(request_for(other, PROGRESSIVE), other) for other in others]
    frames += [library.encode(request_for(values, 1), values), b"\0" + frame[1:], frame + b"\0"]
    assert [c.known for c in choose(library, tmp_path / "a", [*frames, frame], 4096, like, 0.1)] == [0] * 6 + [1]
    for head in (10, 80):
        assert [c.known for c in choose(library, tmp_path / "a", [frame], head, like, 0.1)] == [0]
    assert [c.known for c in choose(library, tmp_path / "a", [frame], 1 << 16, like, 77)] == [0]
    ranges = np.zeros(1, RANGE)
    for arguments in ((None, byref(like)), (ranges.ctypes.data, None)):
        given, request = arguments
        code = library.c.pyf_progressive_choose(0, given, 1, 10, request, 0.1, None, 1)
        assert code == INVALID_ARGUMENT
    assert library.c.pyf_progressive_choose(0, ranges.ctypes.data, 1, 10, byref(like), 0.1, None, 1) == INVALID_ARGUMENT
    assert library.c.pyf_progressive_choose(0, None, 0, 10, byref(like), 0.1, None, 1) == OK


def test_a_chunk_without_values_has_no_segments(library: Library, tmp_path: Path) -> None:
    values = np.zeros((0, 5), "f4")
    like = request_for(values, PROGRESSIVE)
    [choice] = choose(library, tmp_path / "a", [library.encode(like, values)], 4096, like, 0.1)
    assert choice.chosen == choice.segments == 0
