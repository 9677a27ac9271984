# SPDX-License-Identifier: BSD-3-Clause
"""Floats of 16 bits with a bound, in exact arithmetic; special and fill values bit for bit; chunks written in parts."""

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

from .fields import hunt
from .judge import bits, float_not_above, ten_to

Array = NDArray[Any]
SHAPES = ((), (0,), (1,), (31,), (33,), (0, 3), (1, 33), (31, 2), (7, 33), (3, 5, 9), (40, 60), (1, 4100))
FILLS = (0.0, -999.0, 2.0, math.nan, math.inf, 60000.0)
SPECIALS = (math.nan, math.inf, -math.inf, -0.0, 0.0, 65504.0, -65504.0, 6e-8, -6.1e-5)
BOUNDS = (1e-3, 0.01, 0.3, 5.0, 300.0, 1e-7, 1e5, 1e30)
DTYPES = ("float16", "bfloat16")


def type_of(name: str) -> np.dtype[Any]:
    return np.dtype("f2") if name == "float16" else np.dtype(pytest.importorskip("ml_dtypes").bfloat16)


def codecs() -> st.SearchStrategy[pyfilter.Codec]:
    """Every codec that takes a bound for them, with every kind of bound."""
    absolute: st.SearchStrategy[dict[str, Any]] = st.sampled_from([{"absolute": bound} for bound in BOUNDS])
    following: list[dict[str, Any]] = [{"relative": 1e-2}, {"relative": 1e-3}, {"psnr": 40.0}]
    bounds = st.one_of(absolute, st.sampled_from(following))
    pointwise: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
        [{"pointwise_relative": bound} for bound in (1e-3, 0.02, 0.4, 0.99)]
    )
    return st.one_of(
        bounds.map(lambda bound: pyfilter.Cuszp2(**bound)),
        st.one_of(bounds, pointwise).map(lambda bound: pyfilter.HierarchicalDelta(**bound)),
        st.one_of(bounds, pointwise).map(lambda bound: pyfilter.Lorenzo(**bound)),
        st.one_of(bounds, pointwise).map(lambda bound: pyfilter.Adaptive(**bound, effort="fast")),
    )


@st.composite
def arrays(draw: st.DrawFn, dtype: np.dtype[Any], fill: float | None) -> Array:
    """Smooth or rough values of any size, some of them special; some values the fill value, or just beside it."""
    shape = draw(st.sampled_from(SHAPES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = math.prod(shape)
    kind = draw(st.sampled_from(["smooth", "rough", "patterns"]))
    if kind == "patterns":
        values = rng.integers(0, 1 << 16, n, np.uint16).view(dtype)
    else:
        wide = rng.standard_normal(n)
        wide = wide.cumsum() if kind == "smooth" else wide
        with np.errstate(over="ignore"):
            values = (wide * draw(st.sampled_from([1.0, 50.0, 1e4, 1e-6]))).astype(dtype)
    for special in draw(st.lists(st.sampled_from(SPECIALS), max_size=4)):
        values[rng.random(n) < 0.1] = special
    if fill is not None:
        values[rng.random(n) < 0.2] = fill
        if draw(st.booleans()) and math.isfinite(fill) and fill != 0:
            beside = (np.array([fill], dtype).view("u2") + rng.integers(1, 3)).astype("u2").view(dtype)
            values[rng.random(n) < 0.05] = beside[0]
    return values.reshape(shape)


def numbers(values: Array) -> Array:
    """The same values as float64, without the warnings of NaNs that signal."""
    with np.errstate(invalid="ignore"):
        return values.reshape(-1).astype("f8")


def bound_of(x: Array, codec: pyfilter.Codec, is_fill: NDArray[np.bool_]) -> float:
    """The largest bound that may be meant."""
    mode, bound = codec.bound
    if mode in ("absolute", "pointwise_relative"):
        return bound
    counted = x[np.isfinite(x) & ~is_fill]
    if counted.size == 0:
        return 0.0
    spread = Fraction(float(counted.max())) - Fraction(float(counted.min()))
    return float_not_above(spread * (Fraction(bound) if mode == "relative" else ten_to(Fraction(bound) / -20)))


@hunt(500)
@given(data=st.data(), name=st.sampled_from(DTYPES), fill=st.sampled_from((None, *FILLS)), codec=codecs())
def test_bound(data: st.DataObject, name: str, fill: float | None, codec: pyfilter.Codec) -> None:
    dtype = type_of(name)
    given = data.draw(arrays(dtype, fill))
    frame = pyfilter.encode(given, codec, fill)
    info, found = pyfilter.frame_info(frame), pyfilter.decode(frame)
    assert info.frame_bytes == len(frame) <= 8 * (7 + given.ndim) + given.nbytes
    version = 10 if info.codec == "lorenzo" else 8
    assert (info.shape, info.dtype, info.format_version) == (given.shape, dtype, version)
    assert (found.shape, found.dtype) == (given.shape, dtype)
    if info.codec != "adaptive" or given.size <= 200:
        assert decoder.decode(frame).tobytes() == found.tobytes()
    start, stop = sorted((data.draw(st.integers(0, given.size)), data.draw(st.integers(0, given.size))))
    assert pyfilter.decode(frame, start, stop).tobytes() == found.reshape(-1)[start:stop].tobytes()
    x, y, same = numbers(given), numbers(found), bits(given) == bits(found)
    is_fill = np.zeros(x.shape, np.bool_)
    if fill is not None:
        pattern = bits(np.array([fill], dtype))[0]
        is_fill = bits(given) == pattern if fill != 0 else x == 0
        assert (same | (x == y))[is_fill].all()
        assert fill == 0 or same[is_fill].all()
        assert fill == 0 or not ((bits(found) == pattern) & ~is_fill).any()
        if info.sentinel is not None and fill != 0:  # else one that the encoder found
            assert np.array([info.sentinel], dtype).tobytes() == np.array([fill], dtype).tobytes()
    assert same[~np.isfinite(x)].all()
    assert np.isfinite(y[np.isfinite(x)]).all()
    if info.bound == 0:
        assert same.all()
        return
    assert info.bound <= bound_of(x, codec, is_fill)
    for i in np.flatnonzero(np.isfinite(x) & ~same):
        exact = Fraction(float(x[i]))
        error = abs(exact - Fraction(float(y[i])))
        assert error <= Fraction(info.bound) * (abs(exact) if info.pointwise_relative else 1), (i, x[i], y[i])
    if info.pointwise_relative:
        assert np.array_equal(np.signbit(x), np.signbit(y))
    else:
        assert pyfilter.verify(given, found, info.bound, fill_value=fill).ok


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("codec", [pyfilter.Cuszp2, pyfilter.HierarchicalDelta, pyfilter.Lorenzo, pyfilter.Adaptive])
def test_every_pattern(codec: Any, name: str) -> None:
    """In the order of the patterns and in another, for bounds around each step between neighbours."""
    values = np.arange(1 << 16, dtype=np.uint16)
    for patterns in (values, np.random.default_rng(0).permutation(values)):
        x = patterns.view(type_of(name))
        finite = np.isfinite(numbers(x))
        for bound in (2.0**-24, 3e-8, 0.5, 0.51, 24.0, 1e4, 1e38):
            y = pyfilter.decode(pyfilter.encode(x, codec(absolute=bound)))
            assert bits(y)[~finite].tobytes() == bits(x)[~finite].tobytes()
            assert np.abs(numbers(x)[finite] - numbers(y)[finite]).max() <= bound


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("codec", [pyfilter.Cuszp2, pyfilter.HierarchicalDelta, pyfilter.Lorenzo, pyfilter.Adaptive])
def test_a_bound_makes_them_smaller(codec: Any, name: str) -> None:
    """Half of what they take bit for bit, at a bound of 1 %."""
    rng = np.random.default_rng(1)
    values = (np.sin(np.linspace(0, 40, 60_000)) * 10 + 0.05 * rng.standard_normal(60_000)).astype(type_of(name))
    exact = len(pyfilter.encode(values, pyfilter.Lossless(effort="ratio")))
    assert len(pyfilter.encode(values, codec(relative=1e-2))) < 0.65 * exact
    assert len(pyfilter.encode(values, codec(absolute=1e-30))) <= len(pyfilter.encode(values, pyfilter.Lossless()))


@hunt(150)
@given(data=st.data(), name=st.sampled_from(DTYPES), codec=codecs(), fill=st.sampled_from((None, 0.0, -999.0)))
def test_written_in_parts(data: st.DataObject, name: str, codec: pyfilter.Codec, fill: float | None) -> None:
    """Some values again and again: the others keep their error, or one within the bound that the array has now."""
    dtype = type_of(name)
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    wanted = (rng.standard_normal(300).cumsum() * data.draw(st.sampled_from([1.0, 30.0]))).astype(dtype)
    frame = pyfilter.encode(wanted, codec, fill)
    bounds = [bound_of(numbers(wanted), codec, np.zeros(300, np.bool_))]
    errors = [pyfilter.frame_info(frame).error_bound]
    for _ in range(data.draw(st.integers(1, 4))):
        now = np.array(pyfilter.decode(frame))
        start, stop = sorted((data.draw(st.integers(0, 300)), data.draw(st.integers(0, 300))))
        scale = data.draw(st.sampled_from([0.1, 1.0, 20.0]))
        part = (rng.standard_normal(stop - start) * scale).astype(dtype)
        if fill is not None and data.draw(st.booleans()):
            part[: len(part) // 2] = fill
        now[start:stop] = wanted[start:stop] = part
        is_fill = np.zeros(300, np.bool_) if fill is None else numbers(wanted) == fill
        bounds.append(bound_of(numbers(wanted), codec, is_fill))
        frame = pyfilter.encode(now, codec, fill, over=frame)
        info, found = pyfilter.frame_info(frame), pyfilter.decode(frame)
        x, y = numbers(wanted), numbers(found)
        if codec.bound[0] == "pointwise_relative":
            assert (np.abs(x - y) <= codec.bound[1] * np.abs(x)).all()
            continue
        assert np.abs(x - y).max() <= max(bounds), (np.abs(x - y).max(), bounds)
        errors.append(info.error_bound)
        assert np.abs(x - y).max() <= max(errors)
        assert (np.abs(x - y)[start:stop] <= bounds[-1]).all()
        if fill is not None:
            assert y[is_fill].tobytes() == x[is_fill].tobytes()


def test_a_step_that_was_halved_is_not_widened_for_older_values() -> None:
    """Values from before it are farther from their originals than half of the smaller step."""
    codec, rng = pyfilter.Cuszp2(relative=0.01), np.random.default_rng(128)
    wanted = rng.standard_normal(300).cumsum().astype("f2")
    frame = pyfilter.encode(wanted, codec)
    for stop, scale in ((13, 0.1), (13, 20.0), (1, 0.1)):
        now = np.array(pyfilter.decode(frame))
        now[:stop] = wanted[:stop] = (rng.standard_normal(stop) * scale).astype("f2")
        frame = pyfilter.encode(now, codec, over=frame)
        error = np.abs(numbers(pyfilter.decode(frame)) - numbers(wanted)).max()
        assert error <= 0.01 * (float(wanted.max()) - float(wanted.min())) or error <= 0.3775  # the first bound


@pytest.mark.parametrize("codec", [pyfilter.Cuszp2, pyfilter.HierarchicalDelta, pyfilter.Lorenzo, pyfilter.Adaptive])
@pytest.mark.parametrize("bound", [{"relative": 1e-2}, {"absolute": 0.05}])
def test_many_steps_stay_small(codec: Any, bound: dict[str, float]) -> None:
    """A chunk that is written step by step is not much larger than one that is written at once."""
    rng = np.random.default_rng(2)
    steps = (
        np.outer(np.linspace(1, 8, 30), np.sin(np.linspace(0, 9, 900))) + 0.01 * rng.standard_normal((30, 900))
    ).astype("f2")
    now = np.zeros_like(steps)
    frame = pyfilter.encode(now, codec(**bound))
    for t, step in enumerate(steps):
        now[t] = step
        frame = pyfilter.encode(now, codec(**bound), over=frame)
        now = np.array(pyfilter.decode(frame))
    largest = bound.get("absolute", 1e-2 * (float(steps.max()) - float(steps.min())))
    assert np.abs(numbers(now) - numbers(steps)).max() <= largest
    # Lorenzo stores the first steps, and Adaptive keeps what the first frame was made by
    most = 10 if codec is pyfilter.Adaptive else 2
    assert len(frame) < most * len(pyfilter.encode(steps, codec(**bound)))


@pytest.mark.parametrize("codec", [pyfilter.Progressive(absolute=1e-3), pyfilter.Particles(absolute=1e-3)])
def test_other_codecs_refuse_them(codec: pyfilter.Codec) -> None:
    with pytest.raises(pyfilter.errors.Unsupported, match=r"cannot encode float16; it takes float32, float64"):
        pyfilter.encode(np.ones((4, 3), "f2"), codec)
