# SPDX-License-Identifier: BSD-3-Clause
"""Reference decoder: section 12 of docs/format.md, tiles of particles.

Neighbours: decoder.py has the whole frame, header.py section 2, parts.py what all tiles share; particles_writer.py
writes what this reads.
"""

from __future__ import annotations

import numpy as np

from .header import Header, require
from .parts import Array, Ints, Words, parse_directory, unpack_mask, values_of_codes

TILE, GROUP, KEY_BITS = 4096, 32, 24
VERBATIM, RUNS, TAIL = 1 << 13, 1 << 14, 1 << 15


class Reader:
    """The words of a tile, taken one after the other."""

    def __init__(self, words: Words) -> None:
        self.words = words

    def take(self, count: int) -> Words:
        require(count <= self.words.size, "tile is too small")
        taken, self.words = self.words[:count], self.words[count:]
        return taken

    def word(self) -> int:
        return int(self.take(1)[0])


def planes(reader: Reader, count: int) -> list[int]:
    """The numbers of a group from `count` bit planes."""
    words = reader.take(count)
    return [sum((int(words[p]) >> i & 1) << p for p in range(count)) for i in range(GROUP)]


# ---- 12.3 Sequences -------------------------------------------------------------------------------------------------


def sequence(reader: Reader, count: int) -> Ints:
    head = reader.word()
    base, rates, unary = head & 31, head >> 8 & 7, head >> 16
    require(head & 0xF8E0 == 0 and rates <= 5, f"head of a sequence {head:#010x}")
    groups = -(-count // GROUP)
    low = np.full(groups, base)
    for plane in range(rates):
        bits = unpack_mask(reader.take(-(-groups // 32))).reshape(-1)
        require(not bits[groups:].any(), "rate of a group that does not exist")
        low += bits[:groups].astype(np.int64) << plane
    require(bool((low <= 31).all()), "more than 31 low bits")
    remainders = [number for bits in low for number in planes(reader, int(bits))][:count]
    stream = unpack_mask(reader.take(unary)).reshape(-1)
    (ones,) = np.nonzero(stream)
    require(ones.size == count, f"{ones.size} ones in a unary part of {count} numbers")
    require(unary == -(-(int(ones[-1]) + 1) // 32), "words behind the last one of a unary part")
    quotients = np.diff(ones, prepend=-1) - 1
    numbers = [int(q) << int(low[i // GROUP]) | remainders[i] for i, q in enumerate(quotients)]
    require(max(numbers) < 1 << 31, "number of 2^31 or more")
    return np.array(numbers, np.int64)


# ---- 12.4 Keys ------------------------------------------------------------------------------------------------------


def read_keys(reader: Reader, count: int, runs: bool) -> Ints:
    if not runs:
        return np.cumsum(sequence(reader, count))
    distinct = reader.word()
    require(1 <= distinct <= count, f"{distinct} keys of {count} particles")
    keys = np.cumsum(sequence(reader, distinct) + 1) - 1
    times = sequence(reader, distinct) + 1
    require(int(times.sum()) == count, "runs that are not as many as the particles")
    return np.repeat(keys, times)


def segment_numbers(keys: Ints, levels: list[int]) -> list[Ints]:
    """Bits of a key go to the axes in turns, the lowest first; the widest axis has the highest bit of a turn."""
    order = sorted(range(len(levels)), key=lambda axis: -levels[axis])  # the first of equals first
    numbers = [np.zeros_like(keys) for _ in levels]
    at = 0
    for level in range(max(levels, default=0)):
        for axis in reversed([axis for axis in order if levels[axis] > level]):
            numbers[axis] |= (keys >> at & 1) << level
            at += 1
    return numbers


# ---- 12.2 Tiles -----------------------------------------------------------------------------------------------------


def decode_tile(words: Words, count: int, header: Header) -> Array:
    """Bit patterns, one row a particle."""
    axes, reader = header.dims[-1], Reader(words)
    value_words = header.dtype.itemsize // 4
    code = np.dtype(f"<u{header.dtype.itemsize}")

    def stored_values(rows: int) -> Array:
        found: Array = reader.take(rows * axes * value_words).astype("<u4").view(code).reshape(rows, axes)
        return found

    head = reader.word()
    if head & VERBATIM:
        require(head == VERBATIM, f"head of a verbatim tile {head:#010x}")
        values = stored_values(count)
        require(reader.words.size == 0, "words behind a verbatim tile")
        return values
    stored, shift = head & 0x1FFF, head >> 16
    require(stored <= count and shift <= header.code_bits, f"head of a tile {head:#010x}")
    repeats = 0
    if head & TAIL:
        repeats = reader.word()
        require(stored >= 1 and repeats <= count - stored, f"{repeats} repeats of {count} particles")
    ordinary = count - stored - repeats
    values = np.zeros((count, axes), code)
    if ordinary == 0:
        require(shift == 0 and not head & RUNS, "keys or offsets of no particles")
    else:
        widths = list(reader.take(1).view(np.uint8).astype(int))
        require(not any(widths[axes:]), f"widths {widths} of {axes} axes")
        require(max(widths) <= header.code_bits, f"widths {widths}")
        levels = [max(0, width - shift) for width in widths[:axes]]
        bits = sum(levels)
        require(bits <= KEY_BITS, f"keys of {bits} bits")
        require(bits > 0 or not head & RUNS, "runs of no keys")
        codes = np.repeat(stored_values(1), ordinary, axis=0)
        if bits:
            keys = read_keys(reader, ordinary, bool(head & RUNS))
            require(int(keys[-1]) < 1 << bits, "key that is too large")
            for axis, numbers in enumerate(segment_numbers(keys, levels)):
                if levels[axis]:
                    codes[:, axis] += numbers.astype(code) << code.type(shift)
        offsets = [min(shift, width) for width in widths[:axes]]
        for first in range(0, ordinary, GROUP):
            for axis in range(axes):
                group = np.array(planes(reader, offsets[axis]), code)[: ordinary - first]
                codes[first : first + GROUP, axis] += group
        values[:ordinary] = values_of_codes(codes, header)
    if stored:
        values[ordinary : ordinary + stored] = stored_values(stored)
        values[ordinary + stored :] = values[ordinary + stored - 1]
    require(reader.words.size == 0, "words behind a tile")
    return values


def decode_particles(frame: bytes, header: Header) -> Array:
    offsets, uniform = parse_directory(frame, header)
    require(not uniform.any(), "uniform tile of particles")
    count = header.value_count // header.dims[-1]
    words = np.frombuffer(frame, "<u4", offset=header.header_bytes + 4 * offsets.size).astype(np.uint32)
    tiles = [
        decode_tile(words[offsets[t] : offsets[t + 1]], min(TILE, count - t * TILE), header)
        for t in range(offsets.size - 1)
    ]
    values = np.concatenate(tiles) if tiles else np.empty((0, header.dims[-1]), f"<u{header.dtype.itemsize}")
    found: Array = values.view(header.dtype.newbyteorder("=")).reshape(header.dims)
    return found
