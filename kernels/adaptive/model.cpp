// SPDX-License-Identifier: BSD-3-Clause
// Models to bits and back (model.hpp).
#include "adaptive/model.hpp"

#include <bit>
#include <cstring>

#include "core/bits.hpp"
#include "core/wire.hpp"

namespace pyfilter {
namespace {

constexpr std::uint32_t kScaleBits = 6, kWidthBits = 4, kLevelBits = 7;

std::uint32_t parities(const PassModel& pass) { return pass.refining ? 8 : 1; }
bool parity_exists(const PassModel& pass, TileKind kind, std::uint32_t parity) {
  if (!pass.refining) return parity == 0;
  return parity != 0 && parity < (1u << static_cast<std::uint32_t>(kind));
}

// A weight: its width, its bits below the first, its sign.
void write_weight(std::int32_t weight, BitWriter& bits) {
  const std::uint32_t size = static_cast<std::uint32_t>(weight < 0 ? -weight : weight);
  const auto width = static_cast<std::uint32_t>(bit_width(size));
  bits.put(width, kWidthBits);
  if (width == 0) return;
  bits.put(size & ((1u << (width - 1)) - 1), width - 1);
  bits.put(weight < 0 ? 1 : 0, 1);
}
std::int32_t read_weight(BitReader& bits) {
  const std::uint32_t width = bits.take(kWidthBits);
  if (width == 0) return 0;
  const auto size = static_cast<std::int32_t>(1u << (width - 1) | bits.take(width - 1));
  return bits.take(1) != 0 ? -size : size;
}

void write_pass(const PassModel& pass, TileKind kind, BitWriter& bits) {
  const TapList& list = pass.refining ? refining_taps(kind) : causal_taps(kind);
  bits.put(pass.unit, 2);
  bits.put(pass.classes - 1, 3);
  for (std::uint32_t i = 0; i + 1 < pass.classes; ++i)
    bits.put(std::bit_cast<std::uint32_t>(pass.thresholds[i]) >> 16, 16);
  for (std::uint32_t c = 0, i = 0; c < list.count; ++c) {
    const bool used = i < pass.taps && pass.tap[i] == c;
    bits.put(used ? 1 : 0, 1);
    i += used ? 1 : 0;
  }
  for (std::uint32_t set = 0; set < kSets; ++set) {
    if (!set_exists(pass, kind, set)) continue;
    const std::uint32_t rest = rest_tap(pass, kind, set);
    for (std::uint32_t i = 0; i < pass.taps; ++i) {
      if (pass.tap[i] == rest || !tap_allowed(pass, kind, set, list.of[pass.tap[i]])) continue;
      const std::int32_t weight = pass.weight[i][set];
      bits.put(weight != 0 ? 1 : 0, 1);
      if (weight != 0) write_weight(weight, bits);
    }
    bits.put(pass.factor[set], kScaleBits);
  }
  for (std::uint32_t p = 0; p < parities(pass); ++p) {
    if (!parity_exists(pass, kind, p)) continue;
    for (std::uint32_t f = 0; f < kFeatures; ++f) bits.put(pass.scale[f][p], kScaleBits);
  }
}

bool read_pass(BitReader& bits, TileKind kind, PassModel& pass) {
  const TapList& list = pass.refining ? refining_taps(kind) : causal_taps(kind);
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
    const std::uint32_t rest = rest_tap(pass, kind, set);
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

void write_tables(const AdaptiveModel& model, BitWriter& bits) {
  bits.put(model.tables - 1, 4);
  for (std::uint32_t level = 1; level < kContextLevels; ++level)
    if (model.table_of_level[level] != model.table_of_level[level - 1]) bits.put(level, kLevelBits);
  for (std::uint32_t t = 0; t < model.tables; ++t) write_frequencies(model.table[t], bits);
}

bool read_tables(BitReader& bits, AdaptiveModel& model) {
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

}  // namespace

bool set_exists(const PassModel& pass, TileKind kind, std::uint32_t set) {
  const std::uint32_t combinations = 1u << static_cast<std::uint32_t>(kind);
  if (pass.refining) return set % 8 != 0 && set % 8 < combinations && set / 8 < pass.classes;
  return set < kBorderSets ? set < pass.classes : set > kBorderSets && set - kBorderSets < combinations;
}

bool tap_allowed(const PassModel& pass, TileKind kind, std::uint32_t set, Tap tap) {
  if (pass.refining) {
    const bool causal = tap.z < 0 || (tap.z == 0 && (tap.y < 0 || (tap.y == 0 && tap.x < 0)));
    std::uint32_t there = set ^ static_cast<std::uint32_t>(tap.x & 1);
    if (kind != TileKind::line) there ^= static_cast<std::uint32_t>(tap.y & 1) << 1;
    if (kind == TileKind::volume) there ^= static_cast<std::uint32_t>(tap.z & 1) << 2;
    const int odd = std::popcount(set & 7), odd_there = std::popcount(there & 7);
    return odd_there < odd || (odd_there == odd && causal);
  }
  if (set < kBorderSets) return true;
  if ((set & 4) != 0 && tap.z < 0) return false;
  if ((set & 2) != 0 && tap.z == 0 && tap.y < 0) return false;
  return (set & 1) == 0 || tap.z != 0 || tap.y != 0;
}

void finish_model(AdaptiveModel& model) {
  for (std::uint32_t p = 0; p <= model.levels; ++p) {
    PassModel& pass = model.passes[p];
    for (std::uint32_t i = 0; i < kMostCandidates; ++i)
      for (std::uint32_t set = 0; set < kSets; ++set)
        pass.weights[i][set] = static_cast<float>(pass.weight[i][set]) * (1.0f / kWeightOne);
    for (std::uint32_t f = 0; f < kFeatures; ++f)
      for (std::uint32_t set = 0; set < kSets; ++set)
        pass.scales[f][set] = scale_of(pass.scale[f][pass.refining ? set % 8 : 0], kScaleOne);
    for (std::uint32_t set = 0; set < kSets; ++set) pass.factors[set] = scale_of(pass.factor[set], kFactorOne);
  }
}

std::size_t write_model(const AdaptiveModel& model, std::uint8_t* out) {
  std::memset(out, 0, kMostModelBytes);
  BitWriter bits{out + 4};
  bits.put(model.levels, 2);
  bits.put(model.masks ? 1 : 0, 1);
  for (std::uint32_t p = 0; p <= model.levels; ++p) write_pass(model.passes[p], model.kind, bits);
  write_tables(model, bits);
  if (model.masks)
    for (std::uint32_t c = 0; c < kMaskContexts; ++c) {
      bits.put(model.mask_frequency[c] != 512 ? 1 : 0, 1);
      if (model.mask_frequency[c] != 512) bits.put(model.mask_frequency[c], kProbabilityBits);
    }
  const std::size_t words = 1 + (bits.bits + 31) / 32;
  store_le(out, static_cast<std::uint32_t>(words));
  return 4 * words;
}

bool read_model(const std::uint8_t* from, std::size_t available, AdaptiveModel& model, std::size_t* bytes) {
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
    if (!read_pass(bits, model.kind, pass)) return false;
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
  finish_model(model);
  return true;
}

}  // namespace pyfilter
