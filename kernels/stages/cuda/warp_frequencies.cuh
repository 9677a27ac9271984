// SPDX-License-Identifier: BSD-3-Clause
// Frequencies from counts (stages/entropy/tables.hpp) by the threads of a warp.
#pragma once

#include <cstdint>

#include "stages/cuda/warp_sum.cuh"
#include "stages/entropy/tables.hpp"

namespace pyfilter::cuda {

__device__ __forceinline__ std::uint64_t sum_of_lanes(std::uint64_t x) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(kAllLanes, x, d);
  return x;
}
// make_frequencies() by a warp.
template <std::uint32_t Bits = kProbabilityBits>
__device__ void warp_frequencies(const std::uint32_t* counts, Frequencies& f) {
  const unsigned lane = threadIdx.x % 32;
  std::uint64_t total = 0;
  std::uint32_t listed = 1, most = 0, main = 0;
  for (std::uint32_t s = lane; s < kEscape; s += 32) {
    const std::uint32_t count = counts[s];
    total += count;
    if (count != 0) listed = s + 1;
    if (count > most) {
      most = count;
      main = s;
    }
  }
  total = sum_of_lanes(total);
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    listed = max(listed, __shfl_xor_sync(kAllLanes, listed, d));
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, most, d), there = __shfl_xor_sync(kAllLanes, main, d);
    if (other > most || (other == most && there < main)) {
      most = other;
      main = there;
    }
  }
  if (most == 0) main = 0;
  const std::uint32_t escape = escape_frequency<Bits>(counts[kEscape], total);
  total += counts[kEscape];
  std::uint64_t sum = 0;
  for (std::uint32_t s = lane; s < kSymbols; s += 32) {
    const bool has = s < listed && s != main && counts[s] != 0;
    const std::uint32_t own = s == kEscape ? escape : has ? symbol_frequency<Bits>(counts[s], total) : 0;
    f.of[s] = static_cast<std::uint16_t>(own);
    sum += own;
  }
  sum = sum_of_lanes(sum);
  __syncwarp();
  if (lane == 0) {
    f.listed = listed;
    f.main = main;
    give_rest<Bits>(f, static_cast<std::uint32_t>(sum));
  }
  __syncwarp();
}

}  // namespace pyfilter::cuda
