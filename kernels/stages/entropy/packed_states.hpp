// SPDX-License-Identifier: BSD-3-Clause
// States of streams whose encoder begins with the smallest states (docs/format.md, sections 8.4 and 14.5), for CPU and
// GPU.
//
// After its last word a decoder goes on, until its states are the encoder's first ones. So a lane may begin with state
// 1, which loses no bits, if no lane is below kLowestState when the encoder writes its first word. A lane that would be
// begins with kLowestState.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "stages/entropy/rans_step.hpp"
#include "stages/entropy/tables.hpp"

namespace pyfilter {

inline constexpr std::uint32_t kFirstState = 1, kPlaceBits = 5;  // kPlaceBits: of a state's place, at most

// Bits of the lanes from `lane` on, of 32.
KFN std::uint32_t lanes_from(std::uint32_t lane) { return lane < kLaneCount ? ~0u << lane : 0; }
// `full`: lanes that begin with kLowestState.
KFN std::uint32_t first_state(std::uint32_t lane, std::uint32_t full) {
  return (full >> lane & 1) != 0 ? kLowestState : kFirstState;
}
KFN bool is_first_state(std::uint32_t x) { return x == kFirstState || x == kLowestState; }

// A state is the place of its highest one, less the lowest place, then the bits below that one.
struct StatePlace {
  std::uint32_t lowest, bits;

  explicit KFN StatePlace(bool has_words) : lowest(has_words ? 15 : 0), bits(has_words ? 4 : kPlaceBits) {}
};
static_assert(kLowestState == 1u << 15 && kStateBits == 31);

KFN std::uint32_t place_of(std::uint32_t x) { return static_cast<std::uint32_t>(bit_width(x)) - 1; }
KFN void put_state(std::uint32_t x, bool has_words, BitWriter& out) {
  const StatePlace first(has_words);
  const std::uint32_t place = place_of(x);
  out.put(place - first.lowest, first.bits);
  out.put(x & ((1u << place) - 1), place);
}
// Words that bits fill, and that states fill at least and at most.
KFN constexpr std::uint32_t words_of_bits(std::size_t bits) { return static_cast<std::uint32_t>((bits + 31) / 32); }
KFN constexpr std::uint32_t least_state_words(std::uint32_t lanes) {
  return words_of_bits(std::size_t{lanes} * kPlaceBits);
}
KFN constexpr std::uint32_t most_state_words(std::uint32_t lanes) {
  return words_of_bits(std::size_t{lanes} * (kPlaceBits + kStateBits - 1));
}

// Reads the states of lanes in their order.
struct StateReader {
  BitReader in;
  bool has_words, good = true;

  KFN std::uint32_t next() {
    const StatePlace first(has_words);
    const std::uint32_t place = first.lowest + in.take(first.bits);
    good = good && place < kStateBits;
    return 1u << place | in.take(place);
  }
  // Returns the number of words that the states fill, or 0 if they are damaged.
  KFN std::uint32_t end() {
    const std::uint32_t words = words_of_bits(in.bits);
    const bool padded = in.take(static_cast<std::uint32_t>(32 * std::size_t{words} - in.bits)) == 0;
    return good && padded && !in.failed ? words : 0;
  }
};

}  // namespace pyfilter
