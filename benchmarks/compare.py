# SPDX-License-Identifier: BSD-3-Clause
"""The errors of decoded values, computed fast enough for every round of a benchmark.

pyfilter.verify is the exact judge; it is asked where rounding in here could hide a broken bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import pyfilter
from pyfilter import dtypes

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 1 << 18  # values: the temporaries stay in the cache


@dataclass(frozen=True)
class Outcome:
    """The result of a comparison.

    Attributes
    ----------
    max_error : float
        Largest error of an ordinary value; infinite if one has become NaN or infinite.
    bound_kept : bool
        Every ordinary value is within the bound; with a bound of 0 all bits are equal.
    specials_kept : bool
        NaN is still NaN, infinities and fill values are unchanged, and no ordinary value became one of these.
    """

    max_error: float
    bound_kept: bool
    specials_kept: bool


def compare(original: NDArray[Any], stored: NDArray[Any], bound: float, fill: np.generic | None) -> Outcome:
    """Compare two C-contiguous arrays of one shape and type."""
    x, y = original.reshape(-1), stored.reshape(-1)
    worst, kept, specials = 0.0, True, True
    difference = np.empty(_BLOCK, dtype=np.float64)
    for start in range(0, x.size, _BLOCK):
        a, b = x[start : start + _BLOCK], y[start : start + _BLOCK]
        d = difference[: a.size]
        with np.errstate(invalid="ignore", over="ignore"):
            np.subtract(a, b, out=d, dtype=np.float64)
        np.abs(d, out=d)
        error = float(d.max())
        if not math.isfinite(error) or (fill is not None and error >= bound > 0.0):
            block = _with_specials(a, b, d, bound, fill)
            worst, kept = max(worst, block.max_error), kept and block.bound_kept
            specials = specials and block.specials_kept
        else:
            worst, kept = max(worst, error), kept and _within(a, b, error, bound)
    return Outcome(worst, kept, specials)


def _within(a: NDArray[Any], b: NDArray[Any], error: float, bound: float) -> bool:
    if bound == 0.0:
        bits = dtypes.bits_dtype(a.dtype)
        return bool(np.array_equal(a.view(bits), b.view(bits)))
    return error < bound or bool(pyfilter.verify(a, b, bound).ok)


def _with_specials(
    a: NDArray[Any], b: NDArray[Any], difference: NDArray[Any], bound: float, fill: np.generic | None
) -> Outcome:
    special, became = ~np.isfinite(a), ~np.isfinite(b)
    if fill is not None:
        special, became = special | (a == fill), became | (b == fill)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    ordinary = ~special
    broken = ordinary & became
    worst = math.inf if broken.any() else float(difference[ordinary].max(initial=0.0))
    kept = _within(a[ordinary], b[ordinary], worst, bound) if not broken.any() else False
    if bound == 0.0:
        bits = dtypes.bits_dtype(a.dtype)
        kept = bool(np.array_equal(a.view(bits), b.view(bits)))
    return Outcome(worst, kept, not bool((special & ~same).any()) and not bool(broken.any()))
