// SPDX-License-Identifier: BSD-3-Clause
// The encoder's model of a chunk: numbers and differences, bins and tables, all from sampled runs of values
// (FORMAT.md). Not part of the format. For CPU and GPU.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "lossless/bin_search.hpp"
#include "lossless/train/counted_stream.hpp"
#include "lossless/train/lags.hpp"
#include "lossless/train/strides.hpp"
#include "stages/entropy/tables.hpp"

PYF_BEGIN_TARGET

inline constexpr std::uint32_t kLeastContextValues = 2048;

// Removes bins that no value has. Called by one thread.
PYF_MODEL inline void drop_unused(BinModel& bins, std::uint32_t (&counts)[kBinLevels][kSymbols]) {
  std::uint32_t kept = 0;
  for (std::uint32_t s = 0; s < bins.bins; ++s) {
    std::uint32_t any = 0;
    for (const auto& of_level : counts) any += of_level[s];
    if (any == 0) continue;
    bins.lowest[kept] = bins.lowest[s];
    bins.bits[kept] = bins.bits[s];
    bins.level[kept] = bins.level[s];
    for (auto& of_level : counts) of_level[kept] = of_level[s];
    ++kept;
  }
  for (std::uint32_t s = kept; s < bins.bins; ++s)
    for (auto& of_level : counts) of_level[s] = 0;
  bins.bins = kept;
}

// The parts of a chunk that a run and its neighbours lie in, the furthest first. Overlapping ones are joined, if they
// may be, so that their symbols are found once.
struct PartsOfRun {
  std::uint32_t length, parts = 0, distances = 0;
  std::uint32_t distance[kDistances + 1] = {};  // descending, the last one 0: the run itself
  std::uint32_t from[kDistances + 2] = {};      // the first distance of each part

  PartsOfRun(const BinnedParts& model, std::uint32_t of_run, bool joined) : length(of_run) {
    for (std::uint32_t k = 0; model.contexts && k < kDistances; ++k) distance[distances++] = model.distance[k];
    std::sort(distance, distance + distances, std::greater<>());
    distance[distances++] = 0;
    for (std::uint32_t k = 0; k < distances; ++k)
      if (k == 0 || !joined || distance[k - 1] - distance[k] > length) from[parts++] = k;
    from[parts] = distances;
  }
  // Values from the furthest neighbour's first to the nearest one's last.
  std::uint32_t length_of(std::uint32_t part) const {
    return distance[from[part]] - distance[from[part + 1] - 1] + length;
  }
};

// Sums the levels of the neighbours of one run: space.sums. Returns the run's symbols; null if parts are joined that
// depend on where they begin. By a team of one thread.
template <class T, class Team>
PYF_MODEL const std::uint8_t* sum_levels(const CountedStream<T, Team>& counted, const BinModel& bins, bool joined) {
  auto& space = *counted.chunk.space;
  const auto start = static_cast<std::int64_t>(space.starts[0]);
  const std::uint32_t length = counted.runs.length();
  const PartsOfRun near(counted.model, length, joined);
  std::fill_n(space.sums, length, std::uint8_t{0});
  const std::uint8_t* symbols = nullptr;
  for (std::uint32_t part = 0; part < near.parts; ++part) {
    const std::uint32_t furthest = near.distance[near.from[part]];
    if (!counted.find_symbols(start - furthest, near.length_of(part)) && joined) return nullptr;
    for (std::uint32_t k = near.from[part]; k < near.from[part + 1]; ++k) {
      const std::uint32_t distance = near.distance[k];
      symbols = space.symbols + (furthest - distance);
      for (std::uint32_t i = 0; distance != 0 && i < length; ++i)
        space.sums[i] = static_cast<std::uint8_t>(space.sums[i] + (start + i >= distance ? bins.level[symbols[i]] : 0));
    }
  }
  return symbols;  // of the last distance, 0
}

// Counts symbols by the level of their neighbours: space.counts. Returns the bits of their offsets.
template <class T, class Team>
PYF_MODEL std::uint64_t count_symbols(const CountedStream<T, Team>& counted, const BinModel& bins) {
  using U = typename CountedStream<T, Team>::U;
  const auto& chunk = counted.chunk;
  auto& space = *chunk.space;
  const SomeRuns& runs = counted.runs;
  const BinnedParts& model = counted.model;
  const std::uint32_t length = runs.length(), kept_levels = counted.compares() ? ~3u : ~0u;
  each(chunk.team, kBinLevels * kSymbols, [&](std::uint32_t i) { space.counts[i / kSymbols][i % kSymbols] = 0; });
  space.search.make(chunk.team, bins);
  const auto each_symbol = [&](std::uint32_t count, const auto& note) {
    const auto note_one = [&](std::uint32_t levels, std::uint32_t symbol) {
      note(space.counts[(levels + 2) >> 2 & kept_levels][symbol], symbol);
    };
    if constexpr (Team::kSize == 1) {
      // Numbers of values that no grid reaches depend on where a part begins: such parts are not joined.
      const std::uint8_t* own = sum_levels(counted, bins, true);
      if (own == nullptr) own = sum_levels(counted, bins, false);
      for (std::uint32_t i = 0; i < length; ++i) note_one(space.sums[i], own[i]);
    } else {
      const NumberMap map = model.map;
      const FindPlace<U> place = chunk.place();
      counted.with_sums([&]<NumberKind kKind>(const auto& sums) {
        each_in_rows(chunk.team, count, length, [&](std::uint32_t run, std::uint32_t i, std::uint32_t) {
          const auto at = static_cast<std::int64_t>(space.starts[run]) + i;
          // numbers of the value and of its neighbours are loaded together
          U numbers[kDistances + 1];
          std::uint32_t distance[kDistances + 1] = {};
          for (std::uint32_t k = 0; k <= kDistances; ++k) {
            distance[k] = model.contexts && k < kDistances ? model.distance[k] : 0;
            numbers[k] = counted.template number_at<kKind>(map, place, sums, at - distance[k], i);
          }
          std::uint32_t symbols[kDistances + 1], levels = 0;
          space.search.find_each(map.width, numbers, symbols);
          for (std::uint32_t k = 0; model.contexts && k < kDistances; ++k)
            levels += at >= distance[k] ? bins.level[symbols[k]] : 0;
          note_one(levels, symbols[kDistances]);
        });
      });
    }
  };
  std::uint64_t beside = 0;
  counted.each_part([&](std::uint32_t, std::uint32_t count) {
    each_symbol(count, [&](std::uint32_t& sum, std::uint32_t symbol) {
      chunk.team.add(sum, 1);
      beside += bins.bits[symbol];
    });
  });
  beside = sum_of(chunk.team, beside);
  counted.at_begin([&] {  // these are too few to be sampled: keep their symbols possible
    each_symbol(1, [&](std::uint32_t& sum, std::uint32_t) { chunk.team.replace(sum, 0u, 1u); });
  });
  chunk.team.wait();
  return beside;
}

// Chooses bins and tables of a stream from every `every`-th run. Returns the estimated bits of all its numbers.
template <class T, class Team>
PYF_MODEL double train_stream(const Trained<T, Team>& chunk, BinnedParts& model, std::uint32_t stream,
                              std::uint32_t every) {
  using U = typename Trained<T, Team>::U;
  auto& space = *chunk.space;
  BinModel& bins = model.streams[stream];
  const BinOrder<U> order(model.map, stream == 1 || model.strides != 0);
  const CountedStream<T, Team> counted{chunk, model, stream, SomeRuns(counted_runs(chunk.count), every)};
  const std::uint32_t sampled = sample_stream(counted, order.zigzags);
  choose_bins(chunk.team, order, static_cast<double>(sampled) / static_cast<double>(chunk.count), space, bins);
  const std::uint64_t beside = count_symbols(counted, bins);
  if (counted.runs.values() >= chunk.count && chunk.leads()) drop_unused(bins, space.counts);
  chunk.team.wait();
  auto& levels = space.levels;
  join_levels(chunk.team, space.logs, space.counts, kMostBinTables, counted.part(), levels);
  each(chunk.team, kBinLevels, [&](std::uint32_t l) { bins.table_of_level[l] = levels.table_of_level[l]; });
  chunk.team.each_of_few(levels.tables, [&](const auto& few, std::uint32_t t) {
    few_frequencies<kBinTableBits>(few, levels.counts_of(t), bins.table[t]);
  });
  if (chunk.leads()) bins.tables = levels.tables;
  const double bits = (levels.bits + static_cast<double>(beside)) / counted.part();
  chunk.team.wait();
  return bits;
}

// The same for differences along strides.
template <class T, class Team>
PYF_MODEL double train_differences(const Trained<T, Team>& chunk, const RatedStrides& rated, BinnedParts& model,
                                   std::uint32_t every) {
  if (chunk.leads()) {
    model.strides = rated.strides.count;
    for (std::uint32_t k = 0; k < kMostStrides; ++k) model.stride[k] = rated.strides.of[k];
    model.unit_values = chunk.axes.unit_of(rated.strides, rated.bits / static_cast<double>(chunk.count), chunk.count);
    model.contexts = chunk.count >= kLeastContextValues;
    if (model.contexts) chunk.axes.set_distances(model);
  }
  chunk.team.wait();
  return train_stream(chunk, model, 0, every) + rated.begins;  // no run contains the first values of a unit
}

// What lags must save, since bits are estimated by a sample.
inline constexpr double kWorthLags = 0.99;

// Makes the model of a chunk. model.map has the dtype's fields; all else is as BinnedParts{} has it.
template <class T, class Team>
PYF_MODEL void train_model(const Trained<T, Team>& of, BinnedParts& model) {
  auto& space = *of.space;
  Trained<T, Team> chunk = of;
  chunk.axes = of.axes.with(find_lags(of));
  chunk.team.wait();
  choose_numbers(chunk, model);
  bool any_lag = false;
  for (std::uint32_t i = 0; i < space.best.count; ++i)
    any_lag = any_lag || chunk.axes.have_lag(space.best.of[i].strides);
  if (!any_lag) chunk.axes = of.axes;
  std::uint32_t best = 0;
  Axes axes = of.axes;
  double least = 0;
  const std::uint32_t every = counted_runs(chunk.count).count < 16 ? 1 : 4;
  const auto compare = [&](std::uint32_t i, const Axes& with) {
    Trained<T, Team> tried = of;
    tried.axes = with;
    const double bits = train_differences(tried, space.best.of[i], model, every) / (with.lags != 0 ? kWorthLags : 1);
    if (least != 0 && bits >= least) return;
    least = bits;
    best = i;
    axes = with;
  };
  // neighbours at a lag may choose tables also where no difference is taken along it
  for (std::uint32_t i = 0; (space.best.count > 1 || chunk.axes.lags != 0) && i < space.best.count; ++i) {
    if (!chunk.axes.have_lag(space.best.of[i].strides)) compare(i, of.axes);
    if (chunk.axes.lags != 0) compare(i, chunk.axes);
  }
  chunk.axes = axes;
  train_differences(chunk, space.best.of[best], model, 1);
  if (model.map.remainders) train_stream(chunk, model, 1, 1);
}

PYF_END_TARGET
