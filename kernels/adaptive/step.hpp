// SPDX-License-Identifier: BSD-3-Clause
// The step and the offset of a chunk (FORMAT.md), for encoders on CPU and GPU.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/target.hpp"

namespace pyfilter {

// Chooses the step and the offset for values in [low, high]. The error of a decoded value: half a step, the roundings
// to binary32 before and after coding, and the rounding of the decoded value. Returns false if the roundings leave too
// small a step.
KFN bool choose_scale(bool single, double bound, double low, double high, double* offset, double* chosen) {
  const double lowest = low < 0 ? -low : low, highest = high < 0 ? -high : high,
               largest = lowest < highest ? highest : lowest, middle = low / 2 + high / 2;
  *offset = single ? static_cast<double>(static_cast<float>(middle)) : middle;
  int exponent = 0;
  frexp(largest, &exponent);
  const double half_ulp = ldexp(1.0, exponent - (single ? 25 : 54));
  const double usable = bound - 2 * half_ulp;
  if (!(usable > bound / 4)) return false;
  const double reach = (high / 2 - low / 2) / usable;
  if (!(reach < 0x1p20)) return false;
  double step = 2 * usable / (1 + (reach + 2) * 0x1p-22) * (1 - 0x1p-20);
  if (single) step = static_cast<double>(static_cast<float>(step)) * (1 - 0x1p-24);
  if (single) step = static_cast<double>(static_cast<float>(step));
  *chosen = step;
  return step > 4 * static_cast<double>(std::numeric_limits<float>::min()) &&
         1 / step <= std::numeric_limits<double>::max();
}

// The finite values of a part but for its sentinel: their middle is its offset. Of equal values any order gives the
// same.
template <class T>
class PartRange {
 public:
  KFN PartRange(bool has_sentinel, std::uint64_t sentinel)
      : fill_(has_sentinel ? std::bit_cast<T>(static_cast<Bits>(sentinel)) : std::numeric_limits<T>::quiet_NaN()) {}

  KFN void add(T x) {
    const bool counts =
        (x < std::numeric_limits<T>::infinity()) & (x > -std::numeric_limits<T>::infinity()) & (x != fill_);
    low = counts && x < low ? x : low;
    high = counts && x > high ? x : high;
  }
  // 0 without any values; a value of the type.
  KFN double middle() const {
    if (!(low <= high)) return 0;
    const double both = static_cast<double>(low) / 2 + static_cast<double>(high) / 2;
    return static_cast<double>(static_cast<T>(both)) + 0.0;
  }

  T low = std::numeric_limits<T>::infinity(), high = -low;

 private:
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

  T fill_;
};

// A prediction plus a code is hardly ever exactly 0, but zeros must come back as zeros. Whether the zeros are so many
// that they are coded as special values; otherwise they are stored verbatim.
KFN bool has_many_zeros(std::uint64_t zeros, std::uint64_t tiles) { return zeros > 2 * tiles; }

}  // namespace pyfilter
