// SPDX-License-Identifier: BSD-3-Clause
// Adaptive: values -> predictions from reconstructed values in a skewed wavefront of up to 32 rows (tile.hpp) -> codes
// -> rANS. A trained weighting of neighbouring codes chooses the table of each code (cpu/stream.hpp). Taps, weights and
// tables are the chunk's model (model.hpp), which the encoder trains (train/trainer.hpp). Interpolating models code a
// coarse lattice first, then refining passes. Tiles: grid.hpp. A chunk whose Lorenzo frame is smaller becomes that
// frame. See FORMAT.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "adaptive/plan.hpp"
#include "core/level.hpp"

namespace pyfilter {

// Size of the largest unit and of the scratch memory to encode it, in bytes.
struct AdaptiveSizes {
  std::size_t unit, scratch;
};

struct AdaptiveCoders {
  const TileCoder* units;
  // Trains a model for the chunk and returns the approximate bits of all symbols. Allocates; may throw std::bad_alloc.
  // With an origin, taps and weights are those of its frame; only contexts and tables are trained.
  double (*train)(const AdaptivePlan& plan, const AdaptiveChoice& choice, const void* values, AdaptiveModel& model);
  AdaptiveSizes (*sizes)(const AdaptivePlan& plan);
};
PYF_LEVEL_TABLE(AdaptiveCoders, kAdaptiveCoders, adaptive_coders)

}  // namespace pyfilter
