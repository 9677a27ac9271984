# SPDX-License-Identifier: BSD-3-Clause
"""Writer of adaptive frames whose payload has a head for each part (14.1 of docs/format.md), with random choices.

Neighbours: adaptive_writer.py writes the parts; hostile_adaptive_parts.py breaks what this writes.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, replace
from typing import Any

from .adaptive_grid import LINE, PARTS, Grid, make_grid
from .adaptive_writer import Parts, random_spec, write_parts
from .encoder import Spec, write_header


@dataclass(frozen=True)
class Head:
    """The axes of a part and its units. `words`: its size, where it is to be wrong."""

    row: int = 0
    rows: int = 0
    unit_log2: int = 0
    words: int | None = None

    def join(self, size: int) -> bytes:
        bits = self.row | self.rows << 16 | self.unit_log2 << 29
        return struct.pack("<2I", bits, size // 4 if self.words is None else self.words)


@dataclass
class PartsFrame:
    """A frame with its heads and parts."""

    spec: Spec
    heads: list[Head]
    parts: list[Parts]

    def join(self, heads: list[Head] | None = None, payloads: list[bytes] | None = None) -> bytes:
        payloads = [part.payload() for part in self.parts] if payloads is None else payloads
        pairs = zip(self.heads if heads is None else heads, payloads, strict=True)
        payload = b"".join([*(head.join(len(part)) for head, part in pairs), *payloads])
        return write_header(self.spec, len(payload)) + payload


def write_parts_frame(spec: Spec, heads: list[Head], rng: random.Random, most_bits: int = 12) -> PartsFrame:
    """A frame with these heads; all else is random."""
    grid, parts = make_grid(spec.dims, 0), []
    for number, head in enumerate(heads):
        own = replace(spec, axes=0, group_log2=head.unit_log2)
        parts.append(write_parts(own, rng, most_bits, grid.of_part(number, head.row, head.rows)))
    return PartsFrame(replace(spec, axes=PARTS, group_log2=0), heads, parts)


def random_head(rng: random.Random, grid: Grid) -> Head:
    """Any axes that the grid allows."""
    head = Head(unit_log2=rng.randrange(5))
    most = grid.values // 2
    if grid.allows(0, 1) and rng.random() < 0.5:
        return replace(head, rows=1)
    if grid.kind != LINE or most < 32 or rng.random() < 0.2:
        return head
    head = replace(head, row=rng.choice((32, most, rng.randint(32, most), rng.randint(32, min(most, 80)))))
    most_rows = most // head.row
    if most_rows < 8 or rng.random() < 0.4:
        return head
    return replace(head, rows=rng.choice((8, most_rows, rng.randint(8, most_rows))))


SHAPES = (
    *((), (1,), (5,), (64,), (65,), (100,), (700,), (1111,), (2100,), (1, 900), (3, 2), (40, 3), (90, 2), (600, 2)),
    *((7, 7, 2), (9, 8), (11, 9, 3), (3, 4, 9), (5, 9, 8, 2), (6, 6, 8, 2), (3, 4, 5, 9), (2, 3, 2, 3, 8, 2)),
    *((0,), (3, 0), (0, 3), (2, 0, 3, 4, 8)),
)


def random_frame(rng: random.Random) -> tuple[Spec, bytes, list[Any]]:
    """A frame of few values."""
    spec = random_spec(rng, SHAPES)
    grid = make_grid(spec.dims, 0)
    frame = write_parts_frame(spec, [random_head(rng, grid) for _ in range(grid.part_count)], rng)
    return frame.spec, frame.join(), []
