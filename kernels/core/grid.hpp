// SPDX-License-Identifier: BSD-3-Clause
// Grids of blocks and tiles over an array (docs/format.md, sections 4.1, 7.1 and 12.1).
#pragma once

#include <cstdint>

#include "core/types.hpp"

namespace pyfilter {

// A grid of block tiles, of packed tiles (`packed`), or of tiles that are runs of values (tile_values is not 0). 1-D: n
// values in a row. Otherwise `outer` planes or volumes of nz * ny * nx values; nz is 1 for 2-D.
struct Grid {
  int block_dims = 1;  // packed tiles: the tile shape; runs: set by the codec
  bool packed = false;
  std::uint64_t values = 0, outer = 1, nz = 1, ny = 1, nx = 0;
  std::uint64_t gz = 1, gy = 1, gx = 0;  // blocks along each axis; packed: tiles
  std::uint64_t blocks = 0, tiles = 0;   // packed tiles: all their blocks, also absent ones
  std::uint64_t tile_values = 0;         // runs: values of a whole tile
  bool unordered = false;                // a range of values may lie in any of the tiles
};

Grid make_grid(const Shape& shape, std::uint64_t values, int block_dims) noexcept;
Grid make_packed_grid(const Shape& shape, std::uint64_t values, int tile_shape) noexcept;
Grid make_run_grid(std::uint64_t values, std::uint64_t tile_values) noexcept;

// Sets [*first, *last) to the tiles that hold the values [start, stop), start < stop. For 2-D and 3-D blocks the range
// may have more tiles.
void tiles_of_range(const Grid& grid, std::uint64_t start, std::uint64_t stop, std::uint64_t* first,
                    std::uint64_t* last) noexcept;

}  // namespace pyfilter
