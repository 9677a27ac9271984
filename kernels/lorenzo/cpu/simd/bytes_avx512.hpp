// SPDX-License-Identifier: BSD-3-Clause
// Bytes of narrow rounds with AVX-512 (byte_rounds.hpp): 32 residuals of two positions a register, tables and symbols
// from tables of 64 bytes.
#pragma once

#include <array>
#include <cstdint>

#include "lorenzo/cpu/round_indices.hpp"
#include "lorenzo/cpu/simd/steps.hpp"

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
        return _mm512_loadu_si512((kAll || first + i < lanes ? blocks[first + i] : kNone) + 16 * half);
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
    const TablesOfSums table(contexts);
    const auto joined = [&](std::uint32_t scale) {
      const auto from = [&](std::uint32_t first) { return (__m512i)table.of((lane_numbers() + first) * scale); };
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

// The rows of two positions, and what the first position has instead.
KFN __m512i rows_at(const ByteRows& rows, const std::uint8_t* positions) {
  const auto row = [&](int i) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(rows.of[positions[i]])); };
  return _mm512_inserti64x4(_mm512_castsi256_si512(row(0)), row(1), 1);
}
KFN __m512i with_first_row(__m512i rows, std::uint32_t byte) {
  return _mm512_mask_mov_epi8(rows, 0xFFFFFFFF, every_byte(static_cast<int>(byte)));
}
// Bytes of a and b in turns, as 16-bit numbers, or sums of them by two weights: of lanes 0 to 15, then 16 to 31.
KFN void join_bytes(__m512i a, __m512i b, __m512i (&joined)[2]) {
  joined[0] = _mm512_unpacklo_epi8(a, b);
  joined[1] = _mm512_unpackhi_epi8(a, b);
}
KFN __m512i weighted(__m512i bytes, int first, int second) {
  return _mm512_maddubs_epi16(bytes, _mm512_set1_epi16(static_cast<short>(first | second << 8)));
}
// `neutral` in lanes from `lanes` on.
KFN void set_others(__m512i (&joined)[2], std::uint32_t lanes, std::uint32_t neutral) {
  const __m512i all = _mm512_set1_epi16(static_cast<short>(neutral));
  const std::uint32_t inside = lanes < 32 ? (1u << lanes) - 1 : ~0u, low = inside & 0xFFFF, high = inside >> 16;
  joined[0] = _mm512_mask_mov_epi16(all, low | low << 16, joined[0]);
  joined[1] = _mm512_mask_mov_epi16(all, high | high << 16, joined[1]);
}
KFN void store_joined(std::uint16_t (*to)[kLaneCount], const __m512i (&joined)[2]) {
  for (int half = 0; half < 2; ++half) {
    auto* const low = reinterpret_cast<__m256i*>(to[0] + 16 * half);
    auto* const high = reinterpret_cast<__m256i*>(to[1] + 16 * half);
    _mm256_store_si256(low, _mm512_castsi512_si256(joined[half]));
    _mm256_store_si256(high, _mm512_extracti64x4_epi64(joined[half], 1));
  }
}

PYF_END_TARGET
