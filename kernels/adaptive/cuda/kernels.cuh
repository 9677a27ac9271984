// SPDX-License-Identifier: BSD-3-Clause
// Launchers of the kernels that decode units, for a dtype.
#pragma once

#include <algorithm>
#include <cstdint>

#include "adaptive/cuda/unit.cuh"
#include "stages/cuda/launch.cuh"

namespace pyfilter::cuda {

inline std::size_t ring_bytes(const AdaptiveDecode& job, bool refined) {
  return refined ? 0 : 2 * std::size_t{job.ring_steps} * kLaneStride * sizeof(float);
}

template <class T>
struct AdaptiveLaunch {
  using Kernel = void (*)(AdaptiveDecode);

  static void (*kernel(bool refined))(const AdaptiveDecode) {
    return refined ? &decode_units_kernel<T, true> : &decode_units_kernel<T, false>;
  }
  static cudaError_t resident(const AdaptiveDecode& job, bool refined, std::uint32_t* blocks) {
    int device = 0, processors = 0, of_processor = 0;
    PYF_CUDA_TRY(cudaGetDevice(&device));
    PYF_CUDA_TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    const std::size_t shared = ring_bytes(job, refined);
    PYF_CUDA_TRY(
        cudaFuncSetAttribute(kernel(refined), cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
    PYF_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_processor, kernel(refined), 32, shared));
    *blocks = static_cast<std::uint32_t>(std::max(1, of_processor) * processors);
    return cudaSuccess;
  }
  static cudaError_t decode(const AdaptiveDecode& job, bool refined, std::uint32_t blocks, cudaStream_t stream) {
    const std::size_t shared = ring_bytes(job, refined);
    if (refined)
      decode_units_kernel<T, true><<<blocks, 32, shared, stream>>>(job);
    else
      decode_units_kernel<T, false><<<blocks, 32, shared, stream>>>(job);
    return cudaGetLastError();
  }
};

template <class T>
constexpr AdaptiveKernels adaptive_kernels_of() {
  return {&AdaptiveLaunch<T>::resident, &AdaptiveLaunch<T>::decode};
}

}  // namespace pyfilter::cuda
