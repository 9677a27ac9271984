// SPDX-License-Identifier: BSD-3-Clause
// Whole rounds decoded with AVX2: states stay in registers from step to step, table entries are loaded one by one,
// which is faster than a gather. Steps with escapes or residuals of 23 bits and more, and those behind them, are left
// to rans_avx2.hpp.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "lorenzo/cpu/simd/rans_avx2.hpp"

PYF_BEGIN_TARGET

// Entries at eight indices.
KFN __m256i entries_at(const std::uint32_t* table, __m256i index) {
  alignas(32) std::uint32_t at[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(at), index);
  const auto four = [&](const std::uint32_t* i) {
    __m128i v = _mm_cvtsi32_si128(static_cast<int>(table[i[0]]));
    v = _mm_insert_epi32(v, static_cast<int>(table[i[1]]), 1);
    v = _mm_insert_epi32(v, static_cast<int>(table[i[2]]), 2);
    return _mm_insert_epi32(v, static_cast<int>(table[i[3]]), 3);
  };
  return _mm256_set_m128i(four(at + 4), four(at));
}

// The smallest residual of a symbol below 2 * kDirectSymbols, 0 for others.
KFN __m256i smallest_narrow(__m256i symbol) {
  static_assert(kDirectSymbols == 16);
  const __m256i above = _mm256_broadcastsi128_si256(_mm_setr_epi8(16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112,
                                                                  static_cast<char>(128), static_cast<char>(160),
                                                                  static_cast<char>(192), static_cast<char>(224)));
  // symbols of 32 and more get bit 7, which makes the byte 0, as do those of the other bytes
  const __m256i order = _mm256_adds_epu8(symbol, all_of(0x80808060));
  return _mm256_blendv_epi8(_mm256_shuffle_epi8(above, order), symbol,
                            _mm256_cmpgt_epi32(all_of(kDirectSymbols), symbol));
}

// Steps of a round from its first on, as many as are ordinary: the number of them.
template <int kVectors, bool kWhole>
[[gnu::noinline]] inline std::uint32_t decode_steps(const DecodeTables& tables, const Neighbours& near,
                                                    std::uint32_t code_bits, std::uint32_t lanes, RoundRows& rows,
                                                    LaneStates& states, WordReader& words) {
  const TableOfSum table(tables.contexts);
  const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(table.shift));
  const __m256i offset = all_of(static_cast<std::uint32_t>(table.offset)), top = all_of(table.top);
  SteppedWords<kStepBytes> stepped(words);
  const std::uint8_t* at = words.at;
  __m256i x[kVectors], part[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    x[v] = load(states.x + 8 * v);
    part[v] = kWhole ? all_of(~0u) : lanes_below(lanes, 8 * static_cast<std::uint32_t>(v));
  }
  std::uint32_t i = 0;
  bool ordinary = true;
  for (; i < 32 && ordinary && stepped.may_step(at); ++i) {
    alignas(32) std::uint32_t symbols[kLaneCount];
    const std::uint32_t *const first = rows.low[near.first[i]], *const second = rows.low[near.second[i]];
    std::uint32_t* const row = rows.low[i];
    __m256i highest = _mm256_setzero_si256();
    for (int v = 0; v < kVectors; ++v) {
      __m256i chosen = all_of(tables.contexts.count);
      if (i != 0) {
        const __m256i sum = _mm256_add_epi32(load(first + 8 * v), load(second + 8 * v));
        const __m256i step = _mm256_srl_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(sum)), shift);
        chosen = _mm256_min_epi16(_mm256_subs_epu16(step, offset), top);
      }
      const __m256i slot = _mm256_and_si256(x[v], all_of(kFrequencySum - 1));
      const __m256i index = _mm256_or_si256(_mm256_slli_epi32(chosen, static_cast<int>(kProbabilityBits)), slot);
      const __m256i entry = entries_at(tables.entries, index);
      const __m256i frequency = _mm256_and_si256(_mm256_srli_epi32(entry, 8), all_of(0x7FF));
      const __m256i place = _mm256_and_si256(_mm256_srli_epi32(entry, 19), all_of(0x3FF));
      const __m256i inner = _mm256_srli_epi32(entry, 29), symbol = _mm256_and_si256(entry, all_of(0xFF));
      const __m256i shrunk = _mm256_add_epi32(
          _mm256_mullo_epi32(frequency, _mm256_srli_epi32(x[v], static_cast<int>(kProbabilityBits))), place);
      const __m256i raw = _mm256_andnot_si256(_mm256_sllv_epi32(all_of(~0u), inner), shrunk);
      const __m256i left = _mm256_srlv_epi32(shrunk, inner);
      x[v] = take_words(kWhole ? left : _mm256_blendv_epi8(x[v], left, part[v]), part[v], at);
      store(row + 8 * v, _mm256_add_epi32(smallest_narrow(symbol), raw));
      store(symbols + 8 * v, symbol);
      highest = _mm256_max_epi32(highest, kWhole ? symbol : _mm256_and_si256(symbol, part[v]));
    }
    if (mask_of(_mm256_cmpgt_epi32(highest, all_of(2 * kDirectSymbols - 1))) == 0) continue;
    ordinary = mask_of(_mm256_cmpgt_epi32(highest, all_of(4 * 23 - 1))) == 0;  // below kLevelCap
    if (!ordinary) {
      for (int v = 0; v < kVectors; ++v) store(states.x + 8 * v, x[v]);
      stepped.give_back(at, words);
      decode_outer(code_bits, lanes, i, symbols, rows, states, words);
      return i + 1;
    }
    for (int v = 0; v < kVectors; ++v) {
      const __m256i symbol = load(symbols + 8 * v), zero = _mm256_setzero_si256();
      const __m256i scale = _mm256_sub_epi32(_mm256_srli_epi32(symbol, 2), all_of(2));
      const __m256i left = _mm256_max_epi32(_mm256_sub_epi32(scale, all_of(kInnerBits)), zero);
      const __m256i bits = kWhole ? left : _mm256_and_si256(left, part[v]);
      const __m256i value = _mm256_andnot_si256(_mm256_sllv_epi32(all_of(~0u), bits), x[v]);
      const __m256i smallest =
          _mm256_sllv_epi32(_mm256_or_si256(_mm256_and_si256(symbol, all_of(3)), all_of(4)), scale);
      const __m256i outer = _mm256_cmpgt_epi32(symbol, all_of(2 * kDirectSymbols - 1));
      const __m256i more =
          _mm256_add_epi32(_mm256_slli_epi32(value, static_cast<int>(kInnerBits)), _mm256_and_si256(smallest, outer));
      store(row + 8 * v, _mm256_add_epi32(load(row + 8 * v), more));
      x[v] = take_words(_mm256_srlv_epi32(x[v], bits), _mm256_cmpgt_epi32(bits, zero), at);
    }
  }
  for (int v = 0; v < kVectors; ++v) store(states.x + 8 * v, x[v]);
  stepped.give_back(at, words);
  return i;
}

PYF_END_TARGET
