// SPDX-License-Identifier: BSD-3-Clause
// How many words come before a tile: decoupled look-back (Merrill and Garland, 2016) over the states of the tiles
// before it. The states are CUB's. CUB's own look-back reads 32 of them at a time, which is the speed of the frontier:
// 32 tiles each round trip to the L2 cache, half of what this memory can feed. Here a warp reads kLookBack at a time.
#pragma once

#include <cstdint>

#include "stages/cuda/params.cuh"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

#ifndef PYF_STATES_PER_LANE
#define PYF_STATES_PER_LANE 1
#endif
inline constexpr int kStatesPerLane = PYF_STATES_PER_LANE, kLookBack = 32 * kStatesPerLane;

__device__ __forceinline__ uint2 load_state(const uint2* at) {
  uint2 state;
  asm volatile("ld.relaxed.gpu.global.v2.u32 {%0, %1}, [%2];" : "=r"(state.x), "=r"(state.y) : "l"(at) : "memory");
  return state;
}

__device__ __forceinline__ std::uint32_t warp_sum(std::uint32_t x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(kAllLanes, x);
#else
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(kAllLanes, x, d);
  return x;
#endif
}

// Words before tile `tile` > 0, to all lanes of the calling warp; publishes them with the tile's own for those behind.
// Tiles before it must be running or done, or nobody would publish what this waits for.
__device__ __forceinline__ std::uint32_t look_back(TileState& states, std::uint32_t tile, std::uint32_t words) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const uint2* const first = states.d_tile_descriptors + TileState::TILE_STATUS_PADDING;
  std::uint32_t before = 0;
  for (int at = static_cast<int>(tile) - 1;; at -= kLookBack) {
    std::uint32_t found = 0, share = 0;
    bool waits;
    do {
      uint2 state[kStatesPerLane];
#pragma unroll
      for (int j = 0; j < kStatesPerLane; ++j) {
        const int index = at - 32 * j - lane;
        state[j] = index >= 0 ? load_state(first + index) : make_uint2(cub::SCAN_TILE_OOB, 0);
      }
      found = share = 0;
      waits = false;
#pragma unroll
      for (int j = 0; j < kStatesPerLane; ++j) {
        if (found != 0 || waits) continue;  // the same in all lanes
        found = __ballot_sync(kAllLanes, state[j].x == cub::SCAN_TILE_INCLUSIVE);
        // lanes are numbered from the nearest tile on: those beyond the first inclusive one do not matter
        const std::uint32_t matter = found != 0 ? found ^ (found - 1) : kAllLanes;
        waits = (__ballot_sync(kAllLanes, state[j].x == cub::SCAN_TILE_INVALID) & matter) != 0;
        if ((matter >> lane & 1) != 0) share += state[j].y;
      }
#if PYF_DELAY
      if (waits) __nanosleep(PYF_DELAY);
#endif
    } while (waits);
    before += warp_sum(share);
    if (found != 0) break;
  }
  if (lane == 0) states.SetInclusive(static_cast<int>(tile), before + words);
  return before;
}

}  // namespace pyfilter::cuda
