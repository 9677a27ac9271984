# SPDX-License-Identifier: BSD-3-Clause
"""Adaptive frames with heads of parts that the library makes: components, and lines folded into planes and volumes.

The library is the one of test_library.py; the reference decoder gives the same bits, at every CPU level.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from .adaptive import Part, payload_parts
from .adaptive_grid import PARTS
from .adaptive_parts_writer import Head, write_parts_frame
from .decoder import ADAPTIVE, PARTS_VERSION, parse_header
from .encoder import Spec
from .library import Library
from .located import needs_library
from .test_adaptive import FILL, INTERPOLATION, REGRESSION, check_bound, decoded, frames_of, request_for
from .test_library import check_ranges

Array = NDArray[Any]
pytestmark = needs_library

#: values, and the row and rows that they are made with; none is a multiple of the row
PLANES = ((6001, 40, 0), (9001, 57, 0), (19999, 128, 0))
VOLUMES = ((9000, 41, 9), (12345, 36, 30), (20011, 33, 24))


def lattice(count: int, row: int, rows: int, dtype: str, seed: int = 1) -> Array:
    """A line that is rough along rows of a plane or volume, and smooth from row to row and plane to plane."""
    rng, i = np.random.default_rng(seed), np.arange(count)
    x, y = i % row, i // row
    z = y // rows if rows else 0 * y
    y = y % rows if rows else y
    one, other = rng.normal(size=(2, row)) * 3
    smooth = one[x] * np.cos(y / 3 + z / 5) + other[x] * np.sin(z / 4 - y / 4)
    found: Array = (smooth + 0.05 * rng.normal(size=count) + 20).astype(dtype)
    return found


def tracks(count: int, components: int, dtype: str) -> Array:
    """Components far from each other, each of another size."""
    rng = np.random.default_rng(count)
    steps = rng.normal(size=(count, components)).cumsum(axis=0)
    found: Array = (steps * np.arange(1, components + 1) + 300 * np.arange(components) - 100).astype(dtype)
    return found


def parts_of(frame: bytes) -> list[Part]:
    header = parse_header(frame)
    assert (header.codec, frame[4], header.parameters[:3]) == (ADAPTIVE, PARTS_VERSION, bytes((1, PARTS, 0)))
    return payload_parts(frame, header)


def spec_of(values: Array) -> Spec:
    return Spec(codec="adaptive", dtype=values.dtype.str[1:], dims=values.shape, axes=PARTS)


def check_some_ranges(library: Library, values: Array, frame: bytes) -> None:
    check_ranges(library, spec_of(values), frame, decoded(frame).tobytes(), random.Random(1), "auto")


@pytest.mark.parametrize("count", [1, 33, 2047, 2048, 5000, 20001])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("predictor", [REGRESSION, INTERPOLATION])
def test_components(library: Library, count: int, dtype: str, predictor: int) -> None:
    values = tracks(count, 3, dtype)
    for bound in (1.0, 0.01)[: 1 if count > 10000 else 2]:
        frame = frames_of(library, values, request_for(values, bound, predictor, False, None))
        check_bound(values, frame, bound, None)
        if count < 2048:  # too few values for parts of their own
            assert (frame[4], frame[49]) == (7, 0)
            continue
        parts = parts_of(frame)
        assert len(parts) == 3
        offsets = [float(np.frombuffer(part.data, "<f8", 1)[0]) for part in parts]
        assert offsets == [float(np.dtype(dtype).type(v.min() / 2.0 + v.max() / 2.0)) for v in values.T.astype("f8")]
        check_some_ranges(library, values, frame)


@pytest.mark.parametrize("shape", [(2048, 2), (50, 41, 2), (9, 15, 16, 3), (2, 6, 12, 15, 4), (2050, 7)], ids=str)
def test_components_of_every_kind(library: Library, shape: tuple[int, ...]) -> None:
    values = tracks(int(np.prod(shape[:-1])), shape[-1], "f4").reshape(shape)
    frame = frames_of(library, values, request_for(values, 0.01, REGRESSION, True, None))
    check_bound(values, frame, 0.01, None)
    assert len(parts_of(frame)) == shape[-1]
    check_some_ranges(library, values, frame)


@pytest.mark.parametrize(("count", "row", "rows"), PLANES + VOLUMES)
@pytest.mark.parametrize(("dtype", "predictor"), [("f4", REGRESSION), ("f8", INTERPOLATION)])
def test_folds(library: Library, count: int, row: int, rows: int, dtype: str, predictor: int) -> None:
    values = lattice(count, row, rows, dtype)
    frame = frames_of(library, values, request_for(values, 0.02, predictor, False, None))
    check_bound(values, frame, 0.02, None)
    (part,) = parts_of(frame)
    assert (part.grid.row, part.grid.rows) == (row, rows)
    check_some_ranges(library, values, frame)


def test_folds_of_components(library: Library) -> None:
    """A plane, a volume, and a line: each component has its own axes."""
    count = 9001
    walk = np.random.default_rng(1).normal(size=count).cumsum()
    values = np.stack([lattice(count, 57, 0, "f4"), lattice(count, 41, 9, "f4"), walk.astype("f4")], axis=1)
    frame = frames_of(library, values, request_for(values, 0.02, 0, False, None))
    check_bound(values, frame, 0.02, None)
    assert [(part.grid.row, part.grid.rows) for part in parts_of(frame)] == [(57, 0), (41, 9), (0, 0)]
    check_some_ranges(library, values, frame)


@pytest.mark.parametrize(("count", "row", "rows"), [PLANES[1], VOLUMES[0]])
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("predictor", [REGRESSION, INTERPOLATION])
def test_special_values(library: Library, count: int, row: int, rows: int, predictor: int, declared: bool) -> None:
    """Also in the last row, beside places that have no value. Zeros are the sentinel that is not declared."""
    dtype = "f4" if declared else "f8"
    values, fill = lattice(count, row, rows, dtype), FILL if declared else 0.0
    values[(np.arange(count) // 37) % 11 == 1] = fill
    values[:3] = values[-3:] = np.nan, np.inf, -np.inf
    values[200:900:131] = 1e4  # far off
    values[-20:-9] = fill
    frame = frames_of(library, values, request_for(values, 0.02, predictor, False, fill if declared else None))
    check_bound(values, frame, 0.02, fill)
    (part,) = parts_of(frame)
    assert part.grid.row in (row, row * rows)
    check_some_ranges(library, values, frame)


def test_special_values_of_components(library: Library) -> None:
    """One component has no finite value, another one the fill value alone."""
    values = tracks(2050, 5, "f8")
    values[:, 1], values[:, 3] = np.nan, FILL
    values[5:600:7, 0], values[::100, 2] = np.inf, FILL
    frame = frames_of(library, values, request_for(values, 0.02, REGRESSION, False, FILL))
    check_bound(values, frame, 0.02, FILL)
    offsets = [float(np.frombuffer(part.data, "<f8", 1)[0]) for part in parts_of(frame)]
    assert (offsets[1], offsets[3]) == (0, 0)
    check_some_ranges(library, values, frame)


@pytest.mark.parametrize("components", [1, 3])
def test_updates(library: Library, components: int) -> None:
    """A chunk whose largest values are written over keeps the axes of its parts, and the values that stay."""
    count = 6001
    before = np.stack([lattice(count, 40, 0, "f4", seed) for seed in range(components)], axis=1).squeeze()
    before[100:110] = 300
    request = request_for(before, 0.0, REGRESSION, False, None)
    request.bound_mode, request.bound = 2, 1e-4
    old = library.encode(request, before)
    values = decoded(old).copy()
    values[100:110] = 20
    frame = library.encode(request, values, old)
    assert library.decode(frame, values.nbytes) == decoded(frame).tobytes()
    heads = [[(part.grid.row, part.grid.rows) for part in parts_of(of)] for of in (old, frame)]
    assert heads[0] == heads[1] == [(40, 0)] * components
    kept = np.ones(count, bool)
    kept[100:110] = False
    header = parse_header(frame)
    assert header.carried_bound > header.bound
    assert np.array_equal(decoded(frame)[kept], values[kept])
    assert np.abs(decoded(frame)[~kept] - 20.0).max() <= header.bound


@pytest.mark.parametrize(("row", "rows"), [(32, 0), (350, 0), (32, 8), (43, 8), (32, 10)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_written_folds(library: Library, row: int, rows: int, dtype: str) -> None:
    """Any fold that 700 values allow, up to the longest lags."""
    spec = Spec(codec="adaptive", dtype=dtype, dims=(700,), bound=0.25, step=0.5, sentinel=0x501502F9)
    frame = write_parts_frame(spec, [Head(row, rows, 1)], random.Random(row + rows)).join()
    whole = decoded(frame).tobytes()
    assert library.decode(frame, len(whole)) == whole
    check_ranges(library, spec, frame, whole, random.Random(1), "auto")
