// SPDX-License-Identifier: BSD-3-Clause
// Models to bits (docs/format.md, section 14.2), for CPU and GPU.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "adaptive/model_read.hpp"

namespace pyfilter {

// A weight: its width, its bits below the first, its sign.
template <class Writer>
KFN void write_weight(std::int32_t weight, Writer& bits) {
  const std::uint32_t size = static_cast<std::uint32_t>(weight < 0 ? -weight : weight);
  const auto width = static_cast<std::uint32_t>(bit_width(size));
  bits.put(width, kWidthBits);
  if (width == 0) return;
  bits.put(size & ((1u << (width - 1)) - 1), width - 1);
  bits.put(weight < 0 ? 1 : 0, 1);
}
template <class Writer>
PYF_MODEL void write_pass(const PassModel& pass, TileKind kind, const TapList& list, Writer& bits) {
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
    const std::uint32_t rest = rest_tap(list, pass.refining, kind, set);
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

template <class Writer>
PYF_MODEL void write_tables(const AdaptiveModel& model, std::uint32_t tables, Writer& bits) {
  bits.put(tables - 1, 4);
  for (std::uint32_t level = 1; level < kContextLevels; ++level)
    if (model.table_of_level[level] != model.table_of_level[level - 1]) bits.put(level, kLevelBits);
  for (std::uint32_t t = 0; t < tables; ++t) write_frequencies(model.table[t], bits);
}

// Writes all of a model, with the first `tables` of its tables.
template <class Writer>
PYF_MODEL void write_model_bits(const AdaptiveModel& model, const TapList& causal, const TapList& refining,
                                std::uint32_t tables, Writer& bits) {
  bits.put(model.levels, 2);
  bits.put(model.masks ? 1 : 0, 1);
  for (std::uint32_t p = 0; p <= model.levels; ++p)
    write_pass(model.passes[p], model.kind, model.passes[p].refining ? refining : causal, bits);
  write_tables(model, tables, bits);
  if (!model.masks) return;
  for (std::uint32_t c = 0; c < kMaskContexts; ++c) {
    bits.put(model.mask_frequency[c] != 512 ? 1 : 0, 1);
    if (model.mask_frequency[c] != 512) bits.put(model.mask_frequency[c], kProbabilityBits);
  }
}

// Counts bits.
struct BitCounter {
  std::size_t bits = 0;

  KFN void put(std::uint32_t, std::uint32_t count) { bits += count; }
  KFN void skip(std::uint32_t count) { bits += count; }
};
KFN std::size_t model_bytes_of(std::size_t bits) { return 4 * (1 + (bits + 31) / 32); }

// The bytes of a model with one table.
PYF_MODEL inline std::size_t weight_bytes(const AdaptiveModel& model, const TapList& causal, const TapList& refining) {
  BitCounter bits;
  write_model_bits(model, causal, refining, 1, bits);
  return model_bytes_of(bits.bits);
}
// Writes the model's integers to memory of kMostModelBytes that is 0; returns their size in bytes, a multiple of 4.
PYF_MODEL inline std::size_t write_model_integers(const AdaptiveModel& model, const TapList& causal,
                                                  const TapList& refining, std::uint8_t* out) {
  BitWriter bits{out + 4};
  write_model_bits(model, causal, refining, model.tables, bits);
  const std::size_t bytes = model_bytes_of(bits.bits);
  store_le(out, static_cast<std::uint32_t>(bytes / 4));
  return bytes;
}

}  // namespace pyfilter
