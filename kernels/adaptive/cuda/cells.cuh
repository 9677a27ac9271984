// SPDX-License-Identifier: BSD-3-Clause
// Cells of a wavefront in the memory of a warp, with the names of cpu/cells.hpp. They are a ring of steps in shared
// memory, or all steps of a tile in global memory. A ring is as long as the furthest neighbour is back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "adaptive/cuda/lanes.cuh"
#include "adaptive/model.hpp"

namespace pyfilter::cuda {

// Lanes -3 to 34 of a step and one unused cell: an odd number, so that the lanes of a column are in different banks.
inline constexpr std::uint32_t kLaneStride = 39;
static_assert(kLaneStride >= kRows + 2 * 3, "neighbours reach three rows to each side");
using CellIndex = std::int32_t;

// The fields of a pass that tiles read. The weights of a set are contiguous, so that one load takes four. Scales are
// those of the first pass, the same for all sets. Unused distances and weights are 0.
struct WavePass {
  static constexpr std::uint32_t kWeights = 44;  // per set: eight sets begin in different banks

  alignas(16) float weights[kSets][kWeights];
  alignas(16) float scales[kCodeTaps];  // of sizes of codes, in the order of their sum
  float constant, of_range, of_distance, factors[kSets];
  alignas(16) CellIndex taps_at[kWeights], features_at[kCodeTaps];
  std::uint32_t tap_fours, feature_fours;
  float thresholds[kMostClasses - 1];
  float unit;
  std::uint32_t classes;
};

// Rings of steps in the block's dynamic shared memory, as long as neighbours and copies reach back and ahead. In
// volumes a step also has the cells of the two planes before (planes.cuh).
template <TileKind K>
struct RingShape {
  static constexpr bool kDeep = K == TileKind::volume;
  static constexpr std::uint32_t kValueSteps = kDeep ? 16 : 32, kSizeSteps = K == TileKind::line ? 32 : 8;
  static constexpr CellIndex kStep = kDeep ? 128 : 64, kPlane = kDeep ? 40 : 0, kFirstLane = 3;
  static constexpr std::uint32_t kCells = kStep * (kValueSteps + kSizeSteps);
};
PYF_LANES float* ring_memory() {
  extern __shared__ float wave_memory[];
  return wave_memory;
}
template <TileKind K, bool kSizes>
struct RingCells {
  using Shape = RingShape<K>;
  static constexpr std::uint32_t kFoursAtOnce = 3;
  static constexpr std::uint32_t kFirst = kSizes ? Shape::kStep * Shape::kValueSteps : 0,
                                 kMask = Shape::kStep * (kSizes ? Shape::kSizeSteps : Shape::kValueSteps) - 1;

  PYF_LANES float& before(CellIndex i) { return ring_memory()[kFirst + (static_cast<std::uint32_t>(i) & kMask)]; }
  PYF_LANES float& any(CellIndex i) { return before(i); }
};
// There are cells before cell 0.
struct FlatCells {
  static constexpr std::uint32_t kFoursAtOnce = 6;  // loads of weighted_cells() on their way together

  float* first;

  __device__ __forceinline__ float& before(CellIndex i) const { return first[i]; }
  __device__ __forceinline__ float& any(CellIndex i) const { return first[i]; }
};

PYF_LANES CellIndex cell_of_step(std::uint32_t, CellIndex cell) { return cell; }
template <class Cells>
PYF_LANES Floats load_cells(const Cells& cells, CellIndex at, CellIndex distance) {
  return {cells.before(at + static_cast<CellIndex>(this_lane()) + distance)};
}
template <class Cells>
PYF_LANES void store_cells(const Cells& cells, CellIndex at, const Ints& where, const Floats& values) {
  if (where.v != 0) cells.before(at + static_cast<CellIndex>(this_lane())) = values.v;
}
template <class Cells>
PYF_LANES void put_cell(const Cells& cells, CellIndex at, float value) {
  cells.any(at) = value;
}

// Cells beside those of a step: a lane's own place, found once.
template <TileKind K, bool kSizes>
struct RingBeside {
  CellIndex own;

  __device__ __forceinline__ Floats operator()(CellIndex distance) const {
    return {RingCells<K, kSizes>::before(own + distance)};
  }
};
struct FlatBeside {
  const float* own;

  __device__ __forceinline__ Floats operator()(CellIndex distance) const { return {own[distance]}; }
};
template <TileKind K, bool kSizes>
PYF_LANES RingBeside<K, kSizes> beside(const RingCells<K, kSizes>&, CellIndex at) {
  return {at + static_cast<CellIndex>(this_lane())};
}
PYF_LANES FlatBeside beside(const FlatCells& cells, CellIndex at) {
  return {address_here(cells.first + at + static_cast<CellIndex>(this_lane()))};
}

// All lanes call f(lane) for each lane of `bits`.
template <class F>
PYF_LANES void each_lane(std::uint32_t bits, F&& f) {
#pragma unroll 1
  for (; bits != 0; bits &= bits - 1) f(static_cast<std::uint32_t>(__ffs(static_cast<int>(bits))) - 1);
}
// Each of `count` lanes calls f(i, lane, value) for a copy of the value of lane_of(i); at most 32.
template <class Cells, class LaneOf, class F>
PYF_LANES void each_copy(std::uint32_t count, const Cells&, CellIndex, const Floats& values, const LaneOf& lane_of,
                         F&& f) {
  const std::uint32_t i = this_lane(), lane = lane_of(i);
  const float value = __shfl_sync(kAllRows, values.v, static_cast<int>(lane));
  if (i < count) f(i, lane, value);
}

// Adds products, in order: kFours times four of them, whose cells are loaded together.
template <std::uint32_t kFours, class Beside>
PYF_LANES Floats add_weighted(Floats sum, const Beside& cells, const CellIndex* distances, const float* weights) {
  Floats values[kFours][4];
#pragma unroll
  for (std::uint32_t k = 0; k < kFours; ++k) {
    const int4 d = reinterpret_cast<const int4*>(distances)[k];
    values[k][0] = cells(d.x);
    values[k][1] = cells(d.y);
    values[k][2] = cells(d.z);
    values[k][3] = cells(d.w);
  }
#pragma unroll
  for (std::uint32_t k = 0; k < kFours; ++k) {
    const float4 w = reinterpret_cast<const float4*>(weights)[k];
    sum = fused({w.x}, values[k][0], sum);
    sum = fused({w.y}, values[k][1], sum);
    sum = fused({w.z}, values[k][2], sum);
    sum = fused({w.w}, values[k][3], sum);
  }
  return sum;
}
// Sums products. Those with a weight of 0 come last and do not change the sum.
template <class Cells>
PYF_LANES Floats weighted_cells(Floats sum, const Cells& cells, CellIndex at, const CellIndex* distances,
                                const float* weights, std::uint32_t fours) {
  const auto own = beside(cells, at);
  std::uint32_t k = 0;
  const auto add = [&](auto count) {
    sum = add_weighted<count.value>(sum, own, distances + 4 * k, weights + 4 * k);
    k += count.value;
  };
#pragma unroll 1
  while (fours - k >= Cells::kFoursAtOnce) add(std::integral_constant<std::uint32_t, Cells::kFoursAtOnce>{});
  if (Cells::kFoursAtOnce > 3 && fours - k >= 3) add(std::integral_constant<std::uint32_t, 3>{});
  if (fours - k == 2)
    add(std::integral_constant<std::uint32_t, 2>{});
  else if (fours - k == 1)
    add(std::integral_constant<std::uint32_t, 1>{});
  return sum;
}
template <class Wave>
PYF_LANES Floats weighted_values(const Wave& wave, CellIndex at, const Ints& set) {
  const WavePass& pass = *wave.pass;
  return weighted_cells(Floats::all(0), wave.values, at, pass.taps_at, pass.weights[set.v], pass.tap_fours);
}
template <class Wave>
PYF_LANES Floats weighted_features(const Wave& wave, CellIndex at, const Floats& range, const Floats& distance) {
  const WavePass& pass = *wave.pass;
  Floats m = weighted_cells({pass.constant}, wave.sizes, at, pass.features_at, pass.scales, pass.feature_fours);
  m = fused({pass.of_range}, range, m);
  return fused({pass.of_distance}, distance, m);
}

}  // namespace pyfilter::cuda
