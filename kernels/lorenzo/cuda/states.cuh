// SPDX-License-Identifier: BSD-3-Clause
// The states in front of a group's rans stream by a warp, a lane each; lorenzo/states.hpp is the same on the CPU.
#pragma once

#include <cstdint>

#include "lorenzo/cuda/params.cuh"
#include "lorenzo/states.hpp"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

// Packs the states of `lanes` lanes; returns the words that they fill. `count`: words of the stream.
static __device__ __noinline__ std::uint32_t pack_states(std::uint32_t x, std::uint32_t lanes, std::uint32_t count,
                                                         std::uint32_t* words) {
  const std::uint32_t lane = threadIdx.x % 32;
  const StatePlace first(count != 0);
  const bool mine = lane < lanes;
  const std::uint32_t place = mine ? place_of(x) : 0, upto = sum_upto(place),
                      bits_at = kWordFlagBits + first.bits * lanes;
  for (std::uint32_t i = lane; i < kMostStateWords; i += 32) words[i] = 0;
  __syncwarp();
  const auto put = [&](std::uint32_t value, std::uint32_t bits, std::uint32_t at) {
    if (bits == 0) return;
    atomicOr(words + at / 32, value << at % 32);
    if (at % 32 + bits > 32) atomicOr(words + at / 32 + 1, value >> (32 - at % 32));
  };
  if (lane == 0) put(word_flags(count), kWordFlagBits, 0);
  if (mine) {
    put(place - first.lowest, first.bits, kWordFlagBits + first.bits * lane);
    put(x ^ 1u << place, place, bits_at + upto - place);
  }
  __syncwarp();
  return words_of_bits(bits_at + __shfl_sync(kAllLanes, upto, 31));
}

// A lane's state, and the words of the stream in a group of `size` bytes behind its head.
struct OpenedStream {
  Fault fault;
  std::uint32_t x, at, count;  // at: words of 32 bits in front of the stream; count: words of 16 bits
};
static __device__ __noinline__ OpenedStream open_stream(const std::uint32_t* words, std::uint32_t size,
                                                        std::uint32_t lanes, bool full_states) {
  const std::uint32_t lane = threadIdx.x % 32, here = size / 4;
  const bool mine = lane < lanes;
  OpenedStream out = {Fault::none, kLowestState, 0, 2 * here};
  if (full_states) {
    if (here < lanes) return {Fault::size, 0, 0, 0};
    if (mine) out.x = words[lane];
    out.at = lanes;
    out.count = 2 * (here - lanes);
    if (__any_sync(kAllLanes, out.x < kLowestState || out.x >> kStateBits != 0)) out.fault = Fault::state;
    return out;
  }
  if (lanes == 0) return out;
  const auto bits_from = [&](std::uint32_t at, std::uint32_t bits) {
    const std::uint32_t low = at / 32 < here ? words[at / 32] : 0, high = at / 32 + 1 < here ? words[at / 32 + 1] : 0;
    return __funnelshift_r(low, high, at % 32) & ((1u << bits) - 1);
  };
  const std::uint32_t flags = bits_from(0, kWordFlagBits);
  const StatePlace first((flags & kHasWords) != 0);
  const std::uint32_t place = mine ? first.lowest + bits_from(kWordFlagBits + first.bits * lane, first.bits) : 0,
                      upto = sum_upto(place), bits_at = kWordFlagBits + first.bits * lanes,
                      end = bits_at + __shfl_sync(kAllLanes, upto, 31);
  if (mine) out.x = 1u << place % 32 | bits_from(bits_at + upto - place, place % 32);
  out.at = words_of_bits(end);
  if (flags == kOddWords || __any_sync(kAllLanes, place >= kStateBits) || out.at > here ||
      (end % 32 != 0 && words[end / 32] >> end % 32 != 0)) {
    out.fault = Fault::state;
    return out;
  }
  out.count = 2 * (here - out.at);
  if ((out.count != 0) != ((flags & kHasWords) != 0)) out.fault = Fault::size;
  if ((flags & kOddWords) != 0 && out.fault == Fault::none) {
    --out.count;
    if (words[here - 1] >> 16 != 0) out.fault = Fault::padding;
  }
  return out;
}

}  // namespace pyfilter::cuda
