# SPDX-License-Identifier: BSD-3-Clause
"""Codec lossless: every bit of every dtype, shape, block dimension and effort, also where cuszp2 falls back to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyfilter
from pyfilter.registry import registry

from .fields import SHAPES, Case, from_bits, hunt, nearby, shapes
from .judge import check_case

NAMES = tuple(name for name in registry().codecs["lossless"].dtypes if name[0] != "c" and name != "bf16")
DTYPES = pytest.mark.parametrize("dtype", [np.dtype(registry().dtypes[name].numpy) for name in NAMES], ids=NAMES)
PATTERNS = (
    *("random bits", "few bits", "ramp", "wrapping ramp", "constant", "extremes", "sign flips"),
    *("walking bit", "one spike", "spike first in each block", "smooth", "zeros"),
)


def pattern(name: str, n: int, dtype: np.dtype[Any], rng: np.random.Generator) -> np.ndarray[Any, np.dtype[Any]]:
    """`n` values whose bit patterns follow a rule; all arithmetic is modulo the width of the dtype."""
    width = 8 * dtype.itemsize
    top, i = 1 << (width - 1), np.arange(n, dtype=np.uint64)
    any_bits = rng.integers(0, (1 << 64) - 1, n, np.uint64, endpoint=True) if n else i
    one = int(rng.integers(0, 1 << 62))
    largest = top - 1 if dtype.kind != "f" else int(np.array(np.finfo(dtype).max).view(f"u{dtype.itemsize}"))
    rules: dict[str, Callable[[], Any]] = {
        "random bits": lambda: any_bits,
        "few bits": lambda: any_bits >> np.uint64(64 - min(5, width)),
        "ramp": lambda: i,
        "wrapping ramp": lambda: i * np.uint64(0x0123456789ABCDF),
        "constant": lambda: np.full(n, one, np.uint64),
        "extremes": lambda: np.where(i % 2 == 0, np.uint64(largest), np.uint64((largest + top) % (1 << width))),
        "sign flips": lambda: np.where(i % 3 == 0, np.uint64(top), np.uint64(0)) ^ i,
        "walking bit": lambda: np.uint64(1) << i % np.uint64(width),
        "one spike": lambda: np.where(i == n // 2, np.uint64(top | 1), np.uint64(7)),
        "spike first in each block": lambda: np.where(i % 32 == 0, any_bits, np.uint64(3)),
        "zeros": lambda: np.zeros(n, np.uint64),
    }
    if name == "smooth":
        walk = np.cumsum(rng.integers(-3, 4, n)) + 50
        return walk.astype(dtype)
    return from_bits(rules[name]().astype(f"u{dtype.itemsize}"), dtype)


def lossless_codecs(rank: int) -> st.SearchStrategy[pyfilter.Lossless]:
    """Both efforts, with all block dimensions that the rank allows."""
    blocks = [pyfilter.Lossless(block_dims=dims) for dims in range(1, min(3, max(1, rank)) + 1)]
    return st.sampled_from([*blocks, pyfilter.Lossless(effort="ratio")])


@DTYPES
@given(data=st.data())
@hunt(150)
def test_any_array(dtype: np.dtype[Any], data: st.DataObject) -> None:
    shape = data.draw(shapes())
    name, seed = data.draw(st.sampled_from(PATTERNS)), data.draw(st.integers(0, 1 << 32))
    values = pattern(name, int(np.prod(shape, dtype=np.int64)), dtype, np.random.default_rng(seed)).reshape(shape)
    if data.draw(st.booleans()):
        values = values.astype(dtype.newbyteorder(">"))
    info = check_case(Case(values, data.draw(lossless_codecs(len(shape))), recipe=f"{name}, seed {seed}"))
    assert info.codec == "lossless"
    assert info.big_endian == (values.dtype.byteorder == ">")
    assert info.bound == info.step == 0


@DTYPES
@given(data=st.data())
@hunt(60)
def test_a_few_values(dtype: np.dtype[Any], data: st.DataObject) -> None:
    """Bit patterns drawn one by one, so that a failure shrinks to its core."""
    width = 8 * dtype.itemsize
    patterns = st.integers(0, (1 << width) - 1) | st.sampled_from([1 << bit for bit in range(width)])
    values = np.array(data.draw(st.lists(patterns, max_size=70)), f"u{dtype.itemsize}").view(dtype)
    check_case(Case(values, data.draw(lossless_codecs(1)), recipe=str(values)))


@pytest.mark.parametrize("rank", sorted(SHAPES))
@DTYPES
def test_every_shape(dtype: np.dtype[Any], rank: int) -> None:
    rng = np.random.default_rng(rank)
    for shape in SHAPES[rank]:
        n = int(np.prod(shape, dtype=np.int64))
        for block_dims in range(1, min(3, max(1, rank)) + 1):
            for name in ("few bits", "smooth", "spike first in each block"):
                check_case(Case(pattern(name, n, dtype, rng).reshape(shape), pyfilter.Lossless(block_dims=block_dims)))
        check_case(Case(pattern("smooth", n, dtype, rng).reshape(shape), pyfilter.Lossless(effort="ratio")))


@pytest.mark.parametrize("effort", ["fast", "ratio"])
@DTYPES
def test_no_worse_than_raw(dtype: np.dtype[Any], effort: str) -> None:
    """Random bits are stored raw; values of few bits are not."""
    rng, codec = np.random.default_rng(3), pyfilter.Lossless(effort=effort)
    noise = check_case(Case(pattern("random bits", 10000, dtype, rng), codec))
    assert noise.stored_raw
    assert noise.frame_bytes == 64 + noise.value_bytes
    assert check_case(Case(pattern("constant", 10000, dtype, rng), codec)).ratio > 3 * dtype.itemsize
    assert not check_case(Case(pattern("few bits", 10000, dtype, rng), codec)).stored_raw


@pytest.mark.parametrize("name", ["f4", "f8"])
def test_cuszp2_falls_back(name: str) -> None:
    """A bound too tight for the dtype gives a lossless frame, whose bits are all kept: NaN payloads and -0.0 too."""
    dtype = np.dtype(name)
    ulps = pattern("smooth", 5000, np.dtype("i4"), np.random.default_rng(4))
    walk = nearby(np.full(5000, 273.15, dtype), ulps)
    walk[::501] = -0.0
    walk[100:120] = np.array([(1 << 8 * dtype.itemsize) - 5], f"u{dtype.itemsize}").view(dtype)
    for bound in (1e-300, 1e-30):
        info = check_case(Case(walk, pyfilter.Cuszp2(absolute=bound)))
        assert info.codec == "lossless"
        assert not info.stored_raw
