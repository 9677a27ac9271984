// SPDX-License-Identifier: BSD-3-Clause
// The flags part of the SIMD vocabulary (vector.hpp) with NEON: 16 lanes are narrowed to bytes and each byte keeps its
// own bit. Eight bytes add up to eight bits of the mask.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "core/target.hpp"

PYF_BEGIN_TARGET

// Lanes as vectors of numbers T: a lane has all bits set or none.
template <class T>
using Lanes = Vector<T>;

KFN U32 equal(U32 a, U32 b) { return (U32)(a == b); }
KFN U64 equal(U64 a, U64 b) { return (U64)(a == b); }
KFN U32 set_lanes(U32 v) { return v; }
KFN U64 set_lanes(U64 v) { return v; }

template <class T>
inline constexpr int kFlagged = 16 / kPer<T>;
KFN std::uint64_t joined_bits(const U32 (&v)[4]) {
  const auto two = [&](int i) { return vuzp1q_u16((uint16x8_t)v[i], (uint16x8_t)v[i + 1]); };
  const uint8x16_t own_bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ull));
  uint8x16_t sums = vandq_u8(vuzp1q_u8(vreinterpretq_u8_u16(two(0)), vreinterpretq_u8_u16(two(2))), own_bit);
  for (int step = 0; step < 3; ++step) sums = vpaddq_u8(sums, sums);
  return vgetq_lane_u16(vreinterpretq_u16_u8(sums), 0);
}
KFN std::uint64_t joined_bits(const U64 (&v)[8]) {
  U32 words[4];
  for (int i = 0; i < 4; ++i) words[i] = (U32)vuzp1q_u32((uint32x4_t)v[2 * i], (uint32x4_t)v[2 * i + 1]);
  return joined_bits(words);
}

PYF_END_TARGET
