// SPDX-License-Identifier: BSD-3-Clause
// Sequences of numbers as the encoder makes them (particles/sequence.hpp): planned for their size, then written to
// shared memory. A thread has the numbers of a group; the first kThreads threads of a block take part, the others do
// something else meanwhile.
#pragma once

#include <cstdint>

#include "particles/head.hpp"
#include "particles/sequence.hpp"
#include "stages/cuda/particles/rows.cuh"

namespace pyfilter::cuda {

// Words of a unary stream at most: a number takes a bit, and a group's quotients, whose low bits are no fewer than the
// bits of their mean less one, are less than 2 * 32 together.
inline constexpr std::uint32_t kUnaryWords = (kTileParticles + kThreads * 2 * kGroup) / 32;

// A barrier of the threads that have groups. Lanes of a warp may come to it apart: those without a group are done
// sooner.
__device__ __forceinline__ void group_barrier() {
  __syncwarp();
  asm volatile("barrier.sync 1, %0;" ::"n"(kThreads) : "memory");
}

// A planned sequence, as a thread sees it: its own group's low bits and what comes before them.
struct ThreadSequence {
  SequenceSize size;
  unsigned low;
  std::uint32_t planes_before, bits_before;
};

struct SequenceExchange {
  Exchange sums, lows;
};

// Numbers behind the last of the `count` are 0. One barrier.
__device__ __forceinline__ ThreadSequence plan_numbers(const std::uint32_t (&numbers)[32], std::uint32_t count,
                                                       SequenceExchange& exchange) {
  const std::uint32_t thread = threadIdx.x, warp = thread / 32;
  ThreadSequence own;
  own.size.set_count(count);
  const bool mine = thread < own.size.groups;
  std::uint32_t quotients = 0;
  own.low = mine ? choose_low(numbers, quotients) : 0;
  if (!mine) quotients = 0;
  const std::uint32_t here = min(count - min(count, thread * kGroup), kGroup);
  // planes in the high half: at most 24 of each of 128 groups
  const std::uint32_t sum = own.low << 16 | (quotients + here), upto = sum_upto(sum);
  std::uint32_t lows = or_of_lanes(mine ? 1u << own.low : 0);
  if (thread % 32 == 31) {
    exchange.sums[warp] = upto;
    exchange.lows[warp] = lows;
  }
  group_barrier();
  std::uint32_t before = upto - sum, all = 0;
  lows = 0;
#pragma unroll
  for (unsigned w = 0; w < kWarps; ++w) {
    before += w < warp ? exchange.sums[w] : 0;
    all += exchange.sums[w];
    lows |= exchange.lows[w];
  }
  own.planes_before = before >> 16;
  own.bits_before = before & 0xFFFF;
  own.size.plane_words = all >> 16;
  own.size.unary_bits = all & 0xFFFF;
  own.size.set_rates(static_cast<unsigned>(__ffs(static_cast<int>(lows)) - 1),
                     static_cast<unsigned>(bit_width(lows) - 1));
  return own;
}

// Writes a planned sequence to shared memory that nothing is read from any more. Two barriers.
__device__ __forceinline__ void write_numbers(const std::uint32_t (&numbers)[32], const ThreadSequence& own,
                                              std::uint32_t* out) {
  const std::uint32_t thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const SequenceSize& size = own.size;
  if (thread == 0) out[0] = size.head();
  if (warp < size.mask_words()) {
    for (unsigned p = 0; p < size.rate_planes; ++p) {
      const std::uint32_t mask = __ballot_sync(kAllLanes, thread < size.groups && (own.low - size.base) >> p & 1);
      if (lane == 0) out[1 + p * size.mask_words() + warp] = mask;
    }
  }
  std::uint32_t* const unary = out + size.planes_at() + size.plane_words;
  for (std::uint32_t i = thread; i < size.unary_words(); i += kThreads) unary[i] = 0;
  group_barrier();
  // planes
  std::uint32_t* const planes = out + size.planes_at() + own.planes_before;
  const int most = warp_max(static_cast<int>(own.low));
  const auto word = [&](int i) { return numbers[i]; };
  const auto group = [&]<int g>() {
    if (8 * g >= most) return;
    std::uint32_t w[8];
    pack_group<g>(word, w);
#pragma unroll
    for (int k = 0; k < 8; ++k)
      if (8 * g + k < static_cast<int>(own.low)) planes[8 * g + k] = w[k];
  };
  group.template operator()<0>();
  group.template operator()<1>();
  group.template operator()<2>();
  group.template operator()<3>();
  // ones
  const int here = static_cast<int>(min(size.count - min(size.count, thread * kGroup), kGroup));
  std::uint32_t at = own.bits_before;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    at += numbers[i] >> own.low;
    if (i < here) atomicOr(unary + at / 32, 1u << at % 32);
    ++at;
  }
  group_barrier();
}

}  // namespace pyfilter::cuda
