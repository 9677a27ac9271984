# SPDX-License-Identifier: BSD-3-Clause
"""Tiles for packed_writer.py as our encoder chooses them (docs/format.md, sections 7.2 and 7.5), from an array.

Given the header of a frame of the library it makes the same frame, byte by byte, so that the page says all that there
is to know about our encoder's tiles. Slow and plain, as packed_writer.py; neighbour: packed_choices.py.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .encoder import Spec
from .packed_writer import (
    EXTENTS,
    Block,
    Codes,
    Tile,
    block_positions,
    code_value,
    fewest_planes,
    present,
    residuals,
    tile_positions,
    write_tile,
)

ORDINARY, MISSING, NAN, VERBATIM, ZERO = range(5)

# ---- Values ---------------------------------------------------------------------------------------------------------


class Value(NamedTuple):
    """What a value is to an encoder."""

    bits: int
    kind: int
    code: int  # of ordinary ones
    negative: bool  # where signs are masks


def sorted_out(number: float, bits: int, spec: Spec) -> Value:
    """A value and its kind."""
    top = 8 * spec.value_bytes - 1
    if spec.dtype[0] != "f":
        return sorted_integer(int(number), bits, spec)
    if spec.exact:  # the way back from section 6, lossless
        return Value(bits, ORDINARY, bits if bits >> top == 0 else bits ^ ((1 << top) - 1), False)
    nan = 0x7FC00000 if spec.value_bytes == 4 else 0x7FF8000000000000
    if bits in (spec.sentinel, nan):
        return Value(bits, MISSING if bits == spec.sentinel else NAN, 0, False)
    negative = spec.pointwise and bits >> top == 1
    if spec.pointwise and number == 0:
        return Value(bits, ZERO, 0, negative)
    q = code_of(abs(number) if spec.pointwise else number, spec, negative)
    return Value(bits, VERBATIM, 0, False) if q is None else Value(bits, ORDINARY, q, negative)


def sorted_integer(number: int, bits: int, spec: Spec) -> Value:
    """The same of an integer."""
    if bits == spec.sentinel:
        return Value(bits, MISSING, 0, False)
    step = int(spec.step) or 1
    q, rest = divmod(abs(number), step)
    q += 2 * rest > step  # half-way between two, as with even steps only, to the lower one
    q = (q if number >= 0 else -q) % (1 << spec.code_bits)
    return Value(bits, VERBATIM if code_value(q, spec) == spec.sentinel else ORDINARY, q, False)


@lru_cache(1 << 16)
def code_of(number: float, spec: Spec, negative: bool) -> int | None:
    """The nearest code; None where the value is not finite, or missed by more than the bound."""
    if not math.isfinite(number):
        return None
    steps = Fraction(math.log2(number) if spec.pointwise else number) / Fraction(spec.step)
    q = round(steps) % (1 << spec.code_bits)
    found = code_value(q, spec)
    if found is None:
        return None
    form, word = ("<f", "<I") if spec.value_bytes == 4 else ("<d", "<Q")
    (decoded,) = struct.unpack(form, struct.pack(word, found))
    bound = Fraction(spec.bound) * (Fraction(number) if spec.pointwise else 1)
    close = math.isfinite(decoded) and abs(Fraction(decoded) - Fraction(number)) <= bound
    return q if close and found | negative << spec.code_bits - 1 != spec.sentinel else None


def padded(where: list[int | None], spec: Spec) -> list[int]:
    """The positions of a tile with the array's edge repeated as padding: along x, then y, then z."""
    extents = EXTENTS[spec.tile_shape][0]
    index = np.array([-1 if i is None else i for i in where]).reshape(extents)
    for axis in (2, 1, 0):
        inside = int((np.moveaxis(index, axis, 0)[:, 0, 0] >= 0).sum())
        index = np.take(index, np.minimum(np.arange(extents[axis]), inside - 1), axis)
    return [int(i) for i in index.reshape(-1)]


# ---- 7.5 Codes that are not seen ------------------------------------------------------------------------------------


def lines_of(spec: Spec) -> list[list[list[int]]]:
    """Lines by the group in which they stand in for each other: slabs; columns; a chain is one."""
    _, ny, nx = EXTENTS[spec.tile_shape][0]
    if spec.tile_shape in (2, 3):
        rows = np.arange(4096).reshape(-1, ny, nx)
        return [[[int(at) for at in row] for row in slab] for slab in rows]
    blocks = block_positions(spec.tile_shape)
    return [blocks] if spec.tile_shape == 1 else [blocks[i : i + 32] for i in range(0, 128, 32)]


def fill(codes: list[int], seen: list[bool], spec: Spec) -> None:
    """Put codes where none is seen."""
    groups = lines_of(spec)
    rows = spec.tile_shape in (2, 3)
    filled = [[any(seen[at] for at in line) for line in group] for group in groups]
    for group in groups:
        for line in group:
            known = [at for at in line if seen[at]]
            last = codes[known[0]] if known else 0
            for at in line:
                codes[at] = last = codes[at] if seen[at] else last
    for g, group in enumerate(groups):
        other = g if any(filled[g]) or not rows else nearest([any(has) for has in filled], g)
        for y, line in enumerate(group):
            if filled[g][y] or other is None:
                continue
            source = y if filled[other][y] else nearest(filled[other], y)
            if source is None:
                continue
            for i, at in enumerate(line):
                codes[at] = codes[groups[other][source][i if rows else 31 if source < y else 0]]


def nearest(has: list[bool], here: int) -> int | None:
    """The last one before, else the first."""
    before, after = [i for i in range(here) if has[i]], [i for i in range(here, len(has)) if has[i]]
    return before[-1] if before else after[0] if after else None


# ---- 7.2 Tiles ------------------------------------------------------------------------------------------------------


def tiles_of_values(spec: Spec, values: NDArray[Any]) -> Iterator[Tile]:
    """Tiles that keep the spec's bound."""
    flat = np.ascontiguousarray(values).reshape(-1)
    patterns = flat.view(f"u{spec.value_bytes}").tolist()
    found = [sorted_out(number, bits, spec) for number, bits in zip(flat.tolist(), patterns, strict=True)]
    for where in tile_positions(spec):
        yield tile_of_values([found[i] for i in padded(where, spec)], spec, present(where, spec))


def tile_of_values(values: list[Value], spec: Spec, among: list[int]) -> Tile:
    """One tile of the values of its positions, padding included."""
    codes, seen = [v.code for v in values], [v.kind == ORDINARY for v in values]
    if not all(seen):
        fill(codes, seen, spec)
    tile = Tile(codes=code_array(codes))
    if all(values[at].kind == MISSING for b in among for at in block_positions(spec.tile_shape)[b]):
        tile = replace(tile, all_missing=True)
    else:
        tile = with_masks(tile, values, spec, among)
    if spec.outliers == 1:
        tile = with_exceptions(tile, spec, among)
    written = write_tile(tile, spec, among)
    if len(written) > 4 + len(among) * 32 * spec.value_bytes:
        return Tile(verbatim=[v.bits for v in values])
    return replace(tile, empty=written == bytes(4))


def code_array(codes: list[int]) -> Codes:
    return np.array(codes, np.uint64)


def with_masks(tile: Tile, values: list[Value], spec: Spec, among: list[int]) -> Tile:
    """The tile with what is not ordinary in each block, and with the sign that fewer blocks have noted."""
    here = {b: [values[at] for at in block_positions(spec.tile_shape)[b]] for b in among}
    signed = {b: [v.kind in (ORDINARY, ZERO) for v in block] for b, block in here.items()}
    negative = {b: mask(v.negative for v in block) for b, block in here.items()}
    others = {b: mask(s and not v.negative for s, v in zip(signed[b], here[b], strict=True)) for b in among}
    flip = sum(m != 0 for m in negative.values()) > sum(m != 0 for m in others.values())
    blocks = {}
    for b, block in here.items():
        verbatim = {i: v.bits for i, v in enumerate(block) if v.kind == VERBATIM}
        blocks[b] = Block(
            missing=mask(v.kind == MISSING for v in block),
            nan_mask=mask(v.kind == NAN for v in block) or None,
            verbatim=verbatim or None,
            zero_mask=mask(v.kind == ZERO for v in block) or None,
            negative_mask=(others if flip else negative)[b] or None,
        )
    return replace(tile, blocks=blocks, negative=flip)


def mask(bits: Iterator[bool]) -> int:
    """Bit i for the i-th."""
    return sum(1 << i for i, bit in enumerate(bits) if bit)


def with_exceptions(tile: Tile, spec: Spec, among: list[int]) -> Tile:
    """The tile with the widest residual of a block apart where that saves planes, if it does so for the tile."""
    z = residuals(tile.codes, spec)
    z[0][0] = tile.ignored
    blocks, saved = dict(tile.blocks), 0
    for b in among:
        block = replace(tile.block(b), exception=max(range(32), key=z[b].__getitem__))
        fewer = fewest_planes(z[b], tile.block(b)) - fewest_planes(z[b], block)
        if fewer > 0:
            saved += 32 * fewer - 16
            blocks[b] = block
    return replace(tile, blocks=blocks) if saved > 128 else tile
