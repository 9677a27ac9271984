// SPDX-License-Identifier: BSD-3-Clause
// First differences inside a block of codes and back (docs/format.md, section 5): along the block (1-D), or along
// every axis of an 8x8 or 4x4x4 block in turn, which is the parallelepiped predictor (Ibarria et al. 2003) with zeros
// outside the block.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "stages/planes.hpp"

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

// All ones where a value of a block has a neighbour `stride` before it in its run of `run` values, else 0.
template <class Code, int kStride, int kRun, int B>
struct NeighbourMask {
  alignas(64) Code mask[B];
  constexpr NeighbourMask() : mask{} {
    for (int i = 0; i < B; ++i) mask[i] = i % kRun < kStride ? Code{0} : static_cast<Code>(~Code{0});
  }
};
template <class Code, int kStride, int kRun, int B>
inline constexpr NeighbourMask<Code, kStride, kRun, B> kNeighbour{};

// Values in front of the first block that difference() may read; their differences are masked out.
inline constexpr int kDifferencePad = 16;

// N codes and the padding in front of them in one array, so that index -1 is inside the array.
template <class Code, int N>
struct PaddedCodes {
  alignas(64) Code padded[kDifferencePad + N];
  KFN Code* data() { return padded + kDifferencePad; }
  KFN operator Code*() { return data(); }
};

PYF_END_TARGET

#if defined(PYF_LEVEL_AVX512)
#include "stages/simd/blocks_avx512.hpp"
#elif defined(PYF_LEVEL_AVX2)
#include "stages/simd/blocks_avx2.hpp"
#else
#include "stages/simd/blocks_generic.hpp"
#endif

PYF_BEGIN_TARGET

#if defined(PYF_LEVEL_AVX512) || defined(PYF_LEVEL_AVX2)
inline constexpr bool kDifferencesInRegisters = true;
// Differences of one block (blocks_generic.hpp); here the block stays in registers from axis to axis.
template <int D, class Code>
KFN void differences(const Code* q, Code* /*t*/, Code* d, int blocks) {
  for (int b = 0; b < blocks; ++b) {
    if constexpr (D == 2)
      differences_2d(q + b * 64, d + b * 64);
    else
      differences_3d(q + b * 64, d + b * 64);
  }
}
#else
inline constexpr bool kDifferencesInRegisters = false;
#endif

// z[i] = zigzag(d[i]) of one block. Map::wrap shortens differences of types narrower than the code.
template <class Map, int B>
KFN void zigzag_block(const typename Map::Code* d, typename Map::Code* z) {
  for (int i = 0; i < B; ++i) z[i] = zigzag(Map::wrap(d[i]));
}

// Zigzag numbers of the 1-D differences of codes q.
template <class Map, int B>
KFN void zigzag_differences(const typename Map::Code* q, typename Map::Code* z) {
  using Code = typename Map::Code;
  for (int i = 0; i < B; ++i)
    z[i] = zigzag(Map::wrap(static_cast<Code>(q[i] - (q[i - 1] & kNeighbour<Code, 1, B, B>.mask[i]))));
}

// Differences -> codes of one block, in place.
template <int D, class Code>
KFN void accumulate(Code (&d)[kBlockValues<D>]) {
  if constexpr (D == 1) accumulate_1d(d);
  if constexpr (D == 2) accumulate_2d(d);
  if constexpr (D == 3) accumulate_3d(d);
}

PYF_END_TARGET
