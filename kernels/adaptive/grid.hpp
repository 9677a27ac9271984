// SPDX-License-Identifier: BSD-3-Clause
// How a chunk is cut into tiles of up to 32 rows (docs/format.md, section 14.1), and where a row begins.
#pragma once

#include <cstdint>

#include "core/target.hpp"
#include "core/types.hpp"

namespace pyfilter {

// The shape of tiles: runs of a line, rows of a plane, rows of the planes of a volume.
enum class TileKind : std::uint32_t { line = 1, plane = 2, volume = 3 };

inline constexpr std::uint32_t kTileRows = 32, kTilePlanes = 32, kTileColumns = 64, kPlaneColumns = 1024;
inline constexpr std::uint32_t kLineValues = 32768, kShortestRow = 64;
// A shorter last axis counts as components, which are compressed separately. Other short axes are joined to the axis
// before them.
inline constexpr std::uint32_t kFewestColumns = 8;

// A tile: planes * rows * columns values; the last rows of a line may be shorter.
struct AdaptiveTile {
  std::uint32_t planes = 1, rows = 1, columns = 1;
  std::uint32_t values = 0;                                                     // line tiles: number of values
  std::uint64_t first = 0, plane_stride = 0, row_stride = 0, value_stride = 1;  // in values of the array

  KFN std::uint64_t row(std::uint32_t z, std::uint32_t y) const { return first + z * plane_stride + y * row_stride; }
  KFN std::uint32_t length(std::uint32_t y) const {
    const std::uint32_t from = y * columns;
    return values == 0 ? columns : from >= values ? 0 : values - from < columns ? values - from : columns;
  }
  bool operator==(const AdaptiveTile&) const = default;
};

KFN std::uint64_t tile_parts(std::uint64_t n, std::uint64_t most) { return n / most + (n % most != 0 ? 1 : 0); }

// Part `i` of `count` nearly equal parts of n: from i * n / count on.
struct TilePart {
  std::uint64_t from, size;

  KFN TilePart(std::uint64_t n, std::uint64_t count, std::uint64_t i)
      : from(begin(n, count, i)), size(begin(n, count, i + 1) - from) {}

 private:
  KFN static std::uint64_t begin(std::uint64_t n, std::uint64_t count, std::uint64_t i) {
#if defined(__CUDA_ARCH__)  // fewer than 2^32 parts
    return n / count * i + n % count * i / count;
#else  // in 128 bits: a small frame may claim a shape for which i * n has more than 64
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(n) * i / count);
#endif
  }
};

// The axes of tiles. {0, 0}: the array's own. {0, 1}: planes of a volume follow each other along the axis before the
// last three. {row, 0}: lines are folded into rows of a plane; {row, rows}: into rows and planes of a volume.
struct TileAxes {
  std::uint32_t row = 0, rows = 0;

  KFN bool is_across() const { return row == 0 && rows == 1; }
  KFN bool is_folded() const { return row != 0; }
  KFN std::uint32_t lag() const { return rows == 0 ? row : row * rows; }
};
inline constexpr std::uint32_t kLeastFoldRow = 32, kLeastFoldRows = 8, kMostFoldLag = 65535;
// Whether a line of so many values can be folded so.
KFN bool is_fold(const TileAxes& axes, std::uint64_t values) {
  const std::uint64_t lag = std::uint64_t{axes.row} * (axes.rows == 0 ? 1 : axes.rows);
  return axes.row >= kLeastFoldRow && (axes.rows == 0 || axes.rows >= kLeastFoldRows) && lag <= kMostFoldLag &&
         2 * lag <= values;
}
// Folds to try, the one into planes first.
struct Folds {
  std::uint32_t count = 0;
  TileAxes of[2] = {};
};

// The tiles of an array, or of one component of it.
struct AdaptiveGrid {
  TileKind kind = TileKind::line;
  bool across = false;
  // values: of the array, with all components. The last tiles of folded lines also have places behind these.
  std::uint64_t values = 0, components = 1, volumes = 1, inner = 1, nz = 1, ny = 1, nx = 1;
  std::uint64_t first = 0, stride = 1;  // the first value; from one value to the next, in values of the array
  std::uint64_t gz = 1, gy = 1, gx = 1;

  KFN std::uint64_t tiles() const { return values == 0 ? 0 : components * volumes * gz * gy * gx; }
  // Whether every place has a value.
  KFN bool is_full() const { return volumes * nz * ny * nx == values / stride; }
  KFN std::uint64_t own_values() const { return values / stride * components; }
  // Of `length` places of a row from `from` on, the number that have a value.
  KFN std::uint32_t existing(std::uint64_t from, std::uint32_t length) const {
    if (from + stride * length < values + stride) return length;
    return from >= values ? 0 : static_cast<std::uint32_t>((values - from + stride - 1) / stride);
  }
  // The most rows of a tile.
  KFN std::uint32_t most_rows() const {
    if (kind != TileKind::line) return static_cast<std::uint32_t>(tile_parts(ny, gy));
    const std::uint64_t longest = tile_parts(nx, gx), columns = columns_of_line(longest);
    return static_cast<std::uint32_t>(tile_parts(longest, columns));
  }
  KFN AdaptiveTile tile(std::uint64_t index) const {
    AdaptiveTile t;
    const std::uint64_t component = index % components;
    index /= components;
    const TilePart x(nx, gx, index % gx);
    t.value_stride = stride;
    if (kind == TileKind::line) {
      const std::uint64_t columns_of_row = columns_of_line(x.size);
      t.columns = static_cast<std::uint32_t>(columns_of_row);
      t.rows = static_cast<std::uint32_t>(tile_parts(x.size, columns_of_row));
      t.values = static_cast<std::uint32_t>(x.size);
      t.first = first + x.from * stride + component;
      t.row_stride = columns_of_row * stride;
      return t;
    }
    const TilePart y(ny, gy, index / gx % gy), z(nz, gz, index / gx / gy % gz);
    const std::uint64_t volume = index / gx / gy / gz, plane = ny * nx;
    t.columns = static_cast<std::uint32_t>(x.size);
    t.rows = static_cast<std::uint32_t>(y.size);
    t.planes = static_cast<std::uint32_t>(z.size);
    t.row_stride = nx * stride;
    t.plane_stride = plane * inner * stride;
    const std::uint64_t first_plane = (volume / inner * nz + z.from) * inner + volume % inner;
    t.first = first + (first_plane * plane + y.from * nx + x.from) * stride + component;
    return t;
  }

 private:
  KFN static std::uint64_t columns_of_line(std::uint64_t size) {
    const std::uint64_t columns = tile_parts(size, kTileRows);
    return columns < kShortestRow ? kShortestRow : columns;
  }
};

// The number of coders of a unit's stream, with so many refining passes: these have 32 values of a row side by side.
KFN std::uint32_t states_of_unit(const AdaptiveGrid& grid, std::uint32_t levels) {
  return levels != 0 && grid.kind != TileKind::line ? kTileRows : grid.most_rows();
}

AdaptiveGrid make_adaptive_grid(const Shape& shape, std::uint64_t values, bool across) noexcept;
// Whether a shape has the axis that `across` needs.
bool may_go_across(const Shape& shape) noexcept;
// The grid of folded lines; `lines`: the grid without a fold.
KFN AdaptiveGrid fold_lines(const AdaptiveGrid& lines, const TileAxes& axes) {
  AdaptiveGrid grid = lines;
  const std::uint64_t length = lines.values / lines.stride;
  grid.nx = axes.row;
  grid.kind = axes.rows == 0 ? TileKind::plane : TileKind::volume;
  grid.ny = axes.rows == 0 ? tile_parts(length, axes.row) : axes.rows;
  grid.nz = axes.rows == 0 ? 1 : tile_parts(length, axes.lag());
  grid.gx = tile_parts(grid.nx, axes.rows == 0 ? kPlaneColumns : kTileColumns);
  grid.gy = tile_parts(grid.ny, kTileRows);
  grid.gz = tile_parts(grid.nz, kTilePlanes);
  return grid;
}
// The most tiles of a folded line: tiles of rows as short as allowed, and those of the last rows and planes.
KFN std::uint64_t most_folded_tiles(std::uint64_t length) {
  return length / (kTileRows * kLeastFoldRow) + kMostFoldLag / (kTileRows * kLeastFoldRow) + 2;
}
// A grid of one tile, the largest one of folded lines.
KFN AdaptiveGrid largest_folded(TileKind kind) {
  AdaptiveGrid grid;
  grid.kind = kind;
  grid.nx = kind == TileKind::plane ? kPlaneColumns : kTileColumns;
  grid.ny = kTileRows;
  grid.nz = kind == TileKind::plane ? 1 : kTilePlanes;
  grid.values = grid.nx * grid.ny * grid.nz;
  return grid;
}
// An encoder gives each component a part of its own where it has so many values: a part costs a model.
inline constexpr std::uint64_t kLeastPartValues = 2048;
// The grids of an array for frames whose components are parts.
struct PartGrids {
  AdaptiveGrid own, across;  // of all components together; across: the same as `own` if no axis allows more

  // The number of parts that an encoder makes. One part has all components.
  KFN std::uint32_t parts() const {
    return own.values / own.stride >= kLeastPartValues ? static_cast<std::uint32_t>(own.components) : 1;
  }
  // The grid of such a part; only components of their own have folds.
  KFN AdaptiveGrid to_encode(const TileAxes& axes, std::uint32_t part) const {
    return parts() == own.components ? of_part(axes, part) : axes.is_across() ? across : own;
  }

  // Whether a part can have these axes.
  KFN bool allows(const TileAxes& axes) const {
    if (axes.row == 0) return axes.rows == 0 || (axes.rows == 1 && across.across);
    return own.kind == TileKind::line && is_fold(axes, own.values / own.stride);
  }
  KFN AdaptiveGrid of_part(const TileAxes& axes, std::uint32_t part) const {
    AdaptiveGrid grid = axes.is_across() ? across : own;
    grid.components = 1;
    grid.first = part;
    return axes.is_folded() ? fold_lines(grid, axes) : grid;
  }
};
inline PartGrids make_part_grids(const Shape& shape, std::uint64_t values) noexcept {
  return {make_adaptive_grid(shape, values, false), make_adaptive_grid(shape, values, true)};
}

}  // namespace pyfilter
