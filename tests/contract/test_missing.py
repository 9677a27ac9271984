# SPDX-License-Identifier: BSD-3-Clause
"""hierarchical_delta: missing values in every tile shape, and what they cost. Neighbour: test_packed.py.

Costs are compared in bytes of frames, which are the same on every machine.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import pyfilter
from pyfilter import Cuszp2, HierarchicalDelta

from .fields import Case, family, from_bits, hunt, levels_here, special_patterns
from .judge import bits, check_case
from .test_packed import EACH, shapes, tiles_of

Array = NDArray[Any]
Bools = NDArray[np.bool_]
DTYPES = pytest.mark.parametrize("dtype", ["f4", "f8"])
FILL = -999.0
BOUND = 2.0**-7
#: by predictor: a shape of whole tiles, and how many
WHOLE = {"chain": ((1 << 18,), 64), "lorenzo2d": ((512, 512), 64), "lorenzo3d": ((32, 96, 96), 72)}
WHOLE["columns"] = ((1 << 16, 4), 64)
TILED = pytest.mark.parametrize("predictor", list(WHOLE))


def coast(shape: tuple[int, ...]) -> Bools:
    """Bays and islands over a third of the last two dimensions, the same for all others, as in an ocean model."""
    index = np.indices(shape)[-2:]
    height = sum(np.sin(axis / (17 + 5 * i)) for i, axis in enumerate(index))
    return np.asarray(height > np.quantile(height, 0.65))


def draw_mask(shape: tuple[int, ...], data: st.DataObject) -> Bools:
    """Masks of one kind, the other way round, or two of them together."""
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 16)))
    index = np.indices(shape)
    kinds = ("random", "coast", "lines", "slabs", "edge", "run", "one", "checkers")
    mask = np.zeros(shape, np.bool_)
    for kind in data.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=2)):
        axis = data.draw(st.integers(0, len(shape) - 1))
        if kind == "random":
            mask |= rng.random(shape) < data.draw(st.sampled_from((0.001, 0.03, 0.5, 0.97)))
        elif kind == "coast":
            scale = data.draw(st.sampled_from((2, 5, 20)))
            mask |= np.sin(index / scale).sum(axis=0) > rng.normal()
        elif kind == "lines":
            mask |= index[axis] // data.draw(st.sampled_from((1, 3, 40))) % 2 == 1
        elif kind == "slabs":  # nothing but a few lines is left
            mask |= index[axis] % 8 < data.draw(st.integers(1, 8))
        elif kind == "edge":  # where padding repeats it
            mask |= index[axis] >= shape[axis] - data.draw(st.integers(1, 3))
        elif kind == "run":  # whole tiles of it
            first, length = int(rng.integers(0, mask.size)), int(rng.choice((30, 700, 5000, 20000)))
            mask.reshape(-1)[first : first + length] = True
        elif kind == "one":
            mask.reshape(-1)[rng.integers(0, mask.size)] = True
        else:
            mask |= index.sum(axis=0) % 2 == 0
    return ~mask if data.draw(st.booleans()) else mask


@EACH
@DTYPES
@given(data=st.data())
@hunt(60)
def test_any_mask(dtype: str, predictor: str, data: st.DataObject) -> None:
    """Missing values come back bit for bit, whole and in part, from the same bytes on every level."""
    kind = np.dtype(dtype)
    shape = data.draw(shapes(predictor))
    rng = np.random.default_rng(len(shape))
    name = data.draw(st.sampled_from(("smooth", "noise", "constant")))
    values = family(name, math.prod(shape), kind, rng, 1.0, BOUND).reshape(shape)
    nans = from_bits(special_patterns(kind)[:3:2], kind)  # the quiet one, and one with a payload
    fill = data.draw(st.sampled_from((kind.type(FILL), *nans)))
    values[draw_mask(shape, data)] = fill
    if data.draw(st.booleans()):
        values.reshape(-1)[:: data.draw(st.sampled_from((3, 97, 1000)))] = kind.type(np.inf)
    outliers = data.draw(st.sampled_from(("on", "off")))
    codec = HierarchicalDelta(absolute=BOUND, predictor=predictor, outliers=outliers)
    start, stop = sorted(data.draw(st.tuples(st.integers(0, values.size), st.integers(0, values.size))))
    frames = set()
    for level in levels_here():
        with pyfilter.config(cpu_level=level):
            check_case(Case(values, codec, fill))
            frame = pyfilter.encode(values, codec, fill)
            frames.add(frame)
            part = pyfilter.decode(frame, start, stop)
            assert np.array_equal(bits(part), bits(pyfilter.decode(frame))[start:stop])
    assert len(frames) == 1


@TILED
@DTYPES
def test_nothing_but_missing_values(dtype: str, predictor: str) -> None:
    """A head and an entry of the directory for a tile; what is below the mask is never seen."""
    shape, tiles = WHOLE[predictor]
    fill = np.dtype(dtype).type(FILL)
    frame = pyfilter.encode(np.full(shape, fill), HierarchicalDelta(absolute=BOUND, predictor=predictor), fill)
    assert len(frame) == pyfilter.frame_info(frame).header_bytes + 4 * (tiles + 1) + 4 * tiles


@TILED
@pytest.mark.parametrize("share", [0.001, 0.02, 0.3, 0.5, 0.9])
def test_the_worst_mask(predictor: str, share: float) -> None:
    """No mask costs more than its plane, a byte and eight groups of four bits for each block of a tile."""
    shape, tiles = WHOLE[predictor]
    codec = HierarchicalDelta(absolute=BOUND, predictor=predictor)
    rng = np.random.default_rng(3)
    values = np.ones(shape, np.float32)
    whole = len(pyfilter.encode(values, codec, np.float32(FILL)))
    values[rng.random(shape) < share] = FILL
    info = check_case(Case(values, codec, np.float32(FILL)))
    assert info.frame_bytes <= whole + tiles * (16 + 128 + 512)
    missing = int((values == FILL).sum())
    assert info.frame_bytes <= whole + tiles * 16 + 4 * missing  # one alone: two groups of which predicted masks have


@TILED
@DTYPES
def test_a_coast(dtype: str, predictor: str) -> None:
    """A smooth field with a third of it missing: two thirds of its bytes, and a few for each edge of the mask."""
    kind = np.dtype(dtype)
    shape, _ = WHOLE[predictor]
    index, rng = np.indices(shape), np.random.default_rng(1)
    field = sum(np.sin(axis / 40 + i) for i, axis in enumerate(index)) + 1e-3 * rng.normal(size=shape)
    field, mask = field.astype(kind), coast(shape)
    codec = HierarchicalDelta(absolute=1e-3, predictor=predictor, outliers="on")
    whole = check_case(Case(field, codec, kind.type(FILL))).frame_bytes
    masked = check_case(Case(np.where(mask, kind.type(FILL), field), codec, kind.type(FILL))).frame_bytes
    edges = sum(int((np.diff(mask.astype(np.int8), axis=axis) != 0).sum()) for axis in range(mask.ndim))
    apiece = (masked - whole * (1 - mask.mean())) / edges
    assert apiece < {"chain": 12.0, "lorenzo2d": 4.0, "lorenzo3d": 2.0, "columns": 8.0}[predictor]


@DTYPES
def test_masks_are_predicted(dtype: str) -> None:
    """A mask that is the same in all slabs of a volume takes little more than in one of them."""
    kind = np.dtype(dtype)
    sizes = {}
    for slabs in (1, 8):
        values = np.ones((slabs, 160, 320), kind)
        values[coast(values.shape)] = FILL
        frame = pyfilter.encode(values, HierarchicalDelta(absolute=BOUND, predictor="lorenzo3d"), kind.type(FILL))
        sizes[slabs] = len(frame)
        assert not (tiles_of(frame).flags & 32).any()
    assert sizes[8] < 1.3 * sizes[1]


@DTYPES
@pytest.mark.parametrize("shape", [(4096,), (300_000,), (500, 600), (60, 70, 80)])
def test_noise(dtype: str, shape: tuple[int, ...]) -> None:
    """Noise has no neighbours that tell of it, so "auto" takes a chain of order 0.

    No tile costs more than 8 bytes over Cuszp2's at its best, which has no head and no first value.
    """
    rng = np.random.default_rng(5)
    for name, values in (("normal", rng.normal(size=shape)), ("uniform", rng.uniform(-1, 1, shape))):
        values = values.astype(dtype)
        for bound in (0.1, 1e-2, 1e-3, 1e-5):
            info = check_case(Case(values, HierarchicalDelta(absolute=bound)))
            assert (info.parameters["predictor"], info.parameters["order"]) == ("chain", 0), (name, bound)
            best = min(
                len(pyfilter.encode(values, Cuszp2(absolute=bound, mode=mode, block_dims=dims)))
                for mode in ("outlier", "plain", "fixed")
                for dims in range(1, min(3, len(shape)) + 1)
            )
            allowed = best if name == "normal" else best + 8 * math.ceil(values.size / 4096)
            assert info.frame_bytes <= allowed, (name, bound)
