// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo (cuSZ): quantise -> differences through a tile of 4096 values, along a chain or the axes of the grid ->
// zigzag -> an entropy coder over groups of tiles (stages/entropy/). Tiles, special values and predictors are those of
// hierarchical_delta (stages/packed/), values and codes those of cuszp2, or of logarithms where the bound is relative
// to each value. Where a bound is too tight to gain anything the frame is one of hierarchical_delta. See FORMAT.md.
#pragma once

#include "cuszp2/codec.hpp"
#include "stages/entropy/group.hpp"
#include "stages/logarithm.hpp"
