// SPDX-License-Identifier: BSD-3-Clause
// Offsets of numbers in their bins (docs/format.md, section 15.4), written by a warp: bits that wait in shared memory.
#pragma once

#include <cstdint>

#include "lossless/binned_model.hpp"
#include "stages/cuda/warp_sum.cuh"

namespace pyfilter::cuda {

// Steps whose numbers are loaded together, and then coded.
template <class U>
inline constexpr std::uint32_t kStepsTogether = sizeof(U) == 8 ? 2 : 4;
// Words of offsets that wait in shared memory, at most: what such steps leave, and theirs with all bits of a number and
// an escape's symbol in each lane.
inline constexpr std::uint32_t kWaitingWords = 32;
template <class U>
inline constexpr std::uint32_t kStagedWords =
    kWaitingWords + kStepsTogether<U> * (kEscapeBits + 8 * static_cast<std::uint32_t>(sizeof(U))) + 1;

// Writes bits that the lanes of a warp have, in the order of lanes. `staged`: the warp's memory, where bits wait;
// behind them are zeros.
template <class U>
struct OffsetWriter {
  std::uint32_t* words;  // of the unit
  std::uint32_t at, before;

  __device__ __forceinline__ void start(std::uint32_t* to, std::uint32_t* staged) {
    words = to;
    at = before = 0;
#pragma unroll 1
    for (std::uint32_t i = threadIdx.x % 32; i < kStagedWords<U> + 3; i += 32) staged[i] = 0;
    __syncwarp();
  }
  // Takes the `count` bits of value and, from bit 64 on, of `more`. `escapes`: a lane may have more bits than U has.
  __device__ __forceinline__ void put(std::uint64_t value, std::uint32_t more, std::uint32_t count, bool escapes,
                                      std::uint32_t* staged) {
    const std::uint32_t upto = sum_upto(count), bit = before + upto - count, shift = bit % 32;
    std::uint32_t* const to = staged + bit / 32;
    const auto low = static_cast<std::uint32_t>(value), high = static_cast<std::uint32_t>(value >> 32);
    const auto set = [&](std::uint32_t word, std::uint32_t bits) {
      if (bits != 0) atomicOr(to + word, bits);
    };
    set(0, low << shift);
    set(1, __funnelshift_l(low, high, shift));
    if (sizeof(U) == 8 || escapes) set(2, __funnelshift_l(high, more, shift));
    if (sizeof(U) == 8 && escapes) set(3, __funnelshift_l(more, 0, shift));
    before += __shfl_sync(kAllLanes, upto, 31);
  }
  // Writes the whole words that wait, if there are many. Called behind kStepsTogether steps.
  __device__ __forceinline__ void flush_many(std::uint32_t* staged) {
    if (before >= 32 * kWaitingWords) flush(staged);
  }
  __device__ __forceinline__ void flush(std::uint32_t* staged) {
    __syncwarp();
    const std::uint32_t whole = before / 32, rest = staged[whole];
#pragma unroll 1
    for (std::uint32_t i = threadIdx.x % 32; i < whole; i += 32) words[at + i] = staged[i];
    __syncwarp();
#pragma unroll 1
    for (std::uint32_t i = threadIdx.x % 32; i <= whole; i += 32) staged[i] = i == 0 ? rest : 0;
    __syncwarp();
    at += whole;
    before %= 32;
  }
  // Appends bits that another warp has written, at `from` or later in the same memory.
  __device__ __forceinline__ void append(const std::uint32_t* from, std::uint32_t bits, std::uint32_t* staged) {
#pragma unroll 1
    for (std::uint32_t bit = 0; bit < bits; bit += 32 * 32) {
      const std::uint32_t own = bit + 32 * (threadIdx.x % 32), left = own < bits ? bits - own : 0;
      const std::uint32_t word = left != 0 ? from[own / 32] : 0;
      __syncwarp();  // words that this may replace have been read
      put(word, 0, left < 32 ? left : 32, false, staged);
      flush_many(staged);
    }
  }
  // Returns the number of bits.
  __device__ __forceinline__ std::uint32_t finish(std::uint32_t* staged) {
    flush(staged);
    if (before != 0 && threadIdx.x % 32 == 0) words[at] = staged[0];
    return 32 * at + before;
  }
};

}  // namespace pyfilter::cuda
