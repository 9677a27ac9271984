// SPDX-License-Identifier: BSD-3-Clause
// The runs of a class (docs/format.md, section 13.5) by a warp, a word of 32 bits in each lane. Whether a one ends a
// run's zeros or belongs to its low bits depends on all bits before. So each lane parses its word as if a run started
// there, and again while the previous lane ends elsewhere. After two or three rounds all lanes agree. Prefix sums of
// runs, zeros and low bits then give the positions of the class's ones.
#pragma once

#include <cstdint>

#include "progressive/cuda/bits.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kRankWords = kTileWords + 1;

// The bits of a piece.
struct PieceBits {
  const std::uint32_t* words;  // the first word holds the first bit
  std::uint32_t skipped;       // bits of the first word before the piece
  std::uint32_t used;          // words with bits of the piece
  std::uint32_t bytes;         // of the payload from the first word on; or a large number
  int last;                    // index of the last word with a whole word behind it

  __device__ __forceinline__ PieceBits(const ProgressiveFrame& frame, std::uint64_t piece) {
    const std::uint64_t offset = piece_offset(piece);
    words = reinterpret_cast<const std::uint32_t*>(frame.payload) + offset / 4;
    skipped = 8 * static_cast<std::uint32_t>(offset % 4);
    used = (skipped + 8 * piece_size(piece) + 31) / 32;
    bytes = static_cast<std::uint32_t>(min(frame.payload_bytes - 4 * (offset / 4), std::uint64_t{1} << 24));
    last = static_cast<int>(bytes / 4) - 2;
  }
  // 32 bits from bit `at` on.
  __device__ __forceinline__ std::uint32_t bits(std::uint32_t at) const {
    const std::uint32_t bit = skipped + at, i = bit / 32;
    if (static_cast<int>(i) > last) return last_bits(words, bytes, bit);
    return __funnelshift_r(words[i], words[i + 1], bit % 32);
  }
  // Word i; words beyond the last are zeros.
  __device__ __forceinline__ std::uint32_t word(std::uint32_t i) const {
    if (i >= used) return 0;
    return 4 * i + 4 > bytes ? last_bits(words, bytes, 32 * i) : words[i];
  }
};

// The ones of a word that end the zeros of a run, if a run's zeros start at bit `entry`.
__device__ __forceinline__ std::uint32_t run_ends(std::uint32_t word, std::uint32_t entry, std::uint32_t step) {
  std::uint32_t left = word & ~0u << entry, ends = 0;
  while (left != 0) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {  // does nothing once none is left
      const std::uint32_t end = left & (0u - left);
      ends |= end;
      left &= 0u - (end << step);
    }
  }
  return ends;
}

// The limits of a sequence of runs: its positions, and the place of the number of runs in a sum of them and of low
// bits.
template <std::uint32_t kPositions, class Sum, int kRunsAt>
struct RunLimits {
  static constexpr std::uint32_t kMost = kPositions;
  using Both = Sum;
  static constexpr int kShift = kRunsAt;
};
using ClassRuns = RunLimits<4096, std::uint32_t, 20>;  // up to 1024 runs, and low bits below 2^20 in all
using MaskRuns = RunLimits<kMaskPiece, std::uint64_t, 32>;

// The ones, by rank, of a class of `count` positions whose runs start at bit `at`; sets `at` to their end. False if the
// runs are damaged.
template <class Limits>
__device__ __forceinline__ bool read_runs(const PieceBits& piece, std::uint32_t k, std::uint32_t count,
                                          std::uint32_t& at, std::uint32_t* ranks) {
  if (count == 0) return true;
  const unsigned lane = threadIdx.x % 32;
  for (std::uint32_t i = lane; i <= (count + 31) / 32; i += 32) ranks[i] = 0;
  __syncwarp();
  const std::uint32_t step = k + 1, first = piece.skipped + at;
  std::uint32_t carry = first % 32;         // bit of the first lane's word where a run's zeros start
  std::uint32_t start = 32 * lane - carry;  // bit of a lane's word, from the first run on
  std::uint32_t runs_before = 0, lows_before = 0;
#pragma unroll 1
  for (std::uint32_t i = first / 32 + lane;; i += 32, start += 1024) {
    const std::uint32_t word = piece.word(i), behind = piece.word(i + 1);
    std::uint32_t entry = lane == 0 ? carry : 0, ends = 0, exit = 0;
    bool again = true;
    do {
      if (again) {
        ends = run_ends(word, entry, step);
        exit = static_cast<std::uint32_t>(max(static_cast<int>(k) - __clz(static_cast<int>(ends)), 0));
      }
      std::uint32_t before = __shfl_up_sync(kAllLanes, exit, 1);
      if (lane == 0) before = carry;
      again = before != entry;
      entry = before;
    } while (__any_sync(kAllLanes, again));
    std::uint32_t lows = 0;
    for (std::uint32_t b = 0; b < k; ++b)
      lows += static_cast<std::uint32_t>(__popc(static_cast<int>(__funnelshift_r(word, behind, b + 1) & ends))) << b;
    using Both = typename Limits::Both;
    constexpr Both kLows = (Both{1} << Limits::kShift) - 1;
    Both all;
    const Both before =
        warp_sum_before(static_cast<Both>(__popc(static_cast<int>(ends))) << Limits::kShift | lows, all);
    const auto runs = runs_before + static_cast<std::uint32_t>(before >> Limits::kShift);
    std::uint32_t to = (start - runs * step << k) + lows_before + static_cast<std::uint32_t>(before & kLows) + runs,
                  one = 0, last = 0;
    bool ended = false;
    while (ends != 0) {
      const auto t = static_cast<std::uint32_t>(__ffs(static_cast<int>(ends)) - 1);
      const std::uint32_t low = __funnelshift_r(word, behind, t) >> 1 & ((1u << k) - 1);
      one = to + (t << k) + low;
      ended = one + 1 >= count;
      if (one < count) atomicOr(ranks + one / 32, 1u << (one % 32));
      if (ended) {
        last = start + t;
        break;
      }
      to += low + 1 - (step << k);
      ends &= ends - 1;
    }
    if (const unsigned any = __ballot_sync(kAllLanes, ended); any != 0) {
      const int from = __ffs(static_cast<int>(any)) - 1;
      at += __shfl_sync(kAllLanes, last, from) + step;
      __syncwarp();
      return __shfl_sync(kAllLanes, one, from) <= count;
    }
    carry = __shfl_sync(kAllLanes, exit, 31);
    runs_before += static_cast<std::uint32_t>(all >> Limits::kShift);
    lows_before += static_cast<std::uint32_t>(all & kLows);
    // beyond the piece, or more zeros than positions: stops before sums overflow
    const std::uint32_t next = __shfl_sync(kAllLanes, i, 0) + 32, read = 32 * next - first;
    if (next >= piece.used || static_cast<int>(read - runs_before * step) > static_cast<int>(Limits::kMost))
      return false;
  }
}

}  // namespace pyfilter::cuda
