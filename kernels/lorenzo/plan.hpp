// SPDX-License-Identifier: BSD-3-Clause
// The plan of a chunk whose tiles share streams, and the coders of groups of tiles.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stages/packed/plan.hpp"

namespace pyfilter {

// Coders, as numbered in frames. Frames of format versions below 10 have kRansFull: states of 32 bits each.
inline constexpr std::uint8_t kRansFull = 1, kHuffmanGaps = 2, kHuffman = 3, kRans = 4;
constexpr bool is_rans(std::uint8_t coder) { return coder == kRans || coder == kRansFull; }

// The size of the largest group: its tiles' special parts, symbols of 10 bits with all raw bits and an escape, heads
// and states.
inline constexpr std::uint32_t kMostGroupLog2 = 5, kMostGroupTiles = 1u << kMostGroupLog2;
constexpr std::size_t max_group_bytes(std::uint32_t tiles, std::size_t value_bytes) {
  return 512 + tiles * (4096 * (2 * value_bytes + 3) + 256);
}

// Scratch memory of a group for each of its tiles, besides a tile's own. It holds four rounds (cpu/lanes.hpp), or the
// words and gaps of a Huffman stream, and a special part.
inline constexpr std::size_t kRoundBytes = 8256, kTileStreamBytes = 8 * kRoundBytes;
constexpr std::size_t group_scratch_bytes(std::uint32_t tiles) {
  return kScratchBytes + tiles * (kTileStreamBytes + max_tile_bytes(8)) + kTileSlackBytes;
}

// Tiles counted for a model keep their residuals until they are encoded. They are at most this many, and take at most
// an eighth of the chunk's memory.
inline constexpr std::uint64_t kMostCountedTiles = 128;
inline constexpr std::size_t kCountedTileBytes = 8384;

// Chunks of at most this many tiles are stored as frames of hierarchical_delta if streams are not shorter.
inline constexpr std::uint64_t kCompareTiles = 16;

struct StreamPlan : PackedPlan {
  std::uint8_t coder = 0;
  // to encode: residuals of the first counted tiles, kCountedTileBytes each
  std::uint8_t* counted = nullptr;
  std::uint64_t counted_tiles = 0;
  const void* tables = nullptr;  // of the coder (rans.hpp, huffman.hpp), to encode or decode
};

struct SymbolCounts;
struct GroupCoder {
  TileCoder groups;
  // Counts a tile's symbols (model.hpp), for the chunk's tables.
  void (*count)(const StreamPlan& plan, const void* values, std::uint64_t tile, void* scratch, SymbolCounts* counts);
};

}  // namespace pyfilter
