// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta on the CPU: which instance a plan needs. Compiled once per level (core/target.hpp), the instances
// in files of their own (f32.cpp and others), side by side.
#include "hierarchical_delta/cpu/coders.hpp"

#include "hierarchical_delta/codec.hpp"

PYF_BEGIN_TARGET

static const TileCoder* find_coder(const PackedPlan& plan) {
  if (!is_float(plan.dtype)) return integer_coder(plan);
  const bool logarithms = plan.step != 0 && plan.pointwise;
  if (plan.dtype == Dtype::f32) return logarithms ? pointwise_coder_f32(plan) : packed_coder_f32(plan);
  return logarithms ? pointwise_coder_f64(plan) : packed_coder_f64(plan);
}

const HierarchicalDeltaCoders kHierarchicalDeltaCoders{&find_coder};

PYF_END_TARGET
