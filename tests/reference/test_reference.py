# SPDX-License-Identifier: BSD-3-Clause
"""The reference decoder and the reference writer agree; hostile frames are refused. No library is needed."""

from __future__ import annotations

import random
import struct
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from . import encoder, hostile
from .decoder import FORMAT_VERSION, CorruptFrame, TooNew, decode, parse_header
from .encoder import DTYPE_CODES, Block, Spec


def bits_of(array: NDArray[Any]) -> list[int]:
    """Flat list of bit patterns."""
    return [int(x) for x in array.reshape(-1).view(f"u{array.dtype.itemsize}")]


def check(spec: Spec, blocks: list[Block], uniform: list[str] | None = None) -> bytes:
    """Write, decode, compare; gives the frame."""
    frame = encoder.write_frame(spec, blocks, uniform)
    array = decode(frame)
    assert array.shape == spec.dims
    assert array.dtype == np.dtype(spec.dtype)
    assert bits_of(array) == encoder.frame_values(spec, blocks)
    return frame


LOSSY = Spec(codec="cuszp2", dtype="f4", dims=(32,), bound=0.25, step=0.5, sentinel=0x7F7FFFFF)


@pytest.mark.parametrize("seed", range(80))
def test_random_frames(seed: int) -> None:
    spec, frame, blocks = encoder.random_frame(random.Random(seed))
    array = decode(frame)
    assert array.shape == spec.dims
    assert bits_of(array) == encoder.frame_values(spec, blocks)
    header = parse_header(frame)
    assert (header.bound, header.step, header.sentinel) == (spec.bound, spec.step, spec.sentinel or 0)


@pytest.mark.parametrize("code", range(247))
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_every_rate_code(code: int, dtype: str) -> None:
    """All ones in the planes and the outlier bytes; section 4.4 restated by search, not by its formulas."""
    spec = replace(LOSSY, dtype=dtype, sentinel=None)
    ((planes, outlier_bytes),) = [(p, e) for p in range(65) for e in range(9) if code in encoder.rate_codes(p, e)]
    outliers = b"\xff" * outlier_bytes
    front = bytes((code,)) + outliers
    payload = front + bytes(-len(front) % 4) + b"\xff" * (4 * planes)
    payload = struct.pack("<2I", 0, len(payload) // 4) + payload
    frame = encoder.write_header(spec, len(payload)) + payload
    if planes > spec.code_bits:
        with pytest.raises(CorruptFrame, match="planes"):
            decode(frame)
        return
    z = [((1 << planes) - 1) % (1 << spec.code_bits)] * 32
    z[0] = ((1 << planes + 8 * outlier_bytes) - 1) % (1 << spec.code_bits)
    want = [encoder.code_value(q, spec) for q in encoder.codes_of(z, spec)]
    assert [w for w in want if w is not None] == [
        b for b, w in zip(bits_of(decode(frame)), want, strict=True) if w is not None
    ]


@pytest.mark.parametrize("block_dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("masks", range(1, 8))
def test_special_blocks(dtype: str, block_dims: int, masks: int) -> None:
    """Every combination of masks, overlapping ones and empty ones, and full ones."""
    spec = replace(LOSSY, dtype=dtype, dims=(4, 8, 12), block_dims=block_dims)
    size, rng = spec.values_per_block, random.Random(masks)
    blocks = []
    for kind in range(sum(1 for _ in encoder.positions(spec))):
        block = Block(codes=[rng.randrange(-999, 999) for _ in range(size)])
        full = (1 << size) - 1
        chosen = [full, 0, 1, 1 << size - 1][kind] if kind < 4 else None
        one, two, three = (rng.getrandbits(size) if chosen is None else chosen for _ in range(3))
        block = replace(block, sentinel_mask=one) if masks & 1 else block
        block = replace(block, nan_mask=two) if masks & 2 else block
        if masks & 4:
            block = replace(block, verbatim={i: rng.getrandbits(size // 2) for i in range(size) if three >> i & 1})
        blocks.append(block)
    check(spec, blocks)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("tail", [1, 31, 32, 33, 4096])
def test_uniform_tiles(dtype: str, tail: int) -> None:
    spec = replace(LOSSY, dtype=dtype, dims=(3 * 4096 + tail,), sentinel=5)
    last = -(-tail // 32)
    zeros = Block(codes=[0] * 32)
    verbatim = Block(all_verbatim=list(range(32)))
    choices = {
        "sentinel": (Block(all_sentinel=True), "yes"),
        "verbatim": (verbatim, "yes"),
        "zero": (zeros, "yes"),
        "empty": (zeros, "empty"),
        "outliers": (Block(codes=[70000, 1] * 16, planes=18, outlier_bytes=6), "yes"),
        "mixed": (Block(codes=list(range(32))), "no"),
    }
    names = list(choices)
    for first in range(len(names)):
        tiles = [choices[names[(first + i) % len(names)]] for i in range(4)]
        blocks = [tile[0] for tile, count in zip(tiles, (128, 128, 128, last), strict=True) for _ in range(count)]
        frame = check(spec, blocks, [how for _, how in tiles])
        assert frame[7] == 8


@pytest.mark.parametrize("dims", [(), (1,), (0,), (0, 3), (3, 0), (7, 0, 2), (1, 1), (9, 17), (2, 9, 7), (2, 3, 5, 6)])
@pytest.mark.parametrize("dtype", sorted(DTYPE_CODES))
def test_lossless_shapes(dims: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(1)
    array = rng.integers(0, 256, (*dims, int(dtype[1])), dtype=np.uint8).view(dtype).reshape(dims)
    for block_dims in range(1, min(3, max(len(dims), 1)) + 1):
        spec = Spec(codec="lossless", dtype=dtype, dims=dims, block_dims=block_dims)
        frame = check(spec, encoder.lossless_blocks(spec, bits_of(array)))
        assert bits_of(decode(frame)) == bits_of(array)
    raw = encoder.write_raw(replace(spec, raw=True), bits_of(array))
    assert bits_of(decode(raw)) == bits_of(array)


@pytest.mark.parametrize("block_dims", [1, 2, 3])
@pytest.mark.parametrize("dims", [(3, 5, 10, 11), (1, 2, 1, 3, 9), (2, 4, 4, 8)])
def test_block_positions(dims: tuple[int, ...], block_dims: int) -> None:
    """The value of an element is its flat index, put where section 4.1 says by plain indexing."""
    spec = Spec(codec="lossless", dtype="i4", dims=dims, block_dims=block_dims)
    index = np.arange(np.prod(dims), dtype=np.int32).reshape(dims)
    blocks = [Block(codes=[0 if i is None else i for i in where]) for where in encoder.positions(spec)]
    assert np.array_equal(decode(encoder.write_frame(spec, blocks)), index)
    if block_dims == 1:
        return
    edge = 8 if block_dims == 2 else 4
    grid = index.reshape(-1, *dims[-block_dims:])
    corners = np.ndindex(grid.shape[0], *(-(-n // edge) for n in grid.shape[1:]))
    for b, corner in enumerate(corners):
        for i, inner in enumerate(np.ndindex(*(edge,) * block_dims)):
            at = (corner[0], *(edge * c + k for c, k in zip(corner[1:], inner, strict=True)))
            inside = all(x < n for x, n in zip(at, grid.shape, strict=True))
            assert (blocks[b].codes[i] == grid[at]) if inside else (blocks[b].codes[i] == 0)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("step", [2.0**-149, 2.0**-126, 0.019999999552965164, 1.0, 2.0**100, 2.0**127])
def test_far_codes(dtype: str, step: float) -> None:
    """Codes beyond 2^22 and 2^51, subnormal and overflowing products."""
    spec = replace(LOSSY, dtype=dtype, mode="fixed", step=step, dims=(320,))
    rng, bits = random.Random(3), spec.code_bits
    codes: list[int] = []
    while len(codes) < 320:
        q = rng.choice((1, -1)) * (rng.getrandbits(rng.randint(0, bits)) + rng.randint(-1, 1)) % (1 << bits)
        if encoder.code_value(q, spec) is not None:
            codes.append(q)
    check(spec, [Block(codes=codes[i : i + 32]) for i in range(0, 320, 32)])


def test_speed() -> None:
    spec = replace(LOSSY, dims=(64 * 4096,), sentinel=None)
    block = Block(codes=[random.Random(i).randrange(-500, 500) for i in range(32)])
    tile = encoder.write_tile([block] * 128, spec)
    words = len(tile) // 4
    payload = struct.pack("<65I", *(i * words for i in range(65))) + tile * 64
    begin = time.perf_counter()
    array = decode(encoder.write_header(spec, len(payload)) + payload)
    assert time.perf_counter() - begin < 10  # 0.1 s on an idle machine
    assert np.array_equal(array, np.tile(array[:32], 64 * 128))


def test_too_new_names_the_release() -> None:
    _, frame = next(hostile.small_frames())
    with pytest.raises(TooNew, match=r"needs pyfilter >= 3\.7"):
        decode(frame[:4] + bytes((FORMAT_VERSION + 1, 3, 7)) + frame[7:8])
