// SPDX-License-Identifier: BSD-3-Clause
// Launchers of the kernel that decodes units of effort "ratio", for a type of values.
#pragma once

#include <cstdint>

#include "lossless/cuda/binned_unit.cuh"
#include "stages/cuda/launch.cuh"

namespace pyfilter::cuda {

// Two thread blocks have room on a multiprocessor of compute capability 9.0, each with 1 KB for the driver.
static_assert(2 * (sizeof(BinnedShared<std::uint64_t>) + 1024) <= 228 * 1024);

template <class T, bool kFloat>
cudaError_t resident_binned(std::uint32_t warps, std::uint32_t* blocks) {
  return resident_blocks(&decode_binned_kernel<T, kFloat>, static_cast<int>(32 * warps),
                         sizeof(BinnedShared<NumberOf<T>>), blocks);
}

template <class T, bool kFloat>
cudaError_t launch_binned(const BinnedDecode& job, std::uint32_t blocks, cudaStream_t stream) {
  auto* const kernel = &decode_binned_kernel<T, kFloat>;
  kernel<<<blocks, 32 * job.warps, sizeof(BinnedShared<NumberOf<T>>), stream>>>(job);
  return cudaGetLastError();
}

template <class T, bool kFloat>
inline constexpr BinnedKernels kBinnedKernelsOf{&resident_binned<T, kFloat>, &launch_binned<T, kFloat>};

}  // namespace pyfilter::cuda
