# SPDX-License-Identifier: BSD-3-Clause
"""What our encoder made golden frames from; hand_made.py has the frames of other writers.

Values come from integers and single IEEE operations, so every machine and version of NumPy makes the same values. A
case whose files are written must not change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference import adaptive_grid, decoder

import pyfilter
from pyfilter.registry import registry

Array = NDArray[Any]
FOLDER = Path(__file__).resolve().parent
DTYPES = ("f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
SHAPES = {1: (130,), 2: (11, 19), 3: (5, 6, 9)}
PREDICTED = {"chain": (150,), "lorenzo2d": (13, 17), "lorenzo3d": (5, 6, 9), "columns": (70, 3)}
TILE = 4096

#: cases whose frame our encoder no longer writes (it still decodes): the release since which, and why
ENCODED_DIFFERENTLY: dict[str, str] = {
    **dict.fromkeys(
        (
            *(f"progressive_f4_{what}" for what in ("rank1", "rank3", "rank4", "holes", "big_endian")),
            *(f"progressive_f8_{what}" for what in ("rank2", "rank3", "holes")),
        ),
        "0.1.0: fewer errors are measured, those of readers between them follow from the next one",
    ),
    **dict.fromkeys(
        (
            "particles_f8_3_runs",
            "particles_f8_3_runs_padded",
            *(f"adaptive_{what}" for what in ("f4_empty", "f8_empty", "f4_pointwise", "f2_specials", "f2_update")),
        ),
        "0.1.0: frames that are written as lorenzo have states of as many bits as they need",
    ),
}


@dataclass(frozen=True, eq=False)
class GoldenCase:
    """A request; its name is that of the files."""

    name: str
    values: Array
    codec: pyfilter.Codec
    fill: Any = None
    #: what the array was before it was written to in part
    before: Array | None = None
    #: adaptive: whether the payload has parts with heads
    parts: bool = False

    @property
    def version(self) -> int:
        """Of the format, of the frame that the codec makes; these updates make the range smaller."""
        with_bins = isinstance(self.codec, pyfilter.Lossless) and self.codec.effort == "ratio"
        is_rans = isinstance(self.codec, pyfilter.Lorenzo) and self.codec.coder == "rans"
        parameters = bytes((with_bins, decoder.RANS if is_rans else adaptive_grid.PARTS if self.parts else 0))
        first = decoder.first_version(self.codec.spec().id, parameters)
        if self.values.dtype.kind in "cb" or self.values.dtype.str[1:] == "f2":
            return max(first, decoder.DERIVED_VERSION)
        return first if self.before is None else max(first, decoder.CARRIED_VERSION)

    def encode(self) -> bytes:
        """What our encoder makes of it today."""
        if self.before is None:
            return pyfilter.encode(self.values, self.codec, self.fill)
        over = pyfilter.encode(self.before, self.codec, self.fill)
        values = np.where(self.before == self.values, pyfilter.decode(over), self.values)
        return pyfilter.encode(values.astype(self.values.dtype), self.codec, self.fill, over=over)


@dataclass(frozen=True, eq=False)
class RecordCase:
    """A request for records; `before` as in `GoldenCase`."""

    name: str
    values: Array
    codec: pyfilter.Compound
    fill: Any = None
    before: Array | None = None
    version: int = 9

    def encode(self) -> bytes:
        """What our encoder makes of it today."""
        if self.before is None:
            return pyfilter.encode(self.values, self.codec, self.fill)
        over = pyfilter.encode(self.before, self.codec, self.fill)
        values = self.values.copy()
        decoded = pyfilter.decode(over).view(values.dtype)
        for name in values.dtype.names or ():
            kept = self.before[name] == values[name]
            values[name] = np.where(kept, decoded[name], values[name])
        return pyfilter.encode(values, self.codec, self.fill, over=over)


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
        yield GoldenCase(f"{name}_at_the_bound", lattice(dtype), pyfilter.Cuszp2(absolute=0.125))
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


def bins_cases() -> Iterator[GoldenCase]:
    """Lossless with bins: every dtype; multiples, decimals, few different values, f64 that are f32, special values."""
    ratio = pyfilter.Lossless(effort="ratio")
    drawn = np.array([v % 997 for v in noise(400)])
    for dtype in DTYPES:
        name = f"lossless_{dtype}_ratio"
        yield GoldenCase(name, waves((400,), dtype), ratio)
        different = np.array([v % (1 << 8 * int(dtype[1])) for v in noise(9)], f"u{dtype[1]}").view(dtype)
        yield GoldenCase(f"{name}_few_different", different[drawn % 9], ratio)
        if dtype[0] != "f" and dtype[1] != "1":
            yield GoldenCase(f"{name}_common_divisor", (drawn * 12 + 7).astype(dtype), ratio)
    for dtype in ("f4", "f8"):
        name, kind = f"lossless_{dtype}_ratio", np.dtype(dtype).type
        decimals = (drawn.astype(np.float64) / 100).astype(dtype)
        yield GoldenCase(f"{name}_decimals", decimals, ratio)
        yield GoldenCase(f"{name}_decimals_specials", with_bits(decimals, specials(dtype)), ratio)
        yield GoldenCase(f"{name}_quarters", drawn.astype(dtype) / kind(4), ratio)
        yield GoldenCase(f"{name}_specials", with_bits(waves((130,), dtype), specials(dtype)), ratio)
        yield GoldenCase(f"{name}_components", waves((150, 3), dtype), ratio)
        yield GoldenCase(f"{name}_plane", swell((17, 26), dtype), ratio)
        whole = np.round(9000 * swell((9, 26), "f8")) + drawn[:26] % 9
        unpacked = (whole * 0.0017351236 + 273.4178).astype(dtype)
        yield GoldenCase(f"{name}_unpacked", unpacked, ratio)
        yield GoldenCase(f"{name}_unpacked_specials", with_bits(unpacked, specials(dtype)), ratio)
        references = np.repeat([271.3071, 255.9137, 249.0019], 3)[:, None]
        yield GoldenCase(f"{name}_messages", (whole / 512 + references).astype(dtype), ratio)
    yield GoldenCase("lossless_f8_ratio_of_f4", swell((500,), "f4").astype("f8"), ratio)
    for dtype in ("f4", "i2"):
        random_bits = np.array([v % (1 << 8 * int(dtype[1])) for v in noise(70)], f"u{dtype[1]}").view(dtype)
        yield GoldenCase(f"lossless_{dtype}_ratio_raw", random_bits, ratio)
        yield GoldenCase(f"lossless_{dtype}_ratio_empty", np.empty((0, 3), dtype), ratio)
        yield GoldenCase(f"lossless_{dtype}_ratio_scalar", np.array(77, dtype), ratio)
        yield GoldenCase(f"lossless_{dtype}_ratio_constant", np.full(1000, 77, dtype), ratio)
        yield GoldenCase(f"lossless_{dtype}_ratio_big_endian", waves((400,), dtype).astype(f">{dtype}"), ratio)
    yield GoldenCase("lossless_i8_ratio_extremes", np.array([2**63 - 1, -(2**63)] * 40 + [0, -1] * 40, np.int64), ratio)
    yield GoldenCase("lossless_u1_ratio_volume", waves((9, 10, 21), "u1"), ratio)


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


def missing_cases(dtype: str) -> Iterator[GoldenCase]:
    """Masks that are predicted, plain ones, and lines and slabs without values; noise."""
    name, kind = f"hierarchical_delta_{dtype}", np.dtype(dtype).type
    shapes = {"chain": (300,), "lorenzo2d": (23, 21), "lorenzo3d": (9, 7, 9), "columns": (140, 3)}
    for predictor, shape in shapes.items():
        for how in ("bay", "points", "rare") if dtype == "f4" else ("bay",):
            values = waves(shape, dtype)
            values[missing(shape, how)] = -999
            codec = pyfilter.HierarchicalDelta(absolute=0.05, predictor=predictor, outliers="on")
            yield GoldenCase(f"{name}_{predictor}_missing_{how}", values, codec, kind(-999))
    white = np.array([v % 1021 - 510 for v in noise(300)], dtype)
    yield GoldenCase(f"{name}_auto_noise", white.copy(), pyfilter.HierarchicalDelta(absolute=0.5))
    white[100:150] = np.nan
    yield GoldenCase(f"{name}_auto_noise_nan", white, pyfilter.HierarchicalDelta(absolute=0.5), kind(np.nan))


def signed(shape: tuple[int, ...], dtype: str, negative: int) -> Array:
    """Powers of two times 1 to 1 63/64, of which so many in 16 are negative; some zeros of both signs."""
    n = math.prod(shape)
    whole = [(v % 64 + 64) << i // 16 % 7 for i, v in enumerate(noise(n))]
    values = (np.array(whole, np.float64) / 512).astype(dtype)
    values[::29] = 0
    values[np.array([v // 64 % 16 < negative for v in noise(n)])] *= -1
    values[::31] *= 0
    return values.reshape(shape)


def pointwise_cases(dtype: str) -> Iterator[GoldenCase]:
    """Bounds relative to each value: signs, zeros, special values, a tile of negative values."""
    name, kind = f"hierarchical_delta_{dtype}_pointwise", np.dtype(dtype).type
    for predictor, shape in PREDICTED.items():
        codec = pyfilter.HierarchicalDelta(pointwise_relative=0.01, predictor=predictor)
        values = with_bits(signed(shape, dtype, 5), specials(dtype))
        values.reshape(-1)[60:100] = -999
        yield GoldenCase(f"{name}_{predictor}_mixed", values, codec, kind(-999))
        yield GoldenCase(f"{name}_{predictor}_negative", signed(shape, dtype, 14), codec, kind(-999))
    dry = signed((400,), dtype, 0)
    dry[np.arange(400) // 50 % 2 == 0] = 0  # the sentinel
    yield GoldenCase(f"{name}_auto_zeros", dry, pyfilter.HierarchicalDelta(pointwise_relative=1e-3))


def delta_cases() -> Iterator[GoldenCase]:
    for dtype in ("f4", "f8"):
        name = f"hierarchical_delta_{dtype}"
        kind = np.dtype(dtype).type
        for predictor, shape in PREDICTED.items():
            for outliers in ("on", "off"):
                codec = pyfilter.HierarchicalDelta(absolute=0.01, predictor=predictor, outliers=outliers)
                yield GoldenCase(f"{name}_{predictor}_{outliers}", spiky(shape, dtype), codec)
            codec = pyfilter.HierarchicalDelta(absolute=0.01, predictor=predictor)
            holes = with_bits(waves(shape, dtype), specials(dtype))
            holes.reshape(-1)[60:140] = -999
            yield GoldenCase(f"{name}_{predictor}_specials", holes, codec, kind(-999))
            exact = pyfilter.HierarchicalDelta(absolute=1e-310, predictor=predictor)
            stairs = (np.arange(math.prod(shape)) // 40).astype(dtype).reshape(shape)
            yield GoldenCase(f"{name}_{predictor}_exact", stairs, exact)
        for word, shape in (("row", (130,)), ("plane", (13, 21)), ("volume", (5, 6, 9)), ("columns", (70, 3))):
            yield GoldenCase(f"{name}_auto_{word}", waves(shape, dtype), pyfilter.HierarchicalDelta(relative=1e-2))
        yield GoldenCase(f"{name}_at_the_bound", lattice(dtype), pyfilter.HierarchicalDelta(absolute=0.125))
        constant, empty = np.full((3, 5), kind(2.5)), np.empty((3, 0, 2), dtype)
        yield GoldenCase(f"{name}_constant", constant, pyfilter.HierarchicalDelta(absolute=0.01))
        yield GoldenCase(f"{name}_scalar", np.array(kind(2.5)), pyfilter.HierarchicalDelta(absolute=0.01))
        yield GoldenCase(f"{name}_empty", empty, pyfilter.HierarchicalDelta(absolute=0.01, predictor="lorenzo3d"))
        swapped = waves((70, 3), dtype).astype(f">{dtype}")
        yield GoldenCase(f"{name}_big_endian", swapped, pyfilter.HierarchicalDelta(absolute=0.01))
        random_bits = np.array([v % (1 << 8 * int(dtype[1])) for v in noise(70)], f"u{dtype[1]}").view(dtype)
        yield GoldenCase(f"{name}_raw", random_bits, pyfilter.HierarchicalDelta(absolute=1e-3))
        filled = waves((130,), dtype)
        filled[20:70] = np.nan
        yield GoldenCase(f"{name}_fill_nan", filled, pyfilter.HierarchicalDelta(relative=1e-3), kind(np.nan))
        yield from missing_cases(dtype)
        yield from pointwise_cases(dtype)
    tiles = np.concatenate((-np.abs(signed((TILE,), "f4", 0)), signed((300,), "f4", 0)))
    signs = pyfilter.HierarchicalDelta(pointwise_relative=0.25, predictor="chain")
    yield GoldenCase("hierarchical_delta_f4_pointwise_chain_tiles", tiles, signs)
    bumps = np.add.outer(np.arange(40) ** 2 % 97, np.arange(70) ** 2 % 89).astype(np.float32)
    planes = pyfilter.HierarchicalDelta(absolute=0.4, predictor="lorenzo2d")
    yield GoldenCase("hierarchical_delta_f4_lorenzo2d_bumps", bumps.reshape(2, 20, 70), planes)
    slope = np.add.outer(np.arange(9) * 3, np.add.outer(np.arange(17), np.arange(33) * 7)).astype(np.float32)
    volumes = pyfilter.HierarchicalDelta(absolute=0.4, predictor="lorenzo3d")
    yield GoldenCase("hierarchical_delta_f4_lorenzo3d_slope", slope, volumes)
    deep = waves((2, 2, 5, 3, 5), "f4")
    for predictor in PREDICTED:
        codec = pyfilter.HierarchicalDelta(absolute=0.05, predictor=predictor)
        yield GoldenCase(f"hierarchical_delta_f4_rank5_{predictor}", deep, codec)
    chain = pyfilter.HierarchicalDelta(absolute=0.5, predictor="chain", outliers="on")
    yield GoldenCase("hierarchical_delta_f4_tiles", mixed_tiles("f4"), chain, np.float32(-999))


def integer_cases() -> Iterator[GoldenCase]:
    """hierarchical_delta of integers: bounds of all sizes, fill values with what lies near them, the ends of types."""
    predictors = list(PREDICTED)
    for number, dtype in enumerate(DTYPES[2:]):
        name, info = f"hierarchical_delta_{dtype}", np.iinfo(dtype)
        predictor = predictors[number % 4]
        values = waves(PREDICTED[predictor], dtype)
        codec = pyfilter.HierarchicalDelta(absolute=2, predictor=predictor)
        yield GoldenCase(f"{name}_{predictor}", values, codec)
        exact = np.array([(int(info.max) - 9 + i // 20) % (1 << 8 * int(dtype[1])) for i in range(273)], f"u{dtype[1]}")
        exact = exact.view(dtype).reshape(13, 21)
        yield GoldenCase(f"{name}_exact", exact, pyfilter.HierarchicalDelta(absolute=0, predictor="lorenzo2d"))
        smooth = {"i8": "i4", "u1": "i1"}.get(dtype, dtype)  # waves of these two wrap around
        holes = np.abs(waves((3, 5, 15), smooth)).astype(dtype)
        holes[1:, 3:, 5:12] = 35
        holes[0, 0, :12:3] = 36  # would become the fill value
        codec = pyfilter.HierarchicalDelta(absolute=3, predictor="lorenzo3d" if info.bits > 16 else "auto")
        yield GoldenCase(f"{name}_fill", holes, codec, 35)
        ends = np.array([info.min, info.max, 0, info.min + 1, info.max - 1, 5], dtype)
        wide = pyfilter.HierarchicalDelta(absolute=int(info.max) // 5, predictor="chain")
        yield GoldenCase(f"{name}_ends", np.resize(ends, 50), wide)
    for dtype in ("u2", "i4", "u8"):
        swapped = waves((70, 3), dtype).astype(f">{dtype}")
        yield GoldenCase(f"hierarchical_delta_{dtype}_big_endian", swapped, pyfilter.HierarchicalDelta(relative=0.01))
    random_bits = np.array([v % 256 for v in noise(70)], np.uint8)
    yield GoldenCase("hierarchical_delta_u1_raw", random_bits, pyfilter.HierarchicalDelta(absolute=0))
    far = np.array([v % (1 << 64) for v in noise(40)], np.uint64)
    for power in (51, 52, 53, 60, 62):
        codec = pyfilter.HierarchicalDelta(absolute=1 << power, predictor="chain")
        yield GoldenCase(f"hierarchical_delta_u8_bound_2_{power}", far, codec)


#: large enough that tables of frequencies pay
STREAMED = {"chain": (2500,), "lorenzo2d": (45, 60), "lorenzo3d": (10, 15, 18), "columns": (900, 3)}


def lorenzo_cases() -> Iterator[GoldenCase]:
    for i, (predictor, shape) in enumerate(STREAMED.items()):
        dtype = ("f4", "f8")[i % 2]
        name, kind = f"lorenzo_{dtype}_{predictor}", np.dtype(dtype).type
        holes = with_bits(spiky(shape, dtype), specials(dtype))
        holes.reshape(-1)[60:140] = -999
        yield GoldenCase(f"{name}_rans", holes, pyfilter.Lorenzo(absolute=0.1, predictor=predictor), kind(-999))
        huffman = pyfilter.Lorenzo(absolute=0.02, predictor=predictor, coder="huffman", gap_array=i % 2 == 0)
        yield GoldenCase(f"{name}_huffman", spiky(shape, dtype), huffman)
    for dtype in ("f4", "f8"):
        empty = np.empty((3, 0, 2), dtype)
        yield GoldenCase(f"lorenzo_{dtype}_empty", empty, pyfilter.Lorenzo(absolute=0.01, predictor="lorenzo3d"))
        scalar = np.array(np.dtype(dtype).type(2.5))
        yield GoldenCase(f"lorenzo_{dtype}_scalar", scalar, pyfilter.Lorenzo(absolute=0.01))
    swapped = waves((800, 3), "f4").astype(">f4")
    yield GoldenCase("lorenzo_f4_auto_big_endian", swapped, pyfilter.Lorenzo(relative=1e-2))
    signs = pyfilter.Lorenzo(pointwise_relative=0.02, predictor="lorenzo2d")
    yield GoldenCase("lorenzo_f4_pointwise", with_bits(signed((40, 64), "f4", 5), specials("f4")), signs)
    sparse = np.zeros((5, 40, 40), np.float32)  # tiles without coded blocks, with a few, and with flags
    sparse[1, 3:6, 7:9] = 40
    sparse[3] = waves((40, 40), "f4")
    planes = pyfilter.Lorenzo(absolute=0.5, predictor="lorenzo2d")
    yield GoldenCase("lorenzo_f4_sparse_rans", sparse, planes)
    yield GoldenCase("lorenzo_f4_sparse_huffman", sparse, pyfilter.Lorenzo(absolute=0.5, coder="huffman"))
    far = waves((50, 50), "f8") * 2.0**40  # residuals of more than 32 bits
    yield GoldenCase("lorenzo_f8_wide", far, pyfilter.Lorenzo(absolute=0.5, predictor="chain"))


def particle_cases() -> Iterator[GoldenCase]:
    """Sorted already, so that rows stay where they are."""
    for dtype, axes, levels in (("f4", 3, 5), ("f8", 3, 9), ("f4", 2, 6), ("f8", 2, 8)):
        total = 1 << axes * levels
        step = 1 - 2.0 ** (-7 if dtype == "f4" else -12)  # of a bound of 0.5
        for name, count in (("runs", 90), ("gaps", 200)):
            some = total // 40 if name == "runs" else total
            keys = sorted({0, total - 1, *(v * 7919 % some for v in noise(count))} | {total // 2})
            keys = sorted(keys * (1 if name == "gaps" else 3))
            rows = [[key_bits(key >> axis, axes, levels) for axis in reversed(range(axes))] for key in keys]
            values = (np.array(rows, np.float64) * step).astype(dtype)
            yield GoldenCase(f"particles_{dtype}_{axes}_{name}", values, pyfilter.Particles(absolute=0.5))
            padded = np.concatenate(
                [values, with_bits(values[:1], {1: specials(dtype)[2]}), np.zeros((40, axes), dtype)]
            )
            codec = pyfilter.Particles(absolute=0.5, order="tile" if axes == 2 else "chunk")
            yield GoldenCase(f"particles_{dtype}_{axes}_{name}_padded", padded.astype(dtype), codec)


def key_bits(key: int, axes: int, levels: int) -> int:
    """Every `axes`-th bit of a key."""
    return sum((key >> axes * level & 1) << level for level in range(levels))


def progressive_cases() -> Iterator[GoldenCase]:
    """Grids of one to three dimensions and more, of several tiles, with missing values; whole and cut at a bound."""
    shapes = {"f4": ((4300,), (3, 17, 66), (2, 3, 7, 9)), "f8": ((34, 40), (6, 7, 8), ())}
    for dtype in ("f4", "f8"):
        name, kind = f"progressive_{dtype}", np.dtype(dtype).type
        for shape in shapes[dtype]:
            smooth = waves(shape, dtype) if shape else np.array(kind(2.5))
            yield GoldenCase(f"{name}_rank{len(shape)}", smooth, pyfilter.Progressive(absolute=0.01))
        near = waves((13, 20), dtype) / 7
        yield GoldenCase(f"{name}_near_lossless", near, pyfilter.Progressive(errors="bounds"))
        holes = with_bits(waves((3, 20, 21), dtype), specials(dtype))
        holes[1:, 10:, 3:20] = -999
        yield GoldenCase(f"{name}_holes", holes, pyfilter.Progressive(absolute=0.05), kind(-999))
        undeclared = waves((20, 23), dtype)
        undeclared[5:9] = 1e30
        yield GoldenCase(f"{name}_undeclared", undeclared, pyfilter.Progressive(relative=1e-3))
        yield GoldenCase(f"{name}_constant", np.full((20, 20), 273, dtype), pyfilter.Progressive())
        yield GoldenCase(f"{name}_empty", np.empty((3, 0, 2), dtype), pyfilter.Progressive(absolute=0.01))
    swapped = waves((30, 33), "f4").astype(">f4")
    yield GoldenCase("progressive_f4_big_endian", swapped, pyfilter.Progressive(psnr=80))


def progressive_again() -> Iterator[GoldenCase]:
    """Those whose tables have other errors now than in the files of old."""
    for case in progressive_cases():
        if case.name in ENCODED_DIFFERENTLY:
            yield GoldenCase(f"{case.name}_by_next", case.values, case.codec, case.fill)


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


def adaptive_cases() -> Iterator[GoldenCase]:
    """Every kind of tile, both predictors, masks, values that are stored; what is written as lorenzo."""
    shapes = {"line": (2400,), "plane": (41, 50), "volume": (12, 13, 16), "4d": (2, 6, 11, 15), "components": (800, 3)}
    for i, (word, shape) in enumerate(shapes.items()):
        dtype = ("f4", "f8")[i % 2]
        name, kind = f"adaptive_{dtype}_{word}", np.dtype(dtype).type
        yield GoldenCase(name, swell(shape, dtype), pyfilter.Adaptive(absolute=0.02))
        fine = pyfilter.Adaptive(absolute=0.2, predictor="interpolation")
        yield GoldenCase(f"{name}_interpolation", swell(shape, dtype, 2), fine)
        holes = with_bits(swell(shape, dtype), specials(dtype))
        holes.reshape(-1)[150:700] = -999
        holes.reshape(-1)[800:1800:37] = -999
        predictor = ("auto", "interpolation")[i % 2]
        yield GoldenCase(f"{name}_declared", holes, pyfilter.Adaptive(absolute=0.05, predictor=predictor), kind(-999))
    fast = pyfilter.Adaptive(relative=1e-4, effort="fast")
    yield GoldenCase("adaptive_f4_plane_fast", swell((41, 50), "f4"), fast)
    yield GoldenCase("adaptive_f8_volume_fast", swell((12, 13, 16), "f8"), fast)
    undeclared = swell((41, 50), "f4")
    undeclared[10:20, 5:40] = 1e30
    yield GoldenCase("adaptive_f4_undeclared", undeclared, pyfilter.Adaptive(absolute=0.02))
    stored = swell((2400,), "f8")
    stored[::211] = [(1500 + k) * (-1) ** k for k in range(stored[::211].size)]
    yield GoldenCase("adaptive_f8_stored", stored, pyfilter.Adaptive(absolute=0.002, predictor="regression"))
    swapped = swell((41, 50), "f4").astype(">f4")
    yield GoldenCase("adaptive_f4_big_endian", swapped, pyfilter.Adaptive(psnr=70))
    yield GoldenCase("adaptive_f8_big_endian", swell((12, 13, 14), "f8").astype(">f8"), pyfilter.Adaptive(psnr=90))
    for dtype in ("f4", "f8"):
        scalar, empty = np.array(np.dtype(dtype).type(2.5)), np.empty((3, 0, 2), dtype)
        yield GoldenCase(f"adaptive_{dtype}_scalar", scalar, pyfilter.Adaptive(absolute=0.01))
        yield GoldenCase(f"adaptive_{dtype}_empty", empty, pyfilter.Adaptive(absolute=0.01))
        yield GoldenCase(f"adaptive_{dtype}_falls_back", waves((130,), dtype), pyfilter.Adaptive(absolute=0.1))
        exact = pyfilter.Adaptive(absolute=1e-310 if dtype == "f8" else 1e-44)
        yield GoldenCase(f"adaptive_{dtype}_exact", waves((130,), dtype), exact)
    yield GoldenCase("adaptive_f4_pointwise", signed((40, 64), "f4", 5), pyfilter.Adaptive(pointwise_relative=0.02))
    walk = (np.cumsum(swings(16_900)).astype(np.float64) / 64).astype("f4")
    yield GoldenCase("adaptive_f4_crop", walk, pyfilter.Adaptive(absolute=0.3))  # trained on a part of its tile


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


def parts_cases() -> Iterator[GoldenCase]:
    """Adaptive: a part for each component, lines that are folded into planes and volumes."""

    def case(name: str, values: Array, codec: pyfilter.Codec, fill: Any = None, before: Any = None) -> GoldenCase:
        return GoldenCase(f"adaptive_{name}", values, codec, fill, before, parts=True)

    coarse = pyfilter.Adaptive(absolute=0.05)
    fine = pyfilter.Adaptive(absolute=0.02, predictor="regression")
    smooth = pyfilter.Adaptive(absolute=0.2, predictor="interpolation")
    apart = np.array([0, 1000, -200])
    for dtype, count in (("f4", 3), ("f8", 2)):  # components with fewer than 2048 values share a part
        lines = (swell((2050, 3), "f8") + apart)[:, :count].astype(dtype)
        yield case(f"{dtype}_parts", lines, fine)
    lines = (swell((2050, 3), "f8") + apart).astype("f4")
    yield case("f4_parts_interpolation", lines[:, :2], smooth)
    holes = with_bits(lines, specials("f4"))
    holes[100:150, 1], holes[:, 2] = -999, -999
    yield case("f4_parts_declared", holes, fine, np.float32(-999))
    yield case("f4_parts_planes", swell((50, 41, 2), "f4"), pyfilter.Adaptive(absolute=0.02))
    yield case("f4_parts_volumes", swell((9, 15, 16, 2), "f4"), pyfilter.Adaptive(absolute=0.02))
    yield case("c8_parts", lines[:1024].astype("c8"), fine)
    before = swell((2050, 2), "f4")
    before[:8] = 300
    after = before.copy()
    after[:8] = 1
    relative = pyfilter.Adaptive(relative=2.0**-13, predictor="regression")
    yield case("f4_parts_update", after, relative, before=before)
    yield case("f4_folded_plane", folded(4129, 37, 0, "f4"), coarse)
    yield case("f4_folded_volume", folded(4501, 36, 9, "f4"), coarse)
    special = with_bits(folded(4100, 43, 0, "f4"), specials("f4"))
    special[1000:1100] = special[-30:-3] = -999
    special[-2:] = math.nan, math.inf
    interpolation = pyfilter.Adaptive(absolute=0.05, predictor="interpolation")
    yield case("f4_folded_specials", special, interpolation, np.float32(-999))


def update_cases() -> Iterator[GoldenCase]:
    """Chunks whose largest values were written over: kept values carry the bound of the range that was."""
    kinds: tuple[tuple[str, pyfilter.Codec], ...] = (
        ("cuszp2", pyfilter.Cuszp2(relative=1e-3)),
        ("hierarchical_delta", pyfilter.HierarchicalDelta(psnr=60)),
        ("lorenzo", pyfilter.Lorenzo(relative=1e-3, coder="huffman")),
        ("progressive", pyfilter.Progressive(relative=1e-3)),
    )
    for name, codec in kinds:
        for dtype, what in (("f4", "finer"), ("f8", "finer"), ("f4", "exact")):
            after = waves((11, 19), dtype) if what == "finer" else np.full((11, 19), 273.15, dtype)
            before = after.copy()
            before[4, 5:9] = 300
            yield GoldenCase(f"update_{name}_{dtype}_{what}", after, codec, before=before)
    whole = waves((11, 19), "i4")
    before = whole.copy()
    before[3, 3] = 2**20
    yield GoldenCase("update_hierarchical_delta_i4", whole, pyfilter.HierarchicalDelta(relative=1e-3), before=before)


def complex_waves(shape: tuple[int, ...], dtype: str) -> Array:
    """Waves as real parts, and the same backwards as imaginary ones."""
    part = waves(shape, {"c8": "f4", "c16": "f8"}[dtype])
    found = np.empty(shape, dtype)
    found.real, found.imag = part, part.reshape(-1)[::-1].reshape(shape)
    return found


def complex_cases() -> Iterator[GoldenCase]:
    """Every codec that takes them, ranks, special parts, fill values of every kind, a chunk written in parts."""
    for dtype in ("c8", "c16"):
        plane, special = complex_waves((7, 17), dtype), complex_waves((70,), dtype)
        special[[3, 40, 41]] = complex(math.nan, 1), complex(-0.0, math.inf), complex(-math.inf, -0.0)
        codecs: dict[str, pyfilter.Codec] = {
            "cuszp2": pyfilter.Cuszp2(absolute=2.0**-6),
            "lossless": pyfilter.Lossless(),
            "lossless_ratio": pyfilter.Lossless(effort="ratio"),
            "hierarchical_delta": pyfilter.HierarchicalDelta(absolute=2.0**-6),
            "pointwise": pyfilter.HierarchicalDelta(pointwise_relative=2.0**-6),
            "lorenzo": pyfilter.Lorenzo(absolute=2.0**-6),
            "adaptive": pyfilter.Adaptive(absolute=2.0**-6),
        }
        for name, codec in codecs.items():
            values = complex_waves((24, 40), dtype) if name in ("lorenzo", "adaptive") else plane
            yield GoldenCase(f"{name}_{dtype}_plane", values, codec)
            yield GoldenCase(f"{name}_{dtype}_specials", special, codec)
        cuszp2 = codecs["cuszp2"]
        for rank, shape in {"scalar": (), "empty": (0, 3), "rank32": (1,) * 31 + (3,)}.items():
            yield GoldenCase(f"cuszp2_{dtype}_{rank}", complex_waves(shape, dtype), cuszp2)
        for kind, fill in {"real": -999.0, "both": -999.0 - 999.0j, "different": -999.0 + 7.0j}.items():
            values = plane.copy()
            values[3:5] = fill
            yield GoldenCase(f"cuszp2_{dtype}_fill_{kind}", values, cuszp2, fill)
        yield GoldenCase(f"cuszp2_{dtype}_big_endian", plane.astype(f">{dtype}"), cuszp2)
        before = plane.copy()
        before[0, 0] = 1000
        yield GoldenCase(f"cuszp2_{dtype}_update", plane, pyfilter.Cuszp2(relative=2.0**-8), before=before)


def bool_cases() -> Iterator[GoldenCase]:
    """Both efforts, ranks, bytes that are neither 0 nor 1."""
    for effort in ("fast", "ratio"):
        codec = pyfilter.Lossless(effort=effort)
        for name, shape in {"plane": (40, 60), "scalar": (), "empty": (0,), "row": (33,)}.items():
            yield GoldenCase(f"lossless_bool_{effort}_{name}", waves(shape, "u1") > 40, codec)
        odd = (np.arange(70, dtype="u1") // 9).view("?")
        yield GoldenCase(f"lossless_bool_{effort}_odd", odd, codec)


def half_cases() -> Iterator[GoldenCase]:
    """Both efforts, both byte orders, ranks, every kind of special value."""
    for effort in ("fast", "ratio"):
        codec = pyfilter.Lossless(effort=effort)
        for name, shape in {"plane": (20, 33), "scalar": (), "empty": (0,), "row": (33,)}.items():
            yield GoldenCase(f"lossless_f2_{effort}_{name}", waves(shape, "f4").astype("f2"), codec)
        yield GoldenCase(f"lossless_f2_{effort}_big_endian", waves((20, 33), "f4").astype(">f2"), codec)
        patterns = (0x7E00, 0x7E01, 0xFE00, 0x7D01, 0x7C00, 0xFC00, 0x8000, 1, 0x8001)
        special = with_bits(waves((70,), "f4").astype("f2"), dict(enumerate(patterns, 3)))
        yield GoldenCase(f"lossless_f2_{effort}_specials", special, codec)
    yield from bounded_half_cases(special)


def bounded_half_cases(special: Array) -> Iterator[GoldenCase]:
    """float16 with each kind of bound, a fill value, missing values, either byte order, and written in parts."""
    plane = waves((20, 33), "f4").astype("f2")
    holes = with_bits(plane, dict.fromkeys(range(50, 200), 0xE3CE))  # -999
    before = plane.copy()
    before[0, 0] = 40
    for name in ("cuszp2", "hierarchical_delta", "lorenzo", "adaptive"):
        codec = getattr(pyfilter, registry().codecs[name].class_name)
        large = waves((44, 45), "f4").astype("f2") if name == "lorenzo" else plane
        yield GoldenCase(f"{name}_f2_absolute", large, codec(absolute=0.0625))
        yield GoldenCase(f"{name}_f2_holes", holes, codec(absolute=0.0625), fill=-999)
        yield GoldenCase(f"{name}_f2_big_endian", plane.astype(">f2"), codec(relative=2.0**-6))
        yield GoldenCase(f"{name}_f2_specials", special, codec(absolute=1.0))
        yield GoldenCase(f"{name}_f2_update", plane, codec(relative=2.0**-6), before=before)
        if name != "cuszp2":
            yield GoldenCase(f"{name}_f2_pointwise", plane + np.float16(2), codec(pointwise_relative=2.0**-5))


def record_cases() -> list[RecordCase]:
    """Compound types: one with padding, both byte orders and all kinds of fields; one that was written in parts."""
    names = ["id", "x", "y", "t", "flag", "v", "c", "h", "s"]
    formats = ["<i8", "<f4", ">f4", "<f8", "u1", "(3,)<f4", "<c8", "<f2", "S5"]
    offsets = [3, 12, 16, 20, 28, 29, 41, 49, 51]
    values = np.zeros(13, np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": 57}))
    n = np.arange(13)
    values["id"], values["flag"], values["s"] = 1000 + n, n % 3, b"abc"
    for number, field in enumerate(("x", "y", "t", "h"), 1):
        values[field] = number * n * n / 32 - n
    values["v"] = values["x"][:, None] * np.array([1, -2, 0.5], "f4")
    values["c"].real, values["c"].imag = values["x"], values["y"]
    values["x"][5], values["y"][7] = np.nan, -np.inf
    fill = np.zeros((), values.dtype)
    fill["x"], fill["y"] = -999, -999
    values["x"][10:12] = -999
    bounds = {
        "x": pyfilter.Cuszp2(absolute=0.25),
        "y": pyfilter.HierarchicalDelta(relative=2.0**-8),
        "v": pyfilter.Lorenzo(absolute=0.125),
        "c": pyfilter.Cuszp2(absolute=0.5),
    }
    before = np.zeros(40, [("y", ">f4"), ("n", "<i2")])
    before["y"], before["n"] = np.arange(40) ** 2 / 32, 7
    after = before.copy()
    after["y"][30:] = 3
    relative = pyfilter.Compound({"y": pyfilter.HierarchicalDelta(relative=2.0**-8)})
    return [
        RecordCase("records_padded", values, pyfilter.Compound(bounds), fill),
        RecordCase("records_update", after, relative, None, before),
    ]


def cases() -> list[GoldenCase]:
    """All of them."""
    return [
        *cuszp2_cases(), *lossless_cases(), *bins_cases(), *delta_cases(), *integer_cases(), *lorenzo_cases(),
        *particle_cases(), *progressive_cases(), *progressive_again(),
        *update_cases(), *adaptive_cases(), *parts_cases(), *complex_cases(), *bool_cases(), *half_cases(),
    ]  # fmt: skip
