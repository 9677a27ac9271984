// SPDX-License-Identifier: BSD-3-Clause
// What a scan of a chunk's values finds before encoding, and the kinds of values that follow from it: missing values,
// and the largest magnitude of the others, which determines the step (kernels/progressive/FORMAT.md).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/target.hpp"
#include "core/types.hpp"
#include "progressive/values.hpp"
#include "stages/quantize.hpp"

namespace pyfilter {

struct ValueScan {
  bool has_sentinel = false;
  std::uint64_t sentinel = 0;  // bits of the value
  double largest = 0;          // largest magnitude of ordinary values
  std::uint64_t special = 0;   // number of special values
};

// A finite value that occurs repeatedly and is larger than all others by this factor is an undeclared fill value.
inline constexpr double kUndeclaredFactor = 0x1p20;

inline constexpr std::uint8_t kPlain = 0, kMissingValue = 1, kVerbatim = 2;  // kinds of values

}  // namespace pyfilter

PYF_BEGIN_TARGET

// A value, or its bits, at an unaligned address.
template <class T>
KFN T value_at(const void* values, std::uint64_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::uint8_t*>(values) + i * sizeof value, sizeof value);
  return value;
}

// The kind of a value. A value whose integer decodes to the sentinel is verbatim, too.
template <class T>
struct KindOf {
  using Code = typename FloatTraits<T>::Code;
  bool has_sentinel, in_reach;  // whether the sentinel is in reach of the integers
  Code sentinel;
  PowerOfTwo scale, step;

  KFN KindOf(const ValueScan& scan, int exponent)
      : has_sentinel(scan.has_sentinel), sentinel(static_cast<Code>(scan.sentinel)), scale(-exponent), step(exponent) {
    in_reach = has_sentinel && absolute(static_cast<double>(std::bit_cast<T>(sentinel))) <= 2 * scan.largest;
  }
  KFN bool is_missing(T value) const { return has_sentinel && std::bit_cast<Code>(value) == sentinel; }
  // The same without branches, if the sentinel is out of reach of the integers.
  KFN bool is_missing_or_verbatim(T value) const {
    constexpr Code kMagnitude = static_cast<Code>(~Code{0}) >> 1;
    constexpr Code kInfinity = std::bit_cast<Code>(std::numeric_limits<T>::infinity());
    const Code bits = std::bit_cast<Code>(value);
    const int same = static_cast<int>(has_sentinel) & static_cast<int>(bits == sentinel),
              odd = static_cast<int>((bits & kMagnitude) >= kInfinity);
    return (same | odd) != 0;
  }
  KFN std::uint8_t operator()(T value) const {
    constexpr Code kMagnitude = static_cast<Code>(~Code{0}) >> 1;
    constexpr Code kInfinity = std::bit_cast<Code>(std::numeric_limits<T>::infinity());
    const Code bits = std::bit_cast<Code>(value);
    if (has_sentinel && bits == sentinel) return kMissingValue;
    if ((bits & kMagnitude) >= kInfinity) return kVerbatim;
    if (in_reach && std::bit_cast<Code>(to_value<T>(to_integer(value, scale), step)) == sentinel) return kVerbatim;
    return kPlain;
  }
};

PYF_END_TARGET
