// SPDX-License-Identifier: BSD-3-Clause
// Values of a block picked by bit masks: the primitives of this target, and on top of them codes for values that have
// none.
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

// Codes whose bit in `plain` (not zero) is not set take the code before them, those at the start the first plain one.
template <int B, class Code>
KFN void forward_fill(Code* q, std::uint64_t plain) {
  q[0] = q[__builtin_ctzll(plain)];
  plain |= 1;
  std::uint64_t rest = ~plain & (~std::uint64_t{0} >> (64 - B));
  while (rest != 0) {
    for (int k = 0; k < 4; ++k, rest &= rest - 1) {  // by fours, since few branches foresee how many there are
      const std::uint64_t lowest = rest != 0 ? rest & (0 - rest) : 1;
      // the last plain code before, not q[i - 1], for which the next round would have to wait
      q[63 - __builtin_clzll(lowest)] = q[63 - __builtin_clzll((plain & (lowest - 1)) | 1)];
    }
  }
}

PYF_END_TARGET
#endif
