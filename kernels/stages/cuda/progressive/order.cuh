// SPDX-License-Identifier: BSD-3-Clause
// The segments of a frame that is encoded: their sizes, their order, the errors behind them and where they go, and the
// head that says so (docs/format.md, section 13.2; progressive/order.hpp, choices.hpp).
#pragma once

#include <cstdint>

#include "progressive/choices.hpp"
#include "progressive/order.hpp"
#include "progressive/values.hpp"
#include "stages/cuda/progressive/bits.cuh"
#include "stages/cuda/progressive/params.cuh"

namespace pyfilter::cuda {

inline constexpr int kSizeThreads = 256;

// A thread a chunk: how many planes and segments there are.
static __global__ void __launch_bounds__(32) count_planes_kernel(const __grid_constant__ ProgressiveEncode job) {
  FrameHead& head = job.heads[blockIdx.y];
  if (threadIdx.x != 0 || head.dead != 0) return;
  const EncodeNote& note = *job.notes.of(blockIdx.y);
  head.head.segments = 0;
  head.head.special_bytes = head.head.table_bytes = 0;
  for (int u = 0; u < job.shared->layout.units; ++u) {
    const int planes = bit_width(static_cast<std::uint64_t>(note.any[u]));
    head.head.planes[u] = planes;
    if (planes != 0) head.head.segments += planes + 1;
  }
}

// A block a segment: blockIdx.x is its unit and, from the highest on, its plane.
static __global__ void __launch_bounds__(kSizeThreads)
    segment_sizes_kernel(const __grid_constant__ ProgressiveEncode job) {
  __shared__ std::uint64_t room[kSizeThreads / 32];
  const FrameHead& head = job.heads[blockIdx.y];
  const auto [u, planes, p, there] = job.block_segment(head);
  if (!there) return;
  const std::uint32_t tiles = job.shared->layout.unit[u].tiles;
  const std::uint32_t* const sizes = job.sizes.of(blockIdx.y) + job.place_of(u, planes, p);
  std::uint64_t own = 0, all = 0;  // bytes, and above them pieces that are not empty
  for (std::uint32_t t = threadIdx.x; t < tiles; t += kSizeThreads) {
    const std::uint32_t size = sizes[t] & 0xFFFF;
    own += size | std::uint64_t{size != 0} << 40;
  }
  sum_before<kSizeThreads>(own, room, all);
  if (threadIdx.x != 0) return;
  const std::uint64_t bytes = all & ((std::uint64_t{1} << 40) - 1), filled = all >> 40;
  job.segment_bytes.of(blockIdx.y)[segment_index(u, p)] =
      tiles == 1 || bytes == 0 ? bytes : (tiles + 7) / 8 + 2 * filled + bytes;
}

struct OrderRoom {
  double gain[kMostUnits], weight[kMostUnits];
  int state[kMostUnits];
};

// A warp a frame: order_segments(), the best unit found by all lanes.
__device__ __forceinline__ void order_by_warp(const ProgressiveLayout& layout, const ProgressiveHead& head,
                                              const std::uint64_t* bytes, ProgressiveSegment* segments,
                                              OrderRoom& room) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const auto renew = [&](int u) {
    room.gain[u] =
        gain_of_unit(head.planes[u], room.state[u], room.weight[u], [&](int p) { return bytes[segment_index(u, p)]; });
  };
  if (lane == 0) weigh_units(layout, head, room.weight);
  __syncwarp();
  for (int u = lane; u < layout.units; u += 32) {
    room.state[u] = head.planes[u] != 0 ? head.planes[u] : -1;
    if (room.state[u] >= 0) renew(u);
  }
  __syncwarp();
  for (int i = 0; i < head.segments; ++i) {
    int best = -1;
    double gain = 0;
    for (int u = lane; u < layout.units; u += 32) {
      if (room.state[u] < 0 || (best >= 0 && !(room.gain[u] > gain))) continue;
      best = u;
      gain = room.gain[u];
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
      const double other_gain = __shfl_xor_sync(kAllLanes, gain, d);
      const int other = __shfl_xor_sync(kAllLanes, best, d);
      const bool better = best < 0 || other_gain > gain || (other_gain == gain && other < best);
      if (other >= 0 && better) {
        best = other;
        gain = other_gain;
      }
    }
    if (lane == 0) {
      const int p = --room.state[best];
      ProgressiveSegment segment;
      segment.unit = static_cast<std::uint8_t>(best);
      segment.plane = static_cast<std::int8_t>(p);
      segment.size = bytes[segment_index(best, p)];
      segments[i] = segment;
    }
    __syncwarp();
    // gain_of_unit(), a lane for each of the next segments
    const int planes = head.planes[best], state = room.state[best], p = state - 1 - lane;
    double taken = -1;
    if (lane < kLookAhead && p >= -1) {
      std::uint64_t cost = 0;
      for (int q = state - 1; q >= p; --q) cost += bytes[segment_index(best, q)];
      taken = gain_of_segments(planes, state, p, room.weight[best], cost);
    }
    double most = __shfl_sync(kAllLanes, taken, 0);
#pragma unroll
    for (int k = 1; k < kLookAhead; ++k) {
      const double other = __shfl_sync(kAllLanes, taken, k);
      most = other > most ? other : most;
    }
    if (lane == 0) room.gain[best] = most;
    __syncwarp();
  }
}

// By a thread: errors that are bounds, which errors are measured, and how long the frame is.
__device__ __forceinline__ void choose_errors(const ProgressiveEncode& job, EncodeNote& note, ProgressiveHead& head,
                                              ProgressiveSegment* segments, std::int8_t* states, int* state) {
  const ProgressiveLayout& layout = job.shared->layout;
  head.place(layout, static_cast<std::size_t>(job.width));
  choose_entries(segments, head.segments, head.segments_at);
  const auto magnitude = static_cast<std::uint64_t>(-head.low > head.high ? -head.low : head.high),
             range = static_cast<std::uint64_t>(head.high - head.low);
  const int bits = job.width == 4 ? 24 : 53;
  const double sentinel = job.width == 4
                              ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(note.sentinel)))
                              : std::bit_cast<double>(note.sentinel);
  const bool reaches = note.has_sentinel != 0 &&
                       absolute(sentinel) <= PowerOfTwo(note.exponent).times(static_cast<double>(magnitude) + 1);
  note.conversion = conversion_error(magnitude, bits, reaches);
  for (int u = 0; u < layout.units; ++u) state[u] = head.planes[u] != 0 ? head.planes[u] : -1;
  std::uint64_t read = head.segments_at, last = read;
  head.table_bytes = 0;
  for (int i = 0; i < head.segments; ++i) {
    ProgressiveSegment segment = segments[i];
    state[segment.unit] = segment.plane;
    read += segment.size;
    if (segment.error != 0) {
      const std::uint64_t bound = bound_of_state(layout, head, state);
      if (job.measured && is_measured(bound, range, read, last) && note.measures < kMostMeasures) {
        const std::uint32_t m = note.measures++;
        note.measured_segment[m] = static_cast<std::uint32_t>(i);
        note.measured_bound[m] = bound;
        for (int u = 0; u < layout.units; ++u)
          states[m * kMostUnits + static_cast<std::uint32_t>(u)] = static_cast<std::int8_t>(state[u]);
        last = read;
      }
      segments[i].error = segment.error =
          static_cast<std::uint16_t>(error_code(bound == 0 ? 0 : bound + note.conversion));
    }
    head.table_bytes += table_entry_bytes(segment);
  }
  head.place(layout, static_cast<std::size_t>(job.width));
  std::uint64_t total = head.segments_at;
  for (int i = 0; i < head.segments; ++i) {
    segments[i].offset = total;
    total += segments[i].size;
  }
  const std::uint64_t least = least_payload_bytes(job.count);
  note.payload_bytes = total < least ? least : total;
}

// Frames of so many units and segments are ordered in shared memory.
inline constexpr int kOrderedUnits = 40, kOrderedSegments = 900;

static __global__ void __launch_bounds__(32) order_segments_kernel(const __grid_constant__ ProgressiveEncode job) {
  __shared__ OrderRoom room;
  __shared__ std::uint64_t bytes_room[64 * kOrderedUnits];
  __shared__ std::uint64_t segments_room[kOrderedSegments * sizeof(ProgressiveSegment) / 8];
  static_assert(sizeof(ProgressiveSegment) % 8 == 0);
  FrameHead& head = job.heads[blockIdx.y];
  if (head.dead != 0) return;
  EncodeNote& note = *job.notes.of(blockIdx.y);
  const ProgressiveLayout& layout = job.shared->layout;
  ProgressiveSegment* const kept = job.segments.of(blockIdx.y);
  const std::uint64_t* bytes = job.segment_bytes.of(blockIdx.y);
  const int lane = static_cast<int>(threadIdx.x);
  const bool fits = layout.units <= kOrderedUnits && head.head.segments <= kOrderedSegments;
  ProgressiveSegment* const segments = fits ? reinterpret_cast<ProgressiveSegment*>(segments_room) : kept;
  if (fits) {
    for (int i = lane; i < 64 * layout.units; i += 32) bytes_room[i] = bytes[i];
    bytes = bytes_room;
  }
  __syncwarp();
  order_by_warp(layout, head.head, bytes, segments, room);
  __syncwarp();
  if (lane == 0) {
    choose_errors(job, note, head.head, segments, job.states.of(blockIdx.y), room.state);
    if (note.payload_bytes >= job.value_bytes) {
      note.outcome = Outcome::raw;
      head.dead = 1;
    }
  }
  __syncwarp();
  if (head.dead != 0) return;
  SegmentPlace* const places = job.segment_places.of(blockIdx.y);
  for (int i = lane; i < head.head.segments; i += 32) {
    places[segment_index(segments[i].unit, segments[i].plane)] = {segments[i].offset, segments[i].size};
    if (fits) kept[i] = segments[i];
  }
}

// A block a frame, once errors are measured: head, table and coarsest grid, and zeros behind the segments.
static __global__ void __launch_bounds__(128) write_head_kernel(const __grid_constant__ ProgressiveEncode job) {
  FrameHead& head = job.heads[blockIdx.y];
  if (head.dead != 0) return;
  EncodeNote& note = *job.notes.of(blockIdx.y);
  const ProgressiveLayout& layout = job.shared->layout;
  ProgressiveSegment* const segments = job.segments.of(blockIdx.y);
  std::uint8_t* const to = job.payload(blockIdx.y);
  for (std::uint32_t m = threadIdx.x; m < note.measures; m += 128) {
    const std::uint64_t bound = note.measured_bound[m], found = note.measured[m], error = found < bound ? found : bound;
    segments[note.measured_segment[m]].error =
        static_cast<std::uint16_t>(error_code(error == 0 ? 0 : error + note.conversion));
  }
  __syncthreads();
  std::uint64_t end = head.head.segments_at;
  if (head.head.segments != 0) end = segments[head.head.segments - 1].offset + segments[head.head.segments - 1].size;
  for (std::uint64_t i = end + threadIdx.x; i < note.payload_bytes; i += 128) to[i] = 0;
  const std::size_t root_bytes = layout.roots * static_cast<std::size_t>(job.width);
  const std::uint8_t* const roots =
      job.grids.of(blockIdx.y) + job.grid_at[layout.levels] * static_cast<std::size_t>(job.width);
  for (std::size_t i = threadIdx.x; i < root_bytes; i += 128) to[head.head.roots_at + i] = roots[i];
  if (threadIdx.x == 0) write_head(head.head, layout, segments, to);
}

}  // namespace pyfilter::cuda
