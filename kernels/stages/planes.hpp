// SPDX-License-Identifier: BSD-3-Clause
// Bit planes of 32 residuals (docs/format.md, section 4.5) and running sums: the primitives of this target, and on
// top of them the 64-bit codes, whose planes 32 and up are those of their high halves.
#pragma once

#include "core/target.hpp"
#if defined(PYF_LEVEL_AVX512)
#include "stages/simd/planes_avx512.hpp"
#elif defined(PYF_LEVEL_AVX2)
#include "stages/simd/planes_avx2.hpp"
#else
#include "stages/simd/planes_generic.hpp"
#endif

PYF_BEGIN_TARGET

// The same of 64-bit codes: 64 planes. Once any value, counted or not, has more than 32 bits all planes are written.
template <bool kComplete>
KFN std::uint64_t transpose_planes(const std::uint64_t* z, std::uint32_t counted, std::uint32_t* planes) {
  std::uint32_t low[32], high[32];
  std::uint32_t any_high = 0;
  for (int i = 0; i < 32; ++i) {
    low[i] = static_cast<std::uint32_t>(z[i]);
    high[i] = static_cast<std::uint32_t>(z[i] >> 32);
    any_high |= high[i];
  }
  if (any_high == 0) {
    if constexpr (kComplete)
      for (int p = 32; p < 64; ++p) planes[p] = 0;
    return transpose_planes<kComplete>(low, counted, planes);
  }
  const std::uint64_t any = transpose_planes<true>(low, counted, planes);
  return any | static_cast<std::uint64_t>(transpose_planes<true>(high, counted, planes + 32)) << 32;
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

// A block of 32 from its planes to its running sums, in one go. Returns the first residual as the planes have it.
template <class Code>
KFN Code unpack_sums(const std::uint8_t* words, int planes, Code (&q)[32]) {
#if defined(PYF_LEVEL_AVX512)
  if (planes <= kShortPlanes) [[likely]]
    return unpack_short_sums(words, planes, q);
#endif
  unpack_planes(words, planes, q);
  const Code low = q[0];
  for (int i = 0; i < 32; ++i) q[i] = unzigzag(q[i]);
  accumulate_1d(q);
  return low;
}

#if !defined(PYF_LEVEL_AVX512)
// Codes whose bit in `plain` (not zero) is not set take the code before them, those at the start the first plain one.
template <int B, class Code>
KFN void forward_fill(Code* q, std::uint64_t plain) {
  Code before = q[__builtin_ctzll(plain)];
  for (int i = 0; i < B; ++i) {  // no branches: special values may be anywhere
    const auto keep = static_cast<Code>(Code{0} - static_cast<Code>(plain >> i & 1));
    before = (before & ~keep) | (q[i] & keep);
    q[i] = before;
  }
}
#endif

PYF_END_TARGET
