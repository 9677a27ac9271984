// SPDX-License-Identifier: BSD-3-Clause
// The plan of a chunk that the codec Adaptive encodes or decodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "adaptive/grid.hpp"
#include "adaptive/model.hpp"
#include "adaptive/tables.hpp"
#include "core/plan.hpp"
#include "stages/entropy/packed_states.hpp"

namespace pyfilter {

inline constexpr std::size_t kMostSmallBytes = 4096;  // of payloads that a codec without tables may beat

// Streams span tiles until they have 3 KB: a unit costs some 55 bytes more than its symbols. With 1.5 KB files would be
// 1.1 % larger at 1e-2 and 0.6 % at 1e-3, and GPUs would decode them 1.1 to 1.6 times as fast. Small frames, which come
// many at a time, have longer streams.
inline constexpr std::uint32_t kMostTilesLog2 = 4;
inline constexpr double kStreamBits = 3072 * 8, kLongStreamBits = 2 * kStreamBits, kSmallFrameBits = 4 * kStreamBits;

// The logarithm of the number of tiles in a unit of a chunk with so many bits.
KFN std::uint32_t unit_log2_of(double bits, std::uint64_t tiles) {
  const double of_tile = bits / static_cast<double>(tiles),
               wanted = bits < kSmallFrameBits ? kLongStreamBits : kStreamBits;
  std::uint32_t log2 = 0;
  while (log2 < kMostTilesLog2 && of_tile * (1u << log2) < wanted && (std::uint64_t{1} << log2) < tiles) ++log2;
  return log2;
}

// What a part begins with: its offset.
inline constexpr std::uint32_t kPayloadHead = 8;
// The axes of a frame whose payload begins with a head for each part.
inline constexpr std::uint8_t kPartAxes = 2;
inline constexpr std::uint8_t kPartsVersion = 11;  // the format version that brought them
// The head of a part. bits: the row of its axes, 16 bits; their rows, 13 bits; log2 of the tiles of a unit, 3 bits.
struct PartHead {
  std::uint32_t bits, words;  // words: the part's size

  KFN PartHead(std::uint32_t b, std::uint32_t w) : bits(b), words(w) {}
  KFN PartHead(const TileAxes& axes, std::uint32_t unit_log2, std::uint32_t w)
      : bits(axes.row | axes.rows << 16 | unit_log2 << 29), words(w) {}
  KFN TileAxes axes() const { return {bits & 0xFFFF, bits >> 16 & 0x1FFF}; }
  KFN std::uint32_t unit_log2() const { return bits >> 29; }
};
inline constexpr std::uint32_t kPartHead = 8;

// A unit: u32 number of 16-bit words of its stream, then bits: tiles with masks if the model has masks, states. Then
// words, and verbatim values.
inline constexpr std::uint32_t kUnitHead = 4;
inline constexpr std::uint32_t kMostUnitBitWords = most_state_words(kTileRows) + words_of_bits(1u << kMostTilesLog2);

// Other axes than the array's own must have this share of the estimated bits.
inline constexpr double kBetterAxes = 0.97;

// The caller's choices.
struct AdaptiveChoice {
  std::uint32_t predictor = 0;  // 0: auto, 1: regression, 2: interpolation
  bool fast = false;
};

// Steps of a tile in the order of coding (cpu/stream.hpp).
struct StepRecord {
  std::uint32_t coded;  // lanes with a value in this step
  std::uint32_t masks;  // whether flags tell which of these values are special
};
// A tile that was encoded to count its symbols; kept until its unit is written.
struct KeptTile {
  std::uint64_t number = 0;
  std::vector<std::uint32_t> values;
  std::vector<StepRecord> steps;
  std::vector<std::uint8_t> flags, stored;
  bool masks = false;
};
// What a trainer has found: a predictor with its weights, the activity of each tile, and estimated bits of all tiles.
struct AdaptiveTraining {
  AdaptiveModel model;
  std::vector<float> activity;
  double bits = 0;
};

// Tiles compute with r: a value is offset + step * r.
struct AdaptivePlan : Plan {
  AdaptiveGrid tiles;  // of a part
  double offset = 0;
  std::uint64_t start = 0, stop = 0;  // of the values to decode
  // r and kind of each value. A decoder of an origin stores them in decoded_*. An encoder reads origin_*, and keeps the
  // r of values whose bits equal origin_values. origin_r is in units of the origin's step; origin_scale converts to
  // this step.
  float* decoded_r = nullptr;
  std::uint8_t* decoded_kinds = nullptr;
  const float* origin_r = nullptr;
  const std::uint8_t* origin_kinds = nullptr;
  const void* origin_values = nullptr;
  float origin_scale = 1;
  std::vector<KeptTile>* kept = nullptr;  // sorted by number
  const AdaptiveModel* model = nullptr;
  const AdaptiveTables* tables = nullptr;
};

}  // namespace pyfilter
