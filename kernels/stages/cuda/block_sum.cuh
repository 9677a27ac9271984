// SPDX-License-Identifier: BSD-3-Clause
// Running sums over the threads of a large block, for offsets of a chunk's parts.
#pragma once

#include <cstdint>

#include "stages/cuda/packed/planes.cuh"

namespace pyfilter::cuda {

inline constexpr int kPlaceThreads = 1024;

// Sum over the threads before this one in the block; sets `*all` to the sum over all threads.
__device__ __forceinline__ std::uint64_t block_sum_before(std::uint64_t x, std::uint64_t (&warps)[32],
                                                          std::uint64_t* all) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::uint64_t upto = sum_upto(x);
  __syncthreads();
  if (lane == 31) warps[warp] = upto;
  __syncthreads();
  std::uint64_t before = upto - x;
  *all = 0;
  for (unsigned w = 0; w < kPlaceThreads / 32; ++w) {
    if (w < warp) before += warps[w];
    *all += warps[w];
  }
  return before;
}

}  // namespace pyfilter::cuda
