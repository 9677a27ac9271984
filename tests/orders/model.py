# SPDX-License-Identifier: BSD-3-Clause
"""What a dataset that is written in parts must hold: the values that were written last, and how far each may be off.

Nothing here asks pyfilter. With a relative bound (or psnr) a value may be off by the bound of its chunk. Its range is
the widest that the chunk's values have had since the value was written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
#: float64 arithmetic of the model itself: ranges and differences
ROUNDING = 1 + 2.0**-48


class Expected:
    """A dataset as its writer knows it.

    Parameters
    ----------
    shape, chunk : tuple of int
        Of the dataset, which may be resized, and of its chunks.
    dtype : numpy.dtype
        Of the values, in any byte order.
    fill : scalar
        What values are that nobody wrote.
    mode : str
        "absolute", "relative", "pointwise_relative", "psnr" or "none".
    bound : float
        As the codec has it.
    """

    def __init__(self, shape: tuple[int, ...], chunk: tuple[int, ...], dtype: Any, fill: Any, mode: str, bound: float):
        self.chunk, self.mode, self.fill = chunk, mode, np.dtype(dtype).type(fill)
        self.bound = 10 ** (-bound / 20) if mode == "psnr" else bound
        self.values: Array = np.full(shape, self.fill, np.dtype(dtype).newbyteorder("="))
        # what a value was before a program read it and wrote it back as it was read
        self.origins: Array = self.values.copy()
        self.allowed: NDArray[np.float64] = np.zeros(shape)

    def resize(self, shape: tuple[int, ...]) -> None:
        """Values beyond the new shape are gone; new ones are fill values."""
        common = tuple(slice(0, min(a, b)) for a, b in zip(shape, self.values.shape, strict=True))
        values, allowed = np.full(shape, self.fill, self.values.dtype), np.zeros(shape)
        origins = values.copy()
        values[common], allowed[common] = self.values[common], self.allowed[common]
        origins[common] = self.origins[common]
        self.values, self.origins, self.allowed = values, origins, allowed
        self._widen()

    def write(self, where: tuple[slice, ...], values: Array, stored: Array) -> None:
        """Note a write; ``stored`` is what a reader got there before. Writing that back may be taken for no write."""
        same = values.view(f"u{values.itemsize}") == stored.view(f"u{values.itemsize}")
        self.values[where] = values
        self.origins[where] = np.where(same, self.origins[where], values)
        self.allowed[where] = np.where(same, self.allowed[where], 0)
        self._widen()

    def _chunks(self) -> Iterator[tuple[slice, ...]]:
        grids = (range(0, extent, edge) for extent, edge in zip(self.values.shape, self.chunk, strict=True))
        for origin in product(*grids):
            yield tuple(slice(at, at + edge) for at, edge in zip(origin, self.chunk, strict=True))

    def _widen(self) -> None:
        """Let values be off by the bound that their chunk has now, where it is larger than before."""
        if self.mode in ("relative", "psnr"):
            for where in self._chunks():
                bound = max(self._bound_of(self.values[where]), self._bound_of(self.origins[where]))
                self.allowed[where] = np.maximum(self.allowed[where], bound)
        elif self.mode == "absolute":
            self.allowed[:] = self.bound

    def _bound_of(self, values: Array) -> float:
        found = values[np.isfinite(values) & (values != self.fill)]
        if not found.size:
            return 0.0
        spread = (
            float(int(found.max()) - int(found.min()))
            if found.dtype.kind in "iu"
            else float(np.float64(found.max()) - np.float64(found.min()))
        )
        bound = self.bound * spread * ROUNDING
        return float(math.floor(bound)) if found.dtype.kind in "iu" else bound

    def judge(self, got: Array) -> None:
        """Compare with what a reader gets."""
        got = got.astype(self.values.dtype)
        assert got.shape == self.values.shape
        bits = f"u{got.itemsize}"
        same = (got == self.values) | (got.view(bits) == self.values.view(bits))
        exact = ~np.isfinite(self.values) | (self.values.view(bits) == self.fill.view(bits))
        if self.mode == "none":
            exact = np.ones(got.shape, bool)
        assert same[exact].all(), f"{got[exact & ~same]} instead of {self.values[exact & ~same]}"
        allowed = self.allowed
        if self.mode == "pointwise_relative":
            allowed = self.bound * np.abs(self.values.astype("f8"))
        error = np.minimum(distance(got, self.values), distance(got, self.origins))
        wrong = ~same & ~(error <= allowed * ROUNDING)
        if wrong.any():
            at = tuple(int(i[0]) for i in np.nonzero(wrong))
            message = (
                f"{int(wrong.sum())} of {wrong.size} values beyond their bound; at {at} {got[at]!r} for "
                f"{self.values[at]!r}: off by {error[at]:.6g}, allowed {allowed[at]:.6g}"
            )
            raise AssertionError(message)


def distance(a: Array, b: Array) -> NDArray[np.float64]:
    """Return how far values are apart; integers exactly, before they become float64."""
    if a.dtype.kind in "iu":
        found = np.array([abs(int(x) - int(y)) for x, y in zip(a.ravel(), b.ravel(), strict=True)], "f8")
        return found.reshape(a.shape)
    with np.errstate(invalid="ignore", over="ignore"):
        apart: NDArray[np.float64] = np.abs(a.astype("f8") - b.astype("f8"))
    return apart
