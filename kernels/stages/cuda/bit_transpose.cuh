// SPDX-License-Identifier: BSD-3-Clause
// Bit planes of 32 residuals (docs/format.md, section 4.5) in one thread's registers, eight planes at a time: byte g
// of values j, j + 8, j + 16, j + 24 is gathered into word j; those eight words are four 8x8 bit matrices side by side,
// which three rounds of swaps transpose (Hacker's Delight, 7-3). stages/simd does the same with vectors.
#pragma once

#include <cstdint>

#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

// (a where mask is 1, b where it is 0). One instruction, which the compiler does not find where a and b are shifted.
__device__ __forceinline__ std::uint32_t select_bits(std::uint32_t a, std::uint32_t b, std::uint32_t mask) {
  std::uint32_t selected;
  asm("lop3.b32 %0, %1, %2, %3, 0xE4;" : "=r"(selected) : "r"(a), "r"(b), "r"(mask));
  return selected;
}

// One round: swaps the bits that kMask leaves out of `low` with those that it covers of `high`, kShift apart.
template <int kShift, std::uint32_t kMask>
__device__ __forceinline__ void swap_bits(std::uint32_t& low, std::uint32_t& high) {
  const std::uint32_t a = select_bits(low, high << kShift, kMask);
  high = select_bits(low >> kShift, high, kMask);
  low = a;
}

__device__ __forceinline__ void transpose_8x8(std::uint32_t (&w)[8]) {
#pragma unroll
  for (int j = 0; j < 4; ++j) swap_bits<4, 0x0F0F0F0Fu>(w[j], w[j + 4]);
#pragma unroll
  for (int j = 0; j < 8; j += 4) {
    swap_bits<2, 0x33333333u>(w[j], w[j + 2]);
    swap_bits<2, 0x33333333u>(w[j + 1], w[j + 3]);
  }
#pragma unroll
  for (int j = 0; j < 8; j += 2) swap_bits<1, 0x55555555u>(w[j], w[j + 1]);
}

// Planes 8g to 8g + 7 of 32 words; word(i) gives the i-th.
template <int g, class Word>
__device__ __forceinline__ void pack_group(Word word, std::uint32_t (&planes)[8]) {
  constexpr unsigned kPick = g | (g + 4) << 4;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const std::uint32_t low = __byte_perm(word(j), word(j + 8), kPick);
    const std::uint32_t high = __byte_perm(word(j + 16), word(j + 24), kPick);
    planes[j] = __byte_perm(low, high, 0x5410);
  }
  transpose_8x8(planes);
}

// The way back: puts byte g of all 32 words; z(i) is the i-th. Group 0 clears the bytes above.
template <int g, class Word>
__device__ __forceinline__ void unpack_group(std::uint32_t (&planes)[8], Word z) {
  transpose_8x8(planes);
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const unsigned byte = static_cast<unsigned>(i / 8);
    if constexpr (g == 0) {
      z(i) = __byte_perm(planes[i % 8], 0, 0x4440 | byte);
    } else {
      constexpr unsigned kIdentity = 0x3210, kHole = ~(0xFu << (4 * g)) & 0xFFFFu;
      z(i) = __byte_perm(z(i), planes[i % 8], (kIdentity & kHole) | (4 + byte) << (4 * g));
    }
  }
}

// Calls visit<g>(word) for each eight planes that codes have, g from 0; word(i) gives what pack_group() takes.
template <class Code, class Visit>
__device__ __forceinline__ void for_groups(const Code (&z)[32], const Visit& visit) {
  const auto low = [&](int i) { return static_cast<std::uint32_t>(z[i]); };
  visit.template operator()<0>(low);
  visit.template operator()<1>(low);
  visit.template operator()<2>(low);
  visit.template operator()<3>(low);
  if constexpr (sizeof(Code) == 8) {
    const auto high = [&](int i) { return static_cast<std::uint32_t>(z[i] >> 32); };
    visit.template operator()<4>(high);
    visit.template operator()<5>(high);
    visit.template operator()<6>(high);
    visit.template operator()<7>(high);
  }
}

// Bytes of the residuals' planes, eight at a time, to this thread's words.
template <class Code>
__device__ __forceinline__ void write_planes(const Code (&z)[32], int planes, std::uint32_t* to) {
  const int highest = warp_max(planes);
  for_groups(z, [&]<int g>(auto word) {
    if (8 * g >= highest) return;
    std::uint32_t w[8];
    pack_group<g % 4>(word, w);
#pragma unroll
    for (int k = 0; k < 8; ++k)
      if (8 * g + k < planes) to[8 * g + k] = w[k];
  });
}

}  // namespace pyfilter::cuda
