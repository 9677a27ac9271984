// SPDX-License-Identifier: BSD-3-Clause
// Missing values of a packed tile (docs/format.md, section 7.4): prediction of block masks from neighbouring blocks,
// and substitutes for lines without codes. For CPU and GPU.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/tile_shape.hpp"

namespace pyfilter {

// The neighbouring block before a block along y and z, in block order; -1 for the tile's first blocks.
template <int S>
constexpr KFN int block_above(int b) {
  constexpr int kStep = TileShape<S>::kBlocksZ;
  constexpr int kRun = S == kChain ? 32 : kStep * static_cast<int>(TileShape<S>::kBlocksY);
  return b % kRun < kStep ? -1 : b - kStep;
}
template <int S>
constexpr KFN int block_before(int b) {
  return S != kVolume || b % static_cast<int>(TileShape<S>::kBlocksZ) == 0 ? -1 : b - 1;
}

// The mask moved one row along y (chain, columns: one position); the block above fills the first row.
template <int S>
constexpr KFN std::uint32_t mask_moved(std::uint32_t mask, std::uint32_t above) {
  if (S == kPlane) return mask << 8 | above >> 24;
  if (S == kVolume) return (mask & 0x0FFF0FFFu) << 4 | (above >> 12 & 0x000F000Fu);
  return mask << 1 | above >> 31;
}

// Predicts mask bits from the previous bits along y, along z, and along both. If y and z agree, it predicts their
// value, else the bit that continues the edge.
constexpr KFN std::uint32_t predicted_bits(std::uint32_t y, std::uint32_t z, std::uint32_t both) {
  return (y & z) | ((y ^ z) & ~both);
}

// A block's mask XOR its prediction from the neighbours' masks (0 for neighbours outside the tile).
template <int S>
constexpr KFN std::uint32_t mask_residual(std::uint32_t mask, std::uint32_t above, std::uint32_t before,
                                          std::uint32_t above_before) {
  const std::uint32_t y = mask_moved<S>(mask, above);
  if constexpr (S != kVolume) return mask ^ y;
  const std::uint32_t z = mask << 16 | before >> 16;
  return mask ^ predicted_bits(y, z, mask_moved<S>(z, above << 16 | above_before >> 16));
}

// The inverse of mask_residual().
template <int S>
constexpr KFN std::uint32_t mask_from(std::uint32_t residual, std::uint32_t above, std::uint32_t before,
                                      std::uint32_t above_before) {
  std::uint32_t m = residual;
  if constexpr (S == kVolume) {  // rows of four bits, in sequence
    std::uint32_t z = before >> 16, both_above = above_before >> 28, y_above = above >> 12;
    for (unsigned slab = 0; slab < 32; slab += 16) {
      std::uint32_t y = y_above & 15, both = both_above & 15;
      for (unsigned row = slab; row < slab + 16; row += 4) {
        const std::uint32_t here = z >> (row - slab) & 15;
        y = (residual >> row & 15) ^ predicted_bits(y, here, both);
        m = (m & ~(15u << row)) | y << row;
        both = here;
      }
      z = m & 0xFFFF;
      both_above = above >> 12;
      y_above = above >> 28;
    }
    return m;
  }
  m ^= S == kPlane ? above >> 24 : above >> 31;
  if constexpr (S != kPlane) m ^= m << 1, m ^= m << 2, m ^= m << 4;
  m ^= m << 8;
  return m ^ m << 16;
}

// A bit for each of a residual's eight groups of four bits that is not zero.
constexpr KFN std::uint32_t nibbles_of(std::uint32_t residual) {
  std::uint32_t t = residual | residual >> 1;
  t = (t | t >> 2) & 0x11111111u;
  t = (t | t >> 3) & 0x03030303u;
  t = (t | t >> 6) & 0x000F000Fu;
  return (t | t >> 12) & 0xFF;
}

// Bytes of this many groups of four bits.
constexpr KFN std::uint32_t nibble_bytes(std::uint32_t nibbles) { return (nibbles + 1) / 2; }

// Lines of a tile: its rows along x; of a chain and of columns its blocks.
template <int S>
struct TileLines {
  static constexpr int kLength = S == kPlane ? 64 : 32, kCount = 4096 / kLength;
  // lines of a group, which can stand in for each other
  static constexpr int kGroup = S == kChain ? kCount : static_cast<int>(S == kColumns ? 32 : TileShape<S>::kY);

  // Index in the tile's row order of a line's first position, and the stride along the line.
  static constexpr KFN std::uint32_t first_of(int line) {
    return S == kColumns ? TileShape<S>::first_of(static_cast<std::uint32_t>(line))
                         : static_cast<std::uint32_t>(line * kLength);
  }
  static constexpr std::uint32_t kStep = S == kColumns ? TileShape<S>::kX : 1;
};

// Bits of a line from its blocks' masks: `mask(b)` is block b's.
template <int S, class Masks>
KFN std::uint64_t line_bits(const Masks& mask, int line) {
  using Tile = TileShape<S>;
  if constexpr (S == kChain || S == kColumns) {
    return mask(static_cast<std::uint32_t>(line));
  } else {
    const auto y = static_cast<std::uint32_t>(line) % Tile::kY, z = static_cast<std::uint32_t>(line) / Tile::kY;
    const std::uint32_t at = Tile::position_of(z, y, 0);
    std::uint64_t bits = 0;
    for (std::uint32_t x = 0; x < Tile::kX; x += Tile::kBlockX)
      bits |= static_cast<std::uint64_t>(mask(Tile::block_of(z, y, x)) >> at & ((1u << Tile::kBlockX) - 1)) << x;
    return bits;
  }
}

// The highest (or lowest) set bit with index in [from, to); -1 if there is none.
KFN int last_bit(const std::uint32_t* bits, int from, int to) {
  for (int w = (to - 1) / 32; w >= from / 32 && to > from; --w) {
    std::uint32_t here = bits[w];
    if (w == (to - 1) / 32 && to % 32 != 0) here &= (1u << to % 32) - 1;
    if (w == from / 32) here &= ~0u << from % 32;
    if (here != 0) return 32 * w + bit_width(here) - 1;
  }
  return -1;
}
KFN int first_bit(const std::uint32_t* bits, int from, int to) {
  for (int w = from / 32; 32 * w < to; ++w) {
    std::uint32_t here = bits[w];
    if (w == from / 32) here &= ~0u << from % 32;
    if (here != 0) {
      const int at = 32 * w + bit_width(here & (0 - here)) - 1;
      return at < to ? at : -1;
    }
  }
  return -1;
}
KFN int nearest_line(const std::uint32_t* filled, int line, int from, int to) {
  const int last = last_bit(filled, from, line);
  return last >= 0 ? last : first_bit(filled, line, to);
}

// The line whose codes a line without ordinary values copies, or -1. `filled`: lines with ordinary values. It is the
// last filled line before it in the slab. If there is none, it is the slab's first filled line, or else the same line
// of an earlier slab.
template <int S>
KFN int line_source(const std::uint32_t* filled, int line) {
  constexpr int kGroup = TileLines<S>::kGroup;
  const int from = line / kGroup * kGroup;
  const int here = nearest_line(filled, line, from, from + kGroup);
  if (S != kVolume || here >= 0) return here;
  int other = last_bit(filled, 0, from);
  if (other < 0) other = first_bit(filled, from, TileLines<S>::kCount);
  if (other < 0) return -1;
  const int slab = other / kGroup * kGroup, same = slab + line % kGroup;
  if ((filled[same / 32] >> same % 32 & 1) != 0) return same;
  return nearest_line(filled, same, slab, slab + kGroup);
}

}  // namespace pyfilter
