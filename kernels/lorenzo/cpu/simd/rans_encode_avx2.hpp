// SPDX-License-Identifier: BSD-3-Clause
// Whole rounds encoded with AVX2. Forwards, while its residuals are at hand, each becomes the index of a table's entry;
// backwards the entries are loaded one by one, which is faster than a gather, and the states stay in registers.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "lorenzo/cpu/round_indices.hpp"
#include "lorenzo/cpu/simd/rans_avx2.hpp"

PYF_BEGIN_TARGET

// Indices of a round whose residuals are below kMediumEnd.
template <const IndexOf& kOf>
[[gnu::noinline]] inline void index_round(const Neighbours& near, const Contexts& contexts, std::uint32_t lanes,
                                          const std::uint32_t (&rows)[32][kLaneCount], RoundIndices& indices) {
  const TableOfSum table(contexts);
  const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(table.shift));
  const __m256i offset = all_of(static_cast<std::uint32_t>(table.offset)), top = all_of(table.top);
  const __m256i neutral = all_of(kOf.neutral), first_table = all_of(contexts.count << kOf.bits);
  const auto index = [&](std::uint32_t i, std::uint32_t from) {
    const __m256i value = load(rows[i] + from);
    __m256i entry = value;
    if constexpr (kOf.symbols) {  // symbol_of_small()
      const __m256 real = _mm256_add_ps(_mm256_cvtepi32_ps(value), _mm256_set1_ps(0.5f));
      const __m256i above =
          _mm256_sub_epi32(_mm256_srli_epi32(_mm256_castps_si256(real), 21), all_of(4 * 131 - kDirectSymbols));
      entry = _mm256_min_epu32(above, value);
    }
    if (i == 0) return _mm256_or_si256(entry, first_table);
    const __m256i sum = _mm256_add_epi32(load(rows[near.first[i]] + from), load(rows[near.second[i]] + from));
    const __m256i step = _mm256_srl_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(sum)), shift);
    const __m256i chosen = _mm256_min_epi16(_mm256_subs_epu16(step, offset), top);
    return _mm256_or_si256(entry, _mm256_slli_epi32(chosen, kOf.bits));
  };
  for (std::uint32_t i = 0; i < 32; ++i) {
    for (std::uint32_t from = 0; from < lanes; from += 16) {
      __m256i low = index(i, from), high = index(i, from + 8);
      if (lanes < from + 16) {
        low = _mm256_blendv_epi8(neutral, low, lanes_below(lanes, from));
        high = _mm256_blendv_epi8(neutral, high, lanes_below(lanes, from + 8));
      }
      _mm256_store_si256(reinterpret_cast<__m256i*>(indices.of[i] + from),
                         _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xD8));
    }
  }
}

// Entries of eight lanes: `even` has those of lanes 0, 2, 4, 6.
struct StepEntries {
  __m256i even, odd;

  KFN StepEntries(const std::uint64_t* table, const std::uint16_t* index) {
    const auto two = [&](int first, int second) {
      const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(table + index[first]));
      return _mm_castpd_si128(
          _mm_loadh_pd(_mm_castsi128_pd(low), reinterpret_cast<const double*>(table + index[second])));
    };
    even = _mm256_set_m128i(two(4, 6), two(0, 2));
    odd = _mm256_set_m128i(two(5, 7), two(1, 3));
  }
  // What follows the reciprocals.
  KFN __m256i rest() const { return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA); }
};

// A symbol of eight lanes. `bits` are what the symbol's inner bits are taken from; in narrow rounds the entries have
// them. kInner: there are any.
template <bool kNarrow, bool kInner>
KFN __m256i encode_eight(__m256i x, const StepEntries& entries, __m256i bits, std::uint8_t*& at) {
  const __m256i rest = entries.rest();
  const __m256i most = _mm256_and_si256(rest, all_of(kFrequencySum - 1));  // frequency - 1
  const __m256i first = _mm256_and_si256(_mm256_srli_epi32(rest, 10), all_of(kFrequencySum - 1));
  if constexpr (kInner) {
    const __m256i inner = _mm256_and_si256(_mm256_srli_epi32(rest, 25), all_of(7));
    const __m256i room = _mm256_srlv_epi32(x, _mm256_sub_epi32(all_of(kStateBits - kProbabilityBits), inner));
    x = spill_words(x, _mm256_cmpgt_epi32(room, most), at);
    const __m256i raw = kNarrow ? _mm256_and_si256(_mm256_srli_epi32(rest, 20), all_of(31))
                                : _mm256_andnot_si256(_mm256_sllv_epi32(all_of(~0u), inner), bits);
    x = _mm256_or_si256(_mm256_sllv_epi32(x, inner), raw);
  } else {
    const __m256i room = _mm256_srli_epi32(x, static_cast<int>(kStateBits - kProbabilityBits));
    x = spill_words(x, _mm256_cmpgt_epi32(room, most), at);
  }
  const __m256i scaled = _mm256_sllv_epi32(x, _mm256_srli_epi32(rest, 28));
  const __m256i even = _mm256_mul_epu32(scaled, entries.even);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(scaled, 32), entries.odd);
  const __m256i high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
  const __m256i quotient = _mm256_srli_epi32(high, static_cast<int>(kQuotientShift));
  const __m256i others = _mm256_sub_epi32(all_of(kFrequencySum - 1), most);
  return _mm256_add_epi32(_mm256_add_epi32(x, first), _mm256_mullo_epi32(quotient, others));
}

// Whether all entries are those of symbols with a frequency.
KFN bool all_known(__m256i both) { return (mask_of(both) & 0x55) == 0x55; }

// Steps of kVectors times eight lanes, the ones before `end` backwards. The number of steps that are left: the last of
// them has a symbol without a frequency.
template <int kVectors, bool kInner>
[[gnu::noinline]] inline std::uint32_t encode_narrow(const std::uint64_t* table, const RoundIndices& indices,
                                                     std::uint32_t end, LaneStates& states, WordWriter& words) {
  __m256i x[kVectors];
  std::uint8_t* at = words.at;
  for (int v = 0; v < kVectors; ++v) x[v] = load(states.x + 8 * v);
  for (std::uint32_t i = end; i-- > 0;) {
    __m256i known = all_of(~0u);
    for (int v = kVectors; v-- > 0;) {
      const StepEntries entries(table, indices.of[i] + 8 * v);
      known = _mm256_and_si256(known, _mm256_and_si256(entries.even, entries.odd));
      x[v] = encode_eight<true, kInner>(x[v], entries, x[v], at);
    }
    if (!all_known(known)) [[unlikely]]
      return i + 1;
    for (int v = 0; v < kVectors; ++v) store(states.x + 8 * v, x[v]);
    words.at = at;
  }
  return 0;
}

// The same of a medium round, whose residuals are needed again. Those of 256 and more have outer bits.
template <int kVectors>
[[gnu::noinline]] inline std::uint32_t encode_medium(const std::uint64_t* table, const RoundIndices& indices,
                                                     const std::uint32_t (&rows)[32][kLaneCount], std::uint32_t end,
                                                     LaneStates& states, WordWriter& words) {
  __m256i x[kVectors];
  std::uint8_t* at = words.at;
  for (int v = 0; v < kVectors; ++v) x[v] = load(states.x + 8 * v);
  for (std::uint32_t i = end; i-- > 0;) {
    __m256i known = all_of(~0u), any = _mm256_setzero_si256();
    for (int v = 0; v < kVectors; ++v) any = _mm256_or_si256(any, load(rows[i] + 8 * v));
    if (_mm256_testz_si256(any, all_of(~(kNarrowEnd - 1))) == 0) {
      for (int v = kVectors; v-- > 0;) {
        const __m256i value = load(rows[i] + 8 * v), zero = _mm256_setzero_si256();
        const __m256i exponent = _mm256_srli_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(value)), 23);
        const __m256i count = _mm256_max_epi32(_mm256_sub_epi32(exponent, all_of(126 + 3 + kInnerBits)), zero);
        const __m256i bits = _mm256_andnot_si256(_mm256_sllv_epi32(all_of(~0u), count),
                                                 _mm256_srli_epi32(value, static_cast<int>(kInnerBits)));
        const __m256i above = _mm256_srlv_epi32(x[v], _mm256_sub_epi32(all_of(kStateBits), count));
        x[v] = spill_words(x[v], _mm256_cmpgt_epi32(above, zero), at);
        x[v] = _mm256_or_si256(_mm256_sllv_epi32(x[v], count), bits);
      }
    }
    for (int v = kVectors; v-- > 0;) {
      const StepEntries entries(table, indices.of[i] + 8 * v);
      known = _mm256_and_si256(known, _mm256_and_si256(entries.even, entries.odd));
      x[v] = encode_eight<false, true>(x[v], entries, load(rows[i] + 8 * v), at);
    }
    if (!all_known(known)) [[unlikely]]
      return i + 1;
    for (int v = 0; v < kVectors; ++v) store(states.x + 8 * v, x[v]);
    words.at = at;
  }
  return 0;
}

PYF_END_TARGET
