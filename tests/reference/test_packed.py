# SPDX-License-Identifier: BSD-3-Clause
"""Packed tiles: the reference decoder and the reference writer agree. No library is needed.

Refusals are in test_reference.py, with those of the other codecs.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from . import hostile_packed, packed_choices, packed_encoder, packed_writer
from .decoder import decode, parse_header
from .encoder import Spec, write_header
from .hostile_tools import tile_frame
from .packed_writer import ORDERS, Block, Codes, Tile, block_positions, tile_positions, write_frame

BASE = hostile_packed.BASE
PREDICTORS = [(shape, order) for shape, orders in ORDERS.items() for order in orders]
LEAST_RANK = {1: 0, 2: 2, 3: 3, 4: 2}
SHAPES = pytest.mark.parametrize(("shape", "order"), PREDICTORS)
DTYPES = pytest.mark.parametrize("dtype", ["f4", "f8"])
TILE_CHOICES = ("empty", "all_missing", "ignored", "exception_plane", "special_plane", "missing_plane", "negative")
FEW = settings(
    max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True
)


def check(spec: Spec, frame: bytes, wanted: list[int | None]) -> NDArray[Any]:
    """Decode and compare; gives the bit patterns."""
    array = decode(frame)
    assert array.shape == spec.dims
    assert array.dtype == np.dtype(spec.dtype)
    found = array.reshape(-1).view(f"u{spec.value_bytes}")
    differ = [i for i, (a, b) in enumerate(zip(found.tolist(), wanted, strict=True)) if a != b]
    assert differ == [], (spec, differ[:10])
    return found


def check_tiles(spec: Spec, tiles: list[Tile]) -> NDArray[Any]:
    return check(spec, write_frame(spec, tiles), packed_writer.frame_values(spec, tiles))


@pytest.mark.parametrize("seed", range(120))
def test_random_frames(seed: int) -> None:
    spec, frame, values = packed_choices.random_frame(random.Random(seed))
    check(spec, frame, values)
    header = parse_header(frame)
    assert (header.bound, header.step, header.sentinel) == (spec.bound, spec.step, spec.sentinel or 0)
    assert (header.tile_shape, header.parameters[1], header.order) == (spec.tile_shape, spec.outliers, spec.order)


@pytest.mark.parametrize("seed", range(60))
def test_random_frames_of_integers(seed: int) -> None:
    spec, frame, values = packed_choices.random_frame(random.Random(seed), integers=True)
    check(spec, frame, values)


def test_every_choice_is_drawn() -> None:
    """What the frames above are made of."""
    seen = set()
    for seed in range(150):
        rng = random.Random(seed)
        spec = packed_choices.random_spec(rng)
        for where in tile_positions(spec):
            tile = packed_choices.random_tile(spec, rng, packed_writer.present(where, spec))
            seen |= {name for name in TILE_CHOICES if getattr(tile, name)}
            if any(block.missing for block in tile.blocks.values()):
                seen |= {f"plain masks {tile.plain_masks}"}
            seen |= {"verbatim"} if tile.verbatim is not None else set()
            for block in tile.blocks.values():
                seen |= {f"masks {block.masks}"} if block.masks else set()
                choices = ("missing", "exception", "excess", "planes")
                seen |= {f"block {name}" for name in choices if getattr(block, name)}
    assert seen >= {*TILE_CHOICES, "verbatim"}
    assert seen >= {f"plain masks {choice}" for choice in (None, False, True)}
    assert seen >= {f"masks {masks}" for masks in range(2, 32, 2)}
    assert seen >= {"block missing", "block exception", "block excess", "block planes"}


@SHAPES
@DTYPES
@given(data=st.data())
@FEW
def test_shapes(shape: int, order: int, dtype: str, data: st.DataObject) -> None:
    """Codes of arrays of any shape, dims 0 and 1 and those that are no multiple of a tile or a block among them."""
    least = LEAST_RANK[shape]
    rank = data.draw(st.integers(least, max(least + 1, 3)))
    dims = [data.draw(st.sampled_from((1, 2, 3, 5))) for _ in range(rank)]
    sizes = {
        1: (0, 1, 31, 32, 33, 4095, 4096, 4097),
        2: (0, 1, 7, 8, 9, 31, 33, 63, 64, 65),
        3: (0, 1, 3, 4, 5, 8, 9, 16, 17, 33),
        4: (0, 1, 3, 4, 5, 31, 32, 33, 1023, 1025),
    }[shape]
    for axis in range(rank - {1: min(rank, 1), 2: 2, 3: 3, 4: 2}[shape], rank):
        dims[axis] = data.draw(st.sampled_from([s for s in sizes if s < 100 or math.prod(dims) // dims[axis] < 30]))
    while math.prod(dims) > 20000:
        dims[dims.index(max(dims))] = 2
    spec = replace(
        BASE, dtype=dtype, dims=tuple(dims), tile_shape=shape, order=order, step=2.0**-20, bound=2.0**-21, sentinel=None
    )
    index = np.arange(math.prod(dims), dtype=np.float64) * 2.0**-20
    tiles = []
    for where in tile_positions(spec):
        codes = np.array([0 if i is None else i for i in where], np.uint64)
        assert len(packed_writer.present(where, spec)) >= 1
        tiles.append(Tile(codes=codes))
    assert np.array_equal(decode(write_frame(spec, tiles)), index.astype(dtype).reshape(dims))


@SHAPES
def test_one_residual(shape: int, order: int) -> None:
    """Section 7.3, restated: which codes a residual of 1 at one position reaches."""
    dims = {1: (4096,), 2: (64, 64), 3: (8, 16, 32), 4: (1024, 4)}[shape]
    spec = replace(BASE, dims=dims, tile_shape=shape, order=order, step=1.0, bound=0.5)
    tile, _ = packed_writer.EXTENTS[shape]
    z, y, x = np.indices(tile)
    for at in [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 2, 3), (0, 5, 2), (7, 0, 31), (2, 9, 0), (0, 0, 3)]:
        cz, cy, cx = at
        if any(c >= n for c, n in zip(at, tile, strict=True)):
            continue
        later = (z >= cz, y >= cy, x >= cx)
        same = (z == cz, y == cy, x == cx)
        if shape == 4:  # columns, whose first row is a row of differences
            reached = (later[2] if cy == 0 else same[2]) & later[1]
        elif order == 0:
            reached = same[0] & same[1] & same[2]
        else:
            along_y = later[1] if order >= 2 or cx == 0 else same[1]
            along_z = later[0] if order == 3 or cx == cy == 0 else same[0]
            reached = along_z & along_y & later[2]
        index = int(np.flatnonzero(same[0] & same[1] & same[2])[0])
        ((block, i),) = [(b, w.index(index)) for b, w in enumerate(block_positions(shape)) if index in w]
        plane = sum(1 << b for b in {block, 0})  # 1 is 2 in zigzag: the second plane of the block
        if (block, i) == (0, 0):
            content = bytes((0, 1 << 4, 0, 0, 2, 0, 0, 0))
        else:
            content = bytes((0, 2, 0, 0)) + bytes(16) + (plane & ~int(block != 0)).to_bytes(16, "little")
            content += bytes(4) + (1 << i).to_bytes(4, "little")
        found = decode(tile_frame(spec, content))
        assert np.array_equal(found.reshape(tile), reached.astype(np.float32)), at


@DTYPES
@SHAPES
def test_values(shape: int, order: int, dtype: str) -> None:
    """Real values with special ones among them, as our encoder writes them: the bound, and every special."""
    dims = {1: (9000,), 2: (2, 70, 67), 3: (2, 9, 17, 35), 4: (1030, 3)}[shape]
    spec = replace(BASE, dtype=dtype, dims=dims, tile_shape=shape, order=order, bound=0.02, step=0.03125)
    n = math.prod(dims)
    rng = np.random.default_rng(n)
    values = (40 * np.sin(np.arange(n) / 90) + 0.1 * rng.normal(size=n)).astype(dtype)
    values[rng.random(n) < 0.003] = 77777
    fill, nan = np.dtype(dtype).type(-999), np.dtype(dtype).type(np.nan)
    values[500:700] = fill
    values[2000:2050:3] = nan
    values[2100] = np.inf
    bits = values.view(f"u{spec.value_bytes}")
    bits[2101] |= 5  # a NaN with a payload, once the value is one
    bits[2101] |= bits[2000]
    spec = replace(spec, sentinel=int(np.array([fill]).view(bits.dtype)[0]))
    for exceptions in (True, False):
        spec = replace(spec, outliers=1 if exceptions else 2)
        tiles = list(packed_encoder.tiles_of_values(spec, values))
        assert exceptions == any(b.exception is not None for tile in tiles for b in tile.blocks.values())
        frame = write_frame(spec, tiles)
        found = check(spec, frame, packed_writer.frame_values(spec, tiles))
        assert len(frame) < values.nbytes
        decoded = found.view(dtype)
        exact = ~np.isfinite(values) | (values == fill)
        assert np.array_equal(found[exact], bits[exact])
        assert all(
            abs(Fraction(a) - Fraction(b)) <= Fraction(spec.bound)
            for a, b in zip(values[~exact].tolist(), decoded[~exact].tolist(), strict=True)
        )


@DTYPES
def test_every_width(dtype: str) -> None:
    """Blocks of every number of planes, by all rate planes and bases that give it, and first values of all sizes."""
    spec = replace(BASE, dtype=dtype, dims=(64,), step=2.0**-30, bound=2.0**-31)
    rng = random.Random(1)
    for planes in range(spec.code_bits + 1):
        codes = wide_codes(planes, spec, rng)
        for base in {0, planes // 2, planes}:
            rate_planes = (planes - base).bit_length()
            for rates in {rate_planes, 7}:
                if base + (1 << rates) > planes:
                    tile = Tile(codes=codes, blocks={0: Block(planes=base)}, base=base, rate_planes=rates)
                    check_tiles(spec, [tile])
    for size in range(spec.code_bits // 8 + 1):
        codes = np.full(4096, (1 << 8 * size - 1) - 1 if size else 0, np.uint64)
        if packed_writer.is_finite(codes, spec)[0]:
            for first_bytes in range(size, spec.code_bits // 8 + 1):
                check_tiles(spec, [Tile(codes=codes, first_bytes=first_bytes)])


def wide_codes(planes: int, spec: Spec, rng: random.Random) -> Codes:
    """A constant in the first block, residuals of this width in the second; no code that means a NaN."""
    while True:
        z = [rng.getrandbits(planes) for _ in range(32)]
        d = [v >> 1 if v % 2 == 0 else -(v >> 1) - 1 for v in z]
        codes = np.zeros(4096, np.uint64)
        codes[32:64] = [sum(d[: i + 1]) % (1 << spec.code_bits) for i in range(32)]
        codes[64:] = codes[63]
        if packed_writer.is_finite(codes, spec).all():
            return codes


@DTYPES
@pytest.mark.parametrize("position", [0, 1, 31])
def test_exceptions(dtype: str, position: int) -> None:
    """Exceptions over every number of planes; their bits beyond W make no difference."""
    spec = replace(BASE, dtype=dtype, dims=(64,), step=2.0**-30, bound=2.0**-31)
    codes = np.zeros(4096, np.uint64)
    for planes in range(spec.code_bits + 1):
        high = min(1500, (1 << spec.code_bits - planes) - 1)
        residual = (high << planes) + ((1 << planes) - 1)
        step = residual >> 1 if residual % 2 == 0 else -(residual >> 1) - 1
        codes[32 + position :] = step % (1 << spec.code_bits)
        if not packed_writer.is_finite(codes, spec).all():
            continue
        room = (2048 - high) >> spec.code_bits - planes
        for excess in {0, min(1, room - 1), room - 1} if room > 0 else {0}:
            blocks = {1: Block(exception=position, planes=planes, excess=excess), 0: Block(planes=0)}
            check_tiles(spec, [Tile(codes=codes, blocks=blocks)])


@DTYPES
@SHAPES
def test_the_first_value_replaces(shape: int, order: int, dtype: str) -> None:
    """Bits of the first position in the planes, and an exception there, are of no account."""
    dims = {1: (100,), 2: (9, 12), 3: (3, 5, 9), 4: (40, 3)}[shape]
    spec = replace(BASE, dtype=dtype, dims=dims, tile_shape=shape, order=order)
    codes = np.arange(4096).astype(np.uint64) % np.uint64(77)
    for ignored in (1, 2, 255, 5000):
        for block in (Block(), Block(exception=0, planes=9), Block(exception=5, planes=13)):
            check_tiles(spec, [Tile(codes=codes, blocks={0: block}, ignored=ignored)])


@DTYPES
@SHAPES
def test_bit_exact(shape: int, order: int, dtype: str) -> None:
    """Frames with a step of 0 have codes as lossless ones do."""
    dims = {1: (100,), 2: (9, 12), 3: (3, 5, 9), 4: (40, 3)}[shape]
    spec = replace(hostile_packed.EXACT, dtype=dtype, dims=dims, tile_shape=shape, order=order)
    rng = np.random.default_rng(shape)
    for _ in range(4):
        codes = rng.integers(0, 1 << 64, 4096, np.uint64) & np.uint64((1 << spec.code_bits) - 1)
        check_tiles(spec, [Tile(codes=codes)])
    check_tiles(spec, [Tile(codes=codes % np.uint64(99), blocks={0: Block(exception=3, planes=9)})])


@DTYPES
@pytest.mark.parametrize("masks", range(2, 32, 2))
def test_special_blocks(dtype: str, masks: int) -> None:
    """Every combination of masks, overlapping, empty and full ones, with missing values and without."""
    pointwise = masks > 7
    spec = replace(BASE, dtype=dtype, dims=(32 * 8 - 5,), pointwise=pointwise)
    rng = random.Random(masks)
    codes = np.array([rng.randrange(100) for _ in range(4096)], np.uint64)
    full = (1 << 32) - 1
    blocks = {}
    for b, chosen in enumerate((full, 0, 1, 1 << 31, None, None)):
        nan, verbatim, zero, negative = (rng.getrandbits(32) if chosen is None else chosen for _ in range(4))
        blocks[b] = Block(
            nan_mask=nan if masks & 2 else None,
            verbatim={i: rng.getrandbits(30) for i in range(32) if verbatim >> i & 1} if masks & 4 else None,
            zero_mask=zero if masks & 8 else None,
            negative_mask=negative if masks & 16 else None,
        )
    holes = {b: replace(block, missing=rng.getrandbits(32)) for b, block in blocks.items()}
    holes |= {6: Block(missing=full), 7: Block(missing=full, planes=9)}
    for negative_tile in (False, True) if pointwise else (False,):
        for chosen_blocks in (blocks, holes):
            check_tiles(spec, [Tile(codes=codes, blocks=chosen_blocks, negative=negative_tile)])


#: what one bit of a mask residual, at a tile's position (z, y, x), reaches where masks are predicted: section 7.4
REACHED = {
    1: [((0, 0, 5), [(0, 0, x) for x in range(5, 1024)]), ((0, 0, 2000), [(0, 0, x) for x in range(2000, 2048)])],
    2: [((0, 60, 3), [(0, y, 3) for y in range(60, 64)]), ((0, 0, 63), [(0, y, 63) for y in range(64)])],
    3: [
        ((0, 0, 0), [(z, y, 0) for z in range(8) for y in range(16)]),
        ((7, 3, 9), [(7, y, 9) for y in range(3, 16)]),
        ((2, 14, 31), [(z, y, 31) for z in range(2, 8) for y in (14, 15)]),
    ],
    4: [((0, 1000, 2), [(0, y, 2) for y in range(1000, 1024)]), ((0, 0, 3), [(0, y, 3) for y in range(1024)])],
}


@SHAPES
def test_one_mask_residual(shape: int, order: int) -> None:
    """Section 7.4, restated: which masks a single bit reaches; plain ones reach that alone."""
    extents, _ = packed_writer.EXTENTS[shape]
    dims = {1: (4096,), 2: extents[1:], 3: extents, 4: extents[1:]}[shape]
    spec = replace(BASE, dims=dims, tile_shape=shape, order=order)
    for (z, y, x), reached in REACHED[shape]:
        index = (z * extents[1] + y) * extents[2] + x
        ((block, i),) = [(b, w.index(index)) for b, w in enumerate(block_positions(shape)) if index in w]
        for flags in (2, 34):
            content = bytes((0, 0, flags, 0)) + (1 << block).to_bytes(16, "little")
            content += bytes((1 << i // 4, 1 << i % 4, 0, 0))
            found = decode(tile_frame(spec, content)).reshape(extents)
            wanted = np.zeros(extents, np.float32)
            for at in reached if flags == 2 else [(z, y, x)]:
                wanted[at] = np.float32(1e10)
            assert np.array_equal(found, wanted), (z, y, x, flags)


def corner(a: int, b: int, both: int) -> int:
    """The rule of section 7.4 as a sentence: as the neighbours where they agree, else what goes on an edge."""
    return a if a == b else 1 - both


def test_a_corner_of_a_mask() -> None:
    """All eight neighbourhoods of a volume's position, and what each predicts."""
    spec = replace(BASE, dims=(2, 2, 8), tile_shape=3)
    for a, b, both in itertools.product((0, 1), repeat=3):
        blocks = {0: Block(missing=both << 0 | b << 4 | a << 16)}  # (0, 0, 0), (0, 1, 0), (1, 0, 0)
        residual = packed_writer.mask_residuals(Tile(blocks=blocks), spec)[0]
        assert residual >> 20 & 1 == corner(a, b, both)  # at (1, 1, 0), where the mask itself is 0


@SHAPES
@pytest.mark.parametrize("seed", range(4))
def test_missing_values(shape: int, order: int, seed: int) -> None:
    """Masks of all kinds, predicted and plain, with absent blocks."""
    rng = random.Random(seed)
    dims = {1: (4500,), 2: (70, 67), 3: (9, 17, 35), 4: (1030, 5)}[shape]
    spec = replace(BASE, dims=dims, tile_shape=shape, order=order)
    for plain in (None, False, True):
        tiles = []
        for where in tile_positions(spec):
            there = packed_writer.present(where, spec)
            choices = (0, 0xFFFFFFFF, rng.getrandbits(32), 1 << rng.randrange(32), 0xFFFF << rng.randrange(16))
            blocks = {b: Block(missing=rng.choice(choices)) for b in there if rng.random() < 0.8}
            tiles.append(Tile(blocks=blocks, plain_masks=plain))
        check_tiles(spec, tiles)


@DTYPES
@SHAPES
def test_verbatim_tiles(shape: int, order: int, dtype: str) -> None:
    """With absent blocks in between."""
    for dims in ((1, 1, 1), (3, 17, 5), (9, 65, 70)):
        spec = replace(BASE, dtype=dtype, dims=dims, tile_shape=shape, order=order)
        rng = random.Random(shape)
        tiles = [Tile(verbatim=[rng.getrandbits(30) for _ in range(4096)]) for _ in tile_positions(spec)]
        check_tiles(spec, tiles)


def test_speed() -> None:
    spec = replace(BASE, dims=(64 * 4096,), sentinel=None)
    codes = np.array([random.Random(i).randrange(-500, 500) % (1 << 64) for i in range(4096)], np.uint64)
    content = packed_writer.write_tile(Tile(codes=codes), spec, list(range(128)))
    words = len(content) // 4
    payload = b"".join((i * words).to_bytes(4, "little") for i in range(65)) + content * 64
    begin = time.perf_counter()
    array = decode(write_header(spec, len(payload)) + payload)
    assert time.perf_counter() - begin < 10  # 0.1 s on an idle machine
    assert np.array_equal(array, np.tile(array[:4096], 64))
