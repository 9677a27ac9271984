// SPDX-License-Identifier: BSD-3-Clause
// 32 words <-> up to 32 bit planes with AVX-512 VBMI and GFNI (the functions of planes_generic.hpp). Two bytes of all
// 32 values fill one register with eight 8x8 bit matrices. A byte shuffle gathers them. An affine instruction
// transposes them: the matrix is its operand, unit vectors are its input. Another shuffle puts the planes in order.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>

#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/simd/vector.hpp"

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
// Bytes 0 and 1 of all 32 values as 16-bit numbers.
constexpr Bytes kSpreadShort = [] {
  Bytes t{};
  for (unsigned i = 0; i < 32; ++i)
    for (unsigned c = 0; c < 2; ++c) t[2 * i + c] = static_cast<std::uint8_t>(8 * (4 * c + i / 8) + i % 8);
  return t;
}();
constexpr Bytes kSpreadLow = spread(0), kSpreadHigh = spread(1);

}  // namespace pyfilter::avx512_tables

PYF_BEGIN_TARGET

KFN __m512i load_table(const avx512_tables::Bytes& table) { return _mm512_loadu_si512(table.data()); }

// Packs planes 0 to 15 of 32 words, one word each.
KFN __m512i low_planes(__m512i low, __m512i high) {
  const __m512i units = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201ull));
  const __m512i matrices = _mm512_permutex2var_epi8(low, load_table(avx512_tables::kGather), high);
  return _mm512_permutexvar_epi8(load_table(avx512_tables::kPlaneOrder),
                                 _mm512_gf2p8affine_epi64_epi8(units, matrices, 0));
}

// planes.hpp documents what this writes and returns. The planes themselves tell which of them are not zero.
template <int kRuns>
KFN std::uint32_t transpose_planes(const std::uint32_t* z, std::uint32_t counted, bool complete, std::uint32_t* planes,
                                   int stride) {
  const __m512i all = _mm512_set1_epi32(-1), first = _mm512_set1_epi32(static_cast<int>(counted));
  __m512i low[kRuns], high[kRuns], together = _mm512_setzero_si512();
  std::uint32_t any = 0;
  for (int run = 0; run < kRuns; ++run) {
    low[run] = _mm512_loadu_si512(z + 32 * run);
    high[run] = _mm512_loadu_si512(z + 32 * run + 16);
    const __m512i p = low_planes(low[run], high[run]);
    _mm512_storeu_si512(planes + run * stride, p);
    any |= _mm512_test_epi32_mask(p, run == 0 ? first : all);
    together = _mm512_or_si512(together, high[run]);
    together = run == 0 ? _mm512_mask_or_epi32(together, counted & 1 ? 0xFFFF : 0xFFFE, together, low[run])
                        : _mm512_or_si512(together, low[run]);
  }
  if (!complete && _mm512_test_epi32_mask(together, _mm512_set1_epi32(-65536)) == 0) return any;
  for (int run = 0; run < kRuns; ++run) {
    const __m512i p = low_planes(_mm512_srli_epi32(low[run], 16), _mm512_srli_epi32(high[run], 16));
    _mm512_storeu_si512(planes + run * stride + 16, p);
    any |= static_cast<std::uint32_t>(_mm512_test_epi32_mask(p, run == 0 ? first : all)) << 16;
  }
  return any;
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

// Residuals of up to 11 bits are differences of at most 2^10, whose sums over 32 values fit 16 bits: half the registers
// suffice.
inline constexpr int kShortPlanes = 11;

KFN void store_sums(__m512i sums, std::uint32_t (&q)[32]) {
  _mm512_storeu_si512(q, _mm512_cvtepi16_epi32(_mm512_castsi512_si256(sums)));
  _mm512_storeu_si512(q + 16, _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(sums, 1)));
}
KFN void store_sums(__m512i sums, std::uint64_t (&q)[32]) {
  _mm512_storeu_si512(q, _mm512_cvtepi16_epi64(_mm512_castsi512_si128(sums)));
  _mm512_storeu_si512(q + 8, _mm512_cvtepi16_epi64(_mm512_extracti64x2_epi64(sums, 1)));
  _mm512_storeu_si512(q + 16, _mm512_cvtepi16_epi64(_mm512_extracti64x2_epi64(sums, 2)));
  _mm512_storeu_si512(q + 24, _mm512_cvtepi16_epi64(_mm512_extracti64x2_epi64(sums, 3)));
}

// unpack_sums() of planes.hpp for residuals of up to kShortPlanes bits.
template <class Code>
KFN Code unpack_short_sums(const std::uint8_t* words, int planes, Code (&q)[32]) {
  const __m512i units = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201ull));
  const __m512i p = _mm512_maskz_loadu_epi32(static_cast<__mmask16>((1u << planes) - 1), words);
  const __m512i matrices = _mm512_permutexvar_epi8(load_table(avx512_tables::kPlaneGather), p);
  const __m512i z = _mm512_permutexvar_epi8(load_table(avx512_tables::kSpreadShort),
                                            _mm512_gf2p8affine_epi64_epi8(units, matrices, 0));
  const auto low = static_cast<Code>(_mm_cvtsi128_si32(_mm512_castsi512_si128(z)) & 0xFFFF);
  const __m512i sign = _mm512_sub_epi16(_mm512_setzero_si512(), _mm512_and_si512(z, _mm512_set1_epi16(1)));
  __m512i v = _mm512_xor_si512(_mm512_srli_epi16(z, 1), sign);
  v = _mm512_add_epi16(v, _mm512_bslli_epi128(v, 2));
  v = _mm512_add_epi16(v, _mm512_bslli_epi128(v, 4));
  v = _mm512_add_epi16(v, _mm512_bslli_epi128(v, 8));
  const __m512i total = _mm512_shuffle_epi8(v, _mm512_set1_epi16(0x0F0E));
  v = _mm512_add_epi16(v, _mm512_maskz_shuffle_i64x2(0xCC, total, total, 0xA0));
  v = _mm512_add_epi16(v, _mm512_maskz_permutexvar_epi16(0xFFFF0000u, _mm512_set1_epi16(15), v));
  store_sums(v, q);
  return low;
}

PYF_END_TARGET
