// SPDX-License-Identifier: BSD-3-Clause
// Values of a block picked by bit masks, portable. masks_avx2.hpp and masks_avx512.hpp do the same; masks_neon.hpp has
// flag_bits() and equal_bits(). N is 16, 32 or 64; Code is the unsigned integer as wide as a value, and values are
// taken as their bits, so that those of a NaN never pass through a floating-point register.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "core/wire.hpp"
#if defined(PYF_LEVEL_NEON)
#include "stages/simd/masks_neon.hpp"
#endif

PYF_BEGIN_TARGET

#if !defined(PYF_LEVEL_NEON)
// Bit i is set where flags[i] is all ones; it must be 0 elsewhere.
template <int N, class Code>
KFN std::uint64_t flag_bits(const Code (&flags)[N]) {
  std::uint64_t bits = 0;
  for (int i = 0; i < N; ++i) bits |= static_cast<std::uint64_t>(flags[i] != 0) << i;
  return bits;
}

// Bit i is set where x[i] has just the bits `wanted`.
template <int N, class Code>
KFN std::uint64_t equal_bits(const void* x, Code wanted) {
  std::uint64_t bits = 0;
  for (int i = 0; i < N; ++i) {
    const auto value = load_le<Code>(static_cast<const std::uint8_t*>(x) + i * sizeof(Code));
    bits |= static_cast<std::uint64_t>(value == wanted) << i;
  }
  return bits;
}
#endif

// x[i] = value where bit i is set.
template <int N, class Code>
KFN void fill_masked(void* x, std::uint64_t mask, Code value) {
  auto* to = static_cast<std::uint8_t*>(x);
  for (; mask != 0; mask &= mask - 1) store_le(to + __builtin_ctzll(mask) * sizeof(Code), value);
}

// x[i] = from[i] where bit i is set.
template <int N, class Code>
KFN void copy_masked(Code* x, std::uint64_t mask, const Code* from) {
  for (; mask != 0; mask &= mask - 1) x[__builtin_ctzll(mask)] = from[__builtin_ctzll(mask)];
}

// The values whose bits are set, one after another. Room for N values is needed.
template <int N, class Code>
KFN void gather_masked(const void* x, std::uint64_t mask, void* to) {
  const auto* from = static_cast<const std::uint8_t*>(x);
  auto* out = static_cast<std::uint8_t*>(to);
  while (mask != 0) {
    for (int k = 0; k < 4; ++k, mask &= mask - 1) {  // by fours, since few branches foresee how many there are
      std::memcpy(out, from + (mask != 0 ? __builtin_ctzll(mask) : 0) * sizeof(Code), sizeof(Code));
      out += mask != 0 ? sizeof(Code) : 0;
    }
  }
}

// Back: the values at `from` to where bits are set. No more is read than there are bits.
template <int N, class Code>
KFN void scatter_masked(void* x, std::uint64_t mask, const std::uint8_t* from) {
  auto* to = static_cast<std::uint8_t*>(x);
  for (; mask != 0; mask &= mask - 1, from += sizeof(Code))
    std::memcpy(to + __builtin_ctzll(mask) * sizeof(Code), from, sizeof(Code));
}

PYF_END_TARGET
