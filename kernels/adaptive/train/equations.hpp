// SPDX-License-Identifier: BSD-3-Clause
// Normal equations for the weights of predictions, from samples of a chunk, by a team of threads (FORMAT.md). Sums have
// a fixed order, so that results do not depend on threads, CPU levels and GPUs. Not part of the format.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "adaptive/model.hpp"
#include "adaptive/taps.hpp"
#include "stages/team.hpp"

// Functions that all threads of a team call.
#if defined(__CUDACC__)
#define PYF_ON_TEAM __device__
#else
#define PYF_ON_TEAM
#endif

PYF_BEGIN_TARGET

inline constexpr std::uint32_t kTerms = kMostCandidates + 1;     // candidates, then the value
inline constexpr std::uint32_t kColumns = (kTerms + 7) / 8 * 8;  // length of a row of equations, a multiple of 8
inline constexpr std::uint32_t kAtOnce = 4;                      // samples added to the equations at once

// A sample of a value: its candidates and itself, all relative to the nearest candidate.
struct Sample {
  float terms[kTerms];
  float weight;
  std::uint32_t set;  // without the class of activity
  float range;
};

// Indices in their order, by bins. Bin b has order[first[b]] to order[first[b + 1] - 1].
template <std::uint32_t Bins>
struct BinnedOrder {
  std::uint32_t* order;
  std::uint32_t first[Bins + 1];

  KFN std::uint32_t count(std::uint32_t bin) const { return first[bin + 1] - first[bin]; }
};
// bin(i): of an index below `count`; Bins: none.
template <class Team, std::uint32_t Bins, class Bin>
PYF_ON_TEAM void order_by_bins(const Team& team, std::uint32_t count, const Bin& bin, BinnedOrder<Bins>& to) {
  share(team, count, [&](std::uint32_t begin, std::uint32_t end) {
    std::uint32_t own[Bins + 1] = {}, at[Bins + 1], before = 0;
    for (std::uint32_t i = begin; i < end; ++i) ++own[bin(i)];
    for (std::uint32_t b = 0; b < Bins; ++b) {
      std::uint32_t all = 0;
      at[b] = before + team.sum_before(own[b], &all);
      if (team.rank() == 0) to.first[b] = before;
      before += all;
    }
    if (team.rank() == 0) to.first[Bins] = before;
    for (std::uint32_t i = begin; i < end; ++i)
      if (const std::uint32_t b = bin(i); b < Bins) to.order[at[b]++] = i;
  });
  team.wait();
}

// Adds four samples to a part of a row. term(n, k): term k of sample n; weighted[n]: the row's own term times the
// sample's weight.
template <std::uint32_t Count, class Term>
KFN void add_four(double* row, std::uint32_t first, const double (&weighted)[kAtOnce], const Term& term) {
  for (std::uint32_t k = first; k < first + Count; ++k)
    row[k] +=
        (weighted[0] * term(0, k) + weighted[1] * term(1, k)) + (weighted[2] * term(2, k) + weighted[3] * term(3, k));
}

// Parts of a row, `width` columns each, that are not below the diagonal in whole vectors of 8.
constexpr KFN std::uint32_t items_of(std::uint32_t rows, std::uint32_t columns, std::uint32_t width) {
  std::uint32_t items = 0;
  for (std::uint32_t i = 0; i < rows; ++i) items += (columns - i / 8 * 8) / width;
  return items;
}
struct RowPart {
  std::uint32_t row, first;
};
KFN RowPart item_of(std::uint32_t item, std::uint32_t rows, std::uint32_t columns, std::uint32_t width) {
  for (std::uint32_t i = 0; i < rows; ++i) {
    const std::uint32_t own = (columns - i / 8 * 8) / width;
    if (item < own) return {i, i / 8 * 8 + item * width};
    item -= own;
  }
  return {rows, 0};
}

// Samples that a thread block holds in fast memory at a time, and the numbers of these and their weights.
// Eight columns and two more: vectors of eight begin in different banks.
inline constexpr std::uint32_t kStaged = 64;
constexpr KFN std::uint32_t staged_column(std::uint32_t k) { return k + k / 8 * 2; }
inline constexpr std::uint32_t kStagedNumbers = kStaged * (staged_column(kColumns) + 1);

// Normal equations of a set's samples. The last row and column belong to the value.
struct Equations {
  double of[kTerms][kColumns];
  double weight;
  std::uint32_t count;
};

// Memory for as many samples as there are.
struct EquationSpace {
  std::uint32_t *keys, *other;
  double* staged;  // fast memory of a thread block: kStagedNumbers
  BinnedOrder<kSets> by_set;
};

// Equations of all sets of a pass, with the most classes of activity; equations of fewer classes are sums of these.
struct SetEquations {
  std::uint32_t classes;
  float thresholds[kMostClasses - 1];
  std::uint32_t samples;
  Equations sets[kSets];
};

// Copies the terms of `here` samples to fast memory, zeros up to `padded`. What a thread copies is all loaded first.
template <std::uint32_t Columns, std::uint32_t Terms, class Team, class AnySample>
KFN void stage_terms(const Team& team, const AnySample* samples, const std::uint32_t* order, std::uint32_t here,
                     std::uint32_t padded, double* staged) {
  constexpr std::uint32_t kEach = (kStaged * Columns + Team::kSize - 1) / Team::kSize;
  float terms[kEach];
  for (std::uint32_t j = 0; j < kEach; ++j) {
    const std::uint32_t at = team.rank() + j * Team::kSize, n = at / Columns, k = at % Columns;
    const float own = samples[order[n < here ? n : here - 1]].terms[k < Terms ? k : Terms - 1];
    terms[j] = n < here && k < Terms ? own : 0;
  }
  for (std::uint32_t j = 0; j < kEach; ++j) {
    const std::uint32_t at = team.rank() + j * Team::kSize;
    if (at < padded * Columns)
      staged[at / Columns * staged_column(Columns) + staged_column(at % Columns)] = static_cast<double>(terms[j]);
  }
}

KFN double weight_of(const Sample& s, bool weighted) { return weighted ? s.weight : 1.0f / 16; }

// Sums the equations of a set. A cell is summed over its samples in order, four at a time.
template <class Team>
PYF_ON_TEAM void sum_set(const Team& team, const Sample* samples, const std::uint32_t* order, std::uint32_t count,
                         std::uint32_t candidates, bool weighted, [[maybe_unused]] double* staged, Equations& out) {
  [[maybe_unused]] const auto sample_at = [&](std::uint32_t from, std::uint32_t n) {
    return from + n < count ? samples + order[from + n] : nullptr;
  };
  [[maybe_unused]] const auto next_row = [&](std::uint32_t i) { return i + 1 == candidates ? kTerms - 1 : i + 1; };
  if constexpr (Team::kSize == 1) {
    for (std::uint32_t from = 0; from < count; from += kAtOnce) {
      double t[kAtOnce][kColumns] = {}, g[kAtOnce] = {};
      for (std::uint32_t n = 0; n < kAtOnce; ++n) {
        const Sample* const s = sample_at(from, n);
        if (s == nullptr) break;
        g[n] = weight_of(*s, weighted);
        for (std::uint32_t i = 0; i < kTerms; ++i) t[n][i] = s->terms[i];
        out.weight += g[n];
      }
      for (std::uint32_t i = 0; i < kTerms; i = next_row(i)) {
        const double own[kAtOnce] = {g[0] * t[0][i], g[1] * t[1][i], g[2] * t[2][i], g[3] * t[3][i]};
        for (std::uint32_t first = i / 8 * 8; first < kColumns; first += 8)  // whole vectors; rest by symmetry
          add_four<8>(out.of[i], first, own, [&](std::uint32_t n, std::uint32_t k) { return t[n][k]; });
      }
    }
  } else {
    // a thread has eight columns of a row, and one has the weight
    constexpr std::uint32_t kItems = items_of(kTerms, kColumns, 8);
    static_assert(kItems < Team::kSize);
    const auto [i, first] = item_of(team.rank(), kTerms, kColumns, 8);
    const bool used = team.rank() < kItems && (i < candidates || i + 1 == kTerms);
    double row[8] = {}, weight = 0;
    for (std::uint32_t from = 0; from < count; from += kStaged) {
      const std::uint32_t here = count - from < kStaged ? count - from : kStaged,
                          padded = (here + kAtOnce - 1) / kAtOnce * kAtOnce;
      team.wait();
      stage_terms<kColumns, kTerms>(team, samples, order + from, here, padded, staged);
      constexpr std::uint32_t kPitch = staged_column(kColumns);
      double* const weights = staged + kStaged * kPitch;
      each(team, padded,
           [&](std::uint32_t n) { weights[n] = n < here ? weight_of(samples[order[from + n]], weighted) : 0; });
      team.wait();
      if (used) {
        for (std::uint32_t n = 0; n < padded; n += kAtOnce) {
          const double* const t = staged + n * kPitch;
          double own[kAtOnce];
          for (std::uint32_t k = 0; k < kAtOnce; ++k) own[k] = weights[n + k] * t[k * kPitch + staged_column(i)];
          add_four<8>(row, 0, own,
                      [&](std::uint32_t m, std::uint32_t k) { return t[m * kPitch + staged_column(first) + k]; });
        }
      } else if (team.rank() == kItems) {
        for (std::uint32_t n = 0; n < here; ++n) weight += weights[n];
      }
    }
    if (used)
      for (std::uint32_t k = 0; k < 8; ++k) out.of[i][first + k] = row[k];
    if (team.rank() == kItems) out.weight = weight;
  }
}

template <class Team>
PYF_ON_TEAM void collect(const Team& team, bool refining, std::uint32_t most_classes, bool weighted,
                         std::uint32_t candidates, const Sample* samples, std::uint32_t count, EquationSpace& space,
                         SetEquations& out) {
  const std::uint32_t ranges = place_chosen(
      team, count,
      [&](std::uint32_t begin, std::uint32_t end, const auto& note) {
        for (std::uint32_t i = begin; i < end; ++i)
          if (refining || samples[i].set == 0) note(i);
      },
      // ranges are at least 0: their bits have their order
      [&](std::uint32_t i, std::uint32_t place) {
        space.keys[place] = std::bit_cast<std::uint32_t>(samples[i].range);
      });
  team.wait();
  team.sort(space.keys, ranges, space.other);
  if (team.rank() == 0) {
    out.classes = most_classes;
    out.samples = count;
    for (std::uint32_t i = 0; i + 1 < most_classes; ++i) {
      const std::uint32_t exact =
          ranges == 0 ? 0 : space.keys[static_cast<std::uint64_t>(ranges) * (i + 1) / most_classes];
      out.thresholds[i] = std::bit_cast<float>(exact & 0xFFFF0000u);
    }
  }
  each(team, sizeof out.sets / 4, [&](std::uint32_t i) { reinterpret_cast<std::uint32_t*>(out.sets)[i] = 0; });
  team.wait();
  each(team, count, [&](std::uint32_t k) {
    const Sample& s = samples[k];
    std::uint32_t set = s.set, active = 0;
    for (std::uint32_t i = 0; i + 1 < most_classes; ++i) active += s.range >= out.thresholds[i] ? 1 : 0;
    if (refining)
      set += 8 * active;
    else if (set < kBorderSets)
      set = active;
    space.keys[k] = set;
  });
  team.wait();
  order_by_bins(team, count, [&](std::uint32_t i) { return space.keys[i]; }, space.by_set);
  for (std::uint32_t set = 0; set < kSets; ++set) {
    const std::uint32_t own = space.by_set.count(set);
    if (own == 0) continue;
    sum_set(team, samples, space.by_set.order + space.by_set.first[set], own, candidates, weighted, space.staged,
            out.sets[set]);
    if (team.rank() == 0) out.sets[set].count = own;
  }
  team.wait();
  each_in_rows(team, kSets * kTerms, kColumns, [&](std::uint32_t row, std::uint32_t k, std::uint32_t) {
    const std::uint32_t i = row % kTerms;
    Equations& e = out.sets[row / kTerms];
    if (k < i / 8 * 8) e.of[i][k] = e.of[k][i];
  });
  team.wait();
}

// to += from
template <class Team>
PYF_ON_TEAM void add_equations(const Team& team, const Equations& from, Equations& to) {
  each_in_rows(team, kTerms, kTerms,
               [&](std::uint32_t i, std::uint32_t k, std::uint32_t) { to.of[i][k] += from.of[i][k]; });
  if (team.rank() == 0) {
    to.weight += from.weight;
    to.count += from.count;
  }
}
template <class Team>
PYF_ON_TEAM void copy_equations(const Team& team, const Equations& from, Equations& to) {
  each_in_rows(team, kTerms, kColumns,
               [&](std::uint32_t i, std::uint32_t k, std::uint32_t) { to.of[i][k] = from.of[i][k]; });
  if (team.rank() == 0) {
    to.weight = from.weight;
    to.count = from.count;
  }
  team.wait();
}

// The equations with one class of activity.
template <class Team>
PYF_ON_TEAM void join_classes(const Team& team, bool refining, const SetEquations& from, SetEquations& to) {
  team.wait();
  const std::uint32_t apart = refining ? 8 : 1, joined = refining ? 8 : 1;
  if (team.rank() == 0) {
    to.classes = 1;
    to.samples = from.samples;
  }
  for (std::uint32_t set = 0; set < kSets; ++set) {
    copy_equations(team, from.sets[set], to.sets[set]);
    if (set >= joined) continue;
    for (std::uint32_t c = 1; c < from.classes; ++c) {
      add_equations(team, from.sets[set + c * apart], to.sets[set]);
      team.wait();
    }
  }
}

PYF_END_TARGET
