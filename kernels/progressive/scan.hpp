// SPDX-License-Identifier: BSD-3-Clause
// A scan of a chunk's values before encoding: missing values, and the largest magnitude of the others, which determines
// the step (kernels/progressive/FORMAT.md).
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

template <class T>
inline ValueScan scan_values(const Request& request, const void* values, std::uint64_t count) {
  using Code = typename FloatTraits<T>::Code;
  constexpr Code kMagnitude = static_cast<Code>(~Code{0}) >> 1;
  constexpr Code kInfinity = std::bit_cast<Code>(std::numeric_limits<T>::infinity());
  ValueScan scan;
  const bool has_fill = request.has_fill && (static_cast<Code>(request.fill) & kMagnitude) != 0;
  const Code fill = static_cast<Code>(request.fill);
  // the two largest magnitudes among finite values other than the fill value
  Code largest = 0, special = 0;
  const Code any_fill = has_fill ? 1 : 0;
  for (std::uint64_t i = 0; i < count; ++i) {  // branch-free, so that the loop vectorises
    const Code bits = value_at<Code>(values, i), magnitude = bits & kMagnitude;
    const Code odd = static_cast<Code>(magnitude >= kInfinity) | (static_cast<Code>(bits == fill) & any_fill);
    const Code ordinary = magnitude & (odd - 1);
    largest = ordinary > largest ? ordinary : largest;
    special += odd;
  }
  Code undeclared = 0;
  const auto value_of = [](Code magnitude) { return static_cast<double>(std::bit_cast<T>(magnitude)); };
  bool others_near = false;  // most chunks need no second scan
  for (std::uint64_t k = 0; k < 64 && k < count; ++k) {
    const Code magnitude = value_at<Code>(values, count / 64 * k) & kMagnitude;
    others_near = others_near || (magnitude < largest && value_of(magnitude) > value_of(largest) / kUndeclaredFactor);
  }
  if (!has_fill && special == 0 && largest != 0 && !others_near) {
    Code second = 0, positive = 0, negative = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const Code bits = value_at<Code>(values, i), magnitude = bits & kMagnitude;
      second = magnitude == largest || magnitude <= second ? second : magnitude;
      positive += bits == largest ? 1 : 0;
      negative += bits == (largest | ~kMagnitude) ? 1 : 0;
    }
    const auto top = static_cast<double>(std::bit_cast<T>(largest)),
               next = static_cast<double>(std::bit_cast<T>(second));
    if (top / kUndeclaredFactor > next && (positive == 0) != (negative == 0) && positive + negative >= 2) {
      undeclared = positive != 0 ? largest : (largest | ~kMagnitude);
      largest = second;
      special = positive + negative;
    }
  }
  scan.largest = static_cast<double>(std::bit_cast<T>(largest));
  scan.special = static_cast<std::uint64_t>(special);
  // a finite fill value is always the sentinel, so that no value becomes it; else the sentinel found
  if (has_fill && (fill & kMagnitude) < kInfinity) {
    scan.has_sentinel = true;
    scan.sentinel = fill;
    return scan;
  }
  if (special == 0) return scan;
  scan.has_sentinel = true;
  Code sentinel = undeclared;
  bool found = undeclared != 0;
  for (std::uint64_t i = 0; i < count && !found && has_fill; ++i) {
    sentinel = value_at<Code>(values, i);
    found = sentinel == fill;
  }
  for (std::uint64_t i = 0; i < count && !found; ++i) {
    sentinel = value_at<Code>(values, i);
    found = (sentinel & kMagnitude) >= kInfinity;
  }
  scan.sentinel = sentinel;
  return scan;
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

// Counts missing and verbatim values.
template <class T>
inline void count_kinds(const void* values, std::uint64_t count, const KindOf<T>& kind, std::uint64_t* missing,
                        std::uint64_t* verbatim) {
  std::uint64_t counts[3] = {0, 0, 0};
  if (!kind.in_reach) {
    constexpr std::uint64_t kPart = 1 << 16;
    for (std::uint64_t first = 0; first < count; first += kPart) {
      const std::uint64_t last = count - first < kPart ? count : first + kPart;
      std::uint32_t alike = 0, special = 0;
      for (std::uint64_t i = first; i < last; ++i) {
        const T value = value_at<T>(values, i);
        alike += kind.is_missing(value) ? 1 : 0;
        special += kind.is_missing_or_verbatim(value) ? 1 : 0;
      }
      counts[kMissingValue] += alike;
      counts[kVerbatim] += special - alike;
    }
  } else {
    for (std::uint64_t i = 0; i < count; ++i) ++counts[kind(value_at<T>(values, i))];
  }
  *missing = counts[kMissingValue];
  *verbatim = counts[kVerbatim];
}

PYF_END_TARGET
