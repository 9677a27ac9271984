// SPDX-License-Identifier: BSD-3-Clause
// Chooses which levels of context share a table: neighbouring levels are joined while that saves bits. For encoders;
// not part of the format. Floating-point operations have a fixed order, so that all CPU levels choose the same.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "stages/symbols.hpp"

PYF_BEGIN_TARGET

// log2(x) for x >= 1, to about 1e-5, by operations that give the same bits on all machines.
KFN double rough_log2(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const double exponent = static_cast<double>(static_cast<std::int64_t>(bits >> 52 & 0x7FF) - 1023);
  const double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull), y = (m - 1) / (m + 1),
               y2 = y * y;
  return exponent + 2.885390081777927 * y * (1 + y2 * (1.0 / 3 + y2 * (1.0 / 5 + y2 * (1.0 / 7 + y2 * (1.0 / 9)))));
}

// Estimates the bits of symbols with a table of their own; `counts` are of `part` of all symbols.
inline double table_bits(const std::uint32_t* counts, double part) {
  double total = 0, inner = 0, bits = 20 * part;
  for (std::uint32_t s = 0; s < kSymbols; ++s) {
    if (counts[s] == 0) continue;
    const double n = counts[s];
    total += n;
    inner += n * rough_log2(n);
    bits += 4.5 * part;
  }
  return total > 0 ? bits + total * rough_log2(total) - inner : 0;
}

// The joined tables: counts of their symbols, and their estimated bits.
template <std::uint32_t Levels>
struct JoinedLevels {
  std::uint32_t tables = 0;
  std::uint8_t table_of_level[Levels] = {};
  double bits = 0;
  std::uint32_t counts[Levels][kSymbols];
};

// Joins neighbouring levels until at most `most` tables are left and no join saves bits.
template <std::uint32_t Levels>
inline void join_levels(const std::uint32_t (&counts)[Levels][kSymbols], std::uint32_t most, double part,
                        JoinedLevels<Levels>& result) {
  auto& merged = result.counts;
  std::uint32_t first[Levels + 1], tables = 0;
  double bits[Levels], joined[Levels];
  for (std::uint32_t level = 0; level < Levels; ++level) {
    std::uint64_t any = 0;
    for (std::uint32_t s = 0; s < kSymbols; ++s) any += counts[level][s];
    if (any == 0) continue;
    std::memcpy(merged[tables], counts[level], sizeof merged[0]);
    bits[tables] = table_bits(merged[tables], part);
    first[tables++] = level;
  }
  if (tables == 0) {
    std::memset(merged[0], 0, sizeof merged[0]);
    bits[0] = 0;
    first[tables++] = 0;
  }
  const auto join = [&](std::uint32_t t) {
    std::uint32_t sum[kSymbols];
    for (std::uint32_t s = 0; s < kSymbols; ++s) sum[s] = merged[t][s] + merged[t + 1][s];
    joined[t] = table_bits(sum, part);
  };
  for (std::uint32_t t = 0; t + 1 < tables; ++t) join(t);
  while (tables > 1) {
    std::uint32_t best = 0;
    double least = 0;
    for (std::uint32_t t = 0; t + 1 < tables; ++t) {
      const double more = joined[t] - bits[t] - bits[t + 1];
      if (t == 0 || more < least) {
        least = more;
        best = t;
      }
    }
    if (least > 0 && tables <= most) break;
    for (std::uint32_t s = 0; s < kSymbols; ++s) merged[best][s] += merged[best + 1][s];
    bits[best] = joined[best];
    for (std::uint32_t t = best + 1; t + 1 < tables; ++t) {
      std::memcpy(merged[t], merged[t + 1], sizeof merged[0]);
      bits[t] = bits[t + 1];
      joined[t] = joined[t + 1];
      first[t] = first[t + 1];
    }
    --tables;
    if (best + 1 < tables) join(best);
    if (best > 0) join(best - 1);
  }
  result.tables = tables;
  result.bits = 0;
  for (std::uint32_t t = 0; t < tables; ++t) {
    result.bits += bits[t];
    const std::uint32_t end = t + 1 < tables ? first[t + 1] : Levels;
    for (std::uint32_t level = t == 0 ? 0 : first[t]; level < end; ++level)
      result.table_of_level[level] = static_cast<std::uint8_t>(t);
  }
}

PYF_END_TARGET
