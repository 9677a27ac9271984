// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta of integers on the CPU; compiled once per level (core/target.hpp).
#include "stages/integer.hpp"
#include "hierarchical_delta/cpu/instances.hpp"
#include "stages/packed/special_integer.hpp"

PYF_BEGIN_TARGET

const TileCoder* integer_coder(const PackedPlan& plan) {
  const int shape = plan.grid.block_dims;
  switch (dtype_bytes(plan.dtype)) {
    case 1:
      return packed_coder<IntegerMap<std::uint8_t>>(shape);
    case 2:
      return packed_coder<IntegerMap<std::uint16_t>>(shape);
    case 4:
      return packed_coder<IntegerMap<std::uint32_t>>(shape);
    default:
      return packed_coder<IntegerMap<std::uint64_t>>(shape);
  }
}

PYF_END_TARGET
