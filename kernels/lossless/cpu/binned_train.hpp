// SPDX-License-Identifier: BSD-3-Clause
// The model of a chunk for an encoder: numbers and differences from a sample, then bins and tables from runs that are
// coded as units are (FORMAT.md). Not part of the format.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "lossless/cpu/choose_numbers.hpp"

PYF_BEGIN_TARGET

inline constexpr std::uint32_t kUsualUnitValues = 65536, kLeastContextValues = 2048, kMostBinSample = 16384;
inline constexpr double kBinnedStreamBits = 12288.0 * 8;

struct LevelSymbols {
  std::uint32_t of[kBinLevels][kSymbols];
};

template <class T>
class BinnedTrainer {
 public:
  using U = NumberOf<T>;

  BinnedTrainer(const Shape& shape, const void* values, std::uint64_t count, const NumberMap& plain)
      : values_(values), count_(count), chooser_(shape, values, count, plain) {}

  void train(BinnedModel& model) {
    const double bits = chooser_.choose(model);
    set_unit(bits / static_cast<double>(count_), model);
    model.contexts = count_ >= kLeastContextValues;
    if (model.contexts) chooser_.axes().set_distances(model);
    choose_runs(model);
    const std::uint32_t streams = model.map.remainders ? 2 : 1;
    for (std::uint32_t s = 0; s < streams; ++s) {
      BinModel& bins = model.streams[s];
      BinOrder<U> order;
      order.width = model.map.width;
      order.zigzags = s == 1 || model.strides != 0;
      order.floats = !order.zigzags && model.map.kind == NumberKind::pattern && model.map.is_float;
      make_bins(model, s, order, bins);
      make_tables(model, s, bins);
    }
  }

 private:
  void set_unit(double bits_of_value, BinnedModel& model) const {
    std::uint64_t unit = kUsualUnitValues, longest = 1;
    for (std::uint32_t i = 0; i < model.strides; ++i) longest = std::max<std::uint64_t>(longest, model.stride[i]);
    while (unit < kMostUnitValues &&
           (static_cast<double>(unit) * bits_of_value < kBinnedStreamBits || unit < 4 * longest))
      unit *= 2;
    const std::vector<std::uint64_t>& steps = chooser_.axes().steps;
    if (steps.size() > 1 && steps[1] <= unit / 4)
      unit = std::min<std::uint64_t>((unit + steps[1] - 1) / steps[1] * steps[1], kMostUnitValues);
    model.unit_values = static_cast<std::uint32_t>(std::min(unit, count_));
  }

  // Runs that bins and tables are made for: an eighth of the values, and all of a small chunk.
  void choose_runs(const BinnedModel& model) {
    std::uint64_t longest = 1;
    for (std::uint32_t i = 0; i < model.strides; ++i) longest = std::max<std::uint64_t>(longest, model.stride[i]);
    const std::uint64_t length = std::min<std::uint64_t>(model.unit_values, std::max<std::uint64_t>(8192, 4 * longest));
    const std::uint64_t runs = std::clamp<std::uint64_t>(count_ / 8 / length, 1, 32);
    run_ =
        static_cast<std::uint32_t>(count_ <= 2 * length ? std::min<std::uint64_t>(count_, model.unit_values) : length);
    starts_.clear();
    for (std::uint64_t i = 0; i < runs; ++i) starts_.push_back((count_ - run_) / runs * i + (count_ - run_) / runs / 2);
    if (run_ == count_) starts_.assign(1, 0);
    memory_.reset(new std::uint8_t[binned_scratch_bytes(run_, sizeof(U)) + 64]);
  }

  // What a stream codes of a run.
  const U* stream_of(const BinnedModel& model, std::uint32_t stream, std::uint64_t start, UnitMemory<U>& memory,
                     std::uint32_t* count) const {
    number_values<T, U>(model.map, values_, start, run_, FindPlace{model.map}, memory.numbers, memory.remainders);
    *count = run_;
    if (stream == 1) return memory.remainders;
    const std::uint32_t stored = std::min(model.stored_first(), run_);
    *count -= stored;
    return take_differences(model, run_, memory.numbers, memory.other) + stored;
  }

  void make_bins(const BinnedModel& model, std::uint32_t stream, const BinOrder<U>& order, BinModel& bins) {
    UnitMemory<U> memory(memory_.get(), run_);
    std::vector<U> sample;
    const std::size_t all = starts_.size() * run_;
    const auto every = static_cast<std::uint32_t>((all + kMostBinSample - 1) / kMostBinSample);
    for (const std::uint64_t start : starts_) {
      std::uint32_t count = 0;
      const U* const numbers = stream_of(model, stream, start, memory, &count);
      for (std::uint32_t i = 0; i < count; i += every)
        sample.push_back(to_bin_order<U>(order.zigzags, order.width, numbers[i]));
    }
    choose_bins(order, sample, static_cast<double>(sample.size()) / static_cast<double>(count_), bins);
  }

  void make_tables(const BinnedModel& model, std::uint32_t stream, BinModel& bins) {
    const std::unique_ptr<LevelSymbols> counts(new LevelSymbols);
    std::memset(counts.get(), 0, sizeof *counts);
    UnitMemory<U> memory(memory_.get(), run_);
    const BinSearch<U> search(bins, model.map.width);
    std::uint64_t counted = 0;
    for (const std::uint64_t start : starts_) {
      std::uint32_t count = 0;
      const U* const numbers = stream_of(model, stream, start, memory, &count);
      memory.clear_levels(model);
      BitSink offsets(memory.offsets);
      code_symbols<U>(model, bins, search, numbers, count, memory.levels, memory.coded, offsets,
                      [](std::uint32_t, std::uint32_t) { return true; });
      for (std::uint32_t i = 0; i < count; ++i) ++counts->of[memory.coded.tables[i]][memory.coded.symbols[i]];
      counted += count;
    }
    if (counted + kShortStride * kMostStrides >= count_) drop_unused(bins, *counts);
    const std::unique_ptr<JoinedLevels<kBinLevels>> joined(new JoinedLevels<kBinLevels>);
    join_levels(counts->of, kMostBinTables, static_cast<double>(counted) / static_cast<double>(count_), *joined);
    bins.tables = joined->tables;
    std::memcpy(bins.table_of_level, joined->table_of_level, sizeof bins.table_of_level);
    for (std::uint32_t t = 0; t < bins.tables; ++t) {
      // what no run has may still occur: a bin costs fewer bits than the escape
      if (counted + kShortStride * kMostStrides < count_)
        for (std::uint32_t s = 0; s < bins.bins; ++s) joined->counts[t][s] = std::max(joined->counts[t][s], 1u);
      make_frequencies<kBinTableBits>(joined->counts[t], bins.table[t]);
    }
  }

  // Takes bins away that no counted number has.
  static void drop_unused(BinModel& bins, LevelSymbols& counts) {
    std::uint32_t kept = 0;
    for (std::uint32_t s = 0; s < bins.bins; ++s) {
      std::uint32_t any = 0;
      for (const auto& of_level : counts.of) any += of_level[s];
      if (any == 0) continue;
      bins.lowest[kept] = bins.lowest[s];
      bins.bits[kept] = bins.bits[s];
      bins.level[kept] = bins.level[s];
      for (auto& of_level : counts.of) of_level[kept] = of_level[s];
      ++kept;
    }
    for (std::uint32_t s = kept; s < bins.bins; ++s)
      for (auto& of_level : counts.of) of_level[s] = 0;
    bins.bins = kept;
  }

  const void* values_;
  std::uint64_t count_;
  NumberChooser<T> chooser_;
  std::uint32_t run_ = 0;
  std::vector<std::uint64_t> starts_;
  std::unique_ptr<std::uint8_t[]> memory_;
};

PYF_END_TARGET
