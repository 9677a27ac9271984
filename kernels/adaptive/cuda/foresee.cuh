// SPDX-License-Identifier: BSD-3-Clause
// What earlier turns foretell of a turn's steps (refine.hpp: Ahead) does not depend on the turn itself. So a second
// warp can find it, some steps ahead of the warp that codes.
#pragma once

#include <cstdint>

#include "adaptive/cuda/classes.cuh"

namespace pyfilter::cuda {

// What the helper does next: foresees a turn, sets up its half of a pass's classes, or ends.
enum class HelperTask : std::uint32_t { turn, classes, end };

// Two batches of steps in shared memory: one is filled while the other is used.
struct AheadRing {
  static constexpr std::uint32_t kBatch = 8;

  Floats sum[2 * kBatch][kRows], near[2 * kBatch][kRows], range[2 * kBatch][kRows], sizes[2 * kBatch][kRows];
  Ints set[2 * kBatch][kRows];
  // What the cells of the turn's own class hold before they are coded, and those above the first rows.
  float uncoded[2 * kBatch][kRows], above[2 * kBatch][2];
  HelperTask task;

  __device__ __forceinline__ void put(std::uint32_t number, const Ahead& ahead) {
    const std::uint32_t at = number % (2 * kBatch);
    sum[at][this_lane()] = ahead.sum;
    near[at][this_lane()] = ahead.near;
    range[at][this_lane()] = ahead.range;
    sizes[at][this_lane()] = ahead.sizes;
    set[at][this_lane()] = ahead.set;
  }
  // Of the warp that codes, which takes all steps of a turn.
  __device__ __forceinline__ Ahead take(std::uint32_t number) const {
    if (number % kBatch == 0) __syncthreads();
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

// A turn whose own class is read from OwnCells. But if a plane's halves are one column each, a value of the second half
// has a neighbour in the first one that is coded before it: then cells are read.
struct HelpedTurn : Refining {
  const OwnCells& cells;
  std::uint32_t step = 0;
  bool in_ring;

  __device__ __forceinline__ HelpedTurn(const Refining& refining, const OwnCells& own)
      : Refining(refining), cells(own), in_ring(shape.kind != TileKind::plane || shape.half > 1) {}
};
PYF_LANES Floats add_own_values(const HelpedTurn& r, CellIndex at, const Ints& set, const Floats& sum) {
  return add_own_values(r.turn, set, sum, [&](RefiningMemory::Before before) {
    return r.in_ring ? r.cells.values[0][OwnCells::index(r.step, before)] : r.values[r.own_cell(at, before)];
  });
}
PYF_LANES Floats add_own_sizes(const HelpedTurn& r, CellIndex at, const Floats& m) {
  return add_own_sizes(r.turn, m, [&](RefiningMemory::Before before) {
    return r.in_ring ? r.cells.sizes[0][OwnCells::index(r.step, before)] : r.sizes[r.own_cell(at, before)];
  });
}
// A step of which is known what earlier turns foretell.
struct ForeseenStep : RefinedStep<HelpedTurn> {
  const Ahead& ahead;

  __device__ __forceinline__ ForeseenStep(HelpedTurn& turn, std::uint32_t step, const Ahead& known)
      : RefinedStep<HelpedTurn>(turn, step), ahead(known) {}
  __device__ __forceinline__ Expected expect() const { return expect_refined(refining, cell, ahead); }
};

// Shared memory of two warps that take turns together.
struct HelpMemory {
  AheadRing ring;
  OwnCells cells;
};

// Begins a task of the helper.
__device__ __forceinline__ void call_helper(AheadRing& ring, HelperTask task) {
  if (this_lane() == 0) ring.task = task;
  __syncthreads();
}
// Sets up the classes of a pass by two warps.
__device__ __forceinline__ void begin_classes_together(const Refinement& shape, const Dense& dense,
                                                       const Lattice& lattice, const UnitScratch& scratch) {
  begin_classes(shape, dense, lattice, scratch, threadIdx.x / kRows, 2, [] { __syncthreads(); });
}

__device__ __forceinline__ void foresee_turn(AheadRing& ring, const Refining& refining) {
  const std::uint32_t steps = refining.shape.steps();
  CellsBeside beside(refining);
  beside.load(refining.shape.cell_of_step(refining.parity, 0));
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

// The helper: does task after task. The other warp sets up the memory of each, then calls.
template <class Memory>
__device__ __forceinline__ void help(AheadRing& ring, const Memory& memory, const AdaptiveTaps& taps,
                                     const UnitScratch& scratch) {
#pragma unroll 1
  for (;;) {
    __syncthreads();
    const HelperTask task = ring.task;
    if (task == HelperTask::end) return;
    if (task == HelperTask::classes) {
      begin_classes_together(memory.refining.shape, memory.dense, memory.lattice, scratch);
    } else {
      foresee_turn(ring, Refining(memory.refining, memory.pass, taps, scratch));
    }
  }
}

}  // namespace pyfilter::cuda
