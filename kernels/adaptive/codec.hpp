// SPDX-License-Identifier: BSD-3-Clause
// Adaptive: values -> predictions from reconstructed values in a skewed wavefront of up to 32 rows (cpu/tile.hpp) ->
// codes -> rANS with tables chosen by a trained weighting of neighbouring codes (cpu/stream.hpp). Taps, weights and
// tables are a model of the chunk (model.hpp) that an encoder trains (cpu/choose.hpp). A chunk that is coarse first has
// refining passes. Tiles: grid.hpp. Where Lorenzo is smaller the frame is one of Lorenzo. See FORMAT.md.
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
  // With an origin the model is that of its frame; its contexts and tables are trained.
  double (*train)(const AdaptivePlan& plan, const AdaptiveChoice& choice, const void* values, AdaptiveModel& model);
  AdaptiveSizes (*sizes)(const AdaptivePlan& plan);
};
PYF_LEVEL_TABLE(AdaptiveCoders, kAdaptiveCoders, adaptive_coders)

}  // namespace pyfilter
