// SPDX-License-Identifier: BSD-3-Clause
// Partial reading of progressive frames (docs/format.md, section 13): their segments, the error after each, and values
// from the first of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

// Decodes the values [start, stop) of a whole frame.
Status decode_progressive_range(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes,
                                std::uint64_t start, std::uint64_t stop, void* values) noexcept;

// The facts about a frame that a reader needs first.
struct ProgressiveSummary {
  std::uint64_t prefix_bytes = 0;  // of the frame, before its first segment: needed for the table and for decoding
  std::uint32_t segments = 0, levels = 0;
};
// `available` may be less than prefix_bytes, but it must cover the header and `kProgressiveFixedBytes + 100` bytes
// behind it, or the whole frame.
Status progressive_summary(const void* frame, std::size_t available, ProgressiveSummary* summary) noexcept;

// Of each segment, in order: its level, its offset and size in the frame, and two errors. The first is the largest
// error of all values with the segments up to this one, infinite if the table has none. The second is the largest error
// of the grid of `level`, with the segments up to this one of this level and coarser levels. Errors are in the unit of
// the values. `available` must be at least summary.prefix_bytes.
struct ProgressivePart {
  std::uint64_t offset, size;
  double error;
  std::uint32_t level, unit;
};
Status progressive_parts(const void* frame, std::size_t available, std::uint32_t level, ProgressivePart* parts,
                         std::uint32_t count) noexcept;

// Decodes the values of the grid of `level` (0: all; each further level has every second value along each dimension)
// from the first `segments` segments. `frame` must hold the prefix and, at their offsets, the segments that belong to
// the level or a coarser one; other bytes are not read.
Status decode_progressive_part(const void* frame, std::size_t available, std::uint32_t segments, std::uint32_t level,
                               void* values, std::size_t value_bytes) noexcept;

}  // namespace pyfilter
