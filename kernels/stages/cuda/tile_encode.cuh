// SPDX-License-Identifier: BSD-3-Clause
// Encoding tiles on the GPU (docs/format.md, sections 4.2 to 5); stages/tile_encode.hpp is the same on the CPU. Each of
// 128 threads keeps 32 values in registers: codes, differences and planes never leave them. Shared memory holds the
// tile's values, then the tile's bytes. The offset of these bytes in the frame depends on all earlier tiles
// (placement.cuh). So they wait in shared memory while the thread block encodes its next tile. Tiles are numbered by
// tickets, so progress does not depend on the order of thread blocks.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "stages/cuda/bit_transpose.cuh"
#include "stages/cuda/block_values.cuh"
#include "stages/cuda/launch.cuh"
#include "stages/cuda/placement.cuh"
#include "stages/cuda/residuals.cuh"
#include "stages/cuda/special.cuh"
#include "stages/cuda/tile_layout.cuh"
#include "stages/cuda/tile_values.cuh"
#include "stages/rate.hpp"

namespace pyfilter::cuda {

template <class Value, int D, bool kHasSpecial>
struct EncodeSpace {
  static constexpr std::uint32_t kPlacedAtOnce = sizeof(Value) == 8 ? 4 : 1;
  alignas(16) std::uint8_t arena[kArenaBytes<Value>];
  std::conditional_t<D == 1, char, BlockOffsets> offsets[2];  // of this tile and the next
  std::uint32_t masks[kHasSpecial ? 3 : 1][kHasSpecial ? kThreads : 1];
  ScanSpace scan;
  ScannerSpace scanner;
  PlacementSpace placement;
  TileTask now, next;  // the tile being encoded, and the next one
  // after the rest, sized at launch: the bytes of a tile that waits for its offset
  alignas(16) std::uint8_t waiting[16];
};

// Bytes of a waiting tile, if there is space for more than this.
template <class Value>
inline constexpr int kMostWaiting = (static_cast<int>(max_tile_bytes(sizeof(Value))) + 15) / 16 * 16;

// The number of thread blocks a multiprocessor that registers must allow: they hide the memory's latency.
template <class Map, int D>
inline constexpr int kEncodeBlocks = sizeof(typename Map::Code) == 8 ? 3
                                     : D > 1                         ? 5
                                     : Map::kHasSpecial              ? 7
                                                                     : 6;

// Early work for the next tile: computes its blocks' offsets (in the slot of the other parity) and prefetches its
// values. Called after the barrier that published space.next.
template <int D, class Value, class Space>
__device__ __forceinline__ void look_ahead(const EncodeParams& job, int parity, Space& space) {
  const std::uint32_t chunk = space.next.chunk, tile = space.next.tile;
  if (chunk >= job.chunks) return;

  const std::uint8_t* const values = job.values + chunk * job.value_stride;
  constexpr bool kAsks = sizeof(Value) < 8;  // 64-bit values encode 2 % faster without prefetch
  if constexpr (D == 1) {
    if constexpr (kAsks) ask_for_rows<Value>(job.grid, values, tile);
  } else if constexpr (kStaged<D, Value>) {
    find_block_offsets<D>(job.grid, tile, job.blocks, space.offsets[parity ^ 1]);
    if constexpr (kAsks) prefetch_blocks<D, Value>(job.grid, values, space.offsets[parity ^ 1]);
  }
}

// Encodes a tile into shared memory and copies the waiting tile to its destination.
template <class Map, int D>
__device__ __forceinline__ void encode_tile(const EncodeParams& job, std::uint32_t chunk, std::uint32_t tile,
                                            std::uint32_t next_task, int parity,
                                            EncodeSpace<typename Map::Value, D, Map::kHasSpecial>& space) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  constexpr int kHalves = D == 1 ? 1 : 2, kValueWords = (sizeof(Value) + 3) / 4;
  const auto values_of = [&](std::uint32_t c) { return job.values + c * job.value_stride; };
  const int thread = static_cast<int>(threadIdx.x), half = thread % kHalves;
  const int blocks = static_cast<int>(min(job.blocks - tile * kTileBlocks<D>, std::uint32_t{kTileBlocks<D>}));
  const int threads = blocks * kHalves;
  const bool valid = thread < threads;

  if (thread == 0) space.now = space.next;  // saves registers
  Residuals<Code> r;
  const Specials special =
      encode_values<Map, D>(job, job.plans + chunk, values_of(chunk), tile, blocks, valid, parity, space, r);

  // rates and sizes
  const bool outlier = Map::kHasSpecial ? job.mode == 0 : true;
  Code first = r.first;
  if constexpr (D > 1) first = __shfl_sync(kAllLanes, first, (thread % 32) & ~1);
  const int first_width = bit_width(first), rest_width = r.rest;
  const int width = outlier ? rest_width : max(rest_width, first_width);
  const Rate parts = choose_parts(width, outlier ? first_width : width);
  std::uint32_t rate = rate_code(parts);
  const std::uint32_t inner = rate;
  if (Map::kHasSpecial && special.masks != 0)
    rate =
        special_rate(special.only_sentinels, special.masks, special.verbatim_count, sizeof(Value), 32 * kHalves, parts);
  if (!valid) rate = 0;
  std::uint32_t planes = parts.planes, outlier_bytes = half == 0 ? parts.outlier_bytes : 0;
  std::uint32_t words = planes;
  if constexpr (Map::kHasSpecial) {
    if (rate >= kRateSentinel) {
      space.masks[0][thread] = special.sentinel;
      space.masks[1][thread] = special.nan;
      space.masks[2][thread] = special.verbatim;
      if (!is_special_rate(static_cast<std::uint8_t>(rate))) {
        planes = outlier_bytes = 0;
        words = rate == kRateVerbatim ? 32 * kValueWords : 0;
      } else if (half == 0) {
        words += static_cast<std::uint32_t>(__popc(special.masks)) * kHalves + special.verbatim_count * kValueWords;
      }
    }
  }
  if (!valid) words = planes = outlier_bytes = 0;
  std::uint32_t specials_before = 0;
  const Taken before =
      scan_warp(Taken(words, outlier_bytes), valid, valid && half == 0, rate, specials_before, space.scan);
  if (thread == 0) space.next = task_of(job, next_task);
  __syncthreads();  // the rows have been read: the arena is free for the tile's bytes
  const Placed at = scan_block(before, specials_before, threads, space.scan);

  // posts the tile's size as early as possible, for its successors
  const bool uniform = at.common_rate != kMixed && at.total_specials == 0;
  const std::uint32_t rate_bytes = uniform ? 1 : static_cast<std::uint32_t>(blocks);
  const std::uint32_t outliers_at = rate_bytes + 2 * at.total_specials;
  const std::uint32_t parts_end = outliers_at + at.total_outlier_bytes;
  const std::uint32_t words_at = (parts_end + 3) / 4;
  const std::uint32_t tile_words = uniform && at.common_rate == 0 ? 0 : words_at + at.total_words;
  if (thread == 0) post_size(job.sums, space.now.number, tile_words);
  // by now the sizes of all tiles before the waiting one are posted, or soon will be
  look_ahead<D, Value>(job, parity, space);
  const uint2 asked = load_sum(job, space.placement);

  // the tile's bytes
  std::uint8_t* const bytes = space.arena;
  std::uint32_t* const word_part = reinterpret_cast<std::uint32_t*>(bytes) + words_at;
  if (tile_words != 0) {
    if (valid && half == 0 && !uniform) bytes[thread / kHalves] = static_cast<std::uint8_t>(rate);
    if (thread == 0 && uniform) bytes[0] = static_cast<std::uint8_t>(rate);
    const std::uint64_t high = planes < 64 ? static_cast<std::uint64_t>(r.first) >> planes : 0;
    for (std::uint32_t i = 0; i < outlier_bytes; ++i)
      bytes[outliers_at + at.outlier_bytes + i] = static_cast<std::uint8_t>(high >> (8 * i));
    if (thread < static_cast<int>(4 * words_at - parts_end)) bytes[parts_end + static_cast<unsigned>(thread)] = 0;
    std::uint32_t planes_at = at.words;
    if constexpr (Map::kHasSpecial) {
      const std::uint32_t partner_words = D == 1 ? 0 : __shfl_xor_sync(kAllLanes, words, 1);
      const std::uint32_t partner_verbatim =
          D == 1 ? 0 : __shfl_xor_sync(kAllLanes, static_cast<std::uint32_t>(__popc(special.verbatim)), 1);
      if (valid && rate > kRateSentinel) {
        if (is_special_rate(static_cast<std::uint8_t>(rate)) && half == 0) {
          bytes[rate_bytes + 2 * at.specials] = static_cast<std::uint8_t>(inner);
          bytes[rate_bytes + 2 * at.specials + 1] = static_cast<std::uint8_t>(special.verbatim_count);
        }
        write_special<Map, D>(job, values_of(space.now.chunk), space.now.tile, rate, &space.masks[0][thread],
                              half != 0 ? partner_verbatim : 0, partner_words, word_part + at.words);
        if (half == 0) planes_at += words - planes;
      }
    }
    // the bits of the first residual that the outlier bytes do not hold
    const Code kept = planes < 8 * sizeof(Code) ? (Code{1} << planes) - 1 : ~Code{0};
    if (half == 0) r.d[0] = unzigzag(static_cast<Code>(r.first & kept));
    write_planes(r.d, static_cast<int>(planes), word_part + planes_at);
  }
  find_destination(job, asked, space.placement);
  __syncthreads();

  // the waiting tile leaves, this one waits: through registers, or with one more barrier if it is large
  constexpr std::uint32_t kPieces = sizeof(Value) == 8 ? 2 : 1;
  const auto* const from = reinterpret_cast<const uint4*>(bytes);
  auto* const to = reinterpret_cast<uint4*>(space.waiting);
  const bool small = tile_words <= 4 * kPieces * kThreads;
  uint4 piece[kPieces] = {};
#pragma unroll
  for (std::uint32_t i = 0; i < kPieces; ++i) {
    const std::uint32_t at = threadIdx.x + i * kThreads;
    if (4 * at < tile_words) piece[i] = from[at];
  }
  place_tile(job, space, space.waiting);
  __syncthreads();
  if (thread == 0)
    space.placement.tile = {space.now.chunk, space.now.tile, space.now.number, tile_words, true, uniform};
  if (4 * tile_words > job.waiting_bytes) {  // devices with little shared memory
    __syncthreads();
    find_destination(job, {}, space.placement);
    __syncthreads();
    place_tile(job, space, bytes);
    if (thread == 32) space.placement.tile.there = false;
    __syncthreads();
    return;
  }
#pragma unroll
  for (std::uint32_t i = 0; i < kPieces; ++i) {
    const std::uint32_t at = threadIdx.x + i * kThreads;
    if (4 * at < tile_words) to[at] = piece[i];
  }
  if (small) return;
#pragma unroll 1
  for (std::uint32_t at = threadIdx.x + kPieces * kThreads; 4 * at < tile_words; at += kThreads) to[at] = from[at];
  __syncthreads();
}

template <class Map, int D>
__global__ void __launch_bounds__(kThreads, kEncodeBlocks<Map, D>)
    encode_kernel(const __grid_constant__ EncodeParams job) {
  extern __shared__ uint4 shared_memory[];
  auto& space = *reinterpret_cast<EncodeSpace<typename Map::Value, D, Map::kHasSpecial>*>(shared_memory);
  constexpr bool kExact = !Map::kHasSpecial;
  follow();
  if (kExact && job.exact_pass && job.counters->exact_chunks == 0) return;
  // Task 0 is the scanner, the others are tiles. Thread blocks take tasks in order, so all earlier tasks are started or
  // done.
  const std::uint32_t all = job.tiles * job.chunks;
  std::uint32_t* const tasks = &job.counters->task[kExact ? 1 : 0];
  std::uint32_t first = 0;
  if (threadIdx.x == 0) {
    first = atomicAdd(tasks, 1);
    space.next = task_of(job, first);
    space.placement.tile.there = false;
  }
  if (__syncthreads_or(threadIdx.x == 0 && first == 0 ? 1 : 0) != 0) {
    scan_sizes(job.sums, all, space.scanner);
    return;
  }
  int parity = 1;
  look_ahead<D, typename Map::Value>(job, parity, space);
  __syncthreads();
  for (; space.next.chunk < job.chunks; parity ^= 1) {
    const auto [chunk, tile, number] = space.next;
    const std::uint32_t next = threadIdx.x == 0 ? atomicAdd(tasks, 1) : 0;
    if ((job.plans[chunk].quantise != 0) != kExact) {
      encode_tile<Map, D>(job, chunk, tile, next, parity ^ 1, space);
    } else {  // the chunk belongs to the other pass
      if (threadIdx.x == 0) post_size(job.sums, number, 0);
      __syncthreads();  // all threads have read the task
      if (threadIdx.x == 0) space.next = task_of(job, next);
      __syncthreads();
      look_ahead<D, typename Map::Value>(job, parity ^ 1, space);
      __syncthreads();
    }
  }
  __syncthreads();  // the last tile is waiting
  find_destination(job, {}, space.placement);
  __syncthreads();
  place_tile(job, space, space.waiting);
}

}  // namespace pyfilter::cuda
