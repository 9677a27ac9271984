// SPDX-License-Identifier: BSD-3-Clause
// Copies tiles from their slots into frames once their offsets are known. A kernel of its own copies them, or thread
// blocks that encode tiles of later chunks. Such a block loads the tile's directory entry when it starts. It loads the
// tile as soon as it has shared memory for it, and stores it much later.
#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "particles/cuda/codes.cuh"
#include "particles/cuda/params.cuh"

namespace pyfilter::cuda {

// The words of a frame behind its header; they start with the directory of tiles.
__device__ __forceinline__ std::uint32_t* directory_of(const ParticleParams& job, std::uint32_t chunk) {
  return reinterpret_cast<std::uint32_t*>(job.base.frames + chunk * job.base.frame_stride + 4 * job.base.header_words);
}

// Copies words, by kThreads threads from number `first` on. Several loads are in flight at once, since the block mostly
// waits for them.
template <int kThreads>
__device__ __forceinline__ void move_words(const std::uint32_t* from, std::uint32_t* to, std::uint32_t first,
                                           std::uint32_t words) {
  constexpr int kAtOnce = 6;
#pragma unroll 1
  for (first += threadIdx.x; first < words; first += kAtOnce * kThreads) {
    std::uint32_t word[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (const std::uint32_t i = first + static_cast<unsigned>(k) * kThreads; i < words) word[k] = from[i];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (const std::uint32_t i = first + static_cast<unsigned>(k) * kThreads; i < words) to[i] = word[k];
  }
}
// Copies a tile from its slot, by all threads of a block.
template <int kThreads>
__device__ __forceinline__ void move_tile(const ParticleParams& job, std::uint32_t chunk, std::uint32_t tile,
                                          const std::uint32_t* slot) {
  const std::uint32_t words = job.sizes[chunk * job.base.tiles + tile];
  std::uint32_t* const directory = directory_of(job, chunk);
  const std::uint32_t offset = directory[tile];  // in flight together with the other loads
  if (job.choices[chunk] == 0) move_words<kThreads>(slot, directory + job.base.tiles + 1 + offset, 0, words);
}

// The tile that a block copies.
struct MovedTile {
  std::uint32_t words, offset, choice;
};

// The tile of an earlier chunk that an encoding block copies: the tile with its own number in the copied row of chunks.
// If there are more such chunks than rows of blocks, a block copies several.
class TileMover {
 public:
  __device__ __forceinline__ TileMover(const ParticleParams& job, MovedTile& tile) : job_(job), tile_(tile) {
    if (threadIdx.x != kAsking || !moves()) return;
    const std::uint32_t chunk = first_chunk();
    __pipeline_memcpy_async(&tile_.words, job_.sizes + chunk * job_.base.tiles + blockIdx.x, sizeof(std::uint32_t));
    __pipeline_memcpy_async(&tile_.offset, directory_of(job_, chunk) + blockIdx.x, sizeof(std::uint32_t));
    __pipeline_memcpy_async(&tile_.choice, job_.choices + chunk, sizeof(std::uint32_t));
    __pipeline_commit();
  }
  // Completes the loads, before a barrier.
  __device__ __forceinline__ void wait() const { __pipeline_wait_prior(0); }
  // Loads the tile, at most kTileParticles words. Call after wait() and a barrier.
  __device__ __forceinline__ void fetch(std::uint32_t* memory) const {
    if (!moves()) return;
    const std::uint32_t words = known_words();
    const std::uint32_t* const from = job_.moved_slot(blockIdx.y, blockIdx.x);
#pragma unroll
    for (std::uint32_t k = 0; k < kTileParticles; k += 4 * kTileThreads)
      if (const std::uint32_t i = k + 4 * threadIdx.x; i < words)
        __pipeline_memcpy_async(memory + i, from + i, sizeof(uint4));
    __pipeline_commit();
  }
  // Stores it to the frame. Call after wait() and a barrier.
  __device__ __forceinline__ void put(const std::uint32_t* memory) const {
    if (!moves()) return;
    const std::uint32_t words = known_words(), chunk = first_chunk();
    std::uint32_t* const to = directory_of(job_, chunk) + job_.base.tiles + 1 + tile_.offset;
#pragma unroll
    for (std::uint32_t k = 0; k < kTileParticles; k += kTileThreads) {
      if (k >= words) break;
      if (k + threadIdx.x < words) to[k + threadIdx.x] = memory[k + threadIdx.x];
    }
    if (words > kTileParticles)
      move_words<kTileThreads>(job_.moved_slot(blockIdx.y, blockIdx.x), to, kTileParticles, words);
    move_from(blockIdx.y + gridDim.y);
  }
  // Copies it without shared memory.
  __device__ __forceinline__ void move() const {
    wait();  // for loads whose result is not used
    move_from(blockIdx.y);
  }

 private:
  static constexpr unsigned kAsking = kTileThreads - 1;  // the first warp has the most to do
  const ParticleParams& job_;
  MovedTile& tile_;

  __device__ __forceinline__ bool moves() const { return blockIdx.y < job_.moved_chunks; }
  __device__ __forceinline__ std::uint32_t first_chunk() const { return job_.moved_chunk + blockIdx.y; }
  __device__ __forceinline__ std::uint32_t known_words() const { return tile_.choice == 0 ? tile_.words : 0; }
  __device__ __forceinline__ void move_from(std::uint32_t row) const {
#pragma unroll 1
    for (; row < job_.moved_chunks; row += gridDim.y)
      move_tile<kTileThreads>(job_, job_.moved_chunk + row, blockIdx.x, job_.moved_slot(row, blockIdx.x));
  }
};

}  // namespace pyfilter::cuda
