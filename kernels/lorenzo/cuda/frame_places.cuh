// SPDX-License-Identifier: BSD-3-Clause
// Frames in the shared memory of a thread block that decodes rans streams: their tables, and which groups are left.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lorenzo/cuda/decode.cuh"
#include "lorenzo/cuda/rans_steps.cuh"
#include "lorenzo/cuda/rans_words.cuh"

namespace pyfilter::cuda {

// A frame of which a thread block decodes the groups first, first + step, ..., `count` in all.
template <class Map>
struct alignas(16) BlockFrame {
  DecodeFrame frame, groups;  // `groups`: the frame from its directory on
  Map map;
  RansTables tables;
  std::uint32_t index, table_bytes, units, first, step, count;
  // If blocks share all frames: groups that no warp has taken (modulo 2^32, since warps ask for more), groups that are
  // not decoded, and the latest frame that this place has had.
  std::uint32_t left, undone, latest;
};

// Shared memory of a thread block, aligned to a table's size. It begins with the tables of one or two frames, each with
// its table of sums. Then come the warps' rings, a row of zeros and the frames. Each warp also has the rows of a run
// and its tile's data.
template <class Map, bool kShared>
struct RansShare {
  static constexpr unsigned kFrames = kShared ? 2 : 1;
  static constexpr std::size_t kAlignment = 4 * kFrequencySum, kTables = kMostTables * kAlignment + kLevelBytes,
                               kRing = 2 * kRingWords, kZeros = 32 * sizeof(typename Map::Value),
                               kRows = kRunBytes<typename Map::Value>,
                               kBlockBytes = kAlignment + kFrames * (kTables + sizeof(BlockFrame<Map>)) + kZeros,
                               kWarpBytes = kRing + kRows + sizeof(WarpTile);
  std::uint8_t* at;

  __device__ __forceinline__ std::uint8_t* tables(unsigned i) const { return at + i * kTables; }
  __device__ __forceinline__ std::uint8_t* ring(unsigned warp) const { return tables(kFrames) + warp * kRing; }
  __device__ __forceinline__ std::uint8_t* zeros() const { return ring(blockDim.x / 32); }
  __device__ __forceinline__ BlockFrame<Map>& frame(unsigned i) const {
    return reinterpret_cast<BlockFrame<Map>*>(zeros() + kZeros)[i];
  }
  __device__ __forceinline__ std::uint8_t* rows(unsigned warp) const {
    return zeros() + kZeros + kFrames * sizeof(BlockFrame<Map>) + warp * (kRows + sizeof(WarpTile));
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

// Loads a frame's tables, by `threads` threads from number `thread` on.
template <class Map>
__device__ __forceinline__ void copy_tables(const StreamDecodeParams& job, const BlockFrame<Map>& frame,
                                            std::uint8_t* to, unsigned thread, unsigned threads) {
  if (frame.count == 0) return;
  const FrameTables& given = job.tables[frame.index];
  const auto* const entries = reinterpret_cast<const uint4*>(given.entries);
#pragma unroll 4
  for (unsigned i = thread; i < (given.contexts.count + 1) * kFrequencySum / 4; i += threads)
    reinterpret_cast<uint4*>(to)[i] = entries[i];
  const RansTables tables = frame.tables;
  for (std::uint32_t sum = thread; sum < kLevelSums; sum += threads)
    store_word(tables.levels + 4 * sum, tables.entries + tables.of_sum(sum) * (4 * kFrequencySum));
}

// Loads, stores and sums between the warps of a thread block that order what the warps read and write besides.
__device__ __forceinline__ std::uint32_t add_ordered(std::uint32_t* at, std::uint32_t x) {
  std::uint32_t before;
  asm volatile("atom.acq_rel.cta.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(at), "r"(x) : "memory");
  return before;
}
__device__ __forceinline__ std::uint32_t load_ordered(const std::uint32_t* at) {
  std::uint32_t word;
  asm volatile("ld.acquire.cta.u32 %0, [%1];" : "=r"(word) : "l"(at) : "memory");
  return word;
}
__device__ __forceinline__ void store_ordered(std::uint32_t* at, std::uint32_t word) {
  asm volatile("st.release.cta.u32 [%0], %1;" ::"l"(at), "r"(word) : "memory");
}

// Two places for frames of a thread block, which decodes them in sequence: even ones in one place, odd ones in the
// other. No warp waits for all others: the last one to leave a frame opens the next frame of that place.
template <class Map>
struct FramePlaces {
  const StreamDecodeParams& job;
  RansShare<Map, true> share;
  std::uint32_t first, last;  // the block's frames; `last` is one of them

  // Opens frame `index`, or the next of its place that has groups of this block; called by one thread. Returns the
  // frame's index, or the largest number if there is none.
  __device__ __forceinline__ std::uint32_t open(std::uint32_t index) const {
    const unsigned place = (index - first) % 2;
    BlockFrame<Map>& frame = share.frame(place);
    frame.count = 0;
    for (; index <= last && frame.count == 0; index += 2)
      open_frame<true>(job, index, shared_address(share.tables(place)), frame);
    frame.undone = frame.count;
    return frame.count != 0 ? index - 2 : ~0u;
  }
  // By all threads: opens the first frames.
  __device__ __forceinline__ void begin() const {
    if (threadIdx.x < 2) {
      BlockFrame<Map>& frame = share.frame(threadIdx.x);
      frame.latest = open(first + threadIdx.x);
      frame.left = frame.count;
    }
    __syncthreads();
    for (unsigned i = 0; i < 2; ++i) copy_tables(job, share.frame(i), share.tables(i), threadIdx.x, blockDim.x);
    __syncthreads();
  }
  // Takes a group of a place: how many were left, below 2^31, or none.
  __device__ __forceinline__ std::uint32_t take(unsigned place) const {
    const std::uint32_t left = threadIdx.x % 32 == 0 ? add_ordered(&share.frame(place).left, ~0u) : 0;
    __syncwarp();
    const std::uint32_t own = __shfl_sync(kAllLanes, left, 0);
    return static_cast<std::int32_t>(own) > 0 ? own : 0;
  }
  // By a warp that has decoded a group: opens the next frame if this was the place's last group.
  __device__ __noinline__ void leave(unsigned place) const {
    BlockFrame<Map>& frame = share.frame(place);
    const unsigned lane = threadIdx.x % 32;
    __syncwarp();
    const std::uint32_t undone = lane == 0 ? add_ordered(&frame.undone, ~0u) - 1 : 0;
    if (__shfl_sync(kAllLanes, undone, 0) != 0) return;
    const std::uint32_t latest = lane == 0 ? open(frame.latest + 2) : 0;
    __syncwarp();
    copy_tables(job, frame, share.tables(place), lane, 32);
    __syncwarp();
    if (lane == 0) {
      store_ordered(&frame.left, frame.count);
      store_ordered(&frame.latest, latest);
    }
    __syncwarp();
  }
  // Waits until the place has frame `index` or a later one, or no frame any more.
  __device__ __forceinline__ void wait(std::uint32_t index) const {
    if (threadIdx.x % 32 == 0)
      while (load_ordered(&share.frame((index - first) % 2).latest) < index) __nanosleep(100);
    __syncwarp();
  }
};

}  // namespace pyfilter::cuda
