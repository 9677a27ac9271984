// SPDX-License-Identifier: BSD-3-Clause
// The functions of one CPU level for progressive frames: a chunk to its payload and back.
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
  // `bound` 0: the finest step that integers of the dtype allow. Sets step, bound and sentinel of `info`. *bytes is 0
  // if the payload would have `limit` bytes or more; *too_fine is set if the bound is finer than the integers.
  Status (*encode)(const Request& request, double bound, const void* values, FrameInfo* info, std::uint8_t* out,
                   std::size_t limit, std::size_t* bytes, bool* too_fine);
  // Decodes the values of the grid of `level` from the first `count` segments.
  Status (*decode)(const FrameInfo& info, const std::uint8_t* payload, const ProgressiveLayout& layout,
                   const ProgressiveHead& head, const ProgressiveSegment* segments, int count, int level, void* out);
};

}  // namespace pyfilter
