// SPDX-License-Identifier: BSD-3-Clause
// Words of a stream and entries of its tables with AVX-512. Words are handed out and collected by expansion and
// compression. A decoder gathers entries. An encoder loads and stores them one by one, some steps ahead: a gather would
// occupy the vector ports that the states need.
#pragma once

#include <array>
#include <cstdint>

#include "lorenzo/cpu/lanes.hpp"
#include "lorenzo/cpu/round_indices.hpp"
#include "stages/simd/vector.hpp"

PYF_BEGIN_TARGET

// The next words of a stream: one for each lane of `lanes`, 0 for the others.
KFN U32 next_words(const std::uint8_t* at, __mmask16 lanes) {
  const __m512i next = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  return (U32)_mm512_maskz_expand_epi32(lanes, next);
}

// Reverses sixteen lanes.
KFN __m512i reversed(__m512i x) {
  return _mm512_permutexvar_epi32(_mm512_setr_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), x);
}

// The number of vectors whose words go to the stream together. Their states are held in descending order of lanes, as
// their words are written.
inline constexpr int kSpilledTogether = 2;
KFN U32 held_order(U32 x) { return (U32)reversed((__m512i)x); }
// Appends the low halves of some states to the stream.
KFN void spill_held(U32 (&x)[1], const __mmask16 (&lanes)[1], std::uint8_t*& at) {
  const __m256i words = _mm256_maskz_compress_epi16(lanes[0], _mm512_cvtepi32_epi16((__m512i)x[0]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), words);
  at += 2 * __builtin_popcount(lanes[0]);
  x[0] = shifted_right<16>(x[0], lanes[0]);
}
KFN void spill_held(U32 (&x)[2], const __mmask16 (&lanes)[2], std::uint8_t*& at) {
  alignas(64) static constexpr auto kLowWords = [] {
    std::array<std::uint16_t, 32> low{};
    for (std::size_t i = 0; i < 32; ++i) low[i] = static_cast<std::uint16_t>(2 * i);
    return low;
  }();
  const __mmask32 both = _mm512_kunpackw(lanes[1], lanes[0]);
  const __m512i words = _mm512_permutex2var_epi16((__m512i)x[0], _mm512_load_si512(kLowWords.data()), (__m512i)x[1]);
  _mm512_storeu_si512(at, _mm512_maskz_compress_epi16(both, words));
  at += 2 * __builtin_popcount(both);
  for (int v = 0; v < 2; ++v) x[v] = shifted_right<16>(x[v], lanes[v]);
}
KFN U32 spill_words(U32 x, __mmask16 lanes, std::uint8_t*& at) {
  U32 held[1] = {held_order(x)};
  spill_held(held, {_mm512_movepi32_mask(reversed(_mm512_movm_epi32(lanes)))}, at);
  return held_order(held[0]);
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

// Loads the entries at the lanes' indices.
KFN U32 entries_at(const std::uint32_t* table, U32 index) { return gathered<4>(table, index); }

// The smallest residual of a symbol below 2 * kDirectSymbols, 0 for others.
KFN U32 smallest_narrow(U32 symbol) {
  static_assert(kDirectSymbols == 16);
  const __m512i direct = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i others = _mm512_setr_epi32(16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224);
  return (U32)_mm512_maskz_permutex2var_epi32(above(all_of(2 * kDirectSymbols), symbol), direct, (__m512i)symbol,
                                              others);
}

// Table entries of sixteen lanes: `even` holds the entries of lanes 0, 2, 4 and so on.
struct StepEntries {
  U64 even, odd;
};

// Reads the entries of a round's steps backwards, for kVectors vectors with descending lanes. Entries are fetched some
// steps ahead, in the order of StepEntries.
template <int kVectors>
class EntryReader {
 public:
  static constexpr std::uint32_t kUnchecked = 4;  // steps between two checks for symbols without a frequency

  KFN EntryReader(const std::uint64_t* table, const RoundIndices& indices, std::uint32_t end)
      : table_(table), indices_(indices) {
    for (std::uint32_t i = end; i != 0 && end - i != kUnchecked;) fetch(--i);
  }
  KFN StepEntries entries(std::uint32_t i, int v) const {
    const std::uint64_t* const from = fetched_[i % kUnchecked] + 16 * v;
    return {load(from), load(from + 8)};
  }
  KFN void step_done(std::uint32_t i) {
    if (i >= kUnchecked) fetch(i - kUnchecked);
  }

 private:
  KFN void fetch(std::uint32_t i) {
    std::uint64_t* const to = fetched_[i % kUnchecked];
#pragma GCC unroll 32
    for (int l = 0; l < 16 * kVectors; ++l) {
      const int place = 16 * kVectors - 1 - l;
      std::uint64_t entry = table_[indices_.of[i][l]];
      asm("" : "+r"(entry));  // keeps the compiler from assembling entries in vectors
      to[place / 16 * 16 + place % 2 * 8 + place % 16 / 2] = entry;
    }
  }

  alignas(64) std::uint64_t fetched_[kUnchecked][kLaneCount];
  const std::uint64_t* table_;
  const RoundIndices& indices_;
};

// A function of numbers below 256 by tables of 64 bytes. From 64 on it is constant over `scale` numbers.
struct ByteTable {
  __m512i small, large;

  template <class Of>
  KFN ByteTable(const Of& of, std::uint32_t scale) {
    const auto table = [&](std::uint32_t step) {
      const auto from = [&](std::uint32_t first) { return (__m512i)of((lane_numbers() + first) * step); };
      const __m512i low = _mm512_packus_epi32(from(0), from(16)), high = _mm512_packus_epi32(from(32), from(48));
      const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high));
    };
    small = table(1);
    large = table(scale);
  }
  // The function of `number`; `steps` is 4 * number / scale.
  KFN U8 of(U8 number, U8 steps) const {
    const __mmask64 is_large = _mm512_cmpgt_epu8_mask((__m512i)number, _mm512_set1_epi8(63));
    const __m512i index = _mm512_srli_epi16((__m512i)steps, 2);  // the upper six bits count
    return (U8)_mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8((__m512i)number, small), is_large, index, large);
  }
};

PYF_END_TARGET
