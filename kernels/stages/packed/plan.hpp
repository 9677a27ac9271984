// SPDX-License-Identifier: BSD-3-Clause
// The plan of a chunk of packed tiles, and its predictor.
#pragma once

#include <cstdint>

#include "core/plan.hpp"
#include "core/tile_shape.hpp"

namespace pyfilter {

// Requests that leave the predictor open: kAskAny for the fewest bits, kAskFast for the fastest unless another is much
// smaller.
inline constexpr int kAskAny = 0, kAskFast = 5;

struct PackedPlan : Plan {
  std::uint8_t order = 0;   // number of axes that differences are taken along
  bool exceptions = false;  // whether the encoder may store exceptions
  bool entropy = false;     // residuals go to an entropy coder instead of bit planes
};

struct Predictor {
  std::uint8_t tile_shape = kChain, order = 1;
};

// Costs of the candidate predictors (choose.hpp), summed over sampled tiles.
inline constexpr int kCandidates = 8;
struct PredictorCosts {
  std::uint64_t bits[kCandidates] = {};
  // By tile shape: whether codes of the tiles so far were small, which predicts the next tile. A hint for speed that
  // changes no bits.
  bool small[5] = {true, true, true, true, true};
};

}  // namespace pyfilter
