// SPDX-License-Identifier: BSD-3-Clause
// 32 words <-> up to 32 bit planes with AVX-512 VBMI and GFNI (planes_generic.hpp says what). Two bytes of all 32
// values are one register of eight 8x8 bit matrices: one byte shuffle gathers them, one affine instruction transposes
// all eight (with the matrix as operand and the unit vectors as input), one shuffle puts the planes in order.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>

#include "core/target.hpp"
#include "core/wire.hpp"

namespace pyfilter::avx512_tables {

using Bytes = std::array<std::uint8_t, 64>;

// gf2p8affineqb(unit vectors, A): output byte j, bit i = A.byte[7 - i], bit j. So the matrix is loaded with its rows
// reversed. Quad-word 4*c + g of the register holds byte c of values 8g..8g+7.
constexpr Bytes kGather = [] {
  Bytes t{};
  for (unsigned c = 0; c < 2; ++c)
    for (unsigned g = 0; g < 4; ++g)
      for (unsigned r = 0; r < 8; ++r) t[8 * (4 * c + g) + r] = static_cast<std::uint8_t>(4 * (8 * g + 7 - r) + c);
  return t;
}();
// After the transposition byte j of quad-word 4*c + g is plane 8c + j of group g: word 8c + j wants bytes g in order.
constexpr Bytes kPlaneOrder = [] {
  Bytes t{};
  for (unsigned c = 0; c < 2; ++c)
    for (unsigned j = 0; j < 8; ++j)
      for (unsigned g = 0; g < 4; ++g) t[4 * (8 * c + j) + g] = static_cast<std::uint8_t>(8 * (4 * c + g) + j);
  return t;
}();
// Back: quad-word 4*c + g from the planes, rows reversed as above.
constexpr Bytes kPlaneGather = [] {
  Bytes t{};
  for (unsigned c = 0; c < 2; ++c)
    for (unsigned g = 0; g < 4; ++g)
      for (unsigned r = 0; r < 8; ++r) t[8 * (4 * c + g) + r] = static_cast<std::uint8_t>(4 * (8 * c + 7 - r) + g);
  return t;
}();
// Bytes 0 and 1 of the 16 values of each half, zero-extended to words by the mask kLowHalves.
constexpr Bytes spread(unsigned half) {
  Bytes t{};
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned c = 0; c < 2; ++c) {
      const unsigned value = 16 * half + i;
      t[4 * i + c] = static_cast<std::uint8_t>(8 * (4 * c + value / 8) + value % 8);
    }
  return t;
}
constexpr Bytes kSpreadLow = spread(0), kSpreadHigh = spread(1);

}  // namespace pyfilter::avx512_tables

PYF_BEGIN_TARGET

inline constexpr int kPlaneSlackBytes = 64;

KFN __m512i load_table(const avx512_tables::Bytes& table) { return _mm512_loadu_si512(table.data()); }

KFN void pack_planes(const std::uint32_t* z, int planes, std::uint8_t* out) {
  const __m512i units = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201ull));
  __m512i low = _mm512_loadu_si512(z), high = _mm512_loadu_si512(z + 16);
  for (int first = 0; first < planes; first += 16) {
    const __m512i matrices = _mm512_permutex2var_epi8(low, load_table(avx512_tables::kGather), high);
    const __m512i transposed = _mm512_gf2p8affine_epi64_epi8(units, matrices, 0);
    _mm512_storeu_si512(out + 4 * first, _mm512_permutexvar_epi8(load_table(avx512_tables::kPlaneOrder), transposed));
    low = _mm512_srli_epi32(low, 16);
    high = _mm512_srli_epi32(high, 16);
  }
}

KFN void unpack_planes(const std::uint8_t* words, int planes, std::uint32_t* z) {
  constexpr __mmask64 kLowHalves = 0x3333333333333333ull;
  const __m512i units = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201ull));
  __m512i low = _mm512_setzero_si512(), high = _mm512_setzero_si512();
  for (int first = 0; first < planes; first += 16) {
    const int here = planes - first < 16 ? planes - first : 16;
    const __m512i p = _mm512_maskz_loadu_epi32(static_cast<__mmask16>((1u << here) - 1), words + 4 * first);
    const __m512i matrices = _mm512_permutexvar_epi8(load_table(avx512_tables::kPlaneGather), p);
    const __m512i bytes = _mm512_gf2p8affine_epi64_epi8(units, matrices, 0);
    const __m512i a = _mm512_maskz_permutexvar_epi8(kLowHalves, load_table(avx512_tables::kSpreadLow), bytes);
    const __m512i b = _mm512_maskz_permutexvar_epi8(kLowHalves, load_table(avx512_tables::kSpreadHigh), bytes);
    const auto shift = _mm_cvtsi32_si128(first);
    low = _mm512_or_si512(low, _mm512_sll_epi32(a, shift));
    high = _mm512_or_si512(high, _mm512_sll_epi32(b, shift));
  }
  _mm512_storeu_si512(z, low);
  _mm512_storeu_si512(z + 16, high);
}

// Running sums within each run of L values (4, 8 or a multiple of 16): log2 steps of shifted adds.
template <int L, int N>
KFN void prefix_sum(std::uint32_t (&a)[N]) {
  const __m512i zero = _mm512_setzero_si512();
  __m512i carry = zero;
  for (int i = 0; i < N; i += 16) {
    __m512i v = _mm512_loadu_si512(a + i);
    v = _mm512_add_epi32(v, _mm512_bslli_epi128(v, 4));
    v = _mm512_add_epi32(v, _mm512_bslli_epi128(v, 8));
    if constexpr (L > 4) {  // total of 128-bit lanes 0 and 2 to lanes 1 and 3
      const __m512i total = _mm512_shuffle_epi32(v, _MM_PERM_DDDD);
      v = _mm512_mask_add_epi32(v, 0xF0F0, v, _mm512_shuffle_i64x2(total, total, 0xA0));
    }
    if constexpr (L > 8) {  // total of the low half to the high half
      v = _mm512_mask_add_epi32(v, 0xFF00, v, _mm512_permutexvar_epi32(_mm512_set1_epi32(7), v));
      v = _mm512_add_epi32(v, carry);
      carry = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), v);
    }
    _mm512_storeu_si512(a + i, v);
  }
}

template <int L, int N>
KFN void prefix_sum(std::uint64_t (&a)[N]) {
  __m512i carry = _mm512_setzero_si512();
  for (int i = 0; i < N; i += 8) {
    __m512i v = _mm512_loadu_si512(a + i);
    v = _mm512_add_epi64(v, _mm512_bslli_epi128(v, 8));
    const __m512i pair = _mm512_shuffle_epi32(v, _MM_PERM_DCDC);  // high quad-word of each lane, twice
    v = _mm512_mask_add_epi64(v, 0xCC, v, _mm512_shuffle_i64x2(pair, pair, 0xA0));
    if constexpr (L > 4) {
      v = _mm512_mask_add_epi64(v, 0xF0, v, _mm512_permutexvar_epi64(_mm512_set1_epi64(3), v));
    }
    if constexpr (L > 8) {
      v = _mm512_add_epi64(v, carry);
      carry = _mm512_permutexvar_epi64(_mm512_set1_epi64(7), v);
    }
    _mm512_storeu_si512(a + i, v);
  }
}

PYF_END_TARGET
