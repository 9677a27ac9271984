// SPDX-License-Identifier: BSD-3-Clause
// Residuals of a tile for an entropy coder: the blocks that are not all zero, special values aside. Most tiles have
// ordinary values only and codes of 28 bits at most: those go strip by strip, in 32 bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/plan.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/entropy/group.hpp"
#include "stages/entropy/rans.hpp"
#include "stages/packed/encode.hpp"
#include "stages/packed/narrow.hpp"

PYF_BEGIN_TARGET

// A tile's blocks that are not all zero, and what is coded of it.
struct GroupTile {
  std::uint32_t coding = kTileEmpty;
  std::uint32_t special_bytes = 0;
  std::uint32_t coded = 0, present = 0;  // numbers of blocks
  std::uint32_t is_coded[4] = {}, is_present[4] = {};
  std::uint8_t listed[kMostListed] = {};
  std::uint64_t bits[kPackedBlocks / kLaneCount] = {};  // that residuals of a round have, together
  bool narrow = false;                                  // residuals are in GroupScratch::narrow

  std::uint32_t lanes(std::uint32_t round) const { return std::min(coded - round * kLaneCount, kLaneCount); }
  std::uint32_t rounds() const { return (coded + kLaneCount - 1) / kLaneCount; }
};

template <class Map, int S>
struct GroupScratch {
  PackedScratch<Map, S> tile;
  typename Map::Code before = 0;  // the code that the next tile's first is a difference to
  union {                         // residuals of the coded blocks
    alignas(64) typename Map::Code blocks[kPackedBlocks][32];
    alignas(64) std::uint32_t narrow[kPackedBlocks][32];
  };
  NarrowSpace<S> strip;
  GroupTile tiles[kMostGroupTiles];
};

// Behind it: rounds, and special parts of tiles.
template <class Map, int S>
inline constexpr std::size_t kGroupScratch = (sizeof(GroupScratch<Map, S>) + 63) / 64 * 64;

// A strip of a plane, or a slab of a volume, to residuals; what difference each is of is in tile_differences().
template <int S>
[[gnu::noinline]] inline void strip_residuals(int order, std::uint32_t strip, NarrowSpace<S>& s,
                                              std::uint32_t (*blocks)[32]) {
  using Tile = TileShape<S>;
  constexpr std::uint32_t kX = Tile::kX;
  constexpr const TakenMasks<kX>& kMasks = kTaken<kX>;
  if (strip == 0) std::memset(s.behind, 0, sizeof s.behind);
  if (strip == 0 || S == kVolume) std::memset(s.above, 0, sizeof s.above);
  for (std::uint32_t row = 0; row < kStripRows; ++row) {
    const std::uint32_t z = S == kVolume ? strip : 0, y = S == kVolume ? row : strip * kStripRows + row;
    const std::uint32_t* const q = s.row(row);
    const std::uint32_t* const take_above = order >= 2 ? kMasks.all : kMasks.first;
    const std::uint32_t* const take_behind = order >= 3 ? kMasks.all : row == 0 ? kMasks.first : kMasks.none;
    std::uint32_t* const to = blocks[Tile::block_of(z, y, 0)] + Tile::position_of(z, y, 0);
    for (std::uint32_t x = 0; x < kX; x += 8) {
      const Eight along = eight_at(q + x) - eight_at(q + x - 1);
      Eight d = along - (eight_at(s.above + x) & eight_at(take_above + x));
      eight_at(s.above + x) = along;
      if constexpr (S == kVolume) {
        const Eight here = d;
        d -= eight_at(s.behind[row] + x) & eight_at(take_behind + x);
        eight_at(s.behind[row] + x) = here;
      }
      Eight z8;
      zigzag_eight(d, z8);
      std::uint32_t* const block = to + 32 * (Tile::block_of(0, 0, x));
      if constexpr (Tile::kBlockX == 8) {
        eight_at(block) = z8;
      } else {
        std::memcpy(block, &z8, 16);
        std::memcpy(block + 32 * Tile::block_of(0, 0, 4), reinterpret_cast<const std::uint32_t*>(&z8) + 4, 16);
      }
    }
  }
}

// A run of codes to residuals; q[-1] is the code before them.
KFN void run_residuals(bool sums, const std::uint32_t* q, std::uint32_t* z) {
  if (sums)
    for (int i = 0; i < static_cast<int>(kRunValues); ++i) z[i] = zigzag(q[i] - *(q + i - 1));
  else
    for (int i = 0; i < static_cast<int>(kRunValues); ++i) z[i] = zigzag(q[i]);
}

// Residuals of all blocks of a tile without special values, to s.narrow. False where it has some, or wide codes.
template <class Map, int S>
[[gnu::noinline]] inline bool narrow_residuals(const Plan& plan, const void* values, const TileBox& box, bool alone,
                                               GroupScratch<Map, S>& s) {
  using Code = typename Map::Code;
  if (!alone && !may_shorten(s.before)) return false;
  auto before = static_cast<std::uint32_t>(s.before);
  const bool sums = S != kChain || plan.order != 0;
  const std::uint32_t* const q = s.strip.row(0);
  std::uint32_t first = 0;
  const bool narrow =
      narrow_strips<S>(Map(plan), plan.grid, values, box, s.tile.values, s.strip, [&](std::uint32_t strip) {
        if (strip == 0) first = q[0];
        if constexpr (S == kPlane || S == kVolume)
          strip_residuals<S>(plan.order, strip, s.strip, s.narrow);
        else
          run_residuals(sums, q, s.narrow[32 * strip]);
      });
  if (!narrow) return false;
  if (alone) before = first;
  if (sums) s.narrow[0][0] = zigzag(first - before);
  const std::uint32_t last = S == kChain ? q[kRunValues - 1] : first;
  s.before = static_cast<Code>(static_cast<std::int64_t>(static_cast<std::int32_t>(last)));
  return true;
}

// Moves the coded ones of all blocks together.
template <int S>
[[gnu::noinline]] inline void note_blocks(const TileBox& box, std::uint32_t (*blocks)[32], GroupTile& t) {
  for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
    if (!is_present<S>(box, b)) continue;
    t.is_present[b / 32] |= 1u << b % 32;
    ++t.present;
    std::uint32_t any = 0;
    for (int i = 0; i < 32; ++i) any |= blocks[b][i];
    if (any == 0) continue;
    if (t.coded != b) std::memcpy(blocks[t.coded], blocks[b], sizeof *blocks);
    t.bits[t.coded / kLaneCount] |= any;
    if (t.coded < kMostListed) t.listed[t.coded] = static_cast<std::uint8_t>(b);
    t.is_coded[b / 32] |= 1u << b % 32;
    ++t.coded;
  }
  t.coding = coding_of(t.coded, t.present);
}

// Residuals of a tile's present blocks that are not all zero, in block order, to s.blocks or s.narrow; special values
// to `special`. `alone`: the tile's first residual is 0, whatever came before.
template <class Map, int S>
inline void tile_residuals(const Plan& plan, const void* values, std::uint64_t tile, bool alone,
                           GroupScratch<Map, S>& s, GroupTile& t, std::uint8_t* special) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  const Map map(plan);
  PackedScratch<Map, S>& p = s.tile;
  const TileBox box = tile_box<S>(plan.grid, tile);
  t = {};
  if (narrow_residuals<Map, S>(plan, values, box, alone, s)) [[likely]] {
    t.narrow = true;
    note_blocks<S>(box, s.narrow, t);
    return;
  }
  const Loose<Value>* x = load_tile<S>(plan.grid, values, box, p.values);
  const SpecialBlocks found = encode_tile_codes<Map, S>(map, box, x, p);
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
    tile_differences<S>(plan.order, present_rows<S>(box), p.codes.data(), p.differences);
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
    t.bits[t.coded / kLaneCount] |= any;
    if (t.coded < kMostListed) t.listed[t.coded] = static_cast<std::uint8_t>(b);
    t.is_coded[b / 32] |= 1u << b % 32;
    ++t.coded;
  }
  t.coding = coding_of(t.coded, t.present);
}

PYF_END_TARGET
