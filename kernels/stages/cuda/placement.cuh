// SPDX-License-Identifier: BSD-3-Clause
// Offsets of a frame's tiles: a running sum over their sizes during encoding, in one pass. One thread block, the
// scanner, reads the sizes as they are posted and publishes the sum of words up to each tile. The others read the sum
// they need one tile later, when it has long been published. Decoupled look-back (every tile adds up its predecessors)
// is slower. Its frontier advances 32 tiles for each round trip to the L2 cache: at most 1.9 TB/s
// (docs/lab/gpu-kernels.md).
#pragma once

#include <cstdint>

#include "stages/cuda/header.cuh"
#include "stages/cuda/params.cuh"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

__device__ __forceinline__ std::uint32_t load_relaxed(const std::uint32_t* at) {
  std::uint32_t value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}
__device__ __forceinline__ void store_relaxed(std::uint32_t* at, std::uint32_t value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}
// A sum and its valid flag, in one access.
__device__ __forceinline__ uint2 load_relaxed(const uint2* at) {
  uint2 value;
  asm volatile("ld.relaxed.gpu.global.v2.u32 {%0, %1}, [%2];" : "=r"(value.x), "=r"(value.y) : "l"(at) : "memory");
  return value;
}
__device__ __forceinline__ void store_relaxed(uint2* at, uint2 value) {
  asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1, %2};" ::"l"(at), "r"(value.x), "r"(value.y) : "memory");
}

// Called once by the thread block of tile number `number` of the batch.
__device__ __forceinline__ void post_size(const TileSums& sums, std::uint32_t number, std::uint32_t words) {
  store_relaxed(sums.sizes + number, words + 1);
}

// Words of all tiles up to and including `number`, modulo 2^32. `sum`: an earlier load; waits if it was not valid yet.
__device__ __forceinline__ std::uint32_t sum_up_to(const TileSums& sums, std::uint32_t number, uint2 sum) {
  while (sum.x == 0) {
    __nanosleep(40);
    sum = load_relaxed(sums.ends + number);
  }
  return sum.y;
}

// Words before tile `tile` in its chunk; `asked`: an earlier load of the sum up to the previous tile.
__device__ __forceinline__ std::uint32_t words_before(const TileSums& sums, std::uint32_t number, std::uint32_t tile,
                                                      uint2 asked) {
  if (tile == 0) return 0;
  const std::uint32_t first = number - tile, upto = sum_up_to(sums, number - 1, asked);
  return upto - (first != 0 ? sum_up_to(sums, first - 1, load_relaxed(sums.ends + first - 1)) : 0);
}

inline constexpr int kSizesPerThread = 4;

struct ScannerSpace {
  std::uint32_t counts[kWarps], totals[kWarps];
};

// The scanner's loop until all sizes are posted; called by all threads of a block.
__device__ __forceinline__ void scan_sizes(const TileSums& sums, std::uint32_t tiles, ScannerSpace& space) {
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  std::uint32_t done = 0, sum = 0;  // tiles whose sums are published, and the last sum
  while (done < tiles) {
    const std::uint32_t first = done + kSizesPerThread * threadIdx.x;
    std::uint32_t size[kSizesPerThread];
#pragma unroll
    for (int k = 0; k < kSizesPerThread; ++k) size[k] = first + k < tiles ? load_relaxed(sums.sizes + first + k) : 0;
    // sizes up to the first missing one: of this thread, of its warp, of all
    std::uint32_t count = 0, total = 0;
#pragma unroll
    for (int k = 0; k < kSizesPerThread; ++k) {
      if (size[k] != 0 && count == static_cast<unsigned>(k)) {
        ++count;
        total += size[k] - 1;
      }
    }
    const std::uint32_t full = __ballot_sync(kAllLanes, count == kSizesPerThread);
    const int open = full == kAllLanes ? 32 : __ffs(static_cast<int>(~full)) - 1;  // first lane with a missing size
    if (lane > open) count = total = 0;
    std::uint32_t upto = total;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const std::uint32_t before = __shfl_up_sync(kAllLanes, upto, d);
      if (lane >= d) upto += before;
    }
    const std::uint32_t counted = __shfl_sync(kAllLanes, count, open & 31);
    if (lane == 31) {
      space.counts[warp] = kSizesPerThread * static_cast<unsigned>(open) + (open < 32 ? counted : 0);
      space.totals[warp] = upto;
    }
    __syncthreads();
    bool reached = true;
    std::uint32_t before = sum;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      if (w == warp && !reached) count = 0;
      if (w == warp) before = sum;
      if (!reached) continue;
      done += space.counts[w];
      sum += space.totals[w];
      reached = space.counts[w] == 32 * kSizesPerThread;
    }
    before += upto - total;
#pragma unroll
    for (int k = 0; k < kSizesPerThread; ++k) {
      if (static_cast<unsigned>(k) < count) {
        before += size[k] - 1;
        store_relaxed(sums.ends + first + k, make_uint2(1, before));
      }
    }
    __syncthreads();
  }
}

// A tile whose bytes are complete and whose offset is not known yet.
struct WaitingTile {
  std::uint32_t chunk, tile, number, words;  // number: in the order of the pass
  bool there, uniform;
};

// The destination of a waiting tile's bytes, computed by one thread for all; in shared memory.
struct alignas(16) Destination {
  std::uint64_t at;     // byte offset from the first frame
  std::uint32_t words;  // to copy: 0 if no tile waits, or its frame becomes raw
  std::uint32_t ends;   // whether the tile is its chunk's last
};
struct PlacementSpace {
  Destination destination;
  WaitingTile tile;             // that waits
  std::uint64_t payload_bytes;  // of a chunk that ends
};

// Copies a tile's bytes to their destination; the last tile of a chunk completes the frame. A thread copies several
// words at a time if registers allow; spilled registers would cost more than that saves.
template <class Space>
__device__ __forceinline__ void place_tile(const EncodeParams& job, const Space& space, const std::uint8_t* bytes) {
  constexpr std::uint32_t kAtOnce = Space::kPlacedAtOnce;
  const Destination destination = space.placement.destination;
  auto* to = reinterpret_cast<std::uint32_t*>(job.frames + destination.at) + threadIdx.x;
  const std::uint32_t* from = reinterpret_cast<const std::uint32_t*>(bytes) + threadIdx.x;
#pragma unroll 1
  for (std::uint32_t i = threadIdx.x; i < destination.words; i += kAtOnce * kThreads) {
    std::uint32_t word[kAtOnce];
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k)
      if (i + k * kThreads < destination.words) word[k] = from[k * kThreads];
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k)
      if (i + k * kThreads < destination.words) to[k * kThreads] = word[k];
    to += kAtOnce * kThreads;
    from += kAtOnce * kThreads;
  }
  if (destination.ends != 0 && threadIdx.x < 32)
    write_header(job, space.placement.tile.chunk, space.placement.payload_bytes == job.value_bytes,
                 space.placement.payload_bytes);
}

// Step 1 of placing a waiting tile: one thread loads its sum. The load is in flight while the thread does other work.
__device__ __forceinline__ uint2 load_sum(const EncodeParams& job, const PlacementSpace& space) {
  if (threadIdx.x != 32) return {};
  const WaitingTile tile = space.tile;
  if (!tile.there || tile.tile == 0) return {};
  return load_relaxed(job.sums.ends + (tile.number - 1));
}
// Step 2: uses the loaded sum, and writes the frame's directory entry. Step 3, after a barrier, is place_tile().
__device__ __forceinline__ void find_destination(const EncodeParams& job, uint2 asked, PlacementSpace& space) {
  if (threadIdx.x != 32) return;
  const WaitingTile tile = space.tile;
  Destination found = {0, 0, 0};
  if (tile.there) {
    const std::uint32_t before = words_before(job.sums, tile.number, tile.tile, asked);
    const std::uint64_t directory = tile.chunk * job.frame_stride + 4 * job.header_words;
    const std::uint64_t start = 4 * (std::uint64_t{job.tiles} + 1 + before), end = start + 4 * tile.words;
    const bool raw = end >= job.value_bytes;
    auto* const entries = reinterpret_cast<std::uint32_t*>(job.frames + directory);
    entries[tile.tile] = before | (tile.uniform ? 0x80000000u : 0);
    found = {directory + start, raw ? 0 : tile.words, 0};
    if (tile.tile == job.tiles - 1) {
      entries[job.tiles] = before + tile.words;
      job.raw[tile.chunk] = raw ? 1 : 0;
      if (raw) atomicAdd(&job.counters->raw_chunks, 1);
      found.ends = 1;
      space.payload_bytes = raw ? job.value_bytes : end;
    }
  }
  space.destination = found;
}

// The tile of a thread block's ticket; chunk is out of range if no tile is left.
struct TileTask {
  std::uint32_t chunk, tile, number;  // number: in the order of the pass
};
__device__ __forceinline__ TileTask task_of(const EncodeParams& job, std::uint32_t ticket) {
  const Quotient at = divide(ticket - 1, job.grid.by_tiles);
  return {at.quotient, at.remainder, ticket - 1};
}

}  // namespace pyfilter::cuda
