// SPDX-License-Identifier: BSD-3-Clause
// Sorts a tile's words that are near their final positions (tile_sort.cuh): a warp sorts a window of 256 words in
// registers by a branch-free network. Cells that cross a border between windows are merged afterwards.
#pragma once

#include <cstdint>

#include "particles/cuda/codes.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kWindow = 32 * kItems;
static_assert(kWindow * kTileWarps == kTileParticles);

__device__ __forceinline__ void put_in_order(std::uint32_t& a, std::uint32_t& b) {
  const std::uint32_t least = min(a, b);
  b = max(a, b);
  a = least;
}

// Sorts a lane's own words (Batcher's odd-even merge sort).
__device__ __forceinline__ void sort_own(std::uint32_t (&w)[kItems]) {
  constexpr int kSteps[][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {0, 2}, {1, 3}, {4, 6}, {5, 7}, {1, 2}, {5, 6},
                               {0, 4}, {1, 5}, {2, 6}, {3, 7}, {2, 4}, {3, 5}, {1, 2}, {3, 4}, {5, 6}};
#pragma unroll
  for (const auto& step : kSteps) put_in_order(w[step[0]], w[step[1]]);
}

// Compares words of lanes `away` apart: the lower lane keeps the smaller words, the other the larger ones.
template <int kWords>
__device__ __forceinline__ void compare_lanes(std::uint32_t (&w)[kWords], int away, bool lower) {
  std::uint32_t other[kWords];
#pragma unroll
  for (int i = 0; i < kWords; ++i) other[i] = __shfl_xor_sync(kAllLanes, w[i], away);
#pragma unroll
  for (int i = 0; i < kWords; ++i) w[i] = lower ? min(w[i], other[i]) : max(w[i], other[i]);
}

// Sorts words of kLanes lanes that ascend and then descend, or the other way round. A loop, since the kernel is longer
// than instruction caches.
template <int kLanes, int kWords>
__device__ __forceinline__ void settle(std::uint32_t (&w)[kWords]) {
#pragma unroll 1
  for (int away = kLanes / 2; away > 0; away /= 2)
    compare_lanes(w, away, (threadIdx.x & static_cast<unsigned>(away)) == 0);
#pragma unroll
  for (int away = kWords / 2; away > 0; away /= 2)
#pragma unroll
    for (int i = 0; i < kWords; ++i)
      if ((i & away) == 0) put_in_order(w[i], w[i + away]);
}

// A step of the network that merges the sorted words of 1, 2, 4, ... lanes. Compared words must be in one lane. If they
// are in two lanes, `away` apart, each lane sends the words whose index has `bit` and keeps the others. If two lanes
// are reversed (one lane's first word meets the other's last), received words are stored in reverse, too. Of two words
// whose indices differ in `bit`, the smaller goes to the lower index. In lanes with a bit of `twist` it goes to the
// higher index. Otherwise two words that the next step compares would both be sent, or both kept.
struct NetworkStep {
  unsigned away, bit;
  bool turned;
  unsigned twist;
};
// Of the two words a and b, the one that is not `one` (a + b - one); the compiler would use two instructions.
__device__ __forceinline__ std::uint32_t other_of(std::uint32_t a, std::uint32_t b, std::uint32_t one) {
  std::uint32_t other;
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(other) : "r"(a), "r"(b), "r"(one));
  return other;
}
__device__ __forceinline__ void send_half(std::uint32_t (&w)[kItems], unsigned away, unsigned bit, unsigned turn) {
  std::uint32_t come[kItems];
#pragma unroll
  for (unsigned r = 0; r < kItems; ++r)
    if ((r & bit) != 0) come[r ^ turn] = __shfl_xor_sync(kAllLanes, w[r], static_cast<int>(away));
#pragma unroll
  for (unsigned r = 0; r < kItems; ++r)
    if ((r & bit) != 0) w[r] = come[r];
}
__device__ __forceinline__ void merge_lanes(std::uint32_t (&w)[kItems]) {
  // found by a search for the fewest sent words and twists
  constexpr NetworkStep kSteps[] = {
      {1, 1, true, 0},  {0, 4, false, 0},  {0, 2, false, 1}, {1, 2, false, 0},                    // two lanes
      {3, 2, true, 0},  {0, 1, false, 0},  {0, 4, false, 1}, {1, 4, false, 2}, {2, 4, false, 0},  // four
      {7, 4, true, 0},  {0, 2, false, 0},  {0, 1, false, 1}, {1, 1, false, 2}, {2, 1, false, 4},  // eight
      {4, 1, false, 0},                                                                           //
      {15, 1, true, 0}, {0, 4, false, 0},  {0, 2, false, 1}, {1, 2, false, 2}, {2, 2, false, 4},  // sixteen
      {4, 2, false, 8}, {8, 2, false, 0},                                                         //
      {31, 2, true, 0}, {0, 1, false, 0},  {0, 4, false, 1}, {1, 4, false, 2}, {2, 4, false, 4},  // all
      {4, 4, false, 8}, {8, 4, false, 16}, {16, 4, false, 0}};
#pragma unroll
  for (const NetworkStep& step : kSteps) {
    if (step.away != 0) send_half(w, step.away, step.bit, step.turned ? (kItems - 1) & ~step.bit : 0);
    const bool twisted = (threadIdx.x & step.twist) != 0;
#pragma unroll
    for (unsigned r = 0; r < kItems; ++r) {
      if ((r & step.bit) != 0) continue;
      std::uint32_t &a = w[r], &b = w[r | step.bit];
      if (step.twist == 0) {
        put_in_order(a, b);
      } else {
        const std::uint32_t kept = twisted ? max(a, b) : min(a, b);
        b = other_of(a, b, kept);
        a = kept;
      }
    }
  }
}

// Sorts this warp's window; calls put(word, rank) for each word. Called by all lanes.
template <class Put>
__device__ __forceinline__ void sort_window(std::uint32_t* words, const Put& put) {
  std::uint32_t w[kItems];
  take_words(words, w);  // in any order
  sort_own(w);
  merge_lanes(w);
  __syncwarp();  // all words are loaded: lanes overwrite each other's
  // the network's final layout: two neighbours in a lane, lanes in bit-reversed order
  const std::uint32_t first = threadIdx.x / 32 * kWindow + 2 * (__brev(threadIdx.x) >> 27);
#pragma unroll
  for (unsigned r = 0; r < kItems / 2; ++r) {
    const std::uint32_t at = first + 64 * r;
    *reinterpret_cast<uint2*>(words + at) = make_uint2(w[r], w[r + kItems / 2]);
    put(w[r], at);
    put(w[r + kItems / 2], at + 1);
  }
}

// A cell that crosses a border between windows. Its words from `first` to the border and from the border to `last` are
// sorted, each by the bits of `mask`.
struct CellAcross {
  std::uint32_t first, border, last, mask;
};

// Words of a cell of at most 32 * kWords, arranged for a sorting network: words before the border, padding, then the
// others in reverse. A lane takes `each` consecutive words; [i] is the i-th.
template <int kWords>
struct LaneOfCell {
  const std::uint32_t* words;
  const CellAcross& cell;
  std::uint32_t left, right;  // address of its first word, before the border or after it

  __device__ __forceinline__ LaneOfCell(const std::uint32_t* of, const CellAcross& across, unsigned each)
      : words(of),
        cell(across),
        left(cell.first + threadIdx.x % 32 * each),
        right(cell.border + 32 * kWords - 1 - threadIdx.x % 32 * each) {}
  __device__ __forceinline__ std::uint32_t operator[](unsigned i) const {
    const bool before = left + i < cell.border;
    return before || right - i < cell.last ? words[before ? left + i : right - i] & cell.mask : ~0u;
  }
};

// Merges at most 32 * kWords words. Called by all lanes of a warp; calls put(word, rank) for each word.
template <int kWords, class Put>
__device__ __forceinline__ void merge_all(const std::uint32_t* words, const CellAcross& cell, const Put& put) {
  const LaneOfCell<kWords> own(words, cell, kWords);
  std::uint32_t w[kWords];
#pragma unroll
  for (unsigned i = 0; i < kWords; ++i) w[i] = own[i];
  settle<32>(w);
#pragma unroll
  for (unsigned i = 0; i < kWords; ++i)
    if (own.left + i < cell.last) put(w[i], own.left + i);
}
// Merges half of the words, the larger or the smaller ones; there are at most 64 * kWords.
template <int kWords, class Put>
__device__ __forceinline__ void merge_half(const std::uint32_t* words, const CellAcross& cell, bool larger,
                                           const Put& put) {
  constexpr unsigned kHalf = 32 * kWords;
  const LaneOfCell<2 * kWords> own(words, cell, kWords);
  std::uint32_t w[kWords];
#pragma unroll
  for (unsigned i = 0; i < kWords; ++i) {
    const std::uint32_t a = own[i], b = own[i + kHalf];
    w[i] = larger ? max(a, b) : min(a, b);
  }
  settle<32>(w);
  const std::uint32_t first = own.left + (larger ? kHalf : 0);
#pragma unroll
  for (unsigned i = 0; i < kWords; ++i)
    if (first + i < cell.last) put(w[i], first + i);
}

// `cells` has for each window the cell that crosses its lower border: its start, and its end in the high half; 0: none.
// A warp merges cells of up to 64 words before its own window. Of larger cells, which would delay all warps, it merges
// half, and half of the cell behind its window. Called by all lanes.
template <class Put>
__device__ __forceinline__ void merge_borders(const std::uint32_t* words, const std::uint32_t (&cells)[kTileWarps],
                                              std::uint32_t mask, const Put& put) {
  const std::uint32_t warp = threadIdx.x / 32;
#pragma unroll 1
  for (std::uint32_t window = warp; window < min(warp + 2, std::uint32_t{kTileWarps}); ++window) {
    const bool own = window == warp;
    const CellAcross cell = {cells[window] & 0xFFFF, window * kWindow, cells[window] >> 16, mask};
    const std::uint32_t size = cell.last - cell.first;
    if (size > 128)
      merge_half<4>(words, cell, own, put);
    else if (size > 64)
      merge_half<2>(words, cell, own, put);
    else if (own && size > 32)
      merge_all<2>(words, cell, put);
    else if (own && size > 0)
      merge_all<1>(words, cell, put);
  }
}

}  // namespace pyfilter::cuda
