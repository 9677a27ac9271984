# SPDX-License-Identifier: BSD-3-Clause
"""Arrays whose frames are thousands of times smaller: readers must not take them for damaged ones."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import pyfilter

BOUND = 1.0
CODECS = {
    "auto": pyfilter.Adaptive(absolute=BOUND),
    "regression": pyfilter.Adaptive(absolute=BOUND, predictor="regression"),
    "interpolation": pyfilter.Adaptive(absolute=BOUND, predictor="interpolation"),
    "fast": pyfilter.Adaptive(absolute=BOUND, effort="fast"),
    "lorenzo": pyfilter.Lorenzo(absolute=BOUND),
    "huffman": pyfilter.Lorenzo(absolute=BOUND, coder="huffman"),
    "hierarchical_delta": pyfilter.HierarchicalDelta(absolute=BOUND),
    "cuszp2": pyfilter.Cuszp2(absolute=BOUND),
    "progressive": pyfilter.Progressive(absolute=BOUND),
    "lossless": pyfilter.Lossless(),
    "ratio": pyfilter.Lossless(effort="ratio"),
}
SHAPES = ((300_000,), (70_000, 3), (300, 1024), (64, 64, 128), (96, 96, 96), (4, 33, 20, 64))


def arrays(shape: tuple[int, ...], dtype: str) -> dict[str, NDArray[np.floating]]:
    """Arrays of few different values, by what they are."""
    first, last = np.arange(shape[0], dtype=dtype), np.arange(shape[-1], dtype=dtype)
    sparse = np.zeros(shape, dtype)
    sparse.reshape(-1)[:5000] = np.random.default_rng(3).normal(0, 200, 5000)
    return {
        "zeros": np.zeros(shape, dtype),
        "columns": np.broadcast_to(last, shape).copy(),
        "planes": np.broadcast_to(first.reshape(-1, *[1] * (len(shape) - 1)) / 2, shape).copy(),
        "sparse": sparse,
    }


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CODECS)
def test_come_back(name: str, shape: tuple[int, ...]) -> None:
    """Frames, and ranges of them."""
    for dtype in ("f4", "f8"):
        for what, values in arrays(shape, dtype).items():
            frame = pyfilter.encode(values, CODECS[name])
            assert np.abs(pyfilter.decode(frame) - values).max() <= BOUND, (dtype, what, len(frame))
            part = pyfilter.decode(frame, 1000, 2000)
            assert np.abs(part - values.reshape(-1)[1000:2000]).max() <= BOUND, (dtype, what, len(frame))


@pytest.mark.parametrize("name", CODECS)
def test_in_files(name: str, tmp_path: Path) -> None:
    """A chunk that is written by the filter, and read by h5py and by pyfilter."""
    for what, values in arrays((96, 96, 96), "f4").items():
        path = tmp_path / f"{what}.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=values, chunks=values.shape, **CODECS[name])
        with h5py.File(path) as file:
            for found in (file["x"][()], pyfilter.read(file["x"])):
                assert np.abs(found - values).max() <= BOUND, what
