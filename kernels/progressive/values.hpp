// SPDX-License-Identifier: BSD-3-Clause
// Values to integers and back (docs/format.md, section 13.3). Integers are multiples of a power of two, so scaling is
// exact, and rounding to the nearest integer is the only error.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/bits.hpp"
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

// 2^exponent as two factors, neither infinite nor 0.
struct PowerOfTwo {
  double first, second;

  KFN explicit PowerOfTwo(int exponent) : first(power(exponent / 2)), second(power(exponent - exponent / 2)) {}
  KFN double times(double x) const { return x * first * second; }

 private:
  KFN static double power(int e) { return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52); }
};

// The e with 2^(e - 1) <= x < 2^e, for a finite x above 0.
KFN int exponent_above(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  if (bits >> 52 != 0) return static_cast<int>(bits >> 52) - 1022;
  return bit_width(bits) - 1074;
}

// The exponent of the step: the finest that the type's integers allow, or the coarsest that the bound allows. False if
// the bound is finer than the integers.
template <class T>
KFN bool choose_exponent(double largest, double bound, int* exponent) {
  using Traits = ProgressiveTraits<T>;
  const int above = largest > 0 ? exponent_above(largest) : 0;
  const int most = above - Traits::kIntegerBits,
            finest = most > Traits::kLowestStep ? most : static_cast<int>(Traits::kLowestStep);
  *exponent = finest;
  if (bound == 0) return true;
  const int widest = exponent_above(bound);  // 2^(widest - 1) <= bound: half of a step of 2^widest
  if (widest < finest) return false;
  const int coarsest = above > finest ? above : finest;
  *exponent = widest < coarsest ? widest : coarsest;
  return true;
}

}  // namespace pyfilter

PYF_BEGIN_TARGET

// The integer nearest to y, ties to even: numbers from 2^kFractionBits on are integers already.
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

// `number`, an integral one, as an integer; NaN and numbers beyond the integers' bits become 0.
template <class T, class Int, class Number>
KFN Int integer_within(Number number) {
  constexpr double kMost = static_cast<double>(Int{1} << ProgressiveTraits<T>::kIntegerBits);
  return static_cast<Int>(absolute(number) <= static_cast<Number>(kMost) ? number : Number{0});
}
// Whether scaling by this factor is exact in binary32, or makes values so small that they round to 0.
KFN bool scales_in_binary32(double whole) { return whole >= 0x1p-126 && whole <= 0x1p127; }

// The same for many values, some of which may not be finite; their results are arbitrary.
template <class T, class Int>
inline void to_integers(const T* values, std::uint64_t count, const PowerOfTwo& scale, Int* out) {
  if constexpr (sizeof(T) == 4) {
    const double whole = scale.first * scale.second;
    if (scales_in_binary32(whole)) {
      const auto factor = static_cast<float>(whole);
      for (std::uint64_t i = 0; i < count; ++i) out[i] = integer_within<T, Int>(nearest_integer(values[i] * factor));
      return;
    }
  }
  for (std::uint64_t i = 0; i < count; ++i)
    out[i] = integer_within<T, Int>(nearest_integer(scale.times(static_cast<double>(values[i]))));
}

template <class T, class Int>
KFN T to_value(Int q, const PowerOfTwo& step) {
  return static_cast<T>(step.times(static_cast<double>(q)));
}

// A value must not decode to the sentinel: the next one towards zero replaces it.
template <class T>
KFN T beside_sentinel(T value, typename FloatTraits<T>::Code sentinel) {
  using Code = typename FloatTraits<T>::Code;
  const auto bits = std::bit_cast<Code>(value);
  return bits == sentinel ? std::bit_cast<T>(static_cast<Code>(bits - 1)) : value;
}

PYF_END_TARGET
