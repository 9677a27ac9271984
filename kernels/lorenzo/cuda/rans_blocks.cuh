// SPDX-License-Identifier: BSD-3-Clause
// The shared memory of a thread block that decodes rans streams of a frame, and the groups that its warps take.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lorenzo/cuda/decode.cuh"
#include "lorenzo/cuda/rans_steps.cuh"
#include "lorenzo/cuda/rans_words.cuh"

namespace pyfilter::cuda {

// A frame of which a thread block decodes some of the groups [first, last). Those of a frame's blocks are interleaved,
// since neighbouring groups are alike.
struct BlockFrame {
  DecodeFrame frame, groups;  // `groups`: the frame from its directory on
  RansTables tables;
  std::uint32_t index, table_bytes, units, first, last;  // `index`: among the frames of the call

  __device__ __forceinline__ std::uint32_t first_of_warp() const {
    return first + threadIdx.x / 32 * gridDim.x + blockIdx.x;
  }
  __device__ __forceinline__ std::uint32_t next_of_warp(std::uint32_t unit) const {
    return unit + gridDim.x * (blockDim.x / 32);
  }
};

// A thread block's shared memory. It begins with the frame's tables, aligned to a table's size, and its table of sums.
// Then come the warps' rings, the frame and whatever else the kernel keeps. Warps have few registers for it all.
struct RansShare {
  static constexpr std::size_t kAlignment = 4 * kFrequencySum, kTables = kMostTables * kAlignment + kLevelBytes,
                               kRing = kRingBytes, kFrame = (sizeof(BlockFrame) + 15) / 16 * 16,
                               kBlockBytes = kAlignment + kTables + kFrame;
  std::uint8_t* at;

  __device__ __forceinline__ explicit RansShare(uint4* memory)
      : at(reinterpret_cast<std::uint8_t*>(memory) + (kAlignment - shared_address(memory) % kAlignment) % kAlignment) {}
  __device__ __forceinline__ std::uint16_t* ring(unsigned warp) const {
    return reinterpret_cast<std::uint16_t*>(at + kTables + warp * kRing);
  }
  __device__ __forceinline__ BlockFrame& frame() const {
    return *in_shared(reinterpret_cast<BlockFrame*>(at + kTables + blockDim.x / 32 * kRing));
  }
  __device__ __forceinline__ std::uint8_t* behind_frame() const {
    return at + kTables + blockDim.x / 32 * kRing + kFrame;
  }
};

// Loads this block's frame, number blockIdx.y of the launch, and its tables; called by all threads. A frame whose
// tables are damaged has no groups.
__device__ __forceinline__ const BlockFrame& open_frame(const StreamDecodeParams& job, const RansShare& share) {
  BlockFrame& out = share.frame();
  const std::uint32_t index = job.first_frame + blockIdx.y;
  const FrameTables& given = job.tables[index];
  if (threadIdx.x == 0) {
    out.index = index;
    out.frame = job.base.frame(index);
    out.table_bytes = given.bytes;
    out.first = out.last = 0;
    if (given.bytes != 0) {
      const UnitRange range = unit_range(job.base, group_log2_of(out.frame));
      out.units = range.units;
      out.first = range.first;
      out.last = range.last;
      out.groups = behind_tables(out.frame, given.bytes);
      out.tables = {shared_address(share.at), TableOfSum(given.contexts), given.contexts.count,
                    given.flag_frequency[0] | given.flag_frequency[1] << 10 | given.flag_frequency[2] << 20};
    }
  }
  __syncthreads();
  if (out.first + blockIdx.x >= out.last) return out;
  const auto* const entries = reinterpret_cast<const uint4*>(given.entries);
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < (given.contexts.count + 1) * kFrequencySum / 4; i += blockDim.x)
    reinterpret_cast<uint4*>(share.at)[i] = entries[i];
  const RansTables tables = out.tables;
  for (std::uint32_t sum = threadIdx.x; sum < kLevelSums; sum += blockDim.x)
    store_word(tables.entries + kLevelsAt + 4 * sum, tables.entries + tables.of_sum(sum) * (4 * kFrequencySum));
  __syncthreads();
  return out;
}

}  // namespace pyfilter::cuda
