# SPDX-License-Identifier: BSD-3-Clause
"""hierarchical_delta: tiles at the edges of an array, special values, exceptions, bit-exact frames, damaged frames."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference import decoder, packed
from reference.library import GuardedMemory

import pyfilter
from pyfilter import HierarchicalDelta

from .fields import PREDICTORS, Case, family, from_bits, hunt, levels_here, lossy_codecs, special_patterns, sprinkle
from .judge import bits, check_case

Array = NDArray[Any]
FILL = -999.0
DTYPES = pytest.mark.parametrize("dtype", ["f4", "f8"])
EACH = pytest.mark.parametrize("predictor", PREDICTORS)
SIZES = (0, 1, 31, 32, 33, 4095, 4096, 4097, 8191, 8193)


def tiles_of(frame: bytes) -> packed.Tile:
    """The tiles of a frame, by the reference decoder."""
    header = decoder.parse_header(frame)
    assert header.packed
    assert not header.raw
    tiles = packed.parse_tiles(frame, header)
    assert tiles is not None
    return tiles


@pytest.mark.parametrize("size", SIZES)
@DTYPES
def test_every_size(dtype: str, size: int) -> None:
    """As a row, and as rows of arrays of rank 2 to 4."""
    rng = np.random.default_rng(size)
    smooth = family("smooth", max(size, 1) * 6, np.dtype(dtype), rng, 1.0, 1e-3)
    for shape in ((size,), (size, 3), (3, size), (2, size, 3), (1, 2, 3, size), (size, 1, 1), (1, size, 1, 2)):
        values = smooth[: int(np.prod(shape))].reshape(shape)
        holes = sprinkle(values, np.dtype(dtype).type(FILL), "runs", rng)
        for codec in lossy_codecs(HierarchicalDelta, len(shape), absolute=1e-3):
            check_case(Case(values, codec))
            check_case(Case(holes, codec, np.dtype(dtype).type(FILL)))


def shapes(predictor: str) -> st.SearchStrategy[tuple[int, ...]]:
    """Extents shorter than a block, and around one and two tiles."""
    few = st.integers(1, 3)
    if predictor == "lorenzo2d":
        return st.tuples(few, st.integers(1, 70), st.integers(1, 135))
    if predictor == "columns":
        return st.tuples(few, st.integers(1, 1100), st.integers(1, 9))
    if predictor == "chain":
        return st.tuples(few, st.integers(1, 5000))
    return st.tuples(few, st.integers(1, 18), st.integers(1, 35), st.integers(1, 35))


@EACH
@DTYPES
@given(data=st.data())
@hunt(60)
def test_special_values(dtype: str, predictor: str, data: st.DataObject) -> None:
    """Any number of sentinels, NaNs and values out of reach, on every level."""
    kind = np.dtype(dtype)
    shape = data.draw(shapes(predictor))
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 16)))
    n = int(np.prod(shape))
    values = family("smooth", n, kind, rng, 0.05, 2.0**-7)
    pool = [FILL, np.nan, np.inf, 1e30, -1e37]
    for _ in range(data.draw(st.integers(0, 4))):
        start, length = int(rng.integers(0, n)), int(rng.choice((1, 3, 40, 700, 5000)))
        every = int(rng.choice((1, 1, 2, 9)))
        values[start : start + length : every] = kind.type(rng.choice(pool))
    values = values.reshape(shape)
    outliers = data.draw(st.sampled_from(("on", "off")))
    codec = HierarchicalDelta(absolute=2.0**-7, predictor=predictor, outliers=outliers)
    frames = set()
    for level in levels_here():
        with pyfilter.config(cpu_level=level):
            check_case(Case(values, codec, kind.type(FILL)))
            frames.add(pyfilter.encode(values, codec, kind.type(FILL)))
    assert len(frames) == 1


@EACH
@DTYPES
@given(data=st.data())
@hunt(40)
def test_ranges(dtype: str, predictor: str, data: st.DataObject) -> None:
    """A range decoded is that of the whole, wherever tiles begin and end."""
    shape = data.draw(shapes(predictor))
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 16)))
    n = int(np.prod(shape))
    values = sprinkle(family("smooth", n, np.dtype(dtype), rng, 1.0, 1e-3), None, "few", rng).reshape(shape)
    frame = pyfilter.encode(values, HierarchicalDelta(absolute=1e-3, predictor=predictor))
    whole = bits(pyfilter.decode(frame))
    for _ in range(12):
        start, stop = sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n))))
        assert np.array_equal(bits(pyfilter.decode(frame, start, stop)), whole[start:stop]), (start, stop)


@DTYPES
def test_outliers_are_stored_apart(dtype: str) -> None:
    """With outliers a lone wide value costs two bytes, not planes for its whole block; without, none are written."""
    rng = np.random.default_rng(1)
    shape = (16, 32, 64)
    values = rng.integers(-2, 3, shape).astype(dtype)
    values.reshape(-1)[rng.random(values.size) < 0.002] += 500
    for predictor in ("chain", "lorenzo2d", "lorenzo3d", "columns"):
        sizes = {}
        for outliers in ("on", "off"):
            codec = HierarchicalDelta(absolute=0.3, predictor=predictor, outliers=outliers)
            check_case(Case(values, codec))
            frame = pyfilter.encode(values, codec)
            assert (tiles_of(frame).exceptions >= 0).any() == (outliers == "on")
            sizes[outliers] = len(frame)
        assert sizes["on"] < sizes["off"]
    auto = {name: HierarchicalDelta(absolute=0.3, predictor=name) for name in ("chain", "lorenzo3d")}
    assert not (tiles_of(pyfilter.encode(values, auto["chain"])).exceptions >= 0).any()
    assert (tiles_of(pyfilter.encode(values, auto["lorenzo3d"])).exceptions >= 0).any()


@EACH
@DTYPES
def test_missing_data_costs_nothing(dtype: str, predictor: str) -> None:
    """Tiles of nothing but the fill value, or zeros, are next to nothing, and so are single values among them."""
    shape = (24, 64, 128)
    values = np.full(shape, FILL, dtype)
    values[8:16] = 0
    values[16:, 3, 5] = 7
    codec = HierarchicalDelta(absolute=1e-3, predictor=predictor)
    info = check_case(Case(values, codec, np.dtype(dtype).type(FILL)))
    assert info.frame_bytes < values.nbytes / 100
    flags = tiles_of(pyfilter.encode(values, codec, np.dtype(dtype).type(FILL))).flags
    assert (flags == packed.ALL_MISSING).any()
    assert (flags & packed.MISSING).any()


@EACH
@DTYPES
@given(data=st.data())
@hunt(40)
def test_bit_exact(dtype: str, predictor: str, data: st.DataObject) -> None:
    """Where a bound is too tight to gain anything every bit is kept, in the same tiles, or raw."""
    kind = np.dtype(dtype)
    shape = data.draw(shapes(predictor))
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 16)))
    n = int(np.prod(shape))
    name = data.draw(st.sampled_from(("smooth", "constant", "sparse", "subnormal", "bits")))
    values = sprinkle(family(name, n, kind, rng, 1.0, 1e-3), None, data.draw(st.sampled_from(("none", "some"))), rng)
    bound = data.draw(st.sampled_from((5e-324, 1e-310)))
    codec = HierarchicalDelta(absolute=bound, predictor=predictor)
    info = check_case(Case(values.reshape(shape), codec))
    assert (info.codec, info.bound, info.step, info.sentinel) == ("hierarchical_delta", 0, 0, None)


def damaged(frame: bytes, rng: np.random.Generator) -> bytes:
    """One to three bytes changed behind the header."""
    changed = bytearray(frame)
    first = 8 * frame[7]
    for _ in range(int(rng.integers(1, 4))):
        last = min(len(frame), first + int(rng.choice((40, 400, 1 << 20))))
        at = int(rng.integers(first, last))
        changed[at] = int(rng.choice((0, 1, 255, changed[at] ^ 1 << int(rng.integers(8)), int(rng.integers(256)))))
    return bytes(changed)


@EACH
@DTYPES
def test_damaged_frames(dtype: str, predictor: str) -> None:
    """Refused, or decoded as the reference decoder does: whole and in part, on every level."""
    rng = np.random.default_rng(len(predictor))
    shape = {"chain": (4500,), "lorenzo2d": (70, 66), "columns": (1030, 3)}.get(predictor, (9, 17, 33))
    values = family("smooth", int(np.prod(shape)), np.dtype(dtype), rng, 1.0, 1e-2).reshape(shape)
    values.reshape(-1)[[5, 900, 901, 2000]] = [np.nan, np.inf, FILL, 3e4]
    values.reshape(-1)[1000:1200] = FILL
    frame = pyfilter.encode(values, HierarchicalDelta(absolute=1e-2, predictor=predictor), np.dtype(dtype).type(FILL))
    outcomes = {"same": 0, "refused": 0}
    for _ in range(150):
        bad = damaged(frame, rng)
        try:
            expected = decoder.decode(bad)
        except decoder.FrameError:
            expected = None
        outcomes["refused" if expected is None else "same"] += 1
        for level in levels_here():
            with pyfilter.config(cpu_level=level):
                if expected is None:
                    with pytest.raises(pyfilter.errors.FrameError):
                        pyfilter.decode(bad)
                    continue
                found = pyfilter.decode(bad)
                numbers = ~np.isnan(expected.reshape(-1))
                assert np.array_equal(np.isnan(found.reshape(-1)), ~numbers)
                assert np.array_equal(bits(found)[numbers], bits(expected)[numbers])
                part = pyfilter.decode(bad, 1000, 1300)
                assert np.array_equal(part, expected.reshape(-1)[1000:1300], equal_nan=True)
    assert min(outcomes.values()) > 10


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33])
@DTYPES
def test_short_rows(dtype: str, columns: int) -> None:
    """Planes of few columns: one frame on every level, and nothing behind the array is read."""
    codec = HierarchicalDelta(absolute=1e-3, predictor="lorenzo2d")
    rng = np.random.default_rng(columns)
    for rows, how in itertools.product((1, 2, 3, 4, 5, 63, 64, 66, 130), ("none", "few", "runs")):
        count, size = rows * columns, rows * columns * np.dtype(dtype).itemsize
        memory = GuardedMemory(size)
        place = (ctypes.c_ubyte * size).from_address(memory.last(size))
        values: Array = np.frombuffer(memoryview(place).cast("B"), dtype)
        values[:] = sprinkle(family("smooth", count, np.dtype(dtype), rng, 1.0, 1e-3), None, how, rng)
        frames = set()
        for level in levels_here():
            with pyfilter.config(cpu_level=level):
                check_case(Case(values.reshape(rows, columns), codec))
                frames.add(pyfilter.encode(values.reshape(rows, columns), codec))
        assert len(frames) == 1


@DTYPES
def test_every_special_pattern(dtype: str) -> None:
    """NaNs of all kinds at every place of a block, with other values around them."""
    kind = np.dtype(dtype)
    specials = from_bits(special_patterns(kind), kind)
    for predictor, count in itertools.product(PREDICTORS, (1, 2, 31, 32)):
        values = np.tile(np.linspace(0, 1, 64, dtype=kind), (64, 1))
        for row in range(64):
            places = (np.arange(count) + row) % 64
            values[row, places] = np.resize(np.roll(specials, row), count)
        codec = HierarchicalDelta(absolute=1e-3, predictor=predictor)
        check_case(Case(values.reshape((4, 16, 64)), codec, specials[-1]))


#: sha256 of the frames below, one behind the other, as they were when special values were sorted out block by block.
#: Since then only predictors of Lorenzo are chosen otherwise.
SPECIAL_FRAMES = "910c68ed21d506f656e34c69203d58a6fb940218c56f2ef777eb706b73441513"
EDGES = ((1,), (33,), (4097,), (65, 66), (4, 63, 130), (9, 17, 33), (2, 7, 15, 31), (1025, 3), (40, 2), (8, 16, 32))


def special_tiles(shape: tuple[int, ...], dtype: str, variant: int) -> Array:
    """Values of multiplications only, so that they never change, among them missing and other special ones."""
    n = int(np.prod(shape))
    place = np.arange(n, dtype=np.uint64)
    noise = ((place + np.uint64(variant)) * np.uint64(2654435761)) >> np.uint64(7) & np.uint64(1023)
    values = (((place * place) % np.uint64(4001)).astype("f8") / 64 - 20).astype(dtype)
    holes = noise < (0, 40, 700, 1024)[variant % 4] if variant < 4 else (place // np.uint64(53)) % np.uint64(3) == 1
    values[holes] = FILL
    for what, special in enumerate((np.nan, np.inf, -np.inf, 1e30, -0.0, -3.0)):
        values[(noise == 1000 + 2 * what) & (variant != 3)] = special
    shaped: Array = values.reshape(shape)
    return shaped


@pytest.mark.parametrize("level", levels_here())
def test_frames_of_special_tiles(level: str) -> None:
    """The bytes that stand in for special values, at the edges of an array too, are what they always were."""
    digest = hashlib.sha256()
    with pyfilter.config(cpu_level=level):
        for shape, dtype, variant in itertools.product(EDGES, ("f4", "f8"), range(5)):
            values = special_tiles(shape, dtype, variant)
            others = HierarchicalDelta(pointwise_relative=2.0**-9), pyfilter.Lorenzo(absolute=2.0**-6)
            for codec in (*lossy_codecs(HierarchicalDelta, len(shape), absolute=2.0**-6), *others):
                digest.update(pyfilter.encode(values, codec, np.dtype(dtype).type(FILL)))
                digest.update(pyfilter.encode(values, codec))
    assert digest.hexdigest() == SPECIAL_FRAMES
