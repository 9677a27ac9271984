// SPDX-License-Identifier: BSD-3-Clause
// Asking for memory to come to the L2 cache before it is read. A prefetch of one address brings a sector of 32 bytes,
// not its line of 128; from Hopper on, one instruction asks for a whole range.
#pragma once

#include <cstdint>

#ifndef PYF_PF
#define PYF_PF 1
#endif

namespace pyfilter::cuda {

// By one thread: at most kPrefetchBytes of it are a good share where many threads divide a range.
#if __CUDA_ARCH__ >= 900 && PYF_PF == 1
inline constexpr unsigned kPrefetchBytes = 2048;
#else
inline constexpr unsigned kPrefetchBytes = 128;
#endif

__device__ __forceinline__ void prefetch(const std::uint8_t* at, unsigned bytes) {
#if __CUDA_ARCH__ >= 900 && PYF_PF == 1
  // multiples of 16 bytes, nothing behind the end
  const auto skipped = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(at) % 16);
  bytes = (bytes + skipped) & ~15u;
  if (bytes != 0) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(at - skipped), "r"(bytes) : "memory");
#else
  for (unsigned i = 0; i < bytes; i += 32) asm volatile("prefetch.global.L2 [%0];" ::"l"(at + i));
#endif
}

}  // namespace pyfilter::cuda
