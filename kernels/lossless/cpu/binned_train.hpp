// SPDX-License-Identifier: BSD-3-Clause
// The encoder's model of a chunk: numbers and differences, bins and tables, all from sampled runs of values
// (FORMAT.md). Not part of the format.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "lossless/cpu/choose_numbers.hpp"

PYF_BEGIN_TARGET

inline constexpr std::uint32_t kLeastContextValues = 2048;

template <class T>
class BinnedTrainer {
 public:
  using U = NumberOf<T>;

  BinnedTrainer(const Shape& shape, const void* values, std::uint64_t count, const NumberMap& plain)
      : values_(values),
        count_(count),
        chooser_(shape, values, count, plain),
        runs_(count, 256, static_cast<std::uint32_t>(std::clamp<std::uint64_t>(count / 16384, 128, 1024))) {}

  void train(BinnedModel& model) {
    const std::vector<RatedStrides> strides = chooser_.choose(model);
    place_.reset(new FindPlace<U>(model.map));
    std::size_t best = 0;
    double least = 0;
    for (std::size_t i = 0; strides.size() > 1 && i < strides.size(); ++i) {
      const double bits = train_differences(strides[i], model, runs_.starts.size() < 16 ? 1 : 4);
      if (i != 0 && bits >= least) continue;
      least = bits;
      best = i;
    }
    train_differences(strides[best], model, 1);
    if (model.map.remainders) train_stream(model, 1, 1);
  }

 private:
  // Chooses bins and tables of differences from every `every`-th run. Returns the estimated bits of all differences.
  double train_differences(const RatedStrides& rated, BinnedModel& model, std::size_t every) {
    model.strides = rated.strides.count;
    std::copy(rated.strides.of, rated.strides.of + kMostStrides, model.stride);
    model.unit_values = chooser_.axes().unit_of(rated.strides, rated.bits / static_cast<double>(count_), count_);
    model.contexts = count_ >= kLeastContextValues;
    if (model.contexts) chooser_.axes().set_distances(model);
    return train_stream(model, 0, every) + rated.begins;  // no run contains the first values of a unit
  }
  double train_stream(BinnedModel& model, std::uint32_t stream, std::size_t every) {
    BinModel& bins = model.streams[stream];
    const BinOrder<U> order(model.map, stream == 1 || model.strides != 0);
    starts_.clear();
    for (std::size_t i = every / 2; i < runs_.starts.size(); i += every) starts_.push_back(runs_.starts[i]);
    part_ = static_cast<double>(starts_.size() * runs_.length) / static_cast<double>(count_);
    make_bins(model, stream, order, bins);
    return make_tables(model, stream, bins);
  }

  // The numbers that a stream codes for the values from `first` on; `first` may be before the array.
  void stream_at(const BinnedModel& model, std::uint32_t stream, std::int64_t first, U* out) {
    const auto length = static_cast<std::int64_t>(runs_.length);
    std::fill_n(out, runs_.length, U{0});
    for (std::uint32_t set = 0; set < (stream == 0 ? 1u << model.strides : 1u); ++set) {
      std::int64_t from = first;
      for (std::uint32_t i = 0; i < model.strides; ++i) from -= (set >> i & 1) != 0 ? model.stride[i] : 0;
      const std::int64_t missing = std::min(std::max<std::int64_t>(-from, 0), length);
      if (missing == length) continue;
      number_values<T, U>(model.map, values_, static_cast<std::uint64_t>(from + missing),
                          static_cast<std::uint32_t>(length - missing), *place_, numbers_, remainders_);
      const U* const numbers = stream == 0 ? numbers_ : remainders_;
      U* const to = out + missing;
      if (std::popcount(set) % 2 == 0)
        for (std::int64_t i = 0; i < length - missing; ++i) to[i] = static_cast<U>(to[i] + numbers[i]);
      else
        for (std::int64_t i = 0; i < length - missing; ++i) to[i] = static_cast<U>(to[i] - numbers[i]);
    }
    wrap_numbers(model.map.width, runs_.length, out);
  }

  void make_bins(const BinnedModel& model, std::uint32_t stream, const BinOrder<U>& order, BinModel& bins) {
    constexpr std::size_t kMostSample = 16384;
    std::vector<U> sample;
    const std::size_t every = (starts_.size() * runs_.length + kMostSample - 1) / kMostSample;
    for (const std::uint64_t start : starts_) {
      stream_at(model, stream, static_cast<std::int64_t>(start), own_);
      for (std::uint32_t i = 0; i < runs_.length; i += static_cast<std::uint32_t>(every))
        sample.push_back(to_bin_order<U>(order.zigzags, order.width, own_[i]));
    }
    const double part = static_cast<double>(sample.size()) / static_cast<double>(count_);
    stream_at(model, stream, 0, own_);  // the start of a unit, where strides have no predecessor
    for (std::uint32_t i = 0; starts_[0] != 0 && i < runs_.length; ++i)
      sample.push_back(to_bin_order<U>(order.zigzags, order.width, own_[i]));
    choose_bins(order, sample, part, bins);
  }

  // Adds the levels of the neighbours of a run.
  void add_levels(const BinnedModel& model, std::uint32_t stream, const BinSearch<U>& search, std::int64_t first,
                  std::uint8_t* sums) {
    const BinModel& bins = model.streams[stream];
    std::fill_n(sums, runs_.length, std::uint8_t{0});
    for (std::uint32_t k = 0; model.contexts && k < kDistances; ++k) {
      const std::int64_t from = first - static_cast<std::int64_t>(model.distance[k]);
      stream_at(model, stream, from, other_);
      search.find_symbols(model.map.width, other_, runs_.length, symbols_);
      const auto before = static_cast<std::uint32_t>(std::clamp<std::int64_t>(-from, 0, runs_.length));
      for (std::uint32_t i = before; i < runs_.length; ++i)
        sums[i] = static_cast<std::uint8_t>(sums[i] + bins.level[symbols_[i]]);
    }
  }

  // Returns the estimated bits of all numbers of the stream.
  double make_tables(const BinnedModel& model, std::uint32_t stream, BinModel& bins) {
    using Counts = std::uint32_t[kBinLevels][kSymbols];
    const std::unique_ptr<Counts[]> memory(new Counts[1]());
    Counts& counts = memory[0];
    const BinSearch<U> search(bins);
    std::uint8_t sums[kRunValues];
    std::uint64_t beside = 0;
    const auto each_symbol = [&](std::uint64_t start, const auto& note) {
      add_levels(model, stream, search, static_cast<std::int64_t>(start), sums);
      stream_at(model, stream, static_cast<std::int64_t>(start), own_);
      search.find_symbols(model.map.width, own_, runs_.length, symbols_);
      for (std::uint32_t i = 0; i < runs_.length; ++i) note((sums[i] + 2) >> 2, std::uint32_t{symbols_[i]});
    };
    for (const std::uint64_t start : starts_)
      each_symbol(start, [&](int level, std::uint32_t symbol) {
        ++counts[level][symbol];
        beside += bins.bits[symbol];
      });
    if (starts_[0] != 0)  // starts of units are too few to be sampled: keep their symbols possible
      each_symbol(
          0, [&](int level, std::uint32_t symbol) { counts[level][symbol] = std::max(counts[level][symbol], 1u); });
    if (starts_.size() * runs_.length >= count_) drop_unused(bins, counts);
    const std::unique_ptr<JoinedLevels<kBinLevels>> joined(new JoinedLevels<kBinLevels>);
    join_levels(counts, kMostBinTables, part_, *joined);
    bins.tables = joined->tables;
    std::memcpy(bins.table_of_level, joined->table_of_level, sizeof bins.table_of_level);
    for (std::uint32_t t = 0; t < bins.tables; ++t) make_frequencies<kBinTableBits>(joined->counts[t], bins.table[t]);
    return (joined->bits + static_cast<double>(beside)) / part_;
  }

  // Removes bins that no value has.
  static void drop_unused(BinModel& bins, std::uint32_t (&counts)[kBinLevels][kSymbols]) {
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

  static constexpr std::size_t kRunValues = 1024;  // four runs of 256 of SampledRuns as one

  const void* values_;
  std::uint64_t count_;
  NumberChooser<T> chooser_;
  SampledRuns runs_;
  std::unique_ptr<FindPlace<U>> place_;
  std::vector<std::uint64_t> starts_;  // of the runs in use
  double part_ = 1;
  U numbers_[kRunValues], remainders_[kRunValues], own_[kRunValues], other_[kRunValues];
  std::uint8_t symbols_[kRunValues];
};

PYF_END_TARGET
