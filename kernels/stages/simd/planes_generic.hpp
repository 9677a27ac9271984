// SPDX-License-Identifier: BSD-3-Clause
// 32 words <-> up to 32 bit planes, portable: byte c of eight values is an 8x8 bit matrix in a 64-bit word
// (bit_matrix.hpp). planes_avx2.hpp, planes_avx512.hpp and planes_neon.hpp do the same.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/bit_matrix.hpp"

PYF_BEGIN_TARGET

// The OR of N values, of the first only if bit 0 of `counted` is set.
template <int N>
KFN std::uint32_t any_bits(const std::uint32_t* z, std::uint32_t counted) {
  std::uint32_t any = z[0] & (0u - (counted & 1));
  for (int i = 1; i < N; ++i) any |= z[i];
  return any;
}

// Writes `planes` planes of 32 words, one word each; their number is rounded up to a multiple of eight.
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

PYF_END_TARGET
