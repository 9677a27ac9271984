# SPDX-License-Identifier: BSD-3-Clause
"""Reference decoder: section 14.1 of docs/format.md, the tiles of adaptive frames.

Neighbours: header.py needs the number of units, adaptive.py the tiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LINE, PLANE, VOLUME = 1, 2, 3
MOST_X = {LINE: 32768, PLANE: 1024, VOLUME: 64}
MOST_ROWS, MOST_PLANES, SHORTEST_ROW, FEWEST_COLUMNS = 32, 32, 64, 8


@dataclass(frozen=True)
class Grid:
    """How an array is cut into tiles."""

    dims: tuple[int, ...]  # that are left
    components: int
    axes: int

    @property
    def kind(self) -> int:
        return LINE if 0 in self.dims or self.components == 0 else min(max(len(self.dims), 1), 3)

    @property
    def extents(self) -> tuple[int, int, int, int]:
        """Volumes, z, y, x."""
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
        return self.components * self.extents[0] * math.prod(self.parts)

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
        """Of each tile the positions of its values in the array: (planes, rows, columns), -1 where a row is shorter."""
        volumes, z, y, x = self.extents
        index = np.arange(self.components * volumes * z * y * x).reshape(-1, self.components).T
        if self.axes == 1:
            index = index.reshape(self.components, -1, z, self.dims[-3], y, x).swapaxes(2, 3)
        index = index.reshape(self.components, volumes, z, y, x)
        for volume in range(volumes):
            for in_z in cuts(z, self.parts[0]):
                for in_y in cuts(y, self.parts[1]):
                    for in_x in cuts(x, self.parts[2]):
                        for component in range(self.components):
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
    left = [size for size in dims if size != 1]
    components = left.pop() if len(left) > 1 and left[-1] < FEWEST_COLUMNS else 1
    while len(left) > 1 and left[-1] < FEWEST_COLUMNS:
        left[-2:] = [left[-2] * left[-1]]
    return Grid(tuple(left), components, axes)
