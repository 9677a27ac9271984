// SPDX-License-Identifier: BSD-3-Clause
// Adaptive: tiles of lines, planes or volumes -> predictions from values as they are decoded, with weights that are
// trained for each chunk -> codes, whose tables are chosen by what lies around them -> streams of 32 interleaved
// coders. A chunk that Lorenzo makes smaller is one of its frames. See FORMAT.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "adaptive/plan.hpp"
#include "core/level.hpp"

namespace pyfilter {

// What the caller asks an encoder for.
struct AdaptiveChoice {
  std::uint32_t predictor = 0;  // 0: auto, 1: regression, 2: interpolation
  bool fast = false;
};

// Bytes of the largest unit, and scratch memory to encode one.
struct AdaptiveSizes {
  std::size_t unit, scratch;
};

struct AdaptiveCoders {
  const TileCoder* units;
  // Trains a model for the chunk; returns the bits that all symbols will need, roughly. Allocates; may throw
  // std::bad_alloc.
  double (*train)(const AdaptivePlan& plan, const AdaptiveChoice& choice, const void* values, AdaptiveModel& model);
  AdaptiveSizes (*sizes)(const AdaptivePlan& plan);
};
PYF_LEVEL_TABLE(AdaptiveCoders, kAdaptiveCoders, adaptive_coders)

}  // namespace pyfilter
