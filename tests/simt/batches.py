# SPDX-License-Identifier: BSD-3-Clause
"""Batches of different chunks, large enough to be divided in every possible way (core/cuda/sizes.cuh).

``python tests/simt/batches.py [CODEC ...]``: as tests/gpu/same_bytes.py.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pyfilter
from simt import arrays

if TYPE_CHECKING:
    from gpu.group import Group

Array = NDArray[Any]
CODECS = ["Cuszp2", "Lossless", "HierarchicalDelta", "Lorenzo", "Particles", "Progressive", "Adaptive"]
CHUNKS = 43  # more than a launch may have


def gridded(dtype: str, shape: tuple[int, ...]) -> list[Array]:
    """Smooth, noisy, constant, with missing values, incompressible."""
    rng = np.random.default_rng(7)
    made = []
    for i in range(CHUNKS):
        x = rng.standard_normal(shape) * 10.0 ** rng.integers(-2, 3)
        if i % 4 != 3:
            x = np.cumsum(x, axis=-1 if i % 2 else 0)
        if i % 7 == 4:
            x[:] = 2.5
        if i % 5 == 1:
            x.reshape(-1)[rng.integers(0, x.size, 1 + x.size // 40)] = rng.choice([np.nan, np.inf, 1e30])
        made.append(x.astype(dtype))
    made[9] = rng.integers(0, 256, made[0].nbytes, np.uint8).view(dtype).reshape(shape)
    return made


def positions(dtype: str, axes: int, count: int, chunks: int) -> list[Array]:
    """Sets of particles: large ones of clouds mostly, which are no frames of lorenzo, small ones of every kind."""
    from gpu import particle_cases as cases

    kinds = [cases.KINDS[i % len(cases.KINDS)] if count < 4096 or i % 5 == 3 else cases.cloud for i in range(chunks)]
    return cases.chunks(dtype, axes, count, kinds, 6, np.random.default_rng(8))


def groups(codecs: list[str]) -> Iterator[Group]:
    from gpu.group import Group, check_batch

    all_codecs: dict[str, list[pyfilter.Codec]] = {
        "Cuszp2": [pyfilter.Cuszp2(absolute=0.01), pyfilter.Cuszp2(relative=1e-3, block_dims=1)],
        "Lossless": [pyfilter.Lossless()],
        "HierarchicalDelta": [pyfilter.HierarchicalDelta(absolute=0.01), pyfilter.HierarchicalDelta(relative=1e-3)],
        "Lorenzo": [pyfilter.Lorenzo(absolute=0.01), pyfilter.Lorenzo(relative=1e-3, coder="huffman")],
        "Adaptive": [pyfilter.Adaptive(absolute=0.01), pyfilter.Adaptive(relative=1e-3, predictor="interpolation")],
        "Progressive": [pyfilter.Progressive(absolute=0.01), pyfilter.Progressive(errors="bounds")],
    }
    for name, those in all_codecs.items():
        if name not in codecs:
            continue
        group = Group(f"{name}, divided batches")
        small = name in ("Progressive", "Adaptive")
        line, volume = ((700, 3), (9, 10, 22)) if small else ((2500, 3), (21, 20, 22))
        for (dtype, shape), codec in itertools.product((("f4", line), ("f8", volume)), those):
            check_batch(group, gridded(dtype, shape), codec)
        if name == "Lorenzo":  # thread blocks share few frames of many tiles, and have many frames of few
            for dtype in ("f4", "f8"):
                check_batch(group, positions(dtype, 3, 30_000, 3), pyfilter.Lorenzo(absolute=0.01, predictor="columns"))
            for dtype, shape, predictor in (
                ("f4", (70, 72), "lorenzo2d"), ("f8", (9, 20, 64), "lorenzo3d"), ("f4", (2500, 3), "columns"),
            ):  # fmt: skip
                check_batch(group, gridded(dtype, shape)[:25], pyfilter.Lorenzo(absolute=0.01, predictor=predictor))
        yield group
    if "Particles" in codecs:
        group = Group("Particles, divided batches")
        for dtype, axes, order in (("f4", 3, "tile"), ("f4", 2, "chunk"), ("f8", 3, "tile"), ("f8", 2, "kept")):
            # of nine tiles each, so many that a group moves more chunks than it encodes; of one tile, tried by lorenzo
            for count, chunks in ((33_000, 14), (700, CHUNKS)):
                made = positions(dtype, axes, count, chunks)
                check_batch(group, made, pyfilter.Particles(relative=1e-3, order=order))
        yield group


if __name__ == "__main__":
    arrays.install()
    good = [group.report() for group in groups(sys.argv[1:] or CODECS)]
    print(f"{sum(good)} of {len(good)} groups identical on CPU and GPU")
    sys.exit(0 if good and all(good) else 1)
