// SPDX-License-Identifier: BSD-3-Clause
// Tiles of a chunk (grid.hpp).
#include "adaptive/grid.hpp"

#include <algorithm>
#include <array>

namespace pyfilter {
namespace {

// The axes of a shape without extents of 1 and without components. Axes too short for rows are joined to the axis
// before.
struct Axes {
  int rank = 0;
  std::uint64_t components = 1;
  std::array<std::uint64_t, kMaxRank> dims{};

  explicit Axes(const Shape& shape) {
    for (int i = 0; i < shape.rank; ++i)
      if (shape.dims[static_cast<std::size_t>(i)] != 1)
        dims[static_cast<std::size_t>(rank++)] = shape.dims[static_cast<std::size_t>(i)];
    if (rank > 1 && last(0) < kFewestColumns) {
      components = last(0);
      --rank;
    }
    while (rank > 1 && last(0) < kFewestColumns) {
      dims[static_cast<std::size_t>(rank - 2)] *= last(0);
      --rank;
    }
  }
  std::uint64_t last(int back) const { return back < rank ? dims[static_cast<std::size_t>(rank - 1 - back)] : 1; }
};

}  // namespace

bool may_go_across(const Shape& shape) noexcept { return Axes(shape).rank > 3; }

AdaptiveGrid make_adaptive_grid(const Shape& shape, std::uint64_t values, bool across) noexcept {
  AdaptiveGrid grid;
  grid.values = values;
  if (values == 0) return grid;
  const Axes axes(shape);
  grid.components = grid.stride = axes.components;
  const std::uint64_t of_component = values / axes.components;
  if (axes.rank < 2) {
    grid.nx = of_component;
    grid.gx = tile_parts(grid.nx, kLineValues);
    return grid;
  }
  grid.kind = axes.rank == 2 ? TileKind::plane : TileKind::volume;
  grid.nx = axes.last(0);
  grid.ny = axes.last(1);
  grid.nz = axes.last(2);
  grid.volumes = of_component / (grid.nx * grid.ny * grid.nz);
  if (across && axes.rank > 3) {
    grid.across = true;
    grid.inner = grid.nz;
    grid.volumes = grid.volumes / axes.last(3) * grid.nz;
    grid.nz = axes.last(3);
  }
  grid.gx = tile_parts(grid.nx, grid.kind == TileKind::plane ? kPlaneColumns : kTileColumns);
  grid.gy = tile_parts(grid.ny, kTileRows);
  grid.gz = tile_parts(grid.nz, kTilePlanes);
  return grid;
}

}  // namespace pyfilter
