// SPDX-License-Identifier: BSD-3-Clause
// A tile as a wavefront: predictions from reconstructed values, step by step, 32 rows side by side (docs/format.md,
// section 14.4). Encoder, decoder and training walk over the same arrays.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "adaptive/cpu/lanes.hpp"
#include "adaptive/model.hpp"
#include "adaptive/taps.hpp"

PYF_BEGIN_TARGET

// Memory of a pass over a tile: reconstructed values and sizes of codes in the layout of the wavefront.
struct Wave {
  Layout layout;
  float* values = nullptr;  // slot 0; the memory begins layout.before() earlier
  float* sizes = nullptr;
  const PassModel* pass = nullptr;
  TileKind kind = TileKind::line;

  std::ptrdiff_t tap[kMostCandidates];
  std::ptrdiff_t code_tap[kCodeTaps];
  std::uint32_t features = 0;  // codes of neighbours that have a scale, the nearest last
  std::uint8_t feature[kCodeTaps];
  std::ptrdiff_t range_tap[kRangeTaps];
  std::uint32_t range_taps = 0;
  std::ptrdiff_t near[3], next[3];  // the neighbours along x, y and z, before and behind

  void begin(TileKind tile_kind, const PassModel& model, const Layout& l, float* value_memory, float* size_memory) {
    layout = l;
    kind = tile_kind;
    pass = &model;
    values = value_memory + l.before();
    sizes = size_memory + l.before();
    const TapList& list = model.refining ? refining_taps(kind) : causal_taps(kind);
    for (std::uint32_t i = 0; i < model.taps; ++i) tap[i] = l.distance(list.of[model.tap[i]]);
    const Tap* const codes = code_taps(kind, model.refining);
    features = 0;
    for (std::uint32_t i = kCodeTaps; i-- > 0;) {
      code_tap[i] = l.distance(codes[i]);
      bool any = false;
      for (std::uint32_t set = 0; set < kSets; ++set) any = any || model.scales[i][set] != 0;
      if (any) feature[features++] = static_cast<std::uint8_t>(i);
    }
    const RangeTaps& ranges = pyfilter::range_taps(kind);
    range_taps = ranges.count;
    for (std::uint32_t i = 0; i < range_taps; ++i) range_tap[i] = l.distance(ranges.of[i]);
    near[0] = l.distance({0, 0, -1});
    near[1] = l.distance({0, -1, 0});
    near[2] = l.distance({-1, 0, 0});
    for (int axis = 0; axis < 3; ++axis) next[axis] = -near[axis];
    std::memset(value_memory, 0, 4 * l.floats());
    std::memset(size_memory, 0, 4 * l.floats());
  }

  // Writes a value and its copies outside of the tile: a causal pass takes the nearest value inside for each outside.
  KFN void put(std::uint32_t step, std::uint32_t lane, bool first_plane, float value) {
    float* const at = values + std::size_t{step} * kLaneStride + lane;
    *at = value;
    if (first_plane) *(at - std::size_t{layout.period()} * kLaneStride) = value;
  }
  KFN void put_rows(std::uint32_t step, std::uint32_t lane, bool first_plane, float value) {
    put(step, lane, first_plane, value);
    copy_rows(step, lane, first_plane, value);
  }
  KFN void copy_rows(std::uint32_t step, std::uint32_t lane, bool first_plane, float value) {
    if (kind == TileKind::line) return;
    const std::size_t plane = std::size_t{layout.period()} * kLaneStride;
    if (lane == 0)
      for (std::size_t k = 1; k <= 3; ++k) {
        float* const at = values + (std::ptrdiff_t{step} - 2 * static_cast<std::ptrdiff_t>(k)) * kLaneStride -
                          static_cast<std::ptrdiff_t>(k);
        *at = value;
        if (first_plane) *(at - plane) = value;
      }
    if (lane + 1 == layout.rows)
      for (std::size_t k = 1; k <= 2; ++k) {
        float* const at = values + (std::size_t{step} + 2 * k) * kLaneStride + lane + k;
        *at = value;
        if (first_plane) *(at - plane) = value;
      }
  }
};

// Where the lanes are at a step.
struct Place {
  Ints x, z, y;
  Ints lengths;
  std::int32_t planes, after;  // after: the x at which a lane goes to its next plane
  std::int32_t lead;

  Place(const Layout& l, const std::uint32_t* row_lengths)
      : planes(static_cast<std::int32_t>(l.planes)),
        after(static_cast<std::int32_t>(l.columns + l.trail)),
        lead(static_cast<std::int32_t>(l.lead)) {
    std::int32_t first[kRows], length[kRows];
    for (std::uint32_t i = 0; i < kRows; ++i) {
      first[i] = -lead - static_cast<std::int32_t>(l.skew * i);
      length[i] = i < l.rows ? static_cast<std::int32_t>(row_lengths[i]) : 0;
    }
    x = Ints::load(first);
    lengths = Ints::load(length);
    y = Ints::lanes();
    z = Ints::all(0);
  }
  KFN void next() {
    x = x + Ints::all(1);
    const Ints wrapped = x == Ints::all(after);
    x = select(wrapped, Ints::all(-lead), x);
    z = z - wrapped;
  }
  KFN Ints active() const { return (x >= Ints::all(0)) & (x < lengths) & (z < Ints::all(planes)); }
  // How many coordinates are odd: a refining pass codes values in this order, and knows those with none.
  KFN Ints odd_coordinates(TileKind kind) const {
    const Ints one = Ints::all(1);
    Ints odd = x & one;
    if (kind != TileKind::line) odd = odd + (y & one);
    if (kind == TileKind::volume) odd = odd + (z & one);
    return odd;
  }
  // Sets of a causal pass that borders have; 0 inside.
  KFN Ints border(TileKind kind) const {
    const Ints zero = Ints::all(0);
    Ints bits = (x == zero) & Ints::all(1);
    if (kind != TileKind::line) bits = bits | ((y == zero) & Ints::all(2));
    if (kind == TileKind::volume) bits = bits | ((z == zero) & Ints::all(4));
    return bits;
  }
  KFN Ints parity(TileKind kind) const {
    const Ints one = Ints::all(1);
    Ints p = x & one;
    if (kind != TileKind::line) p = p | ((y & one) + (y & one));
    if (kind == TileKind::volume) p = p | ((z & one) + (z & one) + (z & one) + (z & one));
    return p;
  }
};

// What is known of the lanes' values before their codes.
struct Expected {
  Floats value, range, distance;
  Ints set;
};

KFN Expected expect(const Wave& wave, const Place& place, std::uint32_t step) {
  const PassModel& pass = *wave.pass;
  const float* const at = wave.values + std::size_t{step} * kLaneStride;
  Floats low = Floats::load(at + wave.range_tap[0]), high = low, near = low;
  if (pass.refining) {  // neighbours along the odd coordinates
    near = Floats::all(0);
    low = Floats::all(3e38f);
    high = Floats::all(-3e38f);
    for (std::uint32_t axis = static_cast<std::uint32_t>(wave.kind); axis-- > 0;) {
      const Ints odd = ((axis == 0 ? place.x : axis == 1 ? place.y : place.z) & Ints::all(1)) == Ints::all(1);
      const Floats before = Floats::load(at + wave.near[axis]), behind = Floats::load(at + wave.next[axis]);
      near = select(odd, before, near);
      low = select(odd, least(low, least(before, behind)), low);
      high = select(odd, most(high, most(before, behind)), high);
    }
  } else {
    for (std::uint32_t i = 1; i < wave.range_taps; ++i) {
      const Floats v = Floats::load(at + wave.range_tap[i]);
      low = least(low, v);
      high = most(high, v);
    }
  }
  Expected e;
  e.range = high - low;
  Ints border = Ints::all(0), set = Ints::all(0);
  for (std::uint32_t i = 0; i + 1 < pass.classes; ++i) set = set - (e.range >= Floats::all(pass.thresholds[i]));
  if (pass.refining) {
    set = set + set + set + set;
    set = set + set + place.parity(wave.kind);
  } else {
    border = place.border(wave.kind);
    set = select(border == Ints::all(0), set, border + Ints::all(kBorderSets));
  }
  e.set = set;
  Floats sum = Floats::all(0);
  for (std::uint32_t i = 0; i < pass.taps; ++i)
    sum = fused(look_up(pass.weights[i], set), Floats::load(at + wave.tap[i]), sum);
  e.value = sum;
  const Ints inside = border == Ints::all(0);
  e.range = as_floats(bits_of(e.range) & inside);
  e.distance = as_floats(bits_of(absolute(sum - near)) & inside);
  return e;
}

// The level of contexts of each lane.
KFN Ints context_level(const Wave& wave, const Expected& e, std::uint32_t step) {
  const PassModel& pass = *wave.pass;
  const float* const at = wave.sizes + std::size_t{step} * kLaneStride;
  // the nearest codes come last: the sum can begin before they are known
  Floats m;
  if (pass.refining) {
    m = look_up(pass.scales[kConstantFeature], e.set);
    for (std::uint32_t k = 0; k < wave.features; ++k) {
      const std::uint32_t i = wave.feature[k];
      m = fused(look_up(pass.scales[i], e.set), Floats::load(at + wave.code_tap[i]), m);
    }
    m = fused(look_up(pass.scales[kRangeFeature], e.set), e.range, m);
    m = fused(look_up(pass.scales[kDistanceFeature], e.set), e.distance, m);
  } else {  // one scale for all sets
    m = Floats::all(pass.scales[kConstantFeature][0]);
    for (std::uint32_t k = 0; k < wave.features; ++k) {
      const std::uint32_t i = wave.feature[k];
      m = fused(Floats::all(pass.scales[i][0]), Floats::load(at + wave.code_tap[i]), m);
    }
    m = fused(Floats::all(pass.scales[kRangeFeature][0]), e.range, m);
    m = fused(Floats::all(pass.scales[kDistanceFeature][0]), e.distance, m);
  }
  m = m * look_up(pass.factors, e.set);
  const Ints level = shift_right(bits_of(m), 21) - Ints::all((127 - 6) * 4);
  const Ints low = select(level < Ints::all(0), Ints::all(0), level);
  return select(low < Ints::all(kContextLevels), low, Ints::all(kContextLevels - 1));
}

// The value that stands in for a special one: the mean of the neighbours along a row and across, where they are.
KFN Floats stand_in(const Wave& wave, const Place& place, std::uint32_t step) {
  const float* const at = wave.values + std::size_t{step} * kLaneStride;
  if (wave.pass->refining) {
    Floats mean = Floats::all(0);
    for (std::uint32_t axis = static_cast<std::uint32_t>(wave.kind); axis-- > 0;) {
      const Ints odd = ((axis == 0 ? place.x : axis == 1 ? place.y : place.z) & Ints::all(1)) == Ints::all(1);
      const Floats both = Floats::load(at + wave.near[axis]) + Floats::load(at + wave.next[axis]);
      mean = select(odd, both * Floats::all(0.5f), mean);
    }
    return mean;
  }
  const Floats left = Floats::load(at + wave.near[0]);
  if (wave.kind == TileKind::line) return as_floats(bits_of(left) & ~(place.x == Ints::all(0)));
  const Floats above = Floats::load(at + wave.near[1]);
  const Ints first_column = place.x == Ints::all(0), first_row = place.y == Ints::all(0);
  const Floats one = select(first_column, above, left), other = select(first_row, left, above);
  Floats mean = (one + other) * Floats::all(0.5f);
  Floats none = Floats::all(0);
  if (wave.kind == TileKind::volume) none = select(place.z == Ints::all(0), none, Floats::load(at + wave.near[2]));
  return select(first_column & first_row, none, mean);
}

// Stores the lanes in `bits`, and what a causal pass copies to outside of the tile.
KFN void store_values(Wave& wave, const Place& place, std::uint32_t step, std::uint32_t bits, const Ints& active,
                      const Floats& values) {
  float* const at = wave.values + std::size_t{step} * kLaneStride;
  select(active, values, Floats::load(at)).store(at);
  if (wave.pass->refining) return;
  const Layout& l = wave.layout;
  const Ints first_plane = active & (place.z == Ints::all(0));
  const std::uint32_t first_plane_bits = wave.kind == TileKind::volume ? bits_of_condition(first_plane) : 0;
  if (first_plane_bits != 0) {
    float* const before = at - std::size_t{l.period()} * kLaneStride;
    select(first_plane, values, Floats::load(before)).store(before);
  }
  const auto is_first_plane = [&](std::uint32_t lane) { return (first_plane_bits >> lane & 1) != 0; };
  if ((bits & 1) != 0) wave.copy_rows(step, 0, is_first_plane(0), at[0]);
  if ((bits >> (l.rows - 1) & 1) != 0 && l.rows > 1)
    wave.copy_rows(step, l.rows - 1, is_first_plane(l.rows - 1), at[l.rows - 1]);
  for (std::uint32_t left = bits & bits_of_condition(place.x == Ints::all(0)); left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
    for (std::uint32_t k = 1; k <= l.lead; ++k) wave.put_rows(step - k, lane, is_first_plane(lane), at[lane]);
  }
  for (std::uint32_t right = bits & bits_of_condition(place.x == place.lengths - Ints::all(1)); right != 0;
       right &= right - 1) {
    const auto lane = static_cast<std::uint32_t>(__builtin_ctz(right));
    for (std::uint32_t k = 1; k <= l.trail; ++k) wave.put_rows(step + k, lane, is_first_plane(lane), at[lane]);
  }
}

PYF_END_TARGET
