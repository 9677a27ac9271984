# SPDX-License-Identifier: BSD-3-Clause
"""Chunks of derived types: complex numbers, bool, floats of 16 bits. A sentinel is not enough for some fill values."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pyfilter

Array = NDArray[Any]
Case = tuple[Array, pyfilter.Codec, Any]

SHAPES: tuple[tuple[int, ...], ...] = (
    (), (0,), (1,), (31,), (33,), (4099,), (7, 50), (130, 70), (2, 0, 3), (9, 17, 33), (2, 3, 5, 7), (70_001,),
)  # fmt: skip
KINDS = ("smooth", "noise", "constant", "special", "tiny", "large", "fill", "near fill", "all fill")
FILLS: dict[str, tuple[Any, ...]] = {
    "c": (1 + 2j, 0 + 1j, 5 + 0j, 3 + 3j, complex(np.nan, 1), complex(1, np.inf), 0j),
    "f": (1.5, 0.0, np.nan, -2.25),
}


def dtypes() -> list[np.dtype[Any]]:
    found = [np.dtype(name) for name in ("c8", "c16", "?", "f2")]
    try:
        import ml_dtypes
    except ImportError:
        return found
    return [*found, np.dtype(ml_dtypes.bfloat16)]


def make(kind: str, shape: tuple[int, ...], dtype: np.dtype[Any], fill: Any, rng: np.random.Generator) -> Array:
    """Return values with up to a third of fill values."""
    walk = rng.standard_normal(shape)
    if shape and kind != "noise":
        walk = np.cumsum(walk, axis=-1)
    if kind == "constant":
        walk = np.full(shape, 2.5)
    if dtype.kind == "b":
        return np.asarray(walk > 0)
    with np.errstate(all="ignore"):
        if dtype.kind == "c":
            walk = walk + 1j * np.roll(walk, 3)
        walk = np.asarray(walk * {"tiny": 1e-7, "large": 3e4}.get(kind, 0.1)).astype(dtype)
        flat = walk.reshape(-1)
        some = rng.random(flat.size)
        if kind == "special":
            flat[some < 0.05] = np.nan
            flat[some > 0.98] = np.inf
            flat[(some > 0.5) & (some < 0.55)] = -0.0
        if "fill" in kind and fill is not None:
            flat[some < (2 if kind == "all fill" else 0.3)] = fill
        if kind == "near fill" and fill is not None and flat.size > 3:
            flat[1] = np.asarray(fill).astype(dtype) + np.asarray(2e-3).astype(dtype)
            if dtype.kind == "c":  # the sentinel's part with another part beside it
                flat[2] = complex(fill.real, 7)
                flat[3] = complex(7, fill.imag)
    return walk


def codecs(dtype: np.dtype[Any]) -> list[pyfilter.Codec]:
    if dtype.kind == "b":
        return [pyfilter.Lossless(), pyfilter.Lossless(block_dims=1)]
    bounds: list[dict[str, Any]] = [{"absolute": 0.01}, {"relative": 1e-3}, {"relative": 0.03}, {"psnr": 50.0}]
    found: list[pyfilter.Codec] = [pyfilter.Lossless()]
    for bound in bounds:
        found += [kind(**bound) for kind in (pyfilter.Cuszp2, pyfilter.HierarchicalDelta, pyfilter.Lorenzo)]
    for fraction in (0.1, 1e-3):
        found += [kind(pointwise_relative=fraction) for kind in (pyfilter.HierarchicalDelta, pyfilter.Lorenzo)]
    return found


def cases(dtype: np.dtype[Any]) -> Iterator[Case]:
    """Every kind, shape and codec, with a fill value of the type in turn."""
    rng = np.random.default_rng(31)
    fills = itertools.cycle((None, *FILLS.get("c" if dtype.kind == "c" else "f", ())))
    for kind, shape, codec in itertools.product(KINDS, SHAPES, codecs(dtype)):
        fill = None if dtype.kind == "b" else next(fills)
        if "fill" in kind and fill is None and dtype.kind != "b":
            fill = next(fills)
        yield make(kind, shape, dtype, fill, rng), codec, fill
