// SPDX-License-Identifier: BSD-3-Clause
// The encoder chooses a chunk's predictor, weights, contexts and tables from a sample of its tiles (FORMAT.md), with a
// team of threads. Tiles are coded by a class of the CPU (cpu/tiles.hpp) or the GPU (cuda/tiles.cuh). Not part of the
// format.
#pragma once

#include <cstdint>

#include "adaptive/model_write.hpp"
#include "adaptive/plan.hpp"
#include "adaptive/train/contexts.hpp"
#include "adaptive/train/equations.hpp"
#include "adaptive/train/trial.hpp"
#include "adaptive/train/weights.hpp"

PYF_BEGIN_TARGET

inline constexpr std::uint32_t kMostSampled = 32;
inline constexpr double kClose = 1.08;  // candidates within 8 % of the best are tried again

// The passes that candidates sample: causal ones of three lattices, samples of the first one alike, too, and refining
// ones of two.
inline constexpr std::uint32_t kSampledPasses = 6;
KFN std::uint32_t index_of_equations(const PassModel& pass, bool weighted) {
  return pass.refining ? 4 + pass.log2 : pass.log2 != 0 ? 1 + pass.log2 : weighted ? 0 : 1;
}

// Memory of a team; `activity` has a number for each tile.
struct TrainSpace {
  Trial trials[kMostTrials];
  JoinedLevels<kContextLevels> joined;
  SetEquations equations[kSampledPasses], one;  // index_of_equations(); one: with classes joined
  bool has_equations[kSampledPasses];
  std::uint64_t sampled[kMostSampled], listed[2][kMostSampled];
  float* activity;
  double total_activity, bits;
  CountLogs logs;
  EquationSpace equation_space;
  WeightSpace weight_space;
  ContextSpace context_space;
};

// The share of a tile's values that a pass codes.
KFN double share_of_pass(TileKind kind, bool refining, std::uint32_t log2) {
  const auto axes = static_cast<std::uint32_t>(kind);
  double part = 1;
  for (std::uint32_t axis = 0; axis < axes; ++axis) part /= static_cast<double>(1u << log2);
  return refining ? part * (1 - 1.0 / static_cast<double>(1u << axes)) : part;
}

// How many tiles and values of a chunk are sampled.
struct SampleSizes {
  std::uint64_t tiles, values;

  explicit KFN SampleSizes(const AdaptiveGrid& grid) : tiles(grid.tiles()), values(grid.own_values()) {}
  // Tiles for weights; for the first and the second trial of candidates; for the contexts of the chosen one.
  KFN std::uint32_t sampled_tiles(bool fast) const { return fast ? part_of(8, 4, 16) : part_of(4, 8, 32); }
  KFN std::uint32_t first_tried(const AdaptiveGrid& grid) const {
    const std::uint64_t components = grid.components < 4 ? grid.components : 4;
    return part_of(1, 0, 2 * components * (grid.kind == TileKind::line ? 2 : 1));
  }
  KFN std::uint32_t tried() const { return part_of(8, 2, 12); }
  // Tiles to compare axes on.
  KFN std::uint32_t rated() const { return part_of(1, 0, 16); }
  KFN std::uint32_t finished_tiles() const { return part_of(6, 8, 24); }
  // Of the values that a pass codes in `sampled` tiles, one of so many is sampled.
  KFN std::uint32_t every_sample(std::uint32_t sampled, double share) const {
    return at_least_one(in_tiles(sampled) * share / enough(1500, 64, 14000));
  }
  KFN std::uint32_t every_context(std::uint32_t sampled, double wanted) const {
    return at_least_one(in_tiles(sampled) / wanted);
  }
  KFN double wanted_in_trial(bool fast) const { return enough(2000, 128, fast ? 6000 : 10000); }
  KFN double wanted_at_end() const { return enough(4000, 64, 20000); }

 private:
  // The number of samples: larger chunks take more.
  KFN double enough(double least, double part, double most) const {
    const double wanted = least + static_cast<double>(values) / part;
    return wanted < most ? wanted : most;
  }
  // The number of sampled tiles: 1 / `part` of all, within `least` and `most`.
  KFN std::uint32_t part_of(std::uint64_t part, std::uint64_t least, std::uint64_t most) const {
    const std::uint64_t own = tiles / part, within = own < least ? least : own > most ? most : own;
    return static_cast<std::uint32_t>(within < tiles ? within : tiles);
  }
  KFN double in_tiles(std::uint32_t sampled) const {
    return static_cast<double>(values) / static_cast<double>(tiles) * static_cast<double>(sampled);
  }
  KFN static std::uint32_t at_least_one(double every) { return every < 1 ? 1 : static_cast<std::uint32_t>(every); }
};

// The tiles that are counted for the tables of a chunk, and how many of their symbols.
struct CountedTiles {
  std::uint64_t tiles, count;

  explicit KFN CountedTiles(std::uint64_t all) : tiles(all), count(all < kMostCountedTiles ? all : kMostCountedTiles) {}
  KFN std::uint64_t number(std::uint64_t i) const { return i * tiles / count + tiles / count / 2; }
  KFN std::uint32_t every() const { return count > kAllCountedTiles ? 4 * kCountedAtOnce : kCountedAtOnce; }
  KFN double share() const { return static_cast<double>(kCountedAtOnce) / static_cast<double>(every()); }
};

// Of parts with so many values an interpolation is rated, too.
inline constexpr std::uint64_t kFewValues = 65536;

template <class Team>
PYF_ON_TEAM void clear(const Team& team, SymbolCounts& counts) {
  static_assert(sizeof counts % 4 == 0);
  each(team, sizeof counts / 4, [&](std::uint32_t i) { reinterpret_cast<std::uint32_t*>(&counts)[i] = 0; });
}

// Joins levels of contexts into the tables of a model. `share`: the part of the symbols that are counted, of tiles with
// this activity. Returns the estimated bits of all tiles.
template <class Team>
PYF_ON_TEAM double join_tables(const Team& team, const SymbolCounts& counts, double share, double activity,
                               TrainSpace& space, const AdaptiveTaps& taps, AdaptiveModel& model) {
  const double part = space.total_activity > 0 ? share * activity / space.total_activity : 1;
  JoinedLevels<kContextLevels>& joined = space.joined;
  join_levels(team, space.logs, counts.of, kMostTablesOfModel, part, joined);
  each(team, kContextLevels, [&](std::uint32_t level) { model.table_of_level[level] = joined.table_of_level[level]; });
  team.wait();
  if (team.rank() == 0) {
    model.tables = joined.tables;
    const double bits =
        joined.bits + static_cast<double>(counts.raw_bits) + 8 * (share * static_cast<double>(counts.stored_bytes));
    space.bits = bits / part + 8.0 * static_cast<double>(weight_bytes(model, taps.causal, taps.refining));
  }
  team.wait();
  return space.bits;
}

// Makes the tables of joined levels, and the frequencies of masks.
template <class Team>
PYF_ON_TEAM void make_tables(const Team& team, const SymbolCounts& counts, const JoinedLevels<kContextLevels>& joined,
                             AdaptiveModel& model) {
  team.each_of_few(model.tables, [&](const auto& few, std::uint32_t t) {
    few_frequencies<kTableBits>(few, joined.counts_of(t), model.table[t]);
  });
  each(team, kMaskContexts, [&](std::uint32_t c) {
    const std::uint64_t special = counts.masks[c][1], all = special + counts.masks[c][0];
    const std::uint64_t f = all == 0 ? 512 : (special * kFrequencySum + all / 2) / all;
    model.mask_frequency[c] = static_cast<std::uint16_t>(f < 1 ? 1 : f > 1023 ? 1023 : f);
  });
  team.wait();
}

template <class Team, class Tiles>
class Trainer {
 public:
  // measured: space.activity is known.
  PYF_ON_TEAM Trainer(const Team& team, Tiles& tiles, const AdaptiveGrid& grid, const AdaptiveTaps& taps,
                      const AdaptiveChoice& choice, TrainSpace& space, bool measured)
      : team_(team),
        tiles_(tiles),
        grid_(grid),
        taps_(taps),
        choice_(choice),
        space_(space),
        sizes_(grid),
        first_tried_(sizes_.first_tried(grid)),
        tried_(sizes_.tried()) {
    if (tried_ < first_tried_) tried_ = first_tried_;
    measure_activity(measured);
  }

  // Estimates the bits of all tiles to compare axes: with one predictor, or two where values are few.
  PYF_ON_TEAM double rate(bool masks) {
    begin_trials();
    double least = 0;
    for (const std::uint32_t trial : {0u, kRegressions}) {
      if (!is_open(choice_, trial) || (trial != 0 && choice_.predictor == 0 && sizes_.values > kFewValues)) continue;
      make_weights(candidate_of(trial), masks, space_.trials[trial].model);
      try_on(&trial, 1, sizes_.rated());
      if (least == 0 || bits_of(trial) < least) least = bits_of(trial);
    }
    return least;
  }

  // Chooses a predictor, trains its weights, and returns its trial.
  PYF_ON_TEAM std::uint32_t choose(bool masks) {
    begin_trials();
    std::uint32_t order[kMostTrials], count = 0, tried = 0;
    const auto try_more = [&] {
      try_on(order + tried, count - tried, first_tried_);
      tried = count;
    };
    for (std::uint32_t i = 0; i < kMostTrials; ++i) {
      if (!is_open(choice_, i)) continue;
      // one thread learns first whether the second interpolation is worth a trial; a team tries all together
      if (Team::kSize == 1 && i == kSecondInterpolation) {
        try_more();
        if (is_far(order, count)) continue;
      }
      make_weights(candidate_of(i), masks, space_.trials[i].model);
      order[count++] = i;
    }
    try_more();
    if (Team::kSize != 1 && order[count - 1] == kSecondInterpolation && is_far(order, count - 1)) --count;
    sort_by_bits(order, count);
    const double least = bits_of(order[0]);
    if (tried_ > first_tried_ && count > 1 && bits_of(order[1]) < kClose * least) {
      while (count > 3 || bits_of(order[count - 1]) >= kClose * least) --count;
      try_on(order, count, tried_);
      sort_by_bits(order, count);
    }
    return order[0];
  }

  // Trains the contexts of the chosen model.
  PYF_ON_TEAM void finish_contexts(std::uint32_t trial) {
    const std::uint32_t tiles = sizes_.finished_tiles();
    list_tiles(tiles, space_.listed[0]);
    train_contexts_on(&trial, 1, space_.listed[0], tiles, sizes_.wanted_at_end());
  }

 private:
  PYF_ON_TEAM void begin_trials() {
    list_tiles(sizes_.sampled_tiles(choice_.fast), space_.sampled);
    each(team_, kSampledPasses, [&](std::uint32_t i) { space_.has_equations[i] = false; });
  }
  // Whether the last trial is not within 10 % of the best: then the second interpolation is no candidate.
  PYF_ON_TEAM bool is_far(const std::uint32_t* order, std::uint32_t count) const {
    double least = bits_of(order[0]);
    for (std::uint32_t k = 1; k < count; ++k) least = bits_of(order[k]) < least ? bits_of(order[k]) : least;
    return bits_of(order[count - 1]) > 1.1 * least;
  }
  PYF_ON_TEAM double bits_of(std::uint32_t trial) const { return space_.trials[trial].bits; }
  PYF_ON_TEAM void sort_by_bits(std::uint32_t* order, std::uint32_t count) const {
    for (std::uint32_t i = 1; i < count; ++i)
      for (std::uint32_t k = i; k > 0 && bits_of(order[k]) < bits_of(order[k - 1]); --k) {
        const std::uint32_t other = order[k];
        order[k] = order[k - 1];
        order[k - 1] = other;
      }
  }

  // Sums are of integers below 2^53, so their order does not matter.
  PYF_ON_TEAM void measure_activity(bool measured) {
    if (!measured) tiles_.measure_activity(team_, space_.activity);
    team_.wait();
    double own = 0;
    for (std::uint64_t i = team_.rank(); i < sizes_.tiles; i += Team::kSize)
      own += static_cast<double>(space_.activity[i]);
    own = sum_of(team_, own);
    if (team_.rank() == 0) space_.total_activity = own;
    team_.wait();
  }
  // Chooses `count` tiles with about equal shares of the activity, in ascending order.
  PYF_ON_TEAM void list_tiles(std::uint32_t count, std::uint64_t* found) const {
    team_.wait();
    if (team_.rank() == 0) {
      std::uint32_t have = 0;
      double before = 0, wanted = 0;
      for (std::uint64_t tile = 0; have < count; ++tile) {
        wanted = space_.total_activity * (static_cast<double>(have) + 0.5) / static_cast<double>(count);
        const double behind = before + static_cast<double>(space_.activity[tile]);
        if (behind > wanted || sizes_.tiles - tile <= count - have) found[have++] = tile;
        before = behind;
      }
    }
    team_.wait();
  }

  PYF_ON_TEAM double share(const PassModel& pass) const { return share_of_pass(grid_.kind, pass.refining, pass.log2); }
  PYF_ON_TEAM const TapList& list_of(const PassModel& pass) const {
    return pass.refining ? taps_.refining : taps_.causal;
  }

  PYF_ON_TEAM void make_weights(const Candidate& candidate, bool masks, AdaptiveModel& model) {
    team_.wait();
    static_assert(sizeof(AdaptiveModel) % 4 == 0);
    each(team_, sizeof(AdaptiveModel) / 4, [&](std::uint32_t i) { reinterpret_cast<std::uint32_t*>(&model)[i] = 0; });
    team_.wait();
    if (team_.rank() == 0) {
      model.kind = grid_.kind;
      model.masks = masks;
      model.tables = 1;
      model.levels = candidate.levels;
      for (std::uint32_t p = 0; p <= kMostLevels; ++p) model.passes[p].classes = 1;
      for (std::uint32_t p = 0; p <= candidate.levels; ++p) {
        PassModel& pass = model.passes[p];
        pass.refining = p != 0;
        pass.log2 = candidate.levels - p;
        const std::uint32_t unit = candidate.finer * pass.log2;
        pass.unit = unit < 3 ? unit : 3;
        pass.classes = p != 0 && candidate.classes > 2 ? 2 : candidate.classes;
      }
    }
    team_.wait();
    for (std::uint32_t p = 0; p <= candidate.levels; ++p) {
      PassModel& pass = model.passes[p];
      const std::uint32_t most = candidate.chain ? 0 : choice_.fast ? kFewTaps : kMostTaps;
      const SetEquations* equations = &equations_of(pass, candidate.weighted);
      if (pass.classes == 1) {
        join_classes(team_, pass.refining, list_of(pass).count, *equations, space_.one);
        equations = &space_.one;
      }
      train_weights(team_, pass, grid_.kind, list_of(pass), *equations,
                    static_cast<double>(sizes_.values) * share(pass), most, space_.weight_space);
      team_.wait();
    }
    finish(model);
  }
  // The equations of a pass, made at first use.
  PYF_ON_TEAM const SetEquations& equations_of(const PassModel& pass, bool weighted) {
    const std::uint32_t i = index_of_equations(pass, weighted);
    SetEquations& own = space_.equations[i];
    if (space_.has_equations[i]) return own;
    const std::uint32_t tiles = sizes_.sampled_tiles(choice_.fast);
    const SampleList<Sample> samples =
        tiles_.sample(team_, pass, space_.sampled, tiles, sizes_.every_sample(tiles, share(pass)));
    collect(team_, pass.refining, pass.refining ? 2 : 4, weighted, list_of(pass).count, samples.of, samples.count,
            space_.equation_space, own);
    team_.wait();
    if (team_.rank() == 0) space_.has_equations[i] = true;
    team_.wait();
    return own;
  }
  PYF_ON_TEAM void finish(AdaptiveModel& model) const {
    team_.wait();
    each(team_, (model.levels + 1) * kSets, [&](std::uint32_t i) { finish_set(model.passes[i / kSets], i % kSets); });
    team_.wait();
  }

  // Estimates the bits of all tiles: trains contexts on every second of some tiles, counts symbols of the others.
  PYF_ON_TEAM void try_on(const std::uint32_t* trials, std::uint32_t count, std::uint32_t tiles) {
    if (count == 0) return;
    list_tiles(tiles, space_.listed[1]);
    const std::uint32_t trained = (tiles + 1) / 2, counted = tiles / 2;
    if (team_.rank() == 0) {
      for (std::uint32_t i = 0; i < trained; ++i) space_.listed[0][i] = space_.listed[1][2 * i];
      for (std::uint32_t i = 0; i < counted; ++i) space_.listed[1][i] = space_.listed[1][2 * i + 1];
    }
    team_.wait();
    const std::uint64_t* const list = space_.listed[counted == 0 ? 0 : 1];
    const std::uint32_t length = counted == 0 ? trained : counted;
    for (std::uint32_t k = 0; k < count; ++k) clear(team_, space_.trials[trials[k]].counts);
    // one thread takes a model at a time, which needs less memory; warps of a team code tiles for all of them
    const std::uint32_t together = Team::kSize == 1 ? 1 : count;
    for (std::uint32_t first = 0; first < count; first += together) {
      train_contexts_on(trials + first, together, space_.listed[0], trained, sizes_.wanted_in_trial(choice_.fast));
      team_.wait();
      tiles_.count(team_, space_, trials + first, together, list, length);
    }
    team_.wait();
    double activity = 0;
    for (std::uint32_t i = 0; i < length; ++i) activity += static_cast<double>(space_.activity[list[i]]);
    for (std::uint32_t k = 0; k < count; ++k) {
      Trial& trial = space_.trials[trials[k]];
      const double bits = join_tables(team_, trial.counts, 1, activity, space_, taps_, trial.model);
      if (team_.rank() == 0) trial.bits = bits;
      team_.wait();
    }
  }

  // Trains contexts of models on the given tiles.
  PYF_ON_TEAM void train_contexts_on(const std::uint32_t* trials, std::uint32_t count, const std::uint64_t* tiles,
                                     std::uint32_t length, double wanted) {
    tiles_.sample_contexts(team_, space_, trials, count, tiles, length, sizes_.every_context(length, wanted));
    team_.wait();
    for (std::uint32_t k = 0; k < count; ++k) train_contexts_of(space_.trials[trials[k]]);
  }
  PYF_ON_TEAM void train_contexts_of(Trial& trial) {
    for (std::uint32_t p = 0; p <= trial.model.levels; ++p) {
      PassModel& pass = trial.model.passes[p];
      train_contexts(team_, pass, grid_.kind, trial.samples[p].of, trial.samples[p].count,
                     choice_.fast ? kFewCodeTaps : kCodeTaps, space_.context_space);
      team_.wait();
    }
    finish(trial.model);
  }

  const Team& team_;
  Tiles& tiles_;
  const AdaptiveGrid& grid_;
  const AdaptiveTaps& taps_;
  AdaptiveChoice choice_;
  TrainSpace& space_;
  SampleSizes sizes_;
  std::uint32_t first_tried_, tried_;  // tiles that candidates are tried on
};

PYF_END_TARGET
