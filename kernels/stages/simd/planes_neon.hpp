// SPDX-License-Identifier: BSD-3-Clause
// 32 words <-> up to 32 bit planes with NEON (the functions of planes_generic.hpp). Byte c of 32 values is in two
// registers, each with two 8x8 bit matrices.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "core/target.hpp"
#include "core/wire.hpp"

PYF_BEGIN_TARGET

// Byte c of values 0 to 15 and 16 to 31, or rows of planes. Each 64-bit word is the 8x8 bit matrix of eight values.
struct Matrices {
  uint8x16_t low, high;
};

// Swaps the bits of `mask` with the bits kShift higher.
template <int kShift>
KFN uint64x2_t swap_bits(uint64x2_t x, std::uint64_t mask) {
  const uint64x2_t t = vandq_u64(veorq_u64(x, vshrq_n_u64(x, kShift)), vdupq_n_u64(mask));
  return veorq_u64(veorq_u64(x, t), vshlq_n_u64(t, kShift));
}
// transpose_8x8() of bit_matrix.hpp in both words.
KFN uint8x16_t transpose_bits(uint8x16_t rows) {
  uint64x2_t x = vreinterpretq_u64_u8(rows);
  x = swap_bits<7>(x, 0x00AA00AA00AA00AAull);
  x = swap_bits<14>(x, 0x0000CCCC0000CCCCull);
  x = swap_bits<28>(x, 0x00000000F0F0F0F0ull);
  return vreinterpretq_u8_u64(x);
}

// Moves byte 4 i + k to byte 8 k + i, for i < 8 and k < 4; and the inverse.
alignas(16) inline constexpr std::uint8_t kToMatrices[32] = {0,  4,  8,  12, 16, 20, 24, 28, 1,  5,  9,
                                                             13, 17, 21, 25, 29, 2,  6,  10, 14, 18, 22,
                                                             26, 30, 3,  7,  11, 15, 19, 23, 27, 31};
alignas(16) inline constexpr std::uint8_t kFromMatrices[32] = {0,  8,  16, 24, 1,  9,  17, 25, 2,  10, 18,
                                                               26, 3,  11, 19, 27, 4,  12, 20, 28, 5,  13,
                                                               21, 29, 6,  14, 22, 30, 7,  15, 23, 31};
KFN Matrices shuffle(Matrices m, const std::uint8_t (&order)[32]) {
  const uint8x16x2_t from = {{m.low, m.high}};
  return {vqtbl2q_u8(from, vld1q_u8(order)), vqtbl2q_u8(from, vld1q_u8(order + 16))};
}

template <int N>
KFN std::uint32_t any_bits(const std::uint32_t* z, std::uint32_t counted) {
  uint32x4_t any = vsetq_lane_u32(z[0] & (0u - (counted & 1)), vld1q_u32(z), 0);
  for (int i = 4; i < N; i += 4) any = vorrq_u32(any, vld1q_u32(z + i));
  const uint64x2_t halves = vreinterpretq_u64_u32(any);
  const std::uint64_t both = vgetq_lane_u64(halves, 0) | vgetq_lane_u64(halves, 1);
  return static_cast<std::uint32_t>(both | both >> 32);
}

// Bytes 0 and 1 of 16-bit numbers, 16 in a pair of registers.
KFN uint8x16_t low_bytes(const uint16x8_t (&h)[2]) {
  return vuzp1q_u8(vreinterpretq_u8_u16(h[0]), vreinterpretq_u8_u16(h[1]));
}
KFN uint8x16_t high_bytes(const uint16x8_t (&h)[2]) {
  return vuzp2q_u8(vreinterpretq_u8_u16(h[0]), vreinterpretq_u8_u16(h[1]));
}
KFN void pack_byte(uint8x16_t low, uint8x16_t high, std::uint32_t* out) {
  const Matrices rows = shuffle({transpose_bits(low), transpose_bits(high)}, kFromMatrices);
  vst1q_u32(out, vreinterpretq_u32_u8(rows.low));
  vst1q_u32(out + 4, vreinterpretq_u32_u8(rows.high));
}

KFN void pack_planes(const std::uint32_t* z, int planes, std::uint32_t* out) {
  if (planes == 0) return;
  uint16x8_t v[8], low[2], high[2];
  for (int i = 0; i < 8; ++i) v[i] = vreinterpretq_u16_u32(vld1q_u32(z + 4 * i));
  for (int i = 0; i < 2; ++i) {
    low[i] = vuzp1q_u16(v[2 * i], v[2 * i + 1]);
    high[i] = vuzp1q_u16(v[2 * i + 4], v[2 * i + 5]);
  }
  pack_byte(low_bytes(low), low_bytes(high), out);
  if (planes <= 8) return;
  pack_byte(high_bytes(low), high_bytes(high), out + 8);
  if (planes <= 16) return;
  for (int i = 0; i < 2; ++i) {
    low[i] = vuzp2q_u16(v[2 * i], v[2 * i + 1]);
    high[i] = vuzp2q_u16(v[2 * i + 4], v[2 * i + 5]);
  }
  pack_byte(low_bytes(low), low_bytes(high), out + 16);
  if (planes <= 24) return;
  pack_byte(high_bytes(low), high_bytes(high), out + 24);
}

// Loads the first `planes` words (1 to 7), followed by zeros. Reads nothing behind them; with kBefore, up to 28 bytes
// before them. Indices of absent bytes are beyond the table, so that vqtbl2q_u8() makes them zero.
template <bool kBefore>
KFN Matrices load_first(const std::uint8_t* words, int planes) {
  const std::uint8_t* const end = words + 4 * planes;
  const auto early = static_cast<std::uint8_t>(32 - 4 * planes);
  Matrices rows;
  std::uint8_t moved = 0;
  if constexpr (kBefore) {
    rows = {vld1q_u8(end - 32), vld1q_u8(end - 16)};
  } else if (planes >= 4) {
    rows = {vld1q_u8(words), vld1q_u8(end - 16)};
    moved = 16;
  } else {
    const auto plane = [&](int p) { return load_le<std::uint32_t>(words + (p < planes ? 4 * p : 0)); };
    const std::uint32_t low[4] = {plane(0), plane(1), plane(2), 0};
    rows = {vreinterpretq_u8_u32(vld1q_u32(low)), vdupq_n_u8(0)};
    moved = static_cast<std::uint8_t>(4 * planes);
  }
  const uint8x16x2_t from = {{rows.low, rows.high}};
  const auto ordered = [&](const std::uint8_t* order) {
    const uint8x16_t index = vld1q_u8(order);
    return vqtbl2q_u8(from, vaddq_u8(index, vandq_u8(vcgeq_u8(index, vdupq_n_u8(moved)), vdupq_n_u8(early))));
  };
  return {ordered(kToMatrices), ordered(kToMatrices + 16)};
}

// Converts up to 8 planes (absent ones are zeros) to bytes of 32 values. kBefore: eight planes lie before them.
template <bool kBefore>
KFN Matrices unpack_byte(const std::uint8_t* words, int planes) {
  if (planes <= 0) return {vdupq_n_u8(0), vdupq_n_u8(0)};
  const Matrices rows =
      planes >= 8 ? shuffle({vld1q_u8(words), vld1q_u8(words + 16)}, kToMatrices) : load_first<kBefore>(words, planes);
  return {transpose_bits(rows.low), transpose_bits(rows.high)};
}

// Joins bytes 0 to 3 of 16 values to values.
KFN void store_values(uint8x16_t b0, uint8x16_t b1, uint8x16_t b2, uint8x16_t b3, std::uint32_t* z) {
  const uint16x8_t low[2] = {vreinterpretq_u16_u8(vzip1q_u8(b0, b1)), vreinterpretq_u16_u8(vzip2q_u8(b0, b1))};
  const uint16x8_t high[2] = {vreinterpretq_u16_u8(vzip1q_u8(b2, b3)), vreinterpretq_u16_u8(vzip2q_u8(b2, b3))};
  for (int i = 0; i < 2; ++i) {
    vst1q_u32(z + 8 * i, vreinterpretq_u32_u16(vzip1q_u16(low[i], high[i])));
    vst1q_u32(z + 8 * i + 4, vreinterpretq_u32_u16(vzip2q_u16(low[i], high[i])));
  }
}

KFN void unpack_planes(const std::uint8_t* words, int planes, std::uint32_t* z) {
  const Matrices a = unpack_byte<false>(words, planes), b = unpack_byte<true>(words + 32, planes - 8);
  Matrices c{vdupq_n_u8(0), vdupq_n_u8(0)}, d = c;
  if (planes > 16) [[unlikely]] {
    c = unpack_byte<true>(words + 64, planes - 16);
    d = unpack_byte<true>(words + 96, planes - 24);
  }
  store_values(a.low, b.low, c.low, d.low, z);
  store_values(a.high, b.high, c.high, d.high, z + 16);
}

PYF_END_TARGET
