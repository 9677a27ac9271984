// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta (AATROX): quantise -> differences through a tile of 4096 values, along a chain or the axes of the
// grid -> zigzag -> bit planes of blocks of 32. The blocks' widths have bit planes of their own (stages/packed/). Codes
// are multiples of the step (stages/quantizing_map.hpp); for bounds relative to each value, multiples of a step of
// logarithms (stages/logarithm.hpp); integers (stages/integer.hpp); or, if the bound is too tight to gain anything, bit
// patterns (stages/bit_map.hpp). See FORMAT.md.
#pragma once

#include "core/level.hpp"
#include "stages/packed/plan.hpp"

namespace pyfilter {

struct HierarchicalDeltaCoders {
  const TileCoder* (*coder)(const PackedPlan& plan);
};
PYF_LEVEL_TABLE(HierarchicalDeltaCoders, kHierarchicalDeltaCoders, hierarchical_delta_coders)

}  // namespace pyfilter
