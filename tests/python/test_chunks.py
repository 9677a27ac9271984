# SPDX-License-Identifier: BSD-3-Clause
"""Chunk shapes and grids."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyfilter
from pyfilter._chunks import layout

extents = st.lists(st.integers(1, 3000), min_size=1, max_size=4)


CODECS: list[pyfilter.Codec] = [pyfilter.Lossless(block_dims=n) for n in (1, 2, 3)]
CODECS += [
    pyfilter.HierarchicalDelta(absolute=1.0, predictor=name)
    for name in ("auto", "chain", "lorenzo2d", "lorenzo3d", "columns")
]


@given(extents, st.sampled_from([1, 2, 4, 8]), st.sampled_from(CODECS))
def test_chosen_chunks_fit_the_data_and_the_target(shape: list[int], itemsize: int, codec: pyfilter.Codec) -> None:
    chunk = layout.choose(shape, itemsize, None, codec.edges)
    assert all(1 <= edge <= extent for edge, extent in zip(chunk, shape, strict=True))
    size = math.prod(chunk) * itemsize
    assert size <= layout.TARGET_BYTES
    whole = math.prod(shape) * itemsize
    assert size == whole or size >= layout.TARGET_BYTES / 8
    # parts of equal size: little of the last chunk is padding
    parts = [-(-extent // edge) for extent, edge in zip(shape, chunk, strict=True)]
    assert math.prod(chunk) * math.prod(parts) * itemsize <= 2.5 * whole


def test_a_small_array_is_one_chunk() -> None:
    assert layout.choose((100, 200), 4) == (100, 200)


def test_long_arrays_are_cut_at_whole_blocks() -> None:
    assert layout.choose((10**9,), 4)[0] % 32 == 0
    assert all(edge % 8 == 0 for edge in layout.choose((5000, 5000), 8, None, (8, 8)))
    assert all(edge % 4 == 0 for edge in layout.choose((500, 500, 500), 4, None, (4, 4, 4)))


def test_long_arrays_are_cut_at_whole_tiles() -> None:
    assert all(edge % 64 == 0 for edge in layout.choose((5000, 5000), 8, None, (8, 64, 64)))
    found = layout.choose((3, 500, 500, 500), 4, None, (8, 16, 32))
    assert [edge % side for edge, side in zip(found[1:], (8, 16, 32), strict=True)] == [0, 0, 500 % 32]
    rows, columns = layout.choose((10**7, 3), 8, None, (1024, 4))
    assert (rows % 1024, columns) == (0, 3)


def test_unlimited_dimensions_have_short_chunks() -> None:
    assert layout.choose((100, 1800, 3600), 4, (None, 1800, 3600))[0] == 1
    assert layout.choose((0, 64, 128), 4, (None, 64, 128)) == (32, 64, 128)
    assert layout.choose((10, 64, 128), 4, (None, 64, 128)) == (10, 64, 128)
    assert layout.choose((0,), 4, (None,)) == (262144,)


def test_a_fixed_dimension_without_extent_counts_by_its_limit() -> None:
    assert layout.choose((0, 5), 8, (7, 5)) == (7, 5)
    assert layout.choose((0,), 8) == (1,)


@given(extents.filter(lambda shape: math.prod(shape) < 20_000), st.data())
@settings(deadline=None)
def test_slabs_cover_every_value_once(shape: list[int], data: st.DataObject) -> None:
    chunk = [data.draw(st.integers(1, extent)) for extent in shape]
    limit = data.draw(st.integers(1, 100_000))
    seen = np.zeros(shape, dtype=int)
    for slab in layout.slabs(shape, chunk, 4, limit):
        seen[slab] += 1
        for part, edge, extent in zip(slab, chunk, shape, strict=True):
            assert part.start % edge == 0
            assert part.stop % edge == 0 or part.stop == extent
    assert np.all(seen == 1)


@given(extents.filter(lambda shape: math.prod(shape) < 20_000), st.integers(1, 100_000))
@settings(deadline=None)
def test_slabs_of_single_values_are_runs_in_order(shape: list[int], limit: int) -> None:
    order = np.arange(math.prod(shape)).reshape(shape)
    runs = [order[slab].ravel() for slab in layout.slabs(shape, [1] * len(shape), 4, limit)]
    np.testing.assert_array_equal(np.concatenate(runs), order.ravel())


def test_slabs_of_a_scalar() -> None:
    assert list(layout.slabs((), (), 4, 100)) == [()]


@pytest.mark.parametrize(
    ("region", "expected"),
    [
        (None, [(0, 0), (0, 4), (3, 0), (3, 4)]),
        ((slice(1, 3), slice(4, 5)), [(0, 4)]),
        ((slice(2, 4), slice(0, 1)), [(0, 0), (3, 0)]),
        ((slice(2, 2), slice(0, 1)), []),
    ],
)
def test_origins(region: layout.Region | None, expected: list[tuple[int, int]]) -> None:
    assert list(layout.origins((5, 7), (3, 4), region)) == expected


def test_boxes_end_at_the_edge() -> None:
    assert layout.box((3, 4), (3, 4), (5, 7)) == (slice(3, 5), slice(4, 7))
