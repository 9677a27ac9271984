# SPDX-License-Identifier: BSD-3-Clause
"""Fields made on the device for benchmarks of GPUs, most in planes of 512 x 512 values; each seed is another field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable


def waves(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    """48 plane waves of random direction and phase, amplitude k**(-5/3) up to k = 24 waves in 512 values; 3 axes."""
    random = np.random.default_rng(seed)
    z, y, x = (
        cupy.arange(n, dtype=dtype).reshape([-1 if axis == i else 1 for axis in range(3)]) for i, n in enumerate(shape)
    )
    values = cupy.zeros(shape, dtype=dtype)
    add = cupy.ElementwiseKernel(
        "T z, T y, T x, T kz, T ky, T kx, T phase, T amplitude",
        "T sum",
        "sum += amplitude * cos(kz * z + ky * y + kx * x + phase)",
        "pyfilter_benchmark_wave",
    )
    for _ in range(48):
        wavenumber = float(np.exp(random.uniform(0, np.log(24))))
        direction = random.standard_normal(3)
        vector = 2 * np.pi / 512 * wavenumber * direction / np.linalg.norm(direction)
        add(z, y, x, *map(float, vector), random.uniform(0, 2 * np.pi), wavenumber ** (-5 / 3), values)
    return values


def turbulence(planes: int, dtype: str, seed: int) -> Any:
    """The sum of `waves` in planes of 512 x 512 values."""
    return waves((planes, 512, 512), dtype, seed)


def sparse(planes: int, dtype: str, seed: int) -> Any:
    """The same, with zeros outside a ball of half the planes' extent, which no front has reached."""
    values = turbulence(planes, dtype, seed)
    z, y, x = cupy.ogrid[:planes, :512, :512]
    values *= ((z - planes / 2) / planes) ** 2 + ((y - 256) / 512) ** 2 + ((x - 256) / 512) ** 2 < 0.09
    return values


def noise(planes: int, dtype: str, seed: int) -> Any:
    """White noise, normal."""
    generator = cupy.random.default_rng(seed)
    values = cupy.empty((planes, 512, 512), dtype=dtype)
    for plane in range(0, planes, 128):
        here = values[plane : plane + 128]
        here[...] = generator.standard_normal(here.shape, dtype=dtype)
    return values


FIELDS: dict[str, Callable[[int, str, int], Any]] = {"turbulence": turbulence, "sparse": sparse, "noise": noise}
