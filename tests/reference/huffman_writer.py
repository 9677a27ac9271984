# SPDX-License-Identifier: BSD-3-Clause
"""Writer of the Huffman streams of lorenzo frames: any choice that section 8.7 of docs/format.md allows.

Neighbour: stream_writer.py writes the frames. Shares no line with huffman.py, so that the two can check each other.
"""

from __future__ import annotations

import random
import struct
from itertools import pairwise

import numpy as np

ESCAPE = 255
Lengths = dict[int, int]  # of codewords


def symbol_of(z: int) -> tuple[int, int]:
    """The symbol of a residual and its number of raw bits."""
    if z < 16:
        return z, 0
    raw = z.bit_length() - 3
    return 4 * (raw + 2) + (z >> raw) % 4, raw


def random_lengths(values: list[int], rng: random.Random) -> Lengths:
    """A codebook that has most of what these residuals need, and some more."""
    wanted = {symbol for symbol, _ in map(symbol_of, values) if symbol != ESCAPE and rng.random() < 0.9}
    near = [256 + 16 * a + b for a, b in pairwise(values) if a < 16 and b < 16]
    wanted |= set(rng.sample(near, min(len(near), rng.choice((0, 20, 200)))))
    wanted |= {rng.choice((rng.randrange(40), rng.randrange(256, 512))) for _ in range(rng.randrange(4))}
    chosen = [*wanted, ESCAPE]
    if len(chosen) == 1:
        chosen.append(0)
    depths = [0]
    while len(depths) < len(chosen):  # a leaf of a tree is split
        at = rng.choice([i for i, depth in enumerate(depths) if depth < 12])
        depths[at] += 1
        depths.append(depths[at])
    rng.shuffle(depths)
    return dict(zip(chosen, depths, strict=True))


def unary(change: int) -> list[int]:
    """A small signed number as zeros before a one."""
    return [0] * (2 * change if change >= 0 else -2 * change - 1) + [1]


def write_codebook(lengths: Lengths) -> list[int]:
    """Bits of the tables."""
    singles = max((c for c in lengths if c < ESCAPE), default=-1) + 1
    reach = max((max(c % 256 // 16, c % 16) for c in lengths if c >= 256), default=-1) + 1
    bits = [singles >> i & 1 for i in range(8)] + [reach >> i & 1 for i in range(5)]
    pairs = [256 + 16 * a + b for a in range(reach) for b in range(reach)]
    before = 8
    for codeword in [*range(singles), *pairs, ESCAPE]:
        length = lengths.get(codeword)
        if length is None:
            bits.append(0)
            continue
        change = length - before
        bits += [1, *unary(change)]
        before = length
    return bits


def write_tables(bits: list[int]) -> bytes:
    bits = bits + [0] * (-len(bits) % 32)
    data = np.packbits(np.array(bits, np.uint8), bitorder="little").tobytes()
    return struct.pack("<I", 1 + len(data) // 4) + data


def codes_of(lengths: Lengths) -> dict[int, str]:
    found, code, before = {}, 0, 0
    for codeword in sorted(lengths, key=lambda c: (lengths[c], c)):
        code <<= lengths[codeword] - before
        before = lengths[codeword]
        found[codeword] = f"{code:0{before}b}"
        code += 1
    return found


class Stream:
    """Bits as they are written."""

    def __init__(self, lengths: Lengths, rng: random.Random) -> None:
        self.codes, self.rng = codes_of(lengths), rng
        self.parts: list[str] = []
        self.starts: list[int] = []
        self.size = 0

    def put(self, bits: str) -> None:
        self.parts.append(bits)
        self.size += len(bits)

    def write(self, values: list[int]) -> None:
        """Residuals of a tile."""
        i = 0
        while i < len(values):
            self.starts.append(self.size)
            if i + 1 < len(values) and max(values[i : i + 2]) < 16 and self.rng.random() < 0.9:
                code = self.codes.get(256 + 16 * values[i] + values[i + 1])
                if code is not None:
                    self.put(code)
                    i += 2
                    continue
            symbol, raw = symbol_of(values[i])
            if symbol == ESCAPE or symbol not in self.codes or self.rng.random() < 0.01:
                self.put(self.codes[ESCAPE] + f"{symbol:08b}")
            else:
                self.put(self.codes[symbol])
            if raw:
                self.put(f"{values[i] % (1 << raw):0{raw}b}")
            i += 1

    def finish(self, has_gaps: bool) -> bytes:
        """The number of words, gaps, words."""
        bits = "".join(self.parts)
        bits += "0" * (-len(bits) % 32)
        words = [int(bits[at : at + 32], 2) for at in range(0, len(bits), 32)]
        runs = range(0, len(bits), 1024)
        gaps = bytes(min([255, *(s - run for s in self.starts if run <= s < run + 1024)]) for run in runs)
        gaps = gaps + bytes(-len(gaps) % 4) if has_gaps else b""
        return struct.pack("<I", len(words)) + gaps + struct.pack(f"<{len(words)}I", *words)
