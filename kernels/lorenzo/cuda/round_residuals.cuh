// SPDX-License-Identifier: BSD-3-Clause
// The residuals of a round in one warp, with a block of 32 for each lane, as they wait in their tile's slot.
#pragma once

#include <cstdint>

#include "lorenzo/cuda/residuals.cuh"

namespace pyfilter::cuda {

// A lane's residuals of a round, or of eight of its steps, as they wait: in registers if they are narrow. The round's
// first residual is separate.
template <std::uint32_t kWidth, int kSteps, class Code>
struct RoundResiduals {
  static constexpr bool kWide = kWidth == kNoteWide, kBytes = kWidth == kNoteBytes;
  static constexpr int kFour = kWidth == kNoteBytes ? 1 : 2;  // words of a four of steps
  const void* from;
  bool active;  // inactive lanes have zeros
  std::uint32_t words[kWide ? 1 : kSteps / 4 * kFour];
  Code first;

  __device__ __forceinline__ RoundResiduals(const std::uint8_t* slot, std::uint32_t index, bool has_block)
      : active(has_block) {
    if constexpr (kWide)
      from = reinterpret_cast<const Code*>(slot) + index / 32 * 1024 + index % 32;
    else
      from = reinterpret_cast<const std::uint32_t*>(slot) + index / 32 * (256 * kFour) + index % 32;
  }
  // Loads four `four` of the round into four `to` of these steps.
  __device__ __forceinline__ void load(int four, int to) {
    if constexpr (!kWide) {
#pragma unroll
      for (int i = 0; i < kFour; ++i)
        words[to * kFour + i] = active ? static_cast<const std::uint32_t*>(from)[32 * (four * kFour + i)] : 0;
    }
  }
  template <int kAt>
  __device__ __forceinline__ Code at() const {
    if constexpr (kWidth == kNoteBytes)
      return __byte_perm(words[kAt / 4], 0, 0x4440 + kAt % 4);
    else if constexpr (kWidth == kNoteHalves)
      return kAt % 2 == 0 ? words[kAt / 2] & 0xFFFF : words[kAt / 2] >> 16;
    else
      return active ? static_cast<const Code*>(from)[32 * kAt] : 0;
  }
};

}  // namespace pyfilter::cuda
