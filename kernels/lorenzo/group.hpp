// SPDX-License-Identifier: BSD-3-Clause
// Groups of tiles that share a stream (docs/format.md, section 8.3), for CPU and GPU: their heads and sizes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/target.hpp"
#include "core/tile_shape.hpp"
#include "lorenzo/plan.hpp"

namespace pyfilter {

// How a group stores the set of a tile's coded blocks: none, all present blocks, flags, or a list in the head. Flags
// are in the stream, for Huffman coders in the head. kSpecialPart: the tile has special values or is verbatim.
inline constexpr std::uint32_t kTileEmpty = 0, kTileAll = 1, kTileFlags = 2, kTileListed = 3, kTileCoding = 3,
                               kSpecialPart = 4;
inline constexpr std::uint32_t kMostListed = 16, kFlagBytes = 16;

// The coding of a tile with this many coded blocks, as the head stores it.
constexpr KFN std::uint32_t coding_of(std::uint32_t coded, std::uint32_t present) {
  return coded == 0 ? kTileEmpty : coded == present ? kTileAll : coded <= kMostListed ? kTileListed : kTileFlags;
}
// The frequency of a block's flag, chosen by the block before it, if there is one.
constexpr KFN std::uint32_t flag_context(bool has_before, bool before_coded) {
  return !has_before ? 0 : before_coded ? 2 : 1;
}

// The tiles of group `unit`.
struct GroupSpan {
  std::uint64_t first;
  std::uint32_t count;
};
constexpr KFN GroupSpan group_span(std::uint64_t tiles, std::uint32_t group_tiles, std::uint64_t unit) {
  const std::uint64_t first = unit * group_tiles, left = tiles - first;
  return {first, left < group_tiles ? static_cast<std::uint32_t>(left) : group_tiles};
}

// Bit `b` of four words.
constexpr KFN bool bit_of(const std::uint32_t (&words)[4], std::uint32_t b) {
  return (words[b / 32] >> b % 32 & 1) != 0;
}

}  // namespace pyfilter
