# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of Adaptive, and of arrays that were written to in part."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import pyfilter

from .fields import Array, folded, signed, specials, swell, swings, waves, with_bits
from .golden_case import GoldenCase


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
