# SPDX-License-Identifier: BSD-3-Clause
"""Adaptive frames with heads of parts that are to be refused: each breaks one "must" of 14.1 of docs/format.md."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial

from .adaptive import decode_adaptive
from .adaptive_parts_writer import Head, PartsFrame, write_parts_frame
from .encoder import Spec, write_header
from .header import parse_header
from .hostile_tools import CORRUPT, TRUNCATED, Hostile, changed_field, hostile, patch, seal

#: two lines, one of them a plane of four rows, of which the last has half its values
PAIRS = Spec(codec="adaptive", dtype="f4", dims=(140, 2), bound=0.25, step=0.5, sentinel=0x501502F9)
LINE = replace(PAIRS, dims=(600,), sentinel=None)
PLANES = replace(PAIRS, dtype="f8", dims=(9, 12, 2), sentinel=None)
FOUR = replace(PAIRS, dims=(2, 3, 9, 8))
SPECS = {
    "pairs": (PAIRS, [Head(40), Head(unit_log2=2)]),
    "line": (LINE, [Head(32, 8, 1)]),
    "planes": (PLANES, [Head(unit_log2=1), Head()]),
    "4-D": (FOUR, [Head(rows=1)]),
}
HEADER = 56  # bytes without dims


@cache
def frame_of(name: str) -> PartsFrame:
    """A frame whose parts have a refining pass each."""
    spec, heads = SPECS[name]
    for seed in range(1000):
        frame = write_parts_frame(spec, heads, random.Random(f"{name} {seed}"), 10)
        if all(part.model.bits[0] + 2 * part.model.bits[1] == 1 for part in frame.parts):
            return frame
    raise AssertionError(name)


def small_frames() -> Iterator[tuple[str, bytes]]:
    """Valid frames with every part."""
    for name in SPECS:
        yield f"adaptive parts, {name}", frame_of(name).join()
    empty = write_parts_frame(replace(PAIRS, dims=(0, 3)), [Head()], random.Random(1))
    yield "adaptive parts, none", empty.join()


def fields() -> Iterator[Hostile]:
    """Section 2, and parameters."""
    good = frame_of("pairs").join()
    field = partial(changed_field, good, "adaptive parts")
    for value in range(1, 11):
        yield field("format version before that of parts", 4, "B", value)
    for offset, values in ((48, (0, 2, 255)), (49, (0, 1, 3, 255)), (50, (1, 4, 255)), (51, (1,)), (55, (1,))):
        for value in values:
            yield field(f"parameter at {offset}", offset, "B", value)
    for name in ("line", "planes", "4-D"):
        for value in (0, 1, 3):
            yield changed_field(frame_of(name).join(), f"adaptive parts, {name}", "axes", 49, "B", value)
    for value in (len(good) - 4, len(good) + 4):
        yield field("frame_bytes", 16, "<Q", value, CORRUPT, TRUNCATED)
    payload = good[HEADER + 16 :]
    for dims in ((140, 3), (141, 2), (70, 4), (280,), (140, 1, 1, 7), (1 << 40, 2), (1 << 60,), (2, 1 << 50)):
        header = write_header(replace(frame_of("pairs").spec, dims=dims), len(payload))
        yield hostile(f"adaptive parts: dims {dims}", header + payload)


def heads() -> Iterator[Hostile]:
    """Heads that are wrong, or wrong for the array."""
    refused = {
        "pairs": (
            *((31, 0), (1, 0), (71, 0), (140, 0), (65535, 0), (40, 1), (40, 7), (32, 8), (35, 2), (35, 8191)),
            *((0, 1), (0, 2), (0, 8), (0, 8191)),
        ),
        "line": ((31, 8), (32, 7), (32, 1), (32, 10), (301, 0), (38, 8), (65535, 8191), (0, 1), (0, 9)),
        "planes": ((32, 0), (54, 0), (108, 0), (0, 1), (0, 2)),
        "4-D": ((32, 0), (32, 8), (0, 2), (0, 8191)),
    }
    for row, rows in ((31, 0), (8, 0), (32, 7), (301, 0), (43, 7)):  # what follows is as these axes would have it
        frame = write_parts_frame(LINE, [Head(row, rows)], random.Random(row), 10)
        yield hostile(f"adaptive parts: a line in rows of {row}, planes of {rows} rows", frame.join())
    for name, axes in refused.items():
        frame = frame_of(name)
        for i, head in enumerate(frame.heads):
            for row, rows in axes:
                others = [*frame.heads[:i], replace(head, row=row, rows=rows), *frame.heads[i + 1 :]]
                what = f"part {i} with rows of {row}, planes of {rows} rows"
                yield hostile(f"adaptive parts, {name}: {what}", frame.join(others))
            for log2 in (5, 7):
                others = [*frame.heads[:i], replace(head, unit_log2=log2), *frame.heads[i + 1 :]]
                yield hostile(f"adaptive parts, {name}: part {i} with units of 2^{log2} tiles", frame.join(others))
    yield from longest_lag()


def longest_lag() -> Iterator[Hostile]:
    """Lags of more than 65535, in a frame of no more than its heads: the values are many."""
    spec = replace(LINE, dims=(200000,))
    for row, rows in ((65535, 8), (256, 256), (8192, 8), (65535, 2), (32, 2048)):
        frame = PartsFrame(replace(spec, axes=2), [Head(row, rows)], frame_of("line").parts)
        yield hostile(f"adaptive parts, long line: rows of {row}, planes of {rows} rows", frame.join())


def sizes() -> Iterator[Hostile]:
    """Parts that are too long, too short, or not there."""
    for name in SPECS:
        frame = frame_of(name)
        payloads = [part.payload() for part in frame.parts]
        for i, payload in enumerate(payloads):
            words = len(payload) // 4
            for other in (0, 1, 2, 3, words - 1, words + 1, words + 2, 2 * words, 1 << 30, (1 << 32) - 1):
                changed = [*frame.heads[:i], replace(frame.heads[i], words=other), *frame.heads[i + 1 :]]
                yield hostile(f"adaptive parts, {name}: part {i} of {words} words has {other}", frame.join(changed))
            for what, data in (("a word more", payload + bytes(4)), ("a word less", payload[:-4]), ("no bytes", b"")):
                others = [*payloads[:i], data, *payloads[i + 1 :]]
                yield hostile(f"adaptive parts, {name}: part {i} with {what}", frame.join(payloads=others))
        good = frame.join()
        first = HEADER + 8 * len(frame.spec.dims)
        yield hostile(f"adaptive parts, {name}: a word behind the parts", resized(good + bytes(4)))
        yield hostile(f"adaptive parts, {name}: a byte behind the parts", resized(good + bytes(1)))
        for size in range(first, first + 8 * len(frame.heads) + 12):
            yield hostile(f"adaptive parts, {name}: payload ends at {size - first}", resized(good[:size]))
    yield from sizes_together()


def sizes_together() -> Iterator[Hostile]:
    """Sizes that would each be right elsewhere, and parts of no values."""
    frame = frame_of("pairs")
    first, second = (part.payload() for part in frame.parts)
    counts = [len(first) // 4, len(second) // 4]
    swapped = [replace(head, words=count) for head, count in zip(frame.heads, counts[::-1], strict=True)]
    yield hostile("adaptive parts: sizes swapped", frame.join(swapped))
    given = [replace(head, words=count) for head, count in zip(frame.heads, counts, strict=True)]
    yield hostile("adaptive parts: a gap between parts", frame.join(given, [first + bytes(4), second]))
    alone = [frame.heads[0], replace(frame.heads[1], words=0)]
    yield hostile("adaptive parts: one part of two", frame.join(alone, [first, b""]))
    empty = write_parts_frame(replace(PAIRS, dims=(0, 3)), [Head()], random.Random(1))
    for head in (Head(32), Head(0, 1), Head(32, 8), Head(0, 0, 5)):
        yield hostile(f"adaptive parts: no values, {head}", empty.join([head]))
    yield hostile("adaptive parts: no values, three parts", empty_of_parts(3, empty.parts[0].payload()))


def empty_of_parts(count: int, payload: bytes) -> bytes:
    """A frame without values and this many parts."""
    data = b"".join([*(Head().join(len(payload)) for _ in range(count)), payload * count])
    return write_header(replace(PAIRS, dims=(0, 3), axes=2), len(data)) + data


def resized(frame: bytes) -> bytes:
    """With frame_bytes made right."""
    return seal(patch(frame, 16, "<Q", len(frame)))


def insides() -> Iterator[Hostile]:
    """Parts that break another section, in the second one and in places behind the last value."""
    for name, number in (("pairs", 0), ("pairs", 1), ("line", 0)):
        frame = frame_of(name)
        part = frame.parts[number]

        def made(
            what: str, payload: bytes, frame: PartsFrame = frame, number: int = number, name: str = name
        ) -> Hostile:
            payloads = [other.payload() for other in frame.parts]
            payloads[number] = payload
            return hostile(f"adaptive parts, {name}: part {number} with {what}", frame.join(payloads=payloads))

        for value in (float("nan"), float("inf")):
            yield made(f"offset {value}", replace(part, offset=value).payload())
        yield made("a model that is too long", part.payload(part.model.join(more_words=1)))
        first, rest = part.units[0], [unit.join() for unit in part.units[1:]]
        yield made(
            "a unit without its last word", part.payload(units=[replace(first, words=first.words[:-1]).join(), *rest])
        )
        yield made("stored values too many", part.payload(units=[first.join() + bytes(8), *rest]))
    spec = replace(frame_of("pairs").spec, sentinel=None)
    if any(part.model.bits[2] for part in frame_of("pairs").parts):
        frame = replace(frame_of("pairs"), spec=spec)
        yield hostile("adaptive parts: masks, but no sentinel", frame.join())


def crafted() -> Iterator[Hostile]:
    for _, frame in small_frames():
        decode_adaptive(frame, parse_header(frame))  # these are in order
    yield from fields()
    yield from heads()
    yield from sizes()
    yield from insides()
