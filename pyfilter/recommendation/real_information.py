# SPDX-License-Identifier: BSD-3-Clause
"""Bitwise real information (Klöwer et al., Nature Computational Science 1, 2021): what each bit of a float tells.

A bit tells as much as it says of the same bit of the next value: their mutual information. Information that chance
alone would show (99 % of cases) counts as none.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import dtypes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_CHANCE = 2.576  # standard deviations that hold 99 % of a normal distribution


def of_bits(pieces: Iterable[NDArray[Any]]) -> NDArray[np.float64]:
    """Return the real information of each bit, in bits a value; the sign first, the last mantissa bit last.

    Parameters
    ----------
    pieces : iterable of numpy.ndarray
        Parts of a variable, float32 or float64, NaN where values are missing. Neighbours are along the last dimension.
    """
    counts: NDArray[np.int64] | None = None
    for piece in pieces:
        width = piece.dtype.itemsize * 8
        if counts is None:
            counts = np.zeros((width, 4), np.int64)
        there = np.isfinite(piece)
        pairs = there[..., 1:] & there[..., :-1]
        bits = np.ascontiguousarray(piece).view(dtypes.bits_dtype(piece.dtype))
        first, second = bits[..., :-1][pairs], bits[..., 1:][pairs]
        for place in range(width):
            shift = bits.dtype.type(width - 1 - place)
            pattern = ((first >> shift) & bits.dtype.type(1)) * 2 + ((second >> shift) & bits.dtype.type(1))
            counts[place] += np.bincount(pattern.astype(np.intp), minlength=4)
    if counts is None:
        return np.zeros(0)
    return np.array([_mutual(row) for row in counts])


def _mutual(counts: NDArray[np.int64]) -> float:
    """Return the mutual information of two bits by how often 00, 01, 10, 11 occur; 0.0 where it is chance."""
    total = int(counts.sum())
    if total == 0:
        return 0.0
    joint = counts.reshape(2, 2) / total
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    there = joint > 0
    found = float(np.sum(joint[there] * np.log2(joint[there] / apart[there])))
    likely = 0.5 + _CHANCE / (2.0 * math.sqrt(total))  # of a fair coin in so many throws
    rest = 1.0 - likely
    chance = 1.0 if likely >= 1.0 else 1.0 + likely * math.log2(likely) + rest * math.log2(rest)
    return found if found > chance else 0.0


def up_to(information: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """Return the information of the sign, the exponent and the first k mantissa bits, for k of 0 to all; first nothing.

    Index it with what `kept_bits` returns.
    """
    mantissa = int(np.finfo(dtype).nmant)
    sums = np.cumsum(information)
    return np.concatenate([[0.0], sums[information.size - mantissa - 1 :]])


def kept_bits(values: NDArray[np.float64], errors: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[np.intp]:
    """Return for each value the index in `up_to`: 0 for nothing, 1 + k for k mantissa bits that its error leaves.

    Rounding to k bits makes an error of at most half a unit of mantissa bit k.
    """
    mantissa = int(np.finfo(dtype).nmant)
    _, exponent = np.frexp(values)
    _, size = np.frexp(errors)  # |error| < 2^size
    left = exponent - 2 - size
    left = np.where(np.abs(errors) == np.ldexp(0.5, size), left + 1, left)  # a power of two is at its own limit
    left = np.where(values == 0.0, -1, left)
    left = np.where(errors == 0.0, mantissa, np.clip(left, -1, mantissa))
    found: NDArray[np.intp] = (left + 1).astype(np.intp)
    return found
