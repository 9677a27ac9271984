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

Predictor choose_predictor_of(const Request& request, const Plan& plan, const void* values, std::uint64_t count) {
  if (!is_float(request.dtype)) return choose_integer_predictor(request, plan, values, count);
  const bool logarithms = plan.step != 0 && plan.pointwise;
  if (request.dtype == Dtype::f32)
    return logarithms ? choose_pointwise_predictor_f32(request, plan, values, count)
                      : choose_predictor_f32(request, plan, values, count);
  return logarithms ? choose_pointwise_predictor_f64(request, plan, values, count)
                    : choose_predictor_f64(request, plan, values, count);
}

StepChoice choose_log_step_of(const Request& request, const void* values, std::uint64_t count) {
  return request.dtype == Dtype::f32 ? choose_log_step_f32(request, values, count)
                                     : choose_log_step_f64(request, values, count);
}

PYF_END_TARGET
