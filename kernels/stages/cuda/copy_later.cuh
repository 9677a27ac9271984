// SPDX-License-Identifier: BSD-3-Clause
// Copies from global to shared memory that complete later: a thread waits for all, or ends groups of them by
// __pipeline_commit() and waits for these by __pipeline_wait_prior(). They need no registers, so no move of the
// compiler's waits for them.
#pragma once

#include <cstdint>

namespace pyfilter::cuda {

__device__ __forceinline__ void copy_16_later(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
      "l"(from)
      : "memory");
#else
  *static_cast<uint4*>(to) = *static_cast<const uint4*>(from);
#endif
}
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
// The first `there` bytes of 16, a multiple of 4; zeros follow.
__device__ __forceinline__ void copy_16_later(void* to, const void* from, std::uint32_t there) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
      "l"(from), "r"(there)
      : "memory");
#else
  for (std::uint32_t i = 0; i < 4; ++i)
    static_cast<std::uint32_t*>(to)[i] = 4 * i < there ? static_cast<const std::uint32_t*>(from)[i] : 0;
#endif
}
// Copies 4 or 8 bytes (kBytes), or 16, if `due`. A branch around one copy would take as long as ten instructions.
template <int kBytes>
__device__ __forceinline__ void copy_later_if(bool due, void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  if constexpr (kBytes == 16)
    asm volatile(
        "{\n\t.reg .pred due;\n\tsetp.ne.u32 due, %2, 0;\n\t"
        "@due cp.async.cg.shared.global [%0], [%1], 16;\n\t}" ::"r"(at),
        "l"(from), "r"(due ? 1u : 0u)
        : "memory");
  else
    asm volatile(
        "{\n\t.reg .pred due;\n\tsetp.ne.u32 due, %2, 0;\n\t"
        "@due cp.async.ca.shared.global [%0], [%1], %3;\n\t}" ::"r"(at),
        "l"(from), "r"(due ? 1u : 0u), "n"(kBytes)
        : "memory");
#else
  if (due)
    for (int i = 0; i < kBytes; i += 4)
      *reinterpret_cast<std::uint32_t*>(static_cast<std::uint8_t*>(to) + i) =
          *reinterpret_cast<const std::uint32_t*>(static_cast<const std::uint8_t*>(from) + i);
#endif
}

}  // namespace pyfilter::cuda
