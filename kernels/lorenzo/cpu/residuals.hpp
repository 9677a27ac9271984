// SPDX-License-Identifier: BSD-3-Clause
// Computes the residuals of a tile's blocks that are not all zero, and the tile's special values. Most tiles have
// ordinary values and codes of at most 28 bits; these are computed strip by strip, in 32 bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "core/wire.hpp"
#include "lorenzo/group.hpp"
#include "lorenzo/plan.hpp"
#include "lorenzo/rans.hpp"
#include "stages/packed/narrow.hpp"
#include "stages/packed/tile_instances.hpp"

PYF_BEGIN_TARGET

// The coded blocks of a tile, and its entry in the group's head.
struct GroupTile {
  std::uint32_t coding = kTileEmpty;
  std::uint32_t special_bytes = 0;
  std::uint32_t coded = 0, present = 0;  // numbers of blocks
  std::uint32_t is_coded[4] = {}, is_present[4] = {};
  std::uint8_t listed[kMostListed] = {};
  std::uint64_t bits[kPackedBlocks / kLaneCount] = {};  // OR of the residuals of each round
  bool narrow = false;                                  // residuals are in GroupScratch::narrow

  std::uint32_t lanes(std::uint32_t round) const { return std::min(coded - round * kLaneCount, kLaneCount); }
  std::uint32_t rounds() const { return (coded + kLaneCount - 1) / kLaneCount; }
};

template <class Code>
struct GroupScratch {
  PackedScratch<Code> tile;
  Code before = 0;          // the code that the next tile's first residual is a difference to
  std::uint32_t first = 0;  // first code of a narrow tile
  union {                   // residuals of the coded blocks
    alignas(64) Code blocks[kPackedBlocks][32];
    alignas(64) std::uint32_t narrow[kPackedBlocks][32];
  };
  union {  // by tile shape
    NarrowSpace<kChain> chain;
    NarrowSpace<kPlane> plane;
    NarrowSpace<kVolume> volume;
    NarrowSpace<kColumns> columns;
  };
  GroupTile tiles[kMostGroupTiles];

  template <int S>
  KFN NarrowSpace<S>& strip() {
    if constexpr (S == kChain) return chain;
    if constexpr (S == kPlane) return plane;
    if constexpr (S == kVolume) return volume;
    if constexpr (S == kColumns) return columns;
  }
};

// Scratch memory of a group. Rounds and special parts of tiles follow it.
template <class Code>
inline constexpr std::size_t kGroupScratch = (sizeof(GroupScratch<Code>) + 63) / 64 * 64;

// Stores rows of residuals, of neighbouring blocks along x, to these blocks; `to` is the first one.
template <int S>
KFN void put_residuals(const Words (&rows)[TileShape<S>::kBlockY], std::uint32_t* to) {
  using Tile = TileShape<S>;
  constexpr std::uint32_t kWidth = Tile::kBlockX, kNext = 32 * Tile::block_of(0, 0, kWidth);
#if defined(PYF_VECTORS)
  // the compiler would go through memory
  constexpr std::uint32_t kParts = kHeldWords / kWidth;
  for (std::uint32_t row = 0; row < Tile::kBlockY; row += kParts) {
    U32 parts[kParts];
    for (std::uint32_t k = 0; k < kParts; ++k) parts[k] = rows[row + k];
    if constexpr (kParts > 1) transpose_parts(parts);
    for (std::uint32_t k = 0; k < kParts; ++k) store(to + k * kNext + row * kWidth, parts[k]);
  }
#else
  for (std::uint32_t i = 0; i < Tile::kBlockY; ++i)
    for (std::uint32_t x = 0; x < kHeldWords; x += kWidth)
      std::memcpy(to + x / kWidth * kNext + i * kWidth, reinterpret_cast<const std::uint32_t*>(&rows[i]) + x,
                  kWidth * sizeof(std::uint32_t));
#endif
}

// Residuals of a strip of a plane, or of a slab of a volume, to blocks, a register of columns at a time.
// tile_differences() defines the differences. Columns beyond the last present block may be skipped.
template <int S, int kOrder>
[[gnu::noinline]] inline void strip_residuals(std::uint32_t strip, std::uint32_t rows, std::uint32_t columns,
                                              NarrowSpace<S>& s, std::uint32_t (*blocks)[32]) {
  using Tile = TileShape<S>;
  const std::uint32_t z = S == kVolume ? strip : 0, y = S == kVolume ? 0 : strip * kStripRows;
  for (std::uint32_t x = 0; x < columns; x += kHeldWords) {
    // order 1 takes differences along y only in the first column
    const Words first = x == 0 ? *held_at(kFirstOfRow) : Words{};
    Words above = S == kPlane && strip != 0 ? *held_at(s.above + x) : Words{};
    for (std::uint32_t from = 0; from < rows; from += Tile::kBlockY) {
      std::uint32_t* const to = blocks[Tile::block_of(z, y + from, x)] + Tile::position_of(z, 0, 0);
      alignas(64) Words residuals[Tile::kBlockY];
#pragma GCC unroll 4
      for (std::uint32_t i = 0; i < Tile::kBlockY; ++i) {
        const std::uint32_t* const q = s.row(from + i) + x;
        const Words along = *held_at(q) - *held_at(q - 1);
        Words d = along - (kOrder >= 2 ? above : above & first);
        above = along;
        if constexpr (S == kVolume && kOrder >= 3) {
          const Words behind = *held_at(s.behind[from + i] + x);
          *held_at(s.behind[from + i] + x) = d;
          if (strip != 0) d -= behind;
        }
        zigzag_words(d, residuals[i]);
      }
      put_residuals<S>(residuals, to);
    }
    *held_at(s.above + x) = above;
  }
  if (S == kVolume && kOrder < 3) {  // along z only through the tile's first position
    std::uint32_t& residual = blocks[Tile::block_of(z, 0, 0)][Tile::position_of(z, 0, 0)];
    const std::uint32_t d = unzigzag(residual);
    if (strip != 0) residual = zigzag(d - s.behind[0][0]);
    s.behind[0][0] = d;
  }
}
template <int S>
KFN void strip_residuals(int order, std::uint32_t strip, std::uint32_t rows, std::uint32_t columns, NarrowSpace<S>& s,
                         std::uint32_t (*blocks)[32]) {
  if (S == kVolume && order >= 3)
    strip_residuals<S, 3>(strip, rows, columns, s, blocks);
  else if (order >= 2)
    strip_residuals<S, 2>(strip, rows, columns, s, blocks);
  else
    strip_residuals<S, 1>(strip, rows, columns, s, blocks);
}

// Residuals of a run of codes; q[-1] is the previous code.
KFN void run_residuals(bool sums, const std::uint32_t* q, std::uint32_t* z) {
  if (sums)
    for (int i = 0; i < static_cast<int>(kRunValues); ++i) z[i] = zigzag(q[i] - *(q + i - 1));
  else
    for (int i = 0; i < static_cast<int>(kRunValues); ++i) z[i] = zigzag(q[i]);
}

// Computes the residuals of all blocks of a tile to s.narrow. Returns false if the tile has special values or wide
// codes.
template <class Code, int S>
[[gnu::noinline]] inline bool narrow_residuals(const StreamPlan& plan, const AnyMap<Code>& map, const void* values,
                                               const TileBox& box, const std::uint8_t* next_tile, bool alone,
                                               GroupScratch<Code>& s) {
  if (!alone && !may_shorten(s.before)) return false;
  auto before = static_cast<std::uint32_t>(s.before);
  const bool sums = S != kChain || plan.order != 0;
  NarrowSpace<S>& space = s.template strip<S>();
  const std::uint32_t* const q = space.row(0);
  std::uint32_t first = 0;
  const bool narrow = narrow_strips<S>(map, plan.grid, values, box, next_tile, s.tile.values, space,
                                       [&](std::uint32_t strip, std::uint32_t rows) {
                                         if (strip == 0) first = q[0];
                                         if constexpr (S == kPlane || S == kVolume)
                                           strip_residuals<S>(plan.order, strip, rows, box.inx, space, s.narrow);
                                         else
                                           run_residuals(sums, q, s.narrow[32 * strip]);
                                       });
  if (!narrow) return false;
  s.first = first;
  if (alone) before = first;
  if (sums) s.narrow[0][0] = zigzag(first - before);
  const std::uint32_t last = S == kChain ? q[kRunValues - 1] : first;
  s.before = static_cast<Code>(static_cast<std::int64_t>(static_cast<std::int32_t>(last)));
  return true;
}

// Makes the coded blocks contiguous, without branches: which blocks are coded is hard to predict. From the first block
// that is not coded on, each block is copied, and the next coded block overwrites blocks that are not coded.
template <int S>
[[gnu::noinline]] inline void note_blocks(const TileBox& box, std::uint32_t (*blocks)[32], GroupTile& t) {
  using Tile = TileShape<S>;
  constexpr std::uint32_t kParts = 32 / kHeldWords;
  const std::uint32_t nz = present_along(box.inz, Tile::kBlockZ), ny = present_along(box.iny, Tile::kBlockY),
                      nx = present_along(box.inx, Tile::kBlockX);
  alignas(64) BlockBytes is_present = {}, is_coded = {}, order;
  alignas(64) Words bits{};  // OR of a round's residuals
  std::uint32_t coded = 0;
  const auto add = [&](std::uint32_t b) {
    alignas(64) Words part[kParts], any{};
    for (std::uint32_t i = 0; i < kParts; ++i) any |= part[i] = *held_at(blocks[b] + kHeldWords * i);
    for (std::uint32_t i = 0; i < kParts; ++i) *held_at(blocks[coded] + kHeldWords * i) = part[i];
    std::uint32_t counts = is_zero(any) ? 0 : 1;
    asm("" : "+r"(counts));  // keeps the compiler from making a branch
    is_coded[b] = static_cast<std::uint8_t>(counts);
    order[coded] = static_cast<std::uint8_t>(b);
    bits |= any;
    const std::uint32_t round = coded / kLaneCount;
    coded += counts;
    if (coded / kLaneCount != round) {
      t.bits[round] = bits_of(bits);
      bits = Words{};
    }
  };
  if (nx * ny * nz == kPackedBlocks) [[likely]] {
    std::memset(is_present, 1, sizeof is_present);
    for (std::uint32_t b = 0; b < kPackedBlocks; ++b) add(b);
  } else {
    for (std::uint32_t x = 0; x < nx; ++x) {
      for (std::uint32_t y = 0; y < ny; ++y) {
        for (std::uint32_t z = 0; z < nz; ++z) {
          const std::uint32_t b = z + Tile::kBlocksZ * (y + Tile::kBlocksY * x);
          is_present[b] = 1;
          add(b);
        }
      }
    }
  }
  if (coded % kLaneCount != 0) t.bits[coded / kLaneCount] = bits_of(bits);
  std::memcpy(t.is_present, plane_of(is_present, 0).words, sizeof t.is_present);
  std::memcpy(t.is_coded, plane_of(is_coded, 0).words, sizeof t.is_coded);
  std::memcpy(t.listed, order, std::min(coded, kMostListed));
  t.present = nx * ny * nz;
  t.coded = coded;
  t.coding = coding_of(t.coded, t.present);
}

// Computes the residuals of a tile's coded blocks, in block order, to s.blocks or s.narrow, and writes special values
// to `special`. `alone`: the first residual is 0, whatever the tile before. `next`: the tile read next.
template <class Code, int S>
inline void tile_residuals(const StreamPlan& plan, const void* values, std::uint64_t tile, std::uint64_t next,
                           bool alone, GroupScratch<Code>& s, GroupTile& t, std::uint8_t* special) {
  const AnyMap<Code> map(plan);
  PackedScratch<Code>& p = s.tile;
  const TileBox box = tile_box<S>(plan.grid, tile);
  t = {};
  const std::uint64_t first_of_next = next < plan.grid.tiles ? tile_box<S>(plan.grid, next).first : box.first;
  const auto* const next_tile = static_cast<const std::uint8_t*>(values) + first_of_next * map.of.value_bytes;
  if (narrow_residuals<Code, S>(plan, map, values, box, next_tile, alone, s)) [[likely]] {
    t.narrow = true;
    note_blocks<S>(box, s.narrow, t);
    return;
  }
  TileValues tile_values{map.of.value_bytes, plan.grid, box, values, nullptr};
  tile_values.rows = load_values<S>(tile_values, p.values);
  const SpecialBlocks found = encode_tile_codes<Code, S>(map, box, tile_values.rows, p);
  if (found.any) {
    std::memset(p.left, 0, sizeof p.left);
    t.special_bytes = write_packed_tile<Code>(present_blocks<S>(box), tile_values, found, 0, {}, p, special).bytes;
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
