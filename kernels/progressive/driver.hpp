// SPDX-License-Identifier: BSD-3-Clause
// Reading progressive frames in part (docs/format.md, section 13): which segments there are, what error they leave, and
// values from the first of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

// The values [start, stop) of a whole frame.
Status decode_progressive_range(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes,
                                std::uint64_t start, std::uint64_t stop, void* values) noexcept;

// What a reader needs to know of a frame.
struct ProgressiveSummary {
  std::uint64_t prefix_bytes = 0;  // of the frame, before its first segment: all that this and decoding need of it
  std::uint32_t segments = 0, levels = 0;
};
// `available` may be less than prefix_bytes, but it must hold the header and `kProgressiveFixedBytes + 100` bytes
// behind it, or the whole frame.
Status progressive_summary(const void* frame, std::size_t available, ProgressiveSummary* summary) noexcept;

// Of each segment, in order: its level, its place in the frame (offset, size), and the largest error, in the unit of
// the values, of all values when it and all before it are there (infinite where the table has none), and of the values
// of the grid of `level` when those of them that belong to that level or a coarser one are there. `available` must be
// at least summary.prefix_bytes.
struct ProgressivePart {
  std::uint64_t offset, size;
  double error;
  std::uint32_t level, unit;
};
Status progressive_parts(const void* frame, std::size_t available, std::uint32_t level, ProgressivePart* parts,
                         std::uint32_t count) noexcept;

// Values of the grid of `level` (0: all of them; each further one has every second value of the one before along each
// dimension) from the first `segments` segments. `frame` must hold the prefix and those of the segments that belong to
// the level or a coarser one, at their places; other bytes are not read.
Status decode_progressive_part(const void* frame, std::size_t available, std::uint32_t segments, std::uint32_t level,
                               void* values, std::size_t value_bytes) noexcept;

}  // namespace pyfilter
