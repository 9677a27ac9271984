// SPDX-License-Identifier: BSD-3-Clause
// Bounds of integer values (docs/format.md, section 6). Errors of integers are integers, so a bound is rounded down to
// one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/plan.hpp"
#include "core/target.hpp"
#include "core/types.hpp"

namespace pyfilter {

// The largest bound that a frame can have: with it every intermediate result fits the width of codes.
constexpr KFN double highest_integer_bound(std::size_t value_bytes) { return value_bytes == 8 ? 0x1p62 : 0x1p30; }

// The largest usable bound that is at most `asked` >= 0, for values of `value_bytes` bytes; 0: bit-exact.
constexpr KFN double usable_integer_bound(double asked, std::size_t value_bytes) {
  const double highest = highest_integer_bound(value_bytes);
  if (asked >= highest) return highest;
  return asked >= 1 ? static_cast<double>(static_cast<std::uint64_t>(asked)) : 0;
}

// The step for a bound: the widest that keeps it, 2 * bound + 1. From 2^52 on that is no double: one less.
constexpr KFN double integer_step_of(double bound) { return bound < 0x1p52 ? 2 * bound + 1 : 2 * bound; }

// Whether a frame's header may have this bound with this step.
constexpr KFN bool is_integer_step(double bound, double step, std::size_t value_bytes) {
  return bound >= 1 && usable_integer_bound(bound, value_bytes) == bound && step == integer_step_of(bound);
}

// The integer part of fraction * range, in exact arithmetic, at most 2^62; rounded down to a double. fraction > 0.
inline double resolve_integer_relative(double fraction, std::uint64_t range) {
  constexpr double kHighest = 0x1p62;
  const auto bits = std::bit_cast<std::uint64_t>(fraction);
  const int exponent = static_cast<int>(bits >> 52);  // the sign bit is 0
  if (exponent == 0) return 0;                        // a subnormal fraction: the product is below 1
  const auto mantissa = (bits & 0xFFFFFFFFFFFFFull) | 0x10000000000000ull;
  const unsigned __int128 product = static_cast<unsigned __int128>(mantissa) * range;  // at most 117 bits
  const int shift = exponent - 1075;
  if (product == 0 || shift < -117) return 0;
  if (shift >= 62 || (shift >= 0 ? product >> (62 - shift) : product >> -shift >> 62) != 0) return kHighest;
  // bounds of 2^53 and more that are no doubles are rounded down
  auto whole = static_cast<std::uint64_t>(shift < 0 ? product >> -shift : product << shift);
  const int surplus = 11 - std::countl_zero(whole);
  if (surplus > 0) whole = whole >> surplus << surplus;
  return static_cast<double>(whole);
}

// Step and sentinel of a chunk of integers. A fill value of zero needs no sentinel: zeros come back as zeros.
inline StepChoice choose_integer_step(const Request& request, double asked) {
  StepChoice choice;
  choice.bound = usable_integer_bound(asked, dtype_bytes(request.dtype));
  choice.quantise = choice.bound > 0;
  if (!choice.quantise) return choice;
  choice.step = integer_step_of(choice.bound);
  const std::uint64_t fill = request.fill & ~std::uint64_t{0} >> (64 - 8 * dtype_bytes(request.dtype));
  choice.has_sentinel = request.has_fill && fill != 0;
  choice.sentinel = choice.has_sentinel ? fill : 0;
  return choice;
}

// Lowest and highest value as doubles. A value that no double represents is rounded into the range, so that the range
// does not grow. Values are given as differences from the lowest value of the type.
inline void integer_limits(Dtype dtype, std::uint64_t above_low, std::uint64_t above_high, double* low, double* high) {
  const std::size_t width = dtype_bytes(dtype);
  const std::uint64_t middle = is_signed_integer(dtype) ? std::uint64_t{1} << (8 * width - 1) : 0;
  const auto nearest = [middle](std::uint64_t above, bool up) {
    const bool negative = above < middle;
    std::uint64_t magnitude = negative ? middle - above : above - middle;
    const int surplus = 11 - std::countl_zero(magnitude);
    if (surplus <= 0) return negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
    const std::uint64_t grid = std::uint64_t{1} << surplus, rest = magnitude & (grid - 1);
    magnitude -= rest;
    const double below = static_cast<double>(magnitude);
    const double found = rest != 0 && up != negative ? below + static_cast<double>(grid) : below;
    return negative ? -found : found;
  };
  *low = nearest(above_low, true);
  *high = nearest(above_high, false);
}

}  // namespace pyfilter
