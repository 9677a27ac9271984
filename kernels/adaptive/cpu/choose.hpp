// SPDX-License-Identifier: BSD-3-Clause
// The encoder chooses a chunk's predictor, weights, contexts and tables from a sample of its tiles (FORMAT.md). Not
// part of the format.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "adaptive/codec.hpp"
#include "adaptive/cpu/level_tables.hpp"
#include "adaptive/cpu/train_contexts.hpp"
#include "adaptive/cpu/unit.hpp"

PYF_BEGIN_TARGET

// A predictor to try: its lattices, its classes of activity, and whether samples in calm regions have more weight.
struct Candidate {
  std::uint32_t levels, classes;
  bool weighted;
  std::uint32_t finer;  // times the lattice's log2: index of the unit of codes in kUnits
  bool chain;           // predict with the previous value alone, for values that repeat
};
inline constexpr std::uint32_t kMostTaps = 24, kFewTaps = 14, kFewCodeTaps = 9;

template <class T>
class Trainer {
 public:
  Trainer(const AdaptivePlan& plan, const AdaptiveChoice& choice, const void* values, std::uint8_t* scratch)
      : plan_(plan),
        choice_(choice),
        values_(values),
        work_(scratch),
        counts_(new LevelCounts),
        joined_levels_(new JoinedContexts),
        tiles_(plan.tiles.tiles()),
        first_tried_(std::min(tiles_, 2 * std::min<std::uint64_t>(plan.tiles.components, 4) *
                                          (plan.tiles.kind == TileKind::line ? 2 : 1))),
        tried_(std::max(first_tried_, part_of(2, 8, 12))) {
    measure_activity();
    sampled_ = tiles_of(choice.fast ? part_of(4, 8, 16) : part_of(8, 4, 32));
  }

  double train(AdaptiveModel& best) {
    if (plan_.origin_values != nullptr) return finish(best);
    static constexpr Candidate kRegressions[] = {{0, 1, true, 0, false},
                                                 {0, 1, true, 0, true},
                                                 {0, 1, false, 0, false},
                                                 {0, 4, true, 0, false}},
                               kInterpolations[] = {{1, 1, true, 1, false}, {2, 2, true, 0, false}};
    std::vector<Candidate> candidates;
    if (choice_.predictor != 2)
      candidates.insert(candidates.end(), kRegressions, kRegressions + (choice_.fast ? 2 : 4));
    if (choice_.predictor != 1)
      candidates.insert(candidates.end(), kInterpolations, kInterpolations + (choice_.fast ? 1 : 2));
    std::vector<Trial> trials;
    double least = 0;
    for (const Candidate& candidate : candidates) {
      // the second interpolation is tried only if the first one was within 10 % of the best
      if (candidate.levels > 1 && !trials.empty() && trials.back().bits > 1.1 * least) continue;
      Trial& trial = trials.emplace_back();
      trial.model->kind = plan_.tiles.kind;
      trial.model->masks = plan_.has_sentinel;
      make_weights(candidate, *trial.model);
      trial.bits = try_on(*trial.model, first_tried_);
      least = trials.size() == 1 ? trial.bits : std::min(least, trial.bits);
    }
    const auto fewer = [](const Trial& a, const Trial& b) { return a.bits < b.bits; };
    std::stable_sort(trials.begin(), trials.end(), fewer);
    if (tried_ > first_tried_ && trials.size() > 1 && trials[1].bits < kClose * least) {
      while (trials.size() > 3 || trials.back().bits >= kClose * least) trials.pop_back();
      for (Trial& trial : trials) trial.bits = try_on(*trial.model, tried_);
      std::stable_sort(trials.begin(), trials.end(), fewer);
    }
    best = *trials[0].model;
    return finish(best);
  }

 private:
  struct Trial {
    std::unique_ptr<AdaptiveModel> model = std::make_unique<AdaptiveModel>();
    double bits = 0;
  };
  static constexpr std::size_t kCountedAtOnce = 256;
  static constexpr double kClose = 1.08;  // candidates within 8 % of the best are tried again

  // Trains contexts, tables and frequencies of masks of the chosen model.
  double finish(AdaptiveModel& best) {
    train_contexts_on(best, tiles_of(part_of(8, 6, 24)), enough(4000, 64, 20000));
    MaskCounts masks{};
    const std::uint64_t counted = std::min(tiles_, kMostCountedTiles);
    std::vector<std::uint64_t> numbers(counted);
    for (std::uint64_t i = 0; i < counted; ++i) numbers[i] = i * tiles_ / counted + tiles_ / counted / 2;
    const double bits = count(best, numbers, masks, plan_.kept != nullptr);
    for (std::uint32_t t = 0; t < best.tables; ++t)
      make_frequencies<kTableBits>(joined_levels_->counts_of(t), best.table[t]);
    for (std::uint32_t c = 0; c < kMaskContexts; ++c) {
      const std::uint64_t special = masks.of[c][1], all = special + masks.of[c][0];
      const std::uint64_t f = all == 0 ? 512 : (special * kFrequencySum + all / 2) / all;
      best.mask_frequency[c] = static_cast<std::uint16_t>(f < 1 ? 1 : f > 1023 ? 1023 : f);
    }
    return bits;
  }

  struct MaskCounts {
    std::uint64_t of[kMaskContexts][2];
  };

  // The number of samples: larger chunks take more.
  double enough(double least, double part, double most) const {
    return std::min(most, least + static_cast<double>(plan_.tiles.values) / part);
  }
  // The number of sampled tiles: 1 / `part` of all, within `least` and `most`.
  std::uint64_t part_of(std::uint64_t least, std::uint64_t part, std::uint64_t most) const {
    return std::min(tiles_, std::clamp(tiles_ / part, least, most));
  }
  // Chooses `count` tiles with about equal shares of the activity, in ascending order.
  std::vector<std::uint64_t> tiles_of(std::uint64_t count) const {
    std::vector<std::uint64_t> found;
    double before = 0;
    for (std::uint64_t tile = 0; tile < tiles_; ++tile) {
      const double wanted = total_activity_ * (static_cast<double>(found.size()) + 0.5) / static_cast<double>(count),
                   behind = before + static_cast<double>(activity_[tile]);
      if (found.size() < count && (behind > wanted || tiles_ - tile <= count - found.size())) found.push_back(tile);
      before = behind;
    }
    return found;
  }

  // Estimates the bits of each tile from the differences along x, in steps.
  void measure_activity() {
    activity_.resize(tiles_);
    const auto inverse = static_cast<float>(1 / plan_.step);
    for (std::uint64_t number = 0; number < tiles_; ++number) {
      const AdaptiveTile tile = plan_.tiles.tile(number);
      std::uint64_t sum = 0;
      for (std::uint32_t z = 0; z < tile.planes; ++z)
        for (std::uint32_t y = 0; y < tile.rows; ++y) {
          const std::uint64_t first = tile.row(z, y);
          std::uint32_t row = 0;
          for (std::uint32_t x = 1; x < tile.length(y); ++x) {
            const T a = value_at<T>(values_, first + (x - 1) * tile.value_stride),
                    b = value_at<T>(values_, first + x * tile.value_stride);
            const float size = std::fabs(static_cast<float>(b - a)) * inverse;
            row += (std::bit_cast<std::uint32_t>(1 + (size < kFarthest ? size : 0)) - 0x3F800000u) >> 19;  // sixteenths
          }
          sum += row + tile.length(y) / 2;
        }
      activity_[number] = static_cast<float>(sum);
      total_activity_ += static_cast<double>(activity_[number]);
    }
  }

  // The share of the tile's values that a pass codes.
  double share(const PassModel& pass) const {
    double part = 1;
    for (std::uint32_t axis = 0; axis < static_cast<std::uint32_t>(plan_.tiles.kind); ++axis) {
      part /= static_cast<double>(1u << pass.log2);
    }
    return pass.refining ? part * (1 - 1.0 / static_cast<double>(1u << static_cast<std::uint32_t>(plan_.tiles.kind)))
                         : part;
  }

  void make_weights(const Candidate& candidate, AdaptiveModel& model) {
    model.levels = candidate.levels;
    const double values = static_cast<double>(plan_.tiles.values);
    for (std::uint32_t p = 0; p <= model.levels; ++p) {
      PassModel& pass = model.passes[p];
      pass.refining = p != 0;
      pass.log2 = model.levels - p;
      pass.unit = std::min(3u, candidate.finer * pass.log2);
      pass.classes = p != 0 ? std::min(candidate.classes, 2u) : candidate.classes;
      const std::uint32_t most = candidate.chain ? 0 : choice_.fast ? kFewTaps : kMostTaps;
      const bool joined = pass.classes == 1;
      std::unique_ptr<SetEquations>& own = equations_[pass.refining ? 1 : 0][pass.log2][candidate.weighted ? 1 : 0];
      if (own == nullptr) {
        own.reset(new SetEquations);
        own->collect(pass, model.kind, samples_of(pass), pass.refining ? 2 : 4, candidate.weighted);
      }
      if (!joined) {
        train_weights(pass, model.kind, *own, values * share(pass), most);
        continue;
      }
      if (joined_ == nullptr) joined_.reset(new SetEquations);
      *joined_ = *own;
      joined_->join_classes(pass);
      train_weights(pass, model.kind, *joined_, values * share(pass), most);
    }
    finish_model(model);
  }

  // Samples for a pass, taken at first use.
  const std::vector<Sample>& samples_of(const PassModel& pass) {
    std::vector<Sample>& samples = samples_[pass.refining ? 1 : 0][pass.log2];
    if (!samples.empty()) return samples;
    const TileKind kind = plan_.tiles.kind;
    const double values = static_cast<double>(plan_.tiles.values) / static_cast<double>(tiles_) *
                          static_cast<double>(sampled_.size()) * share(pass);
    const double every = values / enough(1500, 64, 14000);
    for (const std::uint64_t number : sampled_) {
      load_tile<T>(plan_, plan_.tiles.tile(number), values_, work_.dense);
      const Lattice lattice(work_.dense, kind, pass.log2);
      begin_pass(work_, kind, pass, lattice);
      spread_targets(work_, lattice);
      fill_with_targets(work_, lattice);
      sample_tile(work_, lattice.lengths, every < 1 ? 1 : static_cast<std::uint32_t>(every), samples);
    }
    return samples;
  }

  // Estimates the bits of all tiles: trains contexts on every second sampled tile, counts symbols of the others.
  double try_on(AdaptiveModel& model, std::uint64_t tiles) {
    std::vector<std::uint64_t> trained, counted;
    for (const std::uint64_t tile : tiles_of(tiles))
      (trained.size() > counted.size() ? counted : trained).push_back(tile);
    train_contexts_on(model, trained, enough(2000, 128, choice_.fast ? 6000 : 10000));
    MaskCounts masks{};
    return count(model, counted.empty() ? trained : counted, masks, false);
  }

  // Trains contexts on the given tiles.
  void train_contexts_on(AdaptiveModel& model, const std::vector<std::uint64_t>& tiles, double wanted) {
    std::vector<ContextSample> samples[kMostLevels + 1];
    const double in_tiles =
        static_cast<double>(plan_.tiles.values) / static_cast<double>(tiles_) * static_cast<double>(tiles.size());
    const double every = std::max(1.0, in_tiles / wanted);
    for (const std::uint64_t tile : tiles) {
      load_tile<T>(plan_, plan_.tiles.tile(tile), values_, work_.dense);
      encode_passes(work_, model, [&](std::uint32_t p, const Lattice&) {
        sample_contexts(work_, static_cast<std::uint32_t>(every), samples[p]);
      });
    }
    for (std::uint32_t p = 0; p <= model.levels; ++p)
      train_contexts(model.passes[p], model.kind, samples[p], choice_.fast ? kFewCodeTaps : kCodeTaps);
    finish_model(model);
  }

  // Counts symbols of the given tiles and makes the tables. Returns the estimated bits of all tiles. `keeps`: the codes
  // are kept.
  double count(AdaptiveModel& model, const std::vector<std::uint64_t>& tiles, MaskCounts& masks, bool keeps) {
    std::memset(counts_.get(), 0, sizeof *counts_);
    AdaptivePlan plan = plan_;
    plan.model = &model;
    if (records_ == nullptr) {
      records_.reset(new std::uint8_t[record_bytes(1)]);
      stored_.reset(new std::uint8_t[Work::kDense * sizeof(T)]);
    }
    // with more than 16 tiles, count a quarter of the symbols, from all parts of each tile
    const std::size_t every = tiles.size() > 16 ? 4 * kCountedAtOnce : kCountedAtOnce;
    double counted = 0;
    for (const std::uint64_t tile : tiles) {
      UnitRecords r = records_in(records_.get(), 1);
      std::uint8_t* stored = stored_.get();
      const bool has_masks = encode_tile_values<T>(plan, values_, tile, work_, r, stored);
      for (std::size_t from = 0; from < r.value_count; from += every)
        for (std::size_t k = from; k < std::min(from + kCountedAtOnce, r.value_count); ++k) count_record(r.values[k]);
      for (std::size_t k = 0; k < r.flag_count; ++k) ++masks.of[r.flags[k] & 63][r.flags[k] >> 7];
      const double share = static_cast<double>(kCountedAtOnce) / static_cast<double>(every);
      counts_->stored_bytes += share * static_cast<double>(stored - stored_.get());
      counted += share * static_cast<double>(activity_[tile]);
      if (!keeps) continue;
      KeptTile& kept = plan_.kept->emplace_back();
      kept.number = tile;
      kept.values.assign(r.values, r.values + r.value_count);
      kept.steps.assign(r.steps, r.steps + r.step_count);
      kept.flags.assign(r.flags, r.flags + r.flag_count);
      kept.stored.assign(stored_.get(), stored);
      kept.masks = has_masks;
    }
    const double part = total_activity_ > 0 ? counted / total_activity_ : 1;
    join_levels(Alone{}, CountLogs{}, counts_->of, kMostTablesOfModel, part, *joined_levels_);
    model.tables = joined_levels_->tables;
    std::memcpy(model.table_of_level, joined_levels_->table_of_level, sizeof model.table_of_level);
    const double bits = joined_levels_->bits + counts_->raw_bits + 8 * counts_->stored_bytes;
    return bits / part + 8.0 * static_cast<double>(weight_bytes(model, work_.marks));
  }

  void count_record(std::uint32_t record) {
    const std::uint32_t level = record >> kCodeBits & 127;
    if (record >> 29 != kByCode) {
      ++counts_->of[level][kEscape];
      return;
    }
    const std::uint32_t symbol = symbol_of(record & ((1u << kCodeBits) - 1));
    ++counts_->of[level][symbol];
    counts_->raw_bits += raw_bits(symbol);
  }

  static std::size_t weight_bytes(const AdaptiveModel& model, std::uint8_t* memory) {
    static_assert(Work::kDense >= kMostModelBytes);
    AdaptiveModel bare = model;
    bare.tables = 1;
    return write_model(bare, memory);
  }

  const AdaptivePlan& plan_;
  AdaptiveChoice choice_;
  const void* values_;
  Work work_;
  std::unique_ptr<LevelCounts> counts_;
  std::unique_ptr<JoinedContexts> joined_levels_;
  std::unique_ptr<std::uint8_t[]> records_, stored_;  // of the tile being counted
  std::uint64_t tiles_, first_tried_, tried_;         // tiles of the chunk; tiles that candidates are tried on
  std::vector<float> activity_;                       // of each tile
  double total_activity_ = 0;
  std::vector<std::uint64_t> sampled_;
  std::vector<Sample> samples_[2][kMostLevels + 1];  // [causal or refining][lattice]
  std::unique_ptr<SetEquations> equations_[2][kMostLevels + 1][2], joined_;
};

inline double train_model(const AdaptivePlan& plan, const AdaptiveChoice& choice, const void* values,
                          AdaptiveModel& model) {
  std::uint8_t* const scratch = thread_scratch(unit_scratch_bytes(0));
  if (scratch == nullptr) throw std::bad_alloc();
  if (plan.dtype == Dtype::f32) return Trainer<float>(plan, choice, values, scratch).train(model);
  return Trainer<double>(plan, choice, values, scratch).train(model);
}

PYF_END_TARGET
