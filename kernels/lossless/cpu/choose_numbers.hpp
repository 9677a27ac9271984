// SPDX-License-Identifier: BSD-3-Clause
// Chooses how values become numbers and which differences are taken, by the bits of a sample (FORMAT.md). Not part of
// the format.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "lossless/cpu/binned_unit.hpp"
#include "lossless/cpu/choose_bins.hpp"
#include "lossless/cpu/sampled_runs.hpp"
#include "stages/symbols.hpp"

PYF_BEGIN_TARGET

// Estimates the bits of numbers with one table: the entropy of symbols, plus `beside` raw bits.
inline double order_zero_bits(const std::uint32_t* counts, std::uint32_t symbols, double beside) {
  double total = 0, inner = 0, used = 0;
  for (std::uint32_t s = 0; s < symbols; ++s) {
    if (counts[s] == 0) continue;
    total += counts[s];
    inner += counts[s] * rough_log2(counts[s]);
    ++used;
  }
  return (total > 0 ? total * rough_log2(total) - inner : 0) + beside + 12 * used;
}
template <class U>
inline double difference_bits(const std::vector<U>& differences, std::uint32_t width) {
  std::uint32_t counts[kSymbols] = {};
  std::uint64_t beside = 0;
  for (const U difference : differences) {
    const std::uint32_t symbol = symbol_of<U>(to_bin_order<U>(true, width, difference));
    ++counts[symbol];
    beside += raw_bits(symbol);
  }
  return order_zero_bits(counts, kSymbols, static_cast<double>(beside));
}

template <class T>
class NumberChooser {
 public:
  using U = NumberOf<T>;

  NumberChooser(const Shape& shape, const void* values, std::uint64_t count, const NumberMap& plain)
      : values_(values), count_(count), axes_(shape, count), runs_(count, 256, 32), plain_(plain) {
    for (const std::uint64_t start : runs_.starts)
      for (std::uint32_t i = 0; i < runs_.length; ++i)
        sample_.push_back(static_cast<U>(bits_of_value<T>(values_, start + i)));
  }

  // Sets map and dictionary. Returns the strides that need the fewest bits, and all strides that need up to 10 % more.
  std::vector<RatedStrides> choose(BinnedModel& model) {
    std::vector<NumberMap> maps{plain_};
    std::vector<std::uint64_t> dictionary;
    find_multiples(maps);
    find_grid(maps);
    find_dictionary(maps, dictionary);
    std::vector<RatedStrides> best;
    for (const NumberMap& map : maps) {
      const double fixed = map.kind == NumberKind::dictionary ? map.entries * (0.4 * map.width + 4) : 0;
      std::vector<RatedStrides> rated = rate_strides(map);
      for (RatedStrides& one : rated) {
        one.bits = one.bits / part() + fixed;
        one.begins /= part();
      }
      if (!best.empty() && rated[0].bits >= best[0].bits) continue;
      best = std::move(rated);
      model.map = map;
    }
    if (model.map.kind == NumberKind::dictionary) {
      model.dictionary = std::move(dictionary);
      model.map.dictionary = model.dictionary.data();
    }
    if (model.map.kind == NumberKind::multiple || model.map.kind == NumberKind::grid)
      model.map.remainders = any_remainder(model.map);
    while (best.size() > 1 && best.back().bits > kClose * best[0].bits) best.pop_back();
    return best;
  }
  const Axes& axes() const { return axes_; }

 private:
  static constexpr double kClose = 1.1;  // strides within 10 % of the best may be better with contexts

  double part() const { return static_cast<double>(runs_.values()) / static_cast<double>(count_); }

  // Numbers of the sampled positions, shifted by `back` values.
  std::vector<U> numbers_before(const NumberMap& map, const FindPlace<U>& place, std::uint64_t back,
                                std::vector<U>* remainders = nullptr) const {
    std::vector<U> numbers(runs_.values()), rest(runs_.values());
    std::size_t at = 0;
    for (const std::uint64_t start : runs_.starts) {
      const std::uint64_t missing = back > start ? std::min<std::uint64_t>(back - start, runs_.length) : 0;
      if (missing < runs_.length)
        number_values<T, U>(map, values_, start + missing - back, static_cast<std::uint32_t>(runs_.length - missing),
                            place, numbers.data() + at + missing, rest.data() + at + missing);
      at += runs_.length;
    }
    if (remainders != nullptr) remainders->swap(rest);
    return numbers;
  }

  // Rates strides by the bits of the sample, best first.
  std::vector<RatedStrides> rate_strides(const NumberMap& map) const {
    struct Shifted {
      std::uint64_t back;
      std::vector<U> numbers;
    };
    const FindPlace<U> place(map);
    std::vector<Shifted> kept;
    std::vector<U> remainders;
    kept.push_back({0, numbers_before(map, place, 0, &remainders)});
    const auto shifted = [&](std::uint64_t back) {
      for (std::size_t i = 0; i < kept.size(); ++i)
        if (kept[i].back == back) return i;
      kept.push_back({back, numbers_before(map, place, back)});
      return kept.size() - 1;
    };
    std::vector<RatedStrides> tried;
    std::vector<U> differences;
    const auto differ = [&](const Strides& strides) {
      differences.assign(runs_.values(), U{0});
      for (std::uint32_t set = 0; set < 1u << strides.count; ++set) {
        std::uint64_t back = 0;
        for (std::uint32_t i = 0; i < strides.count; ++i) back += (set >> i & 1) != 0 ? strides.of[i] : 0;
        const U* const numbers = kept[shifted(back)].numbers.data();
        if (std::popcount(set) % 2 == 0)
          for (std::size_t i = 0; i < differences.size(); ++i)
            differences[i] = static_cast<U>(differences[i] + numbers[i]);
        else
          for (std::size_t i = 0; i < differences.size(); ++i)
            differences[i] = static_cast<U>(differences[i] - numbers[i]);
      }
      wrap_numbers(map.width, static_cast<std::uint32_t>(differences.size()), differences.data());
    };
    for (const Strides& strides : axes_.candidates()) {
      if (strides.count == 0) continue;
      differ(strides);
      tried.push_back({strides, difference_bits<U>(differences, map.width)});
    }
    const double plain = difference_bits<U>(kept[0].numbers, map.width);
    for (RatedStrides& one : tried) count_begins(tried, plain, one);
    std::stable_sort(tried.begin(), tried.end(), fewer_in_all);
    tried.resize(std::min<std::size_t>(tried.size(), 3));
    tried.push_back({Strides{}, 0});
    // rate the best few again, with frequent values and bins of any size
    const std::size_t every = std::max<std::size_t>(1, runs_.values() / 4096);
    const bool has_rest = map.kind == NumberKind::multiple || map.kind == NumberKind::grid;
    const bool no_rest = std::all_of(remainders.begin(), remainders.end(), [](U r) { return r == 0; });
    const double rest = has_rest && !no_rest ? difference_bits<U>(remainders, map.width) : 0;
    std::vector<U> some;
    for (RatedStrides& one : tried) {
      differ(one.strides);
      const BinOrder<U> order(map, one.strides.count != 0);
      some.clear();
      for (std::size_t k = 0; k < differences.size(); k += every)
        some.push_back(to_bin_order<U>(order.zigzags, map.width, differences[k]));
      one.bits = rest + fixed_bits(map, one.strides) + one.begins +
                 bits_in_bins(order, some) * static_cast<double>(differences.size()) / static_cast<double>(some.size());
    }
    std::stable_sort(tried.begin(), tried.end(), fewer);
    return tried;
  }
  // Adds the bits of starts of units, where differences lack the longest stride. `plain`: bits of the numbers
  // themselves.
  void count_begins(const std::vector<RatedStrides>& tried, double plain, RatedStrides& one) const {
    Strides shorter = one.strides;  // in ascending order
    const std::uint32_t longest = shorter.of[shorter.count - 1];
    while (shorter.count != 0 && shorter.of[shorter.count - 1] == longest) shorter.of[--shorter.count] = 0;
    const double unit = axes_.unit_of(one.strides, one.bits / static_cast<double>(runs_.values()), count_);
    double without = shorter.count == 0 ? plain : one.bits;
    for (const RatedStrides& other : tried)
      if (other.strides.count == shorter.count && std::equal(shorter.of, shorter.of + kMostStrides, other.strides.of))
        without = other.bits;
    one.begins = std::max(0.0, longest / unit * (without - one.bits));
  }
  // Bits of a unit's stored first differences and of the model, times the sample's share.
  double fixed_bits(const NumberMap& map, const Strides& strides) const {
    double bits = 0;
    for (std::uint32_t i = 0; i < strides.count; ++i)
      bits += 24 + (strides.of[i] <= kShortStride ? strides.of[i] * map.width : 0);
    return bits * part();
  }
  static bool fewer(const RatedStrides& a, const RatedStrides& b) { return a.bits < b.bits; }
  static bool fewer_in_all(const RatedStrides& a, const RatedStrides& b) {
    return a.bits + a.begins < b.bits + b.begins;
  }

  // Finds floats whose lowest bits are zero, such as binary32 stored as binary64, and integers with a common divisor.
  void find_multiples(std::vector<NumberMap>& maps) const {
    NumberMap map = plain_;
    map.kind = NumberKind::multiple;
    if (map.is_float) {
      std::uint32_t with[8 * sizeof(U) + 1] = {}, total = 0;
      for (const U bits : sample_) {
        if (static_cast<U>(bits << 1) == 0) continue;  // zeros fit every shift
        ++with[std::countr_zero(bits)];
        ++total;
      }
      std::uint32_t fewer = 0, shift = 0;  // at most 3 % of the values have lower bits set
      for (std::uint32_t s = 0; s + 2 < map.width && 32 * fewer <= total; ++s) {
        shift = s;
        fewer += with[s];
      }
      if (total == 0 || shift < 3) return;
      map.shift = std::min(shift, map.width - 2);
      maps.push_back(map);
      return;
    }
    if (map.width < 16 || sample_.empty()) return;
    U divisor = 0, least = ordered(map, sample_[0]);
    using S = std::make_signed_t<U>;
    for (const U bits : sample_)
      if (static_cast<S>(ordered(map, bits)) < static_cast<S>(least)) least = ordered(map, bits);
    for (const U bits : sample_) divisor = std::gcd(divisor, static_cast<U>(ordered(map, bits) - least));
    if (divisor < 2) return;
    map.multiple = divisor;
    map.origin = least;
    maps.push_back(map);
  }

  // Finds floats that are multiples of a decimal or sexagesimal fraction, by a division or a product.
  void find_grid(std::vector<NumberMap>& maps) const {
    if (!plain_.is_float) return;
    std::vector<U> finite;
    constexpr U kInfinity = sizeof(U) == 8 ? static_cast<U>(0x7FF0000000000000ull) : static_cast<U>(0x7F800000u);
    for (const U bits : sample_)
      if ((bits & kInfinity) != kInfinity && static_cast<U>(bits << 1) != 0) finite.push_back(bits);
    if (finite.size() < 32) return;
    static constexpr double kParts[] = {1,    10,   100,   1000,    1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
                                        1e12, 3,    6,     7,       12,  24,  30,  36,  60,  360, 365,  720,
                                        1440, 3600, 86400, 86400e3, 2,   4,   8,   16,  32,  64,  128,  256};
    for (const double parts : kParts) {
      NumberMap best = plain_;
      std::size_t most = 0;
      for (const bool single : {false, true})
        for (const bool product : {false, true}) {
          if ((single && (!product || sizeof(U) == 8)) || (product && parts == 1)) continue;
          NumberMap map = plain_;
          map.kind = NumberKind::grid;
          map.product = product;
          map.unit = product ? 1 / parts : parts;
          if (single) map.unit = static_cast<double>(static_cast<float>(map.unit));
          std::size_t near = 0, exact = 0;
          for (std::size_t i = 0; i < finite.size(); ++i) {
            if (i == 64 && near < 56) break;
            const U number = nearest_grid_number<U>(map, finite[i], U{0});
            const U rest = static_cast<U>(ordered(map, finite[i]) - grid_point(map, number));
            // a grid as fine as the type would fit all values
            const U magnitude = static_cast<std::make_signed_t<U>>(number) < 0 ? static_cast<U>(U{0} - number) : number;
            const bool coarse = bit_width(magnitude) + 3 <= (sizeof(U) == 8 ? 53 : 24);
            near += coarse && zigzag(rest) <= 2 ? 1 : 0;
            exact += coarse && rest == 0 ? 1 : 0;
          }
          if (32 * (finite.size() - near) > finite.size() || exact < most) continue;
          if (exact == most && most != 0) continue;
          most = exact;
          best = map;
        }
      if (most == 0) continue;
      maps.push_back(best);
      return;
    }
  }

  // Finds a dictionary if the sample has few different values, at most a quarter of its size.
  void find_dictionary(std::vector<NumberMap>& maps, std::vector<std::uint64_t>& dictionary) const {
    if (plain_.width < 16 || count_ < 256) return;
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(kMostEntries, count_ / 8));
    std::vector<U> sorted = sample_;
    std::sort(sorted.begin(), sorted.end());
    const auto different = static_cast<std::size_t>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
    if (different > std::min(most, sample_.size() / 4)) return;
    PatternSet<U> all;
    for (std::uint64_t i = 0; i < count_; ++i)
      if (!all.insert(static_cast<U>(bits_of_value<T>(values_, i)), most)) return;
    for (const U bits : all.patterns()) dictionary.push_back(above_lowest(plain_.width, ordered(plain_, bits)));
    std::sort(dictionary.begin(), dictionary.end());
    NumberMap map = plain_;
    map.kind = NumberKind::dictionary;
    map.entries = static_cast<std::uint32_t>(dictionary.size());
    map.dictionary = dictionary.data();
    maps.push_back(map);
  }

  bool any_remainder(const NumberMap& map) const {
    constexpr std::uint32_t kAtOnce = 4096;
    std::vector<U> numbers(kAtOnce), rest(kAtOnce);
    for (std::uint64_t first = 0; first < count_; first += kAtOnce) {
      const auto here = static_cast<std::uint32_t>(std::min<std::uint64_t>(kAtOnce, count_ - first));
      number_values<T, U>(map, values_, first, here, FindPlace<U>(map), numbers.data(), rest.data());
      if (std::any_of(rest.begin(), rest.begin() + here, [](U r) { return r != 0; })) return true;
    }
    return false;
  }

  const void* values_;
  std::uint64_t count_;
  Axes axes_;
  SampledRuns runs_;
  NumberMap plain_;
  std::vector<U> sample_;  // bit patterns
};

PYF_END_TARGET
