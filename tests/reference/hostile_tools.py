# SPDX-License-Identifier: BSD-3-Clause
"""What hostile.py and hostile_packed.py make their frames with; `variants` breaks one given frame in its bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from .encoder import Spec, write_header

FORMAT_VERSION = 11
CORRUPT, TRUNCATED, TOO_NEW = "corrupt", "truncated", "too_new"


@dataclass(frozen=True)
class Hostile:
    """A frame to be refused."""

    name: str
    frame: bytes
    families: frozenset[str]


def hostile(name: str, frame: bytes, *families: str) -> Hostile:
    return Hostile(name, frame, frozenset(families or (CORRUPT,)))


def seal(header_and_rest: bytes) -> bytes:
    """With header_crc made right for what the header now says (its length by header_units)."""
    frame = bytearray(header_and_rest)
    frame[12:16] = bytes(4)
    frame[12:16] = struct.pack("<I", zlib.crc32(frame[: 8 * frame[7]]))
    return bytes(frame)


def patch(frame: bytes, offset: int, form: str, value: float) -> bytes:
    """The same frame with one field changed."""
    changed = bytearray(frame)
    struct.pack_into(form, changed, offset, value)
    return bytes(changed)


def variants(frame: bytes) -> Iterator[Hostile]:
    """Every header bit flipped; cut at every length (long frames: at every length near the parts' ends)."""
    header_bytes = 8 * frame[7]
    for offset in range(header_bytes):
        for mask in (*(1 << bit for bit in range(8)), 0xFF):
            changed = frame[:offset] + bytes((frame[offset] ^ mask,)) + frame[offset + 1 :]
            name, families = f"header byte {offset} xor {mask:#04x}", [CORRUPT]
            if offset == 4 and changed[4] > FORMAT_VERSION:
                families = [TOO_NEW]
            elif offset == 7 and 8 * changed[7] > len(frame):
                families = [TRUNCATED]
            yield hostile(name, changed, *families)
    ends = {header_bytes, len(frame)}
    for size in range(len(frame)):
        if len(frame) < 4000 or size < 1000 or min(abs(size - end) for end in ends) < 50 or size % 97 == 0:
            yield hostile(f"cut to {size} of {len(frame)} bytes", frame[:size], TRUNCATED)
    yield hostile("one byte too many", frame + b"\0")


def changed_field(good: bytes, name: str, what: str, offset: int, form: str, value: float, *families: str) -> Hostile:
    return hostile(f"{name}: {what} {value}", seal(patch(good, offset, form, value)), *families)


def tile_frame(spec: Spec, tile: bytes, uniform: bool = False) -> bytes:
    """A frame of one tile, as it is."""
    tile += bytes(-len(tile) % 4)
    payload = struct.pack("<2I", uniform << 31, len(tile) // 4) + tile
    return write_header(spec, len(payload)) + payload
