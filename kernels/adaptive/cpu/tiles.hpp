// SPDX-License-Identifier: BSD-3-Clause
// Sampled tiles on the CPU, for the trainer (train/trainer.hpp): their activity, samples for weights and contexts, and
// counts of symbols. One tile after the other. Not part of the format.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "adaptive/cpu/sample.hpp"
#include "adaptive/cpu/unit.hpp"
#include "adaptive/train/trainer.hpp"

PYF_BEGIN_TARGET

// Memory of a thread that trains models, kept from chunk to chunk: pages of new memory would take a tenth of the time.
struct TrainMemory {
  std::vector<Sample> samples;
  std::vector<ContextSample> contexts[kMostLevels + 1];  // of the model that is trained
  std::vector<std::uint32_t> keys, orders;               // for the solvers
  std::vector<float> numbers;
  std::vector<std::uint8_t> records, stored;  // of the tile being counted
};
inline TrainMemory& train_memory() {
  thread_local TrainMemory memory;
  return memory;
}

template <class T>
class CpuTiles {
 public:
  CpuTiles(const AdaptivePlan& plan, const void* values, std::uint8_t* scratch, TrainSpace& space)
      : plan_(plan), values_(values), work_(scratch), space_(space) {}

  void measure_activity(const Alone&, float* activity) const {
    const auto inverse = static_cast<float>(1 / plan_.step);
    const std::uint64_t tiles = plan_.tiles.tiles();
    for (std::uint64_t number = 0; number < tiles; ++number) {
      const AdaptiveTile tile = plan_.tiles.tile(number);
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
    }
  }

  // Samples for the weights of a pass; valid until the next call.
  SampleList<Sample> sample(const Alone&, const PassModel& pass, const std::uint64_t* tiles, std::uint32_t count,
                            std::uint32_t every) {
    const std::uint32_t key = 2 * pass.log2 + (pass.refining ? 1 : 0);
    if (key == sampled_) return {memory_.samples.data(), static_cast<std::uint32_t>(memory_.samples.size())};
    coded_.model = nullptr;
    work_.spread_tile = Work::kNoTile;
    memory_.samples.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
      load_tile<T>(plan_, plan_.tiles.tile(tiles[i]), values_, work_.dense);
      const Lattice lattice(work_.dense, plan_.tiles.kind, pass.log2);
      begin_pass(work_, plan_.tiles.kind, pass, lattice);
      for (std::uint32_t turn = 1; turn <= work_.turns; ++turn) {
        spread_targets(work_, lattice, turn);
        fill_with_targets(work_, lattice, turn);
      }
      sample_tile(work_, lattice, every, memory_.samples);
    }
    sampled_ = key;
    const std::size_t numbers = memory_.samples.size();
    memory_.keys.resize(std::max(memory_.keys.size(), 2 * numbers));
    space_.equation_space.keys = memory_.keys.data();
    space_.equation_space.other = memory_.keys.data() + numbers;
    return {memory_.samples.data(), static_cast<std::uint32_t>(memory_.samples.size())};
  }

  // Of one model: a second one's samples would take the memory of the first one's. The last tile's codes stay in work_.
  void sample_contexts(const Alone&, TrainSpace& space, const std::uint32_t* trials, std::uint32_t /*count: 1*/,
                       const std::uint64_t* tiles, std::uint32_t length, std::uint32_t every) {
    Trial& trial = space.trials[trials[0]];
    work_.spread_tile = Work::kNoTile;
    for (std::vector<ContextSample>& of_pass : memory_.contexts) of_pass.clear();
    for (std::uint32_t i = 0; i < length; ++i) {
      const bool specials = load_tile<T>(plan_, plan_.tiles.tile(tiles[i]), values_, work_.dense);
      ContextSampler sampler(work_, every);
      const auto see = [&](std::uint32_t p, std::uint32_t number, const auto& step, std::uint32_t bits) {
        sampler.take(number, step, bits, memory_.contexts[p]);
      };
      encode_passes(work_, trial.model, false, see, [&](const Lattice&, std::uint32_t) { sampler.end_turn(); });
      coded_ = {trial.model.levels == 0 ? &trial.model : nullptr, tiles[i], specials && trial.model.masks};
    }
    for (std::uint32_t p = 0; p <= kMostLevels; ++p) {
      memory_.numbers.resize(std::max(memory_.numbers.size(), memory_.contexts[p].size()));
      trial.samples[p] = {memory_.contexts[p].data(), static_cast<std::uint32_t>(memory_.contexts[p].size())};
    }
    memory_.orders.resize(2 * memory_.numbers.size());
    space_.context_space.numbers = memory_.numbers.data();
    space_.context_space.by_parity.order = memory_.orders.data();
    space_.context_space.by_set.order = memory_.orders.data() + memory_.numbers.size();
  }

  void count(const Alone&, TrainSpace& space) {
    for (std::uint32_t i = 0; i < space.jobs; ++i) {
      Trial& trial = space.trials[space.job[i].trial];
      count_tile(trial.model, space.job[i].tile, kCountedAtOnce, false, trial.counts);
    }
  }
  // Counts the symbols of a tile: kCountedAtOnce of each `every`. `keeps`: the codes are kept.
  void count_tile(const AdaptiveModel& model, std::uint64_t tile, std::size_t every, bool keeps, SymbolCounts& counts) {
    AdaptivePlan plan = plan_;
    plan.model = &model;
    if (memory_.records.empty()) {
      memory_.records.resize(record_bytes(1));
      memory_.stored.resize(Work::kDense * sizeof(double));
    }
    UnitRecords r = records_in(memory_.records.data(), 1);
    std::uint8_t* stored = memory_.stored.data();
    bool has_masks = coded_.masks;
    if (!record_again(model, tile, r, stored)) has_masks = encode_tile_values<T>(plan, values_, tile, work_, r, stored);
    coded_.model = nullptr;
    std::uint32_t raw = 0;
    for (std::size_t from = 0; from < r.value_count; from += every)
      for (std::size_t k = from; k < std::min(from + kCountedAtOnce, r.value_count); ++k) {
        const std::uint32_t cell = cell_of_record(r.values[k], &raw);
        ++counts.of[cell / kSymbols][cell % kSymbols];
      }
    counts.raw_bits += raw;
    for (std::size_t k = 0; k < r.flag_count; ++k) ++counts.masks[r.flags[k] & 63][r.flags[k] >> 7];
    counts.stored_bytes += static_cast<std::uint64_t>(stored - memory_.stored.data());
    if (!keeps) return;
    KeptTile& kept = plan_.kept->emplace_back();
    kept.number = tile;
    kept.values.assign(r.values, r.values + r.value_count);
    kept.steps.assign(r.steps, r.steps + r.step_count);
    kept.flags.assign(r.flags, r.flags + r.flag_count);
    kept.stored.assign(memory_.stored.data(), stored);
    kept.masks = has_masks;
  }

 private:
  static constexpr std::uint32_t kNoSamples = ~0u;

  // Makes the records of the tile that work_ has the codes of: contexts that were trained since do not change codes.
  // Returns false if work_ has another tile's, or if some values must be stored.
  bool record_again(const AdaptiveModel& model, std::uint64_t number, UnitRecords& r, std::uint8_t*& stored) {
    if (coded_.model != &model || coded_.tile != number) return false;
    const AdaptiveTile tile = plan_.tiles.tile(number);
    if (mark_misfits<T>(plan_, tile, values_, work_.dense) != 0) return false;
    const PassModel& pass = model.passes[0];
    work_.wave.set_neighbours(pass, causal_taps(model.kind), causal_codes(model.kind), range_taps(model.kind));
    record_turn<T>(plan_, work_, Lattice(work_.dense, model.kind, pass.log2), 1, tile, values_, coded_.masks, r,
                   stored);
    return true;
  }

  const AdaptivePlan& plan_;
  const void* values_;
  Work work_;
  TrainSpace& space_;
  TrainMemory& memory_ = train_memory();
  std::uint32_t sampled_ = kNoSamples;  // the pass of memory_.samples
  struct {
    const AdaptiveModel* model = nullptr;
    std::uint64_t tile = 0;
    bool masks = false;
  } coded_;  // what work_ has the codes of, with a model of one pass
};

PYF_END_TARGET
