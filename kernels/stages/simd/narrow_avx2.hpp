// SPDX-License-Identifier: BSD-3-Clause
// Narrow codes with AVX2 (stages/packed/narrow.hpp): codes of 64 bits shortened to 32, and values quantised to 32 bits
// at once, eight at a time, with the tests that all of them are ordinary and narrow put off to the end.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstdint>

#include "stages/quantize.hpp"
#include "stages/simd/planes_avx2.hpp"

PYF_BEGIN_TARGET

// The low halves of 32 codes. Returns the OR of all codes + `above`.
KFN std::uint64_t shorten_codes(const std::uint64_t* codes, std::uint64_t above, std::uint32_t* to) {
  const __m256i add = _mm256_set1_epi64x(static_cast<long long>(above));
  __m256i any = _mm256_setzero_si256();
  for (int i = 0; i < 32; i += 8) {
    const __m256i low = load(codes + i), high = load(codes + i + 4);
    any = _mm256_or_si256(any, _mm256_or_si256(_mm256_add_epi64(low, add), _mm256_add_epi64(high, add)));
    const __m256 halves = _mm256_shuffle_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), 0x88);
    store(to + i, _mm256_permute4x64_epi64(_mm256_castps_si256(halves), 0xD8));
  }
  const __m128i two = _mm_or_si128(_mm256_castsi256_si128(any), _mm256_extracti128_si256(any, 1));
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(two) | _mm_extract_epi64(two, 1));
}

// The codes of quantize() (stages/quantize.hpp) of values that all have one. What is tested is what quantize() tests:
// the largest error, the largest value, whether any is the sentinel or decodes to it.
template <class T>
class NarrowQuantizer;

template <>
class NarrowQuantizer<float> {
 public:
  explicit KFN NarrowQuantizer(const Quantizer<float>& p, int /*bits*/)
      : inverse_(_mm256_set1_ps(p.inverse_step)),
        step_(_mm256_set1_ps(p.step)),
        sentinel_(_mm256_set1_ps(p.sentinel)),
        bound_(p.bound),
        reach_(std::bit_cast<std::int32_t>(p.reach)),
        has_sentinel_(p.has_sentinel) {}

  static constexpr int kAtOnce = 8;
  [[nodiscard]] KFN bool has_sentinel() const { return has_sentinel_; }
  template <bool kSentinel>
  KFN void take(const void* from, std::uint32_t* to) {
    const __m256 magic = _mm256_set1_ps(FloatTraits<float>::kMagic);
    const __m256 bits = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
    const __m256 x = _mm256_loadu_ps(static_cast<const float*>(from)), t = _mm256_fmadd_ps(x, inverse_, magic);
    const __m256 decoded = _mm256_mul_ps(_mm256_sub_ps(t, magic), step_);
    // of a NaN the maximum is the other one: such errors have values that are NaN or infinite
    error_ = _mm256_max_ps(_mm256_and_ps(_mm256_sub_ps(x, decoded), bits), error_);
    far_ = _mm256_max_epi32(far_, _mm256_castps_si256(_mm256_and_ps(x, bits)));
    if constexpr (kSentinel)
      same_ = _mm256_or_ps(
          same_, _mm256_or_ps(_mm256_cmp_ps(x, sentinel_, _CMP_EQ_OQ), _mm256_cmp_ps(decoded, sentinel_, _CMP_EQ_OQ)));
    store(to, _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_castps_si256(magic)));
  }
  // Whether all values so far have codes.
  [[nodiscard]] KFN bool fits() const {
    const __m256 beyond = _mm256_cmp_ps(error_, _mm256_set1_ps(bound_), _CMP_NLE_UQ);
    const __m256i far = _mm256_cmpgt_epi32(far_, _mm256_set1_epi32(reach_ - 1));
    return _mm256_movemask_ps(_mm256_or_ps(_mm256_or_ps(beyond, same_), _mm256_castsi256_ps(far))) == 0;
  }

 private:
  __m256 inverse_, step_, sentinel_;
  __m256 error_ = _mm256_setzero_ps(), same_ = _mm256_setzero_ps();
  __m256i far_ = _mm256_setzero_si256();  // bits of |x|: those of NaNs and infinities are the largest
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
      : inverse_(_mm256_set1_pd(p.inverse_step)),
        step_(_mm256_set1_pd(p.step)),
        sentinel_(_mm256_set1_pd(p.sentinel)),
        bound_(_mm256_set1_pd(p.bound)),
        most_(static_cast<double>((std::uint64_t{1} << bits) - 1) * p.step),
        has_sentinel_(p.has_sentinel) {}

  static constexpr int kAtOnce = 8;
  [[nodiscard]] KFN bool has_sentinel() const { return has_sentinel_; }
  template <bool kSentinel>
  KFN void take(const void* from, std::uint32_t* to) {
    const auto* const x = static_cast<const double*>(from);
    const __m256i low = four<kSentinel>(x), high = four<kSentinel>(x + 4);
    const __m256 halves = _mm256_shuffle_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), 0x88);
    store(to, _mm256_permute4x64_epi64(_mm256_castps_si256(halves), 0xD8));
  }
  [[nodiscard]] KFN bool fits() const {
    const __m256d far = _mm256_cmp_pd(far_, _mm256_set1_pd(most_), _CMP_NLT_UQ);
    return _mm256_movemask_pd(_mm256_or_pd(misfits_, far)) == 0;
  }

 private:
  template <bool kSentinel>
  KFN __m256i four(const double* from) {
    const __m256d magic = _mm256_set1_pd(FloatTraits<double>::kMagic);
    const __m256d bits = _mm256_castsi256_pd(_mm256_set1_epi64x(0x7FFFFFFFFFFFFFFF));
    const __m256d x = _mm256_loadu_pd(from), t = _mm256_fmadd_pd(x, inverse_, magic);
    const __m256d decoded = _mm256_mul_pd(_mm256_sub_pd(t, magic), step_);
    // unordered where x is NaN or infinite; of a NaN the maximum is the other one
    const __m256d error = _mm256_and_pd(_mm256_sub_pd(x, decoded), bits);
    misfits_ = _mm256_or_pd(misfits_, _mm256_cmp_pd(error, bound_, _CMP_NLE_UQ));
    far_ = _mm256_max_pd(_mm256_and_pd(x, bits), far_);
    if constexpr (kSentinel)
      misfits_ = _mm256_or_pd(misfits_, _mm256_or_pd(_mm256_cmp_pd(x, sentinel_, _CMP_EQ_OQ),
                                                     _mm256_cmp_pd(decoded, sentinel_, _CMP_EQ_OQ)));
    return _mm256_castpd_si256(t);
  }

  __m256d inverse_, step_, sentinel_, bound_;
  __m256d misfits_ = _mm256_setzero_pd(), far_ = _mm256_setzero_pd();
  double most_;
  bool has_sentinel_;
};

PYF_END_TARGET
