// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta on the CPU: a coder of tiles for each width of codes and tile shape. Compiled once per level
// (core/target.hpp).
#include "hierarchical_delta/codec.hpp"
#include "stages/packed/tile_instances.hpp"

PYF_BEGIN_TARGET

template <class Code, int S>
static constexpr TileCoder kPackedCoder{&encode_packed_tile<Code, S>, &decode_packed_tile<Code, S>};

template <class Code>
static const TileCoder* packed_coder(int tile_shape) {
  switch (tile_shape) {
    case kChain:
      return &kPackedCoder<Code, kChain>;
    case kPlane:
      return &kPackedCoder<Code, kPlane>;
    case kVolume:
      return &kPackedCoder<Code, kVolume>;
    case kColumns:
      return &kPackedCoder<Code, kColumns>;
    default:
      return nullptr;
  }
}

static const TileCoder* find_coder(const PackedPlan& plan) {
  const int shape = plan.grid.block_dims;
  return dtype_bytes(plan.dtype) == 8 ? packed_coder<std::uint64_t>(shape) : packed_coder<std::uint32_t>(shape);
}

const HierarchicalDeltaCoders kHierarchicalDeltaCoders{&find_coder};

PYF_END_TARGET
