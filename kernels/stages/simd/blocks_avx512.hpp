// SPDX-License-Identifier: BSD-3-Clause
// Rows of a block and differences along its axes with AVX-512 (blocks_generic.hpp says which).
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "core/target.hpp"

PYF_BEGIN_TARGET

template <int kRowBytes>
inline constexpr int kJoinedRows = kRowBytes == 16   ? 4
                                   : kRowBytes == 32 ? 2
                                                     : 1;

template <int kRowBytes>
KFN void join_rows(const std::uint8_t* const (&rows)[1], std::uint8_t* to) {
  std::memcpy(to, rows[0], kRowBytes);
}

template <int kRowBytes>
KFN void join_rows(const std::uint8_t* const (&rows)[2], std::uint8_t* to) {
  static_assert(kRowBytes == 32);
  const auto row = [&](int i) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[i])); };
  _mm512_storeu_si512(to, _mm512_inserti64x4(_mm512_castsi256_si512(row(0)), row(1), 1));
}

template <int kRowBytes>
KFN void join_rows(const std::uint8_t* const (&rows)[4], std::uint8_t* to) {
  static_assert(kRowBytes == 16);
  const auto row = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[i])); };
  __m512i v = _mm512_castsi128_si512(row(0));
  v = _mm512_inserti32x4(v, row(1), 1);
  v = _mm512_inserti32x4(v, row(2), 2);
  _mm512_storeu_si512(to, _mm512_inserti32x4(v, row(3), 3));
}

// the high half of `before`, then the low one of v
KFN __m512i half_before(__m512i v, __m512i before) { return _mm512_alignr_epi64(v, before, 4); }

KFN void differences_2d(const std::uint32_t* q, std::uint32_t* d) {  // two rows of eight a register
  __m512i above = _mm512_setzero_si512();
  for (int i = 0; i < 64; i += 16) {
    const __m512i v = _mm512_loadu_si512(q + i);
    const __m512i x = _mm512_sub_epi32(v, _mm512_maskz_alignr_epi32(0xFEFE, v, v, 15));
    _mm512_storeu_si512(d + i, _mm512_sub_epi32(x, half_before(x, above)));
    above = x;
  }
}

KFN void differences_2d(const std::uint64_t* q, std::uint64_t* d) {  // one row of eight a register
  __m512i above = _mm512_setzero_si512();
  for (int i = 0; i < 64; i += 8) {
    const __m512i v = _mm512_loadu_si512(q + i);
    const __m512i x = _mm512_sub_epi64(v, _mm512_maskz_alignr_epi64(0xFE, v, v, 7));
    _mm512_storeu_si512(d + i, _mm512_sub_epi64(x, above));
    above = x;
  }
}

KFN void differences_3d(const std::uint32_t* q, std::uint32_t* d) {  // four rows of four, one z, a register
  __m512i front = _mm512_setzero_si512();
  for (int i = 0; i < 64; i += 16) {
    const __m512i v = _mm512_loadu_si512(q + i);
    const __m512i x = _mm512_sub_epi32(v, _mm512_bslli_epi128(v, 4));
    const __m512i y = _mm512_sub_epi32(x, _mm512_maskz_alignr_epi64(0xFC, x, x, 6));
    _mm512_storeu_si512(d + i, _mm512_sub_epi32(y, front));
    front = y;
  }
}

KFN void differences_3d(const std::uint64_t* q, std::uint64_t* d) {  // two rows of four a register
  __m512i front_low = _mm512_setzero_si512(), front_high = front_low;
  for (int i = 0; i < 64; i += 16) {
    const __m512i low = _mm512_loadu_si512(q + i), high = _mm512_loadu_si512(q + i + 8);
    const __m512i x_low = _mm512_sub_epi64(low, _mm512_maskz_alignr_epi64(0xEE, low, low, 7));
    const __m512i x_high = _mm512_sub_epi64(high, _mm512_maskz_alignr_epi64(0xEE, high, high, 7));
    const __m512i y_low = _mm512_sub_epi64(x_low, half_before(x_low, _mm512_setzero_si512()));
    const __m512i y_high = _mm512_sub_epi64(x_high, half_before(x_high, x_low));
    _mm512_storeu_si512(d + i, _mm512_sub_epi64(y_low, front_low));
    _mm512_storeu_si512(d + i + 8, _mm512_sub_epi64(y_high, front_high));
    front_low = y_low;
    front_high = y_high;
  }
}

PYF_END_TARGET
