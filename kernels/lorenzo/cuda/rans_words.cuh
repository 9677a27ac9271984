// SPDX-License-Identifier: BSD-3-Clause
// Shared memory by addresses of 32 bits, and the words of a rans stream in it.
#pragma once

#include <cstdint>

#include "lorenzo/rans.hpp"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

// Loads from shared memory by 32-bit addresses; the tables are constant.
__device__ __forceinline__ std::uint32_t shared_address(const void* at) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
}
__device__ __forceinline__ std::uint32_t load_table(std::uint32_t address) {
  std::uint32_t word;
  asm("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address));
  return word;
}
__device__ __forceinline__ std::uint32_t load_half(std::uint32_t address) {
  std::uint16_t half;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(half) : "r"(address));
  return half;
}
__device__ __forceinline__ void store_word(std::uint32_t address, std::uint32_t word) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}

// Reads the words of a stream forwards, through a ring of four sections in shared memory. The words of the next four
// steps are in the ring; the section after them is in flight. Words that a damaged stream takes beyond the end are any.
inline constexpr std::uint32_t kSectionWords = 64, kSectionBytes = 2 * kSectionWords, kRingBytes = 4 * kSectionBytes;
struct WordsForth {
  const std::uint32_t* from;
  std::uint32_t ring;            // shared address of the ring, a multiple of its size
  std::uint32_t bytes, at;       // of all words; of those used so far
  std::uint32_t sections, next;  // sections loaded so far; two words of this lane, of the next section

  __device__ __forceinline__ std::uint32_t load(std::uint32_t part) const {
    const std::uint32_t word = part * (kSectionBytes / 4) + threadIdx.x % 32;
    return 4 * word < bytes ? from[word] : 0;  // behind an odd number of words is a word of zero
  }
  __device__ __forceinline__ void put(std::uint32_t words) {
    store_word(ring | (sections % 4 * kSectionBytes + 4 * (threadIdx.x % 32)), words);
    ++sections;
  }
  __device__ __forceinline__ WordsForth(const void* memory, std::uint32_t words, const std::uint16_t* ring_memory)
      : from(static_cast<const std::uint32_t*>(memory)),
        ring(shared_address(ring_memory)),
        bytes(2 * words),
        at(0),
        sections(0) {
    __syncwarp();
#pragma unroll
    for (std::uint32_t part = 0; part < 4; ++part) put(load(part));
    next = load(4);
    __syncwarp();
  }
  // Call before every four calls of refill().
  __device__ __forceinline__ void advance() {
    if (at / kSectionBytes + 4 <= sections) return;  // the same in all lanes
    __syncwarp();                                    // the steps before have read the words to overwrite
#pragma unroll 1
    do {
      put(next);
      next = load(sections);
    } while (at / kSectionBytes + 4 > sections);
    __syncwarp();
  }
  // Gives words to the lanes whose state is too small, in the order of lanes. All lanes load one, which needs fewer
  // instructions than a condition.
  __device__ __forceinline__ void refill(std::uint32_t& x, bool active) {
    const bool needs = active && at != bytes && x < kLowestState;  // none takes words behind the last
    const std::uint32_t taking = __ballot_sync(kAllLanes, needs);
    const auto below = static_cast<std::uint32_t>(__popc(static_cast<int>(taking & ((1u << threadIdx.x % 32) - 1))));
    const std::uint32_t with_word = (x << 16) + load_half(ring | ((at + 2 * below) & (kRingBytes - 1)));
    x = needs ? with_word : x;
    at += 2 * static_cast<std::uint32_t>(__popc(static_cast<int>(taking)));
  }
};

}  // namespace pyfilter::cuda
