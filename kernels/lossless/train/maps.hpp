// SPDX-License-Identifier: BSD-3-Clause
// Finds how values may become numbers (FORMAT.md): multiples, grids, and lists of few values. Not part of the format.
// For CPU and GPU.
#pragma once

#include <cstdint>
#include <type_traits>

#include "lossless/train/measured_grid.hpp"
#include "lossless/train/trained.hpp"

PYF_BEGIN_TARGET

template <class U>
KFN U greatest_divisor(U a, U b) {
  while (b != 0) {
    const U rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// Finds floats whose lowest bits are zero, such as binary32 stored as binary64.
template <class T, class Team>
PYF_MODEL void find_shift(const Trained<T, Team>& chunk) {
  using U = typename Trained<T, Team>::U;
  auto& space = *chunk.space;
  std::uint32_t* const with = space.counts_of[0];  // values whose lowest one bit is this one
  each(chunk.team, kSymbols, [&](std::uint32_t i) { with[i] = 0; });
  chunk.team.wait();
  each(chunk.team, chunk.rated(), [&](std::uint32_t i) {
    const U bits = space.patterns[i];
    if (static_cast<U>(bits << 1) == 0) return;  // zeros fit every shift
    chunk.team.add(with[bit_width(static_cast<U>(bits & (U{0} - bits))) - 1], 1);
  });
  chunk.team.wait();
  NumberMap map = chunk.plain;
  map.kind = NumberKind::multiple;
  const LowZeros zeros = low_zeros(with, map.width, map.width - 2);
  if (zeros.total == 0 || zeros.bits < 3) return;
  map.shift = zeros.bits;
  chunk.add_map(map);
}

// Finds integers with a common divisor.
template <class T, class Team>
PYF_MODEL void find_divisor(const Trained<T, Team>& chunk) {
  using U = typename Trained<T, Team>::U;
  using S = std::make_signed_t<U>;
  auto& space = *chunk.space;
  NumberMap map = chunk.plain;
  if (map.width < 16 || chunk.rated() == 0) return;
  U least = ordered(map, space.patterns[0]);
  const auto lesser = [](U a, U b) { return static_cast<S>(a) < static_cast<S>(b) ? a : b; };
  each(chunk.team, chunk.rated(), [&](std::uint32_t i) { least = lesser(ordered(map, space.patterns[i]), least); });
  least = chunk.team.joined(least, lesser);
  U divisor = 0;
  each(chunk.team, chunk.rated(), [&](std::uint32_t i) {
    if (divisor != 1) divisor = greatest_divisor(divisor, static_cast<U>(ordered(map, space.patterns[i]) - least));
  });
  divisor = chunk.team.joined(divisor, [](U a, U b) { return greatest_divisor(a, b); });
  if (divisor < 2) return;
  map.kind = NumberKind::multiple;
  map.multiple = divisor;
  map.origin = least;
  chunk.add_map(map);
}

// The grids that are tried: parts of a unit, and the ways to a value. Way 0: a division; 1: a product; 3: a product in
// binary32.
inline constexpr std::uint32_t kGridParts = 36, kGridWays = 4;
KFN double grid_parts(std::uint32_t i) {
  constexpr double kParts[kGridParts] = {1,    10,   100,   1000,    1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
                                         1e12, 3,    6,     7,       12,  24,  30,  36,  60,  360, 365,  720,
                                         1440, 3600, 86400, 86400e3, 2,   4,   8,   16,  32,  64,  128,  256};
  return kParts[i];
}
template <class U>
KFN bool is_grid_way(std::uint32_t part, std::uint32_t way) {
  return way == 0 || (part != 0 && (way == 1 || (way == 3 && sizeof(U) == 4)));
}
KFN NumberMap grid_map(const NumberMap& plain, std::uint32_t part, std::uint32_t way) {
  NumberMap map = plain;
  map.kind = NumberKind::grid;
  map.product = way != 0;
  map.unit = map.product ? 1 / grid_parts(part) : grid_parts(part);
  if (way == 3) map.unit = static_cast<double>(static_cast<float>(map.unit));
  return map;
}
// Whether a value is within a unit in the last place of a grid, and on it.
template <class U>
KFN void test_grid(const NumberMap& map, U bits, std::uint32_t& near, std::uint32_t& exact) {
  U number = 0;
  nearest_grid_number(map, bits, number);
  const U rest = static_cast<U>(ordered(map, bits) - grid_point(map, number));
  // a grid as fine as the type would fit all values
  const U magnitude = static_cast<std::make_signed_t<U>>(number) < 0 ? static_cast<U>(U{0} - number) : number;
  const bool coarse = bit_width(magnitude) + 3 <= (sizeof(U) == 8 ? 53 : 24);
  near += coarse && zigzag(rest) <= 2 ? 1 : 0;
  exact += coarse && rest == 0 ? 1 : 0;
}

// Finds floats that are multiples of a decimal or sexagesimal fraction, by a division or a product.
template <class T, class Team>
PYF_MODEL void find_grid(const Trained<T, Team>& chunk) {
  using U = typename Trained<T, Team>::U;
  auto& space = *chunk.space;
  constexpr U kInfinity = sizeof(U) == 8 ? static_cast<U>(0x7FF0000000000000ull) : static_cast<U>(0x7F800000u);
  constexpr std::uint32_t kFirst = 64, kNearOfFirst = 56;  // if fewer of the first are near, the others are not tested
  const auto is_tested = [&](U bits) { return (bits & kInfinity) != kInfinity && static_cast<U>(bits << 1) != 0; };
  const auto each_tested = [&](std::uint32_t begin, std::uint32_t end, const auto& note) {
    for (std::uint32_t i = begin; i < end; ++i)
      if (is_tested(space.patterns[i])) note(i);
  };
  const std::uint32_t n =
      place_chosen(chunk.team, chunk.rated(), each_tested,
                   [&](std::uint32_t i, std::uint32_t place) { space.keys[place] = space.patterns[i]; });
  std::uint32_t* const near_of = space.counts_of[0];
  each(chunk.team, kSymbols, [&](std::uint32_t i) { near_of[i] = 0; });
  chunk.team.wait();
  if (n < 32) return;
  const std::uint32_t first = n < kFirst ? n : kFirst;
  static_assert(kGridParts * kGridWays <= kSymbols);
  each(chunk.team, kGridParts * kGridWays * first, [&](std::uint32_t i) {
    const std::uint32_t way = i / first;
    if (!is_grid_way<U>(way / kGridWays, way % kGridWays)) return;
    std::uint32_t near = 0, exact = 0;
    test_grid(grid_map(chunk.plain, way / kGridWays, way % kGridWays), space.keys[i % first], near, exact);
    if (near != 0) chunk.team.add(near_of[way], near);
  });
  chunk.team.wait();
  for (std::uint32_t part = 0; part < kGridParts; ++part) {
    NumberMap best = chunk.plain;
    std::uint32_t most = 0;
    for (std::uint32_t way = 0; way < kGridWays; ++way) {
      if (!is_grid_way<U>(part, way) || (n > kFirst && near_of[kGridWays * part + way] < kNearOfFirst)) continue;
      const NumberMap map = grid_map(chunk.plain, part, way);
      std::uint32_t near = 0, exact = 0;
      each(chunk.team, n, [&](std::uint32_t i) { test_grid(map, space.keys[i], near, exact); });
      near = sum_of(chunk.team, near);
      exact = sum_of(chunk.team, exact);
      if (32 * (n - near) > n || exact <= most) continue;
      most = exact;
      best = map;
    }
    if (most != 0) return chunk.add_map(best);
  }
}

// Adds patterns to those in space.keys. `known` is one that is counted already, and marks empty slots.
template <class T, class Team, class Pattern>
KFN void add_patterns(const Trained<T, Team>& chunk, NumberOf<T> known, std::uint32_t count, const Pattern& pattern) {
  using U = NumberOf<T>;
  auto& space = *chunk.space;
  each(chunk.team, count, [&](std::uint32_t i) {
    const U bits = pattern(i);
    if (bits == known) return;
    for (std::uint32_t slot = slot_of_pattern(bits);; slot = next_slot(slot)) {
      // a look that comes too early only costs a replacement
      const U there = space.keys[slot] == bits ? bits : chunk.team.replace(space.keys[slot], known, bits);
      if (there == known) chunk.team.add(space.used, 1);
      if (there == known || there == bits) return;
    }
  });
}
template <class T, class Team>
KFN void clear_patterns(const Trained<T, Team>& chunk, NumberOf<T> known) {
  chunk.team.wait();
  each(chunk.team, kPatternSlots, [&](std::uint32_t i) { chunk.space->keys[i] = known; });
  if (chunk.leads()) chunk.space->used = 1;
  chunk.team.wait();
}

// Collects the different patterns of the chunk in space.sample, at most `most`. Returns false if there are more.
template <class T, class Team>
PYF_MODEL bool collect_patterns(const Trained<T, Team>& chunk, std::uint32_t most) {
  using U = typename Trained<T, Team>::U;
  constexpr std::uint32_t kAtOnce = 4096;
  static_assert(kMostEntries + kAtOnce < kPatternSlots);
  auto& space = *chunk.space;
  const U known = static_cast<U>(bits_of_value<T>(chunk.values, 0));
  clear_patterns(chunk, known);
  for (std::uint64_t from = 0; from < chunk.count; from += kAtOnce) {
    if (space.used > most) return false;
    chunk.team.wait();
    add_patterns(chunk, known, static_cast<std::uint32_t>(chunk.count - from < kAtOnce ? chunk.count - from : kAtOnce),
                 [&](std::uint32_t i) { return static_cast<U>(bits_of_value<T>(chunk.values, from + i)); });
    chunk.team.wait();
  }
  if (space.used > most) return false;
  const auto each_other = [&](std::uint32_t begin, std::uint32_t end, const auto& note) {
    for (std::uint32_t i = begin; i < end; ++i)
      if (space.keys[i] != known) note(i);
  };
  place_chosen(chunk.team, kPatternSlots, each_other,
               [&](std::uint32_t i, std::uint32_t place) { space.sample[1 + place] = space.keys[i]; });
  if (chunk.leads()) space.sample[0] = known;
  return true;
}

// Finds a list of values if the sample has few different ones, at most a quarter of its size.
template <class T, class Team>
PYF_MODEL void find_list(const Trained<T, Team>& chunk) {
  using U = typename Trained<T, Team>::U;
  auto& space = *chunk.space;
  const NumberMap& plain = chunk.plain;
  if (plain.width < 16 || chunk.count < 256) return;
  const auto most = static_cast<std::uint32_t>(chunk.count / 8 < kMostEntries ? chunk.count / 8 : kMostEntries);
  const std::uint32_t sampled = chunk.rated();
  static_assert(kMostRated < kPatternSlots);
  clear_patterns(chunk, space.patterns[0]);
  add_patterns(chunk, space.patterns[0], sampled, [&](std::uint32_t i) { return space.patterns[i]; });
  chunk.team.wait();
  if (space.used > (most < sampled / 4 ? most : sampled / 4) || !collect_patterns(chunk, most)) return;
  const std::uint32_t entries = space.used;
  chunk.team.wait();
  each(chunk.team, entries,
       [&](std::uint32_t i) { space.sample[i] = above_lowest(plain.width, ordered(plain, space.sample[i])); });
  chunk.team.sort(space.sample, entries, space.sorted);
  each(chunk.team, entries, [&](std::uint32_t i) { space.dictionary[i] = space.sample[i]; });
  NumberMap map = plain;
  map.kind = NumberKind::dictionary;
  map.entries = entries;
  map.dictionary = space.dictionary;
  chunk.add_map(map);
  fill_places<U>(chunk.team, map, space.places);
}

// Whether a value of the chunk has a remainder.
template <class T, class Team>
PYF_MODEL bool any_remainder(const Trained<T, Team>& chunk, const NumberMap& map) {
  using U = typename Trained<T, Team>::U;
  constexpr std::uint32_t kRun = 4096, kRuns = Team::kSize == 1 ? 1 : 16;
  for (std::uint64_t first = 0; first < chunk.count;) {
    const std::uint64_t left = chunk.count - first;
    const auto runs = static_cast<std::uint32_t>(left < kRun           ? 1
                                                 : left / kRun < kRuns ? left / kRun
                                                                       : kRuns),
               length = static_cast<std::uint32_t>(left < kRun ? left : kRun);
    bool any = false;
    each_number<T, U>(
        chunk.team, map, chunk.values, chunk.place(), runs, length,
        [&](std::uint32_t run) { return static_cast<std::int64_t>(first + std::uint64_t{run} * kRun); },
        [&](std::uint32_t, std::uint32_t, const NumberOfValue<U>& own) { any = any || own.remainder != 0; });
    if (any_of(chunk.team, any)) return true;
    first += std::uint64_t{runs} * length;
  }
  return false;
}

// Finds all maps; the first one are the patterns themselves.
template <class T, class Team>
PYF_MODEL void find_maps(const Trained<T, Team>& chunk) {
  using U = typename Trained<T, Team>::U;
  auto& space = *chunk.space;
  each(chunk.team, chunk.runs.count, [&](std::uint32_t run) { space.rated_starts[run] = chunk.runs.start(run); });
  chunk.team.wait();
  each_in_rows(chunk.team, chunk.runs.count, chunk.runs.length,
               [&](std::uint32_t run, std::uint32_t i, std::uint32_t at) {
                 space.patterns[at] = static_cast<U>(bits_of_value<T>(chunk.values, space.rated_starts[run] + i));
               });
  if (chunk.leads()) space.kinds = 0;
  chunk.add_map(chunk.plain);
  if (chunk.plain.is_float) {
    find_shift(chunk);
    find_grid(chunk);
    find_measured_grid(chunk);
  } else {
    find_divisor(chunk);
  }
  find_list(chunk);
}

PYF_END_TARGET
