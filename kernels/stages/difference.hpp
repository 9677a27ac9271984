// SPDX-License-Identifier: BSD-3-Clause
// First differences inside a block of codes and back (docs/format.md, section 5). They go along a 1-D block, or along
// every axis of an 8x8 or 4x4x4 block in turn. The latter is the parallelepiped predictor (Ibarria et al. 2003) with
// zeros outside the block.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "stages/simd/rows.hpp"

namespace pyfilter {

// Values of a block and of its rows, by block dimensions.
template <int D>
inline constexpr int kBlockValues = D == 1 ? 32 : 64;
template <int D>
inline constexpr int kRowValues = D == 1   ? 32
                                  : D == 2 ? 8
                                           : 4;

inline constexpr int kTileValues = 4096;
template <int D>
inline constexpr int kTileBlocks = kTileValues / kBlockValues<D>;

}  // namespace pyfilter

PYF_BEGIN_TARGET

// Values before the first block that difference() may read (and masks out).
inline constexpr int kDifferencePad = 16;

// N codes with padding before them in the same array, so that index -1 is valid.
template <class Code, int N>
struct PaddedCodes {
  alignas(64) Code room[kDifferencePad + N];
  KFN Code* data() { return room + kDifferencePad; }
  KFN operator Code*() { return data(); }
};

// z[i] = zigzag(d[i]) for a block. Map::wrap shortens differences of types narrower than the code.
template <class Map, int B>
KFN void zigzag_block(const typename Map::Code* d, typename Map::Code* z) {
  for (int i = 0; i < B; ++i) z[i] = zigzag(Map::wrap(d[i]));
}

// The same for the 1-D differences of codes q.
template <class Map, int B>
KFN void zigzag_differences(const typename Map::Code* q, typename Map::Code* z) {
  using Code = typename Map::Code;
  for (int i = 0; i < B; ++i)
    z[i] = zigzag(Map::wrap(static_cast<Code>(q[i] - (q[i - 1] & kNeighbour<Code, 1, B, B>.mask[i]))));
}

PYF_END_TARGET
