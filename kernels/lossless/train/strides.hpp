// SPDX-License-Identifier: BSD-3-Clause
// Chooses how values become numbers and which differences are taken, by the bits of a sample (FORMAT.md). Not part of
// the format. For CPU and GPU.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lossless/train/bins.hpp"
#include "lossless/train/maps.hpp"
#include "stages/symbols.hpp"

PYF_BEGIN_TARGET

// Estimates the bits of numbers with one table: the entropy of their symbols, and the raw bits beside these.
template <class Few>
KFN double bits_of_counts(const Few& few, const CountLogs& logs, const std::uint32_t* counts) {
  std::uint32_t used = 0;
  const double bits = entropy_bits(few, logs, [&](std::uint32_t s) { return counts[s]; }, &used);
  std::uint64_t beside = 0;
  each(few, kSymbols, [&](std::uint32_t s) { beside += std::uint64_t{counts[s]} * raw_bits(s); });
  return bits + static_cast<double>(sum_of(few, beside)) + 12 * used;
}
template <class U>
KFN std::uint32_t symbol_of_difference(std::uint32_t width, U difference) {
  return symbol_of<U>(to_bin_order<U>(true, width, difference));
}

// Ways within this factor of the best may be better with contexts.
inline constexpr double kClose = 1.1;

// Sorts the few candidates; equal ones keep their order.
template <class Bits>
KFN void sort_candidates(Candidates& candidates, const Bits& bits) {
  for (std::uint32_t i = 1; i < candidates.count; ++i) {
    const RatedStrides own = candidates.of[i];
    std::uint32_t at = i;
    for (; at > 0 && bits(own) < bits(candidates.of[at - 1]); --at) candidates.of[at] = candidates.of[at - 1];
    candidates.of[at] = own;
  }
}

// Keeps the best three of sorted candidates, and the best two with a lag.
KFN void keep_best(const Axes& axes, Candidates& candidates) {
  std::uint32_t kept = 0, with_lag = 0;
  for (std::uint32_t c = 0; c < candidates.count; ++c) {
    const bool lag = axes.have_lag(candidates.of[c].strides);
    if (lag ? with_lag == 2 : kept - with_lag == 3) continue;
    with_lag += lag ? 1 : 0;
    candidates.of[kept++] = candidates.of[c];
  }
  candidates.count = kept;
}

// Keeps the candidates that are close to the best one, and the best one without a lag.
KFN void keep_close(const Axes& axes, Candidates& candidates) {
  const double most = kClose * candidates.of[0].bits;
  std::uint32_t kept = 0, without = 0;
  for (std::uint32_t c = 0; c < candidates.count; ++c) {
    const bool lag = axes.have_lag(candidates.of[c].strides);
    if (c != 0 && candidates.of[c].bits > most && (lag || without != 0)) continue;
    without += lag ? 0 : 1;
    candidates.of[kept++] = candidates.of[c];
  }
  candidates.count = kept;
}

// Finds numbers of the sample before by each sum of the candidates' strides.
template <class T, class Team>
PYF_MODEL void find_shifted(const Trained<T, Team>& chunk, const NumberMap& map) {
  using U = typename Trained<T, Team>::U;
  auto& space = *chunk.space;
  if (chunk.leads()) {
    chunk.axes.find_candidates(space.tried);
    space.shift_count = 1;
    space.shifts[0] = 0;
    for (std::uint32_t c = 0; c < space.tried.count; ++c)
      for (std::uint32_t set = 1; set < 1u << space.tried.of[c].strides.count; ++set) {
        const std::uint64_t back = space.tried.of[c].strides.sum(set);
        std::uint32_t at = 0;
        while (at < space.shift_count && space.shifts[at] != back) ++at;
        if (at == space.shift_count) space.shifts[space.shift_count++] = back;
      }
  }
  chunk.team.wait();
  const std::uint32_t runs = chunk.runs.count, length = chunk.runs.length;
  each(chunk.team, space.shift_count * chunk.rated(),
       [&](std::uint32_t i) { space.shifted[i / chunk.rated()][i % chunk.rated()] = 0; });
  each(chunk.team, chunk.rated(), [&](std::uint32_t i) { space.remainders[i] = 0; });
  chunk.team.wait();
  each_number<T, U>(
      chunk.team, map, chunk.values, chunk.place(), space.shift_count * runs, length,
      [&](std::uint32_t run) {
        return static_cast<std::int64_t>(space.rated_starts[run % runs]) -
               static_cast<std::int64_t>(space.shifts[run / runs]);
      },
      [&](std::uint32_t run, std::uint32_t i, const NumberOfValue<U>& own) {
        space.shifted[run / runs][run % runs * length + i] = own.number;
        if (run < runs) space.remainders[run * length + i] = own.remainder;
      });
  chunk.team.wait();
}

// Calls note(i, difference) for the differences of the sample, by all threads of a team.
template <class T, class Team, class Note>
KFN void each_difference(const Trained<T, Team>& chunk, std::uint32_t width, const Strides& strides, const Note& note) {
  using U = typename Trained<T, Team>::U;
  auto& space = *chunk.space;
  const std::uint32_t sets = 1u << strides.count;
  const U* numbers[kMostSets];
  for (std::uint32_t set = 0; set < sets; ++set) {
    const std::uint64_t back = strides.sum(set);
    std::uint32_t shift = 0;
    while (space.shifts[shift] != back) ++shift;
    numbers[set] = space.shifted[shift];
  }
  if constexpr (Team::kSize == 1) {  // set by set: loops that the compiler vectorises
    U* const differences = space.differences;
    for (std::uint32_t i = 0; i < chunk.rated(); ++i) differences[i] = numbers[0][i];
    for (std::uint32_t set = 1; set < sets; ++set) {
      if (is_subtracted(set))
        for (std::uint32_t i = 0; i < chunk.rated(); ++i) differences[i] -= numbers[set][i];
      else
        for (std::uint32_t i = 0; i < chunk.rated(); ++i) differences[i] += numbers[set][i];
    }
    for (std::uint32_t i = 0; i < chunk.rated(); ++i) note(i, wrapped(width, differences[i]));
  } else {  // with loads in flight together
    const auto add = [&]<std::uint32_t kSets>() {
      constexpr std::uint32_t kTogether = kSets < 4 ? 4 : 8 / kSets;
      const std::uint32_t rated = chunk.rated();
      for (std::uint32_t first = chunk.team.rank(); first < rated; first += kTogether * Team::kSize) {
        U held[kTogether][kSets];
        for (std::uint32_t k = 0; k < kTogether; ++k)
          for (std::uint32_t set = 0; set < kSets; ++set)
            held[k][set] = first + k * Team::kSize < rated ? numbers[set][first + k * Team::kSize] : U{0};
        for (std::uint32_t k = 0; k < kTogether; ++k) {
          if (first + k * Team::kSize >= rated) break;
          U x = 0;
          for (std::uint32_t set = 0; set < kSets; ++set) x = is_subtracted(set) ? x - held[k][set] : x + held[k][set];
          note(first + k * Team::kSize, wrapped(width, x));
        }
      }
    };
    with_sets(sets, add);
  }
}

// Adds the bits of starts of units, where differences lack the longest stride. `plain`: bits of the numbers themselves.
template <class T, class Team>
KFN void count_begins(const Trained<T, Team>& chunk, double plain, RatedStrides& one) {
  const Candidates& tried = chunk.space->tried;
  Strides shorter = one.strides;  // in ascending order
  const std::uint32_t longest = shorter.of[shorter.count - 1];
  while (shorter.count != 0 && shorter.of[shorter.count - 1] == longest) shorter.of[--shorter.count] = 0;
  const double unit = chunk.axes.unit_of(one.strides, one.bits / static_cast<double>(chunk.rated()), chunk.count);
  double without = shorter.count == 0 ? plain : one.bits;
  for (std::uint32_t c = 0; c < tried.count; ++c) {
    bool same = tried.of[c].strides.count == shorter.count;
    for (std::uint32_t k = 0; k < kMostStrides; ++k) same = same && tried.of[c].strides.of[k] == shorter.of[k];
    if (same) without = tried.of[c].bits;
  }
  const double more = longest / unit * (without - one.bits);
  one.begins = more > 0 ? more : 0;
}

// Rates the candidates by symbols of the sample's differences, and keeps the best ones, and no strides. Returns the
// bits of the remainders. Sets map.changes if they need fewer bits so.
template <class T, class Team>
PYF_MODEL double rate_candidates(const Trained<T, Team>& chunk, NumberMap& map) {
  using U = typename Trained<T, Team>::U;
  auto& space = *chunk.space;
  find_shifted(chunk, map);
  const std::uint32_t candidates = space.tried.count, rests = candidates + 1, changes = candidates + 2;
  each(chunk.team, (candidates + 3) * kSymbols,
       [&](std::uint32_t i) { space.counts_of[i / kSymbols][i % kSymbols] = 0; });
  chunk.team.wait();
  const auto count = [&](std::uint32_t c, U difference) {
    chunk.team.add(space.counts_of[c][symbol_of_difference(map.width, difference)], 1);
  };
  for (std::uint32_t c = 0; c <= candidates; ++c)  // the last one without strides
    each_difference(chunk, map.width, c < candidates ? space.tried.of[c].strides : Strides{},
                    [&](std::uint32_t, U difference) { count(c, difference); });
  const bool may_have_rests = map.kind == NumberKind::multiple || map.kind == NumberKind::grid;
  bool any = false;
  if (may_have_rests) {
    each(chunk.team, chunk.rated(), [&](std::uint32_t i) {
      const U own = space.remainders[i], before = i % chunk.runs.length != 0 ? space.remainders[i - 1] : own;
      count(rests, own);
      count(changes, static_cast<U>(own - before));
      any = any || own != 0;
    });
  }
  any = any_of(chunk.team, any);
  chunk.team.each_of_few(candidates + 3, [&](const auto& few, std::uint32_t c) {
    const double bits = bits_of_counts(few, space.logs, space.counts_of[c]);
    if (few.rank() == 0) space.bits_of[c] = bits;
  });
  if (chunk.leads()) {
    Candidates& tried = space.tried;
    for (std::uint32_t c = 0; c < candidates; ++c) tried.of[c].bits = space.bits_of[c];
    for (std::uint32_t c = 0; c < candidates; ++c) count_begins(chunk, space.bits_of[candidates], tried.of[c]);
    sort_candidates(tried, [](const RatedStrides& one) { return one.bits + one.begins; });
    keep_best(chunk.axes, tried);
    tried.add(0, 0);
  }
  chunk.team.wait();
  if (!any) return 0;
  map.changes = map.kind == NumberKind::grid && space.bits_of[changes] < space.bits_of[rests];
  return space.bits_of[map.changes ? changes : rests];
}

// Rates strides by the bits of the sample: space.tried, best first. Sets map.changes.
template <class T, class Team>
PYF_MODEL void rate_strides(const Trained<T, Team>& chunk, NumberMap& map) {
  using U = typename Trained<T, Team>::U;
  auto& space = *chunk.space;
  const double rest = rate_candidates(chunk, map);
  // rate the best few again, with frequent values and bins of any size
  const std::uint32_t rated = chunk.rated(), every = rated / 1024 > 1 ? rated / 1024 : 1;
  const std::uint32_t sampled = (rated + every - 1) / every;
  for (std::uint32_t c = 0; c < space.tried.count; ++c) {
    const Strides strides = space.tried.of[c].strides;
    const BinOrder<U> order(map, strides.count != 0);
    each_difference(chunk, map.width, strides, [&](std::uint32_t i, U difference) {
      if (i % every == 0) space.sample[i / every] = to_bin_order(order.zigzags, map.width, difference);
    });
    constexpr std::uint32_t kWide = 4;  // log2 of the octaves in a group
    chunk.team.sort(space.sample, sampled, space.sorted);
    cut_sample(chunk.team, order, kWide, kEqualParts / 2, space.sample, sampled, space.rated_parts[c]);
  }
  const std::uint32_t tried = space.tried.count;
  std::uint32_t most_groups = 0;
  for (std::uint32_t c = 0; c < tried; ++c) most_groups = std::max(most_groups, space.rated_parts[c].groups);
  chunk.team.each_of_few(most_groups * tried, [&](const auto& few, std::uint32_t i) {
    auto& parts = space.rated_parts[i % tried];
    if (i / tried < parts.groups) join_group(few, space.logs, 12, i / tried, parts);
  });
  each(chunk.team, tried, [&](std::uint32_t c) {
    const double bits = joined_bits(space.rated_parts[c]);
    RatedStrides& one = space.tried.of[c];
    double fixed = 0;  // of a unit's first differences and of the model, times the sample's share
    for (std::uint32_t i = 0; i < one.strides.count; ++i)
      fixed += 24 + (one.strides.of[i] <= kShortStride ? one.strides.of[i] * map.width : 0);
    one.bits =
        rest + fixed * chunk.part() + one.begins + bits * static_cast<double>(rated) / static_cast<double>(sampled);
  });
  chunk.team.wait();
  if (chunk.leads()) sort_candidates(space.tried, [](const RatedStrides& one) { return one.bits; });
  chunk.team.wait();
}

// Sets the model's map. space.best: the strides that need the fewest bits, and all that need up to a tenth more. With
// lags the best ones without are among them.
template <class T, class Team>
PYF_MODEL void choose_numbers(const Trained<T, Team>& chunk, BinnedParts& model) {
  auto& space = *chunk.space;
  find_maps(chunk);
  for (std::uint32_t k = 0; k < space.kinds; ++k) {
    NumberMap map = space.maps[k];
    rate_strides(chunk, map);
    if (!chunk.leads()) continue;
    const double fixed = map.kind == NumberKind::dictionary ? map.entries * (0.4 * map.width + 4) : 0;
    for (std::uint32_t c = 0; c < space.tried.count; ++c) {
      space.tried.of[c].bits = space.tried.of[c].bits / chunk.part() + fixed;
      space.tried.of[c].begins /= chunk.part();
    }
    if (k != 0 && space.tried.of[0].bits >= space.best.of[0].bits) continue;
    space.best = space.tried;
    model.map = map;
  }
  chunk.team.wait();
  const NumberMap map = model.map;
  if (map.kind == NumberKind::multiple || map.kind == NumberKind::grid) {
    const bool any = any_remainder(chunk, map);
    if (chunk.leads()) {
      model.map.remainders = any;
      model.map.changes = any && map.changes;
    }
  }
  if (chunk.leads()) keep_close(chunk.axes, space.best);
  chunk.team.wait();
}

PYF_END_TARGET
