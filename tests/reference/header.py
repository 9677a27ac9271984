# SPDX-License-Identifier: BSD-3-Clause
"""Reference decoder: errors, and section 2 of docs/format.md with the numbers of tiles that it needs (4.1, 7.1).

Neighbours: decoder.py goes on with the payload.
"""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .adaptive_grid import PARTS, least_bytes, make_grid


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
FORMAT_VERSION = 11
CUSZP2, LOSSLESS, HIERARCHICAL_DELTA, LORENZO, PARTICLES, PROGRESSIVE, ADAPTIVE = 1, 2, 3, 4, 5, 6, 7
FIRST_VERSIONS = {CUSZP2: 1, LOSSLESS: 1, HIERARCHICAL_DELTA: 2, LORENZO: 3, PARTICLES: 4, PROGRESSIVE: 5, ADAPTIVE: 7}
CARRIED_VERSION, BINS_VERSION, DERIVED_VERSION, SHORT_STATES_VERSION, PARTS_VERSION = 6, 7, 8, 10, 11
RANS_FULL, RANS = 1, 4  # coders of lorenzo (parameter byte 1) with states of 32 bits, and of as many as they need
BINS, MOST_UNIT_VALUES = 1, 1 << 18  # form of lossless (parameter byte 0), and values of its largest unit
RAW, BIG_ENDIAN, HAS_SENTINEL, POINTWISE, CARRIED = 1, 2, 4, 8, 16
OUTLIER, PLAIN, FIXED = 0, 1, 2
DTYPES = {1: "<f4", 2: "<f8", 3: "<i1", 4: "<u1", 5: "<i2", 6: "<u2", 7: "<i4", 8: "<u4", 9: "<i8", 10: "<u8"}
C64, C128, B8, F16, BF16 = 11, 12, 13, 14, 15
DERIVED = {C64: 1, C128: 2, B8: 4, F16: 5, BF16: 5}  # section 16: dtype -> base dtype, of F16 and BF16 bit for bit
ELEMENTS = {C64: "<c8", C128: "<c16", B8: "?", F16: "<f2", BF16: "V2"}


@dataclass(frozen=True, kw_only=True)
class Header:
    """The fields of section 2, checked; dtype and dims are those of the base array (section 16)."""

    needs: tuple[int, int]
    codec: int
    derived: int  # dtype as the header has it where that is a derived one, else 0
    dtype: np.dtype[Any]
    flags: int
    frame_bytes: int
    bound: float
    carried_bound: float
    step: float
    sentinel: int
    parameters: bytes
    dims: tuple[int, ...]
    shape: tuple[int, ...]  # of the array

    @property
    def element(self) -> np.dtype[Any]:
        """Type of the array's values."""
        return np.dtype(ELEMENTS[self.derived]) if self.derived else self.dtype

    @property
    def mode(self) -> int:
        """Of cuszp2."""
        return self.parameters[0]

    @property
    def block_dims(self) -> int:
        """Of cuszp2 and lossless."""
        return self.parameters[1]

    @property
    def bins(self) -> bool:
        """Whether the payload of lossless is that of section 15."""
        return self.codec == LOSSLESS and self.parameters[0] == BINS

    @property
    def tile_shape(self) -> int:
        """Of hierarchical_delta and lorenzo, as the order."""
        return self.parameters[0]

    @property
    def order(self) -> int:
        return self.parameters[2]

    @property
    def packed(self) -> bool:
        """Whether tiles are those of section 7."""
        return self.codec in (HIERARCHICAL_DELTA, LORENZO)

    @property
    def coder(self) -> int:
        """Of lorenzo, as the number of tiles in a group."""
        return self.parameters[1]

    @property
    def rans(self) -> bool:
        """Whether streams are those of rans coders."""
        return self.coder in (RANS_FULL, RANS)

    @property
    def group_log2(self) -> int:
        return self.parameters[3]

    @property
    def tiles_together(self) -> int:
        """Tiles of a group or unit."""
        log2 = {LORENZO: self.group_log2, ADAPTIVE: self.parameters[2]}
        return 1 << log2.get(self.codec, 0)

    @property
    def header_bytes(self) -> int:
        return 8 * (7 + len(self.shape))

    @property
    def value_count(self) -> int:
        return math.prod(self.dims)

    @property
    def raw(self) -> bool:
        return bool(self.flags & RAW)

    @property
    def exact(self) -> bool:
        """Whether codes stand for the bits of the values."""
        return self.step == 0

    @property
    def pointwise(self) -> bool:
        """Whether the bound is relative to each value."""
        return bool(self.flags & POINTWISE)

    @property
    def code_bits(self) -> int:
        """W of section 5."""
        return 64 if self.dtype.itemsize == 8 else 32


def first_version(codec: int, parameters: bytes) -> int:
    """The first version of the format that has such frames."""
    if codec == LORENZO and parameters[1] == RANS:
        return SHORT_STATES_VERSION
    if codec == ADAPTIVE and parameters[1] == PARTS:
        return PARTS_VERSION
    return BINS_VERSION if codec == LOSSLESS and parameters[0] == BINS else FIRST_VERSIONS[codec]


def base_dims(derived: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Section 16: the shape of the base array."""
    if derived not in (C64, C128):
        return shape
    return (2 * shape[0], *shape[1:]) if shape else (2,)


def parse_header(frame: bytes) -> Header:
    """Section 2: the checks in its order."""
    if len(frame) < 8:
        raise TruncatedFrame(f"{len(frame)} bytes, fewer than the 8 that every frame begins with")
    require(frame[:4] == MAGIC, f"magic is {frame[:4]!r}")
    version, needs, units = frame[4], (frame[5], frame[6]), frame[7]
    if version > FORMAT_VERSION:
        raise TooNew(f"format version {version}: needs pyfilter >= {needs[0]}.{needs[1]}")
    require(version > 0, "format version 0")
    require(units >= 7, f"header of {8 * units} bytes")
    if len(frame) < 8 * units:
        raise TruncatedFrame(f"{len(frame)} bytes, but the header alone has {8 * units}")
    codec, dtype, flags, rank, crc, frame_bytes, bound, step, sentinel = struct.unpack_from("<4BIQddQ", frame, 8)
    require(units == 7 + rank, f"header of {8 * units} bytes for rank {rank}")
    actual = zlib.crc32(frame[:12] + bytes(4) + frame[16 : 8 * units])
    require(crc == actual, f"header_crc {crc:#010x}, should be {actual:#010x}")

    require(rank <= 32, f"rank {rank}")
    require(codec in FIRST_VERSIONS, f"codec {codec}")
    require(version >= first_version(codec, frame[48:56]), f"codec {codec} in format version {version}")
    require(dtype in DTYPES or dtype in DERIVED, f"dtype {dtype}")
    derived = dtype if dtype in DERIVED else 0
    require(not derived or version >= DERIVED_VERSION, f"dtype {dtype} in format version {version}")
    require(not derived or codec not in (PARTICLES, PROGRESSIVE), f"codec {codec} with dtype {dtype}")
    require(derived != B8 or codec == LOSSLESS, f"codec {codec} with dtype {dtype}")
    halves = derived in (F16, BF16) and codec != LOSSLESS
    require(not halves or (step != 0 and not flags & RAW), f"codec {codec} with dtype {dtype} without a bound")
    dtype = 1 if halves else DERIVED.get(dtype, dtype)
    require(codec not in (CUSZP2, PARTICLES, PROGRESSIVE, ADAPTIVE) or dtype <= 2, f"codec {codec} with dtype {dtype}")
    require(flags < 32, f"reserved flags {flags:#04x}")
    require(math.isfinite(bound) and bound >= 0, f"bound {bound}")
    require(math.isfinite(step) and step >= 0, f"step {step}")
    exact = codec == LOSSLESS or bool(flags & RAW) or (codec == HIERARCHICAL_DELTA and step == 0)
    require((bound == 0) is exact and (step == 0) is exact, f"bound {bound}, step {step}; bit-exact: {exact}")
    require(not (exact and flags & HAS_SENTINEL), "sentinel where the values are bit-exact")
    pointwise = bool(flags & POINTWISE)
    require(
        not pointwise or (codec in (HIERARCHICAL_DELTA, LORENZO) and not exact),
        "pointwise relative bound where there is none",
    )
    require(not pointwise or bound < 1, f"pointwise relative bound of {bound}")
    require(not pointwise or dtype <= 2, f"pointwise relative bound of dtype {dtype}")
    value_type = np.dtype(DTYPES[dtype])
    if dtype > 2 and not exact:
        limit = 2**62 if value_type.itemsize == 8 else 2**30
        require(bound == int(bound) <= limit, f"bound {bound} of integers")
        require(step == 2 * int(bound) + (bound < 2**52), f"step {step} of integers with a bound of {bound}")
    if codec == PROGRESSIVE and not exact:
        lowest = -149 if dtype == 1 else -1073
        mantissa, exponent = math.frexp(step)
        require(mantissa == 0.5 and exponent - 1 >= lowest and bound == step / 2, f"bound {bound}, step {step}")
    elif dtype == 1 and not pointwise:
        with np.errstate(all="ignore"):
            require(float(np.float32(step)) == step, f"step {step!r} is not a binary32")
    limit = 1 << 8 * value_type.itemsize if flags & HAS_SENTINEL else 1
    require(sentinel < limit, f"sentinel {sentinel:#x}")
    parameters, carried_bound = frame[48:56], 0.0
    if flags & CARRIED:
        require(version >= CARRIED_VERSION, f"a carried bound in format version {version}")
        (carried_bound,) = struct.unpack("<d", bytes(4) + frame[52:56])
        require(math.isfinite(carried_bound) and carried_bound > bound, f"carried bound {carried_bound}")
        require(not pointwise, "a carried bound beside a pointwise relative one")
        parameters = frame[48:52] + bytes(4)
    shape = struct.unpack_from(f"<{rank}Q", frame, 56)
    header = Header(
        needs=needs,
        codec=codec,
        derived=derived,
        dtype=value_type,
        flags=flags,
        frame_bytes=frame_bytes,
        bound=bound,
        carried_bound=carried_bound,
        step=step,
        sentinel=sentinel,
        parameters=parameters,
        dims=base_dims(derived, shape),
        shape=shape,
    )
    check_parameters(codec, parameters, header.dims)
    require(codec != PARTICLES or (rank >= 2 and header.dims[-1] in (2, 3)), f"particles of shape {header.dims}")
    for dims in (shape, header.dims):
        require(math.prod(size for size in dims if size > 0) < 1 << 61, f"dims {dims}")
    entries = 0 if header.bins else -(-tile_count(header) // header.tiles_together)
    smallest = header.value_count * value_type.itemsize if header.raw else 4 * (entries + 1)
    if codec == ADAPTIVE and not header.raw:
        smallest = least_bytes(header.dims, parameters[1], parameters[2])
    if header.bins and not header.raw:
        smallest = 8 + 12 * -(-header.value_count // MOST_UNIT_VALUES)
    if codec == PROGRESSIVE and not header.raw:
        require(header.value_count > 0, "a progressive frame of no values")
        smallest = max(32, -(-header.value_count // 32768))
    rest = frame_bytes - header.header_bytes
    require(rest == smallest or (rest > smallest and not header.raw), f"frame_bytes {frame_bytes}")
    return header


def check_parameters(codec: int, parameters: bytes, dims: tuple[int, ...]) -> None:
    """The bytes at offset 48."""
    rank = len(dims)
    if codec == ADAPTIVE:
        axes = (0, 1, PARTS) if len(make_grid(dims, 0).dims) >= 4 else (0, PARTS)
        log2 = 0 if parameters[1] == PARTS else 4
        require(parameters[0] == 1 and parameters[1] in axes and parameters[2] <= log2, f"parameters {parameters!r}")
        require(not any(parameters[3:]), "reserved parameters")
        return
    if codec in (HIERARCHICAL_DELTA, LORENZO):
        shape, choice, order, group_log2 = parameters[:4]
        require(1 <= shape <= len(TILE_SHAPES), f"tile shape {shape}")
        require(rank >= TILE_SHAPES[shape].rank, f"tile shape {shape} for rank {rank}")
        require(1 <= choice <= (2 if codec == HIERARCHICAL_DELTA else RANS), f"parameter byte 1 is {choice}")
        require(order in TILE_SHAPES[shape].orders, f"order {order} with tile shape {shape}")
        require(group_log2 <= (0 if codec == HIERARCHICAL_DELTA else 5), f"parameter byte 3 is {group_log2}")
        require(not any(parameters[4:]), "reserved parameters")
        return
    if codec == PARTICLES:
        require(parameters[0] <= 2 and not any(parameters[1:]), f"parameters {parameters!r}")
        return
    if codec == PROGRESSIVE:
        require(parameters[0] in (1, 2), f"parameter byte 0 is {parameters[0]}")
        require(not any(parameters[1:]), "reserved parameters")
        return
    mode, block_dims = parameters[:2]
    if codec == LOSSLESS and mode == BINS:
        require(not any(parameters[1:]), "reserved parameters")
        return
    require(mode in ((OUTLIER, PLAIN, FIXED) if codec == CUSZP2 else (0,)), f"mode {mode}")
    require(1 <= block_dims <= min(3, max(rank, 1)), f"block dimensions {block_dims} for rank {rank}")
    require(not any(parameters[2:]), "reserved parameters")


# ---- 7.1 Tiles of a shape -------------------------------------------------------------------------------------------


class TileShape(NamedTuple):
    """A row of the table."""

    tile: tuple[int, int, int]  # z, y, x
    block: tuple[int, int, int]
    rank: int  # at least
    orders: tuple[int, ...]


CHAIN, PLANE, VOLUME, COLUMNS = 1, 2, 3, 4
TILE_SHAPES = {
    CHAIN: TileShape((1, 1, 4096), (1, 1, 32), 0, (0, 1)),
    PLANE: TileShape((1, 64, 64), (1, 4, 8), 2, (1, 2)),
    VOLUME: TileShape((8, 16, 32), (2, 4, 4), 3, (1, 2, 3)),
    COLUMNS: TileShape((1, 1024, 4), (1, 32, 1), 2, (1,)),
}


def packed_extents(header: Header) -> tuple[int, int, int, int]:
    """The array as (m, z, y, x); not for arrays of no values."""
    dims, n = header.dims, header.value_count
    if header.tile_shape == CHAIN:
        return 1, 1, 1, n
    if header.tile_shape == PLANE:
        return math.prod(dims[:-2]), 1, dims[-2], dims[-1]
    if header.tile_shape == VOLUME:
        return math.prod(dims[:-3]), dims[-3], dims[-2], dims[-1]
    return 1, 1, math.prod(dims[:-1]), dims[-1]


def packed_grid(header: Header) -> tuple[int, int, int, int]:
    """Number of tiles along m, z, y and x."""
    m, *extents = packed_extents(header)
    gz, gy, gx = (-(-n // side) for n, side in zip(extents, TILE_SHAPES[header.tile_shape].tile, strict=True))
    return m, gz, gy, gx


# ---- 4.1 Blocks of a shape ------------------------------------------------------------------------------------------


def values_per_block(header: Header) -> int:
    """B of section 4."""
    return 32 if header.packed or header.block_dims == 1 else 64


def block_grid(header: Header) -> tuple[int, ...]:
    """Number of planes (or volumes), then of blocks along each of the last 2 or 3 dimensions; 1-D: (1, blocks)."""
    if header.block_dims == 1:
        return (1, -(-header.value_count // 32))
    others, last = header.dims[: -header.block_dims], header.dims[-header.block_dims :]
    edge = 8 if header.block_dims == 2 else 4
    return (math.prod(others), *(-(-size // edge) for size in last))


def tile_count(header: Header) -> int:
    """Sections 4, 7.1 and 12.1."""
    if header.codec == PARTICLES:
        return -(-header.value_count // (4096 * header.dims[-1]))
    if header.codec == PROGRESSIVE:
        return 0  # it has no directory
    if header.codec == ADAPTIVE:
        return make_grid(header.dims, header.parameters[1]).tiles
    if header.packed:
        return math.prod(packed_grid(header)) if header.value_count > 0 else 0
    return -(-math.prod(block_grid(header)) * values_per_block(header) // 4096)
