// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta (AATROX): quantise -> differences through a tile of 4096 values, along a chain or the axes of the
// grid -> zigzag -> bit planes of blocks of 32, widths packed into bit planes of their own (stages/packed/). Values and
// codes are those of cuszp2, of logarithms (stages/logarithm.hpp) where the bound is relative to each value, of
// integers (stages/integer.hpp), or of lossless where the bound is too tight to gain anything. See FORMAT.md beside it.
#pragma once

#include "cuszp2/codec.hpp"
#include "lossless/codec.hpp"
#include "stages/logarithm.hpp"

PYF_BEGIN_TARGET

// What a frame without a step holds: the bits of the values.
template <class T>
using ExactMap = BitMap<typename FloatTraits<T>::Code, true>;

PYF_END_TARGET
