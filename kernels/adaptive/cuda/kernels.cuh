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
  };
  static Choice choose(TileKind kind, bool flat) {
    return with_unit_mode(
        kind, flat, [](auto mode) { return Choice{&decode_units_kernel<T, mode.value>, ring_bytes<mode.value>()}; });
  }
  static cudaError_t resident(TileKind kind, bool flat, std::uint32_t* blocks) {
    const Choice chosen = choose(kind, flat);
    return resident_blocks(chosen.kernel, 32, chosen.shared, blocks);
  }
  static cudaError_t decode(const AdaptiveDecode& job, bool flat, std::uint32_t blocks, cudaStream_t stream) {
    const Choice chosen = choose(job.grid.kind, flat);
    auto* const kernel = chosen.kernel;
    kernel<<<blocks, 32, chosen.shared, stream>>>(job);
    return cudaGetLastError();
  }
};

template <class T>
constexpr AdaptiveKernels adaptive_kernels_of() {
  return {&AdaptiveLaunch<T>::resident, &AdaptiveLaunch<T>::decode};
}

}  // namespace pyfilter::cuda
