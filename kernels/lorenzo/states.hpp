// SPDX-License-Identifier: BSD-3-Clause
// The states in front of a group's rans stream (docs/format.md, section 8.3), for CPU and GPU. Two bits tell whether
// the number of words is odd, and whether there are any. Then come the places of the highest ones of all states, and
// the bits below these.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/entropy/packed_states.hpp"

namespace pyfilter {

inline constexpr std::uint32_t kOddWords = 1, kHasWords = 2, kWordFlagBits = 2;
KFN constexpr std::uint32_t word_flags(std::uint32_t words) {
  return (words % 2 != 0 ? kOddWords : 0) | (words != 0 ? kHasWords : 0);
}
// Words of 32 bits that states take at most.
inline constexpr std::uint32_t kMostStateWords =
    words_of_bits(kWordFlagBits + kLaneCount * (kPlaceBits + kStateBits - 1));

// Writes the states of `lanes` lanes, with the number of the stream's words. Returns the words of 32 bits they fill.
inline std::uint32_t write_states(const std::uint32_t (&states)[kLaneCount], std::uint32_t lanes, std::uint32_t words,
                                  std::uint8_t* to) {
  const StatePlace first(words != 0);
  std::uint64_t pending = word_flags(words);  // bits that are not stored yet
  std::uint32_t count = kWordFlagBits, stored = 0;
  const auto put = [&](std::uint32_t value, std::uint32_t bits) {
    pending |= std::uint64_t{value} << count;
    count += bits;
    if (count < 32) return;
    store_le(to + 4 * stored++, static_cast<std::uint32_t>(pending));
    pending >>= 32;
    count -= 32;
  };
  for (std::uint32_t lane = 0; lane < lanes; ++lane) put(place_of(states[lane]) - first.lowest, first.bits);
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    const std::uint32_t place = place_of(states[lane]);
    put(states[lane] ^ 1u << place, place);
  }
  if (count != 0) store_le(to + 4 * stored++, static_cast<std::uint32_t>(pending));
  return stored;
}

// Reads the states of `lanes` lanes, and the flags of the stream's words, from `size` bytes. Returns the words of 32
// bits they fill, or 0 if they are damaged.
inline std::uint32_t read_states(const std::uint8_t* from, std::size_t size, std::uint32_t lanes,
                                 std::uint32_t (&states)[kLaneCount], std::uint32_t& flags) {
  std::uint32_t words[kMostStateWords + 1] = {};
  const std::size_t here = std::min<std::size_t>(size / 4, kMostStateWords);
  for (std::size_t i = 0; i < here; ++i) words[i] = load_le<std::uint32_t>(from + 4 * i);
  std::uint32_t at = 0;
  const auto take = [&](std::uint32_t bits) {
    const std::uint64_t both = words[at / 32] | std::uint64_t{words[at / 32 + 1]} << 32;
    const auto value = static_cast<std::uint32_t>(both >> at % 32) & ((1u << bits) - 1);
    at += bits;
    return value;
  };
  flags = take(kWordFlagBits);
  const StatePlace first((flags & kHasWords) != 0);
  bool good = flags != kOddWords;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    states[lane] = first.lowest + take(first.bits);
    good = good && states[lane] < kStateBits;
  }
  for (std::uint32_t lane = 0; good && lane < lanes; ++lane) states[lane] = 1u << states[lane] | take(states[lane]);
  const std::uint32_t filled = words_of_bits(at);
  return good && filled <= here && (at % 32 == 0 || words[at / 32] >> at % 32 == 0) ? filled : 0;
}

}  // namespace pyfilter
