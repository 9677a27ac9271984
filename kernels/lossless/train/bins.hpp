// SPDX-License-Identifier: BSD-3-Clause
// Chooses bins from a sample of differences (FORMAT.md): intervals that need the fewest bits, at least one for each
// octave, and levels for their sizes. Not part of the format. For CPU and GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bits.hpp"
#include "lossless/train/space.hpp"

PYF_BEGIN_TARGET

// The meaning of a number in bin order (bin_streams.hpp).
template <class U>
struct BinOrder {
  bool zigzags, floats;
  std::uint32_t width;

  KFN BinOrder(const NumberMap& map, bool of_differences)
      : zigzags(of_differences),
        floats(!of_differences && map.kind == NumberKind::pattern && map.is_float),
        width(map.width) {}

  static constexpr std::uint32_t kExponentAt = sizeof(U) == 8 ? 52 : 23;
  // The magnitude in half octaves. For ordered patterns of floats it is the exponent and the first fraction bit.
  KFN std::uint32_t halves(U number) const {
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
  KFN std::int32_t group(U number, std::uint32_t coarser) const {
    const auto octave = static_cast<std::int32_t>((halves(number) / 2) >> coarser);
    return zigzags || number >= U{1} << (width - 1) ? octave : -1 - octave;
  }
};

// Cuts the sorted sample at groups, around frequent values, and into about `equal` parts of equal size.
template <class U, class Team, std::uint32_t kMost>
PYF_MODEL void cut_sample(const Team& team, const BinOrder<U>& order, std::uint32_t coarser, std::uint32_t equal,
                          const U* sorted, std::uint32_t total, SampleParts<kMost>& out) {
  const std::uint32_t whole = total / equal > 1 ? total / equal : 1, frequent = total / 1024 > 3 ? total / 1024 : 3;
  // `even`: the last multiple of `whole` up to i
  const auto is_cut = [&](std::uint32_t i, std::uint32_t even) {
    if (i == 0) return true;
    const U own = sorted[i], before = sorted[i - 1];
    if (own == before) return false;
    return even == i || (even != 0 && sorted[even - 1] == before) ||  // the first other number behind it
           (i + frequent <= total && sorted[i + frequent - 1] == own) ||
           (i >= frequent && sorted[i - frequent] == before) ||
           order.group(own, coarser) != order.group(before, coarser);
  };
  const auto each_cut = [&](std::uint32_t begin, std::uint32_t end, const auto& note) {
    std::uint32_t even = begin / whole * whole;
    for (std::uint32_t i = begin; i < end; ++i) {
      if (i == even + whole) even = i;
      if (is_cut(i, even)) note(i);
    }
  };
  const std::uint32_t cuts =
      place_chosen(team, total, each_cut, [&](std::uint32_t i, std::uint32_t place) { out.before[place] = i; });
  if (team.rank() == 0) {
    out.count = cuts;
    out.before[cuts] = out.total = total;
  }
  team.wait();
  each(team, cuts, [&](std::uint32_t k) {
    const U low = sorted[out.before[k]], high = sorted[out.before[k + 1] - 1];
    out.part[k] = {low, high, order.group(low, coarser)};
  });
  team.wait();
  const std::uint32_t groups = place_chosen(
      team, cuts,
      [&](std::uint32_t begin, std::uint32_t end, const auto& note) {
        for (std::uint32_t k = begin; k < end; ++k)
          if (k == 0 || out.part[k].group != out.part[k - 1].group) note(k);
      },
      [&](std::uint32_t k, std::uint32_t place) { out.first[place] = k; });
  if (team.rank() == 0) {
    out.groups = groups;
    out.first[groups] = cuts;
  }
  team.wait();
}

// Joins neighbouring parts of a group if that saves bits: the bits of its numbers with one table for the whole sample
// are cost[] of the last part's end. `header`: the cost of a bin, in bits of the sample. Called by a few threads.
template <class Few, std::uint32_t kMost>
PYF_MODEL void join_group(const Few& few, const CountLogs& logs, double header, std::uint32_t group,
                          SampleParts<kMost>& parts) {
  constexpr std::uint32_t kTogether = Few::kSize == 1 ? 1 : 4;  // whose loads are on their way together
  const double log_of_total = logs(parts.total);
  const std::uint32_t first = parts.first[group], last = parts.first[group + 1];
  for (std::uint32_t end = first + 1; end <= last; ++end) {
    const std::uint64_t high = parts.part[end - 1].high;
    const std::uint32_t upto = parts.before[end];
    double least = 1e300;
    std::uint32_t from = 0;
    for (std::uint32_t nearest = 1 + few.rank(); nearest <= end - first; nearest += kTogether * Few::kSize) {
      std::uint32_t begin[kTogether], count[kTogether];
      double before[kTogether], log[kTogether];
      std::uint64_t low[kTogether];
      for (std::uint32_t k = 0; k < kTogether; ++k) {
        const std::uint32_t back = nearest + k * Few::kSize;
        begin[k] = back <= end - first ? end - back : first;
        count[k] = parts.before[begin[k]];
        before[k] = begin[k] == first ? 0 : parts.cost[begin[k]];  // that of the first is of another group
        low[k] = parts.part[begin[k]].low;
      }
      for (std::uint32_t k = 0; k < kTogether; ++k) {
        count[k] = upto - count[k];
        log[k] = logs(count[k]);
      }
      for (std::uint32_t k = 0; k < kTogether; ++k) {
        if (nearest + k * Few::kSize > end - first) break;
        const int beside = bit_width(high - low[k]);
        const double cost = before[k] + count[k] * (log_of_total - log[k] + beside) + header;
        from = cost < least ? begin[k] : from;
        least = cost < least ? cost : least;
      }
    }
    std::uint32_t chosen = ~from;  // the last of equal ones, which has fewer parts
    const double all = least_of(few, least, chosen);
    if (few.rank() == 0) {
      parts.cost[end] = all;
      parts.from[end] = ~chosen;
    }
    few.wait();
  }
}
// The bits of the sample with joined parts. Called by one thread.
template <std::uint32_t kMost>
PYF_MODEL double joined_bits(const SampleParts<kMost>& parts) {
  double bits = 0;
  for (std::uint32_t group = 0; group < parts.groups; ++group) bits += parts.cost[parts.first[group + 1]];
  return bits;
}
// Counts the joined parts of a group: parts.joined[]. Called by one thread, and so is the next one.
template <std::uint32_t kMost>
PYF_MODEL void count_joined(std::uint32_t group, SampleParts<kMost>& parts) {
  std::uint32_t count = 0;
  for (std::uint32_t end = parts.first[group + 1]; end > parts.first[group]; end = parts.from[end]) ++count;
  parts.joined[group] = count;
}
// Lists them behind those of the groups before.
template <std::uint32_t kMost>
PYF_MODEL void list_joined(std::uint32_t group, const SampleParts<kMost>& parts, JoinedPart* joined) {
  std::uint32_t at = 0;
  for (std::uint32_t g = 0; g <= group; ++g) at += parts.joined[g];
  for (std::uint32_t end = parts.first[group + 1]; end > parts.first[group]; end = parts.from[end]) {
    const std::uint32_t begin = parts.from[end];
    joined[--at] = {parts.part[begin].low, parts.part[end - 1].high, parts.before[end] - parts.before[begin]};
  }
}

// The highest offset of so many bits.
KFN std::uint64_t last_offset(std::uint32_t bits) {
  return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

// Sets bins, which also cover values between and beyond the sample's. Called by one thread.
template <class U>
PYF_MODEL void set_bins(const BinOrder<U>& order, const JoinedPart* parts, std::uint32_t count, BinModel& model) {
  const U most = static_cast<U>(static_cast<U>(~U{0}) >> (8 * sizeof(U) - order.width));
  std::uint32_t bins = 0;
  std::uint64_t end = 0;  // the first number behind the last bin
  bool full = false;      // no number is behind it
  const auto add = [&](std::uint64_t low, std::uint32_t bits) {
    if (bins == kMostBins) return;
    model.lowest[bins] = low;
    model.bits[bins++] = static_cast<std::uint8_t>(bits);
    full = last_offset(bits) >= most - low;
    end = low + last_offset(bits) + 1;
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    const JoinedPart part = parts[i];
    const std::uint32_t left = count - 1 - i;
    const auto bits = static_cast<std::uint32_t>(bit_width(part.high - part.low));
    if (bins + 2 + left < kMostBins && !full && part.low > end) {
      // numbers before the part: first use its spare offsets, then add a bin
      const std::uint64_t spare = last_offset(bits) - (part.high - part.low), gap = part.low - end;
      const std::uint64_t low = part.low - (spare < gap ? spare : gap);
      if (low > end) add(end, static_cast<std::uint32_t>(bit_width(low - end - 1)));
      add(low, bits);
    } else {
      add(part.low, bits);
    }
  }
  if (!full && bins != 0) add(end, static_cast<std::uint32_t>(bit_width(most - end)));
  model.zigzag = order.zigzags;
  model.bins = bins;
  model.bits[kEscape] = static_cast<std::uint8_t>(order.width);
  model.level[kEscape] = kBinLevels - 1;
}
// Sets the levels of bins: equal steps from the sample's least magnitude to its largest.
template <class U, class Team>
PYF_MODEL void set_levels(const Team& team, const BinOrder<U>& order, const JoinedPart* parts, std::uint32_t count,
                          std::uint32_t total, BinModel& model) {
  std::uint32_t least = ~0u, largest = 0;
  each(team, count, [&](std::uint32_t i) {
    const JoinedPart& one = parts[i];
    const std::uint32_t halves = order.halves(static_cast<U>(one.low + (one.high - one.low) / 2));
    if (halves == 0 || one.count < total / 1024) return;
    least = halves < least ? halves : least;
    largest = halves > largest ? halves : largest;
  });
  least = team.joined(least, [](std::uint32_t a, std::uint32_t b) { return a < b ? a : b; });
  largest = team.joined(largest, [](std::uint32_t a, std::uint32_t b) { return a > b ? a : b; });
  if (least > largest) least = largest = 0;
  const std::uint32_t step = (largest - least) / (kBinLevels - 2) + 1;
  each(team, model.bins, [&](std::uint32_t s) {
    const std::uint64_t last = last_offset(model.bits[s]);
    const std::uint32_t halves = order.halves(static_cast<U>(model.lowest[s] + (last - last / 2)));
    const std::uint32_t level = halves == 0 ? 0 : 1 + (halves < least ? 0 : (halves - least) / step);
    model.level[s] = static_cast<std::uint8_t>(level < kBinLevels ? level : kBinLevels - 1);
  });
}

inline constexpr std::uint32_t kEqualParts = 192;
// The bits of a bin: those it takes in the model and in up to 12 tables, and those of the sample that it saves by
// chance.
inline constexpr double kBitsOfBin = 220, kSavedByChance = 6;

// Chooses bins for the sample of numbers in bin order. `part`: its share of all numbers.
template <class U, class Team>
PYF_MODEL void choose_bins(const Team& team, const BinOrder<U>& order, double part, TrainSpace<U>& space,
                           BinModel& model) {
  auto& parts = space.parts;
  team.sort(space.sample, space.sampled, space.sorted);
  for (std::uint32_t coarser = 0; coarser < 8; ++coarser) {
    cut_sample(team, order, coarser, kEqualParts, space.sample, space.sampled, parts);
    if (parts.groups <= 96) break;
  }
  constexpr std::uint32_t kMostJoined = kMostBins * 2 / 3;  // the rest is for gaps between bins
  std::uint32_t count = kMostJoined + 1;
  for (double header = kBitsOfBin * part + kSavedByChance; count > kMostJoined; header *= 2) {
    team.each_of_few(parts.groups, [&](const auto& few, std::uint32_t group) {
      join_group(few, space.logs, header, group, parts);
      if (few.rank() == 0) count_joined(group, parts);
    });
    count = 0;
    each(team, parts.groups, [&](std::uint32_t group) { count += parts.joined[group]; });
    count = sum_of(team, count);
  }
  each(team, parts.groups, [&](std::uint32_t group) { list_joined(group, parts, space.joined); });
  team.wait();
  if (team.rank() == 0) set_bins(order, space.joined, count, model);
  team.wait();
  set_levels(team, order, space.joined, count, space.sampled, model);
  team.wait();
}

PYF_END_TARGET
