# SPDX-License-Identifier: BSD-3-Clause
"""`pyfilter.encode(..., over=frame)`: what a new frame promises for values that were kept from the old one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pyfilter

Array = NDArray[Any]
CODECS = (pyfilter.Cuszp2, pyfilter.HierarchicalDelta, pyfilter.Lorenzo, pyfilter.Progressive, pyfilter.Adaptive)
EACH = pytest.mark.parametrize("codec", CODECS)
FLOATS = ("f4", "f8")


def walk(rng: np.random.Generator, dtype: str, size: int = 300) -> Array:
    """Neighbours are alike; between -1000 and 1000."""
    values = np.cumsum(rng.normal(size=size))
    return np.asarray(1000 * values / np.abs(values).max()).astype(dtype)


@pytest.mark.parametrize(
    ("codec", "dtype"),
    [*((codec, dtype) for codec in CODECS for dtype in FLOATS), (pyfilter.HierarchicalDelta, "i4")],
)
def test_kept_values_move_no_further_than_the_bounds_allow(codec: Any, dtype: str) -> None:
    """Whatever codec wrote the old frame: its values move by at most the difference of both frames' bounds."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        before = CODECS[rng.integers(len(CODECS))] if dtype in FLOATS else codec
        frame = pyfilter.encode(walk(rng, dtype), before(relative=float(rng.choice((0.5, 1e-2, 1e-3)))))
        old, decoded = pyfilter.frame_info(frame), pyfilter.decode(frame)
        kept = rng.random(decoded.size) >= rng.choice((0.01, 0.3))
        written = (rng.choice((1, 100, 3000)) * rng.normal(size=decoded.size)).astype(dtype)
        made = pyfilter.encode(
            np.where(kept, decoded, written), codec(relative=float(rng.choice((0.5, 1e-2, 1e-3)))), over=frame
        )
        new, after = pyfilter.frame_info(made), pyfilter.decode(made)
        moved = np.abs(after.astype("f8") - decoded.astype("f8"))[kept].max(initial=0)
        assert moved <= max(0.0, new.error_bound - old.error_bound) * (1 + 2.0**-30), (old, new)


@EACH
def test_a_bit_exact_frame_names_the_error_of_kept_values(codec: Any) -> None:
    """All values are one that was kept: no range, so nothing may move; the kept value is as far off as it was."""
    frame = pyfilter.encode(walk(np.random.default_rng(4), "f4"), codec(relative=1e-3))
    old, decoded = pyfilter.frame_info(frame), pyfilter.decode(frame)
    now = np.full_like(decoded, decoded[150])
    made = pyfilter.encode(now, codec(relative=1e-3), over=frame)
    info = pyfilter.frame_info(made)
    assert info.bound == 0
    assert old.error_bound <= info.error_bound <= old.error_bound * (1 + 1e-6)
    assert np.array_equal(pyfilter.decode(made), now)


@pytest.mark.parametrize("dtype", FLOATS)
@EACH
def test_the_error_of_a_kept_end_does_not_widen_the_range(codec: Any, dtype: str) -> None:
    """The lowest value was kept, and is decoded below what was written, often to 0; the highest value is new."""
    rng = np.random.default_rng(5)
    tried = 0
    while tried < 40:
        values = walk(rng, dtype)
        frame = pyfilter.encode(values, codec(relative=0.5))
        decoded = pyfilter.decode(frame)
        if not decoded.min() < values.min():
            continue
        tried += 1
        kept = decoded == decoded.min()
        high = float(values.max()) + float(rng.uniform(2, 20) * (values.max() - values.min()))
        new = rng.uniform(0, high, values.size).astype(dtype)
        written = np.where(kept, values, new)
        made = pyfilter.encode(np.where(kept, decoded, new), codec(relative=0.5), over=frame)
        spread = float(written.max()) - float(written.min())
        assert pyfilter.frame_info(made).bound <= 0.5 * spread
