// SPDX-License-Identifier: BSD-3-Clause
// Special values of a packed tile that is encoded (encode.hpp): sorted out, their codes stood in for, their masks
// foretold and written. Most tiles have none.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/plan.hpp"
#include "core/target.hpp"
#include "stages/difference.hpp"
#include "stages/packed/layout.hpp"
#include "stages/packed/lorenzo.hpp"
#include "stages/packed/missing.hpp"
#include "stages/packed/special.hpp"
#include "stages/packed/special_integer.hpp"
#include "stages/packed/tile_bits.hpp"
#include "stages/packed/values.hpp"
#include "stages/tile_encode.hpp"

PYF_BEGIN_TARGET

template <class Map, int S>
struct PackedScratch {
  using Code = typename Map::Code;
  static constexpr int kPlaneRoom = 8 * sizeof(Code);
  alignas(64) typename Map::Value values[4096];
  PaddedCodes<Code, 4096> codes;
  alignas(64) Code differences[S == kChain ? 1 : 4096];
  alignas(64) std::uint32_t planes[kPackedBlocks * kPlaneRoom];
  alignas(64) BlockBytes width;            // planes before exceptions; absent blocks have none
  alignas(64) BlockBytes kept;             // with an exception where there can be one
  alignas(64) BlockBytes left;             // planes that are written
  std::uint16_t exception[kPackedBlocks];  // entries, as in the tile
  PackedSpecial special[kPackedBlocks];
  std::uint32_t mask_residual[kPackedBlocks];
};

// What a tile has besides codes; nothing for most.
struct SpecialBlocks {
  BlockBits described, masked;  // blocks with a descriptor; those whose mask of missing values is not as foretold
  std::uint32_t nibbles = 0;    // of all masks
  std::uint32_t flags = 0;      // of the head
  bool any = false;
};

// Blocks side by side along x, strip after strip: the block at a place in this order, and the bits of a line
// (line_bits()) from masks in it, which compilers vectorise.
template <int S>
constexpr KFN std::uint32_t block_of_strip(std::uint32_t i) {
  using Tile = TileShape<S>;
  if (S == kChain || S == kColumns) return i;
  const std::uint32_t strip = i / Tile::kBlocksX;
  return strip / Tile::kBlocksY + Tile::kBlocksZ * (strip % Tile::kBlocksY + Tile::kBlocksY * (i % Tile::kBlocksX));
}
template <int S>
KFN std::uint64_t strip_line(const std::uint32_t (&masks)[kPackedBlocks], int line) {
  using Tile = TileShape<S>;
  if constexpr (S == kChain || S == kColumns) {
    return masks[line];
  } else {
    using Bits = std::conditional_t<Tile::kX == 64, std::uint64_t, std::uint32_t>;
    const auto y = static_cast<std::uint32_t>(line) % Tile::kY, z = static_cast<std::uint32_t>(line) / Tile::kY;
    const std::uint32_t at = Tile::position_of(z, y, 0);
    const std::uint32_t* const strip =
        masks + (z / Tile::kBlockZ * Tile::kBlocksY + y / Tile::kBlockY) * Tile::kBlocksX;
    Bits bits = 0;
    for (std::uint32_t i = 0; i < Tile::kBlocksX; ++i)
      bits |= static_cast<Bits>(strip[i] >> at & ((1u << Tile::kBlockX) - 1)) << i * Tile::kBlockX;
    return bits;
  }
}

// Codes that stand in for those that are not seen: along each line the last one seen, at its start the first; for lines
// without any, those of another line (line_source()).
template <class Map, int S>
[[gnu::noinline]] inline void fill_lines(PackedScratch<Map, S>& s) {
  using Code = typename Map::Code;
  using Lines = TileLines<S>;
  constexpr std::uint64_t kWhole = ~std::uint64_t{0} >> (64 - Lines::kLength);
  std::uint32_t filled[4] = {};
  bool all_filled = true;
  alignas(64) std::uint32_t unseen[kPackedBlocks];  // in the order of strips
  for (std::uint32_t i = 0; i < kPackedBlocks; ++i) unseen[i] = s.special[block_of_strip<S>(i)].unseen();
  for (int line = 0; line < Lines::kCount; ++line) {
    const std::uint64_t seen = ~strip_line<S>(unseen, line) & kWhole;
    all_filled = all_filled && seen != 0;
    filled[line / 32] |= static_cast<std::uint32_t>(seen != 0) << line % 32;
    if (seen == 0 || seen == kWhole) continue;
    Code* const q = s.codes + Lines::first_of(line);
    if constexpr (Lines::kStep == 1) {
      forward_fill<Lines::kLength>(q, seen);
    } else {
      alignas(64) Code together[Lines::kLength];
      for (std::uint32_t i = 0; i < Lines::kLength; ++i) together[i] = q[i * Lines::kStep];
      forward_fill<Lines::kLength>(together, seen);
      for (std::uint32_t i = 0; i < Lines::kLength; ++i) q[i * Lines::kStep] = together[i];
    }
  }
  if (all_filled) return;
  for (int line = 0; line < Lines::kCount; ++line) {
    if ((filled[line / 32] >> line % 32 & 1) != 0) continue;
    const int source = line_source<S>(filled, line);
    Code* const q = s.codes + Lines::first_of(line);
    const Code* const from = s.codes + (source < 0 ? 0 : Lines::first_of(source));
    const Code ends[2] = {from[0], from[(Lines::kLength - 1) * Lines::kStep]};
    for (std::uint32_t i = 0; i < Lines::kLength; ++i)
      q[i * Lines::kStep] = source < 0 ? Code{0} : S == kPlane || S == kVolume ? from[i] : ends[source < line];
  }
}

// Masks of missing values against what they are foretold to be, or as they are where that takes less.
template <class Map, int S>
inline void foretell_masks(const TileBox& box, PackedScratch<Map, S>& s, SpecialBlocks& found) {
  std::uint32_t foretold_cost = 0, plain_cost = 0;  // in groups of four bits
  bool all = true;
  const auto mask = [&s](int b) { return b < 0 ? 0 : s.special[b].missing(); };
  for (int b = 0; b < kPackedBlocks; ++b) {
    if (!is_present<S>(box, static_cast<std::uint32_t>(b))) continue;
    const int above = block_above<S>(b), before = block_before<S>(b);
    const std::uint32_t here = mask(b),
                        residual = mask_residual<S>(here, mask(above), mask(before),
                                                    above < 0 || before < 0 ? 0 : mask(block_before<S>(above)));
    s.mask_residual[b] = residual;
    all = all && here == ~0u;
    foretold_cost += residual != 0 ? 2 + static_cast<std::uint32_t>(__builtin_popcount(nibbles_of(residual))) : 0;
    plain_cost += here != 0 ? 2 + static_cast<std::uint32_t>(__builtin_popcount(nibbles_of(here))) : 0;
  }
  if (all) {
    found.flags |= kPackedAllMissing;
    return;
  }
  if (plain_cost == 0) return;
  const bool plain = plain_cost < foretold_cost;
  found.flags |= kPackedMissing | (plain ? kPackedPlainMasks : 0);
  for (int b = 0; b < kPackedBlocks; ++b) {
    if (!is_present<S>(box, static_cast<std::uint32_t>(b))) continue;
    if (plain) s.mask_residual[b] = mask(b);
    if (s.mask_residual[b] == 0) continue;
    found.masked.set(b);
    found.nibbles += static_cast<std::uint32_t>(__builtin_popcount(nibbles_of(s.mask_residual[b])));
  }
}

// Where more blocks have negative values than others, the others are noted.
template <class Map, int S>
inline void note_signs(const TileBox& box, PackedScratch<Map, S>& s, SpecialBlocks& found) {
  int negative = 0, other = 0;
  const auto signs_of = [](const PackedSpecial& special) {
    return ~static_cast<std::uint32_t>(special.sentinel | special.nan | special.verbatim);
  };
  for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
    if (!is_present<S>(box, b)) continue;
    negative += s.special[b].negative != 0 ? 1 : 0;
    other += (~s.special[b].negative & signs_of(s.special[b])) != 0 ? 1 : 0;
  }
  if (negative <= other) return;
  found.flags |= kPackedNegative;
  for (PackedSpecial& special : s.special) {
    special.negative = ~special.negative & signs_of(special);
    special.masks = (special.masks & ~kMaskNegative) | (special.negative != 0 ? kMaskNegative : 0);
  }
}

// Sorts out the special values of a tile with misfits.
template <class Map, int S>
[[gnu::noinline]] inline SpecialBlocks note_special_blocks(const Map& map, const TileBox& box,
                                                           const Loose<typename Map::Value>* x,
                                                           PackedScratch<Map, S>& s) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  SpecialBlocks found;
  bool unseen = false, missing = false;
  for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
    alignas(64) Value values[32];
    alignas(64) Code q[32];
    take_values<S, Value>(x, b, values);
    PackedSpecial& special = s.special[b];
    special = {};
    const std::uint64_t misfits = encode_block<Map, 32>(map, values, q);
    if (misfits != 0) sort_packed(map.quantizer, values, q, misfits, special);
    put_block<S>(q, b, s.codes.data());
    unseen = unseen || special.unseen() != 0;
    missing = missing || special.missing() != 0;
  }
  if (unseen) fill_lines<Map, S>(s);
  if (missing) foretell_masks<Map, S>(box, s, found);
  if constexpr ((Map::kMasks & kMaskNegative) != 0) {
    if ((found.flags & kPackedAllMissing) == 0) note_signs<Map, S>(box, s, found);
  }
  for (std::uint32_t b = 0; b < kPackedBlocks; ++b)
    if (s.special[b].described() != 0 && is_present<S>(box, b)) found.described.set(static_cast<int>(b));
  found.any = found.flags != 0 || found.described.count() != 0;
  return found;
}

// Which groups of four bits the masks of missing values have, and the groups.
template <class Map, int S>
[[gnu::noinline]] inline std::uint8_t* write_masks(const SpecialBlocks& special, const PackedScratch<Map, S>& s,
                                                   std::uint8_t* to) {
  std::uint8_t* groups = to + special.masked.count();
  std::uint32_t count = 0;
  for (int b = 0; b < kPackedBlocks; ++b) {
    if (special.masked.bit(b) == 0) continue;
    const std::uint32_t residual = s.mask_residual[b], used = nibbles_of(residual);
    *to++ = static_cast<std::uint8_t>(used);
    for (std::uint32_t rest = used; rest != 0; rest &= rest - 1, ++count) {
      const std::uint32_t group = residual >> 4 * __builtin_ctz(rest) & 15;
      if (count % 2 == 0)
        *groups = static_cast<std::uint8_t>(group);
      else
        *groups++ |= static_cast<std::uint8_t>(group << 4);
    }
  }
  return groups + count % 2;
}

PYF_END_TARGET
