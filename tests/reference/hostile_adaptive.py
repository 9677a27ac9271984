# SPDX-License-Identifier: BSD-3-Clause
"""Adaptive frames to be refused: each breaks one "must" of section 14 of docs/format.md."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial

from .adaptive import decode_adaptive
from .adaptive_writer import ModelBits, Parts, Recorder, UnitParts, put_pass, write_parts
from .encoder import Spec, write_header
from .header import parse_header
from .hostile_tools import CORRUPT, TRUNCATED, Hostile, changed_field, hostile, patch, seal
from .stream_writer import write_table

PLANE = Spec(codec="adaptive", dtype="f4", dims=(9, 12), bound=0.25, step=0.5, sentinel=0x501502F9, group_log2=2)
VOLUME = replace(PLANE, dtype="f8", dims=(5, 6, 9), sentinel=None)
LINE = replace(PLANE, dims=(150,), group_log2=0)
FOUR = replace(PLANE, dims=(2, 3, 9, 8), axes=1)
PAIRS = replace(PLANE, dims=(40, 2), group_log2=0)  # two lines: two units
SPECS = {"plane": PLANE, "volume": VOLUME, "line": LINE, "4-D": FOUR, "pairs": PAIRS}


@cache
def parts_of(name: str, levels: int = 1) -> Parts:
    """A frame with as many refining passes, of two tables at least and two classes in the first pass."""
    for seed in range(1000):
        parts = write_parts(SPECS[name], random.Random(f"{name} {seed}"), 10)
        marks = parts.model.marks
        bits = parts.model.bits
        masks = SPECS[name].sentinel is None or "mask frequency" in marks
        if bits[0] + 2 * bits[1] == levels and "threshold 0" in marks and "level" in marks and masks:
            return parts
    raise AssertionError(name)


def small_frames() -> Iterator[tuple[str, bytes]]:
    """Valid frames with every part."""
    for name in SPECS:
        yield f"adaptive, {name}", parts_of(name).join()
    yield "adaptive, none", write_parts(replace(PLANE, dims=(0, 9)), random.Random(1)).join()


def fields() -> Iterator[Hostile]:
    """Section 2, and parameters."""
    good = parts_of("plane").join()
    field = partial(changed_field, good, "adaptive")
    for value in range(1, 7):
        yield field("format version before its codec's", 4, "B", value)
    for value in (0, 3, 10):
        yield field("dtype", 9, "B", value)
    for dtype, size in (("i4", 4), ("u1", 1), ("i8", 8)):  # a good step of integers, and room enough
        spec = replace(PLANE, dtype=dtype, bound=1.0, step=3.0, sentinel=None)
        payload = good[72:].ljust(9 * 12 * size, b"\0")
        yield hostile(f"adaptive: a frame of {dtype}", seal(write_header(spec, len(payload)) + payload), CORRUPT)
    yield field("pointwise bound", 10, "B", 12)
    for offset, values in ((48, (0, 2, 255)), (49, (1, 2)), (50, (5, 255)), (51, (1,)), (55, (1,))):
        for value in values:
            yield field(f"parameter at {offset}", offset, "B", value)
    yield changed_field(parts_of("4-D").join(), "adaptive, 4-D", "axes", 49, "B", 2)
    for number in (0.0, -1.0, float("inf"), float("nan")):
        yield field("bound", 24, "<d", number)
        yield field("step", 32, "<d", number)
    yield field("step that is no f32", 32, "<d", 0.1)
    for value in (len(good) - 4, len(good) + 4):
        yield field("frame_bytes", 16, "<Q", value, CORRUPT, TRUNCATED)
    for number in (float("inf"), float("-inf"), float("nan")):
        yield hostile(f"adaptive: offset {number}", replace(parts_of("plane"), offset=number).join())
    for dims in ((1 << 40,), (1 << 30, 1 << 30), (1 << 20, 1 << 20, 8)):
        spec = replace(PLANE, dims=dims)
        yield hostile(f"adaptive: dims {dims}", write_header(spec, len(good) - 72) + good[72:])


def models() -> Iterator[Hostile]:
    """14.2."""
    for name in ("plane", "volume", "line"):
        parts = parts_of(name)
        model = parts.model

        def made(what: str, data: bytes, parts: Parts = parts, name: str = name) -> Hostile:
            return hostile(f"adaptive, {name}: {what}", parts.join(data))

        whole = model.join()
        words = len(whole) // 4
        for count in (0, 1, words - 1, words + 1, 8193, 1 << 31, (1 << 32) - 1):
            yield made(f"model said to have {count} words of {words}", struct.pack("<I", count) + whole[4:])
        yield made("a word too many", model.join(more_words=1))
        for cut in range(1, min(words - 1, 12)):
            yield made(f"cut by {cut} words", model.join(more_words=-cut))
        bits = [*model.bits, 0] if len(model.bits) % 32 == 0 else model.bits
        yield made("padding is not zero", ModelBits(bits).join(padding=1))
        for value in (2, 3, 7):
            yield made(f"{value + 1} classes in a refining pass", model.changed("classes 1", value, 3).join())
        for value in (0x7F81, 0x7FC0, 0x7FFF, 0xFF80, 0xFFC0, 0x8001, 0xBF80):
            yield made(f"threshold {value:#x}", model.changed("threshold 0", value, 16).join())
        for number in (0, 1):
            yield made(f"no rest tap, pass {number}", model.changed(f"rest tap {number}", 0, 1).join())
        for value in (12, 15):
            yield made(f"{value + 1} tables", model.changed("tables", value, 4).join())
        for value in (0, 96, 127):
            yield made(f"a table from level {value} on", model.changed("level", value, 7).join())
        yield from tables(name, parts)
        if "mask frequency" in model.marks:
            at = model.marks["mask frequency"] + 1
            yield made(
                "frequency of special values 0", ModelBits(model.bits, {"here": at}).changed("here", 0, 10).join()
            )
    parts = parts_of("plane")
    parts = replace(parts, units=[replace(unit, masks=0) for unit in parts.units])
    parts = replace(parts, model=parts.model.changed("masks", 1, 1), spec=replace(PLANE, sentinel=None))
    yield hostile("adaptive: masks, but no sentinel", parts.join())
    yield hostile("adaptive: no room for an offset", seal(patch(parts_of("plane").join()[:76], 16, "<Q", 76)))
    yield hostile("adaptive: no room for a model", seal(patch(parts_of("plane").join()[:80], 16, "<Q", 80)))


def tables(name: str, parts: Parts) -> Iterator[Hostile]:
    """8.2, with the sum of 14.2: a model of one pass and one table."""
    out = ModelBits()
    out.put(0, 3)
    put_pass(out, random.Random(3), {"line": 1, "plane": 2, "volume": 3}[name], 0, 0, 3)
    out.put(0, 4)

    def made(what: str, bits: list[int]) -> Hostile:
        return hostile(f"adaptive, {name}: table with {what}", parts.join(ModelBits(out.bits + bits).join()))

    def low(value: int, count: int) -> list[int]:
        return [value >> i & 1 for i in range(count)]

    def frequencies(*given: int, escape: int) -> list[int]:
        return [*given, *[0] * (255 - len(given)), escape]

    yield made("no symbol", low(0, 8) + low(0, 8) + low(1, 4))
    yield made("a main symbol that is not listed", low(1, 8) + low(1, 8) + low(1, 4) + [1])
    yield made("no escape", write_table(frequencies(4096, escape=0), 0, 1))
    yield made("no escape, two symbols", write_table(frequencies(4096 - 256, 256, escape=0), 0, 2))
    yield made("nothing left for the main symbol", write_table(frequencies(0, 2048, 2048, escape=1), 0, 3))
    yield made("too much", write_table(frequencies(0, 3840, 3840, escape=1), 0, 3))
    yield made("a width of 13", low(2, 8) + low(0, 8) + low(1, 4) + [0] * 10 + [1] + low(0, 3))
    yield made("a width of -1", low(2, 8) + low(0, 8) + low(1, 4) + [0] * 17 + [1])
    yield made("a width without an end", low(2, 8) + low(0, 8) + low(1, 4) + [0] * 64)


def units() -> Iterator[Hostile]:
    """14.5."""
    for name in ("plane", "volume", "line", "4-D"):
        parts = parts_of(name)
        first, rest = parts.units[0], parts.units[1:]

        def made(
            what: str, unit: UnitParts | bytes, parts: Parts = parts, rest: list[UnitParts] = rest, name: str = name
        ) -> Hostile:
            data = unit if isinstance(unit, bytes) else unit.join()
            return hostile(f"adaptive, {name}: {what}", parts.join(units=[data, *(other.join() for other in rest)]))

        whole, count = first.join(), len(first.words)
        yield made("an empty unit", b"")
        for size in range(4, min(len(whole), 4 + 4 * len(first.states) + 8), 4):
            yield made(f"a unit of {size} bytes", whole[:size])
        for value in (0, count - 1, count + 1, count + 2, count + 1000, 1 << 31, (1 << 32) - 1):
            if value >= 0 and value != count:
                yield made(f"{value} words of {count}", replace(first, count=value))
        if first.mask_bits:
            yield made("no masks", replace(first, mask_bits=0))
        if len(first.bits()) % 32:
            yield made("padding of states", replace(first, padding=(0, 0, 1)))
        for lane in (0, len(first.states) - 1):
            for state in (1 << 15, first.states[lane] ^ 1 << 13, (1 << 31) - 1):
                states = [*first.states[:lane], state, *first.states[lane + 1 :]]
                if states != first.states:
                    yield made(f"state {state} of lane {lane}", replace(first, states=states))
        odd = replace(first, words=[*first.words, 4660] if count % 2 == 0 else [*first.words, 4660, 4660])
        yield made("words behind the stream", odd)
        yield made("words behind the stream, and padding of the stream", replace(odd, padding=(7, 0, 0)))
        if count % 2:
            yield made("padding of the stream", replace(first, padding=(1, 0, 0)))
            yield made("high padding of the stream", replace(first, padding=(0x8000, 0, 0)))
        for cut in range(1, min(count, 6)):
            yield made(f"{cut} words cut", replace(first, words=first.words[:-cut]))
        yield made("a stored word too many", whole + bytes(4))
        yield made("stored values too many", whole + bytes(8))
        if first.stored:
            yield made("stored values cut", replace(first, stored=first.stored[:-4]))
            yield made("no stored values", replace(first, stored=b""))
    yield from single_values()
    parts = parts_of("pairs")
    good = parts.join()
    directory = len(good) - sum(len(unit.join()) for unit in parts.units) - 12
    for entry in range(3):
        word = struct.unpack_from("<I", good, directory + 4 * entry)[0]
        yield hostile(f"adaptive: bit 31 of entry {entry}", patch(good, directory + 4 * entry, "<I", word | 1 << 31))
        yield hostile(f"adaptive: entry {entry} is one more", patch(good, directory + 4 * entry, "<I", word + 1))


class OneValue(Recorder):
    """A unit of one value: a symbol behind an escape, or without one, and what is stored."""

    def unit(self, symbol: int, escape: bool, stored: bytes = b"") -> UnitParts:
        inner = 3 if symbol >= 28 and not escape else 0
        self.steps = [(0, 12, *((1, 4095) if escape else (64, 4096 - 1 - 64)), inner, 0)]
        self.steps += [(0, 0, 0, 0, 8, symbol)] if escape else []
        self.stored = stored
        return self.finish(1, 0)


def single_values() -> Iterator[Hostile]:
    """A frame of one value, all of whose choices are told here."""
    spec = Spec(codec="adaptive", dtype="f4", dims=(1,), bound=0.25, step=0.5)
    one = OneValue(random.Random(1), parse_header(write_header(spec, 1 << 20)))

    def frame(unit: UnitParts, last: int = 7) -> bytes:
        """A symbol and the last one have a frequency in the table."""
        out = ModelBits([0] * 8 + [0] * 23 + [1])  # one pass, unit 1, one class; the nearest candidate
        for factor in (32, 32):  # set 0, then 9, which has no tap
            out.put(factor, 6)
        out.put(0, 19 * 6 + 4)
        frequencies = [4096 - 1 - 64, *[0] * 254, 1]
        frequencies[last] = 64
        out.bits += write_table(frequencies, 0, last + 1)
        return Parts(spec, 0.0, out, [unit]).join()

    def made(name: str, unit: UnitParts, last: int = 7) -> Hostile:
        return hostile(f"adaptive: {name}", frame(unit, last))

    for unit in (one.unit(7, False), one.unit(7, True), one.unit(254, True, bytes(4)), one.unit(253, True, bytes(4))):
        decode_adaptive(frame(unit), parse_header(frame(unit)))  # these are in order
    yield made("a state of 2^31", UnitParts(0, [1 << 31], [], b""))
    yield made("a word behind the stream", replace(one.unit(7, False), words=[1]))
    for symbol in (80, 81, 127, 128, 200, 252, 255):
        yield made(f"symbol {symbol} behind an escape", one.unit(symbol, True))
    for symbol in (80, 100, 253, 254):
        yield made(f"symbol {symbol}", one.unit(symbol, False), symbol)
    for symbol in (253, 254):
        for size in (0, 5, 7, 8):
            unit = replace(one.unit(symbol, True, bytes(size)), padding=(0, 1, 0))
            yield made(f"{size} bytes of a value stored by symbol {symbol}", unit)
    for r in (2.0**64, -(2.0**64), 3e38, float("inf"), float("-inf"), float("nan")):
        yield made(f"a stored r of {r}", one.unit(253, True, struct.pack("<f", r)))


def crafted() -> Iterator[Hostile]:
    yield from fields()
    yield from models()
    yield from units()
