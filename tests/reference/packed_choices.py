# SPDX-License-Identifier: BSD-3-Clause
"""Tiles for packed_writer.py to write, at random: what docs/format.md allows, also what our encoder never makes."""

from __future__ import annotations

import math
import random
import struct
from dataclasses import replace

import numpy as np

from .encoder import Spec, write_raw
from .packed_writer import (
    ORDERS,
    Block,
    Codes,
    Tile,
    fewest_planes,
    frame_values,
    is_finite,
    largest_tile,
    present,
    residuals,
    tile_positions,
    write_frame,
    write_tile,
)


def random_codes(spec: Spec, rng: random.Random) -> Codes:
    """Codes of a tile: zeros, one number, steps, smooth ones, smooth ones with jumps, noise of any width."""
    kind = rng.choice(("zero", "constant", "steps", "smooth", "smooth", "jumps", "jumps", "noise", "wild"))
    draw = np.random.default_rng(rng.getrandbits(32))
    signed = np.zeros(4096, np.int64)
    if kind in ("constant", "steps"):
        signed[...] = rng.randrange(-1000, 1000) << rng.choice((0, 0, spec.code_bits - 16))
    if kind == "steps":
        signed += np.arange(4096) // rng.choice((32, 500))
    if kind in ("smooth", "jumps"):
        signed = np.cumsum(draw.integers(-3, 4, 4096)) + rng.choice((0, 90000))
    if kind == "jumps":
        signed[draw.random(4096) < 0.02] += rng.choice((40, 1000, 5000, -(1 << 20)))
    if kind == "noise":
        width = rng.randint(1, spec.code_bits - 3)
        signed = draw.integers(-(1 << width), 1 << width, 4096)
    codes: Codes = draw.integers(0, 1 << 64, 4096, np.uint64) if kind == "wild" else signed.view(np.uint64)
    codes &= np.uint64((1 << spec.code_bits) - 1)
    codes[~is_finite(codes, spec)] = 0  # the bits of those NaNs are not said
    return codes


def random_block(z: list[int], spec: Spec, rng: random.Random) -> Block:
    """Any choice for a block with these residuals."""
    block = Block()
    if rng.random() < 0.3:
        block = replace(block, exception=rng.choice((rng.randrange(32), max(range(32), key=z.__getitem__))))
    if rng.random() < 0.2:
        planes = fewest_planes(z, block)
        block = replace(block, planes=min(spec.code_bits, planes + rng.choice((1, 2, 5, 64))))
    if block.exception is not None:
        planes = fewest_planes(z, block) if block.planes is None else block.planes
        used = (z[block.exception] >> planes) >> max(spec.code_bits - planes, 0)
        room = (2048 - (z[block.exception] >> planes)) >> spec.code_bits - planes
        if used == 0 and room > 0 and rng.random() < 0.5:
            block = replace(block, excess=rng.randrange(room))
    if rng.random() < 0.2 and spec.sentinel is not None:
        block = replace(block, missing=rng.choice((0xFFFFFFFF, rng.getrandbits(32), 0xFF, 0x00F00000)))
    if rng.random() < 0.2 and not spec.exact:
        masks = [rng.getrandbits(32) & rng.getrandbits(32) for _ in range(2)]
        if rng.random() < 0.5 and spec.dtype[0] == "f":
            block = replace(block, nan_mask=masks[0])
        if spec.pointwise and rng.random() < 0.5:
            block = replace(block, zero_mask=rng.getrandbits(32) & rng.getrandbits(32))
        if spec.pointwise and rng.random() < 0.5:
            block = replace(block, negative_mask=rng.getrandbits(32))
        if rng.random() < 0.5:
            chosen = [i for i in range(32) if masks[1] >> i & 1]
            block = replace(block, verbatim={i: rng.getrandbits(8 * spec.value_bytes) for i in chosen})
    return block


def random_tile(spec: Spec, rng: random.Random, among: list[int]) -> Tile:
    """A tile of any kind."""
    bits = 8 * spec.value_bytes
    kind = rng.choice(("plain", "plain", "any", "any", "any", "any", "empty", "verbatim", "all missing"))
    if kind == "empty":
        return Tile(empty=True)
    if kind == "verbatim":
        return Tile(verbatim=[rng.getrandbits(bits) for _ in range(4096)])
    tile = Tile(codes=random_codes(spec, rng))
    z = residuals(tile.codes, spec)
    first, z[0][0] = z[0][0], 0
    if kind == "any":
        tile = replace(tile, ignored=rng.choice((0, 0, 0, 1, 5, 300)))
        z[0][0] = tile.ignored
        share = rng.choice((0.05, 0.5, 1.0))
        tile = replace(tile, blocks={b: random_block(z[b], spec, rng) for b in among if rng.random() < share})
        tile = replace(tile, exception_plane=rng.random() < 0.3)
        tile = replace(tile, special_plane=not spec.exact and rng.random() < 0.3)
        tile = replace(tile, negative=spec.pointwise and rng.random() < 0.5)
        if spec.sentinel is not None:
            tile = replace(tile, missing_plane=rng.random() < 0.3, plain_masks=rng.choice((None, False, True)))
    if kind == "all missing" and spec.sentinel is not None:
        tile = replace(tile, all_missing=True)
    if rng.random() < 0.3:
        needed = -(-first.bit_length() // 8)
        tile = replace(tile, first_bytes=rng.randint(needed, spec.code_bits // 8))
    if rng.random() < 0.3:
        planes = [fewest_planes(z[b], tile.block(b)) for b in among]
        planes += [wish for b in among if (wish := tile.block(b).planes) is not None]
        tile = replace(tile, base=rng.randint(max(0, min(planes) - 2), min(planes)))
    if len(write_tile(tile, spec, among)) > largest_tile(spec):
        return Tile(verbatim=[rng.getrandbits(bits) for _ in range(4096)])
    return tile


def random_spec(rng: random.Random) -> Spec:
    """Any dtype, tile shape and order, and an array of a few tiles at most."""
    shape, dtype = rng.choice((1, 1, 2, 2, 3, 3, 3, 4, 4)), rng.choice(("f4", "f8"))
    least = {1: 0, 2: 2, 3: 3, 4: 2}[shape]
    rank = rng.randint(least, max(3, least) + 1)
    small, large = (1, 2, 3, 5), {1: 9000, 2: 70, 3: 20, 4: 6}[shape]
    dims = [rng.choice(small) for _ in range(rank)]
    for axis in range(max(rank - {1: 1, 2: 2, 3: 3, 4: 1}[shape], 0), rank):
        if rng.random() < 0.8 and math.prod(dims) < 9000:
            dims[axis] = rng.randint(1, large if math.prod(dims) < 100 or shape == 2 else 12)
    if shape == 4 and rng.random() < 0.7:
        dims[-2] = rng.randint(1, 1100)
    while math.prod(dims) > 12000:
        widest = dims.index(max(dims))
        dims[widest] = -(-dims[widest] // 2)
    if rank > 0 and rng.random() < 0.03:
        dims[rng.randrange(rank)] = 0
    bound = rng.choice((2.0**-10, 0.01, 1.0, 1e-30))
    step = struct.unpack("<f", struct.pack("<f", 2 * bound))[0] if dtype == "f4" else 2 * bound
    exact = rng.random() < 0.15
    bound, step = (0.0, 0.0) if exact else (bound, step)
    pointwise = not exact and rng.random() < 0.25
    if pointwise:
        bound, step = rng.choice((1e-7, 1e-3, 0.5, 0.999)), rng.choice((1e-7, 0.0029, 0.25, 1.0, 900.0, 1e-300, 1e300))
    return Spec(
        codec="hierarchical_delta",
        dtype=dtype,
        dims=tuple(dims),
        tile_shape=shape,
        order=rng.choice(ORDERS[shape]),
        outliers=rng.choice((1, 2)),
        bound=bound,
        step=step,
        sentinel=rng.getrandbits(32 if dtype == "f4" else 64) if not exact and rng.random() < 0.5 else None,
        pointwise=pointwise,
        big_endian=rng.random() < 0.3,
    )


def random_integer_spec(rng: random.Random) -> Spec:
    """The same of integers."""
    spec = random_spec(rng)
    dtype = rng.choice(("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"))
    bits = 8 * int(dtype[1])
    most = 62 if bits == 64 else 30
    bound = rng.choice((1, 2, 9, (1 << bits // 2) - 1, rng.getrandbits(rng.randint(1, most)) + 1, 1 << most))
    bound = int(float(min(bound, 1 << most)))
    exact = spec.exact or spec.pointwise
    return replace(
        spec,
        dtype=dtype,
        bound=0.0 if exact else float(bound),
        step=0.0 if exact else float(2 * bound + (bound < 1 << 52)),
        sentinel=rng.getrandbits(bits) if not exact and rng.random() < 0.6 else None,
        pointwise=False,
    )


def random_frame(rng: random.Random, integers: bool = False) -> tuple[Spec, bytes, list[int | None]]:
    """A valid frame of any kind, and the bit patterns of its values."""
    spec = random_integer_spec(rng) if integers else random_spec(rng)
    if rng.random() < 0.03:
        spec = replace(spec, raw=True, bound=0.0, step=0.0, sentinel=None)
        values = [rng.getrandbits(8 * spec.value_bytes) for _ in range(math.prod(spec.dims))]
        return spec, write_raw(spec, values), list(values)
    tiles = [random_tile(spec, rng, present(where, spec)) for where in tile_positions(spec)]
    return spec, write_frame(spec, tiles), frame_values(spec, tiles)
