// SPDX-License-Identifier: BSD-3-Clause
// What kernels that train a chunk's model need for its tables (stages/entropy/level_tables.hpp).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "stages/cuda/block_team.cuh"
#include "stages/cuda/warp_frequencies.cuh"
#include "stages/entropy/level_tables.hpp"

namespace pyfilter::cuda {

template <std::uint32_t Bits>
KFN void few_frequencies(const WarpTeam& few, const std::uint32_t* counts, Frequencies& f) {
#if defined(__CUDA_ARCH__) || defined(PYF_SIMT)
  warp_frequencies<Bits>(counts, f);
#endif
}

// Fills a table of logarithms of counts.
inline constexpr std::uint32_t kLogThreads = 256;
static __global__ void __launch_bounds__(kLogThreads) fill_logs_kernel(double* logs) {
  const std::uint32_t i = blockIdx.x * kLogThreads + threadIdx.x;
  if (i < kTabledLogs) logs[i] = rough_log2(i);
}
inline cudaError_t fill_logs(double* logs, cudaStream_t stream) {
  fill_logs_kernel<<<(kTabledLogs + kLogThreads - 1) / kLogThreads, kLogThreads, 0, stream>>>(logs);
  return cudaGetLastError();
}

}  // namespace pyfilter::cuda
