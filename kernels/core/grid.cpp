// SPDX-License-Identifier: BSD-3-Clause
// The grid of blocks over a shape (plan.hpp; docs/format.md, section 4.1).
#include "core/plan.hpp"

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
  // padding makes blocks larger than the array where dimensions are short: saturate, the encoder then stores raw
  if (__builtin_mul_overflow(grid.gx * grid.gy, grid.gz, &grid.blocks) ||
      __builtin_mul_overflow(grid.blocks, grid.outer, &grid.blocks))
    grid.blocks = ~std::uint64_t{0} / 2;
  grid.tiles = blocks_along(grid.blocks, tile_blocks);
  return grid;
}

}  // namespace pyfilter
