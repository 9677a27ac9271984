// SPDX-License-Identifier: BSD-3-Clause
// Powers of two of IEEE basic operations, the same to the bit wherever they are computed (docs/format.md, section 6).
#pragma once

#include <bit>
#include <cstdint>

#include "core/target.hpp"

namespace pyfilter {

// 2^y as a double, y taken as at least -1100 and at most 1100 (NaN is not allowed). Exact where y is an integer,
// within 1.1 ulp elsewhere. Rounded once more where the result is subnormal.
KFN double exp2_of(double y) {
  y = y < -1100.0 ? -1100.0 : y;
  y = y > 1100.0 ? 1100.0 : y;
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52
  const double t = y + kMagic;
  const double f = y - (t - kMagic);
  double p = 0x1.e9d3fe3952179p-32;
  p = p * f + 0x1.e6063f7217bc6p-28;
  p = p * f + 0x1.b524fae627834p-24;
  p = p * f + 0x1.62bfd47773353p-20;
  p = p * f + 0x1.ffcbfc670dcd4p-17;
  p = p * f + 0x1.430913096fd9fp-13;
  p = p * f + 0x1.5d87fe78a5276p-10;
  p = p * f + 0x1.3b2ab6fba1ddap-7;
  p = p * f + 0x1.c6b08d704a0c2p-5;
  p = p * f + 0x1.ebfbdff82c598p-3;
  p = p * f + 0x1.62e42fefa39efp-1;
  p = p * f + 1.0;
  // 2^n in two factors that are normal numbers: the bits of t end with n
  const std::uint64_t n = std::bit_cast<std::uint64_t>(t) - 0x4338000000000000ull + 2200;  // 1100 to 3300
  const std::uint64_t half = n / 2;
  const double low = std::bit_cast<double>((half - 1100 + 1023) << 52);
  const double high = std::bit_cast<double>((n - half - 1100 + 1023) << 52);
  return p * low * high;
}

}  // namespace pyfilter
