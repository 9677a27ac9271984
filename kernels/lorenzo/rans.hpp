// SPDX-License-Identifier: BSD-3-Clause
// Streams of 32 interleaved coders (docs/format.md, section 8.3): one lane's step, for CPU and GPU, and the tables of a
// chunk. A lane's state is 2^15 to 2^31 - 1; a smaller state reads 16 bits of the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/target.hpp"
#include "core/wire.hpp"
#include "lorenzo/model.hpp"
#include "lorenzo/tables.hpp"
#include "stages/symbols.hpp"

namespace pyfilter {

inline constexpr std::uint32_t kLaneCount = 32, kLowestState = 1u << 15, kStateBits = 31;

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

// A symbol and `raw` bits of it. The state shrinks to x, which the caller refills.
struct DecodedSymbol {
  std::uint32_t symbol, raw;
};
KFN DecodedSymbol decode_symbol(std::uint32_t entry, std::uint32_t& x) {
  const std::uint32_t raw = entry >> 29;
  x = (entry >> 8 & 0x7FF) * (x >> kProbabilityBits) + (entry >> 19 & 0x3FF);
  const DecodedSymbol symbol{entry & 0xFF, x & ((1u << raw) - 1)};
  x >>= raw;
  return symbol;
}
// Whether a state emits 16 bits to the stream before a symbol with `raw` bits, or before `raw` bits alone.
KFN bool must_spill(std::uint32_t x, std::uint32_t frequency, std::uint32_t raw) {
  return x >> (kStateBits - kProbabilityBits - raw) >= frequency;
}
KFN bool must_spill_raw(std::uint32_t x, std::uint32_t raw) { return x >> (kStateBits - raw) != 0; }
KFN std::uint32_t encode_symbol(std::uint32_t x, const EncodeEntry& entry, std::uint32_t raw, std::uint32_t bits) {
  x = x << raw | bits;
  const std::uint32_t quotient = divided(x, entry);
  return x + entry.first() + quotient * (kFrequencySum - entry.frequency());
}

// A block's flag: coded, or all zero.
KFN bool decode_flag(std::uint32_t frequency, std::uint32_t& x) {
  const std::uint32_t slot = x & (kFrequencySum - 1);
  const bool coded = slot < frequency;
  x = coded ? frequency * (x >> kProbabilityBits) + slot
            : (kFrequencySum - frequency) * (x >> kProbabilityBits) + slot - frequency;
  return coded;
}
KFN std::uint32_t encode_flag(std::uint32_t x, std::uint32_t frequency, bool coded) {
  const std::uint32_t own = coded ? frequency : kFrequencySum - frequency;
  return (x / own << kProbabilityBits) + x % own + (coded ? 0 : frequency);
}

// Raw bits of a value beyond its symbol's step, and the number of steps they take; an escape's include its symbol.
KFN std::uint32_t outer_bits(std::uint32_t symbol) {
  const std::uint32_t raw = raw_bits(symbol);
  return raw > kInnerBits ? raw - kInnerBits : 0;
}

}  // namespace pyfilter
