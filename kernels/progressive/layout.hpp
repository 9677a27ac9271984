// SPDX-License-Identifier: BSD-3-Clause
// Levels, units and tiles of a progressive frame (docs/format.md, section 13.1 and 13.2), and the bound of a reader's
// error (13.6). Integers only, the same on CPU and GPU.
#pragma once

#include <cstdint>

#include "core/target.hpp"
#include "core/types.hpp"

namespace pyfilter {

// Extents of a grid, x fastest.
struct Extents {
  std::uint64_t z = 1, y = 1, x = 1;

  KFN std::uint64_t count() const { return z * y * x; }
};

// The coefficients of one axis pass of a level. They belong to the grid's points with an odd coordinate along the axis
// and even coordinates along the axes of later passes.
struct ProgressiveUnit {
  int level = 0, axis = 0;  // axis: 0 z, 1 y, 2 x
  Extents shape;
  std::uint64_t first = 0;  // index of its first coefficient, over all units
  Extents tiled;            // the shape in tiled coordinates: the same coefficients
  Extents tile, grid;       // shape of a tile; tiles along each axis
  std::uint32_t tiles = 0;
};

inline constexpr int kMostUnits = 100, kMostLevels = 64;
inline constexpr std::uint64_t kMostRoots = 32;
inline constexpr std::uint32_t kTileWords = 128;

struct ProgressiveLayout {
  int levels = 0, units = 0;  // units are numbered in decoding order: the coarsest level first, then z, y, x
  Extents grids[kMostLevels + 1];
  ProgressiveUnit unit[kMostUnits];
  std::uint64_t roots = 0, coefficients = 0;
};

// The array as at most three dimensions: all but the last two become one.
KFN Extents extents_of(const Shape& shape) {
  Extents e;
  const int rank = shape.rank;
  if (rank > 0) e.x = shape.dims[static_cast<std::size_t>(rank - 1)];
  if (rank > 1) e.y = shape.dims[static_cast<std::size_t>(rank - 2)];
  for (int i = 0; i + 2 < rank; ++i) e.z *= shape.dims[static_cast<std::size_t>(i)];
  return e;
}

KFN std::uint64_t half_up(std::uint64_t n) { return n - n / 2; }
KFN std::uint64_t tiles_along(std::uint64_t extent, std::uint64_t tile) { return (extent + tile - 1) / tile; }

// Merges narrow axes with their neighbour, since most of a tile would be empty.
KFN Extents tiled_shape(Extents shape) {
  if (shape.z > 1 && (shape.y == 1 || shape.x <= 4 || shape.y * shape.x <= 128))
    shape = {1, shape.z, shape.y * shape.x};
  if (shape.z == 1 && (shape.y < 16 || shape.x <= 4)) shape = {1, 1, shape.y * shape.x};
  return shape;
}

KFN void add_unit(ProgressiveLayout& layout, int level, int axis, Extents shape) {
  ProgressiveUnit& unit = layout.unit[layout.units++];
  unit.level = level;
  unit.axis = axis;
  unit.shape = shape;
  unit.first = layout.coefficients;
  const Extents tiled = unit.tiled = tiled_shape(shape);
  unit.tile = tiled.z > 1 ? Extents{8, 16, 32} : tiled.y > 1 ? Extents{1, 128, 32} : Extents{1, 1, 4096};
  unit.grid = {tiles_along(tiled.z, unit.tile.z), tiles_along(tiled.y, unit.tile.y), tiles_along(tiled.x, unit.tile.x)};
  unit.tiles = static_cast<std::uint32_t>(unit.grid.count());
  layout.coefficients += shape.count();
}

// The layout of a non-empty array.
KFN void make_layout(Extents whole, ProgressiveLayout& layout) {
  layout.levels = layout.units = 0;
  layout.coefficients = 0;
  layout.grids[0] = whole;
  while (layout.grids[layout.levels].count() > kMostRoots) {
    const Extents g = layout.grids[layout.levels++];
    layout.grids[layout.levels] = {half_up(g.z), half_up(g.y), half_up(g.x)};
  }
  layout.roots = layout.grids[layout.levels].count();
  for (int level = layout.levels - 1; level >= 0; --level) {
    const Extents g = layout.grids[level];
    if (g.z > 1) add_unit(layout, level, 0, {g.z / 2, half_up(g.y), half_up(g.x)});
    if (g.y > 1) add_unit(layout, level, 1, {g.z, g.y / 2, half_up(g.x)});
    if (g.x > 1) add_unit(layout, level, 2, {g.z, g.y, g.x / 2});
  }
}

// -- bounds of errors, in steps

inline constexpr std::uint64_t kNoBound = std::uint64_t{1} << 62;

// The largest error of a coefficient below 2^planes with the segments down to `plane`; plane == planes: with no
// segment.
KFN std::uint64_t coefficient_error(int planes, int plane) {
  if (plane >= planes) return (std::uint64_t{1} << planes) - 1;
  return plane < 0 ? 0 : std::uint64_t{1} << plane;
}

// The largest distance of a coefficient's value with segments down to `plane` from its value with segments down to
// `then`. Both are middles of nested intervals, of half widths 2^plane and 2^then; but if the first one is in plane
// `then`, half of that remains.
KFN std::uint64_t coefficient_distance(int planes, int plane, int then) {
  if (then < 0 || then >= plane) return then < plane ? coefficient_error(planes, plane) : 0;
  const std::uint64_t half_width = std::uint64_t{1} << then;
  return then + 1 == plane ? half_width + half_width / 2 : (std::uint64_t{1} << plane) - half_width;
}

// The error after a pass, from the errors of the values before it and of its coefficients. The magnitudes of the
// weights of a cubic prediction add up to 5/4.
KFN std::uint64_t error_after_pass(std::uint64_t before, bool cubic, std::uint64_t coefficient) {
  if (before >= kNoBound || coefficient >= kNoBound) return kNoBound;
  const std::uint64_t after = (cubic ? before + (before + 3) / 4 : before) + coefficient;
  return after < kNoBound ? after : kNoBound;
}

// The error in steps that the conversion to the dtype adds to an error other than 0. It is half a unit in the last
// place of the largest magnitude, rounded up. `sentinel_in_reach`: a value may be moved off the sentinel.
KFN std::uint64_t conversion_error(std::uint64_t magnitude, int significand_bits, bool sentinel_in_reach) {
  int bits = 0;
  while (bits < 63 && magnitude >> bits != 0) ++bits;
  const std::uint64_t half = bits > significand_bits ? std::uint64_t{1} << (bits - significand_bits - 1) : 0;
  return half + (!sentinel_in_reach ? 0 : half != 0 ? 2 * half : 1);
}

// The code of an error of `steps` and a half: the upper 16 bits of the next binary32 that is not smaller.
KFN std::uint32_t error_code(std::uint64_t steps) {
  // twice the error is an integer; its upper eight bits remain, rounded up
  std::uint64_t twice = 2 * steps + 1;
  int exponent = -1;  // error = twice * 2^exponent
  while (twice > 255) {
    twice = twice / 2 + twice % 2;
    ++exponent;
  }
  while (twice < 128) {
    twice *= 2;
    --exponent;
  }
  return static_cast<std::uint32_t>((exponent + 7 + 127) << 7 | static_cast<int>(twice - 128));
}

// The largest error with the same code, with `conversion` added to errors that are not 0.
KFN std::uint64_t as_in_table(std::uint64_t steps, std::uint64_t conversion) {
  if (steps == 0) return 0;
  const std::uint64_t twice = 2 * (steps + conversion) + 1;
  int shift = 0;  // the code is twice / 2^shift, rounded up to eight bits
  while (twice >> shift > 255) ++shift;
  const std::uint64_t most = ((twice >> shift) + ((twice >> shift << shift) != twice ? 1 : 0)) << shift;
  return (most - 1) / 2 - conversion;
}

}  // namespace pyfilter
