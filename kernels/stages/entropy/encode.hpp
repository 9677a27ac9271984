// SPDX-License-Identifier: BSD-3-Clause
// Encoding a group of tiles (docs/format.md, section 8); decode.hpp is the way back. Forwards: tiles to residuals and
// those to rounds of up to 32 blocks, special values aside. Backwards: rounds and flags into the stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/plan.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/entropy/group.hpp"
#include "stages/entropy/huffman_stream.hpp"
#include "stages/entropy/rounds.hpp"
#include "stages/packed/encode.hpp"

PYF_BEGIN_TARGET

// A tile's blocks that are not all zero, and what is coded of it.
struct GroupTile {
  std::uint32_t coding = kTileEmpty;
  std::uint32_t special_bytes = 0;
  std::uint32_t coded = 0, present = 0;  // numbers of blocks
  std::uint32_t is_coded[4] = {}, is_present[4] = {};
  std::uint8_t listed[kMostListed] = {};

  std::uint32_t rounds() const { return (coded + kLaneCount - 1) / kLaneCount; }
};

template <class Map, int S>
struct GroupScratch {
  PackedScratch<Map, S> tile;
  typename Map::Code before = 0;                             // the code that the next tile's first is a difference to
  alignas(64) typename Map::Code blocks[kPackedBlocks][32];  // residuals of the coded blocks
  GroupTile tiles[kMostGroupTiles];
};

// Behind it: rounds, and special parts of tiles.
template <class Map, int S>
inline constexpr std::size_t kGroupScratch = (sizeof(GroupScratch<Map, S>) + 63) / 64 * 64;

// Residuals of a tile's present blocks that are not all zero, in block order, to s.blocks; special values to `special`.
// `alone`: the tile's first residual is 0, whatever came before.
template <class Map, int S>
inline void tile_residuals(const Plan& plan, const void* values, std::uint64_t tile, bool alone,
                           GroupScratch<Map, S>& s, GroupTile& t, std::uint8_t* special) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  const Map map(plan);
  PackedScratch<Map, S>& p = s.tile;
  const TileBox box = tile_box<S>(plan.grid, tile);
  const Loose<Value>* x = load_tile<S>(plan.grid, values, box, p.values);
  const SpecialBlocks found = encode_tile_codes<Map, S>(map, box, x, p);
  t = {};
  if (found.any) {
    std::memset(p.left, 0, sizeof p.left);
    t.special_bytes = write_packed_tile<Map, S>(box, x, found, 0, {}, p, special).bytes;
    if ((read_head(load_le<std::uint32_t>(special)).flags & kPackedVerbatim) != 0) return;
  }
  const bool sums = S != kChain || plan.order != 0;
  if (alone) s.before = p.codes[0];
  if constexpr (S == kChain) {
    p.codes[-1] = s.before;
    s.before = p.codes[4095];
  } else {
    tile_differences<S>(plan.order, p.codes.data(), p.differences);
    p.differences[0] = static_cast<Code>(p.codes[0] - s.before);
    s.before = p.codes[0];
  }
  for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
    if (!is_present<S>(box, b)) continue;
    t.is_present[b / 32] |= 1u << b % 32;
    ++t.present;
    Code(&z)[32] = s.blocks[t.coded];
    if constexpr (S == kChain) {
      const Code* const q = p.codes + 32 * b;
      if (sums) [[likely]]
        for (int i = 0; i < 32; ++i) z[i] = zigzag(static_cast<Code>(q[i] - q[i - 1]));
      else
        for (int i = 0; i < 32; ++i) z[i] = zigzag(q[i]);
    } else {
      take_block<S>(p.differences, b, z);
      for (int i = 0; i < 32; ++i) z[i] = zigzag(z[i]);
    }
    Code any = 0;
    for (int i = 0; i < 32; ++i) any |= z[i];
    if (any == 0) continue;
    if (t.coded < kMostListed) t.listed[t.coded] = static_cast<std::uint8_t>(b);
    t.is_coded[b / 32] |= 1u << b % 32;
    ++t.coded;
  }
  t.coding = coding_of(t.coded, t.present);
}

// Blocks 32 * round and on of a tile to rows.
template <class Code>
KFN void put_round(const Code (*blocks)[32], std::uint32_t lanes, RoundRows& rows) {
  alignas(64) std::uint32_t words[32][32];
  rows.wide = false;
  if constexpr (sizeof(Code) == 4) {
    if (lanes == kLaneCount) {
      transpose_words(blocks[0], rows.low[0]);
      return;
    }
    std::memcpy(words, blocks, lanes * sizeof words[0]);
  } else {
    Code high = 0;
    for (std::uint32_t l = 0; l < lanes; ++l) {
      for (int i = 0; i < 32; ++i) {
        words[l][i] = static_cast<std::uint32_t>(blocks[l][i]);
        high |= blocks[l][i];
      }
    }
    rows.wide = high >> 32 != 0;
    if (rows.wide) [[unlikely]]
      for (std::uint32_t l = 0; l < lanes; ++l)
        for (int i = 0; i < 32; ++i) rows.high[i][l] = static_cast<std::uint32_t>(blocks[l][i] >> 32);
  }
  std::memset(words[lanes], 0, (32 - lanes) * sizeof words[0]);
  transpose_words(words[0], rows.low[0]);
}

// Flags of a tile's blocks: lane l has blocks 4l to 4l + 3. What comes before a flag chooses its frequency.
template <class Flags>
KFN std::uint32_t context_of_flag(const GroupTile& t, const Flags& coded, std::uint32_t b) {
  const bool has_before = b % 4 != 0 && bit_of(t.is_present, b - 1);
  return flag_context(has_before, has_before && bit_of(coded, b - 1));
}

inline void encode_flags(const EncodeTables& tables, const GroupTile& t, LaneStates& states, WordWriter& words) {
  for (std::uint32_t step = 4; step-- > 0;) {
    for (std::uint32_t l = kLaneCount; l-- > 0;) {
      const std::uint32_t b = 4 * l + step;
      if (!bit_of(t.is_present, b)) continue;
      const std::uint32_t frequency = tables.flag_frequency[context_of_flag(t, t.is_coded, b)];
      const bool coded = bit_of(t.is_coded, b);
      std::uint32_t& x = states.x[l];
      words.spill(x, must_spill(x, coded ? frequency : kFrequencySum - frequency, 0));
      x = encode_flag(x, frequency, coded);
    }
  }
}

// Counts of a tile for the model (stages/entropy/model.hpp).
template <class Map, int S>
inline void count_tile(const Plan& plan, const void* values, std::uint64_t tile, void* scratch, SymbolCounts* counts) {
  auto& s = *static_cast<GroupScratch<Map, S>*>(scratch);
  auto* const rows = reinterpret_cast<RoundRows*>(static_cast<std::uint8_t*>(scratch) + kGroupScratch<Map, S>);
  auto* const special = reinterpret_cast<std::uint8_t*>(rows) + kTileStreamBytes;
  GroupTile t;
  tile_residuals<Map, S>(plan, values, tile, true, s, t, special);
  ++counts->tiles;
  if (plan.coder != kRans) {
    count_codewords(s.blocks[0], t.coded, counts->codewords);
    return;
  }
  for (std::uint32_t b = 0; t.coding == kTileFlags && b < kPackedBlocks; ++b)
    if (bit_of(t.is_present, b)) ++counts->flags[context_of_flag(t, t.is_coded, b)][bit_of(t.is_coded, b) ? 1 : 0];
  for (std::uint32_t round = 0; round < t.rounds(); ++round) {
    const std::uint32_t lanes = std::min(t.coded - round * kLaneCount, kLaneCount);
    put_round(s.blocks + round * kLaneCount, lanes, *rows);
    count_round(kNeighbours<S>, lanes, *rows, *counts);
  }
}

// Head of a group, lists or flags of blocks, sizes of special parts, padding; special parts.
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

// Head, special parts, and a Huffman stream that is written.
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

template <class Map, int S>
inline EncodedTile encode_group(const Plan& plan, const void* values, std::uint64_t unit, void* scratch,
                                std::uint8_t* out) {
  auto& s = *static_cast<GroupScratch<Map, S>*>(scratch);
  std::uint8_t* const space = static_cast<std::uint8_t*>(scratch) + kGroupScratch<Map, S>;
  auto* const rounds = reinterpret_cast<RoundRows*>(space);
  std::uint8_t* const special = space + plan.unit_tiles * kTileStreamBytes;
  static_assert(sizeof(RoundRows) == kRoundBytes && kGroupScratch<Map, S> <= kScratchBytes);
  const auto& tables = *static_cast<const EncodeTables*>(plan.tables);
  const auto& codes = *static_cast<const HuffmanCodes*>(plan.tables);
  const GroupSpan span = group_span(plan.grid.tiles, plan.unit_tiles, unit);
  constexpr std::size_t kGapRoom = 16384;
  HuffmanWriter writer(space + kGapRoom, space);

  // forwards
  s.before = 0;
  std::uint32_t special_bytes = 0, lanes = 0, used = 0;
  bool any = false;
  for (std::uint32_t i = 0; i < span.count; ++i) {
    GroupTile& t = s.tiles[i];
    tile_residuals<Map, S>(plan, values, span.first + i, false, s, t, special + special_bytes);
    special_bytes += t.special_bytes;
    any = any || t.coding != kTileEmpty || t.special_bytes != 0;
    if (plan.coder != kRans) {
      encode_blocks(codes, s.blocks[0], t.coded, writer);
      continue;
    }
    lanes = t.coding == kTileFlags ? kLaneCount : std::max(lanes, std::min(t.coded, kLaneCount));
    for (std::uint32_t round = 0; round < t.rounds(); ++round)
      put_round(s.blocks + round * kLaneCount, std::min(t.coded - round * kLaneCount, kLaneCount), rounds[used++]);
  }
  if (!any) return {0, false};
  if (plan.coder != kRans) {
    const std::uint32_t words = writer.finish();
    return write_huffman_group(s.tiles, span.count, plan.coder == kHuffmanGaps, special, special_bytes,
                               space + kGapRoom, words, space, out);
  }

  // backwards, from the end of the room for the group
  LaneStates states;
  for (std::uint32_t& x : states.x) x = kLowestState;
  std::uint8_t* const end = out + max_group_bytes(span.count, sizeof(typename Map::Value));
  WordWriter words{end};
  for (std::uint32_t i = span.count; i-- > 0;) {
    const GroupTile& t = s.tiles[i];
    for (std::uint32_t round = t.rounds(); round-- > 0;) {
      const std::uint32_t here = std::min(t.coded - round * kLaneCount, kLaneCount);
      encode_round(kNeighbours<S>, tables, here, rounds[--used], states, words);
    }
    if (t.coding == kTileFlags) encode_flags(tables, t, states, words);
  }

  std::uint8_t* p = write_group_head(s.tiles, span.count, false, special, special_bytes, out);
  std::memcpy(p, states.x, 4 * lanes);
  p += 4 * lanes;
  const auto stream_bytes = static_cast<std::size_t>(end - words.at);
  std::memmove(p, words.at, stream_bytes);
  p += stream_bytes;
  if (stream_bytes % 4 != 0) {
    store_le(p, std::uint16_t{0});
    p += 2;
  }
  return {static_cast<std::uint32_t>(p - out), false};
}

PYF_END_TARGET
