// SPDX-License-Identifier: BSD-3-Clause
// Narrow codes with AVX-512: what narrow_avx2.hpp does, sixteen at a time.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstdint>

#include "stages/quantize.hpp"
#include "stages/simd/planes_avx512.hpp"

PYF_BEGIN_TARGET

// The low halves of sixteen numbers.
KFN __m512i low_words(__m512i low, __m512i high) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return _mm512_permutex2var_epi32(low, even, high);
}

// The low halves of 32 codes. Returns the OR of all codes + `above`.
KFN std::uint64_t shorten_codes(const std::uint64_t* codes, std::uint64_t above, std::uint32_t* to) {
  const __m512i add = _mm512_set1_epi64(static_cast<long long>(above));
  __m512i any = _mm512_setzero_si512();
  for (int i = 0; i < 32; i += 16) {
    const __m512i low = _mm512_loadu_si512(codes + i), high = _mm512_loadu_si512(codes + i + 8);
    any = _mm512_or_si512(any, _mm512_or_si512(_mm512_add_epi64(low, add), _mm512_add_epi64(high, add)));
    _mm512_storeu_si512(to + i, low_words(low, high));
  }
  return static_cast<std::uint64_t>(_mm512_reduce_or_epi64(any));
}

template <class T>
class NarrowQuantizer;

template <>
class NarrowQuantizer<float> {
 public:
  explicit KFN NarrowQuantizer(const Quantizer<float>& p, int /*bits*/)
      : inverse_(_mm512_set1_ps(p.inverse_step)),
        step_(_mm512_set1_ps(p.step)),
        sentinel_(_mm512_set1_ps(p.sentinel)),
        bound_(p.bound),
        reach_(std::bit_cast<std::int32_t>(p.reach)),
        has_sentinel_(p.has_sentinel) {}

  static constexpr int kAtOnce = 16;
  [[nodiscard]] KFN bool has_sentinel() const { return has_sentinel_; }
  template <bool kSentinel>
  KFN void take(const void* from, std::uint32_t* to) {
    const __m512 magic = _mm512_set1_ps(FloatTraits<float>::kMagic);
    const __m512 x = _mm512_loadu_ps(from), t = _mm512_fmadd_ps(x, inverse_, magic);
    const __m512 decoded = _mm512_mul_ps(_mm512_sub_ps(t, magic), step_);
    // of a NaN the maximum is the other one: such errors have values that are NaN or infinite
    error_ = _mm512_max_ps(_mm512_abs_ps(_mm512_sub_ps(x, decoded)), error_);
    far_ = _mm512_max_epi32(far_, _mm512_castps_si512(_mm512_abs_ps(x)));
    if constexpr (kSentinel)
      same_ = static_cast<__mmask16>(same_ | _mm512_cmp_ps_mask(x, sentinel_, _CMP_EQ_OQ) |
                                     _mm512_cmp_ps_mask(decoded, sentinel_, _CMP_EQ_OQ));
    _mm512_storeu_si512(to, _mm512_sub_epi32(_mm512_castps_si512(t), _mm512_castps_si512(magic)));
  }
  // Whether all values so far have codes.
  [[nodiscard]] KFN bool fits() const {
    const __mmask16 beyond = _mm512_cmp_ps_mask(error_, _mm512_set1_ps(bound_), _CMP_NLE_UQ);
    const __mmask16 far = _mm512_cmpgt_epi32_mask(far_, _mm512_set1_epi32(reach_ - 1));
    return (beyond | far | same_) == 0;
  }

 private:
  __m512 inverse_, step_, sentinel_;
  __m512 error_ = _mm512_setzero_ps();
  __m512i far_ = _mm512_setzero_si512();  // bits of |x|: those of NaNs and infinities are the largest
  __mmask16 same_ = 0;
  float bound_;
  std::int32_t reach_;
  bool has_sentinel_;
};

// Codes are narrow where those of magic forms, of a magic number so much larger that no narrow code is below 0, have no
// other bits; NaNs and infinities have.
template <>
class NarrowQuantizer<double> {
 public:
  static_assert(static_cast<std::uint32_t>(FloatTraits<double>::kMagicBits) == 0);

  // `bits` of a code and a sign may be shortened.
  explicit KFN NarrowQuantizer(const Quantizer<double>& p, int bits)
      : inverse_(_mm512_set1_pd(p.inverse_step)),
        step_(_mm512_set1_pd(p.step)),
        sentinel_(_mm512_set1_pd(p.sentinel)),
        magic_(_mm512_set1_pd(FloatTraits<double>::kMagic + static_cast<double>(std::uint64_t{1} << bits))),
        above_(_mm512_set1_epi32(1 << bits)),
        bits_(bits),
        bound_(p.bound),
        has_sentinel_(p.has_sentinel) {}

  static constexpr int kAtOnce = 16;
  [[nodiscard]] KFN bool has_sentinel() const { return has_sentinel_; }
  template <bool kSentinel>
  KFN void take(const void* from, std::uint32_t* to) {
    const auto* const x = static_cast<const double*>(from);
    const __m512i low = eight<kSentinel>(x), high = eight<kSentinel>(x + 8);
    _mm512_storeu_si512(to, _mm512_sub_epi32(low_words(low, high), above_));
  }
  [[nodiscard]] KFN bool fits() const {
    const __m512i beyond = _mm512_set1_epi64(~((std::int64_t{2} << bits_) - 1));
    const __mmask8 wide = _mm512_test_epi64_mask(seen_, beyond);
    return (_mm512_cmp_pd_mask(error_, _mm512_set1_pd(bound_), _CMP_NLE_UQ) | wide | same_) == 0;
  }

 private:
  template <bool kSentinel>
  KFN __m512i eight(const double* from) {
    const __m512i no_code = _mm512_set1_epi64(static_cast<long long>(FloatTraits<double>::kMagicBits));
    const __m512d x = _mm512_loadu_pd(from), t = _mm512_fmadd_pd(x, inverse_, magic_);
    const __m512d decoded = _mm512_mul_pd(_mm512_sub_pd(t, magic_), step_);
    // the larger magnitude; of a NaN it is the other one
    error_ = _mm512_range_pd(_mm512_sub_pd(x, decoded), error_, 0b1011);
    seen_ = _mm512_ternarylogic_epi64(seen_, _mm512_castpd_si512(t), no_code, 0xF6);  // seen | (t ^ no_code)
    if constexpr (kSentinel)
      same_ = static_cast<__mmask8>(same_ | _mm512_cmp_pd_mask(x, sentinel_, _CMP_EQ_OQ) |
                                    _mm512_cmp_pd_mask(decoded, sentinel_, _CMP_EQ_OQ));
    return _mm512_castpd_si512(t);
  }

  __m512d inverse_, step_, sentinel_, magic_;
  __m512i above_;
  __m512d error_ = _mm512_setzero_pd();
  __m512i seen_ = _mm512_setzero_si512();  // bits of codes
  __mmask8 same_ = 0;
  int bits_;
  double bound_;
  bool has_sentinel_;
};

PYF_END_TARGET
