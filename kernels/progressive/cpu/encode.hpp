// SPDX-License-Identifier: BSD-3-Clause
// The integers of a chunk: from its values, and predictions for missing values.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/target.hpp"
#include "progressive/cpu/points.hpp"
#include "progressive/head.hpp"
#include "progressive/memory.hpp"
#include "progressive/scan.hpp"
#include "progressive/values.hpp"

PYF_BEGIN_TARGET

// Integers of all values; special values get kMissing. `kind` is nullptr if all values are ordinary. Sets the range of
// `head`. Returns false if the largest value would not decode to a finite one.
template <class T, class Int>
inline bool fill_integers(const void* values, std::uint64_t count, const KindOf<T>* kind, int exponent, Int* to,
                          ProgressiveHead& head) {
  constexpr std::uint64_t kPart = 1024;
  const PowerOfTwo scale(-exponent), step(exponent);
  std::atomic<std::int64_t> low{INT64_MAX}, high{INT64_MIN};
  in_parallel((count + kPart - 1) / kPart, 16, [&](std::uint64_t number) {
    const std::uint64_t first = number * kPart, n = std::min(kPart, count - first);
    alignas(64) T part[kPart];
    Int* const out = to + first;
    std::memcpy(part, static_cast<const std::uint8_t*>(values) + first * sizeof(T),
                static_cast<std::size_t>(n) * sizeof(T));
    to_integers(part, n, scale, out);
    Int lowest = std::numeric_limits<Int>::max(), highest = std::numeric_limits<Int>::min();
    if (kind != nullptr && !kind->in_reach) {
      const KindOf<T> k = *kind;
      for (std::uint64_t i = 0; i < n; ++i) out[i] = k.is_missing_or_verbatim(part[i]) ? kMissing<Int> : out[i];
    } else if (kind != nullptr) {
      for (std::uint64_t i = 0; i < n; ++i)
        if ((*kind)(part[i]) != kPlain) out[i] = kMissing<Int>;
    }
    if (kind == nullptr) {
      for (std::uint64_t i = 0; i < n; ++i) {
        const Int q = out[i];
        lowest = q < lowest ? q : lowest;
        highest = q > highest ? q : highest;
      }
    } else {
      // kMissing is the lowest integer, so kMissing - 1 is the highest of all as an unsigned number
      using Unsigned = std::make_unsigned_t<Int>;
      constexpr auto kLeast = static_cast<Unsigned>(kMissing<Int>);
      Unsigned least = ~Unsigned{0};
      for (std::uint64_t i = 0; i < n; ++i) {
        const auto above = static_cast<Unsigned>(static_cast<Unsigned>(out[i]) - kLeast - 1);
        least = above < least ? above : least;
        highest = out[i] > highest ? out[i] : highest;
      }
      if (least != ~Unsigned{0}) lowest = static_cast<Int>(static_cast<Unsigned>(least + 1 + kLeast));
    }
    if (lowest > highest) return;
    lower_to(low, std::int64_t{lowest});
    raise_to(high, std::int64_t{highest});
  });
  const bool all_special = low > high;
  head.low = all_special ? 0 : low.load();
  head.high = all_special ? 0 : high.load();
  const double most = static_cast<double>(std::numeric_limits<T>::max());
  return absolute(step.times(static_cast<double>(head.low))) <= most &&
         absolute(step.times(static_cast<double>(head.high))) <= most;
}

// Chooses the basis of each unit and, if points are missing, replaces them by their predictions.
template <class Int>
inline void choose_bases(const Points<Int>& q, const Limits<Int>& limits, bool some_missing, ProgressiveHead& head) {
  const ProgressiveLayout& layout = q.layout;
  const Extents g = layout.grids[layout.levels];
  Int before = limits.low;
  for (std::uint64_t i = 0; i < layout.roots; ++i) {
    Int& root = *q.point(layout.levels, i / (g.y * g.x), i / g.x % g.y, i % g.x);
    if (root == kMissing<Int>) root = before;
    before = root;
  }
  for (int u = 0; u < layout.units; ++u) {
    head.cubic[u] = prefers_cubic(q, layout.unit[u], limits);
    if (some_missing) fill_missing(q, layout.unit[u], head.cubic[u], limits);
  }
}

PYF_END_TARGET
