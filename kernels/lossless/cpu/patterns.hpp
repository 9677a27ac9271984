// SPDX-License-Identifier: BSD-3-Clause
// Hash tables with open addressing: the distinct bit patterns of values, and their indices in a list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lossless/numbers.hpp"

PYF_BEGIN_TARGET

// At least four slots for each pattern.
inline constexpr std::uint32_t kPatternSlotsLog2 = 14;
static_assert(4 * kMostEntries == 1u << kPatternSlotsLog2);

template <class U>
KFN std::uint32_t slot_of_pattern(U bits) {
  return static_cast<std::uint32_t>((std::uint64_t{bits} * 0x9E3779B97F4A7C15ull) >> (64 - kPatternSlotsLog2));
}
inline std::uint32_t next_slot(std::uint32_t slot) { return (slot + 1) & ((1u << kPatternSlotsLog2) - 1); }

// Collects distinct patterns.
template <class U>
class PatternSet {
 public:
  PatternSet() : places_(std::size_t{1} << kPatternSlotsLog2, 0) {}
  // Returns false if there would be more than `most` patterns. `most` is at most kMostEntries.
  bool insert(U bits, std::size_t most) {
    std::uint32_t slot = slot_of_pattern(bits);
    for (; places_[slot] != 0; slot = next_slot(slot))
      if (patterns_[places_[slot] - 1u] == bits) return true;
    if (patterns_.size() == most) return false;
    patterns_.push_back(bits);
    places_[slot] = static_cast<std::uint16_t>(patterns_.size());
    return true;
  }
  const std::vector<U>& patterns() const { return patterns_; }

 private:
  std::vector<std::uint16_t> places_;  // index plus one; 0: empty
  std::vector<U> patterns_;
};

// Finds the index of an ordered pattern in a map's list, if the list has it.
template <class U>
class FindPlace {
 public:
  explicit FindPlace(const NumberMap& map) : map_(map) {
    if (map.kind != NumberKind::dictionary) return;
    places_.assign(std::size_t{1} << kPatternSlotsLog2, 0);
    for (std::uint32_t i = 0; i < map.entries; ++i) {
      std::uint32_t slot = slot_of_pattern(static_cast<U>(map.dictionary[i]));
      while (places_[slot] != 0) slot = next_slot(slot);
      places_[slot] = static_cast<std::uint16_t>(i + 1);
    }
  }
  std::uint32_t operator()(U pattern) const {
    const U above = above_lowest(map_.width, pattern);
    std::uint32_t slot = slot_of_pattern(above);
    while (static_cast<U>(map_.dictionary[places_[slot] - 1u]) != above) slot = next_slot(slot);
    return places_[slot] - 1u;
  }

 private:
  const NumberMap& map_;
  std::vector<std::uint16_t> places_;  // index plus one; 0: empty
};

PYF_END_TARGET
