# SPDX-License-Identifier: BSD-3-Clause
"""Writer of frames of particles: any choice that section 12 of docs/format.md allows, also those that ours never makes.

Shares no code with particles.py. A tile is said by what its parts hold (`Tile`); `write_tile` makes its bytes and
`random_frame` a frame of random ones.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field
from typing import Any

from .encoder import Spec, write_header


@dataclass(kw_only=True)
class Tile:
    """A tile that is not verbatim: numbers as they are stored."""

    shift: int = 0
    widths: tuple[int, ...] = (0, 0, 0)
    origins: tuple[int, ...] = (0, 0, 0)
    keys: list[int] = field(default_factory=list)  # of ordinary particles, rising
    runs: bool = False
    offsets: list[tuple[int, ...]] = field(default_factory=list)
    stored: list[tuple[int, ...]] = field(default_factory=list)  # bit patterns of particles
    repeats: int | None = None

    def levels(self) -> list[int]:
        return [max(0, width - self.shift) for width in self.widths]


def words(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}I", *numbers)


def write_planes(numbers: list[int], count: int) -> bytes:
    """12.3: `count` bit planes of up to 32 numbers."""
    return words(*(sum((number >> p & 1) << i for i, number in enumerate(numbers)) for p in range(count)))


def write_sequence(numbers: list[int], rng: random.Random) -> bytes:
    """12.3, with any number of low bits that keeps the unary part short."""
    groups = [numbers[i : i + 32] for i in range(0, len(numbers), 32)]
    low = []
    for group in groups:
        least = max(0, max(group).bit_length() - 8)
        low.append(rng.randint(least, min(31, least + rng.choice((1, 4, 9)))))
    base = rng.randint(max(0, max(low) - 31), min(low))
    rates = min(5, (max(low) - base).bit_length() + rng.choice((0, 0, 1)))
    masks = b""
    for plane in range(rates):
        bits = sum((count - base >> plane & 1) << g for g, count in enumerate(low))
        masks += bits.to_bytes(4 * (-(-len(groups) // 32)), "little")
    planes = b"".join(
        write_planes([n & (1 << count) - 1 for n in group], count) for group, count in zip(groups, low, strict=True)
    )
    stream = "".join("0" * (n >> low[i // 32]) + "1" for i, n in enumerate(numbers))
    stream += "0" * (-len(stream) % 32)
    unary = int(stream[::-1], 2).to_bytes(len(stream) // 8, "little")
    return words(base | rates << 8 | len(unary) // 4 << 16) + masks + planes + unary


def write_tile(spec: Spec, tile: Tile, rng: random.Random) -> bytes:
    """12.2."""
    form = {"f4": "I", "f8": "Q"}[spec.dtype]
    out = words(len(tile.stored) | tile.runs << 14 | (tile.repeats is not None) << 15 | tile.shift << 16)
    if tile.repeats is not None:
        out += words(tile.repeats)
    if tile.offsets:
        axes = spec.dims[-1]
        out += bytes((*tile.widths[:axes], *(0,) * (4 - axes)))
        out += struct.pack(f"<{axes}{form}", *tile.origins[:axes])
        if sum(tile.levels()[:axes]):
            if tile.runs:
                distinct = sorted(set(tile.keys))
                before = [-1, *distinct]
                out += words(len(distinct))
                out += write_sequence([b - a - 1 for a, b in zip(before, distinct, strict=False)], rng)
                out += write_sequence([tile.keys.count(key) - 1 for key in distinct], rng)
            else:
                out += write_sequence([b - a for a, b in zip([0, *tile.keys], tile.keys, strict=False)], rng)
        for first in range(0, len(tile.offsets), 32):
            for axis in range(axes):
                group = [offset[axis] for offset in tile.offsets[first : first + 32]]
                out += write_planes(group, min(tile.shift, tile.widths[axis]))
    return out + b"".join(struct.pack(f"<{spec.dims[-1]}{form}", *particle) for particle in tile.stored)


def join_tiles(spec: Spec, tiles: list[bytes]) -> bytes:
    """12.1: a frame of these tiles."""
    offsets = [0]
    for tile in tiles:
        offsets.append(offsets[-1] + len(tile) // 4)
    payload = words(*offsets) + b"".join(tiles)
    return write_header(spec, len(payload)) + payload


def random_tile(spec: Spec, count: int, rng: random.Random) -> bytes:
    """A tile of so many particles."""
    axes, bits = spec.dims[-1], spec.code_bits
    if rng.random() < 0.1:
        return words(1 << 13) + rng.randbytes(count * axes * spec.value_bytes)
    tile = Tile()
    while True:
        tile.shift = rng.choice((0, 0, 1, 3, 7, rng.randint(0, bits)))
        tile.widths = tuple(rng.choice((0, 1, tile.shift, rng.randint(0, 12), rng.randint(0, bits))) for _ in range(3))
        if sum(tile.levels()[:axes]) <= 24 and max(tile.widths) <= bits:
            break
    tile.origins = tuple(rng.choice((0, rng.getrandbits(8), rng.getrandbits(bits))) for _ in range(3))
    stored = rng.choice((0, 0, 0, 1, rng.randint(0, count), count))
    if stored and rng.random() < 0.5:
        tile.repeats = rng.choice((0, count - stored, rng.randint(0, count - stored)))
    tile.stored = [tuple(rng.getrandbits(bits) for _ in range(axes)) for _ in range(stored)]
    ordinary = count - stored - (tile.repeats or 0)
    if ordinary == 0:
        tile.shift = 0
        return write_tile(spec, tile, rng)
    key_bits = sum(tile.levels()[:axes])
    some = [rng.getrandbits(key_bits) if key_bits else 0 for _ in range(rng.choice((1, 5, ordinary)))]
    tile.keys = sorted(rng.choice(some) for _ in range(ordinary))
    tile.runs = key_bits > 0 and rng.random() < 0.5
    tile.offsets = [
        tuple(rng.getrandbits(min(tile.shift, width)) if min(tile.shift, width) else 0 for width in tile.widths)
        for _ in range(ordinary)
    ]
    return write_tile(spec, tile, rng)


def random_frame(rng: random.Random) -> tuple[Spec, bytes, list[Any]]:
    """A frame of one or two tiles."""
    dtype, axes = rng.choice(("f4", "f8")), rng.choice((2, 3))
    count = rng.choice((1, 2, 31, 32, 33, rng.randint(1, 300), rng.randint(1, 300), 4096, 4096 + rng.randint(1, 40)))
    dims = rng.choice(((count, axes), (1, count, axes))) if rng.random() < 0.9 else (2, 0, axes)
    spec = Spec(
        codec="particles",
        dtype=dtype,
        dims=dims,
        sorting=rng.randrange(3),
        bound=0.25,
        step=0.5,
        sentinel=rng.choice((None, 0x7FC00000)),
        big_endian=rng.random() < 0.2,
    )
    count = count if 0 not in dims else 0
    tiles = [random_tile(spec, min(4096, count - first), rng) for first in range(0, count, 4096)]
    return spec, join_tiles(spec, tiles), []
