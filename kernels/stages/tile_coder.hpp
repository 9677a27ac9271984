// SPDX-License-Identifier: BSD-3-Clause
// The coder of block tiles (tile_encode.hpp, tile_decode.hpp) for a map and block dimensions.
#pragma once

#include "core/target.hpp"
#include "stages/block_plan.hpp"
#include "stages/tile_decode.hpp"
#include "stages/tile_encode.hpp"

PYF_BEGIN_TARGET

template <class Map, int D>
inline constexpr TileCoder kTileCoder{&encode_tile<Map, D>, &decode_tile<Map, D>};

template <class Map>
inline const TileCoder* tile_coder(int block_dims) {
  switch (block_dims) {
    case 1:
      return &kTileCoder<Map, 1>;
    case 2:
      return &kTileCoder<Map, 2>;
    case 3:
      return &kTileCoder<Map, 3>;
    default:
      return nullptr;
  }
}

PYF_END_TARGET
