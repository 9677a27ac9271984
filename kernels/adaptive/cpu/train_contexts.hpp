// SPDX-License-Identifier: BSD-3-Clause
// Trains weights of contexts, which foretell the size of a code, from samples of coded values (FORMAT.md). Not part of
// the format.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "adaptive/cpu/train.hpp"
#include "adaptive/cpu/work.hpp"

PYF_BEGIN_TARGET

// A sample: the features of a value's context, then the size of its code; padded to vectors of 8.
inline constexpr std::uint32_t kSizeTerm = kFeatures, kContextTerms = (kFeatures + 8) / 8 * 8;
struct ContextSample {
  float terms[kContextTerms];
  std::uint32_t set;
};

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

// Finds weights w >= 0 with which the features predict the sizes of samples. Errors are relative to the sizes that the
// weights of the round before predict.
inline void solve_contexts(const std::vector<const ContextSample*>& samples, const bool* allowed, double* w) {
  static_assert(kAtOnce == 4);
  std::fill_n(w, kContextTerms, 0.0);
  for (std::uint32_t f = 0; f < kFeatures; ++f)
    w[f] = !allowed[f] ? 0 : f < kCodeTaps ? 1.0 / kCodeTaps : f == kConstantFeature ? 0.02 : 0;
  for (int round = 0; round < 2; ++round) {
    double a[kFeatures][kContextTerms] = {};  // upper triangle in whole vectors; the rest follows by symmetry
    for (std::size_t first = 0; first < samples.size(); first += kAtOnce) {
      const std::size_t count = std::min(kAtOnce, samples.size() - first);
      double t[kAtOnce][kContextTerms] = {}, g[kAtOnce] = {};
      for (std::size_t n = 0; n < count; ++n) {
        for (std::uint32_t i = 0; i < kContextTerms; ++i) t[n][i] = samples[first + n]->terms[i];
        double m[8];
        for (std::uint32_t i = 0; i < 8; ++i) m[i] = w[i] * t[n][i];
        for (std::uint32_t f = 8; f < kContextTerms; ++f) m[f % 8] += w[f] * t[n][f];
        const double sum = 0.02 + (((m[0] + m[1]) + (m[2] + m[3])) + ((m[4] + m[5]) + (m[6] + m[7])));
        g[n] = 1 / (sum * sum);
      }
      for (std::uint32_t i = 0; i < kFeatures; ++i) {
        const double x0 = g[0] * t[0][i], x1 = g[1] * t[1][i], x2 = g[2] * t[2][i], x3 = g[3] * t[3][i];
        for (std::uint32_t k = i / 8 * 8; k < kContextTerms; ++k)
          a[i][k] += (x0 * t[0][k] + x1 * t[1][k]) + (x2 * t[2][k] + x3 * t[3][k]);
      }
    }
    for (std::uint32_t i = 0; i < kFeatures; ++i)
      for (std::uint32_t k = 0; k < i / 8 * 8; ++k) a[i][k] = a[k][i];
    double rest[kContextTerms] = {};  // residual of each equation
    for (std::uint32_t i = 0; i < kFeatures; ++i) {
      rest[i] = a[i][kSizeTerm];
      for (std::uint32_t k = 0; k < kFeatures; ++k) rest[i] -= a[i][k] * w[k];
    }
    for (int sweep = 0; sweep < 60; ++sweep) {
      double most = 0;
      for (std::uint32_t i = 0; i < kFeatures; ++i) {
        if (!allowed[i] || !(a[i][i] > 0)) continue;
        const double moved = std::max(0.0, w[i] + rest[i] / a[i][i]), change = moved - w[i];
        w[i] = moved;
        most = std::max(most, std::fabs(change));
        for (std::uint32_t k = 0; k < kContextTerms; ++k) rest[k] -= a[i][k] * change;
      }
      if (most < 1e-4) break;
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
  const Tap* const codes = code_taps(kind, pass.refining);
  const std::uint32_t parities = pass.refining ? 1u << static_cast<std::uint32_t>(kind) : 1;
  std::vector<const ContextSample*> own;
  double sizes[kSets] = {}, expected[kSets] = {};
  for (std::uint32_t p = pass.refining ? 1 : 0; p < parities; ++p) {
    bool allowed[kFeatures];
    for (std::uint32_t f = 0; f < kFeatures; ++f)
      allowed[f] = f >= kCodeTaps || (f < most_codes && (!pass.refining || tap_allowed(pass, kind, p, codes[f])));
    own.clear();
    for (const ContextSample& s : samples)
      if (pass.refining ? s.set % 8 == p : s.set < kBorderSets) own.push_back(&s);
    double w[kContextTerms], scales[kFeatures];
    solve_contexts(own, allowed, w);
    for (std::uint32_t f = 0; f < kFeatures; ++f) pass.scale[f][p] = nearest_scale(w[f], kScaleOne);
    if (pass.scale[kConstantFeature][p] == 0) pass.scale[kConstantFeature][p] = 28;  // 2^-6
    for (std::uint32_t f = 0; f < kFeatures; ++f) scales[f] = scale_of(pass.scale[f][p], kScaleOne);
    for (const ContextSample& s : samples) {
      if (pass.refining && s.set % 8 != p) continue;
      double m = 0;
      for (std::uint32_t f = 0; f < kFeatures; ++f) m += scales[f] * s.terms[f];
      sizes[s.set] += s.terms[kSizeTerm];
      expected[s.set] += m;
    }
  }
  for (std::uint32_t set = 0; set < kSets; ++set)
    pass.factor[set] = static_cast<std::uint8_t>(
        sizes[set] > 0 && expected[set] > 0
            ? std::max<std::uint32_t>(1, nearest_scale(sizes[set] / expected[set], kFactorOne))
            : kFactorOne);
}

PYF_END_TARGET
