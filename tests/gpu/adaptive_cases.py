# SPDX-License-Identifier: BSD-3-Clause
"""Cases of Adaptive for same_bytes.py: frames that the reference writer makes; components, and lines with lags."""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray
from reference import adaptive_parts_writer, adaptive_writer
from reference.encoder import Spec

import pyfilter
from gpu.group import Group


def written(count: int) -> Group:
    """Frames of few values with any choice that the format allows; the narrowest planes have halves of one column."""
    group = Group("adaptive, written")
    shapes = ((9, 8), (17, 8), (40, 8), (33, 9), (12, 10), (35, 12), (5, 9, 11), (34, 9, 8), (3, 4, 9), (700,))
    for seed in range(count):
        rng = random.Random(seed)
        spec = Spec(
            codec="adaptive",
            dtype=rng.choice(("f4", "f8")),
            dims=shapes[seed % len(shapes)],
            group_log2=rng.randrange(5),
            bound=0.25,
            step=0.5,
            sentinel=rng.choice((None, 0x7FC00000)),
        )
        group.check_frames([adaptive_writer.write_parts(spec, rng).join()])
        if seed % 6 == 0:
            group.check_frames([adaptive_parts_writer.random_frame(rng)[1]])
    return group


def lattice(rng: np.random.Generator, count: int, row: int, rows: int, dtype: str) -> NDArray[np.floating]:
    """A line of values in the order of a lattice: alike one row apart, and one plane of `rows` rows (0: no planes)."""
    at, place = np.arange(count), rng.normal(size=row) + 0.3 * rng.normal(size=(max(rows, 1), row))
    found = place[at // row % max(rows, 1), at % row] + 0.01 * np.sin(at // (row * max(rows, 1)))
    return (found + 0.003 * rng.normal(size=count)).astype(dtype)


def parts(every: int) -> Group:
    """Folded lines and components, with other kinds of tiles in each component, special values, and batches."""
    group, rng = Group("adaptive, parts"), np.random.default_rng(22)
    lags = ((4099, 77, 0), (70_001, 5000, 0), (30_011, 40, 24), (60_000, 64, 9), (9001, 33, 60), (140_001, 65_535, 0))
    predictors = ("auto", "regression", "interpolation")
    for number, (count, row, rows) in enumerate(lags[:: 1 if every < 4 else 2]):
        for dtype in ("f4", "f8"):
            line = lattice(rng, count, row, rows, dtype)
            missing = line.copy()
            missing[rng.integers(0, count, count // 20)] = np.nan
            missing[-3:] = 0, np.inf, 1e30
            three = np.stack([line, lattice(rng, count, 90, 0, dtype), rng.normal(size=count)], axis=1).astype(dtype)
            turn = number + (dtype == "f8")
            for predictor in predictors if every < 4 else predictors[turn % 3 : turn % 3 + 1]:
                effort = ("fast", "best")[number % 2]
                codec = pyfilter.Adaptive(absolute=(0.3, 0.01)[number % 2], predictor=predictor, effort=effort)
                group.check(line, codec, None, 1 + number % 3)
                group.check(missing, codec, np.nan, 2)
                group.check(three, codec, None, 2)
    for shape in ((2048, 7), (2047, 3), (50, 60, 2), (6, 20, 30, 3), (3, 4, 12, 30, 2), (4, 30, 20, 33)):
        values = np.cumsum(rng.standard_normal(shape), axis=0).astype(np.float32)
        group.check(values, pyfilter.Adaptive(absolute=0.05), None, 2)
    return group
