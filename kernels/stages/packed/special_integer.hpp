// SPDX-License-Identifier: BSD-3-Clause
// Special blocks of integers in packed tiles: what special.hpp is to floating-point values. Values of one or two bytes
// fill the last word of a block's verbatim values with zeros.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/integer.hpp"
#include "stages/packed/special.hpp"

PYF_BEGIN_TARGET

// Sorts the values of a block into its masks.
template <class U>
[[gnu::noinline]] inline void sort_packed(const IntegerQuantizer<U>& p, const U (&x)[32], IntegerCode<U> (&q)[32],
                                          std::uint64_t /*misfits*/, PackedSpecial& block) {
  using Code = IntegerCode<U>;
  alignas(64) Code same[32], misfit[32];  // all ones or 0
  for (int i = 0; i < 32; ++i) {
    same[i] = static_cast<Code>(0 - static_cast<Code>(x[i] == p.sentinel_bits));
    misfit[i] = static_cast<Code>(0 - static_cast<Code>(integer_value(p, q[i]) == p.sentinel_bits));
  }
  block.zero = block.negative = 0;
  block.nan = 0;
  block.sentinel = flag_bits<32>(same);
  block.verbatim = flag_bits<32>(misfit) & ~block.sentinel;
  block.masks = (block.sentinel != 0 ? kMaskSentinel : 0) | (block.verbatim != 0 ? kMaskVerbatim : 0);
}

// As that of special.hpp, of a block with verbatim values: there are no others.
template <class U>
  requires std::is_integral_v<U>
inline std::uint8_t* write_packed_special(const PackedSpecial& block, const U (&x)[32], std::uint8_t* out) {
  store_le(out, static_cast<std::uint32_t>(block.verbatim));
  out += 4;
  const std::uint32_t bytes = verbatim_bytes(block.verbatim_count(), sizeof(U));
  store_le(out + bytes - 4, std::uint32_t{0});
  std::uint8_t* to = out;
  for (std::uint64_t rest = block.verbatim; rest != 0; rest &= rest - 1, to += sizeof(U))
    std::memcpy(to, &x[__builtin_ctzll(rest)], sizeof(U));
  return out + bytes;
}

template <class U>
[[gnu::noinline]] inline void apply_packed_masks(const IntegerMap<U>& map, const PackedMasks& masks,
                                                 const std::uint8_t* verbatim, bool /*negative*/, U (&x)[32]) {
  fill_missing(masks.words[0], map.quantizer.sentinel_bits, x);
  for (std::uint32_t rest = masks.words[2]; rest != 0; rest &= rest - 1, verbatim += sizeof(U))
    std::memcpy(&x[__builtin_ctz(rest)], verbatim, sizeof(U));
}

PYF_END_TARGET
