// SPDX-License-Identifier: BSD-3-Clause
// Trains the model of a chunk on the CPU (train/trainer.hpp), and counts its symbols. Not part of the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "adaptive/codec.hpp"
#include "adaptive/cpu/tiles.hpp"

PYF_BEGIN_TARGET

// The trainer's memory is behind that of a tile.
constexpr std::size_t train_space_at() { return (unit_scratch_bytes(0) + 63) / 64 * 64; }

template <class T>
double train_chunk(const AdaptivePlan& plan, const AdaptiveChoice& choice, const void* values, std::uint8_t* scratch,
                   AdaptiveModel& model) {
  const Alone team;
  const AdaptiveTaps taps = adaptive_taps(plan.tiles.kind);
  TrainSpace* const space = new (scratch + train_space_at()) TrainSpace;
  std::vector<float> activity(plan.tiles.tiles());
  space->activity = activity.data();
  CpuTiles<T> tiles(plan, values, scratch, *space);
  Trainer trainer(team, tiles, plan.tiles, taps, choice, *space);
  std::uint32_t chosen = 0;
  if (plan.origin_values != nullptr)
    space->trials[0].model = model;
  else
    chosen = trainer.choose(plan.has_sentinel);
  trainer.finish_contexts(chosen);
  Trial& trial = space->trials[chosen];
  clear(team, trial.counts);
  const CountedTiles counted(plan.tiles.tiles());
  double of_counted = 0;
  for (std::uint64_t i = 0; i < counted.count; ++i) {
    tiles.count_tile(trial.model, counted.number(i), counted.every(), plan.kept != nullptr, trial.counts);
    of_counted += static_cast<double>(activity[counted.number(i)]);
  }
  const double bits = join_tables(team, trial.counts, counted.share(), of_counted, *space, taps, trial.model);
  make_tables(team, trial.counts, space->joined, trial.model);
  model = trial.model;
  return bits;
}

inline double train_model(const AdaptivePlan& plan, const AdaptiveChoice& choice, const void* values,
                          AdaptiveModel& model) {
  std::uint8_t* const scratch = thread_scratch(train_space_at() + sizeof(TrainSpace));
  if (scratch == nullptr) throw std::bad_alloc();
  return plan.dtype == Dtype::f32 ? train_chunk<float>(plan, choice, values, scratch, model)
                                  : train_chunk<double>(plan, choice, values, scratch, model);
}

PYF_END_TARGET
