// SPDX-License-Identifier: BSD-3-Clause
// Encoding packed tiles on the GPU (docs/format.md, section 7); stages/packed/encode.hpp is the same on the CPU. Each
// of 128 threads keeps a block of 32 values in registers, as codes, differences and planes. tile_encode.cuh explains
// tickets, the waiting tile and the scanner.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "stages/cuda/launch.cuh"
#include "stages/cuda/packed/codes.cuh"
#include "stages/cuda/packed/layout.cuh"
#include "stages/cuda/placement.cuh"

namespace pyfilter::cuda {

template <class Map, int S>
struct PackedEncodeSpace {
  static constexpr std::uint32_t kPlacedAtOnce = sizeof(typename Map::Value) == 8 ? 4 : 2;
  using Code = typename Map::Code;
  alignas(16) std::uint8_t arena[kPackedArenaBytes<typename Map::Value>];
  union {
    Faces<S, Code> faces;
    SortSpace sort;
  };
  PackedMaskSpace<Map> masks;
  alignas(16) WarpShare shares[kWarps];
  ScannerSpace scanner;
  TileBox boxes[2];  // of this tile and the next
  PlacementSpace placement;
  TileTask now, next;     // the tile being encoded, and the next one
  std::uint32_t passing;  // chunks of this pass
  Code first;
  // after the rest, sized at launch: the bytes of a tile that waits for its offset
  alignas(16) std::uint8_t waiting[16];
};

// The number of thread blocks a multiprocessor that registers must allow.
template <int kCodeBytes, int S>
inline constexpr int kPackedEncodeBlocks = kCodeBytes == 8 ? 3
                                           : S == kChain   ? 6
                                                           : 5;

// Early work for the next tile: computes its box, and prefetches its values.
template <int S, class Value>
__device__ __forceinline__ void look_ahead_packed(const EncodeParams& job, TileTask task, TileBox& next) {
  if (task.chunk >= job.chunks) return;
  const std::uint32_t chunk = task.chunk, tile = task.tile;
  const TileBox box = box_of<S>(job.grid, tile);
  if (S != kChain && threadIdx.x == 0) next = box;
  // without prefetch, 64-bit values encode 2 % faster in planes and volumes, 4 % slower in chains
  if constexpr (sizeof(Value) < 8 || S == kChain || S == kColumns)
    prefetch_packed<S, Value>(job.grid, job.values + chunk * job.value_stride, box,
                              is_whole_tile<S>(job.grid, tile, box));
}

// task_of() in a pass over `passing` of the chunks.
__device__ __forceinline__ TileTask task_of_pass(const EncodeParams& job, std::uint32_t ticket, std::uint32_t passing) {
  TileTask task = task_of(job, ticket);
  task.chunk = task.chunk < passing ? job.listed[task.chunk] : job.chunks;
  return task;
}

// Encodes a tile into shared memory and copies the waiting tile to its destination.
template <class Map, int S, bool kExceptions>
__device__ __forceinline__ void encode_packed(const EncodeParams& job, std::uint32_t chunk, std::uint32_t tile,
                                              std::uint32_t next_task, int parity, PackedEncodeSpace<Map, S>& space) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  constexpr int kValueWords = (sizeof(Value) + 3) / 4;
  const auto values_of = [&](std::uint32_t c) { return job.values + c * job.value_stride; };
  const ChunkPlan& plan = job.plans[chunk];
  const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const TileBox box = S == kChain ? box_of<S>(job.grid, tile) : space.boxes[parity];
  const bool whole = is_whole_tile<S>(job.grid, tile, box), valid = whole || is_present<S>(box, thread);

  if (thread == 0) space.now = space.next;  // saves registers

  Code z[32], last;
  PackedNotes notes;
  Spread<Code> spread;
  const bool with_more =
      packed_codes<Map, S>(job, plan, values_of(chunk), box, whole, valid, space, z, last, spread, notes) || !whole;
  const auto order = static_cast<int>(plan.predictor >> 16);
  if (S == kChain && order == 0) {
#pragma unroll
    for (int i = 0; i < 32; ++i)
      if (i > 0 || thread > 0) z[i] -= Map::kBias;
    spread = spread_of_rest(z);
  } else {
    packed_differences<S>(order, last, z, space.faces);
  }
  Code first = 0;
  if (thread == 0) {
    first = zigzag(static_cast<Code>(z[0] - Map::kBias));
    space.first = first;
    z[0] = 0;
  }
  if constexpr (S != kChain) spread = spread_of_rest(z);
  spread.add(z[0]);

  // planes and sizes
  const int width = valid ? spread.planes() : 0, highest = warp_max(width);
  std::uint32_t w[kExceptions ? 8 * sizeof(Code) : 1];
  Exception split{width, 0};
  if constexpr (kExceptions) {
    pack_all(z, highest, w);
    split = split_planes(width, highest, w);
  }
  const bool described = notes.masks != 0;
  const std::uint32_t special_words =
      described ? static_cast<std::uint32_t>(__popc(static_cast<int>(notes.masks))) + notes.verbatim_count * kValueWords
                : 0;
  std::uint32_t groups_upto = 0;
  const auto fewer = static_cast<std::uint32_t>(width - split.planes);
  std::uint32_t words = static_cast<unsigned>(width) + special_words;
  if constexpr (kExceptions) words |= (static_cast<unsigned>(split.planes) + special_words) << 16;

  const std::uint32_t upto = sum_upto(words);
  {
    WarpShare share;
    const std::uint32_t narrow = warp_min(valid ? static_cast<unsigned>(width) : 255);
    if constexpr (!kExceptions) {
      share.widths = narrow;
      share.saved = static_cast<unsigned>(highest);
      share.exceptions = 0;
    } else {
      share.widths = narrow | static_cast<unsigned>(highest) << 8;
      const std::uint32_t narrow_left = warp_min(valid ? static_cast<unsigned>(split.planes) : 255);
      const std::uint32_t wide_left = warp_max_u(static_cast<unsigned>(split.planes));
      share.widths |= narrow_left << 16 | wide_left << 24;
      share.saved = warp_sum(fewer != 0 ? 32 * fewer - kExceptionCost : 0);
      share.exceptions = __ballot_sync(kAllLanes, fewer != 0);
    }
    auto* const to = reinterpret_cast<uint4*>(&space.shares[warp]);
    if (with_more) {
      share.special = __ballot_sync(kAllLanes, described);
      share.masked = __ballot_sync(kAllLanes, notes.residual != 0);
      share.present = __ballot_sync(kAllLanes, valid);
      groups_upto = sum_upto(static_cast<std::uint32_t>(__popc(static_cast<int>(nibbles_of(notes.residual)))));
      if (lane == 31) to[1] = make_uint4(share.special, share.masked, share.present, groups_upto);
      groups_upto -= static_cast<std::uint32_t>(__popc(static_cast<int>(nibbles_of(notes.residual))));
    }
    if (lane == 31) to[0] = make_uint4(upto, share.widths, share.saved, share.exceptions);
  }
  if (thread == 0) space.next = task_of_pass(job, next_task, space.passing);
  __syncthreads();
  const auto first_bytes = static_cast<std::uint32_t>(bit_width(space.first) + 7) / 8;
  const PackedTile t =
      lay_out<kExceptions, Value>(space.shares, with_more, notes.tile_flags, upto - words, groups_upto, first_bytes);
  if (thread == 0) post_size(job.sums, space.now.number, t.tile_words);
  // by now the sizes of all tiles before the waiting one are posted, or soon will be
  look_ahead_packed<S, Value>(job, space.next, space.boxes[parity ^ 1]);
  const uint2 asked = load_sum(job, space.placement);

  // the tile's bytes
  std::uint8_t* const bytes = space.arena;
  auto* const tile_words = reinterpret_cast<std::uint32_t*>(bytes);
  if (t.tile_words != 0 && !t.verbatim) {
    if constexpr (Map::kHasSpecial) {
      if ((t.head.flags & kPackedMissing) != 0)
        write_mask_section(notes.residual, t.masks, t.own_mask, t.masked_blocks, t.own_group, t.parts_end, tile_words);
    }
    if (thread == 0) {
      tile_words[0] = t.head.word();
      if (first_bytes != 0) tile_words[1] = static_cast<std::uint32_t>(first);
      if (first_bytes > 4) tile_words[2] = static_cast<std::uint32_t>(static_cast<std::uint64_t>(first) >> 32);
      for (std::uint32_t at = t.parts_end; at % 4 != 0; ++at) bytes[at] = 0;
    }
    const int planes = t.with_exceptions ? split.planes : width;
    std::uint32_t* plane = tile_words + t.head.bytes() / 4 + warp;
    const std::uint32_t above = valid ? static_cast<unsigned>(planes) - t.head.base : 0;
#pragma unroll
    for (std::uint32_t r = 0; r < 7; ++r) {  // widths are 64 at most
      if (r >= t.head.rate_planes) break;
      const std::uint32_t bits = __ballot_sync(kAllLanes, (above >> r & 1) != 0);
      if (lane == 0) plane[4 * r] = bits;
    }
    if ((t.head.flags & (kPackedExceptions | kPackedMissing | kPackedSpecial)) != 0 && lane == 0) {
      plane += 4 * t.head.rate_planes;
      if ((t.head.flags & kPackedExceptions) != 0) {
        *plane = space.shares[warp].exceptions;
        plane += 4;
      }
      if ((t.head.flags & kPackedMissing) != 0) {
        *plane = space.shares[warp].masked;
        plane += 4;
      }
      if ((t.head.flags & kPackedSpecial) != 0) *plane = space.shares[warp].special;
    }
    if (t.with_exceptions && fewer != 0)
      *reinterpret_cast<std::uint16_t*>(bytes + t.exceptions + 2 * t.own_exception) =
          static_cast<std::uint16_t>(split.entry);
    std::uint32_t* to = tile_words + t.words + t.own_words;
    if constexpr (Map::kHasSpecial) {
      if (described) {
        bytes[t.descriptors + 2 * t.own_descriptor] = static_cast<std::uint8_t>(notes.masks);
        bytes[t.descriptors + 2 * t.own_descriptor + 1] = static_cast<std::uint8_t>(notes.verbatim_count);
        to = write_packed_special<Map, S>(job, values_of(space.now.chunk), box_of<S>(job.grid, space.now.tile),
                                          space.masks, to);
      }
    }
    if constexpr (kExceptions)
      write_all(w, planes, highest, to);
    else
      write_planes(z, planes, to);
  } else if (t.verbatim) {
    if (thread == 0) tile_words[0] = kPackedVerbatim << 16;
    if (valid)
      write_verbatim_block<S, Value>(job, values_of(space.now.chunk), box_of<S>(job.grid, space.now.tile),
                                     t.own_present, tile_words + 1);
  }
  find_destination(job, asked, space.placement);
  __syncthreads();

  // the waiting tile leaves, this one waits: through registers, or with one more barrier if it is large
  const auto* const from = reinterpret_cast<const uint4*>(bytes);
  auto* const to = reinterpret_cast<uint4*>(space.waiting);
  constexpr std::uint32_t kPieces = sizeof(Value) == 8 ? 2 : 1;
  uint4 piece[kPieces] = {};
#pragma unroll
  for (std::uint32_t i = 0; i < kPieces; ++i)
    if (4 * (thread + i * kThreads) < t.tile_words) piece[i] = from[thread + i * kThreads];
  place_tile(job, space, space.waiting);
  __syncthreads();
  const bool waits = 4 * t.tile_words <= job.waiting_bytes;
  if (thread == 0)
    space.placement.tile = {space.now.chunk, space.now.tile, space.now.number, t.tile_words, true, false};

  if (!waits) {  // devices with little shared memory
    __syncthreads();
    find_destination(job, {}, space.placement);
    __syncthreads();
    place_tile(job, space, bytes);
    if (thread == 32) space.placement.tile.there = false;
    __syncthreads();
    return;
  }
#pragma unroll
  for (std::uint32_t i = 0; i < kPieces; ++i)
    if (4 * (thread + i * kThreads) < t.tile_words) to[thread + i * kThreads] = piece[i];
  if (t.tile_words <= 4 * kPieces * kThreads) return;
#pragma unroll 1
  for (std::uint32_t at = thread + kPieces * kThreads; 4 * at < t.tile_words; at += kThreads) to[at] = from[at];
  __syncthreads();
}

template <class Map, int S, bool kExceptions>
__global__ void __launch_bounds__(kThreads, kPackedEncodeBlocks<sizeof(typename Map::Code), S>)
    packed_encode_kernel(const __grid_constant__ EncodeParams job) {
  extern __shared__ uint4 shared_memory[];
  auto& space = *reinterpret_cast<PackedEncodeSpace<Map, S>*>(shared_memory);
  follow();
  const std::uint32_t passing = job.counters->packed_chunks[job.pass], all = job.tiles * passing;
  if (passing == 0) return;
  std::uint32_t* const tasks = &job.counters->packed_task[job.pass];
  std::uint32_t first = 0;
  if (threadIdx.x == 0) {
    first = atomicAdd(tasks, 1);
    space.passing = passing;
    space.next = task_of_pass(job, first, passing);
    space.placement.tile.there = false;
  }
  if (__syncthreads_or(threadIdx.x == 0 && first == 0 ? 1 : 0) != 0) {
    scan_sizes(job.sums, all, space.scanner);
    return;
  }
  int parity = 0;
  look_ahead_packed<S, typename Map::Value>(job, space.next, space.boxes[0]);
  __syncthreads();
  for (; space.next.chunk < job.chunks; parity ^= 1) {
    const std::uint32_t chunk = space.next.chunk, tile = space.next.tile;
    const std::uint32_t next = threadIdx.x == 0 ? atomicAdd(tasks, 1) : 0;
    encode_packed<Map, S, kExceptions>(job, chunk, tile, next, parity, space);
  }
  __syncthreads();  // the last tile is waiting
  find_destination(job, {}, space.placement);
  __syncthreads();
  place_tile(job, space, space.waiting);
}

}  // namespace pyfilter::cuda
