// SPDX-License-Identifier: BSD-3-Clause
// 32 lanes of binary32 or of 32-bit integers, a lane for each row of a tile: the vectors of wavefronts. Operations
// follow IEEE 754, so that all CPU levels give the same bits.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#if defined(PYF_LEVEL_AVX2) || defined(PYF_LEVEL_AVX512)
#include <immintrin.h>
#endif
#if defined(PYF_LEVEL_NEON)
#include <arm_neon.h>
#endif

// Functions that CPU and GPU share (cuda/lanes.cuh).
#define PYF_ON_LANES KFN

PYF_BEGIN_TARGET

inline constexpr std::uint32_t kRows = 32;
#if defined(PYF_LEVEL_AVX512)
inline constexpr std::size_t kVectorBytes = 64;
#elif defined(PYF_LEVEL_AVX2)
inline constexpr std::size_t kVectorBytes = 32;
#else
inline constexpr std::size_t kVectorBytes = 16;
#endif
inline constexpr std::size_t kVectors = 4 * kRows / kVectorBytes, kOfVector = kVectorBytes / 4;
typedef float FloatVector __attribute__((vector_size(kVectorBytes)));
typedef std::int32_t IntVector __attribute__((vector_size(kVectorBytes)));
// The same vectors, unaligned.
typedef float LooseFloats __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
typedef std::int32_t LooseInts __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));

// Integers of all lanes. As a condition, -1 is true and 0 is false.
struct Ints {
  IntVector v[kVectors];

  static KFN Ints all(std::int32_t x) {
    Ints r;
    for (auto& part : r.v) part = IntVector{} + x;
    return r;
  }
  static KFN Ints load(const std::int32_t* from) {
    Ints r;
    for (std::size_t i = 0; i < kVectors; ++i) r.v[i] = *reinterpret_cast<const LooseInts*>(from + i * kOfVector);
    return r;
  }
  KFN void store(std::int32_t* to) const {
    for (std::size_t i = 0; i < kVectors; ++i) *reinterpret_cast<LooseInts*>(to + i * kOfVector) = v[i];
  }
  static KFN Ints lanes() {
    std::int32_t numbers[kRows];
    for (std::uint32_t i = 0; i < kRows; ++i) numbers[i] = static_cast<std::int32_t>(i);
    return load(numbers);
  }
};
struct Floats {
  FloatVector v[kVectors];

  static KFN Floats all(float x) {
    Floats r;
    for (auto& part : r.v) part = FloatVector{} + x;
    return r;
  }
  static KFN Floats load(const float* from) {
    Floats r;
    for (std::size_t i = 0; i < kVectors; ++i) r.v[i] = *reinterpret_cast<const LooseFloats*>(from + i * kOfVector);
    return r;
  }
  KFN void store(float* to) const {
    for (std::size_t i = 0; i < kVectors; ++i) *reinterpret_cast<LooseFloats*>(to + i * kOfVector) = v[i];
  }
  // The first 16 lanes and the others from different places.
  static KFN Floats load_halves(const float* low, const float* high) {
    Floats r;
    for (std::size_t i = 0; i < kVectors / 2; ++i) {
      r.v[i] = *reinterpret_cast<const LooseFloats*>(low + i * kOfVector);
      r.v[kVectors / 2 + i] = *reinterpret_cast<const LooseFloats*>(high + i * kOfVector);
    }
    return r;
  }
  KFN void store_halves(float* low, float* high) const {
    for (std::size_t i = 0; i < kVectors / 2; ++i) {
      *reinterpret_cast<LooseFloats*>(low + i * kOfVector) = v[i];
      *reinterpret_cast<LooseFloats*>(high + i * kOfVector) = v[kVectors / 2 + i];
    }
  }
};

#define PYF_LANEWISE(Result, Operand, op)                                 \
  KFN Result operator op(const Operand& a, const Operand& b) {            \
    Result r;                                                             \
    for (std::size_t i = 0; i < kVectors; ++i) r.v[i] = a.v[i] op b.v[i]; \
    return r;                                                             \
  }
PYF_LANEWISE(Ints, Ints, +)
PYF_LANEWISE(Ints, Ints, -)
PYF_LANEWISE(Ints, Ints, &)
PYF_LANEWISE(Ints, Ints, |)
PYF_LANEWISE(Ints, Ints, ^)
PYF_LANEWISE(Ints, Ints, *)
PYF_LANEWISE(Ints, Ints, <<)
PYF_LANEWISE(Ints, Ints, >>)
PYF_LANEWISE(Ints, Ints, ==)
PYF_LANEWISE(Ints, Ints, <)
PYF_LANEWISE(Ints, Ints, >=)
PYF_LANEWISE(Floats, Floats, +)
PYF_LANEWISE(Floats, Floats, -)
PYF_LANEWISE(Floats, Floats, *)
PYF_LANEWISE(Ints, Floats, <)
PYF_LANEWISE(Ints, Floats, >=)
PYF_LANEWISE(Ints, Floats, ==)
#undef PYF_LANEWISE

KFN Ints operator~(const Ints& a) {
  Ints r;
  for (std::size_t i = 0; i < kVectors; ++i) r.v[i] = ~a.v[i];
  return r;
}
KFN Ints bits_of(const Floats& a) {
  Ints r;
  for (std::size_t i = 0; i < kVectors; ++i) r.v[i] = (IntVector)a.v[i];
  return r;
}
KFN Floats as_floats(const Ints& a) {
  Floats r;
  for (std::size_t i = 0; i < kVectors; ++i) r.v[i] = (FloatVector)a.v[i];
  return r;
}
KFN Ints shift_right(const Ints& a, int n) {  // all lanes >= 0
  Ints r;
  for (std::size_t i = 0; i < kVectors; ++i) r.v[i] = a.v[i] >> n;
  return r;
}
KFN Ints select(const Ints& condition, const Ints& yes, const Ints& no) {
  return (condition & yes) | (~condition & no);
}
KFN Floats select(const Ints& condition, const Floats& yes, const Floats& no) {
  return as_floats(select(condition, bits_of(yes), bits_of(no)));
}
KFN Floats absolute(const Floats& a) { return as_floats(bits_of(a) & Ints::all(0x7FFFFFFF)); }
KFN Floats least(const Floats& a, const Floats& b) { return select(a < b, a, b); }
KFN Floats most(const Floats& a, const Floats& b) { return select(a < b, b, a); }

// Returns a bit for each lane, lane 0 lowest.
KFN std::uint32_t bits_of_condition(const Ints& c) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < kVectors; ++i) {
#if defined(PYF_LEVEL_AVX512)
    const std::uint32_t part = _mm512_movepi32_mask(__builtin_bit_cast(__m512i, c.v[i]));
#elif defined(PYF_LEVEL_AVX2)
    const auto part = static_cast<std::uint32_t>(_mm256_movemask_ps(__builtin_bit_cast(__m256, c.v[i])));
#else
    std::uint32_t part = 0;
    for (std::size_t k = 0; k < kOfVector; ++k) part |= static_cast<std::uint32_t>(c.v[i][k] & 1) << k;
#endif
    bits |= part << (i * kOfVector);
  }
  return bits;
}
KFN Ints condition_of_bits(std::uint32_t bits) {
  Ints r;
  for (std::size_t i = 0; i < kVectors; ++i) {
    IntVector single;
    for (std::size_t k = 0; k < kOfVector; ++k) single[k] = static_cast<std::int32_t>(1u << (i * kOfVector + k));
    r.v[i] = ((IntVector{} + static_cast<std::int32_t>(bits)) & single) == single;
  }
  return r;
}

// a * b + c, rounded once.
KFN float fused_lane(float a, float b, float c) {
  // the product is exact, and the sum is rounded to odd, so that the second rounding, to binary32, is correct
  const double product = static_cast<double>(a) * static_cast<double>(b), sum = product + static_cast<double>(c);
  const double other = sum - product, error = (product - (sum - other)) + (static_cast<double>(c) - other);
  auto bits = std::bit_cast<std::uint64_t>(sum);
  const bool inexact = (error != 0) & ((bits & 1) == 0);
  const bool away = (error > 0) == (sum > 0);
  bits = inexact ? (away ? bits + 1 : bits - 1) : bits;
  return static_cast<float>(__builtin_bit_cast(double, bits));
}
KFN Floats fused(const Floats& a, const Floats& b, const Floats& c) {
  Floats r;
  for (std::size_t i = 0; i < kVectors; ++i) {
#if defined(PYF_LEVEL_AVX512)
    r.v[i] = __builtin_bit_cast(FloatVector,
                                _mm512_fmadd_ps(__builtin_bit_cast(__m512, a.v[i]), __builtin_bit_cast(__m512, b.v[i]),
                                                __builtin_bit_cast(__m512, c.v[i])));
#elif defined(PYF_LEVEL_AVX2)
    r.v[i] = __builtin_bit_cast(FloatVector,
                                _mm256_fmadd_ps(__builtin_bit_cast(__m256, a.v[i]), __builtin_bit_cast(__m256, b.v[i]),
                                                __builtin_bit_cast(__m256, c.v[i])));
#elif defined(PYF_LEVEL_NEON)
    r.v[i] = __builtin_bit_cast(
        FloatVector, vfmaq_f32(__builtin_bit_cast(float32x4_t, c.v[i]), __builtin_bit_cast(float32x4_t, a.v[i]),
                               __builtin_bit_cast(float32x4_t, b.v[i])));
#else
    for (std::size_t k = 0; k < kOfVector; ++k) r.v[i][k] = fused_lane(a.v[i][k], b.v[i][k], c.v[i][k]);
#endif
  }
  return r;
}

// Looks up each lane's index in a table of 16 entries.
KFN Floats look_up(const float* table, const Ints& index) {
  Floats r;
#if defined(PYF_LEVEL_AVX512)
  const __m512 all = _mm512_loadu_ps(table);
  for (std::size_t i = 0; i < kVectors; ++i)
    r.v[i] = __builtin_bit_cast(FloatVector, _mm512_permutexvar_ps(__builtin_bit_cast(__m512i, index.v[i]), all));
#elif defined(PYF_LEVEL_AVX2)
  const __m256 low = _mm256_loadu_ps(table), high = _mm256_loadu_ps(table + 8);
  for (std::size_t i = 0; i < kVectors; ++i) {
    const auto at = __builtin_bit_cast(__m256i, index.v[i]);
    const __m256 a = _mm256_permutevar8x32_ps(low, at), b = _mm256_permutevar8x32_ps(high, at);
    r.v[i] = __builtin_bit_cast(FloatVector, _mm256_blendv_ps(a, b, _mm256_castsi256_ps(_mm256_slli_epi32(at, 28))));
  }
#else
  for (std::size_t i = 0; i < kVectors; ++i)
    for (std::size_t k = 0; k < kOfVector; ++k) r.v[i][k] = table[index.v[i][k]];
#endif
  return r;
}
// Looks up each lane's index in a table of any size.
KFN Ints gather(const std::uint32_t* table, const Ints& index) {
  Ints r;
  for (std::size_t i = 0; i < kVectors; ++i) {
#if defined(PYF_LEVEL_AVX512)
    r.v[i] = __builtin_bit_cast(IntVector, _mm512_i32gather_epi32(__builtin_bit_cast(__m512i, index.v[i]), table, 4));
#elif defined(PYF_LEVEL_AVX2)
    r.v[i] = __builtin_bit_cast(IntVector, _mm256_i32gather_epi32(reinterpret_cast<const int*>(table),
                                                                  __builtin_bit_cast(__m256i, index.v[i]), 4));
#else
    for (std::size_t k = 0; k < kOfVector; ++k) r.v[i][k] = static_cast<std::int32_t>(table[index.v[i][k]]);
#endif
  }
  return r;
}

// Writes the lanes in `bits` contiguously; returns their number. May write up to kRows meaningless values after them.
KFN std::uint32_t pack_lanes(const Ints& a, std::uint32_t bits, std::uint32_t* to) {
#if defined(PYF_LEVEL_AVX512)
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < kVectors; ++i) {
    const auto mask = static_cast<__mmask16>(bits >> (16 * i));
    _mm512_storeu_si512(to + count, _mm512_maskz_compress_epi32(mask, __builtin_bit_cast(__m512i, a.v[i])));
    count += static_cast<std::uint32_t>(__builtin_popcount(mask));
  }
  return count;
#else
  std::int32_t lanes[kRows];
  a.store(lanes);
  std::uint32_t count = 0;
  for (std::uint32_t left = bits; left != 0; left &= left - 1)
    to[count++] = static_cast<std::uint32_t>(lanes[__builtin_ctz(left)]);
  return count;
#endif
}

// The inverse: contiguous values go to the lanes in `bits`; other lanes become 0.
KFN Ints unpack_lanes(const std::uint32_t* from, std::uint32_t bits) {
#if defined(PYF_LEVEL_AVX512)
  Ints r;
  for (std::size_t i = 0; i < kVectors; ++i) {
    const auto mask = static_cast<__mmask16>(bits >> (16 * i));
    const auto count = static_cast<std::uint32_t>(__builtin_popcount(mask));
    const __m512i some = _mm512_maskz_loadu_epi32(static_cast<__mmask16>((1u << count) - 1), from);
    r.v[i] = __builtin_bit_cast(IntVector, _mm512_maskz_expand_epi32(mask, some));
    from += count;
  }
  return r;
#else
  std::int32_t lanes[kRows] = {};
  for (std::uint32_t left = bits; left != 0; left &= left - 1)
    lanes[__builtin_ctz(left)] = static_cast<std::int32_t>(*from++);
  return Ints::load(lanes);
#endif
}

// Writes the low 16 bits of the states in `needs` before `end`, in the order of lanes; returns their number.
KFN std::uint32_t spill_states(Ints& states, std::uint32_t needs, std::uint8_t* end) {
  const auto all = static_cast<std::uint32_t>(__builtin_popcount(needs));
  std::uint8_t* to = end - 2 * std::size_t{all};
#if defined(PYF_LEVEL_AVX512)
  for (std::size_t i = 0; i < kVectors; ++i) {
    const auto mask = static_cast<__mmask16>(needs >> (16 * i));
    const auto count = static_cast<std::uint32_t>(__builtin_popcount(mask));
    const __m512i x = (__m512i)states.v[i];
    _mm256_mask_storeu_epi16(to, static_cast<__mmask16>((1u << count) - 1),
                             _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(mask, x)));
    states.v[i] = (IntVector)_mm512_mask_srli_epi32(x, mask, x, 16);
    to += 2 * std::size_t{count};
  }
#else
  std::int32_t lanes[kRows];
  states.store(lanes);
  for (std::uint32_t left = needs; left != 0; left &= left - 1, to += 2) {
    std::int32_t& x = lanes[__builtin_ctz(left)];
    to[0] = static_cast<std::uint8_t>(x);
    to[1] = static_cast<std::uint8_t>(x >> 8);
    x >>= 16;
  }
  states = Ints::load(lanes);
#endif
  return all;
}

// x * reciprocal / 2^31 / 2^shift, rounded down, for unsigned numbers.
KFN Ints divided(const Ints& x, const Ints& reciprocal, const Ints& shift) {
  Ints r;
  for (std::size_t i = 0; i < kVectors; ++i) {
#if defined(PYF_LEVEL_AVX512)
    const auto a = (__m512i)x.v[i], b = (__m512i)reciprocal.v[i], s = (__m512i)shift.v[i];
    const __m512i even = _mm512_srlv_epi64(_mm512_srli_epi64(_mm512_mul_epu32(a, b), 31),
                                           _mm512_and_si512(s, _mm512_set1_epi64(0xFFFFFFFF)));
    const __m512i odd =
        _mm512_srlv_epi64(_mm512_srli_epi64(_mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32)), 31),
                          _mm512_srli_epi64(s, 32));
    r.v[i] = (IntVector)_mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32));
#elif defined(PYF_LEVEL_AVX2)
    const auto a = (__m256i)x.v[i], b = (__m256i)reciprocal.v[i], s = (__m256i)shift.v[i];
    const __m256i even = _mm256_srlv_epi64(_mm256_srli_epi64(_mm256_mul_epu32(a, b), 31),
                                           _mm256_and_si256(s, _mm256_set1_epi64x(0xFFFFFFFF)));
    const __m256i odd =
        _mm256_srlv_epi64(_mm256_srli_epi64(_mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32)), 31),
                          _mm256_srli_epi64(s, 32));
    r.v[i] = (IntVector)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
#else
    for (std::size_t k = 0; k < kOfVector; ++k)
      r.v[i][k] = static_cast<std::int32_t>(
          (std::uint64_t{static_cast<std::uint32_t>(x.v[i][k])} * static_cast<std::uint32_t>(reciprocal.v[i][k])) >>
          31 >> shift.v[i][k]);
#endif
  }
  return r;
}

// Appends 16 bits to each state in `needs`, from words in the order of lanes; returns the number of words.
KFN std::uint32_t refill_states(Ints& states, std::uint32_t needs, const std::uint8_t* words) {
#if defined(PYF_LEVEL_AVX512)
  std::uint32_t taken = 0;
  for (std::size_t i = 0; i < kVectors; ++i) {
    const auto mask = static_cast<__mmask16>(needs >> (16 * i));
    const __m512i next = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + 2 * taken)));
    const __m512i x = (__m512i)states.v[i];
    states.v[i] =
        (IntVector)_mm512_mask_or_epi32(x, mask, _mm512_slli_epi32(x, 16), _mm512_maskz_expand_epi32(mask, next));
    taken += static_cast<std::uint32_t>(__builtin_popcount(mask));
  }
  return taken;
#else
  std::int32_t lanes[kRows];
  states.store(lanes);
  std::uint32_t taken = 0;
  for (std::uint32_t left = needs; left != 0; left &= left - 1, ++taken) {
    std::int32_t& x = lanes[__builtin_ctz(left)];
    x = static_cast<std::int32_t>(static_cast<std::uint32_t>(x) << 16 | words[2 * taken] |
                                  std::uint32_t{words[2 * taken + 1]} << 8);
  }
  states = Ints::load(lanes);
  return taken;
#endif
}

// The nearest integer, for |a| < 2^22.
KFN Floats nearest(const Floats& a) {
  const Floats magic = Floats::all(12582912.0f);
  return (a + magic) - magic;
}
// The nearest integer as an integer, and the inverse.
KFN Ints integer_of(const Floats& a) { return bits_of(a + Floats::all(12582912.0f)) - Ints::all(0x4B400000); }
KFN Floats float_of(const Ints& a) { return as_floats(a + Ints::all(0x4B400000)) - Floats::all(12582912.0f); }

PYF_END_TARGET
