// SPDX-License-Identifier: BSD-3-Clause
// Samples of a tile on the CPU, for weights and for contexts (train/). Not part of the format.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "adaptive/cpu/work.hpp"
#include "adaptive/train/contexts.hpp"
#include "adaptive/train/sample.hpp"

PYF_BEGIN_TARGET

// Returns every n-th of the lanes in `bits`, counted on from step to step.
inline std::uint32_t take_every(std::uint32_t bits, std::uint32_t every, std::uint32_t& counter) {
  std::uint32_t taken = 0, count = static_cast<std::uint32_t>(__builtin_popcount(bits));
  while (counter + count >= every) {
    count -= every - counter;
    for (; counter + 1 < every; ++counter) bits &= bits - 1;
    taken |= bits & (0u - bits);
    bits &= bits - 1;
    counter = 0;
  }
  counter += count;
  return taken;
}

// Counts values on: every n-th is a sample, more on borders.
struct SampleCounters {
  std::uint32_t every, every_border, inside, border = 0;

  explicit SampleCounters(std::uint32_t n) : every(n), every_border(std::max(1u, n / 8)), inside(n / 2) {}
};

// Appends a sample. `at`: the value; distance: of the candidates; set: without a class. range_at(origin, value_at) is
// the range of the values beside it.
template <class Range>
inline void add_sample(const TapList& list, const CellIndex* distance, const float* at, std::uint32_t rest,
                       std::uint32_t set, bool is_border, const Range& range_at, std::vector<Sample>& samples) {
  const float origin = at[distance[rest]];
  Sample& sample = samples.emplace_back();
  for (std::uint32_t i = 0; i < kTerms; ++i) sample.terms[i] = i < list.count ? at[distance[i]] - origin : 0;
  sample.terms[list.count] = *at - origin;
  sample.range = range_at(origin, [&](CellIndex to) { return at[to]; });
  sample.weight = sample_weight(is_border, sample.range);
  sample.set = set;
}

// Samples of the first pass over a tile whose wave holds its values (fill_with_targets()).
inline void sample_wave(const Work& w, const Lattice& lattice, std::uint32_t every, std::vector<Sample>& samples) {
  const Wave& wave = w.wave;
  const TapList& list = causal_taps(wave.kind);
  CellIndex distance[kMostCandidates];
  for (std::uint32_t i = 0; i < list.count; ++i) distance[i] = wave.layout.distance(list.of[i]);
  std::int32_t sets[kRows];
  Place place(wave.layout, lattice.lengths);
  SampleCounters counters(every);
  for (std::uint32_t step = 0; step < wave.layout.steps(); ++step, place.next()) {
    const std::uint32_t bits = w.steps.coded[step] & ~w.steps.special(step);
    if (bits == 0) continue;
    const Ints borders = place.border(wave.kind);
    const std::uint32_t on_border = bits & ~bits_of_condition(borders == Ints::all(0));
    const std::uint32_t taken = take_every(bits & ~on_border, counters.every, counters.inside) |
                                take_every(on_border, counters.every_border, counters.border);
    if (taken == 0) continue;
    borders.store(sets);
    for (std::uint32_t left = taken; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
      const bool is_border = (on_border >> lane & 1) != 0;
      const std::uint32_t set = static_cast<std::uint32_t>(sets[lane]) + (is_border ? kBorderSets : 0);
      const std::uint32_t rest = rest_tap(list, false, wave.kind, set);
      if (rest == kNoTap) continue;
      const auto range = [&](float origin, const auto& at) { return range_of_wave(wave, origin, at); };
      add_sample(list, distance, wave.values + std::size_t{step} * kLaneStride + lane, rest, set, is_border, range,
                 samples);
    }
  }
}
// Samples of a refining pass.
inline void sample_refining(Work& w, const Lattice& lattice, std::uint32_t every, std::vector<Sample>& samples) {
  Refining& refining = w.refining;
  CellIndex distance[kMostCandidates];
  SampleCounters counters(every_of_pass(true, every));
  for (std::uint32_t turn = 1; turn <= w.turns; ++turn) {
    spread_kinds(w, lattice, turn);
    refining.find_candidates(parity_of_turn(refining.shape.kind, turn), distance);
    each_step(w, lattice, turn, [&](std::uint32_t number, const auto& step, std::uint32_t lanes, const Ints&) {
      const std::uint32_t bits = lanes & ~w.steps.special(number);
      const std::uint32_t taken = take_every(bits, counters.every, counters.inside);
      if (taken == 0) return;
      const std::uint32_t rest = rest_tap(*refining.list, true, refining.shape.kind, refining.parity);
      const auto range = [&](float origin, const auto& at) { return range_of_refining(refining, origin, at); };
      for (std::uint32_t left = taken; left != 0; left &= left - 1)
        add_sample(*refining.list, distance, refining.at(refining.values, step.at(), left), rest, refining.parity,
                   false, range, samples);
    });
  }
}
inline void sample_tile(Work& w, const Lattice& lattice, std::uint32_t every, std::vector<Sample>& samples) {
  if (w.pass->refining)
    sample_refining(w, lattice, every, samples);
  else
    sample_wave(w, lattice, every, samples);
}

// Takes samples for contexts while a tile is coded: every n-th value of a turn.
class ContextSampler {
 public:
  ContextSampler(const Work& w, std::uint32_t every) : w_(w), every_(every) {}

  template <class Step>
  KFN void take(std::uint32_t number, const Step& step, std::uint32_t coded, std::vector<ContextSample>& samples) {
    if (!has_distances_) begin_turn();
    const std::uint32_t bits = coded & ~(step.mask() | w_.steps.exact[number] | w_.steps.absent[number]);
    const auto count = static_cast<std::uint32_t>(__builtin_popcount(bits));
    if (counter_ + count < every_of_turn_) {
      counter_ += count;
      return;
    }
    for (std::uint32_t left = bits; left != 0; left &= left - 1) {
      if (++counter_ < every_of_turn_) continue;
      counter_ = 0;
      const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
      const std::size_t own = std::size_t{number} * kRows + lane;
      const float* const at =
          w_.pass->refining ? w_.refining.at(w_.refining.sizes, step.at(), left) : w_.wave.sizes + step.at() + lane;
      samples.emplace_back();
      ContextSample& s = samples.back();
      for (std::uint32_t i = 0; i < kCodeTaps; ++i) s.terms[i] = at[distance_[i]];
      s.terms[kRangeFeature] = w_.steps.ranges[own];
      s.terms[kDistanceFeature] = w_.steps.distances[own];
      s.terms[kConstantFeature] = 1;
      s.terms[kSizeTerm] = std::min(static_cast<float>(std::abs(w_.steps.codes[own])), kLargestSize);
      s.set = static_cast<std::uint32_t>(w_.steps.sets[own]);
    }
  }
  void end_turn() {
    counter_ = 0;
    has_distances_ = false;
  }

 private:
  void begin_turn() {
    has_distances_ = true;
    every_of_turn_ = every_of_pass(w_.pass->refining, every_);
    for (std::uint32_t i = 0; i < kCodeTaps; ++i)
      distance_[i] = w_.pass->refining ? w_.refining.shape.distance(w_.refining.parity, w_.refining.codes[i])
                                       : w_.wave.layout.distance(causal_codes(w_.wave.kind)[i]);
  }

  const Work& w_;
  std::uint32_t every_, every_of_turn_ = 1, counter_ = 0;
  bool has_distances_ = false;
  CellIndex distance_[kCodeTaps] = {};
};

PYF_END_TARGET
