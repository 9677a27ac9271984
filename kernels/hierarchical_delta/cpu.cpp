// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta on the CPU: which instance a plan needs. Compiled once per level (core/target.hpp), the instances
// in files of their own (cpu_f32.cpp and others), side by side.
#include "hierarchical_delta/cpu.hpp"
#include "core/level.hpp"

PYF_BEGIN_TARGET

const TileCoder* hierarchical_delta_coder(const Plan& plan) {
  if (!is_float(plan.dtype)) return integer_coder(plan);
  const bool logarithms = plan.step != 0 && plan.pointwise;
  if (plan.dtype == Dtype::f32) return logarithms ? pointwise_coder_f32(plan) : packed_coder_f32(plan);
  return logarithms ? pointwise_coder_f64(plan) : packed_coder_f64(plan);
}

void sample_predictors_of(const Request& request, const Plan& plan, const void* values, std::uint64_t count,
                          std::uint64_t k, void* scratch, PredictorCosts* costs) {
  const bool logarithms = plan.step != 0 && plan.pointwise, single = request.dtype == Dtype::f32;
  SamplePredictors* const sample = !is_float(request.dtype) ? &sample_integer_predictors
                                   : logarithms && single   ? &sample_pointwise_predictors_f32
                                   : logarithms             ? &sample_pointwise_predictors_f64
                                   : single                 ? &sample_predictors_f32
                                                            : &sample_predictors_f64;
  sample(request, plan, values, count, k, scratch, costs);
}

StepChoice choose_log_step_of(const Request& request, const void* values, std::uint64_t count) {
  return request.dtype == Dtype::f32 ? choose_log_step_f32(request, values, count)
                                     : choose_log_step_f64(request, values, count);
}

PYF_END_TARGET
