// SPDX-License-Identifier: BSD-3-Clause
// Kernels in sequence on a stream: the launch of each overlaps the end of the previous one. This is programmatic
// dependent launch, from compute capability 9.0 on; older devices get ordinary launches. All thread blocks of such a
// kernel call follow() before they access memory.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

namespace pyfilter::cuda {

#define PYF_CUDA_TRY(call)                                                       \
  do {                                                                           \
    if (const cudaError_t error_ = (call); error_ != cudaSuccess) return error_; \
  } while (false)

// The shared memory of a multiprocessor, and what the system takes of it for each thread block.
struct SharedMemory {
  int all = 0, reserved = 0;

  cudaError_t find(int device) {
    PYF_CUDA_TRY(cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
    return cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, device);
  }
  // What a block has if `blocks` of them share a multiprocessor.
  int of_block(int blocks) const { return all / blocks - reserved; }
};

// Reserves dynamic shared memory for a kernel, if it has any, and counts the thread blocks that run at once.
template <class Kernel>
cudaError_t resident_blocks(Kernel kernel, int threads, std::size_t shared_bytes, unsigned* blocks) {
  int device = 0, processors = 0, each = 0;
  PYF_CUDA_TRY(cudaGetDevice(&device));
  PYF_CUDA_TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  if (shared_bytes != 0)
    PYF_CUDA_TRY(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)));
  PYF_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads, shared_bytes));
  *blocks = static_cast<unsigned>(std::max(1, each * processors));
  return cudaSuccess;
}

// Allows the next kernel to launch, and waits until all previous kernels have ended and their writes are visible.
__device__ __forceinline__ void follow() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
}

template <class... Parameters, class... Arguments>
cudaError_t launch_behind(void (*kernel)(Parameters...), unsigned blocks, int threads, std::size_t shared_bytes,
                          cudaStream_t stream, const Arguments&... arguments) {
  int device = 0, major = 0;
  if (const cudaError_t e = cudaGetDevice(&device); e != cudaSuccess) return e;
  if (const cudaError_t e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device); e != cudaSuccess)
    return e;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = major >= 9 ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

}  // namespace pyfilter::cuda
