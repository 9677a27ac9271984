// SPDX-License-Identifier: BSD-3-Clause
// Scratch memory and passes of one tile: values -> dense array -> wavefront and back (docs/format.md, section 14).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "adaptive/known.hpp"
#include "adaptive/plan.hpp"
#include "adaptive/tile.hpp"

PYF_BEGIN_TARGET

using Wave = WaveOf<Cells>;

// Results of a pass, for each step and lane.
struct Steps {
  float* targets;  // values to code, in the wavefront's layout: 32 for each step
  float *ranges, *distances;
  std::int32_t *codes, *sets;
  // masks of lanes, for each step: coded; special among these (sentinel: among all values known so far); wanted:
  // requested by the encoder
  std::uint32_t *coded, *sentinel, *exact, *origin, *wanted_sentinel, *wanted_exact, *kept;
};

// Memory of a thread.
struct Work {
  Wave wave;
  float *value_memory, *size_memory;
  Dense dense;
  Steps steps;
  std::uint8_t* marks;  // kinds of values in an earlier attempt

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

inline std::uint32_t turns_of(const PassModel& pass, TileKind kind) { return turns_of(pass.refining, kind); }

// Calls visit(step, coordinates, bits, active) for each step with values to code.
template <class Visit>
KFN void each_step(const Wave& wave, const std::uint32_t* lengths, std::uint32_t turn, Visit&& visit) {
  Place place(wave.layout, lengths);
  const std::uint32_t steps = wave.layout.steps();
  for (std::uint32_t step = 0; step < steps; ++step, place.next()) {
    const Ints active = place.coded(wave, turn);
    const std::uint32_t bits = bits_of_condition(active);
    if (bits != 0) visit(step, place, bits, active);
  }
}

// Sets up the wave of a pass. Before a refining pass also writes its known values, inside and outside the tile.
inline void begin_pass(Work& w, TileKind kind, const PassModel& pass, const Lattice& lattice) {
  Wave& wave = w.wave;
  wave.layout = make_layout(kind, pass.refining, lattice.planes, lattice.rows, lattice.columns);
  wave.kind = kind;
  wave.range_taps = range_taps(kind).count;
  wave.pass = &pass;
  wave.values = w.value_memory + wave.layout.before();
  wave.sizes = w.size_memory + wave.layout.before();
  wave.set_neighbours(pass, pass.refining ? refining_taps(kind) : causal_taps(kind), code_taps(kind, pass.refining),
                      range_taps(kind));
  std::memset(w.value_memory, 0, 4 * wave.layout.floats());
  std::memset(w.size_memory, 0, 4 * wave.layout.floats());
  if (!pass.refining) return;
  for (std::uint32_t row = 0; row < known_rows(wave); ++row) fill_known_row(wave, w.dense, lattice, row);
}

// Whether a point of a lattice is known before a refining pass begins.
inline bool is_known(TileKind kind, std::uint32_t z, std::uint32_t y, std::uint32_t x) {
  return ((x | (kind != TileKind::line ? y : 0) | (kind == TileKind::volume ? z : 0)) & 1) == 0;
}

// Copies the values of a lattice to the wavefront's layout.
inline void spread_targets(Work& w, const Lattice& lattice) {
  const Layout& l = w.wave.layout;
  const std::size_t steps = l.steps();
  std::memset(w.steps.sentinel, 0, 4 * steps);
  std::memset(w.steps.targets, 0, 4 * kRows * steps);  // lanes without a value are worked, too
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

// Copies reconstructed values from the wavefront to the dense array; before further passes also sizes of codes.
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

// Fills the wave with the original values, for training: a pass without errors would find these.
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

// The encoder's closed loop: computes the codes of a turn and the inputs of their contexts.
inline void encode_pass(Work& w, const Lattice& lattice, std::uint32_t turn) {
  Steps& s = w.steps;
  const Floats unit = Floats::all(kUnits[w.wave.pass->unit]), per_unit = Floats::all(1 / kUnits[w.wave.pass->unit]);
  std::memset(s.coded, 0, 4 * w.wave.layout.steps());
  each_step(w.wave, lattice.lengths, turn,
            [&](std::uint32_t step, const Place& place, std::uint32_t bits, const Ints& active) {
              const std::size_t at = std::size_t{step} * kRows;
              const Expected e = expect(w.wave, place, step);
              const std::uint32_t sentinel = s.wanted_sentinel[step] & bits;
              s.sentinel[step] |= sentinel;
              const CodedStep coded = code_step(w.wave, place, step, e, Floats::load(s.targets + at), unit, per_unit,
                                                bits, sentinel, s.wanted_exact[step], s.kept[step] & bits);
              s.coded[step] = bits;
              s.exact[step] = coded.exact;
              s.origin[step] = coded.origin;
              integer_of(coded.code).store(s.codes + at);
              e.set.store(s.sets + at);
              e.range.store(s.ranges + at);
              e.distance.store(s.distances + at);
              store_values(w.wave, place, step, bits, active, coded.value);
              float* const sizes = w.wave.sizes + std::size_t{step} * kLaneStride;
              select(active, least(absolute(coded.code), Floats::all(kLargestSize)), Floats::load(sizes)).store(sizes);
            });
}

// Encodes a loaded tile pass by pass; calls visit(pass, lattice) after each turn.
template <class Visit>
inline void encode_passes(Work& w, const AdaptiveModel& model, Visit&& visit) {
  for (std::uint32_t p = 0; p <= model.levels; ++p) {
    const PassModel& pass = model.passes[p];
    const Lattice lattice(w.dense, model.kind, pass.log2);
    begin_pass(w, model.kind, pass, lattice);
    spread_targets(w, lattice);
    for (std::uint32_t turn = 1; turn <= turns_of(pass, model.kind); ++turn) {
      encode_pass(w, lattice, turn);
      visit(p, lattice);
    }
    collect(w, lattice);
  }
}

PYF_END_TARGET
