# SPDX-License-Identifier: BSD-3-Clause
"""Frames that a decoder has to refuse, each with the reason: what docs/format.md says against it.

`variants` breaks one given frame in its bytes; `crafted` builds frames whose header and checksum are in order and
whose fields or tiles are not (those of hierarchical_delta are in hostile_packed.py). `families` are the errors that
the document allows (named as the codes of the C ABI).
"""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from . import (
    adaptive_parts_writer,
    adaptive_writer,
    bins_writer,
    hostile_adaptive,
    hostile_adaptive_parts,
    hostile_bins,
    hostile_derived,
    hostile_packed,
    hostile_particles,
    hostile_progressive,
    hostile_streams,
    packed_choices,
    particles_writer,
    progressive_writer,
    stream_writer,
)
from .encoder import Block, Spec, random_frame, write_block, write_frame, write_header, write_raw
from .hostile_tools import (
    CORRUPT,
    TOO_NEW,
    TRUNCATED,
    Hostile,
    changed_field,
    hostile,
    patch,
    seal,
    tile_frame,
    variants,
)

__all__ = ["CORRUPT", "TOO_NEW", "TRUNCATED", "all_hostile", "crafted", "directories", "mutated", "small_frames"]

BASE = Spec(codec="cuszp2", dtype="f4", dims=(40,), bound=0.25, step=0.5, sentinel=0x501502F9)
LOSSLESS = Spec(codec="lossless", dtype="i2", dims=(40,))
WIDE = Spec(codec="cuszp2", dtype="f8", dims=(3, 5, 9), block_dims=3, bound=0.25, step=0.5)


def ramp(spec: Spec) -> Block:
    return Block(codes=list(range(spec.values_per_block)))


def fields() -> Iterator[Hostile]:
    """Section 2: the checksum is right, a field is not."""
    for spec in (BASE, LOSSLESS):
        good = write_frame(spec, [ramp(spec)] * 2)
        name = spec.codec
        field = partial(changed_field, good, name)

        not_above = (0x3FD00000,) if spec is BASE else ()
        newer = good[:4] + b"\6" + good[5:10] + bytes((good[10] | 16,)) + good[11:52] + b"\0\0\xf0\x7f" + good[56:]
        for word in (
            0,
            0x7FF00000,
            0x7FF80000,
            0x80000000,
            0xBFF00000,
            0xFFFFFFFF,
            *not_above,
        ):
            yield changed_field(newer, f"{name}, format 6", "carried bound", 52, "<I", word)
        for value in range(1, 6):
            carrying = newer[:52] + struct.pack("<I", 0x7FE00000) + newer[56:]
            yield changed_field(carrying, f"{name}, carried", "format_version", 4, "B", value)
        for bit in (8, 32, 64, 128):
            carrying = newer[:52] + struct.pack("<I", 0x7FE00000) + newer[56:]
            yield changed_field(carrying, f"{name}, carried", "flags", 10, "B", carrying[10] | bit)

        for value in (0, 3, 4, 255):  # 3 came with a later version
            yield field("codec", 8, "B", value)
        for value in (0, 11, 128, 255):
            yield field("dtype", 9, "B", value)
        for bit in range(3, 8):
            yield field("flags", 10, "B", good[10] | 1 << bit)
        yield field("flags: not raw, but said to be", 10, "B", good[10] | 1)
        yield field("reserved parameter byte 7", 55, "B", 1)
        for offset in range(50, 56):
            yield field(f"reserved parameter at {offset}", offset, "B", 0x40)
        for value in (0, 2, 3, 4, 255):
            yield field("block dimensions", 49, "B", value)
        for value in (1, 2, 3, 255) if spec.codec == "lossless" else (3, 255):
            yield field("mode", 48, "B", value)
        for number in (-1.0, float("inf"), float("-inf"), float("nan")):
            yield field("bound", 24, "<d", number)
            yield field("step", 32, "<d", number)
        size = len(good)
        for value in (0, 1, 63, 64, size - 4, size - 1):
            yield field("frame_bytes", 16, "<Q", value)
        for value in (size + 1, size + 4, 1 << 31, 1 << 32 | size, 1 << 63, (1 << 64) - 1):
            yield field("frame_bytes", 16, "<Q", value, CORRUPT, TRUNCATED)
        for value in (0, 32, 4097, 1 << 31, 1 << 32, 1 << 60, (1 << 61) - 1, 1 << 61, 1 << 63, (1 << 64) - 1):
            yield field("dims", 56, "<Q", value, *([CORRUPT, TRUNCATED] if 4096 < value < 1 << 61 else [CORRUPT]))
        for units in range(7):
            yield hostile(f"{name}: header_units {units}", good[:7] + bytes((units,)) + good[8:])
        for rank in (0, 2, 32, 33, 255):
            yield field("rank without its header_units", 11, "B", rank)
    yield hostile("cuszp2 of i32", seal(patch(write_frame(BASE, [ramp(BASE)] * 2), 9, "B", 7)))
    lossless = write_frame(LOSSLESS, [ramp(LOSSLESS)] * 2)
    yield hostile("bound in a lossless frame", seal(patch(lossless, 24, "<d", 0.5)))
    yield hostile("step in a lossless frame", seal(patch(lossless, 32, "<d", 0.5)))
    for zero in (0.0, -0.0):
        yield hostile(f"cuszp2: bound {zero}", seal(patch(write_frame(BASE, [ramp(BASE)] * 2), 24, "<d", zero)))
        yield hostile(f"cuszp2: step {zero}", seal(patch(write_frame(BASE, [ramp(BASE)] * 2), 32, "<d", zero)))
    yield hostile("sentinel in a lossless frame", seal(patch(lossless, 10, "B", 4)))
    yield hostile("sentinel without its flag", seal(patch(lossless, 40, "<Q", 1)))
    yield hostile("sentinel wider than f32", seal(patch(write_frame(BASE, [ramp(BASE)] * 2), 44, "B", 1)))
    yield hostile("step that is no f32", seal(patch(write_frame(BASE, [ramp(BASE)] * 2), 32, "<d", 0.1)))
    yield hostile("step beyond f32", seal(patch(write_frame(BASE, [ramp(BASE)] * 2), 32, "<d", 1e300)))
    for rank, word in ((33, 1), (100, 1), (248, 1), (33, 0)):
        body = write_header(replace(LOSSLESS, dims=(word,) * rank), 4) + struct.pack("<I", 0)
        yield hostile(f"rank {rank} of dims {word}", seal(body))
    products: tuple[tuple[int, ...], ...] = ((0, 1 << 61), (1 << 40, 0, 1 << 40))  # of those that are not zero
    products += ((1 << 40, 1 << 40), (1 << 32, 1 << 32), (1 << 63, 2), (1 << 63, 1 << 63, 4), (3, 1 << 60), (4,) * 32)
    for dims in products:  # some of them 0 modulo 2^64
        for spec in (LOSSLESS, BASE, replace(LOSSLESS, raw=True)):
            payload = b"" if spec.raw else bytes(4)
            name = f"dims {dims}, {'raw' if spec.raw else spec.codec}"
            yield hostile(name, write_header(replace(spec, dims=dims), len(payload)) + payload)
    yield from raw_fields()


def raw_fields() -> Iterator[Hostile]:
    """Section 3."""
    spec = replace(BASE, raw=True, bound=0.0, step=0.0, sentinel=None)
    good = write_raw(spec, list(range(40)))
    yield hostile("raw: step", seal(patch(good, 32, "<d", 0.5)))
    yield hostile("raw: bound", seal(patch(good, 24, "<d", 0.5)))
    for change in (-4, -1, 1, 4):
        longer = write_header(spec, 160 + change) + good[64:] + bytes(8)
        yield hostile(f"raw: payload {change:+}", longer[: len(good) + change], CORRUPT)
    huge = write_header(replace(spec, dtype="f8", dims=((1 << 61) - 1,)), 0)  # n * 8 + 64 is 56 modulo 2^64
    yield hostile("raw: size wraps around", seal(patch(huge, 16, "<Q", 56)))
    yield hostile("raw: size wraps around, as given", huge)


def directories() -> Iterator[Hostile]:
    """Section 4.2: three tiles, the words of the directory changed."""
    spec = replace(BASE, dims=(3 * 4096,))
    good = write_frame(spec, [ramp(spec)] * 384)
    words = list(struct.unpack_from("<4I", good, 64))
    last = words[3]

    def directory(name: str, *changed: int, families: tuple[str, ...] = (CORRUPT,)) -> Hostile:
        return hostile(f"directory: {name}", good[:64] + struct.pack("<4I", *changed) + good[80:], *families)

    yield directory("does not start at 0", 1, *words[1:])
    yield directory("starts at the end", last, last, last, last)
    yield directory("decreases", words[0], words[2], words[1], last)
    yield directory("decreases at its end", words[0], words[1], last + 1, last)
    yield directory("decreases by wrapping", words[0], 0x7FFFFFFF, words[2], last)
    yield directory("last word has bit 31", *words[:3], last | 1 << 31)
    yield directory("last word too small", *words[:3], last - 1)
    yield directory("last word too large", *words[:3], last + 1)
    yield directory("last word far too large", *words[:3], 0x7FFFFFFF)
    yield directory("middle offset too large", words[0], words[1] + 1, *words[2:])
    yield directory("middle offset too small", words[0], words[1], words[2] - 1, last)
    yield directory("first tile empty, not uniform", 0, 0, words[2], last)
    yield directory("all tiles empty, not uniform, but the last", 0, 0, 0, last)
    yield directory("a tile said to be uniform", words[0], words[1] | 1 << 31, *words[2:])
    far = seal(patch(good, 16, "<Q", 64 + 16 + 4 * 0x7FFFFFFF))
    yield hostile(
        "directory: far, and frame_bytes says so",
        far[:64] + struct.pack("<4I", *words[:3], 0x7FFFFFFF) + far[80:],
        TRUNCATED,
    )
    for name, cut in (("no directory", 64), ("half a directory", 72), ("one word short", 76)):
        yield hostile(f"directory: {name}", seal(patch(good[:cut], 16, "<Q", cut)))
    empty = write_frame(replace(BASE, dims=(0,)), [])
    yield hostile("directory: no values, but a tile", seal(patch(empty, 16, "<Q", 72))[:64] + struct.pack("<2I", 1, 0))
    yield hostile("directory: no values, but no directory", seal(patch(empty, 16, "<Q", 64))[:64])
    yield hostile("directory: no values, last word has bit 31", patch(empty, 64, "<I", 1 << 31))


def tiles() -> Iterator[Hostile]:
    """Sections 4.3 to 4.5: one tile of two blocks (f64: a 3-D one), broken."""
    good = tile_frame(BASE, tile_bytes(BASE, [ramp(BASE)] * 2))

    def tile(name: str, bytes_: bytes, spec: Spec = BASE, uniform: bool = False) -> Hostile:
        return hostile(f"tile: {name}", tile_frame(spec, bytes_, uniform))

    whole = good[72:]
    yield tile("one word too many", whole + bytes(4))
    yield tile("one word missing", whole[:-4])
    yield tile("only its rates", whole[:4])
    yield tile("not even its rates", b"")
    yield tile("padding is not zero", whole[:2] + b"\0\1" + whole[4:])
    yield tile("more planes than there are words", b"\x30" + whole[1:])
    for code in range(248, 255):
        yield tile(f"uniform {code}", bytes((code,)) + bytes(3) + bytes(64 * 4), uniform=True)
        yield tile(f"uniform {code} of its own size", bytes((code, 0, 0, 0)), uniform=True)
        yield tile(f"uniform {code} with descriptors", bytes((code, 0, 0, 0, 0, 0, 0, 0)) + bytes(24), uniform=True)
    yield tile("uniform, one word too many", bytes((8, 0, 0, 0)) + bytes(4 * 3), uniform=True)
    yield tile("uniform 0, one word too many", bytes(8), uniform=True)
    for inner in (247, 248, 250, 254, 255):
        yield tile(f"inner code {inner}", bytes((249, 0, inner, 0)) + bytes(4))
        yield tile(f"inner code {inner} of verbatim size", bytes((249, 0, inner, 0)) + bytes(4 * 33))
    for code in range(215, 247):
        planes = code - 182
        yield tile(f"{planes} planes of f32", bytes((code, 0, 0, 0)) + bytes(4 * planes))
        yield tile(f"{planes} planes of f32, inner", bytes((249, 0, code, 0)) + bytes(4 + 4 * planes))
        yield tile(f"{planes} planes of f32, uniform", bytes((code, 0, 0, 0)) + bytes(8 * planes), uniform=True)
        yield tile(f"{planes} planes of i16", bytes((code, 0, 0, 0)) + bytes(4 * planes), LOSSLESS)
    plain = replace(BASE, sentinel=None)
    for mask in (1, 3, 5, 7):
        words = bytes(4 * mask.bit_count())
        yield tile(f"masks {mask} without a sentinel", bytes((247 + mask, 0, 0, 0)) + words, plain)
    yield tile("code 247 without a sentinel", bytes((247, 0, 0, 0)), plain)
    yield tile("code 247 without a sentinel, uniform", bytes((247, 0, 0, 0)), plain, uniform=True)
    for mask in range(1, 8):
        for count, bits in ((1, 0), (255, 0), (0, 1), (3, 2), (2, 3), (33, 32), (255, 32)):
            if mask & 4 == 0 and bits > 0:
                continue
            words = bytes(4 * (mask & 3).bit_count())
            words += struct.pack("<I", (1 << bits) - 1) if mask & 4 else b""
            front = bytes((247 + mask, 0, 0, count))
            yield tile(f"masks {mask}, verbatim count {count} of {bits}", front + words + bytes(4 * count))
            yield tile(f"masks {mask}, verbatim count {count} of {bits}, short", front + words + bytes(4 * bits))
    for code in range(247, 256):
        for size in (0, 4, 8, 12, 16, 32, 64, 68, 128):
            yield tile(f"code {code} in a lossless frame, {size} bytes", bytes((code, 0, 0, 0)) + bytes(size), LOSSLESS)
        yield tile(f"code {code} in a lossless frame, uniform", bytes((code, 0, 0, 0)), LOSSLESS, uniform=True)
    one_block = replace(WIDE, dims=(3, 4, 4))
    for count in (1, 255):
        yield tile(f"f64: verbatim count {count} of none", bytes((251, 0, count, *bytes(9))), one_block)
    large = replace(BASE, dims=(4096,))
    every = Block(codes=[0] * 32, planes=32, verbatim={i: i for i in range(32)})
    yield tile("larger than any tile may be", tile_bytes(large, [every] * 128), large)
    yield tile("f64: verbatim block cut", bytes((255, *bytes(3 + 8 * 63))), one_block)


def tile_bytes(spec: Spec, blocks: list[Block]) -> bytes:
    """A tile that is in order."""
    parts = [write_block(block, spec) for block in blocks]
    front = (
        b"".join(bytes((code,)) for code, *_ in parts) + b"".join(p[1] for p in parts) + b"".join(p[2] for p in parts)
    )
    return front + bytes(-len(front) % 4) + b"".join(p[3] for p in parts)


def crafted() -> Iterator[Hostile]:
    """All frames that are wrong behind a right checksum."""
    makers: tuple[Callable[[], Iterator[Hostile]], ...] = (
        fields,
        directories,
        tiles,
        hostile_packed.crafted,
        hostile_streams.crafted,
        hostile_particles.crafted,
        hostile_progressive.crafted,
        hostile_adaptive.crafted,
        hostile_adaptive_parts.crafted,
        hostile_bins.crafted,
        hostile_derived.crafted,
    )
    for maker in makers:
        yield from maker()


def small_frames() -> Iterator[tuple[str, bytes]]:
    """Valid frames for `variants`: one with every part, a lossless, a raw and an empty one."""
    nan_and_more = replace(
        ramp(BASE), nan_mask=5, verbatim={3: 0x7F800000, 31: 1}, sentinel_mask=1 << 8, outlier_bytes=2, planes=3
    )
    yield "cuszp2", write_frame(BASE, [nan_and_more, ramp(BASE)])
    yield "3-D", write_frame(WIDE, [ramp(WIDE)] * 6)
    yield "lossless", write_frame(LOSSLESS, [ramp(LOSSLESS)] * 2)
    yield "raw", write_raw(replace(LOSSLESS, raw=True), list(range(40)))
    yield "empty", write_frame(replace(BASE, dims=(0,)), [])
    yield "scalar", write_frame(replace(LOSSLESS, dims=()), [ramp(LOSSLESS)])
    yield from hostile_packed.small_frames()
    yield from hostile_streams.small_frames()
    yield from hostile_particles.small_frames()
    yield from hostile_progressive.small_frames()
    yield from hostile_adaptive.small_frames()
    yield from hostile_adaptive_parts.small_frames()
    yield from itertools.islice(hostile_bins.small_frames(), 2)
    yield from hostile_derived.small_frames()


FIRST_STREAM_SEED = 300  # of mutated(), from which on frames are those of lorenzo: they take longer to write
FIRST_PARTICLE_SEED = 1000  # and from which on those of particles
FIRST_PROGRESSIVE_SEED = 2000  # and from which on those of progressive
FIRST_ADAPTIVE_SEED = 3000  # and from which on those of adaptive
FIRST_BINS_SEED = 4000  # and from which on those of lossless with bins
FIRST_PARTS_SEED = 5000  # and from which on those of adaptive with heads of parts


def mutated(seed: int) -> bytes:
    """A valid frame with one to three bytes changed behind its header: refused, or decoded alike by all decoders."""
    rng = random.Random(seed)
    while True:
        if seed >= FIRST_PARTS_SEED:
            _, frame, _ = adaptive_parts_writer.random_frame(rng)
        elif seed >= FIRST_BINS_SEED:
            _, frame, _ = bins_writer.random_frame(rng)
        elif seed >= FIRST_ADAPTIVE_SEED:
            _, frame, _ = adaptive_writer.random_frame(rng)
        elif seed >= FIRST_PROGRESSIVE_SEED:
            _, frame, _ = progressive_writer.random_frame(rng)
        elif seed >= FIRST_PARTICLE_SEED:
            _, frame, _ = particles_writer.random_frame(rng)
        elif seed >= FIRST_STREAM_SEED:
            _, frame, _ = stream_writer.random_frame(rng, (1 + seed % 4,))
        else:
            _, frame, _ = packed_choices.random_frame(rng, seed % 4 == 3) if seed % 2 else random_frame(rng)
        first, size = 8 * frame[7], len(frame)
        if size > first:
            break
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(first, min(size, first + 400) if rng.random() < 0.8 else size)
        old = frame[at]
        new = rng.choice((0, 1, 255, old ^ 1 << rng.randrange(8), (old + 1) % 256, rng.randrange(256), 247, 251))
        frame = frame[:at] + bytes((new,)) + frame[at + 1 :]
    return frame


def all_hostile() -> Iterator[Hostile]:
    """The whole list."""
    for name, frame in small_frames():
        for variant in variants(frame):
            yield replace(variant, name=f"{name}: {variant.name}")
    yield from crafted()
