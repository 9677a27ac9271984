# SPDX-License-Identifier: BSD-3-Clause
"""pyfilter.verify: exact at the bound, and strict about special values."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyfilter
from pyfilter import Cuszp2, Lossless

from .support import field

doubles = st.floats(allow_nan=False, allow_infinity=False)


def test_a_kept_bound() -> None:
    values = field((40, 50))
    result = pyfilter.verify(values, values + np.float32(0.001), 0.0011)
    assert result.ok
    assert result.max_error == pytest.approx(0.001, rel=1e-3)
    assert (result.values, result.violations, result.first_violation) == (2000, 0, None)
    assert result.psnr == pytest.approx(20 * math.log10(np.ptp(values.astype("f8")) / 0.001), abs=0.01)


def test_a_broken_bound_is_counted_and_located() -> None:
    values = field((40, 50), "f8")
    stored = values.copy()
    stored[7, 3] += 0.1
    stored[9, 0] -= 0.2
    result = pyfilter.verify(values, stored, 0.05)
    assert not result.ok
    assert result.specials_kept
    assert (result.violations, result.first_violation) == (2, 7 * 50 + 3)
    assert result.max_error == pytest.approx(0.2)


@given(doubles, doubles, st.floats(min_value=5e-324, allow_infinity=False))
def test_float64_is_judged_as_in_exact_arithmetic(x: float, y: float, bound: float) -> None:
    exact = abs(Fraction(x) - Fraction(y)) <= Fraction(bound)
    assert pyfilter.verify([x], [y], bound).ok == exact


@given(doubles, doubles, st.integers(-2, 2))
def test_bounds_next_to_the_error_are_told_apart(x: float, y: float, steps: int) -> None:
    error = abs(Fraction(x) - Fraction(y))
    try:
        bound = float(error)
    except OverflowError:
        return
    for _ in range(abs(steps)):
        bound = math.nextafter(bound, math.inf if steps > 0 else 0.0)
    if 0.0 < bound < math.inf:
        assert pyfilter.verify([x], [y], bound).ok == (error <= Fraction(bound))


@given(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
)
def test_float32_is_judged_as_in_exact_arithmetic(x: float, y: float) -> None:
    error = abs(Fraction(x) - Fraction(y))
    bound = float(error)
    if 0.0 < bound < math.inf:
        a, b = np.array([x], "f4"), np.array([y], "f4")
        assert pyfilter.verify(a, b, bound).ok == (error <= Fraction(bound))
        assert not pyfilter.verify(a, b, math.nextafter(math.nextafter(bound, 0.0), 0.0) or 5e-324).ok or bound < 1e-323


def test_a_rounding_error_at_the_bound_is_seen() -> None:
    x, y = 1.0 + 2.0**-52, -(2.0**-54)  # x - y rounds to x
    assert not pyfilter.verify([x], [y], x).ok
    assert pyfilter.verify([x], [-y], x).ok


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        (np.nan, np.nan, True),
        (np.inf, np.inf, True),
        (np.inf, -np.inf, False),
        (np.inf, 1e38, False),
        (np.nan, 1.0, False),
        (1.0, np.nan, False),
        (1.0, np.inf, False),
        (0.0, -0.0, True),
        (-0.0, 0.0, True),
    ],
)
def test_special_values(before: float, after: float, kept: bool) -> None:
    result = pyfilter.verify(np.array([before], "f4"), np.array([after], "f4"), 0.5)
    assert result.ok == result.specials_kept == kept


def test_a_nan_keeps_its_payload() -> None:
    plain, payload = np.array([0x7FC00000], "u4").view("f4"), np.array([0x7FC00001], "u4").view("f4")
    assert pyfilter.verify(payload, payload, 0.5).ok
    assert not pyfilter.verify(payload, plain, 0.5).ok


def test_a_fill_value_must_stay_and_must_not_appear() -> None:
    values, near = np.array([-999.0, 1.0]), np.array([-998.9, 1.0])
    assert pyfilter.verify(values, near, 0.5).ok
    changed = pyfilter.verify(values, near, 0.5, fill_value=-999)
    assert (changed.ok, changed.specials_kept) == (False, False)
    appeared = pyfilter.verify(near, values, 0.5, fill_value=-999)
    assert (appeared.ok, appeared.specials_kept) == (False, False)


def test_zero_as_fill_value_may_appear() -> None:
    assert pyfilter.verify([0.1], [0.0], 0.5, fill_value=0).ok


def test_lossless_asks_for_equal_bits() -> None:
    assert pyfilter.verify([1.0, np.nan], [1.0, np.nan], Lossless()).ok
    assert not pyfilter.verify([0.0], [-0.0], Lossless()).ok
    assert not pyfilter.verify([1.0], [math.nextafter(1.0, 2.0)], 0).ok
    assert pyfilter.verify(np.arange(5), np.arange(5), Lossless()).psnr == math.inf


@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "u8"])
def test_integers(dtype: str) -> None:
    info = np.iinfo(dtype)
    low, high = np.array([info.min], dtype), np.array([info.max], dtype)
    result = pyfilter.verify(low, high, Lossless())
    assert not result.ok
    assert result.max_error == float(int(info.max) - int(info.min))


def test_a_relative_bound_is_of_the_whole_range_without_special_values() -> None:
    values = np.array([0.0, 10.0, np.nan, np.inf, 1e20])
    result = pyfilter.verify(values, values + np.array([0.01, 0, 0, 0, 0]), Cuszp2(relative=1e-3), fill_value=1e20)
    assert result.ok
    assert result.bound == 0.01
    assert not pyfilter.verify(
        values, values + np.array([0.0101, 0, 0, 0, 0]), Cuszp2(relative=1e-3), fill_value=1e20
    ).ok


def test_an_array_without_range_may_not_change_under_a_relative_bound() -> None:
    assert pyfilter.verify([3.0, 3.0], [3.0, 3.0], Cuszp2(relative=0.1)).ok
    assert not pyfilter.verify([3.0, 3.0], [3.0, 3.1], Cuszp2(relative=0.1)).ok


def test_datasets_bring_their_bound_and_fill_value(tmp_path: Path) -> None:
    values = field((50, 60))
    values[:5] = -999
    with h5py.File(tmp_path / "a.h5", "w") as file:
        pyfilter.create_dataset(file, "a", values, Cuszp2(absolute=1e-3), fillvalue=-999)
        file["plain"] = values
    with h5py.File(tmp_path / "a.h5") as file:
        result = pyfilter.verify(file["plain"], file["a"])
        assert result.ok
        assert result.bound == 1e-3
        assert 0 < result.max_error <= 1e-3
        with pytest.raises(ValueError, match="no bound"):
            pyfilter.verify(values, file["plain"])


def test_shapes_of_no_values() -> None:
    assert pyfilter.verify(np.zeros((0, 3)), np.zeros((0, 3)), 1.0).ok
    assert pyfilter.verify(np.float64(1), np.float64(1.5), 1.0).max_error == 0.5


@pytest.mark.parametrize(
    ("before", "after", "bound", "error"),
    [
        (np.zeros(3), np.zeros(4), 1.0, ValueError),
        (np.zeros(3), np.zeros(3, "f4"), 1.0, ValueError),
        (np.zeros(3), np.zeros(3), -1.0, ValueError),
        (np.zeros(3), np.zeros(3), np.nan, ValueError),
        (np.zeros(3), np.zeros(3), None, ValueError),
        (np.zeros(3, "S3"), np.zeros(3, "S3"), 1.0, TypeError),
    ],
)
def test_bad_arguments_are_refused(before: Any, after: Any, bound: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        pyfilter.verify(before, after, bound)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_pointwise_relative_bound_is_checked_exactly(dtype: str) -> None:
    codec = pyfilter.HierarchicalDelta(pointwise_relative=0.25)
    x = np.array([4.0, -4.0, 1e-40, 3e-320, 0.0, -0.0, 8.0, np.nan, np.inf], dtype)
    y = np.array([5.0, -3.0, 1e-40, 3e-320, 0.0, -0.0, 8.0, np.nan, np.inf], dtype)
    found = pyfilter.verify(x, y, codec)
    assert (found.ok, found.bound, found.pointwise_relative) == (True, 0.25, True)
    for index, wrong in (
        (0, np.nextafter(y[0], y.dtype.type(9))),
        (1, np.nextafter(y[1], y.dtype.type(0))),
        (4, 1e-45),
    ):
        changed = y.copy()
        changed[index] = wrong
        if changed[index] != y[index]:
            assert pyfilter.verify(x, changed, codec).first_violation == index
    assert not pyfilter.verify(np.zeros(2, dtype), -np.zeros(2, dtype), codec).ok
    smallest = np.array([8, 12], f"u{np.dtype(dtype).itemsize}").view(dtype)
    assert pyfilter.verify(smallest[:1], smallest[:1] * 0 + smallest[0], codec).ok
    assert not pyfilter.verify(smallest[:1], smallest[1:], codec).ok
