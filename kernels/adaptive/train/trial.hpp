// SPDX-License-Identifier: BSD-3-Clause
// A predictor that is tried: its model, and what its symbols on sampled tiles are. Not part of the format.
#pragma once

#include <bit>
#include <cstdint>

#include "adaptive/model.hpp"
#include "adaptive/records.hpp"
#include "adaptive/tile.hpp"
#include "adaptive/train/contexts.hpp"
#include "stages/entropy/level_tables.hpp"

PYF_BEGIN_TARGET

// Symbols by level of context, bits behind them, bytes of stored values, and flags of special values by their context.
struct SymbolCounts {
  std::uint32_t of[kContextLevels][kSymbols];
  unsigned long long raw_bits, stored_bytes;
  std::uint32_t masks[kMaskContexts][2];
};
// Of each 4 * kCountedAtOnce symbols of a tile, kCountedAtOnce are counted where tiles are many.
inline constexpr std::uint32_t kCountedAtOnce = 256, kAllCountedTiles = 16;
// Tiles that are counted for a chunk's tables, at most.
inline constexpr std::uint64_t kMostCountedTiles = 64;

// The index of a record's count in SymbolCounts::of, row by row; adds the bits behind its symbol to *raw.
KFN std::uint32_t cell_of_record(std::uint32_t record, std::uint32_t* raw) {
  std::uint32_t symbol = kEscape;
  if (how_of(record) == kByCode) {
    symbol = symbol_of(number_of(record));
    *raw += raw_bits(symbol);
  }
  return level_of_record(record) * kSymbols + symbol;
}

// The activity of two neighbouring values: sixteenths of the logarithm of their difference in steps.
template <class T>
KFN std::uint32_t activity_of(T a, T b, float inverse) {
  const float size = static_cast<float>(b - a) * inverse, positive = size < 0 ? -size : size;
  return (std::bit_cast<std::uint32_t>(1 + (positive < kFarthest ? positive : 0)) - 0x3F800000u) >> 19;
}

template <class Sample>
struct SampleList {
  const Sample* of = nullptr;
  std::uint32_t count = 0;
};

struct Trial {
  AdaptiveModel model;
  SymbolCounts counts;
  SampleList<ContextSample> samples[kMostLevels + 1];
  double bits;
  std::uint32_t counted;  // tiles whose symbols are in `counts`
};
// A tile whose symbols are to be counted with the model of a trial.
struct CountJob {
  std::uint64_t tile;
  std::uint32_t trial;
};

// A predictor to try: its lattices, its classes of activity, and whether samples in calm regions have more weight.
struct Candidate {
  std::uint32_t levels, classes;
  bool weighted;
  std::uint32_t finer;  // times the lattice's log2: index of the unit of codes in kUnits
  bool chain;           // predict with the previous value alone, for values that repeat
};
inline constexpr std::uint32_t kMostTrials = 6, kTriedLevels = 2, kMostTaps = 24, kFewTaps = 14, kFewCodeTaps = 9;

// Predictors to try: four regressions, then two interpolations.
inline constexpr std::uint32_t kRegression = 0, kChain = 1, kUnweighted = 2, kRegressionOfClasses = 3,
                               kInterpolation = 4, kSecondInterpolation = 5;
KFN Candidate candidate_of(std::uint32_t i) {
  return i == kRegression            ? Candidate{0, 1, true, 0, false}
         : i == kChain               ? Candidate{0, 1, true, 0, true}
         : i == kUnweighted          ? Candidate{0, 1, false, 0, false}
         : i == kRegressionOfClasses ? Candidate{0, 4, true, 0, false}
         : i == kInterpolation       ? Candidate{1, 1, true, 1, false}
                                     : Candidate{2, 2, true, 0, false};
}
// Whether the caller's choice leaves a candidate open.
KFN bool is_open(const AdaptiveChoice& choice, std::uint32_t i) {
  if (i < kInterpolation) return choice.predictor != 2 && (i != kUnweighted || !choice.fast);
  return choice.predictor != 1 && (i == kInterpolation || !choice.fast);
}

PYF_END_TARGET
