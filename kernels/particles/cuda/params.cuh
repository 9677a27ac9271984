// SPDX-License-Identifier: BSD-3-Clause
// What the encoder of particles gives from kernel to kernel (kernels/particles): tiles are laid in order and
// written each to a slot of its own; when all sizes are known they are placed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "particles/key.hpp"
#include "stages/cuda/params.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kSampledTiles = 8;  // of a chunk whose order is kept, to see whether it is sorted

// Lowest and highest code of each axis over a chunk; `high` inverted.
struct ChunkExtent {
  long long low[3], high[3];
};

struct ParticleParams {
  EncodeParams base;
  std::uint32_t particles;    // of a chunk
  std::uint32_t first_chunk;  // of this launch, where chunks of a batch are launched in groups; base.chunks of them
  std::uint32_t moved_chunk, moved_chunks;  // of earlier launches, whose tiles this one moves to their frames
  std::uint8_t order;                       // 0: as given
  ChunkExtent* extents;                     // order chunk: of each chunk
  std::uint32_t* movable;                   // of each chunk: particles before the padding, which are sorted
  const std::uint32_t* entries;             // order chunk: indices of each chunk in its order; else nullptr
  std::uint32_t* sort_keys;                 // order chunk: of all particles
  std::uint32_t* sort_entries;
  std::uint32_t* sizes;             // of each tile, in words
  std::uint8_t* slots;              // of this launch's chunks, slot_bytes a tile
  const std::uint8_t* moved_slots;  // of those that it moves
  std::uint64_t slot_bytes;
  std::uint32_t* ordered;        // order kept, of each chunk: sampled tiles that are in order
  std::uint32_t* choices;        // of each chunk: whether it becomes a frame of lorenzo
  std::uint64_t* lorenzo_bytes;  // of each chunk: what lorenzo needs, or about that

  __host__ __device__ std::uint32_t sampled_tiles() const {
    return base.tiles < kSampledTiles ? base.tiles : kSampledTiles;
  }
  // Whether most of them are, where so many are (is_ordered() of particles/driver.cpp).
  __host__ __device__ bool is_order(std::uint32_t found) const { return found != 0 && 2 * found >= sampled_tiles(); }
  __host__ __device__ std::uint64_t all_tiles() const { return std::uint64_t{base.tiles} * base.chunks; }
  // Of a tile of a row of chunks.
  __device__ std::uint32_t* slot(std::uint32_t row, std::uint32_t tile) const {
    return reinterpret_cast<std::uint32_t*>(slots + (row * base.tiles + tile) * slot_bytes);
  }
  __device__ const std::uint32_t* moved_slot(std::uint32_t row, std::uint32_t tile) const {
    return reinterpret_cast<const std::uint32_t*>(moved_slots + (row * base.tiles + tile) * slot_bytes);
  }
};

struct PlanParams;

// Launchers of one dtype and number of coordinates.
struct ParticleEncoder {
  // Plans of chunks, where ranges are known, and how many particles of each may be moved.
  cudaError_t (*start)(const ParticleParams& job, const PlanParams& plans, cudaStream_t stream);
  // Order kept: which chunks are sorted.
  cudaError_t (*check_order)(const ParticleParams& job, cudaStream_t stream);
  // Tiles to their slots; where the order is kept, of chunks that are sorted.
  cudaError_t (*encode)(const ParticleParams& job, cudaStream_t stream);
  // Order chunk: keys of the extent of each chunk, and indices.
  cudaError_t (*make_keys)(const ParticleParams& job, cudaStream_t stream);
  // What lorenzo would need for each chunk, about.
  cudaError_t (*estimate_lorenzo)(const ParticleParams& job, cudaStream_t stream);
  // Of one chunk: the rows that its places get.
  cudaError_t (*find_order)(const ParticleParams& job, std::uint32_t* particles, cudaStream_t stream);
};
const ParticleEncoder* particle_encoder(Dtype dtype, int coordinates);

// Chunks that are sorted together: their number goes before the keys of 25 bits.
inline constexpr std::uint32_t kSortedChunks = 128;
// Sorts `count` keys and entries, of which there are two each; *which becomes the one where they are then. With no
// `memory` says how much is needed.
cudaError_t sort_particles(std::uint32_t* const (&keys)[2], std::uint32_t* const (&entries)[2], std::uint64_t count,
                           std::uint32_t chunks, void* memory, std::size_t* memory_bytes, int* which,
                           cudaStream_t stream);

// Where tiles come in frames, where particles are worth it; then tiles from their slots to there.
cudaError_t place_particles(const ParticleParams& job, cudaStream_t stream);
cudaError_t move_particles(const ParticleParams& job, cudaStream_t stream);
// The bound of each chunk from its plan.
cudaError_t note_bounds(const ParticleParams& job, double* bounds, cudaStream_t stream);

}  // namespace pyfilter::cuda
