// SPDX-License-Identifier: BSD-3-Clause
// Frames of rans streams to values: which groups of which frames a thread block decodes, and what its warps share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lorenzo/cuda/decode.cuh"
#include "lorenzo/cuda/rans_decode.cuh"

namespace pyfilter::cuda {

// Warps of a thread block, the only block of its multiprocessor: as many as registers and shared memory allow. Shared
// memory holds the tables of two frames if blocks share all frames. Columns have fewer warps with more registers: if
// few of their blocks are coded, rounds and runs overlap irregularly, and spilled values are used often.
template <class Map, int S, bool kShared>
inline constexpr int kRansWarps = sizeof(typename Map::Code) == 8 ? ((S == kPlane || S == kVolume) || kShared ? 12 : 16)
                                  : S == kChain && !kShared       ? 32
                                                                  : 16;

// A frame of which a thread block decodes the groups first, first + step, ..., `count` in all.
template <class Map>
struct alignas(16) BlockFrame {
  DecodeFrame frame, groups;  // `groups`: the frame from its directory on
  Map map;
  RansTables tables;
  std::uint32_t index, table_bytes, units, first, step, count;
};

// Shared memory of a thread block, aligned to a table's size. It begins with the tables of one or two frames, each with
// its table of sums. Then come the warps' rings, a row of zeros, the frames, and the number of started groups. Each
// warp also has the rows of a run and its tile's data.
template <class Map, bool kShared>
struct RansShare {
  static constexpr unsigned kFrames = kShared ? 2 : 1;
  static constexpr std::size_t kAlignment = 4 * kFrequencySum, kTables = kMostTables * kAlignment + kLevelBytes,
                               kRing = 2 * kRingWords, kZeros = 32 * sizeof(typename Map::Value),
                               kRows = kRunBytes<typename Map::Value>, kNumber = 16,
                               kBlockBytes =
                                   kAlignment + kFrames * (kTables + sizeof(BlockFrame<Map>)) + kZeros + kNumber,
                               kWarpBytes = kRing + kRows + sizeof(WarpTile);
  std::uint8_t* at;

  __device__ __forceinline__ std::uint8_t* tables(unsigned i) const { return at + i * kTables; }
  __device__ __forceinline__ std::uint8_t* ring(unsigned warp) const { return tables(kFrames) + warp * kRing; }
  __device__ __forceinline__ std::uint8_t* zeros() const { return ring(blockDim.x / 32); }
  __device__ __forceinline__ BlockFrame<Map>& frame(unsigned i) const {
    return reinterpret_cast<BlockFrame<Map>*>(zeros() + kZeros)[i];
  }
  __device__ __forceinline__ std::uint32_t& begun() const {
    return *reinterpret_cast<std::uint32_t*>(zeros() + kZeros + kFrames * sizeof(BlockFrame<Map>));
  }
  __device__ __forceinline__ std::uint8_t* rows(unsigned warp) const {
    return zeros() + kZeros + kFrames * sizeof(BlockFrame<Map>) + kNumber + warp * (kRows + sizeof(WarpTile));
  }
};

// If all blocks share all frames, each takes the same number of tiles: the first tile of a block.
struct SharedStart {
  std::uint32_t frame, tile;  // `tile`: among the tiles of a frame that the launch decodes
};
__device__ __forceinline__ SharedStart shared_start(const StreamDecodeParams& job, std::uint32_t block) {
  const std::uint64_t at = std::uint64_t{job.base.tile_count} * job.frames * block / gridDim.x;
  const auto frame = static_cast<std::uint32_t>(at / job.base.tile_count);
  return {frame, static_cast<std::uint32_t>(at - std::uint64_t{frame} * job.base.tile_count)};
}

// Frame `index` as this block decodes it; called by one thread. It has the groups that begin in its tiles. If frames
// have blocks of their own, the groups of a frame's blocks are interleaved, since neighbouring groups are alike.
template <bool kShared, class Map>
__device__ __forceinline__ void open_frame(const StreamDecodeParams& job, std::uint32_t index, std::uint32_t tables_at,
                                           BlockFrame<Map>& out) {
  out.count = 0;
  if (index >= job.frames) return;
  const DecodeFrame& frame = job.base.frames != nullptr ? job.base.frames[index] : job.base.only_frame;
  const FrameTables& given = job.tables[index];
  if (given.bytes == 0) return;
  const UnitRange range = unit_range(job.base, group_log2_of(frame));
  std::uint32_t first = range.first + blockIdx.x, last = range.last;
  out.step = gridDim.x;
  if constexpr (kShared) {
    const SharedStart begin = shared_start(job, blockIdx.x), end = shared_start(job, blockIdx.x + 1);
    const std::uint32_t before = (1u << group_log2_of(frame)) - 1;
    const auto group_at = [&](std::uint32_t tile) {
      return (job.base.first_tile + tile + before) >> group_log2_of(frame);
    };
    first = index == begin.frame && begin.tile != 0 ? group_at(begin.tile) : range.first;
    if (index >= end.frame) last = index == end.frame && end.tile != 0 ? group_at(end.tile) : 0;
    out.step = 1;
  }
  if (first >= last) return;
  out.first = first;
  out.count = (last - first + out.step - 1) / out.step;
  out.units = range.units;
  out.index = index;
  out.table_bytes = given.bytes;
  out.frame = frame;
  out.groups = behind_tables(frame, given.bytes);
  out.map = decoding_map<Map>(frame);
  out.tables = {tables_at, tables_at + static_cast<std::uint32_t>(kMostTables * RansShare<Map, kShared>::kAlignment),
                TableOfSum(given.contexts), given.contexts.count,
                given.flag_frequency[0] | given.flag_frequency[1] << 10 | given.flag_frequency[2] << 20};
}

// Loads a frame's tables; called by all threads.
template <class Map>
__device__ __forceinline__ void copy_tables(const StreamDecodeParams& job, const BlockFrame<Map>& frame,
                                            std::uint8_t* to) {
  if (frame.count == 0) return;
  const FrameTables& given = job.tables[frame.index];
  const auto* const entries = reinterpret_cast<const uint4*>(given.entries);
  for (unsigned i = threadIdx.x; i < (given.contexts.count + 1) * kFrequencySum / 4; i += blockDim.x)
    reinterpret_cast<uint4*>(to)[i] = entries[i];
  const RansTables tables = frame.tables;
  for (std::uint32_t sum = threadIdx.x; sum < kLevelSums; sum += blockDim.x)
    store_word(tables.levels + 4 * sum, tables.entries + tables.of_sum(sum) * (4 * kFrequencySum));
}

// Each frame has thread blocks of its own (the y dimension) or, with kShared, all frames are divided evenly among the
// blocks. Then a block has up to two frames at a time, and its warps take their groups in sequence.
template <class Map, int S, bool kShared>
__global__ void __launch_bounds__(32 * kRansWarps<Map, S, kShared>, 1)
    rans_decode_kernel(const __grid_constant__ StreamDecodeParams job) {
  using Source = RansSource<Map, S, kShared>;
  using Share = RansShare<Map, kShared>;
  extern __shared__ __align__(1024) uint4 shared_memory[];
  const std::uint32_t base = shared_address(shared_memory);
  const Share share = {reinterpret_cast<std::uint8_t*>(shared_memory) +
                       (Share::kAlignment - base % Share::kAlignment) % Share::kAlignment};
  const unsigned warp = threadIdx.x / 32;
  typename Source::WarpSpace space = {reinterpret_cast<std::uint16_t*>(share.ring(warp)), share.rows(warp),
                                      share.zeros(), reinterpret_cast<WarpTile*>(share.rows(warp) + Share::kRows)};
  const auto open = [&](std::uint32_t index) {
    if (threadIdx.x < Share::kFrames)
      open_frame<kShared>(job, index + threadIdx.x, shared_address(share.tables(threadIdx.x)),
                          share.frame(threadIdx.x));
    if (threadIdx.x == 0) share.begun() = 0;
    __syncthreads();
    for (unsigned i = 0; i < Share::kFrames; ++i) copy_tables(job, share.frame(i), share.tables(i));
    __syncthreads();
  };
  for (unsigned i = threadIdx.x; i < Share::kZeros / 4; i += blockDim.x)
    reinterpret_cast<std::uint32_t*>(share.zeros())[i] = 0;
  if constexpr (!kShared) {
    open(blockIdx.y);
    const BlockFrame<Map> frame = share.frame(0);  // a single frame fits registers
    for (std::uint32_t number = warp; number < frame.count; number += blockDim.x / 32)
      decode_unit<Map, S, Source>(job, frame.frame, frame.groups, frame.map, frame.index, frame.table_bytes, false,
                                  frame.units, frame.first + number * frame.step, frame.tables, space);
  } else {
    const std::uint32_t last = min(shared_start(job, blockIdx.x + 1).frame, job.frames - 1);
#pragma unroll 1
    for (std::uint32_t index = shared_start(job, blockIdx.x).frame; index <= last; index += 2) {
      __syncthreads();  // the previous frames are done
      open(index);
#pragma unroll 1
      for (;;) {
        std::uint32_t number = threadIdx.x % 32 == 0 ? atomicAdd(&share.begun(), 1u) : 0;
        number = __shfl_sync(kAllLanes, number, 0);
        const std::uint32_t before = share.frame(0).count, behind = number >= before ? 1 : 0;
        if (number >= before + share.frame(1).count) break;
        const BlockFrame<Map>& frame = share.frame(behind);
        decode_unit<Map, S, Source>(job, frame.frame, frame.groups, frame.map, frame.index, frame.table_bytes, false,
                                    frame.units, frame.first + (number - behind * before) * frame.step, frame.tables,
                                    space);
      }
    }
  }
}

}  // namespace pyfilter::cuda
