# SPDX-License-Identifier: BSD-3-Clause
"""Chunks for codec Progressive: every form of tile, special values of every kind, and frames to damage."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pyfilter

Array = NDArray[Any]
Case = tuple[Array, pyfilter.Progressive, Any]

#: lines, planes and volumes of tiles, one and many, whole and cut; narrow axes; the coarsest grid alone; long rows that
#: are aligned to 16 bytes, of which a kernel does several pieces
SHAPES = (
    (), (7,), (33,), (4097,), (70_000,), (96_000,), (3, 3), (7, 50), (200, 3), (300, 260), (9, 17, 33), (40, 50, 61),
    (5, 200, 40), (70, 65, 3), (40, 1, 1), (2, 2, 3, 40, 50), (64, 64, 64), (48, 1536), (6, 24, 640),
)  # fmt: skip
KINDS = (
    "smooth", "noise", "steps", "constant", "NaN", "NaN and infinities", "fill", "fill near", "undeclared", "huge",
    "fill and rare infinities", "NaN for missing", "all missing",
)  # fmt: skip


def make(kind: str, shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> tuple[Array, Any]:
    """Return values, and their fill value or None."""
    values = rng.normal(size=shape)
    if shape and kind != "noise":
        values = np.cumsum(values, axis=-1)
    scale = (1e36 if dtype == "f4" else 1e304) if kind == "huge" else 1.0
    values = np.asarray(values * scale).astype(dtype)
    flat = values.reshape(-1)
    some = rng.random(flat.size) < 0.1
    fill = None
    if kind == "steps":
        flat[:] = np.round(flat)
    elif kind == "constant":
        flat[:] = 2.5
    elif kind.startswith("NaN"):
        flat[some] = np.nan
        if kind != "NaN":
            flat[::97] = np.inf
    elif kind == "fill":
        fill = 1e20
        flat[flat.size // 3 : flat.size // 2] = fill
    elif kind == "fill and rare infinities":  # far apart, so that parts of a chunk have none
        fill = -9999.0
        flat[rng.random(flat.size) < 0.3] = fill
        flat[5::40_009] = np.inf
    elif kind == "NaN for missing":  # declared; some have other bits
        fill = np.nan
        flat[some] = np.nan
        flat[11::97] = -np.nan
    elif kind == "all missing":
        fill = 1e20
        flat[:] = fill
    elif kind == "fill near":  # values of which some may become it
        fill = float(np.asarray(1.5, dtype))
    elif kind == "undeclared":
        flat[some] = -1e30
    return values, fill


def codecs() -> Iterator[pyfilter.Progressive]:
    yield pyfilter.Progressive()
    yield pyfilter.Progressive(errors="bounds")
    yield pyfilter.Progressive(absolute=0.01)
    yield pyfilter.Progressive(relative=1e-5, errors="bounds")
    yield pyfilter.Progressive(absolute=1e-12)  # finer than integers: another codec's frame


def cases(quick: bool, dtype: str) -> Iterator[Case]:
    rng = np.random.default_rng(14)
    all_codecs = list(codecs())
    for i, (shape, kind) in enumerate(itertools.product(SHAPES, KINDS)):
        values, fill = make(kind, shape, dtype, rng)
        for codec in [all_codecs[i % len(all_codecs)]] if quick else all_codecs:
            yield values, codec, fill


def frames(dtype: str) -> Iterator[bytes]:
    """Frames to damage: of lines, planes and volumes, with and without special values."""
    rng = np.random.default_rng(15)
    for shape, kind in itertools.product(
        ((20_000,), (300, 70), (40, 50, 61), (7, 9, 11)), ("smooth", "NaN and infinities")
    ):
        values, fill = make(kind, shape, dtype, rng)
        yield pyfilter.encode(values, pyfilter.Progressive(absolute=1e-3), fill_value=fill)
