// SPDX-License-Identifier: BSD-3-Clause
// Whole rounds decoded with AVX-512: what rans_decode_avx2.hpp does, sixteen lanes a register, table entries by
// gathers, which are faster here than loads one by one.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "lorenzo/cpu/simd/rans_avx512.hpp"

PYF_BEGIN_TARGET

// The smallest residual of a symbol below 2 * kDirectSymbols, 0 for others.
KFN __m512i smallest_narrow(__m512i symbol) {
  static_assert(kDirectSymbols == 16);
  const __m512i direct = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i above = _mm512_setr_epi32(16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224);
  return _mm512_maskz_permutex2var_epi32(_mm512_cmplt_epu32_mask(symbol, all_of(2 * kDirectSymbols)), direct, symbol,
                                         above);
}

// Steps of a round from its first on, as many as are ordinary: the number of them.
template <int kVectors, bool kWhole>
[[gnu::noinline]] inline std::uint32_t decode_steps(const DecodeTables& tables, const Neighbours& near,
                                                    std::uint32_t code_bits, std::uint32_t lanes, RoundRows& rows,
                                                    LaneStates& states, WordReader& words) {
  const TableOfSum table(tables.contexts);
  const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(table.shift));
  const __m512i offset = all_of(static_cast<std::uint32_t>(table.offset)), top = all_of(table.top);
  SteppedWords<kStepBytes> stepped(words);
  const std::uint8_t* at = words.at;
  __m512i x[kVectors];
  __mmask16 part[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    x[v] = words_at(states.x + 16 * v);
    part[v] = kWhole ? static_cast<__mmask16>(0xFFFF) : lanes_below(lanes, 16 * static_cast<std::uint32_t>(v));
  }
  std::uint32_t i = 0;
  for (; i < 32 && stepped.may_step(at); ++i) {
    const std::uint32_t *const first = rows.low[near.first[i]], *const second = rows.low[near.second[i]];
    std::uint32_t* const row = rows.low[i];
    __m512i symbol[kVectors], value[kVectors];
    unsigned outer = 0, far = 0;
    for (int v = 0; v < kVectors; ++v) {
      __m512i chosen = all_of(tables.contexts.count);
      if (i != 0) {
        const __m512i sum = _mm512_add_epi32(words_at(first + 16 * v), words_at(second + 16 * v));
        const __m512i step = _mm512_srl_epi32(_mm512_castps_si512(_mm512_cvtepi32_ps(sum)), shift);
        chosen = _mm512_min_epi16(_mm512_subs_epu16(step, offset), top);
      }
      const __m512i slot = _mm512_and_si512(x[v], all_of(kFrequencySum - 1));
      const __m512i entry =
          _mm512_i32gather_epi32(_mm512_or_si512(_mm512_slli_epi32(chosen, kProbabilityBits), slot), tables.entries, 4);
      const __m512i frequency = _mm512_and_si512(_mm512_srli_epi32(entry, 8), all_of(0x7FF));
      const __m512i place = _mm512_and_si512(_mm512_srli_epi32(entry, 19), all_of(0x3FF));
      const __m512i inner = _mm512_srli_epi32(entry, 29);
      symbol[v] = _mm512_and_si512(entry, all_of(0xFF));
      const __m512i shrunk =
          _mm512_add_epi32(_mm512_mullo_epi32(frequency, _mm512_srli_epi32(x[v], kProbabilityBits)), place);
      value[v] = _mm512_add_epi32(smallest_narrow(symbol[v]), low_bits(shrunk, inner));
      x[v] = refill(_mm512_mask_srlv_epi32(x[v], part[v], shrunk, inner), part[v], at);
      outer |= _mm512_mask_cmpge_epu32_mask(part[v], symbol[v], all_of(2 * kDirectSymbols));
    }
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_si512(row + 16 * v, value[v]);
    if (outer == 0) continue;
    for (int v = 0; v < kVectors; ++v)  // not below kLevelCap
      far |= _mm512_mask_cmpge_epu32_mask(part[v], symbol[v], all_of(4 * 23));
    if (far != 0) [[unlikely]] {
      alignas(64) std::uint32_t symbols[kLaneCount];
      for (int v = 0; v < kVectors; ++v) {
        _mm512_store_si512(symbols + 16 * v, symbol[v]);
        _mm512_storeu_si512(states.x + 16 * v, x[v]);
      }
      stepped.give_back(at, words);
      decode_outer(code_bits, lanes, i, symbols, rows, states, words);
      return i + 1;
    }
    for (int v = 0; v < kVectors; ++v) {
      const __m512i scale = _mm512_sub_epi32(_mm512_srli_epi32(symbol[v], 2), all_of(2));
      const __mmask16 takes = _mm512_mask_cmpge_epu32_mask(part[v], symbol[v], all_of(2 * kDirectSymbols));
      const __m512i bits = _mm512_maskz_sub_epi32(takes, scale, all_of(kInnerBits));
      const __m512i raw = _mm512_slli_epi32(low_bits(x[v], bits), kInnerBits);
      const __m512i smallest =
          _mm512_maskz_sllv_epi32(takes, _mm512_or_si512(_mm512_and_si512(symbol[v], all_of(3)), all_of(4)), scale);
      _mm512_storeu_si512(row + 16 * v, _mm512_add_epi32(value[v], _mm512_add_epi32(raw, smallest)));
      x[v] = refill(_mm512_srlv_epi32(x[v], bits), takes, at);
    }
  }
  for (int v = 0; v < kVectors; ++v) _mm512_storeu_si512(states.x + 16 * v, x[v]);
  stepped.give_back(at, words);
  return i;
}

PYF_END_TARGET
