// SPDX-License-Identifier: BSD-3-Clause
// Launchers of the kernels that decode units, for a dtype.
#pragma once

#include <algorithm>
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
  template <UnitMode kMode>
  static Choice choice() {
    if constexpr (kMode == UnitMode::flat) return {&decode_units_kernel<T, kMode>, 0};
    return {&decode_units_kernel<T, kMode>, sizeof(float) * RingShape<static_cast<TileKind>(kMode)>::kCells};
  }
  static Choice choose(TileKind kind, bool flat) {
    if (flat) return choice<UnitMode::flat>();
    return kind == TileKind::line    ? choice<UnitMode::line>()
           : kind == TileKind::plane ? choice<UnitMode::plane>()
                                     : choice<UnitMode::volume>();
  }
  static cudaError_t resident(TileKind kind, bool flat, std::uint32_t* blocks) {
    int device = 0, processors = 0, of_processor = 0;
    PYF_CUDA_TRY(cudaGetDevice(&device));
    PYF_CUDA_TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    const Choice chosen = choose(kind, flat);
    PYF_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_processor, chosen.kernel, 32, chosen.shared));
    *blocks = static_cast<std::uint32_t>(std::max(1, of_processor) * processors);
    return cudaSuccess;
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
