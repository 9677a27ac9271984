// SPDX-License-Identifier: BSD-3-Clause
// The parameters of the particle encoder's kernels. Each tile is sorted and written to its slot; once all sizes are
// known, tiles are copied into frames.
#pragma once

#include <cstddef>
#include <cstdint>

#include "particles/key.hpp"
#include "stages/cuda/params.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kSampledTiles = 8;  // order kept: of a chunk, to find whether it is sorted

// Lowest and highest code of each axis over a chunk; `high` inverted.
struct ChunkExtent {
  long long low[3], high[3];
};

struct ParticleParams {
  EncodeParams base;
  std::uint32_t particles;    // of a chunk
  std::uint32_t first_chunk;  // the launch encodes base.chunks chunks from this one on
  std::uint32_t moved_chunk,
      moved_chunks;              // of earlier launches: chunks whose tiles this launch copies to their frames
  std::uint8_t order;            // kOrderKept, kOrderTile or kOrderChunk
  ChunkExtent* extents;          // order chunk: of each chunk
  std::uint32_t* movable;        // of each chunk: particles before the padding, which may be sorted
  const std::uint32_t* entries;  // order chunk: indices of each chunk in sorted order; else nullptr
  std::uint32_t* sort_keys;      // order chunk: of all particles
  std::uint32_t* sort_entries;
  std::uint32_t* sizes;             // of each tile, in words
  std::uint8_t* slots;              // of this launch's chunks, slot_bytes a tile
  const std::uint8_t* moved_slots;  // slots of the tiles to copy
  std::uint64_t slot_bytes;
  std::uint32_t* ordered;        // order kept, of each chunk: sampled tiles in sorted order
  std::uint32_t* choices;        // of each chunk: whether it becomes a frame of lorenzo
  std::uint64_t* lorenzo_bytes;  // of each chunk: estimated bytes of lorenzo's frame

  __host__ __device__ std::uint32_t sampled_tiles() const {
    return base.tiles < kSampledTiles ? base.tiles : kSampledTiles;
  }
  // Whether at least half of the sampled tiles are sorted (is_ordered() of particles/driver.cpp).
  __host__ __device__ bool is_order(std::uint32_t found) const { return found != 0 && 2 * found >= sampled_tiles(); }
  __host__ __device__ std::uint64_t all_tiles() const { return std::uint64_t{base.tiles} * base.chunks; }
  // The slot of a tile of a row of chunks.
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
  // Plans of chunks, after their ranges, and the number of movable particles of each.
  cudaError_t (*start)(const ParticleParams& job, const PlanParams& plans, cudaStream_t stream);
  // Order kept: finds which chunks are sorted.
  cudaError_t (*check_order)(const ParticleParams& job, cudaStream_t stream);
  // Encodes tiles to their slots; if the order is kept, only of sorted chunks.
  cudaError_t (*encode)(const ParticleParams& job, cudaStream_t stream);
  // Order chunk: keys in the extent of each chunk, and indices.
  cudaError_t (*make_keys)(const ParticleParams& job, cudaStream_t stream);
  // Estimates the bytes of lorenzo's frame of each chunk.
  cudaError_t (*estimate_lorenzo)(const ParticleParams& job, cudaStream_t stream);
  // For a single chunk: the order of its rows.
  cudaError_t (*find_order)(const ParticleParams& job, std::uint32_t* particles, cudaStream_t stream);
};
const ParticleEncoder* particle_encoder(Dtype dtype, int coordinates);

// Chunks sorted together: their number is put above the keys of 25 bits.
inline constexpr std::uint32_t kSortedChunks = 128;
// Sorts `count` keys and entries, each in one of two buffers; *which is the buffer of the result. Without `memory`,
// returns the needed bytes.
cudaError_t sort_particles(std::uint32_t* const (&keys)[2], std::uint32_t* const (&entries)[2], std::uint64_t count,
                           std::uint32_t chunks, void* memory, std::size_t* memory_bytes, int* which,
                           cudaStream_t stream);

// Computes the tiles' offsets in frames, for chunks that remain particles; then copies tiles to their frames.
cudaError_t place_particles(const ParticleParams& job, cudaStream_t stream);
cudaError_t move_particles(const ParticleParams& job, cudaStream_t stream);
// Copies the bound of each chunk from its plan.
cudaError_t note_bounds(const ParticleParams& job, double* bounds, cudaStream_t stream);

}  // namespace pyfilter::cuda
