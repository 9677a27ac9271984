// SPDX-License-Identifier: BSD-3-Clause
// Sampled tiles on a GPU, for the trainer (train/trainer.hpp): each warp of a thread block takes a tile at a time.
// cpu/tiles.hpp is the CPU's.
#pragma once

#include <cstdint>

#include "adaptive/cuda/encode_tile.cuh"
#include "adaptive/train/sample.hpp"
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
  for (std::uint32_t from = 0; from < head.values; from += every)
    for (std::uint32_t k = from; k < from + kCountedAtOnce && k < head.values; k += kRows)
      count_together(counts.of[0],
                     k + this_lane() < head.values ? cell_of_record(records.values[k + this_lane()], &raw) : kNothing);
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

template <class T>
class WarpTiles {
 public:
  using Encoder = TileEncoder<T, UnitMode::flat, true>;

  const AdaptiveEncode& job;
  const EncodeOrder& order;
  const AdaptiveGrid& grid;
  TileMemory* memories;  // of each warp
  std::uint8_t* scratch;
  std::size_t scratch_bytes;  // of each warp
  SampleMemory memory;
  const T* values;
  ChunkScale<T> scale;
  std::uint32_t sampled = ~0u, sample_count = 0;  // the pass of memory.samples, and their number

  __device__ __forceinline__ std::uint32_t warp() const { return threadIdx.x / 32; }
  __device__ __forceinline__ const AdaptiveTaps& taps() const { return job.taps_of(order); }
  __device__ __forceinline__ EncodeScratch own_scratch() const {
    return EncodeScratch::in(scratch + warp() * scratch_bytes, order.scratch);
  }
  __device__ __forceinline__ Encoder encoder() const {
    return {memories[warp()], grid, taps(), own_scratch(), nullptr, values, scale, false, true, false};
  }

  __device__ void measure_activity(const TrainTeam&, float* activity) const {
    const auto inverse = static_cast<float>(1 / scale.step);
    for (std::uint32_t number = warp(); number < grid.tiles(); number += kTrainWarps) {
      const AdaptiveTile tile = grid.tile(number);
      std::uint32_t sum = 0;
      for (std::uint32_t z = 0; z < tile.planes; ++z)
        for (std::uint32_t y = 0; y < tile.rows; ++y) {
          const T* const row = values + tile.row(z, y);
          const std::uint32_t length = grid.existing(tile.row(z, y), tile.length(y));
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
    const std::uint32_t slot = most_samples(grid, pass.refining, pass.log2, every);
    auto* const slots = reinterpret_cast<Sample*>(memory.slots);
    team.wait();
    for (std::uint32_t i = warp(); i < count; i += kTrainWarps) {
      const std::uint32_t taken = sample_tile(pass, tiles[i], every, slots + std::size_t{i} * slot);
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
      slot += most_context_samples(grid, log2, every);
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
  static constexpr CellIndex kNoDistance = INT32_MAX;
  static constexpr std::uint32_t kLanesBeside = 8;  // that load the values beside a sample

  template <class Sample>
  __device__ static std::uint32_t pack(const TrainTeam& team, const Sample* from, std::uint32_t count, std::uint32_t at,
                                       Sample* to) {
    const auto* const words = reinterpret_cast<const std::uint32_t*>(from);
    auto* const out = reinterpret_cast<std::uint32_t*>(to + at);
    each(team, count * (sizeof(Sample) / 4), [&](std::uint32_t i) { out[i] = words[i]; });
    return at + count;
  }

  // Fills the cells with the tile's own values, then samples them. Returns the number of samples.
  __device__ std::uint32_t sample_tile(const PassModel& pass, std::uint64_t number, std::uint32_t every,
                                       Sample* to) const {
    Encoder tile = encoder();
    tile.begin(number, false);
    if (!pass.refining) {
      begin_pass(tile.memory, grid.kind, taps(), pass, tile.scratch.unit);
      fill_wave(tile);
      __syncwarp();
      return sample_wave(tile, every, to);
    }
    begin_refining(tile.memory, grid.kind, pass, tile.scratch.unit, nullptr);
    for (const bool samples : {false, true}) {
      std::uint32_t taken = 0, inside = every_of_pass(true, every) / 2;
#pragma unroll 1
      for (std::uint32_t turn = 1; turn <= refining_turns(grid.kind); ++turn) {
        begin_turn(tile.memory.refining, pass, taps(), turn);
        if (samples)
          sample_turn(tile, every_of_pass(true, every), inside, taken, to);
        else
          fill_turn(tile);
      }
      if (samples) return taken;
    }
    return 0;
  }
  // Stores a lane's own value; `kind_at`: its index in the dense array.
  template <class Step>
  __device__ __forceinline__ static void fill_step(const Encoder& tile, const Step& step, std::uint32_t bits,
                                                   const Ints& active, std::size_t at) {
    const Dense& d = tile.memory.dense;
    Floats t = {0};
    bool special = false;
    if (active.v != 0) {
      t.v = d.values[at];
      special = !tile.plain && d.kinds[at] != kCoded;
    }
    const std::uint32_t specials = __ballot_sync(kAllRows, special ? 1 : 0);
    if (specials != 0) t = select(condition_of_bits(specials), step.stand_in(), t);
    __syncwarp();
    step.store(bits, active, t);
    __syncwarp();
  }
  __device__ void fill_wave(Encoder& tile) const {
    auto& wave = tile.memory.wave;
    Place place(wave.layout, tile.memory.lattice.lengths);
    const std::uint32_t steps = wave.layout.steps();
#pragma unroll 1
    for (std::uint32_t step = 0; step < steps; ++step) {
      const Ints active = place.active();
      const std::uint32_t bits = bits_of_condition(active);
      if (bits != 0)
        fill_step(tile,
                  WaveStep<std::remove_reference_t<decltype(wave)>, StepMasks<true>>{wave, place, step, {nullptr}},
                  bits, active, active.v != 0 ? index_of(tile, place) : 0);
      place.next();
      place.cell += wave.layout.step_cells;
    }
  }
  __device__ void fill_turn(Encoder& tile) const {
    Refining refining(tile.memory.refining, tile.memory.pass, taps(), tile.scratch.unit);
    RefinedPlace place(refining.shape, refining.parity, tile.memory.lattice.lengths);
    const std::uint32_t steps = refining.shape.steps();
#pragma unroll 1
    for (std::uint32_t step = 0; step < steps; ++step, place.next()) {
      const Ints active = place.active();
      const std::uint32_t bits = bits_of_condition(active);
      if (bits != 0)
        fill_step(tile, RefinedStep<Refining>(refining, step), bits, active,
                  active.v != 0 ? dense_index(tile.memory.dense, tile.memory.lattice, refining, place) : 0);
    }
  }
  __device__ static std::size_t index_of(const Encoder& tile, const Place& place) {
    return tile.memory.lattice.index(tile.memory.dense, static_cast<std::uint32_t>(place.z.v), this_lane(),
                                     static_cast<std::uint32_t>(place.x.v));
  }
  // Takes a sample of the value at `own` by all lanes: each loads terms of it. Distances of candidates are in wave.tap.
  // beside: the distance of a value beside it in the first lanes, kNoDistance in others.
  __device__ static void take_together(const WaveOf<FlatCells>& wave, const TapList& list, std::uint32_t rest,
                                       std::uint32_t set, bool is_border, const float* own, CellIndex beside,
                                       Sample& sample) {
    const float origin = own[wave.tap[rest]], other = beside != kNoDistance ? own[beside] : origin;
    for (std::uint32_t i = this_lane(); i < kTerms; i += kRows)
      sample.terms[i] = i < list.count ? own[wave.tap[i]] - origin : i == list.count ? own[0] - origin : 0;
    float low = other, high = other;
    for (int apart = 1; apart < static_cast<int>(kLanesBeside); apart *= 2) {
      low = min(low, __shfl_xor_sync(kAllRows, low, apart));
      high = max(high, __shfl_xor_sync(kAllRows, high, apart));
    }
    if (this_lane() == 0) {  // of equal values the origin counts, as on the CPU: a range of 0 is not -0
      sample.range = (high > origin ? high : origin) - (low < origin ? low : origin);
      sample.weight = sample_weight(is_border, sample.range);
      sample.set = set;
    }
  }
  __device__ std::uint32_t sample_wave(Encoder& tile, std::uint32_t every, Sample* to) const {
    auto& wave = tile.memory.wave;
    const TapList& list = taps().causal;
    for (std::uint32_t i = this_lane(); i < list.count; i += kRows) wave.tap[i] = wave.layout.distance(list.of[i]);
    __syncwarp();
    static_assert(kRangeTaps <= kLanesBeside);
    const CellIndex beside = this_lane() < wave.range_taps ? wave.range_tap[this_lane()] : kNoDistance;
    Place place(wave.layout, tile.memory.lattice.lengths);
    const std::uint32_t steps = wave.layout.steps(), every_border = every < 8 ? 1 : every / 8;
    std::uint32_t inside = every / 2, border = 0, taken = 0;
#pragma unroll 1
    for (std::uint32_t step = 0; step < steps; ++step) {
      const Ints active = place.active();
      const bool usual = active.v != 0 && (tile.plain || tile.memory.dense.kinds[index_of(tile, place)] == kCoded);
      const std::uint32_t set = static_cast<std::uint32_t>(place.border(wave.kind).v);
      const bool is_border = set != 0;
      const std::uint32_t borders = __ballot_sync(kAllRows, usual && is_border ? 1 : 0),
                          others = __ballot_sync(kAllRows, usual && !is_border ? 1 : 0);
      const std::uint32_t rank =
          1 + (is_border ? border + popcount(borders & lanes_below()) : inside + popcount(others & lanes_below()));
      const std::uint32_t own_set = set + (is_border ? kBorderSets : 0),
                          rest = rest_tap(list, false, wave.kind, own_set);
      const bool takes = usual && rank % (is_border ? every_border : every) == 0 && rest != kNoTap;
      const std::uint32_t all = __ballot_sync(kAllRows, takes ? 1 : 0);
      for (std::uint32_t left = all; left != 0; left &= left - 1, ++taken) {
        const std::uint32_t lane = static_cast<std::uint32_t>(__ffs(static_cast<int>(left))) - 1;
        const std::uint32_t of = __shfl_sync(kAllRows, own_set, static_cast<int>(lane));
        take_together(wave, list, rest_tap(list, false, wave.kind, of), of, of >= kBorderSets,
                      wave.values.first + place.cell + lane, beside, to[taken]);
      }
      border = (border + popcount(borders)) % every_border;
      inside = (inside + popcount(others)) % every;
      place.next();
      place.cell += wave.layout.step_cells;
    }
    return taken;
  }
  // Samples of the turn that has begun; `inside`: values since the last sample.
  __device__ void sample_turn(Encoder& tile, std::uint32_t every, std::uint32_t& inside, std::uint32_t& taken,
                              Sample* to) const {
    auto& wave = tile.memory.wave;
    const TapList& list = taps().refining;
    Refining refining(tile.memory.refining, tile.memory.pass, taps(), tile.scratch.unit);
    const Refinement& shape = refining.shape;
    for (std::uint32_t i = this_lane(); i < list.count; i += kRows)
      wave.tap[i] = shape.distance(refining.parity, list.of[i]);
    __syncwarp();
    RefinedPlace place(shape, refining.parity, tile.memory.lattice.lengths);
    const std::uint32_t steps = shape.steps(), rest = rest_tap(list, true, shape.kind, refining.parity);
    // both sides along each odd axis
    const std::uint32_t axis = this_lane() / 2;
    const CellIndex beside = axis >= static_cast<std::uint32_t>(shape.kind) || (refining.parity >> axis & 1) == 0
                                 ? kNoDistance
                             : this_lane() % 2 == 0 ? refining.before[axis]
                                                    : refining.behind[axis];
#pragma unroll 1
    for (std::uint32_t step = 0; step < steps; ++step, place.next()) {
      const Ints active = place.active();
      const bool usual =
          active.v != 0 &&
          (tile.plain ||
           tile.memory.dense.kinds[dense_index(tile.memory.dense, tile.memory.lattice, refining, place)] == kCoded);
      const std::uint32_t values = __ballot_sync(kAllRows, usual ? 1 : 0),
                          rank = 1 + inside + popcount(values & lanes_below());
      const std::uint32_t all = __ballot_sync(kAllRows, usual && rank % every == 0 ? 1 : 0);
      for (std::uint32_t left = all; left != 0; left &= left - 1, ++taken) {
        const std::uint32_t lane = static_cast<std::uint32_t>(__ffs(static_cast<int>(left))) - 1;
        take_together(wave, list, rest, refining.parity, false,
                      tile.scratch.unit.values + shape.cell_of_step(refining.parity, step) + shape.cell_of_lane(lane),
                      beside, to[taken]);
      }
      inside = (inside + popcount(values)) % every;
    }
  }
};

}  // namespace pyfilter::cuda
