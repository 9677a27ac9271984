// SPDX-License-Identifier: BSD-3-Clause
// 32 words <-> up to 32 bit planes, portable: byte c of eight values is an 8x8 bit matrix in a 64-bit word
// (bit_matrix.hpp). planes_avx2.hpp and planes_avx512.hpp do the same, and planes_neon.hpp all but the running sums.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/bit_matrix.hpp"
#if defined(PYF_LEVEL_NEON)
#include "stages/simd/planes_neon.hpp"
#endif

PYF_BEGIN_TARGET

#if !defined(PYF_LEVEL_NEON)
// The OR of N values, of the first only if bit 0 of `counted` is set.
template <int N>
KFN std::uint32_t any_bits(const std::uint32_t* z, std::uint32_t counted) {
  std::uint32_t any = z[0] & (0u - (counted & 1));
  for (int i = 1; i < N; ++i) any |= z[i];
  return any;
}

// `planes` planes of 32 words, one a word, rounded up to a multiple of eight.
KFN void pack_planes(const std::uint32_t* z, int planes, std::uint32_t* out) {
  for (int c = 0; 8 * c < planes; ++c) {
    std::uint64_t columns[4];
    for (int g = 0; g < 4; ++g) {
      std::uint64_t x = 0;
      for (int k = 0; k < 8; ++k) x |= static_cast<std::uint64_t>((z[8 * g + k] >> (8 * c)) & 0xFF) << (8 * k);
      columns[g] = transpose_8x8(x);
    }
    for (int k = 0; k < 8; ++k) {
      std::uint32_t plane = 0;
      for (int g = 0; g < 4; ++g) plane |= static_cast<std::uint32_t>((columns[g] >> (8 * k)) & 0xFF) << (8 * g);
      out[8 * c + k] = plane;
    }
  }
}

KFN void unpack_planes(const std::uint8_t* words, int planes, std::uint32_t* z) {
  for (int i = 0; i < 32; ++i) z[i] = 0;
  for (int c = 0; 8 * c < planes; ++c) {
    std::uint64_t columns[4] = {0, 0, 0, 0};
    for (int k = 0; k < 8 && 8 * c + k < planes; ++k) {
      const auto plane = load_le<std::uint32_t>(words + 4 * (8 * c + k));
      for (int g = 0; g < 4; ++g) columns[g] |= static_cast<std::uint64_t>((plane >> (8 * g)) & 0xFF) << (8 * k);
    }
    for (int g = 0; g < 4; ++g) {
      const std::uint64_t x = transpose_8x8(columns[g]);
      for (int k = 0; k < 8; ++k) z[8 * g + k] |= static_cast<std::uint32_t>((x >> (8 * k)) & 0xFF) << (8 * c);
    }
  }
}
#endif

// Running sums undo differences: along a block of 32, along x then y of 8x8, along x, y and z of 4x4x4.
template <int kStride, int kRun, int B, class Code>
KFN void running_sum(Code (&a)[B]) {
  for (int i = kStride; i < B; ++i)
    if (i % kRun >= kStride) a[i] = static_cast<Code>(a[i] + a[i - kStride]);
}

template <class Code>
KFN void accumulate_1d(Code (&a)[32]) {
  running_sum<1, 32>(a);
}

template <class Code>
KFN void accumulate_2d(Code (&a)[64]) {
  running_sum<1, 8>(a);
  running_sum<8, 64>(a);
}

template <class Code>
KFN void accumulate_3d(Code (&a)[64]) {
  running_sum<1, 4>(a);
  running_sum<4, 16>(a);
  running_sum<16, 64>(a);
}

PYF_END_TARGET
