# SPDX-License-Identifier: BSD-3-Clause
"""Reference decoder: sections 14.2 and 14.3 of docs/format.md, the model of adaptive frames and what it may name.

Neighbours: adaptive.py uses it; streams.py has the tables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from .adaptive_grid import LINE, PLANE, VOLUME
from .header import HAS_SENTINEL, Header, require
from .streams import ESCAPE, Bits, Table, parse_table

Tap = tuple[int, int, int]  # z, y, x
Floats = NDArray[np.float32]

SUM, LEVELS = 4096, 96
UNITS = (1.0, 0.8125, 0.65625, 0.5)
ROOTS = tuple(float.fromhex(text) for text in ("0x1p+0", "0x1.306fep+0", "0x1.6a09e6p+0", "0x1.ae89fap+0"))


# ---- 14.3 Candidates, and the other neighbours of 14.4 --------------------------------------------------------------


def candidates(kind: int, refining: bool) -> list[Tap]:
    """Sorted; of two at the same place in the order of the table the first is first."""
    found: list[Tap] = []
    if not refining and kind == LINE:
        found = [(0, 0, -x) for x in range(1, 25)]
    elif not refining and kind == PLANE:
        found = [(0, 0, -x) for x in range(1, 5)]
        for y, first in ((-1, -4), (-2, -3), (-3, -2)):
            found += [(0, y, x) for x in range(first, 2)]
    elif not refining:
        for z, y, x in product((0, -1, -2), range(-2, 3), range(-2, 3)):
            before = z < 0 or (y < 0 and x <= 1) or (y == 0 and x < 0)
            if z * z + y * y + x * x <= 6 and before:
                found.append((z, y, x))
    else:
        found = [(z, y, x) for z, y, x in product((-1, 0, 1), (-1, 0, 1), (-1, 0, 1)) if (z, y, x) != (0, 0, 0)]
        found += [t for f in (-3, 3) for t in ((0, 0, f), (0, f, 0), (f, 0, 0))]
        found += [(0, 0, -2), (0, -2, 0)]
        found = [(z, y, x) for z, y, x in found if (kind != LINE or y == 0) and (kind == VOLUME or z == 0)]
        if kind == LINE:
            found += [(0, 0, x) for x in (-4, 5, -5, -6)]
    found.sort(key=lambda t: 1000 * t[0] + t[2] + 2 * t[1])
    return sorted(found, key=lambda t: refining and parity(t) == 0)


def may_use(own: int, tap: Tap) -> bool:
    """Whether a parity may use a neighbour, in a refining pass."""
    other = own ^ parity(tap)
    if other == own:
        return tap[0] == 0 and tap[2] + tap[1] < 0
    return (other.bit_count(), other) < (own.bit_count(), own)


@cache
def refining_features(kind: int, own: int) -> list[Tap]:
    """Neighbours of features 0 to 15 of a parity, in a refining pass."""
    z, y, x = (3 if kind == VOLUME else 0), (4 if kind != LINE else 0), (4 if kind != LINE else 12)
    box = product(range(-z, z + 1), range(-y, y + 1), range(-x, x + 1))
    near = 2 if kind != LINE else 12
    found = [tap for tap in box if may_use(own, tap) and (parity(tap) or max(map(abs, tap)) <= near)]
    return sorted(found, key=lambda t: (parity(t) != 0, sum(c * c for c in t), t))[:16]


def features(kind: int) -> list[Tap]:
    """Neighbours of features 0 to 15, in pass 0."""
    if kind == LINE:
        return [(0, 0, -x) for x in range(1, 17)]
    if kind == PLANE:
        found = [(0, 0, -1), (0, 0, -2), (0, 0, -3), *((0, -1, x) for x in range(-2, 2))]
        found += [(0, -2, x) for x in range(-1, 2)]
        found += [(0, -3, 0), (0, -1, -3), (0, 0, -4), (0, -2, -2), (0, -3, -1), (0, -3, 1)]
        return found[:16]
    found = [(0, 0, -1), (0, 0, -2), *((0, -1, x) for x in range(-1, 2)), (0, -2, 0)]
    return [*found, *((-1, y, x) for y in range(-1, 2) for x in range(-1, 2)), (-2, 0, 0)]


RANGES: dict[int, list[Tap]] = {
    LINE: [(0, 0, -1), (0, 0, -2), (0, 0, -3)],
    PLANE: [(0, 0, -1), (0, -1, 0), (0, -1, 1), (0, -1, -1), (0, 0, -2)],
    VOLUME: [(0, 0, -1), (0, -1, 0), (-1, 0, 0), (0, -1, -1), (-1, 0, -1), (-1, -1, 0), (0, -1, 1)],
}
NEAR: tuple[Tap, ...] = ((0, 0, -1), (0, -1, 0), (-1, 0, 0))  # along x, y, z


def parity(tap: Tap) -> int:
    return tap[2] & 1 | (tap[1] & 1) << 1 | (tap[0] & 1) << 2


# ---- 14.2 Model -----------------------------------------------------------------------------------------------------


@dataclass
class Pass:
    """What the model says of a pass."""

    refining: bool
    log2: int  # of the lattice
    unit: float = 1.0
    thresholds: list[np.float32] = field(default_factory=list)
    taps: list[Tap] = field(default_factory=list)
    weights: Floats = field(default_factory=lambda: np.zeros((16, 0), np.float32))  # [set, tap]
    factors: Floats = field(default_factory=lambda: np.zeros(16, np.float32))
    scales: Floats = field(default_factory=lambda: np.zeros((8, 19), np.float32))  # [parity, feature]

    def sets(self, kind: int) -> list[int]:
        classes = len(self.thresholds) + 1
        if self.refining:
            return [8 * c + p for c in range(classes) for p in range(1, 1 << kind)]
        return [*range(classes), *range(9, 8 + (1 << kind))]

    def may_use(self, chosen: int, tap: Tap) -> bool:
        z, y, x = tap
        if not self.refining:
            b = max(chosen - 8, 0)
            return not ((b & 4 and z < 0) or (b & 2 and z == 0 and y < 0) or (b & 1 and z == y == 0 and x < 0))
        return may_use(chosen & 7, tap)

    def rest_tap(self, chosen: int, kind: int) -> Tap | None:
        if not self.refining and chosen < 8:
            return NEAR[0]
        for axis in range(kind):
            if (chosen >> axis & 1) == self.refining:
                return NEAR[axis]
        return None


@dataclass
class Model:
    """Section 14.2."""

    masks: bool
    passes: list[Pass]
    tables: list[Table]
    table_of_level: list[int]
    mask_frequencies: list[int]
    words: int


def power(k: int, zero: int) -> float:
    """`2^((k - zero) / 4)`, and 0 of k = 0."""
    return 0.0 if k == 0 else math.ldexp(ROOTS[(k - zero) % 4], (k - zero) // 4)


def parse_pass(bits: Bits, kind: int, number: int, levels: int) -> Pass:
    p = Pass(number > 0, levels - number)
    p.unit = UNITS[bits.take(2)]
    classes = bits.take(3) + 1
    require(classes <= 2 or not p.refining, f"{classes} classes in a refining pass")
    upper = np.array([bits.take(16) for _ in range(classes - 1)], np.uint32)
    p.thresholds = list((upper << 16).view(np.float32))
    require(all(t >= 0 for t in p.thresholds), "a threshold is below 0 or a NaN")
    p.taps = [tap for tap in candidates(kind, p.refining) if bits.take(1)]
    p.weights = np.zeros((16, len(p.taps)), np.float32)
    for chosen in p.sets(kind):
        rest = p.rest_tap(chosen, kind)
        require(rest is None or rest in p.taps, "a rest tap is no tap")
        others = 0
        for i, tap in enumerate(p.taps):
            if tap != rest and p.may_use(chosen, tap) and bits.take(1):
                w = bits.take(4)
                weight = 0
                if w > 0:
                    weight = (1 << w - 1) + bits.take(w - 1)
                    weight = -weight if bits.take(1) else weight
                others += weight
                p.weights[chosen, i] = math.ldexp(weight, -13)
        if rest is not None:
            p.weights[chosen, p.taps.index(rest)] = math.ldexp(8192 - others, -13)
        p.factors[chosen] = power(bits.take(6), 32)
    for own in range(1, 1 << kind) if p.refining else (0,):
        p.scales[own] = [power(bits.take(6), 52) for _ in range(19)]
    return p


def parse_model(frame: bytes, header: Header, kind: int, start: int) -> Model:
    require(start + 4 <= len(frame), "no room for a model")
    words = int.from_bytes(frame[start : start + 4], "little")
    require(2 <= words <= 8192 and start + 4 * words <= len(frame), f"model of {words} words")
    bits = Bits(frame[start + 4 : start + 4 * words])
    levels, masks = bits.take(2), bool(bits.take(1))
    require(not masks or bool(header.flags & HAS_SENTINEL), "masks, but no sentinel")
    passes = [parse_pass(bits, kind, number, levels) for number in range(levels + 1)]
    count = bits.take(4) + 1
    require(count <= 12, f"{count} tables")
    firsts = [0, *(bits.take(7) for _ in range(count - 1)), LEVELS]
    require(all(a < b for a, b in pairwise(firsts)), f"tables begin at {firsts}")
    tables = [parse_table(bits, SUM) for _ in range(count)]
    require(all(table.frequencies[ESCAPE] > 0 for table in tables), "a table without an escape")
    table_of_level = [t for t, (a, b) in enumerate(pairwise(firsts)) for _ in range(a, b)]
    frequencies = [bits.take(10) if masks and bits.take(1) else 512 for _ in range(64)]
    require(0 not in frequencies, "a frequency of special values is 0")
    bits.end()
    return Model(masks, passes, tables, table_of_level, frequencies, words)
