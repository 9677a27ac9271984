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

void tiles_of_range(const Grid& g, std::uint64_t start, std::uint64_t stop, std::uint64_t* first,
                    std::uint64_t* last) noexcept {
  if (g.block_dims == 1) {
    *first = start / 4096;
    *last = (stop - 1) / 4096 + 1;
    return;
  }
  const std::uint64_t side = g.block_dims == 2 ? 8 : 4, slab = g.block_dims == 2 ? 1 : side;
  // rows of blocks (outer, bz, by) are numbered like the rows of values that they hold, except that the `slab` planes
  // of a slab of blocks share theirs
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
