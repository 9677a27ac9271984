// SPDX-License-Identifier: BSD-3-Clause
// Neighbours that predictions and contexts may use (docs/format.md, section 14.3), and the layout in which a tile's
// rows run side by side as a skewed wavefront.
//
// Value (z, y, x) of a tile is coded at step  z * period + lead + x + skew * y  in lane y. All neighbours of a lane lie
// at one distance in memory, whichever the lane: step and lane are the coordinates of a plain array.
#pragma once

#include <cstddef>
#include <cstdint>

#include "adaptive/grid.hpp"
#include "core/target.hpp"

namespace pyfilter {

struct Tap {
  std::int8_t z, y, x;
};

// Candidates of a pass, the latest last: a sum over them can begin before the last values are known.
inline constexpr std::uint32_t kMostCandidates = 40;
struct TapList {
  std::uint32_t count = 0;
  Tap of[kMostCandidates] = {};
  // The candidates next to the value: along x, y, z; kNoTap where the tile has no such axis.
  std::uint32_t near[3] = {};
};
inline constexpr std::uint32_t kNoTap = 255;

inline constexpr std::uint32_t kLineReach = 24, kSkew = 2;
inline constexpr std::uint32_t kCodeTaps = 16, kRangeTaps = 7;

// Steps from one value to the next in memory.
inline constexpr std::uint32_t kLaneStride = 48;
struct Layout {
  std::uint32_t planes = 1, rows = 1, columns = 1;  // of the lattice
  std::uint32_t skew = 0, lead = 0, trail = 0;
  std::uint32_t reach = 0;  // steps of the planes that neighbours lie in

  KFN std::uint32_t period() const { return lead + columns + trail; }
  KFN std::uint32_t steps() const { return planes * period() + skew * (rows - 1); }
  KFN std::int32_t step(std::int32_t z, std::int32_t y, std::int32_t x) const {
    return z * static_cast<std::int32_t>(period()) + static_cast<std::int32_t>(lead) + x +
           static_cast<std::int32_t>(skew) * y;
  }
  KFN std::ptrdiff_t slot(std::int32_t z, std::int32_t y, std::int32_t x) const {
    return std::ptrdiff_t{step(z, y, x)} * kLaneStride + y;
  }
  KFN std::ptrdiff_t distance(Tap tap) const {
    return std::ptrdiff_t{tap.z * static_cast<std::int32_t>(period()) + tap.x +
                          static_cast<std::int32_t>(skew) * tap.y} *
               kLaneStride +
           tap.y;
  }
  // Floats before step 0 and behind the last one that neighbours reach.
  KFN std::size_t before() const { return std::size_t{kLaneStride} * (reach + 32); }
  KFN std::size_t floats() const { return before() + std::size_t{kLaneStride} * (steps() + reach + 32); }
};
inline Layout make_layout(TileKind kind, bool refining, std::uint32_t planes, std::uint32_t rows,
                          std::uint32_t columns) {
  Layout l{planes, rows, columns, kSkew, 4, 4};
  if (kind == TileKind::volume) {
    l.lead = l.trail = refining ? 3 : 2;
    l.reach = 3 * l.period();
  }
  if (kind == TileKind::line) {
    l.skew = 0;
    l.lead = kLineReach;
    l.trail = refining ? 8 : 0;
  }
  return l;
}
inline constexpr std::size_t kMostSteps = 2400, kMostWaveFloats = kLaneStride * (kMostSteps + 6 * 70 + 64);

// Candidates of the pass over a lattice of which nothing is known: neighbours that are coded before.
const TapList& causal_taps(TileKind kind);
// Candidates of a pass over a lattice whose points of even coordinates are known. Points of one odd coordinate are
// coded first, those of three last.
const TapList& refining_taps(TileKind kind);
// Neighbours whose codes tell how large the next one may be: kCodeTaps.
const Tap* code_taps(TileKind kind, bool refining);
// Neighbours whose range of values does.
struct RangeTaps {
  std::uint32_t count;
  Tap of[kRangeTaps];
};
const RangeTaps& range_taps(TileKind kind);

}  // namespace pyfilter
