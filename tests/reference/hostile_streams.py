# SPDX-License-Identifier: BSD-3-Clause
"""Frames of lorenzo that a decoder has to refuse: each "must" of section 8 of docs/format.md broken once.

hostile.py has what is common to all codecs, and puts these with its own.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from . import huffman_writer
from .encoder import SHORT_STATES, Spec, write_raw
from .hostile_tools import CORRUPT, TRUNCATED, Hostile, changed_field, hostile
from .packed_writer import Block, Tile, present, tile_positions, write_tile
from .stream_writer import (
    ESCAPE,
    Choices,
    GroupParts,
    join_parts,
    main_of,
    write_frame,
    write_parts,
    write_table,
)
from .streams import LOWEST

# 40 values: two blocks of a chain, the second one with padding; the others are absent
BASE = Spec(codec="lorenzo", dtype="f4", dims=(40,), bound=0.25, step=0.5, sentinel=0x501502F9, tile_shape=1, order=1)
PLAIN = replace(BASE, sentinel=None)
WIDE = replace(PLAIN, dtype="f8")
LONG = replace(BASE, dims=(3 * 4096,), group_log2=1)

CODES = np.zeros(4096, np.uint64)
CODES[:64] = np.arange(64) ** 2 * 37 % 900
FLAT = np.zeros(4096, np.uint64)
WILD = Tile(codes=np.random.default_rng(1).integers(0, 1 << 20, 4096).astype(np.uint64))  # several runs of a gap array
HUFFMAN = replace(BASE, outliers=2)
NO_GAPS = replace(BASE, outliers=3)
SHORT = replace(BASE, outliers=SHORT_STATES)
RICH = Tile(codes=CODES, blocks={0: Block(missing=0xF0), 1: Block(nan_mask=1 << 9, verbatim={3: 7}, missing=0x12300)})
NEGATIVE = Tile(codes=CODES, blocks={0: Block(zero_mask=5, negative_mask=6), 1: Block(negative_mask=1)}, negative=True)
VERBATIM = Tile(verbatim=list(range(4096)))


def chosen(
    spec: Spec, tiles: list[Tile], wanted: int | None = None, end: int = LOWEST, early: bool = False
) -> tuple[bytes, list[GroupParts]]:
    """Tables and groups; `wanted`: how the first tile's blocks are named."""
    for seed in range(1000):
        tables, groups = write_parts(spec, tiles, Choices(random.Random(seed), end=end, early=early))
        whole = [group for group in groups if group is not None]
        if len(whole) == len(groups) and wanted in (None, whole[0].head[0] & 3):
            return tables, whole
    raise AssertionError(wanted)


def joined(spec: Spec, tables: bytes, groups: list[GroupParts]) -> bytes:
    return join_parts(spec, tables, [group.join() for group in groups])


def small_frames() -> Iterator[tuple[str, bytes]]:
    """Valid frames: every way to name blocks, special values, empty groups, raw."""
    for coding in (1, 2, 3):
        yield f"streams, coding {coding}", joined(BASE, *chosen(BASE, [RICH], coding))
    yield "streams, nothing coded", joined(BASE, *chosen(BASE, [replace(RICH, codes=FLAT)], 0))
    yield "streams, three tiles", write_frame(LONG, [RICH, VERBATIM, Tile(codes=CODES)], Choices(random.Random(5)))
    for coding in (1, 2, 3):
        yield f"short states, coding {coding}", joined(SHORT, *chosen(SHORT, [RICH], coding))
    yield "short states, nothing coded", joined(SHORT, *chosen(SHORT, [replace(RICH, codes=FLAT)], 0))
    several = replace(LONG, outliers=SHORT_STATES)
    yield "short states, tiles", write_frame(several, [RICH, VERBATIM, WILD], Choices(random.Random(5)))
    pointwise = replace(BASE, pointwise=True)
    yield "streams, pointwise", joined(pointwise, *chosen(pointwise, [NEGATIVE]))
    volume = replace(WIDE, dims=(3, 5, 9), tile_shape=3, order=3, group_log2=5)
    yield "streams, f64", joined(volume, *chosen(volume, [Tile(codes=CODES << np.uint64(40))]))
    for coding in (1, 2, 3):
        yield f"Huffman, coding {coding}", joined(HUFFMAN, *chosen(HUFFMAN, [RICH], coding))
    yield "Huffman, no gaps", joined(NO_GAPS, *chosen(NO_GAPS, [RICH]))
    long = replace(LONG, outliers=2)
    yield "Huffman, three tiles", write_frame(long, [RICH, VERBATIM, WILD], Choices(random.Random(5)))
    wide = replace(WIDE, outliers=2)
    yield "Huffman, f64", joined(wide, *chosen(wide, [Tile(codes=CODES << np.uint64(40))]))
    none = replace(BASE, dims=(3, 0), tile_shape=4)
    yield "streams, no values", write_frame(none, [], Choices(random.Random(1)))
    yield "streams, raw", write_raw(replace(PLAIN, raw=True, bound=0.0, step=0.0), list(range(40)))


def fields() -> Iterator[Hostile]:
    """Section 2: the checksum is right, a field is not."""
    good = joined(BASE, *chosen(BASE, [RICH]))
    field = partial(changed_field, good, "streams")
    for value in (1, 2):
        yield field("format version before its codec's", 4, "B", value)
    for value in (0, 3, 10):
        yield field("dtype", 9, "B", value)
    for offset, values in ((48, (0, 2, 5)), (49, (0, 4, 255)), (50, (2, 3)), (51, (6, 255)), (52, (1,)), (55, (1,))):
        for value in values:
            yield field(f"parameter at {offset}", offset, "B", value)
    for number in (0.0, -1.0, float("inf"), float("nan")):
        yield field("bound", 24, "<d", number)
        yield field("step", 32, "<d", number)
    for value in (len(good) - 4, len(good) + 4):
        yield field("frame_bytes", 16, "<Q", value, CORRUPT, TRUNCATED)
    exact = replace(PLAIN, bound=0.0, step=0.0)
    yield hostile("streams: bit-exact, but not raw", joined(exact, *chosen(replace(PLAIN), [Tile(codes=CODES)])))


def table_of(*bits: int) -> bytes:
    """Tables of one context whose first table has these bits, the second just zeros."""
    last = write_table([1023, *[0] * 254, 1], 0)
    every = [*bits, *last]
    every += [0] * (-len(every) % 32)
    data = np.packbits(np.array(every, np.uint8), bitorder="little").tobytes()
    return struct.pack("<2I", 2 + len(data) // 4 | 1 << 24, 512 | 512 << 10 | 512 << 20) + data


def number(value: int, count: int) -> list[int]:
    return [value >> i & 1 for i in range(count)]


def tables() -> Iterator[Hostile]:
    """Section 8.2, in front of an empty group."""
    frequencies = [600, 200, 100, 60, 40, *[0] * 250, 24 - 9]
    frequencies[0] = 1024 - sum(frequencies[1:])
    good = table_of(*write_table(frequencies, main_of(frequencies)))

    def frame(name: str, content: bytes) -> Hostile:
        return hostile(f"tables: {name}", join_parts(PLAIN, content, [b""]))

    def word(name: str, index: int, value: int) -> Hostile:
        changed = bytearray(good)
        struct.pack_into("<I", changed, 4 * index, value)
        return frame(f"{name} {value:#x}", bytes(changed))

    head, flags = struct.unpack_from("<2I", good)
    for size in (0, 1, 2, 3, (head & 0xFFFF) - 1, (head & 0xFFFF) + 1, 0xFFFF):
        yield word("size", 0, head & ~0xFFFF | size)
    yield word("reserved", 0, head | 1 << 23)
    for bit in (28, 31):
        yield word("reserved", 0, head | 1 << bit)
    for contexts in (0, 2, 13, 15):
        yield word("contexts", 0, head & ~(15 << 24) | contexts << 24)
    for bit in (30, 31):
        yield word("reserved", 1, flags | 1 << bit)
    for k in range(3):
        yield word("flag of frequency 0", 1, flags & ~(1023 << 10 * k))
    yield frame("a word too much", struct.pack("<I", head + 1) + good[4:] + bytes(4))
    yield frame("padding", good[:-1] + bytes((good[-1] | 128,)))
    yield frame("larger than tables may be", struct.pack("<I", head & ~0xFFFF | 3073) + good[4:] + bytes(4 * 3073))
    first = number(9, 8) + number(0, 8) + number(1, 4)
    yield frame("no symbols", table_of(*number(0, 8), *number(0, 8), *number(1, 4)))
    for main in (9, 255):
        yield frame(f"main symbol {main} of 9", table_of(*number(9, 8), *number(main, 8), *number(1, 4), *[1] * 40))
    yield frame("a width of 11", table_of(*first, *[0] * 6, 1))
    yield frame("a width below 0", table_of(*first, *[0] * 17, 1))
    yield frame("a width of hundreds", table_of(*first, *[0] * 700, 1))
    large = [*[0] * 2, 1, 1, 1, 1]  # a width of 9, and the largest frequency that it has: 480
    yield frame("sum of 1025", table_of(*number(4, 8), *number(0, 8), *number(1, 4), *large * 2, 0, 0, 0, 1, 0, 0, 0))
    yield frame("nothing left for the main symbol", table_of(*number(5, 8), *number(0, 8), *number(0, 4), *large * 4))


def groups() -> Iterator[Hostile]:
    """Section 8.3."""
    tables_, (good,) = chosen(BASE, [RICH], 3)
    assert good.special
    assert good.lists

    def group(name: str, **parts: bytes) -> Hostile:
        return hostile(f"group: {name}", joined(BASE, tables_, [replace(good, **parts)]))

    yield group("reserved bit", head=bytes((good.head[0] | 8,)))
    yield group("unused half", head=bytes((good.head[0] | 16,)))
    yield group("nothing coded", head=bytes((good.head[0] & ~3,)))
    yield group("all coded", head=bytes((good.head[0] & ~3 | 1,)))
    yield group("without a special part", head=bytes((good.head[0] & ~4,)))
    for lists in (b"\0", b"\1\2", b"\2\1\0", b"\2\0\0", b"\1\x80", b"\1\xff", b"\x11" + bytes(range(17)), b"\x7f\0"):
        yield group(f"list {lists.hex()}", lists=lists)
    yield group("a special part of no words", sizes=bytes(2))
    yield group("a special part of too many words", sizes=b"\xff\xff")
    yield group("a special part of a word less", sizes=struct.pack("<H", len(good.special) // 4 - 1))
    for at, value in ((0, 1), (1, 1), (1, 16), (2, good.special[2] | 1), (2, good.special[2] | 128), (3, 1)):
        special = bytearray(good.special)
        special[at] = value
        yield group(f"special part, byte {at} is {value}", special=bytes(special))
    yield group("padding", sizes=good.sizes + b"\1" + bytes(-len(good.head + good.lists + good.sizes + b"\1") % 4))
    (where,) = tile_positions(BASE)
    verbatim = write_tile(VERBATIM, BASE, present(where, BASE))
    yield group("verbatim, and coded", special=verbatim, sizes=struct.pack("<H", len(verbatim) // 4))
    for lane in (0, len(good.states) // 4 - 1):
        for state in (0, 0x7FFF, 0x80000000, 0xFFFFFFFF):
            states = bytearray(good.states)
            struct.pack_into("<I", states, 4 * lane, state)
            yield group(f"state {lane} is {state:#x}", states=bytes(states))
        changed = bytearray(good.states)
        changed[4 * lane] ^= 1
        yield group(f"state {lane} is another", states=bytes(changed))
    yield group("a state less", states=good.states[:-4])
    yield group("a state more", states=good.states + good.states[-4:])
    yield group("no stream", stream=b"")
    yield group("a word less", stream=good.stream[:-4])
    for more in (bytes(4), b"\1\0\0\0"):
        yield group(f"words more {more.hex()}", stream=good.stream + more)
    for coding in (1, 2):
        tables_, (small,) = chosen(BASE, [RICH], coding, early=True)
        assert min(struct.unpack(f"<{len(small.states) // 4}I", small.states)) < LOWEST
        yield hostile(f"group: a state below the lowest, coding {coding}", joined(BASE, tables_, [small]))
    for end in (LOWEST + 1, 1 << 16, (1 << 31) - 1):
        ended = [chosen(BASE, [RICH], coding, end) for coding in (1, 2, 3)]
        yield from (hostile(f"group: states end at {end}", joined(BASE, *parts)) for parts in ended)
    yield hostile("group: cut to nothing", join_parts(BASE, tables_, [good.join()[:4]]))
    yield hostile("group: larger than any", join_parts(BASE, tables_, [good.join() + bytes(4 * 20000)]))


def short_states() -> Iterator[Hostile]:
    """States of as many bits as they need, and the words behind them."""
    tables_, (good,) = chosen(SHORT, [RICH], 3)

    def group(name: str, **parts: bytes) -> Hostile:
        return hostile(f"short states: {name}", joined(SHORT, tables_, [replace(good, **parts)]))

    for bit in (*range(10), 8 * len(good.states) - 1):  # flags and places of two lanes, padding
        states = bytearray(good.states)
        states[bit // 8] ^= 1 << bit % 8
        yield group(f"bit {bit}", states=bytes(states))
    yield group("a word of states less", states=good.states[:-4])
    yield group("a word of states more", states=good.states + bytes(4))
    yield group("no stream", stream=b"")
    yield group("a word less", stream=good.stream[:-4])
    for more in (bytes(4), b"\1\0\0\0"):
        yield group(f"words more {more.hex()}", stream=good.stream + more)
    nothing, (empty,) = chosen(SHORT, [replace(RICH, codes=FLAT)], 0)
    yield hostile("short states: words without lanes", joined(SHORT, nothing, [replace(empty, stream=bytes(4))]))


def symbols() -> Iterator[Hostile]:
    """Section 8.5: symbols that a residual of 32 bits cannot have."""
    wide = Tile(codes=CODES << np.uint64(40))
    for coding in (1, 3):
        tables_, parts = chosen(WIDE, [wide], coding)
        yield hostile(f"symbols of 64 bits, coding {coding}", joined(PLAIN, tables_, parts))


def codebooks() -> Iterator[Hostile]:
    """Section 8.7, tables, in front of an empty group."""
    spec = replace(PLAIN, outliers=2)

    def frame(name: str, content: bytes) -> Hostile:
        return hostile(f"codebook: {name}", join_parts(spec, content, [b""]))

    def lengths(name: str, **of: int) -> Hostile:
        bits = huffman_writer.write_codebook({int(c[1:]): length for c, length in of.items()})
        return frame(f"{name} {of}", huffman_writer.write_tables(bits))

    yield lengths("too many codes", c0=1, c1=1, c255=1)
    yield lengths("too many codes", c0=1, c1=2, c2=2, c256=12, c255=12)
    yield lengths("codes left", c0=1, c1=2, c255=3)
    yield lengths("codes left", c0=2, c255=2)
    yield lengths("one code", c255=1)
    yield lengths("a code of 13 bits", c0=1, c1=2, c2=13, c255=2)
    yield lengths("a code of no bits", c0=0, c255=1)
    good = huffman_writer.write_codebook({0: 1, 273: 2, ESCAPE: 2})
    data = huffman_writer.write_tables(good)
    words = len(data) // 4
    for size in (0, 1, words - 1, words + 1, 3073, 0x10000 | words):
        yield frame(f"size {size}", struct.pack("<I", size) + data[4:])
    yield frame("a word too much", struct.pack("<I", words + 1) + data[4:] + bytes(4))
    yield frame("padding", data[:-1] + bytes((data[-1] | 128,)))
    yield frame("reach 17", huffman_writer.write_tables([0] * 8 + number(17, 5) + [1] * 60))
    yield frame("nothing used", huffman_writer.write_tables([0] * 14))
    yield frame("a length of hundreds", huffman_writer.write_tables([0] * 13 + [1] + [0] * 700 + [1]))


def huffman_groups() -> Iterator[Hostile]:
    """Section 8.7, group and stream."""
    tables_, (good,) = chosen(HUFFMAN, [RICH], 2)
    (words,) = struct.unpack_from("<I", good.stream)

    def stream(name: str, content: bytes) -> Hostile:
        return hostile(f"Huffman group: {name}", joined(HUFFMAN, tables_, [replace(good, stream=content)]))

    for count in (0, words - 1, words + 1, words + 32, 0xFFFFFFFF):
        yield stream(f"{count} of {words} words", struct.pack("<I", count) + good.stream[4:])
    for more in (bytes(4), b"\0\0\0\1"):
        longer = good.stream[4:] + more
        yield stream(f"a word more {more.hex()}", struct.pack("<I", words + 1) + longer)
    yield stream("a word less", struct.pack("<I", words - 1) + good.stream[4:-4])
    yield stream("nothing", b"")
    for gap in (1, 7, 254, 255):
        yield stream(f"gap {gap}", good.stream[:4] + bytes((gap,)) + good.stream[5:])
    yield stream("padding of gaps", good.stream[:5] + b"\1" + good.stream[6:])
    yield stream("padding of the stream", good.stream[:-4] + bytes((good.stream[-4] | 1,)) + good.stream[-3:])
    lists = bytearray(good.lists)
    lists[15] |= 128
    yield hostile(
        "Huffman group: a flag of an absent block", joined(HUFFMAN, tables_, [replace(good, lists=bytes(lists))])
    )
    long = replace(LONG, outliers=2)
    tables_, groups_ = chosen(long, [WILD, WILD, WILD])
    for at in (1, 9, 40):
        changed = bytearray(groups_[0].stream)
        changed[4 + at] = (changed[4 + at] + 1) % 256
        parts = [replace(groups_[0], stream=bytes(changed)), *groups_[1:]]
        yield hostile(f"Huffman group: gap {at} is another", joined(long, tables_, parts))
    wide = replace(WIDE, outliers=2)
    narrow = replace(PLAIN, outliers=2)
    parts_ = chosen(wide, [Tile(codes=CODES << np.uint64(40))], 1)
    yield hostile("Huffman: symbols of 64 bits", joined(narrow, *parts_))
    yield hostile("Huffman: a pair over the end of its tile", joined(narrow, *pair_at_the_end()))


def pair_at_the_end() -> tuple[bytes, list[GroupParts]]:
    """One block of 32 residuals: a single 0, and 16 pairs of them."""
    lengths = {0: 1, 256: 2, ESCAPE: 2}
    tables_ = huffman_writer.write_tables(huffman_writer.write_codebook(lengths))
    codes = huffman_writer.codes_of(lengths)
    bits = codes[0] + codes[256] * 16
    words = [int(bits[at : at + 32].ljust(32, "0"), 2) for at in range(0, len(bits), 32)]
    stream = struct.pack("<I", len(words)) + bytes(4) + struct.pack(f"<{len(words)}I", *words)
    return tables_, [GroupParts(b"\3", b"\1\0", b"", b"", b"", stream)]


def directories() -> Iterator[Hostile]:
    """Section 8.1: two groups of two tiles and of one."""
    tables_, parts = chosen(LONG, [RICH, VERBATIM, Tile(codes=CODES)])
    good = joined(LONG, tables_, parts)
    at = 8 * (7 + len(LONG.dims)) + len(tables_)
    first, second, third = struct.unpack_from("<3I", good, at)
    wrong = {
        "begins at 1": (1, second, third),
        "decreases": (0, third + 1, third),
        "goes too far": (0, second, third + 1),
        "ends too soon": (0, second, third - 1),
        "bit 31 of the first": (first | 1 << 31, second, third),
        "bit 31 of the second": (0, second | 1 << 31, third),
        "bit 31 of the last": (0, second, third | 1 << 31),
        "a boundary elsewhere": (0, second + 1, third),
    }
    for name, words in wrong.items():
        yield hostile(f"directory of groups: {name}", good[:at] + struct.pack("<3I", *words) + good[at + 12 :])
    yield hostile("directory of groups: for tiles", joined(replace(LONG, group_log2=0), tables_, parts))


def crafted() -> Iterator[Hostile]:
    """All frames that are wrong behind a right checksum."""
    for maker in (fields, tables, groups, short_states, symbols, codebooks, huffman_groups, directories):
        yield from maker()
