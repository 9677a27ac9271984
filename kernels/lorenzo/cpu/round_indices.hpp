// SPDX-License-Identifier: BSD-3-Clause
// CPU levels that encode whole rounds (simd/encode_rounds.hpp) turn residuals into indices of table entries on the way
// forwards, while the residuals are at hand.
#pragma once

#include <cstdint>

#include "lorenzo/rans.hpp"
#include "lorenzo/round_tables.hpp"

namespace pyfilter {

// Indices of a round by position and lane.
struct RoundIndices {
  alignas(64) std::uint16_t of[32][kLaneCount];
};

// The parts of an index: a table, and in the lowest bits a residual or a symbol. Inactive lanes have the index
// `neutral`.
struct IndexOf {
  bool symbols;
  int bits;
  std::uint32_t neutral;
};
inline constexpr IndexOf kNarrowSteps{false, 8, kNeutralTable << 8}, kMediumSteps{true, 7, kNeutralTable << 7};

// Residuals below 256 of a round by position. The order of lanes is 0 to 7, 16 to 23, 8 to 15, 24 to 31, in which
// vectors unpack bytes to indices.
struct ByteRows {
  alignas(64) std::uint8_t of[32][kLaneCount];
};

}  // namespace pyfilter
