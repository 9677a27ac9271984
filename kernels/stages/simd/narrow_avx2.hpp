// SPDX-License-Identifier: BSD-3-Clause
// Codes of 64 bits shortened to 32 with AVX2 (stages/entropy/residuals.hpp).
#pragma once

#include <immintrin.h>

#include <cstdint>

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

PYF_END_TARGET
