# SPDX-License-Identifier: BSD-3-Clause
"""Reference decoder of the frame format: docs/format.md section by section, in NumPy, and nothing else.

Written from that page alone, without a look at the library, so that the two can check each other. Section numbers
below are those of the page. `decode` is the whole of it; `parse_header` and `parse_directory` serve tests that look
inside a frame. Neighbour: encoder.py writes the frames that this reads.
"""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Words = NDArray[np.uint32]
Ints = NDArray[np.int64]


class FrameError(Exception):
    """A frame that cannot be decoded."""


class CorruptFrame(FrameError):
    """A "must" of the document is broken."""


class TruncatedFrame(FrameError):
    """The frame says that it is longer than the bytes given."""


class TooNew(FrameError):
    """A later version of the format; the text names the release that can read it."""


def require(condition: bool, text: str) -> None:
    """Report corruption unless the condition holds."""
    if not condition:
        raise CorruptFrame(text)


# ---- 2. Header ------------------------------------------------------------------------------------------------------

MAGIC = b"\x89PYF"
FORMAT_VERSION = 1
CUSZP2, LOSSLESS = 1, 2
RAW, BIG_ENDIAN, HAS_SENTINEL = 1, 2, 4
OUTLIER, PLAIN, FIXED = 0, 1, 2
DTYPES = {1: "<f4", 2: "<f8", 3: "<i1", 4: "<u1", 5: "<i2", 6: "<u2", 7: "<i4", 8: "<u4", 9: "<i8", 10: "<u8"}


@dataclass(frozen=True, kw_only=True)
class Header:
    """The fields of section 2, checked."""

    needs: tuple[int, int]
    codec: int
    dtype: np.dtype[Any]
    flags: int
    frame_bytes: int
    bound: float
    step: float
    sentinel: int
    mode: int
    block_dims: int
    dims: tuple[int, ...]

    @property
    def header_bytes(self) -> int:
        return 8 * (7 + len(self.dims))

    @property
    def value_count(self) -> int:
        return math.prod(self.dims)

    @property
    def raw(self) -> bool:
        return bool(self.flags & RAW)

    @property
    def code_bits(self) -> int:
        """W of section 5."""
        return 64 if self.dtype.itemsize == 8 else 32


def parse_header(frame: bytes) -> Header:
    """Section 2: the checks in its order."""
    if len(frame) < 8:
        raise TruncatedFrame(f"{len(frame)} bytes, fewer than the 8 that every frame begins with")
    require(frame[:4] == MAGIC, f"magic is {frame[:4]!r}")
    version, needs, units = frame[4], (frame[5], frame[6]), frame[7]
    if version > FORMAT_VERSION:
        raise TooNew(f"format version {version}: needs pyfilter >= {needs[0]}.{needs[1]}")
    require(version == FORMAT_VERSION, f"format version {version}")
    require(units >= 7, f"header of {8 * units} bytes")
    if len(frame) < 8 * units:
        raise TruncatedFrame(f"{len(frame)} bytes, but the header alone has {8 * units}")
    codec, dtype, flags, rank, crc, frame_bytes, bound, step, sentinel = struct.unpack_from("<4BIQddQ", frame, 8)
    require(units == 7 + rank, f"header of {8 * units} bytes for rank {rank}")
    actual = zlib.crc32(frame[:12] + bytes(4) + frame[16 : 8 * units])
    require(crc == actual, f"header_crc {crc:#010x}, should be {actual:#010x}")

    require(rank <= 32, f"rank {rank}")
    require(codec in (CUSZP2, LOSSLESS), f"codec {codec}")
    require(dtype in DTYPES, f"dtype {dtype}")
    require(codec == LOSSLESS or dtype <= 2, f"cuszp2 with dtype {dtype}")
    require(flags < 8, f"reserved flags {flags:#04x}")
    require(math.isfinite(bound) and math.copysign(1, bound) > 0, f"bound {bound}")
    require(math.isfinite(step) and math.copysign(1, step) > 0, f"step {step}")
    exact = codec == LOSSLESS or bool(flags & RAW)
    require(not exact or (bound == 0 and step == 0), f"bound {bound}, step {step} where the values are bit-exact")
    value_type = np.dtype(DTYPES[dtype])
    if dtype == 1:
        with np.errstate(all="ignore"):
            require(float(np.float32(step)) == step, f"step {step!r} is not a binary32")
    limit = 1 << 8 * value_type.itemsize if flags & HAS_SENTINEL else 1
    require(sentinel < limit, f"sentinel {sentinel:#x}")
    mode, block_dims = frame[48], frame[49]
    require(mode in ((OUTLIER, PLAIN, FIXED) if codec == CUSZP2 else (0,)), f"mode {mode}")
    require(1 <= block_dims <= min(3, max(rank, 1)), f"block dimensions {block_dims} for rank {rank}")
    require(not any(frame[50:56]), "reserved parameters")
    header = Header(
        needs=needs,
        codec=codec,
        dtype=value_type,
        flags=flags,
        frame_bytes=frame_bytes,
        bound=bound,
        step=step,
        sentinel=sentinel,
        mode=mode,
        block_dims=block_dims,
        dims=struct.unpack_from(f"<{rank}Q", frame, 56),
    )
    require(header.value_count < 1 << 61, f"dims {header.dims}")
    smallest = header.value_count * value_type.itemsize if header.raw else 4 * (tile_count(header) + 1)
    rest = frame_bytes - header.header_bytes
    require(rest == smallest or (rest > smallest and not header.raw), f"frame_bytes {frame_bytes}")
    return header


# ---- 4.1 Blocks of a shape ------------------------------------------------------------------------------------------


def values_per_block(header: Header) -> int:
    """B of section 4."""
    return 32 if header.block_dims == 1 else 64


def block_grid(header: Header) -> tuple[int, ...]:
    """Number of planes (or volumes), then of blocks along each of the last 2 or 3 dimensions; 1-D: (1, blocks)."""
    if header.block_dims == 1:
        return (1, -(-header.value_count // 32))
    others, last = header.dims[: -header.block_dims], header.dims[-header.block_dims :]
    edge = 8 if header.block_dims == 2 else 4
    return (math.prod(others), *(-(-size // edge) for size in last))


def tile_count(header: Header) -> int:
    return -(-math.prod(block_grid(header)) * values_per_block(header) // 4096)


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


# ---- 4.2 Directory --------------------------------------------------------------------------------------------------


def parse_directory(frame: bytes, header: Header) -> tuple[Ints, NDArray[np.bool_]]:
    """Offsets of the tiles (one more than tiles, in words from the end of the directory) and which are uniform."""
    raw = np.frombuffer(frame, "<u4", tile_count(header) + 1, header.header_bytes)
    offsets, uniform = (raw & 0x7FFFFFFF).astype(np.int64), raw >> 31 == 1
    require(not uniform[-1], "last word of the directory has bit 31")
    require(offsets[0] == 0, f"directory begins at {offsets[0]}")
    require(bool((np.diff(offsets) >= 0).all()), "directory decreases")
    total = header.header_bytes + 4 * raw.size + 4 * int(offsets[-1])
    require(header.frame_bytes == total, f"frame_bytes {header.frame_bytes}, by the directory {total}")
    return offsets, uniform[:-1]


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


# ---- 4.5 Words of a block -------------------------------------------------------------------------------------------


def unpack_mask(words: Words) -> NDArray[np.bool_]:
    """Bit i of the words -> element i; also the bits of any number of planes at once."""
    bits: NDArray[np.bool_] = words[..., None] >> np.arange(32, dtype=np.uint32) & 1 == 1
    return bits


def residuals(words: Words, plane_starts: Ints, planes: Ints, header: Header) -> Array:
    """The bit planes of all blocks -> `z[block, i]`."""
    halves = values_per_block(header) // 32
    z = np.zeros((planes.size, halves, 32), f"<u{header.code_bits // 8}")
    for count in range(1, int(planes.max(initial=0)) + 1):
        (some,) = np.nonzero(planes == count)
        for half in range(halves):
            for plane in range(count):
                bits = unpack_mask(words[plane_starts[some] + half * count + plane])
                z[some, half] |= bits.astype(z.dtype) << z.dtype.type(plane)
    return z.reshape(planes.size, 32 * halves)


def special_values(words: Words, start: int, mask: int, count: int, values: Array, header: Header) -> None:
    """Put the sentinels, NaNs and verbatim values of one special block into its `values` (bit patterns)."""
    mask_words = values.size // 32
    nan = 0x7FC00000 if header.dtype.itemsize == 4 else 0x7FF8000000000000
    for bit, pattern in ((1, header.sentinel), (2, nan)):
        if mask & bit:
            values[unpack_mask(words[start : start + mask_words]).reshape(-1)] = pattern
            start += mask_words
    if mask & 4:
        chosen = unpack_mask(words[start : start + mask_words]).reshape(-1)
        start += mask_words
        require(int(chosen.sum()) == count, f"verbatim count {count}, mask has {chosen.sum()}")
        values[chosen] = words[start : start + count * header.dtype.itemsize // 4].view(values.dtype)
    else:
        require(count == 0, f"verbatim count {count} without a mask")


# ---- 5. From residuals to codes -------------------------------------------------------------------------------------


def codes_of_residuals(z: Array, outliers: NDArray[np.uint64], planes: Ints, header: Header) -> Array:
    """`z[block, i]` without its outliers -> `q[block, i]`; unsigned NumPy arithmetic is modulo 2^W."""
    shift = np.minimum(planes, 63).astype(np.uint64)  # P is at most 31 where there are outlier bytes
    z[:, 0] += (outliers << shift).astype(z.dtype)
    one = z.dtype.type(1)
    q: Array = (z >> one) ^ (z.dtype.type(0) - (z & one))
    if header.codec == CUSZP2 and header.mode == FIXED:
        return q
    q = q.reshape({1: (-1, 32), 2: (-1, 8, 8), 3: (-1, 4, 4, 4)}[header.block_dims])
    for axis in range(q.ndim - 1, 0, -1):  # x, then y, then z
        q = np.cumsum(q, axis=axis, dtype=z.dtype)
    return q.reshape(z.shape)


# ---- 6. From codes to values ----------------------------------------------------------------------------------------


def values_of_codes(q: Array, header: Header) -> Array:
    """`q[block, i]` -> bit patterns of the values, unsigned and as wide as the data."""
    if header.codec == LOSSLESS:
        if header.dtype.kind == "f":
            top = q.dtype.type(header.code_bits - 1)
            return np.asarray(np.where(q >> top == 0, q, q ^ ((q.dtype.type(1) << top) - q.dtype.type(1))))
        return q.astype(f"<u{header.dtype.itemsize}")  # the low bits
    k, m = (0x4B400000, 12582912.0) if header.code_bits == 32 else (0x4338000000000000, 6755399441055744.0)
    t: Array = (q + q.dtype.type(k)).view(header.dtype)
    with np.errstate(all="ignore"):
        t = (t - t.dtype.type(m)) * t.dtype.type(header.step)
    return t.view(q.dtype)


# ---- 1, 3, 4. Whole frame, raw payload, tiled payload ---------------------------------------------------------------


def decode(frame: bytes) -> Array:
    """Decode a frame: an array of the frame's shape and (little-endian) type."""
    header = parse_header(frame)
    if len(frame) < header.frame_bytes:
        raise TruncatedFrame(f"{len(frame)} bytes of a frame of {header.frame_bytes}")
    require(len(frame) == header.frame_bytes, f"{len(frame)} bytes given for a frame of {header.frame_bytes}")
    if header.raw:
        return np.frombuffer(frame, header.dtype, header.value_count, header.header_bytes).reshape(header.dims)

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
