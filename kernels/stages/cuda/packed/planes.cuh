// SPDX-License-Identifier: BSD-3-Clause
// Bit planes of a block in registers, with its exception (stages/packed/layout.hpp), and a packed tile's sums over its
// blocks.
#pragma once

#include <cstdint>

#include "stages/cuda/bit_transpose.cuh"
#include "stages/cuda/params.cuh"
#include "stages/cuda/residuals.cuh"
#include "stages/cuda/warp_sum.cuh"
#include "stages/packed/layout.hpp"

namespace pyfilter::cuda {

// All planes of the residuals of 32 differences, up to the width of the warp's widest block; w[p] is plane p.
template <class Code>
__device__ __forceinline__ void pack_all(const Code (&d)[32], int highest, std::uint32_t (&w)[8 * sizeof(Code)]) {
#pragma unroll
  for (std::uint32_t& plane : w) plane = 0;
  residual_planes(d, highest, [&](int p, std::uint32_t plane) { w[p] = plane; });
}

// split_exception() without an early exit. Above the remaining planes, the OR of all planes has at most one bit set.
template <int kPlanes>
__device__ __forceinline__ Exception split_planes(int width, int highest, const std::uint32_t (&w)[kPlanes]) {
  std::uint32_t any = 0, top = 0, bits[kPlanes / 32] = {};
  int left = 0;
#pragma unroll
  for (int g = kPlanes / 8 - 1; g >= 0; --g) {
    if (8 * g >= highest) continue;
#pragma unroll
    for (int k = 7; k >= 0; --k) {
      const int p = 8 * g + k;
      any |= w[p];
      const bool more = (any & (any - 1)) != 0;
      left += more ? 1 : 0;
      top = more ? top : any;
      bits[p / 32] |= w[p] != 0 ? 1u << p % 32 : 0;
    }
  }
  left = max(left, width - kExceptionBits);
  if (left >= width) return {width, 0};
  std::uint64_t all = bits[0];
  if constexpr (kPlanes == 64) all |= static_cast<std::uint64_t>(bits[1]) << 32;
  return {left, static_cast<std::uint32_t>(31 - __clz(static_cast<int>(top))) | static_cast<std::uint32_t>(all >> left)
                                                                                    << 5};
}

template <int kPlanes>
__device__ __forceinline__ void write_all(const std::uint32_t (&w)[kPlanes], int planes, int highest,
                                          std::uint32_t* to) {
#pragma unroll
  for (int g = 0; g < kPlanes / 8; ++g) {
    if (8 * g >= highest) continue;
#pragma unroll
    for (int k = 0; k < 8; ++k)
      if (8 * g + k < planes) to[8 * g + k] = w[8 * g + k];
  }
}

// A warp's sums over its blocks.
struct WarpShare {
  // with exceptions:
  std::uint32_t words;       // low half: all planes; high half: planes that exceptions leave
  std::uint32_t widths;      // narrowest and widest width, without and with exceptions: a byte each
  std::uint32_t saved;       // bits, by exceptions
  std::uint32_t exceptions;  // a mask of blocks, like the next three
  // without exceptions: words, narrowest and widest width

  std::uint32_t special, masked, present;
  std::uint32_t groups;  // groups of four bits in the masks of missing values
};

__device__ __forceinline__ std::uint32_t warp_max_u(std::uint32_t x) {
  return static_cast<std::uint32_t>(warp_max(static_cast<int>(x)));
}
// The OR over all lanes.
__device__ __forceinline__ std::uint32_t or_of_lanes(std::uint32_t x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_or_sync(kAllLanes, x);
#else
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x |= __shfl_xor_sync(kAllLanes, x, d);
  return x;
#endif
}
}  // namespace pyfilter::cuda
