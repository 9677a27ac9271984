// SPDX-License-Identifier: BSD-3-Clause
// Whole chunks of particles before they are sorted (order_chunk() of particles/order.hpp): which of them may be moved,
// the extent of their codes, and keys in it.
#pragma once

#include <cstdint>

#include "stages/cuda/particles/params.cuh"
#include "stages/cuda/particles/prepare.cuh"
#include "stages/cuda/particles/source.cuh"

namespace pyfilter::cuda {

inline constexpr int kMovableThreads = 1024, kChunkThreads = 256;

// Particles before the padding, rows of zeros or the sentinel: a thread block a chunk looks from the end.
template <class T, int D>
__global__ void __launch_bounds__(kMovableThreads) movable_kernel(const __grid_constant__ ParticleParams job) {
  using Code = typename FloatTraits<T>::Code;
  const std::uint32_t chunk = blockIdx.x;
  const ChunkPlan& plan = job.base.plans[chunk];
  const T* const values = reinterpret_cast<const T*>(job.base.values + chunk * job.base.value_stride);
  const bool has_sentinel = plan.has_sentinel != 0;
  const auto sentinel = static_cast<Code>(plan.sentinel);
  std::uint32_t count = job.particles;
  while (count != 0 && plan.quantise != 0) {
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
    __shared__ std::uint32_t last;
    if (threadIdx.x == 0) last = 0;
    __syncthreads();
    if (!padding) atomicMax(&last, particle + 1);
    __syncthreads();
    const std::uint32_t found = last;
    __syncthreads();
    if (found != 0) {
      count = found;
      break;
    }
    count = count > kMovableThreads ? count - kMovableThreads : 0;
  }
  if (threadIdx.x == 0) job.movable[chunk] = count;
}

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
