// SPDX-License-Identifier: BSD-3-Clause
// What the encoder decides about the errors of its table (kernels/progressive/FORMAT.md): where there is one, where it
// is measured, and what of a coefficient a reader knows there. The same on the CPU and a GPU.
#pragma once

#include <cstdint>

#include "core/target.hpp"
#include "progressive/head.hpp"

namespace pyfilter {

// Behind which segments the table has an error: where the bytes have grown by a sixteenth, and behind the last.
KFN void choose_entries(ProgressiveSegment* segments, int count, std::uint64_t head_bytes) {
  std::uint64_t read = head_bytes, marked = head_bytes;
  for (int i = 0; i < count; ++i) {
    read += segments[i].size;
    const bool mark = i + 1 == count || read >= marked + marked / 16 + 32;
    segments[i].error = mark ? 1 : 0;
    if (mark) marked = read;
  }
}

// Errors are measured where the bytes have grown by a quarter, down to a part of the range below which bounds are near.
inline constexpr std::uint64_t kMeasuredGrowth = 4, kMeasuredPart = 1 << 11;

KFN bool is_measured(std::uint64_t bound, std::uint64_t range, std::uint64_t read, std::uint64_t read_then) {
  return bound > range / kMeasuredPart && read >= read_then + read_then / kMeasuredGrowth;
}

// What of a coefficient is known once the piece of plane `p` is there.
template <class Int>
KFN Int known_part(Int d, int planes, int p) {
  if (p < 0) return d;
  if (p >= planes) return 0;
  const Int m = d < 0 ? static_cast<Int>(-d) : d, above = static_cast<Int>(m >> (p + 1));
  const Int one = static_cast<Int>(Int{1} << p);
  const Int first = (m >> p) != 0 ? static_cast<Int>(one + (one >> 1)) : Int{0};
  const Int k = above != 0 ? static_cast<Int>((2 * above + 1) << p) : first;
  return d < 0 ? static_cast<Int>(-k) : k;
}

}  // namespace pyfilter
