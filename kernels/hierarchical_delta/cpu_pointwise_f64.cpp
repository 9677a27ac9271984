// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta on the CPU: tiles of f64 with a bound relative to each value. Compiled once per level
// (core/target.hpp).
#include "hierarchical_delta/codec.hpp"
#include "hierarchical_delta/instances.hpp"
#include "stages/packed/choose_step.hpp"

PYF_BEGIN_TARGET

const TileCoder* pointwise_coder_f64(const Plan& plan) { return packed_coder<LogMap<double>>(plan.grid.block_dims); }

void sample_pointwise_predictors_f64(const Request& request, const Plan& plan, const void* values, std::uint64_t count,
                                     std::uint64_t k, void* scratch, PredictorCosts* costs) {
  sample_predictors<LogMap<double>>(request, plan, values, count, k, scratch, *costs);
}

StepChoice choose_log_step_f64(const Request& request, const void* values, std::uint64_t count) {
  return choose_log_step<double>(request, values, count);
}

PYF_END_TARGET
