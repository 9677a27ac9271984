// SPDX-License-Identifier: BSD-3-Clause
// What whole rounds become where a level encodes them so (simd/encode_rounds.hpp): indices of entries of tables,
// found forwards, while residuals are at hand.
#pragma once

#include <cstdint>

#include "lorenzo/rans.hpp"
#include "lorenzo/round_tables.hpp"

namespace pyfilter {

// Indices of a round, by position and lane.
struct RoundIndices {
  alignas(64) std::uint16_t of[32][kLaneCount];
};

// What indices are of: tables and residuals, or tables and symbols, which have the lowest bits. Lanes that take no part
// have the index `neutral`.
struct IndexOf {
  bool symbols;
  int bits;
  std::uint32_t neutral;
};
inline constexpr IndexOf kNarrowSteps{false, 8, kNeutralTable << 8}, kMediumSteps{true, 7, kNeutralTable << 7};

// Residuals below 256 of a round by position: lanes 0 to 7, 16 to 23, 8 to 15, 24 to 31, as indices are unpacked.
struct ByteRows {
  alignas(64) std::uint8_t of[32][kLaneCount];
};

}  // namespace pyfilter
