// SPDX-License-Identifier: BSD-3-Clause
// Finds grids that only the values themselves show: unpacked integers (scale and offset), and what GRIB stores as a
// reference plus integers times a power of two. Not part of the format. For CPU and GPU.
#pragma once

#include <bit>
#include <cstdint>

#include "core/bits.hpp"
#include "lossless/train/trained.hpp"

PYF_BEGIN_TARGET

// The sampled values that may be on a grid, and their last place.
template <class U>
struct GridSample {
  static constexpr int kFraction = sizeof(U) == 8 ? 52 : 23;
  // Units below this many last places are not worth a second stream. Smaller gaps are roundings.
  static constexpr double kLeastPlaces = 8, kMostRounding = 4;
  static constexpr double kReach = 0x1p63;         // of values; fill values are beyond it
  static constexpr double kLeastPlace = 0x1p-900;  // far above the smallest normal number
  static constexpr std::uint32_t kFewest = 64;

  KFN static bool is_usable(double x) { return (x < kReach) & (x > -kReach); }
  KFN static int exponent(double x) {  // of a normal number
    return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52 & 2047) - 1023;
  }
  KFN static double power(int exponent) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
  }
  KFN static std::uint64_t rounded(double x) { return static_cast<std::uint64_t>(x + 0.5); }
};

// The gaps between neighbours in the sorted sample, in space.sample. On one grid they are small multiples of its unit.
template <class T, class Team>
struct SampleGaps {
  using U = typename Trained<T, Team>::U;
  using Sample = GridSample<U>;
  static constexpr double kWidest = 4096;  // units; a wider gap parts the sample

  const Trained<T, Team>& chunk;
  const U* sample;
  std::uint32_t count;  // of the sample
  double last_place;
  double least_unit;

  KFN SampleGaps(const Trained<T, Team>& trained, std::uint32_t usable)
      : chunk(trained), sample(trained.space->sample), count(usable) {
    leave_out_apart();
    const double first = value(0), last = value(count - 1), low = first < 0 ? -first : first,
                 high = last < 0 ? -last : last;
    last_place = Sample::power(Sample::exponent(low < high ? high : low)) / Sample::power(Sample::kFraction);
    least_unit = Sample::kLeastPlaces * last_place;
    for (std::uint32_t k = 1; k < chunk.space->kinds; ++k) {
      const NumberMap& map = chunk.space->maps[k];
      const double known = map.kind == NumberKind::multiple ? last_place * Sample::power(static_cast<int>(map.shift))
                           : map.product                    ? map.unit
                                                            : 1 / map.unit;
      least_unit = 2 * known > least_unit ? 2 * known : least_unit;
    }
  }
  // Leaves out a least and a largest value that are further from the others than these from each other: fill values
  // such as -9999.
  KFN void leave_out_apart() {
    const auto first_above = [&](U x) {  // by all threads, as it is short
      std::uint32_t low = 0, high = count;
      while (low < high) {
        const std::uint32_t middle = (low + high) / 2;
        low = sample[middle] <= x ? middle + 1 : low;
        high = sample[middle] <= x ? high : middle;
      }
      return low;
    };
    if (sample[0] == sample[count - 1]) return;
    const std::uint32_t second = first_above(sample[0]);
    if (second + 1 < count && value(second) - value(0) > value(count - 1) - value(second)) {
      sample += second;
      count -= second;
    }
    if (sample[0] == sample[count - 1]) return;
    const std::uint32_t last = first_above(static_cast<U>(sample[count - 1] - 1));  // the first of the largest values
    if (last > 1 && value(last) - value(last - 1) > value(last - 1) - value(0)) count = last;
  }
  KFN double value(std::uint32_t i) const {
    return float_value(pattern_of(chunk.plain, from_lowest(chunk.plain.width, sample[i])));
  }
  KFN double gap(std::uint32_t i) const { return value(i + 1) - value(i); }
  // Whether a gap is no multiple of the unit, or a wide one.
  KFN bool is_bad(double gap, double unit) const {
    const double units = gap / unit;
    if (!(units < kWidest)) return true;
    const double rest = units - static_cast<double>(Sample::rounded(units));
    return rest > 0.2 || rest < -0.2;
  }

  // The least gap, made more precise by larger ones; 0 if the gaps are no multiples of one.
  PYF_MODEL double find_unit() const {
    const Team& team = chunk.team;
    double least = 1e300;
    std::uint32_t gaps = 0, small = 0;
    each(team, count - 1, [&](std::uint32_t i) {
      const double own = gap(i);
      gaps += own > 0 ? 1 : 0;
      small += own > 0 && own <= Sample::kMostRounding * last_place ? 1 : 0;
      if (own > Sample::kMostRounding * last_place) least = own < least ? own : least;
    });
    least = team.joined(least, [](double a, double b) { return a < b ? a : b; });
    gaps = sum_of(team, gaps);
    small = sum_of(team, small);
    if (gaps < Sample::kFewest || 32 * small > gaps || !(least >= least_unit)) return 0;
    if (least > Sample::kReach) return 0;
    double& unit = chunk.space->bits_of[0];
    const std::uint32_t terms = (count - 1 + 31) / 32 * 32;
    team.with_few([&](const auto& few) {
      double own = least;
      for (const double most : {1.5, 4.5, 16.5, 64.5}) {
        const auto sum = [&](const auto& term) {
          return ordered_sum(few, terms, [&](std::uint32_t i) {
            const double held = i + 1 < count ? gap(i) : 0;
            return held < most * own ? term(held, static_cast<double>(Sample::rounded(held / own))) : 0.0;
          });
        };
        const double of_gaps = sum([](double held, double units) { return units * held; });
        own = of_gaps / sum([](double, double units) { return units * units; });
      }
      if (few.rank() == 0) unit = own;
    });
    const double found = unit;
    std::uint32_t bad = 0;
    each(team, count - 1, [&](std::uint32_t i) { bad += gap(i) > 0 && is_bad(gap(i), found) ? 1 : 0; });
    return 32 * sum_of(team, bad) <= gaps ? found : 0;
  }
  // The longest part of the sample without a bad gap: [*begin, *end).
  PYF_MODEL void find_part(double unit, std::uint32_t* begin, std::uint32_t* end) const {
    auto& space = *chunk.space;
    const auto each_bad = [&](std::uint32_t first, std::uint32_t last, const auto& note) {
      for (std::uint32_t i = first; i < last; ++i)
        if (is_bad(gap(i), unit)) note(i);
    };
    const std::uint32_t bad = place_chosen(chunk.team, count - 1, each_bad,
                                           [&](std::uint32_t i, std::uint32_t place) { space.places[place] = i + 1; });
    chunk.team.wait();
    std::uint32_t from = 0;
    *begin = *end = 0;
    for (std::uint32_t k = 0; k <= bad; ++k) {
      const std::uint32_t upto = k < bad ? space.places[k] : count;
      if (upto - from > *end - *begin) {
        *begin = from;
        *end = upto;
      }
      from = upto;
    }
    chunk.team.wait();
  }
  // Units between the first value of a part and its others: space.places.
  PYF_MODEL void count_units(double unit, std::uint32_t begin, std::uint32_t end) const {
    auto& space = *chunk.space;
    share(chunk.team, end - begin, [&](std::uint32_t first, std::uint32_t last) {
      const auto units = [&](std::uint32_t k) {
        return k == 0 ? 0 : static_cast<std::uint32_t>(Sample::rounded(gap(begin + k - 1) / unit));
      };
      std::uint32_t own = 0, all = 0;
      for (std::uint32_t k = first; k < last; ++k) own += units(k);
      std::uint32_t upto = chunk.team.sum_before(own, &all);
      for (std::uint32_t k = first; k < last; ++k) space.places[k] = upto += units(k);
    });
    chunk.team.wait();
  }
  // Fits value = base + units * unit to a part, by least squares. *from_zero: the same without a base, if one is nearly
  // a multiple of the unit. Then small values come out without a rounding, too.
  PYF_MODEL NumberMap fit(std::uint32_t begin, std::uint32_t end, NumberMap* from_zero) const {
    auto& space = *chunk.space;
    const std::uint32_t middle = (end - begin) / 2, terms = (end - begin + 31) / 32 * 32;
    const double origin = value(begin + middle), units_before = space.places[middle];
    NumberMap map = chunk.plain;
    map.kind = NumberKind::grid;
    map.product = true;
    chunk.team.with_few([&](const auto& few) {
      const auto sum = [&](const auto& term) {
        return ordered_sum(few, terms, [&](std::uint32_t k) {
          return k < end - begin ? term(space.places[k] - units_before, value(begin + k) - origin) : 0.0;
        });
      };
      const double n = end - begin, x = sum([](double a, double) { return a; }),
                   y = sum([](double, double b) { return b; }), xx = sum([](double a, double) { return a * a; }),
                   xy = sum([](double a, double b) { return a * b; });
      const double unit = (n * xy - x * y) / (n * xx - x * x), base = origin + (y - unit * x) / n, before = base / unit;
      double of_zero = 0;
      if ((before < 0x1p30) & (before > -0x1p30)) {
        const double whole = static_cast<double>(static_cast<std::int64_t>(before < 0 ? before - 0.5 : before + 0.5)),
                     rest = before - whole;
        if ((rest < 0.01) & (rest > -0.01))
          of_zero = sum([&](double a, double b) { return (a + whole) * (b + origin); }) /
                    sum([&](double a, double) { return (a + whole) * (a + whole); });
      }
      if (few.rank() != 0) return;
      space.bits_of[0] = unit;
      space.bits_of[1] = base;
      space.bits_of[2] = of_zero;
    });
    map.unit = space.bits_of[0];
    map.base = space.bits_of[1];
    *from_zero = map;
    from_zero->unit = space.bits_of[2];
    from_zero->base = 0;
    chunk.team.wait();
    return map;
  }
  // How many values of the sample a grid makes, and how many it makes nearly.
  PYF_MODEL std::uint32_t exact(const NumberMap& map, std::uint32_t* near) const {
    std::uint32_t own = 0, close = 0;
    each(chunk.team, count, [&](std::uint32_t i) {
      const U pattern = from_lowest(map.width, sample[i]);
      U number = 0;
      if (!nearest_grid_number(map, pattern_of(map, pattern), number)) return;
      const U rest = static_cast<U>(pattern - grid_point(map, number));
      const double error = float_value(pattern_of(map, grid_point(map, number))) - value(i);
      own += rest == 0 ? 1 : 0;
      close += (error <= 2 * last_place) & (error >= -2 * last_place) ? 1 : 0;
    });
    *near = sum_of(chunk.team, close);
    return sum_of(chunk.team, own);
  }
};

// Finds the unit and the base of the sample's values, if they are on one grid.
template <class T, class Team>
PYF_MODEL bool find_one_grid(const SampleGaps<T, Team>& gaps) {
  using Sample = typename SampleGaps<T, Team>::Sample;
  const double unit = gaps.find_unit();
  if (!(unit > 0)) return false;
  std::uint32_t begin = 0, end = 0;
  gaps.find_part(unit, &begin, &end);
  if (2 * (end - begin) < gaps.count) return false;
  gaps.count_units(unit, begin, end);
  NumberMap map, from_zero;
  map = gaps.fit(begin, end, &from_zero);
  if (!(map.unit > 0)) return false;
  std::uint32_t near = 0;
  std::uint32_t exact = gaps.exact(map, &near);
  const auto try_instead = [&](const NumberMap& other) {
    std::uint32_t close = 0;
    const std::uint32_t better = gaps.exact(other, &close);
    if (better < exact) return;
    map = other;
    exact = better;
    near = close;
  };
  if (from_zero.unit > 0) try_instead(from_zero);
  // of a power of two every value is a base, without a rounding
  NumberMap binary = map;
  binary.unit = Sample::power(Sample::exponent(map.unit * 1.4142135623730951));
  binary.base = gaps.value(begin);
  if (binary.unit / map.unit < 1.001 && map.unit / binary.unit < 1.001) try_instead(binary);
  if (32 * near < 31 * gaps.count) return false;
  gaps.chunk.add_map(map);
  return true;
}

// Finds the largest power of two that 97 % of the changes from value to value are a multiple of. Values of several
// GRIB messages have such a unit, but no base in common: their remainders are the same for long.
template <class T, class Team>
PYF_MODEL void find_binary_grid(const SampleGaps<T, Team>& gaps) {
  const auto& chunk = gaps.chunk;
  using U = typename Trained<T, Team>::U;
  using Sample = GridSample<U>;
  auto& space = *chunk.space;
  const int last_place = Sample::exponent(gaps.last_place);
  std::uint32_t* const with = space.counts_of[0];  // changes whose lowest one bit is so many places above the last
  each(chunk.team, kSymbols, [&](std::uint32_t i) { with[i] = 0; });
  chunk.team.wait();
  each(chunk.team, chunk.rated(), [&](std::uint32_t i) {
    if (i % chunk.runs.length == 0) return;
    const double own = float_value(space.patterns[i]), before = float_value(space.patterns[i - 1]);
    const double change = own - before;
    if (!Sample::is_usable(own) || !Sample::is_usable(before) || change == 0) return;
    const auto bits = std::bit_cast<std::uint64_t>(change) | std::uint64_t{1} << 52;
    const int lowest = Sample::exponent(change) - 52 + bit_width(bits & (std::uint64_t{0} - bits)) - 1 - last_place;
    chunk.team.add(with[lowest < 0 ? 0 : lowest > 63 ? 63 : lowest], 1);
  });
  chunk.team.wait();
  const LowZeros zeros = low_zeros(with, 64, 64);
  NumberMap map = chunk.plain;
  map.kind = NumberKind::grid;
  map.product = true;
  map.unit = Sample::power(last_place + static_cast<int>(zeros.bits));
  if (zeros.total >= Sample::kFewest && map.unit >= gaps.least_unit) chunk.add_map(map);
}

// Finds a grid, unless find_shift() or find_grid() found one that is as coarse.
template <class T, class Team>
PYF_MODEL void find_measured_grid(const Trained<T, Team>& chunk) {
  using U = typename Trained<T, Team>::U;
  using Sample = GridSample<U>;
  auto& space = *chunk.space;
  const auto each_usable = [&](std::uint32_t begin, std::uint32_t end, const auto& note) {
    for (std::uint32_t i = begin; i < end; ++i)
      if (Sample::is_usable(float_value(space.patterns[i]))) note(i);
  };
  const std::uint32_t usable =
      place_chosen(chunk.team, chunk.rated(), each_usable, [&](std::uint32_t i, std::uint32_t place) {
        space.sample[place] = above_lowest(chunk.plain.width, ordered(chunk.plain, space.patterns[i]));
      });
  if (usable < Sample::kFewest) return;
  chunk.team.sort(space.sample, usable, space.sorted);
  const SampleGaps<T, Team> gaps(chunk, usable);
  if (!(gaps.last_place >= Sample::kLeastPlace)) return;
  if (!find_one_grid(gaps)) find_binary_grid(gaps);
}

PYF_END_TARGET
