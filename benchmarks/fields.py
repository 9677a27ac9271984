# SPDX-License-Identifier: BSD-3-Clause
"""The fields to compress: the floating-point arrays of ../shared/data, and generated ones, the same in every run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter.codecs.base import absolute_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20
_MISSING_ABOVE = 1e19  # finite values beyond it mean "missing" (README.md of the data)


@dataclass(frozen=True)
class Field:
    """One array.

    Attributes
    ----------
    name : str
        Short name, unique.
    values : numpy.ndarray
        C-contiguous float32 or float64.
    generated : bool
        Made here, not found in a file.
    """

    name: str
    values: NDArray[Any]
    generated: bool

    @cached_property
    def fill(self) -> np.generic | None:
        """The finite value that stands for "missing", or None."""
        if self.generated:
            return None
        found = np.unique(self.values[np.isfinite(self.values) & (np.abs(self.values) > _MISSING_ABOVE)])
        if found.size > 1:
            message = f"{self.name} has several values above {_MISSING_ABOVE}: {found[:3]}"
            raise ValueError(message)
        scalar: np.generic | None = found[0] if found.size else None
        return scalar

    @cached_property
    def limits(self) -> tuple[float, float]:
        """Lowest and highest finite value other than the fill value; (0, 0) if there is none."""
        if self.generated:
            return float(self.values.min()), float(self.values.max())
        good = np.isfinite(self.values)
        if self.fill is not None:
            good &= self.values != self.fill
        chosen = self.values[good]
        return (float(chosen.min()), float(chosen.max())) if chosen.size else (0.0, 0.0)

    @cached_property
    def has_specials(self) -> bool:
        """Whether there are NaN, infinities or fill values."""
        return not self.generated and (self.fill is not None or not bool(np.isfinite(self.values).all()))

    def bound(self, relative: float) -> float:
        """Return the absolute bound: ``relative`` of the whole array's range.

        Where the range is zero, of the value's magnitude, and where there is no ordinary value, of 1: a relative
        bound means nothing there, but a bound is needed for codecs to be compared.
        """
        low, high = self.limits
        if low == high:
            return relative * (abs(low) or 1.0)
        return absolute_of(relative, (low, high))


def find_data(folder: Path | None) -> Path | None:
    """Return the folder of the data: the one given, or shared/data beside the repository; None if there is none."""
    candidates = [folder] if folder is not None else [ROOT.parent / "shared" / "data", ROOT / "shared" / "data"]
    return next((path for path in candidates if path.is_dir()), None)


def fields(folder: Path | None, generated_bytes: int, wanted: list[str]) -> Iterator[Field]:
    """Yield the fields one by one, so that one at a time is in memory.

    Parameters
    ----------
    folder
        Where the .npy files are; None for none.
    generated_bytes
        Size of a generated field, rounded to whole planes of 512 x 512 values; 0 for none.
    wanted
        Parts of names; only fields whose name contains one of them. Empty for all.
    """

    def chosen(name: str) -> bool:
        return not wanted or any(part in name for part in wanted)

    for path in sorted(folder.glob("*.npy")) if folder is not None else []:
        name = path.stem
        if chosen(name) and np.load(path, mmap_mode="r").dtype.kind == "f":
            yield Field(name, np.ascontiguousarray(np.load(path)), generated=False)
    for maker in (_turbulence, _wavefield, _noise) if generated_bytes else ():
        for code in ("f4", "f8"):
            dtype = np.dtype(code)
            name = f"gen{maker.__name__}_{'f32' if code == 'f4' else 'f64'}"
            if chosen(name):
                shape = (max(1, generated_bytes // (512 * 512 * dtype.itemsize)), 512, 512)
                yield Field(name, maker(shape, dtype), generated=True)


def _turbulence(shape: tuple[int, int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return 192 plane waves of random direction and phase with a k**(-5/3) spectrum that falls off beyond k = 40.

    A wave is a product of one factor for each axis, so the sum is a product of two matrices.
    """
    generator = np.random.default_rng(1)
    count = 192
    wavenumber = np.exp(generator.uniform(0.0, np.log(96.0), count))
    direction = generator.standard_normal((count, 3))
    vector = np.rint(wavenumber[:, None] * direction / np.linalg.norm(direction, axis=1)[:, None])
    amplitude = wavenumber ** (-1 / 3) * np.exp(-wavenumber / 40.0)
    phase = generator.uniform(0.0, 2 * np.pi, count)

    def factor(axis: int) -> NDArray[Any]:
        waves: NDArray[Any] = np.exp(2j * np.pi / 512 * vector[:, axis, None] * np.arange(shape[axis]))
        return waves

    first = factor(0) * (amplitude * np.exp(1j * phase))[:, None]
    left = np.concatenate([first.real, -first.imag]).T.astype(dtype)
    rows, columns = factor(1), factor(2)
    result = np.empty(shape, dtype=dtype)
    for start in range(0, shape[1], 64):
        waves = (rows[:, start : start + 64, None] * columns[:, None, :]).reshape(count, -1)
        right = np.concatenate([waves.real, waves.imag]).astype(dtype)
        result[:, start : start + 64] = (left @ right).reshape(shape[0], -1, shape[2])
    return result


def _wavefield(shape: tuple[int, int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return fronts that left a source and two mirror images of it; exact zeros where none has arrived yet."""
    result = np.empty(shape, dtype=dtype)
    y, x = np.meshgrid(*(np.arange(extent, dtype=np.float32) for extent in shape[1:]), indexing="ij")
    middle, reach = shape[0] / 2, 230.0
    sources = ((middle, 256.0, 230.0, 1.0), (-0.4 * middle, 256.0, 230.0, -0.6), (middle, 400.0, 300.0, 0.3))
    for plane in range(shape[0]):
        total = np.zeros(shape[1:], dtype=np.float64)
        for z0, y0, x0, strength in sources:
            distance = np.sqrt((y - y0) ** 2 + (x - x0) ** 2 + np.float32((plane - z0) ** 2))
            radius = reach if strength > 0.5 else 0.7 * reach
            behind = (radius - distance) / 9.0
            wave = np.cos(behind) * np.exp(-behind / 7.0) + 0.05 * np.sin(0.37 * distance) * np.cos(0.11 * x)
            total += np.where(behind > 0.0, np.float32(strength) * wave / (1.0 + 0.02 * distance), 0.0)
        result[plane] = total
    return result


def _noise(shape: tuple[int, int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return white noise, normally distributed."""
    generator = np.random.default_rng(2)
    make: Callable[..., NDArray[Any]] = generator.standard_normal
    return make(shape, dtype=np.float32 if dtype.itemsize == 4 else np.float64)
