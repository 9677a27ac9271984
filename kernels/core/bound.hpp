// SPDX-License-Identifier: BSD-3-Clause
// From a bound relative to the value range to an absolute one (kernels/cuszp2/FORMAT.md, "Once per chunk").
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "core/target.hpp"

namespace pyfilter {

// A double that is not above fraction * (high - low), four steps below what the arithmetic gives: more than its
// roundings.
KFN double resolve_relative(double fraction, double low, double high) {
  constexpr double kHighest = std::numeric_limits<double>::max();
  const double range = high - low;
  // halves of what overflows are far from the subnormal numbers, so they are exact
  double bound = range > kHighest ? fraction * (high / 2 - low / 2) * 2 : fraction * range;
  if (bound > kHighest) bound = kHighest;
  const auto bits = std::bit_cast<std::uint64_t>(bound);
  return std::bit_cast<double>(bits > 4 ? bits - 4 : 0);
}

}  // namespace pyfilter
