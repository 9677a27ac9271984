# SPDX-License-Identifier: BSD-3-Clause
"""Complex numbers: the bound of each part in exact arithmetic, special parts and fill values bit for bit, ranges."""

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
SHAPES = ((), (0,), (1,), (31,), (33,), (0, 3), (1, 33), (31, 2), (7, 33), (3, 5, 9), (2, 3, 4, 5))
FILLS = (
    0.0,
    -999.0,
    -999 - 999j,
    3 - 7j,
    -999 - 0.0j,
    complex(math.nan, 0),
    complex(math.nan, 5),
    complex(7, math.inf),
)
SPECIALS = (math.nan, math.inf, -math.inf, -0.0, 0.0, 1e30, -1e-40)


def codecs() -> st.SearchStrategy[pyfilter.Codec]:
    """Every codec that takes complex numbers, with every kind of bound."""
    several: list[dict[str, Any]] = [{"absolute": bound} for bound in (1e-3, 1e30, 1e-38)]
    bounds = st.sampled_from([*several, {"relative": 1e-3}, {"psnr": 60.0}])
    of_each: dict[str, Any] = {"pointwise_relative": 1e-3}
    pointwise = st.just(of_each)
    return st.one_of(
        bounds.map(lambda bound: pyfilter.Cuszp2(**bound)),
        st.one_of(bounds, pointwise).map(lambda bound: pyfilter.HierarchicalDelta(**bound)),
        st.one_of(bounds, pointwise).map(lambda bound: pyfilter.Lorenzo(**bound)),
        st.one_of(bounds, pointwise).map(lambda bound: pyfilter.Adaptive(**bound, effort="fast")),
        st.sampled_from([pyfilter.Lossless(), pyfilter.Lossless(effort="ratio")]),
    )


@st.composite
def arrays(draw: st.DrawFn, dtype: str, fill: complex | None) -> Array:
    """Smooth or rough parts, some of them special; some values the fill value, or with one part of it."""
    shape = draw(st.sampled_from(SHAPES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = math.prod(shape)
    parts = np.cumsum(rng.standard_normal((n, 2)), axis=0) if draw(st.booleans()) else rng.standard_normal((n, 2)) * 50
    parts = parts.astype("f4" if dtype == "c8" else "f8")
    for special in draw(st.lists(st.sampled_from(SPECIALS), max_size=4)):
        parts[rng.random((n, 2)) < 0.1] = special
    if draw(st.booleans()):  # NaNs with a payload
        patterns = parts.view(f"u{parts.itemsize}")
        patterns[rng.random((n, 2)) < 0.1] = (1 << 8 * parts.itemsize) - 1 - int(rng.integers(1000))
    if fill is not None:
        value = np.array(fill, dtype).reshape(1).view(parts.dtype)
        parts[rng.random(n) < 0.2] = value
        parts[rng.random((n, 2)) < 0.05] = value[0]
    values: Array = np.ascontiguousarray(parts).view(dtype).reshape(shape)
    return values.astype(f">{dtype}") if draw(st.integers(0, 4)) == 0 else values


def bound_of(x: Array, codec: pyfilter.Codec, fill: Array | None, is_fill: NDArray[np.bool_]) -> float:
    """The largest absolute bound that may be meant for parts x."""
    mode, bound = codec.bound
    if mode in ("absolute", "pointwise_relative", "none"):
        return bound
    counted = x[np.isfinite(x) & ~is_fill]
    if counted.size == 0:
        return 0.0
    spread = Fraction(float(counted.max())) - Fraction(float(counted.min()))
    part = Fraction(bound) if mode == "relative" else ten_to(Fraction(bound) / -20)
    return float_not_above(spread * part)


@hunt(400)
@given(data=st.data(), dtype=st.sampled_from(["c8", "c16"]), fill=st.sampled_from((None, *FILLS)), codec=codecs())
def test_bound(data: st.DataObject, dtype: str, fill: complex | None, codec: pyfilter.Codec) -> None:
    given = data.draw(arrays(dtype, fill))
    frame = pyfilter.encode(given, codec, fill)
    info, found = pyfilter.frame_info(frame), pyfilter.decode(frame)
    assert info.frame_bytes == len(frame) <= 8 * (7 + given.ndim) + given.nbytes
    assert (info.shape, info.dtype) == (given.shape, np.dtype(dtype)) == (found.shape, found.dtype)
    assert info.format_version == (10 if info.codec == "lorenzo" else 8)
    assert info.big_endian is (given.dtype.byteorder == ">")
    if info.codec != "adaptive" or given.size <= 200:
        assert decoder.decode(frame).tobytes() == found.tobytes()
    part = "f4" if dtype == "c8" else "f8"
    x, y = (np.ascontiguousarray(item.astype(dtype)).reshape(-1).view(part) for item in (given, found))
    n = given.size
    start, stop = sorted((data.draw(st.integers(0, n)), data.draw(st.integers(0, n))))
    assert pyfilter.decode(frame, start, stop).tobytes() == y[2 * start : 2 * stop].tobytes()
    same = bits(x) == bits(y)
    value = None if fill is None else np.array(fill, dtype).reshape(1).view(part)
    is_fill = np.zeros(n, np.bool_)
    if value is not None:
        is_fill = (bits(x).reshape(-1, 2) == bits(value)).all(axis=1)
        turned = (bits(y).reshape(-1, 2) == bits(value)).all(axis=1) & ~is_fill
        assert not turned.any() or fill == 0
    is_fill = np.repeat(is_fill, 2)
    assert same[is_fill | ~np.isfinite(x)].all()
    assert np.isfinite(y[np.isfinite(x)]).all()
    assert pyfilter.verify(given, found, codec if codec.is_lossless else info.bound, fill_value=fill).ok or (
        info.pointwise_relative
    )
    if info.bound == 0:
        assert same.all()
        return
    assert info.bound <= bound_of(x, codec, value, is_fill)
    finite = np.flatnonzero(np.isfinite(x) & ~same)
    for i in finite:
        error, exact = abs(Fraction(float(x[i])) - Fraction(float(y[i]))), Fraction(float(x[i]))
        assert error <= Fraction(info.bound) * (abs(exact) if info.pointwise_relative else 1), (i, x[i], y[i])


@hunt(100)
@given(data=st.data(), fill=st.sampled_from((None, *FILLS)), relative=st.booleans())
def test_written_in_parts(data: st.DataObject, fill: complex | None, relative: bool) -> None:
    """What was not written again keeps its error, or one within the bound that the array has now."""
    before = np.cumsum(np.random.default_rng(data.draw(st.integers(0, 999))).standard_normal((200, 2)), axis=0)
    first = np.ascontiguousarray(before.astype("f4")).view("c8").reshape(10, 20)
    codec: pyfilter.Codec = pyfilter.Cuszp2(relative=1e-3) if relative else pyfilter.Adaptive(absolute=1e-2)
    old = pyfilter.encode(first, codec, fill)
    now, wanted = pyfilter.decode(old), first.copy()
    row = data.draw(st.integers(0, 9))
    changed = np.complex64(fill) if fill is not None and data.draw(st.booleans()) else np.complex64(2 - 3j)
    now[row] = wanted[row] = changed
    new = pyfilter.encode(now, codec, fill, over=old)
    info, found = pyfilter.frame_info(new), pyfilter.decode(new)
    most = max(info.error_bound, pyfilter.frame_info(old).error_bound)
    finite = np.isfinite(wanted)
    for name in ("real", "imag"):
        assert np.abs(getattr(found, name)[finite].astype("f8") - getattr(wanted, name)[finite]).max() <= most
    if fill is not None and changed.tobytes() == np.complex64(fill).tobytes():
        assert found[row].tobytes() == wanted[row].tobytes()


@pytest.mark.parametrize("codec", [pyfilter.Progressive(absolute=1e-3), pyfilter.Particles(absolute=1e-3)])
def test_other_codecs_refuse_them(codec: pyfilter.Codec) -> None:
    with pytest.raises(pyfilter.errors.Unsupported, match=r"cannot encode complex64; it takes float32, float64"):
        pyfilter.encode(np.zeros((4, 2), np.complex64), codec)


def test_the_modulus_of_the_error() -> None:
    """At most sqrt(2) times the bound."""
    rng = np.random.default_rng(5)
    values = (rng.standard_normal(5000) + 1j * rng.standard_normal(5000)).astype("c16")
    for codec in (pyfilter.Cuszp2(absolute=0.01), pyfilter.Lorenzo(absolute=0.01), pyfilter.Adaptive(absolute=0.01)):
        error = np.abs(pyfilter.decode(pyfilter.encode(values, codec)) - values)
        assert 0.01 < error.max() <= 0.01 * math.sqrt(2) * (1 + 1e-12)
