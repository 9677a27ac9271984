# SPDX-License-Identifier: BSD-3-Clause
"""Writer of hierarchical_delta frames: any choice that section 7 of docs/format.md allows.

What encoder.py is to the other codecs: slow, and without a line of packed.py, so that the two can check each other.
What is to be written is said tile by tile (`Tile`, with a `Block` where a block is to be anything but plain);
`write_frame` makes the bytes, `frame_values` says what a decoder has to make of them. Neighbour: packed_choices.py
makes tiles of arrays and at random.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import encoder
from .encoder import Spec, write_header

Codes = NDArray[np.uint64]

# tile and block (z, y, x) of section 7.1
EXTENTS = {
    1: ((1, 1, 4096), (1, 1, 32)),
    2: ((1, 64, 64), (1, 4, 8)),
    3: ((8, 16, 32), (2, 4, 4)),
    4: ((1, 1024, 4), (1, 32, 1)),
}
ORDERS = {1: (0, 1), 2: (1, 2), 3: (1, 2, 3), 4: (1,)}


@dataclass(frozen=True, kw_only=True)
class Block:
    """How one block is to be written."""

    planes: int | None = None  # P; None: as few as possible, given the exception
    exception: int | None = None  # the position whose residual's bits from P upwards go apart
    excess: int = 0  # added to that number in units of 2^(W - P), where it makes no difference
    missing: int = 0  # mask M of section 7.4
    nan_mask: int | None = None
    verbatim: dict[int, int] | None = None  # position -> bit pattern
    zero_mask: int | None = None  # this and the next: where the bound is relative to each value
    negative_mask: int | None = None

    @property
    def masks(self) -> int:
        """Of the descriptor; 0: there is none."""
        given = (self.nan_mask, self.verbatim, self.zero_mask, self.negative_mask)
        return sum(2 << bit for bit, mask in enumerate(given) if mask is not None)


PLAIN = Block()


@dataclass(frozen=True, kw_only=True, eq=False)
class Tile:
    """One tile: codes of its 4096 positions, row by row, and what is not to be as short as possible."""

    codes: Codes = field(default_factory=lambda: np.zeros(4096, np.uint64))  # modulo 2^W
    blocks: Mapping[int, Block] = field(default_factory=dict)
    base: int | None = None
    rate_planes: int | None = None
    first_bytes: int | None = None
    ignored: int = 0  # the residual that the planes have for the first value: a decoder does not look at it
    all_missing: bool = False  # by its bit in the head; masks M of blocks are not looked at then
    plain_masks: bool | None = None  # of missing values; None: where that takes less
    negative: bool = False  # the bit in the head: negative masks say what is not
    exception_plane: bool = False  # written even if empty; as the next two
    missing_plane: bool = False
    special_plane: bool = False
    empty: bool = False
    verbatim: list[int] | None = None  # bit patterns of its positions, row by row

    def block(self, number: int) -> Block:
        return self.blocks.get(number, PLAIN)


# ---- 7.1 Tiles of a shape -------------------------------------------------------------------------------------------


def extents(spec: Spec) -> tuple[int, int, int, int]:
    """The array as (m, z, y, x)."""
    *others, z, y, x = (1, 1, 1, *spec.dims)
    n = math.prod(spec.dims)
    whole = math.prod(others)
    return {1: (1, 1, 1, n), 2: (whole * z, 1, y, x), 3: (whole, z, y, x), 4: (1, 1, whole * z * y, x)}[spec.tile_shape]


def tile_positions(spec: Spec) -> Iterator[list[int | None]]:
    """For each tile the flat indices of its positions, row by row, None outside the array."""
    if math.prod(spec.dims) == 0:
        return
    (m, nz, ny, nx), (tz, ty, tx) = extents(spec), EXTENTS[spec.tile_shape][0]
    for p in range(m):
        for z0 in range(0, nz, tz):
            for y0 in range(0, ny, ty):
                for x0 in range(0, nx, tx):
                    yield [
                        ((p * nz + z) * ny + y) * nx + x if z < nz and y < ny and x < nx else None
                        for z in range(z0, z0 + tz)
                        for y in range(y0, y0 + ty)
                        for x in range(x0, x0 + tx)
                    ]


@cache
def block_positions(tile_shape: int) -> list[list[int]]:
    """For each block where its positions are in the tile, row by row."""
    (tz, ty, tx), (bz, by, bx) = EXTENTS[tile_shape]
    return [
        [
            ((z0 + z) * ty + y0 + y) * tx + x0 + x
            for z in range(bz)
            for y in range(by)
            for x in range(bx)
        ]
        for x0 in range(0, tx, bx)
        for y0 in range(0, ty, by)
        for z0 in range(0, tz, bz)
    ]  # fmt: skip


def present(where: list[int | None], spec: Spec) -> list[int]:
    """The blocks that a tile has, in order."""
    return [b for b, positions in enumerate(block_positions(spec.tile_shape)) if where[positions[0]] is not None]


# ---- 7.3 backwards --------------------------------------------------------------------------------------------------


def residuals(codes: Codes, spec: Spec) -> list[list[int]]:
    """Codes of a tile -> its residuals z by block; that of the first value is the first of the first block."""
    q = codes.reshape(EXTENTS[spec.tile_shape][0])
    d = q.copy()
    if spec.tile_shape == 4:
        d[:, 1:] = q[:, 1:] - q[:, :-1]
        d[0, 0, 1:] = q[0, 0, 1:] - q[0, 0, :-1]
    elif spec.order > 0:
        d[:, :, 1:] = q[:, :, 1:] - q[:, :, :-1]
        columns = slice(None) if spec.order >= 2 else slice(0, 1)
        d[:, 1:, columns] = d[:, 1:, columns] - d[:, :-1, columns]
        if spec.order == 3:
            d[1:] = d[1:] - d[:-1]
        else:
            d[1:, 0, 0] = d[1:, 0, 0] - d[:-1, 0, 0]
    bits = 8 * spec.value_bytes if spec.exact else spec.code_bits  # of bit-exact integers the rest is not looked at
    modulus, half = 1 << bits, 1 << bits - 1
    signed = [(x + half) % modulus - half for x in d.reshape(-1).tolist()]
    z = [2 * x if x >= 0 else -2 * x - 1 for x in signed]
    return [[z[i] for i in positions] for positions in block_positions(spec.tile_shape)]


# ---- 7.4 backwards --------------------------------------------------------------------------------------------------


def mask_residuals(tile: Tile, spec: Spec) -> list[int]:
    """Masks of missing values of a tile's blocks -> their differences from the predicted masks."""
    where = block_positions(spec.tile_shape)
    missing = np.zeros(4096, np.int64)
    for b, positions in enumerate(where):
        mask = tile.block(b).missing
        missing[positions] = [mask >> i & 1 for i in range(32)]
    m = missing.reshape(EXTENTS[spec.tile_shape][0])
    if spec.tile_shape == 1:
        runs = m.reshape(4, 1024)
        predicted = np.pad(runs[:, :-1], ((0, 0), (1, 0)))
    else:
        outside = np.pad(m, ((1, 0), (1, 0), (0, 0)))
        along_y, along_z, both = outside[1:, :-1], outside[:-1, 1:], outside[:-1, :-1]
        edges = (along_y & along_z) | ((along_y ^ along_z) & (1 - both))
        predicted = along_y if spec.tile_shape == 4 else edges
    residual = missing ^ predicted.reshape(-1)
    return [sum(bit << i for i, bit in enumerate(residual[positions].tolist())) for positions in where]


def missing_values(tile: Tile, spec: Spec, blocks: list[int]) -> tuple[bool, list[int], bytes]:
    """Section 7.2, part 6: whether masks are plain, the blocks that have some, and the bytes."""
    plain = {b: tile.block(b).missing for b in blocks}
    if tile.all_missing or (tile.plain_masks is None and not any(plain.values())):
        return False, [], b""
    residual = mask_residuals(tile, spec)
    predicted = {b: residual[b] for b in blocks}
    chosen = cost(plain) < cost(predicted) if tile.plain_masks is None else tile.plain_masks
    masks = [(b, groups_of(mask)) for b, mask in (plain if chosen else predicted).items() if mask != 0]
    out = bytes(sum((group != 0) << k for k, group in enumerate(groups)) for _, groups in masks)
    halves = [group for _, groups in masks for group in groups if group != 0]
    halves += [0] * (len(halves) % 2)
    out += bytes(low | high << 4 for low, high in zip(halves[::2], halves[1::2], strict=True))
    return chosen, [b for b, _ in masks], out


def groups_of(mask: int) -> list[int]:
    """The eight groups of four bits of a mask."""
    return [mask >> k & 15 for k in range(0, 32, 4)]


def cost(masks: dict[int, int]) -> int:
    """Groups of four bits that masks take, with the bytes before them."""
    return sum(2 + sum(group != 0 for group in groups_of(mask)) for mask in masks.values() if mask != 0)


# ---- 7.2 Tile -------------------------------------------------------------------------------------------------------


def fewest_planes(z: list[int], block: Block) -> int:
    """P that a block needs; an exception has 11 bits."""
    others = [v for i, v in enumerate(z) if i != block.exception]
    apart = 0 if block.exception is None else z[block.exception]
    return max(*(v.bit_length() for v in others), apart.bit_length() - 11, 0)


def block_words(z: list[int], planes: int, block: Block, spec: Spec) -> bytes:
    """Masks, verbatim values and bit planes of a block."""
    words, chosen = b"", block.verbatim
    verbatim_mask = None if chosen is None else sum(1 << i for i in chosen)
    for mask in (block.nan_mask, verbatim_mask, block.zero_mask, block.negative_mask):
        words += b"" if mask is None else struct.pack("<I", mask)
    words += b"".join(bits.to_bytes(spec.value_bytes, "little") for _, bits in sorted((chosen or {}).items()))
    words += bytes(-len(words) % 4)
    for p in range(planes):
        words += struct.pack("<I", sum((v >> p & 1) << i for i, v in enumerate(z)))
    return words


def tile_plane(blocks: list[int]) -> bytes:
    """The 16 bytes in which these blocks have their bits."""
    return sum(1 << b for b in blocks).to_bytes(16, "little")


def write_tile(tile: Tile, spec: Spec, blocks: list[int]) -> bytes:
    """Section 7.2 for a tile with these blocks."""
    if tile.empty:
        return b""
    where = block_positions(spec.tile_shape)
    if tile.verbatim is not None:
        values = [tile.verbatim[i] for b in blocks for i in where[b]]
        return bytes((0, 0, 16, 0)) + b"".join(bits.to_bytes(spec.value_bytes, "little") for bits in values)
    z = residuals(tile.codes, spec)
    first, z[0][0] = z[0][0], tile.ignored
    planes = {b: fewest_planes(z[b], tile.block(b)) for b in blocks}
    planes |= {b: wish for b in blocks if (wish := tile.block(b).planes) is not None}
    base = min(planes.values()) if tile.base is None else tile.base
    rates = max(planes.values()) - base
    rates = rates.bit_length() if tile.rate_planes is None else tile.rate_planes
    first_bytes = -(-first.bit_length() // 8) if tile.first_bytes is None else tile.first_bytes
    excepted = [b for b in blocks if tile.block(b).exception is not None]
    plain_masks, missing, missing_bytes = missing_values(tile, spec, blocks)
    special = [b for b in blocks if tile.block(b).masks > 0]
    flags = bool(excepted or tile.exception_plane) | bool(special or tile.special_plane) << 2
    flags |= bool(missing or plain_masks or tile.missing_plane) << 1 | tile.all_missing << 3
    flags |= plain_masks << 5 | tile.negative << 6

    out = bytes((base, rates | first_bytes << 4, flags, 0)) + first.to_bytes(first_bytes, "little")
    out += bytes(-len(out) % 4)
    for p in range(rates):
        out += tile_plane([b for b in blocks if planes[b] - base >> p & 1])
    out += tile_plane(excepted) if flags & 1 else b""
    out += tile_plane(missing) if flags & 2 else b""
    out += tile_plane(special) if flags & 4 else b""
    for b in special:
        out += bytes((tile.block(b).masks, len(tile.block(b).verbatim or {})))
    words = b""
    for b in blocks:
        block, own = tile.block(b), list(z[b])
        if block.exception is not None:
            high = (own[block.exception] >> planes[b]) + (block.excess << spec.code_bits - planes[b])
            own[block.exception] %= 1 << planes[b]
            out += struct.pack("<H", block.exception | high << 5)
        if max(own) >> planes[b] or not base <= planes[b] < base + (1 << rates):
            raise ValueError(f"block {b}: {planes[b]} planes, base {base} and {rates} rate planes do not hold {own}")
        words += block_words(own, planes[b], block, spec)
    out += missing_bytes
    return out + bytes(-len(out) % 4) + words


def largest_tile(spec: Spec) -> int:
    """No tile may have more bytes."""
    return 4 + 4096 * spec.value_bytes


def write_frame(spec: Spec, tiles: list[Tile]) -> bytes:
    """A whole frame that is not raw; raw ones are encoder.py's."""
    written = [write_tile(t, spec, present(where, spec)) for t, where in zip(tiles, tile_positions(spec), strict=True)]
    offsets = np.cumsum([0, *(len(tile) // 4 for tile in written)]).tolist()
    payload = struct.pack(f"<{len(offsets)}I", *offsets) + b"".join(written)
    return write_header(spec, len(payload)) + payload


# ---- What a decoder has to make of it -------------------------------------------------------------------------------


@lru_cache(1 << 16)
def code_value(q: int, spec: Spec) -> int | None:
    """Section 6 for one code -> bit pattern; None: some NaN."""
    return magnitude(q, spec) if spec.pointwise else encoder.code_value(q, spec)


def magnitude(q: int, spec: Spec) -> int | None:
    """The same where the bound is relative to each value: Python's floats, operation by operation."""
    width, k, m = spec.code_bits, 0x4338000000000000, 6755399441055744.0
    signed = q - (q >> width - 1 << width)
    (start,) = struct.unpack("<d", struct.pack("<Q", (signed + k) % (1 << 64)))
    if math.isnan(start):
        return None
    y = min(max((start - m) * spec.step, -1100.0), 1100.0)
    whole = (y + m) - m
    p = 0.0
    for c in POWER_OF_TWO:
        p = p * (y - whole) + float.fromhex(c)
    try:
        value = math.ldexp(p, int(whole))  # rounds once, as the last of the two products does
    except OverflowError:
        value = math.inf
    if width == 64:
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    exact = Fraction(value) if math.isfinite(value) else Fraction(2**1100)
    return int(struct.unpack("<I", struct.pack("<f", encoder.round_to(exact, 32)))[0])


POWER_OF_TWO = (
    "0x1.e9d3fe3952179p-32", "0x1.e6063f7217bc6p-28", "0x1.b524fae627834p-24", "0x1.62bfd47773353p-20",
    "0x1.ffcbfc670dcd4p-17", "0x1.430913096fd9fp-13", "0x1.5d87fe78a5276p-10", "0x1.3b2ab6fba1ddap-7",
    "0x1.c6b08d704a0c2p-5", "0x1.ebfbdff82c598p-3", "0x1.62e42fefa39efp-1", "0x1p+0",
)  # fmt: skip


def tile_values(tile: Tile, spec: Spec) -> list[int | None]:
    """Bit patterns of the values of a tile, row by row, padding included; None: some NaN."""
    if tile.verbatim is not None:
        return list(tile.verbatim)
    if tile.empty:
        tile = Tile()
    modulus = 1 << spec.code_bits
    values = [code_value(q % modulus, spec) for q in tile.codes.tolist()]
    nan = 0x7FC00000 if spec.value_bytes == 4 else 0x7FF8000000000000
    for b, positions in enumerate(block_positions(spec.tile_shape)):
        block = tile.block(b)
        for i, at in enumerate(positions):
            if (block.zero_mask or 0) >> i & 1:
                values[at] = 0
            if ((block.negative_mask or 0) >> i & 1) != tile.negative and (bits := values[at]) is not None:
                values[at] = bits | 1 << spec.code_bits - 1
            if tile.all_missing or block.missing >> i & 1:
                values[at] = spec.sentinel
            if (block.nan_mask or 0) >> i & 1:
                values[at] = nan
            values[at] = (block.verbatim or {}).get(i, values[at])
    return values


def frame_values(spec: Spec, tiles: list[Tile]) -> list[int | None]:
    """Bit patterns of all values of a frame, flat."""
    values: list[int | None] = [0] * math.prod(spec.dims)
    for tile, where in zip(tiles, tile_positions(spec), strict=True):
        for bits, i in zip(tile_values(tile, spec), where, strict=True):
            if i is not None:
                values[i] = bits
    return values


def is_finite(codes: Codes, spec: Spec) -> NDArray[np.bool_]:
    """Whether t of section 6 is, code by code; the codes of a bit-exact frame can be any."""
    if spec.exact or spec.dtype[0] != "f":
        return np.ones(codes.shape, np.bool_)
    if spec.pointwise and spec.code_bits == 32:
        return np.ones(codes.shape, np.bool_)
    shift, ones, k = (23, 0xFF, 0x4B400000) if spec.code_bits == 32 else (52, 0x7FF, 0x4338000000000000)
    finite: Any = (codes + np.uint64(k)) >> np.uint64(shift) & np.uint64(ones) != np.uint64(ones)
    return np.asarray(finite, np.bool_)
