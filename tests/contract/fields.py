# SPDX-License-Identifier: BSD-3-Clause
"""Values for the contract tests: families of arrays, special values, bounds, and hypothesis strategies over them.

Strategies draw a recipe (family, shape, scale, bound, seed) and NumPy makes the array, so that arrays of several tiles
cost little. A failing case prints its recipe; with the fixed seed of these tests it comes again in the next run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import pyfilter
from pyfilter.registry import registry
from pyfilter.settings import CPU_LEVELS

Array = NDArray[Any]
Lossy = type[pyfilter.Cuszp2] | type[pyfilter.HierarchicalDelta] | type[pyfilter.Lorenzo] | type[pyfilter.Adaptive]

LONG = os.environ.get("PYFILTER_LONG", "") not in ("", "0")
MODES = ("outlier", "plain", "fixed")
PREDICTORS = {
    "auto": 0,
    "fast": 0,
    "chain": 0,
    "lorenzo2d": 2,
    "lorenzo3d": 3,
    "columns": 2,
}  # of hierarchical_delta and lorenzo, and the rank that each needs
LOSSY: tuple[Lossy, ...] = (pyfilter.Cuszp2, pyfilter.HierarchicalDelta, pyfilter.Lorenzo, pyfilter.Adaptive)
CODERS: tuple[dict[str, Any], ...] = ({}, {"coder": "huffman"}, {"coder": "huffman", "gap_array": False})
SIZES = (0, 1, 2, 31, 32, 33, 63, 64, 65, 4095, 4096, 4097, 8193)
#: for each rank shapes at the edges of blocks and tiles; the last are of several tiles
SHAPES: dict[int, tuple[tuple[int, ...], ...]] = {
    0: ((),),
    1: tuple((size,) for size in SIZES),
    2: ((0, 5), (1, 1), (1, 33), (33, 1), (8, 8), (7, 9), (9, 16), (64, 64), (65, 64), (3, 4097), (130, 70), (1025, 3)),
    3: (
        (1, 1, 1),
        (4, 0, 4),
        (4, 4, 4),
        (3, 5, 7),
        (5, 8, 9),
        (2, 1, 65),
        (16, 16, 16),
        (17, 16, 16),
        (21, 19, 23),
        (9, 17, 33),
    ),
    4: ((1, 1, 1, 1), (2, 3, 5, 7), (3, 4, 4, 4), (2, 9, 17, 33), (2, 0, 3, 3)),
    5: ((1, 1, 1, 1, 1), (2, 1, 3, 9, 11), (2, 2, 5, 6, 7), (3, 2, 8, 16, 16)),
}
FRACTION_BITS = {4: 23, 8: 52}
#: names of the types that codecs see; all others are derived (docs/format.md, section 16)
BASE_DTYPES = tuple(
    name for name in registry().codecs["hierarchical_delta"].dtypes if name[0] != "c" and name not in ("f16", "bf16")
)


def hunt(examples: int) -> settings:
    """Settings of a hypothesis test: the same examples in each run, or many more with PYFILTER_LONG=1."""
    return settings(
        max_examples=examples * (25 if LONG else 1),
        derandomize=not LONG,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


def levels_here() -> tuple[str, ...]:
    """The instruction sets that this machine has."""
    found = []
    for level in CPU_LEVELS:
        try:
            with pyfilter.config(cpu_level=level) as config:
                found.append(config.cpu_level)
        except pyfilter.errors.InvalidArgument:
            continue
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, eq=False)
class Case:
    """What is to be encoded, and how."""

    values: Array
    codec: pyfilter.Codec
    fill: Any = None
    recipe: str = ""

    def __repr__(self) -> str:
        return f"<{self.values.dtype} {self.values.shape} {self.codec!r} fill={self.fill!r} {self.recipe}>"


def from_bits(patterns: list[int] | Array, dtype: np.dtype[Any]) -> Array:
    """Values with these bit patterns."""
    values: Array = np.asarray(patterns, dtype=f"u{dtype.itemsize}").view(dtype)
    return values


def nearby(values: Array, ulps: Array) -> Array:
    """Values so many representable numbers further from zero (down to zero, up to infinity)."""
    dtype = values.dtype
    sign = 1 << 8 * dtype.itemsize - 1
    limit = int(np.array(np.inf, dtype).view(f"u{dtype.itemsize}"))
    patterns = values.view(f"u{dtype.itemsize}")
    size = np.clip((patterns & (sign - 1)).astype(np.int64) + ulps, 0, limit).astype(patterns.dtype)
    return from_bits(size | patterns & sign, dtype)


def family(name: str, n: int, dtype: np.dtype[Any], rng: np.random.Generator, scale: float, bound: float) -> Array:
    """`n` values of a family. `scale` is their size where that means something, `bound` that of the request."""
    signs = rng.choice((-1.0, 1.0), n)
    with np.errstate(all="ignore"):
        if name == "bits":
            return from_bits(rng.integers(0, 1 << 8 * dtype.itemsize, n, np.uint64), dtype)
        if name == "subnormal":
            width = FRACTION_BITS[dtype.itemsize]
            shift = rng.integers(0, width, n).astype(np.uint64)
            small = rng.integers(0, 1 << width, n, np.uint64) >> shift
            return from_bits(small + (signs < 0) * np.uint64(1 << 8 * dtype.itemsize - 1), dtype)
        if name == "huge range":
            low, high = (-149, 128) if dtype.itemsize == 4 else (-1074, 1024)
            return (signs * np.ldexp(rng.uniform(0.5, 1, n), rng.integers(low, high, n))).astype(dtype)
        if name == "powers of two":
            exponents = rng.integers(-12, 13, n) + int(np.frexp(scale)[1])
            values = (signs * np.ldexp(1.0, exponents)).astype(dtype)
            return nearby(values, rng.integers(-3, 4, n))
        if name in ("lattice", "half-way"):
            reach = int(rng.choice((4, 100, 1 << 12, 1 << 21)))
            k = rng.integers(-reach, reach + 1, n) * 2 + (name == "half-way")
            values = (k * bound).astype(dtype)
            return nearby(values, rng.integers(-2, 3, n) * (rng.random() < 0.7))
        if name == "offset":
            return (scale * (273.15 + rng.uniform(-1, 1, n))).astype(dtype)
        if name == "constant":
            return np.full(n, scale * rng.choice((-1.0, 1.0)), dtype)
        if name == "sparse":
            return (signs * scale * (rng.random(n) < 0.03)).astype(dtype)
        if name == "smooth":
            return (scale * np.cumsum(rng.normal(size=n))).astype(dtype)
        if name == "noise":
            return (scale * rng.normal(size=n)).astype(dtype)
        if name == "steps":
            return (scale * np.floor(np.arange(n) / 50) + bound * rng.uniform(-1, 1, n)).astype(dtype)
    raise ValueError(name)


FAMILIES = (
    *("smooth", "noise", "offset", "lattice", "half-way", "huge range", "powers of two"),
    *("subnormal", "constant", "sparse", "steps", "bits"),
)


def special_patterns(dtype: np.dtype[Any]) -> list[int]:
    """NaNs quiet, negative, with a payload and signalling; infinities; zeros; a mask that nobody declares."""
    width, fraction = 8 * dtype.itemsize, FRACTION_BITS[dtype.itemsize]
    infinity = (1 << width - 1) - (1 << fraction)
    sign, quiet = 1 << width - 1, infinity | 1 << fraction - 1
    nans = [quiet, quiet | sign, quiet | 0x1234, infinity | 1, sign | infinity | 0x777, (1 << width) - 1]
    mask = int(np.array(1e35, dtype).view(f"u{dtype.itemsize}"))
    return [*nans, infinity, infinity | sign, 0, sign, mask]


FILLS = (
    *("none", "nan", "nan payload", "signalling nan", "-999", "1e20", "zero", "minus zero"),
    *("subnormal", "ordinary", "infinity", "largest"),
)


def fill_value(name: str, values: Array) -> Any:
    """A fill value by name, as a NumPy scalar of the dtype; None for "none"."""
    dtype = values.dtype
    specials = special_patterns(dtype)
    patterns = {"nan": specials[0], "nan payload": specials[2], "signalling nan": specials[3], "subnormal": 77}
    if name in patterns:
        return from_bits([patterns[name]], dtype)[0]
    numbers = {"-999": -999.0, "1e20": 1e20, "zero": 0.0, "minus zero": -0.0, "infinity": np.inf}
    if name == "ordinary" and values.size:
        return values.reshape(-1)[values.size // 2]
    if name == "largest":
        return np.finfo(dtype).max
    return dtype.type(numbers[name]) if name in numbers else None


def sprinkle(values: Array, fill: Any, how: str, rng: np.random.Generator) -> Array:
    """The values with special ones and the fill value among them."""
    n = values.size
    if how == "none" or n == 0:
        return values
    pool = from_bits(special_patterns(values.dtype), values.dtype)
    if fill is not None:
        pool = np.concatenate((pool, np.full(pool.size, fill, values.dtype)))
    share = {"few": 0.01, "some": 0.2, "most": 0.95}.get(how, 0.3)
    chosen = rng.random(n) < share
    special = pool[rng.integers(0, pool.size, n)]
    if how in ("runs", "one run"):  # a run has one value, like the land of an ocean model
        run = np.cumsum(rng.random(n) < (0.02 if how == "runs" else 2 / n))
        chosen = run % 2 == 1
        special = pool[rng.integers(0, pool.size, int(run[-1]) + 1)][run]
    return np.where(chosen.reshape(values.shape), special.reshape(values.shape), values)


def edge_bounds(dtype: np.dtype[Any]) -> list[float]:
    """Bounds at the limits of what the dtype can quantise."""
    tiny, largest = float(np.finfo(dtype).tiny), float(np.finfo(dtype).max)
    near = [np.nextafter(4 * tiny, 0), 4 * tiny, np.nextafter(4 * tiny, 1), 3.99 * tiny, 8 * tiny, 1e3 * tiny]
    near += [largest / 4, np.nextafter(largest / 2, 0), largest / 2, largest]
    return [5e-324, 1e-300, *map(float, near), 1e300, float(np.finfo(np.float64).max)]


@st.composite
def bounds(draw: st.DrawFn, dtype: np.dtype[Any], scale: float) -> float:
    """A bound for data of this scale: a sensible one, any decade, near a power of two, or at the dtype's limits."""
    kind = draw(st.sampled_from(("scaled", "scaled", "scaled", "decade", "power", "edge")))
    if kind == "scaled":
        bound = scale * draw(st.sampled_from((3.0, 1.0, 0.5, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)))
        bound *= draw(st.sampled_from((1.0, 0.1234567, 1 + 2.0**-23, 1 - 2.0**-24, 1 + 2.0**-52)))
    elif kind == "decade":
        bound = 10.0 ** draw(st.integers(-300, 300))
    elif kind == "power":
        ulps = draw(st.integers(-12, 12)) * draw(st.sampled_from((1, 1 << 29)))  # of f64, or of f32
        exponent = int(np.frexp(scale)[1]) - draw(st.integers(0, 30))
        bound = float(nearby(np.array([2.0**exponent]), np.array([ulps]))[0])
    else:
        bound = draw(st.sampled_from(edge_bounds(dtype)))
    return min(max(float(bound), 5e-324), float(np.finfo(np.float64).max))


@st.composite
def shapes(draw: st.DrawFn, ranks: tuple[int, ...] = tuple(SHAPES)) -> tuple[int, ...]:
    """Shapes at the edges of blocks and tiles, and others."""
    rank = draw(st.sampled_from(ranks))
    if draw(st.booleans()):
        return draw(st.sampled_from(SHAPES[rank]))
    largest = (1, 5000, 70, 18, 8, 5)[rank]
    return tuple(draw(st.integers(1, largest)) for _ in range(rank))


def predictors_of(lossy: Lossy) -> tuple[str, ...]:
    """The predictors that the codec can be asked for."""
    return next((tuple(item.values) for item in lossy.spec().parameters if item.name == "predictor"), ())


def lossy_codecs(lossy: Lossy, rank: int, **bound: float) -> Iterator[pyfilter.Codec]:
    """The codec with every choice of parameters that data of this rank allows."""
    if lossy is pyfilter.Cuszp2:
        for block_dims in range(1, min(3, max(1, rank)) + 1):
            for mode in MODES:
                yield pyfilter.Cuszp2(**bound, mode=mode, block_dims=block_dims)
        return
    for predictor in (name for name in predictors_of(lossy) if rank >= PREDICTORS.get(name, 0)):
        if lossy is pyfilter.Lorenzo:
            for choice in CODERS:
                yield pyfilter.Lorenzo(predictor=predictor, **{**bound, **choice})
            continue
        if lossy is pyfilter.Adaptive:
            for effort in ("best", "fast"):
                yield pyfilter.Adaptive(**bound, predictor=predictor, effort=effort)
            continue
        for outliers in ("on", "off"):
            yield pyfilter.HierarchicalDelta(**bound, predictor=predictor, outliers=outliers)


def drawn(lossy: Lossy) -> dict[str, Any]:
    """What `float_cases` needs to draw requests to this codec."""
    predictors = predictors_of(lossy) or None
    return {"predictors": predictors, "lossy": lossy}


@st.composite
def float_cases(
    draw: st.DrawFn,
    dtype: np.dtype[Any],
    bound_kind: str = "absolute",
    modes: tuple[str, ...] = MODES,
    predictors: tuple[str, ...] | None = None,
    lossy: Lossy = pyfilter.Cuszp2,
) -> Case:
    """A request to cuszp2, or with `predictors` to another `lossy` codec, and its values."""
    predictor = None if predictors is None else draw(st.sampled_from(predictors))
    least = 0 if predictor is None else PREDICTORS.get(predictor, 0)
    shape = draw(shapes(tuple(rank for rank in SHAPES if rank >= least)))
    n = int(np.prod(shape, dtype=np.int64))
    seed = draw(st.integers(0, 1 << 32))
    rng = np.random.default_rng(seed)
    scale = draw(st.sampled_from((1.0, 1.0, 1e-3, 3e4, 1e-30, 1e30, 2.0**-120, 2.0**100)))
    if dtype.itemsize == 8:
        scale = draw(st.sampled_from((scale, scale, 1e-290, 1e290, 2.0**-1010)))
    bound = draw(bounds(dtype, scale))
    name = draw(st.sampled_from(FAMILIES))
    values = family(name, n, dtype, rng, scale, bound).reshape(shape)
    filling = draw(st.sampled_from(FILLS))
    fill = fill_value(filling, values)
    how = draw(st.sampled_from(("none", "none", "few", "some", "most", "runs", "one run")))
    values = sprinkle(values, fill, how, rng)
    block_dims = draw(st.integers(1, min(3, max(1, len(shape)))))
    mode = draw(st.sampled_from(modes))
    if bound_kind == "relative":
        bound = draw(st.sampled_from((1e-2, 1e-3, 1e-4, 1e-6, 0.1, 0.5, 1.0, 3.0, 1e-9, 1e-300, 1e300, 2.0**-10)))
    codec: pyfilter.Codec = pyfilter.Cuszp2(**{bound_kind: bound}, mode=mode, block_dims=block_dims)
    if lossy is pyfilter.Adaptive:
        effort = draw(st.sampled_from(("best", "fast")))
        codec = pyfilter.Adaptive(predictor=predictor or "auto", effort=effort, **{bound_kind: bound})
    elif predictor is not None:
        outliers = draw(st.sampled_from(("auto", "on", "off")))
        codec = pyfilter.HierarchicalDelta(**{bound_kind: bound}, predictor=predictor, outliers=outliers)
        if lossy is pyfilter.Lorenzo:
            choice = draw(st.sampled_from(CODERS))
            codec = pyfilter.Lorenzo(predictor=predictor, **{bound_kind: bound, **choice})
    recipe = f"{name}, scale {scale!r}, seed {seed}, fill {filling}, specials {how}"
    return Case(values, codec, fill, recipe)
