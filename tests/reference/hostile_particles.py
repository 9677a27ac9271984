# SPDX-License-Identifier: BSD-3-Clause
"""Frames of particles to be refused: each breaks one "must" of section 12 of docs/format.md."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from .encoder import Spec, write_raw
from .hostile_tools import CORRUPT, TRUNCATED, Hostile, changed_field, hostile, patch
from .particles_writer import Tile, join_tiles, words, write_tile

BASE = Spec(codec="particles", dtype="f4", dims=(40, 3), bound=0.25, step=0.5)
PAIRS = replace(BASE, dtype="f8", dims=(40, 2), sorting=2)
HEAD = 8 * 9 + 8  # header and directory of BASE: where the tile starts

OFFSETS: list[tuple[int, ...]] = [(i % 4, i % 2, 0) for i in range(40)]
KEYED = Tile(shift=2, widths=(6, 3, 2), origins=(5, 6, 7), keys=[i * 31 // 40 for i in range(40)], offsets=OFFSETS)
RUNS = replace(KEYED, keys=[i // 15 for i in range(40)], runs=True)
FLAT = Tile(shift=6, widths=(6, 3, 2), offsets=OFFSETS)
MIXED = replace(KEYED, keys=KEYED.keys[:30], offsets=OFFSETS[:30], stored=[(1, 2, 3)] * 4, repeats=6)
SPECIAL = Tile(stored=[(7, 8, 9)], repeats=39)


def frame_of(spec: Spec, tile: Tile) -> bytes:
    return join_tiles(spec, [write_tile(spec, tile, random.Random(1))])


def small_frames() -> Iterator[tuple[str, bytes]]:
    """Valid frames with every part."""
    for name, tile in (("keys", KEYED), ("runs", RUNS), ("offsets", FLAT), ("mixed", MIXED), ("special", SPECIAL)):
        yield f"particles, {name}", frame_of(BASE, tile)
    yield "particles, pairs", frame_of(PAIRS, replace(KEYED, widths=(6, 3)))
    yield "particles, verbatim", join_tiles(BASE, [words(1 << 13, *range(120))])
    yield "particles, none", join_tiles(replace(BASE, dims=(0, 3)), [])
    yield "particles, raw", write_raw(replace(BASE, raw=True, bound=0.0, step=0.0), list(range(120)))


def fields() -> Iterator[Hostile]:
    """Section 2: the checksum is right, a field is not."""
    good = frame_of(BASE, KEYED)
    field = partial(changed_field, good, "particles")
    for value in (1, 2, 3):
        yield field("format version before its codec's", 4, "B", value)
    for value in (0, 3, 10):
        yield field("dtype", 9, "B", value)
    yield field("pointwise bound", 10, "B", 8)
    for offset, values in ((48, (3, 255)), (49, (1,)), (55, (1,))):
        for value in values:
            yield field(f"parameter at {offset}", offset, "B", value)
    for number in (0.0, -1.0, float("inf"), float("nan")):
        yield field("bound", 24, "<d", number)
        yield field("step", 32, "<d", number)
    for value in (1, 4, 120):
        yield field("last dimension", 64, "<Q", value)
    for value in (len(good) - 4, len(good) + 4):
        yield field("frame_bytes", 16, "<Q", value, CORRUPT, TRUNCATED)
    chain = join_tiles(replace(BASE, dims=(120,)), [write_tile(BASE, KEYED, random.Random(1))])
    yield hostile("particles of rank 1", chain)


def changed(tile: Tile, name: str, at: int, value: int, spec: Spec = BASE) -> Hostile:
    """Word `at` of the tile replaced."""
    return hostile(f"particles: {name} {value:#x}", patch(frame_of(spec, tile), HEAD + 4 * at, "<I", value))


def heads() -> Iterator[Hostile]:
    """12.2."""
    for bits in (1, 41, 4096, 1 << 13, 1 << 14, 1 << 15, 33 << 16, 1 << 31):
        yield changed(FLAT, "head", 0, bits | (6 << 16 if bits < 1 << 16 else 0))
    for bits in (1 << 13 | 1, 1 << 13 | 1 << 14, 1 << 13 | 1 << 16):
        verbatim = join_tiles(BASE, [words(bits, *range(120))])
        yield hostile(f"particles: verbatim head {bits:#x}", verbatim)
    for bits in (1 << 14, 1 << 16):
        yield changed(SPECIAL, "head of no ordinary particles", 0, bits | 1 << 15 | 1)
    yield changed(SPECIAL, "repeats", 1, 40)
    yield changed(SPECIAL, "repeats", 1, 38)
    yield changed(SPECIAL, "nothing to repeat", 0, 1 << 15)
    for value in (33, 6 | 33 << 8, 6 | 1 << 24, 31, 6 | 30 << 8):
        yield changed(KEYED, "widths", 1, value)
    yield changed(replace(KEYED, widths=(6, 3)), "third width of a pair", 1, 6 | 3 << 8 | 2 << 16, PAIRS)
    for name, tile in (("long", bytes(4)), ("short", b"")):
        whole = write_tile(BASE, MIXED, random.Random(1)) + tile
        yield hostile(f"particles: tile too {name}", join_tiles(BASE, [whole if tile else whole[:-4]]))
    yield hostile("particles: empty tile", join_tiles(BASE, [b""]))
    whole = frame_of(BASE, KEYED)
    yield hostile("particles: uniform tile", patch(whole, HEAD - 8, "<I", 1 << 31))
    for cut in range(1, len(write_tile(BASE, RUNS, random.Random(1))) // 4):
        yield hostile(
            f"particles: cut by {cut}", join_tiles(BASE, [write_tile(BASE, RUNS, random.Random(1))[: -4 * cut]])
        )


def sequences() -> Iterator[Hostile]:
    """12.3 and 12.4."""
    start = words(0, 6 | 3 << 8 | 2 << 16, 5, 6, 7)  # no shift: keys of 11 bits, no offsets

    def made(name: str, *parts: int) -> Hostile:
        return hostile(f"particles: {name}", join_tiles(BASE, [start + words(*parts)]))

    ones = (0xFFFFFFFF, 0xFF)
    for bit in (5, 7, 11, 15):
        yield made(f"reserved bit {bit} of a sequence", 2 << 16 | 1 << bit, *ones)
    yield made("six rate planes", 2 << 16 | 6 << 8, *(0,) * 6, *ones)
    yield made("rate of a third group", 2 << 16 | 1 << 8, 4, *ones)
    yield made("low bits above 31", 2 << 16 | 1 << 8 | 31, 1, *(0,) * 63, *ones)
    yield made("one too few", 2 << 16, 0xFFFFFFFF, 0x7F)
    yield made("one too many", 2 << 16, 0xFFFFFFFF, 0x1FF)
    yield made("word behind the last one", 3 << 16, *ones, 0)
    yield made("number of 2^31", 2 << 16 | 31, *(0,) * 62, 0xFFFFFFFE, 0x1FF)
    yield made("key too large", 67 << 16, *(0,) * 65, *ones)
    runs = words(1 << 14, 6 | 3 << 8 | 2 << 16, 5, 6, 7)
    for name, parts in (
        ("no runs", (0,)),
        ("more runs than particles", (41, 2 << 16, 0xFFFFFFFF, 0x1FF, 2 << 16, 0xFFFFFFFF, 0x1FF)),
        ("runs of fewer particles", (2, 1 << 16, 3, 1 << 16, 3)),
        ("runs of more particles", (2, 1 << 16, 3, 2 << 16, 1, 1 << 31)),
        ("run with a key too large", (1, 65 << 16, *(0,) * 64, 1, 2 << 16, 0, 1 << 7)),
    ):
        yield hostile(f"particles: {name}", join_tiles(BASE, [runs + words(*parts)]))
    large = write_tile(BASE, replace(KEYED, widths=(16, 14, 2), shift=0), random.Random(1))
    yield hostile("particles: keys of more than 24 bits", join_tiles(BASE, [large]))


def crafted() -> Iterator[Hostile]:
    yield from fields()
    yield from heads()
    yield from sequences()
