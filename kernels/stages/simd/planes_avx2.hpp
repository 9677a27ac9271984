// SPDX-License-Identifier: BSD-3-Clause
// 32 words <-> up to 32 bit planes with AVX2 (planes_generic.hpp says what): byte c of the 32 values is one register,
// whose sign bits (vpmovmskb) are one plane; back, a plane is broadcast and each byte tests its own bit.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"

PYF_BEGIN_TARGET

KFN __m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
KFN void store(void* to, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }

template <int N>
KFN std::uint32_t any_bits(const std::uint32_t* z, std::uint32_t counted) {
  const int first = 0 - static_cast<int>(counted & 1);
  __m256i any = _mm256_and_si256(load(z), _mm256_setr_epi32(first, -1, -1, -1, -1, -1, -1, -1));
  for (int i = 8; i < N; i += 8) any = _mm256_or_si256(any, load(z + i));
  __m128i half = _mm_or_si128(_mm256_castsi256_si128(any), _mm256_extracti128_si256(any, 1));
  half = _mm_or_si128(half, _mm_shuffle_epi32(half, 0x4E));
  half = _mm_or_si128(half, _mm_shuffle_epi32(half, 0xB1));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(half));
}

// Whole bytes of planes, so that the loops are the same for most blocks and branches are foreseen.
KFN void pack_planes(const std::uint32_t* z, int planes, std::uint32_t* out) {
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
    for (int k = 7; k >= 0; --k) {
      out[first + k] = static_cast<std::uint32_t>(_mm256_movemask_epi8(bytes));
      bytes = _mm256_add_epi8(bytes, bytes);
    }
  }
}

KFN void unpack_planes(const std::uint8_t* words, int planes, std::uint32_t* z) {
  const __m256i spread =
      _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
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

// Running sums (planes_generic.hpp says which), in registers: log2 steps of shifted adds along x, adds of rows along
// y and z.
KFN __m256i add(__m256i a, __m256i b, std::uint32_t) { return _mm256_add_epi32(a, b); }
KFN __m256i add(__m256i a, __m256i b, std::uint64_t) { return _mm256_add_epi64(a, b); }
// the low 128 bits of v in the high half, zeros below
KFN __m256i low_to_high(__m256i v) { return _mm256_permute2x128_si256(v, v, 0x08); }
KFN __m256i high_to_both(__m256i v) { return _mm256_permute2x128_si256(v, v, 0x11); }

// Sums within 128 bits (of four 32-bit values) and within 256 bits.
KFN __m256i sum_lanes(__m256i v) {
  v = _mm256_add_epi32(v, _mm256_slli_si256(v, 4));
  return _mm256_add_epi32(v, _mm256_slli_si256(v, 8));
}
KFN __m256i sum_row(__m256i v, std::uint32_t) {
  v = sum_lanes(v);
  return _mm256_add_epi32(v, low_to_high(_mm256_shuffle_epi32(v, 0xFF)));
}
KFN __m256i sum_row(__m256i v, std::uint64_t) {
  v = _mm256_add_epi64(v, _mm256_slli_si256(v, 8));
  return _mm256_add_epi64(v, low_to_high(_mm256_shuffle_epi32(v, 0xEE)));
}
KFN __m256i last_to_all(__m256i v, std::uint32_t) { return _mm256_permutevar8x32_epi32(v, _mm256_set1_epi32(7)); }
KFN __m256i last_to_all(__m256i v, std::uint64_t) { return _mm256_permute4x64_epi64(v, 0xFF); }

template <class Code>
KFN void accumulate_1d(Code (&a)[32]) {
  constexpr int kPer = 32 / sizeof(Code);
  __m256i carry = _mm256_setzero_si256();
  for (int i = 0; i < 32; i += kPer) {
    const __m256i v = add(sum_row(load(a + i), Code{}), carry, Code{});
    carry = last_to_all(v, Code{});
    store(a + i, v);
  }
}

KFN void accumulate_2d(std::uint32_t (&a)[64]) {
  __m256i above = _mm256_setzero_si256();
  for (int i = 0; i < 64; i += 8) {
    above = _mm256_add_epi32(above, sum_row(load(a + i), std::uint32_t{}));
    store(a + i, above);
  }
}

KFN void accumulate_2d(std::uint64_t (&a)[64]) {
  __m256i above_low = _mm256_setzero_si256(), above_high = above_low;
  for (int i = 0; i < 64; i += 8) {
    const __m256i low = sum_row(load(a + i), std::uint64_t{});
    const __m256i high = _mm256_add_epi64(sum_row(load(a + i + 4), std::uint64_t{}), last_to_all(low, std::uint64_t{}));
    above_low = _mm256_add_epi64(above_low, low);
    above_high = _mm256_add_epi64(above_high, high);
    store(a + i, above_low);
    store(a + i + 4, above_high);
  }
}

KFN void accumulate_3d(std::uint32_t (&a)[64]) {  // two rows of four a register
  __m256i front_low = _mm256_setzero_si256(), front_high = front_low;
  for (int i = 0; i < 64; i += 16) {
    __m256i low = sum_lanes(load(a + i)), high = sum_lanes(load(a + i + 8));
    low = _mm256_add_epi32(low, low_to_high(low));
    high = _mm256_add_epi32(_mm256_add_epi32(high, low_to_high(high)), high_to_both(low));
    front_low = _mm256_add_epi32(front_low, low);
    front_high = _mm256_add_epi32(front_high, high);
    store(a + i, front_low);
    store(a + i + 8, front_high);
  }
}

KFN void accumulate_3d(std::uint64_t (&a)[64]) {  // one row of four a register
  __m256i front[4];
  for (int y = 0; y < 4; ++y) front[y] = _mm256_setzero_si256();
  for (int i = 0; i < 64; i += 16) {
    __m256i above = _mm256_setzero_si256();
    for (int y = 0; y < 4; ++y) {
      above = _mm256_add_epi64(above, sum_row(load(a + i + 4 * y), std::uint64_t{}));
      front[y] = _mm256_add_epi64(front[y], above);
      store(a + i + 4 * y, front[y]);
    }
  }
}

// Bit i is set where flags[i] is not zero; where x[i] has just the bits `wanted`.
KFN unsigned zero_lanes(__m256i v, std::uint32_t) {
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(v, _mm256_setzero_si256()))));
}
KFN unsigned zero_lanes(__m256i v, std::uint64_t) {
  return static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(v, _mm256_setzero_si256()))));
}
template <int N, class Code>
KFN std::uint64_t flag_bits(const Code (&flags)[N]) {
  constexpr int kPer = 32 / sizeof(Code);
  std::uint64_t zero = 0;
  for (int i = 0; i < N; i += kPer) zero |= static_cast<std::uint64_t>(zero_lanes(load(flags + i), Code{})) << i;
  return ~zero & (~std::uint64_t{0} >> (64 - N));
}

template <int N, class Code>
KFN std::uint64_t equal_bits(const void* x, Code wanted) {
  constexpr int kPer = 32 / sizeof(Code);
  const __m256i all = sizeof(Code) == 4 ? _mm256_set1_epi32(static_cast<int>(wanted))
                                        : _mm256_set1_epi64x(static_cast<long long>(wanted));
  std::uint64_t bits = 0;
  for (int i = 0; i < N; i += kPer) {
    const __m256i different = _mm256_xor_si256(load(static_cast<const std::uint8_t*>(x) + i * sizeof(Code)), all);
    bits |= static_cast<std::uint64_t>(zero_lanes(different, Code{})) << i;
  }
  return bits;
}

PYF_END_TARGET
