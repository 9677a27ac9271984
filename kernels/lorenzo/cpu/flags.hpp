// SPDX-License-Identifier: BSD-3-Clause
// Flags tell which blocks of a tile are coded (docs/format.md, section 8.3); counted for a chunk's model, and encoded.
// Lane l has the flags of blocks 4l to 4l + 3, in four steps.
#pragma once

#include <bit>
#include <cstdint>

#include "core/target.hpp"
#include "lorenzo/cpu/kept_rounds.hpp"
#include "lorenzo/cpu/residuals.hpp"
#include "lorenzo/group.hpp"

PYF_BEGIN_TARGET

// The predecessors of eight lanes' flags, a bit for each block: whether the lane has an earlier block, and whether that
// block is coded.
struct FlagsBefore {
  std::uint32_t any, coded;

  KFN FlagsBefore(const GroupTile& t, int word)
      : any(t.is_present[word] << 1 & 0xEEEEEEEE), coded(t.is_coded[word] << 1 & any) {}
};

inline void count_flags(const GroupTile& t, std::uint32_t (&counts)[kFlagContexts][2]) {
  for (int word = 0; word < 4; ++word) {
    const FlagsBefore before(t, word);
    const std::uint32_t of_context[kFlagContexts] = {~before.any, before.any & ~before.coded, before.coded};
    for (std::uint32_t c = 0; c < kFlagContexts; ++c) {
      const std::uint32_t flags = of_context[c] & t.is_present[word];
      const int coded = std::popcount(flags & t.is_coded[word]);
      counts[c][1] += static_cast<std::uint32_t>(coded);
      counts[c][0] += static_cast<std::uint32_t>(std::popcount(flags) - coded);
    }
  }
}

#if defined(PYF_WHOLE_ROUNDS)
inline void encode_flags(const RoundTables& tables, const GroupTile& t, LaneStates& states, WordWriter& words) {
  RoundIndices indices;
  for (std::uint32_t word = 0; word < 4; ++word) {
    const FlagsBefore before(t, static_cast<int>(word));
    const std::uint32_t coded = t.is_coded[word], present = t.is_present[word];
    for (std::uint32_t step = 0; step < 4; ++step) {
      for (std::uint32_t l = 0; l < 8; ++l) {
        const auto bit = [&](std::uint32_t flags) { return flags >> (4 * l + step) & 1; };
        const std::uint32_t index = flag_step(flag_context(bit(before.any) != 0, bit(before.coded) != 0), bit(coded));
        indices.of[step][8 * word + l] = static_cast<std::uint16_t>(bit(present) != 0 ? index : kNoFlag);
      }
    }
  }
  words.begin_step(4, states);
  encode_narrow<kMostVectors, false>(tables.flags, indices, 4, states, words);
}
#else
inline void encode_flags(const RoundTables& tables, const GroupTile& t, LaneStates& states, WordWriter& words) {
  const bool first = words.is_empty();
  words.begin_step(4, states);
  for (std::uint32_t step = 4; step-- > 0;) {
    for (std::uint32_t l = kLaneCount; l-- > 0;) {
      const std::uint32_t b = 4 * l + step;
      if (!bit_of(t.is_present, b)) continue;
      const FlagsBefore before(t, static_cast<int>(b / 32));
      const bool coded = bit_of(t.is_coded, b);
      const std::uint32_t frequency =
          tables.symbols
              .flag_frequency[flag_context((before.any >> b % 32 & 1) != 0, (before.coded >> b % 32 & 1) != 0)];
      std::uint32_t& x = states.x[l];
      words.spill(x, must_spill(x, coded ? frequency : kFrequencySum - frequency, 0));
      x = encode_flag(x, frequency, coded);
    }
  }
  if (first && !words.is_empty()) words.check_first();
}
#endif

PYF_END_TARGET
