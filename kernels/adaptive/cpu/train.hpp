// SPDX-License-Identifier: BSD-3-Clause
// Trains weights of predictions from samples of a chunk, by least squares (FORMAT.md). Sums have a fixed order, so that
// results do not depend on threads and CPU levels. Not part of the format.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "adaptive/cpu/work.hpp"
#include "stages/entropy/level_tables.hpp"

PYF_BEGIN_TARGET

inline constexpr std::uint32_t kTerms = kMostCandidates + 1;     // candidates, then the value
inline constexpr std::uint32_t kColumns = (kTerms + 7) / 8 * 8;  // length of a row of equations, a multiple of 8
inline constexpr std::size_t kAtOnce = 4;                        // samples added to the equations at once

// A sample of a value: its candidates and itself, all relative to the nearest candidate.
struct Sample {
  float terms[kTerms];
  float weight;
  std::uint32_t set;  // without the class of activity
  float range;
};

// Normal equations of a set's samples. The last row and column belong to the value.
struct Equations {
  double of[kTerms][kColumns];
  double weight;
  std::size_t count;

  void clear() { std::memset(this, 0, sizeof *this); }
  // Adds kAtOnce samples with `candidates` candidates; missing samples are nullptr.
  void add(const Sample* const* samples, std::uint32_t candidates, bool weighted) {
    double t[kAtOnce][kColumns] = {}, g[kAtOnce] = {};
    for (std::size_t n = 0; n < kAtOnce && samples[n] != nullptr; ++n) {
      g[n] = weighted ? samples[n]->weight : 1.0f / 16;
      for (std::uint32_t i = 0; i < kTerms; ++i) t[n][i] = samples[n]->terms[i];
      weight += g[n];
      ++count;
    }
    for (std::uint32_t i = 0; i < kTerms; i = i + 1 == candidates ? kTerms - 1 : i + 1) {
      const double x0 = g[0] * t[0][i], x1 = g[1] * t[1][i], x2 = g[2] * t[2][i], x3 = g[3] * t[3][i];
      for (std::uint32_t first = i / 8 * 8; first < kColumns; first += 8)  // whole vectors; rest by symmetry
        for (std::uint32_t k = first; k < first + 8; ++k)
          of[i][k] += (x0 * t[0][k] + x1 * t[1][k]) + (x2 * t[2][k] + x3 * t[3][k]);
    }
  }
  void complete() {
    for (std::uint32_t i = 0; i < kTerms; ++i)
      for (std::uint32_t k = 0; k < i / 8 * 8; ++k) of[i][k] = of[k][i];
  }
  void add(const Equations& other) {
    for (std::uint32_t i = 0; i < kTerms; ++i)
      for (std::uint32_t k = 0; k < kTerms; ++k) of[i][k] += other.of[i][k];
    weight += other.weight;
    count += other.count;
  }
};

// Solves with all candidates, then repeatedly drops the least useful one. It stops when at most `most` are left and the
// next drop would cost more bits than it saves. Reconstructed values differ from the samples' by noise of variance
// 1/12.
struct Selection {
  std::uint32_t count = 0;
  std::uint8_t tap[kMostCandidates];
  double weight[kMostCandidates];
};

// The sweep operator: adds a candidate to the solution, or removes it.
inline void sweep(double (&a)[kTerms][kColumns], std::uint32_t taken, bool out) {
  const double pivot = 1 / a[taken][taken], sign = out ? -1 : 1;
  double row[kColumns];
  for (std::uint32_t k = 0; k < kColumns; ++k) row[k] = a[taken][k];
  for (std::uint32_t i = 0; i < kTerms; ++i) {
    if (i == taken) continue;
    const double f = a[i][taken] * pivot;
    for (std::uint32_t k = 0; k < kColumns; ++k) a[i][k] -= f * row[k];
    a[i][taken] = sign * f;
  }
  for (std::uint32_t k = 0; k < kColumns; ++k) a[taken][k] = sign * row[k] * pivot;
  a[taken][taken] = -pivot;
}

inline Selection select_taps(const Equations& e, const bool* allowed, std::uint32_t candidates, std::uint32_t most,
                             double values, double bits_of_tap) {
  Selection chosen;
  double a[kTerms][kColumns];
  std::memcpy(a, e.of, sizeof a);
  constexpr std::uint32_t kValue = kTerms - 1;
  const double noise = e.weight / 12;
  for (std::uint32_t i = 0; i < candidates; ++i) {  // weights w and 1 - sum of w act on noise of equal variance
    for (std::uint32_t k = 0; k < candidates; ++k) a[i][k] += noise;
    a[i][i] += noise;
    a[i][kValue] += noise;
    a[kValue][i] += noise;
  }
  a[kValue][kValue] += noise;
  bool taken[kTerms] = {};
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < candidates; ++i) {
    if (!allowed[i] || !(a[i][i] > 1e-9 * (e.of[i][i] + 2 * noise))) continue;
    sweep(a, i, false);
    taken[i] = true;
    ++count;
  }
  while (count > 0) {
    std::uint32_t least = kTerms;
    double loss = 0;
    for (std::uint32_t i = 0; i < candidates; ++i) {
      if (!taken[i]) continue;
      const double own = a[i][kValue] * a[i][kValue] / -a[i][i];
      if (least == kTerms || own < loss) {
        loss = own;
        least = i;
      }
    }
    const double before = a[kValue][kValue];
    if (count <= most && before > 0 && values * 0.5 * rough_log2((before + loss) / before) >= bits_of_tap) break;
    sweep(a, least, true);
    taken[least] = false;
    --count;
  }
  for (std::uint32_t i = 0; i < candidates; ++i) {
    if (!taken[i]) continue;
    chosen.tap[chosen.count] = static_cast<std::uint8_t>(i);
    chosen.weight[chosen.count++] = a[i][kValue];
  }
  return chosen;
}

// Samples a tile whose wave holds its values (fill_with_targets()): every n-th value inside, more on borders.
inline void sample_tile(const Work& w, const std::uint32_t* lengths, std::uint32_t every,
                        std::vector<Sample>& samples) {
  const Wave& wave = w.wave;
  const PassModel& pass = *wave.pass;
  const TapList& list = pass.refining ? refining_taps(wave.kind) : causal_taps(wave.kind);
  std::ptrdiff_t distance[kMostCandidates];
  for (std::uint32_t i = 0; i < list.count; ++i) distance[i] = wave.layout.distance(list.of[i]);
  std::int32_t sets[kRows];
  Place place(wave.layout, lengths);
  std::uint32_t inside = every / 2, border = 0;
  const std::uint32_t every_border = std::max(1u, every / 8);
  for (std::uint32_t step = 0; step < wave.layout.steps(); ++step, place.next()) {
    const std::uint32_t bits = w.steps.coded[step] & ~(w.steps.wanted_sentinel[step] | w.steps.wanted_exact[step]);
    if (bits == 0) continue;
    (pass.refining ? place.parity(wave.kind) : place.border(wave.kind)).store(sets);
    for (std::uint32_t left = bits; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
      std::uint32_t set = static_cast<std::uint32_t>(sets[lane]);
      const bool is_border = !pass.refining && set != 0;
      std::uint32_t& counter = is_border ? border : inside;
      if (++counter < (is_border ? every_border : every)) continue;
      counter = 0;
      if (is_border) set += kBorderSets;
      const float* const at = wave.values + std::size_t{step} * kLaneStride + lane;
      const std::uint32_t rest = rest_tap(pass, wave.kind, set);
      if (rest == kNoTap) continue;
      const float origin = at[distance[rest]];
      samples.emplace_back();
      Sample& sample = samples.back();
      for (std::uint32_t i = 0; i < kTerms; ++i) sample.terms[i] = i < list.count ? at[distance[i]] - origin : 0;
      sample.terms[kTerms - 1] = *at - origin;
      float low = origin, high = origin;
      if (pass.refining) {
        for (std::uint32_t axis = 0; axis < static_cast<std::uint32_t>(wave.kind); ++axis)
          for (const float v : {at[wave.near[axis]], at[wave.next[axis]]})
            if ((set >> axis & 1) != 0) {
              low = std::min(low, v);
              high = std::max(high, v);
            }
      } else {
        for (std::uint32_t i = 0; i < wave.range_taps; ++i) {
          low = std::min(low, at[wave.range_tap[i]]);
          high = std::max(high, at[wave.range_tap[i]]);
        }
      }
      sample.range = high - low;
      sample.weight = is_border ? 1.0f / 16 : 1 / (sample.range * sample.range + 16);
      sample.set = set;
    }
  }
}

inline std::int32_t rounded_weight(double w) {
  const double scaled = w * kWeightOne;
  if (!(scaled < kMostWeight)) return kMostWeight;
  if (!(scaled > -kMostWeight)) return -kMostWeight;
  return static_cast<std::int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

// Equations of all sets of a pass, with the most classes of activity; equations of fewer classes are sums of these.
struct SetEquations {
  std::uint32_t classes = 1;
  float thresholds[kMostClasses - 1];
  std::size_t samples = 0;
  Equations sets[kSets];

  void collect(const PassModel& pass, TileKind kind, const std::vector<Sample>& from, std::uint32_t most_classes,
               bool weighted) {
    const std::uint32_t candidates = (pass.refining ? refining_taps(kind) : causal_taps(kind)).count;
    classes = most_classes;
    samples = from.size();
    for (Equations& e : sets) e.clear();
    std::vector<float> ranges;
    for (const Sample& s : from)
      if (pass.refining || s.set == 0) ranges.push_back(s.range);
    for (std::uint32_t i = 0; i + 1 < classes; ++i) {
      float exact = 0;
      if (!ranges.empty()) {
        const auto at = ranges.begin() + static_cast<std::ptrdiff_t>(ranges.size() * (i + 1) / classes);
        std::nth_element(ranges.begin(), at, ranges.end());
        exact = *at;
      }
      thresholds[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(exact) & 0xFFFF0000u);
    }
    const Sample* waiting[kSets][kAtOnce] = {};
    std::uint32_t waits[kSets] = {};
    for (const Sample& s : from) {
      std::uint32_t set = s.set, active = 0;
      for (std::uint32_t i = 0; i + 1 < classes; ++i) active += s.range >= thresholds[i] ? 1 : 0;
      if (pass.refining)
        set += 8 * active;
      else if (set < kBorderSets)
        set = active;
      waiting[set][waits[set]++] = &s;
      if (waits[set] < kAtOnce) continue;
      sets[set].add(waiting[set], candidates, weighted);
      waits[set] = 0;
    }
    for (std::uint32_t set = 0; set < kSets; ++set) {
      std::fill(waiting[set] + waits[set], waiting[set] + kAtOnce, nullptr);
      if (waits[set] != 0) sets[set].add(waiting[set], candidates, weighted);
    }
    for (Equations& e : sets) e.complete();
  }
  void join_classes(const PassModel& pass) {
    const std::uint32_t apart = pass.refining ? 8 : 1, first = pass.refining ? 8 : 1;
    for (std::uint32_t set = 0; set < first; ++set)
      for (std::uint32_t c = 1; c < classes; ++c) sets[set].add(sets[set + c * apart]);
    classes = 1;
  }
};

// Chooses taps and weights of a pass. `values`: number of the chunk's values that the pass codes.
inline void train_weights(PassModel& pass, TileKind kind, const SetEquations& equations, double values,
                          std::uint32_t most) {
  const TapList& list = pass.refining ? refining_taps(kind) : causal_taps(kind);
  const Equations(&sets)[kSets] = equations.sets;
  for (std::uint32_t i = 0; i + 1 < pass.classes; ++i) pass.thresholds[i] = equations.thresholds[i];
  const double per_sample = equations.samples == 0 ? 0 : values / static_cast<double>(equations.samples);
  bool used[kMostCandidates] = {}, allowed[kMostCandidates] = {};
  for (std::uint32_t axis = 0; axis < 3; ++axis)
    if (list.near[axis] != kNoTap) used[list.near[axis]] = true;
  if (pass.refining) {
    for (std::uint32_t set = 0; set < kSets; ++set) {
      if (!set_exists(pass, kind, set)) continue;
      for (std::uint32_t i = 0; i < list.count; ++i)
        allowed[i] = i != rest_tap(pass, kind, set) && tap_allowed(pass, kind, set, list.of[i]);
      const Selection s =
          select_taps(sets[set], allowed, list.count, most, per_sample * static_cast<double>(sets[set].count), 16);
      for (std::uint32_t i = 0; i < s.count; ++i) used[s.tap[i]] = true;
    }
  } else {
    Equations pooled = sets[0];
    for (std::uint32_t set = 1; set < pass.classes; ++set) pooled.add(sets[set]);
    for (std::uint32_t i = 0; i < list.count; ++i) allowed[i] = i != list.near[0];
    const Selection s =
        select_taps(pooled, allowed, list.count,
                    most > static_cast<std::uint32_t>(kind) ? most - static_cast<std::uint32_t>(kind) : 0, values,
                    16.0 * pass.classes);
    for (std::uint32_t i = 0; i < s.count; ++i) used[s.tap[i]] = true;
  }
  pass.taps = 0;
  for (std::uint32_t i = 0; i < list.count; ++i)
    if (used[i]) pass.tap[pass.taps++] = static_cast<std::uint8_t>(i);
  std::memset(pass.weight, 0, sizeof pass.weight);
  for (std::uint32_t set = 0; set < kSets; ++set) {
    if (!set_exists(pass, kind, set)) continue;
    const std::uint32_t rest = rest_tap(pass, kind, set);
    for (std::uint32_t i = 0; i < list.count; ++i)
      allowed[i] = used[i] && i != rest && tap_allowed(pass, kind, set, list.of[i]);
    const Selection s = select_taps(
        sets[set], allowed, list.count, most,
        per_sample * static_cast<double>(sets[set].count) * (set >= kBorderSets && !pass.refining ? 0.125 : 1), 15);
    std::int32_t sum = 0;
    for (std::uint32_t i = 0; i < pass.taps; ++i)
      for (std::uint32_t k = 0; k < s.count; ++k)
        if (s.tap[k] == pass.tap[i]) sum += pass.weight[i][set] = rounded_weight(s.weight[k]);
    for (std::uint32_t i = 0; i < pass.taps; ++i)
      if (pass.tap[i] == rest) pass.weight[i][set] = kWeightOne - sum;
  }
}

PYF_END_TARGET
