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

PYF_BEGIN_TARGET

inline constexpr std::uint32_t kTerms = kMostCandidates + 1;     // candidates, then the value
inline constexpr std::uint32_t kColumns = (kTerms + 7) / 8 * 8;  // length of a row of equations, a multiple of 8
// The part of a row that so many candidates and the value take.
constexpr KFN std::uint32_t columns_of(std::uint32_t candidates) { return (candidates + 8) / 8 * 8; }
inline constexpr std::uint32_t kAtOnce = 8;  // samples added to the equations at once

// A sample of a value: its candidates and itself, all relative to the nearest candidate; then zeros.
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

// Adds kAtOnce samples to columns of a row, in single precision among these. terms[n]: these columns of sample n;
// weighted(n): the row's own term times the sample's weight.
template <class Weighted>
KFN void add_together(double* __restrict columns, std::size_t count, const Weighted& weighted,
                      const float* const (&terms)[kAtOnce]) {
  static_assert(kAtOnce == 8);
  for (std::size_t k = 0; k < count; ++k) {
    const float sum = ((weighted(0) * terms[0][k] + weighted(1) * terms[1][k]) +
                       (weighted(2) * terms[2][k] + weighted(3) * terms[3][k])) +
                      ((weighted(4) * terms[4][k] + weighted(5) * terms[5][k]) +
                       (weighted(6) * terms[6][k] + weighted(7) * terms[7][k]));
    columns[k] += static_cast<double>(sum);
  }
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
// Eight columns and four more: vectors of eight begin in different banks.
inline constexpr std::uint32_t kStaged = 64;
constexpr KFN std::uint32_t staged_column(std::uint32_t k) { return k + k / 8 * 4; }
inline constexpr std::uint32_t kStagedNumbers = kStaged * (staged_column(kColumns) + 1);

// Normal equations of a set's samples. The row and the column behind those of candidates belong to the value.
struct alignas(64) Equations {
  double of[kTerms][kColumns];
  double weight;
  std::uint32_t count;
};

// Memory for as many samples as there are.
struct EquationSpace {
  std::uint32_t *keys, *other;
  float* staged;  // fast memory of a thread block: kStagedNumbers
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
                     std::uint32_t padded, float* staged) {
  constexpr std::uint32_t kEach = (kStaged * Columns + Team::kSize - 1) / Team::kSize;
  float terms[kEach];
  for (std::uint32_t j = 0; j < kEach; ++j) {
    const std::uint32_t at = team.rank() + j * Team::kSize, n = at / Columns, k = at % Columns;
    const float own = samples[order[n < here ? n : here - 1]].terms[k < Terms ? k : Terms - 1];
    terms[j] = n < here && k < Terms ? own : 0;
  }
  for (std::uint32_t j = 0; j < kEach; ++j) {
    const std::uint32_t at = team.rank() + j * Team::kSize;
    if (at < padded * Columns) staged[at / Columns * staged_column(Columns) + staged_column(at % Columns)] = terms[j];
  }
}

// A thread's part of sums over samples in order, which a thread block holds in fast memory, some at a time. part: its
// row and `Width` columns from `first` on; of no row: nothing is summed. weight(i): of sample i. look(weights, here) is
// called for the weights of `here` samples.
template <std::uint32_t Width, std::uint32_t Columns, std::uint32_t Terms, class Team, class AnySample, class Weight,
          class Look>
KFN void sum_staged(const Team& team, const AnySample* samples, const std::uint32_t* order, std::uint32_t count,
                    const Weight& weight, RowPart part, std::uint32_t rows, float* staged, double (&sums)[Width],
                    const Look& look) {
  constexpr std::uint32_t kPitch = staged_column(Columns);
  float* const weights = staged + kStaged * kPitch;
  for (std::uint32_t from = 0; from < count; from += kStaged) {
    const std::uint32_t here = count - from < kStaged ? count - from : kStaged,
                        padded = (here + kAtOnce - 1) / kAtOnce * kAtOnce;
    team.wait();
    stage_terms<Columns, Terms>(team, samples, order + from, here, padded, staged);
    each(team, padded, [&](std::uint32_t n) { weights[n] = n < here ? weight(order[from + n]) : 0; });
    team.wait();
    look(weights, here);
    if (part.row >= rows) continue;
    for (std::uint32_t n = 0; n < padded; n += kAtOnce) {
      const float* const t = staged + n * kPitch;
      const float* terms[kAtOnce];
      float own[kAtOnce];
      for (std::uint32_t k = 0; k < kAtOnce; ++k) {
        own[k] = weights[n + k] * t[k * kPitch + staged_column(part.row)];
        terms[k] = t + k * kPitch + staged_column(part.first);
      }
      add_together(sums, Width, [&](std::uint32_t k) { return own[k]; }, terms);
    }
  }
}

KFN float weight_of(const Sample& s, bool weighted) { return weighted ? s.weight : 1.0f / 16; }

// Samples that are added together: their terms, behind them zeros, and the terms times the weights.
struct SampleRows {
  alignas(64) float terms[kAtOnce][kColumns] = {}, weighted[kAtOnce][kColumns] = {};
};
// Adds samples to the equations of their set; missing ones are nullptr. Cells below the diagonal follow by symmetry.
KFN void add_samples(const Sample* const (&samples)[kAtOnce], std::uint32_t candidates, bool weighted, SampleRows& own,
                     Equations& out) {
  for (std::uint32_t n = 0; n < kAtOnce; ++n) {
    float* __restrict const terms = own.terms[n];
    float* __restrict const products = own.weighted[n];
    if (samples[n] == nullptr) {
      for (std::uint32_t i = 0; i < kTerms; ++i) terms[i] = products[i] = 0;
      continue;
    }
    const float weight = weight_of(*samples[n], weighted);
    for (std::uint32_t i = 0; i < kTerms; ++i) {
      terms[i] = samples[n]->terms[i];
      products[i] = weight * samples[n]->terms[i];
    }
    out.weight += static_cast<double>(weight);
    ++out.count;
  }
  constexpr std::uint32_t kWidth = 16;
  static_assert(kColumns % kWidth == 0);
  for (std::uint32_t first = 0; first <= candidates; first += kWidth) {
    const float* terms[kAtOnce];
    for (std::uint32_t n = 0; n < kAtOnce; ++n) terms[n] = own.terms[n] + first;
    for (std::uint32_t i = 0; i <= candidates && i < first + kWidth; ++i)
      add_together(out.of[i] + first, kWidth, [&](std::uint32_t n) { return own.weighted[n][i]; }, terms);
  }
}

// Sums the equations of all sets; keys[i]: the set of sample i. A cell is summed over the samples of its set in order,
// kAtOnce at a time. One thread takes the samples as they come, a thread block set by set.
KFN void sum_sets(const Alone& /*team*/, const Sample* samples, std::uint32_t count, std::uint32_t candidates,
                  bool weighted, EquationSpace& space, Equations (&sets)[kSets]) {
  SampleRows own;
  const Sample* waiting[kSets][kAtOnce] = {};
  std::uint32_t waits[kSets] = {};
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t set = space.keys[i];
    waiting[set][waits[set]++] = samples + i;
    if (waits[set] < kAtOnce) continue;
    add_samples(waiting[set], candidates, weighted, own, sets[set]);
    waits[set] = 0;
  }
  for (std::uint32_t set = 0; set < kSets; ++set) {
    for (std::uint32_t n = waits[set]; n < kAtOnce; ++n) waiting[set][n] = nullptr;
    if (waits[set] != 0) add_samples(waiting[set], candidates, weighted, own, sets[set]);
  }
}
template <class Team>
PYF_ON_TEAM void sum_set(const Team& team, const Sample* samples, const std::uint32_t* order, std::uint32_t count,
                         std::uint32_t candidates, bool weighted, float* staged, Equations& out) {
  const std::uint32_t terms = candidates + 1, columns = columns_of(candidates);
  // a thread has eight columns of a row, and the last one has the weight
  static_assert(items_of(kTerms, kColumns, 8) < Team::kSize);
  const RowPart part = item_of(team.rank(), terms, columns, 8);
  const bool is_last = team.rank() + 1 == Team::kSize;
  double row[8] = {}, weight = 0;
  sum_staged<8, kColumns, kTerms>(
      team, samples, order, count, [&](std::uint32_t i) { return weight_of(samples[i], weighted); }, part, terms,
      staged, row,
      [&](const float* weights, std::uint32_t here) {
        if (!is_last) return;
        for (std::uint32_t n = 0; n < here; ++n) weight += static_cast<double>(weights[n]);
      });
  if (part.row < terms)
    for (std::uint32_t k = 0; k < 8; ++k) out.of[part.row][part.first + k] = row[k];
  if (is_last) out.weight = weight;
  if (team.rank() == 0) out.count = count;
}
template <class Team>
PYF_ON_TEAM void sum_sets(const Team& team, const Sample* samples, std::uint32_t count, std::uint32_t candidates,
                          bool weighted, EquationSpace& space, Equations (&sets)[kSets]) {
  order_by_bins(team, count, [&](std::uint32_t i) { return space.keys[i]; }, space.by_set);
  for (std::uint32_t set = 0; set < kSets; ++set)
    if (const std::uint32_t own = space.by_set.count(set); own != 0)
      sum_set(team, samples, space.by_set.order + space.by_set.first[set], own, candidates, weighted, space.staged,
              sets[set]);
}

template <class Team>
PYF_ON_TEAM void clear_equations(const Team& team, std::uint32_t candidates, Equations& e) {
  each_in_rows(team, candidates + 1, columns_of(candidates),
               [&](std::uint32_t i, std::uint32_t k, std::uint32_t) { e.of[i][k] = 0; });
  if (team.rank() == 0) {
    e.weight = 0;
    e.count = 0;
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
  for (Equations& e : out.sets) clear_equations(team, candidates, e);
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
  sum_sets(team, samples, count, candidates, weighted, space, out.sets);
  team.wait();
  const std::uint32_t terms = candidates + 1;
  each_in_rows(team, kSets * terms, columns_of(candidates), [&](std::uint32_t row, std::uint32_t k, std::uint32_t) {
    const std::uint32_t i = row % terms;
    Equations& e = out.sets[row / terms];
    if (k < i / 8 * 8) e.of[i][k] = e.of[k][i];
  });
  team.wait();
}

// to += from
template <class Team>
PYF_ON_TEAM void add_equations(const Team& team, std::uint32_t candidates, const Equations& from, Equations& to) {
  each_in_rows(team, candidates + 1, columns_of(candidates),
               [&](std::uint32_t i, std::uint32_t k, std::uint32_t) { to.of[i][k] += from.of[i][k]; });
  if (team.rank() == 0) {
    to.weight += from.weight;
    to.count += from.count;
  }
}
template <class Team>
PYF_ON_TEAM void copy_equations(const Team& team, std::uint32_t candidates, const Equations& from, Equations& to) {
  each_in_rows(team, candidates + 1, columns_of(candidates),
               [&](std::uint32_t i, std::uint32_t k, std::uint32_t) { to.of[i][k] = from.of[i][k]; });
  if (team.rank() == 0) {
    to.weight = from.weight;
    to.count = from.count;
  }
  team.wait();
}

// The equations with one class of activity.
template <class Team>
PYF_ON_TEAM void join_classes(const Team& team, bool refining, std::uint32_t candidates, const SetEquations& from,
                              SetEquations& to) {
  team.wait();
  const std::uint32_t apart = refining ? 8 : 1, joined = refining ? 8 : 1;
  if (team.rank() == 0) {
    to.classes = 1;
    to.samples = from.samples;
  }
  for (std::uint32_t set = 0; set < kSets; ++set) {
    copy_equations(team, candidates, from.sets[set], to.sets[set]);
    if (set >= joined) continue;
    for (std::uint32_t c = 1; c < from.classes; ++c) {
      add_equations(team, candidates, from.sets[set + c * apart], to.sets[set]);
      team.wait();
    }
  }
}

PYF_END_TARGET
