// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta (AATROX): quantise -> differences through a tile of 4096 values, along a chain or the axes of the
// grid -> zigzag -> bit planes of blocks of 32, widths packed into bit planes of their own (stages/packed/). Codes are
// multiples of the step (stages/quantizing_map.hpp), of a step of logarithms (stages/logarithm.hpp) where the bound is
// relative to each value, integers (stages/integer.hpp), or bit patterns (stages/bit_map.hpp) where the bound is too
// tight to gain anything. See FORMAT.md beside it.
#pragma once

#include "core/level.hpp"
#include "stages/packed/plan.hpp"

namespace pyfilter {

struct HierarchicalDeltaCoders {
  const TileCoder* (*coder)(const PackedPlan& plan);
};
PYF_LEVEL_TABLE(HierarchicalDeltaCoders, kHierarchicalDeltaCoders, hierarchical_delta_coders)

}  // namespace pyfilter
