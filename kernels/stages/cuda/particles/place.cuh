// SPDX-License-Identifier: BSD-3-Clause
// Frames of particles from tiles in slots: a thread block for each chunk adds up the sizes and decides whether they
// become a frame; then copies. Also the particles that lorenzo is tried on.
#pragma once

#include <cstdint>

#include "stages/cuda/block_sum.cuh"
#include "stages/cuda/header.cuh"
#include "stages/cuda/particles/params.cuh"

namespace pyfilter::cuda {

inline constexpr int kSlotThreads = 256;

static __global__ void __launch_bounds__(kPlaceThreads)
    place_particles_kernel(const __grid_constant__ ParticleParams job, double share) {
  __shared__ std::uint64_t warps[32];
  const std::uint32_t chunk = blockIdx.x, tiles = job.base.tiles;
  const std::uint64_t limit = job.base.value_bytes;
  const ParticleNote* const notes = job.notes + std::uint64_t{chunk} * tiles;
  bool taken = job.base.plans[chunk].quantise != 0 && tiles < limit / 4 && 4 * (std::uint64_t{tiles} + 1) < limit;
  if (taken && job.order == 0) taken = job.is_order(job.ordered[chunk]);
  std::uint64_t words = 0, own = 0;
  if (taken) {
    for (std::uint32_t tile = threadIdx.x; tile < tiles; tile += kPlaceThreads) own += notes[tile].words;
    block_sum_before(own, warps, &words);
    const std::uint64_t payload = 4 * (std::uint64_t{tiles} + 1 + words), frame = 4 * job.base.header_words + payload;
    taken = payload < limit && !(static_cast<double>(job.compared_bytes[chunk]) * share < static_cast<double>(frame));
  }
  if (threadIdx.x == 0) job.choices[chunk] = taken ? 0 : 1;
  if (!taken) return;
  auto* const directory =
      reinterpret_cast<std::uint32_t*>(job.base.frames + chunk * job.base.frame_stride + 4 * job.base.header_words);
  std::uint64_t before = 0;
  for (std::uint32_t first = 0; first < tiles; first += kPlaceThreads) {
    const std::uint32_t tile = first + threadIdx.x;
    std::uint64_t all = 0;
    const std::uint64_t at = block_sum_before(tile < tiles ? notes[tile].words : 0, warps, &all);
    if (tile < tiles) directory[tile] = static_cast<std::uint32_t>(before + at);
    before += all;
  }
  if (threadIdx.x == 0) directory[tiles] = static_cast<std::uint32_t>(words);
  if (threadIdx.x < 32) write_header(job.base, chunk, false, 4 * (std::uint64_t{tiles} + 1 + words));
}

// A thread block a tile.
static __global__ void __launch_bounds__(kSlotThreads) copy_slots_kernel(const __grid_constant__ ParticleParams job) {
  const std::uint32_t number = blockIdx.x, chunk = number / job.base.tiles, tile = number - chunk * job.base.tiles;
  const ParticleNote note = job.notes[number];
  auto* const directory =
      reinterpret_cast<std::uint32_t*>(job.base.frames + chunk * job.base.frame_stride + 4 * job.base.header_words);
  const std::uint32_t place = directory[tile];  // asked for along with the others
  if (job.choices[chunk] != 0) return;
  std::uint32_t* const to = directory + job.base.tiles + 1 + place;
  const auto* const from = reinterpret_cast<const std::uint32_t*>(job.slots + number * job.slot_bytes);
  const std::uint32_t front = note.words - note.back,
                      gap = static_cast<std::uint32_t>(job.slot_bytes / 4) - note.words;  // between the two parts
#pragma unroll 8
  for (std::uint32_t i = threadIdx.x; i < note.words; i += kSlotThreads) to[i] = from[i < front ? i : i + gap];
}

// A grid row for each chunk.
static __global__ void __launch_bounds__(kSlotThreads)
    take_compared_kernel(const __grid_constant__ ComparedParams job) {
  const std::uint32_t chunk = blockIdx.y;
  const std::uint64_t all = job.compared * job.particle_bytes / 4;
  const std::uint8_t* const from = job.values + chunk * job.value_stride;
  auto* const to = reinterpret_cast<std::uint32_t*>(job.to + chunk * job.to_stride);
  if (blockIdx.x == 0 && threadIdx.x == 0) job.bounds[chunk] = job.plans[chunk].bound;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * kSlotThreads + threadIdx.x; i < all;
       i += std::uint64_t{gridDim.x} * kSlotThreads) {
    std::uint64_t byte = 4 * i;
    if (job.compared != job.particles) {
      const std::uint64_t run = byte / job.run_bytes,
                          first = (job.particles - job.run_bytes / job.particle_bytes) * run / (job.runs - 1);
      byte = first * job.particle_bytes + byte % job.run_bytes;
    }
    to[i] = *reinterpret_cast<const std::uint32_t*>(from + byte);
  }
}

}  // namespace pyfilter::cuda
