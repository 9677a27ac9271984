# SPDX-License-Identifier: BSD-3-Clause
"""Bound mode psnr: a hunt for a chunk whose signal-to-noise ratio is lower than asked. Neighbour: test_bound.py."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyfilter

from .fields import Case, float_cases, hunt
from .judge import asked_bound, check_case, is_fill, ten_to

CODECS = (pyfilter.Cuszp2, pyfilter.HierarchicalDelta)
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def check_ratio(case: Case, psnr: float) -> None:
    """Mean square error <= range^2 * 10^(-psnr / 10), in exact arithmetic but for that power."""
    x = case.values.reshape(-1)
    y = pyfilter.decode(pyfilter.encode(case.values, case.codec, case.fill)).reshape(-1)
    fill = None if case.fill is None else np.asarray(case.fill).astype(x.dtype).reshape(1)
    counted = np.isfinite(x) & ~is_fill(x, fill)
    pairs = [(Fraction(float(a)), Fraction(float(b))) for a, b in zip(x[counted], y[counted], strict=True)]
    if not pairs:
        return
    squares = sum((a - b) ** 2 for a, b in pairs)
    spread = max(a for a, _ in pairs) - min(a for a, _ in pairs)
    assert squares <= len(pairs) * spread**2 * ten_to(Fraction(psnr) / -10), f"{case}: lower than {psnr} dB"


@pytest.mark.parametrize("kind", CODECS, ids=lambda kind: kind.codec_name)
@pytest.mark.parametrize("dtype", [F32, F64], ids=["f32", "f64"])
@given(data=st.data())
@hunt(200)
def test_psnr(dtype: np.dtype[Any], kind: Any, data: st.DataObject) -> None:
    case = data.draw(float_cases(dtype))
    near = st.floats(1, 300)
    psnr = data.draw(st.one_of(near, st.sampled_from((20.0, 40.0, 60.0, 100.0, 5e-324, 1e-3, 6.02, 6000.0)), near))
    case = replace(case, codec=kind(psnr=psnr))
    info = check_case(case)
    if case.values.size <= 600:
        check_ratio(case, psnr)
    if info.step != 0:
        assert info.bound <= float(np.finfo(dtype).max) / 2


@pytest.mark.parametrize("kind", CODECS, ids=lambda kind: kind.codec_name)
def test_little_is_given_away(kind: Any) -> None:
    """The bound is the one that the ratio means, to about twelve digits."""
    values = np.linspace(-3, 4, 5000)
    for psnr in (0.25, 1.0, 20.0, 60.0, 93.7, 150.0, 200.0):
        codec = kind(psnr=psnr)
        info = pyfilter.frame_info(pyfilter.encode(values, codec))
        asked = asked_bound(values, codec, None)
        assert asked * (1 - Fraction(1, 10**11)) < Fraction(info.bound) <= asked


def test_what_may_be_asked() -> None:
    for wrong in (0, -1.0, 6000.1, float("inf"), float("nan"), "60"):
        with pytest.raises(ValueError, match="psnr must be a"):
            pyfilter.Cuszp2(psnr=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="exactly one of absolute=, relative= or psnr="):
        pyfilter.Cuszp2(psnr=60, relative=0.1)
