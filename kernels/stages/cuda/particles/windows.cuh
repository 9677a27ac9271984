// SPDX-License-Identifier: BSD-3-Clause
// Words of a tile into order where they lie near their places (tile_sort.cuh): a warp sorts a window of 256 in its
// registers, eight in a lane, by a network that knows no branch. Cells that lie on both sides of a border between
// windows are merged afterwards.
#pragma once

#include <cstdint>

#include "stages/cuda/particles/codes.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kWindow = 32 * kItems;
static_assert(kWindow * kTileWarps == kTileParticles);

__device__ __forceinline__ void put_in_order(std::uint32_t& a, std::uint32_t& b) {
  const std::uint32_t least = min(a, b);
  b = max(a, b);
  a = least;
}

// A lane's own words (Batcher's odd-even merge sort).
__device__ __forceinline__ void sort_own(std::uint32_t (&w)[kItems]) {
  constexpr int kSteps[][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {0, 2}, {1, 3}, {4, 6}, {5, 7}, {1, 2}, {5, 6},
                               {0, 4}, {1, 5}, {2, 6}, {3, 7}, {2, 4}, {3, 5}, {1, 2}, {3, 4}, {5, 6}};
#pragma unroll
  for (const auto& step : kSteps) put_in_order(w[step[0]], w[step[1]]);
}

// Lanes `away` of each other compare: the lower one keeps the smaller words, and the other the larger ones. kTurned:
// with each other's words from the last to the first.
template <bool kTurned, int kWords>
__device__ __forceinline__ void compare_lanes(std::uint32_t (&w)[kWords], int away, bool lower) {
  std::uint32_t other[kWords];
#pragma unroll
  for (int i = 0; i < kWords; ++i) other[i] = __shfl_xor_sync(kAllLanes, w[kTurned ? kWords - 1 - i : i], away);
#pragma unroll
  for (int i = 0; i < kWords; ++i) w[i] = lower ? min(w[i], other[i]) : max(w[i], other[i]);
}

// Words of kLanes lanes that rise and then fall (or the other way round) into order.
template <int kLanes, int kWords>
__device__ __forceinline__ void settle(std::uint32_t (&w)[kWords]) {
#pragma unroll
  for (int away = kLanes / 2; away > 0; away /= 2)
    compare_lanes<false>(w, away, (threadIdx.x & static_cast<unsigned>(away)) == 0);
#pragma unroll
  for (int away = kWords / 2; away > 0; away /= 2)
#pragma unroll
    for (int i = 0; i < kWords; ++i)
      if ((i & away) == 0) put_in_order(w[i], w[i + away]);
}

// All words of a warp into order: lane after lane.
template <int kLanes = 2>
__device__ __forceinline__ void merge_lanes(std::uint32_t (&w)[kItems]) {
  if constexpr (kLanes <= 32) {
    compare_lanes<true>(w, kLanes - 1, (threadIdx.x & (kLanes / 2)) == 0);
    settle<kLanes / 2>(w);
    merge_lanes<2 * kLanes>(w);
  }
}

// This warp's window; calls put(word, place) for each. By all lanes.
template <class Put>
__device__ __forceinline__ void sort_window(std::uint32_t* words, const Put& put) {
  const std::uint32_t first = threadIdx.x * kItems;
  auto* const own = reinterpret_cast<uint4*>(words + first);
  std::uint32_t w[kItems];
  take_words(words, w);  // in any order
  sort_own(w);
  merge_lanes(w);
  own[0] = make_uint4(w[0], w[1], w[2], w[3]);
  own[1] = make_uint4(w[4], w[5], w[6], w[7]);
#pragma unroll
  for (int i = 0; i < kItems; ++i) put(w[i], first + static_cast<unsigned>(i));
}

// Merges the words from `first` to the border, which are in order, and those from there to `last`, by the bits of
// `mask`, which are all that is kept of them. There are no more than 32 * kWords. By all lanes of a warp.
template <int kWords, class Put>
__device__ __forceinline__ void merge_across(std::uint32_t* words, std::uint32_t first, std::uint32_t border,
                                             std::uint32_t last, std::uint32_t mask, const Put& put) {
  const std::uint32_t lane = threadIdx.x % 32;
  std::uint32_t w[kWords];
#pragma unroll
  for (int i = 0; i < kWords; ++i) {  // rising, then none, then falling
    const std::uint32_t at = lane * kWords + static_cast<unsigned>(i), left = first + at,
                        right = border + (32 * kWords - 1 - at);
    w[i] = left < border ? words[left] & mask : right < last ? words[right] & mask : ~0u;
  }
  __syncwarp();  // all are taken; lanes write where others have read
  settle<32>(w);
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    const std::uint32_t place = first + lane * kWords + static_cast<unsigned>(i);
    if (place >= last) continue;
    words[place] = w[i];
    put(w[i], place);
  }
}

// A cell that has words on both sides of the border before this warp's window: where it starts, and its end in the
// high half; 0 for none. By all lanes.
template <class Put>
__device__ __forceinline__ void merge_border(std::uint32_t* words, std::uint32_t cell, std::uint32_t mask,
                                             const Put& put) {
  if (cell == 0) return;
  const std::uint32_t first = cell & 0xFFFF, border = threadIdx.x / 32 * kWindow, last = cell >> 16;
  if (last - first <= 32)
    merge_across<1>(words, first, border, last, mask, put);
  else if (last - first <= 64)
    merge_across<2>(words, first, border, last, mask, put);
  else if (last - first <= 128)
    merge_across<4>(words, first, border, last, mask, put);
  else
    merge_across<kItems>(words, first, border, last, mask, put);
}

}  // namespace pyfilter::cuda
