// SPDX-License-Identifier: BSD-3-Clause
// Encodes whole rounds. Forwards, while residuals are at hand, each becomes the index of a table entry. Backwards the
// entries are read; states stay in vectors, those of the last lanes first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "lorenzo/cpu/round_indices.hpp"
#include "lorenzo/cpu/simd/steps.hpp"

PYF_BEGIN_TARGET

// symbol_of_small() of each lane.
KFN U32 small_symbols(U32 residual) {
  return smaller(((U32)(as_floats(residual) + 0.5f) >> 21) - (4 * 131 - kDirectSymbols), residual);
}

using RowsOfWords = std::uint32_t[32][kLaneCount];

// Computes the indices of a round whose residuals are below kMediumEnd.
template <const IndexOf& kOf>
[[gnu::noinline]] inline void index_round(const Neighbours& near, const Contexts& contexts, std::uint32_t lanes,
                                          const RowsOfWords& rows, RoundIndices& indices) {
  const TablesOfSums table(contexts);
  const U32 neutral = all_of(kOf.neutral), first_table = all_of(contexts.count << kOf.bits);
  const auto index = [&](std::uint32_t i, std::uint32_t from) {
    const U32 value = load(rows[i] + from);
    const U32 entry = kOf.symbols ? small_symbols(value) : value;
    if (i == 0) return entry | first_table;
    return entry | table.of(load(rows[near.first[i]] + from) + load(rows[near.second[i]] + from)) << kOf.bits;
  };
  for (std::uint32_t i = 0; i < 32; ++i) {
    for (std::uint32_t from = 0; from < lanes; from += 16) {
      U32 parts[16 / kVectorLanes];
      for (std::uint32_t k = 0; k < 16 / kVectorLanes; ++k) parts[k] = index(i, from + k * kVectorLanes);
      if (lanes < from + 16)
        for (std::uint32_t k = 0; k < 16 / kVectorLanes; ++k)
          parts[k] = select(lanes_below(lanes, from + k * kVectorLanes), parts[k], neutral);
      store_shorts(indices.of[i] + from, parts);
    }
  }
}

// States in kVectors vectors. Vectors whose words go to the stream together are adjacent.
template <int kVectors>
struct HeldStates {
  static constexpr int kSpilled = kVectors < kSpilledTogether ? kVectors : kSpilledTogether,
                       kGroups = kVectors / kSpilled;
  U32 x[kGroups][kSpilled];

  static constexpr int lane_of(int v) { return static_cast<int>(kVectorLanes) * (kVectors - 1 - v); }
  KFN void load_from(const LaneStates& states) {
    for (int v = 0; v < kVectors; ++v) x[v / kSpilled][v % kSpilled] = held_order(load(states.x + lane_of(v)));
  }
  KFN void store_to(LaneStates& states) const {
    for (int v = 0; v < kVectors; ++v) store(states.x + lane_of(v), held_order(x[v / kSpilled][v % kSpilled]));
  }
};

// Encodes the outer bits of residuals; only residuals from kNarrowEnd on have some.
template <int kCount>
KFN void encode_outer(U32 (&x)[kCount], const U32 (&value)[kCount], std::uint8_t*& at) {
  U32 count[kCount];
  Lanes<std::uint32_t> must[kCount];
  for (int v = 0; v < kCount; ++v) {
    count[v] = larger((float_bits(value[v]) >> 23) - (126 + 3 + kInnerBits), U32{});
    must[v] = above(shifted_right(x[v], kStateBits - count[v]), U32{});
  }
  spill_held(x, must, at);
  for (int v = 0; v < kCount; ++v) x[v] = shifted_left(x[v], count[v]) | low_bits(value[v] >> kInnerBits, count[v]);
}

// Encodes a symbol of each lane. Inner bits come from `bits`, in narrow rounds from the entries. kInner: there are
// some.
template <bool kNarrow, bool kInner, int kCount>
KFN void encode_symbols(U32 (&x)[kCount], const StepEntries (&entries)[kCount], const U32 (&bits)[kCount],
                        std::uint8_t*& at) {
  U32 rest[kCount], most[kCount], inner[kCount];  // rest: what follows the reciprocals; most: frequency - 1
  Lanes<std::uint32_t> must[kCount];
  for (int v = 0; v < kCount; ++v) {
    rest[v] = high_halves(entries[v].even, entries[v].odd);
    most[v] = rest[v] & (kFrequencySum - 1);
    U32 room = x[v] >> (kStateBits - kProbabilityBits);
    if constexpr (kInner) {
      inner[v] = rest[v] >> 25 & 7u;
      room = shifted_right(x[v], kStateBits - kProbabilityBits - inner[v]);
    }
    must[v] = above(room, most[v]);
  }
  spill_held(x, must, at);
  for (int v = 0; v < kCount; ++v) {
    U32 grown = x[v];
    if constexpr (kInner)
      grown = shifted_left(grown, inner[v]) | (kNarrow ? rest[v] >> 20 & 31u : low_bits(bits[v], inner[v]));
    const U32 first = rest[v] >> 10 & (kFrequencySum - 1), scaled = shifted_left(grown, rest[v] >> 28);
    const U64 even = even_products(scaled, (U32)entries[v].even);
    const U64 odd = even_products((U32)((U64)scaled >> 32), (U32)entries[v].odd);
    const U32 quotient = high_halves(even, odd) >> kQuotientShift, others = kFrequencySum - 1 - most[v];
    x[v] = grown + first + quotient * others;
  }
}

// Encodes steps of kVectors vectors backwards, from the step before `end` on. Returns the number of steps left: if not
// 0, some symbol in the last EntryReader::kUnchecked steps has no frequency. Rows: nullptr in narrow rounds, else the
// residuals, which medium rounds need for outer bits.
template <int kVectors, bool kInner, class Rows>
KFN std::uint32_t encode_steps(const std::uint64_t* table, const RoundIndices& indices, const Rows& rows,
                               std::uint32_t end, LaneStates& states, WordWriter& words) {
  constexpr bool kNarrow = std::is_null_pointer_v<Rows>;
  using Held = HeldStates<kVectors>;
  EntryReader<kVectors> reader(table, indices, end);
  Held held, done;  // done: before the steps that are not checked yet
  held.load_from(states);
  std::uint8_t* at = words.at;
  for (std::uint32_t i = end; i != 0;) {
    const std::uint32_t left = i;
    U64 known = ~U64{};
    done = held;
    do {
      --i;
      Held value;
      if constexpr (!kNarrow) {
        U32 any{};
        for (int v = 0; v < kVectors; ++v)
          any |= value.x[v / Held::kSpilled][v % Held::kSpilled] = held_order(load(rows[i] + Held::lane_of(v)));
        if (!is_zero(any & ~(kNarrowEnd - 1)))
          for (int g = 0; g < Held::kGroups; ++g) encode_outer(held.x[g], value.x[g], at);
      }
      for (int g = 0; g < Held::kGroups; ++g) {
        StepEntries entries[Held::kSpilled];
        for (int v = 0; v < Held::kSpilled; ++v) {
          entries[v] = reader.entries(i, g * Held::kSpilled + v);
          known &= entries[v].even & entries[v].odd;
        }
        encode_symbols<kNarrow, kInner>(held.x[g], entries, kNarrow ? held.x[g] : value.x[g], at);
      }
      reader.step_done(i);
    } while (i % reader.kUnchecked != 0);
    if (!is_zero((U32)(~known & all_of(std::uint64_t{1} << 31)))) [[unlikely]] {
      done.store_to(states);
      return left;
    }
    if (words.is_empty() && at != words.at) [[unlikely]] {
      if (left % 4 == 0) done.store_to(words.before);
      words.check_first();
      if (words.again) return 0;
    }
    words.at = at;
  }
  held.store_to(states);
  return 0;
}

template <int kVectors, bool kInner>
[[gnu::noinline]] inline std::uint32_t encode_narrow(const std::uint64_t* table, const RoundIndices& indices,
                                                     std::uint32_t end, LaneStates& states, WordWriter& words) {
  return encode_steps<kVectors, kInner>(table, indices, nullptr, end, states, words);
}
template <int kVectors>
[[gnu::noinline]] inline std::uint32_t encode_medium(const std::uint64_t* table, const RoundIndices& indices,
                                                     const RowsOfWords& rows, std::uint32_t end, LaneStates& states,
                                                     WordWriter& words) {
  return encode_steps<kVectors, true>(table, indices, rows, end, states, words);
}

PYF_END_TARGET
