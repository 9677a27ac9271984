# SPDX-License-Identifier: BSD-3-Clause
"""hierarchical_delta of integers: the bound in Python's integers, fill values, ends of the types, damaged frames."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference import decoder

import pyfilter
from pyfilter import HierarchicalDelta, Lossless

from .fields import PREDICTORS, hunt, levels_here
from .judge import ten_to
from .test_packed import damaged, shapes

Array = NDArray[Any]
DTYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
EACH = pytest.mark.parametrize("dtype", DTYPES)
SIZES = (0, 1, 31, 32, 33, 4095, 4097)


def highest_bound(dtype: np.dtype[Any]) -> int:
    """The largest bound of a frame (docs/format.md, section 2)."""
    return 2**62 if dtype.itemsize == 8 else 2**30


def check_integers(values: Array, codec: HierarchicalDelta, fill: Any = None, bound: int | None = None) -> bytes:
    """Encode, decode with both decoders, compare as Python's integers; gives the frame."""
    if bound is None:
        assert codec.absolute is not None
        bound = math.floor(codec.absolute)
    frame = pyfilter.encode(values, codec, fill)
    info = pyfilter.frame_info(frame)
    assert info.codec == "hierarchical_delta"
    assert info.frame_bytes == len(frame) <= 8 * (7 + values.ndim) + values.nbytes
    assert info.bound == int(info.bound) <= bound
    if not info.stored_raw:
        kept = min(bound, highest_bound(values.dtype))
        assert info.bound == (kept if kept < 2**53 else math.floor(float_below(kept)))
    found = pyfilter.decode(frame)
    assert (found.shape, found.dtype) == (values.shape, values.dtype.newbyteorder("="))
    assert np.array_equal(decoder.decode(frame), found), "the reference decoder gives other values"
    native = values.astype(found.dtype)
    errors = [abs(a - b) for a, b in zip(native.reshape(-1).tolist(), found.reshape(-1).tolist(), strict=True)]
    assert max(errors, default=0) <= info.bound
    if fill is not None and fill != 0:
        assert np.array_equal(native == fill, found == fill)
    assert np.array_equal(found[native == 0], native[native == 0])
    if not info.stored_raw:
        again = pyfilter.encode(found, codec if codec.absolute is not None else codec.with_absolute(info.bound), fill)
        assert np.array_equal(pyfilter.decode(again), found), "decoded values are not fixed points"
    return frame


def float_below(number: int) -> float:
    """The largest f64 not above."""
    nearest = float(number)
    return nearest if nearest <= number else math.nextafter(nearest, 0.0)


def bounds_of(dtype: np.dtype[Any]) -> list[float]:
    """Small ones, those around powers of two up to the type's end, and larger than any."""
    width = 8 * dtype.itemsize
    powers = [2**k + d for k in range(1, width, 5) for d in (-1, 0, 1)]
    near = [2**52 - 1, 2**52, 2**53, 2**53 + 2, 2**62, 2**63] if width == 64 else [2**30 - 1, 2**30, 2**31]
    return [float_below(b) for b in sorted({0, 1, 2, 3, *powers, *near, int(np.iinfo(dtype).max)})] + [1e300]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2"])
def test_every_value_of_narrow_types(dtype: str) -> None:
    info = np.iinfo(dtype)
    every = np.arange(info.min, info.max + 1).astype(dtype)
    for bound in (*range(1, 20), 42, 63, 64, 100, 126, 127, 128, 254, 255, 256, 1000, 32767, 65535, 65536, 2**30):
        check_integers(every, HierarchicalDelta(absolute=bound))
        check_integers(every, HierarchicalDelta(absolute=bound), every[-1])
        check_integers(every, HierarchicalDelta(absolute=bound), every[1])


@EACH
def test_the_ends_of_every_type(dtype: str) -> None:
    """Values around the ends, around zero and around the middle between multiples, with every kind of bound."""
    info, rng = np.iinfo(dtype), np.random.default_rng(1)
    near = [e + d for e in (info.min, info.max, 0, info.max // 2) for d in range(-3, 4)]
    for bound in bounds_of(np.dtype(dtype)):
        step = 2 * int(min(bound, 2.0**62)) + 1
        middles = [k * step + step // 2 + d for k in (-3, -1, 0, 1, 2, info.max // step) for d in (-1, 0, 1)]
        middles += [info.max - step // 2 + d for d in (-1, 0, 1)]
        values = np.array([v for v in near + middles if info.min <= v <= info.max], dtype)
        values = rng.permutation(np.resize(values, 90))
        for fill in (None, info.max, info.min + 1, 0):
            check_integers(values, HierarchicalDelta(absolute=bound, predictor="chain"), fill)


@EACH
@pytest.mark.parametrize("size", SIZES)
def test_every_size(dtype: str, size: int) -> None:
    rng = np.random.default_rng(size)
    walk = (np.cumsum(rng.integers(-2, 3, max(size, 1) * 3)) % 90 + 20).astype(dtype)
    for shape in ((size,), (size, 3), (1, size, 2)):
        values = walk[: math.prod(shape)].reshape(shape)
        holes = values.copy()
        holes.reshape(-1)[size // 3 : size // 2] = 5
        for predictor, rank in PREDICTORS.items():
            if len(shape) >= rank:
                check_integers(values, HierarchicalDelta(absolute=2, predictor=predictor))
                check_integers(holes, HierarchicalDelta(absolute=3, predictor=predictor, outliers="on"), 5)
                check_integers(values, HierarchicalDelta(absolute=0, predictor=predictor))


@EACH
@pytest.mark.parametrize("predictor", PREDICTORS)
@given(data=st.data())
@hunt(12)
def test_any_values(dtype: str, predictor: str, data: st.DataObject) -> None:
    """Walks, noise and constants of any size with fill values among them; the same bytes on every level."""
    kind = np.dtype(dtype)
    info = np.iinfo(kind)
    shape = data.draw(shapes(predictor))
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 16)))
    n = math.prod(shape)
    width = data.draw(st.integers(0, 8 * kind.itemsize))
    noise = rng.integers(0, 1 << 64, n, np.uint64) >> np.uint64(min(64 - width, 63))
    how = data.draw(st.sampled_from(("noise", "walk", "steps")))
    if how == "walk":
        noise = np.cumsum(rng.integers(-2, 3, n)).astype(np.uint64)
    if how == "steps":
        noise = noise[0] + np.arange(n, dtype=np.uint64) // np.uint64(50)
    values = (noise + np.uint64(data.draw(st.integers(0, info.max)))).astype(f"u{kind.itemsize}").view(kind)
    fill = data.draw(st.sampled_from((None, 0, info.max, info.min, 7, int(values[n // 2]))))
    if fill is not None:
        for _ in range(data.draw(st.integers(0, 3))):
            start, length = int(rng.integers(0, n)), int(rng.choice((1, 3, 40, 700, 5000)))
            values[start : start + length : int(rng.choice((1, 1, 2, 9)))] = fill
    bound = data.draw(st.sampled_from((0, 1, 2, 5, 100, 1 << width // 2, 1 << max(width - 2, 0))))
    codec = HierarchicalDelta(absolute=bound, predictor=predictor, outliers=data.draw(st.sampled_from(("on", "off"))))
    frame = check_integers(values.reshape(shape), codec, fill)
    start, stop = sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n))))
    whole = pyfilter.decode(frame).reshape(-1)
    for level in levels_here():
        with pyfilter.config(cpu_level=level):
            assert pyfilter.encode(values.reshape(shape), codec, fill) == frame
            assert np.array_equal(pyfilter.decode(frame).reshape(-1), whole)
            assert np.array_equal(pyfilter.decode(frame, start, stop), whole[start:stop])


@EACH
def test_parts_of_the_range(dtype: str) -> None:
    """Relative bounds and psnr mean the integer part of fraction times range, the fill value left out."""
    info, rng = np.iinfo(dtype), np.random.default_rng(2)
    for low, high in ((0, 100), (info.min, info.max), (3, 4), (7, 7), (info.max - 90, info.max)):
        values = rng.integers(low, high, 500, dtype, endpoint=True)
        values[:2] = low, high
        for fraction in (0.01, 0.1, 0.7, 1.0, 5e-324, 1e-9, 3.0):
            exact = math.floor(Fraction(fraction) * (high - low))
            check_integers(values, HierarchicalDelta(relative=fraction), bound=exact)
            holes = values.copy()
            holes[30:90] = fill = info.min if low > 0 else 50
            counted = [v for v in holes.tolist() if v != fill]
            exact = math.floor(Fraction(fraction) * (max(counted) - min(counted)))
            check_integers(holes, HierarchicalDelta(relative=fraction), fill, bound=exact)
        for psnr in (6.0, 40.0, 200.0):
            most = math.floor(ten_to(Fraction(psnr) / -20) * (high - low))
            frame = pyfilter.encode(values, HierarchicalDelta(psnr=psnr))
            assert pyfilter.frame_info(frame).bound <= most
            found = pyfilter.decode(frame)
            assert pyfilter.verify(values, found, most).ok
            most = min(most, highest_bound(values.dtype))
            assert max(most - 1, 0) <= pyfilter.frame_info(frame).bound or most > 2**50
            assert low == high or pyfilter.verify(values, found, most).psnr >= psnr


@EACH
def test_a_bound_is_its_integer_part(dtype: str) -> None:
    values = np.arange(100).astype(dtype)
    two = pyfilter.encode(values, HierarchicalDelta(absolute=2))
    for bound in (2.0, 2.5, 2.9999999999999996, np.float32(2.75)):
        assert pyfilter.encode(values, HierarchicalDelta(absolute=bound)) == two
    exact = pyfilter.encode(values, HierarchicalDelta(absolute=0))
    for bound in (0.0, 0.5, 5e-324, 0.9999999999999999, False * 1.0):
        assert pyfilter.encode(values, HierarchicalDelta(absolute=bound)) == exact
    assert np.array_equal(pyfilter.decode(exact), values)


def test_a_bound_above_what_doubles_hold_is_rounded_down() -> None:
    values = np.array([0, 2**62, -(2**62), 2**55 + 1] * 20)
    for bound in (2**53 + 1, 2**53 + 3, 2**60 + 129, 2**63 - 1, 10**30):
        frame = check_integers(values, HierarchicalDelta(absolute=bound))
        kept = int(pyfilter.frame_info(frame).bound)
        assert kept == math.floor(float_below(min(bound, 2**62)))


@pytest.mark.parametrize("exponent", [51, 52, 53, 60, 61, 62, 70, 200])
def test_fractions_far_above_one(exponent: int) -> None:
    """The bound is the fraction of the range, in integers, however large the fraction is."""
    values = np.array([2**61, 2**61 + 1] * 50, "i8")
    codec = HierarchicalDelta(relative=1.5 * 2.0**exponent)
    check_integers(values, codec, bound=min(3 * 2 ** (exponent - 1), 2**62))


@EACH
def test_refusals(dtype: str) -> None:
    values = np.arange(100).astype(dtype)
    with pytest.raises(ValueError, match=r"pointwise relative bound needs floating-point values, .* allowed for int"):
        pyfilter.encode(values, HierarchicalDelta(pointwise_relative=0.1))
    with pytest.raises(TypeError, match="cuszp2 cannot encode"):
        pyfilter.encode(values, pyfilter.Cuszp2(absolute=1))
    with pytest.raises(ValueError, match="bound is 0, must be finite and > 0"):
        pyfilter.encode(values.astype("f4"), HierarchicalDelta(absolute=0))
    with pytest.raises(
        ValueError, match=r"absolute must be a finite number > 0 \(float64\), or 0 for integers, got -1"
    ):
        HierarchicalDelta(absolute=-1)
    with pytest.raises(ValueError, match="fill value"):
        pyfilter.encode(values, HierarchicalDelta(absolute=1), 1e30)


def test_other_types_are_refused() -> None:
    """Only Lossless takes bool; nothing takes text, times or long doubles."""
    values = np.ones(5, np.bool_)
    assert pyfilter.decode(pyfilter.encode(values, Lossless())).tobytes() == values.tobytes()
    with pytest.raises(TypeError, match="cannot encode"):
        pyfilter.encode(values, HierarchicalDelta(absolute=1))
    for others in (np.ones(5, "S3"), np.ones(5, "M8[s]"), np.ones(5, np.longdouble)):
        for codec in (HierarchicalDelta(absolute=1), Lossless()):
            with pytest.raises(TypeError, match="cannot encode"):
                pyfilter.encode(others, codec)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u4", "i8"])
def test_damaged_frames(dtype: str) -> None:
    """Refused, or decoded as the reference decoder does: whole and in part, on every level."""
    rng = np.random.default_rng(3)
    outcomes = {"same": 0, "refused": 0}
    for predictor, shape in (("chain", (4500,)), ("lorenzo2d", (70, 66)), ("lorenzo3d", (9, 17, 33))):
        values = (np.cumsum(rng.integers(-2, 3, math.prod(shape))) % 80 + 20).astype(dtype)
        values[900:1200] = values[2000] = 5
        values[[40, 3000]] = 6, 127
        values = values.reshape(shape)
        frame = pyfilter.encode(values, HierarchicalDelta(absolute=3, predictor=predictor, outliers="on"), 5)
        for _ in range(50):
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
                    assert np.array_equal(pyfilter.decode(bad), expected)
    assert min(outcomes.values()) > 10


@EACH
def test_big_endian(dtype: str) -> None:
    values = np.arange(500).reshape(20, 25) % 100
    frame = check_integers(values.astype(f">{dtype}"), HierarchicalDelta(absolute=2))
    assert pyfilter.frame_info(frame).big_endian == (dtype[1] != "1")
    little = pyfilter.encode(values.astype(dtype), HierarchicalDelta(absolute=2))
    assert np.array_equal(pyfilter.decode(frame), pyfilter.decode(little))


def test_bit_exact_narrow_integers_take_their_own_width() -> None:
    """Noise of eight bits, signed or not, needs eight planes and no more, so such a frame is not raw for it."""
    rng = np.random.default_rng(6)
    for dtype in ("i1", "u1", "i2", "u2"):
        values = rng.integers(0, 1 << 8, 40000).astype(f"u{dtype[1]}").view(dtype)
        if dtype[1] == "2":
            values = (values.view("u2") + np.uint16(32700)).view(dtype)
        frame = pyfilter.encode(values.reshape(200, 200), HierarchicalDelta(absolute=0, predictor="chain"))
        assert np.array_equal(pyfilter.decode(frame).reshape(-1), values)
        assert len(frame) < values.nbytes * (1.01 if dtype[1] == "1" else 0.6)
