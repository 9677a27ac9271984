// SPDX-License-Identifier: BSD-3-Clause
// Whole and partial progressive frames (progressive/driver.hpp).
#include "progressive/driver.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/api.hpp"
#include "core/error_text.hpp"
#include "core/fp_environment.hpp"
#include "core/settings.hpp"
#include "progressive/codec.hpp"
#include "progressive/head.hpp"
#include "progressive/memory.hpp"
#include "progressive/order.hpp"
#include "registry_table.hpp"

namespace pyfilter {
namespace {

struct Opened {
  FrameInfo info;
  Memory<ProgressiveLayout> layout_memory;
  ProgressiveHead head;
  const std::uint8_t* payload = nullptr;
  Memory<ProgressiveSegment> segments;

  const ProgressiveLayout& layout() const { return layout_memory[0]; }
};

Status open_head(const FrameInfo& info, const std::uint8_t* payload, std::size_t available, Opened* opened) {
  opened->info = info;
  opened->payload = payload;
  opened->layout_memory = allocate_memory<ProgressiveLayout>(1);
  if (!opened->layout_memory) return fail(Code::no_memory, "no memory for the levels of a chunk");
  make_layout(extents_of(info.shape), opened->layout_memory[0]);
  if (info.frame_bytes - info.header_bytes <
      kProgressiveFixedBytes + static_cast<std::uint64_t>(opened->layout().units))
    return fail(Code::corrupt, "corrupt frame: it is too short for its head");
  return read_head(payload, available, opened->layout(), dtype_bytes(info.dtype), &opened->head);
}

// Reads the whole head; `info` says how many bytes follow the frame's header.
Status open_table(const FrameInfo& info, const std::uint8_t* payload, std::size_t available, Opened* opened) {
  PYF_TRY(open_head(info, payload, available, opened));
  const ProgressiveHead& head = opened->head;
  const std::uint64_t payload_bytes = info.frame_bytes - info.header_bytes;
  if (head.segments_at > payload_bytes) return fail(Code::corrupt, "corrupt frame: its head is longer than the frame");
  if (head.segments_at > available)
    return fail(Code::truncated, "truncated frame: %zu bytes behind the header, its head has %llu", available,
                static_cast<unsigned long long>(head.segments_at));
  opened->segments = allocate_memory<ProgressiveSegment>(static_cast<std::uint64_t>(head.segments) + 1);
  if (!opened->segments) return fail(Code::no_memory, "no memory for the segments of a chunk");
  PYF_TRY(read_table(payload, opened->layout(), head, opened->segments.get()));
  std::uint64_t end = head.segments_at;
  if (head.segments != 0) {
    const ProgressiveSegment& last = opened->segments[static_cast<std::size_t>(head.segments - 1)];
    end = last.offset + last.size;
  }
  if (std::max(end, least_payload_bytes(info.value_count)) != payload_bytes)
    return fail(Code::corrupt, "corrupt frame: the segments do not fill the frame");
  return kOk;
}

Status check_codec(const FrameInfo& info) {
  if (info.codec == registry::kCodecProgressive && !info.stored_raw) return kOk;
  return fail(Code::unsupported, "the frame is not a progressive one: codec %d%s", info.codec,
              info.stored_raw ? ", stored raw" : "");
}

Status check_level(const Opened& opened, std::uint32_t level) {
  const auto levels = static_cast<std::uint32_t>(opened.layout().levels);
  if (level > levels) return fail(Code::invalid_argument, "level is %u, allowed: 0 to %u", level, levels);
  if (level != 0 && opened.info.shape.rank > 3)
    return fail(Code::unsupported, "level is %u, but values of rank %d have level 0 only (rank 3 at most)", level,
                opened.info.shape.rank);
  return kOk;
}

}  // namespace

Status decode_progressive_range(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes,
                                std::uint64_t start, std::uint64_t stop, void* values) noexcept {
  Opened opened;
  PYF_TRY(open_table(info, payload, payload_bytes, &opened));
  std::uint64_t end = opened.head.segments_at;
  for (int i = 0; i < opened.head.segments; ++i) end += opened.segments[static_cast<std::size_t>(i)].size;
  for (; end < payload_bytes; ++end)
    if (payload[end] != 0) return fail(Code::corrupt, "corrupt frame: padding behind its segments is not zero");
  const auto& decode = progressive_coder().decode;
  const bool whole = start == 0 && stop == info.value_count;
  Memory<std::uint8_t> all;
  if (!whole) all = allocate_memory<std::uint8_t>(info.value_bytes);
  if (!whole && !all) return fail(Code::no_memory, "no memory for the values of a chunk");
  PYF_TRY(decode(info, payload, opened.layout(), opened.head, opened.segments.get(), opened.head.segments, 0,
                 whole ? values : all.get()));
  const std::size_t width = dtype_bytes(info.dtype);
  if (!whole && start != stop) std::memcpy(values, all.get() + start * width, (stop - start) * width);
  return kOk;
}

Status progressive_summary(const void* frame, std::size_t available, ProgressiveSummary* summary) noexcept {
  FrameInfo info;
  PYF_TRY(frame_info(frame, available, &info));
  PYF_TRY(check_codec(info));
  Opened opened;
  const std::size_t behind = available - static_cast<std::size_t>(info.header_bytes);
  PYF_TRY(open_head(info, static_cast<const std::uint8_t*>(frame) + info.header_bytes, behind, &opened));
  summary->prefix_bytes = info.header_bytes + opened.head.segments_at;
  summary->segments = static_cast<std::uint32_t>(opened.head.segments);
  summary->levels = static_cast<std::uint32_t>(opened.layout().levels);
  if (summary->prefix_bytes > info.frame_bytes)
    return fail(Code::corrupt, "corrupt frame: its head is longer than the frame");
  return kOk;
}

Status progressive_parts(const void* frame, std::size_t available, std::uint32_t level, ProgressivePart* parts,
                         std::uint32_t count) noexcept {
  const FpEnvironment environment;
  FrameInfo info;
  PYF_TRY(frame_info(frame, available, &info));
  PYF_TRY(check_codec(info));
  Opened opened;
  PYF_TRY(open_table(info, static_cast<const std::uint8_t*>(frame) + info.header_bytes,
                     available - static_cast<std::size_t>(info.header_bytes), &opened));
  PYF_TRY(check_level(opened, level));
  const ProgressiveLayout& layout = opened.layout();
  const ProgressiveHead& head = opened.head;
  if (count != static_cast<std::uint32_t>(head.segments))
    return fail(Code::invalid_argument, "room for %u segments, the frame has %d", count, head.segments);
  const auto magnitude = static_cast<std::uint64_t>(std::max(-head.low, head.high));
  const std::uint64_t conversion = conversion_error(magnitude, info.dtype == Dtype::f32 ? 24 : 53, info.has_sentinel);
  int state[kMostUnits];
  for (int u = 0; u < layout.units; ++u) state[u] = head.planes[u] != 0 ? head.planes[u] : -1;
  for (int i = 0; i < head.segments; ++i) {
    const ProgressiveSegment& segment = opened.segments[static_cast<std::size_t>(i)];
    ProgressivePart& part = parts[i];
    part = {info.header_bytes + segment.offset, segment.size, std::numeric_limits<double>::infinity(),
            static_cast<std::uint32_t>(layout.unit[segment.unit].level), segment.unit};
    state[segment.unit] = segment.plane;
    if (level == 0) {
      if (segment.error != 0) part.error = error_of_code(segment.error) * info.step;
    } else {
      const std::uint64_t bound = bound_of_state(layout, head, state, static_cast<int>(level));
      part.error = error_of_code(error_code(bound == 0 ? 0 : bound + conversion)) * info.step;
    }
    // relative to the values written, not those encoded
    if (info.carried_bound > 0) part.error = (part.error + info.carried_bound) * (1 + 0x1p-52);
  }
  return kOk;
}

Status decode_progressive_part(const void* frame, std::size_t available, std::uint32_t segments, std::uint32_t level,
                               void* values, std::size_t value_bytes) noexcept {
  const FpEnvironment environment;
  FrameInfo info;
  PYF_TRY(frame_info(frame, available, &info));
  PYF_TRY(check_codec(info));
  const auto* payload = static_cast<const std::uint8_t*>(frame) + info.header_bytes;
  const std::size_t behind = available - static_cast<std::size_t>(info.header_bytes);
  Opened opened;
  PYF_TRY(open_table(info, payload, behind, &opened));
  PYF_TRY(check_level(opened, level));
  if (segments > static_cast<std::uint32_t>(opened.head.segments))
    return fail(Code::invalid_argument, "%u segments asked for, the frame has %d", segments, opened.head.segments);
  const std::uint64_t wanted = opened.layout().grids[level].count() * dtype_bytes(info.dtype);
  if (wanted != value_bytes)
    return fail(Code::invalid_argument, "a buffer of %zu bytes for values, exactly %llu are decoded", value_bytes,
                static_cast<unsigned long long>(wanted));
  for (std::uint32_t i = 0; i < segments; ++i) {
    const ProgressiveSegment& s = opened.segments[i];
    if (opened.layout().unit[s.unit].level >= static_cast<int>(level) && s.offset + s.size > behind)
      return fail(Code::truncated, "truncated frame: segment %u ends at byte %llu, %zu are here", i,
                  static_cast<unsigned long long>(info.header_bytes + s.offset + s.size), available);
  }
  return progressive_coder().decode(info, payload, opened.layout(), opened.head, opened.segments.get(),
                                    static_cast<int>(segments), static_cast<int>(level), values);
}

}  // namespace pyfilter
