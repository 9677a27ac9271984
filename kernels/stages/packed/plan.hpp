// SPDX-License-Identifier: BSD-3-Clause
// The plan of a chunk of packed tiles, and how its values are predicted.
#pragma once

#include <cstdint>

#include "core/plan.hpp"
#include "core/tile_shape.hpp"

namespace pyfilter {

// Predictors that requests may leave open: the one of the fewest bits, or the fastest unless another is much smaller.
inline constexpr int kAskAny = 0, kAskFast = 5;

struct PackedPlan : Plan {
  std::uint8_t order = 0;   // axes that differences are taken along
  bool exceptions = false;  // whether the encoder may store a block's widest value apart
  bool entropy = false;     // residuals go to an entropy coder, not to bit planes
};

struct Predictor {
  std::uint8_t tile_shape = kChain, order = 1;
};

// Costs of the predictors that may be chosen (choose.hpp), from some of the sampled tiles.
inline constexpr int kCandidates = 8;
struct PredictorCosts {
  std::uint64_t bits[kCandidates] = {};
  // By tile shape: whether codes of the tiles before were small, as those that follow mostly are. Saves time, changes
  // no bits.
  bool small[5] = {true, true, true, true, true};
};

}  // namespace pyfilter
