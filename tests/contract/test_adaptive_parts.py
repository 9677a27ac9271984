# SPDX-License-Identifier: BSD-3-Clause
"""Adaptive's parts (docs/format.md, section 14.1): components with models of their own, and lines that are folded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import pyfilter

from .judge import bits

Array = NDArray[Any]
FIXED_HEADER, PARTS = 56, 2


def lattice(rng: np.random.Generator, count: int, row: int, rows: int, noise: float) -> Array:
    """Values in the order of a lattice: alike one row apart, or one plane of `rows` rows (0: there are no planes)."""
    place = rng.normal(size=row) + 0.3 * rng.normal(size=(max(rows, 1), row))
    at = np.arange(count)
    if rows == 0:
        found = place[0, at % row] + 0.01 * np.sin(at // row)
    else:
        found = place[at // row % rows, at % row] + 0.01 * np.sin(at // (row * rows))
    values: Array = found + noise * rng.normal(size=count)
    return values


def folds(frame: bytes) -> list[tuple[int, int]]:
    """Row and rows of each part of a frame; none where it has no heads."""
    if frame[4] != 11 or frame[49] != PARTS:
        return []
    rank = frame[11]
    extents = np.frombuffer(frame, "<u8", rank, FIXED_HEADER)
    parts = int(extents[-1]) if rank > 1 else 1
    heads = np.frombuffer(frame, "<u4", 2 * parts, FIXED_HEADER + 8 * rank)[::2]
    return [(int(head) & 0xFFFF, int(head) >> 16 & 0x1FFF) for head in heads]


def check(values: Array, bound: float, frame: bytes) -> Array:
    decoded: Array = pyfilter.decode(frame)
    usual = np.isfinite(values)
    # the differences of f4 are exact in f8; those of f8 are too small here to hide an error of the bound
    difference = np.abs(decoded[usual].astype("f8") - values[usual].astype("f8"))
    assert difference.max(initial=0) <= bound
    assert np.array_equal(bits(decoded[~usual]), bits(values[~usual]))
    return decoded


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    ("count", "row", "rows"),
    [(9001, 77, 0), (40_003, 3001, 0), (50_021, 40, 24)],
)
def test_lines_with_lags_are_folded(dtype: str, count: int, row: int, rows: int) -> None:
    """The last row or plane is not full. A range of values is that of all. Multiples of a lag are lags, too."""
    values = lattice(np.random.default_rng(5), count, row, rows, 0.003).astype(dtype)
    frame = bytes(pyfilter.encode(values, pyfilter.Adaptive(absolute=0.01)))
    [(found, _)] = folds(frame)
    assert found != 0
    assert found % row == 0
    decoded = check(values, 0.01, frame)
    for start, stop in ((0, 1), (count - 1, count), (count // 3, count // 3 + 1000), (5, 5)):
        assert np.array_equal(pyfilter.decode(frame, start, stop), decoded[start:stop])


def test_each_component_has_lags_of_its_own() -> None:
    rng = np.random.default_rng(6)
    values = np.stack([lattice(rng, 20_011, 90, 0, 0.003), rng.normal(size=20_011)], axis=1).astype("f4")
    frame = bytes(pyfilter.encode(values, pyfilter.Adaptive(absolute=0.01)))
    [(row, _), (none, _)] = folds(frame)
    assert row != 0
    assert row % 90 == 0
    assert none == 0
    check(values, 0.01, frame)
    apart = [len(pyfilter.encode(np.ascontiguousarray(part), pyfilter.Adaptive(absolute=0.01))) for part in values.T]
    assert len(frame) < 1.02 * sum(apart)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_bound_holds_for_parts(data: Any) -> None:
    """Lines around the length from which folds are looked for, with special values anywhere."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dtype = data.draw(st.sampled_from(("f4", "f8")))
    components = data.draw(st.integers(1, 7))
    count = data.draw(st.one_of(st.integers(1, 70), st.integers(4090, 9000)))
    row = data.draw(st.integers(32, 400))
    rows = data.draw(st.sampled_from((0, 8, 9)))
    values = np.stack([lattice(rng, count, row, rows, 0.01) for _ in range(components)], axis=1).astype(dtype)
    for special in data.draw(st.lists(st.sampled_from((np.nan, np.inf, -1e30, 0.0)), max_size=2)):
        values[rng.random(values.shape) < data.draw(st.sampled_from((0.001, 0.3)))] = special
    values[-1] = data.draw(st.sampled_from((0.0, 1.0, np.nan)))
    if components == 1:
        values = values[:, 0]
    bound = data.draw(st.sampled_from((1.0, 0.01, 1e-4)))
    predictor, effort = (
        data.draw(st.sampled_from(("auto", "regression", "interpolation"))),
        data.draw(st.sampled_from(("best", "fast"))),
    )
    frame = pyfilter.encode(values, pyfilter.Adaptive(absolute=bound, predictor=predictor, effort=effort))
    check(values, bound, bytes(frame))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_kept_values_of_parts_come_back_exactly(dtype: str) -> None:
    """A chunk that is written in part: the other values keep their bits, under a smaller bound, too."""
    rng = np.random.default_rng(8)
    line = lattice(rng, 9001, 77, 0, 0.003)
    for values in (line, np.stack([line, rng.normal(size=9001), line[::-1]], axis=1)):
        before = pyfilter.encode(values.astype(dtype), pyfilter.Adaptive(absolute=0.01))
        decoded = pyfilter.decode(before)
        for bound in (0.01, 0.003):
            written = np.arange(values.shape[0]) >= 8000
            wanted = decoded.copy()
            wanted[written] += np.asarray(0.5, dtype)
            after = pyfilter.encode(wanted, pyfilter.Adaptive(absolute=bound), over=before)
            assert folds(bytes(after)) == folds(bytes(before)) != []
            again = pyfilter.decode(after)
            assert np.array_equal(bits(again[~written]), bits(decoded[~written]))
            assert np.abs(again[written].astype("f8") - wanted[written].astype("f8")).max() <= bound
