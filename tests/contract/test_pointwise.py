# SPDX-License-Identifier: BSD-3-Clause
"""Bounds relative to each value: a hunt for one that is off by more or loses its sign. Neighbour: test_bound.py."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference import decoder

import pyfilter

from .fields import SIZES, Case, family, float_cases, from_bits, hunt, levels_here, nearby, special_patterns, sprinkle
from .judge import bits, float_not_above

Array = NDArray[Any]
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
DTYPES = pytest.mark.parametrize("dtype", [F32, F64], ids=["f32", "f64"])
FRACTIONS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 2.0**-22, 2.0**-23, 1e-9, 2.0**-38, 2.0**-39, 1e-13, 5e-324)
LARGE = (0.125, 0.25, 0.5, 0.9, 0.999, 1 - 2.0**-24, 1 - 2.0**-53, 1 / 3)


def first_off(x: Array, y: Array, bound: Fraction) -> int | None:
    """Index of the first finite, nonzero value with |x - y| > bound |x|, None where there is none.

    In f64 the quotient has an error of less than 2^-51 of it (f64 subnormals apart), so what is below the bound by
    more is within it. The rest is settled in fractions.
    """
    a, b = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(all="ignore"):
        quotient = np.abs(a - b) / np.abs(a)
        doubtful = ~(quotient < float_not_above(bound) * (1 - 2.0**-50)) | (np.abs(a) < 2.0**-1000)
    for i in np.flatnonzero(doubtful & (a != b)):
        exact = Fraction(float(x[i]))
        if abs(exact - Fraction(float(y[i]))) > bound * abs(exact):
            return int(i)
    return None


def check_pointwise(case: Case) -> pyfilter.FrameInfo:
    """Encode, decode, and assert what docs/format.md promises."""
    x = case.values.reshape(-1)
    frame = pyfilter.encode(case.values, case.codec, case.fill)
    info = pyfilter.frame_info(frame)
    assert info.frame_bytes == len(frame) <= info.header_bytes + case.values.nbytes
    y = pyfilter.decode(frame).reshape(-1)
    assert np.array_equal(bits(decoder.decode(frame)), bits(y)), "the reference decoder gives other values"
    asked = case.codec.bound[1]
    assert info.pointwise_relative == (info.step != 0)
    if info.step == 0:
        assert info.bound == 0
        assert np.array_equal(bits(x), bits(y)), "a bit-exact frame is not"
        return info
    assert 0 < info.bound <= asked
    exact = ~np.isfinite(x) | (x == 0)
    if case.fill is not None:
        fill = bits(np.asarray(case.fill).astype(x.dtype).reshape(1))[0]
        exact |= bits(x) == fill
        taken = np.flatnonzero(~exact & (bits(y) == fill))
        assert taken.size == 0, f"value {taken[:1]}: {x[taken[:1]]} became the fill value"
    changed = np.flatnonzero(exact & (bits(x) != bits(y)))
    assert changed.size == 0, f"value {changed[0]}: {x[changed[0]]!r} became {y[changed[0]]!r}"
    rest = np.flatnonzero(~exact)
    assert np.all(np.isfinite(y[rest]) & (np.signbit(x[rest]) == np.signbit(y[rest])) & (y[rest] != 0))
    off = first_off(x[rest], y[rest], Fraction(info.bound))
    assert off is None, f"value {rest[off]}: {x[rest[off]]!r} became {y[rest[off]]!r}, the bound is {info.bound!r}"
    return info


def codec(fraction: float, **parameters: Any) -> pyfilter.HierarchicalDelta:
    return pyfilter.HierarchicalDelta(pointwise_relative=fraction, **parameters)


@DTYPES
@given(data=st.data())
@hunt(500)
def test_pointwise(dtype: np.dtype[Any], data: st.DataObject) -> None:
    case = data.draw(float_cases(dtype))
    fraction = data.draw(st.sampled_from((*FRACTIONS, *LARGE)) | st.floats(1e-9, 0.99))
    ranks = {0: ("auto", "chain"), 1: ("auto", "chain"), 2: ("auto", "chain", "lorenzo2d", "columns")}
    known = ranks.get(case.values.ndim, ("auto", "lorenzo3d", "columns"))
    how = codec(fraction, predictor=data.draw(st.sampled_from(known)))
    check_pointwise(replace(case, codec=how))


@DTYPES
@given(data=st.data())
@hunt(500)
def test_a_few_values(dtype: np.dtype[Any], data: st.DataObject) -> None:
    """Values, bound and fill value drawn one by one, so that a failure shrinks to its core."""
    number = st.floats(width=32 if dtype == F32 else 64)
    values = np.array(data.draw(st.lists(number, max_size=40)), dtype)
    fraction = data.draw(st.floats(min_value=5e-324, max_value=1, exclude_max=True))
    fill = data.draw(st.none() | number.map(dtype.type) | st.sampled_from(list(values)) if values.size else st.none())
    check_pointwise(Case(values, codec(fraction), fill, str(values)))


@DTYPES
def test_at_the_edge_of_a_quantum(dtype: np.dtype[Any]) -> None:
    """Magnitudes where one code's values end and the next one's begin, over all exponents."""
    info = np.finfo(dtype)
    low, high = info.minexp, info.maxexp
    rng = np.random.default_rng(5)
    for fraction in (*FRACTIONS[:9], *LARGE):
        plenty = np.ones(20000, dtype)  # so that the chunk is quantised whatever the others are
        step = pyfilter.frame_info(pyfilter.encode(plenty, codec(fraction))).step
        if step == 0:
            continue
        q = rng.integers(int(low / step), int(high / step), 300)
        with np.errstate(over="ignore"):
            centres = np.exp2(q * step)
            edges = np.concatenate([centres * (1 + fraction), centres / (1 - fraction), centres]).astype(dtype)
        values = np.concatenate([nearby(edges, np.full(edges.size, ulps)) for ulps in range(-3, 4)])
        values = values[np.isfinite(values)]
        check_pointwise(Case(np.concatenate((plenty, values)), codec(fraction)))
        check_pointwise(Case(np.concatenate((plenty, values, -values, plenty * 0)), codec(fraction)))


@pytest.mark.parametrize("size", SIZES)
@DTYPES
def test_sizes_and_signs(dtype: np.dtype[Any], size: int) -> None:
    """Zeros of both signs, signs, subnormals, NaNs and fill values in arrays of every size."""
    rng = np.random.default_rng(size)
    pool = from_bits([*special_patterns(dtype), 1, 2, 3, 77, 1 << 8 * dtype.itemsize - 1], dtype)
    for name in ("noise", "huge range", "subnormal", "powers of two", "sparse", "bits"):
        values = family(name, size, dtype, rng, 3.0, 0.01)
        mixed = np.where(rng.random(size) < 0.3, pool[rng.integers(0, pool.size, size)], values)
        for fill in (None, dtype.type(-999), dtype.type(0), dtype.type(-0.0), pool[2]):
            for array in (values, mixed, sprinkle(values, fill, "runs", rng), np.abs(values), -np.abs(values)):
                check_pointwise(Case(array, codec(1e-3), fill, name))


@DTYPES
def test_fill_values_of_the_grid(dtype: np.dtype[Any]) -> None:
    """The fill value is what a value would decode to. In most blocks nothing else is special."""
    rng = np.random.default_rng(7)
    for fraction in (0.5, 0.1, 1e-3):
        for octaves in (1, 30):
            values = np.exp2(np.sort(rng.uniform(-octaves, octaves, 200))).astype(dtype)
            for signs in (1, -1):
                how = codec(fraction)
                decoded = pyfilter.decode(pyfilter.encode(dtype.type(signs) * values, how))
                for fill in rng.choice(decoded, 6):
                    check_pointwise(Case(dtype.type(signs) * values, how, fill))


@DTYPES
def test_what_costs_nothing(dtype: np.dtype[Any]) -> None:
    """Positive values have no masks; zeros that a sample sees are a sentinel: missing values, which cost little."""
    rng = np.random.default_rng(1)
    positive = np.exp(np.cumsum(rng.normal(size=40960)) / 100).astype(dtype)
    plain = check_pointwise(Case(positive, codec(1e-2, predictor="chain")))
    assert plain.sentinel is None
    assert plain.ratio > 8 * dtype.itemsize / 4.5
    dry = np.where(np.arange(positive.size) // 640 % 4 == 0, positive, dtype.type(0))
    rain = check_pointwise(Case(dry, codec(1e-2, predictor="chain")))
    assert rain.sentinel == 0
    assert rain.ratio > 2 * plain.ratio


RANKS = {"chain": (5000,), "lorenzo2d": (2, 70, 67), "lorenzo3d": (9, 17, 35), "columns": (1030, 5), "auto": (40, 130)}


@pytest.mark.parametrize("predictor", list(RANKS))
@DTYPES
@given(data=st.data())
@hunt(25)
def test_signs(dtype: np.dtype[Any], predictor: str, data: st.DataObject) -> None:
    """Any share of negative values, over all or in runs of a tile and more, with zeros, NaNs and missing ones."""
    shape = RANKS[predictor]
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 16)))
    values = np.exp(family("smooth", int(np.prod(shape)), dtype, rng, 0.05, 0.01))
    share = data.draw(st.sampled_from((0.0, 0.001, 0.03, 0.5, 0.97, 0.999, 1.0)))
    negative = rng.random(values.size) < share
    if data.draw(st.booleans()):
        negative[: int(rng.integers(0, values.size))] ^= True
    values[negative] *= -1
    for number, often in ((0.0, 0.1), (-0.0, 0.1), (-999.0, 0.2), (np.nan, 0.01)):
        if data.draw(st.booleans()):
            values[rng.random(values.size) < often] = number
    fill = data.draw(st.sampled_from((None, dtype.type(-999))))
    how = codec(1e-2, predictor=predictor)
    frames = set()
    for level in levels_here():
        with pyfilter.config(cpu_level=level):
            check_pointwise(Case(values.reshape(shape), how, fill))
            frames.add(pyfilter.encode(values.reshape(shape), how, fill))
    assert len(frames) == 1


@pytest.mark.parametrize("predictor", list(RANKS))
@DTYPES
def test_negative_values_cost_no_more(dtype: np.dtype[Any], predictor: str) -> None:
    """A tile of negative values says so in its head; one of both signs notes the rarer one, block by block."""
    shape = RANKS[predictor]
    rng = np.random.default_rng(2)
    values = np.exp(family("smooth", int(np.prod(shape)), dtype, rng, 0.05, 0.01)).reshape(shape)
    how = codec(1e-2, predictor=predictor)
    positive = check_pointwise(Case(values, how)).frame_bytes
    assert check_pointwise(Case(-values, how)).frame_bytes == positive
    few = np.where(rng.random(shape) < 0.01, -values, values)
    mixed = check_pointwise(Case(few, how)).frame_bytes
    assert check_pointwise(Case(-few, how)).frame_bytes == mixed
    if predictor == "chain":
        values[:4096] *= -1  # one tile
        assert check_pointwise(Case(values, how)).frame_bytes == positive


@DTYPES
@given(data=st.data())
@hunt(100)
def test_rewriting(dtype: np.dtype[Any], data: st.DataObject) -> None:
    """Decoded values encoded again, with the same bound, are what they were."""
    case = data.draw(float_cases(dtype))
    how = codec(data.draw(st.sampled_from((*FRACTIONS[:5], *LARGE[:4]))))
    once = pyfilter.decode(pyfilter.encode(case.values, how, case.fill))
    twice = pyfilter.decode(pyfilter.encode(once, how, case.fill))
    assert np.array_equal(bits(twice), bits(once)), case


@DTYPES
def test_same_bytes_everywhere(dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(7)
    values = family("huge range", 300_000, dtype, rng, 1.0, 0.01)
    values = sprinkle(values, dtype.type(-999), "some", rng).reshape(100, 60, 50)
    for fraction in (1e-1, 1e-3, 1e-6):
        frames, decoded = set(), set()
        for level in levels_here():
            for threads in (1, 2, 5):
                with pyfilter.config(cpu_level=level, threads=threads):
                    frame = pyfilter.encode(values, codec(fraction), dtype.type(-999))
                    frames.add(frame)
                    decoded.add(pyfilter.decode(frame).tobytes())
        assert len(frames) == len(decoded) == 1


def test_what_may_be_asked() -> None:
    for wrong in (0, -1e-3, 1.0, 2, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="pointwise_relative must be a"):
            codec(wrong)
    with pytest.raises(ValueError, match="exactly one of absolute=, relative=, pointwise_relative= or psnr="):
        pyfilter.HierarchicalDelta(pointwise_relative=0.1, psnr=60)
    with pytest.raises(TypeError):
        pyfilter.Cuszp2(pointwise_relative=0.1)  # type: ignore[call-arg]
