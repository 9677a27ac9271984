// SPDX-License-Identifier: BSD-3-Clause
// A refining pass (refine.hpp) of a warp: the classes' arrays are in global memory, the turn's neighbours and weights
// in shared memory. cpu/refining.hpp is the CPU's.
#pragma once

#include <cstdint>

#include "adaptive/cuda/params.cuh"
#include "adaptive/refine.hpp"

namespace pyfilter::cuda {

// Cells of this lane: lane 0's cell of a step is `at`. A neighbour's address is one multiplication with an addition.
struct LaneCells {
  float* lane;  // this lane's cell where lane 0's is cell 0

  __device__ __forceinline__ float& operator[](CellIndex at) const { return lane[at]; }
  __device__ __forceinline__ const float* own(CellIndex at) const { return address_here(lane + at); }
};
PYF_LANES Floats load_cells(const LaneCells& cells, CellIndex at, CellIndex distance) { return {cells[at + distance]}; }
PYF_LANES void store_cells(const LaneCells& cells, CellIndex at, const Ints& where, const Floats& values) {
  if (where.v != 0) cells[at] = values.v;
}

// In shared memory: a pass's classes, and the neighbours of a turn with a weight that is not 0. Those of earlier
// classes have distances in cells, those of the turn's own class are apart.
struct RefiningMemory {
  static constexpr std::uint32_t kMostOwnTaps = 3, kMostOwnFeatures = 6;  // taps.cpp names no more
  struct Before {
    std::int32_t steps, lanes;
  };

  alignas(16) CellIndex taps_at[kMostCandidates], features_at[kCodeTaps];
  alignas(16) float weights[2][kMostCandidates];  // by the class of activity
  alignas(16) float scales[kCodeTaps];
  float own_weights[2][kMostOwnTaps], own_scales[kMostOwnFeatures];
  Before own_taps[kMostOwnTaps], own_features[kMostOwnFeatures];
  std::uint32_t tap_fours, feature_fours, own_tap_count, own_feature_count;
  float constant, of_range, of_distance;
  Refinement shape;
  CellIndex before[3], behind[3], code_at[kCodeTaps];
  std::uint32_t parity;
};

struct CellsInPlace;

// What a lane knows of the turn.
struct Refining {
  const RefiningMemory& turn;
  const Refinement& shape;
  const WavePass* pass;
  LaneCells values, sizes;
  std::uint32_t* masks;
  const CellIndex *before, *behind;
  const Tap* codes;
  std::uint32_t parity;

  __device__ __forceinline__ Refining(const RefiningMemory& memory, const WavePass& of_pass, const AdaptiveTaps& taps,
                                      const UnitScratch& scratch)
      : turn(memory),
        shape(memory.shape),
        pass(&of_pass),
        values{scratch.values + memory.shape.cell_of_lane(this_lane())},
        sizes{scratch.sizes + memory.shape.cell_of_lane(this_lane())},
        masks(scratch.masks),
        before(memory.before),
        behind(memory.behind),
        codes(taps.refining_codes.of[memory.parity]),
        parity(memory.parity) {}
  __device__ __forceinline__ std::uint32_t* masks_of(std::uint32_t of) const {
    return masks + std::size_t{of} * shape.steps();
  }
  // The cell of a neighbour of the turn's own class; `at`: the step's cell.
  __device__ __forceinline__ CellIndex own_cell(CellIndex at, RefiningMemory::Before before) const {
    return at + before.steps * static_cast<CellIndex>(shape.stride) + before.lanes;
  }
  __device__ __forceinline__ float scale_of_range() const { return turn.of_range; }
  __device__ __forceinline__ float scale_of_distance() const { return turn.of_distance; }
  __device__ __forceinline__ CellsInPlace beside(CellIndex at) const;
};

// Values and sizes beside a step, in classes of earlier turns. Their loads are on their way together.
struct CellsBeside {
  static constexpr std::uint32_t kTapFours = 6, kFeatureFours = kCodeTaps / 4;

  const Refining& r;
  CellIndex cell = 0;
  float value[kTapFours][4], size[kFeatureFours][4], near[3][2];

  __device__ __forceinline__ explicit CellsBeside(const Refining& refining) : r(refining) {}
  // `at`: the step's cell
  __device__ __forceinline__ void load(CellIndex at) {
    cell = at;
    const float *const own_value = r.values.own(at), *const own_size = r.sizes.own(at);
#pragma unroll
    for (std::uint32_t axis = 0; axis < 3; ++axis) {
      if ((r.parity >> axis & 1) == 0) continue;
      near[axis][0] = own_value[r.before[axis]];
      near[axis][1] = own_value[r.behind[axis]];
    }
#pragma unroll
    for (std::uint32_t k = 0; k < kTapFours; ++k) {
      if (k >= r.turn.tap_fours) break;
      load_four(own_value, r.turn.taps_at + 4 * k, value[k]);
    }
#pragma unroll
    for (std::uint32_t k = 0; k < kFeatureFours; ++k) {
      if (k >= r.turn.feature_fours) break;
      load_four(own_size, r.turn.features_at + 4 * k, size[k]);
    }
  }
  PYF_LANES void load_four(const float* own, const CellIndex* distances, float (&to)[4]) {
    const int4 d = *reinterpret_cast<const int4*>(distances);
    to[0] = own[d.x];
    to[1] = own[d.y];
    to[2] = own[d.z];
    to[3] = own[d.w];
  }
  __device__ __forceinline__ Floats before(std::uint32_t axis) const { return {near[axis][0]}; }
  __device__ __forceinline__ Floats behind(std::uint32_t axis) const { return {near[axis][1]}; }
  PYF_LANES Floats add_four(Floats sum, const float* weights, const float (&values)[4]) {
    const float4 w = *reinterpret_cast<const float4*>(weights);
    sum = fused({w.x}, {values[0]}, sum);
    sum = fused({w.y}, {values[1]}, sum);
    sum = fused({w.z}, {values[2]}, sum);
    return fused({w.w}, {values[3]}, sum);
  }
  __device__ __forceinline__ Floats weighted_values(const Ints& set) const {
    const float* const weights = r.turn.weights[set.v >> 3];
    Floats sum = Floats::all(0);
#pragma unroll
    for (std::uint32_t k = 0; k < kTapFours; ++k) {
      if (k >= r.turn.tap_fours) break;
      sum = add_four(sum, weights + 4 * k, value[k]);
    }
#pragma unroll 1
    for (std::uint32_t k = kTapFours; k < r.turn.tap_fours; ++k) {
      float more[4];
      load_four(r.values.own(cell), r.turn.taps_at + 4 * k, more);
      sum = add_four(sum, weights + 4 * k, more);
    }
    return sum;
  }
  __device__ __forceinline__ Floats weighted_sizes() const {
    Floats m = {r.turn.constant};
#pragma unroll
    for (std::uint32_t k = 0; k < kFeatureFours; ++k) {
      if (k >= r.turn.feature_fours) break;
      m = add_four(m, r.turn.scales + 4 * k, size[k]);
    }
    return m;
  }
};
// The same with loads where they are needed, in few registers.
struct CellsInPlace {
  static constexpr std::uint32_t kFoursAtOnce = 3;

  const Refining& r;
  CellIndex at;

  __device__ __forceinline__ Floats before(std::uint32_t axis) const {
    return load_cells(r.values, at, r.before[axis]);
  }
  __device__ __forceinline__ Floats behind(std::uint32_t axis) const {
    return load_cells(r.values, at, r.behind[axis]);
  }
  __device__ __forceinline__ Floats weighted_values(const Ints& set) const {
    return add(Floats::all(0), r.values, r.turn.taps_at, r.turn.weights[set.v >> 3], r.turn.tap_fours);
  }
  __device__ __forceinline__ Floats weighted_sizes() const {
    return add({r.turn.constant}, r.sizes, r.turn.features_at, r.turn.scales, r.turn.feature_fours);
  }

 private:
  __device__ __forceinline__ Floats add(Floats sum, const LaneCells& cells, const CellIndex* distances,
                                        const float* weights, std::uint32_t fours) const {
    const float* const own = cells.own(at);
#pragma unroll 1
    for (std::uint32_t from = 0; from < fours; from += kFoursAtOnce) {
      float values[kFoursAtOnce][4];
#pragma unroll
      for (std::uint32_t k = 0; k < kFoursAtOnce; ++k)
        if (from + k < fours) CellsBeside::load_four(own, distances + 4 * (from + k), values[k]);
#pragma unroll
      for (std::uint32_t k = 0; k < kFoursAtOnce; ++k)
        if (from + k < fours) sum = CellsBeside::add_four(sum, weights + 4 * (from + k), values[k]);
    }
    return sum;
  }
};
__device__ __forceinline__ CellsInPlace Refining::beside(CellIndex at) const { return {*this, at}; }

// Adds products of weights and load(k), in order. The loads are on their way together.
template <std::uint32_t kMost, class Load>
PYF_LANES Floats add_loaded(Floats sum, std::uint32_t count, const float* weights, const Load& load) {
  float values[kMost];
#pragma unroll
  for (std::uint32_t k = 0; k < kMost; ++k)
    if (k < count) values[k] = load(k);
#pragma unroll
  for (std::uint32_t k = 0; k < kMost; ++k)
    if (k < count) sum = fused({weights[k]}, {values[k]}, sum);
  return sum;
}
// What the turn's own class foretells. value(k) and size(k) load what belongs to its k-th neighbour.
template <class Load>
PYF_LANES Floats add_own_values(const RefiningMemory& turn, const Ints& set, const Floats& sum, const Load& value) {
  return add_loaded<RefiningMemory::kMostOwnTaps>(sum, turn.own_tap_count, turn.own_weights[set.v >> 3], value);
}
template <class Load>
PYF_LANES Floats add_own_sizes(const RefiningMemory& turn, const Floats& m, const Load& size) {
  return add_loaded<RefiningMemory::kMostOwnFeatures>(m, turn.own_feature_count, turn.own_scales, size);
}
PYF_LANES Floats add_own_values(const Refining& r, CellIndex at, const Ints& set, const Floats& sum) {
  return add_own_values(r.turn, set, sum,
                        [&](std::uint32_t k) { return r.values[r.own_cell(at, r.turn.own_taps[k])]; });
}
PYF_LANES Floats add_own_sizes(const Refining& r, CellIndex at, const Floats& m) {
  return add_own_sizes(r.turn, m, [&](std::uint32_t k) { return r.sizes[r.own_cell(at, r.turn.own_features[k])]; });
}

// A neighbour of the turn's own class, in the same plane.
PYF_LANES RefiningMemory::Before steps_before(const Refinement& shape, std::uint32_t parity, Tap tap) {
  const Refinement::Neighbour n = shape.neighbour(parity, tap);
  return {n.x + static_cast<std::int32_t>(shape.skew()) * n.y, n.y};
}

// Sets up a turn. Lists are padded to fours: a weight of 0 for a value that is known, and so is no NaN.
PYF_LANES void begin_turn(RefiningMemory& memory, const PassModel& model, const AdaptiveTaps& taps,
                          std::uint32_t turn) {
  const Refinement& shape = memory.shape;
  const std::uint32_t parity = parity_of_turn(shape.kind, turn);
  const CellIndex known = -static_cast<CellIndex>(parity * shape.class_cells);
  __syncwarp();
  std::uint32_t count = 0, own_count = 0;
  for (std::uint32_t from = 0; from < model.taps; from += kRows) {
    const std::uint32_t i = from + this_lane();
    const float low = i < model.taps ? model.weights[i][parity] : 0,
                high = i < model.taps ? model.weights[i][parity + 8] : 0;
    const Tap tap = taps.refining.of[i < model.taps ? model.tap[i] : 0];
    const bool used = low != 0 || high != 0, is_own = shape.neighbour(parity, tap).parity == parity;
    const std::uint32_t others = __ballot_sync(kAllRows, used && !is_own ? 1 : 0),
                        own = __ballot_sync(kAllRows, used && is_own ? 1 : 0);
    const CellIndex distance = shape.distance(parity, tap);
    if (used && !is_own) {
      const std::uint32_t k = count + popcount(others & lanes_below());
      memory.taps_at[k] = distance;
      memory.weights[0][k] = low;
      memory.weights[1][k] = high;
    } else if (used) {
      const std::uint32_t k = own_count + popcount(own & lanes_below());
      memory.own_taps[k] = steps_before(shape, parity, tap);
      memory.own_weights[0][k] = low;
      memory.own_weights[1][k] = high;
    }
    count += popcount(others);
    own_count += popcount(own);
  }
  const std::uint32_t fours = (count + 3) / 4;
  if (count + this_lane() < 4 * fours) {
    memory.taps_at[count + this_lane()] = known;
    memory.weights[0][count + this_lane()] = memory.weights[1][count + this_lane()] = 0;
  }
  const std::uint32_t i = kCodeTaps - 1 - this_lane() % kCodeTaps;
  const Tap code = taps.refining_codes.of[parity][i];
  const CellIndex distance = shape.distance(parity, code);
  const float scale = this_lane() < kCodeTaps ? model.scales[i][parity] : 0;
  const bool is_own = shape.neighbour(parity, code).parity == parity;
  const std::uint32_t others = __ballot_sync(kAllRows, scale != 0 && !is_own ? 1 : 0),
                      own = __ballot_sync(kAllRows, scale != 0 && is_own ? 1 : 0),
                      feature_fours = (popcount(others) + 3) / 4;
  if (this_lane() < kCodeTaps) memory.code_at[i] = distance;
  if (scale != 0 && !is_own) {
    memory.features_at[popcount(others & lanes_below())] = distance;
    memory.scales[popcount(others & lanes_below())] = scale;
  } else if (scale != 0) {
    memory.own_features[popcount(own & lanes_below())] = steps_before(shape, parity, code);
    memory.own_scales[popcount(own & lanes_below())] = scale;
  }
  if (popcount(others) + this_lane() < 4 * feature_fours) {
    memory.features_at[popcount(others) + this_lane()] = known;
    memory.scales[popcount(others) + this_lane()] = 0;
  }
  if (this_lane() < 2 * static_cast<std::uint32_t>(shape.kind)) {
    const std::uint32_t axis = this_lane() / 2;
    const std::int8_t by = this_lane() % 2 == 0 ? -1 : 1, none = 0;
    const CellIndex near =
        shape.distance(parity, {axis == 2 ? by : none, axis == 1 ? by : none, axis == 0 ? by : none});
    (this_lane() % 2 == 0 ? memory.before : memory.behind)[axis] = near;
  }
  if (this_lane() == 0) {
    memory.parity = parity;
    memory.tap_fours = fours;
    memory.own_tap_count = own_count;
    memory.feature_fours = feature_fours;
    memory.own_feature_count = popcount(own);
    memory.constant = model.scales[kConstantFeature][parity];
    memory.of_range = model.scales[kRangeFeature][parity];
    memory.of_distance = model.scales[kDistanceFeature][parity];
  }
  __syncwarp();
}

}  // namespace pyfilter::cuda
