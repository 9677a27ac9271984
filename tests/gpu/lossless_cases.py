# SPDX-License-Identifier: BSD-3-Clause
"""Arrays for Lossless(effort="ratio"): every kind of number, with and without remainders, of every base type."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from contract import fields
from numpy.typing import NDArray
from reference import bins_writer

import pyfilter
from gpu.group import Group, check_batch
from pyfilter.registry import registry

Array = NDArray[Any]
KINDS = (
    *("walk", "noise", "smooth", "grid", "list", "multiples", "outliers", "constant", "mostly zero"),
    *("unpacked", "unpacked, missing", "messages", "records", "period"),
)
RATIO = pyfilter.Lossless(effort="ratio")


def make(kind: str, shape: tuple[int, ...], name: str, rng: np.random.Generator) -> Array:
    """An array of one kind; grid, list, multiples and unpacked become numbers of that kind.

    Outliers have remainders, messages changes of remainders. Integers have no unpacked values. Records and periods have
    lags, in arrays of one axis.
    """
    dtype = np.dtype(registry().dtypes[name].numpy)
    size = int(np.prod(shape))
    if kind == "noise":
        return np.frombuffer(rng.bytes(size * dtype.itemsize), dtype).reshape(shape)
    walk = np.cumsum(rng.normal(size=shape), axis=-1) if shape else rng.normal(size=shape)
    if kind == "smooth":
        walk = np.asarray(sum(np.sin(axis / 7.0) for axis in np.indices(shape))) * 40 + 1e-3 * walk
    elif kind == "grid":
        walk = np.round(walk, 2) if dtype.kind == "f" else np.round(walk) * 3
    elif kind == "list":
        walk = rng.choice(rng.normal(size=50) * 30, shape)
    elif kind == "multiples":
        walk = np.round(walk).astype(np.float32) / 16 if dtype.kind == "f" else np.round(walk) * 12 + 5
    elif kind == "outliers":
        walk = np.round(walk, 1) if dtype.kind == "f" else np.round(walk) * 10
        np.put(walk, rng.integers(0, max(1, size), 1 + size // 60), 1 / 3 if dtype.kind == "f" else 7)
    elif kind in ("unpacked", "unpacked, missing") and dtype.kind == "f":
        walk = np.round(walk * 300) * 0.0017351236 + 273.4178
        np.put(walk, rng.integers(0, max(1, size), size // 20 if "missing" in kind else 0), -9999)
    elif kind == "messages" and dtype.kind == "f":
        references = np.where(np.arange(size) < size // 3, 271.3071, 255.9137).reshape(shape)
        walk = np.round(walk * 300) / 512 + references
    elif kind == "records":
        walk = np.resize([0, 500, -900, 70, 3000, 44, 8000], shape) + rng.integers(0, 9, shape)
    elif kind == "period":
        walk = np.resize(rng.normal(size=max(1, size // 50)) * 100, shape)
    elif kind == "constant":
        walk = np.full(shape, 42.0)
    elif kind == "mostly zero":
        walk = np.where(rng.random(shape) < 0.97, 0, walk * 100)
    return walk.astype(dtype) if dtype.kind == "f" else np.int64(walk).astype(dtype)


def long_units(rng: np.random.Generator) -> Iterator[Array]:
    """Units of 131 072 values or more, which several warps encode: patterns, numbers of a grid, remainders."""
    mostly = np.where(rng.random(270_000) < 0.98, 0, rng.normal(size=270_000))
    yield mostly.astype(np.float32)
    yield mostly.reshape(2, 300, 450)
    yield np.round(mostly[:140_000] * 7).astype(np.int16)
    changes = np.where(rng.random(200_000) < 0.05, 9 * rng.normal(size=200_000), 0)
    hundredths = np.round(np.cumsum(changes), 2)
    hundredths[65_000:66_000] = np.inf  # no grid reaches them, nor the value before the second part
    yield hundredths.astype(np.float32)
    hundredths[::501] += 1e-3
    yield hundredths.astype(np.float32)
    x, y, z = np.indices((14, 200, 100))
    yield (np.sin(x / 9) * 40 + np.sin(y / 30) * np.cos(z / 20) * 30).astype(np.float32)
    yield np.full(262_144, 3.5, np.float32)


def binned(quick: bool, every: int) -> Iterator[Group]:
    """Chunks alone and in batches, frames whole and in part."""
    rng = np.random.default_rng(31)
    shapes: list[tuple[int, ...]] = [(1,), (31,), (32,), (33,), (2100,), (9000, 3), (150, 300), (3, 40, 65), (40000,)]
    shapes += [(20, 70, 64)] if every > 1 else [(200_003,), (70, 64, 90), (600, 900), (300_000, 2), (1, 2, 3, 4, 5)]
    group = Group("lossless with bins, ten dtypes")
    cases = itertools.product(shapes, KINDS, fields.BASE_DTYPES)
    for i, (shape, kind, name) in enumerate(itertools.islice(cases, 0, None, every)):
        group.check(make(kind, shape, name, rng), RATIO, copies=3 if i % 5 == 0 else 1)
    yield group
    group = Group("lossless with bins, long units")
    for values in long_units(rng):
        group.check(values, RATIO, copies=2)
    yield group
    group = Group("lossless with bins, batches and made frames")
    for name, (kinds, shape) in itertools.product(
        ("f32", "f64", "i16"), (((*KINDS,), (64, 90)), (("walk", "smooth"), (66_000 if every > 1 else 300_000,)))
    ):
        check_batch(group, [make(kinds[i % len(kinds)], shape, name, rng) for i in range(7)], RATIO)
    for seed in range(400 // every):  # strides and bins of every kind
        group.check_frames([bins_writer.random_frame(random.Random(seed))[1]])
    yield group
    if every == 1 and not quick:
        group = Group("lossless with bins, many units")
        for kind, name in itertools.product(("walk", "smooth", "grid", "outliers"), ("f32", "f64", "i32", "u8")):
            for shape in ((90, 256, 256), (2500, 3000), (5_000_003,)):
                group.check(make(kind, shape, name, rng), RATIO)
        check_batch(group, [make(("walk", "noise", "list")[i % 3], (333,), "f32", rng) for i in range(1500)], RATIO)
        yield group
