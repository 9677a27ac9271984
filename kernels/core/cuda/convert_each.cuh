// SPDX-License-Identifier: BSD-3-Clause
// Loops over the values of an array by all threads of its blocks, which are neighbours along x.
#pragma once

#include <cstdint>

namespace pyfilter::cuda {

inline constexpr unsigned kConvertThreads = 256;  // of a block

// The threads of all blocks of an array, and this one.
struct ThreadRange {
  std::uint64_t first, step;
};
__device__ __forceinline__ ThreadRange threads_of_array() {
  return {std::uint64_t{blockIdx.x} * kConvertThreads + threadIdx.x, std::uint64_t{gridDim.x} * kConvertThreads};
}

// Converts values one by one, four at a time where both arrays are aligned.
template <class From, class To, class Convert>
__device__ __forceinline__ void convert_each(const std::uint8_t* from, std::uint8_t* to, std::uint64_t count,
                                             const Convert& convert) {
  struct alignas(4 * sizeof(From)) FourFrom {
    From of[4];
  };
  struct alignas(4 * sizeof(To)) FourTo {
    To of[4];
  };
  const ThreadRange own = threads_of_array();
  std::uint64_t done = 0;
  if (reinterpret_cast<std::uintptr_t>(from) % sizeof(FourFrom) == 0 &&
      reinterpret_cast<std::uintptr_t>(to) % sizeof(FourTo) == 0) {
    done = count / 4 * 4;
#pragma unroll 2
    for (std::uint64_t i = own.first; i < count / 4; i += own.step) {
      const FourFrom values = reinterpret_cast<const FourFrom*>(from)[i];
      FourTo converted;
#pragma unroll
      for (int k = 0; k < 4; ++k) converted.of[k] = convert(values.of[k]);
      reinterpret_cast<FourTo*>(to)[i] = converted;
    }
  }
  for (std::uint64_t i = done + own.first; i < count; i += own.step)
    reinterpret_cast<To*>(to)[i] = convert(reinterpret_cast<const From*>(from)[i]);
}

}  // namespace pyfilter::cuda
