// SPDX-License-Identifier: BSD-3-Clause
// Tiles of particles to their bytes (docs/format.md, section 12.2); particles/encode.hpp is the same for the CPU. A
// thread block takes a tile, prepares it (prepare.cuh), then some of its threads make the keys' sequences, a thread for
// each group of 32, as many others the planes of offsets. The bytes go to the tile's slot: those of head and
// keys to its start, the others to its end.
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

static_assert(kTileThreads >= 2 * kThreads);

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

  // `count` particles from a position on, as they are, by so many threads of which this is number `thread`.
  __device__ __forceinline__ void write_values(std::uint32_t position, std::uint32_t count, std::uint32_t* to,
                                               std::uint32_t thread, std::uint32_t threads) const {
    for (std::uint32_t i = thread; i < count * D; i += threads) {
      const auto bits = std::bit_cast<Code>(particle(position + i / D)[i % D]);
      to[i * kValueWords] = static_cast<std::uint32_t>(bits);
      if constexpr (kValueWords == 2) to[2 * i + 1] = static_cast<std::uint32_t>(bits >> 32);
    }
  }
  __device__ __forceinline__ void write_head(bool runs, std::uint32_t* out) const {
    std::uint32_t at = 0;
    out[at++] = head_word(ordinary, stored, tail, runs, shift);
    if (tail != 0) out[at++] = tail - 1;
    if (ordinary == 0) return;
    out[at++] = frame.width[0] | frame.width[1] << 8 | frame.width[2] << 16;
#pragma unroll
    for (int d = 0; d < D; ++d) {
      out[at++] = static_cast<std::uint32_t>(frame.origin[d]);
      if constexpr (kValueWords == 2) out[at++] = static_cast<std::uint32_t>(frame.origin[d] >> 32);
    }
  }
  // Planes of offsets from codes, group by group, by kWarps warps of which this is number `warp`.
  __device__ __forceinline__ void write_offsets(const Quantizer<T>& p, std::uint32_t* out, unsigned warp) const {
    const unsigned lane = threadIdx.x % 32, all = planes();
    const std::uint32_t groups = (ordinary + kGroup - 1) / kGroup;
#pragma unroll 1
    for (std::uint32_t g = warp; g < groups; g += kWarps) {
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

// Planes of offsets from rows of them: a thread of a warp makes those of its group in the group's place, then lanes
// copy them. There are `groups`, the first of this thread's warp is `first`.
__device__ __forceinline__ void pack_offsets(std::uint32_t* rows, std::uint32_t first, std::uint32_t groups,
                                             unsigned all, std::uint32_t* out) {
  const unsigned lane = threadIdx.x % 32;
  std::uint32_t* const row = rows + (first + lane) * kRow;
  std::uint32_t words[32];
#pragma unroll
  for (int i = 0; i < 32; ++i) words[i] = row[i];
  const auto word = [&](int i) { return words[i]; };
  const auto pack = [&]<int g>() {
    if (8 * g >= static_cast<int>(all)) return;
    std::uint32_t w[8];
    pack_group<g>(word, w);
#pragma unroll
    for (int k = 0; k < 8; ++k) row[8 * g + k] = w[k];
  };
  pack.template operator()<0>();
  pack.template operator()<1>();
  pack.template operator()<2>();
  pack.template operator()<3>();
  __syncwarp();
  const std::uint32_t last = min(first + 32, groups);
  const std::uint32_t* from = rows + first * kRow + lane;
  std::uint32_t* to = out + first * all + lane;
  if (lane < all) {
#pragma unroll 8
    for (std::uint32_t g = first; g < last; ++g, from += kRow, to += all) *to = *from;
  }
}

template <class T, int D, std::uint8_t kOrder>
__global__ void __launch_bounds__(kTileThreads, 2) encode_particles_kernel(const __grid_constant__ ParticleParams job) {
  using Code = typename FloatTraits<T>::Code;
  constexpr bool kSorts = kOrder != kOrderKept;
  __shared__ BlockSpace<Code, D> space;
  const std::uint32_t number = blockIdx.x, chunk = number / job.base.tiles;
  const ChunkPlan& plan = job.base.plans[chunk];
  if (plan.quantise == 0 || (!kSorts && !job.is_order(job.ordered[chunk]))) return;
  const Quantizer<T> p = plan.template quantizer<T>();
  using Source = TileSource<T, D, kOrder == kOrderChunk>;
  const Source source(job, chunk, number - chunk * job.base.tiles);
  PreparedTile<Code, D> tile;
  prepare_tile<kSorts, D>(p, source, space, tile);
  const TileWriter<T, D, Source> writer(source, tile, kSorts && !tile.offsets ? space.places : nullptr);
  auto* const slot = reinterpret_cast<std::uint32_t*>(job.slots + number * job.slot_bytes);
  const std::uint32_t verbatim_words = writer.verbatim_words(), back_words = writer.back_words();
  bool verbatim = false;
  if (threadIdx.x < kThreads) {
    KeyWriter keys({space.rows, space.run_starts, space.keys}, tile.ordinary);
    std::uint32_t numbers[32], key_words = 0, words = verbatim_words;
    const bool keyed = tile.ordered && tile.frame.layout.bits() != 0 && tile.ordinary != 0;
    if (tile.ordered || writer.shift != 0) {
      if (keyed) key_words = keys.plan(numbers);
      words = tile_words<Code, D>(tile.ordinary, writer.stored, tile.tail, key_words, writer.planes());
    }
    verbatim = words >= verbatim_words;
    if (threadIdx.x == 0) {
      job.notes[number] = {verbatim ? verbatim_words : words, verbatim ? 0 : back_words};
      if (!verbatim) writer.write_head(keys.by_runs, slot);
    }
    if (keyed && !verbatim) {
      keys.write(numbers);
      std::uint32_t* const to = slot + head_words<Code, D>(tile.ordinary, tile.tail);
      for (std::uint32_t i = threadIdx.x; i < key_words; i += kThreads) to[i] = space.rows[i];
    }
  } else if (threadIdx.x < 2 * kThreads && back_words < verbatim_words) {
    const std::uint32_t thread = threadIdx.x - kThreads, warp = thread / 32;
    std::uint32_t* const to = slot + job.slot_bytes / 4 - back_words;
    const unsigned planes = writer.planes();
    if (planes != 0 && tile.offsets)
      pack_offsets(space.offsets, warp * 32, (tile.ordinary + kGroup - 1) / kGroup, planes, to);
    else if (planes != 0)
      writer.write_offsets(p, to, warp);
    writer.write_values(tile.ordinary, writer.stored, to + writer.offset_words(), thread, kThreads);
  }
  // not verbatim is any tile that was sorted whole, for keys take less than what they are made from
  if (__syncthreads_or(verbatim ? 1 : 0) == 0) return;
  if (threadIdx.x == 0) slot[0] = kVerbatimTile;
  writer.write_values(0, source.count, slot + 1, threadIdx.x, kTileThreads);
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
  prepare_tile<false, D>(plan.template quantizer<T>(), TileSource<T, D, false>(job, chunk, tile_number), space, tile);
  if (threadIdx.x == 0 && tile.ordered) atomicAdd(job.ordered + chunk, 1u);
}

}  // namespace pyfilter::cuda
