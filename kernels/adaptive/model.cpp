// SPDX-License-Identifier: BSD-3-Clause
// Models to bits and back (model.hpp).
#include "adaptive/model.hpp"

#include <cstring>

#include "adaptive/model_read.hpp"
#include "core/bits.hpp"
#include "core/wire.hpp"

namespace pyfilter {
namespace {

// A weight: its width, its bits below the first, its sign.
void write_weight(std::int32_t weight, BitWriter& bits) {
  const std::uint32_t size = static_cast<std::uint32_t>(weight < 0 ? -weight : weight);
  const auto width = static_cast<std::uint32_t>(bit_width(size));
  bits.put(width, kWidthBits);
  if (width == 0) return;
  bits.put(size & ((1u << (width - 1)) - 1), width - 1);
  bits.put(weight < 0 ? 1 : 0, 1);
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

void write_tables(const AdaptiveModel& model, BitWriter& bits) {
  bits.put(model.tables - 1, 4);
  for (std::uint32_t level = 1; level < kContextLevels; ++level)
    if (model.table_of_level[level] != model.table_of_level[level - 1]) bits.put(level, kLevelBits);
  for (std::uint32_t t = 0; t < model.tables; ++t) write_frequencies(model.table[t], bits);
}

}  // namespace

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

void finish_model(AdaptiveModel& model) {
  for (std::uint32_t p = 0; p <= model.levels; ++p)
    for (std::uint32_t set = 0; set < kSets; ++set) finish_set(model.passes[p], set);
}

bool read_model(const std::uint8_t* from, std::size_t available, AdaptiveModel& model, std::size_t* bytes) {
  if (!read_model_integers(from, available, causal_taps(model.kind), refining_taps(model.kind), model, bytes))
    return false;
  finish_model(model);
  return true;
}

}  // namespace pyfilter
