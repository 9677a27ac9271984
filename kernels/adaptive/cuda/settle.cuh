// SPDX-License-Identifier: BSD-3-Clause
// The first kernels of encoding: the facts of each chunk, then its sentinel, offset and step, as settle() of codec.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "adaptive/cuda/encode_params.cuh"
#include "adaptive/scale.hpp"
#include "adaptive/step.hpp"
#include "core/request.hpp"
#include "stages/cuda/chunk_plan.cuh"

namespace pyfilter::cuda {

template <class T>
static __global__ void __launch_bounds__(kPlanThreads)
    find_facts_kernel(const __grid_constant__ AdaptiveEncode job, ChunkFacts* facts) {
  const std::uint32_t chunk = blockIdx.y;
  const ChunkPlan& plan = job.base.plans[chunk];
  if (plan.quantise == 0) return;
  const T infinity = std::numeric_limits<T>::infinity();
  const T fill = plan.has_sentinel != 0 ? std::bit_cast<T>(static_cast<ValueBits<T>>(plan.sentinel))
                                        : std::numeric_limits<T>::quiet_NaN();
  const T* const values = reinterpret_cast<const T*>(job.base.values + chunk * job.base.value_stride);
  T low = infinity, high = -infinity;
  std::uint32_t zeros = 0;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kPlanThreads;
#pragma unroll 8
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * kPlanThreads + threadIdx.x; i < job.values; i += stride) {
    const T x = values[i];
    zeros += x == 0 ? 1 : 0;
    const bool counts = (absolute(x) < infinity) & (x != fill) & (x != 0);
    low = counts && x < low ? x : low;
    high = counts && x > high ? x : high;
  }
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    const T other_low = __shfl_xor_sync(kAllLanes, low, d), other_high = __shfl_xor_sync(kAllLanes, high, d);
    low = other_low < low ? other_low : low;
    high = other_high > high ? other_high : high;
  }
  zeros = warp_sum(zeros);
  if (threadIdx.x % 32 != 0) return;
  if (zeros != 0) atomicAdd(&facts[chunk].zeros, static_cast<unsigned long long>(zeros));
  if (!(low <= high)) return;
  atomicMax(&facts[chunk].low, ~order_key(static_cast<double>(low)));
  atomicMax(&facts[chunk].high, order_key(static_cast<double>(high)));
}

template <class T>
static __global__ void __launch_bounds__(kPlanThreads)
    settle_kernel(const __grid_constant__ AdaptiveEncode job, const ChunkFacts* facts, bool without_zeros) {
  const std::uint32_t chunk = blockIdx.x * kPlanThreads + threadIdx.x;
  if (chunk >= job.base.chunks) return;
  ChunkPlan& plan = job.plans[chunk];
  job.base.raw[chunk] = 0;
  if (plan.quantise == 0) return;
  const ChunkFacts found = facts[chunk];
  if (plan.has_sentinel == 0 && has_many_zeros(found.zeros, job.order[0].tiles * job.parts)) {
    plan.has_sentinel = 1;
    plan.sentinel = 0;
  }
  const bool zero_counts = found.zeros != 0 && !without_zeros &&
                           !(plan.has_sentinel != 0 && std::bit_cast<T>(static_cast<ValueBits<T>>(plan.sentinel)) == 0);
  double low = std::numeric_limits<double>::infinity(), high = -low;
  if (found.high != 0) {
    low = value_of_key(~found.low);
    high = value_of_key(found.high);
  }
  if (zero_counts) {
    low = low < 0 ? low : 0;
    high = high > 0 ? high : 0;
  }
  double offset = 0;
  plan.quantise = low <= high && choose_scale(sizeof(T) == 4, plan.bound, low, high, &offset, &plan.step) ? 1 : 0;
  if (job.parts == 1) job.offsets[chunk] = offset;
}

// The offsets of parts, a thread block each.
template <class T>
static __global__ void __launch_bounds__(kPlanThreads) find_offsets_kernel(const __grid_constant__ AdaptiveEncode job) {
  __shared__ T lows[kPlanThreads / 32];
  __shared__ T highs[kPlanThreads / 32];
  const ChunkPlan& plan = job.plan_of(blockIdx.x);
  if (plan.quantise == 0) return;
  const AdaptiveGrid& grid = job.order[0].grids[blockIdx.x];
  const T* const values = reinterpret_cast<const T*>(job.base.values + blockIdx.x / job.parts * job.base.value_stride);
  PartRange<T> range(plan.has_sentinel != 0, plan.sentinel);
#pragma unroll 4
  for (std::uint64_t i = grid.first + threadIdx.x * grid.stride; i < grid.values; i += kPlanThreads * grid.stride)
    range.add(values[i]);
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    const T low = __shfl_xor_sync(kAllLanes, range.low, d), high = __shfl_xor_sync(kAllLanes, range.high, d);
    range.low = low < range.low ? low : range.low;
    range.high = high > range.high ? high : range.high;
  }
  if (threadIdx.x % 32 == 0) {
    lows[threadIdx.x / 32] = range.low;
    highs[threadIdx.x / 32] = range.high;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (std::uint32_t w = 0; w < kPlanThreads / 32; ++w) {
    range.low = lows[w] < range.low ? lows[w] : range.low;
    range.high = highs[w] > range.high ? highs[w] : range.high;
  }
  job.offsets[blockIdx.x] = range.middle();
}

template <class T>
cudaError_t launch_settling(const AdaptiveEncode& job, const Request& request, ChunkFacts* facts, cudaStream_t stream) {
  PYF_CUDA_TRY(cudaMemsetAsync(facts, 0, job.base.chunks * sizeof *facts, stream));
  const std::uint64_t wanted = job.values / (kPlanThreads * 16) + 1;
  const auto blocks = static_cast<unsigned>(std::min<std::uint64_t>(wanted, 1056 / job.base.chunks + 1));
  find_facts_kernel<T><<<dim3(blocks, job.base.chunks), kPlanThreads, 0, stream>>>(job, facts);
  PYF_CUDA_TRY(cudaGetLastError());
  settle_kernel<T><<<(job.base.chunks + kPlanThreads - 1) / kPlanThreads, kPlanThreads, 0, stream>>>(
      job, facts, request.without_zeros);
  if (job.parts > 1) {
    PYF_CUDA_TRY(cudaGetLastError());
    find_offsets_kernel<T><<<job.part_count(), kPlanThreads, 0, stream>>>(job);
  }
  return cudaGetLastError();
}

}  // namespace pyfilter::cuda
