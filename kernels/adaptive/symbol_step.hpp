// SPDX-License-Identifier: BSD-3-Clause
// A step of all lanes of a stream (docs/format.md, section 14.5): symbols from states, and the codes of usual ones.
#pragma once

#include <cstdint>

#include "adaptive/layout.hpp"
#include "adaptive/tables.hpp"

PYF_BEGIN_TARGET

struct SymbolStep {
  Ints symbol, shift, low;  // shift: raw bits; low: those that came with the symbol
  Ints next;                // states, before they are refilled

  // Symbols with more raw bits, and escapes.
  PYF_ON_LANES Ints unusual() const { return symbol >= Ints::all(4 * (kWithSymbol + 3)); }
  // Of other symbols.
  PYF_ON_LANES Ints codes() const {
    const Ints direct = symbol < Ints::all(kDirectSymbols), within = shift & Ints::all(31);
    const Ints number = select(direct, symbol, ((Ints::all(4) + (symbol & Ints::all(3))) << within) + low);
    return (number >> Ints::all(1)) ^ (Ints::all(0) - (number & Ints::all(1)));
  }
};

// Lanes that are not active keep their states.
PYF_ON_LANES SymbolStep take_symbols(const std::uint32_t* first_of_level, const std::uint32_t* slots, const Ints& x,
                                     const Ints& level, const Ints& active) {
  SymbolStep s;
  const Ints first = gather(first_of_level, level);
  const Ints entry = gather(slots, first + (x & Ints::all((1 << kTableBits) - 1)));
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
