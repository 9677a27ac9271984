// SPDX-License-Identifier: BSD-3-Clause
// Tiles of particles, prepared (prepare.cuh), to their bytes (docs/format.md, section 12.2); particles/encode.hpp is
// the same for the CPU. A thread block takes a tile: keys by a thread for each group of 32, offsets by a lane for each
// particle. The bytes go to the tile's slot.
#pragma once

#include <cstdint>

#include "particles/head.hpp"
#include "stages/cuda/particles/params.cuh"
#include "stages/cuda/particles/rows.cuh"
#include "stages/cuda/particles/sequence.cuh"
#include "stages/cuda/particles/source.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kMostRuns = kTileParticles - kTileParticles / 4;  // that are worth a try

struct ParticleEncodeSpace {
  std::uint32_t rows[kRowWords];  // keys
  std::uint32_t run_keys[kMostRuns + kMostRuns / kGroup];
  std::uint16_t run_starts[kMostRuns + kMostRuns / kGroup];
  std::uint32_t unary[kUnaryWords];
  Exchange changes;
  SequenceExchange plain, gaps, counts;
};

// A tile that is being written.
template <class T, int D>
struct TileWriter {
  using Code = typename FloatTraits<T>::Code;
  static constexpr std::uint32_t kValueWords = sizeof(T) / 4;
  TileSource<T, D> source;
  const std::uint16_t* places;  // nullptr: in the order of memory
  std::uint32_t* out;
  TileFrame<Code, D> frame;
  std::uint32_t ordinary, stored, tail;
  unsigned shift;

  __device__ __forceinline__ TileWriter(const ParticleParams& job, std::uint32_t number, std::uint32_t chunk,
                                        const ParticleNote& note)
      : source(job, chunk, number - chunk * job.base.tiles),
        places(job.order != 0 ? job.places + std::size_t{number} * kTileParticles : nullptr),
        out(reinterpret_cast<std::uint32_t*>(job.slots + number * job.slot_bytes)) {
    tail = note.tail;
    ordinary = source.count - tail - note.specials;
    stored = note.specials + (tail != 0 ? 1 : 0);
#pragma unroll
    for (int d = 0; d < D; ++d) {
      frame.origin[d] = static_cast<Code>(note.origin[d]);
      frame.width[d] = note.width[d];
    }
    frame.layout = make_layout(frame.width, lowest_shift(frame.width));
    shift = note.ordered != 0 ? frame.layout.shift : max(max(frame.width[0], frame.width[1]), frame.width[2]);
  }
  __device__ __forceinline__ const T* particle(std::uint32_t position) const {
    return source.at(places != nullptr ? places[position] : position);
  }
  __device__ __forceinline__ unsigned planes() const { return frame.planes(shift); }
  __device__ __forceinline__ std::uint32_t verbatim_words() const { return 1 + source.count * D * kValueWords; }

  // `count` particles from a position on, as they are.
  __device__ __forceinline__ void write_values(std::uint32_t position, std::uint32_t count, std::uint32_t at) const {
    for (std::uint32_t i = threadIdx.x; i < count * D; i += kThreads) {
      const auto bits = std::bit_cast<Code>(particle(position + i / D)[i % D]);
      out[at + i * kValueWords] = static_cast<std::uint32_t>(bits);
      if constexpr (kValueWords == 2) out[at + 2 * i + 1] = static_cast<std::uint32_t>(bits >> 32);
    }
  }
  __device__ __forceinline__ void write_head(bool runs) const {
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
  // Planes of the offsets, group by group, a warp each; `ready` has those of all axes together, or is nullptr.
  __device__ __forceinline__ void write_offsets(const Quantizer<T>& p, const std::uint32_t* ready,
                                                std::uint32_t at) const {
    const unsigned lane = threadIdx.x % 32, all = planes();
    const std::uint32_t groups = (ordinary + kGroup - 1) / kGroup;
#pragma unroll 1
    for (std::uint32_t g = threadIdx.x / 32; g < groups; g += kWarps) {
      const std::uint32_t i = g * kGroup + lane;
      const bool mine = i < ordinary;
      std::uint32_t* to = out + at + g * all;
      Code q[D] = {};
      if (mine && ready == nullptr) code_particle<D>(p, particle(i), q);
      if (all <= 32) {
        const std::uint32_t own = !mine ? 0 : ready != nullptr ? ready[i] : frame.offsets(q, shift);
        const std::uint32_t plane = transpose_warp(own);
        if (lane < all) to[lane] = plane;
        continue;
      }
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

// The keys of a tile as a sequence or two, from space.rows.
struct KeyWriter {
  ParticleEncodeSpace& space;
  std::uint32_t ordinary, runs;
  ThreadSequence plain, gaps, counts;
  bool by_runs;

  __device__ __forceinline__ static std::uint32_t here(std::uint32_t count) {
    return min(count - min(count, threadIdx.x * kGroup), kGroup);
  }
  // Differences of neighbouring keys.
  __device__ __forceinline__ std::uint32_t take_keys(std::uint32_t (&numbers)[32]) const {
    const std::uint32_t* const row = space.rows + threadIdx.x * kRow;
    const std::uint32_t count = here(ordinary);
    std::uint32_t before = threadIdx.x != 0 && count != 0 ? row[-2] : 0, changes = 0;
#pragma unroll
    for (unsigned i = 0; i < 32; ++i) {
      const std::uint32_t key = row[i];
      numbers[i] = i < count ? key - before : 0;
      changes += numbers[i] != 0 ? 1 : 0;
      before = key;
    }
    return changes;
  }
  __device__ __forceinline__ void take_gaps(std::uint32_t (&numbers)[32]) const {
    const std::uint32_t* const row = space.run_keys + threadIdx.x * kRow;
    const std::uint32_t count = here(runs);
    std::uint32_t before = threadIdx.x != 0 && count != 0 ? row[-2] : ~0u;
#pragma unroll
    for (unsigned i = 0; i < 32; ++i) {
      const std::uint32_t key = i < count ? row[i] : 0;
      numbers[i] = i < count ? key - before - 1 : 0;
      before = key;
    }
  }
  __device__ __forceinline__ void take_counts(std::uint32_t (&numbers)[32]) const {
    const std::uint16_t* const row = space.run_starts + threadIdx.x * kRow;
    const std::uint32_t count = here(runs), first = threadIdx.x * kGroup;
    std::uint32_t start = count != 0 ? row[0] : 0;
#pragma unroll
    for (unsigned i = 0; i < 32; ++i) {
      const bool last = first + i + 1 >= runs;
      const std::uint32_t next = i >= count || last ? ordinary : i == 31 ? row[kRow] : row[i + 1];
      numbers[i] = i < count ? next - start - 1 : 0;
      start = next;
    }
  }
  // Decides how; returns the words that keys take.
  __device__ __forceinline__ std::uint32_t plan() {
    std::uint32_t numbers[32], all = 0;
    const std::uint32_t first_key = space.rows[0];
    std::uint32_t changes = take_keys(numbers);
    if (threadIdx.x == 0 && first_key == 0) ++changes;  // the first particle starts a run
    plain = plan_numbers(numbers, ordinary, space.plain);
    bool none = false;
    const std::uint32_t before = block_sum_before(changes, space.changes, &all, &none);
    runs = all;
    by_runs = false;
    const std::uint32_t words = plain.size.words();
    if (!may_have_runs(ordinary, runs)) return words;
    std::uint32_t run = before, key = 0;
    const std::uint32_t* const row = space.rows + threadIdx.x * kRow;
#pragma unroll
    for (unsigned i = 0; i < 32; ++i) {
      key = row[i];
      if (numbers[i] == 0 && (threadIdx.x != 0 || i != 0)) continue;
      if (threadIdx.x * kGroup + i >= ordinary) continue;
      space.run_keys[row_index(run)] = key;
      space.run_starts[row_index(run)] = static_cast<std::uint16_t>(threadIdx.x * kGroup + i);
      ++run;
    }
    __syncthreads();
    take_gaps(numbers);
    gaps = plan_numbers(numbers, runs, space.gaps);
    take_counts(numbers);
    counts = plan_numbers(numbers, runs, space.counts);
    const std::uint32_t with_runs = 1 + gaps.size.words() + counts.size.words();
    by_runs = words > with_runs;
    return by_runs ? with_runs : words;
  }
  __device__ __forceinline__ void clear() const {
    for (std::uint32_t i = threadIdx.x; i < kUnaryWords; i += kThreads) space.unary[i] = 0;
    __syncthreads();
  }
  __device__ __forceinline__ void write(std::uint32_t* out) const {
    std::uint32_t numbers[32];
    clear();
    if (!by_runs) {
      take_keys(numbers);
      write_numbers(numbers, plain, space.unary, out);
      return;
    }
    if (threadIdx.x == 0) out[0] = runs;
    take_gaps(numbers);
    write_numbers(numbers, gaps, space.unary, out + 1);
    clear();
    take_counts(numbers);
    write_numbers(numbers, counts, space.unary, out + 1 + gaps.size.words());
  }
};

template <class T, int D>
__global__ void __launch_bounds__(kThreads, 6) encode_particles_kernel(const __grid_constant__ ParticleParams job) {
  using Code = typename FloatTraits<T>::Code;
  __shared__ ParticleEncodeSpace space;
  const std::uint32_t number = blockIdx.x, chunk = number / job.base.tiles;
  const ChunkPlan& plan = job.base.plans[chunk];
  if (plan.quantise == 0) return;
  const ParticleNote note = job.notes[number];
  const TileWriter<T, D> tile(job, number, chunk, note);
  KeyWriter keys = {space, tile.ordinary, 0, {}, {}, {}, false};
  std::uint32_t key_words = 0, words = tile.verbatim_words();
  const bool keyed = note.ordered != 0 && tile.frame.layout.bits() != 0 && tile.ordinary != 0;
  if (note.ordered != 0 || tile.shift != 0) {
    if (keyed) {
      const std::uint32_t* const from = job.keys + std::size_t{number} * kTileParticles;
      for (std::uint32_t i = threadIdx.x; i < tile.ordinary; i += kThreads) space.rows[row_index(i)] = from[i];
      __syncthreads();
      key_words = keys.plan();
    }
    words = tile_words<Code, D>(tile.ordinary, tile.stored, tile.tail, key_words, tile.planes());
  }
  const bool verbatim = words >= tile.verbatim_words();
  if (verbatim) words = tile.verbatim_words();
  if (threadIdx.x == 0) job.notes[number].words = words;
  if (verbatim) {
    if (threadIdx.x == 0) tile.out[0] = kVerbatimTile;
    tile.write_values(0, tile.source.count, 1);
    return;
  }
  if (threadIdx.x == 0) tile.write_head(keys.by_runs);
  std::uint32_t at = head_words<Code, D>(tile.ordinary, tile.tail);
  if (keyed) keys.write(tile.out + at);
  at += key_words;
  if (tile.planes() != 0)
    tile.write_offsets(plan.template quantizer<T>(),
                       note.has_offsets != 0 ? job.offsets + std::size_t{number} * kTileParticles : nullptr, at);
  at += (tile.ordinary + kGroup - 1) / kGroup * tile.planes();
  if (tile.stored != 0) tile.write_values(tile.ordinary, tile.stored, at);
}

}  // namespace pyfilter::cuda
