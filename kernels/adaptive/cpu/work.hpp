// SPDX-License-Identifier: BSD-3-Clause
// One tile at a time: values to a dense array, through the passes, and back (docs/format.md, section 14).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "adaptive/cpu/tile.hpp"
#include "adaptive/plan.hpp"

PYF_BEGIN_TARGET

// Values of a tile, row behind row; a lattice has every 2^log2-th of each axis.
struct Dense {
  std::uint32_t planes = 1, rows = 1, columns = 1;
  std::uint32_t lengths[kRows] = {};
  float* values;           // normalised: originals while encoding, then what they are reconstructed to
  float* sizes;            // of codes
  std::uint8_t* kinds;     // ValueKind
  bool all_coded = false;  // no value has another kind

  KFN std::size_t index(std::uint32_t z, std::uint32_t y, std::uint32_t x) const {
    return (std::size_t{z} * rows + y) * columns + x;
  }
};
// kKept: the value is decoded from the origin, and r must be what it was there.
enum ValueKind : std::uint8_t { kCoded = 0, kSentinel = 1, kExact = 2, kKept = 3 };

struct Lattice {
  std::uint32_t shift_z, shift_y, shift_x;
  std::uint32_t planes, rows, columns;
  std::uint32_t lengths[kRows] = {};

  Lattice(const Dense& d, TileKind kind, std::uint32_t log2)
      : shift_z(kind == TileKind::volume ? log2 : 0), shift_y(kind == TileKind::line ? 0 : log2), shift_x(log2) {
    const auto part = [](std::uint32_t n, std::uint32_t shift) { return (n + (1u << shift) - 1) >> shift; };
    planes = part(d.planes, shift_z);
    rows = part(d.rows, shift_y);
    columns = part(d.columns, shift_x);
    for (std::uint32_t y = 0; y < rows; ++y) lengths[y] = part(d.lengths[y << shift_y], shift_x);
  }
  KFN std::size_t index(const Dense& d, std::uint32_t z, std::uint32_t y, std::uint32_t x) const {
    return d.index(z << shift_z, y << shift_y, x << shift_x);
  }
};

// What a pass gives for each step and lane.
struct Steps {
  float* targets;  // values, in the wavefront's layout: 32 for each step
  float *ranges, *distances;
  std::int32_t *codes, *sets;
  // bits of lanes, for each step: what is coded, of these what is special (sentinel: of all values known so far), and
  // what an encoder is to store
  std::uint32_t *coded, *sentinel, *exact, *origin, *wanted_sentinel, *wanted_exact, *kept;
};

// Memory of a thread.
struct Work {
  Wave wave;
  float *value_memory, *size_memory;
  Dense dense;
  Steps steps;
  std::uint8_t* marks;  // kinds of values of an earlier attempt

  static constexpr std::size_t kDense = 65536, kLanes = kMostSteps * kRows, kMaskMargin = 128;
  static constexpr std::size_t bytes() {
    return 4 * (2 * kMostWaveFloats + 2 * kDense + 5 * kLanes + 7 * kMostSteps + kMaskMargin) + 2 * kDense + 1024;
  }
  explicit Work(void* scratch) {
    auto* at = static_cast<std::uint8_t*>(scratch);
    const auto take = [&](auto*& p, std::size_t count) {
      p = reinterpret_cast<std::remove_reference_t<decltype(p)>>(at);
      at += (count * sizeof *p + 63) / 64 * 64;
    };
    take(value_memory, kMostWaveFloats);
    take(size_memory, kMostWaveFloats);
    take(dense.values, kDense);
    take(dense.sizes, kDense);
    take(steps.targets, kLanes);
    take(steps.ranges, kLanes);
    take(steps.distances, kLanes);
    take(steps.codes, kLanes);
    take(steps.sets, kLanes);
    take(steps.coded, kMostSteps);
    take(steps.sentinel, kMostSteps + kMaskMargin);
    std::memset(steps.sentinel, 0, 4 * kMaskMargin);
    steps.sentinel += kMaskMargin;
    take(steps.exact, kMostSteps);
    take(steps.origin, kMostSteps);
    take(steps.kept, kMostSteps);
    take(steps.wanted_sentinel, kMostSteps);
    take(steps.wanted_exact, kMostSteps);
    take(dense.kinds, kDense);
    take(marks, kDense);
  }
};

// Turns that a pass takes through its lattice.
inline std::uint32_t turns_of(const PassModel& pass, TileKind kind) {
  return pass.refining ? static_cast<std::uint32_t>(kind) : 1;
}

// Calls visit(step, place, bits, active) for each step in which lanes have a value to be coded. A refining pass takes a
// turn for each number of odd coordinates, from 1 on.
template <class Visit>
KFN void each_step(const Wave& wave, const std::uint32_t* lengths, std::uint32_t turn, Visit&& visit) {
  Place place(wave.layout, lengths);
  const std::uint32_t steps = wave.layout.steps();
  const Ints turns = Ints::all(static_cast<std::int32_t>(turn));
  for (std::uint32_t step = 0; step < steps; ++step, place.next()) {
    Ints active = place.active();
    if (wave.pass->refining) active = active & (place.odd_coordinates(wave.kind) == turns);
    const std::uint32_t bits = bits_of_condition(active);
    if (bits != 0) visit(step, place, bits, active);
  }
}

// Sets up the wave of a pass; of a refining pass what is known, within and outside of the tile.
inline void begin_pass(Work& w, TileKind kind, const PassModel& pass, const Lattice& lattice) {
  const Layout l = make_layout(kind, pass.refining, lattice.planes, lattice.rows, lattice.columns);
  w.wave.begin(kind, pass, l, w.value_memory, w.size_memory);
  if (!pass.refining) return;
  const bool deep = kind == TileKind::volume, high = kind != TileKind::line;
  const auto inside = [](std::int32_t i, std::uint32_t n) {  // the nearest even coordinate
    const std::int32_t last = static_cast<std::int32_t>(n - 1) / 2 * 2;
    return static_cast<std::uint32_t>(i < 0 ? 0 : i > last ? last : i) & ~1u;
  };
  const auto planes = static_cast<std::int32_t>(l.planes), rows = static_cast<std::int32_t>(l.rows),
             lead = static_cast<std::int32_t>(l.lead), trail = static_cast<std::int32_t>(l.trail);
  for (std::int32_t z = deep ? -3 : 0; z < (deep ? planes + 3 : 1); ++z) {
    const bool z_out = z < 0 || z >= planes;
    for (std::int32_t y = high ? -3 : 0; y < (high ? rows + 3 : rows); ++y) {
      const bool y_out = y < 0 || y >= rows;
      const std::uint32_t from_y = high ? inside(y, l.rows) : static_cast<std::uint32_t>(y);
      const auto columns = static_cast<std::int32_t>(high ? lattice.columns : lattice.lengths[y]);
      const std::uint32_t from_z = deep ? inside(z, l.planes) : 0;
      const bool row_known = (!deep || z % 2 == 0 || z_out) && (!high || y % 2 == 0 || y_out);
      float* const to = w.wave.values + l.slot(z, y, 0);
      float* const sizes = w.wave.sizes + l.slot(z, y, 0);
      for (std::int32_t x = -lead; x < columns + trail; ++x) {
        const bool out = z_out || y_out || x < 0 || x >= columns;
        if (!out && !(row_known && x % 2 == 0)) continue;
        const std::size_t from = lattice.index(w.dense, from_z, from_y, inside(x, static_cast<std::uint32_t>(columns)));
        to[std::ptrdiff_t{x} * kLaneStride] = w.dense.values[from];
        if (!out) sizes[std::ptrdiff_t{x} * kLaneStride] = w.dense.sizes[from];
      }
    }
  }
}

// Whether a refining pass knows a point of its lattice from the beginning.
inline bool is_known(TileKind kind, std::uint32_t z, std::uint32_t y, std::uint32_t x) {
  return ((x | (kind != TileKind::line ? y : 0) | (kind == TileKind::volume ? z : 0)) & 1) == 0;
}

// Values of the lattice into the wavefront's layout.
inline void spread_targets(Work& w, const Lattice& lattice) {
  const Layout& l = w.wave.layout;
  const std::size_t steps = l.steps();
  std::memset(w.steps.sentinel, 0, 4 * steps);
  std::memset(w.steps.wanted_sentinel, 0, 4 * steps);
  std::memset(w.steps.wanted_exact, 0, 4 * steps);
  std::memset(w.steps.kept, 0, 4 * steps);
  for (std::uint32_t z = 0; z < lattice.planes; ++z)
    for (std::uint32_t y = 0; y < lattice.rows; ++y) {
      const auto first =
          static_cast<std::size_t>(l.step(static_cast<std::int32_t>(z), static_cast<std::int32_t>(y), 0));
      const std::size_t from = lattice.index(w.dense, z, y, 0);
      if (w.dense.all_coded) {
        for (std::uint32_t x = 0; x < lattice.lengths[y]; ++x)
          w.steps.targets[(first + x) * kRows + y] = w.dense.values[from + (std::size_t{x} << lattice.shift_x)];
        continue;
      }
      for (std::uint32_t x = 0; x < lattice.lengths[y]; ++x) {
        const std::size_t at = from + (std::size_t{x} << lattice.shift_x);
        w.steps.targets[(first + x) * kRows + y] = w.dense.values[at];
        const std::uint8_t kind = w.dense.kinds[at];
        if (kind == kSentinel) {
          w.steps.wanted_sentinel[first + x] |= 1u << y;
          if (w.wave.pass->refining && is_known(w.wave.kind, z, y, x)) w.steps.sentinel[first + x] |= 1u << y;
        }
        if (kind == kKept) w.steps.kept[first + x] |= 1u << y;
        if (kind == kExact) w.steps.wanted_exact[first + x] |= 1u << y;
      }
    }
}

// Reconstructed values from the wavefront's layout to the dense array; sizes of codes, too, if passes come after.
inline void collect(Work& w, const Lattice& lattice) {
  const bool last = w.wave.pass->log2 == 0;
  const Layout& l = w.wave.layout;
  for (std::uint32_t z = 0; z < lattice.planes; ++z)
    for (std::uint32_t y = 0; y < lattice.rows; ++y) {
      const std::ptrdiff_t first = l.slot(static_cast<std::int32_t>(z), static_cast<std::int32_t>(y), 0);
      const std::size_t to = lattice.index(w.dense, z, y, 0);
      if (last) {
        for (std::uint32_t x = 0; x < lattice.lengths[y]; ++x)
          w.dense.values[to + x] = w.wave.values[first + std::ptrdiff_t{x} * kLaneStride];
        continue;
      }
      for (std::uint32_t x = 0; x < lattice.lengths[y]; ++x) {
        const std::size_t at = to + (std::size_t{x} << lattice.shift_x);
        w.dense.values[at] = w.wave.values[first + std::ptrdiff_t{x} * kLaneStride];
        w.dense.sizes[at] = w.wave.sizes[first + std::ptrdiff_t{x} * kLaneStride];
      }
    }
}

inline constexpr float kFarthest = 262143.0f, kLargestSize = 1048576.0f;  // codes have kCodeBits as zigzag numbers

// The values as they are, for training: what a pass would find if it made no errors.
inline void fill_with_targets(Work& w, const Lattice& lattice) {
  std::memset(w.steps.coded, 0, 4 * std::size_t{w.wave.layout.steps()});
  const auto fill = [&](std::uint32_t step, const Place& place, std::uint32_t bits, const Ints& active) {
    Floats t = Floats::load(w.steps.targets + std::size_t{step} * kRows);
    const std::uint32_t special = (w.steps.wanted_sentinel[step] | w.steps.wanted_exact[step]) & bits;
    if (special != 0) t = select(condition_of_bits(special), stand_in(w.wave, place, step), t);
    w.steps.coded[step] |= bits;
    store_values(w.wave, place, step, bits, active, t);
  };
  for (std::uint32_t turn = 1; turn <= turns_of(*w.wave.pass, w.wave.kind); ++turn)
    each_step(w.wave, lattice.lengths, turn, fill);
}

// The closed loop of an encoder: codes of all values, and what contexts are made of.
inline void encode_pass(Work& w, const Lattice& lattice, std::uint32_t turn) {
  Steps& s = w.steps;
  const Floats unit = Floats::all(kUnits[w.wave.pass->unit]), per_unit = Floats::all(1 / kUnits[w.wave.pass->unit]);
  std::memset(s.coded, 0, 4 * w.wave.layout.steps());
  each_step(w.wave, lattice.lengths, turn,
            [&](std::uint32_t step, const Place& place, std::uint32_t bits, const Ints& active) {
              const std::size_t at = std::size_t{step} * kRows;
              const Expected e = expect(w.wave, place, step);
              const Floats t = Floats::load(s.targets + at), difference = t - e.value;
              const Ints fits = absolute(difference) < Floats::all(kFarthest);
              const std::uint32_t sentinel = s.wanted_sentinel[step] & bits;
              s.sentinel[step] |= sentinel;
              const std::uint32_t kept = s.kept[step] & bits;
              const std::uint32_t exact = (s.wanted_exact[step] | ~bits_of_condition(fits)) & bits & ~sentinel & ~kept;
              Floats code = nearest(difference * per_unit), value = fused(code, unit, e.value);
              std::uint32_t origin = 0;
              if (kept != 0) {  // r is stored where no code gives it
                origin = kept & ~bits_of_condition((value == t) & fits);
                const Ints is_origin = condition_of_bits(origin);
                value = select(is_origin, t, value);
                code = as_floats(bits_of(code) & ~is_origin);
              }
              if ((sentinel | exact) != 0) {
                const Floats other = stand_in(w.wave, place, step);
                const Ints usable = absolute(t) < Floats::all(kFarthest);
                const Ints is_exact = condition_of_bits(exact), is_special = condition_of_bits(sentinel | exact);
                value = select(is_special, select(is_exact & usable, t, other), value);
                code = as_floats(bits_of(code) & ~is_special);
              }
              s.coded[step] = bits;
              s.exact[step] = exact;
              s.origin[step] = origin;
              integer_of(code).store(s.codes + at);
              e.set.store(s.sets + at);
              e.range.store(s.ranges + at);
              e.distance.store(s.distances + at);
              store_values(w.wave, place, step, bits, active, value);
              float* const sizes = w.wave.sizes + std::size_t{step} * kLaneStride;
              select(active, least(absolute(code), Floats::all(kLargestSize)), Floats::load(sizes)).store(sizes);
            });
}

PYF_END_TARGET
