// SPDX-License-Identifier: BSD-3-Clause
// Tables of a chunk's symbols for encoders of whole rounds (cpu/simd/encode_rounds.hpp). An entry of eight bytes has
// all that a step needs for a residual or a symbol.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lorenzo/rans.hpp"

namespace pyfilter {

// Rounds by their largest residual. In narrow rounds all bits are coded with the symbols; in medium rounds at most one
// step of outer bits follows.
inline constexpr std::uint32_t kNarrowEnd = 256, kMediumEnd = kLevelCap, kMediumSymbols = 128;
static_assert(raw_bits(symbol_of_small(kNarrowEnd - 1)) <= kInnerBits);
static_assert(raw_bits(symbol_of_small(kMediumEnd - 1)) <= kInnerBits + kStepBits);

// A step: the state grows by `bits` inner bits to x, and then by first + (2^10 - frequency) * (x / frequency). The
// quotient is the high half of (x << before) * reciprocal, shifted by kQuotientShift. 0 is a symbol without a
// frequency: the reciprocals of others have their highest bit set.
//   0 reciprocal, 32 frequency - 1, 42 first slot, 52 the inner bits (narrow rounds), 57 their number, 60 `before`
inline constexpr std::uint32_t kQuotientShift = 10;
constexpr KFN std::uint64_t step_entry(const EncodeEntry& entry, std::uint32_t inner, std::uint32_t bits) {
  const std::uint32_t rest = (entry.frequency() - 1) | entry.first() << 10 | bits << 20 | inner << 25 |
                             (kQuotientShift + 1 - entry.shift()) << 28;
  return entry.reciprocal | std::uint64_t{rest} << 32;
}
// Changes no state.
inline constexpr std::uint64_t kNeutralStep = step_entry(encode_entry(kFrequencySum, 0), 0, 0);
inline constexpr std::uint32_t kNeutralTable = 15;
static_assert(kMostTables <= kNeutralTable);

// Steps of flags by context and flag, and the step of a block without a flag.
inline constexpr std::uint32_t kNoFlag = 2 * kFlagContexts;
constexpr KFN std::uint32_t flag_step(std::uint32_t context, std::uint32_t coded) { return 2 * context + coded; }

struct RoundTables {
  EncodeTables symbols;
  alignas(64) std::uint64_t narrow[16 * kNarrowEnd] = {};      // by table and residual
  alignas(64) std::uint64_t medium[16 * kMediumSymbols] = {};  // by table and symbol
  std::uint64_t flags[kNoFlag + 1] = {};
};

inline void make_round_tables(const EntropyModel& model, RoundTables& t) {
  make_encode_tables(model, t.symbols);
  for (std::uint32_t i = 0; i <= model.contexts.count; ++i) {
    const std::uint32_t listed = std::min(model.tables[i].listed, kMediumSymbols);
    for (std::uint32_t s = 0; s < listed; ++s) {
      const EncodeEntry& entry = t.symbols.entries[i * kSymbols + s];
      if (entry.frequency() == 0) continue;
      const std::uint32_t inner = std::min(raw_bits(s), kInnerBits);
      t.medium[i * kMediumSymbols + s] = step_entry(entry, inner, 0);
      if (outer_bits(s) != 0) continue;
      const auto smallest = smallest_of<std::uint32_t>(s);
      for (std::uint32_t bits = 0; bits >> inner == 0; ++bits)
        t.narrow[i * kNarrowEnd + smallest + bits] = step_entry(entry, inner, bits);
    }
  }
  for (std::uint32_t c = 0; c < kFlagContexts; ++c) {
    const std::uint32_t coded = model.flag_frequency[c];
    t.flags[flag_step(c, 0)] = step_entry(encode_entry(kFrequencySum - coded, coded), 0, 0);
    t.flags[flag_step(c, 1)] = step_entry(encode_entry(coded, 0), 0, 0);
  }
  t.flags[kNoFlag] = t.narrow[kNeutralTable * kNarrowEnd] = t.medium[kNeutralTable * kMediumSymbols] = kNeutralStep;
}

}  // namespace pyfilter
