// SPDX-License-Identifier: BSD-3-Clause
// The choice of a chunk's predictor on the CPU, by all threads.
#pragma once

#include <cstdint>

#include "core/level.hpp"
#include "core/types.hpp"
#include "stages/packed/plan.hpp"

namespace pyfilter {

// Costs of sampled tiles (choose_cpu.hpp).
struct PredictorStages {
  // Adds the costs of sample `k`'s tiles for each candidate that the request leaves open. `plan` has bound, step (0:
  // bit-exact) and sentinel; `scratch` is a tile's scratch memory.
  void (*sample)(const Request& request, const PackedPlan& plan, const void* values, std::uint64_t count,
                 std::uint64_t k, void* scratch, PredictorCosts* costs);
};
PYF_LEVEL_TABLE(PredictorStages, kPredictorStages, predictor_stages)

// Sets tile shape and order of a frame (parameters 0 and 2) from the candidates that the request leaves open. `plan`:
// the frame's, with bound, step and sentinel.
void choose_predictor(const Request& request, const PackedPlan& plan, const void* values, FrameInfo& info) noexcept;

}  // namespace pyfilter
