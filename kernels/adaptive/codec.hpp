// SPDX-License-Identifier: BSD-3-Clause
// Adaptive: values -> predictions from reconstructed values in a skewed wavefront of up to 32 rows (tile.hpp) -> codes
// -> rANS. A trained weighting of neighbouring codes chooses the table of each code (cpu/stream.hpp). Taps, weights and
// tables are the chunk's model (model.hpp), which the encoder trains (train/trainer.hpp). Interpolating models code a
// coarse lattice first, then refining passes. Tiles: grid.hpp. A chunk whose Lorenzo frame is smaller becomes that
// frame. See FORMAT.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "adaptive/plan.hpp"
#include "core/level.hpp"

namespace pyfilter {

// Size of the largest unit and of the scratch memory to encode it, in bytes.
struct AdaptiveSizes {
  std::size_t unit, scratch;
};

struct AdaptiveCoders {
  const TileCoder* units;
  // Estimates the bits of a part with its axes, to compare them. Allocates, as the next functions; may throw
  // std::bad_alloc.
  double (*rate)(const AdaptivePlan& plan, const AdaptiveChoice& choice, const void* values);
  // Chooses a predictor for the part and trains its weights.
  void (*choose)(const AdaptivePlan& plan, const AdaptiveChoice& choice, const void* values,
                 AdaptiveTraining& training);
  // Trains the contexts and the tables of its model, and returns the approximate bits of all symbols.
  // With an origin the model is that of its frame, and `activity` is empty.
  double (*finish)(const AdaptivePlan& plan, const AdaptiveChoice& choice, const void* values,
                   std::vector<float>& activity, AdaptiveModel& model);
  AdaptiveSizes (*sizes)(const AdaptivePlan& plan);
  // Finds folds of a part that is a line (train/fold.hpp).
  Folds (*find_folds)(const AdaptiveGrid& line, Dtype dtype, const void* values);
};
PYF_LEVEL_TABLE(AdaptiveCoders, kAdaptiveCoders, adaptive_coders)

}  // namespace pyfilter
