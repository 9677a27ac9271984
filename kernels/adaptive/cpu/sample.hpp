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

// Samples a tile whose wave holds its values (fill_with_targets()): every n-th value inside, more on borders.
inline void sample_tile(const Work& w, const std::uint32_t* lengths, std::uint32_t every,
                        std::vector<Sample>& samples) {
  const Wave& wave = w.wave;
  const PassModel& pass = *wave.pass;
  const TapList& list = pass.refining ? refining_taps(wave.kind) : causal_taps(wave.kind);
  CellIndex distance[kMostCandidates];
  for (std::uint32_t i = 0; i < list.count; ++i) distance[i] = wave.layout.distance(list.of[i]);
  std::int32_t sets[kRows];
  Place place(wave.layout, lengths);
  std::uint32_t inside = every / 2, border = 0;
  const std::uint32_t every_border = std::max(1u, every / 8);
  for (std::uint32_t step = 0; step < wave.layout.steps(); ++step, place.next()) {
    const std::uint32_t bits = w.steps.coded[step] & ~(w.steps.wanted_sentinel[step] | w.steps.wanted_exact[step]);
    if (bits == 0) continue;
    const Ints own_sets = pass.refining ? place.parity(wave.kind) : place.border(wave.kind);
    const std::uint32_t on_border = pass.refining ? 0 : bits & ~bits_of_condition(own_sets == Ints::all(0));
    const std::uint32_t taken =
        take_every(bits & ~on_border, every, inside) | take_every(on_border, every_border, border);
    if (taken == 0) continue;
    own_sets.store(sets);
    for (std::uint32_t left = taken; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
      const bool is_border = (on_border >> lane & 1) != 0;
      const std::uint32_t set = static_cast<std::uint32_t>(sets[lane]) + (is_border ? kBorderSets : 0);
      const float* const at = wave.values + std::size_t{step} * kLaneStride + lane;
      const std::uint32_t rest = rest_tap(list, pass.refining, wave.kind, set);
      if (rest == kNoTap) continue;
      const auto value_at = [&](CellIndex to) { return at[to]; };
      const float origin = value_at(distance[rest]);
      Sample& sample = samples.emplace_back();
      for (std::uint32_t i = 0; i < kTerms; ++i) sample.terms[i] = i < list.count ? at[distance[i]] - origin : 0;
      sample.terms[list.count] = *at - origin;
      sample.range = sample_range(wave, pass.refining, set, origin, value_at);
      sample.weight = sample_weight(is_border, sample.range);
      sample.set = set;
    }
  }
}

inline void sample_contexts(const Work& w, std::uint32_t every, std::vector<ContextSample>& samples) {
  std::uint32_t counter = 0;
  for (std::uint32_t step = 0; step < w.wave.layout.steps(); ++step) {
    const std::uint32_t bits = w.steps.coded[step] & ~(w.steps.sentinel[step] | w.steps.exact[step]);
    const auto count = static_cast<std::uint32_t>(__builtin_popcount(bits));
    if (counter + count < every) {
      counter += count;
      continue;
    }
    for (std::uint32_t left = bits; left != 0; left &= left - 1) {
      if (++counter < every) continue;
      counter = 0;
      const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
      const float* const at = w.wave.sizes + std::size_t{step} * kLaneStride + lane;
      samples.emplace_back();
      ContextSample& s = samples.back();
      for (std::uint32_t i = 0; i < kCodeTaps; ++i) s.terms[i] = at[w.wave.code_tap[i]];
      s.terms[kRangeFeature] = w.steps.ranges[step * kRows + lane];
      s.terms[kDistanceFeature] = w.steps.distances[step * kRows + lane];
      s.terms[kConstantFeature] = 1;
      s.terms[kSizeTerm] = *at;
      s.set = static_cast<std::uint32_t>(w.steps.sets[step * kRows + lane]);
    }
  }
}

PYF_END_TARGET
