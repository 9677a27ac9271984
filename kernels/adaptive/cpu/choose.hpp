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

// A trainer of a part with its memory. The activity of tiles is measured unless it is known.
template <class T>
class PartTrainer {
 public:
  PartTrainer(const AdaptivePlan& plan, const AdaptiveChoice& choice, const void* values, std::uint8_t* scratch,
              std::vector<float>& activity)
      : plan_(plan),
        taps_(adaptive_taps(plan.tiles.kind)),
        space_(*new(scratch + train_space_at()) TrainSpace),
        tiles_(plan, values, scratch, space_),
        trainer_(team_, tiles_, plan.tiles, taps_, choice, space_, prepare(activity)) {}

  double rate() { return trainer_.rate(plan_.has_sentinel); }
  void choose(AdaptiveTraining& training) {
    const Trial& trial = space_.trials[trainer_.choose(plan_.has_sentinel)];
    training.model = trial.model;
    training.bits = trial.bits;
  }
  double finish(AdaptiveModel& model) {
    Trial& trial = space_.trials[0];
    trial.model = model;
    trainer_.finish_contexts(0);
    clear(team_, trial.counts);
    const CountedTiles counted(plan_.tiles.tiles());
    tiles_.count_tiles(trial.model, counted, plan_.kept != nullptr, trial.counts);
    double of_counted = 0;
    for (std::uint64_t i = 0; i < counted.count; ++i)
      of_counted += static_cast<double>(space_.activity[counted.number(i)]);
    const double bits =
        join_tables(team_, trial.counts, counted.share(), part_of(space_, of_counted), space_, taps_, trial.model);
    make_tables(team_, trial.counts, space_.joined, trial.model);
    model = trial.model;
    return bits;
  }

 private:
  bool prepare(std::vector<float>& activity) {
    const bool known = !activity.empty();
    activity.resize(plan_.tiles.tiles());
    space_.activity = activity.data();
    return known;
  }

  const AdaptivePlan& plan_;
  const Alone team_{};
  AdaptiveTaps taps_;
  TrainSpace& space_;
  CpuTiles<T> tiles_;
  Trainer<Alone, CpuTiles<T>> trainer_;
};

// Calls work(trainer) with a trainer of the part.
template <class Work>
void with_trainer(const AdaptivePlan& plan, const AdaptiveChoice& choice, const void* values,
                  std::vector<float>& activity, const Work& work) {
  std::uint8_t* const scratch = thread_scratch(train_space_at() + sizeof(TrainSpace));
  if (scratch == nullptr) throw std::bad_alloc();
  if (plan.dtype == Dtype::f32) {
    PartTrainer<float> trainer(plan, choice, values, scratch, activity);
    work(trainer);
  } else {
    PartTrainer<double> trainer(plan, choice, values, scratch, activity);
    work(trainer);
  }
}
inline double rate_axes(const AdaptivePlan& plan, const AdaptiveChoice& choice, const void* values) {
  std::vector<float> activity;
  double bits = 0;
  with_trainer(plan, choice, values, activity, [&](auto& trainer) { bits = trainer.rate(); });
  return bits;
}
inline void choose_model(const AdaptivePlan& plan, const AdaptiveChoice& choice, const void* values,
                         AdaptiveTraining& training) {
  training.activity.clear();
  with_trainer(plan, choice, values, training.activity, [&](auto& trainer) { trainer.choose(training); });
}
inline double finish_model_of(const AdaptivePlan& plan, const AdaptiveChoice& choice, const void* values,
                              std::vector<float>& activity, AdaptiveModel& model) {
  double bits = 0;
  with_trainer(plan, choice, values, activity, [&](auto& trainer) { bits = trainer.finish(model); });
  return bits;
}

PYF_END_TARGET
