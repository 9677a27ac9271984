// SPDX-License-Identifier: BSD-3-Clause
// One step of all lanes of a stream (docs/format.md, section 14.5): takes symbols from states, and computes the codes
// of usual symbols.
#pragma once

#include <cstdint>

#include "adaptive/layout.hpp"
#include "adaptive/tables.hpp"

PYF_BEGIN_TARGET

struct SymbolStep {
  Ints symbol, shift, low;  // shift: number of raw bits; low: raw bits coded together with the symbol
  Ints next;                // states before refilling

  // Lanes with escapes, or with symbols that have more raw bits than kWithSymbol.
  PYF_ON_LANES Ints unusual() const { return symbol >= Ints::all(4 * (kWithSymbol + 3)); }
  // Codes of all other lanes.
  PYF_ON_LANES Ints codes() const {
    const Ints direct = symbol < Ints::all(kDirectSymbols), within = shift & Ints::all(31);
    const Ints number = select(direct, symbol, ((Ints::all(4) + (symbol & Ints::all(3))) << within) + low);
    return (number >> Ints::all(1)) ^ (Ints::all(0) - (number & Ints::all(1)));
  }
};

PYF_ON_LANES Ints slot_entries(const std::uint32_t* slots, const Ints& first, const Ints& slot, const Ints&) {
  return gather(slots, first + slot);
}
// Inactive lanes keep their states. `slots`: of all tables; a GPU has some of them nearer (cuda/slots.cuh).
template <class Slots>
PYF_ON_LANES SymbolStep take_symbols(const std::uint32_t* first_of_level, const Slots& slots, const Ints& x,
                                     const Ints& level, const Ints& active) {
  SymbolStep s;
  const Ints first = gather(first_of_level, level);
  const Ints entry = slot_entries(slots, first, x & Ints::all((1 << kTableBits) - 1), active);
  s.symbol = entry & Ints::all(0xFF);
  s.shift = select(s.symbol < Ints::all(kDirectSymbols), Ints::all(0), (s.symbol >> Ints::all(2)) - Ints::all(2));
  const Ints raw =
      select(s.shift < Ints::all(kWithSymbol), s.shift, Ints::all(kWithSymbol)) & (s.symbol < Ints::all(kEscape));
  const Ints full = ((entry >> Ints::all(8)) & Ints::all(0xFFF)) * (x >> Ints::all(kTableBits)) +
                    ((entry >> Ints::all(20)) & Ints::all(0xFFF));
  s.low = full & ((Ints::all(1) << raw) - Ints::all(1));
  s.next = select(active, full >> raw, x);
  return s;
}

PYF_END_TARGET
