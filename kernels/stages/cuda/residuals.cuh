// SPDX-License-Identifier: BSD-3-Clause
// Codes of a thread's 32 values to residuals and back (docs/format.md, section 5). Two neighbouring lanes hold the
// halves of a 2-D or 3-D block; the second half needs the last row or slab of the first. Codes are biased (Map::kBias);
// the bias cancels except in a block's first code.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "stages/cuda/warp_sum.cuh"
#include "stages/difference.hpp"

namespace pyfilter::cuda {

// Differences along x of rows of L, from the end on, so that each neighbour is still a code.
template <int L, class Code>
__device__ __forceinline__ void row_differences(Code (&c)[32]) {
#pragma unroll
  for (int i = 31; i > 0; --i)
    if (i % L != 0) c[i] -= c[i - 1];
}

template <int L, class Code>
__device__ __forceinline__ void row_sums(Code (&c)[32]) {
#pragma unroll
  for (int i = 1; i < 32; ++i)
    if (i % L != 0) c[i] += c[i - 1];
}

// Values of a half block that the other half's differences start from: its last row or slab.
template <int D>
inline constexpr int kCrossing = D == 1   ? 1
                                 : D == 2 ? kRowValues<2>
                                          : kRowValues<3> * kRowValues<3>;

// Fetches these codes by shuffles; half 0 gets zeros, as from every fetch.
template <int D>
struct ShuffledCodes {
  int half;
  template <class Code>
  __device__ __forceinline__ void operator()(const Code (&c)[32], Code (&last)[kCrossing<D>]) const {
#pragma unroll
    for (int i = 0; i < kCrossing<D>; ++i) {
      const Code before = __shfl_up_sync(kAllLanes, c[32 - kCrossing<D> + i], 1);
      last[i] = half != 0 ? before : 0;
    }
  }
};

// Codes -> differences, in place. `half` is 0 in the thread with the block's first value; fetch(c, last) returns the
// codes from the other half.
template <class Map, int D, class Fetch>
__device__ __forceinline__ void make_residuals(bool differences, int half, typename Map::Code (&c)[32],
                                               const Fetch& fetch) {
  using Code = typename Map::Code;
  if (!differences) {
#pragma unroll
    for (int i = 0; i < 32; ++i) c[i] -= Map::kBias;
  } else {
    if constexpr (D > 1) {  // across the halves first, while the fetched codes are still codes
      Code last[kCrossing<D>];
      fetch(c, last);
#pragma unroll
      for (int i = 31; i >= kCrossing<D>; --i) c[i] -= c[i - kCrossing<D>];
#pragma unroll
      for (int i = 0; i < kCrossing<D>; ++i) c[i] -= last[i];
    }
    if constexpr (D == 3) {
#pragma unroll
      for (int i = 31; i > 0; --i)
        if (i % 16 >= 4) c[i] -= c[i - 4];
    }
    row_differences<kRowValues<D>>(c);
    if (half == 0) c[0] -= Map::kBias;
  }
#pragma unroll
  for (int i = 0; i < 32; ++i) c[i] = Map::wrap(c[i]);
}

// Differences -> biased codes, in place.
template <class Map, int D>
__device__ __forceinline__ void undo_residuals(bool differences, int half, typename Map::Code (&z)[32]) {
  using Code = typename Map::Code;
  if (!differences) {
#pragma unroll
    for (int i = 0; i < 32; ++i) z[i] += Map::kBias;
    return;
  }
  if (half == 0) z[0] += Map::kBias;
  row_sums<kRowValues<D>>(z);
  if constexpr (D == 2) {
#pragma unroll
    for (int i = 8; i < 32; ++i) z[i] += z[i - 8];
    Code above[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) above[i] = __shfl_up_sync(kAllLanes, z[24 + i], 1);
    if (half != 0) {
#pragma unroll
      for (int i = 0; i < 32; ++i) z[i] += above[i % 8];
    }
  }
  if constexpr (D == 3) {
#pragma unroll
    for (int i = 0; i < 32; ++i)
      if (i % 16 >= 4) z[i] += z[i - 4];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      z[16 + i] += z[i];
      const Code before = __shfl_up_sync(kAllLanes, z[16 + i], 1);
      if (half != 0) {
        z[i] += before;
        z[16 + i] += before;
      }
    }
  }
}

}  // namespace pyfilter::cuda
