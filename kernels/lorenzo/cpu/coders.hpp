// SPDX-License-Identifier: BSD-3-Clause
// The coders of one dtype on the CPU: a file each, since they take long to compile.
#pragma once

#include "core/target.hpp"
#include "lorenzo/cpu/decode.hpp"
#include "lorenzo/cpu/encode.hpp"
#include "stages/logarithm.hpp"
#include "stages/quantizing_map.hpp"

PYF_BEGIN_TARGET

template <class Map, int S>
inline constexpr GroupCoder kGroupCoder{{&encode_group<Map, S>, &decode_group<Map, S>}, &count_tile<Map, S>};

template <class Map>
inline const GroupCoder* group_coder(int tile_shape) {
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

// The maps of a dtype: of values, of their logarithms.
template <class T>
inline const GroupCoder* float_coder(const StreamPlan& plan) {
  const int shape = plan.grid.block_dims;
  return plan.pointwise ? group_coder<LogMap<T>>(shape) : group_coder<QuantizingMap<T>>(shape);
}

const GroupCoder* lorenzo_coder_f64(const StreamPlan& plan);

PYF_END_TARGET
