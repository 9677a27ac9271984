// SPDX-License-Identifier: BSD-3-Clause
// The estimate of lorenzo's bytes for a chunk (particles/estimate.hpp), by one thread block: warps take runs, lanes
// take four differences.
#pragma once

#include <cstdint>

#include "particles/cuda/codes.cuh"
#include "particles/cuda/params.cuh"
#include "particles/cuda/source.cuh"
#include "particles/estimate.hpp"

namespace pyfilter::cuda {

inline constexpr int kEstimateThreads = 512;
inline constexpr unsigned kOwnDifferences = kEstimateRun / 32;  // of a lane

struct EstimateSpace {
  std::uint32_t counts[kEstimateCounts], totals[kEstimateOctaves + 1], specials;
  unsigned long long bits;
};

// Counts the differences of a run along an axis; returns the number of values without a code. Called by all lanes.
template <int D, class T>
__device__ __forceinline__ std::uint32_t count_differences(const Quantizer<T>& p, const T* run, std::uint32_t* counts) {
  using Code = typename FloatTraits<T>::Code;
  static_assert(kOwnDifferences == 4);
  const unsigned first = threadIdx.x % 32 * kOwnDifferences;
  // the codes of the particle before this lane's first one and of its own, with code_run()'s rules
  Code q[kOwnDifferences + 1], before = 0;
  std::uint32_t specials = 0;
  if (first != 0 && !code_value<true>(p, run[(first - 1) * D], before)) before = 0;
#pragma unroll
  for (unsigned i = 0; i <= kOwnDifferences; ++i) {
    Code own;
    const bool fits = code_value<true>(p, run[(first + i) * D], own),
               mine = i < kOwnDifferences || first + i == kEstimateRun;
    q[i] = fits ? own : before;
    before = fits ? own : 0;
    specials += fits || !mine ? 0 : 1;
  }
  Code z[kOwnDifferences + 2];  // after the two of the previous lane
#pragma unroll
  for (unsigned i = 0; i < kOwnDifferences; ++i) z[i + 2] = zigzag(static_cast<Code>(q[i + 1] - q[i]));
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) z[i] = __shfl_up_sync(kAllLanes, z[kOwnDifferences + i], 1);
#pragma unroll
  for (unsigned i = 0; i < kOwnDifferences; ++i)
    atomicAdd(counts + estimate_index(z[i + 2], z[i + 1], z[i], first + i), 1u);
  return specials;
}

template <class T, int D>
__global__ void __launch_bounds__(kEstimateThreads) estimate_kernel(const __grid_constant__ ParticleParams job) {
  __shared__ EstimateSpace space;
  const std::uint32_t chunk = blockIdx.x, lane = threadIdx.x % 32;
  const ChunkPlan& plan = job.base.plans[chunk];
  if (plan.quantise == 0) return;
  for (std::uint32_t i = threadIdx.x; i < kEstimateCounts; i += kEstimateThreads) space.counts[i] = 0;
  if (threadIdx.x <= kEstimateOctaves) space.totals[threadIdx.x] = 0;
  if (threadIdx.x == 0) {
    space.specials = 0;
    space.bits = 0;
  }
  __syncthreads();
  const auto* const values = reinterpret_cast<const T*>(job.base.values + chunk * job.base.value_stride);
  const Quantizer<T> p = plan.template quantizer<T>();
  std::uint32_t specials = 0;
#pragma unroll 1
  for (std::uint32_t i = threadIdx.x / 32; i < kEstimateRuns * D; i += kEstimateThreads / 32)
    specials += count_differences<D>(p, values + estimate_run(job.particles, i / D) * D + i % D, space.counts);
  if (specials != 0) atomicAdd(&space.specials, specials);
  __syncthreads();
  std::uint64_t inner = 0, raw = 0;
  static_assert(kEstimateCounts % 32 == 0 && kSymbols % 32 == 0);
#pragma unroll 1
  for (std::uint32_t i = threadIdx.x; i < kEstimateCounts;
       i += kEstimateThreads) {  // a warp takes the symbols of one table
    const std::uint32_t count = space.counts[i], of_warp = warp_sum(count);
    if (of_warp == 0) continue;
    inner += share_of(count);
    raw += raw_share(i % kSymbols, count);
    if (lane == 0) atomicAdd(space.totals + i / kSymbols, of_warp);
  }
  __syncthreads();
  std::uint64_t own = raw - inner;  // may wrap: the sum over all lanes does not
  if (threadIdx.x <= kEstimateOctaves) own += share_of(space.totals[threadIdx.x]);
  const std::uint64_t upto = sum_upto(own);
  if (lane == 31) atomicAdd(&space.bits, static_cast<unsigned long long>(upto));
  __syncthreads();
  if (threadIdx.x == 0)
    job.lorenzo_bytes[chunk] = estimated_bytes(space.bits, std::uint64_t{space.specials} * sizeof(T), job.particles);
}

}  // namespace pyfilter::cuda
