# SPDX-License-Identifier: BSD-3-Clause
"""Cases of same_bytes.py for Lorenzo: arrays that are encoded or decoded in several runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

import pyfilter
from gpu.group import Group, check_batch


def residuals() -> Iterator[Group]:
    """Frames of more tiles than the model of a GPU decodes at a time, with residuals of every width."""
    rng = np.random.default_rng(31)
    group = Group("lorenzo, residuals of every width")
    scales = np.array([1.0, 30.0, 4000.0, 3e5])  # in quanta
    for dtype, shape in itertools.product(("f4", "f8"), ((210, 700), (37, 50, 70), (50_000, 3), (150_000,))):
        size = int(np.prod(shape))
        chunks = []
        for kind in range(4):
            runs = scales[rng.integers(0, 1 + kind, -(-size // 300))].repeat(300)[:size]
            values = (0.02 * runs * rng.standard_normal(size)).reshape(shape)
            values.reshape(-1)[rng.integers(0, size, 20 * (kind % 2))] = np.nan
            if kind == 3:
                values[: shape[0] // 2] = 0  # blocks without residuals
            chunks.append(values.astype(dtype))
            group.check(chunks[-1], pyfilter.Lorenzo(absolute=0.01), ranges=4)
        check_batch(group, [chunk[: shape[0] // 4] for chunk in chunks * 2], pyfilter.Lorenzo(absolute=0.01))
    yield group


def narrow(quick: bool) -> Iterator[Group]:
    """Arrays of few columns, some of which planes suit best, in batches that take several runs of streams."""
    rng = np.random.default_rng(19)
    group = Group("narrow arrays in several runs")
    for dtype, columns in (("f4", 3), ("f8", 4)):
        rows = (2 << 20) // columns if quick else (5 << 20) // columns
        chunks = []
        for i in range(20):
            walk = np.cumsum(rng.standard_normal((rows, 1)), axis=0)
            apart = rng.standard_normal((rows, columns)) * 10.0 ** rng.integers(-2, 3)
            chunks.append((walk * (0 if i % 5 else 50) + apart).astype(dtype))
        chunks[7][:] = 0
        for coder in ("rans", "huffman"):
            check_batch(group, chunks, pyfilter.Lorenzo(absolute=0.05, coder=coder))
    yield group
