// SPDX-License-Identifier: BSD-3-Clause
// What the encoder decides about the errors of its table (kernels/progressive/FORMAT.md): where there is one, where it
// is measured, and what of a coefficient a reader knows there. The same on the CPU and a GPU.
#pragma once

#include <cstdint>

#include "core/target.hpp"
#include "progressive/head.hpp"

namespace pyfilter {

// Behind which segments the table has an error: where the bytes have grown by a sixteenth, and behind the last.
KFN std::uint64_t next_entry(std::uint64_t marked) { return marked + marked / 16 + 32; }
KFN void choose_entries(ProgressiveSegment* segments, int count, std::uint64_t head_bytes) {
  std::uint64_t read = head_bytes, marked = head_bytes;
  for (int i = 0; i < count; ++i) {
    read += segments[i].size;
    const bool mark = i + 1 == count || read >= next_entry(marked);
    segments[i].error = mark ? 1 : 0;
    if (mark) marked = read;
  }
}

// Errors are measured between half of the range and a part of it below which bounds are near, where the bound is a
// third of the one of the last time and the bytes have grown by a quarter. Those of readers between follow from the
// next one (error_by_next()).
inline constexpr std::uint64_t kMeasuredFall = 3, kMeasuredGrowth = 4, kMeasuredPart = 1 << 11;
// of a frame: 3^7 > 2^10
inline constexpr int kMostMeasures = 7;

struct LastMeasured {
  std::uint64_t bound = ~std::uint64_t{0}, read;
};

KFN bool is_measured(std::uint64_t bound, std::uint64_t range, std::uint64_t read, const LastMeasured& last) {
  return bound <= range / 2 && bound > range / kMeasuredPart && bound <= last.bound / kMeasuredFall &&
         read >= last.read + last.read / kMeasuredGrowth;
}

// What of a coefficient is known once the piece of plane `p` is there, which is one of its unit's; below 0 all is.
template <class Int>
struct KnownPart {
  Int one, half, above;

  KFN explicit KnownPart(int p) : one(p < 0 ? Int{0} : static_cast<Int>(Int{1} << p)) {
    half = static_cast<Int>(one + (one >> 1));
    above = p < 0 ? static_cast<Int>(~Int{0}) : static_cast<Int>(~(2 * one - 1));
  }
  KFN Int operator()(Int d) const {
    const Int sign = static_cast<Int>(d >> (8 * sizeof(Int) - 1)), m = static_cast<Int>((d ^ sign) - sign);
    const Int older = m & above, first = (m & one) != 0 ? half : Int{0}, k = older != 0 ? older | one : first;
    return static_cast<Int>((k ^ sign) - sign);
  }
};
// The same of any plane: below 0 all is known, from `planes` on nothing.
template <class Int>
KFN Int known_part(Int d, int planes, int p) {
  return p >= planes ? Int{0} : KnownPart<Int>(p)(d);
}

}  // namespace pyfilter
