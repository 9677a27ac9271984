// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo (cuSZ): quantise -> differences through a tile of 4096 values (along a chain or the grid's axes) -> zigzag ->
// an entropy coder over groups of tiles. The coder is rANS with contexts (rans.hpp) or Huffman (huffman.hpp); its
// tables come from a model of the chunk (model.hpp). Tiles, special values and predictors are those of packed tiles
// (stages/packed/). Codes are multiples of the step (stages/quantizing_map.hpp) or, for bounds relative to each value,
// of a step of logarithms (stages/logarithm.hpp). If the bound is too tight to gain anything, the frame is one of
// hierarchical_delta. See FORMAT.md.
#pragma once

#include "core/level.hpp"
#include "lorenzo/plan.hpp"

namespace pyfilter {

struct LorenzoCoders {
  const GroupCoder* (*coder)(const StreamPlan& plan);
};
PYF_LEVEL_TABLE(LorenzoCoders, kLorenzoCoders, lorenzo_coders)

}  // namespace pyfilter
