// SPDX-License-Identifier: BSD-3-Clause
// Residuals as symbols (docs/format.md, section 8.4): what a value becomes, and which table it is coded with. The
// arithmetic of CPU and GPU, one value at a time.
#pragma once

#include <bit>
#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/tile_shape.hpp"

namespace pyfilter {

// Symbols 0 to 15 are the residuals themselves; four to an octave follow, with raw bits: up to 127 for residuals of 32
// bits, up to 255 for 64. 255 is an escape: a symbol with eight raw bits comes behind it.
inline constexpr std::uint32_t kDirectSymbols = 16, kEscape = 255, kSymbols = 256, kEscapeBits = 8;

// Raw bits of a symbol; not for the escape.
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
// The same of residuals below 2^31 in a way that vectorises: above 15 the exponent and two bits of a binary32. Bits
// that it has no room for must not round it up: of the highest of them the first is taken away.
KFN std::uint32_t symbol_of_narrow(std::uint32_t residual) {
  const std::uint32_t kept = residual & ~(residual >> 24);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(kept)));
  return residual < kDirectSymbols ? residual : (bits >> 21) - (4 * 131 - kDirectSymbols);
}
// The same of residuals below 2^32, for processors that convert such numbers.
KFN std::uint32_t symbol_of_word(std::uint32_t residual) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(residual & ~(residual >> 24)));
  return residual < kDirectSymbols ? residual : (bits >> 21) - (4 * 131 - kDirectSymbols);
}
// The same of residuals below 2^23, without a choice: of residual + 1/2, which has the same first bits, the lower
// symbols lie above the residual.
constexpr KFN std::uint32_t symbol_of_small(std::uint32_t residual) {
  const std::uint32_t bits =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(residual)) + 0.5f);
  const std::uint32_t above = (bits >> 21) - (4 * 131 - kDirectSymbols);
  return above < residual ? above : residual;
}
// Symbols that residuals of this many bits can have.
constexpr KFN std::uint32_t symbols_of_width(std::uint32_t code_bits) { return 4 * code_bits; }

// Raw bits that are coded together with their symbol, and those that a further step of a stream takes.
inline constexpr std::uint32_t kInnerBits = 5, kStepBits = 15;

// The level of two neighbours: half octaves of their sum. 0 stands for 0; the highest is 49.
inline constexpr std::uint32_t kLevelCap = 1u << 23, kLevels = 50;
// `sum` of two neighbours of up to kLevelCap each: exact as a binary32, whose exponent and first bit it is.
KFN std::uint32_t level_of(std::uint32_t sum) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(sum))) >> 22;
  return bits < 253 ? 0 : bits - 253;
}
template <class Code>
KFN std::uint32_t capped(Code residual) {
  return residual < kLevelCap ? static_cast<std::uint32_t>(residual) : kLevelCap;
}

// Which table a level means: levels, or octaves of them, from `base` on, `count` tables in all. A block's first value
// has no neighbours and table `count`.
struct Contexts {
  std::uint32_t octaves = 0, base = 0, count = 1;

  constexpr KFN std::uint32_t of_level(std::uint32_t level) const {
    const std::uint32_t step = octaves != 0 ? (level + 1) / 2 : level;
    const std::uint32_t above = step > base ? step - base : 0;
    return above < count ? above : count - 1;
  }
};
// of_level() of level_of() in one: from the sum of two neighbours.
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

// The two neighbours of each position in its block: positions before it that are near. Position 0 has none.
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
    if (found == 1) {  // the one behind it, or beside it at the start of a row
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
