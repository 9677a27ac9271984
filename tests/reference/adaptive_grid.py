# SPDX-License-Identifier: BSD-3-Clause
"""Reference decoder: section 14.1 of docs/format.md, the tiles of adaptive frames.

Neighbours: header.py needs the least size of a payload, adaptive.py the tiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

LINE, PLANE, VOLUME = 1, 2, 3
MOST_X = {LINE: 32768, PLANE: 1024, VOLUME: 64}
MOST_ROWS, MOST_PLANES, SHORTEST_ROW, FEWEST_COLUMNS = 32, 32, 64, 8
ACROSS, PARTS = 1, 2  # axes (parameter byte 1)
LEAST_ROW, LEAST_ROWS, MOST_LAG = 32, 8, 65535  # of folded lines


@dataclass(frozen=True)
class Grid:
    """How an array, or one component of it, is cut into tiles."""

    dims: tuple[int, ...]  # that are left
    components: int
    axes: int
    row: int = 0  # of folded lines, as the next one
    rows: int = 0  # 0: planes
    part: int | None = None  # the component, where it is one alone

    @property
    def values(self) -> int:
        """Of a component."""
        return math.prod(self.dims) if self.components else 0

    @property
    def part_count(self) -> int:
        """Parts of a payload with heads."""
        return self.components if self.values else 1

    def allows(self, row: int, rows: int) -> bool:
        """Whether a part can have these axes."""
        if row == 0:
            return rows == 0 or (rows == 1 and len(self.dims) >= 4 and self.values > 0)
        lag = row * max(rows, 1)
        folded = row >= LEAST_ROW and (rows == 0 or rows >= LEAST_ROWS) and lag <= min(MOST_LAG, self.values // 2)
        return self.kind == LINE and folded

    def of_part(self, part: int, row: int, rows: int) -> Grid:
        """The grid of a component with these axes."""
        if self.values == 0:
            return Grid((0,), 1, 0, part=0)
        if row == 0:
            return replace(self, axes=rows, part=part)
        return replace(self, row=row, rows=rows, part=part)

    @property
    def kind(self) -> int:
        if self.row > 0:
            return PLANE if self.rows == 0 else VOLUME
        return LINE if 0 in self.dims or self.components == 0 else min(max(len(self.dims), 1), 3)

    @property
    def extents(self) -> tuple[int, int, int, int]:
        """Volumes, z, y, x."""
        if self.row > 0:
            planes = -(-self.values // (self.row * self.rows)) if self.rows > 0 else 1
            return 1, planes, self.rows or -(-self.values // self.row), self.row
        if self.kind == LINE:
            return 1, 1, 1, math.prod(self.dims)
        if self.kind == PLANE:
            return 1, 1, *self.dims  # type: ignore[return-value]
        *others, third, y, x = self.dims
        if self.axes == 0:
            return math.prod(others), third, y, x
        return math.prod(others[:-1]) * third, others[-1], y, x

    @property
    def parts(self) -> tuple[int, int, int]:
        """Along z, y, x."""
        _, z, y, x = self.extents
        return -(-z // MOST_PLANES), -(-y // MOST_ROWS), -(-x // MOST_X[self.kind])

    @property
    def tiles(self) -> int:
        components = self.components if self.part is None else 1
        return components * self.extents[0] * math.prod(self.parts)

    @property
    def most_rows(self) -> int:
        """Rows of the largest tile."""
        _, _, y, x = self.extents
        if self.tiles == 0:
            return 0
        if self.kind != LINE:
            return -(-y // self.parts[1])
        longest = -(-x // self.parts[2])
        return -(-longest // row_length(longest))

    def places(self) -> Iterator[NDArray[np.int64]]:
        """Of each tile the positions of its values in the array: (planes, rows, columns), -1 where a row is shorter.

        Positions behind the last value of the array are those of places that a folded line does not fill.
        """
        volumes, z, y, x = self.extents
        index = np.arange(self.components * volumes * z * y * x).reshape(-1, self.components).T
        if self.axes == ACROSS:
            index = index.reshape(self.components, -1, z, self.dims[-3], y, x).swapaxes(2, 3)
        index = index.reshape(self.components, volumes, z, y, x)
        components = range(self.components) if self.part is None else (self.part,)
        for volume in range(volumes):
            for in_z in cuts(z, self.parts[0]):
                for in_y in cuts(y, self.parts[1]):
                    for in_x in cuts(x, self.parts[2]):
                        for component in components:
                            tile: NDArray[Any] = index[component, volume, in_z, in_y, in_x]
                            yield rows_of_line(tile) if self.kind == LINE else tile


def cuts(n: int, count: int) -> Iterator[slice]:
    for i in range(count):
        yield slice(i * n // count, (i + 1) * n // count)


def row_length(values: int) -> int:
    """Of a part of a line."""
    return max(-(-values // 32), SHORTEST_ROW)


def rows_of_line(tile: NDArray[Any]) -> NDArray[Any]:
    flat = tile.reshape(-1)
    length = row_length(flat.size)
    return np.pad(flat, (0, -flat.size % length), constant_values=-1).reshape(1, -1, length)


def make_grid(dims: tuple[int, ...], axes: int) -> Grid:
    """The grid of all components; of a payload with heads what `of_part` begins with."""
    left = [size for size in dims if size != 1]
    components = left.pop() if len(left) > 1 and left[-1] < FEWEST_COLUMNS else 1
    while len(left) > 1 and left[-1] < FEWEST_COLUMNS:
        left[-2:] = [left[-2] * left[-1]]
    return Grid(tuple(left), components, axes if axes == ACROSS else 0)


def least_bytes(dims: tuple[int, ...], axes: int, unit_log2: int) -> int:
    """Section 2: the fewest bytes of a payload."""
    grid = make_grid(dims, axes)
    if axes == PARTS:
        return 28 * grid.part_count + 12 * -(-math.prod(dims) // (1 << 20))
    return 20 + -(-grid.tiles // (1 << unit_log2)) * (8 + 4 * -(-5 * grid.most_rows // 32))
