// SPDX-License-Identifier: BSD-3-Clause
// Sampled tiles on the CPU, for the trainer (train/trainer.hpp): their activity, samples for weights and contexts, and
// counts of symbols. Threads take different tiles; samples stay in the order of tiles. Not part of the format.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <vector>

#include "adaptive/cpu/tile_threads.hpp"
#include "adaptive/train/trainer.hpp"

PYF_BEGIN_TARGET

inline void add_counts(const SymbolCounts& own, SymbolCounts& to) {
  for (std::uint32_t level = 0; level < kContextLevels; ++level)
    for (std::uint32_t symbol = 0; symbol < kSymbols; ++symbol) to.of[level][symbol] += own.of[level][symbol];
  to.raw_bits += own.raw_bits;
  to.stored_bytes += own.stored_bytes;
  for (std::uint32_t context = 0; context < kMaskContexts; ++context)
    for (std::uint32_t k = 0; k < 2; ++k) to.masks[context][k] += own.masks[context][k];
}

template <class T>
class CpuTiles {
 public:
  CpuTiles(const AdaptivePlan& plan, const void* values, std::uint8_t* scratch, TrainSpace& space)
      : plan_(plan), values_(values), crop_(plan.tiles), worker_{Work(scratch)}, space_(space) {}

  void measure_activity(const Alone&, float* activity) const {
    const auto inverse = static_cast<float>(1 / plan_.step);
    threads_.each(plan_.tiles.tiles(), [&](std::uint64_t number, TileWorker&) {
      const AdaptiveTile tile = crop_of(number);
      std::uint64_t sum = 0;
      for (std::uint32_t z = 0; z < tile.planes; ++z)
        for (std::uint32_t y = 0; y < tile.rows; ++y) {
          const std::uint64_t first = tile.row(z, y);
          const std::uint32_t count = plan_.tiles.existing(first, tile.length(y));
          std::uint32_t row = 0;
          for (std::uint32_t x = 1; x < count; ++x)
            row += activity_of(value_at<T>(values_, first + (x - 1) * tile.value_stride),
                               value_at<T>(values_, first + x * tile.value_stride), inverse);
          sum += row + count / 2;
        }
      activity[number] = static_cast<float>(sum);
    });
  }

  // Samples for the weights of a pass; valid until the next call.
  SampleList<Sample> sample(const Alone&, const PassModel& pass, const std::uint64_t* tiles, std::uint32_t count,
                            std::uint32_t every) {
    std::vector<Sample>& samples = worker_.memory.samples;
    const std::uint32_t key = 2 * pass.log2 + (pass.refining ? 1 : 0);
    if (key == sampled_) return {samples.data(), static_cast<std::uint32_t>(samples.size())};
    coded_.model = nullptr;
    samples.clear();
    const bool shared = threads_.share(count);
    std::vector<std::vector<Sample>> of_tile(shared ? count : 0);
    threads_.each(count, [&](std::uint64_t i, TileWorker& worker) {
      Work& work = worker.work;
      work.spread_tile = Work::kNoTile;
      load_tile<T>(plan_, crop_of(tiles[i]), values_, work.dense);
      const Lattice lattice(work.dense, plan_.tiles.kind, pass.log2);
      begin_pass(work, plan_.tiles.kind, pass, lattice);
      for (std::uint32_t turn = 1; turn <= work.turns; ++turn) {
        spread_targets(work, lattice, turn);
        fill_with_targets(work, lattice, turn);
      }
      sample_tile(work, lattice, every, shared ? of_tile[i] : samples);
    });
    for (const std::vector<Sample>& own : of_tile) samples.insert(samples.end(), own.begin(), own.end());
    sampled_ = key;
    const std::size_t numbers = samples.size();
    std::vector<std::uint32_t>& keys = worker_.memory.keys;
    keys.resize(std::max(keys.size(), 2 * numbers));
    space_.equation_space.keys = keys.data();
    space_.equation_space.other = keys.data() + numbers;
    return {samples.data(), static_cast<std::uint32_t>(numbers)};
  }

  // Of one model: a second one's samples would take the memory of the first one's. The last tile's codes stay in the
  // memory of a thread that is alone.
  void sample_contexts(const Alone&, TrainSpace& space, const std::uint32_t* trials, std::uint32_t /*count: 1*/,
                       const std::uint64_t* tiles, std::uint32_t length, std::uint32_t every) {
    Trial& trial = space.trials[trials[0]];
    ContextsOfPasses& contexts = worker_.memory.contexts;
    coded_.model = nullptr;
    for (std::vector<ContextSample>& of_pass : contexts) of_pass.clear();
    const bool shared = threads_.share(length);
    std::vector<ContextsOfPasses> of_tile(shared ? length : 0);
    threads_.each(length, [&](std::uint64_t i, TileWorker& worker) {
      Work& work = worker.work;
      work.spread_tile = Work::kNoTile;
      const AdaptiveTile tile = crop_of(tiles[i]);
      const bool specials = load_tile<T>(plan_, tile, values_, work.dense);
      ContextSampler sampler(work, every);
      ContextsOfPasses& to = shared ? of_tile[i] : contexts;
      const auto see = [&](std::uint32_t p, std::uint32_t number, const auto& step, std::uint32_t bits) {
        sampler.take(number, step, bits, to[p]);
      };
      encode_passes(work, trial.model, false, see, [&](const Lattice&, std::uint32_t) { sampler.end_turn(); });
      if (!shared) coded_ = {trial.model.levels == 0 ? &trial.model : nullptr, tile, specials && trial.model.masks};
    });
    for (const ContextsOfPasses& own : of_tile)
      for (std::uint32_t p = 0; p <= kMostLevels; ++p)
        contexts[p].insert(contexts[p].end(), own[p].begin(), own[p].end());
    std::vector<float>& numbers = worker_.memory.numbers;
    for (std::uint32_t p = 0; p <= kMostLevels; ++p) {
      numbers.resize(std::max(numbers.size(), contexts[p].size()));
      trial.samples[p] = {contexts[p].data(), static_cast<std::uint32_t>(contexts[p].size())};
    }
    std::vector<std::uint32_t>& orders = worker_.memory.orders;
    orders.resize(2 * numbers.size());
    space_.context_space.numbers = numbers.data();
    space_.context_space.by_parity.order = orders.data();
    space_.context_space.by_set.order = orders.data() + numbers.size();
  }

  // Counts the symbols of all jobs. Those of a tile follow each other: one thread takes them, so that it loads the tile
  // once, unless tiles are fewer than threads.
  void count(const Alone&, TrainSpace& space) {
    std::vector<std::uint32_t> first;
    for (std::uint32_t i = 0; i < space.jobs; ++i)
      if (i == 0 || space.job[i].tile != space.job[i - 1].tile) first.push_back(i);
    if (first.size() < threads_.most()) {
      first.resize(space.jobs);
      std::iota(first.begin(), first.end(), 0u);
    }
    first.push_back(space.jobs);
    const bool shared = threads_.share(first.size() - 1);
    threads_.each(first.size() - 1, [&](std::uint64_t group, TileWorker& worker) {
      for (std::uint32_t i = first[group]; i < first[group + 1]; ++i) {
        Trial& trial = space.trials[space.job[i].trial];
        count_with(worker, shared, trial.model, crop_of(space.job[i].tile), kCountedAtOnce, nullptr, trial.counts);
      }
    });
  }
  // Counts the symbols of tiles for the tables of a model: kCountedAtOnce of each `every`. `keeps`: codes are kept.
  void count_tiles(const AdaptiveModel& model, const CountedTiles& tiles, bool keeps, SymbolCounts& counts) {
    const bool shared = threads_.share(tiles.count);
    if (keeps) plan_.kept->resize(tiles.count);
    threads_.each(tiles.count, [&](std::uint64_t i, TileWorker& worker) {
      KeptTile* const kept = keeps ? &(*plan_.kept)[i] : nullptr;
      if (keeps) kept->number = tiles.number(i);
      count_with(worker, shared, model, plan_.tiles.tile(tiles.number(i)), tiles.every(), kept, counts);
    });
  }

 private:
  static constexpr std::uint32_t kNoSamples = ~0u;

  AdaptiveTile crop_of(std::uint64_t number) const { return crop_.of(plan_.tiles, number); }

  // shared: other threads add to the same counts.
  void count_with(TileWorker& worker, bool shared, const AdaptiveModel& model, const AdaptiveTile& tile,
                  std::size_t every, KeptTile* kept, SymbolCounts& counts) {
    if (!shared) {
      count_tile(worker, model, tile, every, kept, counts);
      return;
    }
    std::vector<SymbolCounts>& own = worker.memory.counts;
    own.assign(1, SymbolCounts{});
    count_tile(worker, model, tile, every, kept, own[0]);
    const std::lock_guard<std::mutex> lock(counting_);
    add_counts(own[0], counts);
  }
  void count_tile(TileWorker& worker, const AdaptiveModel& model, const AdaptiveTile& tile, std::size_t every,
                  KeptTile* kept, SymbolCounts& counts) {
    AdaptivePlan plan = plan_;
    plan.model = &model;
    TrainMemory& memory = worker.memory;
    if (memory.records.empty()) {
      memory.records.resize(record_bytes(1));
      memory.stored.resize(Work::kDense * sizeof(double));
    }
    UnitRecords r = records_in(memory.records.data(), 1);
    std::uint8_t* stored = memory.stored.data();
    const bool own = &worker == &worker_;
    bool has_masks = own && coded_.masks;
    if (!own || !record_again(model, tile, r, stored))
      has_masks = encode_tile_values<T>(plan, values_, tile, worker.work, r, stored);
    if (own) coded_.model = nullptr;
    std::uint32_t raw = 0;
    for (std::size_t from = 0; from < r.value_count; from += every)
      for (std::size_t k = from; k < std::min(from + kCountedAtOnce, r.value_count); ++k) {
        const std::uint32_t cell = cell_of_record(r.values[k], &raw);
        ++counts.of[cell / kSymbols][cell % kSymbols];
      }
    counts.raw_bits += raw;
    for (std::size_t k = 0; k < r.flag_count; ++k) ++counts.masks[r.flags[k] & 63][r.flags[k] >> 7];
    counts.stored_bytes += static_cast<std::uint64_t>(stored - memory.stored.data());
    if (kept == nullptr) return;
    kept->values.assign(r.values, r.values + r.value_count);
    kept->steps.assign(r.steps, r.steps + r.step_count);
    kept->flags.assign(r.flags, r.flags + r.flag_count);
    kept->stored.assign(memory.stored.data(), stored);
    kept->masks = has_masks;
  }

  // Makes the records of the tile that work_ has the codes of: contexts that were trained since do not change codes.
  // Returns false if it has another tile's, or if some values must be stored.
  bool record_again(const AdaptiveModel& model, const AdaptiveTile& tile, UnitRecords& r, std::uint8_t*& stored) {
    if (coded_.model != &model || !(coded_.tile == tile)) return false;
    Work& work = worker_.work;
    if (mark_misfits<T>(plan_, tile, values_, work.dense) != 0) return false;
    const PassModel& pass = model.passes[0];
    work.wave.set_neighbours(pass, causal_taps(model.kind), causal_codes(model.kind), range_taps(model.kind));
    record_turn<T>(plan_, work, Lattice(work.dense, model.kind, pass.log2), 1, tile, values_, coded_.masks, r, stored);
    return true;
  }

  const AdaptivePlan& plan_;
  const void* values_;
  const TileCrop crop_;
  TileWorker worker_;  // of this thread
  const TileThreads threads_{worker_};
  TrainSpace& space_;
  std::mutex counting_;
  std::uint32_t sampled_ = kNoSamples;  // the pass of the samples
  struct {
    const AdaptiveModel* model = nullptr;
    AdaptiveTile tile = Work::kNoTile;
    bool masks = false;
  } coded_;  // what this thread's memory has the codes of, with a model of one pass
};

PYF_END_TARGET
