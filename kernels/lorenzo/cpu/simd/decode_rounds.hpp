// SPDX-License-Identifier: BSD-3-Clause
// Decodes whole rounds; states stay in vectors from step to step. From the first step with an escape or a residual of
// 23 bits or more on, steps.hpp decodes the rest of the round.
#pragma once

#include <cstdint>

#include "lorenzo/cpu/simd/steps.hpp"

PYF_BEGIN_TARGET

// Decodes steps from the first one on, as long as they are ordinary; returns their number.
template <int kVectors, bool kWhole>
[[gnu::noinline]] inline std::uint32_t decode_steps(const DecodeTables& tables, const Neighbours& near,
                                                    std::uint32_t code_bits, std::uint32_t lanes, RoundRows& rows,
                                                    LaneStates& states, WordReader& words) {
  constexpr auto kHeld = static_cast<int>(kVectorLanes);
  const TablesOfSums table(tables.contexts);
  SteppedWords<kStepBytes> stepped(words);
  const std::uint8_t* at = words.at;
  U32 x[kVectors];
  Lanes<std::uint32_t> part[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    x[v] = load(states.x + kHeld * v);
    part[v] = kWhole ? all_lanes() : lanes_below(lanes, kVectorLanes * static_cast<std::uint32_t>(v));
  }
  const auto keep_states = [&] {
    for (int v = 0; v < kVectors; ++v) store(states.x + kHeld * v, x[v]);
    stepped.give_back(at, words);
  };
  std::uint32_t i = 0;
  for (; i < 32 && stepped.may_step(at); ++i) {
    const std::uint32_t *const first = rows.low[near.first[i]], *const second = rows.low[near.second[i]];
    std::uint32_t* const row = rows.low[i];
    U32 symbol[kVectors], value[kVectors], highest{}, lowest = all_of(stepped.lowest_state(at));
    for (int v = 0; v < kVectors; ++v) {
      U32 chosen = all_of(tables.contexts.count);
      if (i != 0) chosen = table.of(load(first + kHeld * v) + load(second + kHeld * v));
      const U32 index = chosen << kProbabilityBits | (x[v] & (kFrequencySum - 1));
      const DecodedSymbols decoded = decode_symbols(entries_at(tables.entries, index), x[v]);
      symbol[v] = decoded.symbol;
      value[v] = smallest_narrow(symbol[v]) + decoded.raw;
      x[v] = take_words(kWhole ? decoded.left : select(part[v], decoded.left, x[v]), part[v], at, lowest);
      highest = larger(highest, kWhole ? symbol[v] : where(part[v], symbol[v]));
    }
    for (int v = 0; v < kVectors; ++v) store(row + kHeld * v, value[v]);
    if (lane_bits(above(highest, all_of(2 * kDirectSymbols - 1))) == 0) continue;
    if (lane_bits(above(highest, all_of(4 * 23 - 1u))) != 0) [[unlikely]] {  // some residual has 23 bits or more
      alignas(64) std::uint32_t symbols[kLaneCount];
      for (int v = 0; v < kVectors; ++v) store(symbols + kHeld * v, symbol[v]);
      keep_states();
      decode_outer(code_bits, lanes, i, symbols, rows, states, words);
      return i + 1;
    }
    lowest = all_of(stepped.lowest_state(at));
    for (int v = 0; v < kVectors; ++v) {
      const auto takes = above(symbol[v], all_of(2 * kDirectSymbols - 1), part[v]);
      const U32 bits = where(takes, raw_bits_of(symbol[v]) - kInnerBits);
      const U32 raw = low_bits(x[v], bits) << kInnerBits;
      store(row + kHeld * v, value[v] + (raw + where(takes, smallest_residual(symbol[v]))));
      x[v] = take_words(shifted_right(x[v], bits), takes, at, lowest);
    }
  }
  keep_states();
  return i;
}

PYF_END_TARGET
