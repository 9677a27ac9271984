// SPDX-License-Identifier: BSD-3-Clause
// Launchers of the kernel that decodes units of effort "ratio", for a type of values.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lossless/cuda/binned_unit.cuh"
#include "stages/cuda/launch.cuh"

namespace pyfilter::cuda {

template <class T, bool kFloat>
cudaError_t resident_binned(std::uint32_t warps, std::uint32_t* blocks) {
  int device = 0, processors = 0, of_processor = 0;
  PYF_CUDA_TRY(cudaGetDevice(&device));
  PYF_CUDA_TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  PYF_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_processor, &decode_binned_kernel<T, kFloat>,
                                                             static_cast<int>(32 * warps), 0));
  *blocks = static_cast<std::uint32_t>(std::max(1, of_processor) * processors);
  return cudaSuccess;
}

template <class T, bool kFloat>
cudaError_t launch_binned(const BinnedDecode& job, std::uint32_t blocks, cudaStream_t stream) {
  auto* const kernel = &decode_binned_kernel<T, kFloat>;
  kernel<<<blocks, 32 * job.warps, 0, stream>>>(job);
  return cudaGetLastError();
}

template <class T, bool kFloat>
inline constexpr BinnedKernels kBinnedKernelsOf{&resident_binned<T, kFloat>, &launch_binned<T, kFloat>};

}  // namespace pyfilter::cuda
