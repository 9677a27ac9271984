// SPDX-License-Identifier: BSD-3-Clause
// What one CPU level offers for progressive frames: a chunk to its payload and back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

struct ProgressiveLayout;
struct ProgressiveHead;
struct ProgressiveSegment;
struct ProgressiveCoder {
  // `bound` 0: as fine as integers of the dtype's bits are. Fills step, bound and sentinel of `info`. *bytes is 0 where
  // the payload would have `limit` bytes or more; *too_fine where the bound is finer than the integers.
  Status (*encode)(const Request& request, double bound, const void* values, FrameInfo* info, std::uint8_t* out,
                   std::size_t limit, std::size_t* bytes, bool* too_fine);
  // Values of the grid of `level` from the first `count` segments.
  Status (*decode)(const FrameInfo& info, const std::uint8_t* payload, const ProgressiveLayout& layout,
                   const ProgressiveHead& head, const ProgressiveSegment* segments, int count, int level, void* out);
};

}  // namespace pyfilter
