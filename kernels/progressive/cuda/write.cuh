// SPDX-License-Identifier: BSD-3-Clause
// Copies segments into the payload (docs/format.md, section 13.4), and writes headers and the values of raw chunks.
#pragma once

#include <cstdint>

#include "core/cuda/raw_chunks.cuh"
#include "progressive/cuda/bits.cuh"
#include "progressive/cuda/params.cuh"
#include "progressive/values.hpp"
#include "stages/cuda/header.cuh"

namespace pyfilter::cuda {

inline constexpr int kWriteThreads = 256;

// A block a segment: the set of non-empty pieces, their sizes and offsets.
template <int kThreads>
static __global__ void __launch_bounds__(kThreads) locate_pieces_kernel(const __grid_constant__ ProgressiveEncode job) {
  __shared__ std::uint64_t warp_sums[kThreads / 32];
  const FrameHead& head = job.heads[blockIdx.y];
  const auto [u, planes, p, there] = job.block_segment(head);
  if (head.dead != 0 || !there) return;
  const std::uint32_t tiles = job.shared->layout.unit[u].tiles, thread = threadIdx.x;
  const SegmentLocation segment = job.segment_locations.of(blockIdx.y)[segment_index(u, p)];
  if (segment.size == 0) return;
  const std::uint32_t* const sizes = job.sizes.of(blockIdx.y) + job.piece_index(u, planes, p);
  std::uint64_t* const locations = job.locations.of(blockIdx.y) + job.piece_index(u, planes, p);
  if (tiles == 1) {
    if (thread == 0) locations[0] = segment.offset;
    return;
  }
  const std::uint32_t mask_bytes = (tiles + 7) / 8, each = (mask_bytes + kThreads - 1) / kThreads,
                      first = min(thread * each, mask_bytes), last = min(first + each, mask_bytes);
  std::uint64_t own = 0, all = 0;
  for (std::uint32_t t = 8 * first; t < min(8 * last, tiles); ++t) {
    const std::uint32_t size = sizes[t] & 0xFFFF;
    own += size | std::uint64_t{size != 0} << 40;
  }
  const std::uint64_t before = sum_before<kThreads>(own, warp_sums, all), filled = all >> 40;
  std::uint8_t* const mask = job.payload(blockIdx.y) + segment.offset;
  std::uint8_t* entry = mask + mask_bytes + 2 * (before >> 40);
  std::uint64_t offset = segment.offset + mask_bytes + 2 * filled + (before & ((std::uint64_t{1} << 40) - 1));
  for (std::uint32_t i = first; i < last; ++i) {
    std::uint32_t bits = 0;
    for (std::uint32_t t = 8 * i; t < min(8 * i + 8, tiles); ++t) {
      const std::uint32_t size = sizes[t] & 0xFFFF;
      locations[t] = offset;
      if (size == 0) continue;
      bits |= 1u << (t % 8);
      entry[0] = static_cast<std::uint8_t>(size);
      entry[1] = static_cast<std::uint8_t>(size >> 8);
      entry += 2;
      offset += size;
    }
    mask[i] = static_cast<std::uint8_t>(bits);
  }
}

// Copies `size` bytes from a multiple of four bytes to any address, by a warp.
__device__ __forceinline__ void copy_piece(std::uint8_t* to, const std::uint32_t* from, std::uint32_t size) {
  const unsigned lane = threadIdx.x % 32;
  const auto skew = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(to) % 4),
             head = min((4 - skew) % 4, size), words = (size - head) / 4, tail = (size - head) % 4;
  const std::uint8_t* const bytes = reinterpret_cast<const std::uint8_t*>(from);
  auto* const aligned = reinterpret_cast<std::uint32_t*>(to + head);
  for (std::uint32_t i = lane; i < words; i += 32)
    aligned[i] = __funnelshift_r(from[i], head != 0 ? from[i + 1] : 0, 8 * head);
  if (lane < head) to[lane] = bytes[lane];
  if (lane < tail) to[head + 4 * words + lane] = bytes[head + 4 * words + lane];
}

// A warp a tile.
static __global__ void __launch_bounds__(kWriteThreads)
    write_pieces_kernel(const __grid_constant__ ProgressiveEncode job) {
  const FrameHead& head = job.heads[blockIdx.y];
  const std::uint32_t tile = blockIdx.x * (kWriteThreads / 32) + threadIdx.x / 32;
  if (head.dead != 0 || tile >= job.tiles) return;
  int u = job.shared->layout.units - 1;
  while (job.shared->first_tile[u] > tile) --u;
  const int planes = head.head.planes[u];
  if (planes == 0) return;
  const std::uint32_t tiles = job.shared->layout.unit[u].tiles;
  const std::size_t first = job.piece_index(u, planes, planes - 1) + (tile - job.shared->first_tile[u]);
  const std::uint32_t* const sizes = job.sizes.of(blockIdx.y) + first;
  const std::uint64_t* const locations = job.locations.of(blockIdx.y) + first;
  const std::uint32_t* const from = job.bytes.of(blockIdx.y) + tile * job.slot_words();
  std::uint8_t* const to = job.payload(blockIdx.y);
  const auto lane = static_cast<int>(threadIdx.x % 32);
  for (int start = 0; start <= planes; start += 32) {  // a lane for each piece, then all lanes for each
    const std::size_t own = static_cast<std::size_t>(min(start + lane, planes)) * tiles;
    const std::uint32_t size_of = sizes[own];
    const std::uint64_t own_offset = (size_of & 0xFFFF) != 0 ? locations[own] : 0;
    for (int i = 0; i < 32 && start + i <= planes; ++i) {
      const std::uint32_t size = __shfl_sync(kAllLanes, size_of, i);
      const std::uint64_t offset_of_piece = __shfl_sync(kAllLanes, own_offset, i);
      if ((size & 0xFFFF) != 0) copy_piece(to + offset_of_piece, from + (size >> 16), size & 0xFFFF);
    }
  }
}

// A warp a frame.
static __global__ void __launch_bounds__(32)
    write_headers_kernel(const __grid_constant__ ProgressiveEncode job, const __grid_constant__ EncodeParams frame,
                         ChunkPlan* plans) {
  const EncodeNote& note = *job.notes.of(blockIdx.y);
  if (note.outcome == Outcome::special || note.outcome == Outcome::elsewhere) return;
  const bool raw = note.outcome == Outcome::raw;
  if (threadIdx.x == 0) {
    ChunkPlan plan = {};
    plan.bound = PowerOfTwo(note.exponent - 1).times(1.0);
    plan.step = PowerOfTwo(note.exponent).times(1.0);
    plan.sentinel = note.sentinel;
    plan.quantise = 1;
    plan.has_sentinel = note.has_sentinel;
    plans[blockIdx.y] = plan;
  }
  __syncwarp();
  write_header(frame, blockIdx.y, raw, raw ? job.value_bytes : note.payload_bytes);
}

// Copies values of raw chunks, which did not get smaller.
static __global__ void __launch_bounds__(kCopyThreads)
    store_values_kernel(const __grid_constant__ ProgressiveEncode job) {
  if (job.notes.of(blockIdx.y)->outcome != Outcome::raw) return;
  copy_bytes(job.payload(blockIdx.y), job.values + blockIdx.y * job.value_stride, job.value_bytes);
}

}  // namespace pyfilter::cuda
