// SPDX-License-Identifier: BSD-3-Clause
// Chooses bins from a sample of differences (FORMAT.md): intervals that need the fewest bits, at least one for each
// octave, and levels for their sizes. Not part of the format.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/bits.hpp"
#include "lossless/binned_model.hpp"
#include "stages/entropy/level_tables.hpp"

PYF_BEGIN_TARGET

// The meaning of a number in bin order (bin_streams.hpp).
template <class U>
struct BinOrder {
  bool zigzags, floats;
  std::uint32_t width;

  BinOrder(const NumberMap& map, bool of_differences)
      : zigzags(of_differences),
        floats(!of_differences && map.kind == NumberKind::pattern && map.is_float),
        width(map.width) {}

  static constexpr std::uint32_t kExponentAt = sizeof(U) == 8 ? 52 : 23;
  // The magnitude in half octaves. For ordered patterns of floats it is the exponent and the first fraction bit.
  std::uint32_t halves(U number) const {
    U magnitude = number;
    if (!zigzags) {
      const U middle = U{1} << (width - 1);
      magnitude = number >= middle ? static_cast<U>(number - middle) : static_cast<U>(middle - 1 - number);
      if (floats) return static_cast<std::uint32_t>(magnitude >> (kExponentAt - 1));
    }
    const int bits = bit_width(magnitude);
    return bits < 2
               ? static_cast<std::uint32_t>(bits)
               : static_cast<std::uint32_t>(2 * bits - 2) + static_cast<std::uint32_t>(magnitude >> (bits - 2) & 1);
  }
  // The group of a number: a bin lies in one group.
  std::int32_t group(U number, std::uint32_t coarser) const {
    const auto octave = static_cast<std::int32_t>((halves(number) / 2) >> coarser);
    return zigzags || number >= U{1} << (width - 1) ? octave : -1 - octave;
  }
};

struct Interval {
  std::uint64_t low, high;  // lowest and highest number in the sample
  std::uint32_t count;
  std::int32_t group;
};

// Cuts a sorted sample at groups, at frequent values, and into about 192 parts of equal size.
template <class U>
inline std::vector<Interval> cut_sample(const BinOrder<U>& order, const std::vector<U>& sorted, std::uint32_t coarser) {
  std::vector<Interval> parts;
  const auto total = static_cast<std::uint32_t>(sorted.size()), whole = std::max(1u, total / 192),
             frequent = std::max(3u, total / 1024);
  bool alone = false;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[i]) ++end;
    const auto count = static_cast<std::uint32_t>(end - i);
    const std::int32_t group = order.group(sorted[i], coarser);
    const bool is_frequent = count >= frequent;
    if (parts.empty() || alone || is_frequent || parts.back().count >= whole || parts.back().group != group)
      parts.push_back({sorted[i], sorted[i], count, group});
    else {
      parts.back().high = sorted[i];
      parts.back().count += count;
    }
    alone = is_frequent;
    i = end;
  }
  return parts;
}

// Joins neighbouring parts of a group if that saves bits. `header`: the cost of a bin, in bits of the sample. *bits:
// bits of the sample with one table.
inline std::vector<Interval> join_parts(const std::vector<Interval>& parts, std::uint32_t total, double header,
                                        double* bits = nullptr) {
  const std::size_t n = parts.size();
  std::vector<double> best(n + 1, 0);
  std::vector<std::size_t> from(n + 1, 0);
  std::vector<std::uint32_t> before(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) before[i + 1] = before[i] + parts[i].count;
  for (std::size_t end = 1; end <= n; ++end) {
    bool found = false;
    for (std::size_t begin = end; begin-- > 0;) {
      if (parts[begin].group != parts[end - 1].group) break;
      const double count = before[end] - before[begin];
      const int beside = bit_width(parts[end - 1].high - parts[begin].low);
      const double cost = best[begin] + count * (rough_log2(total / count) + beside) + header;
      if (found && cost >= best[end]) continue;
      found = true;
      best[end] = cost;
      from[end] = begin;
    }
  }
  if (bits != nullptr) *bits = best[n];
  std::vector<Interval> joined;
  for (std::size_t end = n; end > 0; end = from[end])
    joined.push_back(
        {parts[from[end]].low, parts[end - 1].high, before[end] - before[from[end]], parts[end - 1].group});
  std::reverse(joined.begin(), joined.end());
  return joined;
}

// 2^bits; 1 for 64 bits, which frames of earlier builds depend on.
inline std::uint64_t numbers_of(std::uint32_t bits) { return std::uint64_t{1} << (bits & 63); }

// Sets bins and their levels. Bins also cover values between and beyond the sample's.
template <class U>
inline void set_bins(const BinOrder<U>& order, const std::vector<Interval>& intervals, BinModel& model) {
  const U most = static_cast<U>(static_cast<U>(~U{0}) >> (8 * sizeof(U) - order.width));
  model.zigzag = order.zigzags;
  model.bins = 0;
  std::uint64_t end = 0;  // first number without a bin; 0 after a wrap: every number has a bin
  bool full = false;
  const auto add = [&](std::uint64_t low, std::uint32_t bits) {
    if (model.bins == kMostBins) return;
    model.lowest[model.bins] = low;
    model.bits[model.bins++] = static_cast<std::uint8_t>(bits);
    full = bits >= order.width || low + (numbers_of(bits) - 1) >= most;
    end = low + numbers_of(bits);
  };
  std::size_t left = intervals.size();
  for (const Interval& interval : intervals) {
    --left;
    const auto bits = static_cast<std::uint32_t>(bit_width(interval.high - interval.low));
    if (model.bins + 2 + left < kMostBins && !full && interval.low > end) {
      // numbers before the interval: first use its spare offsets, then add a bin
      const std::uint64_t spare = numbers_of(bits) - 1 - (interval.high - interval.low);
      const std::uint64_t low = interval.low - std::min(spare, interval.low - end);
      if (low > end) add(end, static_cast<std::uint32_t>(bit_width(low - end - 1)));
      add(low, bits);
    } else {
      add(interval.low, bits);
    }
  }
  if (!full && model.bins != 0) add(end, static_cast<std::uint32_t>(bit_width(most - end)));
  model.bits[kEscape] = static_cast<std::uint8_t>(order.width);
  // levels: equal steps from the sample's least magnitude to its largest
  std::uint32_t least = ~0u, largest = 0, total = 0;
  for (const Interval& i : intervals) total += i.count;
  const auto middle = [&](std::uint64_t low, std::uint32_t bits) {
    return static_cast<U>(low + (numbers_of(bits) >> 1));
  };
  for (const Interval& i : intervals) {
    const std::uint32_t halves = order.halves(static_cast<U>(i.low + (i.high - i.low) / 2));
    if (halves == 0 || i.count < total / 1024) continue;
    least = std::min(least, halves);
    largest = std::max(largest, halves);
  }
  if (least > largest) least = largest = 0;
  const std::uint32_t step = (largest - least) / (kBinLevels - 2) + 1;
  const auto level_of = [&](std::uint32_t halves) {
    if (halves == 0) return std::uint8_t{0};
    const std::uint32_t above = halves < least ? 0 : (halves - least) / step;
    return static_cast<std::uint8_t>(std::min(kBinLevels - 1, 1 + above));
  };
  for (std::uint32_t s = 0; s < model.bins; ++s)
    model.level[s] = level_of(order.halves(middle(model.lowest[s], model.bits[s])));
  model.level[kEscape] = kBinLevels - 1;
}

// Sorts numbers, by their bytes from the lowest on. Bytes that all numbers share are skipped.
template <class U>
inline void sort_numbers(std::vector<U>& numbers) {
  std::uint32_t counts[sizeof(U)][256] = {};
  for (const U x : numbers)
    for (std::size_t byte = 0; byte < sizeof(U); ++byte) ++counts[byte][x >> (8 * byte) & 255];
  std::vector<U> other(numbers.size());
  for (std::size_t byte = 0; byte < sizeof(U); ++byte) {
    std::uint32_t(&of)[256] = counts[byte];
    if (numbers.empty() || of[numbers[0] >> (8 * byte) & 255] == numbers.size()) continue;
    std::uint32_t before = 0;
    for (std::uint32_t& count : of) before += std::exchange(count, before);
    for (const U x : numbers) other[of[x >> (8 * byte) & 255]++] = x;
    numbers.swap(other);
  }
}

// Estimates the bits of a sample of numbers in bin order, with one table.
template <class U>
inline double bits_in_bins(const BinOrder<U>& order, std::vector<U>& sample) {
  constexpr std::uint32_t kWide = 4;  // log2 of the octaves in a group
  sort_numbers(sample);
  double bits = 0;
  join_parts(cut_sample(order, sample, kWide), static_cast<std::uint32_t>(sample.size()), 12, &bits);
  return bits;
}

// Chooses bins for a sample of numbers in bin order. `part`: the sample's share of all numbers.
template <class U>
inline void choose_bins(const BinOrder<U>& order, std::vector<U>& sample, double part, BinModel& model) {
  sort_numbers(sample);
  std::vector<Interval> parts;
  for (std::uint32_t coarser = 0; coarser < 8; ++coarser) {
    parts = cut_sample(order, sample, coarser);
    std::uint32_t groups = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) groups += i == 0 || parts[i].group != parts[i - 1].group ? 1 : 0;
    if (groups <= 96) break;
  }
  constexpr std::size_t kMostIntervals = kMostBins * 2 / 3;  // the rest is for gaps between intervals
  double header = (40 + 0.5 * order.width) * part;
  std::vector<Interval> joined;
  for (;; header *= 2) {
    joined = join_parts(parts, static_cast<std::uint32_t>(sample.size()), header);
    if (joined.size() <= kMostIntervals) break;
  }
  set_bins(order, joined, model);
}

PYF_END_TARGET
