# SPDX-License-Identifier: BSD-3-Clause
"""Writer of progressive frames: any choice that section 13 of docs/format.md allows, also those that ours never makes.

Shares no code with progressive.py. Coefficients are said tile by tile (`Content`); `write_content` makes the bytes and
`random_frame` a frame of random ones: segments in any order, modes that waste bits, errors anywhere.
"""

from __future__ import annotations

import math
import random
import struct
from dataclasses import dataclass, field
from typing import Any

from .encoder import Spec, write_header

Extents = tuple[int, int, int]


# ---- 13.1 Levels, units, tiles --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A unit: the shape that its tiles cover, and theirs."""

    shape: Extents
    tile: Extents

    def tiles(self) -> list[Extents]:
        """Where each starts."""
        sides = [range(0, size, side) for size, side in zip(self.shape, self.tile, strict=True)]
        return [(z, y, x) for z in sides[0] for y in sides[1] for x in sides[2]]

    def valid(self, start: Extents) -> list[int]:
        """Positions of a tile that are in the unit."""
        found = []
        for i in range(4096):
            z, rest = divmod(i, self.tile[1] * self.tile[2])
            y, x = divmod(rest, self.tile[2])
            if all(s + p < size for s, p, size in zip(start, (z, y, x), self.shape, strict=True)):
                found.append(i)
        return found


def places(dims: tuple[int, ...]) -> tuple[int, list[Place]]:
    """The number of roots, and the units from the coarsest level on."""
    z, y, x = math.prod((1, *dims)[:-2]) if len(dims) > 2 else 1, (1, 1, *dims)[-2], (1, 1, *dims)[-1]
    units: list[Place] = []
    while z * y * x > 32:
        coarse = ((z + 1) // 2, (y + 1) // 2, (x + 1) // 2)
        shapes = ((z // 2, coarse[1], coarse[2]), (z, y // 2, coarse[2]), (z, y, x // 2))
        units = [place_of(s) for s, extent in zip(shapes, (z, y, x), strict=True) if extent > 1] + units
        z, y, x = coarse
    return z * y * x, units


def place_of(shape: Extents) -> Place:
    z, y, x = shape
    if z > 1 and (y == 1 or x <= 4 or y * x <= 128):
        z, y, x = 1, z, y * x
    if z == 1 and (y < 16 or x <= 4):
        y, x = 1, y * x
    return Place((z, y, x), (8, 16, 32) if z > 1 else (1, 128, 32) if y > 1 else (1, 1, 4096))


# ---- 13.5 Pieces ----------------------------------------------------------------------------------------------------


class Bits:
    """Lowest first."""

    def __init__(self) -> None:
        self.text: list[int] = []

    def run(self, zeros: int, k: int) -> None:
        self.text += [0] * (zeros >> k) + [1] + [zeros >> i & 1 for i in range(k)]

    def ones(self, flags: list[int], k: int) -> None:
        """Runs of zeros before each one, and those behind the last, if there are any."""
        run = 0
        for flag in flags:
            if flag:
                self.run(run, k)
            run = 0 if flag else run + 1
        if run:
            self.run(run, k)

    def data(self) -> bytes:
        padded = self.text + [0] * (-len(self.text) % 8)
        return bytes(sum(bit << i for i, bit in enumerate(padded[at : at + 8])) for at in range(0, len(padded), 8))


def neighbours(i: int, tile: Extents) -> list[int]:
    z, rest = divmod(i, tile[1] * tile[2])
    y, x = divmod(rest, tile[2])
    found = []
    for dz, dy, dx in ((-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)):
        if 0 <= z + dz < tile[0] and 0 <= y + dy < tile[1] and 0 <= x + dx < tile[2]:
            found.append(((z + dz) * tile[1] + y + dy) * tile[2] + x + dx)
    return found


def write_pieces(place: Place, start: Extents, values: dict[int, int], planes: int, rng: random.Random) -> list[bytes]:
    """Of one tile, from the highest plane to -1; `values`: coefficients by position, others are 0."""
    valid, known, before = place.valid(start), set[int](), set[int]()
    pieces = []
    for p in range(planes - 1, -1, -1):
        fresh = {i for i in values if i not in known and abs(values[i]) >> p & 1}
        out, modes = Bits(), 0
        if fresh:
            classes: list[list[int]] = [[], [], []]
            for i in valid:
                if i not in known:
                    classes[min(2, sum(n in known for n in neighbours(i, place.tile)))].append(i)
            for c, members in enumerate(classes):
                flags = [int(i in fresh) for i in members]
                mode = rng.choice((15, rng.randint(1, 4), rng.randint(1, 14)))
                mode = 0 if not any(flags) and rng.random() < 0.8 else mode
                modes |= mode << 4 * c
                if mode == 15:
                    out.text += flags
                elif mode:
                    out.ones(flags, mode - 1)
            out.text += [int(values[i] < 0) for i in sorted(fresh)]
        out.text += [abs(values[i]) >> (p + 1) & 1 for i in sorted(before)]
        pieces.append(struct.pack("<H", modes) + out.data() if fresh or before or rng.random() < 0.1 else b"")
        before = set(known)
        known |= fresh
    last = Bits()
    last.text = [abs(values[i]) & 1 for i in sorted(before)]
    pieces.append(last.data())
    return pieces


def write_segment(pieces: list[bytes]) -> bytes:
    """13.4."""
    if len(pieces) == 1 or not any(pieces):
        return pieces[0] if len(pieces) == 1 else b""
    mask = Bits()
    mask.text = [int(len(piece) > 0) for piece in pieces]
    return mask.data() + b"".join(struct.pack("<H", len(p)) for p in pieces if p) + b"".join(pieces)


# ---- 13.2 Head ------------------------------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes((value & 127 | 128,))
        value >>= 7
    return out + bytes((value,))


@dataclass(kw_only=True)
class Content:
    """Everything behind the header."""

    low: int = -100
    high: int = 100
    roots: list[int] = field(default_factory=list)
    planes: list[int] = field(default_factory=list)
    cubic: list[bool] = field(default_factory=list)
    segments: list[tuple[int, bytes, int]] = field(default_factory=list)  # unit, bytes, code of the error or 0
    specials: bytes = b""


def write_table(content: Content) -> bytes:
    out = b""
    for unit, data, error in content.segments:
        out += bytes((unit | 128 * (error > 0),)) + varint(len(data)) + (struct.pack("<H", error) if error else b"")
    return out


def write_payload(spec: Spec, content: Content, table: bytes | None = None) -> bytes:
    table = write_table(content) if table is None else table
    counts = (len(table), len(content.segments), len(content.planes), 0)
    head = struct.pack("<QqqIHBB", len(content.specials), content.low, content.high, *counts)
    head += bytes(p | 128 * c for p, c in zip(content.planes, content.cubic, strict=True))
    head += struct.pack(f"<{len(content.roots)}{'i' if spec.value_bytes == 4 else 'q'}", *content.roots)
    payload = head + table + content.specials + b"".join(data for _, data, _ in content.segments)
    return payload + bytes(max(0, -(-math.prod(spec.dims) // 32768) - len(payload)))


def write_frame(spec: Spec, content: Content) -> bytes:
    payload = write_payload(spec, content)
    return write_header(spec, len(payload)) + payload


# ---- 13.7 Special values --------------------------------------------------------------------------------------------


def write_specials(missing: list[int], verbatim: dict[int, bytes], row: int, rng: random.Random) -> bytes:
    """`missing`: a flag for each value."""
    if not any(missing) and not verbatim:
        return b""
    out = struct.pack("<QQ", sum(missing), len(verbatim))
    if any(missing) and not all(missing):
        sums = [m ^ (missing[i - row] if i >= row else missing[i - 1] if i else 0) for i, m in enumerate(missing)]
        pieces = []
        for at in range(0, len(sums), 32768):
            part, k, bits = sums[at : at + 32768], rng.randint(3, 15), Bits()
            bits.ones(part, k)
            pieces.append(bytes((k,)) + bits.data() if any(part) or rng.random() < 0.2 else b"")
        out += b"".join(struct.pack("<H", len(piece)) for piece in pieces) + b"".join(pieces)
    following = 0
    for i in sorted(verbatim):
        out += varint(i - following) + verbatim[i]
        following = i + 1
    return out


# ---- Frames ---------------------------------------------------------------------------------------------------------

SHAPES: tuple[tuple[int, ...], ...] = (
    *((1,), (31,), (33,), (200,), (2, 20), (20, 2), (17, 21), (40, 3), (5, 6, 7), (3, 1, 40), (2, 40, 1)),
    *((12, 20, 12), (2, 3, 5, 4), (1, 1), (), (8300,), (150, 70)),
)


def random_content(spec: Spec, rng: random.Random) -> Content:
    """Of any coefficients and any order."""
    roots, units = places(spec.dims)
    width, most = spec.value_bytes, rng.choice((3, 100, 1 << 20, 1 << (27 if spec.value_bytes == 4 else 56)))
    low, high = sorted(rng.randint(-most, most) for _ in range(2))
    content = Content(low=low, high=high, roots=[rng.randint(low, high) for _ in range(roots)])
    left: list[list[bytes]] = []
    for place in units:
        planes = rng.choice((0, 1, 2, rng.randint(0, 8), rng.randint(0, 29 if width == 4 else 58)))
        content.planes.append(planes)
        content.cubic.append(rng.random() < 0.5)
        if planes == 0:
            left.append([])
            continue
        of_tiles = []
        for start in place.tiles():
            valid = place.valid(start)
            some = rng.sample(valid, min(len(valid), rng.choice((0, 1, 20, 200))))
            values = {i: rng.choice((-1, 1)) * rng.getrandbits(rng.randint(1, planes)) for i in some}
            of_tiles.append(write_pieces(place, start, {i: v for i, v in values.items() if v}, planes, rng))
        left.append([write_segment([pieces[p] for pieces in of_tiles]) for p in range(planes + 1)])
    while any(left):
        unit = rng.choice([u for u, segments in enumerate(left) if segments])
        error = rng.choice((0, rng.randint(1, 0x7F7F)))
        content.segments.append((unit, left[unit].pop(0), error if any(left) else rng.randint(1, 0x7F7F)))
    return content


def random_frame(rng: random.Random) -> tuple[Spec, bytes, list[Any]]:
    """A frame of some shape, with or without special values."""
    dims = rng.choice(SHAPES)
    while math.prod(dims) > 1000 and rng.random() < 0.7:
        dims = rng.choice(SHAPES)
    dtype = rng.choice(("f4", "f8"))
    bits = 32 if dtype == "f4" else 64
    sentinel = rng.choice((None, 0x7FC00000, 0, 0x41200000, rng.getrandbits(32)))
    step = 2.0 ** rng.choice((-10, 0, 3, rng.randint(-149 if bits == 32 else -1073, 90)))
    spec = Spec(
        codec="progressive",
        dtype=dtype,
        dims=dims,
        errors=rng.choice((1, 2)),
        bound=step / 2,
        step=step,
        sentinel=sentinel,
        big_endian=rng.random() < 0.2,
    )
    content = random_content(spec, rng)
    count = math.prod(dims)
    rate = rng.choice((0.0, 0.0, 0.1, 0.6, 1.0)) if sentinel is not None else 0.0
    missing = [int(rng.random() < rate) for _ in range(count)]
    some = [i for i in rng.sample(range(count), min(count, rng.choice((0, 0, 1, 9)))) if not missing[i]]
    content.specials = write_specials(
        missing, {i: rng.randbytes(bits // 8) for i in some}, dims[-1] if dims else 1, rng
    )
    return spec, write_frame(spec, content), []
