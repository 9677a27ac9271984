// SPDX-License-Identifier: BSD-3-Clause
// The plan of a chunk that the codec Adaptive encodes or decodes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "adaptive/grid.hpp"
#include "adaptive/model.hpp"
#include "adaptive/tables.hpp"
#include "core/plan.hpp"

namespace pyfilter {

// Streams span tiles until they have about 12 KB, so that 128 bytes of states are 1 %.
inline constexpr std::uint32_t kMostTilesLog2 = 4;
inline constexpr std::uint64_t kStreamBits = 12288 * 8;

// A value is offset + step * r: r is what tiles compute with.
struct AdaptivePlan : Plan {
  AdaptiveGrid tiles;
  double offset = 0;
  std::uint64_t start = 0, stop = 0;  // of the values to decode
  const AdaptiveModel* model = nullptr;
  const AdaptiveTables* tables = nullptr;
};

}  // namespace pyfilter
