// SPDX-License-Identifier: BSD-3-Clause
// Integer logarithms of counts, for estimates of sizes: the same results on CPU and GPU.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"

namespace pyfilter {

// 64 * log2(n) for n > 0, interpolated linearly within sixteenths of an octave.
inline constexpr std::uint32_t kLogOne = 64;
template <class Count>
KFN std::uint32_t log2_of_count(Count n) {
  // 64 * log2(1 + i / 16)
  constexpr std::uint8_t kParts[17] = {0, 6, 11, 16, 21, 25, 29, 33, 37, 41, 45, 48, 52, 55, 58, 61, 64};
  const int width = bit_width(n);
  const Count scaled = width > 11 ? n >> (width - 11) : n << (11 - width);  // 1024 to 2047
  const std::uint32_t part = static_cast<std::uint32_t>(scaled >> 6) & 15,
                      rest = static_cast<std::uint32_t>(scaled) & 63;
  return static_cast<std::uint32_t>(width - 1) * kLogOne + kParts[part] + (kParts[part + 1] - kParts[part]) * rest / 64;
}

}  // namespace pyfilter
