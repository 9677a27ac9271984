// SPDX-License-Identifier: BSD-3-Clause
// Heads of progressive frames, their tables and their coarsest grids, and where all pieces are (docs/format.md,
// sections 13.2 and 13.4). Nothing is read before its place is known to be in the frame.
#pragma once

#include <cstdint>

#include "stages/cuda/progressive/bits.cuh"
#include "stages/cuda/progressive/params.cuh"

namespace pyfilter::cuda {

inline constexpr int kOpenThreads = 128, kPlaceThreads = 256;
inline constexpr std::uint32_t kStagedHead = 16384;  // bytes of a head that are read from shared memory

// A block a frame.
static __global__ void __launch_bounds__(kOpenThreads)
    open_frames_kernel(const __grid_constant__ ProgressiveDecode job) {
  __shared__ std::uint8_t staged[kStagedHead];
  __shared__ std::uint64_t end;
  __shared__ std::uint32_t good;
  const ProgressiveFrame frame = job.frames[blockIdx.y];
  const ProgressiveLayout& layout = job.shared->layout;
  FrameHead& head = job.heads[blockIdx.y];
  SegmentPlace* const places = job.segments.of(blockIdx.y);
  const auto staged_bytes = static_cast<std::uint32_t>(min(frame.payload_bytes, std::uint64_t{kStagedHead}));
  for (std::uint32_t i = threadIdx.x; i < staged_bytes; i += kOpenThreads) staged[i] = frame.payload[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    head.dead = 0;
    good = 0;
    end = 0;
    const bool whole = frame.segments == kAllSegments;
    if (frame.payload_bytes >= kProgressiveFixedBytes + static_cast<std::uint64_t>(layout.units) &&
        parse_head(staged, layout, static_cast<std::size_t>(job.width), &head.head) == HeadFault::none &&
        head.head.segments_at <= frame.payload_bytes) {
      for (int u = 0; u < layout.units; ++u) head.last[u] = static_cast<std::int8_t>(head.head.planes[u]);
      const bool fits = head.head.specials_at <= staged_bytes;
      end = head.head.segments_at;
      bool inside = true;
      const bool parsed =
          parse_table(fits ? staged : frame.payload, layout, head.head, [&](int i, const ProgressiveSegment& s) {
            if (whole) end = s.offset + s.size;
            if (static_cast<std::uint32_t>(i) >= frame.segments) return;
            head.last[s.unit] = s.plane;
            places[segment_index(s.unit, s.plane)] = {s.offset, s.size};
            if (layout.unit[s.unit].level >= job.level) inside = inside && s.offset + s.size <= frame.payload_bytes;
          });
      const std::uint64_t least = least_payload_bytes(layout.grids[0].count());
      good = parsed && inside && (!whole || (end < least ? least : end) == frame.payload_bytes) ? 1 : 0;
    }
    if (good == 0) damage(frame, head);
  }
  __syncthreads();
  if (good == 0) return;
  if (frame.segments == kAllSegments)
    for (std::uint64_t i = end + threadIdx.x; i < frame.payload_bytes; i += kOpenThreads)
      if (frame.payload[i] != 0) damage(frame, head);
  const std::uint8_t* const from = frame.payload + head.head.roots_at;
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
    if (q < head.head.low || q > head.head.high) damage(frame, head);
  }
}

// Places of the pieces of a segment: blockIdx.x is its unit and, from the highest on, its plane.
static __global__ void __launch_bounds__(kPlaceThreads)
    find_pieces_kernel(const __grid_constant__ ProgressiveDecode job) {
  __shared__ std::uint64_t room[kPlaceThreads / 32];
  FrameHead& head = job.heads[blockIdx.y];
  const auto [u, planes, p, there] = job.block_segment(head);
  const ProgressiveUnit& unit = job.shared->layout.unit[u];
  if (!there || p < head.last[u] || unit.level < job.level) return;
  const ProgressiveFrame frame = job.frames[blockIdx.y];
  const SegmentPlace segment = job.segments.of(blockIdx.y)[segment_index(u, p)];
  std::uint64_t* const places = job.places.of(blockIdx.y) + job.place_of(u, planes, p);
  const std::uint32_t tiles = unit.tiles, thread = threadIdx.x;
  if (tiles == 1) {
    if (segment.size > kMostPieceBytes)
      damage(frame, head);
    else if (thread == 0)
      places[0] = pack_piece(segment.offset, static_cast<std::uint32_t>(segment.size));
    return;
  }
  if (segment.size == 0) {
    for (std::uint32_t t = thread; t < tiles; t += kPlaceThreads) places[t] = pack_piece(segment.offset, 0);
    return;
  }
  const std::uint32_t mask_bytes = (tiles + 7) / 8, each = (mask_bytes + kPlaceThreads - 1) / kPlaceThreads,
                      first = min(thread * each, mask_bytes), last = min(first + each, mask_bytes);
  if (segment.size < mask_bytes) return damage(frame, head);
  const std::uint8_t* const mask = frame.payload + segment.offset;
  std::uint64_t own = 0, filled = 0, total = 0;
  for (std::uint32_t i = first; i < last; ++i) own += static_cast<std::uint64_t>(__popc(mask[i]));
  const std::uint64_t rank = sum_before<kPlaceThreads>(own, room, filled);
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
  std::uint64_t offset = mask_bytes + 2 * filled + sum_before<kPlaceThreads>(bytes, room, total);
  if (bad || mask_bytes + 2 * filled + total != segment.size) damage(frame, head);
  std::uint64_t i = rank;
  for (std::uint32_t t = 8 * first; t < min(8 * last, tiles); ++t) {
    std::uint32_t size = 0;
    if ((mask[t / 8] >> (t % 8) & 1) != 0) size = size_of(i++);
    places[t] = pack_piece(segment.offset + offset, size);
    offset += size;
  }
}

}  // namespace pyfilter::cuda
