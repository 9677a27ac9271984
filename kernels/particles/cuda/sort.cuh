// SPDX-License-Identifier: BSD-3-Clause
// Whole chunks of particles before sorting (order_chunk() of particles/cpu/order.hpp): the extent of their codes, and
// keys in that extent.
#pragma once

#include <cstdint>

#include "particles/cuda/params.cuh"
#include "particles/cuda/prepare.cuh"
#include "particles/cuda/source.cuh"

namespace pyfilter::cuda {

inline constexpr int kChunkThreads = 256;

template <class T, int D>
__global__ void __launch_bounds__(kChunkThreads) chunk_extent_kernel(const __grid_constant__ ParticleParams job) {
  using Code = typename FloatTraits<T>::Code;
  const std::uint32_t chunk = blockIdx.y;
  const ChunkPlan& plan = job.base.plans[chunk];
  if (plan.quantise == 0) return;
  const Quantizer<T> p = plan.quantizer<T>();
  const T* const values = reinterpret_cast<const T*>(job.base.values + chunk * job.base.value_stride);
  const std::uint32_t count = job.movable[chunk];
  Extent<Code> extents[D];
  for (std::uint32_t i = blockIdx.x * kChunkThreads + threadIdx.x; i < count; i += gridDim.x * kChunkThreads) {
    Code q[D];
    if (!code_particle<D>(p, values + std::uint64_t{i} * D, q)) continue;
#pragma unroll
    for (int d = 0; d < D; ++d) extents[d].add(&q[d], 1);
  }
  ChunkExtent& all = job.extents[chunk];
#pragma unroll
  for (int d = 0; d < D; ++d) {
    using S = decltype(extents[d].low);
    const S low = warp_least(extents[d].low), inverted = warp_least(static_cast<S>(~extents[d].high));
    if (threadIdx.x % 32 != 0 || static_cast<S>(~inverted) < low) continue;
    atomicMin(&all.low[d], static_cast<long long>(low));
    atomicMin(&all.high[d], static_cast<long long>(inverted));
  }
}

template <class T, int D>
__global__ void __launch_bounds__(kChunkThreads) chunk_keys_kernel(const __grid_constant__ ParticleParams job) {
  using Code = typename FloatTraits<T>::Code;
  using S = std::make_signed_t<Code>;
  const std::uint32_t chunk = blockIdx.y;
  const ChunkPlan& plan = job.base.plans[chunk];
  const bool wanted = plan.quantise != 0;
  const Quantizer<T> p = plan.quantizer<T>();
  const T* const values = reinterpret_cast<const T*>(job.base.values + chunk * job.base.value_stride);
  const std::uint32_t count = job.movable[chunk];
  TileFrame<Code, D> frame;
  Extent<Code> extents[D];
#pragma unroll
  for (int d = 0; d < D; ++d) {
    extents[d].low = static_cast<S>(job.extents[chunk].low[d]);
    extents[d].high = static_cast<S>(~job.extents[chunk].high[d]);
  }
  frame.take(extents);
  const KeyMaker<Code, D, 16> maker(frame);
  const std::uint64_t first = std::uint64_t{chunk} * job.particles;
  for (std::uint32_t i = blockIdx.x * kChunkThreads + threadIdx.x; i < job.particles; i += gridDim.x * kChunkThreads) {
    std::uint32_t key = kStayingKey;
    Code q[D];
    if (wanted && i < count)
      key = code_particle<D>(p, values + std::uint64_t{i} * D, q) ? maker.key(q) : static_cast<std::uint32_t>(kLastKey);
    job.sort_keys[first + i] = key | chunk << (kMostKeyBits + 1);
    job.sort_entries[first + i] = i;
  }
}

}  // namespace pyfilter::cuda
