# SPDX-License-Identifier: BSD-3-Clause
"""Reference decoder: section 15 of docs/format.md, lossless frames with bins.

Neighbours: decoder.py calls `decode_bins`; streams.py has the tables and steps that 15 takes from section 8;
bins_writer.py writes what this reads.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .header import MOST_UNIT_VALUES, Header, require
from .parts import Array, parse_directory, unzigzag
from .streams import ESCAPE, LANES, LOWEST, Bits, Stream, Table, parse_table

Unsigned = NDArray[np.uint64]  # modulo 2^64; what is made of it is taken modulo 2^B

SUM, LEVELS = 2048, 64
PATTERN, MULTIPLE, GRID, LIST = 0, 1, 2, 3
UNIFORM = 1 << 31
SHORT = 8  # strides up to this one have first differences
WIDEST = 64  # of a number


# ---- 15.1 Model -----------------------------------------------------------------------------------------------------


@dataclass
class Numbers:
    """Reads small numbers, and numbers one after the other."""

    bits: Bits
    width: int = 0

    def small(self, predicted: int, most: int, what: str) -> int:
        value = predicted + self.bits.small()
        require(0 <= value <= most, f"{what} of {value}")
        return value

    def number(self) -> int:
        self.width = self.small(self.width, WIDEST, "width")
        return 0 if self.width == 0 else 1 << self.width - 1 | self.bits.take(self.width - 1)


@dataclass
class Bins:
    """Bins of a stream, and its tables."""

    zigzag: bool
    each: list[tuple[int, int, int]]  # lowest number, bits, level
    escape_level: int
    tables: list[Table]
    table_of_level: list[int]

    def bin(self, symbol: int, value_bits: int) -> tuple[int, int, int]:
        """Lowest number, bits, level; of 255 too."""
        if symbol == ESCAPE:
            return 0, value_bits, self.escape_level
        return self.each[symbol]


@dataclass
class Model:
    """Section 15.1."""

    unit_values: int
    strides: list[int]
    distances: list[int]  # none without contexts
    kind: int = PATTERN
    remainders: bool = False
    shift: int = 0
    multiple: int = 1
    origin: int = 0
    product: bool = False
    unit: float = 1.0
    base: float = 0.0
    changes: bool = False  # of remainders
    entries: list[int] = field(default_factory=list)
    streams: list[Bins] = field(default_factory=list)  # of differences, of remainders
    size: int = 0  # in bytes

    @property
    def first_differences(self) -> int:
        """Of a unit that has as many values."""
        return sum(stride for stride in self.strides if stride <= SHORT)


def parse_model(data: bytes, header: Header) -> Model:
    """The bits at the start of `data`, which may go on."""
    bits = Bits(data[: len(data) // 4 * 4])
    unit_values, count = bits.take(21), bits.take(3)
    require(1 <= unit_values <= MOST_UNIT_VALUES, f"units of {unit_values} values")
    require(count <= 4, f"{count} strides")
    numbers = Numbers(bits, 8)
    strides = [numbers.number() for _ in range(count)]
    require(all(1 <= stride <= MOST_UNIT_VALUES for stride in strides), f"strides {strides}")
    distances = [numbers.number() for _ in range(4)] if bits.take(1) else []
    require(all(32 <= distance <= 1 << 18 for distance in distances), f"distances {distances}")
    model = Model(unit_values, strides, distances, bits.take(2), bool(bits.take(1)))
    parse_kind(bits, model, header)
    model.streams = [parse_bins(bits, bool(distances), 8 * header.dtype.itemsize) for _ in range(1 + model.remainders)]
    padding = -bits.at % 32
    require(bits.take(padding) == 0, "padding of the model is not zero")
    model.size = bits.at // 8
    return model


def parse_real(bits: Bits) -> float:
    (x,) = struct.unpack("<d", bits.take(64).to_bytes(8, "little"))
    require(math.isfinite(x), f"unit or base {x}")
    return float(x)


def parse_kind(bits: Bits, model: Model, header: Header) -> None:
    """What numbers are."""
    is_float, value_bits = header.dtype.kind == "f", 8 * header.dtype.itemsize
    numbers = Numbers(bits, value_bits // 2)
    if model.kind == PATTERN:
        require(not model.remainders, "remainders of patterns")
    elif model.kind == MULTIPLE and is_float:
        model.shift = bits.take(6)
        require(1 <= model.shift <= value_bits - 2, f"shift {model.shift}")
    elif model.kind == MULTIPLE:
        model.multiple, model.origin = numbers.number(), numbers.number()
        require(model.multiple > 0, "multiple 0")
    elif model.kind == GRID:
        require(is_float, "a grid of integers")
        model.product = bool(bits.take(1))
        model.unit = parse_real(bits)
        require(model.unit > 0, f"unit {model.unit}")
        if bits.take(1):
            model.base = parse_real(bits)
        model.changes = bool(bits.take(1))
        require(model.remainders or not model.changes, "changes without remainders")
    else:
        require(not model.remainders, "remainders of entries")
        count, entry = bits.take(13), 0
        require(1 <= count <= 4096, f"{count} entries")
        for _ in range(count):
            entry = (entry + numbers.number()) % (1 << 64)
            model.entries.append(entry)


def unzigzag_number(number: int) -> int:
    return -(number + 1) // 2 if number % 2 else number // 2


def parse_bins(bits: Bits, contexts: bool, value_bits: int) -> Bins:
    zigzag, count = bool(bits.take(1)), bits.take(8)
    require(1 <= count <= 240, f"{count} bins")
    numbers = Numbers(bits, 8)
    before = lowest, width, level = 0, 0, 0
    end = 0  # of the bin before
    found: list[tuple[int, int, int]] = []
    for _ in range(count):
        lowest = (end if bits.take(1) else end + unzigzag_number(numbers.number())) % (1 << 64)
        width = numbers.small(before[1], value_bits, "bits of a bin")
        level = numbers.small(before[2], LEVELS - 1, "level") if contexts else 0
        before = lowest, width, level
        end = lowest + (1 << width)
        found.append(before)
    escape_level, tables, firsts = 0, 1, [0, LEVELS]
    if contexts:
        escape_level, tables = bits.take(6), bits.take(4)
        require(1 <= tables <= 12, f"{tables} tables")
        firsts = [0, *(bits.take(6) for _ in range(tables - 1)), LEVELS]
        require(all(a < b for a, b in pairwise(firsts)), f"tables begin at {firsts}")
    made = [parse_table(bits, SUM) for _ in range(tables)]
    require(not any(any(table.frequencies[count:ESCAPE]) for table in made), "a symbol without a bin")
    table_of_level = [t for t, (a, b) in enumerate(pairwise(firsts)) for _ in range(a, b)]
    return Bins(zigzag, found, escape_level, made, table_of_level)


# ---- 15.2 Numbers ---------------------------------------------------------------------------------------------------


def from_ordered(ordered: Array, header: Header) -> Array:
    """Bit patterns in the order of values, as unsigned integers of the dtype's size -> bit patterns."""
    top = 8 * header.dtype.itemsize - 1
    sign = ordered.dtype.type(1 << top)
    pattern: Array = ordered
    if header.dtype.kind == "u":
        pattern = ordered ^ sign
    elif header.dtype.kind == "f":
        pattern = np.where(ordered & sign, ordered ^ ordered.dtype.type((1 << top) - 1), ordered)
    return pattern


def values_of_numbers(numbers: Array, remainders: Array, model: Model, header: Header) -> Array:
    """Numbers and remainders, unsigned integers of the dtype's size -> bit patterns."""
    kind, bits = numbers.dtype.type, 8 * header.dtype.itemsize
    modulus, signed = 1 << bits, numbers.view(f"<i{header.dtype.itemsize}")
    if model.kind == PATTERN:
        return from_ordered(numbers, header)
    if model.kind == LIST:
        require(bool((numbers < len(model.entries)).all()), "a place beyond the entries")
        entries = np.array([(entry - modulus // 2) % modulus for entry in model.entries], numbers.dtype)
        return from_ordered(entries[numbers.astype(np.int64)], header)
    if model.kind == MULTIPLE and header.dtype.kind == "f":
        below = signed < 0
        magnitudes = np.where(below, ~numbers, numbers) << kind(model.shift)
        pattern: Array = magnitudes | np.where(below, kind(modulus // 2), kind(0)) | remainders
        return pattern
    if model.kind == MULTIPLE:
        made: Array = numbers * kind(model.multiple % modulus) + kind(model.origin % modulus) + remainders
        return from_ordered(made, header)
    points = signed.astype(np.float64)
    points = (points * model.unit if model.product else points / model.unit) + model.base
    patterns = points.astype(header.dtype).view(numbers.dtype)  # ordering is its own inverse
    return from_ordered(from_ordered(patterns, header) + remainders, header)


# ---- 15.3 Unit ------------------------------------------------------------------------------------------------------


def from_bin_order(numbers: Unsigned, zigzag: bool, header: Header) -> Array:
    """Lowest numbers plus offsets -> differences."""
    if zigzag:
        numbers = unzigzag(numbers.astype(f"<u{header.code_bits // 8}"))  # modulo 2^W
    found: Array = numbers.astype(f"<u{header.dtype.itemsize}")  # modulo 2^B
    return found if zigzag else found ^ found.dtype.type(1 << 8 * header.dtype.itemsize - 1)


def parse_unit(data: bytes, count: int, model: Model, header: Header) -> Array:
    """The bit patterns of a unit's values."""
    size, heads = header.dtype.itemsize, 8 * len(model.streams)
    stored = min(model.first_differences, count)
    require(heads + stored * size <= len(data), "unit is too small for its heads and first differences")
    head = struct.unpack_from(f"<{2 * len(model.streams)}I", data)
    first = np.frombuffer(data, f"<u{size}", stored, heads)
    at = heads + stored * size
    found = []
    for number, bins in enumerate(model.streams):
        words, offset_bytes = head[2 * number : 2 * number + 2]
        values = count - stored if number == 0 else count
        if words & UNIFORM:
            found.append(uniform_stream(words ^ UNIFORM, offset_bytes, values, bins, header))
            continue
        require(values > 0, "a stream of no values that is not uniform")
        end = at + 4 * LANES + 2 * words + offset_bytes
        require(end <= len(data), "unit is too small for a stream")
        found.append(decode_stream(data[at:end], words, values, bins, model.distances, header))
        at = end
    require(len(data) - at < 4 and not any(data[at:]), "padding of a unit")
    differences = np.concatenate([first, found[0]])
    remainders = found[1] if model.remainders else np.zeros_like(differences)
    if model.changes:
        remainders = np.cumsum(remainders, dtype=remainders.dtype)
    with np.errstate(all="ignore"):
        return values_of_numbers(sums(differences, model.strides), remainders, model, header)


def uniform_stream(symbol: int, rest: int, values: int, bins: Bins, header: Header) -> Array:
    require(rest == 0, "offsets of a uniform stream")
    if values == 0:
        require(symbol == 0, f"symbol {symbol} of a stream of no values")
        return np.zeros(0, f"<u{header.dtype.itemsize}")
    require(symbol < len(bins.each) and bins.each[symbol][1] == 0, f"symbol {symbol} of a uniform stream")
    return from_bin_order(np.full(values, bins.each[symbol][0], np.uint64), bins.zigzag, header)


def sums(differences: Array, strides: list[int]) -> Array:
    """Differences -> numbers."""
    found = differences
    for stride in reversed(strides):
        rows = np.concatenate([found, np.zeros(-found.size % stride, found.dtype)]).reshape(-1, stride)
        found = np.cumsum(rows, axis=0, dtype=found.dtype).reshape(-1)[: found.size]
    return found


# ---- 15.4 Stream ----------------------------------------------------------------------------------------------------


class Symbols(Stream):
    """Steps of 2048 slots without inner bits."""

    def plain_symbol(self, lane: int, table: Table) -> int:
        x = self.states[lane]
        s = table.slots[x % SUM]
        self.states[lane] = table.frequencies[s] * (x // SUM) + x % SUM - table.starts[s]
        self.refill(lane)
        return s


def tables_of_step(first: int, levels: list[int], bins: Bins, distances: list[int]) -> Callable[[int], Table]:
    """By lane, the table of a step whose first value is number `first`."""

    def table(lane: int) -> Table:
        at = first + lane
        total = sum(levels[at - distance] for distance in distances if distance <= at)
        return bins.tables[bins.table_of_level[(total + 2) // 4]]

    return table if distances else lambda lane: bins.tables[0]


def decode_stream(data: bytes, word_count: int, values: int, bins: Bins, distances: list[int], header: Header) -> Array:
    """The differences or remainders of a stream that is not uniform."""
    value_bits, offsets_at = 8 * header.dtype.itemsize, 4 * LANES + 2 * word_count
    states = [int(x) for x in np.frombuffer(data, "<u4", LANES)]
    require(all(LOWEST <= x < 1 << 31 for x in states), "a state is out of range")
    stream = Symbols(states, [int(x) for x in np.frombuffer(data, "<u2", word_count, 4 * LANES)])
    offsets = Bits(data[offsets_at:])
    numbers, levels = [0] * values, [0] * values
    for first in range(0, values, LANES):
        table = tables_of_step(first, levels, bins, distances)
        symbols = [stream.plain_symbol(lane, table(lane)) for lane in range(min(LANES, values - first))]
        for at, symbol in enumerate(symbols, first):
            true = symbol
            if symbol == ESCAPE:
                true = offsets.take(8)
                require(true < len(bins.each) or true == ESCAPE, f"true symbol {true} has no bin")
            lowest, width, levels[at] = bins.bin(true, value_bits)
            numbers[at] = (lowest + offsets.take(width)) % (1 << 64)
    require(stream.at == len(stream.words), "words behind the stream")
    require(all(x == LOWEST for x in stream.states), "a state does not end where it started")
    left = 8 * len(offsets.data) - offsets.at
    require(left < 8 and offsets.take(left) == 0, "bits behind the offsets")
    return from_bin_order(np.array(numbers, np.uint64), bins.zigzag, header)


# ---- 15. Payload ----------------------------------------------------------------------------------------------------


def decode_bins(frame: bytes, header: Header) -> Array:
    """The payload of a lossless frame with bins."""
    model = parse_model(frame[header.header_bytes :], header)
    start, count = header.header_bytes + model.size, header.value_count
    units = -(-count // model.unit_values)
    offsets, uniform = parse_directory(frame, header, start, units)
    require(not uniform.any(), "bit 31 of a directory entry")
    start += 4 * (units + 1)
    found = [np.zeros(0, f"<u{header.dtype.itemsize}")]
    for number, (first, last) in enumerate(pairwise(int(offset) for offset in offsets)):
        values = min(model.unit_values, count - number * model.unit_values)
        found.append(parse_unit(frame[start + 4 * first : start + 4 * last], values, model, header))
    array: Array = np.concatenate(found).view(header.dtype.newbyteorder("=")).reshape(header.dims)
    return array
