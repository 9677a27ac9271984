# SPDX-License-Identifier: BSD-3-Clause
"""Progressive frames to be refused: each breaks one "must" of section 13 of docs/format.md."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from .encoder import Spec, write_header, write_raw
from .hostile_tools import CORRUPT, TRUNCATED, Hostile, changed_field, hostile, patch
from .progressive_writer import (
    Content,
    places,
    write_frame,
    write_payload,
    write_pieces,
    write_segment,
    write_specials,
    write_table,
)

BASE = Spec(codec="progressive", dtype="f4", dims=(40,), bound=0.25, step=0.5)
WIDE = replace(BASE, dtype="f8", dims=(6, 7, 8), bound=2.0**-11, step=2.0**-10)
MANY = replace(BASE, dims=(18000,))  # three tiles in its finest unit
FILLED = replace(BASE, sentinel=0x41200000)
HEAD = 8 * 8  # of BASE: where the payload starts
ERROR = 0x4000


def content_of(spec: Spec, seed: int = 1) -> Content:
    """Some coefficients in every unit, the segments unit by unit."""
    rng = random.Random(seed)
    roots, units = places(spec.dims)
    content = Content(low=-500, high=500, roots=[rng.randint(-500, 500) for _ in range(roots)])
    for number, place in enumerate(units):
        of_tiles = []
        for start in place.tiles():
            valid = place.valid(start)
            some = rng.sample(valid, min(5, len(valid)))
            of_tiles.append(write_pieces(place, start, {i: rng.choice((-5, 1, 7)) for i in some}, 3, rng))
        content.planes.append(3)
        content.cubic.append(number % 2 == 0)
        for p in range(4):
            content.segments.append((number, write_segment([pieces[p] for pieces in of_tiles]), ERROR))
    return content


def with_segment(content: Content, number: int, data: bytes) -> Content:
    """Other bytes in one segment, all sizes right."""
    unit, _, error = content.segments[number]
    segments = [*content.segments[:number], (unit, data, error), *content.segments[number + 1 :]]
    return replace(content, segments=segments)


def with_specials(data: bytes) -> Content:
    return replace(content_of(BASE), specials=data)


def small_frames() -> Iterator[tuple[str, bytes]]:
    """Valid frames with every part."""
    yield "progressive", write_frame(BASE, content_of(BASE))
    yield "progressive, f64", write_frame(WIDE, content_of(WIDE))
    missing = [int(i % 5 == 0) for i in range(40)]
    special = write_specials(missing, {7: b"\0\0\x80\x7f"}, 40, random.Random(2))
    yield "progressive, special", write_frame(FILLED, with_specials(special))
    yield "progressive, one value", write_frame(replace(BASE, dims=()), content_of(replace(BASE, dims=())))
    yield "progressive, raw", write_raw(replace(BASE, raw=True, bound=0.0, step=0.0), list(range(40)))


def fields() -> Iterator[Hostile]:
    """Section 2: the checksum is right, a field is not."""
    good = write_frame(BASE, content_of(BASE))
    field = partial(changed_field, good, "progressive")
    for value in (1, 2, 3, 4):
        yield field("format version before its codec's", 4, "B", value)
    for value in (0, 3, 10):
        yield field("dtype", 9, "B", value)
    yield field("pointwise bound", 10, "B", 8)
    for offset, values in ((48, (0, 3, 255)), (49, (1,)), (55, (1,))):
        for value in values:
            yield field(f"parameter at {offset}", offset, "B", value)
    for number in (0.0, -1.0, 0.26, float("inf"), float("nan")):
        yield field("bound", 24, "<d", number)
    for number in (0.0, -0.5, 0.75, 2.0**-150, float("inf"), float("nan")):
        yield field("step", 32, "<d", number)
    for value in (39, 41, 80, 1 << 20):
        yield field("dims", 56, "<Q", value, CORRUPT)
    for value in (len(good) - 1, len(good) + 1):
        yield field("frame_bytes", 16, "<Q", value, CORRUPT, TRUNCATED)
    for count in (32769 * 40, 1 << 40, 1 << 60):
        yield hostile(f"progressive: {count} values in {len(good)} bytes", write_header(
            replace(BASE, dims=(count,)), len(good) - HEAD) + good[HEAD:])  # fmt: skip
    nothing = write_header(replace(BASE, dims=(0,)), 64) + bytes(64)
    yield hostile("progressive: segments of no values", nothing)
    for size in (0, 31, 32):
        yield hostile(f"progressive: a head of {size} bytes", write_header(BASE, size) + good[HEAD : HEAD + size])


def heads() -> Iterator[Hostile]:
    """13.2."""
    good, wide = write_frame(BASE, content_of(BASE)), write_frame(WIDE, content_of(WIDE))

    def changed(name: str, at: int, form: str, value: int, frame: bytes = good) -> Hostile:
        first = 8 * frame[7]
        return hostile(f"progressive: {name} {value:#x}", patch(frame, first + at, form, value))

    for value in (1, 15, 16, 1 << 39, 1 << 40, 1 << 63, (1 << 64) - 1):
        yield changed("special_bytes", 0, "<Q", value)
    for value in (-(1 << 27) - 1, -(1 << 63), 501, (1 << 63) - 1):
        yield changed("low", 8, "<q", value)
    for value in ((1 << 27) + 1, -501, -(1 << 63), (1 << 63) - 1):
        yield changed("high", 16, "<q", value)
    yield changed("high of f64", 16, "<q", (1 << 56) + 1, wide)
    for value in (0, 1, 19, 21, 1 << 31, (1 << 32) - 1):
        yield changed("table_bytes", 24, "<I", value)
    for value in (0, 3, 5, 0xFFFF):
        yield changed("segments", 28, "<H", value)
    for value in (0, 2, 100, 255):
        yield changed("units", 30, "B", value)
    yield changed("reserved", 31, "B", 1)
    for value in (2, 4, 3 | 64, 30, 63):
        yield changed("planes", 32, "B", value)
    yield changed("planes of f64", 32, "B", 59, wide)
    for value in (501, -501, (1 << 31) - 1, -(1 << 31)):
        yield changed("root", 33 + 4 * 7, "<i", value)


def tables() -> Iterator[Hostile]:
    """13.2: entries of four segments; the sizes may point anywhere."""
    content = content_of(BASE)
    sizes = [len(data) for _, data, _ in content.segments]

    def table(name: str, data: bytes) -> Hostile:
        payload = write_payload(BASE, content, data)
        return hostile(f"progressive: {name}", write_header(BASE, len(payload)) + payload)

    def entries(*changed: tuple[int, bytes, int]) -> bytes:
        out = b""
        for first, size, error in changed:
            out += bytes((first,)) + size + (struct.pack("<H", error) if first & 128 else b"")
        return out

    plain = [(128, bytes((size,)), ERROR) for size in sizes]
    good = write_table(content)
    whole = write_payload(BASE, content, good)
    for more in (1, 4, 100):
        name = f"progressive: {more} bytes behind the segments"
        yield hostile(name, write_header(BASE, len(whole) + more) + whole + bytes(more))
    yield table("table cut", good[:-1])
    yield table("table of one byte more", good + b"\0")
    yield table("no table", b"")
    for unit in (1, 99, 127):
        yield table(f"segment of unit {unit}", entries((128 | unit, plain[0][1], ERROR), *plain[1:]))
    for error in (0, 0x7F80, 0x8000, 0xFFFF):
        yield table(f"error code {error:#x}", entries(*plain[:3], (128, plain[3][1], error)))
    yield table("no error behind the last segment", entries(*plain[:3], (0, plain[3][1], 0)))
    needless = bytes((sizes[0] | 128, 0))
    yield table("size with a needless byte", entries((128, needless, ERROR), *plain[1:]))
    for name, size in (
        ("one more", bytes((sizes[0] + 1,))),
        ("one fewer", bytes((sizes[0] - 1,))),
        ("none", b"\0"),
        ("2^40", bytes((128,)) * 5 + b"\x20"),
        ("2^62", bytes((128,)) * 8 + b"\x40"),
        ("ten bytes", bytes((128,)) * 9 + b"\x01"),
        ("without end", bytes((255,)) * 30),
    ):
        yield table(f"size of the first segment: {name}", entries((128, size, ERROR), *plain[1:]))
    huge = bytes((255, 255, 255, 255, 31))  # 2^33 - 1: beyond the frame, and back by none of the others
    yield table("sizes that point outside", entries(plain[0], (128, huge, ERROR), *plain[2:]))
    at = sizes.index(max(sizes))
    moved = [size + (-1 if i == at else i == (at + 1) % 4) for i, size in enumerate(sizes)]
    yield table("a byte of one segment in another", entries(*((128, bytes((size,)), ERROR) for size in moved)))


def segments() -> Iterator[Hostile]:
    """13.4 and 13.5."""
    content = content_of(BASE)

    def segment(name: str, number: int, data: bytes) -> Hostile:
        return hostile(f"progressive: {name}", write_frame(BASE, with_segment(content, number, data)))

    first = content.segments[0][1]
    yield segment("piece of one byte", 0, b"\0")
    for bit in (12, 15):
        yield segment(f"reserved bit {bit} of the modes", 0, bytes((first[0], first[1] | 1 << bit - 8)) + first[2:])
    yield segment("a byte too many", 0, first + b"\0")
    yield segment("a byte too few", 0, first[:-1])
    yield segment("modes and nothing else", 0, b"\xff\x0f")
    yield segment("a run without end", 0, b"\x01\0" + bytes(200))
    yield segment("a run beyond the positions", 0, b"\x0e\0" + b"\xff\xff\xff")
    low = content.segments[3][1]
    yield segment("bits behind the last", 3, low[:-1] + bytes((low[-1] | 128,)))
    yield segment("an empty piece with older positions", 2, b"")
    yield segment("last plane missing", 3, b"")
    yield segment("last plane too long", 3, content.segments[3][1] + b"\0")
    yield segment("longer than any piece", 0, first + bytes(1600))
    nothing = with_segment(with_segment(with_segment(content, 0, b""), 1, b""), 2, b"")
    yield hostile("progressive: last plane of nothing", write_frame(BASE, with_segment(nothing, 3, b"\0")))
    many = content_of(MANY)
    last = len(many.segments) - 4  # the finest unit's first
    whole = many.segments[last][1]
    filled = [i for i in range(3) if whole[0] >> i & 1]

    def tiles(name: str, data: bytes) -> Hostile:
        return hostile(f"progressive: {name}", write_frame(MANY, with_segment(many, last, data)))

    for bit in (3, 7):
        yield tiles(f"mask of tile {bit}", bytes((whole[0] | 1 << bit,)) + whole[1:])
    yield tiles("mask of no tile", b"\0" + whole[1:])
    yield tiles("only a mask", whole[:1])
    yield tiles("sizes cut", whole[: 2 * len(filled)])
    for change in (1, -1, 0x7000, -struct.unpack_from("<H", whole, 1)[0]):
        size = struct.unpack_from("<H", whole, 1)[0] + change
        yield tiles(f"size of a piece {change:+}", patch(whole, 1, "<H", size))
    yield tiles("a tile more", bytes((whole[0] ^ 1,)) + whole[1:])


def specials() -> Iterator[Hostile]:
    """13.7."""

    def special(name: str, data: bytes, spec: Spec = FILLED) -> Hostile:
        return hostile(f"progressive: {name}", write_frame(spec, with_specials(data)))

    missing = [int(i % 5 == 0) for i in range(40)]
    value = b"\0\0\x80\x7f"
    good = write_specials(missing, {7: value, 9: value}, 40, random.Random(2))
    yield special("missing values without a sentinel", good, BASE)
    for name, counts in (
        ("no special values", (0, 0)),
        ("more missing than values", (41, 0)),
        ("more special than values", (39, 2)),
        ("counts that wrap", ((1 << 64) - 1, 2)),
        ("one missing too many", (9, 2)),
        ("one missing too few", (7, 2)),
        ("one verbatim too many", (8, 3)),
        ("one verbatim too few", (8, 1)),
    ):
        yield special(name, struct.pack("<QQ", *counts) + good[16:])
    yield special("counts cut", good[:15])
    yield special("special values cut", good[:-1])
    yield special("special values and a byte", good + b"\0")
    yield special("mask beyond its part", good[:16] + b"\xff\xff" + good[18:])
    yield special("mask of one byte", good[:16] + b"\1\0" + good[18:])
    yield special("runs of 2^16", good[:18] + b"\x10" + good[19:])
    only = struct.pack("<QQ", 0, 1)
    yield special("verbatim behind the last value", only + b"\x28" + value)
    yield special("verbatim with a needless byte", only + b"\x87\0" + value)
    yield special("verbatim far away", only + b"\xff" * 8 + b"\x7f" + value)
    yield special("verbatim that is missing", write_specials(missing, {5: value}, 40, random.Random(2)))
    yield special("all missing and a byte", struct.pack("<QQ", 40, 0) + b"\0")


def crafted() -> Iterator[Hostile]:
    yield from fields()
    yield from heads()
    yield from tables()
    yield from segments()
    yield from specials()
