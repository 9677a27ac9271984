// SPDX-License-Identifier: BSD-3-Clause
// 32 words <-> up to 32 bit planes with AVX2 (the functions of planes_generic.hpp). To planes: byte c of the 32 values
// is one register, whose sign bits (vpmovmskb) are one plane. Back: the 8x8 bit matrices of eight values and planes are
// transposed.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/simd/vector.hpp"

PYF_BEGIN_TARGET

template <int N>
KFN std::uint32_t any_bits(const std::uint32_t* z, std::uint32_t counted) {
  const int first = 0 - static_cast<int>(counted & 1);
  __m256i any = _mm256_and_si256(load_bytes(z), _mm256_setr_epi32(first, -1, -1, -1, -1, -1, -1, -1));
  for (int i = 8; i < N; i += 8) any = _mm256_or_si256(any, load_bytes(z + i));
  __m128i half = _mm_or_si128(_mm256_castsi256_si128(any), _mm256_extracti128_si256(any, 1));
  half = _mm_or_si128(half, _mm_shuffle_epi32(half, 0x4E));
  half = _mm_or_si128(half, _mm_shuffle_epi32(half, 0xB1));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(half));
}

// Packs whole bytes of planes, so that loops are the same for most blocks and branches are predicted.
KFN void pack_planes(const std::uint32_t* z, int planes, std::uint32_t* out) {
  const __m256i byte_mask = _mm256_set1_epi32(0xFF);
  // vpackusdw and vpackuswb work within 128-bit lanes; this puts the groups of four bytes back in order
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  __m256i v[4];
  for (int g = 0; g < 4; ++g) v[g] = load_bytes(z + 8 * g);
  for (int first = 0; first < planes; first += 8) {
    __m256i b[4];
    for (int g = 0; g < 4; ++g) {
      b[g] = _mm256_and_si256(v[g], byte_mask);
      v[g] = _mm256_srli_epi32(v[g], 8);
    }
    __m256i bytes = _mm256_packus_epi16(_mm256_packus_epi32(b[0], b[1]), _mm256_packus_epi32(b[2], b[3]));
    bytes = _mm256_permutevar8x32_epi32(bytes, order);
    for (int k = 7; k >= 0; --k) {
      out[first + k] = static_cast<std::uint32_t>(_mm256_movemask_epi8(bytes));
      bytes = _mm256_add_epi8(bytes, bytes);
    }
  }
}

// Swaps the bits of kMask with the bits kShift higher. Rows k and k + distance of 8x8 bit matrices lie kShift bits
// apart.
template <int kShift>
KFN __m256i swap_bits(__m256i x, __m256i mask) {
  const __m256i t = _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi64(x, kShift)), mask);
  return _mm256_xor_si256(_mm256_xor_si256(x, t), _mm256_slli_epi64(t, kShift));
}
KFN __m256i swap_in_halves(__m256i x) {
  return swap_bits<14>(swap_bits<7>(x, _mm256_set1_epi32(0x00AA00AA)), _mm256_set1_epi32(0x0000CCCC));
}

// Transposes the 8x8 bit matrices in 64-bit words, a row in each byte (transpose_8x8() of bit_matrix.hpp).
KFN __m256i transpose_bits(__m256i x) {
  return swap_bits<28>(swap_in_halves(x), _mm256_set1_epi64x(0x00000000F0F0F0F0ll));
}
// The same for matrices whose rows 0 to 3 are 32-bit words of a, and rows 4 to 7 words of b.
KFN void transpose_bits(__m256i& a, __m256i& b) {
  a = swap_in_halves(a);
  b = swap_in_halves(b);
  const __m256i t =
      _mm256_and_si256(_mm256_xor_si256(a, _mm256_slli_epi32(b, 4)), _mm256_set1_epi32(static_cast<int>(0xF0F0F0F0u)));
  a = _mm256_xor_si256(a, t);
  b = _mm256_xor_si256(b, _mm256_srli_epi32(t, 4));
}

// Shuffles bytes of both halves of a register by the same table.
KFN __m256i shuffle_halves(__m256i v, __m128i order) {
  return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(order));
}
// Transposes the 4x4 bytes of each half.
KFN __m256i transpose_bytes(__m256i v) {
  return shuffle_halves(v, _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
}
KFN __m256i even_words_first(__m256i v) {
  return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}
KFN __m256i halves_in_turns(__m256i v) {
  return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Interleaves the low 16 bits of eight values with those of the next eight; the same for high 16 bits.
KFN __m256i low_shorts(__m256i first, __m256i second) {
  return _mm256_blend_epi16(first, _mm256_slli_epi32(second, 16), 0xAA);
}
KFN __m256i high_shorts(__m256i first, __m256i second) {
  return _mm256_blend_epi16(_mm256_srli_epi32(first, 16), second, 0xAA);
}

// Packs planes 0 to 7 of two runs of 32 values. g: the low or high 16 bits of each value, in four registers in order.
KFN void pack_low_bytes(const __m256i (&g)[4], std::uint32_t* out, int stride) {
  const __m128i low = _mm_setr_epi8(0, 4, 8, 12, 2, 6, 10, 14, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m128i high = _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12, 2, 6, 10, 14);
  const __m256i x = _mm256_or_si256(shuffle_halves(g[0], low), shuffle_halves(g[1], high));
  const __m256i y = _mm256_or_si256(shuffle_halves(g[2], low), shuffle_halves(g[3], high));
  __m256i a = _mm256_permute2x128_si256(x, y, 0x20), b = _mm256_permute2x128_si256(x, y, 0x31);
  transpose_bits(a, b);
  a = transpose_bytes(a);
  b = transpose_bytes(b);
  store_bytes(out, _mm256_permute2x128_si256(a, b, 0x20));
  store_bytes(out + stride, _mm256_permute2x128_si256(a, b, 0x31));
}

// Packs planes 0 to 15 of the same.
KFN void pack_both_bytes(const __m256i (&g)[4], std::uint32_t* out, int stride) {
  const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15);
  __m256i a[2], b[2];
  for (int i = 0; i < 2; ++i) {  // rows 0 to 3, then 4 to 7, of the first values of both runs; then of the other values
    const __m256i x = shuffle_halves(g[i], order), y = shuffle_halves(g[i + 2], order);
    a[i] = _mm256_permute2x128_si256(x, y, 0x20);
    b[i] = _mm256_permute2x128_si256(x, y, 0x31);
    transpose_bits(a[i], b[i]);
  }
  const __m256i p0 = transpose_bytes(_mm256_unpacklo_epi64(a[0], a[1])),
                p8 = transpose_bytes(_mm256_unpackhi_epi64(a[0], a[1]));
  const __m256i p4 = transpose_bytes(_mm256_unpacklo_epi64(b[0], b[1])),
                p12 = transpose_bytes(_mm256_unpackhi_epi64(b[0], b[1]));
  store_bytes(out, _mm256_permute2x128_si256(p0, p4, 0x20));
  store_bytes(out + 8, _mm256_permute2x128_si256(p8, p12, 0x20));
  store_bytes(out + stride, _mm256_permute2x128_si256(p0, p4, 0x31));
  store_bytes(out + stride + 8, _mm256_permute2x128_si256(p8, p12, 0x31));
}

// Packs 0, 8, 16 or 32 planes of two runs: few cases, so that branches are predicted.
KFN void pack_pair(const std::uint32_t* z, int wanted, std::uint32_t* planes, int stride) {
  if (wanted == 0) return;
  __m256i g[4];
  for (int i = 0; i < 4; ++i) g[i] = low_shorts(load_bytes(z + 16 * i), load_bytes(z + 16 * i + 8));
  if (wanted <= 8) {
    pack_low_bytes(g, planes, stride);
    return;
  }
  pack_both_bytes(g, planes, stride);
  if (wanted <= 16) [[likely]]
    return;
  for (int i = 0; i < 4; ++i) g[i] = high_shorts(load_bytes(z + 16 * i), load_bytes(z + 16 * i + 8));
  pack_both_bytes(g, planes + 16, stride);
}

// for up to three planes one plane at a time is faster: each byte tests its own bit of the broadcast plane
inline constexpr int kFewPlanes = 3;

// Unpacks up to 8 planes to bytes, in words of four values. The halves of v have values 0 to 3 and 4 to 7 of each
// eight.
KFN __m256i unpack_byte(const std::uint8_t* words, int planes) {
  if (planes > kFewPlanes) {
    const __m256i rows = transpose_bytes(load_first(words, planes));
    return even_words_first(transpose_bits(halves_in_turns(rows)));
  }
  const __m128i spread = _mm_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  const __m256i own_bit = _mm256_set_m128i(_mm_set1_epi32(static_cast<int>(0x80402010u)), _mm_set1_epi32(0x08040201));
  __m256i bytes = _mm256_setzero_si256();
  for (int p = planes - 1; p >= 0; --p) {
    const __m256i plane = shuffle_halves(_mm256_set1_epi32(load_le<std::int32_t>(words + 4 * p)), spread);
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(plane, own_bit), own_bit);
    bytes = _mm256_sub_epi8(_mm256_add_epi8(bytes, bytes), set);
  }
  return bytes;
}

// Unpacks 9 to 16 planes: low bytes of eight values and of the next eight, then their high bytes, in words as in
// unpack_byte().
KFN void unpack_bytes(const std::uint8_t* words, int planes, __m256i (&g)[2]) {
  const __m256i low = load_bytes(words), high = load_first(words + 32, planes - 8);
  __m256i a = transpose_bytes(_mm256_permute2x128_si256(low, high, 0x20));
  __m256i b = transpose_bytes(_mm256_permute2x128_si256(low, high, 0x31));
  transpose_bits(a, b);
  a = _mm256_permute4x64_epi64(a, 0xD8);
  b = _mm256_permute4x64_epi64(b, 0xD8);
  g[0] = _mm256_permute2x128_si256(a, b, 0x20);
  g[1] = _mm256_permute2x128_si256(a, b, 0x31);
}

// Widens the bytes of unpack_byte() to 32 values.
KFN void store_bytes(__m256i v, std::uint32_t* z) {
  store_bytes(z, shuffle_halves(v, _mm_setr_epi8(0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, 3, -1, -1, -1)));
  store_bytes(z + 8, shuffle_halves(v, _mm_setr_epi8(4, -1, -1, -1, 5, -1, -1, -1, 6, -1, -1, -1, 7, -1, -1, -1)));
  store_bytes(z + 16, shuffle_halves(v, _mm_setr_epi8(8, -1, -1, -1, 9, -1, -1, -1, 10, -1, -1, -1, 11, -1, -1, -1)));
  store_bytes(z + 24, shuffle_halves(v, _mm_setr_epi8(12, -1, -1, -1, 13, -1, -1, -1, 14, -1, -1, -1, 15, -1, -1, -1)));
}

KFN void unpack_planes(const std::uint8_t* words, int planes, std::uint32_t* z) {
  if (planes <= 8) {
    store_bytes(unpack_byte(words, planes), z);
    return;
  }
  const __m128i even = _mm_setr_epi8(0, 8, -1, -1, 1, 9, -1, -1, 2, 10, -1, -1, 3, 11, -1, -1);
  const __m128i odd = _mm_setr_epi8(4, 12, -1, -1, 5, 13, -1, -1, 6, 14, -1, -1, 7, 15, -1, -1);
  __m256i g[2], v[4];
  unpack_bytes(words, planes < 16 ? planes : 16, g);
  for (int i = 0; i < 4; ++i) v[i] = shuffle_halves(g[i / 2], i % 2 == 0 ? even : odd);
  if (planes > 16) [[unlikely]] {
    if (planes > 24) {
      unpack_bytes(words + 64, planes - 16, g);
      for (int i = 0; i < 4; ++i)
        v[i] = _mm256_or_si256(v[i], _mm256_slli_epi32(shuffle_halves(g[i / 2], i % 2 == 0 ? even : odd), 16));
    } else {
      const __m256i bytes = unpack_byte(words + 64, planes - 16);
      for (int i = 0; i < 4; ++i) {
        const char k = static_cast<char>(4 * i);
        const __m128i third = _mm_setr_epi8(-1, -1, k, -1, -1, -1, k + 1, -1, -1, -1, k + 2, -1, -1, -1, k + 3, -1);
        v[i] = _mm256_or_si256(v[i], shuffle_halves(bytes, third));
      }
    }
  }
  for (int i = 0; i < 4; ++i) store_bytes(z + 8 * i, v[i]);
}

// Unpacks two runs; the planes of the second follow those of the first.
KFN void unpack_pair(const std::uint8_t* words, int planes, std::uint32_t* z) {
  const std::uint8_t* second = words + 4 * planes;
  if (planes > 8) {
    unpack_planes(words, planes, z);
    unpack_planes(second, planes, z + 32);
  } else if (planes == 0) {
    for (int i = 0; i < 64; i += 8) store_bytes(z + i, _mm256_setzero_si256());
  } else {
    const __m256i x = load_first(words, planes), y = load_first(second, planes);
    __m256i a = transpose_bytes(_mm256_permute2x128_si256(x, y, 0x20));
    __m256i b = transpose_bytes(_mm256_permute2x128_si256(x, y, 0x31));
    transpose_bits(a, b);
    store_bytes(_mm256_permute2x128_si256(a, b, 0x20), z);
    store_bytes(_mm256_permute2x128_si256(a, b, 0x31), z + 32);
  }
}

PYF_END_TARGET
