# SPDX-License-Identifier: BSD-3-Clause
"""Reference decoder: section 14 of docs/format.md, adaptive frames.

adaptive_grid.py has the tiles of 14.1, adaptive_model.py 14.2 and 14.3, adaptive_unit.py 14.5. Neighbours: decoder.py
calls `decode_adaptive`; adaptive_writer.py and adaptive_parts_writer.py write what this reads.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .adaptive_grid import LINE, PARTS, PLANE, VOLUME, Grid, make_grid
from .adaptive_model import (
    LEVELS,
    NEAR,
    RANGES,
    Floats,
    Model,
    Pass,
    Tap,
    features,
    parse_model,
    refining_features,
)
from .adaptive_unit import Origin, Symbols, Unit
from .header import Header, require
from .parts import Array, parse_directory

Ints = NDArray[np.int64]

CODED, SENTINEL, STORED = 0, 1, 2  # kinds of values
TURNS = (0, 1, 2, 4, 3, 5, 6, 7)  # parities in the order of their turns, the known one first
FARTHEST, MOST_SIZE, TAME = 262143.0, 1 << 20, 2.0**64
LEAD_TRAIL = {PLANE: (4, 4), VOLUME: (2, 2), LINE: (24, 0)}


def fma(a: Array, b: Array, c: Array) -> Floats:
    """`a * b + c` of binary32, rounded once: the sum is rounded to odd before.

    That matters only to a sum half-way between two numbers of binary32, whose last 28 bits are 0 in f64.
    """
    p, c = a.astype(np.float64) * b, c.astype(np.float64)
    s = p + c
    if (s.view(np.int64) & 0xFFFFFFF).all():
        return s.astype(np.float32)
    t = s - p
    error = (p - (s - t)) + (c - t)
    nudge = np.isfinite(s) & np.isfinite(error) & (error != 0) & (s.view(np.int64) & 1 == 0)
    return np.where(nudge, np.nextafter(s, np.where(error > 0, np.inf, -np.inf)), s).astype(np.float32)


# ---- 14.4 Passes ----------------------------------------------------------------------------------------------------


class Lattice:
    """A pass over a tile: `v` and `sizes` of what is decoded, of its points. `when`: the step at which each is coded.

    The steps of a turn follow those of the turns before. Known points have step -1.
    """

    def __init__(self, p: Pass, kind: int, tile: Array, sizes: Array, kinds: Array, lengths: Ints) -> None:
        self.p, self.kind = p, kind
        stride = 1 << p.log2
        cut = (slice(None, None, stride if kind == VOLUME else 1), slice(None, None, stride if kind != LINE else 1))
        self.cut = (*cut, slice(None, None, stride))
        self.v, self.sizes, self.kinds = tile[self.cut], sizes[self.cut], kinds[self.cut]  # views
        self.lengths = -(-lengths[self.cut[1]] // stride)
        self.planes, self.rows, columns = self.v.shape
        lead, trail = LEAD_TRAIL[kind]
        self.period = lead + columns + trail
        self.taps = np.array(p.taps, np.int64).reshape(-1, 3)
        every: Array = np.indices(self.v.shape)
        self.z, self.y, self.x = every
        self.inside = self.x < self.lengths[self.y]
        self.parity = np.zeros_like(self.x)
        self.half, self.lane = np.zeros_like(self.x), self.y
        if p.refining:
            self.place()
        else:
            self.when = self.z * self.period + lead + self.x + (2 * self.y if kind != LINE else 0)
        self.masks = np.zeros((int(self.when.max()) + 1, 32), bool)  # [step, lane]; for pass 0 alone

    def place(self) -> None:
        """Parities, steps and lanes in a refining pass."""
        z, y, x = self.z, self.y, self.x
        deep, high = self.kind == VOLUME, self.kind != LINE
        self.parity = x % 2 + (y % 2 * 2 if high else 0) + (z % 2 * 4 if deep else 0)
        z, y, x = z // 2, y // 2 if high else y, x // 2
        planes, columns = -(-self.planes // 2), -(-self.v.shape[2] // 2)
        split = -(-(planes if deep else columns) // 2)
        if high:
            self.half = ((z if deep else x) >= split).astype(np.int64)
        step = (z - self.half * split) * (columns + 4) + x + y if deep else x - self.half * split + (y if high else 0)
        self.lane = 16 * self.half + y if high else y
        turn = np.argsort(TURNS)[self.parity]
        self.when = np.where(self.parity == 0, -1, step + turn * (int(step.max()) + 1))

    def turns(self) -> Iterator[tuple[int, Ints, Ints, Ints]]:
        """Steps, and what is coded in each: z, y, x."""
        chosen = self.inside & (self.when >= 0)
        coordinates = np.array([self.z[chosen], self.y[chosen], self.x[chosen]])
        steps = self.when[chosen]
        order = np.lexsort((self.lane[chosen], steps))
        steps, coordinates = steps[order], coordinates[:, order]
        for step in sorted(set(steps.tolist())):
            cz, cy, cx = coordinates[:, slice(*np.searchsorted(steps, [step, step + 1]))]
            yield step, cz, cy, cx

    def at(self, z: Ints, y: Ints, x: Ints, taps: Ints) -> tuple[tuple[Ints, Ints, Ints], NDArray[np.bool_]]:
        """Where the neighbours are that stand for `taps`, [lane, tap], and whether they are inside and decoded."""
        nz, ny, nx = z[:, None] + taps[:, 0], y[:, None] + taps[:, 1], x[:, None] + taps[:, 2]
        out = (nz < 0) | (nz >= self.planes) | (ny < 0) | (ny >= self.rows)
        nz, ny = np.minimum(np.maximum(nz, 0), self.planes - 1), np.minimum(np.maximum(ny, 0), self.rows - 1)
        ends = self.lengths[ny]
        out |= (nx < 0) | (nx >= ends)
        nx = np.minimum(np.maximum(nx, 0), ends - 1)
        if self.p.refining:
            same = self.parity[nz, ny, nx] == self.parity[z, y, x][:, None]
            out |= same & (self.when[nz, ny, nx] >= self.when[z, y, x][:, None])
            nx = nx - nx % 2 * out
            ny = ny - ny % 2 * out if self.kind != LINE else ny
            nz = nz - nz % 2 * out if self.kind == VOLUME else nz
        return (nz, ny, nx), ~out

    def values(self, z: Ints, y: Ints, x: Ints, taps: list[Tap]) -> Floats:
        found: Floats = self.v[self.at(z, y, x, np.array(taps, np.int64).reshape(-1, 3))[0]]
        return found

    def expect(self, z: Ints, y: Ints, x: Ints) -> tuple[Floats, Ints]:
        """Predictions and levels."""
        p, lanes = self.p, np.arange(z.size)
        own = np.zeros_like(z)
        if p.refining:
            own = self.parity[z, y, x]
            near = self.values(z, y, x, [(0, 0, -1), (0, 0, 1), (0, -1, 0), (0, 1, 0), (-1, 0, 0), (1, 0, 0)])
            odd = (own[:, None] >> np.arange(6) // 2 & 1) == 1
            highest = np.where(odd, near, -np.inf).max(axis=1)
            lowest = np.where(odd, near, np.inf).min(axis=1)
            ranges = highest.astype(np.float32) - lowest.astype(np.float32)
            first = np.argmax(odd[:, ::2], axis=1)
            rest = near[lanes, 2 * first]
        else:
            near = self.values(z, y, x, RANGES[self.kind])
            ranges, rest = near.max(axis=1) - near.min(axis=1), near[:, 0]
        classes = np.zeros_like(z)
        for threshold in p.thresholds:
            classes += ~(ranges < threshold)
        sets = own + 8 * classes if p.refining else classes
        border = np.zeros(z.shape, bool)
        if not p.refining:
            b = (x == 0) + 2 * ((y == 0) & (self.kind != LINE)) + 4 * ((z == 0) & (self.kind == VOLUME))
            border = b > 0
            sets = np.where(border, 8 + b, sets)
        v = self.v[self.at(z, y, x, self.taps)[0]]
        prediction = np.zeros(z.shape, np.float32)
        for i in range(len(p.taps)):
            prediction = fma(p.weights[sets, i], v[:, i], prediction)
        distances = np.abs(prediction - rest)
        ranges, distances = (np.where(border, np.float32(0), a) for a in (ranges, distances))
        scales = p.scales[own]
        where, inside = self.at(z, y, x, np.array(self.features_of(int(own[0])), np.int64))
        sizes = np.where(inside, self.sizes[where], 0).astype(np.float32)
        m = scales[:, 18]
        for i in reversed(range(sizes.shape[1])):
            m = fma(scales[:, i], sizes[:, i], m)
        m = fma(scales[:, 16], ranges, m)
        m = fma(scales[:, 17], distances, m)
        m = (m * p.factors[sets]).astype(np.float32)
        return prediction, np.clip((m.view(np.int32) >> 21) - 484, 0, LEVELS - 1)

    def mean(self, z: int, y: int, x: int) -> float:
        """Of a value that is not coded."""

        def v(*tap: int) -> float:
            found = self.values(np.array([z]), np.array([y]), np.array([x]), [(tap[0], tap[1], tap[2])])
            return float(found[0, 0])

        if self.p.refining:
            i = 0 if x % 2 else 1 if y % 2 and self.kind != LINE else 2
            (bz, by, bx) = NEAR[i]
            a, b = v(bz, by, bx), v(-bz, -by, -bx)
        elif self.kind == LINE:
            a = b = v(0, 0, -1) if x > 0 else 0.0
        elif x == 0 and y == 0:
            a = b = v(-1, 0, 0) if z > 0 else 0.0
        else:
            a = v(0, 0, -1) if x > 0 else v(0, -1, 0)
            b = v(0, -1, 0) if y > 0 else a
        return float(np.float32(a + b)) * 0.5  # the sum of two binary32 in f64, rounded: as in binary32

    def features_of(self, parity: int) -> list[Tap]:
        """Neighbours whose codes count."""
        return refining_features(self.kind, parity) if self.p.refining else features(self.kind)

    def context(self, step: int, z: int, y: int, x: int) -> int:
        """Of a flag."""
        if self.p.refining:
            taps = np.array(self.features_of(int(self.parity[z, y, x]))[:6], np.int64)
            where, known = self.at(np.array([z]), np.array([y]), np.array([x]), taps)
            special = known & (self.kinds[where] == SENTINEL) & (self.half[where] == self.half[z, y, x])
            return sum(1 << i for i, flag in enumerate(special[0]) if flag)
        if self.kind == LINE:
            near = [(i, y) for i in range(1, 7)]
        else:
            near = [(1, y), (2, y - 1), (1, y - 1), (3, y - 1), (2, y)]
            near += [(self.period, y) if self.kind == VOLUME else (4, y - 2)]
        return sum(1 << i for i, (s, lane) in enumerate(near) if lane >= 0 and step >= s and self.masks[step - s, lane])


def decode_tile(places: Ints, unit: Symbols, has_masks: bool, model: Model, grid: Grid, offset: float) -> Array:
    """Bit patterns of a tile's values, by place."""
    header = unit.header
    tile, sizes, kinds = (np.zeros(places.shape, t) for t in (np.float32, np.int64, np.int64))
    exact = np.zeros(places.shape, header.dtype)
    lengths = (places >= 0).sum(axis=2)[0]
    for p in model.passes:
        lattice = Lattice(p, grid.kind, tile, sizes, kinds, lengths)
        stored_values = exact[lattice.cut]
        for step, z, y, x in lattice.turns():
            special = np.zeros(z.shape, bool)
            lanes = lattice.lane[z, y, x].tolist()
            if has_masks:
                for i, lane in enumerate(lanes):
                    frequency = model.mask_frequencies[lattice.context(step, int(z[i]), int(y[i]), int(x[i]))]
                    special[i] = unit.flag(lane, frequency)
            if not p.refining:
                lattice.masks[step, y[special]] = True
            prediction, levels = lattice.expect(z, y, x)
            coded = np.flatnonzero(~special)
            tables = [model.tables[model.table_of_level[level]] for level in levels[coded]]
            residuals, stored = unit.residuals([lanes[i] for i in coded], tables)
            new = np.zeros(z.shape, np.float32)
            codes = np.zeros(z.shape, np.int64)
            for i, lane in enumerate(lanes):
                at = z[i], y[i], x[i]
                if special[i]:
                    new[i], lattice.kinds[at] = lattice.mean(*(int(c) for c in at)), SENTINEL
                elif lane in residuals:
                    residual = residuals[lane]
                    codes[i] = residual >> 1 ^ -(residual & 1)
                elif isinstance(stored[lane], Origin):
                    new[i] = stored[lane].r
                else:
                    stored_values[at], lattice.kinds[at] = stored[lane], STORED
                    r = np.float32((np.float64(stored[lane]) - offset) * (1 / header.step))
                    new[i] = r if abs(r) < FARTHEST else lattice.mean(*(int(c) for c in at))
            is_code = np.array([lane in residuals for lane in lanes])
            reconstructed = fma(codes.astype(np.float32), np.full(z.shape, p.unit, np.float32), prediction)
            lattice.v[z, y, x] = np.where(is_code, reconstructed, new)
            lattice.sizes[z, y, x] = np.minimum(np.abs(codes), MOST_SIZE)
    require(bool((np.abs(tile[places >= 0]) < TAME).all()), "a value that is too large")
    values = (offset + header.step * tile.astype(np.float64)).astype(header.dtype)
    pattern = np.dtype(f"<u{header.dtype.itemsize}")
    values, exact = values.view(pattern), exact.view(pattern)
    values[kinds == SENTINEL] = header.sentinel
    found: Array = np.where(kinds == STORED, exact, values)
    return found


def states_of(grid: Grid, model: Model) -> int:
    """The number of states of a unit."""
    return 32 if len(model.passes) > 1 and grid.kind != LINE else grid.most_rows


# ---- 14.1 Payload ---------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A part of a payload, or a payload that has no heads."""

    grid: Grid
    unit_log2: int
    data: bytes  # from its offset on


def payload_parts(frame: bytes, header: Header) -> list[Part]:
    """What a payload is made of."""
    start, grid = header.header_bytes, make_grid(header.dims, header.parameters[1])
    if header.parameters[1] != PARTS:
        return [Part(grid, header.parameters[2], frame[start:])]
    at = start + 8 * grid.part_count
    require(at <= len(frame), "no room for the heads of parts")
    found = []
    for number, (bits, words) in enumerate(struct.iter_unpack("<2I", frame[start:at])):
        row, rows, unit_log2 = bits & 0xFFFF, bits >> 16 & 0x1FFF, bits >> 29
        require(grid.allows(row, rows), f"part {number} has rows of {row}, planes of {rows} rows")
        require(unit_log2 <= 4, f"part {number} has units of 2^{unit_log2} tiles")
        require(at + 4 * words <= len(frame), f"no room for part {number}")
        found.append(Part(grid.of_part(number, row, rows), unit_log2, frame[at : at + 4 * words]))
        at += 4 * words
    require(at == len(frame), "parts do not fill the payload")
    return found


def decode_part(part: Part, header: Header, found: Array) -> None:
    """Put its values into `found`, the bit patterns of all values."""
    grid, unit_log2, data = part
    require(len(data) >= 8, "no room for an offset")
    offset = float(np.frombuffer(data, "<f8", 1)[0])
    require(math.isfinite(offset), f"offset {offset}")
    model = parse_model(data, header, grid.kind, 8)
    start, per_unit = 8 + 4 * model.words, 1 << unit_log2
    offsets, uniform = parse_directory(data, header, start, -(-grid.tiles // per_unit))
    require(not uniform.any(), "a uniform unit")
    start += 4 * offsets.size
    unit: Unit | None = None
    for number, places in enumerate(grid.places() if grid.tiles else ()):
        if number % per_unit == 0:
            if unit is not None:
                unit.end()
            first, last = (start + 4 * int(offset_) for offset_ in offsets[number // per_unit :][:2])
            tiles = min(per_unit, grid.tiles - number)
            unit = Unit(data[first:last], states_of(grid, model), tiles, model, header)
        assert unit is not None
        has_masks = bool(unit.masks >> number % per_unit & 1)
        values = decode_tile(places, unit, has_masks, model, grid, offset)
        kept = (places >= 0) & (places < found.size)
        found[places[kept]] = values[kept]
    if unit is not None:
        unit.end()


def decode_adaptive(frame: bytes, header: Header) -> Array:
    """The payload of an adaptive frame."""
    require(np.dtype(header.dtype).kind == "f", f"an adaptive frame of {header.dtype}")
    found = np.zeros(header.value_count, f"<u{header.dtype.itemsize}")
    with np.errstate(all="ignore"):
        for part in payload_parts(frame, header):
            decode_part(part, header, found)
    return found.view(header.dtype).reshape(header.dims)
