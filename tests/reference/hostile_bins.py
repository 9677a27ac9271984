# SPDX-License-Identifier: BSD-3-Clause
"""Lossless frames with bins to be refused: each breaks one "must" of section 15 of docs/format.md."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

from .bins import GRID, LIST, MULTIPLE, PATTERN, UNIFORM, Bins, Model
from .bins_writer import MOST, Parts, StreamParts, UnitParts, kinds_of, put_model, put_numbers, write_parts
from .encoder import Spec, write_header
from .hostile_tools import CORRUPT, TRUNCATED, Hostile, changed_field, hostile, patch, seal
from .stream_writer import Step, write_stream, write_table
from .streams import Table, make_table

FLOATS = Spec(codec="lossless", bins=True, dtype="f4", dims=(70,))
WIDE = replace(FLOATS, dtype="f8")
INTEGERS = replace(FLOATS, dtype="i4")
NARROW = replace(FLOATS, dtype="u1", dims=(5, 13))
SPECS = {"f4": FLOATS, "f8": WIDE, "i4": INTEGERS, "u1": NARROW}
ESCAPE, LOWEST, LANES = 255, 1 << 15, 32

# ---- A frame of few values, all of whose choices are told here ------------------------------------------------------


def table_of(**frequencies: int) -> Table:
    """Symbol 0 gets what the others leave."""
    found = [0] * 256
    for name, frequency in frequencies.items():
        found[int(name[1:])] = frequency
    found[0] = 2048 - sum(found)
    return make_table(found)


def plain_bins(bits: int = 0, **frequencies: int) -> Bins:
    """Two bins: of a lone 0, and of numbers from 1 on with as many bits."""
    return Bins(True, [(0, 0, 0), (1, bits, 0)], 0, [table_of(**frequencies or {"s1": 1, "s255": 8})], [0] * 64)


def coded(symbols: list[int], table: Table, offsets: list[int], end: int = LOWEST, early: bool = False) -> StreamParts:
    """A stream of these symbols, beside these bits."""
    steps: list[Step] = [(i % LANES, table.frequencies[s], table.starts[s], 0, 0) for i, s in enumerate(symbols)]
    return StreamParts(None, *write_stream(steps, end, 11, early), offsets)


def low(value: int, count: int) -> list[int]:
    return [value >> i & 1 for i in range(count)]


def few(spec: Spec, symbols: list[int], offsets: list[int], **changes: Any) -> Parts:
    """A unit of as many values, without strides unless `changes` says so."""
    both = [plain_bins()] * (2 if changes.get("remainders") else 1)
    model = replace(Model(MOST, [], [], streams=both), **changes)
    stream = coded(symbols, model.streams[0].tables[0], offsets)
    streams = [stream, StreamParts(uniform=0)] if model.remainders else [stream]
    return Parts(replace(spec, dims=(len(symbols),)), model, [UnitParts(b"", streams)])


# ---- A frame of random choices --------------------------------------------------------------------------------------


@cache
def parts_of(dtype: str, kind: int) -> Parts:
    """With contexts, strides, first differences, more than one unit, and no uniform stream in the first one."""
    for seed in range(10_000):
        parts, _ = write_parts(SPECS[dtype], random.Random(f"{dtype} {kind} {seed}"), kind)
        model = parts.model
        remainders = model.remainders or kind in (PATTERN, LIST)
        if not (model.distances and remainders and 1 < len(parts.units) < 5 and parts.units[0].first):
            continue
        if all(stream.uniform is None and stream.words and stream.offsets for stream in parts.units[0].streams):
            return parts
    raise AssertionError((dtype, kind))


def every_kind() -> Iterator[tuple[str, int]]:
    for dtype in SPECS:
        for kind in kinds_of(dtype):
            yield dtype, kind


def small_frames() -> Iterator[tuple[str, bytes]]:
    """Valid frames with every part."""
    for dtype, kind in every_kind():
        yield f"bins, {dtype}, kind {kind}", parts_of(dtype, kind).join()
    yield "bins, none", write_parts(replace(FLOATS, dims=(0, 9)), random.Random(1), PATTERN)[0].join()
    yield from few_frames()


def few_frames() -> Iterator[tuple[str, bytes]]:
    """Frames of `few` that are in order: what others here are made from."""
    for name, parts in parts_of_few():
        yield f"bins, {name}", parts.join()


def parts_of_few() -> Iterator[tuple[str, Parts]]:
    escaped = [*low(1, 8), *low(255, 8), *low(5, 32)]
    yield "few", few(FLOATS, [0, ESCAPE, 1, ESCAPE, 0], escaped)
    yield "stride", few(FLOATS, [0, 1, 0], [], strides=[9])
    yield "distances", few(FLOATS, [0, 1, 0], [], distances=[32, 1 << 18, 32, 40])
    yield "multiple", few(INTEGERS, [0, 1], [], kind=MULTIPLE, multiple=1, remainders=True)
    yield "shift", few(FLOATS, [0, 1], [], kind=MULTIPLE, shift=1)
    yield "grid", few(WIDE, [0, 1], [], kind=GRID, unit=0.5)
    yield "list", few(FLOATS, [0, 0], [], kind=LIST, entries=[5])


def fields() -> Iterator[Hostile]:
    """Section 2, and parameters."""
    good = parts_of("f4", GRID).join()
    field = partial(changed_field, good, "bins")
    for value in range(1, 7):
        yield field("format version before the form's", 4, "B", value)
    for value in (0, 11):
        yield field("dtype", 9, "B", value)
    for flag in (1, 4, 8, 16):
        yield field("flags", 10, "B", flag)
    for offset, values in ((48, (0, 2, 255)), (49, (1, 2, 3, 255)), *((at, (1, 128)) for at in range(50, 56))):
        for value in values:
            yield field(f"parameter at {offset}", offset, "B", value)
    for number in (0.5, -1.0, float("inf"), float("nan")):
        yield field("bound", 24, "<d", number)
        yield field("step", 32, "<d", number)
    for value in (0, 64, 68, 72, 80, len(good) - 4):
        yield field("frame_bytes", 16, "<Q", value)
    yield field("frame_bytes", 16, "<Q", len(good) + 4, CORRUPT, TRUNCATED)
    for dims in ((1 << 40,), (1 << 30, 1 << 30), (1 << 20, 1 << 20, 8), (1 << 60,), ((1 << 61) - 1,)):
        spec = replace(FLOATS, dims=dims)
        yield hostile(f"bins: dims {dims}", write_header(spec, len(good) - 64) + good[64:])
    parts = few(FLOATS, [0], [])
    for count in (1 << 14, (1 << 17) + 1):  # of values, each a unit of its own
        claim = replace(parts, spec=replace(FLOATS, dims=(count,)), model=replace(parts.model, unit_values=1))
        yield hostile(f"bins: {count} units in few bytes", claim.join())
    raw = seal(write_header(replace(FLOATS, raw=True), 280) + bytes(280))
    for offset, value in ((48, 2), (49, 1), (4, 6), (4, 1)):
        yield changed_field(raw, "bins, raw", f"byte {offset}", offset, "B", value)


# ---- 15.1 Model -----------------------------------------------------------------------------------------------------


def changed_models() -> Iterator[Hostile]:
    """Models in order but for one field; nothing else in the frame would have to be refused."""

    def made(what: str, spec: Spec, symbols: int = 2, **changes: Any) -> Hostile:
        return hostile(f"bins: {what}", few(spec, [0] * symbols, [], **changes).join())

    for value in (0, MOST + 1, 1 << 20, (1 << 21) - 1):
        yield made(f"units of {value} values", FLOATS, unit_values=value)
    for strides in ([0], [16, 0], [MOST + 1], [9, 1 << 21], [1 << 63], [(1 << 64) - 1], [9] * 5, [9] * 7):
        yield made(f"strides {strides}", FLOATS, strides=strides)
    for wrong in (0, 1, 31, (1 << 18) + 1, 1 << 31, 1 << 32, (1 << 64) - 32):
        for at in range(4):
            distances = [32, 33, 64, 100]
            distances[at] = wrong
            yield made(f"distances {distances}", FLOATS, distances=distances)
    for spec in (INTEGERS, NARROW, replace(INTEGERS, dtype="i8")):
        yield made(f"a grid of {spec.dtype}", spec, kind=GRID)
        yield made(f"multiple 0 of {spec.dtype}", spec, kind=MULTIPLE, multiple=0)
        yield made(f"multiple 0 and remainders of {spec.dtype}", spec, kind=MULTIPLE, multiple=0, remainders=True)
    for spec, most in ((FLOATS, 30), (WIDE, 62)):
        for shift in (0, most + 1, 63):
            yield made(f"shift {shift} of {spec.dtype}", spec, kind=MULTIPLE, shift=shift)
        for unit in (0.0, -0.0, -1.0, float("inf"), float("-inf"), float("nan")):
            for product in (False, True):
                yield made(f"unit {unit} of {spec.dtype}", spec, kind=GRID, unit=unit, product=product)
        for base in (float("inf"), float("-inf"), float("nan")):
            yield made(f"base {base} of {spec.dtype}", spec, kind=GRID, base=base)
        yield made(f"changes without remainders of {spec.dtype}", spec, kind=GRID, changes=True)
    for count in (0, 4097, 8191):
        yield made(f"{count} entries", FLOATS, kind=LIST, entries=[7] * count)
    for spec in (FLOATS, INTEGERS):
        yield made("remainders of patterns", spec, remainders=True)
        yield made("remainders of entries", spec, kind=LIST, entries=[5], remainders=True)
    for dtype, bits in (("f4", 32), ("f8", 64), ("u1", 8), ("i2", 16)):
        bins = plain_bins()
        for wrong in (bits + 1, bits + 2, 200):
            each = [(0, 0, 0), (1, wrong, 0)]
            yield made(f"a bin of {wrong} bits", replace(FLOATS, dtype=dtype), streams=[replace(bins, each=each)])
    contexts = [32, 33, 64, 100]
    for level in (64, 100, 255):
        bins = replace(plain_bins(), each=[(0, 0, 0), (1, 0, level)])
        yield made(f"a bin of level {level}", FLOATS, distances=contexts, streams=[bins])
    for tables in (0, 13, 15):
        bins = replace(plain_bins(), tables=plain_bins().tables * tables, table_of_level=list(range(64)))
        stream = UnitParts(b"", [StreamParts(uniform=0)])
        model = Model(MOST, [], contexts, streams=[bins])
        yield hostile(f"bins: {tables} tables", Parts(replace(FLOATS, dims=(2,)), model, [stream]).join())
    for first in ([0, 1, 2], [5, 5, 6], [6, 5, 7]):
        bins = plain_bins()
        bins = replace(bins, tables=bins.tables * 4, table_of_level=Firsts(first))
        yield made(f"tables begin at {first}", FLOATS, distances=contexts, streams=[bins])


class Firsts(list[int]):
    """Levels that tables begin at, as the writer asks for them."""

    def index(self, value: int, *_: Any) -> int:
        return self[value - 1]


def cut_models() -> Iterator[Hostile]:
    """The bits of a model."""
    for dtype, kind in every_kind():
        parts = parts_of(dtype, kind)
        bits = put_model(parts.model, parts.spec)

        def made(what: str, data: bytes, parts: Parts = parts, name: str = f"{dtype}, kind {kind}") -> Hostile:
            return hostile(f"bins, {name}: {what}", parts.join(data))

        yield made("a word too many", bits.data(more_words=1))
        for cut in range(1, min(len(bits.data()) // 4, 12)):
            yield made(f"cut by {cut} words", bits.data(more_words=-cut))
        if len(bits.bits) % 32:
            yield made("padding is not zero", bits.data(padding=1))
        for size in (0, 4, 8, len(bits.data()) - 4, len(bits.data())):
            data = (write_header(parts.spec, 0) + bits.data())[: 8 * (7 + len(parts.spec.dims)) + size]
            yield hostile(f"bins: a model of {size} bytes and nothing else", seal(patch(data, 16, "<Q", len(data))))


def tables() -> Iterator[Hostile]:
    """8.2, with the sum of 15.1, and the numbers before a table."""
    parts = few(FLOATS, [0, 0], [])
    whole = put_model(parts.model, parts.spec).bits
    start = len(whole) - len(write_table(parts.model.streams[0].tables[0].frequencies, 0))

    def made(what: str, bits: list[int], until: int = start) -> Hostile:
        model = replace(put_model(parts.model, parts.spec), bits=whole[:until] + bits)
        return hostile(f"bins: table with {what}", parts.join(model.data()))

    def frequencies(*given: int, escape: int = 0) -> list[int]:
        return [*given, *[0] * (255 - len(given)), escape]

    yield made("no symbol", low(0, 8) + low(0, 8) + low(1, 4))
    yield made("a main symbol that is not listed", low(1, 8) + low(1, 8) + low(1, 4) + [1])
    yield made("a symbol without a bin", write_table(frequencies(2048 - 9, 1, 8), 0, 3))
    yield made("a main symbol without a bin", write_table(frequencies(1, 8, 2048 - 9), 2, 3))
    yield made("symbol 254", write_table(frequencies(2048 - 1, *[0] * 253, 1), 0, 255))
    yield made("nothing left for the main symbol", write_table(frequencies(0, 1920, 120, 8), 0, 4))
    yield made("nothing left but for the escape", write_table(frequencies(0, 1920, 120, 7, escape=1), 0, 4))
    yield made("too much", write_table(frequencies(0, 1920, 1920), 0, 3))
    yield made("a width of 12", low(2, 8) + low(0, 8) + low(1, 4) + [0] * 8 + [1] + low(0, 3))
    yield made("a width of -1", low(2, 8) + low(0, 8) + low(1, 4) + [0] * 17 + [1])
    yield made("a width without an end", low(2, 8) + low(0, 8) + low(1, 4) + [0] * 64)
    for count in (0, 241, 255):
        bins = low(1, 1) + low(count, 8) + [1, 1] * count + write_table(frequencies(2048), 0, 1)
        yield made(f"{count} bins in front", bins, until=21 + 3 + 1 + 2 + 1)
    front = whole[: 21 + 3 + 1 + 2 + 1] + low(1, 1) + low(1, 8)
    for name, zeros in (("65", 2 * 57), ("-1", 2 * 9 - 1), ("hundreds", 700), ("-hundreds", 701)):
        yield made(
            f"a number of {name} bits in front", [*front, 0, *[0] * zeros, 1, *[0] * 80, *whole[start:]], until=0
        )
    for name, zeros in (("33", 66), ("-1", 1), ("hundreds", 700)):
        yield made(f"a bin of {name} bits in front", [*front, 1, *[0] * zeros, 1, *whole[start:]], until=0)


def numbers() -> Iterator[Hostile]:
    """Strides whose width is out of range: 64 is the widest one."""
    parts = few(FLOATS, [0, 0], [])
    rest = put_model(parts.model, parts.spec).bits[24:]
    for name, zeros in (("of -1 bits", 17), ("of 65 bits", 114), ("without an end", 900)):
        model = put_model(parts.model, parts.spec)
        model = replace(model, bits=low(MOST, 21) + low(1, 3) + [0] * zeros + [1] + [0] * 64 + rest)
        yield hostile(f"bins: a stride {name}", parts.join(model.data()))
    model = replace(put_model(parts.model, parts.spec), bits=low(MOST, 21) + low(1, 3))
    put_numbers(model, [1 << 63], 8)
    model.bits += rest
    yield hostile("bins: a stride of 2^63, and nothing else", parts.join(model.data()))


# ---- 15.3, 15.4 Unit and stream -------------------------------------------------------------------------------------


def units() -> Iterator[Hostile]:
    for dtype, kind in every_kind():
        parts = parts_of(dtype, kind)
        first, rest = parts.units[0], [unit.join() for unit in parts.units[1:]]

        def made(
            what: str,
            unit: UnitParts | bytes,
            parts: Parts = parts,
            rest: list[bytes] = rest,
            name: str = f"{dtype}, kind {kind}",
        ) -> Hostile:
            data = unit if isinstance(unit, bytes) else unit.join()
            return hostile(f"bins, {name}: {what}", parts.join(units=[data, *rest]))

        whole = first.join()
        for size in {*range(0, min(64, len(whole)), 4), len(whole) - 8, len(whole) - 4}:
            yield made(f"a unit of {size} bytes", whole[:size])
        yield made("a word too many", whole + bytes(4))
        yield made("first differences cut", replace(first, first=first.first[:-1]))
        unpadded = sum(len(part) for part in (first.first, *(s.heads() + s.join() for s in first.streams)))
        if unpadded % 4:
            yield made("padding of a unit", replace(first, padding=1))
            yield made("padding of a unit, high", replace(first, padding=128))
        for number, stream in enumerate(first.streams):
            for what, changed in streams(stream):
                others = [changed if i == number else other for i, other in enumerate(first.streams)]
                yield made(f"stream {number}, {what}", replace(first, streams=others))


def streams(stream: StreamParts) -> Iterator[tuple[str, StreamParts]]:
    """One that is not uniform, broken."""
    words, size = len(stream.words), -(-len(stream.offsets) // 8)
    for count in (0, words - 1, words + 1, words + 1000, (1 << 31) - 1, 1 << 30):
        if count != words:
            yield f"{count} words of {words}", replace(stream, head=(count, size))
    for count in (0, size - 1, size + 1, size + 5, 1 << 31, (1 << 32) - 1):
        if count != size:
            yield f"{count} bytes of offsets of {size}", replace(stream, head=(words, count))
    yield "a word for two bytes of offsets", replace(stream, head=(words + 1, max(size - 2, 0)))
    yield "two bytes of offsets for a word", replace(stream, head=(words - 1, size + 2))
    for symbol in (240, 254, 255, 256, (1 << 31) - 1):
        yield f"uniform, of symbol {symbol}", replace(stream, head=(UNIFORM | symbol, 0))
        yield f"uniform, of symbol {symbol} alone", StreamParts(uniform=symbol)
    for lane in (0, LANES - 1):
        for state in (0, 1, LOWEST - 1, 1 << 31, (1 << 32) - 1):
            states = [*stream.states[:lane], state, *stream.states[lane + 1 :]]
            yield f"state {state} of lane {lane}", replace(stream, states=states)
    yield "a word more", replace(stream, words=[*stream.words, 0])
    yield "a word less", replace(stream, words=stream.words[:-1])
    yield "a byte more", replace(stream, offsets=stream.offsets + [0] * 8)
    yield "a byte less", replace(stream, offsets=stream.offsets[: 8 * (size - 1)])
    if len(stream.offsets) % 8:
        yield "bits behind the offsets", replace(stream, padding=1)
        filled = stream.offsets + [0] * (-len(stream.offsets) % 8 - 1) + [1]
        yield "a bit behind the offsets", replace(stream, offsets=filled)


def few_values() -> Iterator[Hostile]:
    """Frames of `few`, a part of which is wrong."""

    def made(what: str, parts: Parts) -> Hostile:
        return hostile(f"bins: {what}", parts.join())

    for symbol in (2, 3, 239, 240, 254):
        for bits in (0, 32):
            offsets = low(symbol, 8) + [0] * bits
            yield made(f"true symbol {symbol}, {bits} bits", few(FLOATS, [0, ESCAPE, 1], offsets))
    for offsets in ([], low(255, 8), low(255, 8) + [0] * 24):
        yield made(f"an escape and {len(offsets)} bits", few(FLOATS, [0, ESCAPE, 1], offsets))
    for end in (LOWEST + 1, 1 << 16, (1 << 31) - 1):
        parts = few(FLOATS, [0, 1, 0], [])
        stream = coded([0, 1, 0], parts.model.streams[0].tables[0], [], end)
        yield made(f"states end at {end}", replace(parts, units=[UnitParts(b"", [stream])]))
    small = coded([0, 1, 0], parts.model.streams[0].tables[0], [], early=True)
    assert min(small.states) < LOWEST
    yield made("a state below the lowest", replace(parts, units=[UnitParts(b"", [small])]))
    for dtype, zigzag in (("f4", 2), ("f4", 3), ("i8", 2), ("i8", 1), ("u1", 2), ("u1", 255)):  # 1, -2, 1, -1, 1, -128
        bins = plain_bins(8)
        lists = replace(FLOATS, dtype=dtype), [0, 1], low(zigzag - 1, 8)
        for entries in ([5], [5, 6]) if zigzag != 2 else ([5],):
            parts = few(*lists, kind=LIST, entries=entries, streams=[bins])
            yield made(f"{dtype}: zigzag place {zigzag} of {len(entries)}", parts)
    good = few(FLOATS, [0, 0, 0], [])

    def unit(what: str, *streams: StreamParts, parts: Parts = good, first: bytes = b"") -> Hostile:
        return made(what, replace(parts, units=[UnitParts(first, list(streams))]))

    wide = replace(good, model=replace(good.model, streams=[plain_bins(3)]))
    yield unit("a uniform symbol with bits", StreamParts(uniform=1), parts=wide)
    yield unit("a uniform symbol without a bin", StreamParts(uniform=2))
    for rest in (1, 4, 1 << 31):
        yield unit(f"a uniform stream with {rest} bytes of offsets", StreamParts(uniform=0, head=(UNIFORM, rest)))
    stored = replace(good, model=replace(good.model, strides=[3]))
    table = good.model.streams[0].tables[0]
    for symbol in (1, 2, 255):
        name = f"symbol {symbol} of a stream of no values"
        yield unit(name, StreamParts(uniform=symbol), parts=stored, first=bytes(12))
    yield unit("a stream of no values that is not uniform", coded([], table, []), parts=stored, first=bytes(12))
    yield unit("a stream of no values and no states", StreamParts(), parts=stored, first=bytes(12))
    for size in (0, 4, 8, 16):
        name = f"{size} bytes of first differences of 12"
        yield unit(name, StreamParts(uniform=0), parts=stored, first=bytes(size))


def directories() -> Iterator[Hostile]:
    for dtype, kind in every_kind():
        parts = parts_of(dtype, kind)
        good = parts.join()
        entries = len(parts.units) + 1
        start = len(good) - sum(len(unit.join()) for unit in parts.units) - 4 * entries
        for entry in range(entries):
            (word,) = struct.unpack_from("<I", good, start + 4 * entry)
            changes: dict[str, Callable[[int], int]] = {
                "bit 31": lambda word: word | 1 << 31,
                "one more": lambda word: word + 1,
                "one less": lambda word: (word - 1) % (1 << 31),
            }
            for what, change in changes.items():
                changed = patch(good, start + 4 * entry, "<I", change(word))
                yield hostile(f"bins, {dtype}, kind {kind}: entry {entry}, {what}", changed)


def crafted() -> Iterator[Hostile]:
    for maker in (fields, changed_models, cut_models, tables, numbers, units, few_values, directories):
        yield from maker()
