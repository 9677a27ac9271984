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

// Launches whose thread blocks have a unit of work for each warp, as many blocks as a frame has units for. Blocks that
// do not run at once follow where others end, so their size decides how well the last ones fill the device.
struct UnitLaunch {
  unsigned blocks = 1, warps = 1;  // of a frame, of a block

  // `most_warps`: of a multiprocessor, by their registers.
  cudaError_t find(unsigned most_warps, std::size_t block_bytes, std::size_t warp_bytes, std::uint32_t units,
                   std::uint32_t frames) {
    // A turn takes as long as one warp's dependent instructions, and longer the more warps share a multiprocessor. So
    // measured for rans streams on an H200.
    constexpr unsigned kFewest = 4, kAlone = 40;
    int device = 0, processors = 0;
    SharedMemory shared;
    PYF_CUDA_TRY(cudaGetDevice(&device));
    PYF_CUDA_TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    PYF_CUDA_TRY(shared.find(device));
    const auto cores = static_cast<unsigned>(processors);
    std::uint64_t least = ~std::uint64_t{0};
    const auto take = [&](unsigned most) {
      const std::uint32_t own_blocks = std::max(1u, (units + most - 1) / most),
                          own_warps = std::max(1u, (units + own_blocks - 1) / own_blocks);
      const std::size_t bytes = block_bytes + own_warps * warp_bytes + static_cast<unsigned>(shared.reserved);
      const auto fitting = static_cast<unsigned>(static_cast<unsigned>(shared.all) / bytes),
                 each = std::min(fitting, most_warps / own_warps);
      if (each == 0) return;
      const std::uint64_t all = std::uint64_t{own_blocks} * frames, resident = std::uint64_t{each} * cores,
                          turns = (all + resident - 1) / resident,
                          here = std::min<std::uint64_t>(each, (all + cores - 1) / cores),
                          time = turns * (kAlone + here * own_warps);
      if (time >= least) return;
      least = time;
      blocks = own_blocks;
      warps = own_warps;
    };
    for (unsigned most = kFewest; most <= most_warps; ++most) take(most);
    for (unsigned most = kFewest - 1; most > 0 && least == ~std::uint64_t{0}; --most) take(most);  // little memory
    return cudaSuccess;
  }
};

}  // namespace pyfilter::cuda
