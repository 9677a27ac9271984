// SPDX-License-Identifier: BSD-3-Clause
// Which levels of context share a table: neighbouring ones are joined while that saves bits (FORMAT.md). Not part of
// the format.
#pragma once

#include <cstdint>
#include <cstring>

#include "adaptive/cpu/train.hpp"
#include "adaptive/model.hpp"
#include "stages/symbols.hpp"

PYF_BEGIN_TARGET

// Symbols by level of context.
struct LevelCounts {
  std::uint32_t of[kContextLevels][kSymbols];
  double raw_bits, stored_bytes;
};

// Bits of symbols with a table of their own, for counts of `part` of all symbols.
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

// Joins neighbouring levels until at most `most` tables are left and no join saves bits. Returns their bits.
inline double merge_levels(const LevelCounts& counts, std::uint32_t most, double part, AdaptiveModel& model,
                           std::uint32_t (*merged)[kSymbols]) {
  std::uint32_t first[kContextLevels + 1], tables = 0;
  double bits[kContextLevels], joined[kContextLevels];
  for (std::uint32_t level = 0; level < kContextLevels; ++level) {
    std::uint64_t any = 0;
    for (std::uint32_t s = 0; s < kSymbols; ++s) any += counts.of[level][s];
    if (any == 0) continue;
    std::memcpy(merged[tables], counts.of[level], sizeof merged[0]);
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
  model.tables = tables;
  double sum = 0;
  for (std::uint32_t t = 0; t < tables; ++t) {
    sum += bits[t];
    const std::uint32_t end = t + 1 < tables ? first[t + 1] : kContextLevels;
    for (std::uint32_t level = t == 0 ? 0 : first[t]; level < end; ++level)
      model.table_of_level[level] = static_cast<std::uint8_t>(t);
  }
  return sum;
}

PYF_END_TARGET
