// SPDX-License-Identifier: BSD-3-Clause
// Lossless: bit patterns as codes (stages/bit_map.hpp), in the tile layout of stages/tile_encode.hpp. See FORMAT.md.
#pragma once

#include "core/level.hpp"
#include "stages/block_plan.hpp"

namespace pyfilter {

struct LosslessCoders {
  FindBlockCoder* coder;
};
PYF_LEVEL_TABLE(LosslessCoders, kLosslessCoders, lossless_coders)

}  // namespace pyfilter
