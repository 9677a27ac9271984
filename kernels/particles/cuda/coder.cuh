// SPDX-License-Identifier: BSD-3-Clause
// The launchers of the encoder of particles for one dtype.
#pragma once

#include <algorithm>

#include "particles/cuda/encode.cuh"
#include "particles/cuda/estimate.cuh"
#include "particles/cuda/order.cuh"
#include "particles/cuda/sort.cuh"
#include "particles/cuda/start.cuh"
#include "stages/cuda/launch.cuh"

namespace pyfilter::cuda {

template <class T, int D, std::uint8_t kOrder>
cudaError_t launch_encode_in(const ParticleParams& job, cudaStream_t stream) {
  constexpr std::size_t kSpace = sizeof(SortingSpace<typename FloatTraits<T>::Code, D>);
  static_assert(kSpace <= std::size_t{64} << 10);  // the most of a block from compute capability 7.5 on
  const auto kernel = encode_particles_kernel<T, D, kOrder>;
  PYF_CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kSpace)));
  kernel<<<dim3(job.base.tiles, job.base.chunks), kTileThreads, kSpace, stream>>>(job);
  return cudaGetLastError();
}

template <class T, int D>
cudaError_t launch_particle_encode(const ParticleParams& job, cudaStream_t stream) {
  if (job.order == kOrderKept) return launch_encode_in<T, D, kOrderKept>(job, stream);
  if (job.order == kOrderTile) return launch_encode_in<T, D, kOrderTile>(job, stream);
  return launch_encode_in<T, D, kOrderChunk>(job, stream);
}

template <class T, int D>
cudaError_t launch_check_order(const ParticleParams& job, cudaStream_t stream) {
  check_order_kernel<T, D><<<dim3(job.sampled_tiles(), job.base.chunks), kTileThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

template <class T, int D>
cudaError_t launch_order(const ParticleParams& job, std::uint32_t* particles, cudaStream_t stream) {
  if (job.order == kOrderChunk)
    order_particles_kernel<T, D, true><<<job.base.tiles, kTileThreads, 0, stream>>>(job, particles);
  else
    order_particles_kernel<T, D, false><<<job.base.tiles, kTileThreads, 0, stream>>>(job, particles);
  return cudaGetLastError();
}

template <class T, int D>
cudaError_t launch_estimate(const ParticleParams& job, cudaStream_t stream) {
  estimate_kernel<T, D><<<job.base.chunks, kEstimateThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

template <class T, int D>
cudaError_t launch_start(const ParticleParams& job, const PlanParams& plans, cudaStream_t stream) {
  start_particles_kernel<T, D><<<job.base.chunks, kSampleThreads, 0, stream>>>(job, plans);
  return cudaGetLastError();
}

template <class T, int D>
cudaError_t launch_keys(const ParticleParams& job, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(
      std::clamp<std::uint64_t>(job.particles / (4 * kChunkThreads), 1, 4224 / job.base.chunks + 1));
  chunk_extent_kernel<T, D><<<dim3(blocks, job.base.chunks), kChunkThreads, 0, stream>>>(job);
  PYF_CUDA_TRY(cudaGetLastError());
  chunk_keys_kernel<T, D><<<dim3(blocks, job.base.chunks), kChunkThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

template <class T, int D>
inline constexpr ParticleEncoder kParticleEncoder{&launch_start<T, D>,           &launch_check_order<T, D>,
                                                  &launch_particle_encode<T, D>, &launch_keys<T, D>,
                                                  &launch_estimate<T, D>,        &launch_order<T, D>};

}  // namespace pyfilter::cuda
