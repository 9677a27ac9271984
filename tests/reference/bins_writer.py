# SPDX-License-Identifier: BSD-3-Clause
"""Writer of lossless frames with bins: any choice that section 15 of docs/format.md allows, drawn at random.

Numbers are drawn, and what they stand for is computed here in Python's integers, without bins.py, whose `Model` and
`Bins` serve as containers only. `write_parts` gives the parts of a frame, for tests that break them.
"""

from __future__ import annotations

import math
import random
import struct
from dataclasses import dataclass, field

import numpy as np

from .adaptive_writer import ModelBits
from .bins import GRID, LIST, MULTIPLE, PATTERN, SHORT, UNIFORM, Bins, Model
from .encoder import Spec, write_header
from .huffman_writer import unary
from .stream_writer import Step, has_four_bits, main_of, write_stream, write_table
from .streams import make_table

ESCAPE, SUM, LOWEST, LANES = 255, 11, 1 << 15, 32  # SUM: binary logarithm
MOST = 1 << 18  # values of a unit, and of a stride


# ---- 15.1 Model -----------------------------------------------------------------------------------------------------


def put_numbers(out: ModelBits, numbers: list[int], predicted: int) -> int:
    """Numbers one after the other; the width of the last one."""
    for number in numbers:
        width = number.bit_length()
        out.bits += unary(width - predicted)
        out.put(number, max(width - 1, 0))
        predicted = width
    return predicted


def put_real(out: ModelBits, x: float) -> None:
    out.put(int.from_bytes(struct.pack("<d", x), "little"), 64)


def put_model(model: Model, spec: Spec) -> ModelBits:
    out, value_bits = ModelBits(), 8 * spec.value_bytes
    out.put(model.unit_values, 21)
    out.put(len(model.strides), 3)
    width = put_numbers(out, model.strides, 8)
    out.put(int(bool(model.distances)), 1)
    put_numbers(out, model.distances, width)
    out.put(model.kind, 2)
    out.put(int(model.remainders), 1)
    if model.kind == MULTIPLE and spec.dtype[0] == "f":
        out.put(model.shift, 6)
    elif model.kind == MULTIPLE:
        put_numbers(out, [model.multiple, model.origin], value_bits // 2)
    elif model.kind == GRID:
        out.put(int(model.product), 1)
        put_real(out, model.unit)
        out.put(int(model.base != 0), 1)
        if model.base != 0:
            put_real(out, model.base)
        out.put(int(model.changes), 1)
    elif model.kind == LIST:
        out.put(len(model.entries), 13)
        changes = [(b - a) % (1 << 64) for a, b in zip([0, *model.entries], model.entries, strict=False)]
        put_numbers(out, changes, value_bits // 2)
    for bins in model.streams:
        put_bins(out, bins, bool(model.distances))
    return out


def put_bins(out: ModelBits, bins: Bins, contexts: bool) -> None:
    out.put(int(bins.zigzag), 1)
    out.put(len(bins.each), 8)
    before, predicted, end = (0, 0, 0), 8, 0
    for lowest, width, level in bins.each:
        further = signed(lowest - end, 64)
        out.put(int(further == 0), 1)
        if further:
            predicted = put_numbers(out, [2 * further if further > 0 else -2 * further - 1], predicted)
        end = lowest + (1 << width)
        out.bits += unary(width - before[1])
        if contexts:
            out.bits += unary(level - before[2])
        before = lowest, width, level
    if contexts:
        out.put(bins.escape_level, 6)
        out.put(len(bins.tables), 4)
        for table in range(1, len(bins.tables)):
            out.put(bins.table_of_level.index(table), 6)
    for one in bins.tables:
        frequencies = one.frequencies
        main = next((s for s in range(ESCAPE) if not has_four_bits(frequencies[s])), main_of(frequencies))
        out.bits += write_table(frequencies, main)


def random_frequencies(rng: random.Random, used: set[int], bins: int, escapes: bool) -> list[int]:
    """Of most of the symbols that are used, and of some that are not."""
    found = [0] * 256
    wanted = sorted({s for s in used if s != ESCAPE and rng.random() < 0.9} | {rng.randrange(bins)})
    main = rng.choice(wanted)
    left = (1 << SUM) - 1 - 15
    for s in wanted:
        width = rng.choice((1, 1, 2, 3, 4, 6, 8, 10))
        n = min(width - 1, 3)
        f = ((1 << n) + rng.randrange(1 << n)) << (width - 1 - n)
        if s != main and f <= left:
            found[s], left = f, left - f
    escapes |= any(found[s] == 0 for s in used - {main})
    found[ESCAPE] = rng.randint(int(escapes), 15) if rng.random() < 0.8 else int(escapes)
    found[main] = (1 << SUM) - sum(found)
    return found


# ---- 15.2 Numbers ---------------------------------------------------------------------------------------------------


def signed(n: int, bits: int) -> int:
    return (n + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def ordered_float(pattern: int, bits: int) -> int:
    """The pattern in the order of values, modulo 2^B; and back."""
    return pattern ^ (1 << bits - 1) - 1 if pattern >> bits - 1 else pattern


def pattern_of(n: int, r: int, model: Model, spec: Spec) -> int:
    """The value that a number and a remainder make, all modulo 2^B."""
    bits, kind = 8 * spec.value_bytes, spec.dtype[0]
    modulus, n = 1 << bits, signed(n, bits)
    if model.kind == MULTIPLE and kind == "f":
        m = -1 - n if n < 0 else n
        return m << model.shift & modulus - 1 | (modulus >> 1 if n < 0 else 0) | r
    if model.kind == LIST:
        n = model.entries[n % modulus] - (modulus >> 1)
    elif model.kind == MULTIPLE:
        n = n * model.multiple + model.origin + r
    elif model.kind == GRID:
        point = (float(n) * model.unit if model.product else float(n) / model.unit) + model.base
        with np.errstate(all="ignore"):
            pattern = int(np.array(point).astype(f"<{spec.dtype}").view(f"<u{spec.value_bytes}"))
        n = ordered_float(pattern, bits) + r
    n %= modulus
    return {"i": n, "u": n ^ modulus >> 1, "f": ordered_float(n, bits)}[kind]


def in_bin_order(difference: int, zigzag: bool, bits: int) -> int:
    d = signed(difference, bits)
    return (2 * d if d >= 0 else -2 * d - 1) if zigzag else d + (1 << bits - 1)


def orders_of(difference: int, zigzag: bool, bits: int) -> tuple[tuple[int, ...], int]:
    """The numbers that make the difference in the order of bins, and their modulus."""
    if not zigzag or bits >= 32:
        return (in_bin_order(difference, zigzag, bits),), 1 << bits
    # zigzag numbers of 32 bits, of which the low ones of the result count
    return (2 * difference, -2 * difference - 1), 2 << bits


def offset_from(lowest: int, orders: tuple[int, ...], modulus: int) -> int:
    """The smallest offset that makes the difference, however many bits it has."""
    return min([(order - lowest) % modulus for order in orders])


def differences_of(numbers: list[int], strides: list[int], bits: int) -> list[int]:
    for stride in strides:
        before = [0] * min(stride, len(numbers)) + numbers[: max(len(numbers) - stride, 0)]
        numbers = [(a - b) % (1 << bits) for a, b in zip(numbers, before, strict=True)]
    return numbers


def random_numbers(rng: random.Random, count: int, bits: int, most: int) -> list[int]:
    """Numbers of one kind: constant, steady, of few bits, of all bits, walking; those of a list below `most`."""
    kind, step = rng.choice(("constant", "ramp", "few", "all", "walk", "mixed")), rng.randrange(4)
    at, found = rng.getrandbits(bits), []
    for _ in range(count):
        wide = kind == "all" or (kind == "mixed" and rng.random() < 0.1)
        at += {"ramp": step, "walk": rng.randint(-9, 9), "few": 0, "mixed": 0}.get(kind, 0)
        low = rng.randrange(8) if kind in ("few", "mixed") else 0
        found.append((rng.getrandbits(bits) if wide else at + low) % min(most, 1 << bits))
    return found


# ---- 15.4 Stream ----------------------------------------------------------------------------------------------------


@dataclass
class StreamParts:
    """A stream's parts: of a uniform one its symbol alone."""

    uniform: int | None = None
    states: list[int] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)  # bits
    head: tuple[int, int] | None = None  # where it is to be wrong
    padding: int = 0  # bits behind the offsets

    def heads(self) -> bytes:
        made = (len(self.words), -(-len(self.offsets) // 8)) if self.uniform is None else (UNIFORM | self.uniform, 0)
        return struct.pack("<2I", *(made if self.head is None else self.head))

    def join(self) -> bytes:
        bits = self.offsets + [self.padding] * (-len(self.offsets) % 8)
        offsets = np.packbits(np.array(bits, np.uint8), bitorder="little").tobytes()
        return struct.pack(f"<{len(self.states)}I{len(self.words)}H", *self.states, *self.words) + offsets


def random_bins(rng: random.Random, numbers: list[int], bits: int, contexts: bool) -> Bins:
    """Bins near some of the numbers of a stream; its tables are not chosen yet."""
    zigzag = rng.random() < 0.5
    inside = [in_bin_order(n, zigzag, bits) for n in rng.choices(numbers or [0], k=6)]
    each = []
    for _ in range(rng.choice((1, 2, 3, 20, 240))):
        width = rng.choice((0, 0, 1, 3, rng.randint(0, bits), bits))
        lowest = rng.choice(inside) - rng.choice((0, 0, rng.getrandbits(width)))
        lowest += rng.choice((0, 0, 0, rng.getrandbits(64) << bits))  # modulo 2^B that is nothing
        each.append((lowest % (1 << 64), width, rng.randrange(64) if contexts else 0))
    if rng.random() < 0.5:
        each.sort()
    count = rng.choice((1, 2, 5, 12)) if contexts else 1
    firsts = [0, *sorted(rng.sample(range(1, 64), count - 1)), 64]
    table_of_level = [t for t in range(count) for _ in range(firsts[t], firsts[t + 1])]
    return Bins(zigzag, each, rng.randrange(64) if contexts else 0, [], table_of_level)


class Coder:
    """Codes streams with the same bins: symbols are chosen for all units, then tables, then the words are made."""

    def __init__(self, rng: random.Random, bins: Bins, distances: list[int], bits: int) -> None:
        self.rng, self.bins, self.distances, self.bits = rng, bins, distances, bits
        self.used: list[set[int]] = [set() for _ in range(max(bins.table_of_level) + 1)]

    def choose(self, numbers: list[int]) -> list[tuple[int, int, int]]:
        """For each value its table, its bin or 255, and its offset."""
        found: list[tuple[int, int, int]] = []
        levels: list[int] = []
        same = self.rng.random() < 0.7
        for i, number in enumerate(numbers):
            near = [levels[i - distance] if i >= distance else 0 for distance in self.distances]
            table = self.bins.table_of_level[(sum(near) + 2) // 4]
            orders, modulus = orders_of(number, self.bins.zigzag, self.bits)
            fits = [
                s
                for s, (lowest, width, _) in enumerate(self.bins.each)
                if offset_from(lowest, orders, modulus) >> width == 0
            ]
            symbol = fits[0] if fits and same else self.rng.choice([*fits, *fits, ESCAPE])
            lowest, _, level = self.bins.bin(symbol, self.bits)
            levels.append(level)
            self.used[table].add(symbol)
            found.append((table, symbol, offset_from(lowest, orders, modulus)))
        return found

    def make_tables(self) -> None:
        count = len(self.bins.each)
        self.bins.tables = [make_table(random_frequencies(self.rng, used, count, ESCAPE in used)) for used in self.used]

    def write(self, chosen: list[tuple[int, int, int]], end: int = LOWEST) -> StreamParts:
        """The parts of a stream; `end`: what its states are when a decoder is done."""
        symbols = {symbol for _, symbol, _ in chosen}
        if not chosen:
            return StreamParts(uniform=0)
        (one, *others) = sorted(symbols)
        if not others and one != ESCAPE and self.bins.each[one][1] == 0 and self.rng.random() < 0.7:
            return StreamParts(uniform=one)
        steps: list[Step] = []
        out = ModelBits()
        for i, (number, symbol, offset) in enumerate(chosen):
            table = self.bins.tables[number]
            coded = symbol if table.frequencies[symbol] else ESCAPE
            if coded != ESCAPE and table.frequencies[ESCAPE] and self.rng.random() < 0.05:
                coded = ESCAPE
            if coded == ESCAPE:
                out.put(symbol, 8)
            out.put(offset, self.bins.bin(symbol, self.bits)[1])
            steps.append((i % LANES, table.frequencies[coded], table.starts[coded], 0, 0))
        states, words = write_stream(steps, end, SUM)
        return StreamParts(None, states, words, out.bits)


# ---- 15.3 Unit ------------------------------------------------------------------------------------------------------


@dataclass
class UnitParts:
    """The parts of a unit."""

    first: bytes  # differences
    streams: list[StreamParts]
    padding: int = 0

    def join(self) -> bytes:
        data = b"".join(stream.heads() for stream in self.streams) + self.first
        data += b"".join(stream.join() for stream in self.streams)
        return data + bytes((self.padding,)) * (-len(data) % 4)


@dataclass
class Parts:
    """The parts of a frame."""

    spec: Spec
    model: Model
    units: list[UnitParts]

    def join(self, model: bytes | None = None, units: list[bytes] | None = None) -> bytes:
        units = [unit.join() for unit in self.units] if units is None else units
        model = put_model(self.model, self.spec).data() if model is None else model
        offsets = np.cumsum([0, *(len(unit) // 4 for unit in units)]).tolist()
        payload = model + struct.pack(f"<{len(offsets)}I", *offsets) + b"".join(units)
        return write_header(self.spec, len(payload)) + payload


# ---- 15. Payload ----------------------------------------------------------------------------------------------------


def random_model(rng: random.Random, spec: Spec, kind: int) -> Model:
    """Without its bins."""
    bits, count = 8 * spec.value_bytes, math.prod(spec.dims)
    unit_values = rng.choice((1, 31, 32, 33, 64, 100, count, count, count, MOST))
    unit_values = min(max(unit_values, -(-count // 8), 1), MOST)
    strides = [rng.choice((1, 1, 2, 3, 8, 9, 16, 17, 40, MOST)) for _ in range(rng.randrange(5))]
    distances = [rng.choice((32, 33, 40, 64, 100, 1 << 18)) for _ in range(4)] if rng.random() < 0.6 else []
    model = Model(unit_values, strides, distances, kind)
    model.remainders = kind in (MULTIPLE, GRID) and rng.random() < 0.7
    model.shift = rng.choice((1, bits - 2, rng.randint(1, bits - 2)))
    multiple = (1, 7, 1000, rng.getrandbits(bits) | 1, 1 << bits - 1, 1 << 63, rng.getrandbits(64) | 1)
    model.multiple, model.origin = rng.choice(multiple), rng.choice((0, 5, rng.getrandbits(bits), rng.getrandbits(64)))
    model.product = rng.random() < 0.5
    model.unit = rng.choice(
        (1.0, 100.0, 0.01, 1 / 3, 5e-324, 1.7976931348623157e308, 2.0**-149, 2.0 ** rng.randint(-60, 60))
    )
    model.base = rng.choice((0.0, 0.0, -1.5, 273.16, 1e300, 5e-324, rng.uniform(-1e6, 1e6)))
    model.changes = kind == GRID and model.remainders and rng.random() < 0.5
    entries = rng.choice((1, 2, 30, 300))
    model.entries = [rng.getrandbits(rng.choice((bits, 64))) for _ in range(entries)] if kind == LIST else []
    if rng.random() < 0.5:
        model.entries.sort()
    return model


def write_parts(spec: Spec, rng: random.Random, kind: int, end: int = LOWEST) -> tuple[Parts, list[int]]:
    """A frame of random choices, and the bit patterns of its values; `end`: the last states of its streams."""
    model = random_model(rng, spec, kind)
    bits, count = 8 * spec.value_bytes, math.prod(spec.dims)
    most = len(model.entries) if kind == LIST else 1 << bits
    numbers = random_numbers(rng, count, bits, most)
    remainders = random_numbers(rng, count, bits, 1 << bits)
    units = [slice(at, min(at + model.unit_values, count)) for at in range(0, count, model.unit_values)]
    stored = sum(stride for stride in model.strides if stride <= SHORT)
    taken = [differences_of(numbers[unit], model.strides, bits) for unit in units]
    sequences = [[differences[stored:] for differences in taken]]
    if model.remainders:
        sequences.append([differences_of(remainders[unit], [1] * model.changes, bits) for unit in units])
    streams: list[list[StreamParts]] = [[] for _ in units]
    for sequence in sequences:
        every = [n for some in sequence for n in some]
        coder = Coder(rng, random_bins(rng, every, bits, bool(model.distances)), model.distances, bits)
        chosen = [coder.choose(some) for some in sequence]
        coder.make_tables()
        model.streams.append(coder.bins)
        for unit, some in zip(streams, chosen, strict=True):
            unit.append(coder.write(some, end))
    parts = [
        UnitParts(b"".join(d.to_bytes(spec.value_bytes, "little") for d in differences[:stored]), of_unit)
        for differences, of_unit in zip(taken, streams, strict=True)
    ]
    none = [0] * count
    pairs = zip(numbers, remainders if model.remainders else none, strict=True)
    return Parts(spec, model, parts), [pattern_of(n, r, model, spec) for n, r in pairs]


def kinds_of(dtype: str) -> tuple[int, ...]:
    return (PATTERN, MULTIPLE, GRID, LIST) if dtype[0] == "f" else (PATTERN, MULTIPLE, LIST)


SHAPES = (
    (),
    (0,),
    (3, 0, 2),
    (1,),
    (5,),
    (31,),
    (32,),
    (33,),
    (64,),
    (65,),
    (7, 9),
    (40, 3),
    (2, 3, 5, 6),
    (300,),
    (700,),
)
DTYPES = ("f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")


def random_frame(rng: random.Random) -> tuple[Spec, bytes, list[int]]:
    """A frame of few values, and their bit patterns."""
    spec = Spec(codec="lossless", bins=True, dtype=rng.choice(DTYPES), dims=rng.choice(SHAPES))
    parts, patterns = write_parts(spec, rng, rng.choice(kinds_of(spec.dtype)))
    return spec, parts.join(), patterns
