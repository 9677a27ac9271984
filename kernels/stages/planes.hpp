// SPDX-License-Identifier: BSD-3-Clause
// Bit planes of 32 residuals (docs/format.md, section 4.5) and running sums, by this target's primitives. 64-bit codes
// use these primitives twice: planes from 32 on are the planes of the high halves.
#pragma once

#include "core/target.hpp"
#include "stages/simd/rows.hpp"
#if defined(PYF_LEVEL_AVX512)
#include "stages/simd/planes_avx512.hpp"
#elif defined(PYF_LEVEL_AVX2)
#include "stages/simd/planes_avx2.hpp"
#elif defined(PYF_LEVEL_NEON)
#include "stages/simd/planes_neon.hpp"
#else
#include "stages/simd/planes_generic.hpp"
#endif

PYF_BEGIN_TARGET

#if !defined(PYF_LEVEL_AVX512)
// Transposes kRuns runs of 32 words into bit planes, one plane a word; consecutive runs are `stride` words apart.
// `counted` masks the values of the first run that count (all, or all but the first). Returns the OR of the counted
// values: its bits are the counted planes that are not zero. Planes above its highest bit are written only if
// `complete`; then all 32 planes are right, for uncounted values too.
template <int kRuns>
KFN std::uint32_t transpose_planes(const std::uint32_t* z, std::uint32_t counted, bool complete, std::uint32_t* planes,
                                   int stride) {
  const std::uint32_t any = any_bits<32 * kRuns>(z, counted);
  const int wanted = complete ? 32 : bit_width(any);
#if defined(PYF_LEVEL_AVX2)
  if constexpr (kRuns == 2) {
    pack_pair(z, wanted, planes, stride);
    return any;
  }
#endif
  for (int run = 0; run < kRuns; ++run) pack_planes(z + 32 * run, wanted, planes + run * stride);
  return any;
}
#endif

// transpose_planes() of 64-bit codes: 64 planes. If any value, counted or not, has more than 32 bits, all planes are
// written.
template <int kRuns>
KFN std::uint64_t transpose_planes(const std::uint64_t* z, std::uint32_t counted, bool /*complete*/,
                                   std::uint32_t* planes, int stride) {
  std::uint32_t low[32 * kRuns], high[32 * kRuns];
  std::uint32_t any_high = 0;
  for (int i = 0; i < 32 * kRuns; ++i) {
    low[i] = static_cast<std::uint32_t>(z[i]);
    high[i] = static_cast<std::uint32_t>(z[i] >> 32);
    any_high |= high[i];
  }
  if (any_high == 0) return transpose_planes<kRuns>(low, counted, false, planes, stride);
  const std::uint64_t any = transpose_planes<kRuns>(low, counted, true, planes, stride);
  return any | std::uint64_t{transpose_planes<kRuns>(high, counted, true, planes + 32, stride)} << 32;
}

// Transposes two blocks of one run each; for each the first value counts or not. any[i]: transpose_planes() of block i.
template <class Code>
KFN void transpose_blocks(const Code* z, std::uint32_t counted, std::uint32_t* planes, int stride, Code (&any)[2]) {
#if defined(PYF_LEVEL_AVX2)
  if constexpr (sizeof(Code) == 4) {
    for (int i = 0; i < 2; ++i) any[i] = any_bits<32>(z + 32 * i, counted);
    pack_pair(z, bit_width(any[0] | any[1]), planes, stride);
    return;
  }
#endif
  for (int i = 0; i < 2; ++i) any[i] = transpose_planes<1>(z + 32 * i, counted, false, planes + i * stride, stride);
}

KFN void unpack_planes(const std::uint8_t* words, int planes, std::uint64_t* z) {
  std::uint32_t low[32];
  unpack_planes(words, planes < 32 ? planes : 32, low);
  if (planes <= 32) {
    for (int i = 0; i < 32; ++i) z[i] = low[i];
    return;
  }
  std::uint32_t high[32];
  unpack_planes(words + 4 * 32, planes - 32, high);
  for (int i = 0; i < 32; ++i) z[i] = low[i] | static_cast<std::uint64_t>(high[i]) << 32;
}

// Transposes kRuns runs; the planes of each run follow those of the run before.
template <int kRuns, class Code>
KFN void unpack_runs(const std::uint8_t* words, int planes, Code* z) {
#if defined(PYF_LEVEL_AVX2)
  if constexpr (kRuns == 2 && sizeof(Code) == 4) return unpack_pair(words, planes, z);
  if (kRuns == 2 && planes <= 32) {
    alignas(64) std::uint32_t low[64];
    unpack_pair(words, planes, low);
    for (int i = 0; i < 64; ++i) z[i] = low[i];
    return;
  }
#endif
  for (int run = 0; run < kRuns; ++run) unpack_planes(words + 4 * planes * run, planes, z + 32 * run);
}

// Planes of a block of 32 -> running sums, in one step. Returns the first residual as its planes have it.
template <class Code>
KFN Code unpack_sums(const std::uint8_t* words, int planes, Code (&q)[32]) {
#if defined(PYF_LEVEL_AVX512)
  if (planes <= kShortPlanes) [[likely]]
    return unpack_short_sums(words, planes, q);
#endif
  unpack_planes(words, planes, q);
  const Code low = q[0];
  for (int i = 0; i < 32; ++i) q[i] = unzigzag(q[i]);
  accumulate_block<1>(q);
  return low;
}

PYF_END_TARGET
