// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta on the CPU; compiled once per level (core/target.hpp).
#include "hierarchical_delta/codec.hpp"

#include "core/level.hpp"
#include "hierarchical_delta/cpu.hpp"
#include "stages/packed/choose_step.hpp"

PYF_BEGIN_TARGET

// The maps of a dtype: bit-exact, of values, of their logarithms.
template <class T>
static const TileCoder* float_coder(const Plan& plan) {
  const int shape = plan.grid.block_dims;
  if (plan.step == 0) return packed_coder<ExactMap<T>>(shape);
  return plan.pointwise ? packed_coder<LogMap<T>>(shape) : packed_coder<QuantizingMap<T>>(shape);
}

const TileCoder* hierarchical_delta_coder(const Plan& plan) {
  if (plan.dtype == Dtype::f32) return float_coder<float>(plan);
  if (plan.dtype == Dtype::f64) return float_coder<double>(plan);
  return integer_coder(plan);
}

template <class T>
static Predictor float_predictor(const Request& request, const Plan& plan, const void* values, std::uint64_t count) {
  if (plan.step == 0) return choose_predictor<ExactMap<T>>(request, plan, values, count);
  return plan.pointwise ? choose_predictor<LogMap<T>>(request, plan, values, count)
                        : choose_predictor<QuantizingMap<T>>(request, plan, values, count);
}

Predictor choose_predictor_of(const Request& request, const Plan& plan, const void* values, std::uint64_t count) {
  if (!is_float(request.dtype)) return choose_integer_predictor(request, plan, values, count);
  return request.dtype == Dtype::f32 ? float_predictor<float>(request, plan, values, count)
                                     : float_predictor<double>(request, plan, values, count);
}

StepChoice choose_log_step_of(const Request& request, const void* values, std::uint64_t count) {
  return request.dtype == Dtype::f32 ? choose_log_step<float>(request, values, count)
                                     : choose_log_step<double>(request, values, count);
}

PYF_END_TARGET
