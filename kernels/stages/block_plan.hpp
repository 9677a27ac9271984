// SPDX-License-Identifier: BSD-3-Clause
// The plan of a chunk of block tiles (docs/format.md, section 4), whose blocks need no other block, and its coders.
#pragma once

#include <cstdint>

#include "core/plan.hpp"

namespace pyfilter {

// Mode, in requests and frames: 0 outlier, 1 plain, 2 fixed rate.
struct BlockPlan : Plan {
  std::uint8_t mode = 0;
};

inline BlockPlan block_plan(const FrameInfo& info) {
  BlockPlan plan;
  read_plan(info, plan);
  plan.mode = info.parameters[0];
  plan.grid = make_grid(info.shape, info.value_count, info.parameters[1]);
  return plan;
}

// nullptr: the codec does not support the dtype.
using FindBlockCoder = const TileCoder*(Dtype dtype, int block_dims);

}  // namespace pyfilter
