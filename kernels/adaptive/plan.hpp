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

namespace pyfilter {

// Streams span tiles until they have about 12 KB, so that 128 bytes of states are 1 %.
inline constexpr std::uint32_t kMostTilesLog2 = 4;
inline constexpr std::uint64_t kStreamBits = 12288 * 8;

// Steps of a tile in the order of coding (cpu/stream.hpp).
struct StepRecord {
  std::uint32_t coded;  // lanes with a value of this step
  std::uint32_t masks;  // whether flags say which of them are special
};
// A tile that was coded for its counts, until its unit is written.
struct KeptTile {
  std::uint64_t number = 0;
  std::vector<std::uint32_t> values;
  std::vector<StepRecord> steps;
  std::vector<std::uint8_t> flags, stored;
  bool masks = false;
};
// So many tiles are counted, and not coded again.
inline constexpr std::uint64_t kMostCountedTiles = 64;

// A value is offset + step * r: r is what tiles compute with.
struct AdaptivePlan : Plan {
  AdaptiveGrid tiles;
  double offset = 0;
  std::uint64_t start = 0, stop = 0;  // of the values to decode
  // r and kind of all values: a decoder stores them here; an encoder keeps them, and the bits of their values, where a
  // value is still the same. r is in units of the origin's step, which is origin_scale of this one.
  float* decoded_r = nullptr;
  std::uint8_t* decoded_kinds = nullptr;
  const float* origin_r = nullptr;
  const std::uint8_t* origin_kinds = nullptr;
  const void* origin_values = nullptr;
  float origin_scale = 1;
  std::vector<KeptTile>* kept = nullptr;  // by number
  const AdaptiveModel* model = nullptr;
  const AdaptiveTables* tables = nullptr;
};

}  // namespace pyfilter
