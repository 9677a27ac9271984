# SPDX-License-Identifier: BSD-3-Clause
"""Reference decoder: section 8 of docs/format.md, the streams of lorenzo frames; huffman.py has 8.7.

Neighbours: decoder.py calls `decode_streams`; packed.py has what their tiles share with those of hierarchical_delta;
stream_writer.py writes what this reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from . import huffman, packed
from .header import CHAIN, COLUMNS, RANS, TILE_SHAPES, CorruptFrame, Header, require, tile_count
from .packed import BLOCKS, Bools
from .parts import Array, parse_directory, unzigzag

SUM, ESCAPE, LANES, LOWEST, CAP = 1024, 255, 32, 1 << 15, 1 << 23

# ---- 8.2 Tables -----------------------------------------------------------------------------------------------------


class Table(NamedTuple):
    """Frequencies of symbols, and what each slot stands for."""

    frequencies: list[int]
    slots: list[int]  # symbol of each
    starts: list[int]


class Tables(NamedTuple):
    """The tables of a frame."""

    base: int
    octaves: int
    flags: tuple[int, int, int]
    tables: list[Table]
    words: int  # that they take
    codebook: huffman.Codebook  # of Huffman coders, which have nothing else

    @property
    def contexts(self) -> int:
        return len(self.tables) - 1


def make_table(frequencies: list[int]) -> Table:
    """Slots in the order of the symbols."""
    starts: list[int] = []
    slots: list[int] = []
    for symbol, frequency in enumerate(frequencies):
        starts.append(len(slots))
        slots += [symbol] * frequency
    return Table(frequencies, slots, starts)


@dataclass
class Bits:
    """Bits of bytes, lowest first."""

    data: bytes
    at: int = 0

    def take(self, count: int) -> int:
        require(self.at + count <= 8 * len(self.data), "tables are too small for their bits")
        first, self.at = self.at, self.at + count
        taken = self.data[first // 8 : -(-self.at // 8)]
        return int.from_bytes(taken, "little") >> first % 8 & (1 << count) - 1

    def small(self) -> int:
        """A small number of either sign: its zigzag code in zeros, and a one."""
        byte, shift = divmod(self.at, 8)
        window = int.from_bytes(self.data[byte : byte + 8], "little") >> shift << shift
        while window == 0:
            byte += 8
            require(byte < len(self.data), "tables are too small for their bits")
            window = int.from_bytes(self.data[byte : byte + 8], "little")
        one = 8 * byte + (window & -window).bit_length() - 1
        k, self.at = one - self.at, one + 1
        return k // 2 if k % 2 == 0 else -(k + 1) // 2

    def end(self) -> None:
        """Less than a word is left."""
        require(8 * len(self.data) - self.at < 32, "tables are larger than their bits")
        require(self.take(8 * len(self.data) - self.at) == 0, "padding of the tables is not zero")


def parse_table(bits: Bits, total: int = SUM) -> Table:
    """One table, whose frequencies have this sum."""
    listed, main, escape = bits.take(8), bits.take(8), bits.take(4)
    require(listed > 0 and main < listed, f"{listed} symbols, the main one is {main}")
    frequencies = [0] * 256
    before = [8, 8]
    for symbol in range(listed):
        if symbol == main:
            continue
        width = before[0] + bits.small()
        require(0 <= width < total.bit_length(), f"frequency of {width} bits")
        n = min(width - 1, 3) if width > 1 else 0
        low = bits.take(n)
        frequencies[symbol] = 0 if width == 0 else ((1 << n) + low) << (width - 1 - n)
        before = [before[1], width]
    frequencies[ESCAPE] = escape
    left = total - sum(frequencies)
    require(left >= 1, "frequencies leave nothing for the main symbol")
    frequencies[main] = left
    return make_table(frequencies)


def parse_tables(frame: bytes, header: Header) -> Tables:
    """The first part of the payload."""
    start = header.header_bytes
    if not header.rans:
        require(len(frame) >= start + 4, "no room for tables")
        words = int.from_bytes(frame[start : start + 4], "little")
        require(1 <= words <= 3072 and start + 4 * words <= len(frame), f"tables of {words} words")
        bits = Bits(frame[start + 4 : start + 4 * words])
        codebook = huffman.parse_codebook(bits)
        bits.end()
        return Tables(0, 0, (0, 0, 0), [], words, codebook)
    require(len(frame) >= start + 8, "no room for tables")
    head, flags = (int(word) for word in np.frombuffer(frame, "<u4", 2, start))
    words, contexts = head & 0xFFFF, head >> 24 & 15
    require(2 <= words <= 3072 and start + 4 * words <= len(frame), f"tables of {words} words")
    require(head >> 28 == 0 and head >> 23 & 1 == 0 and flags >> 30 == 0, "reserved bits of the tables")
    require(1 <= contexts <= 12, f"{contexts} contexts")
    frequencies = (flags & 1023, flags >> 10 & 1023, flags >> 20 & 1023)
    require(all(frequencies), "a flag's frequency is 0")
    bits = Bits(frame[start + 8 : start + 4 * words])
    tables = [parse_table(bits) for _ in range(contexts + 1)]
    bits.end()
    return Tables(head >> 16 & 63, head >> 22 & 1, frequencies, tables, words, {})


# ---- 8.3 Group ------------------------------------------------------------------------------------------------------

NONE, ALL, FLAGS, LISTED = 0, 1, 2, 3


@dataclass
class Group:
    """A group's parts: of each tile what is coded, the blocks listed, and its special part."""

    coding: list[int]
    listed: list[list[int]]
    special: list[packed.Tile]
    states: list[int] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    stream: huffman.HuffmanStream | None = None


def parse_group(frame: bytes, header: Header, start: int, size: int, present: Bools) -> Group:
    """`start` and `size` in words; `present[tile, block]` of the group's tiles."""
    tiles = len(present)
    empty = Group([NONE] * tiles, [[] for _ in range(tiles)], [packed.empty_tile()] * tiles)
    if size == 0:
        return empty
    most = 512 + tiles * (4096 * (2 * header.dtype.itemsize + 3) + 256)
    require(4 * size <= most, "group is larger than any group may be")
    data = frame[4 * start : 4 * (start + size)]
    used = 0

    def take(count: int, what: str) -> bytes:
        nonlocal used
        require(used + count <= len(data), f"group is too small for its {what}")
        used += count
        return data[used - count : used]

    # 1. head
    halves = [half for byte in take(-(-tiles // 2), "head") for half in (byte & 15, byte >> 4)]
    require(not any(halves[tiles:]) and not any(half & 8 for half in halves), "reserved bits of a group's head")
    group = Group([half & 3 for half in halves[:tiles]], empty.listed, list(empty.special))
    # 2. lists
    for tile in range(tiles):
        if group.coding[tile] == LISTED:
            (count,) = take(1, "lists")
            require(1 <= count <= 16, f"{count} blocks listed")
            blocks = list(take(count, "lists"))
            require(all(a < b for a, b in pairwise(blocks)), "listed blocks do not ascend")
            require(blocks[-1] < BLOCKS and bool(present[tile, blocks].all()), "an absent block is listed")
            group.listed[tile] = blocks
        elif group.coding[tile] == FLAGS and not header.rans:
            bits = np.unpackbits(np.frombuffer(take(16, "flags"), np.uint8), bitorder="little")
            group.listed[tile] = [int(block) for block in np.flatnonzero(bits)]
            require(bool(present[tile, group.listed[tile]].all()), "a flag of an absent block")
    # 3. sizes, 4. padding
    has_special = [bool(half & 4) for half in halves[:tiles]]
    sizes = [int.from_bytes(take(2, "sizes"), "little") if has else 0 for has in has_special]
    require(all(size > 0 for size, has in zip(sizes, has_special, strict=True) if has), "a special part of no words")
    require(not any(take(-used % 4, "padding")), "padding of a group is not zero")
    # 5. special parts
    for tile in range(tiles):
        if has_special[tile]:
            at = start + used // 4
            take(4 * sizes[tile], "special parts")
            part = packed.parse_tile(frame, header, at, sizes[tile], present[tile])
            require(not (part.planes.any() or part.first.any() or (part.exceptions >= 0).any()), "special part")
            head = frame[4 * at : 4 * at + 4]
            require(head[0] == 0 and head[1] == 0 and head[2] & packed.EXCEPTIONS == 0, "special part with widths")
            require(not part.verbatim.any() or group.coding[tile] == NONE, "a verbatim tile with coded blocks")
            group.special[tile] = part
    if not header.rans:
        group.stream = huffman.parse_stream(data[used:], header)
        return group
    # 6. states, 7. stream
    lanes = 0
    for tile, coding in enumerate(group.coding):
        coded = {NONE: 0, ALL: int(present[tile].sum()), FLAGS: LANES, LISTED: len(group.listed[tile])}[coding]
        lanes = max(lanes, min(coded, LANES))
    if header.coder == RANS:
        group.states, group.words = parse_states(data[used:], lanes)
    else:
        group.states = [int(x) for x in np.frombuffer(take(4 * lanes, "states"), "<u4")]
        require(all(LOWEST <= x < 1 << 31 for x in group.states), "a state is out of range")
        group.words = [int(x) for x in np.frombuffer(data[used:], "<u2")]
    group.states += [LOWEST] * (LANES - lanes)
    return group


def parse_states(data: bytes, lanes: int) -> tuple[list[int], list[int]]:
    """States of as many bits as they need, and the words of the stream."""
    if lanes == 0:
        require(not data, "a stream without lanes")
        return [], []
    bits = Bits(data)
    odd, has_words = bits.take(1), bits.take(1)
    require(bool(has_words) or not odd, "an odd number of no words")
    places = [15 + bits.take(4) if has_words else bits.take(5) for _ in range(lanes)]
    require(all(place < 31 for place in places), "a state is out of range")
    states = [1 << place | bits.take(place) for place in places]
    require(bits.take(-bits.at % 32) == 0, "padding of states is not zero")
    words = [int(x) for x in np.frombuffer(data[bits.at // 8 :], "<u2")]
    require(bool(words) == bool(has_words), "words where there are none, or none")
    require(not odd or words.pop() == 0, "padding of a stream is not zero")
    return states, words


# ---- 8.4 Steps ------------------------------------------------------------------------------------------------------


@dataclass
class Stream:
    """The lanes' states, and where the stream is."""

    states: list[int]
    words: list[int]
    at: int = 0
    more: bool = True  # whether there were words before this step

    def begin(self) -> None:
        """A step of several lanes begins."""
        self.more = self.at < len(self.words)

    def refill(self, lane: int) -> None:
        if self.states[lane] < LOWEST and self.more:
            require(self.at < len(self.words), "the stream is too short")
            self.states[lane] = self.states[lane] << 16 | self.words[self.at]
            self.at += 1

    def symbol(self, lane: int, table: Table) -> tuple[int, int]:
        """A symbol and its inner bits."""
        x = self.states[lane]
        s = table.slots[x % SUM]
        x = table.frequencies[s] * (x // SUM) + x % SUM - table.starts[s]
        r = 0 if s == ESCAPE else min(raw_bits(s), 5)
        self.states[lane] = x >> r
        self.refill(lane)
        return s, x & (1 << r) - 1

    def flag(self, lane: int, frequency: int) -> bool:
        x = self.states[lane]
        found = x % SUM < frequency
        if found:
            self.states[lane] = frequency * (x // SUM) + x % SUM
        else:
            self.states[lane] = (SUM - frequency) * (x // SUM) + x % SUM - frequency
        self.refill(lane)
        return found

    def outer(self, lane: int, count: int) -> int:
        x = self.states[lane]
        self.states[lane] = x >> count
        self.refill(lane)
        return x & (1 << count) - 1


# ---- 8.5 Residuals --------------------------------------------------------------------------------------------------


def raw_bits(symbol: int) -> int:
    return 0 if symbol < 16 else symbol // 4 - 2


def smallest(symbol: int) -> int:
    return symbol if symbol < 16 else (4 + symbol % 4) << raw_bits(symbol)


def neighbours(shape: int, i: int) -> tuple[int, int]:
    """The two of a position of a block that is not its first."""
    _, by, bx = TILE_SHAPES[shape].block
    x, y, z = i % bx, i // bx % by, i // (bx * by)
    found = [i - step for step, there in ((1, x > 0), (bx, y > 0), (bx * by, z > 0)) if there]
    if len(found) == 1:
        along = x > 0 or shape == COLUMNS
        found.append(max(i - 2, 0) if along and (shape == COLUMNS or x > 1) else i - 1 if along else found[0] + 1)
    return found[0], found[1]


def level(total: int) -> int:
    """Number `v` of a sum of neighbours."""
    if total < 2:
        return total
    n = total.bit_length()
    return 2 * n - 1 + (total >> n - 2 & 1)


def read_flags(stream: Stream, tables: Tables, present: Bools) -> list[int]:
    """The coded blocks of a tile."""
    coded: list[bool | None] = [None] * BLOCKS
    for j in range(4):
        stream.begin()
        for lane in range(LANES):
            block = 4 * lane + j
            if present[block]:
                before = coded[block - 1] if j > 0 else None
                coded[block] = stream.flag(lane, tables.flags[0 if before is None else 2 if before else 1])
    return [block for block in range(BLOCKS) if coded[block]]


def read_round(stream: Stream, tables: Tables, shape: int, count: int, code_bits: int) -> list[list[int]]:
    """Residuals of up to 32 blocks."""
    values: list[list[int]] = [[] for _ in range(count)]
    last, octaves, base = tables.contexts - 1, tables.octaves, tables.base
    for i in range(32):
        a, b = neighbours(shape, i) if i > 0 else (0, 0)
        stream.begin()
        left: list[tuple[int, int]] = []  # of each lane: bits that it lacks, those it has (-1: an escape)
        for lane in range(count):
            number = last + 1
            if i > 0:
                total = min(values[lane][a], CAP) + min(values[lane][b], CAP)
                step = (level(total) + octaves) >> octaves
                number = min(max(step - base, 0), last)
            symbol, inner = stream.symbol(lane, tables.tables[number])
            if symbol == ESCAPE:
                values[lane].append(0)
                left.append((8, -1))
                continue
            if symbol >= 4 * code_bits:
                raise CorruptFrame(f"symbol {symbol}")
            values[lane].append(smallest(symbol) + inner)
            left.append((max(raw_bits(symbol) - 5, 0), 5))
        while any(count for count, _ in left):
            stream.begin()
            for lane, (lacks, has) in enumerate(left):
                if lacks == 0:
                    continue
                if has < 0:
                    symbol = stream.outer(lane, 8)
                    require(symbol < 4 * code_bits, f"symbol {symbol} behind an escape")
                    values[lane][i] = smallest(symbol)
                    left[lane] = (raw_bits(symbol), 0)
                    continue
                bits = min(lacks, 15)
                values[lane][i] += stream.outer(lane, bits) << has
                left[lane] = (lacks - bits, has + bits)
    return values


def read_group(group: Group, tables: Tables, header: Header, present: Bools) -> Array:
    """`z[tile, block, i]`."""
    z = np.zeros((len(present), BLOCKS, 32), f"<u{header.code_bits // 8}")
    stream = Stream(group.states, group.words)
    for tile, coding in enumerate(group.coding):
        blocks = group.listed[tile]
        if coding == ALL:
            blocks = [int(block) for block in np.flatnonzero(present[tile])]
        if group.stream is not None:
            z[tile, blocks] = np.array(
                huffman.read_blocks(group.stream, tables.codebook, len(blocks), header.code_bits), z.dtype
            ).reshape(-1, 32)
            continue
        if coding == FLAGS:
            blocks = read_flags(stream, tables, present[tile])
        for first in range(0, len(blocks), LANES):
            some = blocks[first : first + LANES]
            z[tile, some] = read_round(stream, tables, header.tile_shape, len(some), header.code_bits)
    if group.stream is not None:
        group.stream.end()
        return z
    left, short = group.words[stream.at :], header.coder == RANS
    require(not left or (left == [0] and not short), f"{len(left)} words behind the stream")
    require(all(x == LOWEST or (x == 1 and short) for x in stream.states), "a state does not end where it started")
    return z


# ---- 8.6 From residuals to codes ------------------------------------------------------------------------------------


def codes_of_group(z: Array, group: Group, header: Header) -> Array:
    """`q[tile, block, i]`."""
    codes = unzigzag(z)
    before = codes.dtype.type(0)
    with np.errstate(over="ignore"):
        for tile in range(len(codes)):
            if group.special[tile].verbatim.any():
                continue
            if header.order > 0:
                codes[tile, 0, 0] += before
            q = packed.summed(packed.tiles_of_blocks(codes[tile : tile + 1], header), header)
            before = q.reshape(-1)[-1 if header.tile_shape == CHAIN else 0]
            codes[tile] = packed.blocks_of_tiles(q, header)[0]
    return codes


# ---- 8.1 Payload ----------------------------------------------------------------------------------------------------


def decode_streams(frame: bytes, header: Header) -> Array:
    """The array of a frame whose size has been checked."""
    tiles, of_group = tile_count(header), 1 << header.group_log2
    groups = -(-tiles // of_group)
    tables = parse_tables(frame, header)
    start = header.header_bytes + 4 * tables.words
    offsets, uniform = parse_directory(frame, header, start, groups)
    require(not uniform.any(), "bit 31 of a directory entry")
    present = packed.present_blocks(header)
    codes, special = [], []
    for number in range(groups):
        some = present[number * of_group : (number + 1) * of_group]
        at = start // 4 + groups + 1 + int(offsets[number])
        group = parse_group(frame, header, at, int(offsets[number + 1] - offsets[number]), some)
        codes.append(codes_of_group(read_group(group, tables, header, some), group, header))
        special += group.special
    if not codes:
        return np.empty(header.dims, header.dtype.newbyteorder("="))
    every = packed.Tile(*(np.stack(parts) for parts in zip(*special, strict=True)))
    return packed.array_of_codes(frame, np.concatenate(codes), every, header)
