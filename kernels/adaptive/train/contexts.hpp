// SPDX-License-Identifier: BSD-3-Clause
// Trains weights of contexts, which foretell the size of a code, from samples of coded values, by a team of threads
// (FORMAT.md). Not part of the format.
#pragma once

#include <cstdint>

#include "adaptive/train/equations.hpp"

PYF_BEGIN_TARGET

// A sample: the features of a value's context, then the size of its code; padded to vectors of 8.
inline constexpr std::uint32_t kSizeTerm = kFeatures, kContextTerms = (kFeatures + 8) / 8 * 8;
struct ContextSample {
  float terms[kContextTerms];
  std::uint32_t set;
};

inline constexpr std::uint32_t kParities = 8;
inline constexpr std::uint8_t kLeastConstantScale = kScaleOne - 24;  // 2^-6
inline constexpr int kDescents = 10;                                 // rounds, at most; 60 gain 0.0 %

// The equations of a parity, and their solution.
struct ContextSolver {
  double a[kFeatures][kContextTerms], w[kContextTerms], rest[kContextTerms];
  float w_single[kContextTerms];
  bool allowed[kFeatures];
};
// Memory; numbers for as many samples as there are.
struct ContextSpace {
  ContextSolver solvers[kParities];
  BinnedOrder<kParities> by_parity;
  BinnedOrder<kSets> by_set;
  float *numbers, *staged;  // staged: as EquationSpace has it
  float scales[kParities][kContextTerms];
};

// The sum of a sample's terms, weighted.
KFN float weighted_terms(const float* w, const float* terms) {
  float m[8];
  for (std::uint32_t i = 0; i < 8; ++i) m[i] = w[i] * terms[i];
  for (std::uint32_t f = 8; f < kContextTerms; ++f) m[f % 8] += w[f] * terms[f];
  return ((m[0] + m[1]) + (m[2] + m[3])) + ((m[4] + m[5]) + (m[6] + m[7]));
}

// Sums the equations of a parity; numbers[i] is the weight of sample i. A cell is summed over the samples in order,
// kAtOnce at a time. Below the diagonal cells follow by symmetry, in whole vectors.
template <class Team>
PYF_ON_TEAM void sum_contexts(const Team& team, const ContextSample* samples, const float* numbers,
                              const std::uint32_t* order, std::uint32_t count, [[maybe_unused]] float* staged,
                              ContextSolver& out) {
  if constexpr (Team::kSize == 1) {
    constexpr float kZeros[kContextTerms] = {};
    for (std::uint32_t from = 0; from < count; from += kAtOnce) {
      const float *t[kAtOnce], *terms[kAtOnce];
      float g[kAtOnce] = {}, own[kAtOnce];
      for (std::uint32_t n = 0; n < kAtOnce; ++n) {
        const bool exists = from + n < count;
        t[n] = exists ? samples[order[from + n]].terms : kZeros;
        if (exists) g[n] = numbers[order[from + n]];
      }
      for (std::uint32_t i = 0; i < kFeatures; ++i) {
        const std::uint32_t first = i / 8 * 8;
        for (std::uint32_t n = 0; n < kAtOnce; ++n) {
          own[n] = g[n] * t[n][i];
          terms[n] = t[n] + first;
        }
        add_together(out.a[i] + first, kContextTerms - first, [&](std::uint32_t n) { return own[n]; }, terms);
      }
    }
  } else {
    // a thread has four columns of a row
    static_assert(items_of(kFeatures, kContextTerms, 4) <= Team::kSize && kContextTerms < kColumns);
    const RowPart part = item_of(team.rank(), kFeatures, kContextTerms, 4);
    double row[4] = {};
    sum_staged<4, kContextTerms, kContextTerms>(
        team, samples, order, count, [&](std::uint32_t i) { return numbers[i]; }, part, kFeatures, staged, row,
        [](const float*, std::uint32_t) {});
    if (part.row < kFeatures)
      for (std::uint32_t k = 0; k < 4; ++k) out.a[part.row][part.first + k] = row[k];
  }
}

// Finds weights w >= 0 with which the features predict the sizes of samples, by coordinate descent.
template <class Few>
PYF_ON_TEAM void descend(const Few& few, ContextSolver& s) {
  each(few, kContextTerms, [&](std::uint32_t i) {
    if (i >= kFeatures) {
      s.rest[i] = 0;
      return;
    }
    double rest = s.a[i][kSizeTerm];
    for (std::uint32_t k = 0; k < kFeatures; ++k) rest -= (k < i / 8 * 8 ? s.a[k][i] : s.a[i][k]) * s.w[k];
    s.rest[i] = rest;
  });
  few.wait();
  for (std::uint32_t i = 0; i < kFeatures; ++i) each(few, i / 8 * 8, [&](std::uint32_t k) { s.a[i][k] = s.a[k][i]; });
  few.wait();
  for (int round = 0; round < kDescents; ++round) {
    double most = 0;
    for (std::uint32_t i = 0; i < kFeatures; ++i) {
      if (!s.allowed[i] || !(s.a[i][i] > 0)) continue;
      const double before = s.w[i], wanted = before + s.rest[i] / s.a[i][i], moved = wanted > 0 ? wanted : 0,
                   change = moved - before, size = change < 0 ? -change : change;
      few.wait();
      if (few.rank() == 0) s.w[i] = moved;
      most = size > most ? size : most;
      each(few, kContextTerms, [&](std::uint32_t k) { s.rest[k] -= s.a[i][k] * change; });
      few.wait();
    }
    if (most < 1e-4) break;
  }
  each(few, kContextTerms, [&](std::uint32_t i) { s.w_single[i] = static_cast<float>(s.w[i]); });
}

KFN std::uint8_t nearest_scale(double w, std::uint32_t one) {
  std::uint32_t best = 0;
  for (std::uint32_t k = 1; k <= kScaleSteps; ++k) {
    const double here = scale_of(k, one), before = scale_of(k - 1, one);
    if (w >= (here + before) / 2) best = k;
  }
  return static_cast<std::uint8_t>(best);
}

// Sets the scales of a parity from its solution.
template <class Few>
KFN void set_scales(const Few& few, std::uint32_t parity, ContextSpace& space, PassModel& pass) {
  each(few, kContextTerms, [&](std::uint32_t f) {
    if (f >= kFeatures) {
      space.scales[parity][f] = 0;
      return;
    }
    std::uint8_t scale = nearest_scale(space.solvers[parity].w[f], kScaleOne);
    if (f == kConstantFeature && scale == 0) scale = kLeastConstantScale;
    pass.scale[f][parity] = scale;
    space.scales[parity][f] = scale_of(scale, kScaleOne);
  });
}

// Each set gets the factor with which its expected sizes sum up to the sizes.
template <class Team>
PYF_ON_TEAM void set_factors(const Team& team, const ContextSample* samples, std::uint32_t count, ContextSpace& space,
                             PassModel& pass) {
  const bool refining = pass.refining;
  each(team, count, [&](std::uint32_t i) {
    const ContextSample& s = samples[i];
    const float* const scales = space.scales[refining ? s.set % 8 : 0];
    space.numbers[i] = weighted_terms(scales, s.terms);
  });
  order_by_bins(team, count, [&](std::uint32_t i) { return samples[i].set; }, space.by_set);
  team.each_of_few(kSets, [&](const auto& few, std::uint32_t set) {
    const std::uint32_t own = space.by_set.count(set), padded = (own + 31) / 32 * 32;
    const std::uint32_t* const order = space.by_set.order + space.by_set.first[set];
    const double sizes = ordered_sum(few, padded, [&](std::uint32_t i) {
      return i < own ? static_cast<double>(samples[order[i]].terms[kSizeTerm]) : 0;
    });
    const double expected = ordered_sum(
        few, padded, [&](std::uint32_t i) { return i < own ? static_cast<double>(space.numbers[order[i]]) : 0; });
    if (few.rank() != 0) return;
    const std::uint8_t factor = sizes > 0 && expected > 0 ? nearest_scale(sizes / expected, kFactorOne) : kFactorOne;
    pass.factor[set] = factor < 1 ? std::uint8_t{1} : factor;
  });
}

// The scale of a feature in many chunks: the two nearest neighbours count most in refining passes.
KFN std::uint8_t usual_scale(bool refining, std::uint32_t feature) {
  if (feature == kConstantFeature) return kLeastConstantScale;
  if (!refining || feature == kDistanceFeature) return kScaleOne - 16;  // 2^-4
  return feature < 2 ? kScaleOne - 10 : feature == kRangeFeature ? kScaleOne - 22 : kScaleOne - 20;
}
// Sets contexts that predictors are compared with before any are trained.
template <class Team>
PYF_ON_TEAM void set_usual_contexts(const Team& team, AdaptiveModel& model) {
  each_in_rows(team, (model.levels + 1) * kFeatures, 8, [&](std::uint32_t row, std::uint32_t parity, std::uint32_t) {
    PassModel& pass = model.passes[row / kFeatures];
    pass.scale[row % kFeatures][parity] = usual_scale(pass.refining, row % kFeatures);
  });
  each_in_rows(team, model.levels + 1, kSets,
               [&](std::uint32_t p, std::uint32_t set, std::uint32_t) { model.passes[p].factor[set] = kFactorOne; });
}

// Trains the scales and the factors of a pass. Errors are relative to the sizes that the weights of the round before
// predict.
template <class Team>
PYF_ON_TEAM void train_contexts(const Team& team, PassModel& pass, TileKind kind, const ContextSample* samples,
                                std::uint32_t count, std::uint32_t most_codes, ContextSpace& space) {
  const bool refining = pass.refining;
  const std::uint32_t first = refining ? 1 : 0, parities = !refining                 ? 1
                                                           : kind == TileKind::line  ? 2
                                                           : kind == TileKind::plane ? 4
                                                                                     : kParities;
  order_by_bins(
      team, count,
      [&](std::uint32_t i) {
        const std::uint32_t set = samples[i].set;
        return refining ? set % 8 : set < kBorderSets ? 0 : kParities;
      },
      space.by_parity);
  each_in_rows(team, parities, kContextTerms, [&](std::uint32_t p, std::uint32_t f, std::uint32_t) {
    ContextSolver& s = space.solvers[p];
    const bool allowed = f < kFeatures && (f >= kCodeTaps || f < most_codes);
    if (f < kFeatures) s.allowed[f] = allowed;
    s.w[f] = !allowed ? 0 : f < kCodeTaps ? 1.0 / kCodeTaps : f == kConstantFeature ? 0.02 : 0;
    s.w_single[f] = static_cast<float>(s.w[f]);
  });
  team.wait();
  for (int round = 0; round < 2; ++round) {
    each(team, count, [&](std::uint32_t i) {
      const std::uint32_t set = samples[i].set;
      const float size = 0.02f + weighted_terms(space.solvers[refining ? set % 8 : 0].w_single, samples[i].terms);
      space.numbers[i] = 1 / (size * size);
    });
    each_in_rows(team, parities * kFeatures, kContextTerms, [&](std::uint32_t row, std::uint32_t k, std::uint32_t) {
      space.solvers[row / kFeatures].a[row % kFeatures][k] = 0;
    });
    team.wait();
    for (std::uint32_t p = first; p < parities; ++p)
      sum_contexts(team, samples, space.numbers, space.by_parity.order + space.by_parity.first[p],
                   space.by_parity.count(p), space.staged, space.solvers[p]);
    team.each_of_few(parities - first,
                     [&](const auto& few, std::uint32_t p) { descend(few, space.solvers[first + p]); });
    team.wait();
  }
  team.each_of_few(parities - first,
                   [&](const auto& few, std::uint32_t p) { set_scales(few, first + p, space, pass); });
  set_factors(team, samples, count, space, pass);
  team.wait();
}

PYF_END_TARGET
