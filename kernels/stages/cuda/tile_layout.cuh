// SPDX-License-Identifier: BSD-3-Clause
// Offsets of a tile's parts (docs/format.md, section 4.3). Each thread contributes the sizes of its half or whole
// block, and a scan over the thread block gives the offsets.
#pragma once

#include <cstdint>

#include "stages/cuda/params.cuh"
#include "stages/cuda/residuals.cuh"
#include "stages/rate.hpp"

namespace pyfilter::cuda {

// Words in the low half, outlier bytes in the high half; a tile has fewer than 2^16 of each.
struct Taken {
  std::uint32_t packed;

  __device__ Taken(std::uint32_t words, std::uint32_t outlier_bytes) : packed(words | outlier_bytes << 16) {}
  __device__ std::uint32_t words() const { return packed & 0xFFFFu; }
  __device__ std::uint32_t outlier_bytes() const { return packed >> 16; }
};

// Shared memory of the scan.
struct ScanSpace {
  std::uint32_t taken[kWarps];
  std::uint32_t specials[kWarps];
  std::uint32_t rates[kWarps];  // the rate code of a warp's blocks, or kMixed
};
inline constexpr std::uint32_t kMixed = 0x100;

// The offsets of a thread's parts, within each kind; and the tile's totals.
struct Placed {
  std::uint32_t words, outlier_bytes, specials;
  std::uint32_t total_words, total_outlier_bytes, total_specials;
  std::uint32_t common_rate;  // kMixed in a tile whose blocks differ
};

// Step 1: the scan within the warp; returns the sum before this thread. `counts` is set in threads that have a block's
// rate code.
__device__ __forceinline__ Taken scan_warp(Taken taken, bool valid, bool counts, std::uint32_t rate,
                                           std::uint32_t& specials_before, ScanSpace& space) {
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const std::uint32_t sum = sum_upto(taken.packed);
  const std::uint32_t special = __ballot_sync(kAllLanes, counts && is_special_rate(static_cast<std::uint8_t>(rate)));
  specials_before = static_cast<std::uint32_t>(__popc(special & ((1u << lane) - 1)));
  const std::uint32_t first = __shfl_sync(kAllLanes, rate, 0);
  const bool same = __all_sync(kAllLanes, !valid || rate == first) != 0;
  if (lane == 31) {
    space.taken[warp] = sum;
    space.specials[warp] = static_cast<std::uint32_t>(__popc(special));
    space.rates[warp] = same ? first : kMixed;
  }
  Taken before(0, 0);
  before.packed = sum - taken.packed;
  return before;
}

// Step 2, after a barrier: the scan across warps. `threads`: number of threads with a part in this tile.
__device__ __forceinline__ Placed scan_block(Taken before, std::uint32_t specials_before, int threads,
                                             const ScanSpace& space) {
  const int warp = static_cast<int>(threadIdx.x / 32);
  std::uint32_t offset = 0, total = 0, specials = 0, total_specials = 0, rate = space.rates[0];
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) {
      offset += space.taken[w];
      specials += space.specials[w];
    }
    total += space.taken[w];
    total_specials += space.specials[w];
    if (32 * w < threads && space.rates[w] != rate) rate = kMixed;
  }
  before.packed += offset;
  Taken all(0, 0);
  all.packed = total;
  return {before.words(),
          before.outlier_bytes(),
          specials + specials_before,
          all.words(),
          all.outlier_bytes(),
          total_specials,
          rate};
}

}  // namespace pyfilter::cuda
