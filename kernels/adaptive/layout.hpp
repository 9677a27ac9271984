// SPDX-License-Identifier: BSD-3-Clause
// The layout in which a tile's rows run side by side as a skewed wavefront, and a tile's lattices (docs/format.md,
// section 14.4).
//
// Value (z, y, x) of a tile is coded at step  z * period + lead + x + skew * y  in lane y. Step and lane are the
// coordinates of a plain array, so a neighbour has the same distance in memory for all lanes. The cells are memory of a
// thread on a CPU, of a warp on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "adaptive/grid.hpp"
#include "adaptive/taps.hpp"
#include "core/target.hpp"
#if defined(__CUDACC__)
#include "adaptive/cuda/cells.cuh"
#else
#include "adaptive/cpu/cells.hpp"
#endif

PYF_BEGIN_TARGET

struct Layout {
  std::uint32_t planes = 1, rows = 1, columns = 1;  // of the lattice
  std::uint32_t skew = 0, lead = 0, trail = 0;
  std::uint32_t reach = 0;                              // steps back to the furthest plane with neighbours
  CellIndex step_cells = kLaneStride, plane_cells = 0;  // distance of consecutive steps or planes, in cells

  KFN std::uint32_t period() const { return lead + columns + trail; }
  KFN std::uint32_t steps() const { return planes * period() + skew * (rows - 1); }
  KFN std::int32_t step(std::int32_t z, std::int32_t y, std::int32_t x) const {
    return z * static_cast<std::int32_t>(period()) + static_cast<std::int32_t>(lead) + x +
           static_cast<std::int32_t>(skew) * y;
  }
  KFN CellIndex slot(std::int32_t z, std::int32_t y, std::int32_t x) const {
    return CellIndex{step(z, y, x)} * kLaneStride + y;
  }
  KFN CellIndex distance(Tap tap) const {
    return tap.z * plane_cells + (tap.x + static_cast<CellIndex>(skew) * tap.y) * step_cells + tap.y;
  }
  // Floats before step 0 and after the last step, for neighbours outside the tile.
  KFN std::size_t before() const { return std::size_t{kLaneStride} * (reach + 32); }
  KFN std::size_t floats() const { return before() + std::size_t{kLaneStride} * (steps() + reach + 32); }
};
KFN Layout make_layout(TileKind kind, std::uint32_t planes, std::uint32_t rows, std::uint32_t columns) {
  Layout l{planes, rows, columns, kSkew, 4, 4};
  if (kind == TileKind::volume) {
    l.lead = l.trail = 2;
    l.reach = 3 * l.period();
  }
  if (kind == TileKind::line) {
    l.skew = 0;
    l.lead = kLineReach;
    l.trail = 0;
  }
  l.plane_cells = CellIndex{kLaneStride} * static_cast<CellIndex>(l.period());
  return l;
}
inline constexpr std::size_t kMostWaveFloats = kLaneStride * (kMostSteps + 6 * 70 + 64);  // more than Refinement's

// Values of a tile, row by row. A lattice has every 2^log2-th value along each axis.
struct Dense {
  std::uint32_t planes = 1, rows = 1, columns = 1;
  std::uint32_t lengths[kRows] = {};
  float* values;           // normalised: original values, replaced by reconstructed ones while encoding
  float* sizes;            // sizes of codes
  std::uint8_t* kinds;     // ValueKind
  bool all_coded = false;  // all kinds are kCoded

  KFN std::size_t index(std::uint32_t z, std::uint32_t y, std::uint32_t x) const {
    return (std::size_t{z} * rows + y) * columns + x;
  }
};
// kKept: the value is decoded from the origin and must keep its r. kAbsent: a place without a value, in the last tiles
// of a folded grid.
enum ValueKind : std::uint8_t { kCoded = 0, kSentinel = 1, kExact = 2, kKept = 3, kAbsent = 4 };

struct Lattice {
  std::uint32_t shift_z, shift_y, shift_x;
  std::uint32_t planes, rows, columns;
  std::uint32_t lengths[kRows] = {};

  Lattice() = default;
  KFN Lattice(const Dense& d, TileKind kind, std::uint32_t log2)
      : shift_z(kind == TileKind::volume ? log2 : 0), shift_y(kind == TileKind::line ? 0 : log2), shift_x(log2) {
    planes = part(d.planes, shift_z);
    rows = part(d.rows, shift_y);
    columns = part(d.columns, shift_x);
    for (std::uint32_t y = 0; y < rows; ++y) lengths[y] = part(d.lengths[y << shift_y], shift_x);
  }
  KFN static std::uint32_t part(std::uint32_t n, std::uint32_t shift) { return (n + (1u << shift) - 1) >> shift; }
  KFN std::size_t index(const Dense& d, std::uint32_t z, std::uint32_t y, std::uint32_t x) const {
    return d.index(z << shift_z, y << shift_y, x << shift_x);
  }
};

// Extents of the largest tile of a grid, on a lattice.
struct LargestTile {
  std::uint32_t planes = 1, rows = kTileRows, columns = 1;

  KFN LargestTile(const AdaptiveGrid& grid, std::uint32_t log2) {
    const auto longest = static_cast<std::uint32_t>(tile_parts(grid.nx, grid.gx));
    columns = longest;
    if (grid.kind == TileKind::line) {
      columns = (longest + kTileRows - 1) / kTileRows;
      columns = columns < kShortestRow ? kShortestRow : columns;
    } else {
      rows = Lattice::part(static_cast<std::uint32_t>(tile_parts(grid.ny, grid.gy)), log2);
    }
    if (grid.kind == TileKind::volume)
      planes = Lattice::part(static_cast<std::uint32_t>(tile_parts(grid.nz, grid.gz)), log2);
    columns = Lattice::part(columns, log2);
  }
  KFN std::uint32_t cells() const { return planes * rows * columns; }
};

PYF_END_TARGET
