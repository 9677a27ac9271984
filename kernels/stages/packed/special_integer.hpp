// SPDX-License-Identifier: BSD-3-Clause
// Special blocks of integers in packed tiles: the counterpart of special.hpp.
#pragma once

#include <cstdint>

#include "core/target.hpp"
#include "stages/integer.hpp"
#include "stages/packed/special.hpp"

PYF_BEGIN_TARGET

// Sorts the special values of a block into its masks.
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

PYF_END_TARGET
