// SPDX-License-Identifier: BSD-3-Clause
// Values to integers and back (docs/format.md, section 13.3): multiples of a power of two, so that scaling is exact and
// the only error is that of rounding to the nearest integer.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/target.hpp"
#include "progressive/transform.hpp"
#include "stages/quantize.hpp"

namespace pyfilter {

template <class T>
struct ProgressiveTraits;
template <>
struct ProgressiveTraits<float> {
  using Int = std::int32_t;
  static constexpr int kIntegerBits = 27, kLowestStep = -149, kSignificandBits = 24;
};
template <>
struct ProgressiveTraits<double> {
  using Int = std::int64_t;
  static constexpr int kIntegerBits = 56, kLowestStep = -1073, kSignificandBits = 53;
};

// 2^exponent in two factors, neither of which is infinite or 0.
struct PowerOfTwo {
  double first, second;

  explicit PowerOfTwo(int exponent) : first(power(exponent / 2)), second(power(exponent - exponent / 2)) {}
  KFN double times(double x) const { return x * first * second; }

 private:
  static double power(int e) { return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52); }
};

// e with 2^(e - 1) <= x < 2^e, of a finite x above 0.
inline int exponent_above(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  if (bits >> 52 != 0) return static_cast<int>(bits >> 52) - 1022;
  return 64 - __builtin_clzll(bits) - 1074;
}

}  // namespace pyfilter

PYF_BEGIN_TARGET

// The integer nearest to y, ties to even: numbers of 2^kFractionBits and more are integers already.
template <class T>
KFN T nearest_integer(T y) {
  constexpr T kWhole = static_cast<T>(std::uint64_t{1} << FloatTraits<T>::kFractionBits);
  const T shift = y < 0 ? -kWhole : kWhole, rounded = (y + shift) - shift;
  return absolute(y) < kWhole ? rounded : y;
}

// The integer nearest to x / step; `scale` is 1 / step. |x / step| is at most 2^kIntegerBits.
KFN std::int32_t to_integer(float x, const PowerOfTwo& scale) {
  return static_cast<std::int32_t>(nearest_integer(scale.times(static_cast<double>(x))));
}
KFN std::int64_t to_integer(double x, const PowerOfTwo& scale) {
  return static_cast<std::int64_t>(nearest_integer(scale.times(x)));
}

// The same of many values, not all of which need be finite: what others become means nothing.
template <class T, class Int>
inline void to_integers(const T* values, std::uint64_t count, const PowerOfTwo& scale, Int* out) {
  constexpr double kMost = static_cast<double>(Int{1} << ProgressiveTraits<T>::kIntegerBits);
  if constexpr (sizeof(T) == 4) {
    const double whole = scale.first * scale.second;
    if (whole >= 0x1p-126 && whole <= 0x1p127) {  // exact in binary32, or so small that it rounds to 0
      const auto factor = static_cast<float>(whole);
      for (std::uint64_t i = 0; i < count; ++i) {
        const float y = nearest_integer(values[i] * factor);
        out[i] = static_cast<Int>(absolute(y) <= static_cast<float>(kMost) ? y : 0.0f);
      }
      return;
    }
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const double y = nearest_integer(scale.times(static_cast<double>(values[i])));
    out[i] = static_cast<Int>(absolute(y) <= kMost ? y : 0.0);
  }
}

template <class T, class Int>
KFN T to_value(Int q, const PowerOfTwo& step) {
  return static_cast<T>(step.times(static_cast<double>(q)));
}

// A value must not come back as the sentinel: the next one towards zero does.
template <class T>
KFN T beside_sentinel(T value, typename FloatTraits<T>::Code sentinel) {
  using Code = typename FloatTraits<T>::Code;
  const auto bits = std::bit_cast<Code>(value);
  return bits == sentinel ? std::bit_cast<T>(static_cast<Code>(bits - 1)) : value;
}

PYF_END_TARGET
