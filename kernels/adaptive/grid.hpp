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

struct AdaptiveGrid {
  TileKind kind = TileKind::line;
  bool across = false;  // planes of a volume follow each other along the axis before the last three
  std::uint64_t values = 0, components = 1, volumes = 1, inner = 1, nz = 1, ny = 1, nx = 1;
  std::uint64_t gz = 1, gy = 1, gx = 1;

  KFN std::uint64_t tiles() const { return values == 0 ? 0 : components * volumes * gz * gy * gx; }
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
    t.value_stride = components;
    if (kind == TileKind::line) {
      const std::uint64_t columns_of_row = columns_of_line(x.size);
      t.columns = static_cast<std::uint32_t>(columns_of_row);
      t.rows = static_cast<std::uint32_t>(tile_parts(x.size, columns_of_row));
      t.values = static_cast<std::uint32_t>(x.size);
      t.first = x.from * components + component;
      t.row_stride = columns_of_row * components;
      return t;
    }
    const TilePart y(ny, gy, index / gx % gy), z(nz, gz, index / gx / gy % gz);
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

}  // namespace pyfilter
