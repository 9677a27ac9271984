// SPDX-License-Identifier: BSD-3-Clause
// The model of a chunk in Lossless's form `ratio` (docs/format.md, section 15). It has the map from values to numbers,
// the differences, their bins, and the tables of frequencies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lossless/numbers.hpp"
#include "stages/entropy/tables.hpp"

namespace pyfilter {

// Symbols 0 to kMostBins - 1 are bins. The escape is followed by all bits of the difference.
inline constexpr std::uint32_t kMostBins = 240, kBinLevels = 64, kMostBinTables = 12, kBinTableBits = 11;
inline constexpr std::uint32_t kMostStrides = 4, kDistances = 4;
inline constexpr std::uint32_t kLeastDistance = 32;  // lanes of a step; contexts use differences of earlier steps
inline constexpr std::uint32_t kMostUnitValues = 1u << 18, kMostDistance = 1u << 18;
// Differences along strides of at most 8 values have no predecessor at the start of a unit; the payload stores these.
inline constexpr std::uint32_t kShortStride = 8;
inline constexpr std::uint32_t kUniformStream = 0x80000000u;
inline constexpr std::size_t kStreamHead = 8;  // bytes of a stream's head in a unit

// Bins of differences: lowest number, bits of the offset, and the level that selects tables of later neighbours.
struct BinModel {
  bool zigzag = true;  // false: differences are ordered as signed numbers, from the lowest one on
  std::uint32_t bins = 0;
  std::uint64_t lowest[kSymbols] = {};
  std::uint8_t bits[kSymbols] = {}, level[kSymbols] = {};
  std::uint32_t tables = 0;
  std::uint8_t table_of_level[kBinLevels] = {};
  Frequencies table[kMostBinTables];
};

// The number behind the last one of a bin, modulo 2^64.
KFN std::uint64_t end_of_bin(std::uint64_t lowest, std::uint32_t bits) {
  return lowest + (bits < 64 ? std::uint64_t{1} << bits : 0);
}
KFN std::uint64_t end_of_bin(const BinModel& model, std::uint32_t s) {
  return end_of_bin(model.lowest[s], model.bits[s]);
}

// A model without the memory of its list of values.
struct BinnedParts {
  NumberMap map;
  std::uint32_t unit_values = 0;
  std::uint32_t strides = 0, stride[kMostStrides] = {};  // number[i] - number[i - stride], for each stride in turn
  bool contexts = false;
  std::uint32_t distance[kDistances] = {};  // distances of the neighbours whose levels select a table
  BinModel streams[2];                      // [0] of differences, [1] of remainders

  KFN std::uint32_t stored_first() const {
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < strides; ++i) sum += stride[i] <= kShortStride ? stride[i] : 0;
    return sum;
  }
};
struct BinnedModel : BinnedParts {
  std::vector<std::uint64_t> dictionary;
  std::vector<std::uint32_t> places;  // of the list's values, for an encoder (train/number_values.hpp)
};

// A bin as a decoder needs it, in one load. Symbols without a bin have kNoBin bits.
inline constexpr std::uint8_t kNoBin = 255;
template <class U>
struct alignas(2 * sizeof(U)) DecodedBin {
  U lowest;
  std::uint8_t bits, level;
};
template <class U>
KFN DecodedBin<U> decoded_bin(const BinModel& bins, std::uint32_t symbol) {
  const bool exists = symbol < bins.bins || symbol == kEscape;
  return {static_cast<U>(bins.lowest[symbol]), exists ? bins.bits[symbol] : kNoBin, bins.level[symbol]};
}

// The head of a stream in its unit. `words`: the number of 16-bit words, or kUniformStream plus a symbol.
struct StreamHead {
  std::uint32_t words = 0, offset_bytes = 0;

  KFN bool is_uniform() const { return (words & kUniformStream) != 0; }
  // Whether `count` values can have this symbol.
  KFN bool fits_uniform(const BinModel& bins, std::uint32_t count) const {
    const std::uint32_t symbol = words & ~kUniformStream;
    if (offset_bytes != 0) return false;
    return count == 0 ? symbol == 0 : symbol < bins.bins && bins.bits[symbol] == 0;
  }
};

}  // namespace pyfilter
