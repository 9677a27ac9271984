// SPDX-License-Identifier: BSD-3-Clause
// Decodes a group of tiles (docs/format.md, section 8; encode.hpp encodes it). Head, lists and special parts are
// checked first. Words of the stream are counted while they are read, and the states must end at their initial value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "core/wire.hpp"
#include "lorenzo/cpu/huffman_stream.hpp"
#include "lorenzo/cpu/rounds.hpp"
#include "lorenzo/group.hpp"
#include "lorenzo/plan.hpp"
#include "lorenzo/states.hpp"
#include "stages/packed/narrow.hpp"
#include "stages/packed/tile_instances.hpp"

PYF_BEGIN_TARGET

inline constexpr Status kBadGroup{Code::corrupt, "corrupt frame: the head of a group of tiles is invalid"};
inline constexpr Status kBadStream{Code::corrupt, "corrupt frame: a stream does not end where its group does"};
inline constexpr Status kBadState{Code::corrupt, "corrupt frame: a state of a stream is out of range"};
inline constexpr Status kBadSpecialPart{Code::corrupt,
                                        "corrupt frame: a tile of special values has bit planes or a first value"};

// The parts of a group. Their sizes are checked, their contents are not.
struct GroupParts {
  std::uint8_t coding[kMostGroupTiles];
  std::uint8_t listed[kMostGroupTiles];          // number of listed blocks
  const std::uint8_t* lists[kMostGroupTiles];    // of tiles with listed blocks
  const std::uint8_t* special[kMostGroupTiles];  // nullptr if the tile has none
  std::uint32_t special_bytes[kMostGroupTiles];
  const std::uint8_t* rest = nullptr;  // states, or the size of a Huffman stream
};

// `flags`: the head holds the flags of blocks.
[[gnu::noinline]] inline Status find_group_parts(const std::uint8_t* bytes, std::size_t size, std::uint32_t tiles,
                                                 bool flags, GroupParts& g) {
  std::size_t at = (tiles + 1) / 2;
  if (at > size) return kBadSize;
  if (tiles % 2 != 0 && bytes[at - 1] >> 4 != 0) return kBadGroup;
  for (std::uint32_t i = 0; i < tiles; ++i) {
    const std::uint32_t head = bytes[i / 2] >> 4 * (i % 2) & 15;
    if (head >> 3 != 0) return kBadGroup;
    g.coding[i] = static_cast<std::uint8_t>(head & kTileCoding);
    g.special[i] = (head & kSpecialPart) != 0 ? bytes : nullptr;
    g.special_bytes[i] = 0;
  }
  for (std::uint32_t i = 0; i < tiles; ++i) {
    if (g.coding[i] == kTileFlags && flags) {
      if (size - at < kFlagBytes) return kBadSize;
      g.lists[i] = bytes + at;
      at += kFlagBytes;
    }
    if (g.coding[i] != kTileListed) continue;
    if (at >= size || bytes[at] == 0 || bytes[at] > kMostListed || size - at - 1 < bytes[at]) return kBadGroup;
    g.listed[i] = bytes[at];
    g.lists[i] = bytes + at + 1;
    for (std::uint32_t k = 0; k < g.listed[i]; ++k)
      if (g.lists[i][k] >= kPackedBlocks || (k != 0 && g.lists[i][k] <= g.lists[i][k - 1])) return kBadGroup;
    at += std::size_t{1} + g.listed[i];
  }
  for (std::uint32_t i = 0; i < tiles; ++i) {
    if (g.special[i] == nullptr) continue;
    if (size - at < 2) return kBadSize;
    g.special_bytes[i] = 4u * load_le<std::uint16_t>(bytes + at);
    if (g.special_bytes[i] == 0) return kBadGroup;
    at += 2;
  }
  const std::size_t padded = (at + 3) / 4 * 4;
  if (padded > size) return kBadSize;
  for (; at < padded; ++at)
    if (bytes[at] != 0) return kBadPadding;
  for (std::uint32_t i = 0; i < tiles; ++i) {
    if (g.special[i] == nullptr) continue;
    g.special[i] = bytes + at;
    if (size - at < g.special_bytes[i]) return kBadSize;
    at += g.special_bytes[i];
  }
  g.rest = bytes + at;
  return kOk;
}

// The coded blocks of a tile and their number. Flags may be read from the stream.
struct CodedBlocks {
  std::uint32_t present[4] = {}, coded[4] = {};
  std::uint32_t count = 0;
};

template <int S>
inline std::uint32_t present_blocks(const TileBox& box, std::uint32_t (&present)[4]) {
  std::uint32_t count = 0;
  for (std::uint32_t& w : present) w = 0;
  for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
    if (!is_present<S>(box, b)) continue;
    present[b / 32] |= 1u << b % 32;
    ++count;
  }
  return count;
}

[[gnu::noinline]] inline void decode_flags(const DecodeTables& tables, CodedBlocks& t, LaneStates& states,
                                           WordReader& words) {
  for (std::uint32_t step = 0; step < 4; ++step) {
    const bool more = words.more();
    for (std::uint32_t l = 0; l < kLaneCount; ++l) {
      const std::uint32_t b = 4 * l + step;
      if (!bit_of(t.present, b)) continue;
      const bool has_before = step != 0 && bit_of(t.present, b - 1);
      const std::uint32_t context = flag_context(has_before, has_before && bit_of(t.coded, b - 1));
      if (decode_flag(tables.flag_frequency[context], states.x[l])) {
        t.coded[b / 32] |= 1u << b % 32;
        ++t.count;
      }
      words.refill(states.x[l], more);
    }
  }
}

// Copies the rows of a round to blocks.
template <class Code>
[[gnu::noinline]] inline void take_round(const RoundRows& rows, std::uint32_t lanes, Code (*blocks)[32]) {
  if constexpr (sizeof(Code) == 4) {
    if (lanes == kLaneCount) {
      transpose_words(rows.low[0], blocks[0]);
      return;
    }
  }
  alignas(64) std::uint32_t words[32][32];
  transpose_words(rows.low[0], words[0]);
  for (std::uint32_t l = 0; l < lanes; ++l)
    for (int i = 0; i < 32; ++i) blocks[l][i] = words[l][i];
  if constexpr (sizeof(Code) == 8) {
    if (rows.wide) [[unlikely]]
      for (std::uint32_t l = 0; l < lanes; ++l)
        for (int i = 0; i < 32; ++i) blocks[l][i] |= Code{rows.high[i][l]} << 32;
  }
}

// Copies a block's differences to their positions in the tile.
template <int S, class Code>
KFN void place_differences(const Code (&block)[32], std::uint32_t b, Code* tile) {
  using Tile = TileShape<S>;
  if constexpr (sizeof(Code) == 4 && (S == kPlane || S == kVolume)) {
    Code* const to = tile + Tile::first_of(b);
    for (std::uint32_t i = 0; i < 32; i += 8) {
      const Eight z = *eight_at(block + i), d = (z >> 1) ^ (Eight{} - (z & 1));
      if constexpr (Tile::kBlockX == 8) {
        *eight_at(to + Tile::within(i)) = d;
      } else {
        std::memcpy(to + Tile::within(i), &d, 16);
        std::memcpy(to + Tile::within(i + 4), reinterpret_cast<const Code*>(&d) + 4, 16);
      }
    }
  } else {
    alignas(64) Code d[32];
    for (int i = 0; i < 32; ++i) d[i] = unzigzag(block[i]);
    put_block<S>(d, b, tile);
  }
}

template <class Code>
struct GroupSpace {
  PackedDecodeSpace<Code> tile;
  alignas(64) Code blocks[kPackedBlocks][32];
  RoundRows rows;
};

// Residuals of a tile's coded blocks -> values at `to`. `before`: the code that the tile's first residual is a
// difference to.
template <class Code, int S>
inline void tile_values(const StreamPlan& plan, const AnyMap<Code>& map, const TileBox& box, const CodedBlocks& t,
                        Code& before, GroupSpace<Code>& space, bool wanted, void* to) {
  const Code first = t.count != 0 && (t.coded[0] & 1) != 0 ? unzigzag(space.blocks[0][0]) : Code{0};
  if (!wanted) {  // only the codes that later tiles need
    if constexpr (S == kChain) {
      for (std::uint32_t k = 0; k < t.count; ++k)
        for (const Code z : space.blocks[k]) before = static_cast<Code>(before + unzigzag(z));
    } else {
      before = static_cast<Code>(before + first);
    }
    return;
  }
  if constexpr (S == kChain) {
    before = map.of.decode_residuals(map.memory, plan.order != 0, t.coded, space.blocks, before, to);
  } else {
    alignas(64) constexpr Code kZeros[32] = {};
    for (std::uint32_t b = 0, k = 0; b < kPackedBlocks; ++b) {
      const bool coded = bit_of(t.coded, b);
      const Code(*const block)[32] = space.blocks + (coded ? k++ : 0);
      place_differences<S>(coded ? *block : kZeros, b, space.tile.codes);
    }
    before = static_cast<Code>(before + first);
    space.tile.codes[0] = before;
    values_of_differences<Code, S>(map, plan.order, present_rows<S>(box), space.tile.codes, to);
  }
}

// Finds a tile's special part: a packed tile without planes. `verbatim`: it holds all values of the tile.
template <int S>
inline Status find_special_part(const StreamPlan& plan, const TileLimits& limits, const TileBox& box,
                                const std::uint8_t* bytes, std::size_t size, PackedParts& parts, bool* verbatim) {
  if (size > max_packed_bytes(limits.value_bytes)) return kBadSize;
  PYF_TRY((find_packed_parts<S>(plan, limits, present_blocks<S>(box), bytes, size, parts)));
  const PackedHead& head = parts.head;
  if (head.base != 0 || head.rate_planes != 0 || head.first_bytes != 0 || (head.flags & kPackedExceptions) != 0)
    return kBadSpecialPart;
  *verbatim = (head.flags & kPackedVerbatim) != 0;
  const std::uint8_t *words = parts.words, *descriptor = parts.descriptors;
  for (std::uint32_t b = 0; b < kPackedBlocks && !*verbatim; ++b) {
    if (!parts.is_special(b)) continue;
    Status error;
    words = take_masks(b, limits.value_bytes, descriptor, words, parts, error);
    if (words == nullptr) return error;
    descriptor += 2;
  }
  return kOk;
}

// Finds a tile's coded blocks from the group's head or the stream, and checks that they are present.
inline Status find_coded(const GroupParts& g, std::uint32_t tile, const DecodeTables* tables, CodedBlocks& t,
                         LaneStates& states, WordReader& words) {
  if (g.coding[tile] == kTileFlags) {
    if (tables != nullptr) {
      decode_flags(*tables, t, states, words);
    } else {
      read_bits(g.lists[tile], t.coded);
      t.count = count_bits(t.coded);
      for (int w = 0; w < 4; ++w)
        if ((t.coded[w] & ~t.present[w]) != 0) return kBadAbsent;
    }
  } else if (g.coding[tile] == kTileAll) {
    for (int w = 0; w < 4; ++w) t.coded[w] = t.present[w];
    t.count = count_bits(t.present);
  } else if (g.coding[tile] == kTileListed) {
    t.count = g.listed[tile];
    for (std::uint32_t k = 0; k < t.count; ++k) t.coded[g.lists[tile][k] / 32] |= 1u << g.lists[tile][k] % 32;
    for (int w = 0; w < 4; ++w)
      if ((t.coded[w] & ~t.present[w]) != 0) return kBadAbsent;
  }
  return kOk;
}

// Reads the states of the group's lanes and finds the words of its stream. `end`: end of the group, which may be empty.
template <int S>
inline Status find_states(const StreamPlan& plan, const GroupSpan& span, const GroupParts& g, const std::uint8_t* end,
                          LaneStates& states, WordReader& words) {
  std::uint32_t lanes = 0;  // the most lanes of a tile
  for (std::uint32_t i = 0; i < span.count; ++i) {
    std::uint32_t present[4], here = 0;
    if (g.coding[i] == kTileFlags) here = kLaneCount;
    if (g.coding[i] == kTileListed) here = g.listed[i];
    if (g.coding[i] == kTileAll) here = present_blocks<S>(tile_box<S>(plan.grid, span.first + i), present);
    lanes = std::max(lanes, std::min(here, kLaneCount));
  }
  if (g.rest != nullptr && plan.coder == kRansFull) {
    if (static_cast<std::size_t>(end - g.rest) < 4 * lanes) return kBadSize;
    std::memcpy(states.x, g.rest, 4 * lanes);
    words = {g.rest + 4 * lanes, end};
    for (std::uint32_t l = 0; l < lanes; ++l)
      if (states.x[l] < kLowestState || states.x[l] >> kStateBits != 0) return kBadState;
  } else if (lanes != 0) {
    std::uint32_t flags = 0;
    const std::uint32_t filled = read_states(g.rest, static_cast<std::size_t>(end - g.rest), lanes, states.x, flags);
    if (filled == 0) return kBadState;
    words = {g.rest + 4 * filled, end};
    if (words.more() != ((flags & kHasWords) != 0)) return kBadSize;
    if ((flags & kOddWords) != 0) {
      words.end -= 2;
      if (load_le<std::uint16_t>(words.end) != 0) return kBadPadding;
    }
  } else if (g.rest != nullptr) {
    words = {g.rest, end};
  }
  for (std::uint32_t l = lanes; l < kLaneCount; ++l) states.x[l] = kLowestState;
  return kOk;
}

inline Status find_huffman_stream(const GroupParts& g, const std::uint8_t* end, bool has_gaps, HuffmanReader& reader) {
  const auto left = static_cast<std::size_t>(end - g.rest);
  if (left < 4) return kBadSize;
  const auto words = load_le<std::uint32_t>(g.rest);
  const std::size_t gaps = has_gaps ? (std::size_t{words} + kGapBits / 32 - 1) / (kGapBits / 32) : 0;
  const std::size_t padded = (gaps + 3) / 4 * 4;
  if (left != 4 + padded + 4 * std::size_t{words}) return kBadSize;
  for (std::size_t i = gaps; i < padded; ++i)
    if (g.rest[4 + i] != 0) return kBadPadding;
  reader = HuffmanReader(g.rest + 4 + padded, words, has_gaps ? g.rest + 4 : nullptr);
  return kOk;
}

template <class Code, int S>
inline Status decode_group(const Plan& base, const std::uint8_t* bytes, std::size_t size, bool uniform,
                           std::uint64_t unit, std::uint64_t start, std::uint64_t stop, void* out) {
  const auto& plan = static_cast<const StreamPlan&>(base);
  const AnyMap<Code> map(plan);
  const TileLimits limits = limits_of(map.of);
  const GroupSpan span = group_span(plan.grid.tiles, plan.unit_tiles, unit);
  if (uniform) return kBadHead;
  if (size > max_group_bytes(span.count, limits.value_bytes)) return kBadSize;
  const bool rans = is_rans(plan.coder);
  const auto* const tables = rans ? static_cast<const DecodeTables*>(plan.tables) : nullptr;
  const auto* const huffman = rans ? nullptr : static_cast<const HuffmanTables*>(plan.tables);
  GroupParts g;
  if (size != 0) {
    PYF_TRY(find_group_parts(bytes, size, span.count, !rans, g));
  } else {
    std::memset(g.coding, kTileEmpty, sizeof g.coding);
    std::fill(std::begin(g.special), std::end(g.special), nullptr);
  }
  LaneStates states;
  WordReader words{nullptr, nullptr};
  HuffmanReader reader;
  if (rans)
    PYF_TRY((find_states<S>(plan, span, g, bytes + size, states, words)));
  else if (size != 0)
    PYF_TRY(find_huffman_stream(g, bytes + size, plan.coder == kHuffmanGaps, reader));

  GroupSpace<Code> space;
  Code before = 0;
  std::uint64_t first_wanted = 0, last_wanted = 0;
  tiles_of_range(plan.grid, start, stop, &first_wanted, &last_wanted);
  for (std::uint32_t i = 0; i < span.count; ++i) {
    const std::uint64_t tile = span.first + i;
    if (tile >= last_wanted) return kOk;  // later tiles are not decoded
    const bool wanted = tile >= first_wanted;
    const TileBox box = tile_box<S>(plan.grid, tile);
    PackedParts parts;
    bool verbatim = false;
    if (g.special[i] != nullptr) [[unlikely]] {
      PYF_TRY((find_special_part<S>(plan, limits, box, g.special[i], g.special_bytes[i], parts, &verbatim)));
      if (verbatim && g.coding[i] != kTileEmpty) return kBadGroup;
    }
    if (verbatim) {
      if (wanted)
        store_verbatim<S>(limits.value_bytes, plan.grid, box, parts.words, start, stop, space.tile.values, out);
      continue;
    }
    CodedBlocks t;
    present_blocks<S>(box, t.present);
    PYF_TRY(find_coded(g, i, tables, t, states, words));
    if (!rans && !reader.read(*huffman, 8 * sizeof(Code), t.count, space.blocks[0])) return kBadStream;
    if (wanted) ask_for_rows<S>(limits.value_bytes, plan.grid, box, start, stop, out);
    for (std::uint32_t from = 0; rans && from < t.count; from += kLaneCount) {
      const std::uint32_t here = std::min(t.count - from, kLaneCount);
      decode_round(kNeighbours<S>, *tables, 8 * sizeof(Code), here, space.rows, states, words);
      take_round(space.rows, here, space.blocks + from);
    }
    if (words.failed) return kBadStream;
    // a whole chain whose values are contiguous needs no copy of the tile
    const bool whole = S == kChain && g.special[i] == nullptr && box.inx == TileShape<S>::kX && box.first >= start &&
                       box.first + 4096 <= stop;
    void* const to = whole ? static_cast<std::uint8_t*>(out) + (box.first - start) * limits.value_bytes
                           : static_cast<std::uint8_t*>(space.tile.values);
    tile_values<Code, S>(plan, map, box, t, before, space, wanted, to);
    if (!wanted) continue;
    if (g.special[i] != nullptr) place_specials<S>(plan, limits, parts, space.tile.values);
    if (!whole) store_values<S>(limits.value_bytes, plan.grid, space.tile.values, box, start, stop, out);
  }
  if (!rans) return size == 0 || reader.at_end() ? kOk : kBadStream;
  const std::ptrdiff_t left = words.end - words.at;
  if (left != 0 && (left != 2 || plan.coder != kRansFull || load_le<std::uint16_t>(words.at) != 0)) return kBadStream;
  for (const std::uint32_t x : states.x)
    if (plan.coder == kRansFull ? x != kLowestState : !is_first_state(x)) return kBadStream;
  return kOk;
}

PYF_END_TARGET
