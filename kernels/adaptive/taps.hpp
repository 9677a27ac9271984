// SPDX-License-Identifier: BSD-3-Clause
// Neighbours that predictions and contexts may use (docs/format.md, section 14.3).
#pragma once

#include <cstddef>
#include <cstdint>

#include "adaptive/grid.hpp"

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
inline constexpr std::size_t kMostSteps = 2400;

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

// All of these for tiles of a kind, as a value.
struct AdaptiveTaps {
  TapList causal, refining;
  Tap causal_codes[kCodeTaps], refining_codes[kCodeTaps];
  RangeTaps ranges;
};
AdaptiveTaps adaptive_taps(TileKind kind) noexcept;

}  // namespace pyfilter
