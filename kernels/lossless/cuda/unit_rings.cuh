// SPDX-License-Identifier: BSD-3-Clause
// The words and the offsets of a stream, in rings in shared memory: a warp copies them ahead of their use, since a load
// whose address depends on the step before would wait for memory in each step.
#pragma once

#include <cstdint>

#include "lossless/cuda/neighbour_levels.cuh"
#include "stages/cuda/copy_later.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kRingBlocks = 4;  // one is read, one may be read next, two are on their way

// A ring of blocks; a step reads less than a block of it. Positions are bytes behind an address that 16 divides.
template <std::uint32_t kBlockBytes>
struct alignas(16) ByteRing {
  static constexpr std::uint32_t kBlock = kBlockBytes, kBytes = kRingBlocks * kBlock, kCopies = kBlock / 16;
  static_assert(kCopies <= 32 && (kBlock & (kBlock - 1)) == 0);

  std::uint8_t bytes[kBytes];

  __device__ __forceinline__ std::uint32_t word(std::uint32_t at) const {  // `at`: a multiple of 4
    return *reinterpret_cast<const std::uint32_t*>(bytes + at % kBytes);
  }
  template <bool kEven>
  __device__ __forceinline__ std::uint32_t half_word(std::uint32_t at) const {
    if constexpr (kEven) return *reinterpret_cast<const std::uint16_t*>(bytes + at % kBytes);
    return bytes[at % kBytes] | std::uint32_t{bytes[(at + 1) % kBytes]} << 8;
  }
  // Begins to copy the block at position `at`. Behind the last of `limit` bytes are zeros.
  __device__ __forceinline__ void copy(const std::uint8_t* base, std::uint32_t at, std::uint32_t limit) {
    const std::uint32_t own = at + 16 * lane_of_warp();
    if (lane_of_warp() >= kCopies) return;
    copy_16_later(bytes + own % kBytes, base + own, own < limit ? min(limit - own, 16u) : 0);
  }
};

// What a warp copies to shared memory. A step takes 32 words of 16 bits, and 32 offsets with escapes, each of at most
// as many bits as U. `lagged`: numbers that a step and the next one add.
template <class U>
struct UnitRings {
  ByteRing<128> words;
  ByteRing<64 * sizeof(U)> offsets;
  LevelSpace levels;
  U lagged[2][3][32];
};

// Where a warp's rings begin and end, in bytes behind `base`.
template <class U>
struct RingReader {
  using Words = decltype(UnitRings<U>::words);
  using Offsets = decltype(UnitRings<U>::offsets);

  const std::uint8_t* base;
  std::uint32_t limit;                   // bytes that may be read
  std::uint32_t words_end, offsets_end;  // of the copies that have begun

  __device__ __forceinline__ static UnitRings<U>& rings();

  // Fills the rings from these positions on.
  __device__ __forceinline__ void begin(std::uint32_t words_at, std::uint32_t offsets_at) {
    words_end = words_at / Words::kBlock * Words::kBlock;
    offsets_end = offsets_at / Offsets::kBlock * Offsets::kBlock;
#pragma unroll
    for (std::uint32_t i = 0; i < kRingBlocks; ++i) copy_words(), copy_offsets();
  }
  // Begins nothing: there is no stream.
  __device__ __forceinline__ void begin_none() { words_end = offsets_end = ~0u; }
  __device__ __forceinline__ bool has_stream() const { return words_end != ~0u; }
  // Begins to copy what a later step reads; the next one reads from these positions on, less than a block.
  __device__ __forceinline__ void advance(std::uint32_t words_at, std::uint32_t offsets_at) {
    const bool of_words = words_end - words_at <= (kRingBlocks - 1) * Words::kBlock,
               of_offsets = offsets_end - offsets_at <= (kRingBlocks - 1) * Offsets::kBlock;
    if (!of_words && !of_offsets) return;  // one branch for both
    if (of_words) copy_words();
    if (of_offsets) copy_offsets();
  }

 private:
  __device__ __forceinline__ void copy_words() {
    rings().words.copy(base, words_end, limit);
    words_end += Words::kBlock;
  }
  __device__ __forceinline__ void copy_offsets() {
    rings().offsets.copy(base, offsets_end, limit);
    offsets_end += Offsets::kBlock;
  }
};

}  // namespace pyfilter::cuda
