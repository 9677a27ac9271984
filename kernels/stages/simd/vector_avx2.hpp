// SPDX-License-Identifier: BSD-3-Clause
// The SIMD vocabulary (vector.hpp) with AVX2: registers of 32 bytes. Lanes are selected by vectors whose lanes have all
// bits set or none. Permutations of 32-bit lanes by a mask take their order from tables of 256 rows.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/target.hpp"

namespace pyfilter::avx2_tables {

using Rows = std::array<std::array<std::int8_t, 8>, 256>;

// The lanes whose bits are set, in order.
inline constexpr Rows kSetLanes = [] {
  Rows rows{};
  for (unsigned mask = 0; mask < 256; ++mask)
    for (std::int8_t lane = 0, count = 0; lane < 8; ++lane)
      if ((mask >> lane & 1) != 0) rows[mask][static_cast<std::size_t>(count++)] = lane;
  return rows;
}();
// The number of set bits below each lane, for the inverse.
inline constexpr Rows kLanesBefore = [] {
  Rows rows{};
  for (unsigned mask = 0; mask < 256; ++mask)
    for (unsigned lane = 1; lane < 8; ++lane)
      rows[mask][lane] = static_cast<std::int8_t>(rows[mask][lane - 1] + static_cast<int>(mask >> (lane - 1) & 1));
  return rows;
}();
// For each lane the last lane up to it whose bit is set, or -1.
inline constexpr Rows kLastLane = [] {
  Rows rows{};
  for (unsigned mask = 0; mask < 256; ++mask)
    for (std::int8_t lane = 0, last = -1; lane < 8; ++lane) {
      if ((mask >> lane & 1) != 0) last = lane;
      rows[mask][static_cast<std::size_t>(lane)] = last;
    }
  return rows;
}();
// Doubles each of four bits: masks of 64-bit lanes to masks of 32-bit lanes.
inline constexpr std::array<std::uint8_t, 16> kTwice = {0x00, 0x03, 0x0C, 0x0F, 0x30, 0x33, 0x3C, 0x3F,
                                                        0xC0, 0xC3, 0xCC, 0xCF, 0xF0, 0xF3, 0xFC, 0xFF};

// Shifts that move each lane's bit of a mask to the highest position.
template <class Code, std::size_t N>
inline constexpr std::array<Code, N> kShifts = [] {
  std::array<Code, N> shifts{};
  for (std::size_t i = 0; i < N; ++i) shifts[i] = static_cast<Code>(8 * sizeof(Code) - 1 - i);
  return shifts;
}();

alignas(64) inline constexpr std::int32_t kFirstWords[16] = {-1, -1, -1, -1, -1, -1, -1, -1};

}  // namespace pyfilter::avx2_tables

PYF_BEGIN_TARGET

// Lanes of numbers T.
template <class T>
using Lanes = Vector<T>;

KFN __m256i load_bytes(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
KFN void store_bytes(void* to, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }
// Loads the first `count` of eight words, followed by zeros; reads nothing else.
KFN __m256i load_first(const std::uint8_t* words, int count) {
  return _mm256_maskload_epi32(reinterpret_cast<const int*>(words), load_bytes(avx2_tables::kFirstWords + 8 - count));
}

// 0, 1, 2 and so on.
KFN U32 lane_numbers() { return (U32)_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
// Shifts the lanes in `lanes` by kBits; other lanes keep their value.
template <int kBits>
KFN U32 shifted_left(U32 x, U32 lanes) {
  return shifted_left(x, lanes & std::uint32_t{kBits});
}
template <int kBits>
KFN U32 shifted_right(U32 x, U32 lanes) {
  return shifted_right(x, lanes & std::uint32_t{kBits});
}
// The high halves of `even` and `odd`, interleaved.
KFN U32 high_halves(U64 even, U64 odd) {
  return (U32)_mm256_blend_epi32(_mm256_srli_epi64((__m256i)even, 32), (__m256i)odd, 0xAA);
}
// The low halves of 64-bit numbers.
KFN U32 low_halves(U64 low, U64 high) {
  const __m256 halves = _mm256_shuffle_ps((__m256)low, (__m256)high, 0x88);
  return (U32)_mm256_permute4x64_epi64(_mm256_castps_si256(halves), 0xD8);
}
KFN std::uint64_t or_of(U64 v) {
  const __m128i two = _mm_or_si128(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(two) | _mm_extract_epi64(two, 1));
}
// The sum of each group of four lanes, in all four.
KFN U32 sums_of_four(U32 v) {
  v += (U32)_mm256_shuffle_epi32((__m256i)v, 0x4E);
  return v + (U32)_mm256_shuffle_epi32((__m256i)v, 0xB1);
}
KFN bool is_zero(U32 v) { return _mm256_testz_si256((__m256i)v, (__m256i)v) != 0; }

// The larger of |a| and the magnitude b; b if a is NaN.
KFN F32 larger_magnitude(F32 a, F32 b) {
  return _mm256_max_ps(_mm256_and_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF))), b);
}
KFN F64 larger_magnitude(F64 a, F64 b) {
  return _mm256_max_pd(_mm256_and_pd(a, _mm256_castsi256_pd(_mm256_set1_epi64x(0x7FFFFFFFFFFFFFFF))), b);
}

// Comparisons: equal; a above b (signed). For floats `above` means not (a <= b), so it is true for NaN.
KFN Lanes<std::uint32_t> equal(U32 a, U32 b) { return (U32)_mm256_cmpeq_epi32((__m256i)a, (__m256i)b); }
KFN Lanes<std::uint64_t> equal(U64 a, U64 b) { return (U64)_mm256_cmpeq_epi64((__m256i)a, (__m256i)b); }
KFN Lanes<std::uint32_t> equal(F32 a, F32 b) { return (U32)_mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
KFN Lanes<std::uint64_t> equal(F64 a, F64 b) { return (U64)_mm256_cmp_pd(a, b, _CMP_EQ_OQ); }
KFN Lanes<std::uint32_t> above(U32 a, U32 b) { return (U32)_mm256_cmpgt_epi32((__m256i)a, (__m256i)b); }
KFN Lanes<std::uint32_t> above(U32 a, U32 b, U32 part) { return above(a, b) & part; }
KFN Lanes<std::uint32_t> above(F32 a, F32 b) { return (U32)_mm256_cmp_ps(a, b, _CMP_NLE_UQ); }
KFN Lanes<std::uint64_t> above(F64 a, F64 b) { return (U64)_mm256_cmp_pd(a, b, _CMP_NLE_UQ); }
// set_lanes(): the lanes of flags (all bits or none). sharing(): the lanes in which a and b have a common bit.
KFN Lanes<std::uint32_t> set_lanes(U32 v) { return v; }
KFN Lanes<std::uint64_t> set_lanes(U64 v) { return v; }
KFN Lanes<std::uint64_t> sharing(U64 a, U64 b) { return ~(U64)_mm256_cmpeq_epi64((__m256i)(a & b), __m256i{}); }

KFN Lanes<std::uint32_t> either(U32 a, U32 b) { return a | b; }
KFN Lanes<std::uint64_t> either(U64 a, U64 b) { return a | b; }
KFN unsigned lane_bits(U32 lanes) { return static_cast<unsigned>(_mm256_movemask_ps((__m256)lanes)); }
KFN unsigned lane_bits(U64 lanes) { return static_cast<unsigned>(_mm256_movemask_pd((__m256d)lanes)); }
KFN U32 select(U32 lanes, U32 yes, U32 no) { return (U32)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)lanes); }
KFN U64 select(U64 lanes, U64 yes, U64 no) { return (U64)_mm256_blendv_pd((__m256d)no, (__m256d)yes, (__m256d)lanes); }
KFN U32 where(U32 lanes, U32 v) { return lanes & v; }

// All lanes of a stream; the lanes `from` + i that are below `lanes`.
KFN Lanes<std::uint32_t> all_lanes() { return all_of(~0u); }
KFN Lanes<std::uint32_t> lanes_below(std::uint32_t lanes, std::uint32_t from) {
  return above(all_of(lanes - from), lane_numbers());
}
// Lanes by their bits of a mask, from bit `first` on. Only for select(), which reads the highest bit of each lane.
KFN Lanes<std::uint32_t> lanes_of(std::uint64_t mask, int first, std::uint32_t) {
  const auto* shifts = &avx2_tables::kShifts<std::uint32_t, 32>[static_cast<std::size_t>(first & 31)];
  return (U32)_mm256_sllv_epi32((__m256i)all_of(static_cast<std::uint32_t>(mask >> (first & 32))), load_bytes(shifts));
}
KFN Lanes<std::uint64_t> lanes_of(std::uint64_t mask, int first, std::uint64_t) {
  const auto* shifts = &avx2_tables::kShifts<std::uint64_t, 64>[static_cast<std::size_t>(first)];
  return (U64)_mm256_sllv_epi64((__m256i)all_of(mask), load_bytes(shifts));
}

// A bit for each lane of four vectors of flags, joined.
template <class T>
inline constexpr int kFlagged = 4;
KFN std::uint64_t joined_bits(const U32 (&v)[4]) {
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32((__m256i)v[0], (__m256i)v[1]),
                                           _mm256_packs_epi32((__m256i)v[2], (__m256i)v[3]));
  return static_cast<std::uint32_t>(
      _mm256_movemask_epi8(_mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))));
}
KFN std::uint64_t joined_bits(const U64 (&v)[4]) {
  return lane_bits(v[0]) | lane_bits(v[1]) << 4 | lane_bits(v[2]) << 8 | lane_bits(v[3]) << 12;
}

// Bits of a vector's lanes as bits of 32-bit lanes.
KFN unsigned bits_of_words(unsigned bits, std::uint32_t) { return bits; }
KFN unsigned bits_of_words(unsigned bits, std::uint64_t) { return avx2_tables::kTwice[bits]; }
KFN __m256i lanes_in(const avx2_tables::Rows& table, unsigned bits) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(&table[bits])));
}
// Packs the lanes whose bits are set, and the inverse, which reads only as many lanes as bits are set.
inline constexpr bool kSkipsEmpty = true;  // skipping vectors without set bits is faster
template <class T>
KFN Vector<T> packed_lanes(Vector<T> v, unsigned bits) {
  const __m256i order = lanes_in(avx2_tables::kSetLanes, bits_of_words(bits, T{}));
  return (Vector<T>)_mm256_permutevar8x32_epi32((__m256i)v, order);
}
template <class T>
KFN Vector<T> spread_lanes(Vector<T> no, unsigned bits, const std::uint8_t* from) {
  const unsigned words = bits_of_words(bits, T{});
  const __m256i v = _mm256_permutevar8x32_epi32(load_first(from, __builtin_popcount(words)),
                                                lanes_in(avx2_tables::kLanesBefore, words));
  return select(lanes_of(bits, 0, T{}), (Vector<T>)v, no);
}
// Fills each lane from the last lane up to it whose bit is set; `carry` if there is none.
template <class T>
inline constexpr bool kHasFilledLanes = sizeof(T) == 4;
KFN U32 filled_lanes(U32 v, unsigned bits, U32 carry) {
  const __m256i lanes = lanes_in(avx2_tables::kLastLane, bits);
  return select((U32)lanes, carry, (U32)_mm256_permutevar8x32_epi32((__m256i)v, lanes));
}

// Gathers numbers at indices in units of kBytes.
template <int kBytes>
KFN U32 gathered(const void* from, U32 index) {
  return (U32)_mm256_i32gather_epi32(static_cast<const int*>(from), (__m256i)index, kBytes);
}

// The low 128 bits of v in the high half, over zeros; the high half of `before` followed by the low half of v.
KFN __m256i low_to_high(__m256i v) { return _mm256_permute2x128_si256(v, v, 0x08); }
KFN __m256i half_before(__m256i v, __m256i before) { return _mm256_permute2x128_si256(before, v, 0x21); }

// Moves v up by kBytes in runs of kRun bytes. Zeros move in, or, if a run is a whole vector, the last bytes of
// `before`.
template <int kBytes, int kRun, class V>
KFN V moved_up(V v, V before) {
  if constexpr (kRun == 16) return (V)_mm256_bslli_epi128((__m256i)v, kBytes);
  const __m256i half = half_before((__m256i)v, (__m256i)before);
  if constexpr (kBytes == 16) return (V)half;
  return (V)_mm256_alignr_epi8((__m256i)v, half, (16 - kBytes) & 15);
}
// carried_up(): the last kBytes of the first half of each run, repeated over its second half; zeros in the first half.
// last_to_all(): the last kBytes of the vector, repeated over the vector.
template <int kBytes, int kRun, class V>
KFN V carried_up(V v) {
  static_assert(kRun == 32);
  if constexpr (kBytes == 4) v = (V)_mm256_shuffle_epi32((__m256i)v, 0xFF);
  if constexpr (kBytes == 8) v = (V)_mm256_shuffle_epi32((__m256i)v, 0xEE);
  return (V)low_to_high((__m256i)v);
}
template <int kBytes, class V>
KFN V last_to_all(V v) {
  if constexpr (kBytes == 4) return (V)_mm256_permutevar8x32_epi32((__m256i)v, _mm256_set1_epi32(7));
  if constexpr (kBytes == 8) return (V)_mm256_permute4x64_epi64((__m256i)v, 0xFF);
  return (V)_mm256_permute2x128_si256((__m256i)v, (__m256i)v, 0x11);
}

// Stores 16 numbers below 2^16 as 16-bit numbers.
KFN void store_shorts(std::uint16_t* to, const U32 (&v)[2]) {
  store_bytes(to, _mm256_permute4x64_epi64(_mm256_packus_epi32((__m256i)v[0], (__m256i)v[1]), 0xD8));
}

// Stores part kPart of 32 bytes.
template <int kPart>
KFN void store_part(void* to, Register v) {
  static_assert(kPart == 0);
  store_bytes(to, v);
}
// Loads rows of 16 bytes, contiguously.
KFN U32 joined_rows(const std::uint8_t* const (&rows)[2]) {
  const auto row = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[i])); };
  return (U32)_mm256_inserti128_si256(_mm256_castsi128_si256(row(0)), row(1), 1);
}

// Transposes a square of parts of vectors.
KFN void transpose_parts(U32 (&v)[2]) {
  const auto a = (__m256i)v[0], b = (__m256i)v[1];
  v[0] = (U32)_mm256_permute2x128_si256(a, b, 0x20);
  v[1] = (U32)_mm256_permute2x128_si256(a, b, 0x31);
}

// Interleaves parts of 16 bytes of two vectors: the first half of these parts, then the second half.
KFN void take_turns(U32 (&v)[2]) { transpose_parts(v); }

PYF_END_TARGET
