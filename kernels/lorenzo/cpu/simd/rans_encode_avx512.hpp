// SPDX-License-Identifier: BSD-3-Clause
// Whole rounds encoded with AVX-512: what rans_encode_avx2.hpp does, sixteen lanes a register. Entries are loaded and
// stored one by one, some steps ahead, which leaves the ports of vectors to the states, as a gather does not.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>

#include "lorenzo/cpu/round_indices.hpp"
#include "lorenzo/cpu/simd/rans_avx512.hpp"

PYF_BEGIN_TARGET

// Indices of a round whose residuals are below kMediumEnd.
template <const IndexOf& kOf>
[[gnu::noinline]] inline void index_round(const Neighbours& near, const Contexts& contexts, std::uint32_t lanes,
                                          const std::uint32_t (&rows)[32][kLaneCount], RoundIndices& indices) {
  const TableOfSum table(contexts);
  const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(table.shift));
  const __m512i offset = all_of(static_cast<std::uint32_t>(table.offset)), top = all_of(table.top);
  const __m512i neutral = all_of(kOf.neutral), first_table = all_of(contexts.count << kOf.bits);
  const auto index = [&](std::uint32_t i, std::uint32_t from) {
    const __m512i value = words_at(rows[i] + from);
    __m512i entry = value;
    if constexpr (kOf.symbols) {  // symbol_of_small()
      const __m512 real = _mm512_add_ps(_mm512_cvtepi32_ps(value), _mm512_set1_ps(0.5f));
      const __m512i above =
          _mm512_sub_epi32(_mm512_srli_epi32(_mm512_castps_si512(real), 21), all_of(4 * 131 - kDirectSymbols));
      entry = _mm512_min_epu32(above, value);
    }
    if (i == 0) return _mm512_or_si512(entry, first_table);
    const __m512i sum = _mm512_add_epi32(words_at(rows[near.first[i]] + from), words_at(rows[near.second[i]] + from));
    const __m512i step = _mm512_srl_epi32(_mm512_castps_si512(_mm512_cvtepi32_ps(sum)), shift);
    const __m512i chosen = _mm512_min_epi16(_mm512_subs_epu16(step, offset), top);
    return _mm512_or_si512(entry, _mm512_slli_epi32(chosen, kOf.bits));
  };
  for (std::uint32_t i = 0; i < 32; ++i)
    for (std::uint32_t from = 0; from < lanes; from += 16)
      _mm256_store_si256(
          reinterpret_cast<__m256i*>(indices.of[i] + from),
          _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(neutral, lanes_below(lanes, from), index(i, from))));
}

// The high halves of pairs of words, in turn.
KFN __m512i high_halves_of(__m512i even, __m512i odd) {
  const __m512i order = _mm512_setr_epi32(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
  return _mm512_permutex2var_epi32(even, order, odd);
}

// Entries of sixteen lanes: `even` has those of the first, the third and so on.
struct StepEntries {
  __m512i even, odd;

  KFN void load(const std::uint64_t* fetched) {
    even = _mm512_load_si512(fetched);
    odd = _mm512_load_si512(fetched + 8);
  }
  // What follows the reciprocals.
  KFN __m512i rest() const { return high_halves_of(even, odd); }
};

// Entries of a step in the order of StepEntries, lanes descending.
template <int kVectors>
KFN void fetch_entries(const std::uint64_t* table, const std::uint16_t* index, std::uint64_t* to) {
#pragma GCC unroll 32
  for (int l = 0; l < 16 * kVectors; ++l) {
    const int place = 16 * kVectors - 1 - l;
    std::uint64_t entry = table[index[l]];
    asm("" : "+r"(entry));  // not to be put together in vectors
    to[place / 16 * 16 + place % 2 * 8 + place % 16 / 2] = entry;
  }
}

// States of kVectors times sixteen lanes, which descend: then words of all of them go to the stream together.
template <int kVectors>
struct HeldStates {
  __m512i x[kVectors];

  KFN void load(const LaneStates& states) {
    for (int v = 0; v < kVectors; ++v) x[v] = reversed(words_at(states.x + 16 * (kVectors - 1 - v)));
  }
  KFN void store(LaneStates& states) const {
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_si512(states.x + 16 * (kVectors - 1 - v), reversed(x[v]));
  }
  // Those that must give words to the stream.
  KFN void spill(const __mmask16 (&must)[kVectors], std::uint8_t*& at) {
    if constexpr (kVectors == 1) {
      x[0] = spill_descending(x[0], must[0], at);
    } else {
      alignas(64) static constexpr auto kLowWords = [] {
        std::array<std::uint16_t, 32> low{};
        for (std::size_t i = 0; i < 32; ++i) low[i] = static_cast<std::uint16_t>(2 * i);
        return low;
      }();
      const __mmask32 both = _mm512_kunpackw(must[1], must[0]);
      const __m512i words = _mm512_permutex2var_epi16(x[0], _mm512_load_si512(kLowWords.data()), x[1]);
      _mm512_storeu_si512(at, _mm512_maskz_compress_epi16(both, words));
      at += 2 * __builtin_popcount(both);
      for (int v = 0; v < 2; ++v) x[v] = _mm512_mask_srli_epi32(x[v], must[v], x[v], 16);
    }
  }
};

// A symbol of each lane. `bits` are what the symbols' inner bits are taken from; in narrow rounds the entries have
// them. kInner: there are any.
template <bool kNarrow, bool kInner, int kVectors>
KFN void encode_symbols(HeldStates<kVectors>& states, const StepEntries* entries, const __m512i* bits,
                        std::uint8_t*& at) {
  __m512i rest[kVectors], most[kVectors], inner[kVectors];  // most: frequency - 1
  __mmask16 must[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    rest[v] = entries[v].rest();
    most[v] = _mm512_and_si512(rest[v], all_of(kFrequencySum - 1));
    __m512i room = _mm512_srli_epi32(states.x[v], kStateBits - kProbabilityBits);
    if constexpr (kInner) {
      inner[v] = _mm512_and_si512(_mm512_srli_epi32(rest[v], 25), all_of(7));
      room = _mm512_srlv_epi32(states.x[v], _mm512_sub_epi32(all_of(kStateBits - kProbabilityBits), inner[v]));
    }
    must[v] = _mm512_cmpgt_epi32_mask(room, most[v]);
  }
  states.spill(must, at);
  for (int v = 0; v < kVectors; ++v) {
    __m512i x = states.x[v];
    if constexpr (kInner) {
      const __m512i raw =
          kNarrow ? _mm512_and_si512(_mm512_srli_epi32(rest[v], 20), all_of(31)) : low_bits(bits[v], inner[v]);
      x = _mm512_or_si512(_mm512_sllv_epi32(x, inner[v]), raw);
    }
    const __m512i first = _mm512_and_si512(_mm512_srli_epi32(rest[v], 10), all_of(kFrequencySum - 1));
    const __m512i scaled = _mm512_sllv_epi32(x, _mm512_srli_epi32(rest[v], 28));
    const __m512i even = _mm512_mul_epu32(scaled, entries[v].even);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(scaled, 32), entries[v].odd);
    const __m512i quotient = _mm512_srli_epi32(high_halves_of(even, odd), kQuotientShift);
    const __m512i others = _mm512_sub_epi32(all_of(kFrequencySum - 1), most[v]);
    states.x[v] = _mm512_add_epi32(_mm512_add_epi32(x, first), _mm512_mullo_epi32(quotient, others));
  }
}

// Whether all entries are those of symbols with a frequency.
KFN bool all_known(__m512i both) { return _mm512_test_epi64_mask(both, _mm512_set1_epi64(1ll << 31)) == 0xFF; }

// Steps of kVectors times sixteen lanes, the ones before `end` backwards, by step(i, entries, states, at). The number
// of steps that are left: of the last kAhead ones some have symbols without a frequency.
inline constexpr std::uint32_t kAhead = 4;
template <int kVectors, class Step>
KFN std::uint32_t encode_steps(const std::uint64_t* table, const RoundIndices& indices, std::uint32_t end,
                               LaneStates& states, WordWriter& words, const Step& step) {
  alignas(64) std::uint64_t fetched[kAhead][kLaneCount];
  HeldStates<kVectors> held, done;  // done: before the steps that are not known to be good
  held.load(states);
  std::uint8_t* at = words.at;
  for (std::uint32_t i = end; i != 0 && end - i != kAhead;) {
    --i;
    fetch_entries<kVectors>(table, indices.of[i], fetched[i % kAhead]);
  }
  for (std::uint32_t i = end; i != 0;) {
    const std::uint32_t left = i;
    __m512i known = all_of(~0u);
    done = held;
    do {
      --i;
      StepEntries entries[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        entries[v].load(fetched[i % kAhead] + 16 * v);
        known = _mm512_and_si512(known, _mm512_and_si512(entries[v].even, entries[v].odd));
      }
      step(i, entries, held, at);
      if (i >= kAhead) fetch_entries<kVectors>(table, indices.of[i - kAhead], fetched[i % kAhead]);
    } while (i % kAhead != 0);
    if (!all_known(known)) [[unlikely]] {
      done.store(states);
      return left;
    }
    words.at = at;
  }
  held.store(states);
  return 0;
}

template <int kVectors, bool kInner>
[[gnu::noinline]] inline std::uint32_t encode_narrow(const std::uint64_t* table, const RoundIndices& indices,
                                                     std::uint32_t end, LaneStates& states, WordWriter& words) {
  const auto step = [](std::uint32_t, const StepEntries* entries, HeldStates<kVectors>& held, std::uint8_t*& at) {
    encode_symbols<true, kInner>(held, entries, held.x, at);
  };
  return encode_steps<kVectors>(table, indices, end, states, words, step);
}

// The same of a medium round, whose residuals are needed again. Those of 256 and more have outer bits.
template <int kVectors>
[[gnu::noinline]] inline std::uint32_t encode_medium(const std::uint64_t* table, const RoundIndices& indices,
                                                     const std::uint32_t (&rows)[32][kLaneCount], std::uint32_t end,
                                                     LaneStates& states, WordWriter& words) {
  const auto step = [&rows](std::uint32_t i, const StepEntries* entries, HeldStates<kVectors>& held,
                            std::uint8_t*& at) {
    __m512i value[kVectors];
    unsigned outer = 0;
    for (int v = 0; v < kVectors; ++v) {
      value[v] = reversed(words_at(rows[i] + 16 * (kVectors - 1 - v)));
      outer |= _mm512_cmpge_epu32_mask(value[v], all_of(kNarrowEnd));
    }
    if (outer != 0) {
      __m512i count[kVectors];
      __mmask16 must[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        const __m512i exponent = _mm512_srli_epi32(_mm512_castps_si512(_mm512_cvtepi32_ps(value[v])), 23);
        count[v] = _mm512_max_epi32(_mm512_sub_epi32(exponent, all_of(126 + 3 + kInnerBits)), _mm512_setzero_si512());
        const __m512i above = _mm512_srlv_epi32(held.x[v], _mm512_sub_epi32(all_of(kStateBits), count[v]));
        must[v] = _mm512_test_epi32_mask(above, above);
      }
      held.spill(must, at);
      for (int v = 0; v < kVectors; ++v) {
        const __m512i bits = low_bits(_mm512_srli_epi32(value[v], kInnerBits), count[v]);
        held.x[v] = _mm512_or_si512(_mm512_sllv_epi32(held.x[v], count[v]), bits);
      }
    }
    encode_symbols<false, true>(held, entries, value, at);
  };
  return encode_steps<kVectors>(table, indices, end, states, words, step);
}

PYF_END_TARGET
