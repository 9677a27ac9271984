// SPDX-License-Identifier: BSD-3-Clause
// Cuszp2 (cuSZp2, SC'24, section IV): quantise (stages/quantizing_map.hpp) -> differences inside a block -> zigzag ->
// bit planes, block by block (stages/tile_encode.hpp). See FORMAT.md beside it.
#pragma once

#include "core/level.hpp"
#include "stages/block_plan.hpp"

namespace pyfilter {

struct Cuszp2Coders {
  FindBlockCoder* coder;
};
PYF_LEVEL_TABLE(Cuszp2Coders, kCuszp2Coders, cuszp2_coders)

}  // namespace pyfilter
