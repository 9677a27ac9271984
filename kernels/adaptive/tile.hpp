// SPDX-License-Identifier: BSD-3-Clause
// The first pass over a tile as a wavefront: predictions from reconstructed values, step by step, in 32 rows side by
// side (docs/format.md, section 14.4). Encoder, decoder and training use the same arrays. refine.hpp has other passes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "adaptive/layout.hpp"
#include "adaptive/model.hpp"
#include "adaptive/taps.hpp"

PYF_BEGIN_TARGET

inline constexpr float kFarthest = 262143.0f, kLargestSize = 1048576.0f;  // zigzag numbers of codes fit kCodeBits

// Properties of a wave that are set before it begins. Rings of a GPU (cuda/cells.cuh) know some at compile time.
template <class Cells>
struct KindOf {
  using Sizes = Cells;

  TileKind kind = TileKind::line;
  std::uint32_t range_taps = 0;
};

// Memory of a pass over a tile: reconstructed values and sizes of codes, in the wavefront's layout.
template <class Cells>
struct WaveOf : KindOf<Cells> {
  using KindOf<Cells>::kind, KindOf<Cells>::range_taps;

  Layout layout;
  Cells values = {};
  typename KindOf<Cells>::Sizes sizes = {};
  const WavePass* pass = nullptr;

  CellIndex tap[kMostCandidates];
  CellIndex code_tap[kCodeTaps];
  std::uint32_t features = 0;  // neighbours whose codes have a scale above 0, the nearest last
  std::uint8_t feature[kCodeTaps];
  CellIndex range_tap[kRangeTaps];
  CellIndex near[3];  // the neighbours before, along x, y and z

  PYF_ON_LANES void set_neighbours(const PassModel& model, const TapList& list, const Tap* codes,
                                   const RangeTaps& ranges) {
    for (std::uint32_t i = 0; i < model.taps; ++i) tap[i] = layout.distance(list.of[model.tap[i]]);
    features = 0;
    for (std::uint32_t i = kCodeTaps; i-- > 0;) {
      code_tap[i] = layout.distance(codes[i]);
      if (model.has_feature(i)) feature[features++] = static_cast<std::uint8_t>(i);
    }
    for (std::uint32_t i = 0; i < ranges.count; ++i) range_tap[i] = layout.distance(ranges.of[i]);
    near[0] = layout.distance({0, 0, -1});
    near[1] = layout.distance({0, -1, 0});
    near[2] = layout.distance({-1, 0, 0});
  }

  // Writes a lane's value to a cell. For the first plane also writes the copy in the plane before it.
  PYF_ON_LANES void put(CellIndex at, bool first_plane, float value) {
    put_cell(values, at, value);
    if (first_plane) put_cell(values, at - layout.plane_cells, value);
  }
  // Copies outside the tile: in a causal pass every cell outside has the value of the nearest cell inside. Beside a row
  // are three above the first one and two below the last one: `i` is 1 to 5, or 0 for the row itself.
  PYF_ON_LANES CellIndex beside_row(std::uint32_t i) const {
    const CellIndex down = i <= 3 ? -static_cast<CellIndex>(i) : static_cast<CellIndex>(i) - 3;
    return down * (2 * layout.step_cells + 1);
  }
  PYF_ON_LANES std::uint32_t row_beside(std::uint32_t i) const { return i <= 3 ? 0 : layout.rows - 1; }
  // Writes `columns` copies of a lane's value, from cell to cell `by`, and those of its row where it is an outer one.
  template <class FirstPlane>
  PYF_ON_LANES void copy_columns(CellIndex at, std::uint32_t lane, std::uint32_t columns, CellIndex by,
                                 const Floats& of_lanes, const FirstPlane& is_first_plane) {
    const bool outer = kind != TileKind::line && (lane == 0 || lane + 1 == layout.rows);
    const std::uint32_t rows = outer ? 6 : 1;
    each_copy(
        columns * rows, values, at, of_lanes, [&](std::uint32_t) { return lane; },
        [&](std::uint32_t i, std::uint32_t, float value) {
          const std::uint32_t row = outer ? i % 6 : 0, column = 1 + (outer ? i / 6 : i);
          if (row != 0 && row_beside(row) != lane) return;
          put(at + static_cast<CellIndex>(lane) + static_cast<CellIndex>(column) * by + beside_row(row),
              is_first_plane(lane), value);
        });
  }
};

// The coordinates of the lanes at a step.
struct Place {
  Ints x, z, y;
  Ints lengths;
  std::int32_t planes, after;  // after: the x at which a lane goes to its next plane
  std::int32_t lead;
  CellIndex cell = 0;  // of lane 0; used on GPUs

  // row_lengths: of all 32 lanes, 0 for lanes without a row.
  PYF_ON_LANES Place(const Layout& l, const std::uint32_t* row_lengths)
      : planes(static_cast<std::int32_t>(l.planes)),
        after(static_cast<std::int32_t>(l.columns + l.trail)),
        lead(static_cast<std::int32_t>(l.lead)) {
    y = Ints::lanes();
    x = Ints::all(-lead) - y * Ints::all(static_cast<std::int32_t>(l.skew));
    lengths = Ints::load(reinterpret_cast<const std::int32_t*>(row_lengths));
    z = Ints::all(0);
  }
  PYF_ON_LANES void next() {
    x = x + Ints::all(1);
    const Ints wrapped = x == Ints::all(after);
    x = select(wrapped, Ints::all(-lead), x);
    z = z - wrapped;
  }
  PYF_ON_LANES Ints active() const { return (x >= Ints::all(0)) & (x < lengths) & (z < Ints::all(planes)); }
  // The border bits of a causal pass, which select a set of weights; 0 inside the tile.
  PYF_ON_LANES Ints border(TileKind kind) const {
    const Ints zero = Ints::all(0);
    Ints bits = (x == zero) & Ints::all(1);
    if (kind != TileKind::line) bits = bits | ((y == zero) & Ints::all(2));
    if (kind == TileKind::volume) bits = bits | ((z == zero) & Ints::all(4));
    return bits;
  }
};

// A decoder's knowledge of the lanes' values before it reads their codes.
struct Expected {
  Floats value, range, distance;
  Ints set;
  Floats sizes;  // of a refining pass: what the context's m is without range and distance
};

template <class Wave>
PYF_ON_LANES Expected expect_in_wave(const Wave& wave, const Place& place, std::uint32_t step) {
  const WavePass& pass = *wave.pass;
  const CellIndex at = cell_of_step(step, place.cell);
  const auto value_at = beside(wave.values, at);
  const Floats near = value_at(wave.range_tap[0]);
  Floats low = near, high = near;
  for (std::uint32_t i = 1; i < wave.range_taps; ++i) {
    const Floats v = value_at(wave.range_tap[i]);
    low = least(low, v);
    high = most(high, v);
  }
  Expected e;
  e.range = high - low;
  Ints set = Ints::all(0);
  for (std::uint32_t i = 0; i + 1 < pass.classes; ++i) set = set - (e.range >= Floats::all(pass.thresholds[i]));
  const Ints border = place.border(wave.kind);
  set = select(border == Ints::all(0), set, border + Ints::all(kBorderSets));
  e.set = set;
  const Floats sum = weighted_values(wave, at, set);
  e.value = sum;
  const Ints inside = border == Ints::all(0);
  e.range = as_floats(bits_of(e.range) & inside);
  e.distance = as_floats(bits_of(absolute(sum - near)) & inside);
  return e;
}

// The context level of each lane, by its m.
PYF_ON_LANES Ints level_of(const Floats& m) {
  const Ints level = shift_right(bits_of(m), 21) - Ints::all((127 - 6) * 4);
  const Ints low = select(level < Ints::all(0), Ints::all(0), level);
  return select(low < Ints::all(kContextLevels), low, Ints::all(kContextLevels - 1));
}
// `at`: the step's cell.
template <class Wave>
PYF_ON_LANES Ints context_level_at(const Wave& wave, const Expected& e, CellIndex at) {
  return level_of(weighted_features(wave, at, e.range, e.distance) * look_up(wave.pass->factors, e.set));
}

// The substitute for special values in predictions: the mean of the neighbours along and across the row, if present.
template <class Wave>
PYF_ON_LANES Floats stand_in_of_wave(const Wave& wave, const Place& place, std::uint32_t step) {
  const CellIndex at = cell_of_step(step, place.cell);
  const auto value_at = [&](CellIndex distance) { return load_cells(wave.values, at, distance); };
  const Floats left = value_at(wave.near[0]);
  if (wave.kind == TileKind::line) return as_floats(bits_of(left) & ~(place.x == Ints::all(0)));
  const Floats above = value_at(wave.near[1]);
  const Ints first_column = place.x == Ints::all(0), first_row = place.y == Ints::all(0);
  const Floats one = select(first_column, above, left), other = select(first_row, left, above);
  Floats mean = (one + other) * Floats::all(0.5f);
  Floats none = Floats::all(0);
  if (wave.kind == TileKind::volume) none = select(place.z == Ints::all(0), none, value_at(wave.near[2]));
  return select(first_column & first_row, none, mean);
}

// Stores the lanes of `bits`, and their copies outside the tile.
template <class Wave>
PYF_ON_LANES void store_values(Wave& wave, const Place& place, std::uint32_t step, std::uint32_t bits,
                               const Ints& active, const Floats& values) {
  const Layout& l = wave.layout;
  const CellIndex at = cell_of_step(step, place.cell), row = l.step_cells;
  store_cells(wave.values, at, active, values);
  const Ints first_plane = active & (place.z == Ints::all(0));
  const std::uint32_t first_plane_bits = wave.kind == TileKind::volume ? bits_of_condition(first_plane) : 0;
  if (first_plane_bits != 0) store_cells(wave.values, at - l.plane_cells, first_plane, values);
  const auto is_first_plane = [&](std::uint32_t lane) { return (first_plane_bits >> lane & 1) != 0; };
  if (wave.kind != TileKind::line)
    each_copy(
        5, wave.values, at, values, [&](std::uint32_t i) { return wave.row_beside(1 + i); },
        [&](std::uint32_t i, std::uint32_t lane, float value) {
          if ((bits >> lane & 1) == 0) return;
          wave.put(at + static_cast<CellIndex>(lane) + wave.beside_row(1 + i), is_first_plane(lane), value);
        });
  each_lane(bits & bits_of_condition(place.x == Ints::all(0)),
            [&](std::uint32_t lane) { wave.copy_columns(at, lane, l.lead, -row, values, is_first_plane); });
  if (l.trail != 0)
    each_lane(bits & bits_of_condition(place.x == place.lengths - Ints::all(1)),
              [&](std::uint32_t lane) { wave.copy_columns(at, lane, l.trail, row, values, is_first_plane); });
}

// The codes of a step, and the values that the decoder will have. `exact`, `origin`: lanes with a stored value instead.
struct CodedStep {
  Floats code, value;
  std::uint32_t exact, origin;
};

// The encoder's closed loop. t: the numbers to code; masks: of the lanes in `bits` that have a special value, a value
// to be stored, one that must keep its r, and none (kAbsent): such a lane codes what is nearly the mean of its
// neighbours, or else stores a value whose t is 0.
template <class Step>
PYF_ON_LANES CodedStep code_step(const Step& step, const Expected& e, const Floats& t, const Floats& unit,
                                 const Floats& per_unit, std::uint32_t bits, std::uint32_t sentinel,
                                 std::uint32_t wanted_exact, std::uint32_t kept, std::uint32_t absent) {
  Floats difference = t - e.value;
  if (absent != 0) difference = select(condition_of_bits(absent), step.stand_in() - e.value, difference);
  const Ints fits = absolute(difference) < Floats::all(kFarthest);
  const std::uint32_t exact = (wanted_exact | ~bits_of_condition(fits)) & bits & ~sentinel & ~kept;
  const Floats code = nearest(difference * per_unit);
  CodedStep s{code, fused(code, unit, e.value), exact, 0};
  if (kept != 0) {  // r is stored if no code gives it
    s.origin = kept & ~bits_of_condition((s.value == t) & fits);
    const Ints is_origin = condition_of_bits(s.origin);
    s.value = select(is_origin, t, s.value);
    s.code = as_floats(bits_of(s.code) & ~is_origin);
  }
  if ((sentinel | exact) != 0) {
    const Floats other = step.stand_in();
    const Ints usable = absolute(t) < Floats::all(kFarthest);
    const Ints is_exact = condition_of_bits(exact), is_special = condition_of_bits(sentinel | exact);
    s.value = select(is_special, select(is_exact & usable, t, other), s.value);
    s.code = as_floats(bits_of(s.code) & ~is_special);
  }
  return s;
}

// The masks of six earlier neighbours of each lane's value: the context of the value's own flag.
struct MaskNeighbours {
  std::uint32_t words[6];

  MaskNeighbours() = default;

  // masks[s] is the mask of step s; steps before the first have 0.
  template <class Wave, class Masks>
  PYF_ON_LANES MaskNeighbours(const Wave& wave, const Masks& masks, std::uint32_t step) {
    const auto before = [&](std::uint32_t steps) {
      return masks[static_cast<std::ptrdiff_t>(step) - static_cast<std::ptrdiff_t>(steps)];
    };
    if (wave.kind == TileKind::line) {
      for (std::uint32_t i = 0; i < 6; ++i) words[i] = before(1 + i);
      return;
    }
    words[0] = before(1);
    words[1] = before(2) << 1;
    words[2] = before(1) << 1;
    words[3] = before(3) << 1;
    words[4] = before(2);
    words[5] = wave.kind == TileKind::volume ? before(wave.layout.period()) : before(4) << 2;
  }
  PYF_ON_LANES std::uint32_t of_lane(std::uint32_t lane) const {
    std::uint32_t context = 0;
    for (std::uint32_t i = 0; i < 6; ++i) context |= (words[i] >> lane & 1) << i;
    return context;
  }
};

// A point of a lattice.
struct LatticePoint {
  std::uint32_t z, y, x;
};

// A step of the first pass, as encoder and decoder see it. RefinedStep (refine.hpp) has the same functions.
template <class Wave, class Masks>
struct WaveStep {
  Wave& wave;
  const Place& place;
  std::uint32_t step;
  Masks masks;  // of the steps

  PYF_ON_LANES CellIndex at() const { return cell_of_step(step, place.cell); }
  PYF_ON_LANES Expected expect() const { return expect_in_wave(wave, place, step); }
  PYF_ON_LANES Ints level(const Expected& e) const { return context_level_at(wave, e, at()); }
  PYF_ON_LANES MaskNeighbours near_masks() const { return {wave, masks, step}; }
  PYF_ON_LANES auto& mask() const { return masks[static_cast<std::ptrdiff_t>(step)]; }
  PYF_ON_LANES Floats stand_in() const { return stand_in_of_wave(wave, place, step); }
  PYF_ON_LANES void store(std::uint32_t bits, const Ints& active, const Floats& values) const {
    store_values(wave, place, step, bits, active, values);
  }
  PYF_ON_LANES void store_sizes(const Ints& active, const Floats& sizes) const {
    store_cells(wave.sizes, at(), active, sizes);
  }
  PYF_ON_LANES LatticePoint point(std::uint32_t lane) const {
    const Layout& l = wave.layout;
    const std::uint32_t along = step - l.lead - l.skew * lane;
    return {along / l.period(), lane, along % l.period()};
  }
};

PYF_END_TARGET
