// SPDX-License-Identifier: BSD-3-Clause
// First differences inside a block of codes and back (docs/format.md, section 5): along the block (1-D), or along
// every axis of an 8x8 or 4x4x4 block in turn, which is the Lorenzo predictor with zeros outside the block.
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
inline constexpr int kRowValues = D == 1 ? 32 : D == 2 ? 8 : 4;

inline constexpr int kTileValues = 4096;

}  // namespace pyfilter

PYF_BEGIN_TARGET

// d[i] -= d of the neighbour `stride` before, where there is one in the same run of `run` values.
template <int kStride, int kRun, int N, class Code>
KFN void subtract_neighbour(const Code* from, Code* to) {
  for (int i = 0; i < N; ++i)
    to[i] = i % kRun < kStride ? from[i] : static_cast<Code>(from[i] - from[i - kStride]);
}

template <int kStride, int kRun, int N, class Code>
KFN void add_neighbour(Code* a) {
  for (int run = 0; run < N; run += kRun)
    for (int i = run + kStride; i < run + kRun; ++i) a[i] = static_cast<Code>(a[i] + a[i - kStride]);
}

// Residuals of one block: z[i] = zigzag of the difference (of the code itself in mode fixed). Returns the OR of all
// but the first; the first is z[0]. Map::wrap shortens differences of types narrower than the code.
template <int D, class Map>
KFN typename Map::Code residuals(const typename Map::Code* q, bool differences, typename Map::Code* z) {
  using Code = typename Map::Code;
  constexpr int N = kBlockValues<D>;
  Code d[N];
  if (!differences) {
    for (int i = 0; i < N; ++i) d[i] = q[i];
  } else if constexpr (D == 1) {
    subtract_neighbour<1, N, N>(q, d);
  } else if constexpr (D == 2) {
    Code x[N];
    subtract_neighbour<1, 8, N>(q, x);
    subtract_neighbour<8, N, N>(x, d);
  } else {
    Code x[N], y[N];
    subtract_neighbour<1, 4, N>(q, x);
    subtract_neighbour<4, 16, N>(x, y);
    subtract_neighbour<16, N, N>(y, d);
  }
  Code any = 0;
  for (int i = 0; i < N; ++i) {
    z[i] = zigzag(Map::wrap(d[i]));
    any |= i == 0 ? Code{0} : z[i];
  }
  return any;
}

// Codes of one block from its differences, in place.
template <int D, class Code>
KFN void accumulate(Code (&d)[kBlockValues<D>]) {
  prefix_sum<kRowValues<D>>(d);
  if constexpr (D == 2) add_neighbour<8, 64, 64>(d);
  if constexpr (D == 3) {
    add_neighbour<4, 16, 64>(d);
    add_neighbour<16, 64, 64>(d);
  }
}

PYF_END_TARGET
