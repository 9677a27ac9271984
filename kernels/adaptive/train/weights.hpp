// SPDX-License-Identifier: BSD-3-Clause
// Chooses the taps of a pass and their weights from its equations (train/equations.hpp), by a team of threads: a few of
// them solve a set (FORMAT.md). Not part of the format.
#pragma once

#include <cstdint>

#include "adaptive/train/equations.hpp"
#include "stages/entropy/level_tables.hpp"

PYF_BEGIN_TARGET

// The taps and weights that a set has.
struct Selection {
  std::uint32_t count;
  std::uint8_t tap[kMostCandidates];
  double weight[kMostCandidates];
};

// Memory of a few threads that solve a set.
struct Solver {
  double a[kTerms][kColumns];
  double row[kColumns], factor[kTerms];
  bool allowed[kMostCandidates];
  Selection chosen;
};
struct WeightSpace {
  Solver solvers[kSets];
  Equations pooled;
  bool used[kMostCandidates];
};

// The sweep operator: adds a candidate to the solution, or removes it.
template <class Few>
KFN void sweep(const Few& few, Solver& s, std::uint32_t candidates, std::uint32_t taken, bool out) {
  const std::uint32_t terms = candidates + 1, columns = columns_of(candidates);
  const double pivot = 1 / s.a[taken][taken], sign = out ? -1 : 1;
  each(few, columns, [&](std::uint32_t k) { s.row[k] = s.a[taken][k]; });
  each(few, terms, [&](std::uint32_t i) { s.factor[i] = s.a[i][taken] * pivot; });
  few.wait();
  const bool owns = taken % Few::kSize == few.rank();
  for (std::uint32_t i = 0; i < terms; ++i) {
    if (i == taken) continue;
    const double f = s.factor[i];
    each(few, columns, [&](std::uint32_t k) { s.a[i][k] -= f * s.row[k]; });
    if (owns) s.a[i][taken] = sign * f;
  }
  each(few, columns, [&](std::uint32_t k) { s.a[taken][k] = sign * s.row[k] * pivot; });
  if (owns) s.a[taken][taken] = -pivot;
  few.wait();
}

// Solves with all allowed candidates, then repeatedly drops the least useful one. It stops when at most `most` are left
// and the next drop would cost more bits than it saves. Reconstructed values differ from the samples' by noise of
// variance 1/12.
template <class Few>
PYF_ON_TEAM void select_taps(const Few& few, const Equations& e, std::uint32_t candidates, std::uint32_t most,
                             double values, double bits_of_tap, Solver& s) {
  const std::uint32_t columns = columns_of(candidates), value = candidates;
  const double noise = e.weight / 12;
  for (std::uint32_t i = 0; i <= value; ++i)  // weights w and 1 - sum of w act on noise of equal variance
    each(few, columns, [&](std::uint32_t k) {
      double own = e.of[i][k];
      if (k <= value) own += noise;
      if (i == k && i < candidates) own += noise;
      s.a[i][k] = own;
    });
  few.wait();
  std::uint64_t taken = 0;
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < candidates; ++i) {
    if (!s.allowed[i] || !(s.a[i][i] > 1e-9 * (e.of[i][i] + 2 * noise))) continue;
    few.wait();
    sweep(few, s, candidates, i, false);
    taken |= std::uint64_t{1} << i;
    ++count;
  }
  while (count > 0) {
    constexpr double kNoLoss = 1e300;
    double least = kNoLoss;
    std::uint32_t tap = kTerms;
    each(few, candidates, [&](std::uint32_t i) {  // the lowest of equal ones
      if ((taken >> i & 1) == 0) return;
      const double loss = s.a[i][value] * s.a[i][value] / -s.a[i][i];
      tap = loss < least || tap == kTerms ? i : tap;
      least = loss < least ? loss : least;
    });
    const double loss = least_of(few, least, tap);
    const double before = s.a[value][value];
    if (count <= most && before > 0 && values * 0.5 * rough_log2((before + loss) / before) >= bits_of_tap) break;
    few.wait();
    sweep(few, s, candidates, tap, true);
    taken &= ~(std::uint64_t{1} << tap);
    --count;
  }
  if (few.rank() == 0) {
    s.chosen.count = 0;
    for (std::uint32_t i = 0; i < candidates; ++i) {
      if ((taken >> i & 1) == 0) continue;
      s.chosen.tap[s.chosen.count] = static_cast<std::uint8_t>(i);
      s.chosen.weight[s.chosen.count++] = s.a[i][value];
    }
  }
  few.wait();
}

KFN std::int32_t rounded_weight(double w) {
  const double scaled = w * kWeightOne;
  if (!(scaled < kMostWeight)) return kMostWeight;
  if (!(scaled > -kMostWeight)) return -kMostWeight;
  return static_cast<std::int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

// Sets the weights of a set of a pass from its selection.
template <class Few>
KFN void set_weights(const Few& few, const Selection& chosen, std::uint32_t rest, std::uint32_t set, PassModel& pass) {
  std::int32_t sum = 0;
  each(few, pass.taps, [&](std::uint32_t i) {
    std::int32_t weight = 0;
    for (std::uint32_t k = 0; k < chosen.count; ++k)
      if (chosen.tap[k] == pass.tap[i]) weight = rounded_weight(chosen.weight[k]);
    pass.weight[i][set] = weight;
    sum += weight;
  });
  sum = sum_of(few, sum);
  each(few, pass.taps, [&](std::uint32_t i) {
    if (pass.tap[i] == rest) pass.weight[i][set] = kWeightOne - sum;
  });
}

// Chooses taps and weights of a pass. `values`: number of the chunk's values that the pass codes.
template <class Team>
PYF_ON_TEAM void train_weights(const Team& team, PassModel& pass, TileKind kind, const TapList& list,
                               const SetEquations& equations, double values, std::uint32_t most, WeightSpace& space) {
  const Equations(&sets)[kSets] = equations.sets;
  const double per_sample = equations.samples == 0 ? 0 : values / static_cast<double>(equations.samples);
  const bool refining = pass.refining;
  each(team, list.count,
       [&](std::uint32_t i) { space.used[i] = i == list.near[0] || i == list.near[1] || i == list.near[2]; });
  if (team.rank() == 0)
    for (std::uint32_t i = 0; i + 1 < pass.classes; ++i) pass.thresholds[i] = equations.thresholds[i];
  team.wait();
  // which taps are used
  if (refining) {
    team.each_of_few(kSets, [&](const auto& few, std::uint32_t set) {
      if (!set_exists(pass, kind, set)) return;
      Solver& s = space.solvers[set];
      const std::uint32_t rest = rest_tap(list, refining, kind, set);
      each(few, list.count,
           [&](std::uint32_t i) { s.allowed[i] = i != rest && tap_allowed(pass, kind, set, list.of[i]); });
      few.wait();
      select_taps(few, sets[set], list.count, most, per_sample * static_cast<double>(sets[set].count), 16, s);
    });
  } else {
    copy_equations(team, list.count, sets[0], space.pooled);
    for (std::uint32_t set = 1; set < pass.classes; ++set) {
      add_equations(team, list.count, sets[set], space.pooled);
      team.wait();
    }
    team.with_few([&](const auto& few) {
      Solver& s = space.solvers[0];
      each(few, list.count, [&](std::uint32_t i) { s.allowed[i] = i != list.near[0]; });
      few.wait();
      const auto axes = static_cast<std::uint32_t>(kind);
      select_taps(few, space.pooled, list.count, most > axes ? most - axes : 0, values, 16.0 * pass.classes, s);
    });
  }
  team.wait();
  if (team.rank() == 0) {
    for (std::uint32_t set = 0; set < kSets; ++set) {
      if (refining ? !set_exists(pass, kind, set) : set != 0) continue;
      const Selection& chosen = space.solvers[set].chosen;
      for (std::uint32_t i = 0; i < chosen.count; ++i) space.used[chosen.tap[i]] = true;
    }
    pass.taps = 0;
    for (std::uint32_t i = 0; i < list.count; ++i)
      if (space.used[i]) pass.tap[pass.taps++] = static_cast<std::uint8_t>(i);
  }
  each_in_rows(team, kMostCandidates, kSets,
               [&](std::uint32_t i, std::uint32_t set, std::uint32_t) { pass.weight[i][set] = 0; });
  team.wait();
  // their weights
  team.each_of_few(kSets, [&](const auto& few, std::uint32_t set) {
    if (!set_exists(pass, kind, set)) return;
    Solver& s = space.solvers[set];
    const std::uint32_t rest = rest_tap(list, refining, kind, set);
    each(few, list.count, [&](std::uint32_t i) {
      s.allowed[i] = space.used[i] && i != rest && tap_allowed(pass, kind, set, list.of[i]);
    });
    few.wait();
    const double own =
        per_sample * static_cast<double>(sets[set].count) * (set >= kBorderSets && !refining ? 0.125 : 1);
    select_taps(few, sets[set], list.count, most, own, 15, s);
    set_weights(few, s.chosen, rest, set, pass);
  });
  team.wait();
}

PYF_END_TARGET
