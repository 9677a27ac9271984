// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo of float64 on the CPU; compiled once per level (core/target.hpp).
#include "lorenzo/cpu/coders.hpp"

PYF_BEGIN_TARGET

const GroupCoder* lorenzo_coder_f64(const StreamPlan& plan) { return float_coder<double>(plan); }

PYF_END_TARGET
