// SPDX-License-Identifier: BSD-3-Clause
// The tiles of a group in one warp, with a lane for each tile; a group has at most 32. A lane finds the coded blocks of
// its tile, and the tile's entry in the group's head (docs/format.md, section 8.3).
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "lorenzo/cuda/params.cuh"
#include "stages/cuda/packed/planes.cuh"
#include "stages/cuda/packed/values.cuh"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

// Blocks of a tile that have values of the array.
template <int S>
__device__ __forceinline__ std::uint32_t present_count(const TileBox& box) {
  using Tile = TileShape<S>;
  const auto parts = [](std::uint32_t inside, std::uint32_t side) { return (inside + side - 1) / side; };
  return parts(box.inx, Tile::kBlockX) * parts(box.iny, Tile::kBlockY) * parts(box.inz, Tile::kBlockZ);
}

// A lane's tile while its group is encoded.
struct LaneTile {
  std::uint32_t coded[4] = {}, count = 0, coding = kTileEmpty, flags = 0, special_words = 0;
  bool first_coded = false;
  std::uint64_t first_residual = 0;  // of the first block
};

// Completes the notes of a group's tiles once the first residual of each is known, and with it whether the first block
// is coded.
template <class Code, int S>
__device__ __forceinline__ LaneTile finish_tiles(const StreamParams& job, std::uint32_t chunk, const GroupSpan& span) {
  const unsigned lane = threadIdx.x % 32;
  const bool mine = lane < span.count;
  LaneTile t;
  Code first = 0, carry = 0;
  TileNote* const note =
      job.notes + std::size_t{chunk} * job.slots + static_cast<std::uint32_t>(span.first) + (mine ? lane : 0);
  if (mine) {
#pragma unroll
    for (int w = 0; w < 4; ++w) t.coded[w] = note->coded[w];
    first = static_cast<Code>(note->first);
    carry = static_cast<Code>(note->carry);
    t.flags = note->flags;
    t.special_words = note->special_words;
  }
  // verbatim tiles do not count as predecessors
  const std::uint32_t before = __ballot_sync(kAllLanes, mine && (t.flags & kNoteVerbatim) == 0) & ((1u << lane) - 1);
  const Code carried = __shfl_sync(kAllLanes, carry, before != 0 ? 31 - __clz(static_cast<int>(before)) : 0);
  if (mine && (t.flags & kNoteVerbatim) == 0) {
    if (S == kChain && order_of(job.base.plans[chunk]) == 0)
      t.first_residual = zigzag(first);  // order 0: no difference
    else
      t.first_residual = zigzag(static_cast<Code>(first - (before != 0 ? carried : 0)));
    t.first_coded = (t.coded[0] & 1) != 0 || t.first_residual != 0;
    if (t.first_coded) t.coded[0] |= 1;
#pragma unroll
    for (int w = 0; w < 4; ++w) t.count += static_cast<std::uint32_t>(__popc(static_cast<int>(t.coded[w])));
    const std::uint32_t present =
        present_count<S>(box_of<S>(job.base.grid, static_cast<std::uint32_t>(span.first) + lane));
    t.coding = coding_of(t.count, present);
    note->coded[0] = t.coded[0];
    note->flags = (t.flags & ~kNoteCoding) | t.coding;
  }
  return t;
}

// The facts of tile `i` of a group that its streams need, from the lane that has them.
template <class Code>
struct StreamTile {
  std::uint32_t count, width;  // coded blocks; kNoteBytes, kNoteHalves or kNoteWide
  bool first_coded;
  Code first_residual;

  __device__ __forceinline__ StreamTile(const LaneTile& own, std::uint32_t i)
      : count(__shfl_sync(kAllLanes, own.count, static_cast<int>(i))),
        width(__shfl_sync(kAllLanes, own.flags, static_cast<int>(i)) & kNoteWidth),
        first_coded(__shfl_sync(kAllLanes, own.first_coded ? 1 : 0, static_cast<int>(i)) != 0),
        first_residual(static_cast<Code>(
            __shfl_sync(kAllLanes, static_cast<unsigned long long>(own.first_residual), static_cast<int>(i)))) {}
};

// Sizes of a group's parts: bytes of its lists and special parts, bytes of the head, words of the special parts.
struct GroupHead {
  std::uint32_t lists, specials, bytes, special_words;
};
__device__ __forceinline__ std::uint32_t list_bytes(std::uint32_t coding, std::uint32_t count, bool flags) {
  return coding == kTileListed ? 1 + count : coding == kTileFlags && flags ? kFlagBytes : 0;
}
__device__ __forceinline__ GroupHead group_head(std::uint32_t tiles, std::uint32_t own_list,
                                                std::uint32_t special_words) {
  const std::uint32_t lists = __shfl_sync(kAllLanes, sum_upto(own_list), 31);
  const auto specials =
      static_cast<std::uint32_t>(__popc(static_cast<int>(__ballot_sync(kAllLanes, special_words != 0))));
  const std::uint32_t words = __shfl_sync(kAllLanes, sum_upto(special_words), 31);
  return {lists, specials, ((tiles + 1) / 2 + lists + 2 * specials + 3) / 4 * 4, words};
}

// The index of set bit number k of four words; they have more than k set bits.
__device__ __forceinline__ std::uint32_t nth_block(const std::uint32_t (&words)[4], std::uint32_t k) {
  std::uint32_t word = words[0], base = 0;
#pragma unroll
  for (int w = 0; w < 3; ++w) {
    const auto here = static_cast<std::uint32_t>(__popc(static_cast<int>(word)));
    const bool behind = base == 32u * static_cast<unsigned>(w) && k >= here;
    if (behind) {
      k -= here;
      word = words[w + 1];
      base += 32;
    }
  }
#pragma unroll
  for (int half = 16; half > 0; half /= 2) {
    const auto here = static_cast<std::uint32_t>(__popc(static_cast<int>(word & ((1u << half) - 1))));
    if (k >= here) {
      k -= here;
      word >>= half;
      base += static_cast<unsigned>(half);
    }
  }
  return base;
}

}  // namespace pyfilter::cuda
