// SPDX-License-Identifier: BSD-3-Clause
// The model of a chunk in Lossless's form `ratio`: how values are numbers, their differences, the bins of these and the
// tables of frequencies (docs/format.md, section 15).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lossless/numbers.hpp"
#include "stages/entropy/tables.hpp"

namespace pyfilter {

// Bins are symbols 0 to kMostBins - 1; the escape stands for a difference with all its bits.
inline constexpr std::uint32_t kMostBins = 240, kBinLevels = 64, kMostBinTables = 12, kBinTableBits = 11;
inline constexpr std::uint32_t kMostStrides = 4, kDistances = 4;
inline constexpr std::uint32_t kLeastDistance = 32;  // lanes of a step: their neighbours are in earlier steps
inline constexpr std::uint32_t kMostUnitValues = 1u << 18, kMostDistance = 1u << 18;
// Strides of at most so many values: the first differences of a unit, one for each value of such strides, are stored.
inline constexpr std::uint32_t kShortStride = 8;

// Bins of differences: lowest number, bits of the offset, and the level that neighbours take a table by.
struct BinModel {
  bool zigzag = true;  // else differences are taken as signed numbers, from the lowest on
  std::uint32_t bins = 0;
  std::uint64_t lowest[kSymbols] = {};
  std::uint8_t bits[kSymbols] = {}, level[kSymbols] = {};
  std::uint32_t tables = 0;
  std::uint8_t table_of_level[kBinLevels] = {};
  Frequencies table[kMostBinTables];
};

struct BinnedModel {
  NumberMap map;
  std::vector<std::uint64_t> dictionary;
  std::uint32_t unit_values = 0;
  std::uint32_t strides = 0, stride[kMostStrides] = {};  // number i less number i - stride, one after the other
  bool contexts = false;
  std::uint32_t distance[kDistances] = {};  // neighbours whose levels choose a table
  BinModel streams[2];                      // of differences, of remainders

  std::uint32_t stored_first() const {
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < strides; ++i) sum += stride[i] <= kShortStride ? stride[i] : 0;
    return sum;
  }
};

std::size_t most_binned_model_bytes(const BinnedModel& model);
// Writes the model; returns its bytes, a multiple of 4.
std::size_t write_binned_model(const BinnedModel& model, std::uint8_t* out);
// Reads a model whose map has the dtype's fields set; false where the bytes are damaged.
bool read_binned_model(const std::uint8_t* from, std::size_t available, BinnedModel& model, std::size_t* bytes);

}  // namespace pyfilter
