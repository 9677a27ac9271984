// SPDX-License-Identifier: BSD-3-Clause
// Rows of a block and differences along its axes with AVX2 (blocks_generic.hpp says which).
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "core/target.hpp"

PYF_BEGIN_TARGET

template <int kRowBytes>
inline constexpr int kJoinedRows = kRowBytes == 16 ? 2 : 1;

template <int kRowBytes>
KFN void join_rows(const std::uint8_t* const (&rows)[1], std::uint8_t* to) {
  if constexpr (kRowBytes % 32 == 0)  // which memcpy would do in halves
    for (int i = 0; i < kRowBytes; i += 32) store(to + i, load(rows[0] + i));
  else
    std::memcpy(to, rows[0], kRowBytes);
}

template <int kRowBytes>
KFN void join_rows(const std::uint8_t* const (&rows)[2], std::uint8_t* to) {
  static_assert(kRowBytes == 16);
  const auto row = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[i])); };
  store(to, _mm256_inserti128_si256(_mm256_castsi128_si256(row(0)), row(1), 1));
}

KFN __m256i sub(__m256i a, __m256i b, std::uint32_t) { return _mm256_sub_epi32(a, b); }
KFN __m256i sub(__m256i a, __m256i b, std::uint64_t) { return _mm256_sub_epi64(a, b); }
// the high 128 bits of `before`, then the low ones of v
KFN __m256i half_before(__m256i v, __m256i before) { return _mm256_permute2x128_si256(before, v, 0x21); }
// v moved up by one value; the last value of `before` comes in
template <class Code>
KFN __m256i one_before(__m256i v, __m256i before, Code) {
  return _mm256_alignr_epi8(v, half_before(v, before), 16 - static_cast<int>(sizeof(Code)));
}

KFN void differences_2d(const std::uint32_t* q, std::uint32_t* d) {  // one row of eight a register
  const __m256i zero = _mm256_setzero_si256();
  __m256i above = zero;
  for (int i = 0; i < 64; i += 8) {
    const __m256i v = load(q + i), x = _mm256_sub_epi32(v, one_before(v, zero, std::uint32_t{}));
    store(d + i, _mm256_sub_epi32(x, above));
    above = x;
  }
}

KFN void differences_2d(const std::uint64_t* q, std::uint64_t* d) {  // half a row of eight a register
  const __m256i zero = _mm256_setzero_si256();
  __m256i above_low = zero, above_high = zero;
  for (int i = 0; i < 64; i += 8) {
    const __m256i low = load(q + i), high = load(q + i + 4);
    const __m256i x_low = _mm256_sub_epi64(low, one_before(low, zero, std::uint64_t{}));
    const __m256i x_high = _mm256_sub_epi64(high, one_before(high, low, std::uint64_t{}));
    store(d + i, _mm256_sub_epi64(x_low, above_low));
    store(d + i + 4, _mm256_sub_epi64(x_high, above_high));
    above_low = x_low;
    above_high = x_high;
  }
}

KFN void differences_3d(const std::uint32_t* q, std::uint32_t* d) {  // two rows of four a register
  const __m256i zero = _mm256_setzero_si256();
  __m256i front_low = zero, front_high = zero;
  for (int i = 0; i < 64; i += 16) {
    const __m256i low = load(q + i), high = load(q + i + 8);
    const __m256i x_low = _mm256_sub_epi32(low, _mm256_slli_si256(low, 4));
    const __m256i x_high = _mm256_sub_epi32(high, _mm256_slli_si256(high, 4));
    const __m256i y_low = _mm256_sub_epi32(x_low, half_before(x_low, zero));
    const __m256i y_high = _mm256_sub_epi32(x_high, half_before(x_high, x_low));
    store(d + i, _mm256_sub_epi32(y_low, front_low));
    store(d + i + 8, _mm256_sub_epi32(y_high, front_high));
    front_low = y_low;
    front_high = y_high;
  }
}

KFN void differences_3d(const std::uint64_t* q, std::uint64_t* d) {  // one row of four a register
  const __m256i zero = _mm256_setzero_si256();
  __m256i front[4];
  for (int y = 0; y < 4; ++y) front[y] = zero;
  for (int i = 0; i < 64; i += 16) {
    __m256i above = zero;
    for (int y = 0; y < 4; ++y) {
      const __m256i v = load(q + i + 4 * y), x = _mm256_sub_epi64(v, one_before(v, zero, std::uint64_t{}));
      const __m256i xy = _mm256_sub_epi64(x, above);
      store(d + i + 4 * y, _mm256_sub_epi64(xy, front[y]));
      above = x;
      front[y] = xy;
    }
  }
}

PYF_END_TARGET
