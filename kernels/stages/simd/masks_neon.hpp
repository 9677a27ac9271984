// SPDX-License-Identifier: BSD-3-Clause
// Bit masks of flags with NEON (masks_generic.hpp says which): 16 lanes are narrowed to bytes, each byte keeps its own
// bit, and eight bytes add up to eight bits of the mask.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "core/target.hpp"

PYF_BEGIN_TARGET

// Lanes that are all ones or zeros; the type of a register's lanes is that of the call.
KFN uint32x4_t lanes_at(const std::uint32_t* x) { return vld1q_u32(x); }
KFN uint64x2_t lanes_at(const std::uint64_t* x) { return vld1q_u64(x); }
KFN uint32x4_t equal_lanes(const void* x, std::uint32_t wanted) {
  return vceqq_u32(vreinterpretq_u32_u8(vld1q_u8(static_cast<const std::uint8_t*>(x))), vdupq_n_u32(wanted));
}
KFN uint64x2_t equal_lanes(const void* x, std::uint64_t wanted) {
  return vceqq_u64(vreinterpretq_u64_u8(vld1q_u8(static_cast<const std::uint8_t*>(x))), vdupq_n_u64(wanted));
}

// Flags of eight lanes in 16 bits each.
KFN uint16x8_t short_flags(uint32x4_t a, uint32x4_t b) {
  return vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
}
template <class Lanes>
KFN uint16x8_t eight_flags(Lanes&& lanes, int i, std::uint32_t) {
  return short_flags(lanes(i), lanes(i + 4));
}
template <class Lanes>
KFN uint16x8_t eight_flags(Lanes&& lanes, int i, std::uint64_t) {
  const auto four = [&](int k) {
    return vuzp1q_u32(vreinterpretq_u32_u64(lanes(k)), vreinterpretq_u32_u64(lanes(k + 2)));
  };
  return short_flags(four(i), four(i + 4));
}

// lanes(i): the register of lanes i and the next ones.
template <int N, class Code, class Lanes>
KFN std::uint64_t bits_of_lanes(Lanes&& lanes) {
  const uint8x16_t own_bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ull));
  std::uint64_t bits = 0;
  for (int i = 0; i < N; i += 16) {
    const uint8x16_t flags = vuzp1q_u8(vreinterpretq_u8_u16(eight_flags(lanes, i, Code{})),
                                       vreinterpretq_u8_u16(eight_flags(lanes, i + 8, Code{})));
    uint8x16_t sums = vandq_u8(flags, own_bit);
    for (int step = 0; step < 3; ++step) sums = vpaddq_u8(sums, sums);
    bits |= static_cast<std::uint64_t>(vgetq_lane_u16(vreinterpretq_u16_u8(sums), 0)) << i;
  }
  return bits;
}

template <int N, class Code>
KFN std::uint64_t flag_bits(const Code (&flags)[N]) {
  return bits_of_lanes<N, Code>([&](int i) { return lanes_at(flags + i); });
}

template <int N, class Code>
KFN std::uint64_t equal_bits(const void* x, Code wanted) {
  return bits_of_lanes<N, Code>([&](int i) {
    return equal_lanes(static_cast<const std::uint8_t*>(x) + static_cast<std::size_t>(i) * sizeof(Code), wanted);
  });
}

PYF_END_TARGET
