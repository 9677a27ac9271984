// SPDX-License-Identifier: BSD-3-Clause
// Codes the tiles of all chunks, a warp each, with the models of their chunks, and keeps records.
#pragma once

#include <cstdint>

#include "adaptive/cuda/encode_tile.cuh"

namespace pyfilter::cuda {

template <class T>
__device__ __forceinline__ ChunkScale<T> scale_of(const AdaptiveEncode& job, std::uint32_t part) {
  const ChunkPlan& plan = job.plan_of(part);
  return {job.offsets[part], plan.step, plan.bound, plan.sentinel, plan.has_sentinel != 0};
}
template <class T>
__device__ __forceinline__ const T* values_of(const AdaptiveEncode& job, std::uint32_t part) {
  return reinterpret_cast<const T*>(job.base.values + part / job.parts * job.base.value_stride);
}
// Copies a part's grid, by all threads of a block.
__device__ __forceinline__ void load_grid(const EncodeOrder& order, std::uint32_t part, AdaptiveGrid& grid) {
  static_assert(sizeof grid % 4 == 0);
  const auto* const from = reinterpret_cast<const std::uint32_t*>(order.grids + part);
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < sizeof grid / 4; i += blockDim.x)
    reinterpret_cast<std::uint32_t*>(&grid)[i] = from[i];
  __syncthreads();
}

// Tiles are many: warps alone code more of them at a time than pairs, which decode.
inline constexpr int kCodingThreads = 32, kCodingBlocks = 12;

template <class T, UnitMode kMode, bool kRefines>
static __global__ void __launch_bounds__(kCodingThreads, kCodingBlocks)
    code_tiles_kernel(const __grid_constant__ AdaptiveEncode job, std::uint32_t order_index) {
  constexpr auto kPlace = kPlaceOf<kMode, kRefines>;
  __shared__ __align__(16) unsigned char shared_memory[sizeof(UnitMemory<kMode>)];
  __shared__ AdaptiveGrid grid;
  auto& memory = *reinterpret_cast<UnitMemory<kMode>*>(shared_memory);
  const EncodeOrder& order = job.order[order_index];
  const EncodeScratch scratch = EncodeScratch::in(job.scratch + blockIdx.x * job.scratch_bytes, order.scratch);
  float* const planes = kMode == UnitMode::volume ? job.planes + blockIdx.x * order.plane_floats : nullptr;
  for (;;) {
    std::uint32_t next = 0;
    if (this_lane() == 0) next = atomicAdd(order.next_tile + static_cast<std::uint32_t>(kPlace), 1u);
    next = __shfl_sync(kAllRows, next, 0);
    if (next >= job.part_count() * order.tiles) return;
    const std::uint32_t part = next / order.tiles, number = next % order.tiles;
    if (job.plan_of(part).quantise == 0 || job.chosen[part] != order_index) continue;
    load_grid(order, part, grid);
    const AdaptiveModel& model = job.trained[part].model;
    if (number >= grid.tiles() || place_of(grid, model.levels) != kPlace) continue;
    TileEncoder<T, kMode, kRefines> tile{
        memory, grid, job.taps_of(order), scratch, planes, values_of<T>(job, part), scale_of<T>(job, part)};
    const TileHead head = record_tile(tile, model, number, job.records_of(order, part, number));
    if (this_lane() == 0) job.head_of(part, number) = head;
  }
}

}  // namespace pyfilter::cuda
