// SPDX-License-Identifier: BSD-3-Clause
// Residuals as symbols (docs/format.md, section 8.4): the symbol and raw bits of a residual, and the table it is coded
// with. CPU and GPU use the same arithmetic, one value at a time.
#pragma once

#include <bit>
#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/tile_shape.hpp"

namespace pyfilter {

// Symbols 0 to 15 are the residuals 0 to 15. Each octave above has four symbols with raw bits, up to symbol 127 for
// residuals of 32 bits, 255 for 64 bits. 255 is the escape: the true symbol follows as eight raw bits.
inline constexpr std::uint32_t kDirectSymbols = 16, kEscape = 255, kSymbols = 256, kEscapeBits = 8;

// The number of raw bits of a symbol other than the escape.
constexpr KFN std::uint32_t raw_bits(std::uint32_t symbol) { return symbol < kDirectSymbols ? 0 : symbol / 4 - 2; }
template <class Code>
constexpr KFN Code smallest_of(std::uint32_t symbol) {
  return symbol < kDirectSymbols ? Code{symbol} : static_cast<Code>(Code{4 + symbol % 4} << raw_bits(symbol));
}
template <class Code>
KFN std::uint32_t symbol_of(Code residual) {
  if (residual < kDirectSymbols) return static_cast<std::uint32_t>(residual);
  const int width = bit_width(residual);
  return static_cast<std::uint32_t>(4 * width) - 8 + static_cast<std::uint32_t>(residual >> (width - 3));
}
// symbol_of() for residuals below 2^31 in a form that vectorises: above 15 the symbol is the exponent and two fraction
// bits of a binary32. A binary32 holds 24 bits: the highest bit below these is cleared, so that the conversion does not
// round up.
KFN std::uint32_t symbol_of_narrow(std::uint32_t residual) {
  const std::uint32_t kept = residual & ~(residual >> 24);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(kept)));
  return residual < kDirectSymbols ? residual : (bits >> 21) - (4 * 131 - kDirectSymbols);
}
// symbol_of() for residuals below 2^32, for processors that convert unsigned 32-bit numbers.
KFN std::uint32_t symbol_of_word(std::uint32_t residual) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(residual & ~(residual >> 24)));
  return residual < kDirectSymbols ? residual : (bits >> 21) - (4 * 131 - kDirectSymbols);
}
// symbol_of() for residuals below 2^23 without a branch: residual + 1/2 has the same leading bits. Below 16 the formula
// gives at least the residual, so the minimum of both is the symbol.
constexpr KFN std::uint32_t symbol_of_small(std::uint32_t residual) {
  const std::uint32_t bits =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(residual)) + 0.5f);
  const std::uint32_t above = (bits >> 21) - (4 * 131 - kDirectSymbols);
  return above < residual ? above : residual;
}
// The number of symbols that residuals of this many bits can have.
constexpr KFN std::uint32_t symbols_of_width(std::uint32_t code_bits) { return 4 * code_bits; }

// Raw bits coded together with their symbol, and raw bits of each further step of a stream.
inline constexpr std::uint32_t kInnerBits = 5, kStepBits = 15;

// The level of two neighbours: half octaves of their sum. Sum 0 has level 0; the highest level is 49.
inline constexpr std::uint32_t kLevelCap = 1u << 23, kLevels = 50;
// The level of `sum`, of two neighbours of up to kLevelCap each. The sum is exact in a binary32; the level is its
// exponent and first fraction bit.
KFN std::uint32_t level_of(std::uint32_t sum) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(sum))) >> 22;
  return bits < 253 ? 0 : bits - 253;
}
template <class Code>
KFN std::uint32_t capped(Code residual) {
  return residual < kLevelCap ? static_cast<std::uint32_t>(residual) : kLevelCap;
}

// Maps a level to a table: `count` tables of levels or octaves, from `base` on. A block's first value has no neighbours
// and uses table `count`.
struct Contexts {
  std::uint32_t octaves = 0, base = 0, count = 1;

  constexpr KFN std::uint32_t of_level(std::uint32_t level) const {
    const std::uint32_t step = octaves != 0 ? (level + 1) / 2 : level;
    const std::uint32_t above = step > base ? step - base : 0;
    return above < count ? above : count - 1;
  }
};
// Table of a sum of two neighbours: level_of() and of_level() in one lookup.
struct TableOfSum {
  std::uint32_t shift, top;
  std::int32_t offset;

  explicit KFN TableOfSum(const Contexts& c)
      : shift(22 + c.octaves),
        top(c.count - 1),
        offset((c.octaves != 0 ? 126 : 253) + static_cast<std::int32_t>(c.base)) {}
  KFN std::uint32_t operator()(std::uint32_t sum) const {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(sum)));
    const std::int32_t table = static_cast<std::int32_t>(bits >> shift) - offset;
    const std::uint32_t above = table > 0 ? static_cast<std::uint32_t>(table) : 0;
    return above < top ? above : top;
  }
};
inline constexpr std::uint32_t kMostContexts = 12, kMostTables = kMostContexts + 1;

// The two neighbours of each position in its block: nearby positions before it. Position 0 has none.
struct Neighbours {
  std::uint8_t first[32] = {}, second[32] = {};
};
template <int S>
constexpr Neighbours make_neighbours() {
  using Tile = TileShape<S>;
  constexpr std::uint32_t kX = Tile::kBlockX, kXY = Tile::kBlockX * Tile::kBlockY;
  Neighbours n;
  for (std::uint32_t i = 1; i < 32; ++i) {
    const std::uint32_t x = i % kX, y = i % kXY / kX, z = i / kXY;
    std::uint32_t near[3] = {}, found = 0;
    if (S == kColumns) {  // a block is a line along y
      near[found++] = i - 1;
    } else {
      if (x > 0) near[found++] = i - 1;
      if (y > 0) near[found++] = i - kX;
      if (z > 0) near[found++] = i - kXY;
    }
    if (found == 1) {  // the position behind it, or beside it at the start of a row
      const bool line = S == kColumns || x > 0;
      near[1] = line ? near[0] - (S == kColumns ? near[0] > 0 : x > 1) : near[0] + 1;
    }
    n.first[i] = static_cast<std::uint8_t>(near[0]);
    n.second[i] = static_cast<std::uint8_t>(near[1]);
  }
  return n;
}
template <int S>
inline constexpr Neighbours kNeighbours = make_neighbours<S>();

}  // namespace pyfilter
