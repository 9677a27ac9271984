// SPDX-License-Identifier: BSD-3-Clause
// Prefetches to the L2 cache.
#pragma once

#include <cstdint>

namespace pyfilter::cuda {

// For values to encode: one prefetch a line of 128 bytes. It brings one of the line's four sectors, and the translation
// and lookup for the line. Prefetching all four sectors is slower than none: 1-D tiles encode at 2.0 TB/s with four
// prefetches a line, 2.95 with one. Range prefetches are slower, too.
__device__ __forceinline__ void prefetch_line(const void* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

// For frames, of which few bytes make many values: a whole range, divided among kSharers threads, of which this is
// number `sharer`. From Hopper on, one instruction prefetches a thread's share.
#if __CUDA_ARCH__ >= 900
inline constexpr unsigned kPrefetchBytes = 2048;
#else
inline constexpr unsigned kPrefetchBytes = 128;
#endif
__device__ __forceinline__ void prefetch_share(const std::uint8_t* at, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
  // rounded to multiples of 16 bytes, nothing beyond the end
  const auto skipped = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(at) % 16);
  bytes = (bytes + skipped) & ~15u;
  if (bytes != 0) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(at - skipped), "r"(bytes) : "memory");
#else
  for (unsigned i = 0; i < bytes; i += 32) prefetch_line(at + i);
#endif
}
template <unsigned kSharers>
__device__ __forceinline__ void prefetch_range(const std::uint8_t* from, unsigned bytes, unsigned sharer) {
  for (unsigned at = kPrefetchBytes * sharer; at < bytes; at += kPrefetchBytes * kSharers)
    prefetch_share(from + at, min(bytes - at, kPrefetchBytes));
}

}  // namespace pyfilter::cuda
