// SPDX-License-Identifier: BSD-3-Clause
// The earlier planes of a volume that is decoded in rings. Steps that leave the ring go to global memory. They come
// back beside the steps one and two planes later. Loads are issued a step ahead of their use.
#pragma once

#include <cstdint>

#include "adaptive/cuda/cells.cuh"
#include "adaptive/layout.hpp"

namespace pyfilter::cuda {

// Cells of shorter planes would be needed before they are written.
inline constexpr std::uint32_t kLeastRingColumns = 16;

struct PlaneWindows {
  using Shape = RingShape<TileKind::volume>;
  static constexpr std::uint32_t kCells = Shape::kPlane, kOfStep = kCells + kRows;  // values, sizes
  static constexpr int kLast = 8, kAhead = 7, kSizesAhead = 4;
  static constexpr std::uint32_t kMore = kCells - kRows;  // cells of a step beyond one for each lane

  float* memory;
  int period, steps;  // steps in the ring in global memory
  int step, place;    // place: index of the step in that ring
  float values[2], more, sizes[2];

  // The floats that a warp needs; `period`: the longest one.
  static std::size_t floats(std::uint32_t period) { return std::size_t{2 * period + 16} * kOfStep; }
  PYF_LANES PlaneWindows begin(float* memory, std::uint32_t period) {
    return {memory, static_cast<int>(period), static_cast<int>(2 * period + 16), 0, 0, {0, 0}, 0, {0, 0}};
  }
  // Returns the cells of an earlier step, at most the ring's length back.
  __device__ __forceinline__ float* stored(int back) const {
    const int at = place - back;
    return memory + static_cast<std::uint32_t>(at < 0 ? at + steps : at) * kOfStep;
  }
  PYF_LANES std::uint32_t ring_step(int step) {
    return static_cast<std::uint32_t>(step) % Shape::kValueSteps * Shape::kStep;
  }
  // Copies a step's values, of one window, from the ring to global memory.
  __device__ __forceinline__ void leave(int back, int window) const {
    const float* const from = ring_memory() + ring_step(step - kLast) + window * Shape::kPlane;
    float* const to = stored(back);
    to[this_lane()] = from[this_lane()];
    if (this_lane() < kMore) to[kRows + this_lane()] = from[kRows + this_lane()];
  }
  // Ends a step; all lanes have written their cells.
  __device__ __forceinline__ void next(float size) {
    leave(kLast, 0);
    // copies of the first plane stand in for the plane before it
    if (step - kLast < period + static_cast<int>(2 * kRows) + kLast) leave(kLast + period, 1);
    stored(0)[kCells + this_lane()] = size;
    float* const to = ring_memory() + ring_step(step + kAhead);
    float* const sizes_to = ring_memory() + RingCells<TileKind::volume, true>::kFirst +
                            static_cast<std::uint32_t>(step + kSizesAhead) % Shape::kSizeSteps * Shape::kStep +
                            Shape::kFirstLane + this_lane();
#pragma unroll
    for (int window = 1; window <= 2; ++window) {
      to[window * Shape::kPlane + static_cast<int>(this_lane())] = values[window - 1];
      sizes_to[window * Shape::kPlane] = sizes[window - 1];
    }
    const int more_window = 1 + static_cast<int>(this_lane() / kMore);
    if (this_lane() < 2 * kMore) to[more_window * Shape::kPlane + static_cast<int>(kRows + this_lane() % kMore)] = more;
    __syncwarp();
    // prefetch the cells of the next step
    const int ahead = kAhead + 1, sizes_ahead = kSizesAhead + 1;
    const auto is_there = [&](int window, int later) {  // steps before the first stored one are zeros
      return step + later - window * period >= (window == 1 ? 0 : -period) - kLast;
    };
#pragma unroll
    for (int window = 1; window <= 2; ++window) {
      const int back = window * period - ahead, sizes_back = window * period - sizes_ahead;
      values[window - 1] = is_there(window, ahead) ? stored(back)[this_lane()] : 0;
      sizes[window - 1] = step >= sizes_back ? stored(sizes_back)[kCells + this_lane()] : 0;
    }
    more = 0;
    if (this_lane() < 2 * kMore && is_there(more_window, ahead))
      more = stored(more_window * period - ahead)[kRows + this_lane() % kMore];
    ++step;
    place = place + 1 == steps ? 0 : place + 1;
  }
};

}  // namespace pyfilter::cuda
