// SPDX-License-Identifier: BSD-3-Clause
// Indices of narrow rounds (encode_rounds.hpp) as vectors of bytes, with residuals of one or two positions in a vector.
// Tables and symbols are looked up in tables of bytes.
#pragma once

#include <cstdint>

#include "lorenzo/cpu/simd/encode_rounds.hpp"

PYF_BEGIN_TARGET

inline constexpr int kPositions = kVectorBytes / static_cast<int>(kLaneCount);  // positions in a vector

// The first lane of each group of four bytes in a row of ByteRows.
inline constexpr std::uint32_t kFourLanes[8] = {0, 4, 16, 20, 8, 12, 24, 28};

// The lane of each byte of two rows of ByteRows.
struct ByteLanes {
  alignas(64) std::uint8_t of[2 * kLaneCount]{};
  constexpr ByteLanes() {
    for (std::uint32_t i = 0; i < 2 * kLaneCount; ++i) of[i] = static_cast<std::uint8_t>(kFourLanes[i / 4 % 8] + i % 4);
  }
};
inline constexpr ByteLanes kByteLanes;

// Stores the positions of a vector, `stride` bytes apart.
template <class V>
KFN void store_positions(V v, std::uint8_t* to, std::size_t stride) {
  store_part<0>(to, (Register)v);
  if constexpr (kPositions == 2) store_part<kPositions - 1>(to + stride, (Register)v);
}

// Copies blocks to rows. Lanes without a block become 0; kAll: all lanes have a block.
template <bool kAll>
KFN void put_byte_rows(const std::uint32_t (*blocks)[32], std::uint32_t lanes, ByteRows& rows) {
  alignas(64) static constexpr std::uint32_t kNone[32] = {};
  for (std::uint32_t from = 0; from < 32; from += kVectorLanes) {
    U32 v[8], w[8];
#pragma GCC unroll 8
    for (std::uint32_t k = 0; k < 8; ++k) {  // a word for each position, of four lanes
      const auto values = [&](std::uint32_t i) {
        const std::uint32_t lane = kFourLanes[k] + i;
        return load((kAll || lane < lanes ? blocks[lane] : kNone) + from);
      };
      v[k] = (values(0) | values(1) << 8) | (values(2) << 16 | values(3) << 24);
    }
    for (int k = 0; k < 8; k += 2) {
      w[k] = first_words(v[k], v[k + 1]);
      w[k + 1] = last_words(v[k], v[k + 1]);
    }
    for (int k = 0; k < 4; ++k) {  // 16 bytes hold four lanes of four neighbouring positions
      U32 both[2];
      for (int half = 0; half < 2; ++half) {
        const U32 a = w[4 * half + k / 2], b = w[4 * half + k / 2 + 2];
        both[half] = k % 2 == 0 ? first_pairs(a, b) : last_pairs(a, b);
      }
      take_turns(both);
      for (int half = 0; half < 2; ++half)
        store_positions(both[half], rows.of[from + static_cast<std::uint32_t>(4 * kPositions * half + k)],
                        4 * kLaneCount);
    }
  }
}
inline void put_byte_rows(const std::uint32_t (*blocks)[32], std::uint32_t lanes, ByteRows& rows) {
  if (lanes == kLaneCount)
    put_byte_rows<true>(blocks, lanes, rows);
  else
    put_byte_rows<false>(blocks, lanes, rows);
}

// Loads the rows of a vector's positions.
KFN U8 rows_at(const ByteRows& rows, const std::uint8_t* positions) {
  if constexpr (kPositions == 1) return load(rows.of[positions[0]]);
  const std::uint8_t* const both[2] = {rows.of[positions[0]], rows.of[positions[1]]};
  return (U8)joined_rows(both);
}

// Computes the indices of a narrow round.
template <const IndexOf& kOf>
[[gnu::noinline]] inline void index_bytes(const Neighbours& near, const Contexts& contexts, std::uint32_t lanes,
                                          const ByteRows& rows, RoundIndices& indices) {
  const TablesOfSums table_of(contexts);
  const ByteTable tables([&](U32 sum) { return table_of.of(sum); }, 8);
  const ByteTable symbols([&](U32 value) { return small_symbols(value); }, 4);
  const auto lane = (Vector<std::int8_t>)load(kByteLanes.of),
             end = (Vector<std::int8_t>)all_of(static_cast<std::uint8_t>(lanes));
  const U8 outside = (U8)(lane >= end), neutral = all_of(static_cast<std::uint8_t>(kOf.neutral >> kOf.bits)) & outside;
  for (std::uint32_t i = 0; i < 32; i += kPositions) {
    const U8 value = load(rows.of[i]), a = rows_at(rows, near.first + i), b = rows_at(rows, near.second + i);
    const U8 half = average(a, b) - ((a ^ b) & std::uint8_t{1});  // half the sum, rounded down
    U8 table = tables.of(capped_sum(a, b), half);
    if (i == 0)
      table = (U8)select(lanes_below(8, 0), (U32)all_of(static_cast<std::uint8_t>(contexts.count)), (U32)table);
    if (lanes < kLaneCount) table = (table & ~outside) | neutral;  // residuals of inactive lanes are 0
    const U8 what = kOf.symbols ? symbols.of(value, value) : value;
    U8 low = first_bytes(what, table), high = last_bytes(what, table);
    if constexpr (kOf.symbols) {
      low = weighted(low, 1, 1 << kOf.bits);
      high = weighted(high, 1, 1 << kOf.bits);
    }
    auto* const to = reinterpret_cast<std::uint8_t*>(indices.of[i]);
    store_positions(low, to, sizeof indices.of[i]);
    store_positions(high, to + sizeof indices.of[i] / 2, sizeof indices.of[i]);
  }
}

PYF_END_TARGET
