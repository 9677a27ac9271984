// SPDX-License-Identifier: BSD-3-Clause
// Steps of 32 lanes of a stream with AVX2 (lorenzo/cpu/lanes.hpp says what they do): eight states a register, tables
// by gathers, words of the stream handed out and collected by permutations.
#pragma once

#include <immintrin.h>

#include <array>
#include <bit>

#include "lorenzo/cpu/lanes.hpp"
#include "stages/simd/planes_avx2.hpp"

PYF_BEGIN_TARGET

// By a mask of eight lanes: bytes of the lanes' words packed to the end of a register, in order.
struct LaneOrders {
  alignas(16) std::array<std::array<std::uint8_t, 16>, 256> packed{};
};
constexpr LaneOrders make_lane_orders() {
  LaneOrders orders;
  for (unsigned mask = 0; mask < 256; ++mask) {
    unsigned to = 16 - 2 * static_cast<unsigned>(std::popcount(mask));
    for (unsigned i = 0; i < to; ++i) orders.packed[mask][i] = 0x80;
    for (unsigned lane = 0; lane < 8; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      orders.packed[mask][to++] = static_cast<std::uint8_t>(2 * lane);
      orders.packed[mask][to++] = static_cast<std::uint8_t>(2 * lane + 1);
    }
  }
  return orders;
}
inline constexpr LaneOrders kLaneOrders = make_lane_orders();

// By a mask of eight lanes: the bytes of the next eight words that each lane's low half takes; others become 0.
struct WordOrders {
  alignas(32) std::array<std::array<std::uint8_t, 32>, 256> bytes{};
};
constexpr WordOrders make_word_orders() {
  WordOrders orders;
  for (unsigned mask = 0; mask < 256; ++mask) {
    unsigned taken = 0;
    for (unsigned lane = 0; lane < 8; ++lane) {
      auto* const to = orders.bytes[mask].data() + 4 * lane;
      for (unsigned i = 0; i < 4; ++i) to[i] = 0x80;
      if ((mask >> lane & 1) == 0) continue;
      to[0] = static_cast<std::uint8_t>(2 * taken);
      to[1] = static_cast<std::uint8_t>(2 * taken + 1);
      ++taken;
    }
  }
  return orders;
}
inline constexpr WordOrders kWordOrders = make_word_orders();

inline constexpr int kMostVectors = 4;  // that the states of a stream are in

// Words that a step may read: one a lane for a symbol, two for raw bits behind it; and a register too much.
inline constexpr std::ptrdiff_t kStepBytes = 2 * 32 * 3 + 16;

KFN __m256i all_of(std::uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
KFN unsigned mask_of(__m256i v) { return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(v))); }

// Lanes of the register that starts with lane `from` which take part.
KFN __m256i lanes_below(std::uint32_t lanes, std::uint32_t from) {
  const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_sub_epi32(all_of(lanes), all_of(from)), index);
}

// States below the lowest take a word each, in the order of the lanes: those in `part`.
KFN __m256i take_words(__m256i x, __m256i part, const std::uint8_t*& at) {
  const __m256i low = _mm256_and_si256(_mm256_cmpgt_epi32(all_of(kLowestState), x), part);
  const unsigned mask = mask_of(low);
  const __m256i next = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  const __m256i order = _mm256_load_si256(reinterpret_cast<const __m256i*>(kWordOrders.bytes[mask].data()));
  at += 2 * __builtin_popcount(mask);
  const __m256i grown = _mm256_sllv_epi32(x, _mm256_and_si256(low, all_of(16)));
  return _mm256_or_si256(grown, _mm256_shuffle_epi8(next, order));
}

// Index of the first entry of a lane's table, in tables.
KFN __m256i table_of(const Contexts& contexts, __m256i first, __m256i second) {
  const __m256i cap = all_of(kLevelCap);
  const __m256i sum = _mm256_add_epi32(_mm256_min_epu32(first, cap), _mm256_min_epu32(second, cap));
  const __m256i exponent = _mm256_srli_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(sum)), 22);
  const __m256i level = _mm256_max_epi32(_mm256_sub_epi32(exponent, all_of(253)), _mm256_setzero_si256());
  const __m256i octaves = all_of(contexts.octaves);
  const __m256i step = _mm256_srlv_epi32(_mm256_add_epi32(level, octaves), octaves);
  const __m256i above = _mm256_max_epi32(_mm256_sub_epi32(step, all_of(contexts.base)), _mm256_setzero_si256());
  return _mm256_min_epi32(above, all_of(contexts.count - 1));
}

// The bits of raw value behind a symbol: some lanes have up to two steps of them.
[[gnu::noinline]] inline void decode_outer_lanes(std::uint32_t lanes, std::uint32_t* row, const std::uint32_t* symbols,
                                                 LaneStates& states, WordReader& words) {
  for (std::uint32_t taken = kInnerBits; taken < 32; taken += kStepBits) {
    unsigned any = 0;
    for (std::uint32_t from = 0; from < lanes; from += 8) {
      const __m256i symbol = load(symbols + from);
      const __m256i raw = _mm256_sub_epi32(_mm256_srli_epi32(symbol, 2), all_of(2));  // below 0 for direct ones
      const __m256i left = _mm256_sub_epi32(raw, all_of(taken));
      const __m256i takes =
          _mm256_and_si256(_mm256_cmpgt_epi32(left, _mm256_setzero_si256()), lanes_below(lanes, from));
      if (mask_of(takes) == 0) continue;
      any = 1;
      const __m256i bits = _mm256_and_si256(_mm256_min_epi32(left, all_of(kStepBits)), takes);
      const __m256i x = load(states.x + from);
      const __m256i value = _mm256_andnot_si256(_mm256_sllv_epi32(all_of(~0u), bits), x);
      store(row + from, _mm256_add_epi32(load(row + from), _mm256_slli_epi32(value, static_cast<int>(taken))));
      store(states.x + from, take_words(_mm256_srlv_epi32(x, bits), takes, words.at));
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
  alignas(32) std::uint32_t symbols[kLaneCount];
  const std::uint32_t *const first = rows.low[near.first[i]], *const second = rows.low[near.second[i]];
  __m256i highest = _mm256_setzero_si256();
  for (std::uint32_t from = 0; from < lanes; from += 8) {
    const __m256i taking_part = lanes_below(lanes, from);
    const __m256i table =
        i == 0 ? all_of(tables.contexts.count) : table_of(tables.contexts, load(first + from), load(second + from));
    __m256i x = load(states.x + from);
    const __m256i slot = _mm256_and_si256(x, all_of(kFrequencySum - 1));
    const __m256i entry = _mm256_i32gather_epi32(reinterpret_cast<const int*>(tables.entries),
                                                 _mm256_or_si256(_mm256_slli_epi32(table, kProbabilityBits), slot), 4);
    const __m256i frequency = _mm256_and_si256(_mm256_srli_epi32(entry, 8), all_of(0x7FF));
    const __m256i place = _mm256_and_si256(_mm256_srli_epi32(entry, 19), all_of(0x3FF));
    const __m256i inner = _mm256_srli_epi32(entry, 29), symbol = _mm256_and_si256(entry, all_of(0xFF));
    const __m256i shrunk =
        _mm256_add_epi32(_mm256_mullo_epi32(frequency, _mm256_srli_epi32(x, kProbabilityBits)), place);
    const __m256i raw = _mm256_andnot_si256(_mm256_sllv_epi32(all_of(~0u), inner), shrunk);
    x = _mm256_blendv_epi8(x, _mm256_srlv_epi32(shrunk, inner), taking_part);
    store(states.x + from, take_words(x, taking_part, words.at));
    // direct symbols are their values
    const __m256i scale = _mm256_sub_epi32(_mm256_srli_epi32(symbol, 2), all_of(2));
    const __m256i smallest = _mm256_sllv_epi32(_mm256_or_si256(_mm256_and_si256(symbol, all_of(3)), all_of(4)), scale);
    const __m256i direct = _mm256_cmpgt_epi32(all_of(kDirectSymbols), symbol);
    store(rows.low[i] + from, _mm256_blendv_epi8(_mm256_add_epi32(smallest, raw), symbol, direct));
    store(symbols + from, symbol);
    highest = _mm256_max_epi32(highest, _mm256_and_si256(symbol, taking_part));
  }
  if (mask_of(_mm256_cmpgt_epi32(highest, all_of(2 * kDirectSymbols - 1))) == 0) return;
  if (mask_of(_mm256_cmpgt_epi32(highest, all_of(symbols_of_width(32) - 1))) == 0) {
    decode_outer_lanes(lanes, rows.low[i], symbols, states, words);
    return;
  }
  for (std::uint32_t l = 0; l < lanes; ++l)  // what decode_outer() expects of symbols that have no value yet
    if (symbols[l] >= symbols_of_width(32)) rows.low[i][l] &= (1u << kInnerBits) - 1;
  decode_outer(code_bits, lanes, i, symbols, rows, states, words);
}

// States that must give words to the stream.
KFN __m256i spill_words(__m256i x, __m256i must, std::uint8_t*& at) {
  const __m256i low_halves = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 0, 1, 4, 5, 8, 9, 12, 13,  //
                                              0, 1, 4, 5, 8, 9, 12, 13, 0, 1, 4, 5, 8, 9, 12, 13);
  const unsigned mask = mask_of(must);
  const __m256i halves = _mm256_shuffle_epi8(x, low_halves);
  const __m128i words = _mm_unpacklo_epi64(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
  const __m128i order = _mm_load_si128(reinterpret_cast<const __m128i*>(kLaneOrders.packed[mask].data()));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(at - 16), _mm_shuffle_epi8(words, order));
  at -= 2 * __builtin_popcount(mask);
  return _mm256_srlv_epi32(x, _mm256_and_si256(must, all_of(16)));
}

// The high halves of 32-bit products, shifted: x * reciprocal >> 31 + shift.
KFN __m256i divided(__m256i x, __m256i reciprocal, __m256i shift) {
  const __m256i all = _mm256_add_epi32(shift, all_of(31));
  const __m256i low_half = _mm256_set1_epi64x(0xFFFFFFFF);
  const __m256i even = _mm256_srlv_epi64(_mm256_mul_epu32(x, reciprocal), _mm256_and_si256(all, low_half));
  const __m256i odd = _mm256_srlv_epi64(_mm256_mul_epu32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(reciprocal, 32)),
                                        _mm256_srli_epi64(all, 32));
  return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
}

// Symbols of residuals below 2^31: above 15 the exponent and two bits of a float, rounded down.
KFN __m256i symbols_of(__m256i residual) {
  // what a float has no room for must not round up: keep the 24 highest bits at least
  const __m256i cut = _mm256_andnot_si256(_mm256_srli_epi32(residual, 24), residual);
  const __m256i bits = _mm256_castps_si256(_mm256_cvtepi32_ps(cut));
  const __m256i above = _mm256_sub_epi32(_mm256_srli_epi32(bits, 21), all_of(4 * 131 - 16));
  return _mm256_blendv_epi8(above, residual, _mm256_cmpgt_epi32(all_of(kDirectSymbols), residual));
}

// By lanes where a value has 31 bits or more, or a symbol no frequency.
KFN void encode_step(const EncodeTables& tables, const Neighbours& near, std::uint32_t lanes, std::uint32_t i,
                     const RoundRows& rows, LaneStates& states, WordWriter& words) {
  const std::uint32_t *const first = rows.low[near.first[i]], *const second = rows.low[near.second[i]];
  __m256i symbol[4], low[4], high[4];
  __m256i unusual = _mm256_setzero_si256(), highest = unusual;
  for (std::uint32_t v = 0; 8 * v < lanes; ++v) {
    const __m256i taking_part = lanes_below(lanes, 8 * v);
    const __m256i value = _mm256_and_si256(load(rows.low[i] + 8 * v), taking_part);
    const __m256i table =
        i == 0 ? all_of(tables.contexts.count) : table_of(tables.contexts, load(first + 8 * v), load(second + 8 * v));
    symbol[v] = symbols_of(value);
    const __m256i index = _mm256_add_epi32(_mm256_slli_epi32(table, 8), symbol[v]);
    // a value of 32 bits is below 0 here, and so may its index be
    const __m256i inside = _mm256_and_si256(index, all_of(4095));
    low[v] = _mm256_i32gather_epi32(reinterpret_cast<const int*>(tables.entries), inside, 8);
    high[v] = _mm256_i32gather_epi32(reinterpret_cast<const int*>(tables.entries) + 1, inside, 8);
    const __m256i none = _mm256_cmpeq_epi32(low[v], _mm256_setzero_si256());
    unusual = _mm256_or_si256(unusual, _mm256_or_si256(_mm256_and_si256(none, taking_part), value));
    unusual = _mm256_or_si256(unusual, _mm256_slli_epi32(value, 1));
    highest = _mm256_max_epi32(highest, _mm256_and_si256(symbol[v], taking_part));
  }
  if (rows.wide || mask_of(unusual) != 0) [[unlikely]] {
    encode_step_by_lane(tables, near, lanes, i, rows, states, words);
    return;
  }
  const std::uint32_t last = (lanes - 1) / 8;
  if (mask_of(_mm256_cmpgt_epi32(highest, all_of(2 * kDirectSymbols - 1))) != 0) {
    for (const std::uint32_t taken : {kInnerBits + kStepBits, kInnerBits}) {
      for (std::uint32_t v = last + 1; v-- > 0;) {
        const __m256i raw = _mm256_sub_epi32(_mm256_srli_epi32(symbol[v], 2), all_of(2));
        const __m256i left = _mm256_sub_epi32(raw, all_of(taken));
        const __m256i gives =
            _mm256_and_si256(_mm256_cmpgt_epi32(left, _mm256_setzero_si256()), lanes_below(lanes, 8 * v));
        if (mask_of(gives) == 0) continue;
        const __m256i bits = _mm256_and_si256(_mm256_min_epi32(left, all_of(kStepBits)), gives);
        const __m256i value =
            _mm256_andnot_si256(_mm256_sllv_epi32(all_of(~0u), bits),
                                _mm256_srli_epi32(load(rows.low[i] + 8 * v), static_cast<int>(taken)));
        __m256i x = load(states.x + 8 * v);
        const __m256i above = _mm256_srlv_epi32(x, _mm256_sub_epi32(all_of(kStateBits), bits));
        const __m256i must = _mm256_and_si256(_mm256_cmpgt_epi32(above, _mm256_setzero_si256()), gives);
        x = spill_words(x, must, words.at);
        store(states.x + 8 * v, _mm256_or_si256(_mm256_sllv_epi32(x, bits), value));
      }
    }
  }
  for (std::uint32_t v = last + 1; v-- > 0;) {
    const __m256i taking_part = lanes_below(lanes, 8 * v);
    const __m256i old = load(states.x + 8 * v);
    const __m256i frequency = _mm256_and_si256(high[v], all_of(0x7FF));
    const __m256i start = _mm256_and_si256(_mm256_srli_epi32(high[v], 11), all_of(0x3FF));
    const __m256i raw =
        _mm256_max_epi32(_mm256_sub_epi32(_mm256_srli_epi32(symbol[v], 2), all_of(2)), _mm256_setzero_si256());
    const __m256i direct = _mm256_cmpgt_epi32(all_of(kDirectSymbols), symbol[v]);
    const __m256i inner = _mm256_andnot_si256(direct, _mm256_min_epi32(raw, all_of(kInnerBits)));
    const __m256i room = _mm256_srlv_epi32(old, _mm256_sub_epi32(all_of(kStateBits - kProbabilityBits), inner));
    const __m256i must = _mm256_andnot_si256(_mm256_cmpgt_epi32(frequency, room), taking_part);
    __m256i x = spill_words(old, must, words.at);
    const __m256i bits = _mm256_andnot_si256(_mm256_sllv_epi32(all_of(~0u), inner), load(rows.low[i] + 8 * v));
    x = _mm256_or_si256(_mm256_sllv_epi32(x, inner), bits);
    const __m256i quotient = divided(x, low[v], _mm256_srli_epi32(high[v], 21));
    const __m256i rest = _mm256_mullo_epi32(quotient, _mm256_sub_epi32(all_of(kFrequencySum), frequency));
    x = _mm256_add_epi32(_mm256_add_epi32(x, start), rest);
    store(states.x + 8 * v, _mm256_blendv_epi8(old, x, taking_part));
  }
}

// Eight rows of eight words to columns.
KFN void transpose_eight(const std::uint32_t* from, std::uint32_t* to) {
  __m256i r[8], s[8];
  for (int i = 0; i < 8; ++i) r[i] = load(from + 32 * i);
  for (int i = 0; i < 4; ++i) {
    s[2 * i] = _mm256_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    s[2 * i + 1] = _mm256_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    r[4 * i] = _mm256_unpacklo_epi64(s[4 * i], s[4 * i + 2]);
    r[4 * i + 1] = _mm256_unpackhi_epi64(s[4 * i], s[4 * i + 2]);
    r[4 * i + 2] = _mm256_unpacklo_epi64(s[4 * i + 1], s[4 * i + 3]);
    r[4 * i + 3] = _mm256_unpackhi_epi64(s[4 * i + 1], s[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    store(to + 32 * i, _mm256_permute2x128_si256(r[i], r[i + 4], 0x20));
    store(to + 32 * (i + 4), _mm256_permute2x128_si256(r[i], r[i + 4], 0x31));
  }
}

KFN void transpose_words(const std::uint32_t* from, std::uint32_t* to) {
  for (int row = 0; row < 32; row += 8)
    for (int column = 0; column < 32; column += 8) transpose_eight(from + 32 * row + column, to + 32 * column + row);
}

PYF_END_TARGET
