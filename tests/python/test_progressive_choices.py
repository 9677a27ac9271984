# SPDX-License-Identifier: BSD-3-Clause
"""What the library finds that a tolerance needs of many progressive frames is what the reader finds chunk by chunk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter import progressive
from pyfilter._lib import abi, host, library
from pyfilter.frames import make_request
from pyfilter.progressive.chunk import HEAD_BYTES, Chunk
from python.support import field

SHAPE = (10, 40, 50)


def choose(path: Path, chunks: list[Chunk], tolerance: float) -> tuple[Any, Any]:
    heads = np.zeros((len(chunks), HEAD_BYTES), np.uint8)
    ranges = np.zeros(len(chunks), abi.RANGE)
    ranges["offset"], ranges["bytes"] = [chunk.start for chunk in chunks], [chunk.size for chunk in chunks]
    ranges["to"] = heads.ctypes.data + HEAD_BYTES * np.arange(len(chunks))
    like = make_request(pyfilter.Progressive(), np.dtype("f4"), SHAPE)
    with path.open("rb") as file:
        return host.progressive_choose(file.fileno(), ranges, HEAD_BYTES, like, tolerance, 2), ranges


def chunks_of(path: Path) -> list[Chunk]:
    with progressive.open(path, "x") as reader:
        return list(reader._chunks.values())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    values = field((40, 40, 50))
    values[10:20] = 7.0
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=SHAPE, **pyfilter.Progressive())
    return tmp_path / "a.h5"


@pytest.mark.parametrize("tolerance", [0.0, 1e-4, 0.01, 0.3, 1e9])
def test_choices(path: Path, tolerance: float) -> None:
    chunks = chunks_of(path)
    choices, ranges = choose(path, chunks, tolerance)
    assert choices["known"].all()
    data = path.read_bytes()
    for chunk, choice, found in zip(chunks, choices, ranges, strict=True):
        here = min(chunk.size, HEAD_BYTES)
        assert found["done"] == here
        chunk.put_head(data[chunk.start : chunk.start + here])
        needed = chunk.ask(tolerance, 0)
        end = max([here, *(stop - chunk.start for _, stop in needed)])
        assert (choice["error"], max(choice["end"], here), choice["levels"]) == (chunk.error, end, chunk.levels)
        assert choice["chosen"] == chunk._count


def test_damaged_heads_are_not_known(path: Path) -> None:
    """Or they say what the reader finds, too."""
    rng = np.random.default_rng(5)
    chunks = chunks_of(path)
    data = path.read_bytes()
    known = 0
    for _ in range(300):
        broken = bytearray(data)
        for _ in range(int(rng.integers(1, 4))):
            broken[chunks[0].start + int(rng.integers(0, 400))] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(broken))
        one = Chunk(chunks[0].start, chunks[0].size, chunks[0].origin, SHAPE, np.dtype("f4"))
        choice = choose(path, [one], 0.01)[0][0]
        if not choice["known"]:
            continue
        known += 1
        here = min(one.size, HEAD_BYTES)
        one.put_head(bytes(broken[one.start : one.start + here]))
        one.ask(0.01, 0)
        assert (choice["error"], choice["chosen"]) == (one.error, one._count)
    assert known < 300


def test_what_is_no_such_frame(path: Path) -> None:
    chunks = chunks_of(path)
    for one in (
        Chunk(0, 500, (0, 0, 0), SHAPE, np.dtype("f4")),
        Chunk(1 << 40, 500, (0, 0, 0), SHAPE, np.dtype("f4")),
        Chunk(chunks[0].start, chunks[0].size - 1, (0, 0, 0), SHAPE, np.dtype("f4")),
        Chunk(chunks[0].start, 0, (0, 0, 0), SHAPE, np.dtype("f4")),
    ):
        assert not choose(path, [one], 0.1)[0]["known"].any()
    with pytest.raises(pyfilter.errors.InvalidArgument, match="NULL"):
        library.check(
            library.load().pyf_progressive_choose(
                0, None, 1, HEAD_BYTES, make_request(pyfilter.Progressive(), np.dtype("f4"), SHAPE), 0.1, None, 1
            )
        )
