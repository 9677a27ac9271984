// SPDX-License-Identifier: BSD-3-Clause
// Values that are loaded a step of a loop ahead. The compiler moves what is computed from them to where they are
// loaded, since that takes fewer registers; so each step would wait for memory. From here on it may use them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pyfilter::cuda {

__device__ __forceinline__ void use_from_here(std::uint32_t& x) { asm volatile("" : "+r"(x)); }
template <std::size_t kCount>
__device__ __forceinline__ void use_from_here(std::uint32_t (&x)[kCount]) {
#pragma unroll
  for (std::size_t i = 0; i < kCount; ++i) use_from_here(x[i]);
}

}  // namespace pyfilter::cuda
