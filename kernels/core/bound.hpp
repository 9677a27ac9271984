// SPDX-License-Identifier: BSD-3-Clause
// From bounds that depend on the value range to absolute ones (docs/format.md, section 6).
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "core/exp2.hpp"
#include "core/target.hpp"
#include "core/types.hpp"

namespace pyfilter {

// A double that is not above fraction * (high - low): four doubles below the computed product, which is more than the
// roundings can add.
KFN double resolve_relative(double fraction, double low, double high) {
  constexpr double kHighest = std::numeric_limits<double>::max();
  const double range = high - low;
  // where the range overflows, low and high are far from subnormal: their halves are exact
  double bound = range > kHighest ? fraction * (high / 2 - low / 2) * 2 : fraction * range;
  if (bound > kHighest) bound = kHighest;
  const auto bits = std::bit_cast<std::uint64_t>(bound);
  return std::bit_cast<double>(bits > 4 ? bits - 4 : 0);
}

inline constexpr double kHighestPsnr = 6000;  // dB; 10^(-300) of the range

// A fraction of the range that is not above 10^(-psnr / 20). If every error is within it, so is their root mean square.
// The roundings of the quotient, of log2(10) and of the product change the exponent, which is at least -997, by less
// than 2^-41. The roundings of exp2_of are a few 2^-53. 2^-40 is more than their sum.
inline double fraction_of_psnr(double psnr) {
  const double exponent = -(psnr / 20) * 0x1.a934f0979a371p+1;
  return exp2_of(exponent) * (1 - 0x1p-40);
}

// The same request with psnr turned into a relative bound: stages and devices have no bound mode psnr.
inline Request without_psnr(const Request& request) {
  Request same = request;
  if (request.bound_mode == Bound::psnr) {
    same.bound_mode = Bound::relative;
    same.bound = fraction_of_psnr(request.bound);
  }
  return same;
}

}  // namespace pyfilter
