# SPDX-License-Identifier: BSD-3-Clause
"""Measures of quality: how well decoded values stand for the original ones, in sums over pieces of the data.

A piece is an array whose last two dimensions are a plane (or whose last one is a line). Missing values are NaN.
windows.py has the measures that compare windows of planes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pyfilter.recommendation import real_information

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHELLS = 32  # of wavenumbers, up to the highest that a plane holds
_LINE = 4096  # values that a spectrum of a line is made of


@dataclass(frozen=True)
class Setting:
    """The facts about a variable before any comparison.

    Attributes
    ----------
    dtype : numpy.dtype
        The element type.
    low, high : float
        Its lowest and highest finite value, those for "missing" left out.
    information : numpy.ndarray or None
        Real information in each bit (`real_information.of_bits`), where it is asked for.
    """

    dtype: np.dtype[Any]
    low: float
    high: float
    information: NDArray[np.float64] | None = None

    @property
    def spread(self) -> float:
        """The range of the values."""
        return self.high - self.low


class Metric(ABC):
    """A measure with the value that is wanted of it.

    Parameters
    ----------
    wanted
        The value to reach.
    setting
        The facts about the variable.
    """

    name: ClassVar[str] = ""
    #: whether more is better
    rising: ClassVar[bool] = True
    #: the wanted value lies between these, ends excluded
    limits: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __init__(self, wanted: float, setting: Setting) -> None:
        self.wanted = wanted
        self.setting = setting

    @abstractmethod
    def measure(self, x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sums of one piece: original values and decoded ones."""

    def merged(self, sums: NDArray[np.float64], more: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of two pieces together."""
        return sums + more

    @abstractmethod
    def value(self, sums: NDArray[np.float64]) -> float:
        """Return the measure."""

    def holds(self, value: float) -> bool:
        """Whether a value is good enough."""
        return value >= self.wanted if self.rising else value <= self.wanted


class Psnr(Metric):
    """Peak signal-to-noise ratio in dB, of the range of the whole variable."""

    name = "psnr"
    limits = (0.0, 6000.0)

    def measure(self, x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
        """Return the squared error and the number of values."""
        error = _errors(x, y)
        return np.array([np.dot(error, error), error.size])

    def value(self, sums: NDArray[np.float64]) -> float:
        """Return 20 log10(range / root mean square error)."""
        if sums[0] == 0.0 or sums[1] == 0.0:
            return math.inf
        return 20.0 * math.log10(self.setting.spread / math.sqrt(sums[0] / sums[1]))


class Correlation(Metric):
    """Pearson's correlation of original and decoded values."""

    name = "correlation"

    def measure(self, x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
        """Return number, sums, squares and products of values (from the range's middle) and of errors."""
        error = _errors(x, y)
        values = _ordinary(x, y) - (self.setting.low + self.setting.high) / 2
        moments = [error.size, values.sum(), error.sum()]
        return np.array([*moments, np.dot(values, values), np.dot(error, error), np.dot(values, error)])

    def value(self, sums: NDArray[np.float64]) -> float:
        """Return the correlation, from errors, so that no digits cancel."""
        count, x, e, xx, ee, xe = sums
        if count == 0:
            return 1.0
        own = xx - x * x / count
        joint = xe - x * e / count
        other = own + 2 * joint + ee - e * e / count
        return float((own + joint) / math.sqrt(own * other)) if own > 0 and other > 0 else 0.0


class Gradient(Metric):
    """Relative error of differences of neighbours: root mean square of their errors by the differences' own."""

    name = "gradient"
    rising = False
    limits = (0.0, math.inf)

    def measure(self, x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
        """Return squares of errors and of differences, how many differ, and how many of these became equal."""
        sums = np.zeros(4)
        for axis in range(max(x.ndim - 2, 0), x.ndim):
            steps, decoded = np.diff(x, axis=axis), np.diff(y, axis=axis)
            kept = np.isfinite(steps) & np.isfinite(decoded)
            steps, decoded = steps[kept].astype(np.float64), decoded[kept].astype(np.float64)
            errors = decoded - steps
            flat = (decoded == 0) & (steps != 0)
            sums += [np.dot(errors, errors), np.dot(steps, steps), np.count_nonzero(steps), np.count_nonzero(flat)]
        return sums

    def value(self, sums: NDArray[np.float64]) -> float:
        """Return the relative error."""
        if sums[1] == 0.0:
            return 0.0 if sums[0] == 0.0 else math.inf
        return math.sqrt(sums[0] / sums[1])

    @staticmethod
    def flattened(sums: NDArray[np.float64]) -> float:
        """Return the share of differences that became 0."""
        return float(sums[3] / sums[2]) if sums[2] else 0.0


class Spectrum(Metric):
    """Largest relative error of power in any shell of wavenumbers, up to half of the highest one of a plane."""

    name = "spectrum"
    rising = False
    limits = (0.0, math.inf)

    def measure(self, x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
        """Return the power of originals in each shell, and then that of decoded values."""
        return np.concatenate([power(x), power(np.where(np.isfinite(x), y, np.nan))])

    def value(self, sums: NDArray[np.float64]) -> float:
        """Return the largest relative error of the lower half of the shells."""
        before, after = sums[: SHELLS // 2], sums[SHELLS : SHELLS + SHELLS // 2]
        there = before > 0
        return float(np.max(np.abs(after[there] / before[there] - 1.0), initial=0.0))


class Information(Metric):
    """Share of the bitwise real information that decoded values keep: of each value the bits that its error leaves."""

    name = "information"

    def measure(self, x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
        """Return the information that is kept, and the number of values."""
        information = self.setting.information
        assert information is not None
        original = _ordinary(x, y)
        kept = real_information.kept_bits(original, _errors(x, y), self.setting.dtype)
        return np.array([real_information.up_to(information, self.setting.dtype)[kept].sum(), original.size])

    def value(self, sums: NDArray[np.float64]) -> float:
        """Return the share."""
        information = self.setting.information
        assert information is not None
        total = float(information.sum()) * float(sums[1])
        return float(sums[0]) / total if total > 0 else 0.0


def power(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the power in shells of wavenumbers, of all planes (or lines) together; missing values become the mean."""
    if values.ndim == 1 or min(values.shape[-2:]) < 8:
        lines = values.reshape(-1, values.shape[-1])
        length = min(lines.shape[-1], _LINE)
        if length < 8:
            lines = values.reshape(1, -1)
            length = min(lines.shape[-1], _LINE)
        planes = lines[:, : lines.shape[1] // max(length, 1) * length].reshape(-1, 1, max(length, 1))
    else:
        planes = values.reshape(-1, *values.shape[-2:])
    rows, columns = planes.shape[-2:]
    radius = np.hypot(np.fft.fftfreq(rows)[:, None], np.fft.rfftfreq(columns)[None, :])
    shell = np.minimum((radius * 2 * SHELLS).astype(np.intp), SHELLS).reshape(-1)
    twice = np.ones(columns // 2 + 1)  # of a real signal the other half is the same
    twice[1 : (columns + 1) // 2] = 2.0
    weight = np.broadcast_to(twice, radius.shape).reshape(-1)
    found = np.zeros(SHELLS + 1)
    for plane in planes:
        there = np.isfinite(plane)
        if there.any():
            level = float(plane[there].mean(dtype=np.float64))
            filled = np.where(there, plane - level, 0.0)
            density = np.square(np.abs(np.fft.rfft2(filled))).reshape(-1) * weight
            density[0] = 0.0
            found += np.bincount(shell, density, SHELLS + 1)
    return found[:SHELLS]


def _ordinary(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Return the original values that are finite on both sides, as float64 in one dimension."""
    values: NDArray[np.float64] = x[np.isfinite(x) & np.isfinite(y)].astype(np.float64)
    return values


def _errors(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Return the errors of finite values, as float64 in one dimension."""
    kept = np.isfinite(x) & np.isfinite(y)
    errors: NDArray[np.float64] = y[kept].astype(np.float64) - x[kept]
    return errors
