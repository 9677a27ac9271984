// SPDX-License-Identifier: BSD-3-Clause
// The head of a progressive payload (docs/format.md, section 13.2): ranges, planes of the units, and the table of
// segments in reading order with their errors.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/error_text.hpp"
#include "core/status.hpp"
#include "core/wire.hpp"
#include "progressive/layout.hpp"

namespace pyfilter {

inline constexpr std::size_t kProgressiveFixedBytes = 32;
inline constexpr int kMostSegments = 1 << 16;

// The shortest payload, so that no short frame makes a reader allocate huge memory; zeros behind the segments fill it
// up.
KFN std::uint64_t least_payload_bytes(std::uint64_t values) { return (values + 32767) / 32768; }

struct ProgressiveHead {
  std::uint64_t special_bytes = 0, table_bytes = 0;
  std::int64_t low = 0, high = 0;
  int segments = 0;
  int planes[kMostUnits] = {};
  bool cubic[kMostUnits] = {};
  // From the start of the payload.
  std::uint64_t roots_at = 0, table_at = 0, specials_at = 0, segments_at = 0;

  // Computes the offsets, for integers of `width` bytes.
  KFN void set_offsets(const ProgressiveLayout& layout, std::size_t width) {
    roots_at = kProgressiveFixedBytes + static_cast<std::uint64_t>(layout.units);
    table_at = roots_at + layout.roots * width;
    specials_at = table_at + table_bytes;
    segments_at = specials_at + special_bytes;
  }
  // The plane of a unit's first segment; -2: the unit has none.
  KFN int highest_plane(int u) const { return planes[u] != 0 ? planes[u] - 1 : -2; }
};

struct ProgressiveSegment {
  std::uint64_t offset = 0, size = 0;  // from the start of the payload
  std::uint8_t unit = 0;
  std::int8_t plane = 0;
  std::uint16_t error = 0;  // code of the error after it; 0: the table has none
};

// The error of a code of the table, in steps.
inline double error_of_code(std::uint32_t code) { return std::bit_cast<float>(code << 16); }

inline constexpr std::size_t kMostVarintBytes = 10;
KFN std::size_t varint_bytes(std::uint64_t value) {
  std::size_t bytes = 1;
  for (; value >= 128; value >>= 7) ++bytes;
  return bytes;
}
KFN std::uint8_t* put_varint(std::uint8_t* to, std::uint64_t value) {
  for (; value >= 128; value >>= 7) *to++ = static_cast<std::uint8_t>(value | 128);
  *to++ = static_cast<std::uint8_t>(value);
  return to;
}
// nullptr if the bytes end before the number, or it has more than 9 bytes or a superfluous one.
KFN const std::uint8_t* take_varint(const std::uint8_t* from, const std::uint8_t* end, std::uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 63; shift += 7) {
    if (from >= end) return nullptr;
    const std::uint8_t byte = *from++;
    *value |= std::uint64_t{byte & 127u} << shift;
    if (byte < 128) return byte == 0 && shift != 0 ? nullptr : from;
  }
  return nullptr;
}

KFN std::size_t table_entry_bytes(const ProgressiveSegment& segment) {
  return 1 + varint_bytes(segment.size) + (segment.error != 0 ? 2 : 0);
}

KFN std::uint8_t* write_table_entry(const ProgressiveSegment& segment, std::uint8_t* to) {
  *to++ = static_cast<std::uint8_t>(segment.unit | (segment.error != 0 ? 128 : 0));
  to = put_varint(to, segment.size);
  if (segment.error == 0) return to;
  store_le(to, segment.error);
  return to + 2;
}

// Writes the bytes before the coarsest grid and the table.
KFN void write_head(const ProgressiveHead& head, const ProgressiveLayout& layout, std::uint8_t* out) {
  store_le(out, head.special_bytes);
  store_le(out + 8, head.low);
  store_le(out + 16, head.high);
  store_le(out + 24, static_cast<std::uint32_t>(head.table_bytes));
  store_le(out + 28, static_cast<std::uint16_t>(head.segments));
  out[30] = static_cast<std::uint8_t>(layout.units);
  out[31] = 0;
  for (int u = 0; u < layout.units; ++u)
    out[kProgressiveFixedBytes + static_cast<std::size_t>(u)] =
        static_cast<std::uint8_t>(head.planes[u] | (head.cubic[u] ? 128 : 0));
}

// The faults of a head.
enum class HeadFault { none, specials, range, units, planes, segments };

// Reads the fixed part of the head: kProgressiveFixedBytes and a byte for each unit, for integers of `width` bytes.
KFN HeadFault parse_head(const std::uint8_t* payload, const ProgressiveLayout& layout, std::size_t width,
                         ProgressiveHead* head) {
  head->special_bytes = load_le<std::uint64_t>(payload);
  head->low = load_le<std::int64_t>(payload + 8);
  head->high = load_le<std::int64_t>(payload + 16);
  head->table_bytes = load_le<std::uint32_t>(payload + 24);
  head->segments = load_le<std::uint16_t>(payload + 28);
  const std::int64_t most = std::int64_t{1} << (width == 4 ? 27 : 56);
  if (head->special_bytes >> 40 != 0) return HeadFault::specials;
  if (head->low > head->high || head->low < -most || head->high > most) return HeadFault::range;
  if (payload[30] != layout.units || payload[31] != 0) return HeadFault::units;
  int expected = 0;
  for (int u = 0; u < layout.units; ++u) {
    const std::uint8_t byte = payload[kProgressiveFixedBytes + static_cast<std::size_t>(u)];
    head->planes[u] = byte & 63;
    head->cubic[u] = byte >= 128;
    if ((byte & 64) != 0 || head->planes[u] > (width == 4 ? 29 : 58)) return HeadFault::planes;
    if (head->planes[u] != 0) expected += head->planes[u] + 1;
  }
  if (head->segments != expected) return HeadFault::segments;
  head->set_offsets(layout, width);
  return HeadFault::none;
}

// The same from the available bytes, with an error text.
inline Status read_head(const std::uint8_t* payload, std::size_t available, const ProgressiveLayout& layout,
                        std::size_t width, ProgressiveHead* head) {
  const auto units = static_cast<std::size_t>(layout.units);
  if (available < kProgressiveFixedBytes + units)
    return fail(Code::truncated, "truncated frame: %zu bytes behind the header, a progressive head has at least %zu",
                available, kProgressiveFixedBytes + units);
  const auto bad = [](const char* what) { return fail(Code::corrupt, "corrupt frame: %s", what); };
  switch (parse_head(payload, layout, width, head)) {
    case HeadFault::none:
      break;
    case HeadFault::specials:
      return bad("its section of special values is too long");
    case HeadFault::range:
      return bad("the range of its integers is invalid");
    case HeadFault::units:
      return bad("the number of its units is wrong");
    case HeadFault::planes:
      return bad("the bit planes of a unit are invalid");
    case HeadFault::segments:
      return bad("the number of its segments is wrong");
  }
  return kOk;
}

// Reads an entry of a table: unit, size and error. Returns the start of the next entry, nullptr if the entry is
// invalid.
KFN const std::uint8_t* take_entry(const std::uint8_t* at, const std::uint8_t* end, int units,
                                   ProgressiveSegment* segment) {
  if (at >= end) return nullptr;
  const bool has_error = *at >= 128;
  segment->unit = *at++ & 127;
  at = take_varint(at, end, &segment->size);
  if (at == nullptr || segment->unit >= units || segment->size >> 40 != 0) return nullptr;
  segment->error = 0;
  if (!has_error) return at;
  if (end - at < 2) return nullptr;
  segment->error = load_le<std::uint16_t>(at);
  return segment->error == 0 || segment->error >= 0x7F80 ? nullptr : at + 2;
}

// Reads the table, given the first head->specials_at bytes: put(i, segment) for each valid entry; false if an entry is
// invalid.
template <class Put>
KFN bool parse_table(const std::uint8_t* payload, const ProgressiveLayout& layout, const ProgressiveHead& head,
                     Put&& put) {
  const std::uint8_t *at = payload + head.table_at, *const end = at + head.table_bytes;
  int next[kMostUnits];
  for (int u = 0; u < layout.units; ++u) next[u] = head.highest_plane(u);
  std::uint64_t offset = head.segments_at;
  ProgressiveSegment segment;
  for (int i = 0; i < head.segments; ++i) {
    at = take_entry(at, end, layout.units, &segment);
    if (at == nullptr || next[segment.unit] < -1) return false;
    segment.plane = static_cast<std::int8_t>(next[segment.unit]--);
    segment.offset = offset;
    offset += segment.size;
    put(i, segment);
  }
  return at == end && (head.segments == 0 || segment.error != 0);
}

inline Status read_table(const std::uint8_t* payload, const ProgressiveLayout& layout, const ProgressiveHead& head,
                         ProgressiveSegment* segments) {
  const bool good =
      parse_table(payload, layout, head, [segments](int i, const ProgressiveSegment& s) { segments[i] = s; });
  return good ? kOk : fail(Code::corrupt, "corrupt frame: its table of segments is invalid");
}

}  // namespace pyfilter
