# SPDX-License-Identifier: BSD-3-Clause
"""Values of golden cases.

They come from integers and single IEEE operations, so every machine and version of NumPy makes the same ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
TILE = 4096


def noise(n: int, seed: int = 1) -> list[int]:
    """Integers of 64 bits from a linear congruence: the same everywhere."""
    state, found = seed, []
    for _ in range(n):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        found.append(state ^ state >> 29)
    return found


def swings(n: int, seed: int = 1) -> Array:
    """Integers from -200 to 200."""
    return np.array([v % 401 - 200 for v in noise(n, seed)], np.int64)


def waves(shape: tuple[int, ...], dtype: str) -> Array:
    """Parabolas with a little noise; one rounding (a division) for floats."""
    n = math.prod(shape)
    whole = [((i % 40) - 20) ** 2 * 9 + noise_i % 64 for i, noise_i in enumerate(noise(n))]
    if dtype[0] == "f":
        return (np.array(whole, np.float64) / 700).astype(dtype).reshape(shape)
    modulus = 1 << 8 * int(dtype[1])
    patterns = np.array([(v // (100 if modulus == 256 else 3) - (i % 7 == 0)) % modulus for i, v in enumerate(whole)])
    if dtype[1] == "8":  # the full width, and over its edge
        patterns = np.array([(v + (1 << 63) - 900) % modulus for v in whole], np.uint64)
    values: Array = patterns.astype(f"u{dtype[1]}").view(np.dtype(dtype))
    return np.reshape(values, shape)


def with_bits(values: Array, patterns: dict[int, int]) -> Array:
    """A copy with these bit patterns at these flat indices."""
    changed: Array = values.copy()
    flat = changed.reshape(-1).view(f"u{values.dtype.itemsize}")
    for index, pattern in patterns.items():
        flat[index] = pattern
    return changed


def specials(dtype: str) -> dict[int, int]:
    """NaNs quiet, negative, with a payload and signalling, infinities, -0.0 and a subnormal; some side by side."""
    width, fraction = (32, 23) if dtype == "f4" else (64, 52)
    infinity = (1 << width - 1) - (1 << fraction)
    quiet, sign = infinity | 1 << fraction - 1, 1 << width - 1
    patterns = [quiet, quiet, quiet | sign, quiet | 0x1234, infinity | 1, infinity, infinity | sign, sign, 77]
    return {2 + 5 * i + i // 4 * 30: pattern for i, pattern in enumerate(patterns)} | {3: quiet, 4: quiet}


def lattice(dtype: str) -> Array:
    """Odd multiples of an eighth: with that bound all are half-way between two codes."""
    odd: Array = (np.array([v % 41 for v in noise(130)]) * 2 + 1).astype(dtype)
    eighths: Array = odd / np.dtype(dtype).type(8)
    return eighths


def spiky(shape: tuple[int, ...], dtype: str) -> Array:
    """Waves, every 50th value of which is far off: what exceptions are for."""
    values = waves(shape, dtype)
    values.reshape(-1)[::50] += 9
    return values


def mixed_tiles(dtype: str) -> Array:
    """Tiles of a chain: zeros, the fill value alone, a constant, random bits, waves with holes, and a part of one."""
    tiles = np.zeros(5 * TILE + 40, dtype)
    tiles[TILE : 2 * TILE] = -999
    tiles[2 * TILE : 3 * TILE] = 5.5
    words = np.array([v % (1 << 8 * int(dtype[1])) for v in noise(TILE)], f"u{dtype[1]}")
    tiles[3 * TILE : 4 * TILE] = words.view(dtype)
    tiles[4 * TILE : 5 * TILE] = np.repeat(waves((64,), dtype), 64)
    tiles[4 * TILE + 100 : 4 * TILE + 900] = -999
    return tiles


def missing(shape: tuple[int, ...], how: str) -> NDArray[np.bool_]:
    """A bay in the middle; lone positions; or all but a few, so that most lines have no value."""
    if how == "bay":
        sides = [np.abs(2 * axis - size) < 0.8 * size for axis, size in zip(np.indices(shape), shape, strict=True)]
        return np.asarray(np.all(sides, axis=0))
    positions = np.arange(math.prod(shape)).reshape(shape)
    return np.asarray(positions % 23 == 7 if how == "points" else positions % 211 != 50)


def signed(shape: tuple[int, ...], dtype: str, negative: int) -> Array:
    """Powers of two times 1 to 1 63/64, of which so many in 16 are negative; some zeros of both signs."""
    n = math.prod(shape)
    whole = [(v % 64 + 64) << i // 16 % 7 for i, v in enumerate(noise(n))]
    values = (np.array(whole, np.float64) / 512).astype(dtype)
    values[::29] = 0
    values[np.array([v // 64 % 16 < negative for v in noise(n)])] *= -1
    values[::31] *= 0
    return values.reshape(shape)


def swell(shape: tuple[int, ...], dtype: str, noise_bits: int = 4) -> Array:
    """Parabolas of several lengths along every axis, and noise: smooth enough for weights to pay."""
    n = math.prod(shape)
    axes = np.indices(shape).reshape(len(shape), n)
    whole = np.array([v % (1 << noise_bits) for v in noise(n)], np.int64)
    for number, axis in enumerate(axes):
        length = 37 + 12 * number
        at = (axis * (2 + number) + axes.sum(axis=0) // 3) % (2 * length)
        whole += np.where(at < length, 1, -1) * (at % length) * (length - at % length) * 8
    return (whole.astype(np.float64) / 1024).astype(dtype).reshape(shape)


def folded(count: int, row: int, rows: int, dtype: str) -> Array:
    """A line that is rough along rows of a plane, or of a volume with planes of `rows` rows, and smooth across them."""
    i, rough = np.arange(count), swings(2 * row, 7)
    x, y, z = i % row, i // row % (rows or count), i // (row * (rows or count))
    whole = 20 * np.array([v % 64 for v in noise(count)], np.int64)
    for number, along in enumerate((2 * y + z, 2 * z - y)):
        length = 19 + 8 * number
        at = along % (2 * length)
        whole += rough[x + number * row] * np.where(at < length, 1, -1) * (at % length) * (length - at % length)
    found: Array = (whole.astype(np.float64) / 4096).astype(dtype)
    return found


def complex_waves(shape: tuple[int, ...], dtype: str) -> Array:
    """Waves as real parts, and the same backwards as imaginary ones."""
    part = waves(shape, {"c8": "f4", "c16": "f8"}[dtype])
    found = np.empty(shape, dtype)
    found.real, found.imag = part, part.reshape(-1)[::-1].reshape(shape)
    return found
