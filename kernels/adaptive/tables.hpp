// SPDX-License-Identifier: BSD-3-Clause
// Tables of a chunk's streams, made from its model, and the symbols of codes (docs/format.md, section 14.5).
#pragma once

#include <cstdint>

#include "adaptive/model.hpp"
#include "core/bits.hpp"
#include "stages/entropy/rans_step.hpp"
#include "stages/entropy/slots.hpp"
#include "stages/symbols.hpp"

namespace pyfilter {

// A code's symbol is that of its zigzag number (stages/symbols.hpp), of up to kCodeBits bits. The escape has eight raw
// bits: a symbol that is not in the table, kExactSymbol for a verbatim value, or kOriginSymbol for a stored r.
inline constexpr std::uint32_t kCodeBits = 20, kMostSymbol = 4 * kCodeBits - 1;
inline constexpr std::uint32_t kExactSymbol = 254, kOriginSymbol = 253;
// The most raw bits that are coded together with a symbol: with more, one refill might not be enough.
inline constexpr std::uint32_t kWithSymbol = 3;

KFN std::uint32_t bits_with(std::uint32_t symbol) {
  const std::uint32_t raw = raw_bits(symbol);
  return raw < kWithSymbol ? raw : kWithSymbol;
}
KFN std::uint32_t bits_behind(std::uint32_t symbol) { return raw_bits(symbol) - bits_with(symbol); }

struct AdaptiveTables {
  std::uint32_t first_of_level[kContextLevels] = {};  // index of the first slot of a level's table
  alignas(64) std::uint32_t slots[kMostTablesOfModel << kTableBits] = {};
  SymbolEntry symbols[kMostTablesOfModel * kSymbols] = {};
};

inline void make_adaptive_tables(const AdaptiveModel& model, bool encoding, AdaptiveTables& tables) {
  for (std::uint32_t level = 0; level < kContextLevels; ++level)
    tables.first_of_level[level] = model.table_of_level[level] * (encoding ? kSymbols : 1u << kTableBits);
  for (std::uint32_t t = 0; t < model.tables; ++t) {
    if (encoding)
      make_symbol_entries(model.table[t], tables.symbols + t * kSymbols);
    else
      make_slots(model.table[t], tables.slots + (t << kTableBits));
  }
}

}  // namespace pyfilter
