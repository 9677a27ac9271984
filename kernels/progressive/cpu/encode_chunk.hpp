// SPDX-License-Identifier: BSD-3-Clause
// A whole chunk: step and special values, integers, pieces, their order, errors, bytes. There is one array of integers
// besides the values. Pieces are made in the frame's memory; once all errors are known they replace the integers, and
// are copied to the frame in their order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/error_text.hpp"
#include "core/status.hpp"
#include "core/target.hpp"
#include "core/types.hpp"
#include "progressive/choices.hpp"
#include "progressive/cpu/encode.hpp"
#include "progressive/cpu/measure.hpp"
#include "progressive/cpu/pieces.hpp"
#include "progressive/cpu/scan_values.hpp"
#include "progressive/head.hpp"
#include "progressive/order.hpp"
#include "progressive/specials.hpp"

PYF_BEGIN_TARGET

// Sets the errors of the segments that have one. Returns false if memory runs out.
template <class T, class Int>
inline bool fill_errors(const Points<Int>& q, const ProgressiveHead& head, const KindOf<T>* kind, const void* values,
                        bool measured, std::uint64_t conversion, ProgressiveSegment* segments) {
  const ProgressiveLayout& layout = q.layout;
  const auto range = static_cast<std::uint64_t>(head.high - head.low);
  MeasuredReader readers[kMostMeasures];
  int count = 0, state[kMostUnits];
  const auto begin = [&] {
    for (int u = 0; u < layout.units; ++u) state[u] = head.planes[u] != 0 ? head.planes[u] : -1;
  };
  begin();
  std::uint64_t read = head.segments_at;
  LastMeasured last{.read = read};
  for (int i = 0; i < head.segments; ++i) {
    ProgressiveSegment& segment = segments[i];
    state[segment.unit] = segment.plane;
    read += segment.size;
    if (segment.error == 0) continue;
    const std::uint64_t bound = bound_of_state(layout, head, state);
    if (measured && is_measured(bound, range, read, last)) {
      last = {bound, read};
      MeasuredReader& reader = readers[count++];
      reader.segment = i;
      for (int u = 0; u < layout.units; ++u) reader.state[u] = static_cast<std::int8_t>(state[u]);
    }
    segment.error = static_cast<std::uint16_t>(error_code(bound == 0 ? 0 : bound + conversion));
  }
  if (count == 0) return true;
  if (!measure_errors<T>(q, head, kind, values, conversion, readers, count)) return false;
  begin();
  for (int i = 0, next = 0; next < count; ++i) {
    ProgressiveSegment& segment = segments[i];
    state[segment.unit] = segment.plane;
    const MeasuredReader& reader = readers[next];
    if (i == reader.segment) ++next;
    if (segment.error == 0) continue;
    const std::uint32_t code = error_code_by(layout, head, state, reader.state, reader.error, conversion);
    if (code < segment.error) segment.error = static_cast<std::uint16_t>(code);
  }
  return true;
}

template <class T>
inline Status encode_progressive(const Request& request, double bound, const void* values, FrameInfo* info,
                                 std::uint8_t* out, std::size_t limit, std::size_t* bytes, bool* too_fine) {
  using Traits = ProgressiveTraits<T>;
  using Int = typename Traits::Int;
  const auto no_memory = [] { return fail(pyfilter::Code::no_memory, "no memory for the integers of a chunk"); };
  *bytes = 0;
  *too_fine = false;
  const std::uint64_t count = info->value_count;
  const ValueScan scan = scan_values<T>(request, values, count);
  int exponent = 0;
  if (!choose_exponent<T>(scan.largest, bound, &exponent)) {
    *too_fine = true;
    return kOk;
  }
  const PowerOfTwo step(exponent);
  const KindOf<T> kinds(scan, exponent);
  std::uint64_t missing = 0, verbatim = 0;
  if (scan.special != 0 || kinds.in_reach) count_kinds(values, count, kinds, &missing, &verbatim);
  const KindOf<T>* const kind = missing != 0 || verbatim != 0 ? &kinds : nullptr;

  const Memory<ProgressiveLayout> layout_memory = allocate_memory<ProgressiveLayout>(1);
  if (!layout_memory) return no_memory();
  ProgressiveLayout& layout = *layout_memory.get();
  make_layout(extents_of(info->shape), layout);
  const Memory<Int> integers = allocate_memory<Int>(count);
  if (!integers) return no_memory();
  const Points<Int> q{integers.get(), layout, 0};
  ProgressiveHead head;
  if (!fill_integers<T, Int>(values, count, kind, exponent, q.at, head)) return kOk;  // stored raw
  const Limits<Int> limits{static_cast<Int>(head.low), static_cast<Int>(head.high)};
  choose_bases(q, limits, kind != nullptr, head);
  Int roots[kMostRoots];
  const Extents coarsest = layout.grids[layout.levels];
  for (std::uint64_t i = 0; i < layout.roots; ++i)
    roots[i] = *q.point(layout.levels, i / (coarsest.y * coarsest.x), i / coarsest.x % coarsest.y, i % coarsest.x);

  Pieces pieces(layout, Traits::kIntegerBits + 2, out, limit);
  if (!pieces.tile || !pieces.offsets) return no_memory();
  encode_tiles(pieces, q, limits, head);
  if (pieces.no_memory) return no_memory();
  if (pieces.full) return kOk;
  const Memory<ProgressiveSegment> segments =
      allocate_memory<ProgressiveSegment>(static_cast<std::uint64_t>(head.segments) + 1);
  const Memory<std::uint64_t> sizes = allocate_memory<std::uint64_t>(64 * static_cast<std::uint64_t>(layout.units) + 1);
  if (!segments || !sizes) return no_memory();
  for (int u = 0; u < layout.units; ++u)
    for (int p = -1; p < head.planes[u]; ++p)
      sizes[static_cast<std::size_t>(64 * u + p + 1)] = head.planes[u] != 0 ? pieces.segment_bytes(u, p) : 0;
  order_segments(
      layout, head, [&](int u, int p) { return sizes[static_cast<std::size_t>(64 * u + p + 1)]; }, segments.get());

  // behind the pieces, until its offset in the frame is known
  std::uint8_t* const specials = out + pieces.used;
  const std::uint64_t specials_capacity = limit - pieces.used;
  const auto put_specials = [&](std::uint8_t* to, std::uint64_t capacity) {
    return write_specials<T>(values, kinds, count, layout.grids[0].x, missing, verbatim, to, capacity);
  };
  head.special_bytes = put_specials(specials, specials_capacity);
  head.set_offsets(layout, sizeof(Int));
  choose_entries(segments.get(), head.segments, head.segments_at);
  const auto magnitude = static_cast<std::uint64_t>(std::max(-head.low, head.high));
  const bool reaches = scan.has_sentinel && absolute(static_cast<double>(std::bit_cast<T>(kinds.sentinel))) <=
                                                step.times(static_cast<double>(magnitude) + 1);
  const std::uint64_t conversion = conversion_error(magnitude, Traits::kSignificandBits, reaches);
  if (!fill_errors(q, head, kind, values, request.parameters[0] == 0, conversion, segments.get())) return no_memory();
  head.table_bytes = 0;
  for (int i = 0; i < head.segments; ++i) head.table_bytes += table_entry_bytes(segments[static_cast<std::size_t>(i)]);
  head.set_offsets(layout, sizeof(Int));
  std::uint64_t total = head.segments_at;
  for (int i = 0; i < head.segments; ++i) {
    segments[static_cast<std::size_t>(i)].offset = total;
    total += segments[static_cast<std::size_t>(i)].size;
  }
  const std::uint64_t end = total;
  total = std::max(total, least_payload_bytes(count));
  if (total >= limit) return kOk;
  pieces.bytes = reinterpret_cast<std::uint8_t*>(integers.get());
  std::memcpy(pieces.bytes, out, pieces.used);
  if (head.special_bytes <= specials_capacity)
    std::memmove(out + head.specials_at, specials, static_cast<std::size_t>(head.special_bytes));
  else
    put_specials(out + head.specials_at, head.special_bytes);
  std::memset(out + end, 0, static_cast<std::size_t>(total - end));
  write_head(head, layout, out);
  std::uint8_t* entry = out + head.table_at;
  for (int i = 0; i < head.segments; ++i) entry = write_table_entry(segments[static_cast<std::size_t>(i)], entry);
  for (std::uint64_t i = 0; i < layout.roots; ++i) store_le(out + head.roots_at + sizeof(Int) * i, roots[i]);
  in_parallel(static_cast<std::uint64_t>(head.segments), 1, [&](std::uint64_t i) {
    const ProgressiveSegment& s = segments[i];
    pieces.write_segment(s.unit, s.plane, s.size, out + s.offset);
  });
  info->step = step.times(1.0);
  info->bound = PowerOfTwo(exponent - 1).times(1.0);
  info->has_sentinel = scan.has_sentinel;
  info->sentinel = scan.has_sentinel ? scan.sentinel : 0;
  *bytes = static_cast<std::size_t>(total);
  return kOk;
}

PYF_END_TARGET
