// SPDX-License-Identifier: BSD-3-Clause
// Special values of a packed tile to encode (encode.hpp): sorted into masks, given codes, and their masks predicted and
// written. Most tiles have none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/plan.hpp"
#include "core/target.hpp"
#include "stages/difference.hpp"
#include "stages/packed/differences.hpp"
#include "stages/packed/layout.hpp"
#include "stages/packed/missing.hpp"
#include "stages/packed/special.hpp"
#include "stages/packed/tile_bits.hpp"
#include "stages/packed/values.hpp"
#include "stages/tile_encode.hpp"

PYF_BEGIN_TARGET

// Masks of 32 values each: a block of a tile, or a run of 32 consecutive values in the tile's row order. The first
// index is the number of the mask's bit (kMaskSentinel and so on).
struct TileMasks {
  alignas(64) std::uint32_t of[5][kPackedBlocks];
};
inline constexpr int kMissingMask = 0, kVerbatimMask = 2, kNegativeMask = 4;

// Masks of a tile's special values.
struct TileMarks {
  alignas(64) std::uint32_t misfits[kPackedBlocks];  // by run: not 0 if the run has possible misfits
  // of a tile with misfits: masks by run and by block, the kinds of masks in the tile, and by block the kinds in its
  // descriptor
  TileMasks runs, blocks;
  unsigned kinds;
  alignas(64) BlockBytes described;
  alignas(64) std::uint32_t mask_residual[kPackedBlocks];
};

template <class Code>
struct PackedScratch {
  static constexpr int kPlaneCapacity = 8 * sizeof(Code);
  alignas(64) std::uint8_t values[4096 * sizeof(Code)];  // at the width of the values
  PaddedCodes<Code, 4096> codes;
  alignas(64) Code differences[4096];
  alignas(64) std::uint32_t planes[kPackedBlocks * kPlaneCapacity];
  alignas(64) BlockBytes width;            // planes before exceptions; 0 for absent blocks
  alignas(64) BlockBytes kept;             // planes with an exception, if the block can have one
  alignas(64) BlockBytes left;             // planes that are written
  std::uint16_t exception[kPackedBlocks];  // entries, as stored in the tile
  TileMarks marks;
};

// Gathers every fourth bit of 32, from bit 0 on.
KFN std::uint32_t fourth_bits(std::uint32_t bits) {
  std::uint32_t t = bits & 0x11111111u;
  t = (t | t >> 3) & 0x03030303u;
  t = (t | t >> 6) & 0x000F000Fu;
  return (t | t >> 12) & 0xFF;
}

// The tile's special blocks and flags; empty for most tiles.
struct SpecialBlocks {
  BlockBits described,
      masked;  // blocks with a descriptor; blocks whose mask of missing values differs from its prediction
  std::uint32_t nibbles = 0;  // number of groups of four bits in all masks
  std::uint32_t flags = 0;    // for the head
  bool any = false;
};

// Masks by block from masks by run.
template <int S>
KFN void masks_of_blocks(const std::uint32_t (&runs)[kPackedBlocks], std::uint32_t (&blocks)[kPackedBlocks]) {
  using Tile = TileShape<S>;
  if constexpr (S == kChain) {
    std::memcpy(blocks, runs, sizeof blocks);
  } else if constexpr (S == kPlane) {  // a block row is eight bytes of the masks
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(runs);
    for (std::uint32_t y = 0; y < Tile::kBlocksY; ++y) {
      for (std::uint32_t x = 0; x < Tile::kBlocksX; ++x) {
        std::uint32_t mask = 0;
        for (std::uint32_t k = 0; k < Tile::kBlockY; ++k)
          mask |= static_cast<std::uint32_t>(bytes[8 * (Tile::kBlockY * y + k) + x]) << 8 * k;
        blocks[Tile::block_of(0, Tile::kBlockY * y, Tile::kBlockX * x)] = mask;
      }
    }
  } else if constexpr (S == kVolume) {  // a run is eight groups of four bits
    for (std::uint32_t z = 0; z < Tile::kZ; z += Tile::kBlockZ) {
      for (std::uint32_t y = 0; y < Tile::kY; y += Tile::kBlockY) {
        std::uint32_t masks[Tile::kBlocksX] = {}, rows[8], any = 0;
        for (std::uint32_t k = 0; k < 8; ++k)
          any |= rows[k] = runs[(z + k / Tile::kBlockY) * Tile::kY + y + k % Tile::kBlockY];
        for (std::uint32_t k = 0; any != 0 && k < 8; ++k)  // few runs have bits when single values are verbatim
          for (std::uint32_t x = 0; x < Tile::kBlocksX; ++x) masks[x] |= (rows[k] >> 4 * x & 15) << 4 * k;
        for (std::uint32_t x = 0; x < Tile::kBlocksX; ++x) blocks[Tile::block_of(z, y, Tile::kBlockX * x)] = masks[x];
      }
    }
  } else {  // a run is eight rows of four columns
    for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
      std::uint32_t mask = 0;
      for (std::uint32_t k = 0; k < 4; ++k)
        mask |= fourth_bits(runs[4 * (b % Tile::kBlocksY) + k] >> b / Tile::kBlocksY) << 8 * k;
      blocks[b] = mask;
    }
  }
}

// Codes for special values: the last plain code before them in the line, at the line's start its first plain code. A
// line without plain codes takes the codes of another line (line_source()). Rows outside the present blocks keep their
// codes: line_source() finds the row that they repeat first.
template <class Code, int S>
[[gnu::noinline]] inline void fill_lines(const TileBox& box, PackedScratch<Code>& s) {
  using Lines = TileLines<S>;
  constexpr std::uint64_t kWhole = ~std::uint64_t{0} >> (64 - Lines::kLength);
  std::uint32_t filled[4] = {};
  bool all_filled = true;
  alignas(64) std::uint32_t unseen[kPackedBlocks] = {}, columns[S == kColumns ? kPackedBlocks : 1];
  for (int kind = 0; kind < kNegativeMask; ++kind)
    if ((s.marks.kinds >> kind & 1) != 0)
      for (int r = 0; r < kPackedBlocks; ++r) unseen[r] |= s.marks.runs.of[kind][r];
  if constexpr (S == kColumns) masks_of_blocks<S>(unseen, columns);
  const auto outside = [present = present_rows<S>(box)](int line) {
    const auto row = static_cast<std::uint32_t>(line);
    return (S == kPlane || S == kVolume) &&
           (row % TileShape<S>::kY >= present.y || row / TileShape<S>::kY >= present.z);
  };
  for (int line = 0; line < Lines::kCount; ++line) {
    if (outside(line)) continue;
    std::uint64_t seen = ~std::uint64_t{S == kColumns ? columns[line] : unseen[line * Lines::kLength / 32]};
    if (S == kPlane) seen ^= std::uint64_t{unseen[2 * line + 1]} << 32;
    seen &= kWhole;
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
    if ((filled[line / 32] >> line % 32 & 1) != 0 || outside(line)) continue;
    const int source = line_source<S>(filled, line);
    Code* const q = s.codes + Lines::first_of(line);
    const Code* const from = s.codes + (source < 0 ? 0 : Lines::first_of(source));
    const Code ends[2] = {from[0], from[(Lines::kLength - 1) * Lines::kStep]};
    for (std::uint32_t i = 0; i < Lines::kLength; ++i)
      q[i * Lines::kStep] = source < 0 ? Code{0} : S == kPlane || S == kVolume ? from[i] : ends[source < line];
  }
}

// All ones for each block that has a block above it, or before it.
template <int S>
struct BlockNeighbours {
  alignas(64) std::uint32_t above[kPackedBlocks], before[kPackedBlocks];
  static constexpr int kStep = TileShape<S>::kBlocksZ;  // block_above() is this many blocks earlier
  constexpr BlockNeighbours() : above{}, before{} {
    for (int b = 0; b < kPackedBlocks; ++b) {
      above[b] = block_above<S>(b) < 0 ? 0 : ~0u;
      before[b] = block_before<S>(b) < 0 ? 0 : ~0u;
    }
  }
};
template <int S>
inline constexpr BlockNeighbours<S> kBlockNeighbours{};

// The cost of a mask, in groups of four bits.
KFN std::uint32_t mask_cost(std::uint32_t mask) {
  std::uint32_t used = mask | mask >> 1;
  used = (used | used >> 2) & 0x11111111u;
  return mask != 0 ? 2 + (used * 0x11111111u >> 28) : 0;
}

// The set of blocks whose numbers are not 0.
template <class Number>
KFN BlockBits nonzero_bits(const Number (&numbers)[kPackedBlocks]) {
  alignas(64) BlockBytes set;
  for (int b = 0; b < kPackedBlocks; ++b) set[b] = numbers[b] != 0 ? 1 : 0;
  return plane_of(set, 0);
}

// Chooses between residuals of predicted masks and plain masks of missing values, by cost. `present`: all ones for each
// present block.
template <int S>
inline void predict_masks(const std::uint32_t (&present)[kPackedBlocks], TileMarks& s, SpecialBlocks& found) {
  constexpr const BlockNeighbours<S>& kNear = kBlockNeighbours<S>;
  constexpr int kPad = 16;
  static_assert(kNear.kStep + 1 <= kPad);
  alignas(64) std::uint32_t padded[kPad + kPackedBlocks] = {}, plain[kPackedBlocks];
  std::uint32_t* const masks = padded + kPad;
  std::memcpy(masks, s.blocks.of[kMissingMask], sizeof s.blocks.of[kMissingMask]);
  std::uint32_t predicted_cost = 0, plain_cost = 0, all = ~0u;
  for (int b = 0; b < kPackedBlocks; ++b) {
    const std::uint32_t here = masks[b], above = kNear.above[b], before = kNear.before[b];
    const std::uint32_t residual = mask_residual<S>(here, masks[b - kNear.kStep] & above, masks[b - 1] & before,
                                                    masks[b - kNear.kStep - 1] & above & before);
    s.mask_residual[b] = residual & present[b];
    plain[b] = here & present[b];
    predicted_cost += mask_cost(residual & present[b]);
    plain_cost += mask_cost(here & present[b]);
    all &= here | ~present[b];
  }
  if (all == ~0u) {
    found.flags |= kPackedAllMissing;
    return;
  }
  if (plain_cost == 0) return;
  const bool plain_is_shorter = plain_cost < predicted_cost;
  if (plain_is_shorter) std::memcpy(s.mask_residual, plain, sizeof plain);
  found.flags |= kPackedMissing | (plain_is_shorter ? kPackedPlainMasks : 0);
  found.masked = nonzero_bits(s.mask_residual);
  found.nibbles = (plain_is_shorter ? plain_cost : predicted_cost) - 2 * found.masked.count();
}

// Inverts the sign masks if most blocks have negative values, so that fewer blocks need a mask.
inline void note_signs(const std::uint32_t (&present)[kPackedBlocks], TileMarks& s, SpecialBlocks& found) {
  int negative = 0, other = 0;
  const auto& masks = s.blocks.of;
  const auto others_of = [&](int b) { return ~(masks[0][b] | masks[1][b] | masks[2][b] | masks[kNegativeMask][b]); };
  for (int b = 0; b < kPackedBlocks; ++b) {
    negative += (masks[kNegativeMask][b] & present[b]) != 0 ? 1 : 0;
    other += (others_of(b) & present[b]) != 0 ? 1 : 0;
  }
  if (negative <= other) return;
  found.flags |= kPackedNegative;
  for (int b = 0; b < kPackedBlocks; ++b) s.blocks.of[kNegativeMask][b] = others_of(b);
}

// Masks by block of a tile with special values, from its masks by run.
template <int S>
[[gnu::noinline]] SpecialBlocks describe_masks(const TileBox& box, TileMarks& s) {
  SpecialBlocks found;
  for (int kind = 0; kind < 5; ++kind) {
    if ((s.kinds >> kind & 1) != 0)
      masks_of_blocks<S>(s.runs.of[kind], s.blocks.of[kind]);
    else
      std::memset(s.blocks.of[kind], 0, sizeof s.blocks.of[kind]);
  }
  alignas(64) std::uint32_t present[kPackedBlocks];
  std::fill_n(present, kPackedBlocks, is_whole<S>(box) ? ~0u : 0);
  if (!is_whole<S>(box))
    for (const std::uint32_t b : present_blocks<S>(box)) present[b] = ~0u;
  if ((s.kinds & kMaskSentinel) != 0) predict_masks<S>(present, s, found);
  if ((s.kinds & kMaskNegative) != 0 && (found.flags & kPackedAllMissing) == 0) note_signs(present, s, found);
  if ((s.kinds & ~unsigned{kMaskSentinel}) != 0) {
    alignas(64) std::uint32_t described[kPackedBlocks] = {};  // words, since byte stores may alias anything
    for (int kind = 1; kind < 5; ++kind) {
      if ((s.kinds >> kind & 1) == 0) continue;
      for (int b = 0; b < kPackedBlocks; ++b) described[b] |= (s.blocks.of[kind][b] & present[b]) != 0 ? 1u << kind : 0;
    }
    for (int b = 0; b < kPackedBlocks; ++b) s.described[b] = static_cast<std::uint8_t>(described[b]);
    found.described = nonzero_bits(s.described);
  }
  found.any = found.flags != 0 || found.described.count() != 0;
  return found;
}

// Special blocks of a tile after its runs are sorted: codes for special values, masks by block.
template <class Code, int S>
[[gnu::noinline]] SpecialBlocks describe_specials(const TileBox& box, PackedScratch<Code>& s) {
  const TileMarks& marks = s.marks;
  if (marks.kinds == 0) return {};
  if (marks.kinds == kMaskSentinel && is_whole<S>(box)) {  // the inside of a land mask has no codes
    std::uint32_t all = ~0u;
    for (const std::uint32_t mask : marks.runs.of[kMissingMask]) all &= mask;
    if (all == ~0u) {
      std::memset(s.codes.data(), 0, 4096 * sizeof(Code));
      SpecialBlocks found;
      found.flags = kPackedAllMissing;
      found.any = true;
      return found;
    }
  }
  if ((marks.kinds & ~kMaskNegative) != 0) fill_lines<Code, S>(box, s);
  return describe_masks<S>(box, s.marks);
}

// A block's special values, as write_packed_special() expects them.
KFN PackedSpecial special_of(const TileMarks& s, std::uint32_t b) {
  PackedSpecial special{};
  special.masks = s.described[b];
  special.nan = s.blocks.of[1][b];
  special.verbatim = s.blocks.of[kVerbatimMask][b];
  special.zero = s.blocks.of[3][b];
  special.negative = s.blocks.of[kNegativeMask][b];
  return special;
}

// Writes which groups of four bits the masks of missing values have, and the groups.
[[gnu::noinline]] inline std::uint8_t* write_masks(const SpecialBlocks& special, const TileMarks& s, std::uint8_t* to) {
  std::uint8_t groups[8 * kPackedBlocks + 1];  // one group a byte
  std::uint32_t count = 0;
  special.masked.for_set([&](std::uint32_t b) {
    const std::uint32_t residual = s.mask_residual[b];
    *to++ = static_cast<std::uint8_t>(nibbles_of(residual));
    for (int k = 0; k < 8; ++k) {  // branch-free: zero groups are unpredictable
      const std::uint32_t group = residual >> 4 * k & 15;
      groups[count] = static_cast<std::uint8_t>(group);
      count += group != 0 ? 1 : 0;
    }
  });
  groups[count] = 0;
  const std::uint32_t bytes = nibble_bytes(count);
  for (std::uint32_t i = 0; i < bytes; ++i) to[i] = static_cast<std::uint8_t>(groups[2 * i] | groups[2 * i + 1] << 4);
  return to + bytes;
}

PYF_END_TARGET
