// SPDX-License-Identifier: BSD-3-Clause
// Counts the symbols of rounds by their indices (round_indices.hpp). Each table and symbol has four counters. An
// increment waits for the previous increment of the same counter, and in most chunks few symbols have most of the
// values.
#pragma once

#include <cstdint>
#include <cstring>

#include "lorenzo/cpu/round_indices.hpp"
#include "lorenzo/cpu/simd/byte_rounds.hpp"
#include "lorenzo/model.hpp"

PYF_BEGIN_TARGET

inline constexpr std::uint32_t kNarrowSymbols = 32, kNarrowLevels = 20;
static_assert(symbol_of_small(kNarrowEnd - 1) < kNarrowSymbols);
static_assert(kNarrowLevels > 2 * 9);  // two residuals below 2^8
inline constexpr IndexOf kNarrowCounted{true, 5, 0}, kMediumCounted{true, 8, 0};
// Counting uses a table for each level; the table of first values follows them.
inline constexpr Contexts kEveryLevel{0, 0, kLevels}, kEveryNarrowLevel{0, 0, kNarrowLevels};

// Counts narrow rounds of a tile by index, and adds all other rounds to `counts`.
class TileCounts {
 public:
  KFN void add(const Neighbours& near, std::uint32_t lanes, const ByteRows& rows) {
    RoundIndices indices;
    if (!any_) std::memset(of_, 0, sizeof of_);
    any_ = true;
    index_bytes<kNarrowCounted>(near, kEveryNarrowLevel, lanes, rows, indices);
    const std::uint32_t whole = (lanes + 3) / 4 * 4;
    for (const auto& index : indices.of)
      for (const std::uint16_t* at = index; at != index + whole; at += 4)
        for (std::uint32_t k = 0; k < 4; ++k) ++of_[k][at[k]];
    of_[0][0] -= 32 * (whole - lanes);  // may wrap; the sum of all four does not
  }
  static KFN void add(const Neighbours& near, std::uint32_t lanes, const std::uint32_t (&rows)[32][kLaneCount],
                      SymbolCounts& counts) {
    RoundIndices indices;
    index_round<kMediumCounted>(near, kEveryLevel, lanes, rows, indices);
    for (const auto& index : indices.of)
      for (std::uint32_t l = 0; l < lanes; ++l) ++counts.of[index[l]];
  }
  void finish(SymbolCounts& counts) const {
    if (!any_) return;
    for (std::uint32_t level = 0; level <= kNarrowLevels; ++level) {
      const std::uint32_t from = level * kNarrowSymbols;
      std::uint32_t* const to = counts.of + (level == kNarrowLevels ? kLevels : level) * kSymbols;
      for (std::uint32_t s = 0; s < kNarrowSymbols; ++s)
        to[s] += of_[0][from + s] + of_[1][from + s] + of_[2][from + s] + of_[3][from + s];
    }
  }

 private:
  bool any_ = false;
  alignas(64) std::uint32_t of_[4][(kNarrowLevels + 1) * kNarrowSymbols];
};

PYF_END_TARGET
