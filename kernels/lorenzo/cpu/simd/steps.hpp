// SPDX-License-Identifier: BSD-3-Clause
// Steps of 32 lanes of a stream (lanes.hpp explains them), a vector of lanes at a time. Table entries are gathered;
// words of the stream are handed out and collected together. Without vectors lanes are coded one by one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/target.hpp"
#include "lorenzo/cpu/lanes.hpp"
#include "stages/simd/vector.hpp"
#if defined(PYF_LEVEL_AVX512)
#include "lorenzo/cpu/simd/words_avx512.hpp"
#elif defined(PYF_LEVEL_AVX2)
#include "lorenzo/cpu/simd/words_avx2.hpp"
#endif

PYF_BEGIN_TARGET

#if defined(PYF_VECTORS)
inline constexpr std::uint32_t kVectorLanes = kPer<std::uint32_t>;
inline constexpr int kMostVectors = static_cast<int>(kLaneCount / kVectorLanes);  // vectors of a stream's states

// Bytes that a step may read: for each lane one word for a symbol and two for raw bits, and one vector beyond.
inline constexpr std::ptrdiff_t kStepBytes = 2 * 32 * 3 + kVectorBytes / 2;

// The states in `part` that are below `lowest` take a word each, in the order of lanes.
KFN U32 take_words(U32 x, Lanes<std::uint32_t> part, const std::uint8_t*& at, U32 lowest = all_of(kLowestState)) {
  const auto low = above(lowest, x, part);
  const U32 words = next_words(at, low);
  at += 2 * __builtin_popcount(lane_bits(low));
  return shifted_left<16>(x, low) | words;
}

// The lanes' tables, by their neighbours.
KFN U32 table_of(const Contexts& contexts, U32 first, U32 second) {
  const U32 cap = all_of(kLevelCap), octaves = all_of(contexts.octaves);
  const U32 exponent = float_bits(smaller(first, cap) + smaller(second, cap)) >> 22;
  const U32 level = larger(exponent - 253u, U32{}), step = shifted_right(level + octaves, octaves);
  return smaller(larger(step - contexts.base, U32{}), all_of(contexts.count - 1));
}
// The same for neighbours below kLevelCap. Members stay in registers during a round.
struct TablesOfSums {
  std::uint32_t shift;
  U32 offset, top;

  explicit KFN TablesOfSums(const Contexts& contexts) {
    const TableOfSum table(contexts);
    shift = table.shift;
    offset = all_of(static_cast<std::uint32_t>(table.offset));
    top = all_of(table.top);
  }
  KFN U32 of(U32 sum) const { return smaller_16(reduced_16(all_shifted_right(float_bits(sum), shift), offset), top); }
};

// The lanes' symbols from their entries, the symbols' inner bits, and the remaining states.
struct DecodedSymbols {
  U32 symbol, raw, left;
};
KFN DecodedSymbols decode_symbols(U32 entry, U32 x) {
  const U32 frequency = entry >> 8 & 0x7FFu, place = entry >> 19 & 0x3FFu, inner = entry >> 29;
  const U32 shrunk = frequency * (x >> kProbabilityBits) + place;
  return {entry & 0xFFu, low_bits(shrunk, inner), shifted_right(shrunk, inner)};
}
// For symbols that are not direct: the number of raw bits, and the smallest residual.
KFN U32 raw_bits_of(U32 symbol) { return (symbol >> 2) - 2u; }
KFN U32 smallest_residual(U32 symbol) { return shifted_left((symbol & 3u) | 4u, raw_bits_of(symbol)); }

// Decodes the raw bits behind symbols: up to two steps for each lane.
[[gnu::noinline]] inline void decode_outer_lanes(std::uint32_t lanes, std::uint32_t* row, const std::uint32_t* symbols,
                                                 LaneStates& states, WordReader& words) {
  for (const std::uint32_t taken : {kInnerBits, kInnerBits + kStepBits}) {
    bool any = false;
    for (std::uint32_t from = 0; from < lanes; from += kVectorLanes) {
      const U32 left = raw_bits_of(load(symbols + from)) - taken;
      const auto takes = above(left, U32{}, lanes_below(lanes, from));
      if (lane_bits(takes) == 0) continue;
      any = true;
      const U32 bits = where(takes, smaller(left, all_of(kStepBits))), x = load(states.x + from);
      store(row + from, load(row + from) + (low_bits(x, bits) << taken));
      store(states.x + from, take_words(shifted_right(x, bits), takes, words.at));
    }
    if (!any) return;
  }
}

KFN void decode_step(const DecodeTables& tables, const Neighbours& near, std::uint32_t code_bits, std::uint32_t lanes,
                     std::uint32_t i, RoundRows& rows, LaneStates& states, WordReader& words) {
  if (rows.wide || words.end - words.at < kStepBytes) [[unlikely]] {
    decode_step_by_lane(tables, near, code_bits, lanes, i, rows, states, words);
    return;
  }
  alignas(64) std::uint32_t symbols[kLaneCount];
  const std::uint32_t *const first = rows.low[near.first[i]], *const second = rows.low[near.second[i]];
  U32 highest{};
  for (std::uint32_t from = 0; from < lanes; from += kVectorLanes) {
    const auto part = lanes_below(lanes, from);
    const U32 table =
        i == 0 ? all_of(tables.contexts.count) : table_of(tables.contexts, load(first + from), load(second + from));
    const U32 x = load(states.x + from), index = table << kProbabilityBits | (x & (kFrequencySum - 1));
    const DecodedSymbols decoded = decode_symbols(gathered<4>(tables.entries, index), x);
    store(states.x + from, take_words(select(part, decoded.left, x), part, words.at));
    const auto direct = above(all_of(kDirectSymbols), decoded.symbol);
    store(rows.low[i] + from, select(direct, decoded.symbol, smallest_residual(decoded.symbol) + decoded.raw));
    store(symbols + from, decoded.symbol);
    highest = larger(highest, where(part, decoded.symbol));
  }
  if (lane_bits(above(highest, all_of(2 * kDirectSymbols - 1))) == 0) return;
  if (lane_bits(above(highest, all_of(symbols_of_width(32) - 1))) == 0) {
    decode_outer_lanes(lanes, rows.low[i], symbols, states, words);
    return;
  }
  for (std::uint32_t l = 0; l < lanes; ++l)  // decode_outer() expects 0 for symbols without a value yet
    if (symbols[l] >= symbols_of_width(32)) rows.low[i][l] &= (1u << kInnerBits) - 1;
  decode_outer(code_bits, lanes, i, symbols, rows, states, words);
}

// x * reciprocal >> (31 + shift), with a product of 64 bits.
KFN U32 divided(U32 x, U32 reciprocal, U32 shift) {
  const auto all = (U64)(shift + 31u);
  const U64 even = shifted_right(even_products(x, reciprocal), all & std::uint64_t{0xFFFFFFFF});
  const U64 odd = shifted_right(even_products((U32)((U64)x >> 32), (U32)((U64)reciprocal >> 32)), all >> 32);
  return (U32)(even | odd << 32);
}

// Symbols of residuals below 2^31. From 16 on a symbol is the exponent and two bits of a float. Low bits are cleared
// first, so that the conversion cannot round up: at least the 24 highest bits are kept.
KFN U32 symbols_of(U32 residual) {
  const U32 above_direct = (float_bits(residual & ~(residual >> 24)) >> 21) - (4 * 131 - 16u);
  return select(above(all_of(kDirectSymbols), residual), residual, above_direct);
}

// Encodes a step; lane by lane if a value has 31 bits or more, or a symbol has no frequency.
KFN void encode_step(const EncodeTables& tables, const Neighbours& near, std::uint32_t lanes, std::uint32_t i,
                     const RoundRows& rows, LaneStates& states, WordWriter& words) {
  const std::uint32_t *const first = rows.low[near.first[i]], *const second = rows.low[near.second[i]];
  U32 symbol[kMostVectors], low[kMostVectors], high[kMostVectors], highest{};
  unsigned unusual = 0;
  for (std::uint32_t v = 0; kVectorLanes * v < lanes; ++v) {
    const std::uint32_t from = kVectorLanes * v;
    const auto part = lanes_below(lanes, from);
    const U32 value = where(part, load(rows.low[i] + from));
    const U32 table =
        i == 0 ? all_of(tables.contexts.count) : table_of(tables.contexts, load(first + from), load(second + from));
    symbol[v] = symbols_of(value);
    // residuals of 32 bits are negative here, and so might the index be
    const U32 index = ((table << 8) + symbol[v]) & 4095u;
    low[v] = gathered<8>(tables.entries, index);
    high[v] = gathered<8>(reinterpret_cast<const std::uint32_t*>(tables.entries) + 1, index);
    unusual |= lane_bits(equal(low[v], U32{})) & lane_bits(part);
    unusual |= lane_bits(above(value >> 30, U32{}));
    highest = larger(highest, where(part, symbol[v]));
  }
  if (rows.wide || unusual != 0) [[unlikely]] {
    encode_step_by_lane(tables, near, lanes, i, rows, states, words);
    return;
  }
  const std::uint32_t last = (lanes - 1) / kVectorLanes;
  if (lane_bits(above(highest, all_of(2 * kDirectSymbols - 1))) != 0) {
    for (const std::uint32_t taken : {kInnerBits + kStepBits, kInnerBits}) {
      for (std::uint32_t v = last + 1; v-- > 0;) {
        const std::uint32_t from = kVectorLanes * v;
        const U32 left = raw_bits_of(symbol[v]) - taken;
        const auto gives = above(left, U32{}, lanes_below(lanes, from));
        if (lane_bits(gives) == 0) continue;
        const U32 bits = where(gives, smaller(left, all_of(kStepBits)));
        const U32 value = low_bits(load(rows.low[i] + from) >> taken, bits), x = load(states.x + from);
        const auto must = above(shifted_right(x, kStateBits - bits), U32{}, gives);
        store(states.x + from, shifted_left(spill_words(x, must, words.at), bits) | value);
      }
    }
  }
  for (std::uint32_t v = last + 1; v-- > 0;) {
    const std::uint32_t from = kVectorLanes * v;
    const auto part = lanes_below(lanes, from);
    const U32 old = load(states.x + from), frequency = high[v] & 0x7FFu, start = high[v] >> 11 & 0x3FFu;
    const U32 inner =
        where(above(symbol[v], all_of(kDirectSymbols - 1)), smaller(raw_bits_of(symbol[v]), all_of(kInnerBits)));
    const U32 room = shifted_right(old, kStateBits - kProbabilityBits - inner);
    U32 x = spill_words(old, above(room, frequency - 1u, part), words.at);
    x = shifted_left(x, inner) | low_bits(load(rows.low[i] + from), inner);
    x += start + divided(x, low[v], high[v] >> 21) * (kFrequencySum - frequency);
    store(states.x + from, select(part, x, old));
  }
}

// Transposes a square of words, as wide as a vector, between arrays with rows of 32 words.
KFN void transpose_square(const std::uint32_t* from, std::uint32_t* to) {
  constexpr int kRows = static_cast<int>(kVectorLanes), kParts = kRows / 4;
  U32 r[kRows], s[kRows];
  for (int i = 0; i < kRows; ++i) r[i] = load(from + 32 * i);
  for (int i = 0; i < kRows; i += 2) {
    s[i] = first_words(r[i], r[i + 1]);
    s[i + 1] = last_words(r[i], r[i + 1]);
  }
  for (int i = 0; i < kRows; i += 4) {
    r[i] = first_pairs(s[i], s[i + 2]);
    r[i + 1] = last_pairs(s[i], s[i + 2]);
    r[i + 2] = first_pairs(s[i + 1], s[i + 3]);
    r[i + 3] = last_pairs(s[i + 1], s[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    U32 parts[kParts];
    for (int k = 0; k < kParts; ++k) parts[k] = r[4 * k + i];
    transpose_parts(parts);
    for (int k = 0; k < kParts; ++k) store(to + 32 * (4 * k + i), parts[k]);
  }
}
KFN void transpose_words(const std::uint32_t* from, std::uint32_t* to) {
  for (std::uint32_t row = 0; row < 32; row += kVectorLanes)
    for (std::uint32_t column = 0; column < 32; column += kVectorLanes)
      transpose_square(from + 32 * row + column, to + 32 * column + row);
}

#else

KFN void decode_step(const DecodeTables& tables, const Neighbours& near, std::uint32_t code_bits, std::uint32_t lanes,
                     std::uint32_t i, RoundRows& rows, LaneStates& states, WordReader& words) {
  decode_step_by_lane(tables, near, code_bits, lanes, i, rows, states, words);
}

KFN void encode_step(const EncodeTables& tables, const Neighbours& near, std::uint32_t lanes, std::uint32_t i,
                     const RoundRows& rows, LaneStates& states, WordWriter& words) {
  encode_step_by_lane(tables, near, lanes, i, rows, states, words);
}

KFN void transpose_words(const std::uint32_t* from, std::uint32_t* to) {
  for (int row = 0; row < 32; ++row)
    for (int column = 0; column < 32; ++column) to[32 * column + row] = from[32 * row + column];
}

#endif

PYF_END_TARGET
