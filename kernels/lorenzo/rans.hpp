// SPDX-License-Identifier: BSD-3-Clause
// The tables of a chunk's streams, and raw bits of its residuals (docs/format.md, section 8.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/target.hpp"
#include "core/wire.hpp"
#include "lorenzo/model.hpp"
#include "stages/entropy/rans_step.hpp"
#include "stages/entropy/tables.hpp"
#include "stages/symbols.hpp"

namespace pyfilter {

struct DecodeTables {
  Contexts contexts;
  std::uint32_t flag_frequency[kFlagContexts] = {};
  alignas(64) std::uint32_t entries[kMostTables * kFrequencySum] = {};
};
struct EncodeTables {
  Contexts contexts;
  std::uint32_t flag_frequency[kFlagContexts] = {};
  alignas(64) EncodeEntry entries[16 * kSymbols] = {};  // any index of 12 bits is inside
};

inline void make_decode_tables(const EntropyModel& model, DecodeTables& t) {
  t.contexts = model.contexts;
  for (std::uint32_t i = 0; i < kFlagContexts; ++i) t.flag_frequency[i] = model.flag_frequency[i];
  for (std::uint32_t i = 0; i <= model.contexts.count; ++i)
    make_decode_table(model.tables[i], t.entries + i * kFrequencySum);
}
inline void make_encode_tables(const EntropyModel& model, EncodeTables& t) {
  t.contexts = model.contexts;
  for (std::uint32_t i = 0; i < kFlagContexts; ++i) t.flag_frequency[i] = model.flag_frequency[i];
  for (std::uint32_t i = 0; i <= model.contexts.count; ++i)
    make_encode_table(model.tables[i], t.entries + i * kSymbols);
}

// Raw bits of a value beyond its symbol's step; an escape's include its symbol.
KFN std::uint32_t outer_bits(std::uint32_t symbol) {
  const std::uint32_t raw = raw_bits(symbol);
  return raw > kInnerBits ? raw - kInnerBits : 0;
}

}  // namespace pyfilter
