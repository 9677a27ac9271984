// SPDX-License-Identifier: BSD-3-Clause
// Cells of a wavefront on a CPU: a plain array of steps, each with room for 32 rows and the copies beside them.
// cuda/cells.cuh defines the same names for a warp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "adaptive/model.hpp"
#include "stages/simd/lanes.hpp"

PYF_BEGIN_TARGET

inline constexpr std::uint32_t kLaneStride = 48;  // distance of consecutive steps, in cells
using CellIndex = std::ptrdiff_t;
using Cells = float*;        // cell 0: lane 0 of step 0
using WavePass = PassModel;  // the fields of a pass that tiles read

KFN CellIndex cell_of_step(std::uint32_t step, CellIndex) { return CellIndex{step} * kLaneStride; }
KFN Floats load_cells(const float* cells, CellIndex at, CellIndex distance) {
  return Floats::load(cells + at + distance);
}
// Cells beside those of a step.
struct WaveBeside {
  const float* own;

  KFN Floats operator()(CellIndex distance) const { return Floats::load(own + distance); }
};
KFN WaveBeside beside(const float* cells, CellIndex at) { return {cells + at}; }
KFN void store_cells(float* cells, CellIndex at, const Ints& where, const Floats& values) {
  select(where, values, Floats::load(cells + at)).store(cells + at);
}
KFN void put_cell(float* cells, CellIndex at, float value) { cells[at] = value; }

// Calls f(lane) for each lane of `bits`.
template <class F>
KFN void each_lane(std::uint32_t bits, F&& f) {
  for (; bits != 0; bits &= bits - 1) f(static_cast<std::uint32_t>(__builtin_ctz(bits)));
}
// Calls f(i, lane, value) for `count` copies of values of the step at `at`, which are stored: those of lane_of(i).
template <class LaneOf, class F>
KFN void each_copy(std::uint32_t count, const float* cells, CellIndex at, const Floats&, const LaneOf& lane_of, F&& f) {
  for (std::uint32_t i = 0; i < count; ++i) f(i, lane_of(i), cells[at + lane_of(i)]);
}

// The prediction: the neighbours' values, weighted by the weights of each lane's set, summed in order.
template <class Wave>
KFN Floats weighted_values(const Wave& wave, CellIndex at, const Ints& set) {
  const PassModel& pass = *wave.pass;
  const float* const here = wave.values + at;
  Floats sum = Floats::all(0);
  for (std::uint32_t i = 0; i < pass.taps; ++i)
    sum = fused(look_up(pass.weights[i], set), Floats::load(here + wave.tap[i]), sum);
  return sum;
}
// The context's m before its factor: a constant plus scaled sizes of codes, range and distance.
template <class Wave>
KFN Floats weighted_features(const Wave& wave, CellIndex at, const Floats& range, const Floats& distance) {
  const PassModel& pass = *wave.pass;
  const float* const here = wave.sizes + at;
  // all sets have the same scales; the nearest codes come last, so that the sum can begin before they are known
  Floats m = Floats::all(pass.scales[kConstantFeature][0]);
  for (std::uint32_t k = 0; k < wave.features; ++k) {
    const std::uint32_t i = wave.feature[k];
    m = fused(Floats::all(pass.scales[i][0]), Floats::load(here + wave.code_tap[i]), m);
  }
  m = fused(Floats::all(pass.scales[kRangeFeature][0]), range, m);
  return fused(Floats::all(pass.scales[kDistanceFeature][0]), distance, m);
}

PYF_END_TARGET
