// SPDX-License-Identifier: BSD-3-Clause
// The choice of a chunk's predictor, by all threads, on the CPU.
#pragma once

#include <cstdint>

#include "core/level.hpp"
#include "core/types.hpp"
#include "stages/packed/plan.hpp"

namespace pyfilter {

// What the tiles of a sample cost (choose_cpu.hpp).
struct PredictorStages {
  // Adds what the tiles of sample `k` cost by each predictor that the request leaves open. `plan` has bound, step (0:
  // bit-exact) and sentinel; `scratch` is as large as for a tile.
  void (*sample)(const Request& request, const PackedPlan& plan, const void* values, std::uint64_t count,
                 std::uint64_t k, void* scratch, PredictorCosts* costs);
};
PYF_LEVEL_TABLE(PredictorStages, kPredictorStages, predictor_stages)

// Settles tile shape and order of a frame (parameters 0 and 2) among those that the request leaves open. `plan` is that
// of the frame: bound, step and sentinel count.
void choose_predictor(const Request& request, const PackedPlan& plan, const void* values, FrameInfo& info) noexcept;

}  // namespace pyfilter
