// SPDX-License-Identifier: BSD-3-Clause
// Chooses which levels of context share a table: neighbouring levels are joined while that saves bits. For encoders;
// not part of the format. Floating-point operations have a fixed order, so that all CPU levels and GPUs choose the
// same.
#pragma once

#include <bit>
#include <cstdint>

#include "stages/entropy/tables.hpp"
#include "stages/symbols.hpp"
#include "stages/team.hpp"

PYF_BEGIN_TARGET

// log2(x) for x >= 1, to about 1e-5, by operations that give the same bits on all machines.
KFN double rough_log2(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const double exponent = static_cast<double>(static_cast<std::int64_t>(bits >> 52 & 0x7FF) - 1023);
  const double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull), y = (m - 1) / (m + 1),
               y2 = y * y;
  return exponent + 2.885390081777927 * y * (1 + y2 * (1.0 / 3 + y2 * (1.0 / 5 + y2 * (1.0 / 7 + y2 * (1.0 / 9)))));
}

// Logarithms of counts: from a table of the first ones, if there is one.
inline constexpr std::uint32_t kTabledLogs = 32768;
struct CountLogs {
  const double* table = nullptr;

  KFN double operator()(std::uint32_t count) const {
    if (table == nullptr) return rough_log2(count);
    const double tabled = table[count < kTabledLogs ? count : 0];  // loaded in any case: no load waits for a branch
    return count < kTabledLogs ? tabled : rough_log2(count);
  }
};

// Estimates the bits of symbols by their entropy; *used: how many different ones there are. count(s): of symbol s.
// `blocks`: a bit for each 32 symbols, 0 only if none of them is used.
template <class Few, class Count>
KFN double entropy_bits(const Few& few, const CountLogs& logs, const Count& count, std::uint32_t* used,
                        std::uint32_t blocks = ~0u) {
  std::uint32_t sum = 0, symbols = 0;
  double inner = 0;
  const auto add = [&](std::uint32_t own) {
    sum += own;
    symbols += own != 0 ? 1 : 0;
  };
  if constexpr (Few::kSize == 1) {
    for (std::uint32_t block = 0; block < kSymbols / 32; ++block)
      if ((blocks >> block & 1) != 0)
        for (std::uint32_t i = 0; i < 32; ++i) add(count(32 * block + i));
    // the logarithm of 0 is finite here
    inner = ordered_sum(
        few, kSymbols,
        [&](std::uint32_t s) {
          const std::uint32_t own = count(s);
          return own * logs(own);
        },
        blocks);
  } else {  // the same sum, with loads on their way together
    static_assert(Few::kSize == 32);
    std::uint32_t own[kSymbols / 32];
    double log[kSymbols / 32];
    for (std::uint32_t k = 0; k < kSymbols / 32; ++k) own[k] = count(32 * k + few.rank());
    for (std::uint32_t k = 0; k < kSymbols / 32; ++k) log[k] = logs(own[k]);
    for (std::uint32_t k = 0; k < kSymbols / 32; ++k) {
      add(own[k]);
      inner += own[k] * log[k];
    }
    inner = few.joined(inner, [](double x, double y) { return x + y; });
  }
  *used = few.sum(symbols);
  const auto total = static_cast<double>(few.sum(sum));
  return total > 0 ? total * rough_log2(total) - inner : 0;
}
// The same with a table of their own; `part`: their share of all symbols.
template <class Few, class Count>
KFN double table_bits(const Few& few, const CountLogs& logs, const Count& count, double part,
                      std::uint32_t blocks = ~0u) {
  std::uint32_t used = 0;
  const double bits = entropy_bits(few, logs, count, &used, blocks);
  return used != 0 ? bits + (20 + 4.5 * used) * part : 0;
}

// make_frequencies() by few threads; those of a warp have their own (cuda/warp_frequencies.cuh).
template <std::uint32_t Bits>
KFN void few_frequencies(const Alone& /*few*/, const std::uint32_t* counts, Frequencies& f) {
  make_frequencies<Bits>(counts, f);
}

// The joined tables. A table has the index of its lowest level.
template <std::uint32_t Levels>
struct JoinedLevels {
  std::uint32_t tables = 0;
  std::uint8_t table_of_level[Levels] = {};
  double bits = 0;  // estimated, of all tables

  KFN const std::uint32_t* counts_of(std::uint32_t table) const { return counts[row[table]]; }

  static constexpr std::uint32_t kNone = Levels;
  std::uint32_t row[Levels];                           // of each table, in the end: its lowest level
  std::uint32_t next[Levels + 1], before[Levels + 1];  // tables above and below; kNone begins and ends the list
  double own[Levels], joined[Levels];                  // bits of a table; of it and the next one as one table
  std::uint32_t best;                                  // the table to join with the next one
  std::uint32_t blocks;  // a bit for each 32 symbols that are used in any level, or all bits
  std::uint32_t counts[Levels][kSymbols];

  template <class Few>
  KFN void rate(const Few& few, const CountLogs& logs, std::uint32_t t, bool with_next, double part) {
    const std::uint32_t* const here = counts[t];
    const std::uint32_t* const other = counts[with_next ? next[t] : t];
    const double found =
        table_bits(few, logs, [&](std::uint32_t s) { return here[s] + (with_next ? other[s] : 0); }, part, blocks);
    if (few.rank() == 0) (with_next ? joined : own)[t] = found;
  }
  // Sets `best` to the join that saves most bits; to kNone if none saves any and at most `most` tables are left.
  template <class Few>
  KFN void find_best(const Few& few, std::uint32_t most) {
    constexpr double kNoJoin = 1e300;
    double least = kNoJoin;
    std::uint32_t table = kNone;
    each(few, Levels, [&](std::uint32_t t) {  // the lowest of equal ones
      if (next[t] == kNone) return;
      const double more = joined[t] - own[t] - own[next[t]];
      table = more < least ? t : table;
      least = more < least ? more : least;
    });
    const double all = least_of(few, least, table);
    if (few.rank() == 0) best = table != kNone && all > 0 && tables <= most ? kNone : table;
  }
};

// Joins neighbouring levels until at most `most` tables are left and no join saves bits.
template <class Team, std::uint32_t Levels>
PYF_MODEL void join_levels(const Team& team, const CountLogs& logs, const std::uint32_t (&counts)[Levels][kSymbols],
                           std::uint32_t most, double part, JoinedLevels<Levels>& result) {
  constexpr std::uint32_t kNone = JoinedLevels<Levels>::kNone;
  each(team, Levels * kSymbols,
       [&](std::uint32_t i) { result.counts[i / kSymbols][i % kSymbols] = counts[i / kSymbols][i % kSymbols]; });
  team.each_of_few(Levels, [&](const auto& few, std::uint32_t level) {
    std::uint32_t any = 0;
    each(few, kSymbols, [&](std::uint32_t s) { any |= counts[level][s]; });
    any = few.joined(any, [](std::uint32_t a, std::uint32_t b) { return a | b; });
    if (few.rank() == 0) result.row[level] = any;
  });
  if (team.rank() == 0) {
    result.blocks = ~0u;  // a warp takes no longer for all
    if constexpr (Team::kSize == 1) {
      result.blocks = 0;
      for (std::uint32_t level = 0; level < Levels; ++level)
        for (std::uint32_t s = 0; result.row[level] != 0 && s < kSymbols; ++s)
          result.blocks |= (counts[level][s] != 0 ? 1u : 0u) << s / 32;
    }
    result.tables = 0;
    std::uint32_t last = kNone;
    for (std::uint32_t level = 0; level < Levels; ++level) {
      result.next[level] = kNone;
      if (result.row[level] == 0) continue;
      result.before[level] = last;
      result.next[last] = level;
      last = level;
      ++result.tables;
    }
    if (result.tables == 0) {
      result.next[kNone] = 0;
      result.tables = 1;
    }
  }
  team.wait();
  team.each_of_few(2 * Levels, [&](const auto& few, std::uint32_t i) {
    const std::uint32_t level = i / 2;
    if (result.row[level] == 0 && result.next[kNone] != level) return;
    if (i % 2 == 0 || result.next[level] != kNone) result.rate(few, logs, level, i % 2 != 0, part);
  });
  for (;;) {
    team.with_few([&](const auto& few) { result.find_best(few, most); });
    const std::uint32_t best = result.best;
    if (best == kNone) break;
    const std::uint32_t other = result.next[best];
    each(team, kSymbols, [&](std::uint32_t s) { result.counts[best][s] += result.counts[other][s]; });
    team.wait();
    if (team.rank() == 0) {
      result.own[best] = result.joined[best];
      const std::uint32_t above = result.next[other];
      result.next[best] = above;
      result.next[other] = kNone;
      if (above != kNone) result.before[above] = best;
      --result.tables;
    }
    team.wait();
    team.each_of_few(2, [&](const auto& few, std::uint32_t i) {  // with both neighbours
      const std::uint32_t t = i == 0 ? best : result.before[best];
      if (t != kNone && result.next[t] != kNone) result.rate(few, logs, t, true, part);
    });
  }
  if (team.rank() == 0) {
    result.bits = 0;
    std::uint32_t table = 0;
    for (std::uint32_t t = result.next[kNone]; t != kNone; t = result.next[t], ++table) {
      result.bits += result.own[t];
      result.row[table] = t;
      const std::uint32_t end = result.next[t] != kNone ? result.next[t] : Levels;
      for (std::uint32_t level = table == 0 ? 0 : t; level < end; ++level)
        result.table_of_level[level] = static_cast<std::uint8_t>(table);
    }
  }
  team.wait();
}

PYF_END_TARGET
