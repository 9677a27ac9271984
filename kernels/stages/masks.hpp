// SPDX-License-Identifier: BSD-3-Clause
// Selection of a block's values by bit masks: this target's primitives, and codes for the values that have none.
#pragma once

#include <cstdint>

#include "core/target.hpp"
#include "stages/planes.hpp"
#if defined(PYF_LEVEL_AVX512)
#include "stages/simd/masks_avx512.hpp"
#elif defined(PYF_LEVEL_AVX2)
#include "stages/simd/masks_avx2.hpp"
#else
#include "stages/simd/masks_generic.hpp"
#endif

#if !defined(PYF_LEVEL_AVX512)
PYF_BEGIN_TARGET

// A code whose bit in `plain` (not 0) is clear takes the code before it; leading ones take the first plain code.
template <int B, class Code>
KFN void forward_fill(Code* q, std::uint64_t plain) {
  q[0] = q[__builtin_ctzll(plain)];
  plain |= 1;
  std::uint64_t rest = ~plain & (~std::uint64_t{0} >> (64 - B));
  while (rest != 0) {
    for (int k = 0; k < 4; ++k, rest &= rest - 1) {  // unrolled by four: the number of rounds is hard to predict
      const std::uint64_t lowest = rest != 0 ? rest & (0 - rest) : 1;
      // the last plain code, not q[i - 1]: q[i - 1] would make each round wait for the one before
      q[63 - __builtin_clzll(lowest)] = q[63 - __builtin_clzll((plain & (lowest - 1)) | 1)];
    }
  }
}

PYF_END_TARGET
#endif
