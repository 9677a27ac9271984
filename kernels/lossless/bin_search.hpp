// SPDX-License-Identifier: BSD-3-Clause
// The bins of numbers (docs/format.md, section 15.4): the search for the bin of a number, for encoders on CPU and GPU.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "lossless/binned_model.hpp"
#include "stages/team.hpp"

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

  // Called by all threads of a team.
  template <class Team>
  PYF_MODEL void make(const Team& team, const BinModel& bins) {
    bool quick = true;
    each(team, kSymbols + 8, [&](std::uint32_t s) {
      const bool has = s < bins.bins;
      lowest_[s] = has ? static_cast<U>(bins.lowest[s]) : static_cast<U>(~U{0});
      const bool all = !has || bins.bits[s] >= 8 * sizeof(U);
      most_[s] = all ? has ? static_cast<U>(~U{0}) : U{0} : static_cast<U>((U{1} << bins.bits[s]) - 1);
      quick = quick && (!has || bins.bits[s] <= 56);
    });
    team.wait();
    if (team.rank() == 0) {
      zigzags_ = bins.zigzag;
      count_ = bins.bins;
      shift_ = 0;
      base_ = 0;
      if (!zigzags_ && count_ != 0) {  // signed order: equal cells from the lowest bin on
        base_ = lowest_[0];
        const int wide = bit_width(static_cast<U>(lowest_[count_ - 1] - base_)) - kKeyBits;
        shift_ = wide > 0 ? static_cast<std::uint32_t>(wide) : 0;
      }
    }
    team.wait();
    // at most two bins begin in one key's numbers
    each(team, count_,
         [&](std::uint32_t s) { quick = quick && (s < 3 || key_from(lowest_[s]) != key_from(lowest_[s - 2])); });
    quick = !any_of(team, !quick);
    if (team.rank() == 0) quick_ = quick;
    // first_: the last bin that begins at or before a key's numbers
    const auto begin_of = [&](std::uint32_t s) { return s < count_ ? key_from(lowest_[s]) : kKeys; };
    share(team, kKeys, [&](std::uint32_t begin, std::uint32_t end) {
      std::uint32_t s = 0;
      for (std::uint32_t above = count_; s + 1 < above;) {  // the last one up to `begin`
        const std::uint32_t middle = (s + above) / 2;
        (begin_of(middle) <= begin ? s : above) = middle;
      }
      std::uint32_t next = begin_of(s + 1);
      for (std::uint32_t key = begin; key < end; ++key) {
        while (next <= key) next = begin_of(++s + 1);
        first_[key] = static_cast<std::uint8_t>(s);
      }
    });
    team.wait();
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

  KFN bool is_quick() const { return quick_; }
  // The symbols of some differences, side by side. For the largest number a symbol depends on quick_: the list ends
  // with it.
  template <std::uint32_t kCount>
  PYF_MODEL void find_each(std::uint32_t width, const U (&differences)[kCount],
                           std::uint32_t (&symbols)[kCount]) const {
    with_kind([&]<bool Quick, bool Zigzags>() {
      for (std::uint32_t k = 0; k < kCount; ++k)
        symbols[k] = find<Quick, Zigzags>(to_bin_order<U>(Zigzags, width, differences[k])).symbol;
    });
  }
  // Calls work.operator()<Quick, Zigzags>() with the arguments of find().
  template <class Work>
  KFN void with_kind(const Work& work) const {
    if (quick_)
      zigzags_ ? work.template operator()<true, true>() : work.template operator()<true, false>();
    else
      zigzags_ ? work.template operator()<false, true>() : work.template operator()<false, false>();
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
  KFN std::uint32_t key_from(U number) const {
    if (zigzags_) {
      const std::uint32_t key = key_of<true>(number), shift = key < 128 ? 0 : key / 64 - 1;
      return key + (static_cast<U>(number >> shift << shift) != number ? 1 : 0);
    }
    const U above = static_cast<U>(number - base_);
    const U cell = static_cast<U>((above >> shift_) + (static_cast<U>(above >> shift_ << shift_) != above ? 1 : 0));
    return cell < kKeys ? static_cast<std::uint32_t>(cell) : kKeys;
  }

  bool zigzags_, quick_;
  U base_, lowest_[kSymbols + 8], most_[kSymbols + 8];
  std::uint32_t shift_, count_;
  std::uint8_t first_[kKeys];
};

PYF_END_TARGET
