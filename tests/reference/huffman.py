# SPDX-License-Identifier: BSD-3-Clause
"""Reference decoder: section 8.7 of docs/format.md, the Huffman streams of lorenzo frames.

Neighbours: streams.py has the rest of section 8 and calls `parse_codebook` and `parse_stream`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from .header import CorruptFrame, Header, require

if TYPE_CHECKING:
    from .streams import Bits

ESCAPE, PAIRS = 255, 256
Codebook = dict[tuple[int, int], int]  # (length, code) -> codeword


def codewords(singles: int, reach: int) -> list[int]:
    """Those that a codebook speaks of, in its order."""
    pairs = [PAIRS + 16 * a + b for a in range(reach) for b in range(reach)]
    return [*range(singles), *pairs, ESCAPE]


def canonical(lengths: dict[int, int]) -> Codebook:
    """Codes of codewords with these lengths."""
    book: Codebook = {}
    code = before = 0
    for length, codeword in sorted((length, codeword) for codeword, length in lengths.items()):
        code <<= length - before
        book[length, code] = codeword
        code, before = code + 1, length
    return book


def parse_codebook(bits: Bits) -> Codebook:
    """From bits, lowest first."""
    singles, reach = bits.take(8), bits.take(5)
    require(singles <= 255 and reach <= 16, f"{singles} singles, pairs up to {reach}")
    lengths: dict[int, int] = {}
    length = 8
    for codeword in codewords(singles, reach):
        if bits.take(1):
            length += bits.small()
            require(1 <= length <= 12, f"codeword of {length} bits")
            lengths[codeword] = length
    room = sum(4096 >> length for length in lengths.values())
    require(room == 4096, f"codewords take {room} parts of 4096")
    return canonical(lengths)


@dataclass
class HuffmanStream:
    """Bits of a stream, highest of each word first."""

    bits: str
    gaps: list[int] | None
    at: int = 0
    runs: set[int] = field(default_factory=set)  # of 1024 bits, in which codewords start

    def take(self, count: int) -> int:
        require(self.at + count <= len(self.bits), "the stream is too short")
        self.at += count
        return int(self.bits[self.at - count : self.at] or "0", 2)

    def codeword(self, book: Codebook) -> int:
        """The next one; its start is held against the gap array."""
        run, first = divmod(self.at, 1024)
        if self.gaps is not None and run not in self.runs and self.at < len(self.bits):
            require(self.gaps[run] == first, f"gap {self.gaps[run]}, a codeword starts at {first}")
        self.runs.add(run)
        window = int(self.bits[self.at : self.at + 12].ljust(12, "0"), 2)
        for length in range(1, 13):
            found = book.get((length, window >> 12 - length))
            if found is not None:
                require(self.at + length <= len(self.bits), "the stream is too short")
                self.at += length
                return found
        raise AssertionError("a codebook is complete")

    def end(self) -> None:
        """What has to hold once all is read."""
        require(len(self.bits) - self.at < 32, f"{len(self.bits) - self.at} bits behind the stream")
        require(set(self.bits[self.at :]) <= {"0"}, "padding of a stream is not zero")
        for run, gap in enumerate(self.gaps or ()):
            require(run in self.runs or gap == 255, f"gap {gap} where no codeword starts")


def parse_stream(rest: bytes, header: Header) -> HuffmanStream:
    """From the number of words on, to the end of the group."""
    require(len(rest) >= 4, "group is too small for the size of its stream")
    words = int.from_bytes(rest[:4], "little")
    gaps = -(-words // 32) if header.coder == 2 else 0
    padded = -(-gaps // 4) * 4
    require(len(rest) == 4 + padded + 4 * words, f"stream of {words} words in {len(rest)} bytes")
    require(not any(rest[4 + gaps : 4 + padded]), "padding of a gap array is not zero")
    data = np.frombuffer(rest, "<u4", words, 4 + padded)
    bits = "".join(f"{int(word):032b}" for word in data)
    return HuffmanStream(bits, list(rest[4 : 4 + gaps]) if header.coder == 2 else None)


def read_blocks(stream: HuffmanStream, book: Codebook, count: int, code_bits: int) -> list[list[int]]:
    """Residuals of the coded blocks of a tile."""
    values: list[int] = []
    while len(values) < 32 * count:
        codeword = stream.codeword(book)
        if codeword >= PAIRS:
            values += divmod(codeword - PAIRS, 16)
            continue
        symbol = stream.take(8) if codeword == ESCAPE else codeword
        if symbol >= 4 * code_bits:
            raise CorruptFrame(f"symbol {symbol}")
        raw = 0 if symbol < 16 else symbol // 4 - 2
        values.append((symbol if symbol < 16 else (4 + symbol % 4) << raw) + stream.take(raw))
    require(len(values) == 32 * count, "a pair goes over the end of its tile")
    return [values[first : first + 32] for first in range(0, len(values), 32)]
