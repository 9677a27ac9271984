// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta on the CPU: tiles of f32, quantised or bit-exact. Compiled once per level (core/target.hpp).
#include "hierarchical_delta/cpu/instances.hpp"
#include "stages/bit_map.hpp"
#include "stages/quantizing_map.hpp"

PYF_BEGIN_TARGET

const TileCoder* packed_coder_f32(const PackedPlan& plan) {
  const int shape = plan.grid.block_dims;
  return plan.step == 0 ? packed_coder<ExactMap<float>>(shape) : packed_coder<QuantizingMap<float>>(shape);
}

PYF_END_TARGET
