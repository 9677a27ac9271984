// SPDX-License-Identifier: BSD-3-Clause
// Choices made once for a chunk of particles before encoding: its plan, and which particles are movable. A thread block
// a chunk; one launch for both, since the device is otherwise idle.
#pragma once

#include <bit>
#include <cstdint>

#include "particles/cuda/params.cuh"
#include "stages/cuda/chunk_plan.cuh"

namespace pyfilter::cuda {

// The number of particles before the padding (rows of zeros or of the sentinel); the block searches from the end.
template <class T, int D>
__device__ std::uint32_t find_movable(const ParticleParams& job, std::uint32_t chunk, const ChunkPlan& plan) {
  using Code = typename FloatTraits<T>::Code;
  __shared__ std::uint32_t last;
  const T* const values = reinterpret_cast<const T*>(job.base.values + chunk * job.base.value_stride);
  const bool has_sentinel = plan.has_sentinel != 0;
  const auto sentinel = static_cast<Code>(plan.sentinel);
  std::uint32_t count = job.particles;
  while (count != 0) {
    const std::uint32_t back = threadIdx.x, particle = count - 1 - back;
    bool padding = back >= count;
    if (!padding) {
      padding = true;
#pragma unroll
      for (int d = 0; d < D; ++d) {
        const auto bits = std::bit_cast<Code>(values[std::uint64_t{particle} * D + static_cast<unsigned>(d)]);
        padding = padding && (bits == 0 || (has_sentinel && bits == sentinel));
      }
    }
    if (threadIdx.x == 0) last = 0;
    __syncthreads();
    if (!padding) atomicMax(&last, particle + 1);
    __syncthreads();
    const std::uint32_t found = last;
    __syncthreads();
    if (found != 0) return found;
    count = count > kSampleThreads ? count - kSampleThreads : 0;
  }
  return 0;
}

template <class T, int D>
__global__ void __launch_bounds__(kSampleThreads)
    start_particles_kernel(const __grid_constant__ ParticleParams job, const __grid_constant__ PlanParams params) {
  __shared__ PlanSpace space;
  const std::uint32_t chunk = blockIdx.x;
  const ChunkPlan plan = plan_chunk<T>(params, chunk, space);
  std::uint32_t movable = job.order == kOrderKept ? 0 : job.particles;
  if (movable != 0 && plan.quantise != 0) movable = find_movable<T, D>(job, chunk, plan);
  if (threadIdx.x != 0) return;
  params.plans[chunk] = plan;
  job.movable[chunk] = movable;
  job.ordered[chunk] = 0;
}

}  // namespace pyfilter::cuda
