// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta on the CPU: tiles of f64 with a bound relative to each value. Compiled once per level
// (core/target.hpp).
#include "hierarchical_delta/cpu/instances.hpp"
#include "stages/logarithm.hpp"

PYF_BEGIN_TARGET

const TileCoder* pointwise_coder_f64(const PackedPlan& plan) {
  return packed_coder<LogMap<double>>(plan.grid.block_dims);
}

PYF_END_TARGET
