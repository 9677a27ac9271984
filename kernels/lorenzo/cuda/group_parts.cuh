// SPDX-License-Identifier: BSD-3-Clause
// The parts of a group, found by one warp with a lane for each tile (find_group_parts() of lorenzo/cpu/decode.hpp is
// the same on the CPU). Sizes are checked before anything is read by them.
#pragma once

#include <cstdint>

#include "lorenzo/cuda/group_tiles.cuh"
#include "stages/cuda/params.cuh"

namespace pyfilter::cuda {

// The parts of a lane's tile.
struct GroupTileParts {
  std::uint32_t coding = kTileEmpty, listed = 0;
  std::uint32_t list = 0;                        // offset of its list or its flags, in bytes of the group
  std::uint32_t special = 0, special_words = 0;  // offset and size of its special part, in words of the group
};

// The parts of tile `i` of a group, from the lane that has them.
__device__ __forceinline__ GroupTileParts parts_of_lane(const GroupTileParts& own, std::uint32_t i) {
  const auto from = [&](std::uint32_t x) { return __shfl_sync(kAllLanes, x, static_cast<int>(i)); };
  return {from(own.coding), from(own.listed), from(own.list), from(own.special), from(own.special_words)};
}

// `flags`: the head holds the flags of blocks. The parts after the head begin at byte `rest`.
__device__ __forceinline__ Fault find_parts(const std::uint8_t* bytes, std::uint32_t size, std::uint32_t tiles,
                                            bool flags, GroupTileParts& own, std::uint32_t& rest) {
  const unsigned lane = threadIdx.x % 32;
  std::uint32_t at = (tiles + 1) / 2;
  if (at > size) return Fault::size;
  const bool mine = lane < tiles;
  // byte offsets in a group, which starts at a word
  const std::uint32_t head = lane / 2 < at ? bytes[lane / 2] >> 4 * (lane % 2) & 15 : 0;
  if (__any_sync(kAllLanes, (head >> 3) != 0 || (!mine && head != 0))) return Fault::head;
  own.coding = head & kTileCoding;
  const std::uint32_t specials = __ballot_sync(kAllLanes, (head & kSpecialPart) != 0);
  std::uint32_t with_list = __ballot_sync(kAllLanes, own.coding == kTileListed || (flags && own.coding == kTileFlags));
  for (; with_list != 0; with_list &= with_list - 1) {
    const unsigned tile = static_cast<unsigned>(__ffs(static_cast<int>(with_list))) - 1;
    const bool listed = __shfl_sync(kAllLanes, own.coding, static_cast<int>(tile)) == kTileListed;
    if (size - at < (listed ? 1 : kFlagBytes)) return Fault::size;
    const std::uint32_t count = listed ? bytes[at] : kFlagBytes;
    if (listed && (count == 0 || count > kMostListed || size - at - 1 < count)) return Fault::head;
    at += listed ? 1 : 0;
    if (lane == tile) {
      own.listed = listed ? count : 0;
      own.list = at;
    }
    at += count;
  }
  const auto with_special = static_cast<std::uint32_t>(__popc(static_cast<int>(specials)));
  if (size - at < 2 * with_special) return Fault::size;
  const bool special = (specials >> lane & 1) != 0;
  if (special) {
    const auto before = static_cast<std::uint32_t>(__popc(static_cast<int>(specials & ((1u << lane) - 1))));
    own.special_words = bytes[at + 2 * before] | std::uint32_t{bytes[at + 2 * before + 1]} << 8;
  }
  if (__any_sync(kAllLanes, special && own.special_words == 0)) return Fault::head;
  at += 2 * with_special;
  const std::uint32_t padded = (at + 3) / 4 * 4;
  if (padded > size) return Fault::size;
  if (__any_sync(kAllLanes, at + lane < padded && bytes[at + lane] != 0)) return Fault::padding;
  const std::uint32_t upto = sum_upto(own.special_words), all = __shfl_sync(kAllLanes, upto, 31);
  own.special = padded / 4 + upto - own.special_words;
  if ((size - padded) / 4 < all) return Fault::size;
  rest = padded + 4 * all;
  return Fault::none;
}

// The set of a tile's listed blocks, returned to all lanes; a fault if they do not ascend or are not present.
template <int S>
__device__ __forceinline__ Fault read_listed(const std::uint8_t* list, std::uint32_t count, const TileBox& box,
                                             std::uint32_t (&coded)[4]) {
  const unsigned lane = threadIdx.x % 32;
  const bool mine = lane < count;
  const std::uint32_t block = mine ? list[lane] : 255, before = __shfl_up_sync(kAllLanes, block, 1);
  const bool bad = mine && (block >= kPackedBlocks || (lane > 0 && block <= before) || !is_present<S>(box, block));
  if (__any_sync(kAllLanes, bad)) return Fault::head;
#pragma unroll
  for (unsigned w = 0; w < 4; ++w) {
    coded[w] = or_of_lanes(mine && block / 32 == w ? 1u << block % 32 : 0);
  }
  return Fault::none;
}

// The set of a tile's present blocks, returned to all lanes.
template <int S>
__device__ __forceinline__ void present_bits(const TileBox& box, std::uint32_t (&present)[4]) {
#pragma unroll
  for (unsigned w = 0; w < 4; ++w)
    present[w] = is_whole<S>(box) ? kAllLanes : __ballot_sync(kAllLanes, is_present<S>(box, 32 * w + threadIdx.x % 32));
}

}  // namespace pyfilter::cuda
