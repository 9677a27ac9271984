// SPDX-License-Identifier: BSD-3-Clause
// What earlier turns foretell of a turn's steps (refine.hpp: Ahead) does not depend on the turn itself. So a second
// warp can find it, some steps ahead of the warp that codes.
#pragma once

#include <cstdint>

#include "adaptive/cuda/refining.cuh"

namespace pyfilter::cuda {

// Two batches of steps in shared memory: one is filled while the other is used.
struct AheadRing {
  static constexpr std::uint32_t kBatch = 8;

  Floats sum[2 * kBatch][kRows], near[2 * kBatch][kRows], range[2 * kBatch][kRows], sizes[2 * kBatch][kRows];
  Ints set[2 * kBatch][kRows];
  // What the cells of the turn's own class hold before they are coded, and those above the first rows.
  float uncoded[2 * kBatch][kRows], above[2 * kBatch][2];
  bool done;  // no turn follows

  __device__ __forceinline__ void put(std::uint32_t number, const Ahead& ahead) {
    const std::uint32_t at = number % (2 * kBatch);
    sum[at][this_lane()] = ahead.sum;
    near[at][this_lane()] = ahead.near;
    range[at][this_lane()] = ahead.range;
    sizes[at][this_lane()] = ahead.sizes;
    set[at][this_lane()] = ahead.set;
  }
  __device__ __forceinline__ Ahead get(std::uint32_t number) const {
    const std::uint32_t at = number % (2 * kBatch), lane = this_lane();
    return {sum[at][lane], near[at][lane], range[at][lane], sizes[at][lane], set[at][lane]};
  }
};

// The last steps of a turn in shared memory: what cells of its own class hold, and sizes of codes. Stores to global
// memory take too long to come back.
struct OwnCells {
  static constexpr std::uint32_t kSteps = 8, kLanes = kRows + 4;

  float values[kSteps][kLanes], sizes[kSteps][kLanes];

  // Lanes of a half follow a cell for the row above the first.
  PYF_LANES std::uint32_t index_of_lane() { return 1 + this_lane() + this_lane() / kHalf; }
  PYF_LANES std::uint32_t index(std::uint32_t step, RefiningMemory::Before before) {
    return (step + static_cast<std::uint32_t>(before.steps)) % kSteps * kLanes +
           static_cast<std::uint32_t>(static_cast<std::int32_t>(index_of_lane()) + before.lanes);
  }
  __device__ __forceinline__ void clear() {
    for (std::uint32_t i = this_lane(); i < kSteps * kLanes; i += kRows) values[0][i] = sizes[0][i] = 0;
    __syncwarp();
  }
  __device__ __forceinline__ void put(const AheadRing& ring, std::uint32_t step, const Ints& active, float value,
                                      float size) {
    const std::uint32_t at = step % (2 * AheadRing::kBatch), row = step % kSteps, lane = index_of_lane();
    values[row][lane] = active.v != 0 ? value : ring.uncoded[at][this_lane()];
    sizes[row][lane] = active.v != 0 ? size : 0;
    if (this_lane() % kHalf == 0) {
      values[row][lane - 1] = ring.above[at][this_lane() / kHalf];
      sizes[row][lane - 1] = 0;
    }
  }
};

// A turn whose own class is read from OwnCells.
struct HelpedTurn : Refining {
  const OwnCells& cells;
  std::uint32_t step = 0;

  __device__ __forceinline__ HelpedTurn(const Refining& refining, const OwnCells& own)
      : Refining(refining), cells(own) {}
};
PYF_LANES Floats add_own_values(const HelpedTurn& r, CellIndex, const Ints& set, Floats sum) {
  constexpr std::uint32_t kMost = 3;  // more are not among the candidates
  const float* const weights = r.turn.own_weights[set.v >> 3];
  float value[kMost];
#pragma unroll
  for (std::uint32_t k = 0; k < kMost; ++k)
    if (k < r.turn.own_tap_count) value[k] = r.cells.values[0][OwnCells::index(r.step, r.turn.own_taps[k])];
#pragma unroll
  for (std::uint32_t k = 0; k < kMost; ++k)
    if (k < r.turn.own_tap_count) sum = fused({weights[k]}, {value[k]}, sum);
  return sum;
}
PYF_LANES Floats add_own_sizes(const HelpedTurn& r, CellIndex, Floats m) {
  constexpr std::uint32_t kMost = 6;
  float size[kMost];
#pragma unroll
  for (std::uint32_t k = 0; k < kMost; ++k)
    if (k < r.turn.own_feature_count) size[k] = r.cells.sizes[0][OwnCells::index(r.step, r.turn.own_features[k])];
#pragma unroll
  for (std::uint32_t k = 0; k < kMost; ++k)
    if (k < r.turn.own_feature_count) m = fused({r.turn.own_scales[k]}, {size[k]}, m);
  return m;
}

// Of a warp alone: each step is foreseen when it is coded.
struct ForeseenAlone {
  const Refining& refining;

  __device__ __forceinline__ Ahead take(std::uint32_t number) const {
    return look_ahead(refining, refining.beside(refining.shape.cell_of_step(refining.parity, number)));
  }
};
// Of a warp with a helper; it takes all steps of a turn.
struct ForeseenByHelper {
  AheadRing& ring;

  __device__ __forceinline__ Ahead take(std::uint32_t number) const {
    if (number % AheadRing::kBatch == 0) __syncthreads();
    return ring.get(number);
  }
};

// Shared memory of two warps that take turns together.
struct HelpMemory {
  AheadRing ring;
  OwnCells cells;
};

// The helper: foresees the steps of turn after turn. The other warp sets up a turn, then calls begin_helped_turn().
__device__ inline void help(AheadRing& ring, const RefiningMemory& memory, const WavePass& pass,
                            const AdaptiveTaps& taps, const UnitScratch& scratch) {
#pragma unroll 1
  for (;;) {
    __syncthreads();
    if (ring.done) return;
    const Refining refining(memory, pass, taps, scratch);
    const std::uint32_t steps = refining.shape.steps();
    CellsBeside beside = refining.beside(refining.shape.cell_of_step(refining.parity, 0));
#pragma unroll 1
    for (std::uint32_t number = 0; number < steps; ++number) {
      if (number != 0 && number % AheadRing::kBatch == 0) __syncthreads();
      const CellsBeside own = beside;
      const CellIndex cell = refining.shape.cell_of_step(refining.parity, number);
      const float uncoded = refining.values[cell], above = this_lane() % kHalf == 0 ? refining.values[cell - 1] : 0;
      beside.load(refining.shape.cell_of_step(refining.parity, number + 1));  // it comes while this step is summed
      ring.put(number, look_ahead(refining, own));
      const std::uint32_t at = number % (2 * AheadRing::kBatch);
      ring.uncoded[at][this_lane()] = uncoded;
      if (this_lane() % kHalf == 0) ring.above[at][this_lane() / kHalf] = above;
    }
    __syncthreads();
  }
}
__device__ __forceinline__ void begin_helped_turn(AheadRing& ring, bool done = false) {
  if (this_lane() == 0) ring.done = done;
  __syncthreads();
}

}  // namespace pyfilter::cuda
