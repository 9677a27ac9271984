// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo on the CPU; compiled once per level (core/target.hpp).
#include "lorenzo/cpu/coders.hpp"

#include "lorenzo/codec.hpp"

PYF_BEGIN_TARGET

static const GroupCoder* find_coder(const StreamPlan& plan) {
  if (plan.dtype == Dtype::f32) return float_coder<float>(plan);
  return plan.dtype == Dtype::f64 ? lorenzo_coder_f64(plan) : nullptr;
}

const LorenzoCoders kLorenzoCoders{&find_coder};

PYF_END_TARGET
