# SPDX-License-Identifier: BSD-3-Clause
"""Reference decoder: section 13 of docs/format.md, progressive frames, whole or in part.

Neighbours: decoder.py calls `decode_progressive`. Plain loops over bits where the document speaks of bits.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .header import HAS_SENTINEL, Header, TruncatedFrame, require
from .parts import Array

Bits = NDArray[np.bool_]
Extents = tuple[int, int, int]  # z, y, x

# ---- 13.1 Levels, units, tiles --------------------------------------------------------------------------------------


class Unit(NamedTuple):
    """The coefficients of an axis pass of a level."""

    level: int
    axis: int
    shape: Extents

    @property
    def tiled(self) -> Extents:
        """The shape that tiles cover."""
        z, y, x = self.shape
        if z > 1 and (y == 1 or x <= 4 or y * x <= 128):
            z, y, x = 1, z, y * x
        return (1, 1, y * x) if z == 1 and (y < 16 or x <= 4) else (z, y, x)

    @property
    def tile(self) -> Extents:
        if self.tiled[0] > 1:
            return (8, 16, 32)
        return (1, 128, 32) if self.tiled[1] > 1 else (1, 1, 4096)

    @property
    def grid(self) -> Extents:
        z, y, x = (-(-size // side) for size, side in zip(self.tiled, self.tile, strict=True))
        return z, y, x

    @property
    def tiles(self) -> int:
        return math.prod(self.grid)


def extents(dims: tuple[int, ...]) -> Extents:
    padded = (1, 1, *dims)
    return math.prod(padded[:-2]), padded[-2], padded[-1]


def levels_of(whole: Extents) -> list[Extents]:
    """Grids, the whole one first."""
    grids = [whole]
    while math.prod(grids[-1]) > 32:
        z, y, x = grids[-1]
        grids.append((-(-z // 2), -(-y // 2), -(-x // 2)))
    return grids


def units_of(grids: list[Extents]) -> list[Unit]:
    units = []
    for level in range(len(grids) - 2, -1, -1):
        z, y, x = grids[level]
        shapes = ((z // 2, -(-y // 2), -(-x // 2)), (z, y // 2, -(-x // 2)), (z, y, x // 2))
        units += [Unit(level, axis, shapes[axis]) for axis in range(3) if grids[level][axis] > 1]
    return units


# ---- 13.2 Head ------------------------------------------------------------------------------------------------------


class Segment(NamedTuple):
    unit: int
    plane: int
    start: int  # in the frame
    size: int
    error: float | None  # in steps


@dataclass
class Head:
    low: int
    high: int
    planes: list[int]
    cubic: list[bool]
    roots: list[int]
    segments: list[Segment]
    specials: bytes
    grids: list[Extents]
    units: list[Unit]
    end: int = 0  # of the last segment
    width: int = field(default=4)


def varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        require(at < len(data) and shift < 63, "a number of the head is not whole")
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            require(byte != 0 or shift == 0, "a number of the head has needless bytes")
            return value, at
        shift += 7


def parse_head(frame: bytes, header: Header) -> Head:
    grids = levels_of(extents(header.dims))
    units, width, at = units_of(grids), header.dtype.itemsize, header.header_bytes
    fixed = 32 + len(units)
    require(header.frame_bytes >= at + fixed, "the frame is too short for its head")
    if len(frame) < at + fixed:
        raise TruncatedFrame("no whole head")
    special_bytes, low, high, table_bytes, count, unit_count, reserved = struct.unpack_from("<QqqIHBB", frame, at)
    most = 1 << (27 if width == 4 else 56)
    require(special_bytes < 1 << 40, "part of special values")
    require(-most <= low <= high <= most, f"range {low} to {high}")
    require(unit_count == len(units) and reserved == 0, f"{unit_count} units")
    flags = frame[at + 32 : at + fixed]
    planes, cubic = [byte & 63 for byte in flags], [byte >= 128 for byte in flags]
    require(not any(byte & 64 for byte in flags), "reserved bit of a unit")
    require(all(p <= (29 if width == 4 else 58) for p in planes), f"planes {planes}")
    require(count == sum(p + 1 for p in planes if p > 0), f"{count} segments")
    at += fixed
    root_count = math.prod(grids[-1])
    start = at + root_count * width + table_bytes + special_bytes
    require(start <= header.frame_bytes, "the head is longer than the frame")
    if len(frame) < start:
        raise TruncatedFrame("no whole head")
    roots = [int(v) for v in np.frombuffer(frame, f"<i{width}", root_count, at)]
    require(all(low <= v <= high for v in roots), "a value of the coarsest grid")
    at += root_count * width
    table = frame[at : at + table_bytes]
    specials = frame[at + table_bytes : start]
    segments, following, at = [], [p - 1 if p > 0 else -2 for p in planes], 0
    for _ in range(count):
        require(at < len(table), "the table is too short")
        unit, marked = table[at] & 127, table[at] >= 128
        require(unit < len(units) and following[unit] >= -1, f"segment of unit {unit}")
        size, at = varint(table, at + 1)
        error = None
        if marked:
            require(at + 2 <= len(table), "the table is too short")
            code = int.from_bytes(table[at : at + 2], "little")
            require(0 < code < 0x7F80, f"error code {code:#x}")
            error = float(np.array([code << 16], "<u4").view("<f4")[0])
            at += 2
        segments.append(Segment(unit, following[unit], start, size, error))
        following[unit] -= 1
        start += size
    require(at == len(table), "the table is too long")
    require(not segments or segments[-1].error is not None, "no error behind the last segment")
    require(max(start, header.header_bytes + -(-header.value_count // 32768)) == header.frame_bytes, "size of segments")
    return Head(low, high, planes, cubic, roots, segments, specials, grids, units, start, width)


# ---- 13.5 Pieces ----------------------------------------------------------------------------------------------------


class BitReader:
    """Lowest bit first; zeros behind the end."""

    def __init__(self, data: bytes) -> None:
        self.bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        self.at = 0

    def take(self, count: int) -> NDArray[np.uint8]:
        require(self.at + count <= self.bits.size, "a piece is too short")
        self.at += count
        return self.bits[self.at - count : self.at]

    def run(self, k: int) -> int:
        zeros = 0
        while self.take(1)[0] == 0:
            zeros += 1
        return (zeros << k) + sum(int(bit) << i for i, bit in enumerate(self.take(k)))

    def ones(self, k: int, positions: int) -> list[int]:
        """Which of so many positions have a one, as runs of zeros before each."""
        found, at = [], 0
        while at < positions:
            run = self.run(k)
            require(run <= positions - at, "a run is too long")
            at += run
            if at < positions:
                found.append(at)
                at += 1
        return found

    def end(self) -> None:
        require(self.bits.size - self.at < 8 and not self.bits[self.at :].any(), "a piece is too long")


@dataclass
class Tile:
    """Positions in the order (z, y, x) of the tile; those outside the unit are not valid."""

    valid: Bits
    magnitude: list[int]
    negative: Bits
    known: Bits  # a one in the planes so far
    before: Bits  # and before the last of them


def neighbours(known: Bits, shape: Extents) -> NDArray[np.int64]:
    """How many neighbours along the axes have had their first one."""
    grid = known.reshape(shape)
    count = np.zeros(shape, np.int64)
    for axis in range(3):
        a, b = np.moveaxis(count, axis, 0), np.moveaxis(grid, axis, 0)
        a[1:] += b[:-1]
        a[:-1] += b[1:]
    return count.reshape(-1)


def decode_piece(tile: Tile, shape: Extents, plane: int, data: bytes) -> None:
    older = np.flatnonzero(tile.before)
    if plane < 0:
        require((len(data) > 0) == (older.size > 0), "the last piece of a tile")
        if older.size == 0:
            return
        reader = BitReader(data)
        for i, bit in zip(older, reader.take(older.size), strict=True):
            tile.magnitude[i] |= int(bit)
        reader.end()
        return
    fresh = np.zeros_like(tile.known)
    if data:
        require(len(data) >= 2, "a piece without its modes")
        modes = int.from_bytes(data[:2], "little")
        require(modes >> 12 == 0, "reserved bits of the modes")
        reader = BitReader(data[2:])
        if modes:
            kind = np.minimum(neighbours(tile.known, shape), 2)
            for c in range(3):
                places = np.flatnonzero(tile.valid & ~tile.known & (kind == c))
                mode = modes >> 4 * c & 15
                if mode == 15:
                    fresh[places] = reader.take(places.size)
                elif mode:
                    fresh[places[reader.ones(mode - 1, places.size)]] = True
            first = np.flatnonzero(fresh)
            tile.negative[first] = reader.take(first.size)
            for i in first:
                tile.magnitude[i] |= 1 << plane
        for i, bit in zip(older, reader.take(older.size), strict=True):
            tile.magnitude[i] |= int(bit) << (plane + 1)
        reader.end()
    else:
        require(older.size == 0, "a piece that is missing")
    tile.before = tile.known.copy()
    tile.known |= fresh


def middle(tile: Tile, plane: int) -> list[int]:
    """Coefficients when the piece of `plane` was the last."""
    values = []
    for i, m in enumerate(tile.magnitude):
        if plane >= 0 and tile.before[i]:
            m += 1 << plane
        elif plane > 0 and tile.known[i]:
            m += 1 << (plane - 1)
        values.append(-m if tile.negative[i] else m)
    return values


# ---- 13.4 Segments --------------------------------------------------------------------------------------------------


def pieces_of(frame: bytes, segment: Segment, tiles: int) -> list[bytes]:
    data = frame[segment.start : segment.start + segment.size]
    if len(data) < segment.size:
        raise TruncatedFrame("a segment is not whole")
    if segment.size == 0:
        return [b""] * tiles
    if tiles == 1:
        require(segment.size <= 1554, "a piece is too long")
        return [data]
    mask_bytes = -(-tiles // 8)
    require(len(data) >= mask_bytes, "a segment without its mask")
    mask = np.unpackbits(np.frombuffer(data[:mask_bytes], np.uint8), bitorder="little")
    require(not mask[tiles:].any() and bool(mask.any()), "mask of a segment")
    at = mask_bytes + 2 * int(mask.sum())
    require(len(data) >= at, "a segment without its sizes")
    sizes = iter(np.frombuffer(data, "<u2", int(mask.sum()), mask_bytes))
    pieces = []
    for filled in mask[:tiles]:
        size = int(next(sizes)) if filled else 0
        require(not filled or 0 < size <= len(data) - at, "size of a piece")
        pieces.append(data[at : at + size])
        at += size
    require(at == len(data), "size of a segment")
    return pieces


def coefficients(frame: bytes, head: Head, number: int, segments: list[Segment]) -> Array:
    """Those of unit `number` from the segments given."""
    unit, planes = head.units[number], head.planes[number]
    own = [s for s in segments if s.unit == number]
    result = np.zeros([g * t for g, t in zip(unit.grid, unit.tile, strict=True)], np.int64)
    valid = np.zeros(result.shape, bool)
    covered = tuple(slice(size) for size in unit.tiled)
    valid[covered] = True
    pieces = [pieces_of(frame, s, unit.tiles) for s in own]
    last = own[-1].plane if own else planes
    for t, place in enumerate(np.ndindex(*unit.grid)):
        cut = tuple(slice(p * side, (p + 1) * side) for p, side in zip(place, unit.tile, strict=True))
        nothing = np.zeros(4096, bool)
        tile = Tile(valid[cut].reshape(-1), [0] * 4096, nothing.copy(), nothing.copy(), nothing.copy())
        for segment, of_tiles in zip(own, pieces, strict=True):
            decode_piece(tile, unit.tile, segment.plane, of_tiles[t])
        if own:
            result[cut] = np.array(middle(tile, last), np.int64).reshape(unit.tile)
    return result[covered].reshape(unit.shape)


# ---- 13.3 Passes ----------------------------------------------------------------------------------------------------


def predictions(known: Array, count: int, cubic: bool) -> Array:
    """Of `count` points between and behind those along axis 0."""
    rows = []
    for j in range(count):
        if j + 1 >= len(known):
            rows.append(known[j])
        elif cubic and 1 <= j < len(known) - 2:
            rows.append((9 * (known[j] + known[j + 1]) - known[j - 1] - known[j + 2] + 8) >> 4)
        elif cubic and j + 2 < len(known):
            rows.append((3 * known[j] + 6 * known[j + 1] - known[j + 2] + 4) >> 3)
        elif cubic and j >= 1:
            rows.append((3 * known[j + 1] + 6 * known[j] - known[j - 1] + 4) >> 3)
        else:
            rows.append((known[j] + known[j + 1] + 1) >> 1)
    return np.array(rows)


def raise_level(frame: bytes, head: Head, level: int, coarse: Array, segments: list[Segment]) -> Array:
    """The grid of `level` from that of the level above it."""
    values = coarse
    for number, unit in enumerate(head.units):
        if unit.level != level:
            continue
        details = np.moveaxis(coefficients(frame, head, number, segments), unit.axis, 0)
        known = np.moveaxis(values, unit.axis, 0)
        guess = np.clip(predictions(known, len(details), head.cubic[number]), head.low, head.high)
        merged = np.empty((len(known) + len(details), *known.shape[1:]), np.int64)
        merged[0::2] = known
        merged[1::2] = np.clip(guess + details, head.low, head.high)
        values = np.moveaxis(merged, 0, unit.axis)
    return values


# ---- 13.7 Special values --------------------------------------------------------------------------------------------


def special_values(head: Head, header: Header) -> tuple[Bits, dict[int, bytes]]:
    """Which values are missing; the bytes of the verbatim ones."""
    data, n, row = head.specials, header.value_count, head.grids[0][2]
    missing = np.zeros(n, bool)
    verbatim: dict[int, bytes] = {}
    if not data:
        return missing, verbatim
    require(len(data) >= 16, "part of special values")
    count, others = struct.unpack_from("<QQ", data)
    require(count + others <= n and count + others > 0, "number of special values")
    require(count == 0 or bool(header.flags & HAS_SENTINEL), "missing values without a sentinel")
    at = 16
    if count == n:
        missing[:] = True
    elif count:
        pieces = -(-n // 32768)
        require(len(data) >= at + 2 * pieces, "sizes of the mask")
        sizes = np.frombuffer(data, "<u2", pieces, at)
        at += 2 * pieces
        for p, size in enumerate(int(s) for s in sizes):
            piece, at = data[at : at + size], at + size
            require(len(piece) == size, "a piece of the mask")
            if size == 0:
                continue
            require(size >= 2 and piece[0] <= 15, "a piece of the mask")
            reader = BitReader(piece[1:])
            missing[[32768 * p + i for i in reader.ones(piece[0], min(32768, n - 32768 * p))]] = True
            reader.end()
        missing[:row] = np.bitwise_xor.accumulate(missing[:row])
        missing = np.bitwise_xor.accumulate(missing.reshape(-1, row), axis=0).reshape(-1)
        require(int(missing.sum()) == count, "number of missing values")
    following = 0
    for _ in range(others):
        gap, at = varint(data, at)
        require(gap < n - following and len(data) - at >= head.width, "a verbatim value")
        require(not missing[following + gap], "a verbatim value that is missing")
        verbatim[following + gap] = data[at : at + head.width]
        at += head.width
        following += gap + 1
    require(at == len(data), "part of special values")
    return missing, verbatim


# ---- 13. Frames -----------------------------------------------------------------------------------------------------


def decode_progressive(frame: bytes, header: Header, count: int | None = None, level: int = 0) -> Array:
    """The values of the grid of `level` from the first `count` segments, by default all."""
    head = parse_head(frame, header)
    segments = head.segments if count is None else head.segments[:count]
    require(count is not None or not any(frame[head.end :]), "bytes behind the segments")
    segments = [s for s in segments if head.units[s.unit].level >= level]
    grid = np.array(head.roots, np.int64).reshape(head.grids[-1])
    for k in range(len(head.grids) - 2, level - 1, -1):
        grid = raise_level(frame, head, k, grid, segments)
    grid = np.ascontiguousarray(grid)
    with np.errstate(all="ignore"):
        exponent = math.frexp(header.step)[1] - 1
        values = np.ldexp(grid.astype(np.float64), exponent).astype(header.dtype.newbyteorder("="))
    patterns = values.view(f"u{head.width}")
    if header.flags & HAS_SENTINEL:
        patterns[patterns == header.sentinel] -= 1
    missing, verbatim = special_values(head, header)
    every = slice(None, None, 1 << level)
    patterns[missing.reshape(head.grids[0])[every, every, every]] = header.sentinel
    _, y, x = head.grids[0]
    for i, data in verbatim.items():
        place = (i // (x * y), i // x % y, i % x)
        if all(p % (1 << level) == 0 for p in place):
            patterns[tuple(p >> level for p in place)] = int.from_bytes(data, "little")
    shape = tuple(-(-size // (1 << level)) for size in header.dims)
    return values.reshape(shape)
