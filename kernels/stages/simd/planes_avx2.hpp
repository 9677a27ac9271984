// SPDX-License-Identifier: BSD-3-Clause
// 32 words <-> up to 32 bit planes with AVX2 (planes_generic.hpp says what): byte c of the 32 values is one register,
// whose sign bits (vpmovmskb) are one plane; back, a plane is broadcast and each byte tests its own bit.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "core/target.hpp"
#include "core/wire.hpp"

PYF_BEGIN_TARGET

inline constexpr int kPlaneSlackBytes = 64;

KFN void pack_planes(const std::uint32_t* z, int planes, std::uint8_t* out) {
  const __m256i byte_mask = _mm256_set1_epi32(0xFF);
  // vpackusdw and vpackuswb work within 128-bit lanes; this puts the groups of four bytes back in order
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  __m256i v[4];
  for (int g = 0; g < 4; ++g) v[g] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(z + 8 * g));
  for (int first = 0; first < planes; first += 8) {
    __m256i b[4];
    for (int g = 0; g < 4; ++g) {
      b[g] = _mm256_and_si256(v[g], byte_mask);
      v[g] = _mm256_srli_epi32(v[g], 8);
    }
    __m256i bytes = _mm256_packus_epi16(_mm256_packus_epi32(b[0], b[1]), _mm256_packus_epi32(b[2], b[3]));
    bytes = _mm256_permutevar8x32_epi32(bytes, order);
    const int in_byte = planes - first < 8 ? planes - first : 8;
    bytes = _mm256_sll_epi16(bytes, _mm_cvtsi32_si128(8 - in_byte));  // highest wanted plane to the sign bits
    for (int k = in_byte - 1; k >= 0; --k) {
      store_le(out + 4 * (first + k), static_cast<std::uint32_t>(_mm256_movemask_epi8(bytes)));
      bytes = _mm256_add_epi8(bytes, bytes);
    }
  }
}

KFN void unpack_planes(const std::uint8_t* words, int planes, std::uint32_t* z) {
  const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                          2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i own_bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ull));
  __m256i v[4];
  for (int g = 0; g < 4; ++g) v[g] = _mm256_setzero_si256();
  for (int last = planes; last > 0;) {  // from the highest byte down, so that each step only shifts
    const int first = (last - 1) / 8 * 8;
    __m256i bytes = _mm256_setzero_si256();
    for (int p = last - 1; p >= first; --p) {
      const __m256i plane = _mm256_shuffle_epi8(_mm256_set1_epi32(load_le<std::int32_t>(words + 4 * p)), spread);
      const __m256i unset = _mm256_cmpeq_epi8(_mm256_and_si256(plane, own_bit), _mm256_setzero_si256());
      bytes = _mm256_add_epi8(_mm256_add_epi8(bytes, bytes), _mm256_add_epi8(unset, _mm256_set1_epi8(1)));
    }
    const __m128i low = _mm256_castsi256_si128(bytes), high = _mm256_extracti128_si256(bytes, 1);
    const __m256i wide[4] = {_mm256_cvtepu8_epi32(low), _mm256_cvtepu8_epi32(_mm_srli_si128(low, 8)),
                             _mm256_cvtepu8_epi32(high), _mm256_cvtepu8_epi32(_mm_srli_si128(high, 8))};
    for (int g = 0; g < 4; ++g) v[g] = _mm256_or_si256(_mm256_slli_epi32(v[g], 8), wide[g]);
    last = first;
  }
  for (int g = 0; g < 4; ++g) _mm256_storeu_si256(reinterpret_cast<__m256i*>(z + 8 * g), v[g]);
}

// Running sums within each run of L values (4, 8 or a multiple of 8).
template <int L, int N>
KFN void prefix_sum(std::uint32_t (&a)[N]) {
  __m256i carry = _mm256_setzero_si256();
  for (int i = 0; i < N; i += 8) {
    __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i));
    v = _mm256_add_epi32(v, _mm256_slli_si256(v, 4));
    v = _mm256_add_epi32(v, _mm256_slli_si256(v, 8));
    if constexpr (L > 4) {  // the low half's total to all of the high half
      const __m256i total = _mm256_shuffle_epi32(v, 0xFF);
      v = _mm256_add_epi32(v, _mm256_permute2x128_si256(total, total, 0x08));
    }
    if constexpr (L > 8) {
      v = _mm256_add_epi32(v, carry);
      carry = _mm256_permutevar8x32_epi32(v, _mm256_set1_epi32(7));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(a + i), v);
  }
}

template <int L, int N>
KFN void prefix_sum(std::uint64_t (&a)[N]) {
  __m256i carry = _mm256_setzero_si256();
  for (int i = 0; i < N; i += 4) {
    __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i));
    v = _mm256_add_epi64(v, _mm256_slli_si256(v, 8));
    const __m256i total = _mm256_shuffle_epi32(v, 0xEE);
    v = _mm256_add_epi64(v, _mm256_permute2x128_si256(total, total, 0x08));
    if constexpr (L > 4) {
      if (i % L != 0) v = _mm256_add_epi64(v, carry);
      carry = _mm256_permute4x64_epi64(v, 0xFF);
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(a + i), v);
  }
}

PYF_END_TARGET
