// SPDX-License-Identifier: BSD-3-Clause
// Encoding of sequences of numbers (particles/sequence.hpp): planned for their size, then written to shared memory. All
// threads of a block take part: four threads share a group, with eight numbers each.
#pragma once

#include <cstdint>

#include "particles/cuda/codes.cuh"
#include "particles/head.hpp"
#include "particles/sequence.hpp"
#include "stages/cuda/rows.cuh"

namespace pyfilter::cuda {

inline constexpr unsigned kParts = kGroup / kItems;  // threads of a group
static_assert(kParts == 4 && kItems == 8);

// The most words of a unary stream. A number takes one bit. A group's quotients sum to less than 2 * 32, since its low
// bits are at least the bits of its mean less one.
inline constexpr std::uint32_t kUnaryWords = (kTileParticles + kThreads * 2 * kGroup) / 32;

// A thread's view of a planned sequence: its group's low bits, the planes of earlier groups, and earlier threads' bits
// in the unary stream. One word, since several plans wait at a time.
struct ThreadSequence {
  std::uint32_t word;

  __device__ __forceinline__ static ThreadSequence make(unsigned low, std::uint32_t planes, std::uint32_t bits) {
    return {low | planes << 5 | bits << 17};
  }
  __device__ __forceinline__ unsigned low() const { return word & 31; }
  __device__ __forceinline__ std::uint32_t planes_before() const { return word >> 5 & 0xFFF; }
  __device__ __forceinline__ std::uint32_t bits_before() const { return word >> 17; }
};
static_assert(kMostKeyBits * kThreads < 1u << 12 && kUnaryWords * 32 < 1u << 15);

// A sequence's sums over its groups, and their low bits; the same in all threads.
struct SequenceSums {
  std::uint32_t sums = 0, lows = 1;

  __device__ __forceinline__ SequenceSize size(std::uint32_t count) const {
    SequenceSize size;
    size.set_count(count);
    size.plane_words = sums >> 16;
    size.unary_bits = sums & 0xFFFF;
    size.set_rates(static_cast<unsigned>(__ffs(static_cast<int>(lows)) - 1),
                   static_cast<unsigned>(bit_width(lows) - 1));
    return size;
  }
};
struct SequenceExchange {
  std::uint32_t sums[kTileWarps];
  std::uint8_t low[kThreads];  // of each group
};

// The index of the thread's first number, and how many of `count` numbers the thread has.
__device__ __forceinline__ std::uint32_t first_number() { return threadIdx.x * kItems; }
__device__ __forceinline__ int numbers_here(std::uint32_t count) {
  return static_cast<int>(min(count - min(count, first_number()), static_cast<std::uint32_t>(kItems)));
}
// Sum over the threads of a group.
__device__ __forceinline__ std::uint32_t group_sum(std::uint32_t x) {
  x += __shfl_xor_sync(kAllLanes, x, 1);
  return x + __shfl_xor_sync(kAllLanes, x, 2);
}

// Whether this thread's warp has none of `count` numbers.
__device__ __forceinline__ bool is_idle(std::uint32_t count) { return threadIdx.x / 32 * (32 * kItems) >= count; }

// A thread's part of a plan before earlier warps are known.
struct SequenceBegin {
  std::uint32_t before;  // bits of earlier lanes; planes in the high half
  unsigned low;
  std::uint32_t lows;  // the low bits as a bit; 0: no group
};

// Numbers beyond `count` are 0.
__device__ __forceinline__ SequenceBegin begin_plan(const std::uint32_t (&numbers)[kItems], std::uint32_t count,
                                                    SequenceExchange& exchange) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = threadIdx.x / kParts;
  if (is_idle(count)) {
    if (lane == 31) exchange.sums[warp] = 0;
    return {0, 0, 0};
  }
  const bool leads = threadIdx.x % kParts == 0, mine = group < (count + kGroup - 1) / kGroup;
  std::uint32_t sum = 0, wide = 0, narrow = 0;
#pragma unroll
  for (int i = 0; i < kItems; ++i) sum += numbers[i];
  const LowChoice choice(group_sum(sum));
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    wide += numbers[i] >> choice.wide;
    narrow += numbers[i] >> choice.narrow;
  }
  const std::uint32_t of_group = group_sum(wide + (narrow << 16));
  const bool is_narrow = choice.takes_narrow(of_group & 0xFFFF, of_group >> 16);
  const unsigned low = is_narrow ? choice.narrow : choice.wide;
  // planes in the high half: at most 24 of each of 128 groups
  const std::uint32_t own = (leads ? low << 16 : 0) + (is_narrow ? narrow : wide) +
                            static_cast<std::uint32_t>(numbers_here(count)),
                      upto = sum_upto(own);
  if (leads) exchange.low[group] = static_cast<std::uint8_t>(low);
  if (lane == 31) exchange.sums[warp] = upto;
  return {upto - own, low, mine ? 1u << low : 0};
}
// Call after a barrier.
__device__ __forceinline__ ThreadSequence end_plan(const SequenceBegin& begin, const SequenceExchange& exchange) {
  const std::uint32_t before = begin.before + warps_before(exchange.sums);
  const bool leads = threadIdx.x % kParts == 0;
  return ThreadSequence::make(begin.low, (before >> 16) - (leads ? 0 : begin.low), before & 0xFFFF);
}

// Planes 8g to 8g + 7 of a group's numbers, of which a thread has eight. `low` becomes plane 8g + part, `high` plane 8g
// + 4 + part; part is the thread's number in its group. Called by all lanes.
template <int g>
__device__ __forceinline__ void pack_part(const std::uint32_t (&numbers)[kItems], std::uint32_t& low,
                                          std::uint32_t& high) {
  constexpr unsigned kPick = g | (g + 4) << 4;
  const auto four = [&](int i) {
    return __byte_perm(__byte_perm(numbers[i], numbers[i + 1], kPick),
                       __byte_perm(numbers[i + 2], numbers[i + 3], kPick), 0x5410);
  };
  low = four(0);
  high = four(4);
  // transposes an 8x8 bit matrix (Hacker's Delight, 7-3)
  const auto swap = [](std::uint32_t x, int shift, std::uint32_t mask) {
    const std::uint32_t t = (x ^ x >> shift) & mask;
    return x ^ t ^ t << shift;
  };
  low = swap(swap(low, 7, 0x00AA00AAu), 14, 0x0000CCCCu);
  high = swap(swap(high, 7, 0x00AA00AAu), 14, 0x0000CCCCu);
  swap_bits<4, 0x0F0F0F0Fu>(low, high);
  // exchanges bytes of four planes between four threads, which then have a plane of four bytes each
  const bool odd = threadIdx.x % 2 != 0, upper = threadIdx.x % 4 >= 2;
  const auto exchange = [&](std::uint32_t x) {
    const std::uint32_t next = __shfl_xor_sync(kAllLanes, x, 1);
    x = __byte_perm(x, next, odd ? 0x3715 : 0x6240);
    const std::uint32_t far = __shfl_xor_sync(kAllLanes, x, 2);
    return __byte_perm(x, far, upper ? 0x3276 : 0x5410);
  };
  low = exchange(low);
  high = exchange(high);
}

// Writes the `count` lowest planes of a group's numbers, at most kMost, to its words. Called by all lanes.
template <int kMost = 32>
__device__ __forceinline__ void write_parts(const std::uint32_t (&numbers)[kItems], unsigned count,
                                            std::uint32_t* planes) {
  const int most = warp_max(static_cast<int>(count));
  const unsigned part = threadIdx.x % kParts;
  const auto pack = [&]<int g>() {
    if (8 * g >= kMost || 8 * g >= most) return;
    std::uint32_t low, high;
    pack_part<g>(numbers, low, high);
    if (8 * g + part < count) planes[8 * g + part] = low;
    if (8 * g + 4 + part < count) planes[8 * g + 4 + part] = high;
  };
  pack.template operator()<0>();
  pack.template operator()<1>();
  pack.template operator()<2>();
  pack.template operator()<3>();
}

// Starts to write a planned sequence to free shared memory; write_planes() and, after a barrier, write_unary() complete
// it.
__device__ __forceinline__ void start_sequence(const SequenceSize& size, const SequenceExchange& exchange,
                                               std::uint32_t* out) {
  const std::uint32_t thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  if (thread == 0) out[0] = size.head();
  if (warp < size.mask_words()) {
    const unsigned more = thread < size.groups ? exchange.low[thread] - size.base : 0;
#pragma unroll 1
    for (unsigned p = 0; p < size.rate_planes; ++p) {
      const std::uint32_t mask = __ballot_sync(kAllLanes, more >> p & 1);
      if (lane == 0) out[1 + p * size.mask_words() + warp] = mask;
    }
  }
  std::uint32_t* const unary = out + size.planes_at() + size.plane_words;
#pragma unroll 1
  for (std::uint32_t i = thread; i < size.unary_words(); i += kTileThreads) unary[i] = 0;
}
template <int kMost = 32>
__device__ __forceinline__ void write_planes(const std::uint32_t (&numbers)[kItems], ThreadSequence own,
                                             const SequenceSize& size, std::uint32_t* out) {
  if (!is_idle(size.count)) write_parts<kMost>(numbers, own.low(), out + size.planes_at() + own.planes_before());
}
__device__ __forceinline__ void write_unary(const std::uint32_t (&numbers)[kItems], ThreadSequence own,
                                            const SequenceSize& size, std::uint32_t* out) {
  if (is_idle(size.count)) return;
  std::uint32_t* const unary = out + size.planes_at() + size.plane_words;
  std::uint32_t at = own.bits_before();
  const auto put = [&](const auto& one) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      at += numbers[i] >> own.low();
      atomicOr(unary + at / 32, one(i) << at % 32);
      ++at;
    }
  };
  const int here = numbers_here(size.count);                 // absent numbers add nothing, at most to the next word
  if ((threadIdx.x / 32 + 1) * (32 * kItems) <= size.count)  // all numbers of the warp
    put([](int) { return 1u; });
  else
    put([&](int i) { return i < here ? 1u : 0u; });
}

}  // namespace pyfilter::cuda
