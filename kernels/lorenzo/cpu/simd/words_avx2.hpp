// SPDX-License-Identifier: BSD-3-Clause
// Words of a stream and entries of its tables with AVX2. Words are handed out and collected by permutations, taken from
// tables of 256 rows. Entries are loaded one by one, which is faster than a gather.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "lorenzo/cpu/lanes.hpp"
#include "lorenzo/cpu/round_indices.hpp"
#include "stages/simd/vector.hpp"

PYF_BEGIN_TARGET

// Permutations for each mask of eight lanes. `packed` moves the lanes' words to the end of a register, in order. The
// other gives each lane's low half one of the next eight words. All other bytes become 0.
struct WordOrders {
  alignas(32) std::array<std::array<std::uint8_t, 16>, 256> packed{};
  alignas(32) std::array<std::array<std::uint8_t, 32>, 256> taken{};
};
inline constexpr WordOrders kWordOrders = [] {
  WordOrders orders;
  for (unsigned mask = 0; mask < 256; ++mask) {
    for (std::uint8_t& byte : orders.packed[mask]) byte = 0x80;
    for (std::uint8_t& byte : orders.taken[mask]) byte = 0x80;
    unsigned word = 0, to = 8 - static_cast<unsigned>(std::popcount(mask));
    for (unsigned lane = 0; lane < 8; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      for (unsigned i = 0; i < 2; ++i) {
        orders.packed[mask][2 * to + i] = static_cast<std::uint8_t>(2 * lane + i);
        orders.taken[mask][4 * lane + i] = static_cast<std::uint8_t>(2 * word + i);
      }
      ++to, ++word;
    }
  }
  return orders;
}();

// The next words of a stream: one for each lane of `lanes`, 0 for the others.
KFN U32 next_words(const std::uint8_t* at, U32 lanes) {
  const __m256i next = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  return (U32)_mm256_shuffle_epi8(next, load_bytes(kWordOrders.taken[lane_bits(lanes)].data()));
}
// Appends the low halves of some states to the stream.
KFN U32 spill_words(U32 x, U32 lanes, std::uint8_t*& at) {
  const __m256i low_halves = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 0, 1, 4, 5, 8, 9, 12, 13,  //
                                              0, 1, 4, 5, 8, 9, 12, 13, 0, 1, 4, 5, 8, 9, 12, 13);
  const unsigned mask = lane_bits(lanes);
  const __m256i halves = _mm256_shuffle_epi8((__m256i)x, low_halves);
  const __m128i words = _mm_unpacklo_epi64(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
  const __m128i order = _mm_load_si128(reinterpret_cast<const __m128i*>(kWordOrders.packed[mask].data()));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(at - 16), _mm_shuffle_epi8(words, order));
  at -= 2 * __builtin_popcount(mask);
  return shifted_right<16>(x, lanes);
}

// The number of vectors whose words go to the stream together, and the order of lanes in which their states are held.
inline constexpr int kSpilledTogether = 1;
KFN U32 held_order(U32 x) { return x; }
KFN void spill_held(U32 (&x)[1], const U32 (&lanes)[1], std::uint8_t*& at) { x[0] = spill_words(x[0], lanes[0], at); }

// Loads the entries at the lanes' indices.
KFN U32 entries_at(const std::uint32_t* table, U32 index) {
  alignas(32) std::uint32_t at[8];
  store(at, index);
  const auto four = [&](const std::uint32_t* i) {
    __m128i v = _mm_cvtsi32_si128(static_cast<int>(table[i[0]]));
    v = _mm_insert_epi32(v, static_cast<int>(table[i[1]]), 1);
    v = _mm_insert_epi32(v, static_cast<int>(table[i[2]]), 2);
    return _mm_insert_epi32(v, static_cast<int>(table[i[3]]), 3);
  };
  return (U32)_mm256_set_m128i(four(at + 4), four(at));
}

// The smallest residual of a symbol below 2 * kDirectSymbols, 0 for others.
KFN U32 smallest_narrow(U32 symbol) {
  static_assert(kDirectSymbols == 16);
  const __m256i smallest = _mm256_broadcastsi128_si256(_mm_setr_epi8(16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112,
                                                                     static_cast<char>(128), static_cast<char>(160),
                                                                     static_cast<char>(192), static_cast<char>(224)));
  // symbols from 32 on, and the upper bytes, get bit 7, which makes their byte 0
  const __m256i order = _mm256_adds_epu8((__m256i)symbol, (__m256i)all_of(0x80808060));
  return (U32)_mm256_blendv_epi8(_mm256_shuffle_epi8(smallest, order), (__m256i)symbol,
                                 (__m256i)above(all_of(kDirectSymbols), symbol));
}

// Table entries of eight lanes: `even` holds the entries of lanes 0, 2, 4 and 6.
struct StepEntries {
  U64 even, odd;
};

// Reads the entries of a round's steps backwards, for kVectors vectors; the first vector has the last lanes.
template <int kVectors>
class EntryReader {
 public:
  static constexpr std::uint32_t kUnchecked = 4;  // steps between two checks for symbols without a frequency

  KFN EntryReader(const std::uint64_t* table, const RoundIndices& indices, std::uint32_t /*end*/)
      : table_(table), indices_(indices) {}
  KFN StepEntries entries(std::uint32_t i, int v) const {
    const std::uint16_t* const index = indices_.of[i] + 8 * (kVectors - 1 - v);
    const auto two = [&](int first, int second) {
      const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(table_ + index[first]));
      return _mm_castpd_si128(
          _mm_loadh_pd(_mm_castsi128_pd(low), reinterpret_cast<const double*>(table_ + index[second])));
    };
    return {(U64)_mm256_set_m128i(two(4, 6), two(0, 2)), (U64)_mm256_set_m128i(two(5, 7), two(1, 3))};
  }
  KFN void step_done(std::uint32_t /*i*/) {}

 private:
  const std::uint64_t* table_;
  const RoundIndices& indices_;
};

// A function of numbers below 256 by tables of 16 bytes. From 16 on it is constant over `scale` numbers, in the largest
// table over 4 * scale.
struct ByteTable {
  __m256i small, medium, large;

  template <class Of>
  KFN ByteTable(const Of& of, std::uint32_t scale) {
    const auto table = [&](std::uint32_t step, std::uint32_t first) {  // 0 for numbers that the previous table has
      const U32 low = lane_numbers(), high = low + 8u;
      const auto of_low = (__m256i)where(above(low, all_of(first - 1)), of(low * step));
      const __m256i shorts = _mm256_packus_epi32(of_low, (__m256i)of(high * step));
      const __m256i bytes = _mm256_packus_epi16(shorts, shorts);
      return _mm256_broadcastsi128_si256(
          _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1)));
    };
    small = table(1, 0);
    medium = table(scale, 16 / scale);
    large = table(4 * scale, 4);
  }
  // The function of `number`; `steps` is 4 * number / scale. One of the tables has the number, the others give 0.
  KFN U8 of(U8 number, U8 steps) const {
    const auto from = [&](__m256i values, U8 index) {  // 0 for indices above 15
      return (U8)_mm256_shuffle_epi8(values, (__m256i)capped_sum(index, all_of(std::uint8_t{0x70})));
    };
    return from(small, number) | from(medium, steps >> 2) | (U8)_mm256_shuffle_epi8(large, (__m256i)(steps >> 4));
  }
};

PYF_END_TARGET
