// SPDX-License-Identifier: BSD-3-Clause
// Tiles of a chunk (grid.hpp).
#include "adaptive/grid.hpp"

#include <algorithm>
#include <array>

namespace pyfilter {
namespace {

// Dims without those of 1 and without components; dims that are too short to be rows are joined to the one before.
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

std::uint64_t parts(std::uint64_t n, std::uint64_t most) { return (n + most - 1) / most; }

// Part `i` of `count` nearly equal parts of n.
struct Part {
  std::uint64_t from, size;

  Part(std::uint64_t n, std::uint64_t count, std::uint64_t i)
      : from(begin(n, count, i)), size(begin(n, count, i + 1) - from) {}

 private:
  // In 128 bits: a small frame may claim a shape for which i * n has more than 64.
  static std::uint64_t begin(std::uint64_t n, std::uint64_t count, std::uint64_t i) {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(n) * i / count);
  }
};

}  // namespace

bool may_go_across(const Shape& shape) noexcept { return Axes(shape).rank > 3; }

AdaptiveGrid make_adaptive_grid(const Shape& shape, std::uint64_t values, bool across) noexcept {
  AdaptiveGrid grid;
  grid.values = values;
  if (values == 0) return grid;
  const Axes axes(shape);
  grid.components = axes.components;
  const std::uint64_t of_component = values / axes.components;
  if (axes.rank < 2) {
    grid.nx = of_component;
    grid.gx = parts(grid.nx, kLineValues);
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
  grid.gx = parts(grid.nx, grid.kind == TileKind::plane ? kPlaneColumns : kTileColumns);
  grid.gy = parts(grid.ny, kTileRows);
  grid.gz = parts(grid.nz, kTilePlanes);
  return grid;
}

std::uint32_t AdaptiveGrid::most_rows() const {
  if (kind != TileKind::line) return static_cast<std::uint32_t>(parts(ny, gy));
  const std::uint64_t longest = parts(nx, gx),
                      columns = std::max<std::uint64_t>(parts(longest, kTileRows), kShortestRow);
  return static_cast<std::uint32_t>(parts(longest, columns));
}

AdaptiveTile AdaptiveGrid::tile(std::uint64_t index) const {
  AdaptiveTile t;
  const std::uint64_t component = index % components;
  index /= components;
  const Part x(nx, gx, index % gx);
  t.value_stride = components;
  if (kind == TileKind::line) {
    const std::uint64_t columns = std::max<std::uint64_t>(parts(x.size, kTileRows), kShortestRow);
    t.columns = static_cast<std::uint32_t>(columns);
    t.rows = static_cast<std::uint32_t>(parts(x.size, columns));
    t.values = static_cast<std::uint32_t>(x.size);
    t.first = x.from * components + component;
    t.row_stride = columns * components;
    return t;
  }
  const Part y(ny, gy, index / gx % gy), z(nz, gz, index / gx / gy % gz);
  const std::uint64_t volume = index / gx / gy / gz, plane = ny * nx;
  t.columns = static_cast<std::uint32_t>(x.size);
  t.rows = static_cast<std::uint32_t>(y.size);
  t.planes = static_cast<std::uint32_t>(z.size);
  t.row_stride = nx * components;
  t.plane_stride = plane * inner * components;
  const std::uint64_t first_plane = (volume / inner * nz + z.from) * inner + volume % inner;
  t.first = (first_plane * plane + y.from * nx + x.from) * components + component;
  return t;
}

}  // namespace pyfilter
