// SPDX-License-Identifier: BSD-3-Clause
// Launchers of the kernels that decode units, for a dtype.
#pragma once

#include <cstdint>

#include "adaptive/cuda/unit.cuh"
#include "stages/cuda/launch.cuh"

namespace pyfilter::cuda {

template <class T>
struct AdaptiveLaunch {
  struct Choice {
    void (*kernel)(const AdaptiveDecode);
    std::size_t shared;
    int threads;
  };
  static Choice choose(TileKind kind, TilePlace place) {
    return with_unit_kernel(kind, place, [](auto kernel) {
      using Kernel = decltype(kernel);
      return Choice{&decode_units_kernel<T, Kernel::mode, Kernel::refines>, ring_bytes<Kernel::mode>(),
                    Kernel::threads};
    });
  }
  static cudaError_t resident(TileKind kind, TilePlace place, std::uint32_t* blocks) {
    const Choice chosen = choose(kind, place);
    return resident_blocks(chosen.kernel, chosen.threads, chosen.shared, blocks);
  }
  static cudaError_t decode(const AdaptiveDecode& job, TilePlace place, std::uint32_t blocks, cudaStream_t stream) {
    const Choice chosen = choose(job.kind, place);
    auto* const kernel = chosen.kernel;
    kernel<<<blocks, chosen.threads, chosen.shared, stream>>>(job);
    return cudaGetLastError();
  }
};

template <class T>
constexpr AdaptiveKernels adaptive_kernels_of() {
  return {&AdaptiveLaunch<T>::resident, &AdaptiveLaunch<T>::decode};
}

}  // namespace pyfilter::cuda
