# SPDX-License-Identifier: BSD-3-Clause
"""Structural similarity of planes: SSIM (Wang et al. 2004), and DSSIM as climate science has it (Baker et al. 2022).

Windows are Gaussian, 11 x 11 with a standard deviation of 1.5, and lie inside a plane; those with a missing value do
not count. Planes narrower than a window, and lines, have windows of 11 x 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter.recommendation.metrics import Metric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_WIDTH, _SIGMA = 11, 1.5
_LEVELS = 255  # DSSIM rounds to as many steps as a picture has
_TINY = 1e-8
_STACK = 1 << 16  # values of small planes that are looked at together: what a core's cache holds


class Ssim(Metric):
    """Structural similarity, the mean of all windows; constants by the range of the whole variable."""

    name = "ssim"

    def measure(self, x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sum over windows, and their number."""
        spread = self.setting.spread or 1.0
        total = count = 0.0
        for a, b in _planes(x, y, _STACK):
            # of the range: float32 is precise enough beside constants of 1e-4 and 9e-4
            first, second = (((item - self.setting.low) / spread).astype(np.float32) for item in (a, b))
            found = similarity(first, second, 0.01**2, 0.03**2)
            total += float(found.sum(dtype=np.float64))
            count += found.size
        return np.array([total, count])

    def value(self, sums: NDArray[np.float64]) -> float:
        """Return the mean."""
        return float(sums[0] / sums[1]) if sums[1] else 1.0


class Dssim(Metric):
    """Data SSIM: each plane scaled to its own range and rounded to 256 levels; the worst plane counts."""

    name = "dssim"

    def measure(self, x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
        """Return the worst plane's mean."""
        worst = 1.0
        for a, b in _planes(x, y, 1):
            if not np.isfinite(a).any():
                continue
            low, high = (ends.reduce([ends.reduce(item, axis=None) for item in (a, b)]) for ends in (np.fmin, np.fmax))
            scale = high - low if high > low else (high or 1.0)
            shift = low if high > low else 0.0
            first, second = (np.round((item - shift) / scale * _LEVELS) / _LEVELS for item in (a, b))
            found = similarity(first, second, _TINY, _TINY)
            if found.size:
                worst = min(worst, float(found.mean(dtype=np.float64)))
        return np.array([worst])

    def merged(self, sums: NDArray[np.float64], more: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the worse one."""
        return np.minimum(sums, more)

    def value(self, sums: NDArray[np.float64]) -> float:
        """Return it."""
        return float(sums[0])


def similarity(x: NDArray[Any], y: NDArray[Any], c1: float, c2: float) -> NDArray[np.float64]:
    """Return the similarity of each window of planes or stacks of them, without those with missing values, in a row.

    A large plane is looked at in strips of rows, which a core's cache holds.
    """
    windows = x.shape[-2] - _WIDTH + 1
    rows = max(_STACK // x.shape[-1], _WIDTH)
    if windows <= rows or x.size != x.shape[-2] * x.shape[-1]:
        return _similarity(x, y, c1, c2)
    strips = [slice(start, start + rows + _WIDTH - 1) for start in range(0, windows, rows)]
    return np.concatenate([_similarity(x[..., strip, :], y[..., strip, :], c1, c2) for strip in strips])


def _similarity(x: NDArray[Any], y: NDArray[Any], c1: float, c2: float) -> NDArray[np.float64]:
    mean_x, mean_y = _filtered(x), _filtered(y)
    both, apart = _filtered(np.square(x + y)), _filtered(np.square(x - y))
    means, products = mean_x * mean_x + mean_y * mean_y, mean_x * mean_y
    spreads = (both + apart) / 2 - means  # of both planes together
    joint = (both - apart) / 4 - products
    upper = (2 * products + c1) * (2 * joint + c2)
    lower = (means + c1) * (spreads + c2)
    found: NDArray[np.float64] = (upper / lower)[np.isfinite(lower)]
    return found


def _planes(x: NDArray[Any], y: NDArray[Any], values: int) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield stacks of planes of so many values as float64; where the original is missing the decoded plane is, too."""
    shape = (-1, *x.shape[-2:]) if x.ndim > 1 else (1, 1, -1)
    before, after = x.reshape(shape), y.reshape(shape)
    count = max(values // (before.shape[1] * before.shape[2]), 1)
    for start in range(0, before.shape[0], count):
        first, second = (item[start : start + count].astype(np.float64) for item in (before, after))
        gap = ~np.isfinite(first)
        first[gap] = second[gap] = np.nan
        yield first, second


def _filtered(values: NDArray[Any]) -> NDArray[Any]:
    """Return weighted means of all windows that lie inside."""
    places = np.arange(_WIDTH) - _WIDTH // 2
    weights = np.exp(-(places**2) / (2 * _SIGMA**2))
    weights = (weights / weights.sum()).astype(values.dtype)
    for axis in (-2, -1):
        extent = values.shape[axis] - _WIDTH + 1
        if extent < 1:
            continue
        parts = [
            values[..., start : start + extent, :] if axis == -2 else values[..., start : start + extent]
            for start in range(_WIDTH)
        ]
        # weights are the same from both sides
        total = parts[_WIDTH // 2] * weights[_WIDTH // 2]
        for place in range(_WIDTH // 2):
            total += (parts[place] + parts[-1 - place]) * weights[place]
        values = total
    return values
