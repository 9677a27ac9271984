// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo on the CPU; compiled once per level (core/target.hpp).
#include "lorenzo/codec.hpp"

#include "core/level.hpp"
#include "stages/entropy/decode.hpp"
#include "stages/entropy/encode.hpp"

PYF_BEGIN_TARGET

template <class Map, int S>
inline constexpr GroupCoder kGroupCoder{{&encode_group<Map, S>, &decode_group<Map, S>}, &count_tile<Map, S>};

template <class Map>
static const GroupCoder* group_coder(int tile_shape) {
  switch (tile_shape) {
    case kChain:
      return &kGroupCoder<Map, kChain>;
    case kPlane:
      return &kGroupCoder<Map, kPlane>;
    case kVolume:
      return &kGroupCoder<Map, kVolume>;
    case kColumns:
      return &kGroupCoder<Map, kColumns>;
    default:
      return nullptr;
  }
}

const GroupCoder* lorenzo_coder(const Plan& plan) {
  const int shape = plan.grid.block_dims;
  if (plan.dtype == Dtype::f32)
    return plan.pointwise ? group_coder<LogMap<float>>(shape) : group_coder<QuantizingMap<float>>(shape);
  if (plan.dtype == Dtype::f64)
    return plan.pointwise ? group_coder<LogMap<double>>(shape) : group_coder<QuantizingMap<double>>(shape);
  return nullptr;
}

PYF_END_TARGET
