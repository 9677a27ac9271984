// SPDX-License-Identifier: BSD-3-Clause
// The earlier planes of a volume that is decoded in rings. Steps that leave the ring go to global memory. They come
// back beside the steps one and two planes later. Copies begin a step before they are waited for.
#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "adaptive/cuda/cells.cuh"
#include "adaptive/layout.hpp"

namespace pyfilter::cuda {

struct PlaneWindows {
  using Shape = RingShape<TileKind::volume>;
  static constexpr std::uint32_t kCells = Shape::kPlane, kOfStep = kCells + kRows;  // values, sizes
  // Steps that leave, and that are fetched: those a step nearer are read or written while the copies are on their way.
  static constexpr int kLast = 8, kAhead = 8, kSizesAhead = 5;
  static constexpr std::uint32_t kMore = kCells - kRows;  // cells of a step beyond one for each lane

  float* memory;
  int period, steps;  // steps in the ring in global memory
  int step, place;    // place: index of the step in that ring

  // The floats that a warp needs; `period`: the longest one.
  __host__ __device__ static std::size_t floats(std::uint32_t period) { return std::size_t{2 * period + 16} * kOfStep; }
  // Clears the memory, since steps before the first one are zeros. `period`: 0 if there are no earlier planes.
  PYF_LANES PlaneWindows begin(float* memory, std::uint32_t period) {
    if (period != 0)
      for (std::uint32_t i = this_lane(); i < floats(period); i += kRows) memory[i] = 0;
    __syncwarp();
    return {memory, static_cast<int>(period), static_cast<int>(2 * period + 16), 0, 0};
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
  // Begins to copy a cell to the ring. Earlier planes are fetched while a step is coded.
  PYF_LANES void fetch(float* to, const float* from, std::uint32_t cell) {
    __pipeline_memcpy_async(to + cell, from + cell, sizeof(float));
  }
  // Ends a step; all lanes have written their cells.
  __device__ __forceinline__ void next(float size) {
    leave(kLast, 0);
    // copies of the first plane stand in for the plane before it
    if (step - kLast < period + static_cast<int>(2 * kRows) + kLast) leave(kLast + period, 1);
    stored(0)[kCells + this_lane()] = size;
    __pipeline_wait_prior(0);  // the cells that the last call fetched
    __syncwarp();
    float* const to = ring_memory() + ring_step(step + kAhead);
    float* const sizes_to = ring_memory() + RingCells<TileKind::volume, true>::kFirst +
                            static_cast<std::uint32_t>(step + kSizesAhead) % Shape::kSizeSteps * Shape::kStep +
                            Shape::kFirstLane;
#pragma unroll
    for (int window = 1; window <= 2; ++window) {
      fetch(to + window * Shape::kPlane, stored(window * period - kAhead), this_lane());
      fetch(sizes_to + window * Shape::kPlane, stored(window * period - kSizesAhead) + kCells, this_lane());
    }
    if (this_lane() < 2 * kMore) {
      const int window = 1 + static_cast<int>(this_lane() / kMore);
      fetch(to + window * Shape::kPlane, stored(window * period - kAhead), kRows + this_lane() % kMore);
    }
    __pipeline_commit();
    ++step;
    place = place + 1 == steps ? 0 : place + 1;
  }
  // Waits for the last copies, before the ring is cleared for another tile.
  __device__ __forceinline__ void end() const { __pipeline_wait_prior(0); }
};

}  // namespace pyfilter::cuda
