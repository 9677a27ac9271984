// SPDX-License-Identifier: BSD-3-Clause
// Steps of 32 lanes of a stream with AVX-512 (lorenzo/cpu/lanes.hpp says what they do): sixteen states a register,
// tables by gathers, words of the stream handed out and collected by expansion and compression.
#pragma once

#include <immintrin.h>

#include "lorenzo/cpu/lanes.hpp"
#include "stages/simd/planes_avx512.hpp"

PYF_BEGIN_TARGET

inline constexpr int kMostVectors = 2;  // that the states of a stream are in

// Words that a step may read: one a lane for a symbol, two for raw bits behind it; and a register too much.
inline constexpr std::ptrdiff_t kStepBytes = 2 * 32 * 3 + 32;

KFN __m512i words_at(const std::uint32_t* from) { return _mm512_loadu_si512(from); }
KFN __m512i all_of(std::uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }

// Lanes of the register that starts with lane `from` which take part.
KFN __mmask16 lanes_below(std::uint32_t lanes, std::uint32_t from) {
  return lanes >= from + 16 ? static_cast<__mmask16>(0xFFFF) : static_cast<__mmask16>((1u << (lanes - from)) - 1);
}

// States below the lowest take a word each, in the order of the lanes.
KFN __m512i refill(__m512i x, __mmask16 taking_part, const std::uint8_t*& at) {
  const __mmask16 low = _mm512_mask_cmplt_epu32_mask(taking_part, x, all_of(kLowestState));
  const __m512i next = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  at += 2 * __builtin_popcount(low);
  return _mm512_mask_or_epi32(x, low, _mm512_slli_epi32(x, 16), _mm512_maskz_expand_epi32(low, next));
}

// The lanes' tables.
KFN __m512i table_of(const Contexts& contexts, __m512i first, __m512i second) {
  const __m512i cap = all_of(kLevelCap), zero = _mm512_setzero_si512();
  const __m512i sum = _mm512_add_epi32(_mm512_min_epu32(first, cap), _mm512_min_epu32(second, cap));
  const __m512i exponent = _mm512_srli_epi32(_mm512_castps_si512(_mm512_cvtepi32_ps(sum)), 22);
  const __m512i level = _mm512_max_epi32(_mm512_sub_epi32(exponent, all_of(253)), zero);
  const __m512i octaves = all_of(contexts.octaves);
  const __m512i step = _mm512_srlv_epi32(_mm512_add_epi32(level, octaves), octaves);
  const __m512i above = _mm512_max_epi32(_mm512_sub_epi32(step, all_of(contexts.base)), zero);
  return _mm512_min_epi32(above, all_of(contexts.count - 1));
}

// The lowest bits of each lane, as many as `bits` says.
KFN __m512i low_bits(__m512i x, __m512i bits) { return _mm512_andnot_si512(_mm512_sllv_epi32(all_of(~0u), bits), x); }

// The bits of raw value behind a symbol: some lanes have up to two steps of them.
[[gnu::noinline]] inline void decode_outer_lanes(std::uint32_t lanes, std::uint32_t* row, const std::uint32_t* symbols,
                                                 LaneStates& states, WordReader& words) {
  for (const std::uint32_t taken : {kInnerBits, kInnerBits + kStepBits}) {
    unsigned any = 0;
    for (std::uint32_t from = 0; from < lanes; from += 16) {
      const __m512i raw = _mm512_sub_epi32(_mm512_srli_epi32(words_at(symbols + from), 2), all_of(2));
      const __m512i left = _mm512_sub_epi32(raw, all_of(taken));
      const __mmask16 takes = _mm512_mask_cmpgt_epi32_mask(lanes_below(lanes, from), left, _mm512_setzero_si512());
      if (takes == 0) continue;
      any = 1;
      const __m512i bits = _mm512_maskz_min_epi32(takes, left, all_of(kStepBits));
      const __m512i x = words_at(states.x + from);
      const __m512i value = _mm512_slli_epi32(low_bits(x, bits), taken);
      _mm512_storeu_si512(row + from, _mm512_add_epi32(words_at(row + from), value));
      _mm512_storeu_si512(states.x + from, refill(_mm512_srlv_epi32(x, bits), takes, words.at));
    }
    if (any == 0) return;
  }
}

KFN void decode_step(const DecodeTables& tables, const Neighbours& near, std::uint32_t code_bits, std::uint32_t lanes,
                     std::uint32_t i, RoundRows& rows, LaneStates& states, WordReader& words) {
  if (rows.wide || words.end - words.at < kStepBytes) [[unlikely]] {
    decode_step_by_lane(tables, near, code_bits, lanes, i, rows, states, words);
    return;
  }
  alignas(64) std::uint32_t symbols[kLaneCount];
  const std::uint32_t *const first = rows.low[near.first[i]], *const second = rows.low[near.second[i]];
  unsigned outer = 0, wide = 0;
  for (std::uint32_t from = 0; from < lanes; from += 16) {
    const __mmask16 taking_part = lanes_below(lanes, from);
    const __m512i table = i == 0 ? all_of(tables.contexts.count)
                                 : table_of(tables.contexts, words_at(first + from), words_at(second + from));
    const __m512i x = words_at(states.x + from);
    const __m512i slot = _mm512_and_si512(x, all_of(kFrequencySum - 1));
    const __m512i entry =
        _mm512_i32gather_epi32(_mm512_or_si512(_mm512_slli_epi32(table, kProbabilityBits), slot), tables.entries, 4);
    const __m512i frequency = _mm512_and_si512(_mm512_srli_epi32(entry, 8), all_of(0x7FF));
    const __m512i place = _mm512_and_si512(_mm512_srli_epi32(entry, 19), all_of(0x3FF));
    const __m512i inner = _mm512_srli_epi32(entry, 29), symbol = _mm512_and_si512(entry, all_of(0xFF));
    const __m512i shrunk =
        _mm512_add_epi32(_mm512_mullo_epi32(frequency, _mm512_srli_epi32(x, kProbabilityBits)), place);
    const __m512i raw = low_bits(shrunk, inner);
    const __m512i left = _mm512_mask_srlv_epi32(x, taking_part, shrunk, inner);
    _mm512_storeu_si512(states.x + from, refill(left, taking_part, words.at));
    // direct symbols are their values
    const __m512i scale = _mm512_sub_epi32(_mm512_srli_epi32(symbol, 2), all_of(2));
    const __m512i smallest = _mm512_sllv_epi32(_mm512_or_si512(_mm512_and_si512(symbol, all_of(3)), all_of(4)), scale);
    const __mmask16 direct = _mm512_cmplt_epu32_mask(symbol, all_of(kDirectSymbols));
    _mm512_storeu_si512(rows.low[i] + from, _mm512_mask_mov_epi32(_mm512_add_epi32(smallest, raw), direct, symbol));
    _mm512_storeu_si512(symbols + from, symbol);
    outer |= _mm512_mask_cmpge_epu32_mask(taking_part, symbol, all_of(2 * kDirectSymbols));
    wide |= _mm512_mask_cmpge_epu32_mask(taking_part, symbol, all_of(symbols_of_width(32)));
  }
  if (outer == 0) return;
  if (wide == 0) {
    decode_outer_lanes(lanes, rows.low[i], symbols, states, words);
    return;
  }
  for (std::uint32_t l = 0; l < lanes; ++l)  // what decode_outer() expects of symbols that have no value yet
    if (symbols[l] >= symbols_of_width(32)) rows.low[i][l] &= (1u << kInnerBits) - 1;
  decode_outer(code_bits, lanes, i, symbols, rows, states, words);
}

// Sixteen lanes the other way round.
KFN __m512i reversed(__m512i x) {
  return _mm512_permutexvar_epi32(_mm512_setr_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), x);
}

// States that must give words to the stream; those of descending lanes, whose words come in this order.
KFN __m512i spill_descending(__m512i x, __mmask16 must, std::uint8_t*& at) {
  const __m256i words = _mm256_maskz_compress_epi16(must, _mm512_cvtepi32_epi16(x));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), words);
  at += 2 * __builtin_popcount(must);
  return _mm512_mask_srli_epi32(x, must, x, 16);
}
KFN __m512i spill(__m512i x, __mmask16 must, std::uint8_t*& at) {
  return reversed(spill_descending(reversed(x), _mm512_movepi32_mask(reversed(_mm512_movm_epi32(must))), at));
}

// turn_round(), a register from each end at a time.
inline void turn_many_round(std::uint8_t* first, std::uint8_t* last) {
  const __m512i low_words =
      _mm512_setr_epi32(0x1E001F, 0x1C001D, 0x1A001B, 0x180019, 0x160017, 0x140015, 0x120013, 0x100011, 0xE000F,
                        0xC000D, 0xA000B, 0x80009, 0x60007, 0x40005, 0x20003, 1);
  for (; last - first >= 128; first += 64) {
    last -= 64;
    const __m512i early = _mm512_permutexvar_epi16(low_words, _mm512_loadu_si512(first));
    _mm512_storeu_si512(first, _mm512_permutexvar_epi16(low_words, _mm512_loadu_si512(last)));
    _mm512_storeu_si512(last, early);
  }
  turn_round(first, last);
}

// The high halves of 32-bit products, shifted: x * reciprocal >> 31 + shift.
KFN __m512i divided(__m512i x, __m512i reciprocal, __m512i shift) {
  const __m512i all = _mm512_add_epi32(shift, all_of(31));
  const __m512i even =
      _mm512_srlv_epi64(_mm512_mul_epu32(x, reciprocal), _mm512_and_si512(all, _mm512_set1_epi64(0xFFFFFFFF)));
  const __m512i odd = _mm512_srlv_epi64(_mm512_mul_epu32(_mm512_srli_epi64(x, 32), _mm512_srli_epi64(reciprocal, 32)),
                                        _mm512_srli_epi64(all, 32));
  return _mm512_mask_mov_epi32(even, 0xAAAA, _mm512_slli_epi64(odd, 32));
}

// symbol_of_narrow() of each lane.
KFN __m512i symbols_of(__m512i residual) {
  const __m512i kept = _mm512_andnot_si512(_mm512_srli_epi32(residual, 24), residual);
  const __m512i bits = _mm512_castps_si512(_mm512_cvtepi32_ps(kept));
  const __m512i above = _mm512_sub_epi32(_mm512_srli_epi32(bits, 21), all_of(4 * 131 - 16));
  return _mm512_mask_mov_epi32(above, _mm512_cmplt_epu32_mask(residual, all_of(kDirectSymbols)), residual);
}

// By lanes where a value has 31 bits or more, or a symbol no frequency.
KFN void encode_step(const EncodeTables& tables, const Neighbours& near, std::uint32_t lanes, std::uint32_t i,
                     const RoundRows& rows, LaneStates& states, WordWriter& words) {
  const std::uint32_t *const first = rows.low[near.first[i]], *const second = rows.low[near.second[i]];
  __m512i symbol[2], low[2], high[2];
  unsigned unusual = 0, outer = 0;
  for (std::uint32_t v = 0; 16 * v < lanes; ++v) {
    const __mmask16 taking_part = lanes_below(lanes, 16 * v);
    const __m512i value = _mm512_maskz_loadu_epi32(taking_part, rows.low[i] + 16 * v);
    const __m512i table = i == 0 ? all_of(tables.contexts.count)
                                 : table_of(tables.contexts, words_at(first + 16 * v), words_at(second + 16 * v));
    symbol[v] = symbols_of(value);
    // a value of 32 bits is below 0 here, and so may its index be
    const __m512i index = _mm512_and_si512(_mm512_add_epi32(_mm512_slli_epi32(table, 8), symbol[v]), all_of(4095));
    low[v] = _mm512_i32gather_epi32(index, tables.entries, 8);
    high[v] = _mm512_i32gather_epi32(index, reinterpret_cast<const std::uint32_t*>(tables.entries) + 1, 8);
    unusual |= _mm512_mask_cmpeq_epu32_mask(taking_part, low[v], _mm512_setzero_si512());
    unusual |= _mm512_mask_cmpge_epu32_mask(taking_part, value, all_of(1u << 30));
    outer |= _mm512_mask_cmpge_epu32_mask(taking_part, symbol[v], all_of(2 * kDirectSymbols));
  }
  if (rows.wide || unusual != 0) [[unlikely]] {
    encode_step_by_lane(tables, near, lanes, i, rows, states, words);
    return;
  }
  const std::uint32_t last = (lanes - 1) / 16;
  if (outer != 0) {
    for (const std::uint32_t taken : {kInnerBits + kStepBits, kInnerBits}) {
      for (std::uint32_t v = last + 1; v-- > 0;) {
        const __m512i raw = _mm512_sub_epi32(_mm512_srli_epi32(symbol[v], 2), all_of(2));
        const __m512i left = _mm512_sub_epi32(raw, all_of(taken));
        const __mmask16 gives = _mm512_mask_cmpgt_epi32_mask(lanes_below(lanes, 16 * v), left, _mm512_setzero_si512());
        if (gives == 0) continue;
        const __m512i bits = _mm512_maskz_min_epi32(gives, left, all_of(kStepBits));
        const __m512i value = low_bits(_mm512_srli_epi32(words_at(rows.low[i] + 16 * v), taken), bits);
        __m512i x = words_at(states.x + 16 * v);
        const __m512i above = _mm512_srlv_epi32(x, _mm512_sub_epi32(all_of(kStateBits), bits));
        x = spill(x, _mm512_mask_cmpgt_epu32_mask(gives, above, _mm512_setzero_si512()), words.at);
        _mm512_storeu_si512(states.x + 16 * v, _mm512_or_si512(_mm512_sllv_epi32(x, bits), value));
      }
    }
  }
  for (std::uint32_t v = last + 1; v-- > 0;) {
    const __mmask16 taking_part = lanes_below(lanes, 16 * v);
    const __m512i old = words_at(states.x + 16 * v);
    const __m512i frequency = _mm512_and_si512(high[v], all_of(0x7FF));
    const __m512i start = _mm512_and_si512(_mm512_srli_epi32(high[v], 11), all_of(0x3FF));
    const __m512i raw = _mm512_sub_epi32(_mm512_srli_epi32(symbol[v], 2), all_of(2));
    const __m512i inner =
        _mm512_maskz_min_epi32(_mm512_cmpge_epu32_mask(symbol[v], all_of(kDirectSymbols)), raw, all_of(kInnerBits));
    const __m512i room = _mm512_srlv_epi32(old, _mm512_sub_epi32(all_of(kStateBits - kProbabilityBits), inner));
    __m512i x = spill(old, _mm512_mask_cmpge_epu32_mask(taking_part, room, frequency), words.at);
    x = _mm512_or_si512(_mm512_sllv_epi32(x, inner), low_bits(words_at(rows.low[i] + 16 * v), inner));
    const __m512i quotient = divided(x, low[v], _mm512_srli_epi32(high[v], 21));
    const __m512i rest = _mm512_mullo_epi32(quotient, _mm512_sub_epi32(all_of(kFrequencySum), frequency));
    x = _mm512_add_epi32(_mm512_add_epi32(x, start), rest);
    _mm512_storeu_si512(states.x + 16 * v, _mm512_mask_mov_epi32(old, taking_part, x));
  }
}

// Sixteen rows of sixteen words to columns.
KFN void transpose_sixteen(const std::uint32_t* from, std::uint32_t* to) {
  __m512i r[16], s[16];
  for (int i = 0; i < 16; ++i) r[i] = words_at(from + 32 * i);
  for (int i = 0; i < 16; i += 2) {
    s[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    s[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(s[i], s[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(s[i], s[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(s[i + 1], s[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(s[i + 1], s[i + 3]);
  }
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 4; ++i) {
      const __m512i a = r[8 * half + i], b = r[8 * half + i + 4];
      s[8 * half + i] = _mm512_shuffle_i32x4(a, b, 0x88);      // quarters 0 and 2 of a, of b
      s[8 * half + i + 4] = _mm512_shuffle_i32x4(a, b, 0xDD);  // 1 and 3
    }
  }
  for (int i = 0; i < 4; ++i) {
    _mm512_storeu_si512(to + 32 * i, _mm512_shuffle_i32x4(s[i], s[8 + i], 0x88));
    _mm512_storeu_si512(to + 32 * (i + 8), _mm512_shuffle_i32x4(s[i], s[8 + i], 0xDD));
    _mm512_storeu_si512(to + 32 * (i + 4), _mm512_shuffle_i32x4(s[i + 4], s[12 + i], 0x88));
    _mm512_storeu_si512(to + 32 * (i + 12), _mm512_shuffle_i32x4(s[i + 4], s[12 + i], 0xDD));
  }
}

KFN void transpose_words(const std::uint32_t* from, std::uint32_t* to) {
  for (int row = 0; row < 32; row += 16)
    for (int column = 0; column < 32; column += 16) transpose_sixteen(from + 32 * row + column, to + 32 * column + row);
}

PYF_END_TARGET
