# SPDX-License-Identifier: BSD-3-Clause
"""Adaptive frames that the library makes of fields: the reference decoder gives the same bits, at every CPU level.

The library is the one of test_library.py.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from .decoder import ADAPTIVE, decode, parse_header
from .library import Library, LibraryError, Request
from .located import needs_library

Array = NDArray[Any]
pytestmark = needs_library

LEVELS = ("baseline", "avx2", "avx512")
REGRESSION, INTERPOLATION = 1, 2
SHAPES = ((2500,), (45, 50), (12, 13, 16), (2, 6, 9, 15), (700, 3))
FILL = -999.0


def field(shape: tuple[int, ...], dtype: str) -> Array:
    """Waves along every axis, and noise a thousandth as large."""
    axes = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij")
    smooth = sum((a + 1) * np.sin(axis / (3 + 2 * a)) for a, axis in enumerate(axes))
    noise = np.random.default_rng(math.prod(shape)).normal(size=shape)
    found: Array = (smooth + 0.003 * noise + 20).astype(dtype)
    return found


def request_for(values: Array, bound: float, predictor: int, fast: bool, fill: float | None) -> Request:
    request = Request(codec=ADAPTIVE, dtype=values.itemsize // 4, bound_mode=1, bound=bound, rank=values.ndim)
    request.parameters[0], request.parameters[1] = predictor, int(fast)
    request.dims[: values.ndim] = values.shape
    if fill is not None:
        request.has_fill = 1
        request.fill = int(np.array(fill, values.dtype).view(f"u{values.itemsize}"))
    return request


@functools.lru_cache(maxsize=4)
def decoded(frame: bytes) -> Array:
    """What the reference decoder, which is slow, makes of a frame: once for each."""
    found = decode(frame)
    found.setflags(write=False)
    return found


def frames_of(library: Library, values: Array, request: Request) -> bytes:
    """The frame; the same at all levels, decoded alike at all levels and by the reference."""
    frames = set()
    levels = []
    for level in LEVELS:
        try:
            library.configure("cpu_level", level)
        except LibraryError:
            continue
        levels.append(level)
        frames.add(library.encode(request, values))
    assert len(frames) == 1
    (frame,) = frames
    whole = decoded(frame).tobytes()
    for level in levels:
        library.configure("cpu_level", level)
        assert library.decode(frame, len(whole)) == whole, level
    return frame


def check_bound(values: Array, frame: bytes, bound: float, fill: float | None) -> None:
    found = decoded(frame)
    exact = ~np.isfinite(values) if fill is None else ~np.isfinite(values) | (values == fill)
    as_bits = f"u{values.itemsize}"
    assert (found[exact].view(as_bits) == values[exact].view(as_bits)).all()
    error = np.abs(found[~exact].astype(np.float64) - values[~exact].astype(np.float64))
    assert error.size == 0 or error.max() <= bound


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("predictor", "fast"), list(itertools.product((1, 2), (False, True))))
def test_fields(library: Library, shape: tuple[int, ...], dtype: str, predictor: int, fast: bool) -> None:
    values = field(shape, dtype)
    for exponent in (1, 2, 3, 4, 6) if dtype == "f4" else (2, 4):
        bound = 10.0**-exponent * float(np.ptp(values))
        frame = frames_of(library, values, request_for(values, bound, predictor, fast, None))
        check_bound(values, frame, bound, None)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("predictor", [REGRESSION, INTERPOLATION])
def test_special_values(library: Library, shape: tuple[int, ...], predictor: int, declared: bool) -> None:
    dtype = "f4" if declared else "f8"
    values = field(shape, dtype)
    flat = values.reshape(-1)
    fill = FILL if declared else 1e30
    flat[(np.arange(flat.size) // 37) % 5 == 1] = fill
    flat[:3] = np.nan, np.inf, -np.inf
    flat[200:900:131] = 3e7  # far off
    bound = 0.002
    frame = frames_of(library, values, request_for(values, bound, predictor, False, fill if declared else None))
    check_bound(values, frame, bound, fill)


@pytest.mark.parametrize(("predictor", "least"), [(REGRESSION, 4), (INTERPOLATION, 3)])
def test_some_are_adaptive(library: Library, predictor: int, least: int) -> None:
    """These fields are large enough that tables and weights pay: else the frames above would be those of lorenzo."""
    found = 0
    for shape in SHAPES:
        values = field(shape, "f4")
        frame = library.encode(request_for(values, 1e-3, predictor, False, None), values)
        found += parse_header(frame).codec == ADAPTIVE
    assert found >= least
