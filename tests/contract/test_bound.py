# SPDX-License-Identifier: BSD-3-Clause
"""The error bound of lossy codecs, and special values: a hunt for a value that breaks docs/format.md, section 9."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyfilter

from .fields import (
    FILLS,
    FRACTION_BITS,
    LOSSY,
    MODES,
    PREDICTORS,
    SHAPES,
    Case,
    Lossy,
    drawn,
    edge_bounds,
    family,
    fill_value,
    float_cases,
    from_bits,
    hunt,
    lossy_codecs,
    nearby,
    special_patterns,
    sprinkle,
)
from .judge import asked_bound, bits, check_case, check_values, first_beyond

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
EACH = pytest.mark.parametrize("lossy", LOSSY)
DTYPES = pytest.mark.parametrize("dtype", [F32, F64], ids=["f32", "f64"])


@pytest.mark.parametrize("mode", MODES)
@DTYPES
@given(data=st.data())
@hunt(600)
def test_absolute(dtype: np.dtype[Any], mode: str, data: st.DataObject) -> None:
    check_case(data.draw(float_cases(dtype, modes=(mode,))))


@pytest.mark.parametrize("predictor", PREDICTORS)
@DTYPES
@given(data=st.data())
@hunt(200)
def test_predictors(dtype: np.dtype[Any], predictor: str, data: st.DataObject) -> None:
    check_case(data.draw(float_cases(dtype, predictors=(predictor,))))


@EACH
@DTYPES
@given(data=st.data())
@hunt(600)
def test_relative(dtype: np.dtype[Any], lossy: Lossy, data: st.DataObject) -> None:
    check_case(data.draw(float_cases(dtype, "relative", **drawn(lossy))))


@EACH
@DTYPES
@given(data=st.data())
@hunt(600)
def test_a_few_values(dtype: np.dtype[Any], lossy: Lossy, data: st.DataObject) -> None:
    """Values, bound and fill value drawn one by one, so that a failure shrinks to its core."""
    width = 8 * dtype.itemsize
    number = st.floats(width=32 if width == 32 else 64)
    values = np.array(data.draw(st.lists(number, max_size=40)), dtype)
    bound = data.draw(st.floats(min_value=5e-324, allow_infinity=False, allow_nan=False))
    fill = data.draw(st.none() | number.map(dtype.type) | st.sampled_from(list(values)) if values.size else st.none())
    choices = lossy_codecs(lossy, 1, absolute=bound)
    flat = [c for c in choices if c.edges == (32,) or lossy is pyfilter.Adaptive]
    codec = data.draw(st.sampled_from(flat))
    check_case(Case(values, codec, fill, str(values)))


@EACH
@pytest.mark.parametrize("rank", sorted(SHAPES))
@DTYPES
def test_every_shape(dtype: np.dtype[Any], rank: int, lossy: Lossy) -> None:
    """Every listed shape with all parameters, with and without special values."""
    rng = np.random.default_rng(rank)
    for shape in SHAPES[rank]:
        n = int(np.prod(shape, dtype=np.int64))
        plain = family("smooth", n, dtype, rng, 1.0, 1e-3).reshape(shape)
        holes = sprinkle(plain, dtype.type(-999), "runs", rng)
        for codec in lossy_codecs(lossy, rank, absolute=1e-3):
            check_case(Case(plain, codec))
            check_case(Case(holes, codec, dtype.type(-999)))


def bounds_near_powers(dtype: np.dtype[Any], exponent: int) -> list[float]:
    """2^exponent and its neighbours in the dtype, and a few bounds anywhere in between."""
    around = nearby(np.full(25, 2.0**exponent, dtype), np.arange(-12, 13))
    rng = np.random.default_rng(exponent + 2000)
    return [float(b) for b in around] + [float(dtype.type(2.0**exponent * (1 + u))) for u in rng.random(6)]


def edge_values(dtype: np.dtype[Any], bound: float) -> np.ndarray[Any, np.dtype[Any]]:
    """Values some ulps around (k + 1/2) * step, for the encoder's step, twice the bound, and steps in between."""
    fraction = FRACTION_BITS[dtype.itemsize]
    full = dtype.type(2 * bound)
    chosen = pyfilter.frame_info(pyfilter.encode(np.zeros(100, dtype), pyfilter.Cuszp2(absolute=bound))).step
    steps = np.array([chosen, full, *(full - full * dtype.type(2.0**-s) for s in (fraction - 3, 12, 7))], dtype)
    reach = 2.0 ** (fraction - 1)  # from here on there are no codes
    halves = np.array([0.5, 0.5, 1.5, 2.5, 100.5, 2.0**15 + 0.5, reach / 8 + 0.5, reach - 0.5, reach], dtype)
    with np.errstate(over="ignore"):
        centres = (steps[:, None] * halves).reshape(-1)
    values = np.concatenate([nearby(centres, np.full(centres.size, ulps)) for ulps in range(-9, 10)])
    values = values[np.isfinite(values)]
    return np.concatenate((values, -values))


@pytest.mark.parametrize("exponent", [-1019, -900, -122, -121, -30, -1, 0, 1, 20, 100, 125, 1000, 1021])
@EACH
@DTYPES
def test_at_the_edge_of_a_quantum(dtype: np.dtype[Any], exponent: int, lossy: Lossy) -> None:
    """Where x is half a step from both neighbours and the bound is near a power of two, roundings matter most."""
    if dtype == F32 and not -122 <= exponent <= 125:
        exponent = exponent % 100 - 50
    for bound in bounds_near_powers(dtype, exponent):
        values = edge_values(dtype, bound)
        codec = lossy(absolute=bound)
        small = values[np.abs(values) < 3 * bound]
        mostly_zero = np.concatenate((np.zeros(8 * values.size, dtype), values))  # quantised whatever the rest is
        for chosen in (small, small[:40], values, mostly_zero):
            check_case(Case(chosen, codec))


@pytest.mark.parametrize("lossy", [lossy for lossy in LOSSY if lossy is not pyfilter.Adaptive])
@DTYPES
@given(data=st.data())
@hunt(300)
def test_rewriting(dtype: np.dtype[Any], lossy: Lossy, data: st.DataObject) -> None:
    """Decoded values encoded again, with the same bound, are what they were: errors do not add up.

    Not so of adaptive, whose values lie on no lattice.
    """
    case = data.draw(float_cases(dtype, **drawn(lossy)))
    once = pyfilter.decode(pyfilter.encode(case.values, case.codec, case.fill))
    again = Case(once, case.codec, case.fill, case.recipe)
    check_case(again)
    twice = pyfilter.decode(pyfilter.encode(once, case.codec, case.fill))
    assert np.array_equal(bits(twice), bits(once)), again


@EACH
@DTYPES
def test_lattice_at_the_bound(dtype: np.dtype[Any], lossy: Lossy) -> None:
    """Every value exactly half-way: the error is the whole bound, and a comparison that rounds would let more pass."""
    for bound in (0.5, 0.1, 1e-3, 3.0, 7e-9):
        exact = float(dtype.type(bound))
        for reach in (3, 1000, 1 << 20):
            k = np.arange(-5000, 5000) % reach
            with np.errstate(over="ignore"):
                values = ((2 * k + 1) * exact).astype(dtype)
            check_case(Case(values, lossy(absolute=exact)))
            check_case(Case(values * dtype.type(1.25), lossy(absolute=exact)))


@EACH
@pytest.mark.parametrize("fill_name", FILLS)
@DTYPES
def test_fill_values(dtype: np.dtype[Any], fill_name: str, lossy: Lossy) -> None:
    """Each fill value among values near it, next to other special values, as a run, and as everything there is."""
    rng = np.random.default_rng(5)
    smooth = family("smooth", 5000, dtype, rng, 1.0, 1e-2)
    fill = fill_value(fill_name, smooth)
    centre = 0.0 if fill is None or not np.isfinite(fill) else float(fill)
    with np.errstate(over="ignore"):
        close = (centre + rng.normal(size=5000) * 0.02).astype(dtype)  # many would decode to the fill value
    for values in (smooth, close, np.full(5000, 1.5 if fill is None else fill, dtype)):
        for how in ("none", "few", "runs", "one run", "most"):
            holes = sprinkle(values, fill, how, rng)
            for bound in (1e-2, 0.5, 1e-6):
                for shape, codec in shaped(lossy, bound):
                    check_case(Case(holes.reshape(shape), codec, fill, f"{fill_name}, {how}"))


@EACH
@DTYPES
def test_fill_values_of_the_grid(dtype: np.dtype[Any], lossy: Lossy) -> None:
    """The fill value is what a value would decode to. In most blocks nothing else is special."""
    rng = np.random.default_rng(6)
    reach = 2 ** (FRACTION_BITS[dtype.itemsize] - 1)  # from here on there are no codes; neighbours matter near it
    for bound in (0.5, 0.1, 0.009537845):
        for steps in (6, 1000, reach // 8, reach):
            values = np.sort(rng.uniform(-1, 1, 400) * steps * 2 * bound).astype(dtype)
            for codec in lossy_codecs(lossy, 1, absolute=bound):
                decoded = pyfilter.decode(pyfilter.encode(values, codec))
                for fill in rng.choice(decoded[decoded != 0], 12):
                    frame = pyfilter.encode(values, codec, fill)
                    check_values(values, pyfilter.decode(frame), Fraction(pyfilter.frame_info(frame).bound), fill[None])


def shaped(lossy: Lossy, bound: float) -> Iterator[tuple[tuple[int, ...], pyfilter.Codec]]:
    """Shapes of 5000 values and the codec for each: all block dimensions, or all predictors."""
    shapes = ((5000,), (50, 100), (5, 20, 50))
    if lossy is pyfilter.Cuszp2:
        yield from ((shape, lossy(absolute=bound, block_dims=len(shape))) for shape in shapes)
        return
    chosen = zip((*shapes, (1250, 4)), ("chain", "lorenzo2d", "lorenzo3d", "columns"), strict=True)
    yield from ((shape, pyfilter.HierarchicalDelta(absolute=bound, predictor=name)) for shape, name in chosen)


@EACH
@DTYPES
@pytest.mark.parametrize("fill_name", FILLS)
def test_the_range_of_a_relative_bound(dtype: np.dtype[Any], fill_name: str, lossy: Lossy) -> None:
    """The fill value, zero too, and special values must not widen the range."""
    values = (np.linspace(100, 101, 5000) + 1e-3 * np.sin(np.arange(5000))).astype(dtype)
    fill = fill_value(fill_name, values)
    values[2000:3000] = values[0] if fill is None else fill
    values[3000:3003] = from_bits(special_patterns(dtype)[6:8] + special_patterns(dtype)[:1], dtype)
    info = check_case(Case(values, lossy(relative=1e-2), fill))
    assert info.codec in (lossy.codec_name, "lorenzo" if lossy is pyfilter.Adaptive else lossy.codec_name)
    assert not info.stored_raw
    assert 0.009 < info.bound < 0.0101


@EACH
@DTYPES
def test_ranges_at_the_limits(dtype: np.dtype[Any], lossy: Lossy) -> None:
    """Ranges of a few subnormals, and beyond the largest number: their fractions are not rounded up either."""
    tiny, largest = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    ends = [(0 * tiny, k * tiny) for k in (1, 2, 3, 5, 7, 1001)] + [(-3 * tiny, 2 * tiny), (5 * tiny, 6 * tiny)]
    ends += [(-largest, largest), (largest / 3, largest), (-largest / 2, largest), (-tiny, largest)]
    for low, high in ends:
        for relative in (1e300, 1e20, 0.7, 0.1, 1e-3, 1e-300):
            values = np.array([low, high, low, high], dtype)
            check_case(Case(values, lossy(relative=relative)))
            check_case(Case(np.tile(values, 100), lossy(relative=relative)))


@EACH
@DTYPES
def test_values_without_a_range(dtype: np.dtype[Any], lossy: Lossy) -> None:
    """Nothing finite, or one value only: a relative bound is zero then, and every bit is kept."""
    for numbers in ([np.nan] * 100, [-np.inf] * 100, [3.25] * 100, [-0.0] * 99 + [0.0], []):
        case = Case(np.array(numbers, dtype), lossy(relative=0.1))
        info = check_case(case)
        assert info.bound == 0
        check_case(Case(case.values, case.codec, dtype.type(3.25)))


@EACH
@DTYPES
def test_bounds_at_the_limits(dtype: np.dtype[Any], lossy: Lossy) -> None:
    """Bounds below what the dtype can quantise are kept by keeping all bits; bounds above all values cost nothing."""
    rng = np.random.default_rng(6)
    for bound in [*edge_bounds(dtype), *(10.0**e for e in range(-300, 301, 25))]:
        for name in ("huge range", "subnormal", "noise", "half-way"):
            values = family(name, 700, dtype, rng, min(bound, float(np.finfo(dtype).max) / 8), bound)
            check_case(Case(sprinkle(values, None, "few", rng), lossy(absolute=bound)))


@EACH
@DTYPES
def test_undeclared_mask_costs_little(dtype: np.dtype[Any], lossy: Lossy) -> None:
    """A mask of 1e35 that nobody declared: found, kept bit for bit, and not at the price of the rest."""
    rng = np.random.default_rng(7)
    values = family("smooth", 1 << 15, dtype, rng, 0.01, 1e-3)
    masked = values.copy()
    masked[np.arange(values.size) % 4096 < 2000] = dtype.type(1e35)
    codec = lossy(absolute=1e-3)
    info = check_case(Case(masked, codec))
    assert info.sentinel == dtype.type(1e35)
    assert info.frame_bytes < check_case(Case(values, codec)).frame_bytes


@EACH
def test_incompressible_values_are_stored_raw(lossy: Lossy) -> None:
    rng = np.random.default_rng(8)
    for dtype in (F32, F64):
        for n in (1, 3, 31, 1000, 5000):
            info = check_case(Case(family("bits", n, dtype, rng, 1.0, 1.0), lossy(absolute=1e-30)))
            assert info.stored_raw
            assert info.frame_bytes == 64 + n * dtype.itemsize


def test_the_judge() -> None:
    """It sees an error of one part in 2^60 beyond the bound, which f64 does not."""
    x, y = np.array([1.0, 2.0**-60]), np.array([0.0, -1.0])
    assert first_beyond(x[:1], y[:1], Fraction(1)) is None
    assert first_beyond(x, y, Fraction(1)) == 1
    assert first_beyond(x, y, Fraction(1) + Fraction(1, 1 << 60)) is None
    assert first_beyond(np.array([1e308]), np.array([-1e308]), Fraction(10**308)) == 0
    assert first_beyond(np.array([0.0]), np.array([5e-324]), Fraction(1, 10**400)) == 0
    nan = from_bits([0x7FC00001], F32)
    with pytest.raises(AssertionError, match="special"):
        check_values(nan, from_bits([0x7FC00000], F32), Fraction(1), None)
    with pytest.raises(AssertionError, match="became the fill value"):
        check_values(np.array([1.0]), np.array([1.5]), Fraction(1), np.array([1.5]))
    with pytest.raises(AssertionError, match="the bound is"):
        check_values(np.array([1.0]), np.array([1.5]), Fraction(1, 4), None)
    zeros = np.array([0.0, 5.0, 7.0, np.inf])
    assert asked_bound(zeros, pyfilter.Cuszp2(relative=0.5), np.array([-0.0])) == 1
    assert asked_bound(zeros, pyfilter.Cuszp2(relative=0.5), None) == Fraction(7, 2)
