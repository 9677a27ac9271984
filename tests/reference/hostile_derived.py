# SPDX-License-Identifier: BSD-3-Clause
"""Frames of derived types (docs/format.md, section 16) that a decoder has to refuse. Neighbour: hostile.py."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace

from .encoder import Block, Spec, write_frame, write_header, write_raw
from .header import B8, BF16, C64, C128, DERIVED_VERSION, F16
from .hostile_tools import CORRUPT, FORMAT_VERSION, TOO_NEW, TRUNCATED, Hostile, changed_field, hostile, patch, seal

CUSZP2 = Spec(codec="cuszp2", dtype="f4", dims=(80,), bound=0.25, step=0.5, sentinel=0x501502F9)
WIDE = replace(CUSZP2, dtype="f8")
LOSSLESS = Spec(codec="lossless", dtype="f4", dims=(80,))
BYTES = Spec(codec="lossless", dtype="u1", dims=(40,))
LATEST = 16  # no dtype has this code


def named(frame: bytes, dtype: int, *dims: int) -> bytes:
    """The frame of a base array as that of a derived type; the array has as many dimensions."""
    changed = patch(patch(frame, 4, "B", DERIVED_VERSION), 9, "B", dtype)
    return seal(changed[:56] + struct.pack(f"<{len(dims)}Q", *dims) + changed[56 + 8 * len(dims) :])


def ramp(spec: Spec) -> Block:
    return Block(codes=list(range(spec.values_per_block)))


def small_frames() -> Iterator[tuple[str, bytes]]:
    """Valid frames."""
    yield "c64", named(write_frame(CUSZP2, [ramp(CUSZP2)] * 3), C64, 40)
    yield "bool", named(write_frame(BYTES, [ramp(BYTES)] * 2), B8, 40)
    for dtype in (F16, BF16):
        yield f"dtype {dtype} with a bound", named(write_frame(CUSZP2, [ramp(CUSZP2)] * 3), dtype, 80)
    yield "c128, raw", named(write_raw(replace(WIDE, raw=True, bound=0.0, step=0.0, sentinel=None), [1] * 80), C128, 40)


def crafted() -> Iterator[Hostile]:
    """Behind a right checksum."""
    for spec, dtype in ((CUSZP2, C64), (LOSSLESS, C64), (WIDE, C128)):
        good = named(write_frame(spec, [ramp(spec)] * 3), dtype, 40)
        name = f"{spec.codec} of dtype {dtype}"
        for version in range(1, DERIVED_VERSION):
            yield changed_field(good, name, "format_version", 4, "B", version)
        yield changed_field(good, name, "format_version", 4, "B", FORMAT_VERSION + 1, TOO_NEW)
        for codec in (5, 6):
            yield changed_field(good, name, "codec", 8, "B", codec)
        for code in (0, LATEST, 31, 32, 43, 255):
            yield changed_field(good, name, "dtype", 9, "B", code)
        for number in (0, 15, 80, 1 << 60, (1 << 61) - 1, 1 << 61, 1 << 63, (1 << 64) - 1):
            yield changed_field(good, name, "dims", 56, "<Q", number, CORRUPT, TRUNCATED)
        yield changed_field(good, name, "flags: not raw, but said to be", 10, "B", good[10] | 1)
        for value in (0, 2, 3):
            yield changed_field(good, name, "block dimensions", 49, "B", value)
    frame = named(write_frame(CUSZP2, [ramp(CUSZP2)] * 3), C64, 40)
    yield hostile("c64: sentinel wider than its parts", seal(patch(frame, 44, "B", 1)))
    yield hostile("c64: step that is no f32", seal(patch(frame, 32, "<d", 0.1)))
    raw = write_raw(replace(CUSZP2, raw=True, bound=0.0, step=0.0, sentinel=None), [1] * 80)
    for value in (39, 41, 80):
        yield hostile(f"c64, raw: {value} values for 40", named(raw, C64, value))
    floats = Spec(codec="cuszp2", dtype="f4", dims=(40,), bound=0.25, step=0.5)
    yield hostile("bool of cuszp2", named(write_frame(floats, [ramp(floats)] * 2), B8, 40))
    made = write_frame(BYTES, [ramp(BYTES)] * 2)
    yield hostile("bool of hierarchical_delta", named(patch(made, 8, "B", 3), B8, 40))
    yield hostile("bool with a sentinel", seal(patch(named(write_frame(BYTES, [ramp(BYTES)] * 2), B8, 40), 10, "B", 4)))
    for dtype in (F16, BF16):
        good, halves = named(write_frame(CUSZP2, [ramp(CUSZP2)] * 3), dtype, 80), f"dtype {dtype}"
        yield changed_field(good, halves, "format_version", 4, "B", DERIVED_VERSION - 1)
        for codec in (2, 5, 6):
            yield changed_field(good, halves, "codec", 8, "B", codec)
        yield changed_field(good, halves, "step", 32, "<d", 0.0)
        yield changed_field(good, halves, "step that is no f32", 32, "<d", 0.1)
        yield changed_field(good, halves, "bound", 24, "<d", 0.0)
        yield changed_field(good, halves, "flags: raw", 10, "B", good[10] | 1)
        yield hostile(f"{halves}: sentinel wider than an f32", seal(patch(good, 44, "B", 1)))
        exact = Spec(codec="hierarchical_delta", dtype="i2", dims=(80,))
        yield hostile(
            f"{halves}: raw, of hierarchical_delta", named(write_raw(replace(exact, raw=True), [1] * 80), dtype, 80)
        )
    scalar = write_header(replace(LOSSLESS, dims=(), raw=True), 4) + bytes(4)
    yield hostile("c64: a scalar of one part", seal(patch(patch(scalar, 4, "B", DERIVED_VERSION), 9, "B", C64)))
