// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo on the CPU: a coder of groups for each width of codes and tile shape. Compiled once per level
// (core/target.hpp).
#include "lorenzo/codec.hpp"
#include "lorenzo/cpu/decode.hpp"
#include "lorenzo/cpu/encode.hpp"

PYF_BEGIN_TARGET

template <class Code, int S>
static constexpr GroupCoder kGroupCoder{{&encode_group<Code>, &decode_group<Code, S>}, &count_tile<Code>};

template <class Code>
static const GroupCoder* group_coder(int tile_shape) {
  switch (tile_shape) {
    case kChain:
      return &kGroupCoder<Code, kChain>;
    case kPlane:
      return &kGroupCoder<Code, kPlane>;
    case kVolume:
      return &kGroupCoder<Code, kVolume>;
    case kColumns:
      return &kGroupCoder<Code, kColumns>;
    default:
      return nullptr;
  }
}

static const GroupCoder* find_coder(const StreamPlan& plan) {
  const int shape = plan.grid.block_dims;
  if (plan.dtype == Dtype::f32) return group_coder<std::uint32_t>(shape);
  return plan.dtype == Dtype::f64 ? group_coder<std::uint64_t>(shape) : nullptr;
}

const LorenzoCoders kLorenzoCoders{&find_coder};

PYF_END_TARGET
