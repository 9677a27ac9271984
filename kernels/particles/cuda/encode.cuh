// SPDX-License-Identifier: BSD-3-Clause
// Tiles of particles to their bytes (docs/format.md, section 12.2); particles/cpu/encode.hpp is the same on the CPU. A
// thread block takes a tile and prepares it (prepare.cuh). It then makes the sequences of keys and the planes of
// offsets, with four threads for each group of 32. The bytes go to the tile's slot (place.cuh). Tiles take different
// times: a tile that waited for its offset would wait for the slowest earlier tile.
#pragma once

#include <cstdint>

#include "particles/cuda/keys.cuh"
#include "particles/cuda/params.cuh"
#include "particles/cuda/prepare.cuh"
#include "particles/cuda/source.cuh"
#include "particles/driver.hpp"
#include "particles/head.hpp"
#include "stages/cuda/rows.cuh"

namespace pyfilter::cuda {

// A tile being written.
template <class T, int D, class Source>
struct TileWriter {
  using Code = typename FloatTraits<T>::Code;
  static constexpr std::uint32_t kValueWords = sizeof(T) / 4;
  const Source& source;
  const std::uint16_t* sources;     // nullptr: memory order
  const TileFrame<Code, D>& frame;  // in shared memory; only write_offsets() uses it
  std::uint32_t ordinary, stored, tail;
  unsigned shift, planes;  // of a group's offsets

  __device__ __forceinline__ TileWriter(const Source& of, const PreparedTile<Code, D>& tile, const std::uint16_t* where,
                                        TileFrame<Code, D>& shared)
      : source(of), sources(where), frame(shared), ordinary(tile.ordinary), tail(tile.tail) {
    if (threadIdx.x == 0 && !tile.offsets) shared = tile.frame;
    stored = tile.specials + (tail != 0 ? 1 : 0);
    shift = tile.ordered ? tile.frame.layout.shift
                         : max(max(tile.frame.width[0], tile.frame.width[1]), tile.frame.width[2]);
    planes = tile.frame.planes(shift);
  }
  __device__ __forceinline__ const T* particle(std::uint32_t position) const {
    return source.at(sources != nullptr ? sources[position] : position);
  }
  __device__ __forceinline__ std::uint32_t offset_words() const { return (ordinary + kGroup - 1) / kGroup * planes; }
  __device__ __forceinline__ std::uint32_t verbatim_words() const { return 1 + source.count * D * kValueWords; }

  // Writes `count` particles from a position on as values.
  __device__ __forceinline__ void write_values(std::uint32_t position, std::uint32_t count, std::uint32_t* to) const {
    for (std::uint32_t i = threadIdx.x; i < count * D; i += kTileThreads) {
      const auto bits = std::bit_cast<Code>(particle(position + i / D)[i % D]);
      to[i * kValueWords] = static_cast<std::uint32_t>(bits);
      if constexpr (kValueWords == 2) to[2 * i + 1] = static_cast<std::uint32_t>(bits >> 32);
    }
  }
  // Writes the head, except its first word.
  __device__ __forceinline__ void write_head(std::uint32_t* out, const TileFrame<Code, D>& of) const {
    std::uint32_t at = 1;
    if (tail != 0) out[at++] = tail - 1;
    if (ordinary == 0) return;
    out[at++] = of.width[0] | of.width[1] << 8 | of.width[2] << 16;
#pragma unroll
    for (int d = 0; d < D; ++d) {
      out[at++] = static_cast<std::uint32_t>(of.origin[d]);
      if constexpr (kValueWords == 2) out[at++] = static_cast<std::uint32_t>(of.origin[d] >> 32);
    }
  }
  // Writes planes of offsets from codes, one warp a group.
  __device__ __forceinline__ void write_offsets(const Quantizer<T>& p, std::uint32_t* out) const {
    const unsigned lane = threadIdx.x % 32;
    const std::uint32_t groups = (ordinary + kGroup - 1) / kGroup;
#pragma unroll 1
    for (std::uint32_t g = threadIdx.x / 32; g < groups; g += kTileWarps) {
      const std::uint32_t i = g * kGroup + lane;
      const bool mine = i < ordinary;
      std::uint32_t* to = out + g * planes;
      Code q[D] = {};
      if (mine) code_particle<D>(p, particle(i), q);
#pragma unroll
      for (int d = 0; d < D; ++d) {
        const unsigned bits = frame.planes(d, shift);
        const Code offset = mine ? frame.offset(q, d, bits) : Code{0};
        const std::uint32_t low = transpose_warp(static_cast<std::uint32_t>(offset));
        if (lane < bits) to[lane] = low;
        if constexpr (kValueWords == 2) {
          if (bits > 32) {
            const std::uint32_t high = transpose_warp(static_cast<std::uint32_t>(offset >> 32));
            if (32 + lane < bits) to[32 + lane] = high;
          }
        }
        to += bits;
      }
    }
  }
};

// Writes planes of offsets, the same number for each group.
__device__ __forceinline__ void pack_offsets(const std::uint32_t* offsets, std::uint32_t groups, unsigned all,
                                             std::uint32_t* out) {
  const std::uint32_t group = threadIdx.x / kParts;
  std::uint32_t numbers[kItems];
  take_words(offsets, numbers);
  write_parts(numbers, group < groups ? all : 0, out + group * all);
}

template <class T, int D, std::uint8_t kOrder>
__global__ void __launch_bounds__(kTileThreads, 2) encode_particles_kernel(const __grid_constant__ ParticleParams job) {
  using Code = typename FloatTraits<T>::Code;
  constexpr bool kSorts = kOrder != kOrderKept, kHeld = kOrder != kOrderChunk;
  extern __shared__ uint4 shared_memory[];
  auto& space = *reinterpret_cast<SortingSpace<Code, D>*>(shared_memory);
  const std::uint32_t chunk = job.first_chunk + blockIdx.y, number = chunk * job.base.tiles + blockIdx.x;
  const ChunkPlan& plan = job.base.plans[chunk];
  using Source = TileSource<T, D, kOrder == kOrderChunk>;
  const Source source(job, chunk, blockIdx.x);
  HeldValues<T, D> values;  // loaded at once, before the tile's kind is known
  if (kHeld && source.count == kTileParticles) values.take(source, 0);
  const TileMover mover(job, space.moved_tile);
  if (plan.quantise == 0 || (!kSorts && !job.is_order(job.ordered[chunk]))) return mover.move();
  PreparedTile<Code, D> tile;
  prepare_tile<kSorts, kHeld, D>(plan.template quantizer<T>(), source, values, space, tile);
  mover.wait();
  const TileWriter<T, D, Source> writer(source, tile, kSorts && !tile.offsets ? space.sources : nullptr, space.frame);
  std::uint32_t* to = job.slot(blockIdx.y, blockIdx.x);
  const std::uint32_t verbatim_words = writer.verbatim_words();
  if (threadIdx.x == 0) writer.write_head(to, tile.frame);
  KeyWriter keys({space.rows, space.run_steps, space.run_starts, space.keys}, tile.ordinary);
  std::uint32_t numbers[kItems], key_words = 0, words = verbatim_words;
  const bool keyed = tile.ordered && tile.frame.layout.bits() != 0 && tile.ordinary != 0,
             tried = tile.ordered || writer.shift != 0;
  if (tried) {
    if (keyed) key_words = keys.template plan < kOrder == kOrderTile > (numbers);
    words = tile_words<Code, D>(tile.ordinary, writer.stored, tile.tail, key_words, writer.planes);
  }
  const bool verbatim = words >= verbatim_words;
  if (threadIdx.x == 0) {
    job.sizes[number] = min(words, verbatim_words);
    to[0] = verbatim ? kVerbatimTile : head_word(tile.ordinary, writer.stored, tile.tail, keys.by_runs, writer.shift);
  }
  if (verbatim) {
    __syncthreads();  // the head is written
    writer.write_values(0, source.count, to + 1);
    return mover.move();
  }
  std::uint32_t* const key_word = to + head_words<Code, D>(tile.ordinary, tile.tail);
  to = key_word + key_words;
  if (writer.planes != 0) {
    if (tile.offsets) {
      pack_offsets(space.offsets, (tile.ordinary + kGroup - 1) / kGroup, writer.planes, to);
    } else {
      __syncthreads();  // the frame is computed
      writer.write_offsets(plan.template quantizer<T>(), to);
    }
  }
  writer.write_values(tile.ordinary, writer.stored, to + writer.offset_words());
  if (!keyed) return mover.move();
  const bool rows_are_free = tile.offsets;  // tile.offsets: the rows are free
  keys.write(numbers, [&] {
    if (rows_are_free) mover.fetch(space.offsets);
  });
  mover.wait();
  __syncthreads();
#pragma unroll 1
  for (std::uint32_t i = threadIdx.x; i < key_words; i += kTileThreads) key_word[i] = space.rows[i];
  if (rows_are_free)
    mover.put(space.offsets);
  else
    mover.move();
}

// Order kept: checks whether sampled tiles are in sorted order. A thread block a tile, a grid row a chunk.
template <class T, int D>
__global__ void __launch_bounds__(kTileThreads) check_order_kernel(const __grid_constant__ ParticleParams job) {
  using Code = typename FloatTraits<T>::Code;
  __shared__ BlockSpace<Code, D> space;
  const std::uint32_t chunk = blockIdx.y;
  const ChunkPlan& plan = job.base.plans[chunk];
  if (plan.quantise == 0) return;
  const auto tile_number = static_cast<std::uint32_t>(std::uint64_t{blockIdx.x} * job.base.tiles / gridDim.x);
  PreparedTile<Code, D> tile;
  prepare_tile<false, false, D>(plan.template quantizer<T>(), TileSource<T, D, false>(job, chunk, tile_number),
                                HeldValues<T, D>(), space, tile);
  if (threadIdx.x == 0 && tile.ordered) atomicAdd(job.ordered + chunk, 1u);
}

}  // namespace pyfilter::cuda
