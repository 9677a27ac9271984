# SPDX-License-Identifier: BSD-3-Clause
"""Values that were rounded before are recognised, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyfilter.rewrite.rounding import described

NOISE = np.random.default_rng(1).normal(280.0, 15.0, 50_000)
F32 = NOISE.astype(np.float32)
PACKED = np.rint((NOISE - 200) / 0.0037).astype(np.int16)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (F32, ""),
        (NOISE, ""),
        (np.round(F32, 2), "multiples of 0.01"),
        (np.round(NOISE, 3), "multiples of 0.001"),
        (np.round(F32), "multiples of 1"),
        (np.round(F32, 1).astype(np.float64), "multiples of 0.1"),
        (PACKED * np.float32(0.0037) + np.float32(200), "steps of 0.0037"),
        (PACKED * 0.0037 + 200.0, "steps of 0.0037"),
        ((F32 * np.float32(1.1)).astype(np.float32), ""),
        (np.exp(F32 / 10).view(np.uint32) & np.uint32(0xFFFFF000), "the last 12 of 23 mantissa bits are zero"),
        (F32.astype(np.float64), "float32 in float64"),
        (np.zeros(100, np.float32), ""),
        (np.repeat(np.array([0.5, 1.5], np.float32), 100), ""),
        (np.full(100, np.nan, np.float32), ""),
    ],
)
def test_what_values_were_rounded_to(values: Any, expected: str) -> None:
    given = values.view(np.float32) if values.dtype == np.uint32 else values
    assert described([given]) == expected


def test_missing_values_do_not_count() -> None:
    values = np.round(F32, 2)
    values[::7] = 1e20
    values[::11] = np.nan
    assert described([values], [np.float32(1e20)]) == "multiples of 0.01"
    assert described([]) == ""
