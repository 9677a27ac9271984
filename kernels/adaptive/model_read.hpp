// SPDX-License-Identifier: BSD-3-Clause
// Models from bits (docs/format.md, section 14.2), for CPU and GPU.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "adaptive/model.hpp"
#include "core/bits.hpp"
#include "core/wire.hpp"

namespace pyfilter {

inline constexpr std::uint32_t kScaleBits = 6, kWidthBits = 4, kLevelBits = 7;

KFN std::uint32_t parities(const PassModel& pass) { return pass.refining ? 8 : 1; }
KFN bool parity_exists(const PassModel& pass, TileKind kind, std::uint32_t parity) {
  if (!pass.refining) return parity == 0;
  return parity != 0 && parity < (1u << static_cast<std::uint32_t>(kind));
}

KFN std::int32_t read_weight(BitReader& bits) {
  const std::uint32_t width = bits.take(kWidthBits);
  if (width == 0) return 0;
  const auto size = static_cast<std::int32_t>(1u << (width - 1) | bits.take(width - 1));
  return bits.take(1) != 0 ? -size : size;
}

inline PYF_MODEL bool read_pass(BitReader& bits, TileKind kind, const TapList& list, PassModel& pass) {
  pass.unit = bits.take(2);
  pass.classes = bits.take(3) + 1;
  if (pass.refining && pass.classes > 2) return false;
  for (std::uint32_t i = 0; i + 1 < pass.classes; ++i) {
    pass.thresholds[i] = std::bit_cast<float>(bits.take(16) << 16);
    if (!(pass.thresholds[i] >= 0)) return false;
  }
  pass.taps = 0;
  for (std::uint32_t c = 0; c < list.count; ++c)
    if (bits.take(1) != 0) pass.tap[pass.taps++] = static_cast<std::uint8_t>(c);
  for (std::uint32_t set = 0; set < kSets; ++set) {
    if (!set_exists(pass, kind, set)) continue;
    const std::uint32_t rest = rest_tap(list, pass.refining, kind, set);
    std::int32_t sum = 0;
    for (std::uint32_t i = 0; i < pass.taps; ++i) {
      if (pass.tap[i] == rest || !tap_allowed(pass, kind, set, list.of[pass.tap[i]])) continue;
      if (bits.take(1) != 0) pass.weight[i][set] = read_weight(bits);
      sum += pass.weight[i][set];
    }
    bool has_rest = rest == kNoTap;
    for (std::uint32_t i = 0; i < pass.taps; ++i)
      if (pass.tap[i] == rest) {
        pass.weight[i][set] = kWeightOne - sum;
        has_rest = true;
      }
    if (!has_rest) return false;
    pass.factor[set] = static_cast<std::uint8_t>(bits.take(kScaleBits));
  }
  for (std::uint32_t p = 0; p < parities(pass); ++p) {
    if (!parity_exists(pass, kind, p)) continue;
    for (std::uint32_t f = 0; f < kFeatures; ++f) pass.scale[f][p] = static_cast<std::uint8_t>(bits.take(kScaleBits));
  }
  return !bits.failed;
}

inline PYF_MODEL bool read_tables(BitReader& bits, AdaptiveModel& model) {
  model.tables = bits.take(4) + 1;
  if (model.tables > kMostTablesOfModel) return false;
  std::uint32_t level = 0;
  for (std::uint32_t t = 0; t < model.tables; ++t) {
    const std::uint32_t end = t + 1 < model.tables ? bits.take(kLevelBits) : kContextLevels;
    if (end <= level || end > kContextLevels) return false;
    for (; level < end; ++level) model.table_of_level[level] = static_cast<std::uint8_t>(t);
  }
  for (std::uint32_t t = 0; t < model.tables; ++t)
    if (!read_frequencies<kTableBits>(bits, model.table[t]) || model.table[t].of[kEscape] == 0) return false;
  return !bits.failed;
}

// Reads a model but for its floats; false where the bytes are damaged. The model is empty, its kind set.
inline PYF_MODEL bool read_model_integers(const std::uint8_t* from, std::size_t available, const TapList& causal,
                                          const TapList& refining, AdaptiveModel& model, std::size_t* bytes) {
  if (available < 8) return false;
  const auto words = load_le<std::uint32_t>(from);
  if (words < 2 || words > kMostModelBytes / 4 || 4 * std::size_t{words} > available) return false;
  *bytes = 4 * std::size_t{words};
  BitReader bits{from + 4, 8 * (*bytes - 4)};
  model.levels = bits.take(2);
  model.masks = bits.take(1) != 0;
  for (std::uint32_t p = 0; p <= model.levels; ++p) {
    PassModel& pass = model.passes[p];
    pass.refining = p != 0;
    pass.log2 = model.levels - p;
    if (!read_pass(bits, model.kind, pass.refining ? refining : causal, pass)) return false;
  }
  if (!read_tables(bits, model)) return false;
  for (std::uint32_t c = 0; c < kMaskContexts; ++c) {
    model.mask_frequency[c] = 512;
    if (model.masks && bits.take(1) != 0)
      model.mask_frequency[c] = static_cast<std::uint16_t>(bits.take(kProbabilityBits));
    if (model.mask_frequency[c] == 0) return false;
  }
  if (bits.failed || bits.end - bits.bits >= 32) return false;
  while (bits.bits < bits.end)
    if (bits.take(1) != 0) return false;
  return true;
}

// Completes the floats of a set of a pass.
KFN void finish_set(PassModel& pass, std::uint32_t set) {
  for (std::uint32_t i = 0; i < kMostCandidates; ++i)
    pass.weights[i][set] = static_cast<float>(pass.weight[i][set]) * (1.0f / kWeightOne);
  for (std::uint32_t f = 0; f < kFeatures; ++f)
    pass.scales[f][set] = scale_of(pass.scale[f][pass.refining ? set % 8 : 0], kScaleOne);
  pass.factors[set] = scale_of(pass.factor[set], kFactorOne);
}

}  // namespace pyfilter
