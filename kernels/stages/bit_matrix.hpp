// SPDX-License-Identifier: BSD-3-Clause
// 8x8 bit matrices in 64-bit words, one row a byte (Hacker's Delight, 7-3), and gathering of bits from bytes: portable.
#pragma once

#include <cstdint>

#include "core/target.hpp"

PYF_BEGIN_TARGET

KFN std::uint64_t transpose_8x8(std::uint64_t x) {
  std::uint64_t t = (x ^ (x >> 7)) & 0x00AA00AA00AA00AAull;
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000CCCC0000CCCCull;
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000F0F0F0F0ull;
  return x ^ t ^ (t << 28);
}

// Gathers bit 0 of each of eight bytes into one byte: no two terms of the product share a bit.
KFN std::uint32_t lowest_bits(std::uint64_t bytes) {
  return static_cast<std::uint32_t>((bytes & 0x0101010101010101ull) * 0x0102040810204080ull >> 56);
}

PYF_END_TARGET
