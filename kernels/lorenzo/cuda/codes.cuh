// SPDX-License-Identifier: BSD-3-Clause
// The launchers of lorenzo that work on residuals, for any type of values: by code width and tile shape.
#pragma once

#include <cstddef>

#include "lorenzo/cuda/blocks.cuh"
#include "lorenzo/cuda/count.cuh"
#include "lorenzo/cuda/huffman_encode.cuh"
#include "lorenzo/cuda/rans_encode.cuh"
#include "lorenzo/cuda/rans_residuals.cuh"
#include "stages/cuda/warp_launch.cuh"

namespace pyfilter::cuda {

template <class Code, int S>
cudaError_t launch_count(const StreamParams& job, cudaStream_t stream) {
  unsigned resident = 0;
  constexpr std::size_t kBytes = sizeof(CountSpace<Code>);
  const auto kernel = is_rans(job.coder) ? count_kernel<Code, S, true> : count_kernel<Code, S, false>;
  PYF_CUDA_TRY(resident_blocks(kernel, kThreads, kBytes, &resident));
  const TileSample sample(job.base.tiles);
  const unsigned blocks = blocks_at_once(resident, (sample.count + 3) / 4, job.base.chunks);
  kernel<<<dim3(blocks, job.base.chunks), kThreads, kBytes, stream>>>(job);
  return cudaGetLastError();
}

template <class Code, int S>
cudaError_t launch_streams(const StreamParams& job, cudaStream_t stream) {
  const bool rans = is_rans(job.coder);
  constexpr std::uint64_t kGroupTiles = 4;  // or more, but for noise
  const bool sharing = rans && job.base.chunks == 1 && job.base.tiles >= 32768;
  const int threads = sharing ? kSharingThreads<Code> : rans ? kRansThreads<Code> : kStreamThreads;
  const auto kernel = sharing ? rans_encode_kernel<Code, S, true>
                      : rans  ? rans_encode_kernel<Code, S, false>
                              : huffman_encode_kernel<Code, S>;
  const std::uint64_t warps = static_cast<unsigned>(threads) / 32;
  const std::size_t bytes = rans ? EncodeShare<Code>::kBytes + warps * sizeof(GroupTiles<Code>) : 0;
  unsigned resident = 0;
  PYF_CUDA_TRY(resident_blocks(kernel, threads, bytes, &resident));
  const unsigned blocks =
      rans && !sharing ? static_cast<unsigned>((job.base.tiles + kGroupTiles * warps - 1) / (kGroupTiles * warps))
                       : blocks_each(resident, (job.base.tiles + warps - 1) / warps, job.base.chunks);
  kernel<<<dim3(blocks, job.base.chunks), threads, bytes, stream>>>(job);
  return cudaGetLastError();
}

template <class Code, int S>
cudaError_t launch_rans_residuals(const StreamDecodeParams& job, std::uint32_t units, cudaStream_t stream) {
  constexpr auto kernel = rans_residual_kernel<Code, S>;
  constexpr std::size_t kWarpBytes = RansShare::kRing + sizeof(SharedGroup);
  UnitLaunch launch;
  PYF_CUDA_TRY(launch.find(kResidualWarps, RansShare::kBlockBytes, kWarpBytes, units, job.frames));
  const std::size_t bytes = RansShare::kBlockBytes + launch.warps * kWarpBytes;
  PYF_CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  kernel<<<dim3(launch.blocks, job.frames), 32 * launch.warps, bytes, stream>>>(job);
  return cudaGetLastError();
}

#define PYF_INSTANTIATE_CODES(Code, S)                                           \
  template cudaError_t launch_count<Code, S>(const StreamParams&, cudaStream_t); \
  template cudaError_t launch_streams<Code, S>(const StreamParams&, cudaStream_t)
#define PYF_INSTANTIATE_RANS_RESIDUALS(Code, S) \
  template cudaError_t launch_rans_residuals<Code, S>(const StreamDecodeParams&, std::uint32_t, cudaStream_t)

}  // namespace pyfilter::cuda
