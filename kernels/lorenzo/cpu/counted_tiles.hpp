// SPDX-License-Identifier: BSD-3-Clause
// Keeps the residuals of tiles that were counted for a chunk's model until their groups are encoded. Reading and
// predicting the tiles again would take several times as long. A tile is counted without its predecessor; its first
// residual is corrected later.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "lorenzo/cpu/kept_rounds.hpp"
#include "lorenzo/cpu/residuals.hpp"
#include "lorenzo/model.hpp"
#include "lorenzo/plan.hpp"

PYF_BEGIN_TARGET

// The most likely tile to be counted next.
inline std::uint64_t next_counted(const StreamPlan& plan, std::uint64_t tile) {
  const TileSample sample(plan.grid.tiles);
  return sample.tile(tile / sample.every + 1);
}

#if defined(PYF_WHOLE_ROUNDS)
// Residuals of a counted tile by round, with as few bytes as the tile's largest residual needs.
struct CountedTile {
  enum class Form : std::uint32_t { none, bytes, words };
  static constexpr std::uint32_t kRounds = kPackedBlocks / kLaneCount, kWordsEnd = 1u << 16;
  using WordRows = std::uint16_t[32][kLaneCount];

  GroupTile tile;
  std::uint32_t first, last;  // first code; the code that the next tile's first residual is a difference to
  Form form;
  union {
    ByteRows bytes[kRounds];
    alignas(64) WordRows words[kRounds];
  };

  // Begins to keep a tile whose residuals have just been computed.
  void start(const GroupTile& t, std::uint32_t first_code, std::uint32_t last_code) {
    std::uint64_t most = 0;
    for (const std::uint64_t bits : t.bits) most |= bits;
    form = !t.narrow || most >= kWordsEnd ? Form::none : most < kNarrowEnd ? Form::bytes : Form::words;
    if (form == Form::none) return;
    tile = t;
    first = first_code;
    last = last_code;
  }
  void put(std::uint32_t round, const ByteRows& rows) {
    if (form == Form::bytes) std::memcpy(&bytes[round], &rows, sizeof rows);
    if (form == Form::words)
      each_eight([&](std::uint32_t i, std::uint32_t l, std::uint32_t of_bytes) {
        for (std::uint32_t k = 0; k < 8; ++k) words[round][i][l + k] = rows.of[i][of_bytes + k];
      });
  }
  void put(std::uint32_t round, const std::uint32_t (&rows)[32][kLaneCount]) {
    if (form != Form::words) return;
    for (std::uint32_t i = 0; i < 32; ++i)
      for (std::uint32_t l = 0; l < kLaneCount; ++l) words[round][i][l] = static_cast<std::uint16_t>(rows[i][l]);
  }

  // Sets the first residual to `z`. Returns false if it is too wide for the kept form.
  bool set_first(std::uint32_t z) {
    if (z >= (form == Form::bytes ? kNarrowEnd : kWordsEnd)) return false;
    if (z == 0) return true;
    if ((tile.is_coded[0] & 1) == 0) insert_first();
    tile.bits[0] |= z;
    if (form == Form::bytes)
      bytes[0].of[0][0] = static_cast<std::uint8_t>(z);
    else
      words[0][0][0] = static_cast<std::uint16_t>(z);
    return true;
  }

  // The same as keep_round(), from kept residuals.
  KeptRound keep(const Neighbours& near, const Contexts& contexts, std::uint32_t round, std::uint8_t*& room) const {
    const KeptRound kept{room, tile.lanes(round), tile.bits[round]};
    if (kept.bits < kNarrowEnd) {
      ByteRows own;
      if (form == Form::words)
        each_eight([&](std::uint32_t i, std::uint32_t l, std::uint32_t of_bytes) {
          for (std::uint32_t k = 0; k < 8; ++k)
            own.of[i][of_bytes + k] = static_cast<std::uint8_t>(words[round][i][l + k]);
        });
      index_bytes<kNarrowSteps>(near, contexts, kept.lanes, form == Form::bytes ? bytes[round] : own,
                                *reinterpret_cast<RoundIndices*>(room));
      room += sizeof(RoundIndices);
    } else {
      auto& to = *reinterpret_cast<MediumRound*>(room);
      for (std::uint32_t i = 0; i < 32; ++i)
        for (std::uint32_t l = 0; l < kLaneCount; ++l) to.rows[i][l] = words[round][i][l];
      index_round<kMediumSteps>(near, contexts, kept.lanes, to.rows, to.indices);
      room += sizeof to;
    }
    return kept;
  }

 private:
  // Calls run(position, first of eight lanes, index of that lane in ByteRows).
  template <class Run>
  static KFN void each_eight(const Run& run) {
    for (std::uint32_t i = 0; i < 32; ++i)
      for (std::uint32_t part = 0; part < 4; ++part) run(i, 8 * part, 8 * (part / 2 + part % 2 * 2));
  }

  // Inserts block 0, so far all zero, before the coded blocks.
  void insert_first() {
    std::memmove(tile.listed + 1, tile.listed, sizeof tile.listed - 1);
    tile.listed[0] = 0;
    tile.is_coded[0] |= 1;
    const bool fresh = tile.coded % kLaneCount == 0;
    tile.coding = coding_of(++tile.coded, tile.present);
    for (std::uint32_t round = tile.rounds(); round-- > 0;) {
      if (fresh && round + 1 == tile.rounds()) {
        if (form == Form::bytes)
          std::memset(&bytes[round], 0, sizeof bytes[round]);
        else
          std::memset(&words[round], 0, sizeof words[round]);
      }
      // an upper limit of the round's bits: the round gets the last block of the previous one
      if (round != 0) tile.bits[round] |= tile.bits[round - 1];
      for (std::uint32_t i = 0; i < 32; ++i) {
        if (form == Form::bytes)
          shift_bytes(bytes[round].of[i], round != 0 ? bytes[round - 1].of[i][kLaneCount - 1] : std::uint8_t{0});
        else
          shift_words(words[round][i], round != 0 ? words[round - 1][i][kLaneCount - 1] : std::uint16_t{0});
      }
    }
  }
  static void shift_bytes(std::uint8_t (&lanes)[kLaneCount], std::uint8_t first_lane) {
    std::uint64_t eight[4], carry = first_lane;
    std::memcpy(eight, lanes, sizeof eight);
    for (const int part : {0, 2, 1, 3}) {
      const std::uint64_t last_lane = eight[part] >> 56;
      eight[part] = eight[part] << 8 | carry;
      carry = last_lane;
    }
    std::memcpy(lanes, eight, sizeof eight);
  }
  static void shift_words(std::uint16_t (&lanes)[kLaneCount], std::uint16_t first_lane) {
    std::memmove(lanes + 1, lanes, sizeof lanes - sizeof lanes[0]);
    lanes[0] = first_lane;
  }
};
static_assert(sizeof(CountedTile) <= kCountedTileBytes && kCountedTileBytes % alignof(CountedTile) == 0);

// Returns the memory of a kept tile, nullptr if it is not kept.
inline CountedTile* counted_tile(const StreamPlan& plan, std::uint64_t tile) {
  if (plan.counted == nullptr) return nullptr;
  const TileSample sample(plan.grid.tiles);
  const std::uint64_t i = tile / sample.every;
  return i < plan.counted_tiles && sample.has(tile)
             ? reinterpret_cast<CountedTile*>(plan.counted + i * kCountedTileBytes)
             : nullptr;
}

// The most likely tile to be read next.
inline std::uint64_t next_read(const StreamPlan& plan, std::uint64_t tile) {
  return tile + (counted_tile(plan, tile + 1) != nullptr ? 2 : 1);
}

// Returns a kept tile if it can be encoded behind the code `before`, and sets `before` to the tile's last code; else
// nullptr.
template <class Code>
inline const CountedTile* take_counted(const StreamPlan& plan, std::uint64_t tile, Code& before) {
  CountedTile* const kept = counted_tile(plan, tile);
  if (kept == nullptr || kept->form == CountedTile::Form::none || !may_shorten(before)) return nullptr;
  const bool sums = plan.grid.block_dims != kChain || plan.order != 0;
  if (sums && !kept->set_first(zigzag(kept->first - static_cast<std::uint32_t>(before)))) return nullptr;
  before = static_cast<Code>(std::int64_t{static_cast<std::int32_t>(kept->last)});
  return kept;
}
#else
// Other CPU levels read and predict counted tiles again.
struct CountedTile {
  GroupTile tile;

  void start(const GroupTile& /*t*/, std::uint32_t /*first_code*/, std::uint32_t /*last_code*/) {}
  template <class Rows>
  void put(std::uint32_t /*round*/, const Rows& /*rows*/) {}
  KeptRound keep(const Neighbours& /*near*/, const Contexts& /*contexts*/, std::uint32_t /*round*/,
                 std::uint8_t*& /*room*/) const {
    return {};
  }
};
inline CountedTile* counted_tile(const Plan& /*plan*/, std::uint64_t /*tile*/) { return nullptr; }
inline std::uint64_t next_read(const Plan& /*plan*/, std::uint64_t tile) { return tile + 1; }
template <class Code>
inline const CountedTile* take_counted(const Plan& /*plan*/, std::uint64_t /*tile*/, Code& /*before*/) {
  return nullptr;
}
#endif

// Counts a round of a tile for the model. `kept`, if not nullptr, keeps the rows of narrow and medium rounds.
template <class Code>
[[gnu::noinline]] inline void count_blocks(const Neighbours& near, const Code (*blocks)[32], const GroupTile& t,
                                           std::uint32_t round, RoundRows& rows, TileCounts& tile, SymbolCounts& counts,
                                           CountedTile* kept) {
  const std::uint32_t lanes = t.lanes(round);
  const std::uint64_t bits = t.bits[round];
#if defined(PYF_WHOLE_ROUNDS)
  if (bits < kNarrowEnd) [[likely]] {
    ByteRows bytes;
    put_bytes(blocks, lanes, bytes);
    tile.add(near, lanes, bytes);
    if (kept != nullptr) kept->put(round, bytes);
    return;
  }
  if (bits < kMediumEnd) {
    put_rows(blocks, lanes, rows.low);
    tile.add(near, lanes, rows.low, counts);
    if (kept != nullptr) kept->put(round, rows.low);
    return;
  }
#else
  (void)tile, (void)kept;
#endif
  put_round(blocks, lanes, bits, rows);
  count_round(near, lanes, rows, counts);
}

PYF_END_TARGET
