# SPDX-License-Identifier: BSD-3-Clause
"""lorenzo: arrays large enough for streams, special values, ranges, damaged frames, every coder and bound.

Neighbours: test_bound.py and test_same_bytes.py have the codec among the others, mostly on small arrays, which are
stored as hierarchical_delta.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyfilter
from pyfilter import HierarchicalDelta, Lorenzo

from .fields import CODERS, FAMILIES, PREDICTORS, Case, family, hunt, levels_here, predictors_of, sprinkle
from .judge import bits, check_case
from .test_pointwise import check_pointwise

DTYPES = pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8")], ids=["f32", "f64"])
SHAPES = {"chain": (9001,), "lorenzo2d": (3, 70, 65), "lorenzo3d": (2, 9, 18, 35), "columns": (2300, 4)}
FILL = -999.0


@DTYPES
@given(data=st.data())
@hunt(40)
def test_any_values(dtype: np.dtype[Any], data: st.DataObject) -> None:
    """Arrays of a few tiles, which may share a stream."""
    predictor = data.draw(st.sampled_from((*SHAPES, "auto")))
    shape = SHAPES.get(predictor) or data.draw(st.sampled_from(list(SHAPES.values())))
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    name, bound = data.draw(st.sampled_from(FAMILIES)), data.draw(st.sampled_from((1e-4, 0.01, 0.3, 20.0)))
    values = family(name, int(np.prod(shape)), dtype, rng, 1.0, bound).reshape(shape)
    values = sprinkle(values, dtype.type(FILL), data.draw(st.sampled_from(("none", "few", "most", "runs"))), rng)
    fill = data.draw(st.sampled_from((None, dtype.type(FILL))))
    codec = Lorenzo(absolute=bound, predictor=predictor, **data.draw(st.sampled_from(CODERS)))
    check_case(Case(values, codec, fill, name))


def smooth(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int = 1) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.normal(size=shape), axis=-1).astype(dtype)


@DTYPES
@pytest.mark.parametrize("coder", CODERS, ids=str)
def test_every_bound(dtype: np.dtype[Any], coder: dict[str, Any]) -> None:
    """All are streams; the pointwise one has signs and zeros."""
    for predictor, shape in SHAPES.items():
        values = sprinkle(smooth(shape, dtype), None, "few", np.random.default_rng(2))
        for bound in ({"absolute": 0.05}, {"relative": 1e-3}, {"psnr": 60.0}):
            info = check_case(Case(values, Lorenzo(predictor=predictor, **{**bound, **coder})))
            assert info.codec == "lorenzo"
        values[..., ::7] = 0
        info = check_pointwise(Case(values, Lorenzo(pointwise_relative=0.02, predictor=predictor, **coder)))
        assert info.codec == "lorenzo"


def test_residuals_of_any_width() -> None:
    """Steps of every size: raw bits of each number, escapes, and 64-bit residuals."""
    steps = 2.0 ** np.arange(50)
    values = np.concatenate([np.repeat(np.append(0, step), 3) for step in steps for _ in range(10)] * 3)
    for coder, predictor in itertools.product(CODERS, ("chain", "auto")):
        check_case(Case(values, Lorenzo(absolute=0.3, predictor=predictor, **coder)))
        check_case(Case(values.astype("f4"), Lorenzo(absolute=64.0, predictor=predictor, **coder)))


def test_what_the_sample_has_not_seen() -> None:
    """Tiles that are not counted, full of values that no counted one has: every symbol goes by the escape."""
    values = np.zeros(4096 * 600, "f4")
    rng = np.random.default_rng(3)
    values[::97] = 1
    for tile in (1, 2, 3, 5, 6, 7, 597, 598):
        values[4096 * tile : 4096 * (tile + 1)] = rng.normal(size=4096) * 10.0 ** (tile % 7)
    for coder in CODERS:
        codec = Lorenzo(absolute=0.4, predictor="chain", **coder)
        frame = pyfilter.encode(values, codec)
        info = pyfilter.frame_info(frame)
        assert info.codec == "lorenzo"
        assert np.abs(pyfilter.decode(frame).astype("f8") - values).max() <= info.bound
        assert len(frame) < 1.1 * len(pyfilter.encode(values, HierarchicalDelta(absolute=0.4, predictor="chain")))


@DTYPES
@pytest.mark.parametrize("predictor", SHAPES)
def test_rounds_of_every_kind(dtype: np.dtype[Any], predictor: str) -> None:
    """Residuals of up to 4, 8, 23 bits and more, some in tiles that are not counted, codes of 28 bits and more, special
    values in some tiles only: levels have ways of their own for them, and write and read the same.
    """
    shapes = {"chain": (700_001,), "lorenzo2d": (3, 470, 500), "lorenzo3d": (40, 130, 135), "columns": (180_000, 3)}
    n = int(np.prod(shapes[predictor]))
    rng = np.random.default_rng(7)
    runs = n // 6000 + 1
    wide = 2e5 if dtype.itemsize == 4 else 1e8
    spread = np.repeat(rng.choice([0, 1, 1, 6, 6, 60, 60, 3e3, 3e3, wide], runs), 6000)[:n]
    offset = np.repeat(rng.choice([0] * 10 + [2.0**29, 2.0**33], runs), 6000)[:n] * (dtype.itemsize == 8)
    values = (spread * rng.normal(size=n) + offset).astype(dtype)
    values[n // 3 : n // 3 + 9000 : 50] = np.nan
    values = values.reshape(shapes[predictor])
    for bound, coder in itertools.product((0.5, 0.05), CODERS[:2]):
        codec = Lorenzo(absolute=bound, predictor=predictor, **coder)
        frame = pyfilter.encode(values, codec)
        decoded, info = pyfilter.decode(frame), pyfilter.frame_info(frame)
        assert info.codec == "lorenzo"
        assert np.array_equal(np.isnan(decoded), np.isnan(values))
        assert np.nanmax(np.abs(decoded.astype("f8") - values)) <= info.bound
        for level in levels_here():
            with pyfilter.config(cpu_level=level):
                assert pyfilter.encode(values, codec) == frame
                assert np.array_equal(bits(pyfilter.decode(frame)), bits(decoded))


@pytest.mark.parametrize("coder", CODERS, ids=str)
def test_ranges(coder: dict[str, Any]) -> None:
    """Parts of tiles, tiles and groups, on every CPU level."""
    rng = np.random.default_rng(4)
    for predictor, shape in {**SHAPES, "chain": (200_000,), "lorenzo3d": (40, 50, 70)}.items():
        values = sprinkle(smooth(shape, np.dtype("f4")), np.float32(FILL), "runs", rng)
        frame = pyfilter.encode(values, Lorenzo(absolute=0.01, predictor=predictor, **coder), np.float32(FILL))
        whole = pyfilter.decode(frame).reshape(-1)
        for level in levels_here():
            with pyfilter.config(cpu_level=level, threads=2):
                assert np.array_equal(bits(pyfilter.decode(frame).reshape(-1)), bits(whole))
                for _ in range(10):
                    start, stop = sorted(int(i) for i in rng.integers(0, whole.size + 1, 2))
                    part = pyfilter.decode(frame, start, stop)
                    assert np.array_equal(bits(part), bits(whole[start:stop]))


@pytest.mark.parametrize("coder", CODERS, ids=str)
def test_damage(coder: dict[str, Any]) -> None:
    """A flipped bit is an error or other values, never more than that."""
    rng = np.random.default_rng(5)
    values = sprinkle(smooth((3, 70, 65), np.dtype("f4")), None, "few", rng)
    frame = bytearray(pyfilter.encode(values, Lorenzo(absolute=0.01, predictor="lorenzo2d", **coder)))
    refused = 0
    for at in rng.integers(8 * 10, len(frame), 1500):
        mask = 1 << int(rng.integers(8))
        frame[at] ^= mask
        try:
            assert pyfilter.decode(bytes(frame)).shape == values.shape
        except pyfilter.errors.CorruptFrame:
            refused += 1
        frame[at] ^= mask
    assert refused > 100


@pytest.mark.parametrize("predictor", predictors_of(Lorenzo))
def test_never_longer(predictor: str) -> None:
    """Than hierarchical_delta, but for one in a hundred; of small arrays not even that."""
    rng = np.random.default_rng(6)
    for name, n in itertools.product(("smooth", "noise", "sparse", "steps", "lattice"), (1, 40, 5000, 60_000)):
        least = PREDICTORS[predictor]
        shape = {0: (n,), 2: (-(-n // 4), 4), 3: (2, -(-n // 40), 20)}[least]
        values = family(name, int(np.prod(shape)), np.dtype("f4"), rng, 1.0, 0.01).reshape(shape)
        for bound in (0.01, 1e-4):
            other = pyfilter.encode(values, HierarchicalDelta(absolute=bound, predictor=predictor, outliers="on"))
            for coder in CODERS[:2]:
                frame = pyfilter.encode(values, Lorenzo(absolute=bound, predictor=predictor, **coder))
                assert len(frame) <= (1 if values.size <= 16 * 4096 and predictor != "columns" else 1.01) * len(other)
