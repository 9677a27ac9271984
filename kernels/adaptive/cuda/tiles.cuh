// SPDX-License-Identifier: BSD-3-Clause
// Sampled tiles on a GPU, for the trainer (train/trainer.hpp): each warp of a thread block takes a tile at a time.
// cpu/tiles.hpp is the CPU's.
#pragma once

#include <cstdint>

#include "adaptive/cuda/encode_tile.cuh"
#include "adaptive/cuda/sample_tile.cuh"
#include "stages/cuda/block_team.cuh"

namespace pyfilter::cuda {

using TrainTeam = BlockTeam<kTrainThreads>;

// Takes samples for contexts from the steps of a tile.
struct ContextSink {
  ContextSample* to[kMostLevels + 1];
  std::uint32_t counts[kMostLevels + 1];
  std::uint32_t every_value, every, counter, pass;

  __device__ __forceinline__ void begin_turn(std::uint32_t p) {
    pass = p;
    every = every_of_pass(p != 0, every_value);
    counter = 0;
  }
  template <class Tile, class Step>
  __device__ __forceinline__ void take(const Tile& tile, const Step& step, std::uint64_t, const TileStep& s) {
    const std::uint32_t bits = s.bits & ~(s.sentinel | s.exact | s.absent), count = popcount(bits);
    if (counter + count < every) {
      counter += count;
      return;
    }
    const bool own = (bits >> this_lane() & 1) != 0,
               taken = own && (counter + popcount(bits & lanes_below()) + 1) % every == 0;
    const std::uint32_t all = __ballot_sync(kAllRows, taken ? 1 : 0);
    if (taken) {
      ContextSample& sample = to[pass][counts[pass] + popcount(all & lanes_below())];
      float terms[kCodeTaps];  // all are loaded before one is stored
#pragma unroll
      for (std::uint32_t i = 0; i < kCodeTaps; ++i) terms[i] = size_beside(tile, step, i);
#pragma unroll
      for (std::uint32_t i = 0; i < kCodeTaps; ++i) sample.terms[i] = terms[i];
      sample.terms[kRangeFeature] = s.expected.range.v;
      sample.terms[kDistanceFeature] = s.expected.distance.v;
      sample.terms[kConstantFeature] = 1;
      sample.terms[kSizeTerm] = s.size;
      for (std::uint32_t i = kSizeTerm + 1; i < kContextTerms; ++i) sample.terms[i] = 0;
      sample.set = static_cast<std::uint32_t>(s.expected.set.v);
    }
    counts[pass] += popcount(all);
    counter = (counter + count) % every;
  }

 private:
  template <class Tile, class Wave, class Masks>
  PYF_LANES float size_beside(const Tile&, const WaveStep<Wave, Masks>& step, std::uint32_t i) {
    return load_cells(step.wave.sizes, step.at(), step.wave.code_tap[i]).v;
  }
  template <class Tile>
  PYF_LANES float size_beside(const Tile& tile, const RefinedStep<Refining>& step, std::uint32_t i) {
    return load_cells(step.refining.sizes, step.at(), tile.memory.refining.code_at[i]).v;
  }
};

// Counts a number for each lane. Lanes with equal numbers share one addition; kNothing is not counted.
inline constexpr std::uint32_t kNothing = ~0u;
__device__ __forceinline__ void count_together(std::uint32_t* counts, std::uint32_t number) {
  const std::uint32_t same = __match_any_sync(kAllRows, number);
  if (number != kNothing && (same & lanes_below()) == 0) atomicAdd(counts + number, popcount(same));
}

// Counts a tile's records: kCountedAtOnce of each `every`. Called by a warp.
__device__ __forceinline__ void count_records(const TileRecords& records, const TileHead& head, std::uint32_t every,
                                              SymbolCounts& counts) {
  static_assert(kCountedAtOnce % kRows == 0);
  std::uint32_t raw = 0;
  constexpr std::uint32_t kEach = kCountedAtOnce / kRows;
  for (std::uint32_t from = 0; from < head.values; from += every) {
    std::uint32_t own[kEach];  // all are loaded before one is counted
#pragma unroll
    for (std::uint32_t k = 0; k < kEach; ++k) {
      const std::uint32_t i = from + k * kRows + this_lane();
      own[k] = records.values[i < head.values ? i : head.values - 1];
    }
#pragma unroll
    for (std::uint32_t k = 0; k < kEach; ++k) {
      if (from + k * kRows >= head.values) break;
      count_together(counts.of[0],
                     from + k * kRows + this_lane() < head.values ? cell_of_record(own[k], &raw) : kNothing);
    }
  }
  for (std::uint32_t k = 0; k < head.flags; k += kRows) {
    const std::uint32_t flag = k + this_lane() < head.flags ? records.flags[k + this_lane()] : kNothing;
    count_together(counts.masks[0], flag != kNothing ? 2 * (flag & 63) + (flag >> 7) : kNothing);
  }
  __syncwarp();
  raw = warp_sum(raw);
  if (this_lane() != 0) return;
  atomicAdd(&counts.raw_bits, static_cast<unsigned long long>(raw));
  atomicAdd(&counts.stored_bytes, static_cast<unsigned long long>(4 * head.stored));
}

// Shared memory of a block that trains.
struct TrainShared {
  AdaptiveGrid grid;
  union {  // warps code tiles, or all threads sum equations
    TileMemory tiles[kTrainWarps];
    float staged[kStagedNumbers];
  };
};
// Called where the memory is used, as team_space() is.
__device__ __forceinline__ TrainShared& train_shared() {
  extern __shared__ uint4 shared_memory[];
  return *reinterpret_cast<TrainShared*>(shared_memory);
}

template <class T>
class WarpTiles {
 public:
  using Encoder = TileEncoder<T, UnitMode::flat, true>;

  const AdaptiveEncode& job;
  const EncodeOrder& order;
  std::uint8_t* scratch;
  std::size_t scratch_bytes;  // of each warp
  SampleMemory memory;
  const T* values;
  ChunkScale<T> scale;
  TileCrop crop;
  std::uint32_t sampled = ~0u, sample_count = 0;  // the pass of memory.samples, and their number

  __device__ __forceinline__ static const AdaptiveGrid& grid() { return train_shared().grid; }
  __device__ __forceinline__ std::uint32_t warp() const { return threadIdx.x / 32; }
  __device__ __forceinline__ const AdaptiveTaps& taps() const { return job.taps_of(order); }
  __device__ __forceinline__ EncodeScratch own_scratch() const {
    return EncodeScratch::in(scratch + warp() * scratch_bytes, order.scratch);
  }
  __device__ __forceinline__ Encoder encoder() const {
    return {train_shared().tiles[warp()], grid(), taps(), own_scratch(), nullptr, values, scale, crop};
  }

  __device__ void measure_activity(const TrainTeam&, float* activity) const {
    const auto inverse = static_cast<float>(1 / scale.step);
    for (std::uint32_t number = warp(); number < grid().tiles(); number += kTrainWarps) {
      const AdaptiveTile tile = crop.of(grid(), number);
      std::uint32_t sum = 0;
      for (std::uint32_t z = 0; z < tile.planes; ++z)
        for (std::uint32_t y = 0; y < tile.rows; ++y) {
          const T* const row = values + tile.row(z, y);
          const std::uint32_t length = grid().existing(tile.row(z, y), tile.length(y));
#pragma unroll 4
          for (std::uint32_t x = 1 + this_lane(); x < length; x += kRows)
            sum += activity_of(row[(x - 1) * tile.value_stride], row[x * tile.value_stride], inverse);
          if (this_lane() == 0) sum += length / 2;
        }
      sum = warp_sum(sum);
      if (this_lane() == 0) activity[number] = static_cast<float>(sum);
    }
  }

  __device__ SampleList<Sample> sample(const TrainTeam& team, const PassModel& pass, const std::uint64_t* tiles,
                                       std::uint32_t count, std::uint32_t every) {
    const std::uint32_t key = 2 * pass.log2 + (pass.refining ? 1 : 0);
    if (key == sampled) return {memory.samples, sample_count};
    const std::uint32_t slot = most_samples(grid(), crop, pass.refining, pass.log2, every);
    auto* const slots = reinterpret_cast<Sample*>(memory.slots);
    team.wait();
    for (std::uint32_t i = warp(); i < count; i += kTrainWarps) {
      Encoder tile = encoder();
      const std::uint32_t taken =
          TileSampler<Encoder>{tile, taps()}.sample(grid().kind, pass, tiles[i], every, slots + std::size_t{i} * slot);
      if (this_lane() == 0) memory.counts[i] = taken;
    }
    team.wait();
    std::uint32_t at = 0;
    for (std::uint32_t i = 0; i < count; ++i)
      at = pack(team, slots + std::size_t{i} * slot, memory.counts[i], at, memory.samples);
    team.wait();
    sampled = key;
    sample_count = at;
    return {memory.samples, at};
  }

  __device__ void sample_contexts(const TrainTeam& team, TrainSpace& space, const std::uint32_t* trials,
                                  std::uint32_t count, const std::uint64_t* tiles, std::uint32_t length,
                                  std::uint32_t every) {
    std::uint32_t slot = 0, of_pass[kTriedLevels + 1];
    for (std::uint32_t log2 = 0; log2 <= kTriedLevels; ++log2) {
      of_pass[log2] = slot;
      slot += most_context_samples(grid(), crop, log2, every);
    }
    auto* const slots = reinterpret_cast<ContextSample*>(memory.slots);
    team.wait();
    for (std::uint32_t i = warp(); i < count * length; i += kTrainWarps) {
      const AdaptiveModel& model = space.trials[trials[i / length]].model;
      ContextSink sink = {};
      sink.every_value = every;
      for (std::uint32_t p = 0; p <= model.levels; ++p)
        sink.to[p] = slots + std::size_t{i} * slot + of_pass[model.levels - p];
      Encoder tile = encoder();
      const bool masks = tile.begin(tiles[i % length], false) && model.masks;
      tile.code(model, masks, sink);
      if (this_lane() <= kMostLevels) memory.counts[i * (kMostLevels + 1) + this_lane()] = 0;
      __syncwarp();
      if (this_lane() == 0)
        for (std::uint32_t p = 0; p <= model.levels; ++p) memory.counts[i * (kMostLevels + 1) + p] = sink.counts[p];
    }
    team.wait();
    std::uint32_t at = 0;
    for (std::uint32_t k = 0; k < count; ++k) {
      Trial& trial = space.trials[trials[k]];
      for (std::uint32_t p = 0; p <= trial.model.levels; ++p) {
        const std::uint32_t first = at;
        for (std::uint32_t i = k * length; i < (k + 1) * length; ++i)
          at = pack(team, slots + std::size_t{i} * slot + of_pass[trial.model.levels - p],
                    memory.counts[i * (kMostLevels + 1) + p], at, memory.contexts);
        if (team.rank() == 0) trial.samples[p] = {memory.contexts + first, at - first};
      }
    }
    team.wait();
  }

  __device__ void count(const TrainTeam&, TrainSpace& space) const {
    const TileRecords records =
        order.records.in(scratch + warp() * scratch_bytes + EncodeScratch::bytes(order.scratch));
    for (std::uint32_t i = warp(); i < space.jobs; i += kTrainWarps) {
      Trial& trial = space.trials[space.job[i].trial];
      Encoder tile = encoder();
      const TileHead head = record_tile(tile, trial.model, space.job[i].tile, records);
      __syncwarp();
      count_records(records, head, kCountedAtOnce, trial.counts);
      __syncwarp();
    }
  }

 private:
  template <class Sample>
  __device__ static std::uint32_t pack(const TrainTeam& team, const Sample* from, std::uint32_t count, std::uint32_t at,
                                       Sample* to) {
    const auto* const words = reinterpret_cast<const std::uint32_t*>(from);
    auto* const out = reinterpret_cast<std::uint32_t*>(to + at);
    constexpr std::uint32_t kEach = 8;  // loaded together
    const std::uint32_t all = count * (sizeof(Sample) / 4);
    for (std::uint32_t first = 0; first < all; first += kEach * TrainTeam::kSize) {
      std::uint32_t own[kEach];
#pragma unroll
      for (std::uint32_t k = 0; k < kEach; ++k) {
        const std::uint32_t i = first + k * TrainTeam::kSize + team.rank();
        own[k] = words[i < all ? i : all - 1];
      }
#pragma unroll
      for (std::uint32_t k = 0; k < kEach; ++k) {
        const std::uint32_t i = first + k * TrainTeam::kSize + team.rank();
        if (i < all) out[i] = own[k];
      }
    }
    return at + count;
  }
};

}  // namespace pyfilter::cuda
