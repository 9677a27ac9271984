// SPDX-License-Identifier: BSD-3-Clause
// Scans a chunk's values before encoding (progressive/scan.hpp). Threads take parts of the values.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <limits>

#include "core/target.hpp"
#include "core/types.hpp"
#include "progressive/memory.hpp"
#include "progressive/scan.hpp"
#include "stages/quantize.hpp"

PYF_BEGIN_TARGET

// Calls work(first, last) for parts of the values.
template <class Work>
inline void each_part(std::uint64_t count, const Work& work) {
  constexpr std::uint64_t kPart = 1 << 16;
  in_parallel((count + kPart - 1) / kPart, 1, [&](std::uint64_t part) {
    const std::uint64_t first = part * kPart;
    work(first, count - first < kPart ? count : first + kPart);
  });
}

// What a value of a largest magnitude that is far from all others occurs as.
template <class Code>
struct FarValues {
  Code second = 0;  // the next magnitude
  std::uint64_t positive = 0, negative = 0;
};
template <class T, class Code>
inline FarValues<Code> look_beside(const void* values, std::uint64_t count, Code largest) {
  constexpr Code kMagnitude = static_cast<Code>(~Code{0}) >> 1;
  std::atomic<Code> second{0};
  std::atomic<std::uint64_t> positive{0}, negative{0};
  each_part(count, [&](std::uint64_t first, std::uint64_t last) {
    Code own = 0, above = 0, below = 0;
    for (std::uint64_t i = first; i < last; ++i) {
      const Code bits = value_at<Code>(values, i), magnitude = bits & kMagnitude;
      own = magnitude == largest || magnitude <= own ? own : magnitude;
      above += bits == largest ? 1 : 0;
      below += bits == (largest | ~kMagnitude) ? 1 : 0;
    }
    raise_to(second, own);
    positive += above;
    negative += below;
  });
  return {second, positive, negative};
}

template <class T>
inline ValueScan scan_values(const Request& request, const void* values, std::uint64_t count) {
  using Code = typename FloatTraits<T>::Code;
  constexpr Code kMagnitude = static_cast<Code>(~Code{0}) >> 1;
  constexpr Code kInfinity = std::bit_cast<Code>(std::numeric_limits<T>::infinity());
  ValueScan scan;
  const bool has_fill = request.has_fill && (static_cast<Code>(request.fill) & kMagnitude) != 0;
  const Code fill = static_cast<Code>(request.fill), any_fill = has_fill ? 1 : 0;
  std::atomic<Code> most{0};  // magnitude among finite values other than the fill value
  std::atomic<std::uint64_t> special{0};
  each_part(count, [&](std::uint64_t first, std::uint64_t last) {
    Code own = 0, odd_ones = 0;
    for (std::uint64_t i = first; i < last; ++i) {  // branch-free, so that the loop vectorises
      const Code bits = value_at<Code>(values, i), magnitude = bits & kMagnitude;
      const Code odd = static_cast<Code>(magnitude >= kInfinity) | (static_cast<Code>(bits == fill) & any_fill);
      const Code ordinary = magnitude & (odd - 1);
      own = ordinary > own ? ordinary : own;
      odd_ones += odd;
    }
    raise_to(most, own);
    special += odd_ones;
  });
  Code largest = most, undeclared = 0;
  const auto value_of = [](Code magnitude) { return static_cast<double>(std::bit_cast<T>(magnitude)); };
  bool others_near = false;  // most chunks need no second scan
  for (std::uint64_t k = 0; k < 64 && k < count; ++k) {
    const Code magnitude = value_at<Code>(values, count / 64 * k) & kMagnitude;
    others_near = others_near || (magnitude < largest && value_of(magnitude) > value_of(largest) / kUndeclaredFactor);
  }
  if (!has_fill && special == 0 && largest != 0 && !others_near) {
    const FarValues<Code> far = look_beside<T>(values, count, largest);
    if (value_of(largest) / kUndeclaredFactor > value_of(far.second) && (far.positive == 0) != (far.negative == 0) &&
        far.positive + far.negative >= 2) {
      undeclared = far.positive != 0 ? largest : (largest | ~kMagnitude);
      largest = far.second;
      special = far.positive + far.negative;
    }
  }
  scan.largest = value_of(largest);
  scan.special = special;
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

// Counts missing and verbatim values.
template <class T>
inline void count_kinds(const void* values, std::uint64_t count, const KindOf<T>& kind, std::uint64_t* missing,
                        std::uint64_t* verbatim) {
  std::atomic<std::uint64_t> counts[3] = {};
  each_part(count, [&](std::uint64_t first, std::uint64_t last) {
    std::uint32_t own[3] = {0, 0, 0};
    if (kind.in_reach) {
      for (std::uint64_t i = first; i < last; ++i) ++own[kind(value_at<T>(values, i))];
    } else {
      std::uint32_t alike = 0, special = 0;
      for (std::uint64_t i = first; i < last; ++i) {
        const T value = value_at<T>(values, i);
        alike += kind.is_missing(value) ? 1 : 0;
        special += kind.is_missing_or_verbatim(value) ? 1 : 0;
      }
      own[kMissingValue] = alike;
      own[kVerbatim] = special - alike;
    }
    counts[kMissingValue] += own[kMissingValue];
    counts[kVerbatim] += own[kVerbatim];
  });
  *missing = counts[kMissingValue];
  *verbatim = counts[kVerbatim];
}

PYF_END_TARGET
