// SPDX-License-Identifier: BSD-3-Clause
// The SIMD vocabulary (vector.hpp) with AVX-512: registers of 64 bytes. Lanes are selected by mask registers.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/target.hpp"

PYF_BEGIN_TARGET

// Lanes of numbers T.
template <class T>
using Lanes = std::conditional_t<sizeof(T) == 4, __mmask16, __mmask8>;

// 0, 1, 2 and so on.
KFN U32 lane_numbers() { return (U32)_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
// Shifts the lanes in `lanes` by kBits; other lanes keep their value.
template <int kBits>
KFN U32 shifted_left(U32 x, __mmask16 lanes) {
  return (U32)_mm512_mask_slli_epi32((__m512i)x, lanes, (__m512i)x, kBits);
}
template <int kBits>
KFN U32 shifted_right(U32 x, __mmask16 lanes) {
  return (U32)_mm512_mask_srli_epi32((__m512i)x, lanes, (__m512i)x, kBits);
}
// The high halves of `even` and `odd`, interleaved.
KFN U32 high_halves(U64 even, U64 odd) {
  const __m512i order = _mm512_setr_epi32(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
  return (U32)_mm512_permutex2var_epi32((__m512i)even, order, (__m512i)odd);
}
// The low halves of 64-bit numbers.
KFN U32 low_halves(U64 low, U64 high) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return (U32)_mm512_permutex2var_epi32((__m512i)low, even, (__m512i)high);
}
KFN std::uint64_t or_of(U64 v) { return static_cast<std::uint64_t>(_mm512_reduce_or_epi64((__m512i)v)); }
// The sum of each group of four lanes, in all four.
KFN U32 sums_of_four(U32 v) {
  v += (U32)_mm512_shuffle_epi32((__m512i)v, static_cast<_MM_PERM_ENUM>(0x4E));
  return v + (U32)_mm512_shuffle_epi32((__m512i)v, static_cast<_MM_PERM_ENUM>(0xB1));
}
KFN bool is_zero(U32 v) { return _mm512_test_epi32_mask((__m512i)v, (__m512i)v) == 0; }

// The larger of |a| and the magnitude b; b if a is NaN.
KFN F32 larger_magnitude(F32 a, F32 b) { return _mm512_range_ps(a, b, 0b1011); }
KFN F64 larger_magnitude(F64 a, F64 b) { return _mm512_range_pd(a, b, 0b1011); }

// Comparisons: equal; a above b (signed). For floats `above` means not (a <= b), so it is true for NaN.
KFN Lanes<std::uint32_t> equal(U32 a, U32 b) { return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b); }
KFN Lanes<std::uint64_t> equal(U64 a, U64 b) { return _mm512_cmpeq_epi64_mask((__m512i)a, (__m512i)b); }
KFN Lanes<std::uint32_t> equal(F32 a, F32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
KFN Lanes<std::uint64_t> equal(F64 a, F64 b) { return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ); }
KFN Lanes<std::uint32_t> above(U32 a, U32 b) { return _mm512_cmpgt_epi32_mask((__m512i)a, (__m512i)b); }
KFN Lanes<std::uint32_t> above(U32 a, U32 b, __mmask16 part) {
  return _mm512_mask_cmpgt_epi32_mask(part, (__m512i)a, (__m512i)b);
}
KFN Lanes<std::uint32_t> above(F32 a, F32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_NLE_UQ); }
KFN Lanes<std::uint64_t> above(F64 a, F64 b) { return _mm512_cmp_pd_mask(a, b, _CMP_NLE_UQ); }
// set_lanes(): the lanes that are not 0. sharing(): the lanes in which a and b have a common bit.
KFN Lanes<std::uint32_t> set_lanes(U32 v) { return _mm512_test_epi32_mask((__m512i)v, (__m512i)v); }
KFN Lanes<std::uint64_t> set_lanes(U64 v) { return _mm512_test_epi64_mask((__m512i)v, (__m512i)v); }
KFN Lanes<std::uint64_t> sharing(U64 a, U64 b) { return _mm512_test_epi64_mask((__m512i)a, (__m512i)b); }

KFN __mmask16 either(__mmask16 a, __mmask16 b) { return static_cast<__mmask16>(a | b); }
KFN __mmask8 either(__mmask8 a, __mmask8 b) { return static_cast<__mmask8>(a | b); }
KFN unsigned lane_bits(__mmask16 lanes) { return lanes; }
KFN unsigned lane_bits(__mmask8 lanes) { return lanes; }
KFN U32 select(__mmask16 lanes, U32 yes, U32 no) {
  return (U32)_mm512_mask_mov_epi32((__m512i)no, lanes, (__m512i)yes);
}
KFN U64 select(__mmask8 lanes, U64 yes, U64 no) { return (U64)_mm512_mask_mov_epi64((__m512i)no, lanes, (__m512i)yes); }
KFN U32 where(__mmask16 lanes, U32 v) { return (U32)_mm512_maskz_mov_epi32(lanes, (__m512i)v); }

// All lanes of a stream; the lanes `from` + i that are below `lanes`.
KFN Lanes<std::uint32_t> all_lanes() { return 0xFFFF; }
KFN Lanes<std::uint32_t> lanes_below(std::uint32_t lanes, std::uint32_t from) {
  return lanes >= from + 16 ? static_cast<__mmask16>(0xFFFF) : static_cast<__mmask16>((1u << (lanes - from)) - 1);
}
// Lanes by their bits of a mask, from bit `first` on.
KFN Lanes<std::uint32_t> lanes_of(std::uint64_t mask, int first, std::uint32_t) {
  return static_cast<__mmask16>(mask >> first);
}
KFN Lanes<std::uint64_t> lanes_of(std::uint64_t mask, int first, std::uint64_t) {
  return static_cast<__mmask8>(mask >> first);
}

// A bit for each lane of one vector of flags.
template <class T>
inline constexpr int kFlagged = 1;
KFN std::uint64_t joined_bits(const __mmask16 (&v)[1]) { return v[0]; }
KFN std::uint64_t joined_bits(const __mmask8 (&v)[1]) { return v[0]; }

// Packs the lanes whose bits are set, and the inverse, which reads only as many lanes as bits are set.
inline constexpr bool kSkipsEmpty = false;
template <class T>
KFN Vector<T> packed_lanes(Vector<T> v, unsigned bits) {
  if constexpr (sizeof(T) == 4) return (Vector<T>)_mm512_maskz_compress_epi32(static_cast<__mmask16>(bits), (__m512i)v);
  if constexpr (sizeof(T) == 8) return (Vector<T>)_mm512_maskz_compress_epi64(static_cast<__mmask8>(bits), (__m512i)v);
}
template <class T>
KFN Vector<T> spread_lanes(Vector<T> no, unsigned bits, const std::uint8_t* from) {
  if constexpr (sizeof(T) == 4)
    return (Vector<T>)_mm512_mask_expandloadu_epi32((__m512i)no, static_cast<__mmask16>(bits), from);
  if constexpr (sizeof(T) == 8)
    return (Vector<T>)_mm512_mask_expandloadu_epi64((__m512i)no, static_cast<__mmask8>(bits), from);
}
// Fills each lane from the last lane up to it whose bit is set; `carry` if there is none.
template <class T>
inline constexpr bool kHasFilledLanes = true;
KFN U32 filled_lanes(U32 v, unsigned bits, U32 carry) {
  const __m512i up_to = _mm512_setr_epi32(0x1, 0x3, 0x7, 0xF, 0x1F, 0x3F, 0x7F, 0xFF, 0x1FF, 0x3FF, 0x7FF, 0xFFF,
                                          0x1FFF, 0x3FFF, 0x7FFF, 0xFFFF);
  const __m512i set = _mm512_and_si512((__m512i)all_of(bits), up_to);
  const __m512i last = _mm512_sub_epi32(_mm512_set1_epi32(31), _mm512_lzcnt_epi32(set));
  return (U32)_mm512_mask_permutexvar_epi32((__m512i)carry, _mm512_test_epi32_mask(set, set), last, (__m512i)v);
}
KFN U64 filled_lanes(U64 v, unsigned bits, U64 carry) {
  const __m512i up_to = _mm512_setr_epi64(0x1, 0x3, 0x7, 0xF, 0x1F, 0x3F, 0x7F, 0xFF);
  const __m512i set = _mm512_and_si512((__m512i)all_of(std::uint64_t{bits}), up_to);
  const __m512i last = _mm512_sub_epi64(_mm512_set1_epi64(63), _mm512_lzcnt_epi64(set));
  return (U64)_mm512_mask_permutexvar_epi64((__m512i)carry, _mm512_test_epi64_mask(set, set), last, (__m512i)v);
}

// Gathers numbers at indices in units of kBytes.
template <int kBytes>
KFN U32 gathered(const void* from, U32 index) {
  return (U32)_mm512_i32gather_epi32((__m512i)index, from, kBytes);
}

// Moves v up by kBytes in runs of kRun bytes. Zeros move in, or, if a run is a whole vector, the last bytes of
// `before`.
template <int kBytes, int kRun, class V>
KFN V moved_up(V v, V before) {
  if constexpr (kRun == 16) return (V)_mm512_bslli_epi128((__m512i)v, kBytes);
  constexpr int kWords = kBytes / 4;
  constexpr auto kInside = static_cast<__mmask16>((0xFF << kWords & 0xFF) * 0x101);
  if constexpr (kRun == 32)
    return (V)_mm512_maskz_alignr_epi32(kInside, (__m512i)v, (__m512i)v, 16 - kWords);
  else
    return (V)_mm512_alignr_epi32((__m512i)v, (__m512i)before, 16 - kWords);
}
// carried_up(): the last kBytes of the first half of each run, repeated over its second half; zeros in the first half.
// last_to_all(): the last kBytes of the vector, repeated over the vector.
template <int kBytes, int kRun, class V>
KFN V carried_up(V v) {
  auto x = (__m512i)v;
  if constexpr (kRun == 64) {
    if constexpr (kBytes == 4) return (V)_mm512_maskz_permutexvar_epi32(0xFF00, _mm512_set1_epi32(7), x);
    if constexpr (kBytes == 8) return (V)_mm512_maskz_permutexvar_epi64(0xF0, _mm512_set1_epi64(3), x);
    return (V)_mm512_maskz_shuffle_i64x2(0xF0, x, x, kBytes == 16 ? 0x55 : 0x44);
  }
  if constexpr (kBytes == 4) x = _mm512_shuffle_epi32(x, _MM_PERM_DDDD);
  if constexpr (kBytes == 8) x = _mm512_shuffle_epi32(x, _MM_PERM_DCDC);
  return (V)_mm512_maskz_shuffle_i64x2(0xCC, x, x, 0xA0);
}
template <int kBytes, class V>
KFN V last_to_all(V v) {
  const auto x = (__m512i)v;
  if constexpr (kBytes == 4) return (V)_mm512_permutexvar_epi32(_mm512_set1_epi32(15), x);
  if constexpr (kBytes == 8) return (V)_mm512_permutexvar_epi64(_mm512_set1_epi64(7), x);
  return (V)_mm512_shuffle_i64x2(x, x, kBytes == 16 ? 0xFF : 0xEE);
}

// Stores 16 numbers below 2^16 as 16-bit numbers.
KFN void store_shorts(std::uint16_t* to, const U32 (&v)[1]) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16((__m512i)v[0]));
}

// Stores part kPart of 32 bytes.
template <int kPart>
KFN void store_part(void* to, Register v) {
  const __m256i part = kPart == 0 ? _mm512_castsi512_si256(v) : _mm512_extracti64x4_epi64(v, 1);
  _mm256_storeu_si256(static_cast<__m256i*>(to), part);
}
// Loads rows of 32 or 16 bytes, contiguously.
KFN U32 joined_rows(const std::uint8_t* const (&rows)[2]) {
  const auto row = [&](int i) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[i])); };
  return (U32)_mm512_inserti64x4(_mm512_castsi256_si512(row(0)), row(1), 1);
}
KFN U32 joined_rows(const std::uint8_t* const (&rows)[4]) {
  const auto row = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[i])); };
  __m512i v = _mm512_castsi128_si512(row(0));
  v = _mm512_inserti32x4(v, row(1), 1);
  v = _mm512_inserti32x4(v, row(2), 2);
  return (U32)_mm512_inserti32x4(v, row(3), 3);
}

// Interleaves parts of 16 bytes of two vectors: the first half of these parts, then the second half.
KFN void take_turns(U32 (&v)[2]) {
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                second = _mm512_add_epi64(first, (Register)all_of(std::uint64_t{4}));
  const auto a = (__m512i)v[0], b = (__m512i)v[1];
  v[0] = (U32)_mm512_permutex2var_epi64(a, first, b);
  v[1] = (U32)_mm512_permutex2var_epi64(a, second, b);
}
// Transposes a square of parts of vectors.
KFN void transpose_parts(U32 (&v)[2]) {
  const auto a = (__m512i)v[0], b = (__m512i)v[1];
  v[0] = (U32)_mm512_shuffle_i32x4(a, b, 0x44);
  v[1] = (U32)_mm512_shuffle_i32x4(a, b, 0xEE);
}
KFN void transpose_parts(U32 (&v)[4]) {
  const auto a = (__m512i)v[0], b = (__m512i)v[1], c = (__m512i)v[2], d = (__m512i)v[3];
  const __m512i low_ab = _mm512_shuffle_i32x4(a, b, 0x44), high_ab = _mm512_shuffle_i32x4(a, b, 0xEE),
                low_cd = _mm512_shuffle_i32x4(c, d, 0x44), high_cd = _mm512_shuffle_i32x4(c, d, 0xEE);
  v[0] = (U32)_mm512_shuffle_i32x4(low_ab, low_cd, 0x88);
  v[1] = (U32)_mm512_shuffle_i32x4(low_ab, low_cd, 0xDD);
  v[2] = (U32)_mm512_shuffle_i32x4(high_ab, high_cd, 0x88);
  v[3] = (U32)_mm512_shuffle_i32x4(high_ab, high_cd, 0xDD);
}

PYF_END_TARGET
