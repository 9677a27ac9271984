// SPDX-License-Identifier: BSD-3-Clause
// Codes the tiles of all chunks, a warp each, with the models of their chunks, and keeps records.
#pragma once

#include <cstdint>

#include "adaptive/cuda/encode_tile.cuh"

namespace pyfilter::cuda {

template <class T>
__device__ __forceinline__ ChunkScale<T> scale_of(const AdaptiveEncode& job, std::uint32_t chunk) {
  const ChunkPlan& plan = job.base.plans[chunk];
  return {job.offsets[chunk], plan.step, plan.bound, plan.sentinel, plan.has_sentinel != 0};
}
template <class T>
__device__ __forceinline__ const T* values_of(const AdaptiveEncode& job, std::uint32_t chunk) {
  return reinterpret_cast<const T*>(job.base.values + chunk * job.base.value_stride);
}

// Tiles are many: warps alone code more of them at a time than pairs, which decode.
inline constexpr int kCodingThreads = 32, kCodingBlocks = 12;

template <class T, UnitMode kMode, bool kRefines>
static __global__ void __launch_bounds__(kCodingThreads, kCodingBlocks)
    code_tiles_kernel(const __grid_constant__ AdaptiveEncode job, std::uint32_t order_index) {
  constexpr auto kPlace = kPlaceOf<kMode, kRefines>;
  __shared__ __align__(16) unsigned char shared_memory[sizeof(UnitMemory<kMode>)];
  auto& memory = *reinterpret_cast<UnitMemory<kMode>*>(shared_memory);
  const EncodeOrder& order = job.order[order_index];
  const EncodeScratch scratch = EncodeScratch::in(job.scratch + blockIdx.x * job.scratch_bytes, order.scratch);
  float* const planes = kMode == UnitMode::volume ? job.planes + blockIdx.x * order.plane_floats : nullptr;
  for (;;) {
    std::uint32_t next = 0;
    if (this_lane() == 0) next = atomicAdd(order.next_tile + static_cast<std::uint32_t>(kPlace), 1u);
    next = __shfl_sync(kAllRows, next, 0);
    if (next >= job.base.chunks * order.tiles) return;
    const std::uint32_t local = next / order.tiles, chunk = local;
    if (job.base.plans[chunk].quantise == 0) continue;
    const AdaptiveModel& model = order.trained[local].model;
    if (place_of(order.grid, model.levels) != kPlace) continue;
    TileEncoder<T, kMode, kRefines> tile{
        memory, order.grid, job.taps, scratch, planes, values_of<T>(job, chunk), scale_of<T>(job, chunk),
        false,  false,      false};
    const TileHead head = record_tile(tile, model, next % order.tiles,
                                      order.records.in(order.record_memory + next * order.records.bytes()));
    if (this_lane() == 0) order.heads[next] = head;
  }
}

}  // namespace pyfilter::cuda
