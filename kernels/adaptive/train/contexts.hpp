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

// The equations of a parity, and their solution.
struct ContextSolver {
  double a[kFeatures][kContextTerms], w[kContextTerms], rest[kContextTerms];
  bool allowed[kFeatures];
};
// Memory; numbers for as many samples as there are.
struct ContextSpace {
  ContextSolver solvers[kParities];
  BinnedOrder<kParities> by_parity;
  BinnedOrder<kSets> by_set;
  double *numbers, *staged;  // staged: as EquationSpace has it
  float scales[kParities][kFeatures];
};

// The sum of a sample's terms, weighted.
KFN double expected_size(const double* w, const float* terms) {
  double m[8];
  for (std::uint32_t i = 0; i < 8; ++i) m[i] = w[i] * terms[i];
  for (std::uint32_t f = 8; f < kContextTerms; ++f) m[f % 8] += w[f] * terms[f];
  return 0.02 + (((m[0] + m[1]) + (m[2] + m[3])) + ((m[4] + m[5]) + (m[6] + m[7])));
}

// Sums the equations of a parity; numbers[i] is the weight of sample i. A cell is summed over the samples in order,
// four at a time. Below the diagonal cells follow by symmetry, in whole vectors.
template <class Team>
PYF_ON_TEAM void sum_contexts(const Team& team, const ContextSample* samples, const double* numbers,
                              const std::uint32_t* order, std::uint32_t count, [[maybe_unused]] double* staged,
                              ContextSolver& out) {
  if constexpr (Team::kSize == 1) {
    for (std::uint32_t from = 0; from < count; from += kAtOnce) {
      double t[kAtOnce][kContextTerms] = {}, g[kAtOnce] = {};
      for (std::uint32_t n = 0; n < kAtOnce && from + n < count; ++n) {
        const std::uint32_t i = order[from + n];
        g[n] = numbers[i];
        for (std::uint32_t k = 0; k < kContextTerms; ++k) t[n][k] = samples[i].terms[k];
      }
      for (std::uint32_t i = 0; i < kFeatures; ++i) {
        const double own[kAtOnce] = {g[0] * t[0][i], g[1] * t[1][i], g[2] * t[2][i], g[3] * t[3][i]};
        const std::uint32_t first = i / 8 * 8;
        add_four(out.a[i] + first, kContextTerms - first, own,
                 {t[0] + first, t[1] + first, t[2] + first, t[3] + first});
      }
    }
  } else {
    // a thread has four columns of a row
    static_assert(items_of(kFeatures, kContextTerms, 4) <= Team::kSize && kContextTerms < kColumns);
    const RowPart part = item_of(team.rank(), kFeatures, kContextTerms, 4);
    double row[4] = {};
    sum_staged<4, kContextTerms, kContextTerms>(
        team, samples, order, count, [&](std::uint32_t i) { return numbers[i]; }, part, kFeatures, staged, row,
        [](const double*, std::uint32_t) {});
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
  for (int round = 0; round < 60; ++round) {
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
  each(few, kFeatures, [&](std::uint32_t f) {
    std::uint8_t scale = nearest_scale(space.solvers[parity].w[f], kScaleOne);
    if (f == kConstantFeature && scale == 0) scale = 28;  // 2^-6
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
    double m = 0;
    for (std::uint32_t f = 0; f < kFeatures; ++f) m += static_cast<double>(scales[f]) * static_cast<double>(s.terms[f]);
    space.numbers[i] = m;
  });
  order_by_bins(team, count, [&](std::uint32_t i) { return samples[i].set; }, space.by_set);
  team.each_of_few(kSets, [&](const auto& few, std::uint32_t set) {
    const std::uint32_t own = space.by_set.count(set), padded = (own + 31) / 32 * 32;
    const std::uint32_t* const order = space.by_set.order + space.by_set.first[set];
    const double sizes = ordered_sum(few, padded, [&](std::uint32_t i) {
      return i < own ? static_cast<double>(samples[order[i]].terms[kSizeTerm]) : 0;
    });
    const double expected =
        ordered_sum(few, padded, [&](std::uint32_t i) { return i < own ? space.numbers[order[i]] : 0; });
    if (few.rank() != 0) return;
    const std::uint8_t factor = sizes > 0 && expected > 0 ? nearest_scale(sizes / expected, kFactorOne) : kFactorOne;
    pass.factor[set] = factor < 1 ? std::uint8_t{1} : factor;
  });
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
  });
  team.wait();
  for (int round = 0; round < 2; ++round) {
    each(team, count, [&](std::uint32_t i) {
      const std::uint32_t set = samples[i].set;
      const double size = expected_size(space.solvers[refining ? set % 8 : 0].w, samples[i].terms);
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
