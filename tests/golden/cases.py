# SPDX-License-Identifier: BSD-3-Clause
"""What the golden frames were made from. Values come from integers and single IEEE operations, so that every machine
and every version of NumPy makes the same; nothing here may change for a case whose files are written.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference import encoder

import pyfilter

Array = NDArray[Any]
FOLDER = Path(__file__).resolve().parent
DTYPES = ("f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
SHAPES = {1: (130,), 2: (11, 19), 3: (5, 6, 9)}
TILE = 4096

#: cases whose frame our encoder no longer writes (it still decodes): the release since which, and why
ENCODED_DIFFERENTLY: dict[str, str] = {}


@dataclass(frozen=True, eq=False)
class GoldenCase:
    """A request; its name is that of the files."""

    name: str
    values: Array
    codec: pyfilter.Codec
    fill: Any = None

    def encode(self) -> bytes:
        """What our encoder makes of it today."""
        return pyfilter.encode(self.values, self.codec, self.fill)


def noise(n: int, seed: int = 1) -> list[int]:
    """Integers of 64 bits from a linear congruence: the same everywhere."""
    state, found = seed, []
    for _ in range(n):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        found.append(state ^ state >> 29)
    return found


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


def cuszp2_cases() -> Iterator[GoldenCase]:
    for dtype in ("f4", "f8"):
        name = f"cuszp2_{dtype}"
        kind = np.dtype(dtype).type
        for block_dims, shape in SHAPES.items():
            for mode in ("outlier", "plain", "fixed"):
                codec = pyfilter.Cuszp2(absolute=0.01, mode=mode, block_dims=block_dims)
                yield GoldenCase(f"{name}_{mode}_{block_dims}d", waves(shape, dtype), codec)
            holes = with_bits(waves(shape, dtype), specials(dtype))
            holes.reshape(-1)[60:100] = -999
            codec = pyfilter.Cuszp2(absolute=0.01, block_dims=block_dims)
            yield GoldenCase(f"{name}_specials_{block_dims}d", holes, codec, kind(-999))
        plain = waves((130,), dtype)
        for word, fill in (("nan", np.nan), ("tiny", np.finfo(dtype).smallest_subnormal), ("zero", 0.0)):
            filled = plain.copy()
            filled[20:70] = fill
            yield GoldenCase(f"{name}_fill_{word}", filled, pyfilter.Cuszp2(relative=1e-3), kind(fill))
        masked = plain.copy()
        masked[30:100] = kind(1e35)
        yield GoldenCase(f"{name}_undeclared_mask", masked, pyfilter.Cuszp2(absolute=0.01))
        yield GoldenCase(f"{name}_relative", plain, pyfilter.Cuszp2(relative=1e-4))
        yield GoldenCase(f"{name}_wide_outliers", plain + kind(12345.678), pyfilter.Cuszp2(absolute=0.003))
        lattice = (np.array([v % 41 for v in noise(130)]) * 2 + 1).astype(dtype) / kind(8)
        yield GoldenCase(f"{name}_at_the_bound", lattice, pyfilter.Cuszp2(absolute=0.125))
        random_bits = np.array([v % (1 << 8 * int(dtype[1])) for v in noise(70)], f"u{dtype[1]}").view(dtype)
        yield GoldenCase(f"{name}_raw", random_bits, pyfilter.Cuszp2(absolute=1e-3))
        yield GoldenCase(f"{name}_falls_back", np.full(130, kind(2.5)), pyfilter.Cuszp2(absolute=1e-308))
        yield GoldenCase(f"{name}_scalar", np.array(kind(2.5)), pyfilter.Cuszp2(absolute=0.01))
        yield GoldenCase(f"{name}_empty", np.empty((3, 0, 2), dtype), pyfilter.Cuszp2(absolute=0.01, block_dims=2))
        yield GoldenCase(f"{name}_big_endian", plain.astype(f">{dtype}"), pyfilter.Cuszp2(absolute=0.01))
    deep = waves((2, 2, 5, 3, 5), "f4")
    for block_dims in (1, 2, 3):
        yield GoldenCase(f"cuszp2_f4_rank5_{block_dims}d", deep, pyfilter.Cuszp2(absolute=0.05, block_dims=block_dims))
    tiles = np.zeros(5 * TILE - 1000, np.float32)  # an empty tile, uniform ones, one of the fill value, a mixed one
    tiles[TILE : 2 * TILE] = np.arange(TILE) % 2
    tiles[2 * TILE : 3 * TILE] = -999
    tiles[3 * TILE : 4 * TILE] = 5.5
    tiles[4 * TILE :] = np.repeat(waves((31,), "f4"), 100)[:3096]
    yield GoldenCase("cuszp2_f4_tiles", tiles, pyfilter.Cuszp2(absolute=0.5), np.float32(-999))


def lossless_cases() -> Iterator[GoldenCase]:
    for dtype in DTYPES:
        for block_dims, shape in SHAPES.items():
            if block_dims == 1 or dtype in ("f4", "f8", "u1", "i2", "u4", "i8"):
                codec = pyfilter.Lossless(block_dims=block_dims)
                yield GoldenCase(f"lossless_{dtype}_{block_dims}d", waves(shape, dtype), codec)
    for dtype in ("f4", "f8"):
        values = with_bits(waves((130,), dtype), specials(dtype))
        yield GoldenCase(f"lossless_{dtype}_specials", values, pyfilter.Lossless())
    for dtype in ("i1", "u8"):
        random_bits = np.array([v % (1 << 8 * int(dtype[1])) for v in noise(70)], f"u{dtype[1]}").view(dtype)
        yield GoldenCase(f"lossless_{dtype}_raw", random_bits, pyfilter.Lossless())
        yield GoldenCase(f"lossless_{dtype}_empty", np.empty(0, dtype), pyfilter.Lossless())
        yield GoldenCase(f"lossless_{dtype}_scalar", np.array(77, dtype), pyfilter.Lossless())
    for dtype in ("f8", "u2", "i4"):
        yield GoldenCase(f"lossless_{dtype}_big_endian", waves((130,), dtype).astype(f">{dtype}"), pyfilter.Lossless())
    extremes = np.array([127, -128] * 40 + [0, -1] * 40, np.int8)
    yield GoldenCase("lossless_i1_extremes", extremes, pyfilter.Lossless())
    yield GoldenCase("lossless_i2_rank5", waves((2, 2, 5, 3, 5), "i2"), pyfilter.Lossless(block_dims=3))
    yield GoldenCase("lossless_u1_rank32", waves((1,) * 30 + (9, 11), "u1"), pyfilter.Lossless(block_dims=2))
    yield GoldenCase("lossless_u1_tiles", waves((19, 20, 23), "u1"), pyfilter.Lossless(block_dims=3))


def cases() -> list[GoldenCase]:
    """All of them."""
    return [*cuszp2_cases(), *lossless_cases()]


#: seeds of `encoder.random_frame`, whose frames use what the format allows and our encoder does not: masks that
#: overlap or cover padding, more planes than needed, outlier bytes in every mode, rate codes written in other ways
HAND_MADE = (10, 49, 63, 64, 88, 130, 144, 190, 197, 242, 730, 985, 1225)


def hand_made() -> Iterator[tuple[str, bytes, Array]]:
    """Name, frame and values of frames that tests/reference/encoder.py writes."""
    for seed in HAND_MADE:
        spec, frame, blocks = encoder.random_frame(random.Random(seed))
        patterns = [bits or 0 for bits in encoder.frame_values(spec, blocks)]
        values = np.array(patterns, f"<u{spec.value_bytes}").view(f"<{spec.dtype}")
        yield f"made_{spec.codec}_{spec.dtype}_{seed}", frame, values.reshape(spec.dims)
