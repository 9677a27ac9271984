// SPDX-License-Identifier: BSD-3-Clause
// Rounds of a stream with the instructions of this target (lorenzo/cpu/lanes.hpp says what a round is).
#pragma once

#include "core/target.hpp"
#include "lorenzo/cpu/lanes.hpp"
#include "lorenzo/cpu/simd/steps.hpp"
#if defined(PYF_VECTORS)
#include "lorenzo/cpu/simd/decode_rounds.hpp"
#endif

PYF_BEGIN_TARGET

#if defined(PYF_VECTORS)
inline std::uint32_t decode_steps(const DecodeTables& tables, const Neighbours& near, std::uint32_t code_bits,
                                  std::uint32_t lanes, RoundRows& rows, LaneStates& states, WordReader& words) {
  if (lanes == kLaneCount) [[likely]]
    return decode_steps<kMostVectors, true>(tables, near, code_bits, lanes, rows, states, words);
  return with_vectors<kMostVectors>(lanes, [&]<int kVectors>() {
    return decode_steps<kVectors, false>(tables, near, code_bits, lanes, rows, states, words);
  });
}
#endif

[[gnu::noinline]] inline void decode_round(const Neighbours& near, const DecodeTables& tables, std::uint32_t code_bits,
                                           std::uint32_t lanes, RoundRows& rows, LaneStates& states,
                                           WordReader& words) {
  rows.wide = false;
  std::uint32_t done = 0;
#if defined(PYF_VECTORS)
  done = decode_steps(tables, near, code_bits, lanes, rows, states, words);
#endif
  for (std::uint32_t i = done; i < 32; ++i) decode_step(tables, near, code_bits, lanes, i, rows, states, words);
}

// Encodes the step before which `left` steps are left.
inline void encode_checked(const EncodeTables& tables, const Neighbours& near, std::uint32_t lanes, std::uint32_t left,
                           const RoundRows& rows, LaneStates& states, WordWriter& words) {
  const bool first = words.is_empty();
  words.begin_step(left, states);
  encode_step(tables, near, lanes, left - 1, rows, states, words);
  if (first && !words.is_empty()) words.check_first();
}

inline void encode_round(const Neighbours& near, const EncodeTables& tables, std::uint32_t lanes, const RoundRows& rows,
                         LaneStates& states, WordWriter& words) {
  for (std::uint32_t left = 32; left != 0 && !words.again; --left)
    encode_checked(tables, near, lanes, left, rows, states, words);
}

// The number of words. Puts them in the order of a decoder; they begin at first_word() then.
inline std::uint32_t finish_words(const WordWriter& words) {
#if defined(PYF_LEVEL_AVX512)
  turn_many_round(words.start, words.at);
  return static_cast<std::uint32_t>((words.at - words.start) / 2);
#else
  return static_cast<std::uint32_t>((words.end - words.at) / 2);
#endif
}
inline const std::uint8_t* first_word(const WordWriter& words) {
  return WordWriter::kForwards ? words.start : words.at;
}

// Adds a round to the counts of a model.
inline void count_round(const Neighbours& near, std::uint32_t lanes, const RoundRows& rows, SymbolCounts& counts) {
  if (rows.wide) [[unlikely]] {
    for (std::uint32_t i = 0; i < 32; ++i) {
      for (std::uint32_t l = 0; l < lanes; ++l) {
        const std::uint32_t level =
            i == 0 ? kLevels : level_of(capped(rows.value(near.first[i], l)) + capped(rows.value(near.second[i], l)));
        ++counts.of[level * kSymbols + symbol_of(rows.value(i, l))];
      }
    }
    return;
  }
  for (std::uint32_t i = 0; i < 32; ++i) {
    const std::uint32_t *const first = rows.low[near.first[i]], *const second = rows.low[near.second[i]];
    const std::uint32_t* const value = rows.low[i];
    alignas(64) std::uint32_t index[kLaneCount];
    std::uint32_t any = 0;
    for (std::uint32_t l = 0; l < kLaneCount; ++l) {
      const std::uint32_t sum = std::min(first[l], kLevelCap) + std::min(second[l], kLevelCap);
      const std::uint32_t level = i == 0 ? kLevels : level_of(sum);
      index[l] = level * kSymbols + symbol_of_narrow(value[l]);
      any |= value[l];
    }
    if (any >> 31 != 0) [[unlikely]]  // symbol_of_narrow() of these is no symbol
      for (std::uint32_t l = 0; l < lanes; ++l) index[l] += symbol_of(value[l]) - symbol_of_narrow(value[l]);
    for (std::uint32_t l = 0; l < lanes; ++l) ++counts.of[index[l]];
  }
}

PYF_END_TARGET
