# SPDX-License-Identifier: BSD-3-Clause
"""Positions for same_bytes.py: every kind of order, extent, repetition and special particle, at sizes around tiles."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import pyfilter

Array = NDArray[Any]
COUNTS = (1, 2, 31, 32, 33, 64, 127, 1000, 4064, 4095, 4096, 4097, 4129, 8192, 12289, 40001)
ORDERS = ("kept", "tile", "chunk")
FILL = 1e35


class Case(NamedTuple):
    values: Array
    codec: pyfilter.Codec
    fill: float | None


def cloud(count: int, axes: int, rng: np.random.Generator) -> Array:
    """Clumps of several sizes."""
    centres, widths = rng.uniform(-50, 50, (12, axes)), rng.choice((0.1, 1.0, 8.0), 12)
    of = rng.integers(0, 12, count)
    x: Array = centres[of] + rng.normal(size=(count, axes)) * widths[of, None]
    return x


def walk(count: int, axes: int, rng: np.random.Generator) -> Array:
    return np.cumsum(rng.normal(size=(count, axes)), axis=0)


def lattice(count: int, axes: int, rng: np.random.Generator) -> Array:
    """Few places, each taken many times."""
    return rng.integers(0, 6, (count, axes)).astype(np.float64)


def rows(count: int, axes: int, rng: np.random.Generator) -> Array:
    """One axis rises, one is noise: keys in order."""
    x = rng.uniform(0, 1e-3, (count, axes))
    x[:, 0] = np.arange(count)
    return x


def slabs(count: int, axes: int, rng: np.random.Generator) -> Array:
    """Axes of very different extent."""
    x: Array = rng.normal(size=(count, axes)) * 10.0 ** np.arange(axes)[::-1] ** 2
    return x


def equal(count: int, axes: int, rng: np.random.Generator) -> Array:
    x: Array = np.broadcast_to(rng.normal(size=axes) * 100, (count, axes)).copy()
    return x


def far(count: int, axes: int, rng: np.random.Generator) -> Array:
    """A few particles far away from all others."""
    x = rng.normal(size=(count, axes))
    x[rng.integers(0, count, 1 + count // 500)] *= 1e4
    return x


KINDS = (cloud, walk, lattice, rows, slabs, equal, far)
SPECIALS = ("none", "few", "last", "zeros", "fill", "same", "all")


def sprinkle(x: Array, how: str, rng: np.random.Generator) -> Array:
    """Special particles of one kind, or a tail."""
    count, axes = x.shape
    if how == "few":
        places = rng.integers(0, count, 1 + count // 300)
        x[places, rng.integers(0, axes, places.size)] = rng.choice((np.nan, np.inf, -np.inf, 3e30, FILL), places.size)
    elif how == "last":
        x[count - count // 5 :, 0] = np.nan
    elif how == "zeros":
        x[count - count // 3 :] = 0
    elif how == "fill":
        x[count - min(count, 40) :] = FILL
    elif how == "same":
        x[count - min(count, 45) :] = x[0]
    elif how == "all":
        x[:, axes - 1] = np.inf
    return x


def chunks(
    dtype: str, axes: int, count: int, kinds: Sequence[Any], specials: int, rng: np.random.Generator
) -> list[Array]:
    """A chunk of each kind, with the first of SPECIALS in turns, on scales that differ."""
    made = []
    for i, kind in enumerate(kinds):
        x = sprinkle(kind(count, axes, rng), SPECIALS[i % specials], rng)
        made.append((x * 10.0 ** rng.integers(-1, 3)).astype(dtype))
    return made


def cases(quick: bool, dtype: str, axes: int) -> Iterator[Case]:
    rng = np.random.default_rng(11 + axes)
    for n, (count, kind, special) in enumerate(itertools.product(COUNTS, KINDS, SPECIALS)):
        if quick and n % 5 != (axes + len(dtype)) % 5:
            continue
        x = sprinkle(kind(count, axes, rng), special, rng).astype(dtype)
        finite = x[np.isfinite(x) & (np.abs(x) < 1e20)]
        span = float(np.ptp(finite)) if finite.size else 0.0
        fill = FILL if n % 3 == 0 else None
        for order, bound in zip(ORDERS, rng.choice((1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6), 3), strict=True):
            yield Case(x, pyfilter.Particles(absolute=float(bound) * (span or 1.0), order=order), fill)
        made = pyfilter.decode(pyfilter.encode(x, pyfilter.Particles(absolute=1e-3 * (span or 1.0), order="chunk")))
        yield Case(made, pyfilter.Particles(relative=float(rng.choice((1e-2, 1e-4))), order="kept"), fill)
        if count >= 4096:  # sorted at this bound, but for two rows of the first tile
            same = pyfilter.Particles(absolute=1e-3 * (span or 1.0), order="kept")
            yield Case(made, same, None)
            made = made.copy()
            made[[5, 4000]] = made[[4000, 5]]
            yield Case(made, same, None)
