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
#include "adaptive/train/sample_sizes.hpp"
#include "adaptive/train/trial.hpp"
#include "adaptive/train/weights.hpp"

PYF_BEGIN_TARGET

// Regressions within 8 % of the best candidate, and interpolations within 25 %, are compared again on more tiles.
inline constexpr double kClose = 1.08, kFar = 1.25;
inline constexpr std::uint32_t kMostComparedAgain = 4;
// Bits a value of the best regression from which on others gain next to nothing: one with equal weights of samples 0.1
// % on average, interpolations nothing at all.
inline constexpr double kMostBitsUnweighted = 4, kMostBitsInterpolated = 1.5;

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
  std::uint64_t sampled[kMostSampled], listed[2][kMostSampled], compared[kMostSampled];
  CountJob job[kMostTrials * kMostSampled];
  std::uint32_t jobs;
  float* activity;
  double total_activity, bits;
  CountLogs logs;
  EquationSpace equation_space;
  WeightSpace weight_space;
  ContextSpace context_space;
};

// Of parts with so many values an interpolation is rated, too.
inline constexpr std::uint64_t kFewValues = 65536;

// The share of the activity of all tiles that some have.
KFN double part_of(const TrainSpace& space, double activity) {
  return space.total_activity > 0 ? activity / space.total_activity : 1;
}

template <class Team>
PYF_ON_TEAM void clear(const Team& team, SymbolCounts& counts) {
  static_assert(sizeof counts % 4 == 0);
  each(team, sizeof counts / 4, [&](std::uint32_t i) { reinterpret_cast<std::uint32_t*>(&counts)[i] = 0; });
}

// Joins levels of contexts into the tables of a model. `share`: the part of the symbols of some tiles that are counted;
// `tiles`: the part of all symbols that these tiles have. Returns the estimated bits of all tiles.
template <class Team>
PYF_ON_TEAM double join_tables(const Team& team, const SymbolCounts& counts, double share, double tiles,
                               TrainSpace& space, const AdaptiveTaps& taps, AdaptiveModel& model) {
  const double part = share * tiles;
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
    for (const std::uint32_t trial : {kRegression, kInterpolation}) {
      if (!is_open(choice_, trial) || (trial != kRegression && choice_.predictor == 0 && sizes_.values > kFewValues))
        continue;
      make_weights(candidate_of(trial), masks, space_.trials[trial].model);
      try_on(&trial, 1, sizes_.rated());
      if (least == 0 || bits_of(trial) < least) least = bits_of(trial);
    }
    return least;
  }

  // Chooses a predictor, trains its weights, and returns its trial. Regressions are compared first. Others follow where
  // they may gain.
  PYF_ON_TEAM std::uint32_t choose(bool masks) {
    begin_trials();
    std::uint32_t order[kMostTrials] = {}, count = 0;
    const auto add = [&](std::uint32_t trial) {
      if (!is_open(choice_, trial)) return;
      make_weights(candidate_of(trial), masks, space_.trials[trial].model);
      set_usual_contexts(team_, space_.trials[trial].model);
      finish(space_.trials[trial].model);
      restart_counts(&trial, 1);
      order[count++] = trial;
    };
    const auto compare_from = [&](std::uint32_t first, std::uint32_t tiles) {
      compare(order + first, count - first, tiles);
      sort_by_bits(order, count);
    };
    const std::uint32_t few = (first_tried_ + 1) / 2;
    list_compared(first_tried_);
    for (const std::uint32_t trial : {kRegression, kChain, kRegressionOfClasses}) add(trial);
    compare_from(0, few);
    const double of_value = count == 0 ? 0 : bits_of(order[0]) / static_cast<double>(sizes_.values);
    if (of_value < kMostBitsInterpolated) {
      while (count > 1 && bits_of(order[count - 1]) > kFar * bits_of(order[0])) --count;
      add(kUnweighted);
      add(kInterpolation);
      compare_from(0, first_tried_);
      const std::uint32_t before = count;
      if (order[0] == kInterpolation) add(kSecondInterpolation);
      compare_from(before, first_tried_);
    } else if (of_value < kMostBitsUnweighted) {
      const std::uint32_t before = count;
      add(kUnweighted);
      compare_from(before, few);
    }
    if (tried_ > first_tried_) compare_again(order, count);
    return order[0];
  }

  // Trains the contexts of the chosen model.
  PYF_ON_TEAM void finish_contexts(std::uint32_t trial) {
    const std::uint32_t tiles = sizes_.finished_tiles(choice_.fast);
    list_tiles(tiles, space_.listed[0]);
    train_contexts_on(&trial, 1, space_.listed[0], tiles, sizes_.wanted_at_end(choice_.fast));
  }

 private:
  PYF_ON_TEAM void begin_trials() {
    list_tiles(sizes_.sampled_tiles(choice_.fast), space_.sampled);
    each(team_, kSampledPasses, [&](std::uint32_t i) { space_.has_equations[i] = false; });
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
  // Compares the best trials on more tiles: with trained contexts if one of them interpolates, since its contexts are
  // less usual.
  PYF_ON_TEAM void compare_again(std::uint32_t* order, std::uint32_t count) {
    std::uint32_t close = 0;
    bool interpolates = false;
    for (std::uint32_t i = 0; i < count && close < kMostComparedAgain; ++i) {
      const bool own = order[i] >= kInterpolation;
      if (i != 0 && bits_of(order[i]) >= (own ? kFar : kClose) * bits_of(order[0])) continue;
      interpolates = interpolates || own;
      order[close++] = order[i];
    }
    if (close < 2) return;
    if (interpolates) {
      try_on(order, close, tried_);
    } else {
      list_compared(tried_ / 2);
      restart_counts(order, close);
      compare(order, close, tried_ / 2);
    }
    sort_by_bits(order, close);
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
    list_tiles(tiles, space_.listed[1]);
    const std::uint32_t trained = (tiles + 1) / 2, counted = tiles / 2;
    if (team_.rank() == 0) {
      for (std::uint32_t i = 0; i < trained; ++i) space_.listed[0][i] = space_.listed[1][2 * i];
      for (std::uint32_t i = 0; i < counted; ++i) space_.listed[1][i] = space_.listed[1][2 * i + 1];
    }
    team_.wait();
    const std::uint64_t* const list = space_.listed[counted == 0 ? 0 : 1];
    const std::uint32_t length = counted == 0 ? trained : counted;
    // one thread takes a model at a time, which needs less memory; warps of a team code tiles for all of them
    const std::uint32_t together = Team::kSize == 1 ? 1 : count;
    for (std::uint32_t first = 0; first < count; first += together) {
      train_contexts_on(trials + first, together, space_.listed[0], trained, sizes_.wanted_in_trial(choice_.fast));
      restart_counts(trials + first, together);
      count_on(trials + first, together, list, length);
    }
    rate_counts(trials, count, list, length);
  }
  // Estimates the bits of all tiles with usual contexts, from the first tiles of a list that candidates share.
  PYF_ON_TEAM void compare(const std::uint32_t* trials, std::uint32_t count, std::uint32_t tiles) {
    count_on(trials, count, space_.compared, tiles);
    rate_counts(trials, count, space_.compared, tiles);
  }
  // Lists tiles to compare candidates on: every second one first.
  PYF_ON_TEAM void list_compared(std::uint32_t count) {
    list_tiles(count, space_.listed[0]);
    if (team_.rank() == 0)
      for (std::uint32_t i = 0; i < count; ++i)
        space_.compared[i % 2 == 0 ? i / 2 : (count + 1) / 2 + i / 2] = space_.listed[0][count - 1 - i];
    team_.wait();
  }
  PYF_ON_TEAM void restart_counts(const std::uint32_t* trials, std::uint32_t count) {
    team_.wait();
    for (std::uint32_t k = 0; k < count; ++k) {
      Trial& trial = space_.trials[trials[k]];
      clear(team_, trial.counts);
      if (team_.rank() == 0) trial.counted = 0;
    }
    team_.wait();
  }
  // Counts symbols of trials on tiles of a list that they have not been counted on.
  PYF_ON_TEAM void count_on(const std::uint32_t* trials, std::uint32_t count, const std::uint64_t* tiles,
                            std::uint32_t length) {
    team_.wait();
    if (team_.rank() == 0) {
      space_.jobs = 0;
      for (std::uint32_t i = 0; i < length; ++i)
        for (std::uint32_t k = 0; k < count; ++k)
          if (i >= space_.trials[trials[k]].counted) space_.job[space_.jobs++] = {tiles[i], trials[k]};
      for (std::uint32_t k = 0; k < count; ++k) space_.trials[trials[k]].counted = length;
    }
    team_.wait();
    tiles_.count(team_, space_);
  }
  // Estimates the bits of all tiles from the symbols that were counted on these.
  PYF_ON_TEAM void rate_counts(const std::uint32_t* trials, std::uint32_t count, const std::uint64_t* list,
                               std::uint32_t length) {
    team_.wait();
    double activity = 0;
    for (std::uint32_t i = 0; i < length; ++i) activity += static_cast<double>(space_.activity[list[i]]);
    for (std::uint32_t k = 0; k < count; ++k) {
      Trial& trial = space_.trials[trials[k]];
      const double bits =
          join_tables(team_, trial.counts, 1, sizes_.cropped * part_of(space_, activity), space_, taps_, trial.model);
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
