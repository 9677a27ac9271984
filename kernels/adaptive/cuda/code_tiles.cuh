// SPDX-License-Identifier: BSD-3-Clause
// Codes the tiles of all chunks, a warp each, with the models of their chunks, and keeps records. Tiles without
// refining passes are coded in rings of steps in shared memory, others in global memory.
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

template <class T, UnitMode kMode>
static __global__ void __launch_bounds__(32, kResidentWarps)
    code_tiles_kernel(const __grid_constant__ AdaptiveEncode job, std::uint32_t order_index) {
  constexpr bool kFlat = kMode == UnitMode::flat;
  __shared__ __align__(16) unsigned char shared_memory[sizeof(UnitMemory<kMode>)];
  auto& memory = *reinterpret_cast<UnitMemory<kMode>*>(shared_memory);
  const EncodeOrder& order = job.order[order_index];
  const EncodeScratch scratch = EncodeScratch::in(job.scratch + blockIdx.x * job.scratch_bytes, order.scratch);
  float* const planes = kMode == UnitMode::volume ? job.planes + blockIdx.x * order.plane_floats : nullptr;
  for (;;) {
    std::uint32_t next = 0;
    if (this_lane() == 0) next = atomicAdd(order.next_tile + (kFlat ? 1 : 0), 1u);
    next = __shfl_sync(kAllRows, next, 0);
    if (next >= job.base.chunks * order.tiles) return;
    const std::uint32_t local = next / order.tiles, chunk = local;
    if (job.base.plans[chunk].quantise == 0) continue;
    const AdaptiveModel& model = order.trained[local].model;
    if ((model.levels != 0 || order.only_flat) != kFlat) continue;
    TileEncoder<T, kMode> tile{
        memory, order.grid, job.taps, scratch, planes, values_of<T>(job, chunk), scale_of<T>(job, chunk),
        false,  false,      false};
    const TileHead head = record_tile(tile, model, next % order.tiles,
                                      order.records.in(order.record_memory + next * order.records.bytes()));
    if (this_lane() == 0) order.heads[next] = head;
  }
}

}  // namespace pyfilter::cuda
