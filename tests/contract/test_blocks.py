# SPDX-License-Identifier: BSD-3-Clause
"""2-D and 3-D blocks at the edges of an array, and blocks with any number of special values of each kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import pyfilter

from .fields import MODES, Case, hunt, levels_here, nearby
from .judge import check_case

Array = NDArray[Any]
FILL = -999.0
DTYPES = pytest.mark.parametrize("dtype", ["f4", "f8"])


def payload(values: Array, codec: pyfilter.Codec, level: str, fill: Any = None) -> bytes:
    """A frame without its header, in which the shape is."""
    with pyfilter.config(cpu_level=level):
        frame = pyfilter.encode(values, codec, fill)
    assert not pyfilter.frame_info(frame).stored_raw
    return frame[8 * frame[7] :]


def shapes(block_dims: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Extents shorter than a block, around one and two blocks, and rows of more blocks than are encoded together."""
    extent = st.integers(1, 19)
    row = extent | st.integers(1, 140)
    return st.tuples(st.integers(1, 3), *[extent] * (block_dims - 1), row)


def padded(values: Array, block_dims: int) -> Array:
    """The array with its edges repeated up to whole blocks."""
    edge = {2: 8, 3: 4}[block_dims]
    width = [(0, 0)] * (values.ndim - block_dims) + [(0, -n % edge) for n in values.shape[-block_dims:]]
    return np.pad(values, width, mode="edge")


@pytest.mark.parametrize("block_dims", [2, 3])
@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "f4", "f8"])
@given(data=st.data())
@hunt(60)
def test_padding(dtype: str, block_dims: int, data: st.DataObject) -> None:
    """Blocks at an edge are those of the array with its edges repeated."""
    shape = data.draw(shapes(block_dims))
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 16)))
    values = rng.integers(0, 2, shape).astype(dtype)
    codecs: list[pyfilter.Codec] = [pyfilter.Lossless(block_dims=block_dims)]
    if dtype[0] == "f":
        values *= np.dtype(dtype).type(data.draw(st.sampled_from((1e-3, 1.5))))
        values[rng.random(shape) < data.draw(st.sampled_from((0.0, 0.02, 0.5)))] = FILL
        codecs = [pyfilter.Cuszp2(absolute=0.25, mode=mode, block_dims=block_dims) for mode in MODES]
    values = np.concatenate([np.zeros((40, *shape[1:]), dtype), values])  # which take no bytes
    fill = FILL if dtype[0] == "f" else None
    for codec in codecs:
        for level in levels_here():
            with pyfilter.config(cpu_level=level):
                frame = pyfilter.encode(values, codec, fill)
            if pyfilter.frame_info(frame).stored_raw:  # far more padding than values
                continue
            assert frame[8 * frame[7] :] == payload(padded(values, block_dims), codec, level, fill)


@pytest.mark.parametrize("block_dims", [1, 2, 3])
@DTYPES
@given(data=st.data())
@hunt(100)
def test_special_values(dtype: str, block_dims: int, data: st.DataObject) -> None:
    """Any number of sentinels, NaNs, values out of reach and near misses of a code in a block, on every level."""
    kind = np.dtype(dtype)
    shape = data.draw(shapes(block_dims))
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 16)))
    bound = 2.0**-7
    # near the end of the reach the code next to a value's own is tried, and may fit or not
    size = data.draw(st.sampled_from((3.0, bound * 2.0 ** (kind.itemsize * 6 - 6), bound * 2.0 ** (kind.itemsize * 6))))
    values = nearby((size * rng.uniform(0.99, 1, shape)).astype(kind), rng.integers(-3, 4, shape))
    for special in (FILL, np.nan, np.inf, 1e30):
        share = data.draw(st.sampled_from((0.0, 0.02, 0.2, 0.9, 1.0)))
        values[rng.random(shape) < share * rng.random()] = special
    if data.draw(st.booleans()):
        values[:, ..., : shape[-1] // 2] = FILL  # whole blocks of it
    mode = data.draw(st.sampled_from(MODES))
    fill = data.draw(st.sampled_from((None, kind.type(FILL))))
    case = Case(values, pyfilter.Cuszp2(absolute=bound, mode=mode, block_dims=block_dims), fill)
    frames = set()
    for level in levels_here():
        with pyfilter.config(cpu_level=level):
            frames.add(pyfilter.encode(values, case.codec, fill))
            check_case(case)
    assert len(frames) == 1
