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

// Candidates of a pass, the latest coded last, so that a sum can begin before the last values are known.
inline constexpr std::uint32_t kMostCandidates = 40;
struct TapList {
  std::uint32_t count = 0;
  Tap of[kMostCandidates] = {};
  // Indices of the candidates next to the value along x, y, z; kNoTap if the tile lacks the axis.
  std::uint32_t near[3] = {};
};
inline constexpr std::uint32_t kNoTap = 255;

inline constexpr std::uint32_t kLineReach = 24, kSkew = 2;
inline constexpr std::uint32_t kCodeTaps = 16, kRangeTaps = 7;
inline constexpr std::size_t kMostSteps = 2400;

// Candidates of the first pass, which knows nothing of its lattice: neighbours that are coded earlier.
const TapList& causal_taps(TileKind kind);
// Candidates of a refining pass, which knows the points whose coordinates are all even (refine.hpp).
const TapList& refining_taps(TileKind kind);
// The kCodeTaps neighbours whose codes foretell the size of the next code: of the first pass, and of the turns of
// others, by parity.
const Tap* causal_codes(TileKind kind);
struct RefiningCodes {
  Tap of[8][kCodeTaps] = {};
};
const RefiningCodes& refining_codes(TileKind kind);
// The neighbours whose range of values does the same.
struct RangeTaps {
  std::uint32_t count;
  Tap of[kRangeTaps];
};
const RangeTaps& range_taps(TileKind kind);

// All of these lists for one kind of tiles, as a value.
struct AdaptiveTaps {
  TapList causal, refining;
  Tap causal_codes[kCodeTaps];
  RefiningCodes refining_codes;
  RangeTaps ranges;
};
AdaptiveTaps adaptive_taps(TileKind kind) noexcept;

}  // namespace pyfilter
