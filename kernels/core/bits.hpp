// SPDX-License-Identifier: BSD-3-Clause
// Bit arithmetic shared by the stages: zigzag and bit widths of 32- and 64-bit codes (docs/format.md, section 5).
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/target.hpp"

namespace pyfilter {

// Small magnitudes of either sign become small unsigned numbers: 0, -1, 1, -2 -> 0, 1, 2, 3.
template <class U>
KFN U zigzag(U difference) {
  using S = std::make_signed_t<U>;
  return static_cast<U>(static_cast<U>(difference << 1) ^
                        static_cast<U>(static_cast<S>(difference) >> (8 * sizeof(U) - 1)));
}

template <class U>
KFN U unzigzag(U z) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(U) == 4) {  // one instruction for the sign
    std::int32_t sign;
    asm("szext.wrap.s32 %0, %1, 1;" : "=r"(sign) : "r"(z));
    return z >> 1 ^ static_cast<U>(sign);
  }
#endif
  return static_cast<U>((z >> 1) ^ (U{0} - (z & U{1})));
}

#if defined(__CUDA_ARCH__)
KFN int bit_width(std::uint32_t x) { return 32 - __clz(static_cast<int>(x)); }
KFN int bit_width(std::uint64_t x) { return 64 - __clzll(static_cast<long long>(x)); }
#else
KFN int bit_width(std::uint32_t x) { return x == 0 ? 0 : 32 - __builtin_clz(x); }
KFN int bit_width(std::uint64_t x) { return x == 0 ? 0 : 64 - __builtin_clzll(x); }
#endif

}  // namespace pyfilter
