// SPDX-License-Identifier: BSD-3-Clause
// Heads of progressive frames, their tables and coarsest grids, and the locations of all pieces (docs/format.md,
// sections 13.2 and 13.4). Nothing is read before its offset is known to be in the frame.
#pragma once

#include <cstdint>

#include "progressive/cuda/bits.cuh"
#include "progressive/cuda/params.cuh"

namespace pyfilter::cuda {

inline constexpr int kOpenThreads = 128;
inline constexpr std::uint32_t kStagedHead = 16384;  // bytes of a head that are copied to shared memory
inline constexpr std::uint32_t kStagedTable = 8192;  // bytes of a table that all threads parse

struct OpenMemory {
  std::uint32_t head[kStagedHead / 4];
  std::uint64_t sums[kOpenThreads / 32];
  std::uint8_t steps[kStagedTable];  // distance from each byte to the next entry, if an entry starts there; else 0
  std::uint16_t starts[kStagedTable / 2];  // of entries
  std::uint8_t unit[kStagedTable / 2];
  std::int8_t plane[kStagedTable / 2];
  int last[kMostUnits], level[kMostUnits];
  alignas(FrameHead) std::uint8_t found[sizeof(FrameHead)];  // the head, which one thread parses
  std::uint64_t end;                                         // the end of the segments
  std::uint32_t chained, good, fault;
};

// parse_table() by a block: many threads call put(i, segment), once the whole table is valid. `table` is in shared
// memory. One thread finds the starts of entries, the only sequential step.
template <class Put>
__device__ __forceinline__ bool parse_table_together(const std::uint8_t* table, int units, const ProgressiveHead& head,
                                                     OpenMemory& memory, Put&& put) {
  const auto bytes = static_cast<std::uint32_t>(head.table_bytes), count = static_cast<std::uint32_t>(head.segments),
             thread = threadIdx.x;
  const std::uint8_t* const end = table + bytes;
  ProgressiveSegment segment;
  for (std::uint32_t i = thread; i < bytes; i += kOpenThreads) {
    const std::uint8_t* const next = take_entry(table + i, end, units, &segment);
    memory.steps[i] = static_cast<std::uint8_t>(next == nullptr ? 0 : next - (table + i));
  }
  __syncthreads();
  if (thread == 0) {
    std::uint32_t at = 0, found = 0;
    for (std::uint32_t step; found < count && at < bytes && (step = memory.steps[at]) != 0; at += step)
      memory.starts[found++] = static_cast<std::uint16_t>(at);
    memory.chained = found == count && at == bytes ? 1 : 0;
    memory.good = 1;
  }
  __syncthreads();
  if (memory.chained == 0) return false;
  const std::uint32_t each = (count + kOpenThreads - 1) / kOpenThreads, first = min(thread * each, count),
                      last = min(first + each, count);
  std::uint64_t own = 0, all;
  for (std::uint32_t i = first; i < last; ++i) {
    take_entry(table + memory.starts[i], end, units, &segment);
    own += segment.size;
    memory.unit[i] = segment.unit;
  }
  if (first < last && last == count && segment.error == 0)
    atomicMin(&memory.good, 0u);  // the last entry must have an error
  std::uint64_t offset = head.segments_at + sum_before<kOpenThreads>(own, memory.sums, all);
  for (int u = static_cast<int>(thread); u < units; u += kOpenThreads) {
    int next = head.highest_plane(u);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (memory.unit[i] != u) continue;
      if (next < -1) atomicMin(&memory.good, 0u);
      memory.plane[i] = static_cast<std::int8_t>(next--);
    }
  }
  __syncthreads();
  if (memory.good == 0) return false;
  for (std::uint32_t i = first; i < last; ++i) {
    take_entry(table + memory.starts[i], end, units, &segment);
    segment.plane = memory.plane[i];
    segment.offset = offset;
    offset += segment.size;
    put(static_cast<int>(i), segment);
  }
  return true;
}

// A block a frame.
static __global__ void __launch_bounds__(kOpenThreads)
    open_frames_kernel(const __grid_constant__ ProgressiveDecode job) {
  __shared__ OpenMemory memory;
  const ProgressiveFrame frame = job.frames[blockIdx.y];
  const ProgressiveLayout& layout = job.shared->layout;
  FrameHead &head = job.heads[blockIdx.y], &found = *reinterpret_cast<FrameHead*>(memory.found);
  SegmentLocation* const locations = job.segments.of(blockIdx.y);
  const bool whole = frame.segments == kAllSegments;
  const auto staged_bytes = static_cast<std::uint32_t>(min(frame.payload_bytes, std::uint64_t{kStagedHead}));
  const PayloadWords payload(frame.payload, frame.payload_bytes);
#pragma unroll 8
  for (std::uint32_t i = threadIdx.x; i < (staged_bytes + 3) / 4; i += kOpenThreads)
    memory.head[i] = payload.bits(32 * std::uint64_t{i});
  const auto* const staged = reinterpret_cast<const std::uint8_t*>(memory.head);
  const int units = layout.units;
  __syncthreads();
  if (threadIdx.x == 0) {
    found.dead = 0;
    memory.fault = 1;
    if (frame.payload_bytes >= kProgressiveFixedBytes + static_cast<std::uint64_t>(units) &&
        parse_head(staged, layout, static_cast<std::size_t>(job.width), &found.head) == HeadFault::none &&
        found.head.segments_at <= frame.payload_bytes)
      memory.fault = 0;
    memory.end = found.head.segments_at;
  }
  __syncthreads();
  if (memory.fault == 0) {
    for (int u = static_cast<int>(threadIdx.x); u < units; u += kOpenThreads) {
      memory.last[u] = found.head.planes[u];
      memory.level[u] = layout.unit[u].level;
    }
    __syncthreads();
    const auto put = [&](int i, const ProgressiveSegment& s) {
      if (whole && i + 1 == found.head.segments) memory.end = s.offset + s.size;
      if (static_cast<std::uint32_t>(i) >= frame.segments) return;
      atomicMin(&memory.last[s.unit], static_cast<int>(s.plane));
      locations[segment_index(s.unit, s.plane)] = {s.offset, s.size};
      if (memory.level[s.unit] >= job.level && s.offset + s.size > frame.payload_bytes) atomicOr(&memory.fault, 1u);
    };
    bool parsed = true;
    if (found.head.specials_at <= staged_bytes && found.head.table_bytes <= kStagedTable)
      parsed = parse_table_together(staged + found.head.table_at, units, found.head, memory, put);
    else if (threadIdx.x == 0)
      parsed = parse_table(frame.payload, layout, found.head, put);
    if (!parsed) atomicOr(&memory.fault, 1u);
    __syncthreads();
    const std::uint64_t least = least_payload_bytes(layout.grids[0].count());
    if (whole && max(memory.end, least) != frame.payload_bytes) atomicOr(&memory.fault, 1u);
    for (int u = static_cast<int>(threadIdx.x); u < units; u += kOpenThreads)
      found.last[u] = static_cast<std::int8_t>(memory.last[u]);
    __syncthreads();
  }
  for (std::uint32_t i = threadIdx.x; i < sizeof(FrameHead) / 4; i += kOpenThreads)
    reinterpret_cast<std::uint32_t*>(&head)[i] = reinterpret_cast<const std::uint32_t*>(memory.found)[i];
  __syncthreads();
  if (memory.fault != 0) {
    if (threadIdx.x == 0) damage(frame, head);
    return;
  }
  if (whole)
    for (std::uint64_t i = memory.end + threadIdx.x; i < frame.payload_bytes; i += kOpenThreads)
      if (frame.payload[i] != 0) damage(frame, head);
  const std::uint8_t* const from = frame.payload + found.head.roots_at;
  std::uint8_t* const roots = job.roots.of(blockIdx.y);
  for (std::uint32_t i = threadIdx.x; i < layout.roots; i += kOpenThreads) {
    std::int64_t q;
    if (job.width == 4) {
      const auto word = load_le<std::int32_t>(from + 4 * i);
      store_le(roots + 4 * i, word);
      q = word;
    } else {
      q = load_le<std::int64_t>(from + 8 * i);
      store_le(roots + 8 * i, q);
    }
    if (q < found.head.low || q > found.head.high) damage(frame, head);
  }
}

// Locates the pieces of a segment: blockIdx.x is its unit and, from the highest on, its plane.
template <int kLocateThreads>
static __global__ void __launch_bounds__(kLocateThreads)
    find_pieces_kernel(const __grid_constant__ ProgressiveDecode job) {
  __shared__ std::uint64_t memory[kLocateThreads / 32];
  FrameHead& head = job.heads[blockIdx.y];
  const auto [u, planes, p, there] = job.block_segment(head);
  const ProgressiveUnit& unit = job.shared->layout.unit[u];
  if (__syncthreads_or(is_damaged(head) ? 1 : 0) != 0 || !there || p < head.last[u] || unit.level < job.level) return;
  const ProgressiveFrame frame = job.frames[blockIdx.y];
  const SegmentLocation segment = job.segments.of(blockIdx.y)[segment_index(u, p)];
  std::uint64_t* const locations = job.locations.of(blockIdx.y) + job.piece_index(u, planes, p);
  const std::uint32_t tiles = unit.tiles, thread = threadIdx.x;
  if (tiles == 1) {
    if (segment.size > kMostPieceBytes)
      damage(frame, head);
    else if (thread == 0)
      locations[0] = pack_piece(segment.offset, static_cast<std::uint32_t>(segment.size));
    return;
  }
  if (segment.size == 0) {
    for (std::uint32_t t = thread; t < tiles; t += kLocateThreads) locations[t] = pack_piece(segment.offset, 0);
    return;
  }
  const std::uint32_t mask_bytes = (tiles + 7) / 8, each = (mask_bytes + kLocateThreads - 1) / kLocateThreads,
                      first = min(thread * each, mask_bytes), last = min(first + each, mask_bytes);
  if (segment.size < mask_bytes) return damage(frame, head);
  const std::uint8_t* const mask = frame.payload + segment.offset;
  std::uint64_t own = 0, filled = 0, total = 0;
  for (std::uint32_t i = first; i < last; ++i) own += static_cast<std::uint64_t>(__popc(mask[i]));
  const std::uint64_t rank = sum_before<kLocateThreads>(own, memory, filled);
  const bool stray = tiles % 8 != 0 && mask[mask_bytes - 1] >> (tiles % 8) != 0;
  if (stray || filled == 0 || (segment.size - mask_bytes) / 2 < filled) return damage(frame, head);
  const std::uint8_t* const sizes = mask + mask_bytes;
  const auto size_of = [sizes](std::uint64_t i) {
    return static_cast<std::uint32_t>(sizes[2 * i]) | static_cast<std::uint32_t>(sizes[2 * i + 1]) << 8;
  };
  std::uint64_t bytes = 0;
  bool bad = false;
  for (std::uint64_t i = rank; i < rank + own; ++i) {
    bytes += size_of(i);
    bad = bad || size_of(i) == 0;
  }
  std::uint64_t offset = mask_bytes + 2 * filled + sum_before<kLocateThreads>(bytes, memory, total);
  if (bad || mask_bytes + 2 * filled + total != segment.size) damage(frame, head);
  std::uint64_t i = rank;
  for (std::uint32_t t = 8 * first; t < min(8 * last, tiles); ++t) {
    std::uint32_t size = 0;
    if ((mask[t / 8] >> (t % 8) & 1) != 0) size = size_of(i++);
    locations[t] = pack_piece(segment.offset + offset, size);
    offset += size;
  }
}

}  // namespace pyfilter::cuda
