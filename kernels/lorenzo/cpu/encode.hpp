// SPDX-License-Identifier: BSD-3-Clause
// Encodes a group of tiles (docs/format.md, section 8; decode.hpp decodes it). Forwards: tiles become residuals
// (residuals.hpp), and residuals become rounds of up to 32 blocks. Backwards: rounds and flags go into the stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include "core/target.hpp"
#include "core/wire.hpp"
#include "lorenzo/cpu/counted_tiles.hpp"
#include "lorenzo/cpu/flags.hpp"
#include "lorenzo/cpu/huffman_stream.hpp"
#include "lorenzo/cpu/kept_rounds.hpp"
#include "lorenzo/cpu/residuals.hpp"
#include "lorenzo/group.hpp"
#include "lorenzo/plan.hpp"
#include "lorenzo/states.hpp"

PYF_BEGIN_TARGET

// The functions and neighbours of a tile shape, for an encoder of groups.
template <class Code>
struct EncodedShape {
  const Neighbours& near;
  void (*residuals)(const StreamPlan& plan, const void* values, std::uint64_t tile, std::uint64_t next, bool alone,
                    GroupScratch<Code>& s, GroupTile& t, std::uint8_t* special);
};
template <class Code, int S>
inline constexpr EncodedShape<Code> kEncodedShape{kNeighbours<S>, &tile_residuals<Code, S>};
template <class Code>
inline const EncodedShape<Code>& encoded_shape(const StreamPlan& plan) {
  switch (plan.grid.block_dims) {
    case kChain:
      return kEncodedShape<Code, kChain>;
    case kPlane:
      return kEncodedShape<Code, kPlane>;
    case kVolume:
      return kEncodedShape<Code, kVolume>;
    default:
      return kEncodedShape<Code, kColumns>;
  }
}

// Counts a tile for the model (lorenzo/model.hpp).
template <class Code>
inline void count_tile(const StreamPlan& plan, const void* values, std::uint64_t tile, void* scratch,
                       SymbolCounts* counts) {
  auto& s = *static_cast<GroupScratch<Code>*>(scratch);
  auto* const rows = reinterpret_cast<RoundRows*>(static_cast<std::uint8_t*>(scratch) + kGroupScratch<Code>);
  auto* const special = reinterpret_cast<std::uint8_t*>(rows) + kTileStreamBytes;
  const EncodedShape<Code>& shape = encoded_shape<Code>(plan);
  GroupTile t;
  shape.residuals(plan, values, tile, next_counted(plan, tile), true, s, t, special);
  ++counts->tiles;
  if (!is_rans(plan.coder)) {
    if (t.narrow)
      count_codewords(s.narrow[0], t.coded, counts->codewords);
    else
      count_codewords(s.blocks[0], t.coded, counts->codewords);
    return;
  }
  if (t.coding == kTileFlags) count_flags(t, counts->flags);
  static_assert(sizeof(RoundRows) + sizeof(TileCounts) <= kTileStreamBytes);
  auto* const tile_counts = new (rows + 1) TileCounts;
  CountedTile* const kept = counted_tile(plan, tile);
  if (kept != nullptr) kept->start(t, s.first, static_cast<std::uint32_t>(s.before));
  for (std::uint32_t round = 0; round < t.rounds(); ++round) {
    const std::uint32_t first = round * kLaneCount;
    if (t.narrow)
      count_blocks(shape.near, s.narrow + first, t, round, *rows, *tile_counts, *counts, kept);
    else
      count_blocks(shape.near, s.blocks + first, t, round, *rows, *tile_counts, *counts, kept);
  }
  tile_counts->finish(*counts);
}

// Writes a group's head, lists or flags of blocks, sizes of special parts, padding, and special parts.
inline std::uint8_t* write_group_head(const GroupTile* tiles, std::uint32_t count, bool flags,
                                      const std::uint8_t* special, std::uint32_t special_bytes, std::uint8_t* out) {
  std::uint8_t* p = out;
  std::memset(p, 0, (count + 1) / 2);
  for (std::uint32_t i = 0; i < count; ++i)
    p[i / 2] = static_cast<std::uint8_t>(p[i / 2] | (tiles[i].coding | (tiles[i].special_bytes != 0 ? kSpecialPart : 0))
                                                        << 4 * (i % 2));
  p += (count + 1) / 2;
  for (std::uint32_t i = 0; i < count; ++i) {
    const GroupTile& t = tiles[i];
    if (t.coding == kTileListed) {
      *p++ = static_cast<std::uint8_t>(t.coded);
      std::memcpy(p, t.listed, t.coded);
      p += t.coded;
    } else if (t.coding == kTileFlags && flags) {
      std::memcpy(p, t.is_coded, kFlagBytes);
      p += kFlagBytes;
    }
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (tiles[i].special_bytes == 0) continue;
    store_le(p, static_cast<std::uint16_t>(tiles[i].special_bytes / 4));
    p += 2;
  }
  while ((p - out) % 4 != 0) *p++ = 0;
  std::memcpy(p, special, special_bytes);
  return p + special_bytes;
}

// Writes head and special parts of a group whose Huffman stream is already written.
inline EncodedTile write_huffman_group(const GroupTile* tiles, std::uint32_t count, bool has_gaps,
                                       const std::uint8_t* special, std::uint32_t special_bytes,
                                       const std::uint8_t* words, std::uint32_t word_count, const std::uint8_t* gaps,
                                       std::uint8_t* out) {
  std::uint8_t* p = write_group_head(tiles, count, true, special, special_bytes, out);
  store_le(p, word_count);
  p += 4;
  if (has_gaps) {
    const std::uint32_t gap_count = (word_count + kGapBits / 32 - 1) / (kGapBits / 32);
    std::memcpy(p, gaps, gap_count);
    p += gap_count;
    while ((p - out) % 4 != 0) *p++ = 0;
  }
  std::memcpy(p, words, 4 * std::size_t{word_count});
  p += 4 * std::size_t{word_count};
  return {static_cast<std::uint32_t>(p - out), false};
}

// Writes rounds and flags of tiles to the stream, from the last to the first. Lanes begin with the smallest states that
// a decoder can tell (stages/entropy/packed_states.hpp).
inline void write_stream(const Neighbours& near, const RoundTables& tables, const GroupTile* tiles, std::uint32_t count,
                         const KeptRound* rounds, LaneStates& states, WordWriter& words) {
  words.restart(states);
  for (std::uint32_t i = count; i-- > 0;) {
    const GroupTile& t = tiles[i];
    for (std::uint32_t round = t.rounds(); round-- > 0 && !words.again;)
      encode_kept(near, tables, *--rounds, states, words);
    if (t.coding == kTileFlags && !words.again) encode_flags(tables, t, states, words);
    if (words.again) return;
  }
}

template <class Code>
inline EncodedTile encode_group(const Plan& base, const void* values, std::uint64_t unit, void* scratch,
                                std::uint8_t* out) {
  const auto& plan = static_cast<const StreamPlan&>(base);
  auto& s = *static_cast<GroupScratch<Code>*>(scratch);
  const EncodedShape<Code>& shape = encoded_shape<Code>(plan);
  std::uint8_t* const space = static_cast<std::uint8_t*>(scratch) + kGroupScratch<Code>;
  std::uint8_t* const special = space + plan.unit_tiles * kTileStreamBytes;
  static_assert(kPackedBlocks / kLaneCount * sizeof(RoundRows) <= kTileStreamBytes);
  static_assert(kGroupScratch<Code> <= kScratchBytes);
  const auto* const codes = is_rans(plan.coder) ? nullptr : static_cast<const HuffmanCodes*>(plan.tables);
  const auto* const tables = is_rans(plan.coder) ? static_cast<const RoundTables*>(plan.tables) : nullptr;
  const GroupSpan span = group_span(plan.grid.tiles, plan.unit_tiles, unit);
  constexpr std::size_t kGapRoom = 16384;
  HuffmanWriter writer(space + kGapRoom, space);

  // forwards: tiles to rounds
  s.before = 0;
  std::uint32_t special_bytes = 0, lanes = 0, used = 0;
  KeptRound rounds[kMostGroupTiles * kPackedBlocks / kLaneCount];
  std::uint8_t* room = space;
  bool any = false;
  for (std::uint32_t i = 0; i < span.count; ++i) {
    GroupTile& t = s.tiles[i];
    const std::uint64_t tile = span.first + i;
    const CountedTile* const kept = take_counted(plan, tile, s.before);
    if (kept != nullptr)
      t = kept->tile;
    else
      shape.residuals(plan, values, tile, next_read(plan, tile), false, s, t, special + special_bytes);
    special_bytes += t.special_bytes;
    any = any || t.coding != kTileEmpty || t.special_bytes != 0;
    if (!is_rans(plan.coder)) {
      if (t.narrow)
        encode_blocks(*codes, s.narrow[0], t.coded, writer);
      else
        encode_blocks(*codes, s.blocks[0], t.coded, writer);
      continue;
    }
    lanes = t.coding == kTileFlags ? kLaneCount : std::max(lanes, std::min(t.coded, kLaneCount));
    for (std::uint32_t round = 0; round < t.rounds(); ++round)
      rounds[used++] =
          kept != nullptr ? kept->keep(shape.near, tables->symbols.contexts, round, room)
          : t.narrow
              ? keep_round(shape.near, *tables, s.narrow + round * kLaneCount, t.lanes(round), t.bits[round], room)
              : keep_round(shape.near, *tables, s.blocks + round * kLaneCount, t.lanes(round), t.bits[round], room);
  }
  if (!any) return {0, false};
  if (!is_rans(plan.coder)) {
    const std::uint32_t words = writer.finish();
    return write_huffman_group(s.tiles, span.count, plan.coder == kHuffmanGaps, special, special_bytes,
                               space + kGapRoom, words, space, out);
  }

  // backwards: rounds and flags to the stream, behind the head and the states
  LaneStates states;
  std::uint8_t* p = write_group_head(s.tiles, span.count, false, special, special_bytes, out);
  WordWriter words(p + 4 * kMostStateWords, out + max_group_bytes(span.count, sizeof(Code)), lanes);
  do {
    write_stream(shape.near, *tables, s.tiles, span.count, rounds + used, states, words);
  } while (words.again);
  if (lanes != 0) {
    const std::uint32_t word_count = finish_words(words);
    p += 4 * write_states(states.x, lanes, word_count, p);
    std::memmove(p, first_word(words), 2 * std::size_t{word_count});
    p += 2 * std::size_t{word_count};
    if (word_count % 2 != 0) {
      store_le(p, std::uint16_t{0});
      p += 2;
    }
  }
  return {static_cast<std::uint32_t>(p - out), false};
}

PYF_END_TARGET
