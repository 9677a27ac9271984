// SPDX-License-Identifier: BSD-3-Clause
// The SIMD vocabulary: vectors of a CPU level, and the operations that algorithms are written with. Sums, products,
// logic, and shifts of all lanes by one number are operators. This file has operations that all levels have as one
// instruction; vector_avx2.hpp, vector_avx512.hpp and vector_neon.hpp have the others under the same names.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/target.hpp"
#if defined(PYF_LEVEL_AVX512) || defined(PYF_LEVEL_AVX2)
#include <immintrin.h>
#define PYF_VECTORS 1  // the level has the whole vocabulary
#endif
#if defined(PYF_VECTORS) || defined(PYF_LEVEL_NEON)
#define PYF_FLAG_VECTORS 1  // the level has the part for flags: load, equal, set_lanes, joined_bits
#endif

#if defined(PYF_FLAG_VECTORS)
PYF_BEGIN_TARGET

#if defined(PYF_LEVEL_AVX512)
inline constexpr int kVectorBytes = 64;
using Register = __m512i;
#define PYF_MM(name) _mm512_##name
#elif defined(PYF_LEVEL_AVX2)
inline constexpr int kVectorBytes = 32;
using Register = __m256i;
#define PYF_MM(name) _mm256_##name
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class T>
struct Vectors {
  using Type [[gnu::vector_size(kVectorBytes)]] = T;
  using Loose [[gnu::vector_size(kVectorBytes), gnu::aligned(1), gnu::may_alias]] = T;  // unaligned
};
template <class T>
using Vector = typename Vectors<T>::Type;
template <class T>
inline constexpr int kPer = kVectorBytes / static_cast<int>(sizeof(T));  // numbers in a vector

using U8 = Vector<std::uint8_t>;
using U32 = Vector<std::uint32_t>;
using U64 = Vector<std::uint64_t>;
using F32 = Vector<float>;
using F64 = Vector<double>;

template <class T>
KFN Vector<T> load(const void* from) {
  return *static_cast<const typename Vectors<T>::Loose*>(from);
}
template <class T>
KFN Vector<T> load(const T* from) {
  return load<T>(static_cast<const void*>(from));
}
template <class T>
KFN void store(void* to, Vector<T> v) {
  *static_cast<typename Vectors<T>::Loose*>(to) = v;
}
template <class T>
KFN void store(T* to, Vector<T> v) {
  store<T>(static_cast<void*>(to), v);
}

#if defined(PYF_VECTORS)
KFN U8 all_of(std::uint8_t x) { return (U8)PYF_MM(set1_epi8)(static_cast<char>(x)); }
KFN U32 all_of(std::uint32_t x) { return (U32)PYF_MM(set1_epi32)(static_cast<int>(x)); }
KFN U64 all_of(std::uint64_t x) { return U64{} + x; }
KFN F32 all_of(float x) { return PYF_MM(set1_ps)(x); }
KFN F64 all_of(double x) { return PYF_MM(set1_pd)(x); }

// Shifts each lane by the same lane of n; 0 if that is at least the lane's width.
KFN U32 shifted_left(U32 x, U32 n) { return (U32)PYF_MM(sllv_epi32)((Register)x, (Register)n); }
KFN U32 shifted_right(U32 x, U32 n) { return (U32)PYF_MM(srlv_epi32)((Register)x, (Register)n); }
KFN U64 shifted_right(U64 x, U64 n) { return (U64)PYF_MM(srlv_epi64)((Register)x, (Register)n); }
KFN U32 all_shifted_right(U32 x, std::uint32_t n) {
  return (U32)PYF_MM(srl_epi32)((Register)x, _mm_cvtsi32_si128(static_cast<int>(n)));
}
// The lowest `bits` bits of each lane.
KFN U32 low_bits(U32 x, U32 bits) { return x & ~shifted_left(all_of(~0u), bits); }

// Larger: of signed numbers. Smaller: of unsigned numbers.
KFN U32 larger(U32 a, U32 b) { return (U32)PYF_MM(max_epi32)((Register)a, (Register)b); }
KFN U32 smaller(U32 a, U32 b) { return (U32)PYF_MM(min_epu32)((Register)a, (Register)b); }
// 16-bit numbers: the difference, at least 0; the smaller of two signed numbers.
KFN U32 reduced_16(U32 a, U32 b) { return (U32)PYF_MM(subs_epu16)((Register)a, (Register)b); }
KFN U32 smaller_16(U32 a, U32 b) { return (U32)PYF_MM(min_epi16)((Register)a, (Register)b); }
// Bytes: the sum, at most 255; the mean, rounded up; weighted sums of pairs of neighbours, in 16 bits.
KFN U8 capped_sum(U8 a, U8 b) { return (U8)PYF_MM(adds_epu8)((Register)a, (Register)b); }
KFN U8 average(U8 a, U8 b) { return (U8)PYF_MM(avg_epu8)((Register)a, (Register)b); }
KFN U8 weighted(U8 v, std::uint32_t even, std::uint32_t odd) {
  return (U8)PYF_MM(maddubs_epi16)((Register)v, PYF_MM(set1_epi16)(static_cast<short>(even | odd << 8)));
}
// 64-bit products of the even lanes.
KFN U64 even_products(U32 a, U32 b) { return (U64)PYF_MM(mul_epu32)((Register)a, (Register)b); }

// a * b + c, rounded once.
KFN F32 fused(F32 a, F32 b, F32 c) { return PYF_MM(fmadd_ps)(a, b, c); }
KFN F64 fused(F64 a, F64 b, F64 c) { return PYF_MM(fmadd_pd)(a, b, c); }
// Converts numbers below 2^31 to floats; converts and returns the floats' bits.
KFN F32 as_floats(U32 x) { return __builtin_convertvector((Vector<std::int32_t>)x, F32); }
KFN U32 float_bits(U32 x) { return (U32)as_floats(x); }

// Interleaves bytes, words or pairs of words of a and b in each 16 bytes: those of the low half, those of the high
// half.
KFN U8 first_bytes(U8 a, U8 b) { return (U8)PYF_MM(unpacklo_epi8)((Register)a, (Register)b); }
KFN U8 last_bytes(U8 a, U8 b) { return (U8)PYF_MM(unpackhi_epi8)((Register)a, (Register)b); }
KFN U32 first_words(U32 a, U32 b) { return (U32)PYF_MM(unpacklo_epi32)((Register)a, (Register)b); }
KFN U32 last_words(U32 a, U32 b) { return (U32)PYF_MM(unpackhi_epi32)((Register)a, (Register)b); }
KFN U32 first_pairs(U32 a, U32 b) { return (U32)PYF_MM(unpacklo_epi64)((Register)a, (Register)b); }
KFN U32 last_pairs(U32 a, U32 b) { return (U32)PYF_MM(unpackhi_epi64)((Register)a, (Register)b); }
#endif

PYF_END_TARGET

#if defined(PYF_LEVEL_AVX512)
#include "stages/simd/vector_avx512.hpp"
#elif defined(PYF_LEVEL_AVX2)
#include "stages/simd/vector_avx2.hpp"
#elif defined(PYF_LEVEL_NEON)
#include "stages/simd/vector_neon.hpp"
#endif
#endif
