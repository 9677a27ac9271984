// SPDX-License-Identifier: BSD-3-Clause
// Tables of streams whose frequencies have up to 12 bits: a decoder's entry for each slot, an encoder's entry for each
// symbol.
#pragma once

#include <cstdint>

#include "core/target.hpp"
#include "stages/entropy/tables.hpp"

namespace pyfilter {

// The entry of the slot with this rank among its symbol's slots.
KFN std::uint32_t slot_entry(std::uint32_t symbol, std::uint32_t frequency, std::uint32_t rank) {
  return symbol | frequency << 8 | rank << 20;
}
// Makes an entry for each of 2^Bits slots.
KFN void make_slots(const Frequencies& f, std::uint32_t* entries) {
  std::uint32_t slot = 0;
  for (std::uint32_t s = 0; s < kSymbols; ++s)
    for (std::uint32_t i = 0; i < f.of[s]; ++i) entries[slot++] = slot_entry(s, f.of[s], i);
}

// An encoder's entry: frequency, first slot, and the division by the frequency as a product (encode_entry()).
struct SymbolEntry {
  std::uint32_t reciprocal = 0;
  std::uint16_t frequency = 0, first = 0;
  std::uint32_t shift = 0;

  KFN std::uint32_t divided(std::uint32_t x) const {
    return static_cast<std::uint32_t>((std::uint64_t{x} * reciprocal) >> 31 >> shift);
  }
};
KFN SymbolEntry symbol_entry(std::uint32_t frequency, std::uint32_t first) {
  SymbolEntry e;
  if (frequency == 0) return e;
  e.frequency = static_cast<std::uint16_t>(frequency);
  e.first = static_cast<std::uint16_t>(first);
  while ((1u << e.shift) < frequency) ++e.shift;
  e.reciprocal = static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + e.shift)) + frequency - 1) / frequency);
  return e;
}
KFN void make_symbol_entries(const Frequencies& f, SymbolEntry* entries) {
  std::uint32_t first = 0;
  for (std::uint32_t s = 0; s < kSymbols; ++s) {
    entries[s] = symbol_entry(f.of[s], first);
    first += f.of[s];
  }
}

}  // namespace pyfilter
