// SPDX-License-Identifier: BSD-3-Clause
// Launches of kernels whose warps have work and shared memory of their own: a thread block has as many warps as shared
// memory allows, besides the memory that they share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "stages/cuda/launch.cuh"

namespace pyfilter::cuda {

struct WarpLaunch {
  std::uint32_t warps = 0;
  std::size_t bytes = 0, bytes_of_warp = 0;
  unsigned resident = 0;  // thread blocks that run at once

  template <class Kernel>
  cudaError_t find(Kernel kernel, int most_warps, std::size_t block_bytes, std::size_t warp_bytes) {
    int device = 0, most_shared = 0;
    PYF_CUDA_TRY(cudaGetDevice(&device));
    PYF_CUDA_TRY(cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    const auto fitting = (static_cast<std::int64_t>(most_shared) - static_cast<std::int64_t>(block_bytes)) /
                         static_cast<std::int64_t>(warp_bytes);
    warps = static_cast<std::uint32_t>(std::clamp<std::int64_t>(fitting, 1, most_warps));
    bytes = block_bytes + warps * warp_bytes;
    bytes_of_warp = warp_bytes;
    return resident_blocks(kernel, 32 * static_cast<int>(warps), bytes, &resident);
  }
  // Thread blocks for each frame, if every frame has its own and all run at once.
  unsigned own_blocks(std::uint32_t frames, std::uint32_t units) const {
    return std::clamp(resident / frames, 1u, std::max(units, 1u));
  }
  // The fewest warps that need the same number of waves, so that the last wave is nearly full.
  unsigned fewest_warps(std::uint32_t units, unsigned blocks) const {
    const std::uint32_t each = (units + blocks - 1) / blocks, turns = std::max(1u, (each + warps - 1) / warps);
    return std::max(1u, (each + turns - 1) / turns);
  }
  // The memory of a block of fewer warps: several such blocks run on a multiprocessor.
  std::size_t bytes_for(unsigned fewer) const { return bytes - (warps - fewer) * bytes_of_warp; }
};

}  // namespace pyfilter::cuda
