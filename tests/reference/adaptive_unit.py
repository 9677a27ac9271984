# SPDX-License-Identifier: BSD-3-Clause
"""Reference decoder: section 14.5 of docs/format.md, the units of adaptive frames: streams and stored values.

Neighbours: adaptive.py takes a tile's symbols from here; streams.py has the steps that 14.5 takes from section 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .adaptive_model import SUM, Model
from .header import Header, require
from .streams import ESCAPE, LOWEST, Bits, Stream, Table, raw_bits, smallest

INNER, MOST_SYMBOL = 3, 79
EXACT, ORIGIN = 254, 253


class Symbols(Protocol):
    """What a tile takes from its unit."""

    header: Header

    def flag(self, lane: int, frequency: int) -> bool: ...

    def residuals(self, lanes: list[int], tables: list[Table]) -> tuple[dict[int, int], dict[int, Any]]: ...


class Unit(Stream):
    """A unit's stream and its stored values."""

    def __init__(self, data: bytes, rows: int, tiles: int, model: Model, header: Header) -> None:
        require(len(data) >= 4, "unit is too small for its head")
        count = int(np.frombuffer(data, "<u4", 1)[0])
        bits = Bits(data[4:])
        self.masks = bits.take(tiles) if model.masks else 0
        states = []
        for _ in range(rows):
            place = 15 + bits.take(4) if count else bits.take(5)
            require(place < 31, "a state is out of range")
            states.append(1 << place | bits.take(place))
        require(bits.take(-bits.at % 32) == 0, "padding of states is not zero")
        first = 4 + bits.at // 8
        last = first + 2 * count + 2 * (count % 2)
        require(last <= len(data), "unit is too small for its words")
        require(not any(data[first + 2 * count : last]), "padding of a stream is not zero")
        super().__init__(states, [int(x) for x in np.frombuffer(data, "<u2", count, first)])
        self.stored, self.header = data[last:], header

    def take(self, dtype: np.dtype[Any]) -> Any:
        require(len(self.stored) >= dtype.itemsize, "too few stored values")
        value = np.frombuffer(self.stored, dtype, 1)[0]
        self.stored = self.stored[dtype.itemsize :]
        return value

    def refill(self, lane: int) -> None:
        if self.at < len(self.words):
            super().refill(lane)

    def large_symbol(self, lane: int, table: Table) -> tuple[int, int]:
        """A symbol of 4096 slots and its inner bits."""
        x = self.states[lane]
        s = table.slots[x % SUM]
        x = table.frequencies[s] * (x // SUM) + x % SUM - table.starts[s]
        r = 0 if s == ESCAPE else min(raw_bits(s), INNER)
        self.states[lane] = x >> r
        self.refill(lane)
        return s, x & (1 << r) - 1

    def residuals(self, lanes: list[int], tables: list[Table]) -> tuple[dict[int, int], dict[int, Any]]:
        """Steps 2 to 4: residuals, and of other lanes what is stored, by lane."""
        symbols = {y: self.large_symbol(y, table) for y, table in zip(lanes, tables, strict=True)}
        stored: dict[int, Any] = {}
        for y in lanes:
            if symbols[y][0] == ESCAPE:
                s = self.outer(y, 8)
                if s in (EXACT, ORIGIN):
                    stored[y] = self.take(self.header.dtype if s == EXACT else np.dtype("<f4"))
                    del symbols[y]
                    if s == ORIGIN:
                        stored[y] = Origin(stored[y])
                    continue
                require(s <= MOST_SYMBOL, f"symbol {s} behind an escape")
                symbols[y] = s, self.outer(y, min(raw_bits(s), INNER))
        found = {}
        for y, (s, inner) in symbols.items():
            require(s <= MOST_SYMBOL, f"symbol {s}")
            found[y] = smallest(s) + inner
            if raw_bits(s) > INNER:
                found[y] += self.outer(y, raw_bits(s) - INNER) << INNER
        return found, stored

    def end(self) -> None:
        require(self.at == len(self.words), "words behind the stream")
        require(all(x in (1, LOWEST) for x in self.states), "a state does not end where it started")
        require(len(self.stored) < 4 and not any(self.stored), "bytes behind the stored values")


@dataclass
class Origin:
    """A stored r."""

    r: np.float32
