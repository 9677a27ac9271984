// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo on the CPU; compiled once per level (core/target.hpp).
#include "lorenzo/cpu.hpp"

PYF_BEGIN_TARGET

const GroupCoder* lorenzo_coder(const Plan& plan) {
  if (plan.dtype == Dtype::f32) return float_coder<float>(plan);
  return plan.dtype == Dtype::f64 ? lorenzo_coder_f64(plan) : nullptr;
}

PYF_END_TARGET
