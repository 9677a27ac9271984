// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta on the CPU: tiles of f32, quantised or bit-exact. Compiled once per level (core/target.hpp).
#include "hierarchical_delta/codec.hpp"
#include "hierarchical_delta/instances.hpp"

PYF_BEGIN_TARGET

const TileCoder* packed_coder_f32(const Plan& plan) {
  const int shape = plan.grid.block_dims;
  return plan.step == 0 ? packed_coder<ExactMap<float>>(shape) : packed_coder<QuantizingMap<float>>(shape);
}

Predictor choose_predictor_f32(const Request& request, const Plan& plan, const void* values, std::uint64_t count) {
  return plan.step == 0 ? choose_predictor<ExactMap<float>>(request, plan, values, count)
                        : choose_predictor<QuantizingMap<float>>(request, plan, values, count);
}

PYF_END_TARGET
