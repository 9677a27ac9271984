// SPDX-License-Identifier: BSD-3-Clause
// The plan of a chunk in Lossless's form `ratio`, its tables, and the memory that a unit needs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/plan.hpp"
#include "lossless/binned_model.hpp"
#include "stages/entropy/slots.hpp"

namespace pyfilter {

struct BinTables {
  std::uint32_t first_of_level[kBinLevels] = {};
  alignas(64) std::uint32_t slots[kMostBinTables << kBinTableBits] = {};  // for decoding
  SymbolEntry symbols[kMostBinTables * kSymbols] = {};                    // for encoding
};

inline void make_bin_tables(const BinModel& model, bool encoding, BinTables& tables) {
  for (std::uint32_t level = 0; level < kBinLevels; ++level)
    tables.first_of_level[level] = model.table_of_level[level] * (encoding ? kSymbols : 1u << kBinTableBits);
  for (std::uint32_t t = 0; t < model.tables; ++t) {
    if (encoding)
      make_symbol_entries(model.table[t], tables.symbols + t * kSymbols);
    else
      make_slots(model.table[t], tables.slots + (t << kBinTableBits));
  }
}

struct BinnedPlan : Plan {
  const BinnedModel* model = nullptr;
  const BinTables* tables[2] = {};
};

// Room after a unit's last value, which vectors read and write. level_bytes() also has room before the first value, for
// the levels of its neighbours.
inline constexpr std::size_t kBeyondUnit = 64;
constexpr std::size_t level_bytes(std::size_t values) { return kMostDistance + values + kBeyondUnit; }
// Numbers (two arrays), remainders, levels, symbols, tables (2 bytes each), and the raw bits of a stream.
constexpr std::size_t binned_scratch_bytes(std::size_t values, std::size_t number_bytes) {
  return 3 * (values + kBeyondUnit) * number_bytes + level_bytes(values) + 3 * (values + kBeyondUnit) +
         values * (number_bytes + 1) + 16 * kBeyondUnit;
}
// An upper limit: a symbol has at most kBinTableBits bits, an escape 8 more; a state is refilled with 16 bits.
constexpr std::size_t most_binned_unit_bytes(std::size_t values, std::size_t number_bytes) {
  return 512 + 2 * values * (number_bytes + 3);
}

}  // namespace pyfilter
