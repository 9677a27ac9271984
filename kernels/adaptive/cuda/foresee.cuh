// SPDX-License-Identifier: BSD-3-Clause
// What earlier turns foretell of a turn's steps (refine.hpp: Ahead) does not depend on the turn itself. So a second
// warp can find it, some steps ahead of the warp that codes.
#pragma once

#include <cstdint>

#include "adaptive/cuda/classes.cuh"
#include "stages/cuda/prefetch.cuh"

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

  __device__ __forceinline__ void put(std::uint32_t number, const Ahead& ahead, float own_uncoded, float own_above) {
    const std::uint32_t at = number % (2 * kBatch);
    sum[at][this_lane()] = ahead.sum;
    near[at][this_lane()] = ahead.near;
    range[at][this_lane()] = ahead.range;
    sizes[at][this_lane()] = ahead.sizes;
    set[at][this_lane()] = ahead.set;
    uncoded[at][this_lane()] = own_uncoded;
    if (this_lane() % kHalf == 0) above[at][this_lane() / kHalf] = own_above;
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
  static constexpr std::uint32_t kSteps = 8, kLanes = 64, kAll = kSteps * kLanes;

  float values[kAll], sizes[kAll];

  // Lanes of a half follow a cell for the row above the first.
  PYF_LANES std::uint32_t index_of_lane() { return 1 + this_lane() + this_lane() / kHalf; }
  // The index of a neighbour at step 0, and at another step. Steps go round.
  PYF_LANES std::uint32_t at_first(RefiningMemory::Before before) {
    return static_cast<std::uint32_t>(before.steps * static_cast<std::int32_t>(kLanes) + before.lanes) +
           index_of_lane();
  }
  PYF_LANES std::uint32_t index(std::uint32_t step, std::uint32_t at_first) {
    return (step * kLanes + at_first) % kAll;
  }
  __device__ __forceinline__ void clear() {
    for (std::uint32_t i = this_lane(); i < kAll; i += kRows) values[i] = sizes[i] = 0;
    __syncwarp();
  }
  __device__ __forceinline__ void put(const AheadRing& ring, std::uint32_t step, const Ints& active, float value,
                                      float size) {
    const std::uint32_t at = step % (2 * AheadRing::kBatch), own = index(step, index_of_lane());
    values[own] = active.v != 0 ? value : ring.uncoded[at][this_lane()];
    sizes[own] = active.v != 0 ? size : 0;
    if (this_lane() % kHalf == 0) {
      values[own - 1] = ring.above[at][this_lane() / kHalf];
      sizes[own - 1] = 0;
    }
  }
};

// A turn whose own class is read from OwnCells. But if a plane's halves are one column each (kAny), a value of the
// second half has a neighbour in the first one that is coded before it: then cells are read.
template <bool kAny>
struct HelpedTurn : Refining {
  const OwnCells& cells;
  std::uint32_t step = 0;
  std::uint32_t tap[RefiningMemory::kMostOwnTaps], feature[RefiningMemory::kMostOwnFeatures];  // OwnCells::at_first()

  __device__ __forceinline__ HelpedTurn(const Refining& refining, const OwnCells& own)
      : Refining(refining), cells(own) {
#pragma unroll
    for (std::uint32_t k = 0; k < RefiningMemory::kMostOwnTaps; ++k) tap[k] = OwnCells::at_first(turn.own_taps[k]);
#pragma unroll
    for (std::uint32_t k = 0; k < RefiningMemory::kMostOwnFeatures; ++k)
      feature[k] = OwnCells::at_first(turn.own_features[k]);
  }
  __device__ __forceinline__ bool in_ring() const { return !kAny || shape.kind != TileKind::plane || shape.half > 1; }
};
template <bool kAny>
PYF_LANES Floats add_own_values(const HelpedTurn<kAny>& r, CellIndex at, const Ints& set, const Floats& sum) {
  return add_own_values(r.turn, set, sum, [&](std::uint32_t k) {
    return r.in_ring() ? r.cells.values[OwnCells::index(r.step, r.tap[k])]
                       : r.values[r.own_cell(at, r.turn.own_taps[k])];
  });
}
template <bool kAny>
PYF_LANES Floats add_own_sizes(const HelpedTurn<kAny>& r, CellIndex at, const Floats& m) {
  return add_own_sizes(r.turn, m, [&](std::uint32_t k) {
    return r.in_ring() ? r.cells.sizes[OwnCells::index(r.step, r.feature[k])]
                       : r.sizes[r.own_cell(at, r.turn.own_features[k])];
  });
}
// A step of which is known what earlier turns foretell.
template <bool kAny>
struct ForeseenStep : RefinedStep<HelpedTurn<kAny>> {
  const Ahead& ahead;

  __device__ __forceinline__ ForeseenStep(HelpedTurn<kAny>& turn, std::uint32_t step, const Ahead& known)
      : RefinedStep<HelpedTurn<kAny>>(turn, step), ahead(known) {}
  __device__ __forceinline__ Expected expect() const { return expect_refined(this->refining, this->cell, ahead); }
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

// Brings cells of classes that are coded to the second-level cache, before they are read: each lane those of a class,
// of a half, values or sizes. Of the neighbours' planes the next one is read first.
struct AheadLines {
  static constexpr std::uint32_t kSteps = 12, kStepsAtOnce = 2;

  const float* at;  // nullptr: of a class that is not coded
  std::uint32_t stride;

  __device__ __forceinline__ explicit AheadLines(const Refining& refining) : stride(refining.shape.stride) {
    const Refinement& shape = refining.shape;
    const std::uint32_t lane = this_lane(), parity = lane % 8, half = lane / 8 % 2;
    bool coded = parity == 0;
    for (std::uint32_t turn = 1; parity_of_turn(shape.kind, turn) != refining.parity; ++turn)
      coded = coded || parity_of_turn(shape.kind, turn) == parity;
    const std::uint32_t from = (shape.is_volume() ? shape.period : 0) + kSteps;
    const LaneCells& cells = lane < kRows / 2 ? refining.values : refining.sizes;
    at = coded ? cells.lane - shape.cell_of_lane(lane) + shape.cell_of_step(parity, from) + half * shape.group_cells
               : nullptr;
  }
  __device__ __forceinline__ void next() {
    if (at == nullptr) return;
#pragma unroll
    for (std::uint32_t i = 0; i < kStepsAtOnce * (kHalf + 2 * Refinement::kMargin); i += 8)
      prefetch_line(at + i);  // a sector each
    at += kStepsAtOnce * stride;
  }
};

// Foresees a step whose cells are loaded, and loads those of the next one, which come while this step is summed.
__device__ __forceinline__ void foresee_step(AheadRing& ring, const Refining& refining, std::uint32_t number,
                                             const CellsBeside& own, CellsBeside& next) {
  const CellIndex cell = refining.shape.cell_of_step(refining.parity, number);
  const float *const here = refining.values.own(cell), uncoded = *here, above = this_lane() % kHalf == 0 ? here[-1] : 0;
  next.load(cell + static_cast<CellIndex>(refining.shape.stride));
  ring.put(number, look_ahead(refining, own), uncoded, above);
}
__device__ __forceinline__ void foresee_turn(AheadRing& ring, const Refining& refining) {
  const std::uint32_t steps = refining.shape.steps();
  AheadLines lines(refining);
  CellsBeside even(refining), odd(refining);
  even.load(refining.shape.cell_of_step(refining.parity, 0));
#pragma unroll 1
  for (std::uint32_t number = 0; number < steps; number += 2) {
    if (number != 0 && number % AheadRing::kBatch == 0) __syncthreads();
    lines.next();
    foresee_step(ring, refining, number, even, odd);
    if (number + 1 < steps) foresee_step(ring, refining, number + 1, odd, even);
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
