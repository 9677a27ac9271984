// SPDX-License-Identifier: BSD-3-Clause
// Slots of a frame's tables. Those of the first eight symbols, which are most, are found in shared memory: an entry in
// global memory takes several hundred cycles.
#pragma once

#include <cstdint>

#include "adaptive/cuda/params.cuh"
#include "adaptive/symbol_step.hpp"
#include "stages/entropy/slots.hpp"

namespace pyfilter::cuda {

struct FrequentSlots {
  static constexpr std::uint32_t kCount = 8, kTopBits = 0x80008000u;

  // Of each table where the slots of symbols 0 to 7 end, as pairs of 16 bits with the highest one set. Then where a
  // symbol's slots begin, and its frequency << 16.
  uint4 ends[kMostTablesOfModel];
  std::uint32_t of_symbol[kMostTablesOfModel][kCount];

  // Called by a warp.
  __device__ __forceinline__ void load(const AdaptiveModel& model) {
    const std::uint32_t t = this_lane();
    if (t >= model.tables) return;
    std::uint32_t end = 0, both[kCount / 2] = {};
#pragma unroll
    for (std::uint32_t s = 0; s < kCount; ++s) {
      const std::uint32_t frequency = model.table[t].of[s];
      of_symbol[t][s] = end | frequency << 16;
      end += frequency;
      both[s / 2] |= (end | 0x8000u) << 16 * (s % 2);
    }
    ends[t] = {both[0], both[1], both[2], both[3]};
  }
};

// The tables of a frame: the frequent symbols, and the entries of all slots.
struct FrameSlots {
  const FrequentSlots& frequent;
  const std::uint32_t* all;
};
PYF_LANES Ints slot_entries(const FrameSlots& slots, const Ints& first, const Ints& slot, const Ints& active) {
  const auto at = static_cast<std::uint32_t>(slot.v);
  const std::uint32_t table = static_cast<std::uint32_t>(first.v) >> kTableBits, behind = (at + 1) * 0x10001u;
  const uint4 ends = slots.frequent.ends[table];
  // a highest one stays where the slot is before the end
  constexpr std::uint32_t kTop = FrequentSlots::kTopBits;
  const std::uint32_t before = ((ends.x - behind) & kTop) | ((ends.y - behind) & kTop) >> 1 |
                               ((ends.z - behind) & kTop) >> 2 | ((ends.w - behind) & kTop) >> 3;
  const std::uint32_t symbol = FrequentSlots::kCount - popcount(before);
  if (before == 0) {
    std::uint32_t entry = 0;
    if (active.v != 0) entry = slots.all[static_cast<std::uint32_t>(first.v) + at];
    return {static_cast<std::int32_t>(entry)};
  }
  const std::uint32_t own = slots.frequent.of_symbol[table][symbol];
  return {static_cast<std::int32_t>(slot_entry(symbol, own >> 16, at - (own & 0xFFFF)))};
}

}  // namespace pyfilter::cuda
