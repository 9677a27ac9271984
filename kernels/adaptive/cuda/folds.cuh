// SPDX-License-Identifier: BSD-3-Clause
// Finds folds of lines, with a thread block for each (train/fold.hpp).
#pragma once

#include <cstdint>

#include "adaptive/cuda/encode_params.cuh"
#include "stages/cuda/block_team.cuh"

namespace pyfilter::cuda {

template <class T>
static __global__ void __launch_bounds__(kTrainThreads) find_folds_kernel(const __grid_constant__ FoldJob job) {
  const BlockTeam<kTrainThreads> team;
  for (std::uint32_t part = blockIdx.x; part < job.count; part += gridDim.x) {
    AdaptiveGrid line = job.lines;
    line.components = 1;
    line.first = part % job.parts;
    const T* const values = reinterpret_cast<const T*>(job.values + part / job.parts * job.value_stride);
    const Folds folds = find_folds(team, job.spaces[blockIdx.x], line, [&](std::uint64_t i) { return values[i]; });
    if (threadIdx.x == 0) job.folds[part] = folds;
    __syncthreads();
  }
}

template <class T>
cudaError_t launch_find_folds(const FoldJob& job, std::uint32_t blocks, cudaStream_t stream) {
  find_folds_kernel<T><<<blocks, kTrainThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

}  // namespace pyfilter::cuda
