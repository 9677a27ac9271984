// SPDX-License-Identifier: BSD-3-Clause
// The segments of a frame to encode: sizes, order, errors and offsets, and the head (docs/format.md, section 13.2;
// progressive/order.hpp, choices.hpp).
#pragma once

#include <cstdint>

#include "progressive/choices.hpp"
#include "progressive/cuda/bits.cuh"
#include "progressive/cuda/params.cuh"
#include "progressive/order.hpp"
#include "progressive/values.hpp"

namespace pyfilter::cuda {

// A thread a chunk: counts planes and segments.
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
template <int kThreads>
static __global__ void __launch_bounds__(kThreads) segment_sizes_kernel(const __grid_constant__ ProgressiveEncode job) {
  __shared__ std::uint64_t memory[kThreads / 32];
  const FrameHead& head = job.heads[blockIdx.y];
  const auto [u, planes, p, there] = job.block_segment(head);
  if (head.dead != 0 || !there) return;
  const std::uint32_t tiles = job.shared->layout.unit[u].tiles;
  const std::uint32_t* const sizes = job.sizes.of(blockIdx.y) + job.piece_index(u, planes, p);
  std::uint64_t own = 0, all = 0;  // bytes, and in the high half non-empty pieces
  for (std::uint32_t t = threadIdx.x; t < tiles; t += kThreads) {
    const std::uint32_t size = sizes[t] & 0xFFFF;
    own += size | std::uint64_t{size != 0} << 40;
  }
  sum_before<kThreads>(own, memory, all);
  if (threadIdx.x != 0) return;
  const std::uint64_t bytes = all & ((std::uint64_t{1} << 40) - 1), filled = all >> 40;
  job.segment_bytes.of(blockIdx.y)[segment_index(u, p)] =
      tiles == 1 || bytes == 0 ? bytes : (tiles + 7) / 8 + 2 * filled + bytes;
}

inline constexpr int kOrderThreads = 256;

struct OrderMemory {
  double weight[kMostUnits];
  int first[kMostUnits + 1];  // index of each unit's first segment; its segments start with the highest plane
  std::uint64_t sums[kOrderThreads / 32];
};

// order_segments() by a block. The unit whose next segment gains most goes first, and continues while its segments gain
// more. So a segment's rank is the least gain of its unit's segments up to it; among equals the lower index goes first.
__device__ __forceinline__ void order_by_block(const ProgressiveHead& head, const std::uint64_t* bytes, int units,
                                               OrderMemory& memory, double* keys, ProgressiveSegment* segments) {
  const int thread = static_cast<int>(threadIdx.x), count = head.segments;
  const auto unit_of = [&](int number) {
    int u = 0;
    while (memory.first[u + 1] <= number) ++u;
    return u;
  };
  for (int i = thread; i < count; i += kOrderThreads) {
    const int u = unit_of(i), planes = head.planes[u];
    keys[i] = gain_of_unit(planes, planes - (i - memory.first[u]), memory.weight[u],
                           [&](int p) { return bytes[segment_index(u, p)]; });
  }
  __syncthreads();
  for (int u = thread; u < units; u += kOrderThreads)
    for (int i = memory.first[u] + 1; i < memory.first[u + 1]; ++i)
      if (keys[i - 1] < keys[i]) keys[i] = keys[i - 1];
  __syncthreads();
  for (int i = thread; i < count; i += kOrderThreads) {
    const double key = keys[i];
    int before = 0;
    for (int k = 0; k < count; ++k) before += keys[k] > key || (keys[k] == key && k < i) ? 1 : 0;
    const int u = unit_of(i), p = head.planes[u] - 1 - (i - memory.first[u]);
    ProgressiveSegment segment;
    segment.unit = static_cast<std::uint8_t>(u);
    segment.plane = static_cast<std::int8_t>(p);
    segment.size = bytes[segment_index(u, p)];
    segments[before] = segment;
  }
  __syncthreads();
}

// Sets each segment's offset to the bytes that are read with it. Threads take consecutive segments.
__device__ __forceinline__ void count_read(const ProgressiveHead& head, std::uint64_t* sums,
                                           ProgressiveSegment* segments) {
  const int each = (head.segments + kOrderThreads - 1) / kOrderThreads, first = static_cast<int>(threadIdx.x) * each,
            last = min(first + each, head.segments);
  std::uint64_t own = 0, all = 0;
  for (int i = first; i < last; ++i) own += segments[i].size;
  std::uint64_t read = head.segments_at + sum_before<kOrderThreads>(own, sums, all);
  for (int i = first; i < last; ++i) segments[i].offset = read += segments[i].size;
  __syncthreads();
}

// choose_entries() by a warp.
__device__ __forceinline__ void choose_entries_by_warp(const ProgressiveHead& head, ProgressiveSegment* segments) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  std::uint64_t marked = head.segments_at;
  for (int i = 0; i < head.segments;) {
    const int own = min(i + lane, head.segments - 1);
    const std::uint64_t read = segments[own].offset;
    const unsigned ready = __ballot_sync(kAllLanes, own + 1 == head.segments || read >= next_entry(marked));
    if (ready == 0) {
      i += 32;
      continue;
    }
    const int first = __ffs(static_cast<int>(ready)) - 1;
    if (lane == first) segments[own].error = 1;
    marked = __shfl_sync(kAllLanes, read, first);
    i += first + 1;
  }
}

// The planes of each unit that a reader of the first segments, up to number `last`, has.
template <class State>
__device__ __forceinline__ void state_behind(const ProgressiveLayout& layout, const ProgressiveHead& head,
                                             const ProgressiveSegment* segments, int last, State* state) {
  for (int u = 0; u < layout.units; ++u) state[u] = static_cast<State>(head.planes[u] != 0 ? head.planes[u] : -1);
  for (int i = 0; i <= last; ++i) --state[segments[i].unit];
}

// By a block: bounds of errors, the selection of errors to measure, and the frame's length. `bounds`: scratch.
__device__ __forceinline__ void choose_errors(const ProgressiveEncode& job, EncodeNote& note, ProgressiveHead& head,
                                              ProgressiveSegment* segments, std::int8_t* states, std::uint64_t* bounds,
                                              std::uint64_t* sums) {
  const ProgressiveLayout& layout = job.shared->layout;
  const int thread = static_cast<int>(threadIdx.x);
  count_read(head, sums, segments);
  if (thread < 32) choose_entries_by_warp(head, segments);
  __syncthreads();
  for (int i = thread; i < head.segments; i += kOrderThreads) {
    if (segments[i].error == 0) continue;
    std::int8_t state[kMostUnits];
    state_behind(layout, head, segments, i, state);
    bounds[i] = bound_of_state(layout, head, state);
  }
  __syncthreads();
  if (thread == 0) {
    const auto magnitude = static_cast<std::uint64_t>(-head.low > head.high ? -head.low : head.high),
               range = static_cast<std::uint64_t>(head.high - head.low);
    const int bits = job.width == 4 ? 24 : 53;
    const double sentinel = job.width == 4
                                ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(note.sentinel)))
                                : std::bit_cast<double>(note.sentinel);
    const bool reaches = note.has_sentinel != 0 &&
                         absolute(sentinel) <= PowerOfTwo(note.exponent).times(static_cast<double>(magnitude) + 1);
    note.conversion = conversion_error(magnitude, bits, reaches);
    LastMeasured last{.read = head.segments_at};
    for (int i = 0; i < head.segments && job.measured; ++i) {
      if (segments[i].error == 0 || !is_measured(bounds[i], range, segments[i].offset, last)) continue;
      last = {bounds[i], segments[i].offset};
      note.measured_segment[note.measures++] = static_cast<std::uint32_t>(i);
    }
  }
  __syncthreads();
  for (int m = thread; m < static_cast<int>(note.measures); m += kOrderThreads)
    state_behind(layout, head, segments, static_cast<int>(note.measured_segment[m]), states + m * kMostUnits);
  std::uint64_t own = 0, all = 0;
  for (int i = thread; i < head.segments; i += kOrderThreads) {
    if (segments[i].error != 0)
      segments[i].error = static_cast<std::uint16_t>(error_code(bounds[i] == 0 ? 0 : bounds[i] + note.conversion));
    own += table_entry_bytes(segments[i]);
  }
  sum_before<kOrderThreads>(own, sums, all);
  for (int i = thread; i < head.segments; i += kOrderThreads) segments[i].offset += all - segments[i].size;
  __syncthreads();
  if (thread != 0) return;
  head.table_bytes = all;
  head.set_offsets(layout, static_cast<std::size_t>(job.width));
  const std::uint64_t least = least_payload_bytes(job.count),
                      total = head.segments == 0
                                  ? head.segments_at
                                  : segments[head.segments - 1].offset + segments[head.segments - 1].size;
  note.payload_bytes = total < least ? least : total;
}

// A block a frame. Frames with at most this many segments are ordered in shared memory.
static __global__ void __launch_bounds__(kOrderThreads)
    order_segments_kernel(const __grid_constant__ ProgressiveEncode job, int most_segments) {
  extern __shared__ __align__(16) std::uint8_t ordered[];
  __shared__ OrderMemory memory;
  FrameHead& frame = job.heads[blockIdx.y];
  if (frame.dead != 0) return;
  EncodeNote& note = *job.notes.of(blockIdx.y);
  const ProgressiveLayout& layout = job.shared->layout;
  ProgressiveHead& head = frame.head;
  ProgressiveSegment* const kept = job.segments.of(blockIdx.y);
  const int thread = static_cast<int>(threadIdx.x);
  const bool fits = head.segments <= most_segments;
  auto* const segments = fits ? reinterpret_cast<ProgressiveSegment*>(ordered) : kept;
  // reuses the memory of pieces' offsets, which is not used yet
  auto* const numbers =
      fits ? reinterpret_cast<std::uint64_t*>(segments + most_segments) : job.locations.of(blockIdx.y);
  static_assert(sizeof(ProgressiveSegment) % 8 == 0);
  if (thread == 0) {
    weigh_units(layout, head, memory.weight);
    memory.first[0] = 0;
    for (int u = 0; u < layout.units; ++u)
      memory.first[u + 1] = memory.first[u] + (head.planes[u] != 0 ? head.planes[u] + 1 : 0);
    head.set_offsets(layout, static_cast<std::size_t>(job.width));
  }
  __syncthreads();
  order_by_block(head, job.segment_bytes.of(blockIdx.y), layout.units, memory, reinterpret_cast<double*>(numbers),
                 segments);
  choose_errors(job, note, head, segments, job.states.of(blockIdx.y), numbers, memory.sums);
  __syncthreads();
  if (note.payload_bytes >= job.value_bytes) {
    __syncthreads();
    if (thread == 0) {
      note.outcome = Outcome::raw;
      frame.dead = 1;
    }
    return;
  }
  SegmentLocation* const locations = job.segment_locations.of(blockIdx.y);
  for (int i = thread; i < head.segments; i += kOrderThreads) {
    locations[segment_index(segments[i].unit, segments[i].plane)] = {segments[i].offset, segments[i].size};
    if (fits) kept[i] = segments[i];
  }
}

// Replaces errors of the table by those measured.
__device__ __forceinline__ void use_measured(const ProgressiveEncode& job, const EncodeNote& note,
                                             const ProgressiveHead& head, ProgressiveSegment* segments) {
  const ProgressiveLayout& layout = job.shared->layout;
  const std::uint32_t last = note.measures != 0 ? note.measured_segment[note.measures - 1] + 1 : 0;
  for (std::uint32_t i = threadIdx.x; i < last; i += kOrderThreads) {
    if (segments[i].error == 0) continue;
    std::uint32_t m = 0;
    while (note.measured_segment[m] < i) ++m;
    const std::int8_t* const then = job.states.of(blockIdx.y) + m * kMostUnits;
    std::int8_t state[kMostUnits];
    for (int u = 0; u < layout.units; ++u) state[u] = then[u];
    for (std::uint32_t k = note.measured_segment[m]; k > i; --k) ++state[segments[k].unit];
    const std::uint32_t code = error_code_by(layout, head, state, then, note.measured[m], note.conversion);
    if (code < segments[i].error) segments[i].error = static_cast<std::uint16_t>(code);
  }
}

// A block a frame, once errors are measured: writes head, table and coarsest grid, and zeros behind the segments.
static __global__ void __launch_bounds__(kOrderThreads)
    write_head_kernel(const __grid_constant__ ProgressiveEncode job) {
  __shared__ std::uint64_t sums[kOrderThreads / 32];
  const FrameHead& frame = job.heads[blockIdx.y];
  if (frame.dead != 0) return;
  const EncodeNote& note = *job.notes.of(blockIdx.y);
  const ProgressiveLayout& layout = job.shared->layout;
  const ProgressiveHead& head = frame.head;
  ProgressiveSegment* const segments = job.segments.of(blockIdx.y);
  std::uint8_t* const to = job.payload(blockIdx.y);
  use_measured(job, note, head, segments);
  __syncthreads();
  std::uint64_t end = head.segments_at;
  if (head.segments != 0) end = segments[head.segments - 1].offset + segments[head.segments - 1].size;
  for (std::uint64_t i = end + threadIdx.x; i < note.payload_bytes; i += kOrderThreads) to[i] = 0;
  const std::size_t root_bytes = layout.roots * static_cast<std::size_t>(job.width);
  const std::uint8_t* const roots =
      job.grids.of(blockIdx.y) + job.grid_at[layout.levels] * static_cast<std::size_t>(job.width);
  for (std::size_t i = threadIdx.x; i < root_bytes; i += kOrderThreads) to[head.roots_at + i] = roots[i];
  const int each = (head.segments + kOrderThreads - 1) / kOrderThreads, first = static_cast<int>(threadIdx.x) * each,
            last = min(first + each, head.segments);
  std::uint64_t own = 0, all = 0;
  for (int i = first; i < last; ++i) own += table_entry_bytes(segments[i]);
  std::uint8_t* entry = to + head.table_at + sum_before<kOrderThreads>(own, sums, all);
  for (int i = first; i < last; ++i) entry = write_table_entry(segments[i], entry);
  if (threadIdx.x == 0) write_head(head, layout, to);
}

}  // namespace pyfilter::cuda
