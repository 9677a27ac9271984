// SPDX-License-Identifier: BSD-3-Clause
// Tiles of particles to their bytes (docs/format.md, section 12.2); particles/encode.hpp is the same for the CPU. A
// thread block takes a tile, prepares it (prepare.cuh), then makes the keys' sequences and the planes of offsets, four
// threads for each group of 32. The bytes go to the tile's slot: those of head and keys to its start, the others to its
// end.
#pragma once

#include <cstdint>

#include "core/particle_driver.hpp"
#include "particles/head.hpp"
#include "stages/cuda/particles/keys.cuh"
#include "stages/cuda/particles/params.cuh"
#include "stages/cuda/particles/prepare.cuh"
#include "stages/cuda/particles/rows.cuh"
#include "stages/cuda/particles/source.cuh"

namespace pyfilter::cuda {

// A tile that is being written.
template <class T, int D, class Source>
struct TileWriter {
  using Code = typename FloatTraits<T>::Code;
  static constexpr std::uint32_t kValueWords = sizeof(T) / 4;
  const Source& source;
  const std::uint16_t* places;  // nullptr: in the order of memory
  const TileFrame<Code, D>& frame;
  std::uint32_t ordinary, stored, tail;
  unsigned shift;

  __device__ __forceinline__ TileWriter(const Source& of, const PreparedTile<Code, D>& tile, const std::uint16_t* where)
      : source(of), places(where), frame(tile.frame), ordinary(tile.ordinary), tail(tile.tail) {
    stored = tile.specials + (tail != 0 ? 1 : 0);
    shift = tile.ordered ? frame.layout.shift : max(max(frame.width[0], frame.width[1]), frame.width[2]);
  }
  __device__ __forceinline__ const T* particle(std::uint32_t position) const {
    return source.at(places != nullptr ? places[position] : position);
  }
  __device__ __forceinline__ unsigned planes() const { return frame.planes(shift); }
  __device__ __forceinline__ std::uint32_t offset_words() const { return (ordinary + kGroup - 1) / kGroup * planes(); }
  // Of offsets and of particles as they are: what follows the keys.
  __device__ __forceinline__ std::uint32_t back_words() const { return offset_words() + stored * D * kValueWords; }
  __device__ __forceinline__ std::uint32_t verbatim_words() const { return 1 + source.count * D * kValueWords; }

  // `count` particles from a position on, as they are.
  __device__ __forceinline__ void write_values(std::uint32_t position, std::uint32_t count, std::uint32_t* to) const {
    for (std::uint32_t i = threadIdx.x; i < count * D; i += kTileThreads) {
      const auto bits = std::bit_cast<Code>(particle(position + i / D)[i % D]);
      to[i * kValueWords] = static_cast<std::uint32_t>(bits);
      if constexpr (kValueWords == 2) to[2 * i + 1] = static_cast<std::uint32_t>(bits >> 32);
    }
  }
  // The head but for its first word.
  __device__ __forceinline__ void write_head(std::uint32_t* out) const {
    std::uint32_t at = 1;
    if (tail != 0) out[at++] = tail - 1;
    if (ordinary == 0) return;
    out[at++] = frame.width[0] | frame.width[1] << 8 | frame.width[2] << 16;
#pragma unroll
    for (int d = 0; d < D; ++d) {
      out[at++] = static_cast<std::uint32_t>(frame.origin[d]);
      if constexpr (kValueWords == 2) out[at++] = static_cast<std::uint32_t>(frame.origin[d] >> 32);
    }
  }
  // Planes of offsets from codes, group by group, a warp each.
  __device__ __forceinline__ void write_offsets(const Quantizer<T>& p, std::uint32_t* out) const {
    const unsigned lane = threadIdx.x % 32, all = planes();
    const std::uint32_t groups = (ordinary + kGroup - 1) / kGroup;
#pragma unroll 1
    for (std::uint32_t g = threadIdx.x / 32; g < groups; g += kTileWarps) {
      const std::uint32_t i = g * kGroup + lane;
      const bool mine = i < ordinary;
      std::uint32_t* to = out + g * all;
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

// Planes of offsets from rows of them, as many of each group as there are in all.
__device__ __forceinline__ void pack_offsets(const std::uint32_t* rows, std::uint32_t groups, unsigned all,
                                             std::uint32_t* out) {
  const std::uint32_t* const row = rows + row_index(first_number());
  const std::uint32_t group = threadIdx.x / kParts;
  std::uint32_t numbers[kItems];
#pragma unroll
  for (int i = 0; i < kItems; ++i) numbers[i] = row[i];
  write_parts(numbers, group < groups ? all : 0, out + group * all);
}

template <class T, int D, std::uint8_t kOrder>
__global__ void __launch_bounds__(kTileThreads, 2) encode_particles_kernel(const __grid_constant__ ParticleParams job) {
  using Code = typename FloatTraits<T>::Code;
  constexpr bool kSorts = kOrder != kOrderKept;
  extern __shared__ uint4 shared_memory[];
  auto& space = *reinterpret_cast<SortingSpace<Code, D>*>(shared_memory);
  const std::uint32_t number = blockIdx.x, chunk = number / job.base.tiles;
  const ChunkPlan& plan = job.base.plans[chunk];
  if (plan.quantise == 0 || (!kSorts && !job.is_order(job.ordered[chunk]))) return;
  const Quantizer<T> p = plan.template quantizer<T>();
  using Source = TileSource<T, D, kOrder == kOrderChunk>;
  const Source source(job, chunk, number - chunk * job.base.tiles);
  PreparedTile<Code, D> tile;
  prepare_tile<kSorts, kOrder == kOrderTile, D>(p, source, space, tile);
  const TileWriter<T, D, Source> writer(source, tile, kSorts && !tile.offsets ? space.places : nullptr);
  auto* const slot = reinterpret_cast<std::uint32_t*>(job.slots + number * job.slot_bytes);
  const std::uint32_t verbatim_words = writer.verbatim_words(), back_words = writer.back_words();
  if (threadIdx.x == 0) writer.write_head(slot);  // first, since nothing else needs the frame any more
  KeyWriter keys({space.rows, space.run_starts, space.keys}, tile.ordinary);
  std::uint32_t numbers[kItems], key_words = 0, words = verbatim_words;
  const bool keyed = tile.ordered && tile.frame.layout.bits() != 0 && tile.ordinary != 0;
  if (tile.ordered || writer.shift != 0) {
    if (keyed) key_words = keys.plan(numbers);
    words = tile_words<Code, D>(tile.ordinary, writer.stored, tile.tail, key_words, writer.planes());
  }
  const bool verbatim = words >= verbatim_words;
  if (threadIdx.x == 0) {
    job.notes[number] = {verbatim ? verbatim_words : words, verbatim ? 0 : back_words};
    slot[0] = verbatim ? kVerbatimTile : head_word(tile.ordinary, writer.stored, tile.tail, keys.by_runs, writer.shift);
  }
  if (verbatim) {
    __syncthreads();  // the head is there
    writer.write_values(0, source.count, slot + 1);
    return;
  }
  std::uint32_t* const back = slot + job.slot_bytes / 4 - back_words;
  if (writer.planes() != 0) {
    if (tile.offsets)
      pack_offsets(space.offsets, (tile.ordinary + kGroup - 1) / kGroup, writer.planes(), back);
    else
      writer.write_offsets(p, back);
  }
  writer.write_values(tile.ordinary, writer.stored, back + writer.offset_words());
  if (keyed) {
    keys.write(numbers);
    std::uint32_t* const to = slot + head_words<Code, D>(tile.ordinary, tile.tail);
    for (std::uint32_t i = threadIdx.x; i < key_words; i += kTileThreads) to[i] = space.rows[i];
  }
}

// Order kept: whether sampled tiles are in order. A thread block each, a grid row for each chunk.
template <class T, int D>
__global__ void __launch_bounds__(kTileThreads) check_order_kernel(const __grid_constant__ ParticleParams job) {
  using Code = typename FloatTraits<T>::Code;
  __shared__ BlockSpace<Code, D> space;
  const std::uint32_t chunk = blockIdx.y;
  const ChunkPlan& plan = job.base.plans[chunk];
  if (plan.quantise == 0) return;
  const auto tile_number = static_cast<std::uint32_t>(std::uint64_t{blockIdx.x} * job.base.tiles / gridDim.x);
  PreparedTile<Code, D> tile;
  prepare_tile<false, false, D>(plan.template quantizer<T>(), TileSource<T, D, false>(job, chunk, tile_number), space,
                                tile);
  if (threadIdx.x == 0 && tile.ordered) atomicAdd(job.ordered + chunk, 1u);
}

}  // namespace pyfilter::cuda
