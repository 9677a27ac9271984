// SPDX-License-Identifier: BSD-3-Clause
// The order of particles of sorted tiles, without encoding them (order_tile() of particles/cpu/order.hpp).
#pragma once

#include <cstdint>

#include "particles/cuda/params.cuh"
#include "particles/cuda/prepare.cuh"

namespace pyfilter::cuda {

// A thread block a tile of the single chunk: particles[i] is set to the row that becomes row i.
template <class T, int D, bool kEntries>
__global__ void __launch_bounds__(kTileThreads)
    order_particles_kernel(const __grid_constant__ ParticleParams job, std::uint32_t* particles) {
  using Code = typename FloatTraits<T>::Code;
  __shared__ BlockSpace<Code, D> space;
  const TileSource<T, D, kEntries> source(job, 0, blockIdx.x);
  const ChunkPlan& plan = job.base.plans[0];
  std::uint32_t keys[kItems], sources[kItems];
  if (plan.quantise == 0) {  // a bit-exact chunk has no keys and keeps its order
#pragma unroll
    for (int k = 0; k < kItems; ++k) sources[k] = position_of(k);
  } else {
    ThreadCodes<T, D> codes;
    CodeSummary<Code, D> summary;
    TileFrame<Code, D> frame;
    code_items<D>(plan.template quantizer<T>(), source, source.sorted, [](int k) { return position_of(k); }, codes);
    summarise(codes, source.sorted, space.summary, summary);
    frame.take(summary.extents);
    const KeyMaker<Code, D, 16> maker(frame);
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      keys[k] = (codes.special >> k & 1) != 0 ? static_cast<std::uint32_t>(kLastKey) : maker.key(codes.q[k]);
      if (position_of(k) >= source.sorted) keys[k] = kStayingKey;
    }
    sort_by_digits(keys, sources, kMostKeyBits + 1, space);
  }
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    if (position_of(k) >= source.count) continue;
    std::uint32_t particle = source.first + sources[k];
    if constexpr (kEntries)
      if (sources[k] < source.sorted && plan.quantise != 0) particle = source.entries[sources[k]];
    particles[source.first + position_of(k)] = particle;
  }
}

}  // namespace pyfilter::cuda
