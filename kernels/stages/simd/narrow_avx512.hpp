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

// Values are in reach where their codes are narrow. The low half of a magic form is that of its code.
template <>
class NarrowQuantizer<double> {
 public:
  static_assert(static_cast<std::uint32_t>(FloatTraits<double>::kMagicBits) == 0);

  // `bits` of a code and a sign may be shortened.
  explicit KFN NarrowQuantizer(const Quantizer<double>& p, int bits)
      : inverse_(_mm512_set1_pd(p.inverse_step)),
        step_(_mm512_set1_pd(p.step)),
        sentinel_(_mm512_set1_pd(p.sentinel)),
        bound_(_mm512_set1_pd(p.bound)),
        most_(static_cast<double>((std::uint64_t{1} << bits) - 1) * p.step),
        has_sentinel_(p.has_sentinel) {}

  static constexpr int kAtOnce = 16;
  [[nodiscard]] KFN bool has_sentinel() const { return has_sentinel_; }
  template <bool kSentinel>
  KFN void take(const void* from, std::uint32_t* to) {
    const auto* const x = static_cast<const double*>(from);
    const __m512i low = eight<kSentinel>(x), high = eight<kSentinel>(x + 8);
    _mm512_storeu_si512(to, low_words(low, high));
  }
  [[nodiscard]] KFN bool fits() const {
    const __mmask8 far = _mm512_cmp_pd_mask(far_, _mm512_set1_pd(most_), _CMP_NLT_UQ);
    return (misfits_ | far) == 0;
  }

 private:
  template <bool kSentinel>
  KFN __m512i eight(const double* from) {
    const __m512d magic = _mm512_set1_pd(FloatTraits<double>::kMagic);
    const __m512d x = _mm512_loadu_pd(from), t = _mm512_fmadd_pd(x, inverse_, magic);
    const __m512d decoded = _mm512_mul_pd(_mm512_sub_pd(t, magic), step_);
    // unordered where x is NaN or infinite; of a NaN the maximum is the other one
    const __m512d error = _mm512_abs_pd(_mm512_sub_pd(x, decoded));
    misfits_ = static_cast<__mmask8>(misfits_ | _mm512_cmp_pd_mask(error, bound_, _CMP_NLE_UQ));
    far_ = _mm512_max_pd(_mm512_abs_pd(x), far_);
    if constexpr (kSentinel)
      misfits_ = static_cast<__mmask8>(misfits_ | _mm512_cmp_pd_mask(x, sentinel_, _CMP_EQ_OQ) |
                                       _mm512_cmp_pd_mask(decoded, sentinel_, _CMP_EQ_OQ));
    return _mm512_castpd_si512(t);
  }

  __m512d inverse_, step_, sentinel_, bound_;
  __m512d far_ = _mm512_setzero_pd();
  __mmask8 misfits_ = 0;
  double most_;
  bool has_sentinel_;
};

PYF_END_TARGET
