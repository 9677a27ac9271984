// SPDX-License-Identifier: BSD-3-Clause
// The verdict on decoded values (docs/format.md, section 9) in exact arithmetic, fast enough for every input.
// Neighbour: tests/contract/judge.py, which settles the rest (what a relative bound means, exactly) with fractions.
//
// |x - y| against the frame's bound b, floats: with d = fl(x - y), Knuth's TwoSum gives e with x - y = d + e exactly
// (f32 values are f64 values first; the sum cannot underflow, and where d is infinite it is above any bound). Rounding
// keeps the order of numbers and b is a double. So |d| < b means |x - y| < b, |d| > b means |x - y| > b, and for |d| =
// b the sign of e decides. Relative to each value: the limit b * |x| has at most 53 + 53 bits, which the 113 of the
// quadruple type hold, and x - y is exact there: with the signs the same and a limit below |x|, y lies within a factor,
// so both fit; where they do not, the difference is far above the limit and rounding cannot hide it.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "support.hpp"

namespace pyfilter::fuzz {

#if defined(__SIZEOF_FLOAT128__)
using Quad = __float128;
#else
using Quad = long double;  // of 113 bits on aarch64
#endif

inline bool within(double x, double y, double bound) {
  const double d = x - y;
  if (std::fabs(d) != bound) return std::fabs(d) < bound;
  const double z = d - x, e = (x - (d - z)) + (-y - z);
  return d > 0 ? e <= 0 : e >= 0;
}

inline bool within_relative(double x, double y, double bound) {
  // three roundings of at most 2^-53 each, where nothing is subnormal: far from the limit they decide nothing
  const double roughly = bound * std::fabs(x) * (1 - 0x1p-50);
  if (roughly > 0x1p-1000 && std::fabs(x - y) < roughly) return true;
  const Quad d = Quad{x} - Quad{y}, limit = Quad{bound} * Quad{std::fabs(x)};
  return (d < 0 ? -d : d) <= limit;
}

// Floats of 16 bits as their patterns: a sign, the exponent, and the mantissa.
template <int kMantissaBits>
struct Half {
  std::uint16_t bits;

  explicit operator double() const {
    constexpr int kExponents = 1 << (15 - kMantissaBits), kBias = kExponents / 2 - 1;
    const int exponent = (bits & 0x7FFF) >> kMantissaBits, mantissa = bits & ((1 << kMantissaBits) - 1);
    double size =
        std::ldexp(mantissa + (exponent != 0 ? 1 << kMantissaBits : 0), std::max(exponent, 1) - kBias - kMantissaBits);
    if (exponent == kExponents - 1)
      size = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    return (bits & 0x8000) != 0 ? -size : size;
  }
};

template <class Value, class Bits>
void judge_floats(const pyf_request& request, const pyf_info& info, const std::uint8_t* given, const std::uint8_t* back,
                  bool in_part) {
  const auto fill = static_cast<Bits>(request.fill);
  const bool zero_fill = request.has_fill != 0 && static_cast<Bits>(fill << 1) == 0;
  for (std::uint64_t i = 0; i < info.value_count; ++i) {
    const auto x_bits = load<Bits>(given + i * sizeof(Bits)), y_bits = load<Bits>(back + i * sizeof(Bits));
    const auto x = static_cast<double>(std::bit_cast<Value>(x_bits)),
               y = static_cast<double>(std::bit_cast<Value>(y_bits));
    const auto at = static_cast<long long>(i);
    if (x_bits == y_bits) continue;
    require(info.bound > 0, "a bit-exact frame is not", at);
    require(std::isfinite(x) && std::isfinite(y), "a special value changed", at);
    require(!(request.has_fill != 0 && !zero_fill && (x_bits == fill || y_bits == fill)), "the fill value", at);
    if (x == 0 && !in_part) {
      require(y == 0, "a zero became another value", at);
      require(info.pointwise == 0, "a zero lost its sign", at);
      continue;
    }
    if (info.pointwise != 0) {
      require(std::signbit(x) == std::signbit(y), "a value lost its sign", at);
      require(within_relative(x, y, info.bound), "beyond the pointwise relative bound", at);
    } else {
      require(within(x, y, info.bound), "beyond the bound", at);
    }
  }
}

template <class Value>
void judge_integers(const pyf_request& request, const pyf_info& info, const std::uint8_t* given,
                    const std::uint8_t* back) {
  for (std::uint64_t i = 0; i < info.value_count; ++i) {
    const auto x = load<Value>(given + i * sizeof(Value)), y = load<Value>(back + i * sizeof(Value));
    const auto at = static_cast<long long>(i);
    if (x == y) continue;
    const __int128 d = static_cast<__int128>(x) - y;
    require((d < 0 ? -d : d) <= static_cast<__int128>(info.bound), "beyond the bound of integers", at);
    const auto fill = static_cast<Value>(request.fill);
    require(!(request.has_fill != 0 && fill != 0 && (x == fill || y == fill)), "the fill value", at);
  }
}

// `in_part`: values of the first segments of a progressive frame, whose bound info.bound is.
inline void judge(const pyf_request& request, const pyf_info& info, const std::uint8_t* given, const std::uint8_t* back,
                  bool in_part = false) {
  if (!in_part && (request.bound_mode == 1 || request.bound_mode == 3))
    require(info.bound <= request.bound, "the frame's bound is above the one asked for");
  if (request.bound_mode == 0 && info.codec != kProgressive)
    require(info.bound == 0, "a bound where none was asked for");
  require(info.pointwise == 0 || request.bound_mode == 3, "a pointwise bound where none was asked for");
  switch (info.dtype) {
    case 1:
      return judge_floats<float, std::uint32_t>(request, info, given, back, in_part);
    case 2:
      return judge_floats<double, std::uint64_t>(request, info, given, back, in_part);
    case 3:
      return judge_integers<std::int8_t>(request, info, given, back);
    case 4:
      return judge_integers<std::uint8_t>(request, info, given, back);
    case 5:
      return judge_integers<std::int16_t>(request, info, given, back);
    case 6:
      return judge_integers<std::uint16_t>(request, info, given, back);
    case 7:
      return judge_integers<std::int32_t>(request, info, given, back);
    case 8:
      return judge_integers<std::uint32_t>(request, info, given, back);
    case kFloat16:
      return judge_floats<Half<10>, std::uint16_t>(request, info, given, back, in_part);
    case kBfloat16:
      return judge_floats<Half<7>, std::uint16_t>(request, info, given, back, in_part);
    case 9:
      return judge_integers<std::int64_t>(request, info, given, back);
    default:
      return judge_integers<std::uint64_t>(request, info, given, back);
  }
}

}  // namespace pyfilter::fuzz
