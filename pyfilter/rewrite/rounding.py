# SPDX-License-Identifier: BSD-3-Clause
"""Recognises values that were rounded before they came here: decimal digits, a grid of steps, zeroed mantissa bits.

Such values are lossy already: packed with `scale_factor`, written as text, or treated by bit rounding. A bound below
half their step keeps digits that were never there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import dtypes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_MOST_VALUES = 200_000
_LEAST_DISTINCT = 32  # fewer are a mask, flags or a constant
_MOST_STEPS = 1 << 16  # what 16-bit integers can tell apart
_DECIMALS = range(-2, 9)
_TOLERANCE = 4  # units in the last place that arithmetic on a grid may be off
_LEAST_ZERO_BITS = 6
_F32_MAX = float(np.finfo(np.float32).max)


def described(blocks: Iterable[NDArray[Any]], specials: Iterable[np.generic] = ()) -> str:
    """Return how the values of a sample were rounded, "" where they were not.

    Parameters
    ----------
    blocks : iterable of numpy.ndarray
        Parts of a variable, float32 or float64.
    specials : iterable of numpy scalar
        Values that stand for "missing".

    Returns
    -------
    str
        Such as "multiples of 0.01" or "the last 12 of 23 mantissa bits are zero".
    """
    values = _distinct(blocks, tuple(specials))
    if values.size < _LEAST_DISTINCT:
        return ""
    narrow = values.astype(np.float32) if values.dtype == np.float64 and np.abs(values).max() < _F32_MAX else values
    if narrow.dtype != values.dtype and np.all(narrow == values):
        return described([narrow]) or "float32 in float64"
    step = _decimal_step(values) or _even_step(values)
    if step:
        return f"multiples of {step:.6g}" if np.all(values == _rounded(values, step)) else f"steps of {step:.6g}"
    return _zero_bits(values)


def _distinct(blocks: Iterable[NDArray[Any]], specials: tuple[np.generic, ...]) -> NDArray[Any]:
    found = []
    for block in blocks:
        flat = block.reshape(-1)
        flat = flat[:: -(-flat.size // _MOST_VALUES) or 1]
        kept = np.isfinite(flat) & (flat != 0)
        for special in specials:
            kept &= flat != special
        found.append(np.unique(flat[kept]))
    return np.unique(np.concatenate(found)) if found else np.empty(0)


def _precision(values: NDArray[Any]) -> float:
    """Return the distance of the largest value to the next one of its type."""
    return float(np.spacing(np.abs(values).max()))


def _rounded(values: NDArray[Any], step: float) -> NDArray[Any]:
    """Return the nearest multiples of a step, computed as one divides by a power of ten: exactly rounded."""
    wide = values.astype(np.float64)
    inverse = round(1 / step)
    nearest = np.rint(wide * inverse) / inverse if step < 1 else np.rint(wide / step) * step
    return nearest.astype(values.dtype)


def _decimal_step(values: NDArray[Any]) -> float:
    """Return the power of ten that all values are multiples of, 0.0 where there is none."""
    for digits in _DECIMALS:
        step = 10.0**-digits
        if step < 2 * _TOLERANCE * _precision(values):
            break
        if np.all(values == _rounded(values, step)):
            return step
    return 0.0


def _even_step(values: NDArray[Any]) -> float:
    """Return the step between values on an even grid with any offset, 0.0 where they are on none."""
    if values.size > _MOST_STEPS:
        return 0.0
    wide = values.astype(np.float64)
    wide -= wide[wide.size // 2]
    noise = _TOLERANCE * _precision(values)
    gaps = np.diff(wide)
    step = float(np.median(gaps[gaps <= 1.5 * gaps.min()]))
    if step < 8 * noise:
        return 0.0
    # rounding makes the first guess a little wrong: it is refined from the middle outwards
    reach = 2.0
    while reach < 2 * _MOST_STEPS:
        near = wide[np.abs(wide) <= (reach + 0.5) * step]
        count = float(np.rint((near[-1] - near[0]) / step))
        if count >= 1:
            step = float(near[-1] - near[0]) / count
        if near.size == wide.size:
            break
        reach *= 2
    return step if bool(np.all(np.abs(wide - np.rint(wide / step) * step) <= noise)) else 0.0


def _zero_bits(values: NDArray[Any]) -> str:
    bits = dtypes.bits_dtype(values.dtype)
    mantissa = np.finfo(values.dtype).nmant
    together = int(np.bitwise_or.reduce(values.view(bits)))
    zeros = (together & -together).bit_length() - 1
    if zeros < _LEAST_ZERO_BITS:
        return ""
    return f"the last {zeros} of {mantissa} mantissa bits are zero"
