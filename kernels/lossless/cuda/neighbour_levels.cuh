// SPDX-License-Identifier: BSD-3-Clause
// The levels of earlier neighbours that select the tables of a step (docs/format.md, section 15.4). All are in a warp's
// memory on the device; what a step reads is in shared memory: the last levels in a ring, and windows of those further
// away, which are copied a step ahead.
#pragma once

#include <cstdint>

#include "lossless/binned_model.hpp"
#include "lossless/cuda/binned_params.cuh"
#include "stages/cuda/copy_later.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kLevelRing = 128, kLevelWindow = 48;  // a window: 32 levels, in aligned pieces
// Levels at this distance and further are complete a step ahead, with those beside them in the pieces.
inline constexpr std::uint32_t kWindowDistance = 32 + kLevelWindow;
// The ring has levels that are nearer, while the next are written.
inline constexpr std::uint32_t kRingDistance = kLevelRing - 32;
static_assert(kWindowDistance <= kRingDistance + 1);
inline constexpr std::uint32_t kLevelZeros = 32;  // zeros before the first level

struct alignas(16) LevelSpace {
  std::uint8_t windows[kDistances][kLevelWindow];
  std::uint8_t ring[kLevelRing + 32];  // the first 32 again behind the others: lanes read without wrapping
};

// kFar: all neighbours are in windows. `space`: the warp's, in shared memory.
struct NeighbourLevels {
  std::uint8_t* levels;
  std::uint32_t distance[kDistances];
  bool far;
  bool stored;                // windows will be read
  std::int32_t copied_at;     // of this lane's piece, behind the first value of a step
  std::uint32_t copied_from;  // the first step of which it has levels

  // Sets what is the same for all streams of a unit; `memory` has room for kLevelZeros bytes and all levels.
  __device__ __forceinline__ void set_model(const BinnedParts& model, std::uint8_t* memory) {
    const std::uint32_t lane = lane_of_warp();
    memory[lane] = 0;
    levels = memory + kLevelZeros;
    far = true;
#pragma unroll
    for (std::uint32_t k = 0; k < kDistances; ++k) {
      distance[k] = model.contexts ? model.distance[k] : kWindowDistance;
      far = far && distance[k] >= kWindowDistance;
    }
    // lanes copy a piece each
    constexpr std::uint32_t kPieces = kLevelWindow / 16;
    std::uint32_t own = 0;
    stored = false;
#pragma unroll
    for (std::uint32_t k = 0; k < kDistances; ++k) {
      if (lane / kPieces == k) own = distance[k];
      stored = stored || (model.contexts && has_window(far, distance[k]));
    }
    const std::uint32_t piece = lane % kPieces,
                        skipped = (0u - own) % 16;  // levels of the first piece that are not read
    const bool copies =
        stored && lane < kDistances * kPieces && has_window(far, own) && (piece + 1 < kPieces || skipped != 0);
    copied_at = static_cast<std::int32_t>(16 * piece) - static_cast<std::int32_t>(own + skipped);
    copied_from = copies ? own - 31 : ~0u;
  }
  // Begins a stream: all levels before it are 0. Copies have ended.
  __device__ __forceinline__ void begin(LevelSpace& space) const {
    auto* const words = reinterpret_cast<std::uint32_t*>(&space);
    for (std::uint32_t i = lane_of_warp(); i < sizeof(LevelSpace) / 4; i += 32) words[i] = 0;
  }

  // Begins to copy levels for the step whose first value is `first`, if there are any and they are wanted.
  __device__ __forceinline__ void copy(LevelSpace& space, std::uint32_t first, bool wanted) const {
    copy_later_if<16>(wanted && first >= copied_from, &space.windows[0][0] + 16 * lane_of_warp(),
                      levels + (static_cast<std::int32_t>(first) + copied_at));
  }
  // Returns the mean level of four neighbours.
  template <bool kFar>
  __device__ __forceinline__ std::uint32_t mean(const LevelSpace& space, std::uint32_t first) const {
    std::uint32_t sum = kDistances / 2;
#pragma unroll
    for (std::uint32_t k = 0; k < kDistances; ++k) {
      const bool window = has_window(kFar, distance[k]);
      const std::uint8_t* const from = window ? space.windows[k] : space.ring;
      sum += from[(first - distance[k]) % (window ? 16 : kLevelRing) + lane_of_warp()];
    }
    return sum / kDistances;
  }
  // Stores the level of this lane's value of the step from `first` on.
  template <bool kFar>
  __device__ __forceinline__ void store(LevelSpace& space, std::uint32_t first, std::uint8_t level) const {
    const std::uint32_t lane = lane_of_warp(), at = first % kLevelRing;
    if (stored) levels[first + lane] = level;
    if (kFar) return;
    space.ring[at + lane] = level;
    if (at == 0) space.ring[kLevelRing + lane] = level;
  }

 private:
  static __device__ __forceinline__ bool has_window(bool all_far, std::uint32_t distance) {
    return all_far || distance > kRingDistance;
  }
};

}  // namespace pyfilter::cuda
