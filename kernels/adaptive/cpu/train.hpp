// SPDX-License-Identifier: BSD-3-Clause
// Weights of predictions and of contexts, from samples of a chunk: least squares (FORMAT.md). Sums run in one order, so
// that threads, levels and devices agree. Not part of the format.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "adaptive/cpu/work.hpp"

PYF_BEGIN_TARGET

inline constexpr std::uint32_t kTerms = kMostCandidates + 1;  // candidates, then the value

// What training needs of a value: its candidates and itself, all relative to the nearest one.
struct Sample {
  float terms[kTerms];
  float weight;
  std::uint32_t set;  // without the class of activity
  float range;
};

// log2 of x > 0 to about 1e-4, without a library: the exponent and a polynomial.
KFN double rough_log2(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const double exponent = static_cast<double>(static_cast<std::int64_t>(bits >> 52 & 0x7FF) - 1023);
  const double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull), y = (m - 1) / (m + 1),
               y2 = y * y;
  return exponent + 2.885390081777927 * y * (1 + y2 * (1.0 / 3 + y2 * (1.0 / 5 + y2 * (1.0 / 7 + y2 * (1.0 / 9)))));
}

// Normal equations of the samples of a set; the last row and column are the value's.
struct Equations {
  double of[kTerms][kTerms];
  double weight;
  std::size_t count;

  void clear() { std::memset(this, 0, sizeof *this); }
  void add(const Sample& sample, float sample_weight) {
    const double g = sample_weight;
    weight += g;
    ++count;
    double t[kTerms];
    for (std::uint32_t i = 0; i < kTerms; ++i) t[i] = sample.terms[i];
    for (std::uint32_t i = 0; i < kTerms; ++i) {
      const double a = g * t[i];
      for (std::uint32_t k = i / 8 * 8; k < kTerms; ++k) of[i][k] += a * t[k];  // by vectors: the rest is symmetric
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

// Solves with all candidates, then gives up the one that matters least, again and again, until `most` are left and the
// next would save less bits than it costs. Reconstructed values differ from those of the samples by noise of variance
// 1/12 each.
struct Selection {
  std::uint32_t count = 0;
  std::uint8_t tap[kMostCandidates];
  double weight[kMostCandidates];
};

// The sweep operator: takes a candidate into the solution, or out of it.
inline void sweep(double (&a)[kTerms][kTerms], std::uint32_t taken, bool out) {
  const double pivot = 1 / a[taken][taken], sign = out ? -1 : 1;
  double row[kTerms];
  for (std::uint32_t k = 0; k < kTerms; ++k) row[k] = a[taken][k];
  for (std::uint32_t i = 0; i < kTerms; ++i) {
    if (i == taken) continue;
    const double f = a[i][taken] * pivot;
    for (std::uint32_t k = 0; k < kTerms; ++k) a[i][k] -= f * row[k];
    a[i][taken] = sign * f;
  }
  for (std::uint32_t k = 0; k < kTerms; ++k) a[taken][k] = sign * row[k] * pivot;
  a[taken][taken] = -pivot;
}

inline Selection select_taps(const Equations& e, const bool* allowed, std::uint32_t candidates, std::uint32_t most,
                             double values, double bits_of_tap) {
  Selection chosen;
  double a[kTerms][kTerms];
  std::memcpy(a, e.of, sizeof a);
  constexpr std::uint32_t kValue = kTerms - 1;
  const double noise = e.weight / 12;
  for (std::uint32_t i = 0; i < candidates; ++i) {  // weights w and 1 - sum of w on noise of equal variance
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

// Samples of a tile, whose wave holds its values (fill_with_targets()): every n-th inside, more of borders.
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

// Equations of all sets of a pass, with several classes of activity: those of fewer are their sums.
struct SetEquations {
  std::uint32_t classes = 1;
  float thresholds[kMostClasses - 1];
  std::size_t samples = 0;
  Equations sets[kSets];

  void collect(const PassModel& pass, const std::vector<Sample>& from, std::uint32_t most_classes, bool weighted) {
    classes = most_classes;
    samples = from.size();
    for (Equations& e : sets) e.clear();
    std::vector<float> ranges;
    for (const Sample& s : from)
      if (pass.refining || s.set == 0) ranges.push_back(s.range);
    std::sort(ranges.begin(), ranges.end());
    for (std::uint32_t i = 0; i + 1 < classes; ++i) {
      const float exact = ranges.empty() ? 0 : ranges[ranges.size() * (i + 1) / classes];
      thresholds[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(exact) & 0xFFFF0000u);
    }
    for (const Sample& s : from) {
      std::uint32_t set = s.set, active = 0;
      for (std::uint32_t i = 0; i + 1 < classes; ++i) active += s.range >= thresholds[i] ? 1 : 0;
      if (pass.refining)
        set += 8 * active;
      else if (set < kBorderSets)
        set = active;
      sets[set].add(s, weighted ? s.weight : 1.0f / 16);
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

// Taps and weights of a pass. `values`: of the chunk, that the pass codes.
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

// Features of contexts of a coded value, and its size.
struct ContextSample {
  float features[kFeatures];
  float size;
  std::uint32_t set;
};

inline void sample_contexts(const Work& w, std::uint32_t every, std::vector<ContextSample>& samples) {
  std::uint32_t counter = 0;
  for (std::uint32_t step = 0; step < w.wave.layout.steps(); ++step) {
    const std::uint32_t bits = w.steps.coded[step] & ~(w.steps.sentinel[step] | w.steps.exact[step]);
    for (std::uint32_t left = bits; left != 0; left &= left - 1) {
      if (++counter < every) continue;
      counter = 0;
      const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
      const float* const at = w.wave.sizes + std::size_t{step} * kLaneStride + lane;
      samples.emplace_back();
      ContextSample& s = samples.back();
      for (std::uint32_t i = 0; i < kCodeTaps; ++i) s.features[i] = at[w.wave.code_tap[i]];
      s.features[kRangeFeature] = w.steps.ranges[step * kRows + lane];
      s.features[kDistanceFeature] = w.steps.distances[step * kRows + lane];
      s.features[kConstantFeature] = 1;
      s.size = *at;
      s.set = static_cast<std::uint32_t>(w.steps.sets[step * kRows + lane]);
    }
  }
}

// Weights w >= 0 of features that come near the sizes, relative to what they came to before.
inline void solve_contexts(const std::vector<ContextSample>& samples, const PassModel& pass, TileKind kind,
                           std::uint32_t parity, std::uint32_t most_codes, double* w) {
  const Tap* const codes = code_taps(kind, pass.refining);
  bool allowed[kFeatures];
  for (std::uint32_t f = 0; f < kFeatures; ++f)
    allowed[f] = f >= kCodeTaps || (f < most_codes && (!pass.refining || tap_allowed(pass, kind, parity, codes[f])));
  for (std::uint32_t f = 0; f < kFeatures; ++f)
    w[f] = !allowed[f] ? 0 : f < kCodeTaps ? 1.0 / kCodeTaps : f == kConstantFeature ? 0.02 : 0;
  for (int round = 0; round < 2; ++round) {
    double a[kFeatures][kFeatures] = {}, b[kFeatures] = {};
    for (const ContextSample& s : samples) {
      if (pass.refining ? s.set % 8 != parity : s.set >= kBorderSets) continue;
      double m = 0.02;
      for (std::uint32_t f = 0; f < kFeatures; ++f) m += w[f] * s.features[f];
      const double g = 1 / (m * m);
      for (std::uint32_t i = 0; i < kFeatures; ++i) {
        const double x = g * s.features[i];
        for (std::uint32_t k = 0; k < kFeatures; ++k) a[i][k] += x * s.features[k];
        b[i] += x * s.size;
      }
    }
    for (int sweep = 0; sweep < 60; ++sweep)
      for (std::uint32_t i = 0; i < kFeatures; ++i) {
        if (!allowed[i] || !(a[i][i] > 0)) continue;
        double rest = b[i];
        for (std::uint32_t k = 0; k < kFeatures; ++k) rest -= a[i][k] * w[k];
        const double moved = w[i] + rest / a[i][i];
        w[i] = moved > 0 ? moved : 0;
      }
  }
}

inline std::uint8_t nearest_scale(double w, std::uint32_t one) {
  std::uint32_t best = 0;
  for (std::uint32_t k = 1; k <= kScaleSteps; ++k) {
    const double here = scale_of(k, one), before = scale_of(k - 1, one);
    if (w >= (here + before) / 2) best = k;
  }
  return static_cast<std::uint8_t>(best);
}

inline void train_contexts(PassModel& pass, TileKind kind, const std::vector<ContextSample>& samples,
                           std::uint32_t most_codes) {
  const std::uint32_t parities = pass.refining ? 1u << static_cast<std::uint32_t>(kind) : 1;
  for (std::uint32_t p = pass.refining ? 1 : 0; p < parities; ++p) {
    double w[kFeatures];
    solve_contexts(samples, pass, kind, p, most_codes, w);
    for (std::uint32_t f = 0; f < kFeatures; ++f) pass.scale[f][p] = nearest_scale(w[f], kScaleOne);
    if (pass.scale[kConstantFeature][p] == 0) pass.scale[kConstantFeature][p] = 28;  // 2^-6
  }
  double sizes[kSets] = {}, expected[kSets] = {};
  for (const ContextSample& s : samples) {
    double m = 0;
    for (std::uint32_t f = 0; f < kFeatures; ++f)
      m += double{scale_of(pass.scale[f][pass.refining ? s.set % 8 : 0], kScaleOne)} * s.features[f];
    sizes[s.set] += s.size;
    expected[s.set] += m;
  }
  for (std::uint32_t set = 0; set < kSets; ++set)
    pass.factor[set] = static_cast<std::uint8_t>(
        sizes[set] > 0 && expected[set] > 0
            ? std::max<std::uint32_t>(1, nearest_scale(sizes[set] / expected[set], kFactorOne))
            : kFactorOne);
}

PYF_END_TARGET
