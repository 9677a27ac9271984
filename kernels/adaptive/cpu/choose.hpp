// SPDX-License-Identifier: BSD-3-Clause
// An encoder's choices for a chunk: predictor, weights, contexts and tables, from some of its tiles (FORMAT.md). Not
// part of the format.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "adaptive/codec.hpp"
#include "adaptive/cpu/train.hpp"
#include "adaptive/cpu/unit.hpp"

PYF_BEGIN_TARGET

// A predictor to try: lattices, classes of activity, and whether samples of calm places count more.
struct Candidate {
  std::uint32_t levels, classes;
  bool weighted;
  std::uint32_t finer;  // units of coarser lattices
  bool chain;           // the value before, and nothing else: for values that repeat
};
inline constexpr std::uint64_t kMostCountedTiles = 64;
inline constexpr std::uint32_t kMostTaps = 24, kFewTaps = 10, kFewCodeTaps = 6;

// Symbols by level of context.
struct LevelCounts {
  std::uint32_t of[kContextLevels][kSymbols];
  double raw_bits, stored_bytes;
};

inline double table_bits(const std::uint32_t* counts) {
  double total = 0, inner = 0, bits = 20;
  for (std::uint32_t s = 0; s < kSymbols; ++s) {
    if (counts[s] == 0) continue;
    const double n = counts[s];
    total += n;
    inner += n * rough_log2(n);
    bits += 4.5;
  }
  return total > 0 ? bits + total * rough_log2(total) - inner : 0;
}

// Joins neighbouring levels until at most `most` tables are left and no join saves bits. Returns their bits.
inline double merge_levels(const LevelCounts& counts, std::uint32_t most, AdaptiveModel& model,
                           std::uint32_t (*merged)[kSymbols]) {
  std::uint32_t first[kContextLevels + 1], tables = 0;
  double bits[kContextLevels], joined[kContextLevels];
  for (std::uint32_t level = 0; level < kContextLevels; ++level) {
    std::uint64_t any = 0;
    for (std::uint32_t s = 0; s < kSymbols; ++s) any += counts.of[level][s];
    if (any == 0) continue;
    std::memcpy(merged[tables], counts.of[level], sizeof merged[0]);
    bits[tables] = table_bits(merged[tables]);
    first[tables++] = level;
  }
  if (tables == 0) {
    std::memset(merged[0], 0, sizeof merged[0]);
    bits[0] = 0;
    first[tables++] = 0;
  }
  const auto join = [&](std::uint32_t t) {
    std::uint32_t sum[kSymbols];
    for (std::uint32_t s = 0; s < kSymbols; ++s) sum[s] = merged[t][s] + merged[t + 1][s];
    joined[t] = table_bits(sum);
  };
  for (std::uint32_t t = 0; t + 1 < tables; ++t) join(t);
  while (tables > 1) {
    std::uint32_t best = 0;
    double least = 0;
    for (std::uint32_t t = 0; t + 1 < tables; ++t) {
      const double more = joined[t] - bits[t] - bits[t + 1];
      if (t == 0 || more < least) {
        least = more;
        best = t;
      }
    }
    if (least > 0 && tables <= most) break;
    for (std::uint32_t s = 0; s < kSymbols; ++s) merged[best][s] += merged[best + 1][s];
    bits[best] = joined[best];
    for (std::uint32_t t = best + 1; t + 1 < tables; ++t) {
      std::memcpy(merged[t], merged[t + 1], sizeof merged[0]);
      bits[t] = bits[t + 1];
      joined[t] = joined[t + 1];
      first[t] = first[t + 1];
    }
    --tables;
    if (best + 1 < tables) join(best);
    if (best > 0) join(best - 1);
  }
  model.tables = tables;
  double sum = 0;
  for (std::uint32_t t = 0; t < tables; ++t) {
    sum += bits[t];
    const std::uint32_t end = t + 1 < tables ? first[t + 1] : kContextLevels;
    for (std::uint32_t level = t == 0 ? 0 : first[t]; level < end; ++level)
      model.table_of_level[level] = static_cast<std::uint8_t>(t);
  }
  return sum;
}

template <class T>
class Trainer {
 public:
  Trainer(const AdaptivePlan& plan, const AdaptiveChoice& choice, const void* values, std::uint8_t* scratch)
      : plan_(plan),
        choice_(choice),
        values_(values),
        work_(scratch),
        counts_(new LevelCounts),
        merged_(new std::uint32_t[kContextLevels][kSymbols]),
        tiles_(plan.tiles.tiles()),
        sampled_(part_of(8, 4, 32)),
        tried_(part_of(3, 8, 12)) {}

  double train(AdaptiveModel& best) {
    static constexpr Candidate kRegressions[] = {{0, 1, true, 0, false},
                                                 {0, 1, false, 0, true},
                                                 {0, 1, false, 0, false},
                                                 {0, 4, true, 0, false}},
                               kInterpolations[] = {{1, 1, true, 1, false}, {2, 2, true, 0, false}};
    std::vector<Candidate> candidates;
    if (choice_.predictor != 2)
      candidates.insert(candidates.end(), kRegressions, kRegressions + (choice_.fast ? 2 : 4));
    if (choice_.predictor != 1)
      candidates.insert(candidates.end(), kInterpolations, kInterpolations + (choice_.fast ? 1 : 2));
    const std::unique_ptr<AdaptiveModel> tried(new AdaptiveModel);
    double least = 0;
    bool found = false;
    for (const Candidate& candidate : candidates) {
      *tried = AdaptiveModel{};
      tried->kind = plan_.tiles.kind;
      tried->masks = plan_.has_sentinel;
      make_weights(candidate, *tried);
      double bits = 0;
      if (candidates.size() > 1) {
        train_all_contexts(*tried, tried_, 5000);
        bits = count(*tried, tried_, nullptr);
      }
      if (found && bits >= least) continue;
      found = true;
      least = bits;
      best = *tried;
    }
    train_all_contexts(best, part_of(8, 6, 24), 20000);
    MaskCounts masks{};
    const double bits = count(best, std::min(tiles_, kMostCountedTiles), &masks);
    for (std::uint32_t t = 0; t < best.tables; ++t) make_frequencies<kTableBits>(merged_[t], best.table[t]);
    for (std::uint32_t c = 0; c < kMaskContexts; ++c) {
      const std::uint64_t special = masks.of[c][1], all = special + masks.of[c][0];
      const std::uint64_t f = all == 0 ? 512 : (special * kFrequencySum + all / 2) / all;
      best.mask_frequency[c] = static_cast<std::uint16_t>(f < 1 ? 1 : f > 1023 ? 1023 : f);
    }
    return bits;
  }

 private:
  struct MaskCounts {
    std::uint64_t of[kMaskContexts][2];
  };

  // A part of the tiles: at least `least`, at most `most`.
  std::uint64_t part_of(std::uint64_t least, std::uint64_t part, std::uint64_t most) const {
    return std::min(tiles_, std::clamp(tiles_ / part, least, most));
  }
  std::uint64_t tile_number(std::uint64_t i, std::uint64_t count) const {
    return i * tiles_ / count + tiles_ / count / 2;
  }

  // Share of the values that a pass codes.
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
      train_weights(pass, model.kind, samples_of(pass), values * share(pass), most, candidate.weighted);
    }
    finish_model(model);
  }

  // Samples for a pass, taken when they are first needed.
  const std::vector<Sample>& samples_of(const PassModel& pass) {
    std::vector<Sample>& samples = samples_[pass.refining ? 1 : 0][pass.log2];
    if (!samples.empty()) return samples;
    const TileKind kind = plan_.tiles.kind;
    const double values = static_cast<double>(plan_.tiles.values) / static_cast<double>(tiles_) *
                          static_cast<double>(sampled_) * share(pass);
    const double every = values / std::min(20000.0, 4000 + static_cast<double>(plan_.tiles.values) / 128);
    for (std::uint64_t i = 0; i < sampled_; ++i) {
      load_tile<T>(plan_, plan_.tiles.tile(tile_number(i, sampled_)), values_, work_.dense);
      const Lattice lattice(work_.dense, kind, pass.log2);
      begin_pass(work_, kind, pass, lattice);
      spread_targets(work_, lattice);
      fill_with_targets(work_, lattice);
      sample_tile(work_, lattice.lengths, every < 1 ? 1 : static_cast<std::uint32_t>(every), samples);
    }
    return samples;
  }

  template <class Visit>
  void run(const AdaptiveModel& model, std::uint64_t number, Visit&& visit) {
    load_tile<T>(plan_, plan_.tiles.tile(number), values_, work_.dense);
    for (std::uint32_t p = 0; p <= model.levels; ++p) {
      const Lattice lattice(work_.dense, model.kind, model.passes[p].log2);
      begin_pass(work_, model.kind, model.passes[p], lattice);
      spread_targets(work_, lattice);
      for (std::uint32_t turn = 1; turn <= turns_of(model.passes[p], model.kind); ++turn) {
        encode_pass(work_, lattice, turn);
        visit(p);
      }
      collect(work_, lattice);
    }
  }

  void train_all_contexts(AdaptiveModel& model, std::uint64_t tiles, double wanted) {
    std::vector<ContextSample> samples[kMostLevels + 1];
    const double in_tiles =
        static_cast<double>(plan_.tiles.values) / static_cast<double>(tiles_) * static_cast<double>(tiles);
    for (std::uint64_t i = 0; i < tiles; ++i)
      run(model, tile_number(i, tiles), [&](std::uint32_t p) {
        const double every = in_tiles * share(model.passes[p]) / wanted;
        sample_contexts(work_, every < 1 ? 1 : static_cast<std::uint32_t>(every), samples[p]);
      });
    for (std::uint32_t p = 0; p <= model.levels; ++p)
      train_contexts(model.passes[p], model.kind, samples[p], choice_.fast ? kFewCodeTaps : kCodeTaps);
    finish_model(model);
  }

  // Bits of all tiles, from those of some; tables.
  double count(AdaptiveModel& model, std::uint64_t tiles, MaskCounts* masks) {
    std::memset(counts_.get(), 0, sizeof *counts_);
    double counted = 0;
    for (std::uint64_t i = 0; i < tiles; ++i)
      run(model, tile_number(i, tiles), [&](std::uint32_t) { counted += count_pass(masks); });
    double bits = merge_levels(*counts_, kMostTablesOfModel, model, merged_.get()) + counts_->raw_bits +
                  8 * counts_->stored_bytes;
    const double all = static_cast<double>(plan_.tiles.values);
    bits *= counted > 0 ? all / counted : 1;
    std::uint8_t* const bytes = work_.marks;
    return bits + 8.0 * static_cast<double>(weight_bytes(model, bytes));
  }

  static std::size_t weight_bytes(const AdaptiveModel& model, std::uint8_t* memory) {
    static_assert(Work::kDense >= kMostModelBytes);
    AdaptiveModel bare = model;
    bare.tables = 1;
    return write_model(bare, memory);
  }

  double count_pass(MaskCounts* masks) {
    const Steps& s = work_.steps;
    double values = 0;
    for (std::uint32_t step = 0; step < work_.wave.layout.steps(); ++step) {
      const std::uint32_t coded = s.coded[step];
      if (coded == 0) continue;
      const std::size_t at = std::size_t{step} * kRows;
      values += __builtin_popcount(coded);
      const std::uint32_t special = s.sentinel[step] & coded, exact = s.exact[step] & coded;
      if (masks != nullptr && plan_.has_sentinel) {
        const MaskNeighbours near(work_.wave, s.sentinel, step);
        for (std::uint32_t left = coded; left != 0; left &= left - 1) {
          const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
          ++masks->of[near.of_lane(lane)][special >> lane & 1];
        }
      }
      Expected e;
      e.set = Ints::load(s.sets + at);
      e.range = Floats::load(s.ranges + at);
      e.distance = Floats::load(s.distances + at);
      std::int32_t levels[kRows];
      context_level(work_.wave, e, step).store(levels);
      for (std::uint32_t left = coded & ~special; left != 0; left &= left - 1) {
        const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
        if ((exact >> lane & 1) != 0) {
          counts_->stored_bytes += sizeof(T) + 2;
          continue;
        }
        const std::uint32_t symbol = symbol_of(zigzag(static_cast<std::uint32_t>(s.codes[at + lane])));
        ++counts_->of[levels[lane]][symbol];
        counts_->raw_bits += raw_bits(symbol);
      }
    }
    return values;
  }

  const AdaptivePlan& plan_;
  AdaptiveChoice choice_;
  const void* values_;
  Work work_;
  std::unique_ptr<LevelCounts> counts_;
  std::unique_ptr<std::uint32_t[][kSymbols]> merged_;
  std::uint64_t tiles_, sampled_, tried_;
  std::vector<Sample> samples_[2][kMostLevels + 1];  // of causal and refining passes over each lattice
};

inline double train_model(const AdaptivePlan& plan, const AdaptiveChoice& choice, const void* values,
                          AdaptiveModel& model) {
  std::uint8_t* const scratch = thread_scratch(unit_scratch_bytes(0));
  if (scratch == nullptr) throw std::bad_alloc();
  if (plan.dtype == Dtype::f32) return Trainer<float>(plan, choice, values, scratch).train(model);
  return Trainer<double>(plan, choice, values, scratch).train(model);
}

PYF_END_TARGET
