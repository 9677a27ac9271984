# SPDX-License-Identifier: BSD-3-Clause
"""Reference decoder: section 7 of docs/format.md, the packed tiles of hierarchical_delta frames.

Neighbours: decoder.py calls `decode_packed`; packed_writer.py writes what this reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .header import CHAIN, COLUMNS, HAS_SENTINEL, TILE_SHAPES, Header, packed_extents, packed_grid, require
from .parts import (
    Array,
    Ints,
    Words,
    parse_directory,
    quiet_nan,
    residuals,
    unpack_mask,
    unzigzag,
    values_of_codes,
    verbatim_values,
    verbatim_words,
)

BLOCKS = 128  # of a tile, absent ones too
Bools = NDArray[np.bool_]

# ---- 7.1 Tiles of a shape -------------------------------------------------------------------------------------------


def present_blocks(header: Header) -> Bools:
    """`present[tile, block]`: whether the block's first position is inside the array."""
    shape = TILE_SHAPES[header.tile_shape]
    along = []
    for n, tiles, tile, block in zip(
        packed_extents(header)[1:], packed_grid(header)[1:], shape.tile, shape.block, strict=True
    ):
        first = np.arange(tiles)[:, None] * tile + np.arange(0, tile, block)
        along.append(first < n)
    z, y, x = along
    inside = (
        z[:, None, None, None, None, :] & y[None, :, None, None, :, None] & x[None, None, :, :, None, None]
    ).reshape(-1, BLOCKS)
    return np.tile(inside, (packed_grid(header)[0], 1))


def tiles_of_blocks(values: Array, header: Header) -> Array:
    """`values[tile, block, i]` -> `values[tile, z, y, x]`."""
    shape = TILE_SHAPES[header.tile_shape]
    gz, gy, gx = (tile // block for tile, block in zip(shape.tile, shape.block, strict=True))
    arranged: Array = values.reshape(-1, gx, gy, gz, *shape.block).transpose(0, 3, 4, 2, 5, 1, 6)
    return arranged.reshape(-1, *shape.tile)


def blocks_of_tiles(values: Array, header: Header) -> Array:
    """The other way round."""
    shape = TILE_SHAPES[header.tile_shape]
    (gz, bz), (gy, by), (gx, bx) = ((tile // block, block) for tile, block in zip(shape.tile, shape.block, strict=True))
    arranged: Array = values.reshape(-1, gz, bz, gy, by, gx, bx).transpose(0, 5, 3, 1, 2, 4, 6)
    return arranged.reshape(-1, BLOCKS, 32)


def place_tiles(values: Array, header: Header) -> Array:
    """`values[tile, z, y, x]` -> the array, without the padding."""
    m, nz, ny, nx = packed_extents(header)
    (_, gz, gy, gx), (tz, ty, tx) = packed_grid(header), TILE_SHAPES[header.tile_shape].tile
    whole: Array = values.reshape(m, gz, gy, gx, tz, ty, tx).transpose(0, 1, 4, 2, 5, 3, 6)
    return whole.reshape(m, gz * tz, gy * ty, gx * tx)[:, :nz, :ny, :nx].reshape(header.dims)


# ---- 7.2 Tile -------------------------------------------------------------------------------------------------------

EXCEPTIONS, MISSING, SPECIAL, ALL_MISSING, VERBATIM, PLAIN_MASKS, NEGATIVE = 1, 2, 4, 8, 16, 32, 64
NAN_MASK, VERBATIM_MASK, ZERO_MASK, NEGATIVE_MASK = 2, 4, 8, 16


class Tile(NamedTuple):
    """One element for each block of a tile; `parse_tiles` has them for all tiles, with an axis for the tile first."""

    flags: Ints  # byte 2 of the head, the same in all blocks
    planes: Ints  # P; 0 in absent blocks
    plane_starts: Ints  # in words from the start of the frame
    exceptions: Ints  # e; -1 in blocks without
    missing: Words  # M of section 7.4
    masks: Ints  # of descriptors; 0 in blocks that are not special
    verbatim_counts: Ints
    word_starts: Ints  # of the masks of special blocks, of the values of verbatim ones
    first: NDArray[np.uint64]  # f in block 0, else 0
    verbatim: Bools  # present blocks of a verbatim tile


def empty_tile() -> Tile:
    """A tile of size 0."""
    zeros, none = np.zeros(BLOCKS, np.int64), np.zeros(BLOCKS, np.bool_)
    no_masks = zeros.astype(np.uint32)
    return Tile(zeros, zeros, zeros, zeros - 1, no_masks, zeros, zeros, zeros, zeros.astype(np.uint64), none)


def verbatim_tile(start: int, size: int, present: Bools, header: Header) -> Tile:
    """A verbatim tile, its head already looked at."""
    words = np.where(present, 32 * header.dtype.itemsize // 4, 0)
    ends = 1 + np.cumsum(words)
    require(size == ends[-1], f"verbatim tile of {size} words, should have {ends[-1]}")
    flags = np.full(BLOCKS, VERBATIM)
    return empty_tile()._replace(flags=flags, word_starts=start + ends - words, verbatim=present)


def parse_tile(frame: bytes, header: Header, start: int, size: int, present: Bools) -> Tile:
    """`start` in words from the start of the frame, `size` in words."""
    if size == 0:
        return empty_tile()
    require(4 * size <= 4 + 4096 * header.dtype.itemsize, "tile is larger than any tile may be")
    data = np.frombuffer(frame, np.uint8, 4 * size, 4 * start)
    used = 0

    def take(count: int, what: str) -> NDArray[np.uint8]:
        nonlocal used
        require(used + count <= data.size, f"tile is too small for its {what}")
        used += count
        return data[used - count : used]

    def take_padding() -> None:
        require(not take(-used % 4, "padding").any(), "padding of a tile is not zero")

    def take_plane(what: str) -> Bools:
        plane = unpack_mask(take(16, what).view("<u4")).reshape(-1)
        require(not (plane & ~present).any(), f"an absent block is in the {what}")
        return plane

    def take_pairs(blocks: Bools, what: str) -> Ints:
        return take(2 * int(blocks.sum()), what).reshape(-1, 2).astype(np.int64)

    # 1. head
    base, second, flags, reserved = (int(byte) for byte in take(4, "head"))
    rate_planes, first_bytes = second & 7, second >> 4
    require(second & 8 == 0 and flags < 128 and reserved == 0, "reserved bits of a tile's head")
    if flags & VERBATIM:
        require(base == 0 and second == 0 and flags == VERBATIM, "head of a verbatim tile")
        return verbatim_tile(start, size, present, header)
    require(base <= header.code_bits, f"base width {base}")
    require(first_bytes <= header.code_bits // 8, f"{first_bytes} first bytes")
    check_flags(flags, header)

    # 2. first value
    first = int.from_bytes(take(first_bytes, "first value").tobytes(), "little")
    take_padding()

    # 3. planes of the tile
    planes = np.where(present, base, 0)
    for plane in range(rate_planes):
        planes += take_plane("rate planes") * (1 << plane)
    require(bool((planes <= header.code_bits).all()), f"more bit planes than {header.code_bits}")
    nothing = np.zeros(BLOCKS, np.bool_)
    excepted = take_plane("exception plane") if flags & EXCEPTIONS else nothing
    masked = take_plane("missing plane") if flags & MISSING else nothing
    special = take_plane("special plane") if flags & SPECIAL else nothing

    # 4. descriptors, 5. exceptions
    masks, counts, exceptions = np.zeros(BLOCKS, np.int64), np.zeros(BLOCKS, np.int64), np.full(BLOCKS, -1)
    masks[special], counts[special] = take_pairs(special, "descriptors").T
    known = VERBATIM_MASK | (ZERO_MASK | NEGATIVE_MASK if header.pointwise else 0)
    known |= NAN_MASK if header.dtype.kind == "f" else 0
    require(bool((masks[special] != 0).all()) and not (masks & ~known).any(), "masks of a special block")
    low, high = take_pairs(excepted, "exceptions").T
    exceptions[excepted] = low | high << 8

    # 6. missing values, 7. padding
    missing = np.full(BLOCKS, 0xFFFFFFFF if flags & ALL_MISSING else 0, np.uint32)
    if flags & MISSING:
        missing[masked] = take_mask_residuals(take, int(masked.sum()))
        missing = missing if flags & PLAIN_MASKS else masks_of_residuals(missing, header)
    take_padding()

    # 8. words
    before_planes = sum(masks >> bit & 1 for bit in range(5)) + verbatim_words(counts, header)
    ends = used // 4 + np.cumsum(before_planes + planes)
    require(int(ends[-1]) == size, f"tile of {size} words, its parts have {ends[-1]}")
    plane_starts = start + ends - planes
    firsts = np.zeros(BLOCKS, np.uint64)
    firsts[0] = first
    starts = plane_starts - before_planes
    every = np.full(BLOCKS, flags)
    return Tile(every, planes, plane_starts, exceptions, missing, masks, counts, starts, firsts, nothing)


def check_flags(flags: int, header: Header) -> None:
    """Bits of the head that need something of the header, or of each other."""
    of_sentinel = flags & (MISSING | ALL_MISSING | PLAIN_MASKS)
    require(bool(header.flags & HAS_SENTINEL) or not of_sentinel, "missing values, but no sentinel")
    require(bool(flags & MISSING) or not flags & PLAIN_MASKS, "plain masks, but no missing values")
    require(header.pointwise or not flags & NEGATIVE, "negative values without a bound relative to each value")
    others = flags & (MISSING | SPECIAL | NEGATIVE)
    require(not flags & ALL_MISSING or not others, "all values are missing, and others are there")
    require(not (header.exact and flags & SPECIAL), "special plane in a bit-exact frame")


def take_mask_residuals(take: Callable[[int, str], NDArray[np.uint8]], count: int) -> Words:
    """E of so many blocks: which groups of four bits each has, then the groups."""
    used = take(count, "groups of missing values")
    require(bool((used != 0).all()), "a block of the missing plane without missing values")
    has = np.unpackbits(used[:, None], axis=1, bitorder="little") == 1
    wanted = int(has.sum())
    data = take(-(-wanted // 2), "missing values")
    halves = np.stack((data & 15, data >> 4), axis=1).reshape(-1)
    require(bool((halves[:wanted] != 0).all()), "a group of missing values is 0")
    require(not halves[wanted:].any(), "the half behind the last group of missing values is not zero")
    groups = np.zeros(has.shape, np.uint32)
    groups[has] = halves[:wanted]
    found: Words = np.bitwise_or.reduce(groups << np.arange(0, 32, 4, dtype=np.uint32), axis=1)
    return found


# ---- 7.4 Missing values ---------------------------------------------------------------------------------------------


def masks_of_residuals(residual: Words, header: Header) -> Words:
    """E of a tile's blocks -> M, where M is predicted."""
    m = tiles_of_blocks(unpack_mask(residual), header)[0]
    if header.tile_shape == CHAIN:
        m = np.logical_xor.accumulate(m.reshape(4, 1024), axis=1)
    elif header.tile_shape == COLUMNS:
        m = np.logical_xor.accumulate(m, axis=1)
    else:
        outside = np.zeros(m.shape[2], np.bool_)
        for z, y in np.ndindex(m.shape[:2]):  # row by row along x
            along_y = m[z, y - 1] if y > 0 else outside
            along_z = m[z - 1, y] if z > 0 else outside
            both = m[z - 1, y - 1] if y > 0 and z > 0 else outside
            m[z, y] ^= (along_y & along_z) | ((along_y ^ along_z) & ~both)
    bits = blocks_of_tiles(m, header)[0]
    found: Words = np.packbits(bits, axis=1, bitorder="little").view("<u4").reshape(-1)
    return found


def parse_tiles(frame: bytes, header: Header) -> Tile | None:
    """All tiles of a frame; None where there are none."""
    offsets, uniform = parse_directory(frame, header)
    require(not uniform.any(), "bit 31 of a directory entry")
    if uniform.size == 0:
        return None
    starts, sizes = header.header_bytes // 4 + offsets.size + offsets[:-1], np.diff(offsets)
    tiles = [
        parse_tile(frame, header, int(start), int(size), present)
        for start, size, present in zip(starts, sizes, present_blocks(header), strict=True)
    ]
    return Tile(*(np.stack(parts) for parts in zip(*tiles, strict=True)))


# ---- 7.3 From residuals to codes ------------------------------------------------------------------------------------


def codes_of_tiles(words: Words, tile: Tile, header: Header) -> Array:
    """`q[tile, block, i]`."""
    # 1. residuals
    z = residuals(words, tile.plane_starts.reshape(-1), tile.planes.reshape(-1), header).reshape(-1, BLOCKS, 32)
    at = np.nonzero(tile.exceptions >= 0)
    e, planes = tile.exceptions[at], tile.planes[at]
    shift = np.minimum(planes, header.code_bits - 1).astype(z.dtype)
    high = np.where(planes < header.code_bits, (e >> 5).astype(z.dtype) << shift, z.dtype.type(0))
    z[at[0], at[1], e % 32] += high
    # 2. the first value
    z[:, 0, 0] = tile.first[:, 0]
    # 3. sums
    return blocks_of_tiles(summed(tiles_of_blocks(unzigzag(z), header), header), header)


def summed(d: Array, header: Header) -> Array:
    """Step 3 in place: `d[tile, z, y, x]` -> codes."""
    if header.tile_shape == COLUMNS:
        add_up(d[:, :, 0, :], 2)
        add_up(d, 2)
    elif header.order > 0:
        add_up(d if header.order == 3 else d[:, :, 0, 0], 1)
        add_up(d if header.order >= 2 else d[:, :, :, 0], 2)
        add_up(d, 3)
    return d


def add_up(d: Array, axis: int) -> None:
    """Running sums in place."""
    d[...] = np.cumsum(d, axis=axis, dtype=d.dtype)


# ---- 7, after section 6 ---------------------------------------------------------------------------------------------


def mask_words(words: Words, tile: Tile) -> tuple[dict[int, Words], Ints]:
    """Masks of special blocks by their bit in the descriptor, and where the verbatim values start."""
    found, at = {}, tile.word_starts
    for bit in (NAN_MASK, VERBATIM_MASK, ZERO_MASK, NEGATIVE_MASK):
        has = tile.masks & bit != 0
        found[bit] = np.where(has, words[np.where(has, at, 0)], np.uint32(0))
        at = at + has
    return found, at


def decode_packed(frame: bytes, header: Header) -> Array:
    """The array of a frame whose size has been checked."""
    tile = parse_tiles(frame, header)
    if tile is None:
        return np.empty(header.dims, header.dtype.newbyteorder("="))
    words = np.frombuffer(frame, "<u4").astype(np.uint32)
    return array_of_codes(frame, codes_of_tiles(words, tile, header), tile, header)


def array_of_codes(frame: bytes, codes: Array, tile: Tile, header: Header) -> Array:
    """`q[tile, block, i]` and what tiles have besides -> the array."""
    words = np.frombuffer(frame, "<u4").astype(np.uint32)
    values = values_of_codes(codes, header)
    masks, verbatim_starts = mask_words(words, tile)
    if header.pointwise:
        negative = unpack_mask(masks[NEGATIVE_MASK]) ^ (tile.flags & NEGATIVE != 0)[..., None]
        values[unpack_mask(masks[ZERO_MASK])] = 0
        values[negative] |= values.dtype.type(1 << header.code_bits - 1)
    values[unpack_mask(tile.missing)] = header.sentinel
    if header.dtype.kind == "f":
        values[unpack_mask(masks[NAN_MASK])] = quiet_nan(header)
    chosen = unpack_mask(masks[VERBATIM_MASK])
    require(np.array_equal(chosen.sum(axis=-1), tile.verbatim_counts), "verbatim counts, masks have others")
    for at in zip(*np.nonzero(tile.verbatim_counts), strict=True):
        start, count = int(verbatim_starts[at]), int(tile.verbatim_counts[at])
        values[at][chosen[at]] = verbatim_values(words, start, count, header)
    stored = tile.word_starts[tile.verbatim][:, None] + np.arange(32 * header.dtype.itemsize // 4)
    values[tile.verbatim] = words[stored].view(values.dtype)
    return place_tiles(tiles_of_blocks(values, header).view(header.dtype.newbyteorder("=")), header)
