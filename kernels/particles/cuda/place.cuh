// SPDX-License-Identifier: BSD-3-Clause
// Frames of particles from tiles in slots: a thread block for each chunk sums the sizes and decides whether it becomes
// a frame of particles. Then tiles are copied.
#pragma once

#include <cstdint>

#include "particles/cuda/move.cuh"
#include "particles/cuda/params.cuh"
#include "stages/cuda/block_sum.cuh"
#include "stages/cuda/header.cuh"
#include "stages/cuda/launch.cuh"

namespace pyfilter::cuda {

inline constexpr int kSlotThreads = 256;

static __global__ void __launch_bounds__(kPlaceThreads)
    place_particles_kernel(const __grid_constant__ ParticleParams job) {
  __shared__ std::uint64_t warps[32];
  follow();
  const std::uint32_t chunk = job.first_chunk + blockIdx.x, tiles = job.base.tiles;
  const std::uint64_t limit = job.base.value_bytes;
  const std::uint32_t* const sizes = job.sizes + std::uint64_t{chunk} * tiles;
  bool taken = job.base.plans[chunk].quantise != 0 && tiles < limit / 4 && 4 * (std::uint64_t{tiles} + 1) < limit;
  if (taken && job.order == 0) taken = job.is_order(job.ordered[chunk]);
  std::uint64_t words = 0, own = 0;
  if (taken) {
    for (std::uint32_t tile = threadIdx.x; tile < tiles; tile += kPlaceThreads) own += sizes[tile];
    block_sum_before(own, warps, &words);
    const std::uint64_t payload = 4 * (std::uint64_t{tiles} + 1 + words), frame = 4 * job.base.header_words + payload;
    taken = payload < limit && frame <= job.lorenzo_bytes[chunk];
  }
  if (threadIdx.x == 0) job.choices[chunk] = taken ? 0 : 1;
  if (!taken) return;
  std::uint32_t* const directory = directory_of(job, chunk);
  std::uint64_t before = 0;
  for (std::uint32_t first = 0; first < tiles; first += kPlaceThreads) {
    const std::uint32_t tile = first + threadIdx.x;
    std::uint64_t all = 0;
    const std::uint64_t at = block_sum_before(tile < tiles ? sizes[tile] : 0, warps, &all);
    if (tile < tiles) directory[tile] = static_cast<std::uint32_t>(before + at);
    before += all;
  }
  if (threadIdx.x == 0) directory[tiles] = static_cast<std::uint32_t>(words);
  if (threadIdx.x < 32) write_header(job.base, chunk, false, 4 * (std::uint64_t{tiles} + 1 + words));
}

// A thread block a tile.
static __global__ void __launch_bounds__(kSlotThreads) copy_slots_kernel(const __grid_constant__ ParticleParams job) {
  follow();
  const std::uint32_t row = blockIdx.x / job.base.tiles, tile = blockIdx.x - row * job.base.tiles;
  move_tile<kSlotThreads>(job, job.first_chunk + row, tile, job.slot(row, tile));
}

static __global__ void __launch_bounds__(kSlotThreads)
    note_bounds_kernel(const __grid_constant__ ParticleParams job, double* bounds) {
  const std::uint32_t chunk = blockIdx.x * kSlotThreads + threadIdx.x;
  if (chunk < job.base.chunks) bounds[chunk] = job.base.plans[chunk].bound;
}

}  // namespace pyfilter::cuda
