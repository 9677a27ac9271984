// SPDX-License-Identifier: BSD-3-Clause
// Copies values of chunks that are stored raw (docs/format.md, section 3).
#pragma once

#include <cstdint>

namespace pyfilter::cuda {

inline constexpr int kCopyThreads = 256;

// Copies bytes of any alignment with all threads of a grid.
__device__ __forceinline__ void copy_bytes(std::uint8_t* to, const std::uint8_t* from, std::uint64_t count) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const auto both = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  std::uint64_t done = 0;
  if (both % 16 == 0) {
    done = count / 16 * 16;
#pragma unroll 4
    for (std::uint64_t i = thread; i < count / 16; i += stride)
      reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
  } else if (both % 8 == 0) {
    done = count / 8 * 8;
#pragma unroll 4
    for (std::uint64_t i = thread; i < count / 8; i += stride)
      reinterpret_cast<uint2*>(to)[i] = reinterpret_cast<const uint2*>(from)[i];
  }
  for (std::uint64_t i = done + thread; i < count; i += stride) to[i] = from[i];
}

}  // namespace pyfilter::cuda
