// SPDX-License-Identifier: BSD-3-Clause
// How a chunk is cut into tiles of up to 32 rows (docs/format.md, section 14.1), and where a row begins.
#pragma once

#include <cstdint>

#include "core/target.hpp"
#include "core/types.hpp"

namespace pyfilter {

// What a tile is: runs of a line, rows of a plane, rows of the planes of a volume.
enum class TileKind : std::uint32_t { line = 1, plane = 2, volume = 3 };

inline constexpr std::uint32_t kTileRows = 32, kTilePlanes = 32, kTileColumns = 64, kPlaneColumns = 1024;
inline constexpr std::uint32_t kLineValues = 32768, kShortestRow = 64;
// A last axis that is shorter has components, each of which is compressed by itself; another short axis is joined to
// the one before it.
inline constexpr std::uint32_t kFewestColumns = 8;

// A tile: planes * rows * columns values; the last rows of a line may be shorter.
struct AdaptiveTile {
  std::uint32_t planes = 1, rows = 1, columns = 1;
  std::uint32_t values = 0;                                                     // of a line: all its values
  std::uint64_t first = 0, plane_stride = 0, row_stride = 0, value_stride = 1;  // in values of the array

  KFN std::uint64_t row(std::uint32_t z, std::uint32_t y) const { return first + z * plane_stride + y * row_stride; }
  KFN std::uint32_t length(std::uint32_t y) const {
    const std::uint32_t from = y * columns;
    return values == 0 ? columns : from >= values ? 0 : values - from < columns ? values - from : columns;
  }
};

struct AdaptiveGrid {
  TileKind kind = TileKind::line;
  bool across = false;  // the volumes' planes follow each other along the axis before the last three
  std::uint64_t values = 0, components = 1, volumes = 1, inner = 1, nz = 1, ny = 1, nx = 1;
  std::uint64_t gz = 1, gy = 1, gx = 1;

  std::uint64_t tiles() const { return values == 0 ? 0 : components * volumes * gz * gy * gx; }
  // The most rows that a tile has.
  std::uint32_t most_rows() const;
  AdaptiveTile tile(std::uint64_t index) const;
};

AdaptiveGrid make_adaptive_grid(const Shape& shape, std::uint64_t values, bool across) noexcept;
// Whether a shape has the axis that `across` needs.
bool may_go_across(const Shape& shape) noexcept;

}  // namespace pyfilter
