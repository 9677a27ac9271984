// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta (AATROX): quantise -> differences through a tile of 4096 values (along a chain or the grid's axes)
// -> zigzag -> bit planes of blocks of 32. The blocks' widths have bit planes of their own (stages/packed/). Codes are
// multiples of the step (stages/quantizing_map.hpp), or of a step of logarithms for bounds relative to each value
// (stages/logarithm.hpp). Integers have their own map (stages/integer.hpp). If the bound is too tight to gain anything,
// codes are bit patterns (stages/bit_map.hpp). See FORMAT.md.
#pragma once

#include "core/level.hpp"
#include "stages/packed/plan.hpp"

namespace pyfilter {

struct HierarchicalDeltaCoders {
  const TileCoder* (*coder)(const PackedPlan& plan);
};
PYF_LEVEL_TABLE(HierarchicalDeltaCoders, kHierarchicalDeltaCoders, hierarchical_delta_coders)

}  // namespace pyfilter
