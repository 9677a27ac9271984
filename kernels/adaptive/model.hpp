// SPDX-License-Identifier: BSD-3-Clause
// The model of a chunk (docs/format.md, section 14.3). For each pass: taps, their weights, thresholds of activity,
// weights of contexts. For all passes: the tables of symbols. A frame stores small integers, so that the floats that
// tiles compute with are exact.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "adaptive/grid.hpp"
#include "adaptive/taps.hpp"
#include "core/target.hpp"
#include "stages/entropy/tables.hpp"

namespace pyfilter {

// Sets of weights of a pass. Causal: one for each class of activity. From kBorderSets on: one for each combination of
// borders (1: first column, 2: first row, 4: first plane). Refining: one for each parity of the coordinates; plus 8 in
// active regions.
inline constexpr std::uint32_t kSets = 16, kBorderSets = 8, kMostClasses = 8, kMostLevels = 3;
inline constexpr std::uint32_t kWeightBits = 13;  // weights are multiples of 2^-13
inline constexpr std::int32_t kWeightOne = 1 << kWeightBits, kMostWeight = 4 * kWeightOne - 1;
// Features of a context: sizes of codes, range of values, distance of prediction and neighbour, and the constant 1.
inline constexpr std::uint32_t kFeatures = kCodeTaps + 3, kRangeFeature = kCodeTaps, kDistanceFeature = kCodeTaps + 1,
                               kConstantFeature = kCodeTaps + 2;
inline constexpr std::uint32_t kScaleSteps = 63;  // 0, or 2^((k - kScaleOne) / 4)
inline constexpr std::uint32_t kScaleOne = 52, kFactorOne = 32;

// Levels of m, four to an octave, from 2^-6 on. Several levels share a table.
inline constexpr std::uint32_t kContextLevels = 96, kMostTablesOfModel = 12;
inline constexpr std::uint32_t kTableBits = 12;  // symbol frequencies sum to 2^12
inline constexpr std::uint32_t kMaskContexts = 64;

// 2^((k - one) / 4); 0 for k = 0. A product of an exact power of two and one of four constants.
KFN float scale_of(std::uint32_t k, std::uint32_t one) {
  if (k == 0) return 0;
  const float parts[4] = {1.0f, 0x1.306fep+0f, 0x1.6a09e6p+0f, 0x1.ae89fap+0f};
  const std::int32_t quarter = static_cast<std::int32_t>(k) - static_cast<std::int32_t>(one);
  const std::int32_t octave = (quarter + 256) / 4 - 64;
  const std::uint32_t bits = static_cast<std::uint32_t>(127 + octave) << 23;
  return parts[static_cast<std::uint32_t>(quarter + 256) % 4] * std::bit_cast<float>(bits);
}

// The unit of a pass's codes, in steps: passes that others build on may be finer.
inline constexpr float kUnits[4] = {1.0f, 0.8125f, 0.65625f, 0.5f};

struct PassModel {
  bool refining = false;
  std::uint32_t log2 = 0;     // the lattice: every 2^log2-th value along each axis
  std::uint32_t unit = 0;     // codes count units of kUnits[unit]
  std::uint32_t classes = 1;  // classes of activity
  float thresholds[kMostClasses - 1] = {};
  std::uint32_t taps = 0;
  std::uint8_t tap[kMostCandidates] = {};  // indices of candidates, ascending
  std::int32_t weight[kMostCandidates][kSets] = {};
  std::uint8_t scale[kFeatures][8] = {};  // scales of features, by parity; causal: [f][0] for all sets
  std::uint8_t factor[kSets] = {};        // factors of m, by set

  // Weights, scales and factors as floats.
  alignas(64) float weights[kMostCandidates][kSets] = {};
  alignas(64) float scales[kFeatures][kSets] = {};
  alignas(64) float factors[kSets] = {};

  KFN bool has_feature(std::uint32_t feature) const {
    bool any = false;
    for (std::uint32_t set = 0; set < kSets; ++set) any = any || scales[feature][set] != 0;
    return any;
  }
};

struct AdaptiveModel {
  TileKind kind = TileKind::line;
  std::uint32_t levels = 0;  // number of refining passes
  PassModel passes[kMostLevels + 1];
  std::uint32_t tables = 1;
  std::uint8_t table_of_level[kContextLevels] = {};
  Frequencies table[kMostTablesOfModel];
  bool masks = false;
  std::uint16_t mask_frequency[kMaskContexts] = {};  // frequency of special values, of 2^10
};

// The candidate whose weight is 1 minus the other weights; kNoTap if a set predicts 0.
KFN std::uint32_t rest_tap(const TapList& list, bool refining, TileKind kind, std::uint32_t set) {
  if (refining) return list.near[(set & 1) != 0 ? 0 : (set & 2) != 0 ? 1 : 2];
  if (set < kBorderSets) return list.near[0];
  for (std::uint32_t axis = 0; axis < static_cast<std::uint32_t>(kind); ++axis)
    if ((set >> axis & 1) == 0) return list.near[axis];
  return kNoTap;
}
// Whether a set is used.
KFN bool set_exists(const PassModel& pass, TileKind kind, std::uint32_t set) {
  const std::uint32_t combinations = 1u << static_cast<std::uint32_t>(kind);
  if (pass.refining) return set % 8 != 0 && set % 8 < combinations && set / 8 < pass.classes;
  return set < kBorderSets ? set < pass.classes : set > kBorderSets && set - kBorderSets < combinations;
}

// Whether the values of a set may use a candidate.
KFN bool tap_allowed(const PassModel& pass, TileKind kind, std::uint32_t set, Tap tap) {
  if (pass.refining) {  // of a class whose turn is before, or at an earlier step (refine.hpp) of the same class
    const std::uint32_t own = set & 7;
    std::uint32_t there = own ^ static_cast<std::uint32_t>(tap.x & 1);
    if (kind != TileKind::line) there ^= static_cast<std::uint32_t>(tap.y & 1) << 1;
    if (kind == TileKind::volume) there ^= static_cast<std::uint32_t>(tap.z & 1) << 2;
    if (there == own) return tap.z == 0 && tap.x + tap.y < 0;
    const int odd = std::popcount(own), odd_there = std::popcount(there);
    return odd_there < odd || (odd_there == odd && there < own);
  }
  if (set < kBorderSets) return true;
  if ((set & 4) != 0 && tap.z < 0) return false;
  if ((set & 2) != 0 && tap.z == 0 && tap.y < 0) return false;
  return (set & 1) == 0 || tap.z != 0 || tap.y != 0;
}

// Computes the floats of a model.
void finish_model(AdaptiveModel& model);

inline constexpr std::size_t kMostModelBytes = 32768;
// Writes the model's integers; returns their size in bytes, a multiple of 4. `out` has kMostModelBytes.
std::size_t write_model(const AdaptiveModel& model, std::uint8_t* out);
// Reads a model and computes its floats; returns false if the bytes are damaged.
bool read_model(const std::uint8_t* from, std::size_t available, AdaptiveModel& model, std::size_t* bytes);

}  // namespace pyfilter
