# SPDX-License-Identifier: BSD-3-Clause
"""Reference decoder of the frame format: docs/format.md section by section, in NumPy, and nothing else.

Written from that page alone, without a look at the library, so that the two can check each other. Section numbers
are those of the page. `decode` is the whole of it; `parse_header` and `parse_directory` serve tests that look inside a
frame. This file has sections 1, 3, 4 and 5; header.py has section 2, packed.py section 7, streams.py section 8,
particles.py section 12, progressive.py section 13, adaptive.py section 14, bins.py section 15, records.py section 17,
parts.py what they share. Neighbours: encoder.py and the files named _writer.py write what this reads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import adaptive, bins, packed, particles, progressive, records, streams
from .header import (
    ADAPTIVE,
    B8,
    BF16,
    BIG_ENDIAN,
    CARRIED_VERSION,
    CUSZP2,
    DERIVED_VERSION,
    F16,
    FIRST_VERSIONS,
    FIXED,
    FORMAT_VERSION,
    HAS_SENTINEL,
    HIERARCHICAL_DELTA,
    LORENZO,
    LOSSLESS,
    PARTICLES,
    PARTS_VERSION,
    PROGRESSIVE,
    RANS,
    RAW,
    SHORT_STATES_VERSION,
    CorruptFrame,
    FrameError,
    Header,
    TooNew,
    TruncatedFrame,
    block_grid,
    first_version,
    parse_header,
    require,
    tile_count,
    values_per_block,
)
from .parts import Array, Ints, parse_directory, residuals, special_values, unzigzag, values_of_codes

__all__ = [
    "ADAPTIVE",
    "BF16",
    "BIG_ENDIAN",
    "CARRIED_VERSION",
    "CUSZP2",
    "DERIVED_VERSION",
    "FIRST_VERSIONS",
    "FORMAT_VERSION",
    "HAS_SENTINEL",
    "HIERARCHICAL_DELTA",
    "LORENZO",
    "LOSSLESS",
    "PARTICLES",
    "PARTS_VERSION",
    "PROGRESSIVE",
    "RANS",
    "RAW",
    "SHORT_STATES_VERSION",
    "CorruptFrame",
    "FrameError",
    "Header",
    "TooNew",
    "TruncatedFrame",
    "decode",
    "first_version",
    "parse_directory",
    "parse_header",
    "parse_tiles",
    "require",
    "residuals",
    "tile_count",
    "values_per_block",
]


# ---- 4.1 Blocks of a shape ------------------------------------------------------------------------------------------


def place_blocks(values: Array, header: Header) -> Array:
    """`values[block, i]` -> the array, without the padding."""
    if header.value_count == 0:
        return np.empty(header.dims, header.dtype)
    if header.block_dims == 1:
        return values.reshape(-1)[: header.value_count].reshape(header.dims)
    grid, last = block_grid(header), header.dims[-header.block_dims :]
    if header.block_dims == 2:
        values = values.reshape(*grid, 8, 8).transpose(0, 1, 3, 2, 4).reshape(grid[0], 8 * grid[1], 8 * grid[2])
    else:
        values = (
            values.reshape(*grid, 4, 4, 4).transpose(0, 1, 4, 2, 5, 3, 6).reshape(grid[0], *(4 * g for g in grid[1:]))
        )
    cut = (slice(None), *(slice(size) for size in last))
    return values[cut].reshape(header.dims)


# ---- 4.4 Rate codes -------------------------------------------------------------------------------------------------

SENTINEL_BLOCK, VERBATIM_BLOCK = 247, 255


def rate(code: int) -> tuple[int, int]:
    """(P, E) of a rate code; (0, 0) for those that are neither planes nor outlier bytes of their own."""
    if code < 200:
        return code // 8, 8 if code % 8 == 7 else code % 8
    if code < 214:
        return 25 + (code - 200) // 2, (code - 200) % 2
    return (32 + (code - 214), 0) if code < 247 else (0, 0)


PLANES = np.array([rate(code)[0] for code in range(256)])
OUTLIER_BYTES = np.array([rate(code)[1] for code in range(256)])


# ---- 4.3 Tile -------------------------------------------------------------------------------------------------------


class Tile(NamedTuple):
    """One element for each block of a tile, or of a whole frame."""

    codes: Ints  # rate codes
    masks: Ints  # `r - 247` of special blocks, else 0
    inner: Ints  # inner rate codes of special blocks, else the rate codes
    planes: Ints  # P, of special blocks that of the inner rate code
    outliers: NDArray[np.uint64]  # e of section 5
    verbatim_counts: Ints
    word_starts: Ints  # in words from the start of the frame
    plane_starts: Ints


def parse_tile(frame: bytes, header: Header, start: int, size: int, blocks: int, uniform: bool) -> Tile:
    """`start` in words from the start of the frame, `size` in words."""
    require(4 * size <= 4096 * header.dtype.itemsize + 1412, "tile is larger than any tile may be")
    data = np.frombuffer(frame, np.uint8, 4 * size, 4 * start).astype(np.int64)
    used = 1 if uniform else blocks
    if uniform and size == 0:
        codes, used = np.zeros(blocks, np.int64), 0
    else:
        require(used <= data.size, "tile is too small for its rate codes")
        codes = np.repeat(data[:1], blocks) if uniform else data[:blocks]
    special = (codes > SENTINEL_BLOCK) & (codes < VERBATIM_BLOCK)
    require(not (uniform and special.any()), "special rate code in a uniform tile")
    require(header.codec == CUSZP2 or not (codes >= 247).any(), "rate code above 246 in a lossless frame")
    needs_sentinel = (codes == SENTINEL_BLOCK) | (special & ((codes - 247) & 1 == 1))
    require(bool(header.flags & HAS_SENTINEL) or not needs_sentinel.any(), "sentinel block, but no sentinel")

    count = int(special.sum())
    descriptors = data[used : used + 2 * count]
    used += 2 * count
    require(used <= data.size, "tile is too small for its descriptors")
    inner, verbatim_counts = codes.copy(), np.zeros(blocks, np.int64)
    inner[special], verbatim_counts[special] = descriptors[0::2], descriptors[1::2]
    require(bool((inner[special] <= 246).all()), "inner rate code above 246")
    require(bool((PLANES[inner] <= header.code_bits).all()), f"more bit planes than {header.code_bits}")

    ends = used + np.cumsum(OUTLIER_BYTES[inner])
    used = int(ends[-1])
    padding = -used % 4
    require(used + padding <= data.size, "tile is too small for its outlier bytes")
    require(not data[used : used + padding].any(), "padding of a tile is not zero")
    outliers = np.zeros(blocks, np.uint64)
    for byte in range(8):
        (has,) = np.nonzero(OUTLIER_BYTES[inner] > byte)
        at = ends[has] - OUTLIER_BYTES[inner[has]] + byte
        outliers[has] |= data[at].astype(np.uint64) << np.uint64(8 * byte)

    halves, value_words = values_per_block(header) // 32, header.dtype.itemsize // 4
    masks = np.where(special, codes - 247, 0)
    before_planes = halves * ((masks & 1) + (masks >> 1 & 1) + (masks >> 2 & 1)) + verbatim_counts * value_words
    before_planes[codes == VERBATIM_BLOCK] = 32 * halves * value_words
    words = before_planes + halves * PLANES[inner]
    word_ends = (used + padding) // 4 + np.cumsum(words)
    require(int(word_ends[-1]) == size, f"tile of {size} words, by its rate codes {word_ends[-1]}")
    starts = start + word_ends - words
    return Tile(codes, masks, inner, PLANES[inner], outliers, verbatim_counts, starts, starts + before_planes)


def parse_tiles(frame: bytes, header: Header) -> Tile | None:
    """All blocks of a frame as one; None where there are none."""
    offsets, uniform = parse_directory(frame, header)
    base = header.header_bytes // 4 + offsets.size
    blocks, per_tile = math.prod(block_grid(header)), 4096 // values_per_block(header)
    starts, sizes = base + offsets, np.diff(offsets)
    tiles = []
    for t in range(sizes.size):
        count = min(per_tile, blocks - t * per_tile)
        tiles.append(parse_tile(frame, header, int(starts[t]), int(sizes[t]), count, bool(uniform[t])))
    return Tile(*(np.concatenate(parts) for parts in zip(*tiles, strict=True))) if tiles else None


# ---- 5. From residuals to codes -------------------------------------------------------------------------------------


def codes_of_residuals(z: Array, outliers: NDArray[np.uint64], planes: Ints, header: Header) -> Array:
    """`z[block, i]` without its outliers -> `q[block, i]`; unsigned NumPy arithmetic is modulo 2^W."""
    shift = np.minimum(planes, 63).astype(np.uint64)  # P is at most 31 where there are outlier bytes
    z[:, 0] += (outliers << shift).astype(z.dtype)
    q = unzigzag(z)
    if header.codec == CUSZP2 and header.mode == FIXED:
        return q
    q = q.reshape({1: (-1, 32), 2: (-1, 8, 8), 3: (-1, 4, 4, 4)}[header.block_dims])
    for axis in range(q.ndim - 1, 0, -1):  # x, then y, then z
        q = np.cumsum(q, axis=axis, dtype=z.dtype)
    return q.reshape(z.shape)


# ---- 1, 3, 4, 16. Whole frame, raw payload, tiled payload, derived types ---------------------------------------------


def decode(frame: bytes) -> Array:
    """Decode a frame: an array of the frame's shape and (little-endian) type; of records section 17."""
    if records.is_records(frame):
        return records.decode_records(frame, decode)
    header = parse_header(frame)
    if len(frame) < header.frame_bytes:
        raise TruncatedFrame(f"{len(frame)} bytes of a frame of {header.frame_bytes}")
    require(len(frame) == header.frame_bytes, f"{len(frame)} bytes given for a frame of {header.frame_bytes}")
    values = decode_base(frame, header)
    return from_base(values, header) if header.derived else values


def from_base(values: Array, header: Header) -> Array:
    """Section 16: the values of the derived type."""
    if header.derived == B8:
        return values.view(header.element)
    if header.derived in (F16, BF16) and header.codec != LOSSLESS:
        return nearest_halves(values, header.derived).view(header.element)
    if header.derived in (F16, BF16):
        bits = values.view("<u2")
        return np.where(bits >> 15 == 1, bits ^ 0x7FFF, bits).astype("<u2").view(header.element)
    real, imaginary = values.reshape(2, -1)
    joined = np.empty(real.size, header.element)
    joined.real, joined.imag = real, imaginary
    return joined.reshape(header.shape)


def nearest_halves(values: Array, derived: int) -> Array:
    """The bit patterns of the nearest floats of 16 bits, finite ones of finite values."""
    bits = np.ascontiguousarray(values, "<f4").view("<u4")
    sign, largest = (bits >> 16 & 0x8000).astype("<u2"), 0x7BFF if derived == F16 else 0x7F7F
    shift = 13 if derived == F16 else 16
    if derived == F16:
        with np.errstate(over="ignore", invalid="ignore"):
            near = np.abs(values).astype("<f2").view("<u2")
    else:
        upper, rest = np.divmod(bits & 0x7FFFFFFF, 1 << 16)
        near = (upper + ((rest > 0x8000) | ((rest == 0x8000) & (upper % 2 == 1)))).astype("<u2")
    near = np.where(
        np.isfinite(values), np.minimum(near, largest), (largest + 1) | (bits >> shift & (0x7FFF ^ (largest + 1)))
    )
    return np.asarray(near.astype("<u2") | sign)


def decode_base(frame: bytes, header: Header) -> Array:
    """The base array, that of the frame itself where its type is no derived one."""
    if header.raw:
        return np.frombuffer(frame, header.dtype, header.value_count, header.header_bytes).reshape(header.dims)

    if header.codec == PROGRESSIVE:
        return progressive.decode_progressive(frame, header)
    if header.codec == LORENZO:
        return streams.decode_streams(frame, header)
    if header.codec == ADAPTIVE:
        return adaptive.decode_adaptive(frame, header)
    if header.codec == PARTICLES:
        return particles.decode_particles(frame, header)
    if header.bins:
        return bins.decode_bins(frame, header)
    if header.packed:
        return packed.decode_packed(frame, header)
    tile = parse_tiles(frame, header)
    if tile is None:
        return place_blocks(np.empty(0), header)
    words = np.frombuffer(frame, "<u4").astype(np.uint32)  # header, directory and tiles are whole words
    z = residuals(words, tile.plane_starts, tile.planes, header)
    values = values_of_codes(codes_of_residuals(z, tile.outliers, tile.planes, header), header)

    values[tile.codes == SENTINEL_BLOCK] = header.sentinel
    for block in np.nonzero(tile.masks)[0]:
        start, mask, count = (int(x[block]) for x in (tile.word_starts, tile.masks, tile.verbatim_counts))
        special_values(words, start, mask, count, values[block], header)
    for block in np.nonzero(tile.codes == VERBATIM_BLOCK)[0]:
        at = tile.word_starts[block]
        values[block] = words[at : at + values.shape[1] * header.dtype.itemsize // 4].view(values.dtype)
    return place_blocks(values.view(header.dtype.newbyteorder("=")), header)
