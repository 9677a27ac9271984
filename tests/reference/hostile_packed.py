# SPDX-License-Identifier: BSD-3-Clause
"""Frames of hierarchical_delta that a decoder has to refuse: each "must" of section 7 of docs/format.md broken once.

hostile.py has what is common to all codecs, and puts these with its own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from .encoder import Spec, write_header, write_raw
from .hostile_tools import CORRUPT, TRUNCATED, Hostile, changed_field, hostile, patch, seal, tile_frame
from .packed_writer import Block, Tile, present, tile_positions, write_frame, write_tile

# 40 values: two blocks of a chain, the second one with padding; the others are absent
BASE = Spec(
    codec="hierarchical_delta", dtype="f4", dims=(40,), bound=0.25, step=0.5, sentinel=0x501502F9, tile_shape=1, order=1
)
PLAIN = replace(BASE, sentinel=None)
WIDE = replace(PLAIN, dtype="f8")
EXACT = replace(PLAIN, bound=0.0, step=0.0)
EXACT_RAW = replace(EXACT, raw=True)
POINTWISE = replace(BASE, pointwise=True)
VOLUME = replace(BASE, dims=(3, 5, 9), tile_shape=3, order=3)

CODES = np.zeros(4096, np.uint64)
CODES[:64] = np.arange(64) ** 2 + 3
RICH = Tile(  # every part of a tile
    codes=CODES,
    blocks={0: Block(exception=31, missing=0xF0), 1: Block(nan_mask=1 << 9, verbatim={3: 7, 4: 8}, missing=0x12300)},
    plain_masks=False,
)
NEGATIVE_BLOCKS = {0: Block(zero_mask=5, negative_mask=6, missing=1 << 30), 1: Block(negative_mask=1)}
MISSING = Tile(codes=CODES, blocks={1: Block(missing=0xFFFFFFFF)})
ONE, HOLE = b"\1" + bytes(15), bytes((1, 1, 0, 0))  # a plane with the first block; its first value is missing
# tile shape, rank and order
WRONG_ORDERS = (
    *((1, 0, 2), (2, 1, 1), (3, 2, 1), (4, 1, 1), (2, 2, 3), (3, 3, 4), (4, 2, 2)),
    *((2, 2, 0), (3, 3, 0), (4, 2, 0)),
)


def tile_bytes(spec: Spec, tile: Tile) -> bytes:
    """The one tile of a frame."""
    (where,) = tile_positions(spec)
    return write_tile(tile, spec, present(where, spec))


def small_frames() -> Iterator[tuple[str, bytes]]:
    """Valid frames: of each tile shape, with every part, empty, raw."""
    yield "packed", write_frame(BASE, [RICH])
    yield "packed, missing values", write_frame(BASE, [MISSING])
    yield "packed, plain masks", write_frame(BASE, [replace(RICH, plain_masks=True)])
    yield "packed, all missing", write_frame(BASE, [replace(RICH, blocks={}, all_missing=True)])
    yield "packed, negative", write_frame(POINTWISE, [Tile(codes=CODES, blocks=NEGATIVE_BLOCKS, negative=True)])
    yield "packed, order 0", write_frame(replace(BASE, order=0), [RICH])
    yield "packed, verbatim", write_frame(replace(WIDE, dims=()), [Tile(verbatim=list(range(4096)))])
    yield "packed, plane", write_frame(replace(BASE, dims=(2, 5), tile_shape=2, order=2), [Tile(codes=CODES)])
    yield "packed, volume", write_frame(VOLUME, [Tile(codes=CODES)])
    yield "packed, columns", write_frame(replace(BASE, dims=(7, 3), tile_shape=4), [Tile(codes=CODES)])
    yield "packed, empty tile", write_frame(PLAIN, [Tile(empty=True)])
    yield "packed, no values", write_frame(replace(BASE, dims=(3, 0), tile_shape=4), [])
    yield "packed, bit-exact", write_frame(EXACT, [Tile(codes=CODES)])
    holes = {0: Block(missing=0xFF00), 1: Block(verbatim={3: 7, 4: 8, 7: 9})}
    shorts = replace(BASE, dtype="i2", bound=3.0, step=7.0, sentinel=0x8000)
    yield "packed, integers", write_frame(shorts, [Tile(codes=CODES, blocks=holes)])
    yield "packed, raw", write_raw(EXACT_RAW, list(range(40)))


def fields() -> Iterator[Hostile]:
    """Section 2: the checksum is right, a field is not."""
    for spec in (BASE, VOLUME):
        good = write_frame(spec, [Tile(codes=CODES)])
        name = f"packed, tile shape {spec.tile_shape}"
        field = partial(changed_field, good, name)
        yield field("format version before its codec's", 4, "B", 1)
        yield field("format version", 4, "B", 0)
        for value in (0, 3, 4, 5, 10, 11):
            yield field("dtype", 9, "B", value)
        yield field("flags: not raw, but said to be", 10, "B", good[10] | 1)
        yield field("flags: no sentinel, but its bits", 10, "B", good[10] & ~4)
        for value in (0, 5, 128, 255):
            yield field("tile shape", 48, "B", value)
        for value in (0, 3, 255):
            yield field("parameter byte 1", 49, "B", value)
        for value in (*{1: (2, 3), 3: (0,)}[spec.tile_shape], 4, 255):
            yield field("order", 50, "B", value)
        for offset in range(51, 56):
            yield field(f"reserved parameter at {offset}", offset, "B", 1)
        for number in (0.0, -1.0, float("inf"), float("nan")):
            yield field("bound", 24, "<d", number)
            yield field("step", 32, "<d", number)
        yield field("step that is no f32", 32, "<d", 0.1)
        yield field("sentinel wider than f32", 44, "B", 1)
        for value in (len(good) - 4, len(good) + 4, len(good) + (1 << 32)):
            yield field("frame_bytes", 16, "<Q", value, CORRUPT, TRUNCATED)
    for shape, rank, order in WRONG_ORDERS:
        spec = replace(BASE, dims=(1,) * rank, tile_shape=shape, order=order)
        body = write_header(spec, 8) + bytes(8)
        yield hostile(f"packed: tile shape {shape} of rank {rank}, order {order}", body)
        raw = replace(spec, raw=True, bound=0.0, step=0.0, sentinel=None)
        yield hostile(f"packed, raw: tile shape {shape} of rank {rank}, order {order}", write_raw(raw, [0]))
    good = write_frame(EXACT, [Tile(codes=CODES)])
    for number in (0.5, float("nan")):
        yield hostile(f"packed, bit-exact: step {number}", seal(patch(good, 32, "<d", number)))
        yield hostile(f"packed, bit-exact: bound {number}", seal(patch(good, 24, "<d", number)))
    yield hostile("packed, bit-exact: sentinel", seal(patch(good, 10, "B", 4)))
    yield hostile("packed, bit-exact: sentinel, and one in a block", write_frame(replace(EXACT, sentinel=5), [MISSING]))
    good = write_raw(EXACT_RAW, list(range(40)))
    yield hostile("packed, raw: step", seal(patch(good, 32, "<d", 0.5)))
    yield hostile("packed, raw: bound", seal(patch(good, 24, "<d", 0.5)))
    yield hostile("packed, raw: sentinel", seal(patch(patch(good, 10, "B", good[10] | 4), 40, "<Q", 1)))


def directories() -> Iterator[Hostile]:
    """Section 4.2: three tiles of a chain, and the grids of the other tile shapes."""
    spec = replace(BASE, dims=(3 * 4096,))
    good = write_frame(spec, [Tile(codes=CODES), Tile(empty=True), Tile(codes=CODES)])
    words = list(struct.unpack_from("<4I", good, 64))
    for t in range(4):
        changed = patch(good, 64 + 4 * t, "<I", words[t] | 1 << 31)
        yield hostile(f"packed, directory: bit 31 of word {t}", changed)
    for t, value in ((0, 1), (1, words[3] + 1), (2, words[1] - 1), (3, words[3] - 1), (3, words[3] + 1)):
        yield hostile(f"packed, directory: word {t} is {value}", patch(good, 64 + 4 * t, "<I", value))
    for shape, dims, tiles in ((2, (3, 65, 64), 6), (3, (2, 9, 17, 33), 16), (4, (5, 205, 5), 4), (1, (65, 64), 2)):
        spec = replace(BASE, dims=dims, tile_shape=shape)
        for count in (tiles - 1, tiles + 1):
            body = write_header(spec, 4 * (count + 1)) + bytes(4 * (count + 1))
            yield hostile(f"packed: {count} tiles of shape {shape} for {dims}", body)
    yield hostile("packed: no values, but a tile", write_header(replace(BASE, dims=(0,)), 8) + bytes(8))


def heads() -> Iterator[Hostile]:
    """The four bytes at the start of a tile, and parts that do not add up."""
    good = tile_bytes(BASE, RICH)

    def tile(name: str, content: bytes, spec: Spec = BASE) -> Hostile:
        return hostile(f"packed tile: {name}", tile_frame(spec, content))

    yield tile("one word too many", good + bytes(4))
    yield tile("one word missing", good[:-4])
    for size in range(4, len(good), 4):
        yield tile(f"cut to {size} bytes", good[:size])
    yield tile("reserved bit of byte 1", patch(good, 1, "B", good[1] | 8))
    yield tile("reserved bit 7 of byte 2", patch(good, 2, "B", good[2] | 128))
    yield tile("negative values without a bound relative to each", patch(good, 2, "B", good[2] | 64))
    yield tile("byte 3", patch(good, 3, "B", 1))
    yield tile("base width one too many", patch(good, 0, "B", good[0] + 1))
    for spec in (PLAIN, WIDE):
        width = spec.code_bits
        for base in (width + 1, 255):
            yield tile(f"base width {base} of {spec.dtype}", bytes((base, 0, 0, 0)) + bytes(2 * 4 * base), spec)
        for first in range(width // 8 + 1, 16):
            content = bytes((0, first << 4, 0, 0)) + bytes(-(-first // 4) * 4)
            yield tile(f"{first} first bytes of {spec.dtype}", content, spec)
        for rates in range(1, 8):
            plane = b"\1" + bytes(15)  # only the first block has more than the base
            planes = width + (1 << rates) - 1
            content = bytes((width, rates, 0, 0)) + plane * rates + bytes(4 * (planes + width))
            yield tile(f"{planes} planes of {spec.dtype}", content, spec)
        content = bytes((0, 7, 0, 0)) + (b"\1" + bytes(15)) * 7 + bytes(4 * 127)
        yield tile(f"127 planes of {spec.dtype}", content, spec)
    padded = bytes((0, 1 << 4, 0, 0, 5, 0, 0, 0))
    for at in (5, 6, 7):
        yield tile(f"padding after the first value, byte {at}", patch(padded, at, "B", 1))
    assert good[2] == 7
    yield tile("nothing but a head that asks for planes", bytes((0, 7, 0, 0)))
    yield tile("nothing but a head that asks for all", bytes((0, 0x47, 7, 0)))
    large = replace(BASE, dims=(4096,))
    every = Block(planes=32, verbatim={i: i for i in range(32)})
    content = tile_bytes(large, Tile(blocks=dict.fromkeys(range(128), every)))
    yield tile("larger than any tile may be", content, large)
    content = bytes((32, 0, 0, 0)) + bytes(4 * 32 * 128)
    yield tile("larger than any tile may be by one word", patch(content, 1, "B", 1 << 4) + bytes(4), large)


def verbatim() -> Iterator[Hostile]:
    """Verbatim tiles."""
    good = bytes((0, 0, 16, 0)) + bytes(256)

    def tile(name: str, content: bytes, spec: Spec = BASE) -> Hostile:
        return hostile(f"packed verbatim tile: {name}", tile_frame(spec, content))

    for at, value in ((0, 1), (1, 1), (1, 16), (1, 8), (2, 17), (2, 18), (2, 20), (2, 24), (2, 48), (2, 80), (3, 1)):
        yield tile(f"byte {at} is {value}", patch(good, at, "B", value))
    for size in (4, 8, 132, 256, 264, 4 + 4 * 40, 4 + 4 * 4096):
        yield tile(f"{size} bytes", (good + bytes(1 << 15))[:size])
    yield tile("f64, of f32's size", good, WIDE)
    yield tile("of the present blocks and one more", good + bytes(128))


def blocks() -> Iterator[Hostile]:
    """Planes of a tile, descriptors, exceptions, padding."""

    def tile(name: str, content: bytes, spec: Spec = BASE) -> Hostile:
        return hostile(f"packed tile: {name}", tile_frame(spec, content))

    absent = b"\4" + bytes(15)
    last = bytes(15) + b"\x80"
    for what, plane in (("third", absent), ("last", last)):
        yield tile(f"the absent {what} block in a rate plane", bytes((0, 1, 0, 0)) + plane)
        yield tile(f"the absent {what} block in a rate plane, with its words", bytes((0, 1, 0, 0)) + plane + bytes(4))
        yield tile(f"the absent {what} block in the exception plane", bytes((0, 0, 1, 0)) + plane + bytes(4))
        yield tile(f"the absent {what} block in the exception plane, alone", bytes((0, 0, 1, 0)) + plane)
        for flags in (2, 34):
            yield tile(f"the absent {what} block in the missing plane, {flags}", bytes((0, 0, flags, 0)) + plane + HOLE)
            yield tile(f"the absent {what} block in the missing plane, {flags}, alone", bytes((0, 0, flags, 0)) + plane)
        words = struct.pack("<BBHI", 2, 0, 0, 0)
        yield tile(f"the absent {what} block in the special plane", bytes((0, 0, 4, 0)) + plane + words)
    edge = replace(BASE, dims=(7, 3), tile_shape=4)
    for b in (1, 96):  # the second block of the first column; the first of the fourth
        plane = (1 << b).to_bytes(16, "little")
        yield tile(f"absent block {b} of columns in a rate plane", bytes((0, 1, 0, 0)) + plane + bytes(4), edge)
    corner = replace(VOLUME, dims=(2, 5, 9))
    for b in (1, 4 * 2, 16 * 3):  # the next one along z; the third along y; the fourth along x
        plane = (1 << b).to_bytes(16, "little")
        yield tile(f"absent block {b} of a volume in a rate plane", bytes((0, 1, 0, 0)) + plane + bytes(4), corner)

    nan = struct.pack("<BBHI", 2, 0, 0, 0)
    yield tile("a special block in a bit-exact frame", bytes((0, 0, 4, 0)) + ONE + nan, EXACT)
    yield tile("an empty special plane in a bit-exact frame", bytes((0, 0, 4, 0)) + bytes(16), EXACT)
    for masks in (0, 1, 3, 5, 7, 8, 9, 10, 16, 18, 128, 255):
        for spec in (BASE, PLAIN):
            content = bytes((0, 0, 4, 0)) + ONE + bytes((masks, 0, 0, 0))
            yield tile(f"masks {masks}, sentinel {spec.sentinel}", content + bytes(4 * (masks & 6).bit_count()), spec)
            yield tile(f"masks {masks}, sentinel {spec.sentinel}, all", content + bytes(4 * masks.bit_count()), spec)
    for masks in (2, 4, 6):
        for count, bits in ((1, 0), (255, 0), (0, 1), (3, 2), (2, 3), (33, 32), (255, 32)):
            if masks & 4 == 0 and bits > 0:
                continue
            words = bytes(4 * (masks & 2).bit_count())
            words += struct.pack("<I", (1 << bits) - 1) if masks & 4 else b""
            front = bytes((0, 0, 4, 0)) + ONE + bytes((masks, count, 0, 0)) + words
            yield tile(f"masks {masks}, verbatim count {count} of {bits}", front + bytes(4 * count))
            yield tile(f"masks {masks}, verbatim count {count} of {bits}, short", front + bytes(4 * bits))
    for at in (2, 3):
        content = patch(bytes((0, 0, 4, 0)) + ONE + nan, 20 + at, "B", 1)
        yield tile(f"padding after the descriptors, byte {at}", content)
        content = patch(bytes((0, 0, 1, 0)) + ONE + bytes(4), 20 + at, "B", 1)
        yield tile(f"padding after the exceptions, byte {at}", content)
    yield tile("an exception and no room for it", bytes((0, 0, 1, 0)) + ONE)
    yield tile("a special block and no descriptor", bytes((0, 0, 4, 0)) + ONE)


def missing() -> Iterator[Hostile]:
    """Missing values: sections 7.2, parts 1, 3 and 6."""

    def tile(name: str, flags: int, rest: bytes, spec: Spec = BASE) -> Hostile:
        return hostile(f"packed tile, flags {flags}: {name}", tile_frame(spec, bytes((0, 0, flags, 0)) + rest))

    for flags in (2, 34):
        for name, content in (
            ("no group", (0, 0, 0, 0)),
            ("no group, and one there", (0, 1, 0, 0)),
            ("group 0", (1, 0, 0, 0)),
            ("group 0 of two", (3, 0x10, 0, 0)),
            ("group 1 of two is 0", (3, 0x01, 0, 0)),
            ("group 2 of three is 0", (7, 0x11, 0, 0)),
            ("group 2 of three behind its place", (7, 0x11, 0x10, 0)),
            ("half behind one group", (1, 0x11, 0, 0)),
            ("half behind three groups", (0x70, 0x11, 0xF1, 0)),
            ("padding, byte 2", (1, 1, 1, 0)),
            ("padding, byte 3", (1, 1, 0, 128)),
            ("nothing", ()),
            ("groups cut off", (255, 0x11, 0x11, 0x11)),
            ("a word too many", (1, 1, 0, 0, 0, 0, 0, 0)),
        ):
            yield tile(name, flags, ONE + bytes(content))
        yield tile("no group in the second of two blocks", flags, b"\3" + bytes(15) + bytes((1, 0, 1, 0)))
        yield tile("a block too few", flags, b"\3" + bytes(15) + bytes((1, 1, 1, 0)))
        yield tile("no plane", flags, b"")
        yield tile("half a plane", flags, bytes(8))
        yield tile("without a sentinel", flags, ONE + HOLE, PLAIN)
        yield tile("without a sentinel, no block", flags, bytes(16), PLAIN)
        yield tile("in a bit-exact frame", flags, ONE + HOLE, EXACT)
        large = replace(BASE, dims=(4096,))
        for size in (0, 4, 124, 128, 128 + 508):
            yield tile(f"{size} bytes for all of 128 blocks", flags, b"\xff" * (16 + size), large)
    for spec in (BASE, PLAIN, EXACT, POINTWISE):
        for flags, rest in ((32, b""), (33, bytes(16)), (36, ONE + struct.pack("<BBHI", 2, 0, 0, 0)), (40, b"")):
            yield tile(f"plain masks of nothing, {spec.sentinel}, {spec.step}", flags, rest, spec)
    yield tile("all missing without a sentinel", 8, b"", PLAIN)
    yield tile("all missing in a bit-exact frame", 8, b"", EXACT)
    nan = struct.pack("<BBHI", 2, 0, 0, 0)
    for spec in (BASE, POINTWISE):
        yield tile(f"all missing, and masks, {spec.pointwise}", 10, ONE + HOLE, spec)
        yield tile(f"all missing, and no masks, {spec.pointwise}", 10, bytes(16), spec)
        yield tile(f"all missing, and plain masks, {spec.pointwise}", 42, ONE + HOLE, spec)
        yield tile(f"all missing, and a special block, {spec.pointwise}", 12, ONE + nan, spec)
        yield tile(f"all missing, and an empty special plane, {spec.pointwise}", 12, bytes(16), spec)
        yield tile(f"all missing, negative, {spec.pointwise}", 72, b"", spec)
    for spec in (BASE, PLAIN, EXACT):
        yield tile(f"negative, no bound relative to each value, {spec.sentinel}, {spec.step}", 64, b"", spec)
    yield tile("bit 7", 128, b"", POINTWISE)


def pointwise() -> Iterator[Hostile]:
    """Header flag bit 3 and the masks that come with it."""
    spec = POINTWISE
    good = write_frame(spec, [Tile(codes=CODES)])
    field = partial(changed_field, good, "packed, pointwise")
    for number in (1.0, 2.0, 0.0, -0.5, float("inf"), float("nan")):
        yield field("bound", 24, "<d", number)
    for number in (0.0, -1.0, float("inf"), float("nan")):
        yield field("step", 32, "<d", number)
    for value in (0, 3, 4, 10):
        yield field("dtype", 9, "B", value)
    exact = write_frame(EXACT, [Tile(codes=CODES)])
    yield hostile("packed, bit-exact: pointwise", seal(patch(exact, 10, "B", exact[10] | 8)))
    raw = write_raw(replace(PLAIN, raw=True, bound=0.0, step=0.0), list(range(40)))
    yield hostile("packed, raw: pointwise", seal(patch(raw, 10, "B", raw[10] | 8)))
    for masks in (0, 1, 3, 29, 31, 32, 34, 64, 128, 255):
        content = bytes((0, 0, 4, 0)) + ONE + bytes((masks, 0, 0, 0)) + bytes(4 * (masks & 30).bit_count())
        yield hostile(f"packed tile, pointwise: masks {masks}", tile_frame(spec, content))
    for masks in range(2, 32, 2):
        content = bytes((0, 0, 4, 0)) + ONE + bytes((masks, 0, 0, 0)) + bytes(4 * masks.bit_count())
        yield hostile(f"packed tile, pointwise: masks {masks} and a word", tile_frame(spec, content + bytes(4)))
        yield hostile(f"packed tile, pointwise: masks {masks} without one", tile_frame(spec, content[:-4]))
        if masks > 7:
            yield hostile(f"packed tile: masks {masks}", tile_frame(BASE, content))


def integers() -> Iterator[Hostile]:
    """Bounds and steps of integers, masks that they cannot have, padding of narrow verbatim values."""
    for dtype, most in (("i1", 2.0**30), ("u2", 2.0**30), ("i4", 2.0**30), ("u8", 2.0**62)):
        spec = replace(PLAIN, dtype=dtype, bound=3.0, step=7.0)
        good = write_frame(spec, [Tile(codes=CODES)])
        field = partial(changed_field, good, f"packed, {dtype}")
        for number in (0.0, 0.5, 2.5, 3.5, 4.0, -3.0, float("inf"), float("nan")):
            yield field("bound", 24, "<d", number)
        for number in (0.0, 6.0, 6.5, 7.5, 8.0, -7.0, float("inf"), float("nan")):
            yield field("step", 32, "<d", number)
        for bound in (2 * most, 2.0**63, 2.0**1000):
            for step in (2 * bound, 2 * bound + 1):
                if np.isfinite(step):
                    body = write_frame(replace(spec, bound=bound, step=step), [Tile(codes=CODES)])
                    yield hostile(f"packed, {dtype}: bound {bound}, step {step}", body)
        yield field("pointwise", 10, "B", 8)
        wide = seal(patch(good, 10, "B", 4))
        if dtype != "u8":
            yield hostile(f"packed, {dtype}: wide sentinel", seal(patch(wide, 40 + int(dtype[1]), "B", 1)))
        one = b"\1" + bytes(15)
        for masks in (0, 1, 2, 3, 6, 7, 8, 12, 16, 20):
            content = bytes((0, 0, 4, 0)) + one + bytes((masks, 0, 0, 0)) + bytes(4 * masks.bit_count())
            yield hostile(f"packed tile, {dtype}: masks {masks}", tile_frame(spec, content))
        size = int(dtype[1])
        for count in (1, 2, 3, 5):
            for at in range(count * size, -(-count * size // 4) * 4):
                words = patch(bytes(-(-count * size // 4) * 4), at, "B", 1)
                content = bytes((0, 0, 4, 0)) + one + bytes((4, count, 0, 0)) + struct.pack("<I", (1 << count) - 1)
                yield hostile(
                    f"packed tile, {dtype}: padding of {count} values at {at}", tile_frame(spec, content + words)
                )
        content = bytes((0, 0, 16, 0)) + bytes(64 * size)
        yield hostile(f"packed verbatim tile, {dtype}: one word too many", tile_frame(spec, content + bytes(4)))
        yield hostile(f"packed verbatim tile, {dtype}: one word missing", tile_frame(spec, content[:-4]))


def crafted() -> Iterator[Hostile]:
    """All of them behind a right checksum."""
    for maker in (fields, directories, heads, verbatim, blocks, integers, missing, pointwise):
        yield from maker()
