// SPDX-License-Identifier: BSD-3-Clause
// Indices of narrow rounds with AVX-512 (rans_encode_avx512.hpp), by bytes: two positions of 32 residuals a register,
// tables and symbols from tables of 64 bytes.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>

#include "lorenzo/cpu/simd/rans_encode_avx512.hpp"

PYF_BEGIN_TARGET

KFN __m512i every_byte(int byte) { return _mm512_set1_epi8(static_cast<char>(byte)); }

// Blocks to rows; lanes without a block become 0. kAll: there are none.
template <bool kAll>
KFN void put_byte_rows(const std::uint32_t (*blocks)[32], std::uint32_t lanes, ByteRows& rows) {
  alignas(64) static constexpr std::uint32_t kNone[32] = {};
  const __m512i low_pair = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                high_pair = _mm512_add_epi64(low_pair, _mm512_set1_epi64(4));
  for (std::uint32_t half = 0; half < 2; ++half) {
    __m512i v[8], w[8];
#pragma GCC unroll 8
    for (std::uint32_t k = 0; k < 8; ++k) {  // sixteen positions of four lanes
      const std::uint32_t first = k / 2 % 2 * 16 + k / 4 * 8 + k % 2 * 4;
      const auto values = [&](std::uint32_t i) {
        return words_at((kAll || first + i < lanes ? blocks[first + i] : kNone) + 16 * half);
      };
      const __m512i low = _mm512_or_si512(values(0), _mm512_slli_epi32(values(1), 8));
      const __m512i high = _mm512_or_si512(_mm512_slli_epi32(values(2), 16), _mm512_slli_epi32(values(3), 24));
      v[k] = _mm512_or_si512(low, high);
    }
    for (int k = 0; k < 8; k += 2) {
      w[k] = _mm512_unpacklo_epi32(v[k], v[k + 1]);
      w[k + 1] = _mm512_unpackhi_epi32(v[k], v[k + 1]);
    }
    for (int k = 0; k < 8; k += 4) {  // of four neighbouring positions one each, which a quarter has
      v[k] = _mm512_unpacklo_epi64(w[k], w[k + 2]);
      v[k + 1] = _mm512_unpackhi_epi64(w[k], w[k + 2]);
      v[k + 2] = _mm512_unpacklo_epi64(w[k + 1], w[k + 3]);
      v[k + 3] = _mm512_unpackhi_epi64(w[k + 1], w[k + 3]);
    }
    for (std::uint32_t k = 0; k < 4; ++k) {
      std::uint8_t(*const to)[kLaneCount] = rows.of + 16 * half + k;
      const __m512i low = _mm512_permutex2var_epi64(v[k], low_pair, v[k + 4]);
      const __m512i high = _mm512_permutex2var_epi64(v[k], high_pair, v[k + 4]);
      _mm256_store_si256(reinterpret_cast<__m256i*>(to[0]), _mm512_castsi512_si256(low));
      _mm256_store_si256(reinterpret_cast<__m256i*>(to[4]), _mm512_extracti64x4_epi64(low, 1));
      _mm256_store_si256(reinterpret_cast<__m256i*>(to[8]), _mm512_castsi512_si256(high));
      _mm256_store_si256(reinterpret_cast<__m256i*>(to[12]), _mm512_extracti64x4_epi64(high, 1));
    }
  }
}

inline void put_byte_rows(const std::uint32_t (*blocks)[32], std::uint32_t lanes, ByteRows& rows) {
  if (lanes == kLaneCount)
    put_byte_rows<true>(blocks, lanes, rows);
  else
    put_byte_rows<false>(blocks, lanes, rows);
}

// Tables by the sum of two residuals below 256: of sums below 64, and of others by their eighths, whose numbers have
// one exponent and first bit.
struct TableBytes {
  __m512i small, large;

  explicit KFN TableBytes(const Contexts& contexts) {
    const TableOfSum table(contexts);
    const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(table.shift));
    const __m512i offset = all_of(static_cast<std::uint32_t>(table.offset)), top = all_of(table.top);
    const auto tables = [&](__m512i sums) {
      const __m512i step = _mm512_srl_epi32(_mm512_castps_si512(_mm512_cvtepi32_ps(sums)), shift);
      return _mm512_min_epi16(_mm512_subs_epu16(step, offset), top);
    };
    const auto joined = [&](std::uint32_t scale) {
      const __m512i count = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
      const auto from = [&](std::uint32_t first) {
        return tables(_mm512_mullo_epi32(_mm512_add_epi32(count, all_of(first)), all_of(scale)));
      };
      const __m512i low = _mm512_packus_epi32(from(0), from(16)), high = _mm512_packus_epi32(from(32), from(48));
      const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high));
    };
    small = joined(1);
    large = joined(8);
  }
  KFN __m512i of(__m512i a, __m512i b) const {
    const __m512i sum = _mm512_adds_epu8(a, b);
    const __m512i odd = _mm512_and_si512(_mm512_xor_si512(a, b), every_byte(1));
    const __m512i half = _mm512_sub_epi8(_mm512_avg_epu8(a, b), odd);  // of the sum, rounded down
    const __m512i eighth = _mm512_srli_epi16(half, 2);                 // six bits of it count
    const __mmask64 is_large = _mm512_cmpgt_epu8_mask(sum, every_byte(63));
    return _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(sum, small), is_large, eighth, large);
  }
};

// symbol_of() residuals below 256, likewise: by fourths from 64 on.
struct SymbolBytes {
  alignas(64) std::array<std::uint8_t, 64> small{}, large{};
  constexpr SymbolBytes() {
    for (std::uint32_t i = 0; i < 64; ++i) {
      small[i] = static_cast<std::uint8_t>(symbol_of_small(i));
      large[i] = static_cast<std::uint8_t>(symbol_of_small(4 * i));
    }
  }
};
inline constexpr SymbolBytes kSymbolBytes;
KFN __m512i symbols_of_bytes(__m512i value) {
  const __m512i small = _mm512_load_si512(kSymbolBytes.small.data()),
                large = _mm512_load_si512(kSymbolBytes.large.data());
  const __mmask64 is_large = _mm512_cmpgt_epu8_mask(value, every_byte(63));
  const __m512i fourth = _mm512_srli_epi16(value, 2);  // six bits of it count
  return _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(value, small), is_large, fourth, large);
}

// Rows of two positions.
KFN __m512i two_rows(const ByteRows& rows, std::uint32_t first, std::uint32_t second) {
  const __m256i low = _mm256_load_si256(reinterpret_cast<const __m256i*>(rows.of[first]));
  return _mm512_inserti64x4(_mm512_castsi256_si512(low),
                            _mm256_load_si256(reinterpret_cast<const __m256i*>(rows.of[second])), 1);
}

// Indices of a narrow round.
template <const IndexOf& kOf>
[[gnu::noinline]] inline void index_bytes(const Neighbours& near, const Contexts& contexts, std::uint32_t lanes,
                                          const ByteRows& rows, RoundIndices& indices) {
  const TableBytes tables(contexts);
  const __m512i weights = _mm512_set1_epi16(static_cast<short>(1 | 1 << (kOf.bits + 8)));
  const __m512i neutral = _mm512_set1_epi16(static_cast<short>(kOf.neutral));
  const std::uint32_t has_low = lanes_below(lanes, 0), has_high = lanes > 16 ? lanes_below(lanes, 16) : 0;
  for (std::uint32_t i = 0; i < 32; i += 2) {
    const __m512i value = _mm512_load_si512(rows.of[i]);
    __m512i table =
        tables.of(two_rows(rows, near.first[i], near.first[i + 1]), two_rows(rows, near.second[i], near.second[i + 1]));
    if (i == 0) table = _mm512_mask_mov_epi8(table, 0xFFFFFFFF, every_byte(static_cast<int>(contexts.count)));
    __m512i low, high;
    if constexpr (kOf.symbols) {
      const __m512i symbol = symbols_of_bytes(value);
      low = _mm512_maddubs_epi16(_mm512_unpacklo_epi8(symbol, table), weights);
      high = _mm512_maddubs_epi16(_mm512_unpackhi_epi8(symbol, table), weights);
    } else {
      low = _mm512_unpacklo_epi8(value, table);
      high = _mm512_unpackhi_epi8(value, table);
    }
    if (lanes < kLaneCount) {
      low = _mm512_mask_mov_epi16(neutral, has_low | has_low << 16, low);
      high = _mm512_mask_mov_epi16(neutral, has_high | has_high << 16, high);
    }
    auto* const to = reinterpret_cast<__m256i*>(indices.of[i]);
    _mm256_store_si256(to, _mm512_castsi512_si256(low));
    _mm256_store_si256(to + 1, _mm512_castsi512_si256(high));
    _mm256_store_si256(to + 2, _mm512_extracti64x4_epi64(low, 1));
    _mm256_store_si256(to + 3, _mm512_extracti64x4_epi64(high, 1));
  }
}

PYF_END_TARGET
