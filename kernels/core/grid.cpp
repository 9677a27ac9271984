// SPDX-License-Identifier: BSD-3-Clause
// Grids over a shape (grid.hpp).
#include "core/grid.hpp"

#include "core/tile_shape.hpp"

namespace pyfilter {

Grid make_grid(const Shape& shape, std::uint64_t values, int block_dims) noexcept {
  Grid grid;
  grid.block_dims = block_dims;
  grid.values = values;
  if (values == 0) return grid;
  const auto blocks_along = [](std::uint64_t n, std::uint64_t block) { return n / block + (n % block != 0 ? 1 : 0); };
  std::uint64_t tile_blocks = 4096 / 32;
  if (block_dims == 1) {
    grid.nx = values;
    grid.gx = blocks_along(values, 32);
  } else {
    const std::uint64_t side = block_dims == 2 ? 8 : 4;
    const auto dim_from_end = [&](int k) { return shape.dims[static_cast<std::size_t>(shape.rank - k)]; };
    grid.nx = dim_from_end(1);
    grid.ny = dim_from_end(2);
    grid.nz = block_dims == 3 ? dim_from_end(3) : 1;
    grid.outer = values / (grid.nx * grid.ny * grid.nz);
    grid.gx = blocks_along(grid.nx, side);
    grid.gy = blocks_along(grid.ny, side);
    grid.gz = block_dims == 3 ? blocks_along(grid.nz, side) : 1;
    tile_blocks = 4096 / 64;
  }
  // where dimensions are short, padded blocks are larger than the array: saturate, and the encoder stores raw values
  if (__builtin_mul_overflow(grid.gx * grid.gy, grid.gz, &grid.blocks) ||
      __builtin_mul_overflow(grid.blocks, grid.outer, &grid.blocks))
    grid.blocks = ~std::uint64_t{0} / 2;
  grid.tiles = blocks_along(grid.blocks, tile_blocks);
  return grid;
}

Grid make_packed_grid(const Shape& shape, std::uint64_t values, int tile_shape) noexcept {
  Grid grid;
  grid.block_dims = tile_shape;
  grid.packed = true;
  grid.values = values;
  if (values == 0) return grid;
  const auto dim_from_end = [&](int k) { return shape.dims[static_cast<std::size_t>(shape.rank - k)]; };
  grid.nx = tile_shape == kChain ? values : dim_from_end(1);
  grid.ny = tile_shape == kChain ? 1 : tile_shape == kColumns ? values / grid.nx : dim_from_end(2);
  grid.nz = tile_shape == kVolume ? dim_from_end(3) : 1;
  grid.outer = values / (grid.nx * grid.ny * grid.nz);
  const TileExtent tile = kTileExtents[tile_shape];
  const auto tiles_along = [](std::uint64_t n, std::uint64_t side) { return n / side + (n % side != 0 ? 1 : 0); };
  grid.gx = tiles_along(grid.nx, tile.x);
  grid.gy = tiles_along(grid.ny, tile.y);
  grid.gz = tiles_along(grid.nz, tile.z);
  // as for blocks: saturate
  if (__builtin_mul_overflow(grid.gx * grid.gy, grid.gz, &grid.tiles) ||
      __builtin_mul_overflow(grid.tiles, grid.outer, &grid.tiles) || grid.tiles > ~std::uint64_t{0} / 256)
    grid.tiles = ~std::uint64_t{0} / 256;
  grid.blocks = grid.tiles * 128;
  return grid;
}

Grid make_run_grid(std::uint64_t values, std::uint64_t tile_values) noexcept {
  Grid grid;
  grid.values = values;
  grid.tile_values = tile_values;
  grid.tiles = values / tile_values + (values % tile_values != 0 ? 1 : 0);
  return grid;
}

namespace {

// Finds the tiles of a range of values from the rows of tiles; rows of values and rows of tiles have the same order.
void packed_tiles_of_range(const Grid& g, std::uint64_t start, std::uint64_t stop, std::uint64_t* first,
                           std::uint64_t* last) {
  const TileExtent tile = kTileExtents[g.block_dims];
  const auto row_of = [&](std::uint64_t index, bool end) {  // first or last row of tiles that may hold a value
    const std::uint64_t row = index / g.nx, y = row % g.ny, plane = row / g.ny, z = plane % g.nz;
    const std::uint64_t slab = plane / g.nz * g.gz + z / tile.z;
    // the planes of a slab share its tiles: the value may be in any row of the slab
    const bool whole = g.block_dims == kVolume;
    return slab * g.gy + (whole ? (end ? g.gy - 1 : 0) : y / tile.y);
  };
  if (g.block_dims == kChain) {
    *first = start / tile.x;
    *last = (stop - 1) / tile.x + 1;
    return;
  }
  *first = row_of(start, false) * g.gx;
  *last = (row_of(stop - 1, true) + 1) * g.gx;
}

}  // namespace

void tiles_of_range(const Grid& g, std::uint64_t start, std::uint64_t stop, std::uint64_t* first,
                    std::uint64_t* last) noexcept {
  if (g.unordered) {
    *first = 0;
    *last = g.tiles;
    return;
  }
  if (g.tile_values != 0) {
    *first = start / g.tile_values;
    *last = (stop - 1) / g.tile_values + 1;
    return;
  }
  if (g.packed) {
    packed_tiles_of_range(g, start, stop, first, last);
    return;
  }
  if (g.block_dims == 1) {
    *first = start / 4096;
    *last = (stop - 1) / 4096 + 1;
    return;
  }
  const std::uint64_t side = g.block_dims == 2 ? 8 : 4, slab = g.block_dims == 2 ? 1 : side;
  // rows of blocks (outer, bz, by) are in the order of their rows of values. Exception: the `slab` planes of a slab
  // share the same rows of blocks
  const auto slab_of = [&](std::uint64_t row) { return row / g.ny / g.nz * g.gz + row / g.ny % g.nz / slab; };
  const std::uint64_t row0 = start / g.nx, row1 = (stop - 1) / g.nx;
  std::uint64_t by0 = 0, by1 = g.gy - 1;
  if (g.block_dims == 2 || row0 / g.ny == row1 / g.ny) {  // one plane, or planes whose blocks are in row order
    by0 = row0 % g.ny / side;
    by1 = row1 % g.ny / side;
  }
  *first = (slab_of(row0) * g.gy + by0) * g.gx / 64;
  *last = ((slab_of(row1) * g.gy + by1 + 1) * g.gx - 1) / 64 + 1;
}

}  // namespace pyfilter
