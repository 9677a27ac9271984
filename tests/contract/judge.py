# SPDX-License-Identifier: BSD-3-Clause
"""The verdict on a frame: docs/format.md section 9 in exact arithmetic. Neighbour: fields.py makes the values.

Why the comparison with the bound is exact. Let e = |x - x'| in real numbers, r = e rounded to f64, and b the largest
f64 that is not above the bound. Rounding keeps the order of numbers and leaves b unchanged, so e >= b gives r >= b.
Where r < b, e < b also holds in exact arithmetic. What is left (r >= b: right at the bound, or beyond it) is settled
value by value with fractions. f32 goes to f64 without loss, and an overflow gives r = infinity, which is such a case.
"""

from __future__ import annotations

import math
import sys
from decimal import Context
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference import decoder

import pyfilter

from .fields import Case

Array = NDArray[Any]
Bounded = pyfilter.Cuszp2 | pyfilter.HierarchicalDelta | pyfilter.Lorenzo | pyfilter.Progressive | pyfilter.Adaptive
#: larger frames of adaptive are left to the library alone: the reference decoder takes a second for 10 000 values
SLOWLY_DECODED = 500


def bits(values: Array) -> Array:
    """The bit patterns of values, as unsigned integers of their width."""
    return np.ascontiguousarray(values).reshape(-1).view(f"u{values.dtype.itemsize}")


def float_not_above(number: Fraction) -> float:
    """The largest f64 that is not above a number >= 0."""
    try:
        nearest = float(number)
    except OverflowError:
        return sys.float_info.max
    return nearest if nearest <= number else math.nextafter(nearest, 0.0)


def ten_to(exponent: Fraction) -> Fraction:
    """A power of ten to 80 digits."""
    digits = Context(prec=80)
    return Fraction(digits.power(10, digits.divide(exponent.numerator, exponent.denominator)))


def first_beyond(x: Array, y: Array, bound: Fraction) -> int | None:
    """Index of the first value of y that is farther than the bound from its x, None where all keep it. Finite only."""
    low = float_not_above(bound)
    with np.errstate(over="ignore"):
        difference = np.abs(x.astype(np.float64) - y.astype(np.float64))
    suspects = difference != 0 if low == 0 else difference >= low
    settled: dict[tuple[float, float], bool] = {}
    for i in np.flatnonzero(suspects):
        pair = (float(x[i]), float(y[i]))
        if pair not in settled:
            settled[pair] = abs(Fraction(pair[0]) - Fraction(pair[1])) > bound
        if settled[pair]:
            return int(i)
    return None


def is_fill(x: Array, fill: Array | None) -> NDArray[np.bool_]:
    """Which values are the fill value: its bits; zeros of either sign count as one."""
    if fill is None:
        return np.zeros(x.shape, np.bool_)
    return np.asarray(x == 0 if fill[0] == 0 else bits(x) == bits(fill)[0])


def asked_bound(
    x: Array,
    codec: Bounded,
    fill: Array | None,
) -> Fraction:
    """The bound of a request for these values as an exact number."""
    if codec.absolute is not None:
        return Fraction(codec.absolute)
    counted = x[np.isfinite(x) & ~is_fill(x, fill)]
    if counted.size == 0:
        return Fraction(0)
    spread = Fraction(float(counted.max())) - Fraction(float(counted.min()))
    if codec.relative is not None:
        return Fraction(codec.relative) * spread
    assert codec.psnr is not None
    return spread * ten_to(Fraction(codec.psnr) / -20)


def check_values(x: Array, y: Array, bound: Fraction, fill: Array | None) -> None:
    """Assert that y is what a decoder may give for x: section 9."""
    exact = ~np.isfinite(x)
    if fill is not None and fill[0] != 0:
        exact |= is_fill(x, fill)
        taken = np.flatnonzero(~exact & (bits(y) == bits(fill)[0]))
        assert taken.size == 0, f"value {taken[0]}: {x[taken[0]]!r} became the fill value"
    changed = np.flatnonzero(exact & (bits(x) != bits(y)))
    assert changed.size == 0, (
        f"value {changed[0]}: special, {int(bits(x)[changed[0]]):#x} became {int(bits(y)[changed[0]]):#x}"
    )
    finite = np.flatnonzero(~exact)
    lost = finite[~np.isfinite(y[finite])]
    assert lost.size == 0, f"value {lost[0]}: {x[lost[0]]!r} became {y[lost[0]]!r}"
    nonzero = np.flatnonzero((x == 0) & (y != 0))
    assert nonzero.size == 0, f"value {nonzero[0]}: zero became {y[nonzero[0]]!r}"
    beyond = first_beyond(x[finite], y[finite], bound)
    if beyond is not None:
        i = finite[beyond]
        raise AssertionError(f"value {i}: {x[i]!r} became {y[i]!r}, the bound is {float_not_above(bound)!r}")


def check_case(case: Case) -> pyfilter.FrameInfo:
    """Encode, decode, and assert all that docs/format.md promises."""
    given = case.values
    x = given.astype(given.dtype.newbyteorder("="), copy=False).reshape(-1)
    frame = pyfilter.encode(given, case.codec, case.fill)
    info = pyfilter.frame_info(frame)
    assert info.frame_bytes == len(frame) <= 8 * (7 + given.ndim) + given.nbytes, "longer than its raw form"
    assert info.shape == given.shape
    decoded = pyfilter.decode(frame)
    assert decoded.shape == given.shape
    assert decoded.dtype == x.dtype
    y = decoded.reshape(-1)
    if info.codec != "adaptive" or x.size <= SLOWLY_DECODED:
        assert np.array_equal(bits(decoder.decode(frame)), bits(y)), "the reference decoder gives other values"
    if info.codec == "lossless" or info.stored_raw or info.step == 0:
        assert info.bound == 0
        assert np.array_equal(bits(x), bits(y)), "a bit-exact frame is not"
        return info
    assert isinstance(case.codec, Bounded)
    fill = None if case.fill is None else np.asarray(case.fill).astype(x.dtype).reshape(1)
    asked = asked_bound(x, case.codec, fill)
    assert 0 < Fraction(info.bound) <= asked, f"the frame keeps {info.bound!r}, asked for is {float_not_above(asked)!r}"
    check_values(x, y, Fraction(info.bound), fill)
    return info
