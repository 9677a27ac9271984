# SPDX-License-Identifier: BSD-3-Clause
"""Block by block at most the bytes of cuSZp2 (seed 001, section IV-A), whose ratio ours is at least by construction.

cuSZp2 quantises with a step of twice the bound, takes differences d inside a block of B values (first differences in
1-D, Lorenzo in 8 x 8 and 4 x 4 x 4) and stores each block as one byte of offset and

- nothing where all d are zero;
- plain: a plane of signs and F planes of magnitudes, B / 8 bytes each, F being the bit length of the largest |d|;
- outlier: |d[0]| in 1 to 4 bytes of its own, a plane of signs and F' planes, F' being that of the other values;
  a block takes whichever of the two is shorter.

The codes are read from our frame, so both quantise with its step. The step is checked against the bound, the codes
against the values. Seed 001's own step is exactly twice the bound. Its codes are smaller by less than a hundredth in
f32 and a 4000th in f64; sums over whole fields allow for that. Where there is a sibling folder shared/data beside the
repository, its fields are measured too.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference import decoder, describe

import pyfilter

from .fields import MODES, Case, family, hunt

Array = NDArray[Any]
Ints = NDArray[np.int64]
#: what the shorter step may cost in a whole frame, whose directory, padding and sparser values come on top
SHORTER_STEP = 1.004
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def bit_length(values: Ints) -> Ints:
    """Of |v| below 2^53, where frexp is exact."""
    return np.frexp(np.abs(values).astype(np.float64))[1].astype(np.int64)


def lorenzo(codes: Ints, block_dims: int) -> Ints:
    """Differences along every axis of the blocks, zeros outside."""
    edge = {1: 32, 2: 8, 3: 4}[block_dims]
    d = codes.reshape(-1, *(edge,) * block_dims)
    for axis in range(1, block_dims + 1):
        d = np.diff(d, axis=axis, prepend=0)
    return d.reshape(codes.shape)


def cuszp2_bytes(codes: Ints, mode: str, block_dims: int) -> Ints:
    """What seed 001 needs for each block; `codes[block, i]`. Also -1 where its integers of 32 bits do not hold it."""
    d = codes if mode == "fixed" else lorenzo(codes, block_dims)
    plane = codes.shape[1] // 8
    lengths = bit_length(d)
    plain = np.where((d == 0).all(axis=1), 1, 1 + plane * (1 + lengths.max(axis=1)))
    outlier = 1 + np.maximum(1, (lengths[:, 0] + 7) // 8) + plane * (1 + lengths[:, 1:].max(axis=1))
    fits = (lengths.max(axis=1) <= 31) & (bit_length(codes).max(axis=1) <= 31)
    return np.where(fits, np.minimum(plain, outlier) if mode == "outlier" else plain, -1)


def check_step(x: Array, codes: Ints, header: decoder.Header, asked: float) -> None:
    """The bound loses at most its rounding to the dtype, the step what rounding may cost: a part in 2^7, or 2^12."""
    fraction, shrink = {4: (23, 7), 8: (52, 12)}[header.dtype.itemsize]
    assert header.bound >= asked * (1 - 2.0**-fraction)
    assert header.step >= 2 * header.bound * (1 - 2.0**-shrink - 2.0**-fraction)
    # codes are the multiples of the step nearest to the values, but for roundings
    wide = x.astype(np.longdouble) / np.longdouble(header.step)
    assert np.abs(wide - codes).max(initial=0) <= 0.5 + 2.0 ** -min(shrink, 12)


def check_blocks(case: Case) -> float:
    """Assert the formula for each block without special values; return how large a part of the blocks that was."""
    assert isinstance(case.codec, pyfilter.Cuszp2)
    frame = pyfilter.encode(case.values, case.codec, case.fill)
    header = decoder.parse_header(frame)
    if header.raw or header.codec != decoder.CUSZP2 or header.value_count == 0:
        return 0.0
    blocks = describe.describe(frame)
    codes = blocks.codes.astype(np.int64)
    theirs = cuszp2_bytes(codes, case.codec.mode, header.block_dims)
    compared = ~blocks.special & (theirs >= 0)
    worse = np.flatnonzero(compared & (blocks.payload_bytes > theirs))
    assert worse.size == 0, (
        f"block {worse[0]} takes {blocks.payload_bytes[worse[0]]} bytes, {theirs[worse[0]]} in seed 001: "
        f"{codes[worse[0]].tolist()}"
    )
    if not compared.all():
        return float(compared.mean())
    x = case.values.reshape(-1)
    if case.codec.absolute is not None:
        check_step(x, decoder.place_blocks(codes, header).reshape(-1), header, case.codec.absolute)
    ours, tiles = header.frame_bytes - header.header_bytes, decoder.tile_count(header)
    assert ours <= theirs.sum() + 4 * (tiles + 1) + 3 * tiles, "more than the directory and the padding of its tiles"
    return 1.0


def check_whole(values: Array, mode: str, block_dims: int, bound: float) -> None:
    """The whole payload against that of seed 001 with its own step, of exactly twice the bound."""
    frame = pyfilter.encode(values, pyfilter.Cuszp2(absolute=bound, mode=mode, block_dims=block_dims))
    header = decoder.parse_header(frame)
    if header.raw or header.codec != decoder.CUSZP2:
        return
    codes = np.rint(into_blocks(values, header) / (2 * bound)).astype(np.int64)
    theirs = cuszp2_bytes(codes, mode, block_dims)
    overhead = 4 * (decoder.tile_count(header) + 1) + 3 * decoder.tile_count(header)
    if (theirs >= 0).all():
        margin = (
            SHORTER_STEP if mode == "outlier" else SHORTER_STEP + 0.012
        )  # all of the codes are stored in the others
        assert len(frame) - header.header_bytes - overhead <= margin * theirs.sum()


def into_blocks(values: Array, header: decoder.Header) -> Array:
    """`values[block, i]`, with padding that repeats the edge: the inverse of decoder.place_blocks."""
    edges = {1: (32,), 2: (8, 8), 3: (4, 4, 4)}[header.block_dims]
    last = (header.value_count,) if header.block_dims == 1 else header.dims[-header.block_dims :]
    stack = values.astype(np.float64).reshape(-1, *last)
    stack = np.pad(stack, [(0, 0), *((0, -size % edge) for size, edge in zip(last, edges, strict=True))], mode="edge")
    counts = [(size // edge, edge) for size, edge in zip(stack.shape[1:], edges, strict=True)]
    split = stack.reshape(stack.shape[0], *itertools.chain(*counts))
    order = (0, *range(1, split.ndim, 2), *range(2, split.ndim, 2))
    blocks: Array = split.transpose(order).reshape(-1, decoder.values_per_block(header))
    return blocks


def residual_pattern(first: int, rest: int, sign: int, size: int) -> list[int]:
    """Residuals of these bit lengths whose sums stay small; every other one is 2^(rest - 1), or one more, or less."""
    top = 1 << rest - 1 if rest else 0
    rests = [(top, -top)[i % 2] * sign for i in range(size - 1)]
    return [(-1) ** (rest & 1) * ((1 << first) - 1 if first % 2 else 1 << max(first - 1, 0)), *rests]


def on_the_lattice(codes: Ints, dtype: np.dtype[Any], codec: pyfilter.Cuszp2) -> Array:
    """The values that decode from these codes: they are encoded by them again."""
    step = pyfilter.frame_info(pyfilter.encode(np.zeros(64, dtype), codec)).step
    values: Array = codes.astype(dtype) * dtype.type(step)
    return values


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("dtype", "bits"), [(F32, 21), (F64, 31)], ids=["f32", "f64"])
def test_every_width(dtype: np.dtype[Any], bits: int, mode: str, sign: int) -> None:
    """All bit lengths of the first residual with all of the others: values on the lattice, so codes are what we say."""
    widths = list(itertools.product(range(bits), range(bits)))
    residuals = np.array([residual_pattern(first, rest, sign, 32) for first, rest in widths])
    codes = residuals if mode == "fixed" else np.cumsum(residuals, axis=1)
    codec = pyfilter.Cuszp2(absolute=0.5, mode=mode)
    values = on_the_lattice(codes.reshape(-1), dtype, codec)
    blocks = describe.describe(pyfilter.encode(values, codec))
    assert np.array_equal(blocks.codes, codes)
    assert not blocks.special.any()
    assert (cuszp2_bytes(codes, mode, 1) > 0).all()
    assert check_blocks(Case(values, codec)) == 1


@pytest.mark.parametrize("block_dims", [2, 3])
@pytest.mark.parametrize("mode", MODES)
def test_every_width_in_two_and_three_dimensions(mode: str, block_dims: int) -> None:
    edge = {2: 8, 3: 4}[block_dims]
    rng = np.random.default_rng(block_dims)
    residuals = np.zeros((30 * 26, 64), np.int64)
    for i, (first, rest) in enumerate(itertools.product(range(30), range(26))):
        residuals[i, 0] = ((1 << first) - 1) * rng.choice((-1, 1))
        places = rng.permutation(np.arange(1, 64))[: 1 + i % 5]
        residuals[i, places] = ((1 << rest) - 1) * rng.choice((-1, 1), places.size)
    codes = residuals.reshape(-1, *(edge,) * block_dims)
    for axis in range(1, block_dims + 1):
        codes = np.cumsum(codes, axis=axis)
    assert mode == "fixed" or np.array_equal(lorenzo(codes.reshape(-1, 64), block_dims), residuals)
    flat = pyfilter.Cuszp2(absolute=0.5, mode=mode)
    codec = pyfilter.Cuszp2(absolute=0.5, mode=mode, block_dims=block_dims)
    values = on_the_lattice(codes, F64, flat)  # a stack of arrays, each one block
    assert np.array_equal(describe.describe(pyfilter.encode(values, codec)).codes, codes.reshape(-1, 64))
    assert (
        check_blocks(Case(values, codec)) == 1 or mode == "fixed"
    )  # codes may need more than 32 bits, residuals do not


@pytest.mark.parametrize("mode", MODES)
@given(data=st.data())
@hunt(200)
def test_any_codes(mode: str, data: st.DataObject) -> None:
    """A few blocks of any codes, drawn so that failures shrink."""
    block_dims = data.draw(st.integers(1, 3))
    size = 32 if block_dims == 1 else 64
    width = st.integers(0, 2 ** data.draw(st.integers(0, 30)))
    signed = st.builds(lambda v, minus: -v if minus else v, width, st.booleans())
    first, rest = data.draw(st.integers(-(1 << 31) + 1, (1 << 31) - 1)), data.draw(st.lists(signed, max_size=size - 1))
    codes = np.array([first, *(first + v for v in rest), *[first] * (size - 1 - len(rest))])
    shape = {1: (size,), 2: (8, 8), 3: (4, 4, 4)}[block_dims]
    codec = pyfilter.Cuszp2(absolute=0.5, mode=mode, block_dims=block_dims)
    values = on_the_lattice(codes, F64, pyfilter.Cuszp2(absolute=0.5)).reshape(shape)
    check_blocks(Case(values, codec))


SHAPES = {1: (20000,), 2: (141, 143), 3: (27, 28, 29)}


@pytest.mark.parametrize("name", ["smooth", "noise", "sparse", "offset", "steps", "constant", "half-way"])
@pytest.mark.parametrize("dtype", [F32, F64], ids=["f32", "f64"])
def test_generated_fields(dtype: np.dtype[Any], name: str) -> None:
    for block_dims, mode in itertools.product(SHAPES, MODES):
        for bound in (0.3, 1e-2, 1e-3, 1e-4, 1e-5):
            rng = np.random.default_rng(block_dims)
            n = int(np.prod(SHAPES[block_dims]))
            values = family(name, n, dtype, rng, 1.0, bound).reshape(SHAPES[block_dims])
            codec = pyfilter.Cuszp2(absolute=bound, mode=mode, block_dims=block_dims)
            part = check_blocks(Case(values, codec))
            assert part > 0.9 or bound < 1e-3 or name == "half-way"  # finer than f32 can quantise, or at the edge
            assert part == 1 or dtype == F32


def shared_fields() -> list[Path]:
    """The float fields of ../shared/data, if it is there."""
    return sorted(path for path in DATA.glob("*.npy") if path.stem.endswith(("f32", "f64")))


@pytest.mark.parametrize("path", [None, *shared_fields()], ids=lambda path: path.stem if path else "waves")
def test_real_fields(path: Path | None) -> None:
    """Real data, or waves where there is none; a part of a large field. Sums too: the ratio is at least theirs."""
    if path is None:
        z, y, x = np.meshgrid(*(np.linspace(0, 6, size) for size in (30, 50, 70)), indexing="ij")
        values = (np.sin(x * y) + np.cos(z * x) * 3).astype(np.float32)
    else:
        values = np.load(path, mmap_mode="r")
        while values.size > 150_000:  # the middle of the longest dimension
            axis = int(np.argmax(values.shape))
            middle = values.shape[axis] // 2
            wanted = max(1, min(values.shape[axis] // 2, 150_000 * values.shape[axis] // values.size))
            values = np.take(values, range(middle - wanted // 2, middle - wanted // 2 + wanted), axis)
        values = np.ascontiguousarray(values)
    for block_dims, mode in itertools.product(range(1, min(3, values.ndim) + 1), MODES):
        for relative in (1e-2, 1e-3, 1e-4):
            codec = pyfilter.Cuszp2(relative=relative, mode=mode, block_dims=block_dims)
            if check_blocks(Case(values, codec)) == 1:
                check_whole(values, mode, block_dims, relative * float(np.ptp(values)))


def test_the_formula() -> None:
    """The examples of figures 6 and 7, but for their block size of 8: 5 bytes plain, 3 bytes outlier, offset apart."""
    codes = np.array([[8, 8, 9, 9, 8, 8, 7, 7]])
    d = np.diff(codes, axis=1, prepend=0)
    assert np.abs(d).max(axis=1) == 8
    plain, outlier = 1 + 1 * (1 + 4), 1 + 1 + 1 * (1 + 1)
    assert (plain, outlier) == (6, 4)
    padded = np.array([[8, 8, 9, 9, 8, 8, *[7] * 26]])
    assert cuszp2_bytes(padded, "plain", 1) == 1 + 4 * 5
    assert cuszp2_bytes(padded, "outlier", 1) == 1 + 1 + 4 * 2
    assert cuszp2_bytes(padded * 0, "outlier", 1) == 1
    assert cuszp2_bytes(padded << 30, "outlier", 1) == -1
    assert cuszp2_bytes(np.full((1, 64), 5), "outlier", 3) == 1 + 1 + 8
