// SPDX-License-Identifier: BSD-3-Clause
// The encoder's choices about the error table (kernels/progressive/FORMAT.md): which segments have an error, which
// errors are measured, and a reader's knowledge of a coefficient there. The same on CPU and GPU.
#pragma once

#include <cstdint>

#include "core/target.hpp"
#include "progressive/head.hpp"

namespace pyfilter {

// Segments with an error in the table: wherever the bytes have grown by a sixteenth, and the last.
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

// Errors are measured from half of the range down to the fraction of the range below which bounds are near. The next
// measurement is made when the bound has fallen to a third and the bytes have grown by a quarter. Errors of segments in
// between follow from the next measurement (error_by_next()).
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

// A reader's value of a coefficient with the pieces down to plane `p` of its unit; below 0 the exact value.
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
// The same for any plane: below 0 the exact value, from `planes` on 0.
template <class Int>
KFN Int known_part(Int d, int planes, int p) {
  return p >= planes ? Int{0} : KnownPart<Int>(p)(d);
}

}  // namespace pyfilter
