// SPDX-License-Identifier: BSD-3-Clause
// What a stream codes for sampled runs of values: the numbers that bins and tables are counted on. For CPU and GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lossless/train/strides.hpp"

PYF_BEGIN_TARGET

// The runs that bins and tables are counted on.
KFN SampledRuns counted_runs(std::uint64_t values) {
  const std::uint64_t wanted = values / 16384;
  return {values, static_cast<std::uint32_t>(wanted < 128 ? 128 : wanted > 1024 ? 1024 : wanted)};
}

// Some of these runs, and what a stream codes for them.
template <class T, class Team>
struct CountedStream {
  using U = NumberOf<T>;

  const Trained<T, Team>& chunk;
  const BinnedParts& model;
  std::uint32_t stream;  // 0: differences; 1: remainders
  SomeRuns runs;

  KFN double part() const { return static_cast<double>(runs.values()) / static_cast<double>(chunk.count); }
  // Whether the stream's model is only compared with others: fewer samples, and four levels as one, rank them as well.
  KFN bool compares() const { return runs.every != 1; }

  // Calls work(first, count) for all runs, as many at a time as have memory. Their first values are in space.starts.
  template <class Work>
  KFN void each_part(const Work& work) const {
    auto& space = *chunk.space;
    const std::uint32_t together = Team::kSize == 1 ? 1 : kMostRated / SampledRuns::kRun;
    for (std::uint32_t first = 0; first < runs.count; first += together) {
      const std::uint32_t count = runs.count - first < together ? runs.count - first : together;
      chunk.team.wait();
      each(chunk.team, count, [&](std::uint32_t run) { space.starts[run] = runs.start(first + run); });
      chunk.team.wait();
      work(first, count);
    }
  }
  // Calls work() for the first values of the chunk, which start a unit, unless the runs have them.
  template <class Work>
  KFN void at_begin(const Work& work) const {
    if (runs.start(0) == 0) return;
    chunk.team.wait();
    if (chunk.leads()) chunk.space->starts[0] = 0;
    chunk.team.wait();
    work();
  }
  KFN Strides taken() const {
    Strides strides;
    if (stream != 0) {
      if (model.map.changes) strides = {1, {1}};
      return strides;
    }
    strides.count = model.strides;
    for (std::uint32_t k = 0; k < kMostStrides; ++k) strides.of[k] = model.stride[k];
    return strides;
  }
  // The numbers that the stream codes for `length` values from `from` on, which may be before the array: space.numbers.
  // By a team of one thread, stride after stride, in loops that the compiler vectorises. Returns what each_number()
  // does.
  PYF_MODEL bool find_numbers(std::int64_t from, std::uint32_t length) const {
    const Strides strides = taken();
    U* const numbers = chunk.space->numbers;
    const std::uint32_t width = model.map.width;
    bool reached = true;
    each(chunk.team, length, [&](std::uint32_t i) { numbers[i] = 0; });
    for (std::uint32_t set = 0; set < 1u << strides.count; ++set) {
      const auto all = static_cast<std::int64_t>(strides.sum(set));
      const auto add = [&](const auto& put) {
        const bool each_reached = each_number<T, U>(
            chunk.team, model.map, chunk.values, chunk.place(), 1, length, [&](std::uint32_t) { return from - all; },
            [&](std::uint32_t, std::uint32_t i, const NumberOfValue<U>& own) { put(numbers[i], own); });
        reached = reached && each_reached;
      };
      const auto add_part = [&](const auto& part) {
        if (is_subtracted(set))
          add([&](U& to, const NumberOfValue<U>& own) { to = static_cast<U>(to - part(own)); });
        else
          add([&](U& to, const NumberOfValue<U>& own) { to = static_cast<U>(to + part(own)); });
      };
      if (stream != 0)
        add_part([](const NumberOfValue<U>& own) { return own.remainder; });
      else
        add_part([](const NumberOfValue<U>& own) { return own.number; });
    }
    each(chunk.team, length, [&](std::uint32_t i) { numbers[i] = wrapped(width, numbers[i]); });
    return reached;
  }
  // The sums of strides in each set of them, in registers: kSets of them.
  template <std::uint32_t kSets>
  struct Sums {
    std::int64_t of[kSets];
  };
  // The number that the stream codes for the value at `at`, which is value `i` of its run. A GPU has all loads in
  // flight together.
  template <NumberKind kKind, std::uint32_t kSets>
  KFN U number_at(const NumberMap& map, const FindPlace<U>& place, const Sums<kSets>& sums, std::int64_t at,
                  std::uint32_t i) const {
    if constexpr (kKind == NumberKind::pattern) return pattern_at(map, sums, at);
    NumberOfValue<U> own[kSets] = {};
    for (std::uint32_t set = 0; set < kSets; ++set)
      if (at >= sums.of[set]) own[set] = number_in_run<kKind, T>(map, chunk.values, place, at - sums.of[set] - i, i);
    U x = 0;
    for (std::uint32_t set = 0; set < kSets; ++set) {
      const U part = stream != 0 ? own[set].remainder : own[set].number;
      x = static_cast<U>(is_subtracted(set) ? x - part : x + part);
    }
    return wrapped(map.width, x);
  }
  template <std::uint32_t kSets>
  KFN U pattern_at(const NumberMap& map, const Sums<kSets>& sums, std::int64_t at) const {
    constexpr std::uint32_t kMost = 0xFFFFFFFF;
    const std::uint32_t upto = at < 0 ? 0 : at < kMost ? static_cast<std::uint32_t>(at) + 1 : kMost;  // values
    const auto sum = [&](std::uint32_t set) { return static_cast<std::uint32_t>(sums.of[set]); };
    T held[kSets] = {};
    for (std::uint32_t set = 0; set < kSets; ++set)
      if (sum(set) < upto) held[set] = bits_of_value<T>(chunk.values, static_cast<std::uint64_t>(at) - sum(set));
    U x = 0;
    for (std::uint32_t set = 0; set < kSets; ++set) {
      const U part = sum(set) < upto ? ordered(map, static_cast<U>(held[set])) : U{0};
      x = static_cast<U>(is_subtracted(set) ? x - part : x + part);
    }
    return wrapped(map.width, x);
  }
  // Calls work.operator()<kind>(sums) for the model.
  template <class Work>
  KFN void with_sums(const Work& work) const {
    const Strides strides = taken();
    const auto with = [&]<std::uint32_t kSets>() {
      Sums<kSets> sums;
      for (std::uint32_t set = 0; set < kSets; ++set) sums.of[set] = static_cast<std::int64_t>(strides.sum(set));
      with_number_kind(model.map.kind, [&]<NumberKind kKind>() { work.template operator()<kKind>(sums); });
    };
    with_sets(1u << strides.count, with);
  }
  // The symbols of these numbers: space.symbols. Returns the same.
  PYF_MODEL bool find_symbols(std::int64_t from, std::uint32_t length) const {
    auto& space = *chunk.space;
    const std::uint32_t width = model.map.width;
    const bool reached = find_numbers(from, length);
    space.search.with_kind([&]<bool Quick, bool Zigzags>() {
      each(chunk.team, length, [&](std::uint32_t i) {
        const U number = to_bin_order<U>(Zigzags, width, space.numbers[i]);
        space.symbols[i] = static_cast<std::uint8_t>(space.search.template find<Quick, Zigzags>(number).symbol);
      });
    });
    return reached;
  }
};

// Takes a sample of these numbers in bin order: space.sample. Returns how many of them are of the runs.
template <class T, class Team>
PYF_MODEL std::uint32_t sample_stream(const CountedStream<T, Team>& counted, bool zigzags) {
  using U = typename CountedStream<T, Team>::U;
  const auto& chunk = counted.chunk;
  auto& space = *chunk.space;
  const SomeRuns& runs = counted.runs;
  const std::uint32_t most = counted.compares() ? kBinSample / 2 : kBinSample, length = runs.length(),
                      every = (runs.values() + most - 1) / most, of_run = (length + every - 1) / every,
                      width = counted.model.map.width;
  // every `step`-th number of `count` runs
  const auto take = [&](std::uint32_t count, std::uint32_t step, std::uint32_t to) {
    const std::uint32_t of_one = (length + step - 1) / step;
    const auto put = [&](std::uint32_t at, U number) {
      space.sample[to + at] = to_bin_order<U>(zigzags, width, number);
    };
    if constexpr (Team::kSize == 1) {
      counted.find_numbers(static_cast<std::int64_t>(space.starts[0]), length);  // of one run
      each(chunk.team, of_one, [&](std::uint32_t i) { put(i, space.numbers[i * step]); });
    } else {
      const NumberMap map = counted.model.map;
      const FindPlace<U> place = chunk.place();
      counted.with_sums([&]<NumberKind kKind>(const auto& sums) {
        each_in_rows(chunk.team, count, of_one, [&](std::uint32_t run, std::uint32_t i, std::uint32_t at) {
          const auto first = static_cast<std::int64_t>(space.starts[run]);
          put(at, counted.template number_at<kKind>(map, place, sums, first + i * step, i * step));
        });
      });
    }
  };
  counted.each_part([&](std::uint32_t first, std::uint32_t count) { take(count, every, first * of_run); });
  const std::uint32_t of_runs = runs.count * of_run;
  std::uint32_t begins = 0;
  counted.at_begin([&] {  // strides have no predecessor
    take(1, 1, of_runs);
    begins = length;
  });
  if (chunk.leads()) space.sampled = of_runs + begins;
  chunk.team.wait();
  return of_runs;
}

PYF_END_TARGET
