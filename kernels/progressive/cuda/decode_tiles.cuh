// SPDX-License-Identifier: BSD-3-Clause
// Pieces of tiles to planes (docs/format.md, section 13.5). A warp decodes a tile, four words in each lane, plane by
// plane. First come the classes of positions and their ones, stored as bits or as runs (runs.cuh). Then come signs and
// bits of significant positions. Counts give the offsets of bits.
#pragma once

#include <cstdint>

#include "progressive/cuda/bits.cuh"
#include "progressive/cuda/params.cuh"
#include "progressive/cuda/runs.cuh"
#include "stages/cuda/prefetch.cuh"

namespace pyfilter::cuda {

inline constexpr int kDecodeTileThreads = 64, kDecodeTileWarps = kDecodeTileThreads / 32,
                     kBlocksOfGroup = kGroupTiles / kDecodeTileWarps, kPiecesAhead = 2;

// The number of positions of a set in the lanes before this one, and in all.
struct LaneCount {
  std::uint32_t before, all;
};
__device__ __forceinline__ LaneCount count_lanes(const LaneWords& words) {
  LaneCount count;
  count.before = warp_sum_before(count_words(words), count.all);
  return count;
}

static_assert(kMostPlanes % 32 == 0);  // offsets are read 32 at a time

// A warp's memory of a tile; a lane uses its own words only. `older`: positions with a one before the last plane.
struct TileMemory {
  LaneWords valid[32], older[32], signs[32];
  std::uint64_t locations[kMostPlanes];  // offsets of its pieces, from the highest plane on
  std::uint32_t ranks[kRankWords];
};

// `n` bits by rank, from rank `first` on.
__device__ __forceinline__ std::uint32_t rank_bits(const std::uint32_t* ranks, std::uint32_t first, std::uint32_t n) {
  return n == 0 ? 0 : __funnelshift_r(ranks[first / 32], ranks[first / 32 + 1], first % 32) & first_bits(n);
}

// The ones of a plane, whose classes start at bit `at` of the piece; sets `at` to their end. False if runs are damaged.
__device__ __forceinline__ bool read_ones(const PieceBits& piece, std::uint32_t modes, TileForm form,
                                          const LaneWords& known, LaneCount open, TileMemory& memory, std::uint32_t& at,
                                          LaneWords& ones) {
  const LaneClasses classes = classify_words(form, known, memory.valid[threadIdx.x % 32]);
  std::uint32_t own = 0, all;  // of classes 1 and 2
#pragma unroll
  for (int c = 1; c < kClasses; ++c) own |= count_words(classes.mask(c)) << (16 * (c - 1));
  const std::uint32_t before = warp_sum_before(own, all);
#pragma unroll 1
  for (int c = 0; c < kClasses; ++c, modes >>= 4) {
    const std::uint32_t mode = modes & 15;
    if (mode == kNoOnes) continue;
    const auto of_class = [c](std::uint32_t any, std::uint32_t others) {
      const std::uint32_t one = others & 0xFFFF, two = others >> 16;
      return c == 0 ? any - one - two : c == 1 ? one : two;
    };
    const std::uint32_t count = of_class(open.all, all);
    std::uint32_t rank = of_class(open.before, before);
    const LaneWords mask = classes.mask(c);
    LaneWords bits;
    if (mode == kDirect) {
      rank += at;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const auto n = static_cast<std::uint32_t>(__popc(static_cast<int>(mask.w[j])));
        bits.w[j] = piece.bits(rank);
        rank += n;
      }
      at += count;
    } else {
      if (!read_runs<ClassRuns>(piece, mode - 1, count, at, memory.ranks)) return false;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const auto n = static_cast<std::uint32_t>(__popc(static_cast<int>(mask.w[j])));
        bits.w[j] = rank_bits(memory.ranks, rank, n);
        rank += n;
      }
      __syncwarp();
    }
    const LaneWords here = scatter_words(bits, mask);
#pragma unroll
    for (int j = 0; j < 4; ++j) ones.w[j] |= here.w[j];
  }
  return true;
}

// Bits of the positions of a set, which start at bit `at` of a piece.
__device__ __forceinline__ LaneWords read_masked(const PieceBits& piece, std::uint32_t at, const LaneWords& set,
                                                 LaneCount count) {
  LaneWords bits;
  if (count.all == kSlotValues && 4 * ((piece.skipped + at) / 32 + kTileWords + 1) <= piece.bytes) {
    const std::uint32_t bit = piece.skipped + at, *const from = piece.words + bit / 32 + 4 * (threadIdx.x % 32);
    std::uint32_t word = from[0];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::uint32_t next = from[j + 1];
      bits.w[j] = __funnelshift_r(word, next, bit % 32);
      word = next;
    }
    return bits;
  }
  at += count.before;
  if (!__any_sync(kAllLanes, count_words(set) > 32)) {
    std::uint32_t word = piece.bits(at);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      bits.w[j] = word;
      word = __funnelshift_rc(word, 0, static_cast<std::uint32_t>(__popc(static_cast<int>(set.w[j]))));
    }
  } else {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      bits.w[j] = piece.bits(at);
      at += static_cast<std::uint32_t>(__popc(static_cast<int>(set.w[j])));
    }
  }
  return scatter_words(bits, set);
}

__device__ __forceinline__ void store_words(std::uint32_t* to, const LaneWords& words) {
  reinterpret_cast<uint4*>(to)[threadIdx.x % 32] = make_uint4(words.w[0], words.w[1], words.w[2], words.w[3]);
}

// The state of a tile between pieces.
struct TileState {
  LaneWords known;  // positions that have had a one
  LaneCount count, older, open;
  int top;  // number of planes so far
};

// Decodes the piece of plane `p`, which completes plane `p` + 1. False if the piece is damaged.
__device__ __forceinline__ bool decode_piece(TileState& tile, const PieceBits& piece, std::uint32_t size, TileForm form,
                                             int p, int planes, TileMemory& memory, std::uint32_t* slot) {
  const unsigned lane = threadIdx.x % 32;
  LaneWords ones = {}, bits = {};
  LaneCount found = {};
  if (size == 0) {
    if (tile.older.all != 0) return false;
    if (tile.count.all == 0) return true;
  } else {
    std::uint32_t at = 0;
    if (p >= 0) {
      const std::uint32_t modes = piece.bits(0) & 0xFFFF;
      if (size < 2 || modes >> (4 * kClasses) != 0) return false;
      at = 16;
      if (modes != 0) {
        if (!read_ones(piece, modes, form, tile.known, tile.open, memory, at, ones)) return false;
        found = count_lanes(ones);
      }
    } else if (tile.older.all == 0) {
      return false;
    }
    // signs, then bits of significant positions
#pragma unroll 1
    for (int part = found.all != 0 ? 0 : 1; part < 2; ++part) {
      if (part != 0 && tile.older.all == 0) break;
      const LaneWords got =
          read_masked(piece, at, part == 0 ? ones : memory.older[lane], part == 0 ? found : tile.older);
      at += part == 0 ? found.all : tile.older.all;
      if (part == 0) {
#pragma unroll
        for (int j = 0; j < 4; ++j) memory.signs[lane].w[j] |= got.w[j];
      } else {
        bits = got;
      }
    }
    const std::uint32_t end = 8 * size;
    if (at > end || end - at >= 8 || (piece.bits(at) & ((1u << (end - at)) - 1)) != 0) return false;
  }
  if (tile.count.all == 0) {
    tile.top = p + 1;
  } else if (p + 1 < planes) {
    const LaneWords older = memory.older[lane];
#pragma unroll
    for (int j = 0; j < 4; ++j) bits.w[j] |= tile.known.w[j] & ~older.w[j];
    store_words(slot + static_cast<std::uint32_t>(p + 1) * kTileWords, bits);
  }
  memory.older[lane] = tile.known;
  tile.older = tile.count;
#pragma unroll
  for (int j = 0; j < 4; ++j) tile.known.w[j] |= ones.w[j];
  tile.count.before += found.before;
  tile.count.all += found.all;
  tile.open.before -= found.before;
  tile.open.all -= found.all;
  return true;
}

// Completes a tile after the piece of plane `last`: unknown bits become the middle of their interval, as in
// put_middles(), then zeros.
__device__ __forceinline__ void finish_tile(const LaneWords& known, const LaneWords& older, int last,
                                            std::uint32_t* slot) {
  if (last < 0) return;
  store_words(slot + static_cast<std::uint32_t>(last) * kTileWords, known);
  LaneWords rest;
#pragma unroll
  for (int j = 0; j < 4; ++j) rest.w[j] = known.w[j] & ~older.w[j];
  for (int p = last - 1; p >= 0; --p, rest = {}) store_words(slot + static_cast<std::uint32_t>(p) * kTileWords, rest);
}

static __global__ void __launch_bounds__(kDecodeTileThreads, 16)
    decode_tiles_kernel(const __grid_constant__ ProgressiveDecode job) {
  __shared__ TileMemory rooms[kDecodeTileWarps];
  FrameHead& head = job.heads[blockIdx.y];
  const TileGroup group = job.groups[blockIdx.x / kBlocksOfGroup];
  const auto u = static_cast<int>(group.unit);
  const ProgressiveUnit& unit = job.shared->layout.unit[u];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t number = group.first + blockIdx.x % kBlocksOfGroup * kDecodeTileWarps + warp;
  if (__any_sync(kAllLanes, is_damaged(head)) || unit.level < job.level || number >= unit.tiles) return;
  const ProgressiveFrame& frame = job.frames[blockIdx.y];
  const int planes = head.head.planes[u], last = planes != 0 ? head.last[u] : 0;
  const TileForm form = form_of(unit);
  const std::size_t slot_number = job.shared->first_tile[u] + number;
  std::uint32_t* const slot = job.slots.of(blockIdx.y) + slot_number * job.slot_words();
  TileMemory& memory = rooms[warp];
  TileState tile = {};
  const LaneWords valid = valid_words(form, bounds_of_tile(unit, number));
  tile.open = count_lanes(valid);
  memory.valid[lane] = valid;
  memory.older[lane] = memory.signs[lane] = {};
  // the offsets of the tile's pieces, and the first non-empty one
  const std::uint64_t* const locations = job.locations.of(blockIdx.y) + job.piece_index(u, planes, planes - 1) + number;
  const int pieces = planes - last;
  int first = pieces;
  for (int i = static_cast<int>(lane); i < (pieces + 31) / 32 * 32; i += 32) {
    const std::uint64_t piece = i < pieces ? locations[static_cast<std::size_t>(i) * unit.tiles] : 0;
    memory.locations[i] = piece;
    const unsigned filled = __ballot_sync(kAllLanes, piece_size(piece) != 0);
    if (first == pieces && filled != 0) first = i - static_cast<int>(lane) + __ffs(static_cast<int>(filled)) - 1;
  }
  __syncwarp();
#pragma unroll 1
  for (int i = first; i < pieces; ++i) {
    if (const int ahead = i + kPiecesAhead; ahead < pieces)
      prefetch_range<32>(frame.payload + piece_offset(memory.locations[ahead]), piece_size(memory.locations[ahead]),
                         lane);
    const std::uint64_t piece = memory.locations[i];
    if (!decode_piece(tile, PieceBits(frame, piece), piece_size(piece), form, planes - 1 - i, planes, memory, slot))
      return damage(frame, head);
  }
  if (tile.count.all == 0) tile.top = 0;
  if (tile.top != 0) {
    finish_tile(tile.known, memory.older[lane], last, slot);
    store_words(slot + static_cast<std::uint32_t>(8 * job.width - 1) * kTileWords, memory.signs[lane]);
  }
  if (lane == 0) job.tops.of(blockIdx.y)[slot_number] = static_cast<std::uint8_t>(tile.top);
}

}  // namespace pyfilter::cuda
