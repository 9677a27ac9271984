# SPDX-License-Identifier: BSD-3-Clause
"""Writer of adaptive frames: any choice that section 14 of docs/format.md allows, drawn at random.

A value is made from the values before it, so the writer walks over a tile as adaptive.py does: `Recorder` stands for
the stream, draws what it is asked for and keeps the steps. `write_parts` gives the parts of a frame, for tests that
break them.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .adaptive import decode_tile, states_of
from .adaptive_grid import Grid, make_grid
from .adaptive_model import Model, Pass, candidates, parse_model
from .adaptive_unit import EXACT, ORIGIN, Origin
from .encoder import Spec, write_header
from .header import CorruptFrame, Header, parse_header
from .huffman_writer import symbol_of
from .stream_writer import has_four_bits, main_of, write_table
from .streams import Table

ESCAPE, SUM, INNER, LOWEST = 255, 12, 3, 1 << 15  # SUM: binary logarithm
#: lane, log2 of the slots (0: bits alone), frequency and first slot of what is taken, bits with it, their value
Step = tuple[int, int, int, int, int, int]


# ---- 14.2 Model -----------------------------------------------------------------------------------------------------


@dataclass
class ModelBits:
    """The bits behind word 0, and where some of them are."""

    bits: list[int] = field(default_factory=list)
    marks: dict[str, int] = field(default_factory=dict)

    def put(self, value: int, count: int, mark: str = "") -> None:
        if mark:
            self.marks.setdefault(mark, len(self.bits))
        self.bits += [value >> i & 1 for i in range(count)]

    def data(self, more_words: int = 0, padding: int = 0) -> bytes:
        """The bits alone."""
        bits = self.bits + [padding] * (-len(self.bits) % 32) + [0] * (32 * max(more_words, 0))
        data = np.packbits(np.array(bits, np.uint8), bitorder="little").tobytes()
        return data[: 4 * more_words] if more_words < 0 else data

    def join(self, more_words: int = 0, padding: int = 0) -> bytes:
        data = self.data(more_words, padding)
        return struct.pack("<I", 1 + len(data) // 4) + data

    def changed(self, mark: str, value: int, count: int) -> ModelBits:
        """The same with other bits at a mark."""
        at = self.marks[mark]
        return ModelBits(self.bits[:at] + [value >> i & 1 for i in range(count)] + self.bits[at + count :], self.marks)


def put_weight(out: ModelBits, rng: random.Random, most_bits: int) -> None:
    if rng.random() < 0.4:
        out.put(0, 1)
        return
    out.put(1, 1)
    width = rng.randint(0, most_bits)
    out.put(width, 4)
    if width > 0:
        out.put(rng.getrandbits(width - 1) if width > 1 else 0, width - 1)
        out.put(rng.randrange(2), 1)


def put_pass(out: ModelBits, rng: random.Random, kind: int, number: int, levels: int, most_bits: int) -> None:
    refining = number > 0
    out.put(rng.randrange(4), 2)
    classes = rng.randint(1, 2 if refining else 8)
    out.put(classes - 1, 3, f"classes {number}")
    for _ in range(classes - 1):
        upper = rng.choice((0, 0x8000, 0x7F80, rng.randint(0x3000, 0x4900), rng.randint(0, 0x7F80)))
        out.put(upper, 16, f"threshold {number}")
    p = Pass(refining, levels - number, thresholds=[np.float32(0)] * (classes - 1))
    near = {p.rest_tap(chosen, kind) for chosen in p.sets(kind)}
    share = rng.choice((0.0, 0.2, 1.0))
    for tap in candidates(kind, refining):
        used = tap in near or rng.random() < share
        out.put(int(used), 1, f"rest tap {number}" if tap in near else "")
        p.taps += [tap] if used else []
    for chosen in p.sets(kind):
        rest = p.rest_tap(chosen, kind)
        for tap in p.taps:
            if tap != rest and p.may_use(chosen, tap):
                put_weight(out, rng, most_bits)
        out.put(rng.choice((0, 32, rng.randrange(20, 44))), 6)
    for _ in range(1, 1 << kind) if refining else range(1):
        for _ in range(19):
            out.put(rng.choice((0, rng.randrange(64), rng.randrange(20, 56))), 6)


def random_table(rng: random.Random) -> list[int]:
    found = [0] * 256
    found[ESCAPE] = rng.randint(1, 15)
    for s in {rng.randrange(rng.choice((3, 20, 80))) for _ in range(rng.randint(0, 12))}:
        width = rng.choice((1, 2, 3, 5, 7, 8))
        n = min(width - 1, 3)
        found[s] = ((1 << n) + rng.randrange(1 << n)) << (width - 1 - n)
    main = rng.randrange(rng.choice((1, 5, 30)))
    found[main] = 0
    found[main] = (1 << SUM) - sum(found)
    return found


def random_model(rng: random.Random, kind: int, masks: bool, most_bits: int) -> ModelBits:
    out = ModelBits()
    levels = rng.choice((0, 0, 1, 2, 3))
    out.put(levels, 2)
    out.put(int(masks), 1, "masks")
    for number in range(levels + 1):
        put_pass(out, rng, kind, number, levels, most_bits)
    count = rng.choice((1, 2, 5, 12))
    out.put(count - 1, 4, "tables")
    for level in sorted(rng.sample(range(1, 96), count - 1)):
        out.put(level, 7, "level")
    for _ in range(count):
        table = random_table(rng)
        main = next((s for s in range(ESCAPE) if table[s] and not has_four_bits(table[s])), main_of(table))
        out.marks.setdefault("table", len(out.bits))
        out.bits += write_table(table, main)
    if masks:
        for _ in range(64):
            given = rng.randrange(2)
            out.put(given, 1, "mask frequency" if given else "")
            if given:
                out.put(rng.choice((1, 512, 1023, rng.randint(1, 1023))), 10)
    return out


# ---- 14.5 Unit ------------------------------------------------------------------------------------------------------


class Recorder:
    """Draws the flags, residuals and stored values that a decoder asks a unit for."""

    def __init__(self, rng: random.Random, header: Header) -> None:
        self.rng, self.header = rng, header
        self.steps: list[Step] = []
        self.stored = b""
        self.wild, self.special = rng.choice((0.0, 0.01, 0.2)), rng.random()

    def flag(self, lane: int, frequency: int) -> bool:
        found = self.rng.random() < self.special
        self.steps.append((lane, 10, frequency, 0, 0, 0) if found else (lane, 10, 1024 - frequency, frequency, 0, 0))
        return found

    def residuals(self, lanes: list[int], tables: list[Table]) -> tuple[dict[int, int], dict[int, Any]]:
        rng = self.rng
        found: dict[int, int] = {}
        stored: dict[int, Any] = {}
        escapes: list[Step] = []
        later: list[Step] = []
        for lane, table in zip(lanes, tables, strict=True):
            symbol, raw, escape = 0, 0, True
            if rng.random() < self.wild / 2:
                symbol = rng.choice((EXACT, ORIGIN))
                value = self.store(symbol)
                stored[lane] = value if symbol == EXACT else Origin(value)
            else:
                bits = rng.choice((0, 1, 2, 3, 5, 9, 20)) if rng.random() < self.wild else rng.randrange(4)
                found[lane] = rng.getrandbits(bits) if bits else 0
                symbol, raw = symbol_of(found[lane])
                escape = table.frequencies[symbol] == 0 or rng.random() < 0.01
            inner = min(raw, INNER)
            low = found.get(lane, 0) & (1 << inner) - 1
            entry = ESCAPE if escape else symbol
            taken = (0, 0) if escape else (inner, low)
            self.steps.append((lane, SUM, table.frequencies[entry], table.starts[entry], *taken))
            if escape:
                escapes += [(lane, 0, 0, 0, 8, symbol), (lane, 0, 0, 0, inner, low)]
            if raw > INNER:
                later.append((lane, 0, 0, 0, raw - INNER, found[lane] >> INNER & (1 << raw - INNER) - 1))
        self.steps += escapes + later
        return found, stored

    def store(self, symbol: int) -> Any:
        rng = self.rng
        number = rng.choice((0.0, -0.0, rng.uniform(-100, 100), rng.uniform(-1e6, 1e6), 1e-40, 131071.25, -131071.75))
        dtype = self.header.dtype if symbol == EXACT else np.dtype("<f4")
        value = np.array([number], dtype)
        if symbol == EXACT and rng.random() < 0.3:
            pattern = rng.choice((0x7F800000, 0xFF800000, 0x7FC00001, 0x7F7FFFFF, rng.getrandbits(32)))
            value.view("<u4")[-1] = pattern
        self.stored += value.tobytes()
        return value[0]

    def finish(self, rows: int, masks: int, mask_bits: int = 0) -> UnitParts:
        full: set[int] = set()  # lanes that begin with LOWEST
        while True:
            states, words, low = self.write(full)
            if not low:
                return UnitParts(masks, states[:rows], words[::-1], self.stored, mask_bits)
            full |= low

    def write(self, full: set[int]) -> tuple[list[int], list[int], set[int]]:
        """States, words in their order of writing, and the lanes that must begin with LOWEST but did not."""
        states, words = [LOWEST if lane in full else 1 for lane in range(32)], list[int]()
        for lane, log2, f, start, bits, value in reversed(self.steps):
            x = states[lane]
            if (x >> 31 - bits > 0) if log2 == 0 else (x >> 31 - log2 - bits >= f):
                low = {other for other in range(32) if states[other] < LOWEST}
                if not words and low:
                    return [], [], low
                words.append(x & 0xFFFF)
                x >>= 16
            x = x << bits | value
            states[lane] = x if log2 == 0 else (x // f << log2) + x % f + start
        return states, words, set()


@dataclass
class UnitParts:
    """The parts of a unit."""

    masks: int
    states: list[int]
    words: list[int]
    stored: bytes
    mask_bits: int = 0  # of masks: the number of tiles, or 0 where the model has none
    count: int | None = None  # of words, where it is to be wrong
    padding: tuple[int, int, int] = (0, 0, 0)  # words, bytes and bits of padding

    def bits(self) -> list[int]:
        """Masks and states."""
        numbers = [(self.masks, self.mask_bits)]
        for state in self.states:
            place = state.bit_length() - 1
            numbers += [(place - 15, 4) if self.words else (place, 5), (state & (1 << place) - 1, place)]
        return [value >> i & 1 for value, width in numbers for i in range(width)]

    def join(self) -> bytes:
        count = len(self.words) if self.count is None else self.count
        words = self.words + [self.padding[0]] * (len(self.words) % 2)
        stored = self.stored + bytes((self.padding[1],)) * (-len(self.stored) % 4)
        bits = self.bits()
        bits += [self.padding[2]] * (-len(bits) % 32)
        states = sum(bit << i for i, bit in enumerate(bits)).to_bytes(len(bits) // 8, "little")
        return struct.pack("<I", count) + states + struct.pack(f"<{len(words)}H", *words) + stored


# ---- 14.1 Payload ---------------------------------------------------------------------------------------------------


@dataclass
class Parts:
    """The parts of a frame."""

    spec: Spec
    offset: float
    model: ModelBits
    units: list[UnitParts]

    def join(self, model: bytes | None = None, units: list[bytes] | None = None) -> bytes:
        payload = self.payload(model, units)
        return write_header(self.spec, len(payload)) + payload

    def payload(self, model: bytes | None = None, units: list[bytes] | None = None) -> bytes:
        units = [unit.join() for unit in self.units] if units is None else units
        offsets = np.cumsum([0, *(len(unit) // 4 for unit in units)]).tolist()
        payload = struct.pack("<d", self.offset) + (self.model.join() if model is None else model)
        return payload + struct.pack(f"<{len(offsets)}I", *offsets) + b"".join(units)


def write_parts(spec: Spec, rng: random.Random, most_bits: int = 12, grid: Grid | None = None) -> Parts:
    """A frame of random choices; with weights that make a value too large smaller ones are taken.

    With a grid it is the part of a frame that this grid is of.
    """
    grid = grid or make_grid(spec.dims, spec.axes)
    header = parse_header(write_header(spec, 1 << 20))
    masks = spec.sentinel is not None and rng.random() < 0.8
    offset = rng.choice((0.0, -0.0, rng.uniform(-1e3, 1e3)))
    while True:
        bits = random_model(rng, grid.kind, masks, most_bits)
        model = parse_model(bits.join(), header, grid.kind, 0)
        try:
            return Parts(spec, offset, bits, random_units(spec, rng, grid, model, offset))
        except CorruptFrame:
            most_bits -= 3


def random_units(spec: Spec, rng: random.Random, grid: Grid, model: Model, offset: float) -> list[UnitParts]:
    header, units = parse_header(write_header(spec, 1 << 20)), []
    recorder, masks = Recorder(rng, header), 0

    def within_masks(last: int) -> int:
        """The number of mask bits of the unit with this last tile."""
        return last % (1 << spec.group_log2) + 1 if model.masks else 0

    with np.errstate(all="ignore"):
        for number, places in enumerate(grid.places() if grid.tiles else ()):
            within = number % (1 << spec.group_log2)
            if number > 0 and within == 0:
                units.append(recorder.finish(states_of(grid, model), masks, within_masks(number - 1)))
                recorder, masks = Recorder(rng, header), 0
            masks |= int(model.masks and rng.random() < 0.7) << within
            decode_tile(places, recorder, bool(masks >> within & 1), model, grid, offset)
    if grid.tiles:
        units.append(recorder.finish(states_of(grid, model), masks, within_masks(grid.tiles - 1)))
    return units


SHAPES = (
    *((), (1,), (5,), (63,), (64,), (65,), (700,), (2100,), (200, 3), (3, 2), (7, 7, 2), (9, 8), (35, 12), (33, 9, 2)),
    *((1, 13, 1, 20), (2, 3, 70), (3, 4, 9), (34, 3, 8), (5, 9, 11), (6, 6, 8, 2), (3, 4, 5, 9), (2, 3, 2, 3, 8)),
    *((2, 33, 2, 8), (0,), (3, 0, 9), (2, 0, 3, 4, 8)),
)


def random_spec(rng: random.Random, shapes: Sequence[tuple[int, ...]]) -> Spec:
    """A header with one of these shapes."""
    return Spec(
        codec="adaptive",
        dtype=rng.choice(("f4", "f8")),
        dims=rng.choice(shapes),
        bound=0.25,
        step=rng.choice((0.5, 0.4375, 2.0**-20)),
        sentinel=rng.choice((None, 0x7FC00000, 0x501502F9)),
        big_endian=rng.random() < 0.2,
    )


def random_frame(rng: random.Random) -> tuple[Spec, bytes, list[Any]]:
    """A frame of few values."""
    spec = random_spec(rng, SHAPES)
    spec = replace(spec, group_log2=rng.randrange(5))
    if len(make_grid(spec.dims, 0).dims) >= 4:
        spec = replace(spec, axes=rng.randrange(2))
    return spec, write_parts(spec, rng).join(), []
