// SPDX-License-Identifier: BSD-3-Clause
// Codes the tiles of all chunks, a warp each, with the models of their chunks, and keeps records. A second warp helps
// with refining passes (foresee.cuh).
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

template <class T, UnitMode kMode, bool kRefines>
static __global__ void __launch_bounds__((UnitKernel<kMode, kRefines>::threads),
                                         (UnitKernel<kMode, kRefines>::resident))
    code_tiles_kernel(const __grid_constant__ AdaptiveEncode job, std::uint32_t order_index) {
  constexpr auto kPlace = kPlaceOf<kMode, kRefines>;
  __shared__ __align__(16) unsigned char shared_memory[sizeof(UnitMemory<kMode>)];
  auto& memory = *reinterpret_cast<UnitMemory<kMode>*>(shared_memory);
  const EncodeOrder& order = job.order[order_index];
  const EncodeScratch scratch = EncodeScratch::in(job.scratch + blockIdx.x * job.scratch_bytes, order.scratch);
  float* const planes = kMode == UnitMode::volume ? job.planes + blockIdx.x * order.plane_floats : nullptr;
  HelpMemory* shared_help = nullptr;
  if constexpr (kRefines) {
    __shared__ __align__(16) unsigned char help_memory[sizeof(HelpMemory)];
    shared_help = reinterpret_cast<HelpMemory*>(help_memory);
    if (threadIdx.x >= kRows) return help(shared_help->ring, memory.refining, memory.pass, job.taps, scratch.unit);
  }
  for (;;) {
    std::uint32_t next = 0;
    if (this_lane() == 0) next = atomicAdd(order.next_tile + static_cast<std::uint32_t>(kPlace), 1u);
    next = __shfl_sync(kAllRows, next, 0);
    if (next >= job.base.chunks * order.tiles) break;
    const std::uint32_t local = next / order.tiles, chunk = local;
    if (job.base.plans[chunk].quantise == 0) continue;
    const AdaptiveModel& model = order.trained[local].model;
    if (place_of(order.grid, model.levels) != kPlace) continue;
    TileEncoder<T, kMode, kRefines, kRefines> tile{
        memory, order.grid, job.taps, scratch, planes, shared_help, values_of<T>(job, chunk), scale_of<T>(job, chunk),
        false,  false,      false};
    const TileHead head = record_tile(tile, model, next % order.tiles,
                                      order.records.in(order.record_memory + next * order.records.bytes()));
    if (this_lane() == 0) order.heads[next] = head;
  }
  if constexpr (kRefines) begin_helped_turn(shared_help->ring, true);
}

}  // namespace pyfilter::cuda
