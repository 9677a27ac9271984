// SPDX-License-Identifier: BSD-3-Clause
// Bit planes of 32 residuals (docs/format.md, section 4.5) in one thread's registers, eight planes at a time. Byte g of
// values j, j + 8, j + 16, j + 24 is gathered into word j. The eight words are four 8x8 bit matrices side by side,
// which three rounds of swaps transpose (Hacker's Delight, 7-3). stages/simd does the same with vectors.
//
// Residuals are zigzag numbers of differences, but no value is converted. Plane 0 of zigzag numbers is the sign of the
// differences, and plane p + 1 is the differences' plane p XOR the sign. So differences are transposed, and the
// conversion is applied to planes, which are fewer than values.
#pragma once

#include <cstdint>

#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

// (a where mask is 1, b where it is 0). One instruction; the compiler does not find it if a and b are shifted.
__device__ __forceinline__ std::uint32_t select_bits(std::uint32_t a, std::uint32_t b, std::uint32_t mask) {
  std::uint32_t selected;
  asm("lop3.b32 %0, %1, %2, %3, 0xE4;" : "=r"(selected) : "r"(a), "r"(b), "r"(mask));
  return selected;
}

// One round: swaps the bits of `low` outside kMask with the bits of `high` inside kMask, kShift apart.
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

// Planes 8g to 8g + 7 of 32 words; word(i) returns word i.
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

// Selects bytes of x (0 to 3) and y (4 to 7); selector + 8 repeats the byte's sign bit eight times, which __byte_perm()
// cannot do.
template <unsigned kPick>
__device__ __forceinline__ std::uint32_t pick_bytes(std::uint32_t x, std::uint32_t y) {
  std::uint32_t picked;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(picked) : "r"(x), "r"(y), "n"(kPick));
  return picked;
}

// The inverse: inserts byte g of all 32 words, and its sign in the bytes above; d(i) is word i.
template <int g, class Word>
__device__ __forceinline__ void unpack_group(std::uint32_t (&planes)[8], Word d) {
  transpose_8x8(planes);
  const auto put = [&]<unsigned byte>() {
    constexpr unsigned kBelow = 0x3210u & ((1u << (4 * g)) - 1), kHere = (4 + byte) << (4 * g),
                       kAbove = 0x1111u * (12 + byte) & 0xFFFFu & ~((1u << (4 * g + 4)) - 1);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      std::uint32_t& word = d(8 * static_cast<int>(byte) + j);
      word = pick_bytes < kBelow | kHere | kAbove > (g == 0 ? 0 : word, planes[j]);
    }
  };
  put.template operator()<0>();
  put.template operator()<1>();
  put.template operator()<2>();
  put.template operator()<3>();
}

// Calls visit<g>(word) for each group of eight planes of a code, from the top down to g = 0; word(i) returns
// pack_group()'s input.
template <class Code, class Visit>
__device__ __forceinline__ void for_groups(const Code (&d)[32], const Visit& visit) {
  if constexpr (sizeof(Code) == 8) {
    const auto high = [&](int i) { return static_cast<std::uint32_t>(d[i] >> 32); };
    visit.template operator()<7>(high);
    visit.template operator()<6>(high);
    visit.template operator()<5>(high);
    visit.template operator()<4>(high);
  }
  const auto low = [&](int i) { return static_cast<std::uint32_t>(d[i]); };
  visit.template operator()<3>(low);
  visit.template operator()<2>(low);
  visit.template operator()<1>(low);
  visit.template operator()<0>(low);
}

// Makes planes of the residuals of 32 differences of at most `highest` bits. Calls put(p, plane) for each p from 0 to
// highest - 1, and further up to a multiple of eight.
template <class Code, class Put>
__device__ __forceinline__ void residual_planes(const Code (&d)[32], int highest, const Put& put) {
  constexpr int kPlanes = 8 * sizeof(Code);
  std::uint32_t sign = 0;
  for_groups(d, [&]<int g>(auto word) {
    if (8 * g >= highest) return;
    std::uint32_t w[8];
    pack_group<g % 4>(word, w);
    if (8 * (g + 1) >= highest) {  // first iteration: the top plane holds the signs
      sign = w[7];
      put(0, sign);
    }
#pragma unroll
    for (int k = 0; k < 8; ++k)
      if (8 * g + k + 1 < kPlanes) put(8 * g + k + 1, w[k] ^ sign);
  });
}

// Writes the residuals' planes to this thread's words.
template <class Code>
__device__ __forceinline__ void write_planes(const Code (&d)[32], int planes, std::uint32_t* to) {
  residual_planes(d, warp_max(planes), [&](int p, std::uint32_t plane) {
    if (p < planes) to[p] = plane;
  });
}

// The OR of differences in zigzag form: the number of planes that the widest one needs.
template <class Code>
struct Spread;
template <>
struct Spread<std::uint32_t> {
  std::int32_t low = 0, high = 0;
  __device__ __forceinline__ void add(std::uint32_t d) {
    low = min(low, static_cast<std::int32_t>(d));
    high = max(high, static_cast<std::int32_t>(d));
  }
  // Bits of the magnitudes; the sign needs one more.
  __device__ __forceinline__ std::uint32_t bits() const { return static_cast<std::uint32_t>(high | (low ^ low >> 31)); }
  __device__ __forceinline__ int planes() const { return (low | high) == 0 ? 0 : bit_width(bits()) + 1; }
};
template <>
struct Spread<std::uint64_t> {
  std::uint64_t magnitude = 0;
  std::uint32_t any = 0;
  __device__ __forceinline__ void add(std::uint64_t d) {
    magnitude |= d ^ static_cast<std::uint64_t>(static_cast<std::int64_t>(d) >> 63);
    any |= static_cast<std::uint32_t>(d);  // -1 is all ones, and its magnitude has no bits
  }
  __device__ __forceinline__ std::uint64_t bits() const { return magnitude; }
  __device__ __forceinline__ int planes() const { return magnitude != 0 ? bit_width(magnitude) + 1 : any != 0 ? 1 : 0; }
};

// The OR of all differences except the first.
template <class Code>
__device__ __forceinline__ Spread<Code> spread_of_rest(const Code (&d)[32]) {
  Spread<Code> spread;
#pragma unroll
  for (int i = 1; i < 32; ++i) spread.add(d[i]);
  return spread;
}

}  // namespace pyfilter::cuda
