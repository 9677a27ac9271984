// SPDX-License-Identifier: BSD-3-Clause
// Scratch memory and passes of one tile: values -> dense array -> wavefront and back (docs/format.md, section 14).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "adaptive/cpu/refining.hpp"
#include "adaptive/plan.hpp"
#include "adaptive/tile.hpp"

PYF_BEGIN_TARGET

using Wave = WaveOf<Cells>;

// Results of a turn, for each step and lane.
struct Steps {
  float* targets;  // values to code: 32 for each step
  float *ranges, *distances;
  std::int32_t *codes, *sets, *levels;
  // masks of lanes, for each step: coded; special among these; wanted: requested by the encoder
  std::uint32_t *coded, *sentinel, *exact, *origin, *wanted_sentinel, *wanted_exact, *kept, *absent;

  // Lanes of a step whose value is no sample.
  std::uint32_t special(std::uint32_t step) const { return wanted_sentinel[step] | wanted_exact[step] | absent[step]; }
};

// Memory of a thread.
struct Work {
  Wave wave;          // of the first pass
  Refining refining;  // of another
  const PassModel* pass = nullptr;
  std::uint32_t turns = 1;
  float *value_memory, *size_memory;
  Dense dense;
  Steps steps;
  std::uint8_t* marks;  // kinds of values in an earlier attempt
  // The tile whose values are in `dense.kinds` and in the steps of a causal pass over all values; and whether some are
  // special.
  AdaptiveTile spread_tile = kNoTile;
  bool specials = false;

  static constexpr AdaptiveTile kNoTile = {0, 0, 0};
  static constexpr std::size_t kDense = 65536, kLanes = kMostSteps * kRows, kMaskMargin = 128;
  static constexpr std::size_t bytes() {
    return 4 * (2 * kMostWaveFloats + 2 * kDense + 6 * kLanes + 8 * kMostSteps + Refining::kMostMasks + kMaskMargin) +
           2 * kDense + 1024;
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
    take(steps.levels, kLanes);
    take(steps.coded, kMostSteps);
    take(steps.sentinel, kMostSteps + kMaskMargin);
    std::memset(steps.sentinel, 0, 4 * kMaskMargin);
    steps.sentinel += kMaskMargin;
    take(refining.masks, Refining::kMostMasks);
    take(steps.exact, kMostSteps);
    take(steps.origin, kMostSteps);
    take(steps.kept, kMostSteps);
    take(steps.absent, kMostSteps);
    take(steps.wanted_sentinel, kMostSteps);
    take(steps.wanted_exact, kMostSteps);
    take(dense.kinds, kDense);
    take(marks, kDense);
  }
};

KFN std::uint32_t turns_of(const PassModel& pass, TileKind kind) { return pass.refining ? refining_turns(kind) : 1; }

// Calls visit(number, step, bits, active) for each step of a turn; `step` is a WaveStep or a RefinedStep, `bits` and
// `active` are the lanes that have a value.
template <class Visit>
KFN void each_step(Work& w, const Lattice& lattice, std::uint32_t turn, Visit&& visit) {
  if (w.pass->refining) {
    Refining& r = w.refining;
    r.begin_turn(turn);
    RefinedPlace place(r.shape, r.parity, lattice.lengths);
    const std::uint32_t steps = r.shape.steps();
    for (std::uint32_t step = 0; step < steps; ++step, place.next()) {
      const Ints active = place.active();
      const std::uint32_t bits = bits_of_condition(active);
      if (bits != 0) visit(step, RefinedStep<Refining>(r, step), bits, active);
    }
    return;
  }
  Place place(w.wave.layout, lattice.lengths);
  const std::uint32_t steps = w.wave.layout.steps();
  for (std::uint32_t step = 0; step < steps; ++step, place.next()) {
    const Ints active = place.active();
    const std::uint32_t bits = bits_of_condition(active);
    if (bits != 0) visit(step, WaveStep<Wave, std::uint32_t*>{w.wave, place, step, w.steps.sentinel}, bits, active);
  }
}
// The number of steps of a turn, with those without values.
inline std::uint32_t steps_of(const Work& w) {
  return w.pass->refining ? w.refining.shape.steps() : w.wave.layout.steps();
}

// Sets up the memory of a pass.
inline void begin_pass(Work& w, TileKind kind, const PassModel& pass, const Lattice& lattice) {
  w.pass = &pass;
  w.turns = turns_of(pass, kind);
  if (pass.refining) {
    Refining& r = w.refining;
    r.shape = Refinement(kind, lattice.planes, lattice.rows, lattice.columns);
    r.values = {w.value_memory, static_cast<CellIndex>(r.shape.group_cells)};
    r.sizes = {w.size_memory, static_cast<CellIndex>(r.shape.group_cells)};
    r.pass = &pass;
    r.list = &refining_taps(kind);
    r.all_codes = &refining_codes(kind);
    begin_refining(r, w.dense, lattice, !w.dense.all_coded);
    return;
  }
  Wave& wave = w.wave;
  wave.layout = make_layout(kind, lattice.planes, lattice.rows, lattice.columns);
  wave.kind = kind;
  wave.range_taps = range_taps(kind).count;
  wave.pass = &pass;
  wave.values = w.value_memory + wave.layout.before();
  wave.sizes = w.size_memory + wave.layout.before();
  wave.set_neighbours(pass, causal_taps(kind), causal_codes(kind), range_taps(kind));
  std::memset(w.value_memory, 0, 4 * wave.layout.floats());
  std::memset(w.size_memory, 0, 4 * wave.layout.floats());
  std::memset(w.steps.sentinel, 0, 4 * std::size_t{wave.layout.steps()});
}

// Values of a row of a turn: where the first is among the steps' lanes, in the wave or the classes, and in the dense
// array. The next ones are kRows, `cells` and `by` further.
struct Run {
  std::size_t target;
  CellIndex cell, cells;
  std::size_t at, by;
  std::uint32_t count;
};
// Calls visit(run) for all values of a turn.
template <class Visit>
KFN void each_run(const Work& w, const Lattice& lattice, std::uint32_t turn, Visit&& visit) {
  if (!w.pass->refining) {
    const Layout& l = w.wave.layout;
    const std::size_t by = std::size_t{1} << lattice.shift_x;
    for (std::uint32_t z = 0; z < lattice.planes; ++z)
      for (std::uint32_t y = 0; y < lattice.rows; ++y) {
        const std::int32_t step = l.step(static_cast<std::int32_t>(z), static_cast<std::int32_t>(y), 0);
        visit(Run{static_cast<std::size_t>(step) * kRows + y, CellIndex{step} * kLaneStride + y, kLaneStride,
                  lattice.index(w.dense, z, y, 0), by, lattice.lengths[y]});
      }
    return;
  }
  const Refinement& shape = w.refining.shape;
  const std::uint32_t parity = parity_of_turn(shape.kind, turn);
  const std::size_t by = std::size_t{2} << lattice.shift_x;
  for (std::uint32_t z = 0; z < shape.planes_of(parity); ++z)
    for (std::uint32_t y = 0; y < shape.rows_of(parity); ++y) {
      const std::uint32_t y_all = shape.is_line() ? y : 2 * y + Refinement::odd(parity, 1);
      const std::uint32_t columns = shape.is_line() ? lattice.lengths[y] / 2 : shape.columns_of(parity);
      const std::size_t from = lattice.index(w.dense, 2 * z + Refinement::odd(parity, 2), y_all, parity & 1);
      const std::uint32_t seam = shape.kind == TileKind::plane ? std::min(columns, shape.half) : columns;
      std::uint32_t x = 0;
      for (const std::uint32_t end : {seam, columns}) {
        std::uint32_t step = 0, lane = 0;
        shape.find(z, y, x, &step, &lane);
        visit(Run{std::size_t{step} * kRows + lane, shape.cell_of_step(parity, step) + shape.cell_of_lane(lane),
                  static_cast<CellIndex>(shape.stride), from + x * by, by, end - x});
        x = end;
      }
    }
}

// Tells the steps of a turn which of their values are special.
inline void spread_kinds(Work& w, const Lattice& lattice, std::uint32_t turn) {
  const std::size_t steps = steps_of(w);
  std::memset(w.steps.wanted_sentinel, 0, 4 * steps);
  std::memset(w.steps.wanted_exact, 0, 4 * steps);
  std::memset(w.steps.kept, 0, 4 * steps);
  std::memset(w.steps.absent, 0, 4 * steps);
  if (w.dense.all_coded) return;
  each_run(w, lattice, turn, [&](const Run& run) {
    const std::size_t first = run.target / kRows;
    const std::uint32_t own = 1u << run.target % kRows;
    std::uint32_t any = 0;
    for (std::uint32_t k = 0; k < run.count; ++k) any |= w.dense.kinds[run.at + k * run.by];
    if (any == kCoded) return;
    for (std::uint32_t k = 0; k < run.count; ++k) {
      const std::uint8_t kind = w.dense.kinds[run.at + k * run.by];
      if (kind == kSentinel) w.steps.wanted_sentinel[first + k] |= own;
      if (kind == kKept) w.steps.kept[first + k] |= own;
      if (kind == kExact) w.steps.wanted_exact[first + k] |= own;
      if (kind == kAbsent) w.steps.absent[first + k] |= own;
    }
  });
}
// Copies the values of a turn to its steps.
inline void spread_targets(Work& w, const Lattice& lattice, std::uint32_t turn) {
  std::memset(w.steps.targets, 0, 4 * kRows * steps_of(w));  // lanes without a value are worked, too
  each_run(w, lattice, turn, [&](const Run& run) {
    for (std::uint32_t k = 0; k < run.count; ++k)
      w.steps.targets[run.target + k * kRows] = w.dense.values[run.at + k * run.by];
  });
  spread_kinds(w, lattice, turn);
}

// Copies reconstructed values to the dense array; before further passes also sizes of codes.
inline void collect(Work& w, const Lattice& lattice) {
  const float* const values = w.pass->refining ? w.refining.values.first : w.wave.values;
  const float* const sizes = w.pass->refining ? w.refining.sizes.first : w.wave.sizes;
  const bool last = w.pass->log2 == 0;
  for (std::uint32_t turn = 1; turn <= w.turns; ++turn)
    each_run(w, lattice, turn, [&](const Run& run) {
      for (std::uint32_t k = 0; k < run.count; ++k)
        w.dense.values[run.at + k * run.by] = values[run.cell + k * run.cells];
      if (last) return;
      for (std::uint32_t k = 0; k < run.count; ++k)
        w.dense.sizes[run.at + k * run.by] = sizes[run.cell + k * run.cells];
    });
}

// Fills the cells of a turn with the original values, for training: a pass without errors would find these.
inline void fill_with_targets(Work& w, const Lattice& lattice, std::uint32_t turn) {
  std::memset(w.steps.coded, 0, 4 * std::size_t{steps_of(w)});
  each_step(w, lattice, turn, [&](std::uint32_t number, const auto& step, std::uint32_t bits, const Ints& active) {
    Floats t = Floats::load(w.steps.targets + std::size_t{number} * kRows);
    const std::uint32_t special = w.steps.special(number) & bits;
    if (special != 0) t = select(condition_of_bits(special), step.stand_in(), t);
    w.steps.coded[number] = bits;
    step.store(bits, active, t);
  });
}

// The encoder's closed loop: computes the codes of a turn and the inputs of their contexts. Calls see(number, step,
// bits) before a step's codes are stored.
template <class See>
KFN void encode_turn(Work& w, const Lattice& lattice, std::uint32_t turn, const See& see) {
  Steps& s = w.steps;
  const Floats unit = Floats::all(kUnits[w.pass->unit]), per_unit = Floats::all(1 / kUnits[w.pass->unit]);
  std::memset(s.coded, 0, 4 * std::size_t{steps_of(w)});
  each_step(w, lattice, turn, [&](std::uint32_t number, const auto& step, std::uint32_t bits, const Ints& active) {
    const std::size_t at = std::size_t{number} * kRows;
    const Expected e = step.expect();
    const std::uint32_t sentinel = s.wanted_sentinel[number] & bits;
    step.mask() = sentinel;
    const CodedStep coded = code_step(step, e, Floats::load(s.targets + at), unit, per_unit, bits, sentinel,
                                      s.wanted_exact[number], s.kept[number] & bits, s.absent[number] & bits);
    s.coded[number] = bits;
    s.exact[number] = coded.exact;
    s.origin[number] = coded.origin;
    integer_of(as_floats(bits_of(coded.code) & active)).store(s.codes + at);
    e.set.store(s.sets + at);
    e.range.store(s.ranges + at);
    e.distance.store(s.distances + at);
    if (w.pass->refining) step.level(e).store(s.levels + at);
    see(number, step, bits);
    step.store(bits, active, coded.value);
    step.store_sizes(active, least(absolute(coded.code), Floats::all(kLargestSize)));
  });
}

// Encodes a loaded tile pass by pass; calls see(pass, number, step, bits) before a step is stored, and
// visit(lattice, turn) after each turn. spread: the steps of the first pass have its values.
template <class See, class Visit>
KFN void encode_passes(Work& w, const AdaptiveModel& model, bool spread, const See& see, const Visit& visit) {
  for (std::uint32_t p = 0; p <= model.levels; ++p) {
    const PassModel& pass = model.passes[p];
    const Lattice lattice(w.dense, model.kind, pass.log2);
    begin_pass(w, model.kind, pass, lattice);
    for (std::uint32_t turn = 1; turn <= w.turns; ++turn) {
      if (!spread || p != 0) spread_targets(w, lattice, turn);
      encode_turn(w, lattice, turn,
                  [&](std::uint32_t number, const auto& step, std::uint32_t bits) { see(p, number, step, bits); });
      visit(lattice, turn);
    }
    collect(w, lattice);
  }
}

PYF_END_TARGET
