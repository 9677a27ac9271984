# SPDX-License-Identifier: BSD-3-Clause
"""Writer of lorenzo frames: any choice that section 8 of docs/format.md allows.

What packed_writer.py is to hierarchical_delta, whose tiles it takes: slow, and without a line of streams.py. A frame is
written from its tiles and a `Choices`, which says at random what is coded how; `write_parts` gives the parts of a
payload, for tests that break them.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, replace

import numpy as np

from . import huffman_writer, packed_choices
from .encoder import SHORT_STATES, Spec, write_header
from .huffman_writer import symbol_of
from .packed_writer import Tile, frame_values, present, residuals, tile_positions, write_tile

ESCAPE = 255
#: a step in a decoder's order: lane, frequency and first slot of what is taken, bits that come with it, their value
Step = tuple[int, int, int, int, int]


@dataclass
class Choices:
    """What is left to an encoder, drawn as it is needed."""

    rng: random.Random
    base: int = 0
    octaves: int = 0
    contexts: int = 4
    flags: tuple[int, int, int] = (512, 512, 512)
    end: int = 1 << 15  # that states have when a decoder is done
    early: bool = False  # the first step's state has lost a word too early, and is too small

    def __post_init__(self) -> None:
        self.base, self.octaves = self.rng.choice((0, 0, 1, 5, 63)), self.rng.randrange(2)
        self.contexts = self.rng.choice((1, 2, 5, 12))
        self.flags = (self.rng.randint(1, 1023), self.rng.randint(1, 1023), self.rng.choice((1, 512, 1023)))

    def blocks(self, z: list[list[int]], among: list[int]) -> tuple[int, list[int]]:
        """How a tile's coded blocks are named, and which these are."""
        needed = [b for b in among if any(z[b])]
        more = sorted({*needed, *self.rng.sample(among, min(len(among), self.rng.randrange(4)))})
        ways = [(1, among), (2, more), (2, needed)]
        ways += [(3, blocks) for blocks in (needed, more) if 1 <= len(blocks) <= 16]
        ways += [] if needed else [(0, needed)] * 3
        return self.rng.choice(ways)

    def frequencies(self, used: set[int]) -> list[int]:
        """Of a table that has most of these symbols, and some more."""
        rng = self.rng
        wanted = {s for s in used if s != ESCAPE and rng.random() < 0.9} | {rng.randrange(20) for _ in range(3)}
        found = [0] * 256
        found[ESCAPE] = rng.randint(1, 15)
        main = rng.choice(sorted(wanted))
        for s in sorted(wanted - {main}):
            width = rng.choice((1, 1, 2, 3, 4, 6))
            n = min(width - 1, 3)
            found[s] = ((1 << n) + rng.randrange(1 << n)) << (width - 1 - n)
            if sum(found) >= 1023:
                found[s] = 0
                break
        found[main] = 1024 - sum(found)
        return found


# ---- 8.2 Tables -----------------------------------------------------------------------------------------------------


def write_table(frequencies: list[int], main: int, listed: int | None = None) -> list[int]:
    """The bits of a table."""
    listed = max(s for s in range(ESCAPE) if frequencies[s]) + 1 if listed is None else listed

    def low_first(value: int, count: int) -> list[int]:
        return [value >> i & 1 for i in range(count)]

    bits = low_first(listed, 8) + low_first(main, 8) + low_first(frequencies[ESCAPE], 4)
    widths = [8, 8]
    for s in range(listed):
        if s == main:
            continue
        width = frequencies[s].bit_length()
        bits += huffman_writer.unary(width - widths[-2])
        n = min(width - 1, 3) if width > 1 else 0
        bits += low_first(frequencies[s] >> (width - 1 - n), n) if n else []
        widths.append(width)
    return bits


def main_of(frequencies: list[int]) -> int:
    """A symbol that can be the main one: any whose frequency has more than four bits that matter, else the largest."""
    return max(range(ESCAPE), key=lambda s: (frequencies[s] > 0 and not has_four_bits(frequencies[s]), frequencies[s]))


def has_four_bits(frequency: int) -> bool:
    shift = max(frequency.bit_length() - 4, 0)
    return frequency >> shift << shift == frequency


def write_tables(choices: Choices, tables: list[list[int]]) -> bytes:
    bits = [bit for table in tables for bit in write_table(table, main_of(table))]
    bits += [0] * (-len(bits) % 32)
    data = np.packbits(np.array(bits, np.uint8), bitorder="little").tobytes()
    head = 2 + len(data) // 4 | choices.base << 16 | choices.octaves << 22 | choices.contexts << 24
    return struct.pack("<2I", head, sum(f << 10 * i for i, f in enumerate(choices.flags))) + data


# ---- 8.5 backwards --------------------------------------------------------------------------------------------------


def context(z: list[int], i: int, spec: Spec, choices: Choices) -> int:
    """The table of position i of a block."""
    if i == 0:
        return choices.contexts
    edge = {1: (1, 1, 32), 2: (1, 4, 8), 3: (2, 4, 4), 4: (1, 32, 1)}[spec.tile_shape]
    at = {(k // (edge[1] * edge[2]), k // edge[2] % edge[1], k % edge[2]): k for k in range(32)}
    here = next(p for p, k in at.items() if k == i)
    near = [at.get((here[0] - dz, here[1] - dy, here[2] - dx)) for dz, dy, dx in ((0, 0, 1), (0, 1, 0), (1, 0, 0))]
    found = [k for k in near if k is not None]
    if len(found) == 1:
        along = (0, 1, 0) if spec.tile_shape == 4 else (0, 0, 1)
        two = at.get((here[0] - 2 * along[0], here[1] - 2 * along[1], here[2] - 2 * along[2]))
        line = spec.tile_shape == 4 or here[2] > 0
        found.append((found[0] if two is None else two) if line else found[0] + 1)
    total = sum(min(z[k], 1 << 23) for k in found[:2])
    octaves = total.bit_length()
    level = total if total < 2 else 2 * octaves - 1 + (total >> octaves - 2 & 1)
    step = (level + 1) // 2 if choices.octaves else level
    return min(max(step - choices.base, 0), choices.contexts - 1)


def used_symbols(coded: list[tuple[list[list[int]], list[int]]], spec: Spec, choices: Choices) -> list[set[int]]:
    """By table."""
    used: list[set[int]] = [set() for _ in range(choices.contexts + 1)]
    for z, blocks in coded:
        for b in blocks:
            for i in range(32):
                used[context(z[b], i, spec, choices)].add(symbol_of(z[b][i])[0])
    return used


def flag_steps(blocks: list[int], among: list[int], choices: Choices) -> list[Step]:
    steps: list[Step] = []
    for j in range(4):
        for lane in range(32):
            b = 4 * lane + j
            if b in among:
                before = j > 0 and b - 1 in among
                f = choices.flags[1 + (b - 1 in blocks) if before else 0]
                steps.append((lane, f, 0, 0, 0) if b in blocks else (lane, 1024 - f, f, 0, 0))
    return steps


def round_steps(z: list[list[int]], tables: list[list[int]], spec: Spec, choices: Choices) -> list[Step]:
    """Steps of up to 32 blocks; frequency 0: bits alone."""
    steps: list[Step] = []
    for i in range(32):
        outer: list[list[tuple[int, int]]] = []
        for lane, block in enumerate(z):
            table = tables[context(block, i, spec, choices)]
            symbol, raw = symbol_of(block[i])
            chunks: list[tuple[int, int]] = []
            inner = min(raw, 5)
            if symbol == ESCAPE or table[symbol] == 0:
                chunks, inner = [(8, symbol)], 0
                taken, symbol = 0, ESCAPE
            else:
                taken = inner
            while taken < raw:
                count = min(raw - taken, 15)
                chunks.append((count, block[i] >> taken & (1 << count) - 1))
                taken += count
            steps.append((lane, table[symbol], sum(table[:symbol]), inner, block[i] & (1 << inner) - 1))
            outer.append(chunks)
        for k in range(max(len(chunks) for chunks in outer)):
            steps += [(lane, 0, 0, *chunks[k]) for lane, chunks in enumerate(outer) if k < len(chunks)]
    return steps


def write_stream(steps: list[Step], end: int, log2: int = 10, early: bool = False) -> tuple[list[int], list[int]]:
    """States and words of a stream of these steps; `log2`: of the slots.

    With `early` the first step's state loses a word that it has room for. A decoder without a check reads the same.
    """
    return write_lanes(steps, [end] * 32, log2, early)[:2]


def write_lanes(
    steps: list[Step], end: list[int], log2: int = 10, early: bool = False
) -> tuple[list[int], list[int], list[int]]:
    """The same of lanes that end with states of their own; and the states before the step that wrote the first word.

    A step is one of several lanes here.
    """
    states, words, before, last = list(end), list[int](), list(end), 32
    for number in reversed(range(len(steps))):
        lane, f, start, bits, value = steps[number]
        if not words and lane >= last:
            before = list(states)
        last, x = lane, states[lane]
        full = x >> 31 - bits > 0 if f == 0 else x >> 31 - log2 - bits >= f
        if full or (early and number == 0):
            words.append(x & 0xFFFF)
            x >>= 16
        x = x << bits | value
        states[lane] = x if f == 0 else (x // f << log2) + x % f + start
    return states, words[::-1], before


def write_short_states(steps: list[Step], lanes: int, rng: random.Random) -> tuple[bytes, list[int]]:
    """States of as many bits as they need, and the words of a stream of these steps."""
    end = [rng.choice((1, 1, 1, 1 << 15)) if lane < lanes else 1 << 15 for lane in range(32)]
    states, words, before = write_lanes(steps, end)
    while words and min(before) < 1 << 15:
        end = [1 << 15 if small < 1 << 15 else x for small, x in zip(before, end, strict=True)]
        states, words, before = write_lanes(steps, end)
    bits = [len(words) % 2, int(bool(words))]
    places = [x.bit_length() - 1 for x in states[:lanes]]
    for place in places:
        bits += [place - 15 >> i & 1 for i in range(4)] if words else [place >> i & 1 for i in range(5)]
    for place, x in zip(places, states, strict=False):
        bits += [x >> i & 1 for i in range(place)]
    bits += [0] * (-len(bits) % 32)
    return sum(bit << i for i, bit in enumerate(bits)).to_bytes(len(bits) // 8, "little") if lanes else b"", words


# ---- 8.3 Group ------------------------------------------------------------------------------------------------------

Coded = tuple[int, list[list[int]], list[int], list[int], bytes]  # coding, residuals, coded and present blocks, special


def special_part(tile: Tile, spec: Spec, among: list[int]) -> bytes:
    """A tile's special values; nothing where there are none."""
    if tile.verbatim is not None or tile.empty:
        return write_tile(tile, spec, among)
    blocks = {b: replace(block, planes=None, exception=None, excess=0) for b, block in tile.blocks.items()}
    plain = replace(
        tile, codes=np.zeros(4096, np.uint64), blocks=blocks, base=None, rate_planes=None, first_bytes=None, ignored=0
    )
    part = write_tile(replace(plain, exception_plane=False), spec, among)
    return part if any(part[:4]) else b""


@dataclass
class GroupParts:
    """The parts of a group."""

    head: bytes
    lists: bytes
    sizes: bytes
    special: bytes
    states: bytes
    stream: bytes

    def join(self) -> bytes:
        front = self.head + self.lists + self.sizes
        return front + bytes(-len(front) % 4) + self.special + self.states + self.stream


def write_huffman_group(
    tiles: list[Coded], lengths: huffman_writer.Lengths, spec: Spec, rng: random.Random
) -> GroupParts:
    stream = huffman_writer.Stream(lengths, rng)
    lists = sizes = special = b""
    halves = []
    for coding, z, blocks, _, part in tiles:
        halves.append(coding | (4 if part else 0))
        lists += bytes((len(blocks), *blocks)) if coding == 3 else b""
        lists += sum(1 << b for b in blocks).to_bytes(16, "little") if coding == 2 else b""
        sizes += struct.pack("<H", len(part) // 4) if part else b""
        special += part
        stream.write([value for b in blocks for value in z[b]])
    halves += [0] * (len(halves) % 2)
    head = bytes(low | high << 4 for low, high in zip(halves[::2], halves[1::2], strict=True))
    return GroupParts(head, lists, sizes, special, b"", stream.finish(spec.outliers == 2))


def write_group(tiles: list[Coded], tables: list[list[int]], spec: Spec, choices: Choices) -> GroupParts:
    steps: list[Step] = []
    lists = sizes = special = b""
    lanes, halves = 0, []
    for coding, z, blocks, among, part in tiles:
        halves.append(coding | (4 if part else 0))
        lists += bytes((len(blocks), *blocks)) if coding == 3 else b""
        sizes += struct.pack("<H", len(part) // 4) if part else b""
        special += part
        lanes = max(lanes, 32 if coding == 2 else min(32, len(blocks)))
        steps += flag_steps(blocks, among, choices) if coding == 2 else []
        for first in range(0, len(blocks), 32):
            steps += round_steps([z[b] for b in blocks[first : first + 32]], tables, spec, choices)
    if spec.outliers == SHORT_STATES:
        packed, words = write_short_states(steps, lanes, choices.rng)
    else:
        states, words = write_stream(steps, choices.end, early=choices.early)
        packed = struct.pack(f"<{lanes}I", *states[:lanes])
    words += [0] * (len(words) % 2)
    halves += [0] * (len(halves) % 2)
    head = bytes(low | high << 4 for low, high in zip(halves[::2], halves[1::2], strict=True))
    return GroupParts(head, lists, sizes, special, packed, struct.pack(f"<{len(words)}H", *words))


# ---- 8.1 Payload ----------------------------------------------------------------------------------------------------


def tile_residuals(tiles: list[Tile], spec: Spec) -> list[list[list[int]]]:
    """Residuals of a group's tiles."""
    found, before = [], 0
    modulus, half = 1 << spec.code_bits, 1 << spec.code_bits - 1
    for tile in tiles:
        codes = Tile().codes if tile.empty else tile.codes
        if tile.verbatim is not None:
            found.append([[0] * 32 for _ in range(128)])
            continue
        z = residuals(codes, spec)
        if spec.order > 0:
            first = (int(codes[0]) - before + half) % modulus - half
            z[0][0] = 2 * first if first >= 0 else -2 * first - 1
        before = int(codes[-1 if spec.tile_shape == 1 else 0])
        found.append(z)
    return found


def write_parts(spec: Spec, tiles: list[Tile], choices: Choices) -> tuple[bytes, list[GroupParts | None]]:
    """Tables, and the parts of groups; None: a group of size 0."""
    of_group = 1 << spec.group_log2
    amongs = [present(where, spec) for where in tile_positions(spec)]
    groups: list[list[Coded]] = []
    for first in range(0, len(tiles), of_group):
        some = tiles[first : first + of_group]
        coded: list[Coded] = []
        for z, tile, among in zip(tile_residuals(some, spec), some, amongs[first : first + of_group], strict=True):
            coding, blocks = (0, []) if tile.verbatim is not None else choices.blocks(z, among)
            coded.append((coding, z, blocks, among, special_part(tile, spec, among)))
        groups.append(coded)
    every = [(z, blocks) for group in groups for _, z, blocks, _, _ in group]
    if spec.outliers in (2, 3):
        lengths = huffman_writer.random_lengths([v for z, blocks in every for b in blocks for v in z[b]], choices.rng)
        parts: list[GroupParts | None] = [write_huffman_group(group, lengths, spec, choices.rng) for group in groups]
        return huffman_writer.write_tables(huffman_writer.write_codebook(lengths)), parts
    tables = [choices.frequencies(used) for used in used_symbols(every, spec, choices)]
    written = [
        None
        if all(coding == 0 and not part for coding, _, _, _, part in group) and choices.rng.random() < 0.8
        else write_group(group, tables, spec, choices)
        for group in groups
    ]
    return write_tables(choices, tables), written


def join_parts(spec: Spec, tables: bytes, groups: list[bytes]) -> bytes:
    offsets = np.cumsum([0, *(len(group) // 4 for group in groups)]).tolist()
    payload = tables + struct.pack(f"<{len(offsets)}I", *offsets) + b"".join(groups)
    return write_header(spec, len(payload)) + payload


def write_frame(spec: Spec, tiles: list[Tile], choices: Choices) -> bytes:
    tables, groups = write_parts(spec, tiles, choices)
    return join_parts(spec, tables, [b"" if group is None else group.join() for group in groups])


def random_frame(rng: random.Random, coders: tuple[int, ...] = (1, 1, 2, 3)) -> tuple[Spec, bytes, list[int | None]]:
    """Any frame that is not raw, of a few tiles at most."""
    while (spec := packed_choices.random_spec(rng)).exact or spec.raw:
        pass
    spec = replace(spec, codec="lorenzo", outliers=rng.choice(coders), group_log2=rng.randrange(6))
    tiles = [packed_choices.random_tile(spec, rng, present(where, spec)) for where in tile_positions(spec)]
    return spec, write_frame(spec, tiles, Choices(rng)), frame_values(spec, tiles)
