// SPDX-License-Identifier: BSD-3-Clause
// The whole of a chunk: step and special values, coefficients, pieces, their order, errors, bytes.
#pragma once

#include "progressive/encode.hpp"

PYF_BEGIN_TARGET

template <class T>
inline Status encode_progressive(const Request& request, double bound, const void* raw_values, FrameInfo* info,
                                 std::uint8_t* out, std::size_t limit, std::size_t* bytes, bool* too_fine) {
  using Traits = ProgressiveTraits<T>;
  using Int = typename Traits::Int;
  using Code = typename FloatTraits<T>::Code;
  const auto no_memory = [] { return fail(pyfilter::Code::no_memory, "no memory for the integers of a chunk"); };
  *bytes = 0;
  *too_fine = false;
  const std::uint64_t count = info->value_count;
  Memory<T> aligned;
  const T* values = static_cast<const T*>(raw_values);
  if (reinterpret_cast<std::uintptr_t>(raw_values) % alignof(T) != 0) {
    aligned = allocate_memory<T>(count);
    if (!aligned) return no_memory();
    std::memcpy(aligned.get(), raw_values, static_cast<std::size_t>(info->value_bytes));
    values = aligned.get();
  }
  const ValueScan scan = scan_values(request, values, count);
  int exponent = 0;
  if (!choose_exponent<T>(scan.largest, bound, &exponent)) {
    *too_fine = true;
    return kOk;
  }
  const PowerOfTwo step(exponent), scale(-exponent);
  Memory<std::uint8_t> kinds;
  std::uint64_t missing = 0, verbatim = 0;
  const Code sentinel = static_cast<Code>(scan.sentinel);
  const double sentinel_magnitude = absolute(static_cast<double>(std::bit_cast<T>(sentinel)));
  const bool in_range = scan.has_sentinel && sentinel_magnitude <= 2 * scan.largest;
  if (scan.special != 0 || in_range) {
    kinds = allocate_memory<std::uint8_t>(count);
    if (!kinds) return no_memory();
    missing = find_kinds(scan, values, count, kinds.get(), &verbatim);
    for (std::uint64_t i = 0; in_range && i < count; ++i) {  // what would come back as the sentinel
      if (kinds[i] != kPlain || std::bit_cast<Code>(to_value<T>(to_integer(values[i], scale), step)) != sentinel)
        continue;
      kinds[i] = kVerbatim;
      ++verbatim;
    }
    if (missing == 0 && verbatim == 0) kinds.reset();
  }

  const Memory<ProgressiveLayout> layout_room = allocate_memory<ProgressiveLayout>(1);
  if (!layout_room) return no_memory();
  ProgressiveLayout& layout = *layout_room.get();
  make_layout(extents_of(info->shape), layout);
  Hierarchy<Int> h(layout);
  Memory<Int> coefficients = allocate_memory<Int>(layout.coefficients + 1);
  if (!h.memory || !coefficients) return no_memory();
  ProgressiveHead head;
  bool all_special = false;
  if (!fill_integers(values, kinds.get(), exponent, h, head, all_special)) return kOk;  // stored raw
  const Limits<Int> limits{static_cast<Int>(head.low), static_cast<Int>(head.high)};
  for (int k = 0; k < layout.levels; ++k) lower_level(h, k);
  for (std::uint64_t i = 0; i < layout.roots; ++i)
    if (h.root[i] == kMissing<Int>) h.root[i] = i != 0 ? h.root[i - 1] : limits.low;
  for (int u = 0; u < layout.units; ++u) {
    const ProgressiveUnit& unit = layout.unit[u];
    if (kinds && (u == 0 || layout.unit[u - 1].level != unit.level)) raise_level(h, unit.level);
    head.cubic[u] = prefers_cubic(h, unit, limits);
    std::uint64_t any = 0;
    forward_unit(h, unit, head.cubic[u], limits, coefficients.get() + unit.first, &any);
    head.planes[u] = bit_width(any);
    if (head.planes[u] != 0) head.segments += head.planes[u] + 1;
  }

  const Pieces pieces(layout, head);
  Memory<ProgressiveSegment> segments =
      allocate_memory<ProgressiveSegment>(static_cast<std::uint64_t>(head.segments) + 1);
  Memory<std::uint64_t> sizes = allocate_memory<std::uint64_t>(64 * static_cast<std::uint64_t>(layout.units) + 1);
  if (!pieces.bytes || !pieces.offsets || !segments || !sizes) return no_memory();
  if (!encode_units(pieces, coefficients.get())) return no_memory();
  for (int u = 0; u < layout.units; ++u)
    for (int p = -1; p < head.planes[u]; ++p)
      sizes[static_cast<std::size_t>(64 * u + p + 1)] = head.planes[u] != 0 ? pieces.segment_bytes(u, p) : 0;
  order_segments(
      layout, head, [&](int u, int p) { return sizes[static_cast<std::size_t>(64 * u + p + 1)]; }, segments.get());

  head.special_bytes = write_specials(values, kinds.get(), count, layout.grids[0].x, missing, verbatim, nullptr);
  head.place(layout, sizeof(Int));
  choose_entries(segments.get(), head.segments, head.segments_at);
  const bool measured = request.parameters[0] == 0;
  const auto magnitude = static_cast<std::uint64_t>(std::max(-head.low, head.high));
  const auto range = static_cast<std::uint64_t>(head.high - head.low);
  const bool reaches = scan.has_sentinel && sentinel_magnitude <= step.times(static_cast<double>(magnitude) + 1);
  const std::uint64_t conversion = conversion_error(magnitude, Traits::kSignificandBits, reaches);
  int state[kMostUnits];
  for (int u = 0; u < layout.units; ++u) state[u] = head.planes[u] != 0 ? head.planes[u] : -1;
  {
    std::unique_ptr<Hierarchy<Int>> work;
    if (measured && layout.units != 0) {
      work.reset(new (std::nothrow) Hierarchy<Int>(layout));
      if (!work || !work->memory) return no_memory();
    }
    std::uint64_t read = head.segments_at, last = read;
    for (int i = 0; i < head.segments; ++i) {
      ProgressiveSegment& segment = segments[static_cast<std::size_t>(i)];
      state[segment.unit] = segment.plane;
      read += segment.size;
      if (segment.error == 0) continue;
      std::uint64_t error = bound_of_state(layout, head, state);
      if (work && is_measured(error, range, read, last)) {
        const std::uint64_t found = measure_error(h, *work, head, coefficients.get(), kinds.get(), state);
        if (found < error) error = found;
        last = read;
      }
      segment.error = static_cast<std::uint16_t>(error_code(error == 0 ? 0 : error + conversion));
    }
  }
  head.table_bytes = 0;
  for (int i = 0; i < head.segments; ++i) head.table_bytes += table_entry_bytes(segments[static_cast<std::size_t>(i)]);
  head.place(layout, sizeof(Int));
  std::uint64_t total = head.segments_at;
  for (int i = 0; i < head.segments; ++i) {
    segments[static_cast<std::size_t>(i)].offset = total;
    total += segments[static_cast<std::size_t>(i)].size;
  }
  const std::uint64_t end = total;
  total = std::max(total, least_payload_bytes(count));
  if (total >= limit) return kOk;
  std::memset(out + end, 0, static_cast<std::size_t>(total - end));
  write_head(head, layout, segments.get(), out);
  for (std::uint64_t i = 0; i < layout.roots; ++i) store_le(out + head.roots_at + sizeof(Int) * i, h.root[i]);
  write_specials(values, kinds.get(), count, layout.grids[0].x, missing, verbatim, out + head.specials_at);
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
