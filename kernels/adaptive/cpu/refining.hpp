// SPDX-License-Identifier: BSD-3-Clause
// A refining pass (refine.hpp) in a CPU's memory, and the neighbours that a turn uses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "adaptive/refine.hpp"

PYF_BEGIN_TARGET

// Cells of the two halves of a class.
struct HalfCells {
  float* first = nullptr;
  CellIndex behind = 0;  // from half to half
};
KFN Floats load_cells(const HalfCells& cells, CellIndex at, CellIndex distance) {
  return Floats::load_halves(cells.first + at + distance, cells.first + at + distance + cells.behind);
}
KFN void store_cells(const HalfCells& cells, CellIndex at, const Ints& where, const Floats& values) {
  float* const to = cells.first + at;
  select(where, values, load_cells(cells, at, 0)).store_halves(to, to + cells.behind);
}

struct Refining {
  static constexpr std::size_t kMostMasks = 8 * 384;

  Refinement shape;
  HalfCells values, sizes;
  std::uint32_t* masks = nullptr;
  const PassModel* pass = nullptr;
  const TapList* list = nullptr;
  const RefiningCodes* all_codes = nullptr;

  // Of the turn: taps and features with a weight that is not 0, and distances of neighbours. The last ones are of the
  // same class.
  std::uint32_t parity = 0, taps = 0, features = 0, known_taps = 0, known_features = 0;
  std::uint8_t tap[kMostCandidates], feature[kCodeTaps];
  CellIndex tap_at[kMostCandidates], feature_at[kCodeTaps], before[3], behind[3];
  const Tap* codes = nullptr;  // neighbours of features

  std::uint32_t* masks_of(std::uint32_t of) const { return masks + std::size_t{of} * shape.steps(); }

  void begin_turn(std::uint32_t turn) {
    parity = parity_of_turn(shape.kind, turn);
    codes = all_codes->of[parity];
    taps = features = known_taps = known_features = 0;
    for (std::uint32_t i = 0; i < pass->taps; ++i) {
      if (pass->weights[i][parity] == 0 && pass->weights[i][parity + 8] == 0) continue;
      const Tap t = list->of[pass->tap[i]];
      tap_at[taps] = shape.distance(parity, t);
      tap[taps++] = static_cast<std::uint8_t>(i);
      if (shape.neighbour(parity, t).parity != parity) known_taps = taps;
    }
    for (std::uint32_t i = kCodeTaps; i-- > 0;) {
      if (pass->scales[i][parity] == 0) continue;
      feature_at[features] = shape.distance(parity, codes[i]);
      feature[features++] = static_cast<std::uint8_t>(i);
      if (shape.neighbour(parity, codes[i]).parity != parity) known_features = features;
    }
    const Tap near[3] = {{0, 0, -1}, {0, -1, 0}, {-1, 0, 0}}, far[3] = {{0, 0, 1}, {0, 1, 0}, {1, 0, 0}};
    for (std::uint32_t axis = 0; axis < static_cast<std::uint32_t>(shape.kind); ++axis) {
      before[axis] = shape.distance(parity, near[axis]);
      behind[axis] = shape.distance(parity, far[axis]);
    }
  }
  // The scales of a turn are those of both classes of activity.
  float scale(std::uint32_t i) const { return pass->scales[i][parity]; }
  float scale_of_range() const { return scale(kRangeFeature); }
  float scale_of_distance() const { return scale(kDistanceFeature); }
  KFN struct CellsBeside beside(CellIndex at) const;

  // The distances of all candidates, for samples.
  void find_candidates(std::uint32_t of, CellIndex* distances) const {
    for (std::uint32_t i = 0; i < list->count; ++i) distances[i] = shape.distance(of, list->of[i]);
  }
  // The cell of the first lane of `lanes`.
  const float* at(const HalfCells& cells, CellIndex step, std::uint32_t lanes) const {
    return cells.first + step + shape.cell_of_lane(static_cast<std::uint32_t>(__builtin_ctz(lanes)));
  }
};

// Sums of the taps and features `first` to before `end`, as for the first pass (cells.hpp).
KFN Floats add_values(const Refining& r, CellIndex at, const Ints& set, Floats sum, std::uint32_t first,
                      std::uint32_t end) {
  const PassModel& pass = *r.pass;
  if (pass.classes == 1) {
    for (std::uint32_t k = first; k < end; ++k)
      sum = fused(Floats::all(pass.weights[r.tap[k]][r.parity]), load_cells(r.values, at, r.tap_at[k]), sum);
    return sum;
  }
  for (std::uint32_t k = first; k < end; ++k)
    sum = fused(look_up(pass.weights[r.tap[k]], set), load_cells(r.values, at, r.tap_at[k]), sum);
  return sum;
}
KFN Floats add_sizes(const Refining& r, CellIndex at, Floats m, std::uint32_t first, std::uint32_t end) {
  for (std::uint32_t k = first; k < end; ++k)
    m = fused(Floats::all(r.scale(r.feature[k])), load_cells(r.sizes, at, r.feature_at[k]), m);
  return m;
}
KFN Floats add_own_values(const Refining& r, CellIndex at, const Ints& set, const Floats& sum) {
  return add_values(r, at, set, sum, r.known_taps, r.taps);
}
KFN Floats add_own_sizes(const Refining& r, CellIndex at, const Floats& m) {
  return add_sizes(r, at, m, r.known_features, r.features);
}
// What lies beside a step, in classes of earlier turns.
struct CellsBeside {
  const Refining& r;
  CellIndex at;

  KFN Floats before(std::uint32_t axis) const { return load_cells(r.values, at, r.before[axis]); }
  KFN Floats behind(std::uint32_t axis) const { return load_cells(r.values, at, r.behind[axis]); }
  KFN Floats weighted_values(const Ints& set) const { return add_values(r, at, set, Floats::all(0), 0, r.known_taps); }
  KFN Floats weighted_sizes() const {
    return add_sizes(r, at, Floats::all(r.scale(kConstantFeature)), 0, r.known_features);
  }
};
KFN CellsBeside Refining::beside(CellIndex at) const { return {*this, at}; }

// Writes the known class from the dense array, with copies outside of the lattice. The other classes begin as copies of
// it: a neighbour that is not coded yet, or is outside, counts as the known value beside it.
inline void begin_refining(Refining& r, const Dense& dense, const Lattice& lattice, bool masks) {
  const Refinement& shape = r.shape;
  float *const values = r.values.first, *const sizes = r.sizes.first;
  std::memset(sizes, 0, 4 * shape.floats());
  std::memset(values, 0, std::size_t{4} * shape.class_cells);
  std::fill_n(r.masks, std::size_t{shape.classes()} * shape.steps(), 0u);
  const auto lead = static_cast<std::int32_t>(shape.lead),
             behind = static_cast<std::int32_t>(shape.columns_of(0)) + lead;
  const auto stride = static_cast<CellIndex>(shape.stride);
  for (std::uint32_t number = 0; number < KnownRow::known_rows(shape); ++number) {
    const KnownRow row(shape, dense, lattice, number);
    const auto index = [&](std::int32_t x) { return row.from + static_cast<std::uint32_t>(x) * row.by; };
    float* const to = values + shape.cell(0, row.z, row.y, 0);
    for (std::int32_t x = 0; x < row.columns; ++x) to[x * stride] = dense.values[index(x)];
    if (row.columns > 0) {  // a run that is shorter than others has copies up to their end
      for (std::int32_t x = -lead; x < 0; ++x) to[x * stride] = to[0];
      for (std::int32_t x = row.columns; x < behind; ++x) to[x * stride] = to[(row.columns - 1) * stride];
    }
    if (!row.is_inside) continue;
    float* const own_sizes = sizes + shape.cell(0, row.z, row.y, 0);
    for (std::int32_t x = 0; x < row.columns; ++x) own_sizes[x * stride] = dense.sizes[index(x)];
    for (std::int32_t x = 0; x < row.columns && masks; ++x) {
      if (dense.kinds[index(x)] != kSentinel) continue;
      std::uint32_t lane = 0, step = 0;
      shape.find(static_cast<std::uint32_t>(row.z), static_cast<std::uint32_t>(row.y), static_cast<std::uint32_t>(x),
                 &step, &lane);
      r.masks[step] |= 1u << lane;
    }
  }
  for (std::uint32_t parity = 1; parity < shape.classes(); ++parity)
    std::memcpy(values + std::size_t{parity} * shape.class_cells, values, std::size_t{4} * shape.class_cells);
}

PYF_END_TARGET
