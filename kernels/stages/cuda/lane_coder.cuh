// SPDX-License-Identifier: BSD-3-Clause
// A lane of a rans stream that is written backwards: its state, and the words that it gives to the stream.
#pragma once

#include <cstdint>

#include "stages/cuda/warp_sum.cuh"
#include "stages/entropy/rans_step.hpp"

namespace pyfilter::cuda {

// A lane's state, and the number of the stream's words so far, the same in all lanes.
struct LaneCoder {
  std::uint32_t x;
  std::int32_t written;

  // Called behind four steps. Returns lanes that had to begin with kLowestState, if these steps wrote the first word.
  // `before`: what this was before them.
  __device__ __forceinline__ std::uint32_t low_at_first(const LaneCoder& before) const {
    return before.written == 0 && written != 0 ? __ballot_sync(kAllLanes, before.x < kLowestState) : 0;
  }

  // Emits a word from each lane that must, in the order of lanes. `end`: the end of the stream.
  __device__ __forceinline__ void spill(std::uint16_t* end, bool must) {
    const std::uint32_t giving = __ballot_sync(kAllLanes, must);
    written += __popc(static_cast<int>(giving));
    const std::uint32_t below = giving & ((1u << threadIdx.x % 32) - 1);
    if (must) end[__popc(static_cast<int>(below)) - written] = static_cast<std::uint16_t>(x);
    x = must ? x >> 16 : x;
  }
  // spill() for states from `limit` on, in PTX; in C++ the comparison is made twice.
  __device__ __forceinline__ void spill_from(std::uint16_t* end, std::uint32_t limit) {
    std::uint32_t giving;
    asm volatile(
        "{\n"
        ".reg .pred must;\n"
        "setp.ge.u32 must, %1, %2;\n"
        "vote.sync.ballot.b32 %0, must, 0xffffffff;\n"
        "}"
        : "=r"(giving)
        : "r"(x), "r"(limit));
    written += __popc(static_cast<int>(giving));
    const int below = __popc(static_cast<int>(giving & ((1u << threadIdx.x % 32) - 1)));
    asm volatile(
        "{\n"
        ".reg .pred must;\n"
        "setp.ge.u32 must, %0, %1;\n"
        "@must st.global.u16 [%2], %3;\n"
        "@must shr.u32 %0, %0, 16;\n"
        "}"
        : "+r"(x)
        : "r"(limit), "l"(end + (below - written)), "h"(static_cast<std::uint16_t>(x))
        : "memory");
  }
};

}  // namespace pyfilter::cuda
