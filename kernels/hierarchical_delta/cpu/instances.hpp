// SPDX-License-Identifier: BSD-3-Clause
// The CPU's tile coders of packed tiles for one map, by tile shape: for the files of the instances (cpu_*.cpp).
#pragma once

#include "core/target.hpp"
#include "hierarchical_delta/cpu/coders.hpp"
#include "stages/packed/decode.hpp"
#include "stages/packed/encode.hpp"

PYF_BEGIN_TARGET

template <class Map, int S>
inline constexpr TileCoder kPackedCoder{&encode_packed_tile<Map, S>, &decode_packed_tile<Map, S>};

template <class Map>
inline const TileCoder* packed_coder(int tile_shape) {
  switch (tile_shape) {
    case kChain:
      return &kPackedCoder<Map, kChain>;
    case kPlane:
      return &kPackedCoder<Map, kPlane>;
    case kVolume:
      return &kPackedCoder<Map, kVolume>;
    case kColumns:
      return &kPackedCoder<Map, kColumns>;
    default:
      return nullptr;
  }
}

PYF_END_TARGET
