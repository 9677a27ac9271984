// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta on the CPU: tiles of f32, quantised or bit-exact. Compiled once per level (core/target.hpp).
#include "hierarchical_delta/codec.hpp"
#include "hierarchical_delta/instances.hpp"

PYF_BEGIN_TARGET

const TileCoder* packed_coder_f32(const Plan& plan) {
  const int shape = plan.grid.block_dims;
  return plan.step == 0 ? packed_coder<ExactMap<float>>(shape) : packed_coder<QuantizingMap<float>>(shape);
}

void sample_predictors_f32(const Request& request, const Plan& plan, const void* values, std::uint64_t count,
                           std::uint64_t k, void* scratch, PredictorCosts* costs) {
  if (plan.step == 0)
    sample_predictors<ExactMap<float>>(request, plan, values, count, k, scratch, *costs);
  else
    sample_predictors<QuantizingMap<float>>(request, plan, values, count, k, scratch, *costs);
}

PYF_END_TARGET
