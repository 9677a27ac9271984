// SPDX-License-Identifier: BSD-3-Clause
// Rounds between the two passes of an encoder: forwards, blocks become rounds; backwards, rounds are written to the
// stream (lanes.hpp explains rounds).
#pragma once

#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "lorenzo/cpu/rounds.hpp"
#include "lorenzo/round_tables.hpp"
#if defined(PYF_VECTORS)
#define PYF_WHOLE_ROUNDS 1  // rounds are counted and encoded by their indices
#include "lorenzo/cpu/count_rounds.hpp"
#endif

PYF_BEGIN_TARGET

// Copies low halves of blocks to rows. Rows of lanes without a block become 0.
template <class Code>
KFN void put_rows(const Code (*blocks)[32], std::uint32_t lanes, std::uint32_t (&rows)[32][kLaneCount]) {
  alignas(64) std::uint32_t words[kLaneCount][32];
  if constexpr (sizeof(Code) == 4) {
    if (lanes == kLaneCount) {
      transpose_words(blocks[0], rows[0]);
      return;
    }
    std::memcpy(words, blocks, lanes * sizeof words[0]);
  } else {
    for (std::uint32_t l = 0; l < lanes; ++l)
      for (int i = 0; i < 32; ++i) words[l][i] = static_cast<std::uint32_t>(blocks[l][i]);
  }
  if (lanes < kLaneCount) std::memset(words[lanes], 0, (kLaneCount - lanes) * sizeof words[0]);
  transpose_words(words[0], rows[0]);
}

// Copies blocks of a round to rows. `bits`: OR of all residuals.
template <class Code>
KFN void put_round(const Code (*blocks)[32], std::uint32_t lanes, std::uint64_t bits, RoundRows& rows) {
  put_rows(blocks, lanes, rows.low);
  rows.wide = bits >> 32 != 0;
  if constexpr (sizeof(Code) == 8) {
    if (rows.wide) [[unlikely]]
      for (std::uint32_t l = 0; l < lanes; ++l)
        for (int i = 0; i < 32; ++i) rows.high[i][l] = static_cast<std::uint32_t>(blocks[l][i] >> 32);
  }
}

#if defined(PYF_WHOLE_ROUNDS)
KFN void put_bytes(const std::uint32_t (*blocks)[32], std::uint32_t lanes, ByteRows& rows) {
  put_byte_rows(blocks, lanes, rows);
}
// The same for codes of 64 bits, which few tiles have.
inline void put_bytes(const std::uint64_t (*blocks)[32], std::uint32_t lanes, ByteRows& rows) {
  std::uint32_t words[kLaneCount][32];
  for (std::uint32_t l = 0; l < lanes; ++l)
    for (int i = 0; i < 32; ++i) words[l][i] = static_cast<std::uint32_t>(blocks[l][i]);
  put_byte_rows(words, lanes, rows);
}
#endif

// Counts a tile's rounds for the model.
#if !defined(PYF_WHOLE_ROUNDS)
struct TileCounts {
  KFN void finish(SymbolCounts& /*counts*/) const {}
};
#endif
// A round as the backward pass needs it.
struct KeptRound {
  std::uint8_t* at;
  std::uint32_t lanes;
  std::uint64_t bits;
};

#if defined(PYF_WHOLE_ROUNDS)
struct MediumRound {
  RoundIndices indices;
  alignas(64) std::uint32_t rows[32][kLaneCount];
};
static_assert(sizeof(MediumRound) <= sizeof(RoundRows) && alignof(RoundRows) == 64);

// Keeps a round at `room`; moves `room` behind it.
template <class Code>
[[gnu::noinline]] inline KeptRound keep_round(const Neighbours& near, const RoundTables& tables,
                                              const Code (*blocks)[32], std::uint32_t lanes, std::uint64_t bits,
                                              std::uint8_t*& room) {
  const KeptRound kept{room, lanes, bits};
  if (bits < kNarrowEnd) {
    ByteRows rows;
    put_bytes(blocks, lanes, rows);
    index_bytes<kNarrowSteps>(near, tables.symbols.contexts, lanes, rows, *reinterpret_cast<RoundIndices*>(room));
    room += sizeof(RoundIndices);
  } else if (bits < kMediumEnd) {
    auto& round = *reinterpret_cast<MediumRound*>(room);
    put_rows(blocks, lanes, round.rows);
    index_round<kMediumSteps>(near, tables.symbols.contexts, lanes, round.rows, round.indices);
    room += sizeof round;
  } else {
    put_round(blocks, lanes, bits, *reinterpret_cast<RoundRows*>(room));
    room += sizeof(RoundRows);
  }
  return kept;
}

// Encodes the steps before `end` backwards; returns the number of steps left.
template <int kVectors>
inline std::uint32_t encode_indexed(const RoundTables& tables, const KeptRound& kept, std::uint32_t end,
                                    LaneStates& states, WordWriter& words) {
  if (kept.bits < kDirectSymbols)
    return encode_narrow<kVectors, false>(tables.narrow, *reinterpret_cast<RoundIndices*>(kept.at), end, states, words);
  if (kept.bits < kNarrowEnd)
    return encode_narrow<kVectors, true>(tables.narrow, *reinterpret_cast<RoundIndices*>(kept.at), end, states, words);
  const auto& round = *reinterpret_cast<MediumRound*>(kept.at);
  return encode_medium<kVectors>(tables.medium, round.indices, round.rows, end, states, words);
}
inline std::uint32_t encode_indexed(const RoundTables& tables, const KeptRound& kept, std::uint32_t end,
                                    LaneStates& states, WordWriter& words) {
  return with_vectors<kMostVectors>(
      kept.lanes, [&]<int kVectors>() { return encode_indexed<kVectors>(tables, kept, end, states, words); });
}

// Encodes the remaining steps of a round with escapes.
[[gnu::noinline]] inline void encode_rest(const Neighbours& near, const RoundTables& tables, const KeptRound& kept,
                                          std::uint32_t left, LaneStates& states, WordWriter& words) {
  RoundRows rows;
  rows.wide = false;
  if (kept.bits >= kNarrowEnd) {
    std::memcpy(rows.low, reinterpret_cast<MediumRound*>(kept.at)->rows, sizeof rows.low);
  } else {
    const auto& indices = *reinterpret_cast<RoundIndices*>(kept.at);
    for (std::uint32_t i = 0; i < left; ++i)
      for (std::uint32_t l = 0; l < kLaneCount; ++l) rows.low[i][l] = indices.of[i][l] & (kNarrowEnd - 1);
  }
  while (left != 0 && !words.again) {
    encode_checked(tables.symbols, near, kept.lanes, left, rows, states, words);
    left = encode_indexed(tables, kept, left - 1, states, words);
  }
}

[[gnu::noinline]] inline void encode_kept(const Neighbours& near, const RoundTables& tables, const KeptRound& kept,
                                          LaneStates& states, WordWriter& words) {
  words.begin_step(32, states);
  if (kept.bits >= kMediumEnd) [[unlikely]] {
    encode_round(near, tables.symbols, kept.lanes, *reinterpret_cast<RoundRows*>(kept.at), states, words);
    return;
  }
  const std::uint32_t left = encode_indexed(tables, kept, 32, states, words);
  if (left != 0) [[unlikely]]
    encode_rest(near, tables, kept, left, states, words);
}
#else
template <class Code>
[[gnu::noinline]] inline KeptRound keep_round(const Neighbours& /*near*/, const RoundTables& /*tables*/,
                                              const Code (*blocks)[32], std::uint32_t lanes, std::uint64_t bits,
                                              std::uint8_t*& room) {
  const KeptRound kept{room, lanes, bits};
  put_round(blocks, lanes, bits, *reinterpret_cast<RoundRows*>(room));
  room += sizeof(RoundRows);
  return kept;
}

[[gnu::noinline]] inline void encode_kept(const Neighbours& near, const RoundTables& tables, const KeptRound& kept,
                                          LaneStates& states, WordWriter& words) {
  encode_round(near, tables.symbols, kept.lanes, *reinterpret_cast<RoundRows*>(kept.at), states, words);
}
#endif

PYF_END_TARGET
