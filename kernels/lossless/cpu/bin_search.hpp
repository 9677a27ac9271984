// SPDX-License-Identifier: BSD-3-Clause
// The bins of numbers (docs/format.md, section 15.4): the search for the bin of a number.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/bits.hpp"
#include "lossless/binned_model.hpp"

PYF_BEGIN_TARGET

// Finds the bin of a number. A table maps the number's highest bits to the first possible bin; a few comparisons
// follow, as many as the table's fullest entry needs.
template <class U>
class BinSearch {
 public:
  struct Found {
    std::uint32_t symbol;  // the escape if no bin has the number
    U offset;
  };

  explicit BinSearch(const BinModel& bins) : zigzags_(bins.zigzag) {
    std::fill_n(lowest_, kSymbols + 8, static_cast<U>(~U{0}));
    for (std::uint32_t s = 0; s < bins.bins; ++s) {
      lowest_[s] = static_cast<U>(bins.lowest[s]);
      few_ = few_ && bins.bits[s] <= 56;
      most_[s] = static_cast<U>(bins.bits[s] >= 8 * sizeof(U) ? ~U{0} : (U{1} << bins.bits[s]) - 1);
    }
    count_ = bins.bins;
    if (count_ == 0) return;
    if (!zigzags_) {  // signed order: equal cells from the lowest bin on
      base_ = lowest_[0];
      shift_ =
          static_cast<std::uint32_t>(std::max(0, bit_width(static_cast<U>(lowest_[count_ - 1] - base_)) - kKeyBits));
    }
    // first_: the last bin that begins at or before a key's numbers
    std::uint32_t begin = 0, together = 0;
    for (std::uint32_t s = 1; s < count_; ++s) {
      const std::uint32_t key = key_from(lowest_[s]);
      std::fill(first_ + begin, first_ + std::max(begin, key), static_cast<std::uint8_t>(s - 1));
      together = key == begin && s > 1 ? together + 1 : 1;  // bins that begin in one key's numbers
      compared_ = std::max(compared_, together);
      begin = key;
    }
    std::fill(first_ + begin, first_ + kKeys, static_cast<std::uint8_t>(count_ - 1));
  }
  // Quick: two comparisons always suffice, and offsets have at most 56 bits.
  template <bool Quick, bool Zigzags>
  KFN Found find(U number) const {
    std::uint32_t s = first_[key_of<Zigzags>(number)];
    if constexpr (Quick) {
      s += lowest_[s + 1] <= number ? 1 : 0;
      s += lowest_[s + 1] <= number ? 1 : 0;
    } else {
      while (s + 1 < count_ && lowest_[s + 1] <= number) ++s;
    }
    const U offset = static_cast<U>(number - lowest_[s]);
    const bool has = (number >= lowest_[s]) & (offset <= most_[s]) & (s < count_);  // the largest number ends the list
    return has ? Found{s, offset} : Found{kEscape, number};
  }

  // Calls work.operator()<Quick, Zigzags>() with the arguments of find().
  template <class Work>
  void with_kind(const Work& work) const {
    if (compared_ <= 2 && few_)
      zigzags_ ? work.template operator()<true, true>() : work.template operator()<true, false>();
    else
      zigzags_ ? work.template operator()<false, true>() : work.template operator()<false, false>();
  }
  // The symbols of `count` differences.
  void find_symbols(std::uint32_t width, const U* differences, std::uint32_t count, std::uint8_t* symbols) const {
    with_kind([&]<bool Quick, bool Zigzags>() {
      for (std::uint32_t i = 0; i < count; ++i)
        symbols[i] =
            static_cast<std::uint8_t>(find<Quick, Zigzags>(to_bin_order<U>(Zigzags, width, differences[i])).symbol);
    });
  }

 private:
  static constexpr int kKeyBits = 12;
  static constexpr std::uint32_t kKeys = 1u << kKeyBits;
  template <bool Zigzags>
  KFN std::uint32_t key_of(U number) const {
    if constexpr (Zigzags) {  // a key for each number below 128, then 64 for each octave
      const auto shift = static_cast<std::uint32_t>(bit_width(static_cast<U>(number | 127))) - 7;
      return 64 * shift + static_cast<std::uint32_t>(number >> shift);
    }
    const U cell = number < base_ ? U{0} : static_cast<U>(static_cast<U>(number - base_) >> shift_);
    return cell < kKeys ? static_cast<std::uint32_t>(cell) : kKeys - 1;
  }
  // The first key all of whose numbers are at least `number`; the number of keys if there is none.
  std::uint32_t key_from(U number) const {
    if (zigzags_) {
      const std::uint32_t key = key_of<true>(number), shift = key < 128 ? 0 : key / 64 - 1;
      return key + (static_cast<U>(number >> shift << shift) != number ? 1 : 0);
    }
    const U above = static_cast<U>(number - base_);
    const U cell = static_cast<U>((above >> shift_) + (static_cast<U>(above >> shift_ << shift_) != above ? 1 : 0));
    return cell < kKeys ? static_cast<std::uint32_t>(cell) : kKeys;
  }

  bool zigzags_;
  U base_ = 0, lowest_[kSymbols + 8], most_[kSymbols + 8] = {};
  std::uint32_t shift_ = 0, compared_ = 0, count_ = 0;
  bool few_ = true;
  std::uint8_t first_[kKeys] = {};
};

PYF_END_TARGET
