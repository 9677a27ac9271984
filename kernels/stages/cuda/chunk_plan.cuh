// SPDX-License-Identifier: BSD-3-Clause
// Choices made once per chunk on the device: value range, then bound, step, sentinel and whether to quantise
// (stages/sample.hpp has the rules). They use only counts, minima and maxima, so the order of threads changes nothing.
#pragma once

#include <cstdint>
#include <limits>

#include "core/bound.hpp"
#include "stages/cuda/launch.cuh"
#include "stages/cuda/params.cuh"
#include "stages/cuda/residuals.cuh"
#include "stages/packed/choose_step.hpp"
#include "stages/sample.hpp"

namespace pyfilter::cuda {

inline constexpr int kPlanThreads = 256;     // of a block that computes a range
inline constexpr int kSampleThreads = 1024;  // of a block that makes a plan: one for each sampled value

static_assert(kSampleThreads == kSampleValues);

// Lowest and highest value of a chunk as keys in the order of the floats. 0: no value yet; `low` is inverted, so that
// both grow.
struct RangeKeys {
  unsigned long long low, high;
};

// Inputs of the chunks' plans.
struct PlanParams {
  Bound bound_mode;
  double bound;
  const double* bounds;     // of each chunk; nullptr: all have the same bound
  bool has_fill, quantise;  // quantise: false if the codec is bit-exact
  bool without_zeros;       // zeros do not count for the range
  std::uint64_t fill;
  std::uint64_t count;  // values of a chunk
  const std::uint8_t* values;
  std::uint64_t value_stride;
  RangeKeys* ranges;
  ChunkPlan* plans;
  std::uint32_t* raw;
  Counters* counters;
};

__device__ __forceinline__ unsigned long long order_key(double x) {
  const auto bits = static_cast<unsigned long long>(__double_as_longlong(x));
  return (bits >> 63) != 0 ? ~bits : bits | 0x8000000000000000ull;
}
__device__ __forceinline__ double value_of_key(unsigned long long key) {
  return __longlong_as_double(static_cast<long long>((key >> 63) != 0 ? key & ~0x8000000000000000ull : ~key));
}

// Smallest and largest finite value other than a declared fill value.
template <class T>
__global__ void __launch_bounds__(kPlanThreads) range_kernel(const __grid_constant__ PlanParams job) {
  using Code = typename FloatTraits<T>::Code;
  const T infinity = std::numeric_limits<T>::infinity();
  const T fill = job.has_fill ? std::bit_cast<T>(static_cast<Code>(job.fill)) : std::numeric_limits<T>::quiet_NaN();
  const T other = job.without_zeros ? T{0} : fill;
  const auto* values = reinterpret_cast<const T*>(job.values + blockIdx.y * job.value_stride);
  T low = infinity, high = -infinity;
  const auto take = [&](T x) {
    const bool counts = (absolute(x) < infinity) & (x != fill) & (x != other);
    low = counts && x < low ? x : low;
    high = counts && x > high ? x : high;
  };
  constexpr std::uint64_t kPer = 16 / sizeof(T);
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kPlanThreads;
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * kPlanThreads + threadIdx.x;
  std::uint64_t taken = 0;
  if (reinterpret_cast<std::uintptr_t>(values) % 16 == 0) {
    taken = job.count / kPer * kPer;
#pragma unroll 4
    for (std::uint64_t i = thread; i < job.count / kPer; i += stride) {
      const uint4 piece = __ldcs(reinterpret_cast<const uint4*>(values) + i);
      const T* x = reinterpret_cast<const T*>(&piece);
#pragma unroll
      for (int k = 0; k < static_cast<int>(kPer); ++k) take(x[k]);
    }
  }
  for (std::uint64_t i = taken + thread; i < job.count; i += stride) take(values[i]);
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    const T other_low = __shfl_xor_sync(kAllLanes, low, d), other_high = __shfl_xor_sync(kAllLanes, high, d);
    low = other_low < low ? other_low : low;
    high = other_high > high ? other_high : high;
  }
  if (threadIdx.x % 32 == 0 && low <= high) {
    atomicMax(&job.ranges[blockIdx.y].low, ~order_key(static_cast<double>(low)));
    atomicMax(&job.ranges[blockIdx.y].high, order_key(static_cast<double>(high)));
  }
}

// Counts of the sample under a quantiser, returned to all threads. x: this thread's sampled value, if it has one.
struct PlanSpace {
  std::uint32_t fitting, failing, unreached, first_unreached, same;
};
__device__ inline void clear_counts(PlanSpace& space) {
  __syncthreads();
  if (threadIdx.x == 0) space = {0, 0, 0, 0xFFFFFFFFu, 0};
  __syncthreads();
}
__device__ inline void add_count(bool counts, std::uint32_t* to) {
  const std::uint32_t lanes = __ballot_sync(kAllLanes, counts);
  if (threadIdx.x % 32 == 0 && lanes != 0) atomicAdd(to, static_cast<std::uint32_t>(__popc(lanes)));
}
template <class T>
__device__ void count_sample(const Quantizer<T>& p, T x, std::uint64_t count, PlanSpace& space) {
  clear_counts(space);
  const std::uint32_t k = threadIdx.x;
  const bool sampled = k < count;
  const SampledValue<T> value(p, x);
  add_count(sampled && value.fitting, &space.fitting);
  add_count(sampled && value.failing, &space.failing);
  add_count(sampled && value.unreached, &space.unreached);
  if (sampled && value.unreached) atomicMin(&space.first_unreached, k);
  __syncthreads();
}

template <class T>
__device__ ChunkPlan plan_chunk(const PlanParams& job, std::uint32_t chunk, PlanSpace& space) {
  using Code = typename FloatTraits<T>::Code;
  const ChunkPlan exact = {};
  const auto* values = reinterpret_cast<const T*>(job.values + chunk * job.value_stride);
  const T x = threadIdx.x < job.count ? values[sample_index(job.count, threadIdx.x)] : T{0};
  double requested = job.bounds != nullptr ? job.bounds[chunk] : job.bound;
  if (job.bound_mode == Bound::relative) {
    const RangeKeys keys = job.ranges[chunk];
    if (keys.high == 0) return exact;  // no finite value
    requested = resolve_relative(job.bound, value_of_key(~keys.low), value_of_key(keys.high));
  }
  const T bound = usable_bound<T>(requested);
  if (bound == 0) return exact;
  Code sentinel = 0;
  const bool declared = nonzero_fill<T>(job.has_fill, job.fill, &sentinel);
  Quantizer<T> p = make_quantizer(bound, step_of(bound), declared, sentinel);
  count_sample(p, x, job.count, space);
  if (!declared && space.unreached != 0) {
    sentinel = std::bit_cast<Code>(values[sample_index(job.count, space.first_unreached)]);
    if (threadIdx.x < job.count && std::bit_cast<Code>(x) == sentinel) atomicAdd(&space.same, 1);
    __syncthreads();
    if (space.same >= 2) {
      p = make_quantizer(bound, p.step, true, sentinel);
      count_sample(p, x, job.count, space);
    }
  }
  if (too_tight(space.failing, space.fitting)) return exact;
  ChunkPlan plan = {
      static_cast<double>(bound), static_cast<double>(p.step), p.sentinel_bits, 1, 0, p.has_sentinel ? 1u : 0u, 0, {}};
  memcpy(plan.ready, &p, sizeof p);
  return plan;
}

// choose_log_step() of stages/packed/choose_step.hpp.
template <class T>
__device__ ChunkPlan plan_logarithms(const PlanParams& job, std::uint32_t chunk, PlanSpace& space) {
  using Code = typename FloatTraits<T>::Code;
  const ChunkPlan exact = {};
  const auto* values = reinterpret_cast<const T*>(job.values + chunk * job.value_stride);
  const bool sampled = threadIdx.x < job.count;
  const T x = sampled ? values[sample_index(job.count, threadIdx.x)] : T{1};
  const auto bound = static_cast<double>(round_down<T>(job.bounds != nullptr ? job.bounds[chunk] : job.bound));
  const double step = log_step_of<T>(bound);
  if (step == 0) return exact;
  Code sentinel = 0;
  bool has_sentinel = nonzero_fill<T>(job.has_fill, job.fill, &sentinel);
  clear_counts(space);
  if (!has_sentinel) {
    if (sampled && !has_logarithm(x)) atomicMin(&space.first_unreached, threadIdx.x);
    __syncthreads();
    if (space.first_unreached != 0xFFFFFFFFu) {
      sentinel = std::bit_cast<Code>(values[sample_index(job.count, space.first_unreached)]);
      add_count(sampled && std::bit_cast<Code>(x) == sentinel, &space.same);
      __syncthreads();
      has_sentinel = space.same >= 2;
      sentinel = has_sentinel ? sentinel : 0;
    }
  }
  const LogQuantizer<T> p = make_log_quantizer<T>(bound, step, has_sentinel, sentinel);
  const SampledLogarithm<T> value(p, x);
  add_count(sampled && value.fitting, &space.fitting);
  add_count(sampled && value.failing, &space.failing);
  __syncthreads();
  if (too_tight(space.failing, space.fitting)) return exact;
  ChunkPlan plan = {bound, step, sentinel, 1, 0, has_sentinel ? 1u : 0u, 0, {}};
  static_assert(sizeof p <= sizeof plan.ready);
  memcpy(plan.ready, &p, sizeof p);
  return plan;
}

// One thread block a chunk.
template <class T>
__global__ void __launch_bounds__(kSampleThreads) prepare_kernel(const __grid_constant__ PlanParams job) {
  __shared__ PlanSpace space;
  follow();
  const std::uint32_t chunk = blockIdx.x;
  ChunkPlan plan = {};
  if (job.quantise)
    plan = job.bound_mode == Bound::pointwise_relative ? plan_logarithms<T>(job, chunk, space)
                                                       : plan_chunk<T>(job, chunk, space);
  if (threadIdx.x == 0) {
    job.plans[chunk] = plan;
    job.raw[chunk] = 0;
    if (plan.quantise == 0) atomicAdd(&job.counters->exact_chunks, 1);
  }
}

}  // namespace pyfilter::cuda
