// SPDX-License-Identifier: BSD-3-Clause
// Launchers of the kernel that decodes units of effort "ratio", for a type of values.
#pragma once

#include <cstdint>

#include "lossless/cuda/binned_unit.cuh"
#include "stages/cuda/launch.cuh"
#include "stages/cuda/warp_launch.cuh"

namespace pyfilter::cuda {

// Two thread blocks have room on a multiprocessor of compute capability 9.0, each with 1 KB for the driver.
static_assert(2 * (sizeof(BinnedShared<std::uint64_t>) + 1024) <= 228 * 1024);

// Devices of compute capability 8.6, 8.9 and 12.0 have 99 KB of shared memory for a block, those of 7.5 have 64 KB.
template <class T, bool kFloat>
cudaError_t resident_binned(std::uint32_t* warps, std::uint32_t* blocks) {
  using Shared = BinnedShared<NumberOf<T>>;
  static_assert(Shared::bytes_of(1) <= 48 * 1024);  // which each device has
  WarpLaunch launch;
  PYF_CUDA_TRY(launch.find(&decode_binned_kernel<T, kFloat>, static_cast<int>(*warps), Shared::bytes_of(0),
                           sizeof(UnitRings<NumberOf<T>>)));
  *warps = launch.warps;
  *blocks = launch.resident;
  return cudaSuccess;
}

template <class T, bool kFloat>
cudaError_t launch_binned(const BinnedDecode& job, std::uint32_t blocks, cudaStream_t stream) {
  auto* const kernel = &decode_binned_kernel<T, kFloat>;
  kernel<<<blocks, 32 * job.warps, BinnedShared<NumberOf<T>>::bytes_of(job.warps), stream>>>(job);
  return cudaGetLastError();
}

template <class T, bool kFloat>
inline constexpr BinnedKernels kBinnedKernelsOf{&resident_binned<T, kFloat>, &launch_binned<T, kFloat>};

}  // namespace pyfilter::cuda
