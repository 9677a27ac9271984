// SPDX-License-Identifier: BSD-3-Clause
// The number of thread blocks of lorenzo's kernels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "stages/cuda/launch.cuh"

namespace pyfilter::cuda {

// Reserves shared memory for a kernel, and counts the thread blocks that run at once.
template <class Kernel>
cudaError_t resident_blocks(Kernel kernel, int threads, std::size_t shared_bytes, unsigned* blocks) {
  int device = 0, processors = 0, each = 0;
  PYF_CUDA_TRY(cudaGetDevice(&device));
  PYF_CUDA_TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  PYF_CUDA_TRY(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)));
  PYF_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads, shared_bytes));
  *blocks = static_cast<unsigned>(std::max(1, each * processors));
  return cudaSuccess;
}
// Thread blocks for each chunk or frame, such that all chunks together have about as many as run at once.
inline unsigned blocks_each(unsigned resident, std::uint64_t wanted, std::uint32_t count) {
  return static_cast<unsigned>(std::clamp<std::uint64_t>(wanted, 1, (resident + count - 1) / count));
}

}  // namespace pyfilter::cuda
