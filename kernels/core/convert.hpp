// SPDX-License-Identifier: BSD-3-Clause
// Converts the values of an array one by one, with all threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/fp_environment.hpp"
#include "core/settings.hpp"
#include "core/threads.hpp"

namespace pyfilter {

inline constexpr std::uint64_t kPieceValues = 1 << 16;  // that a thread converts at a time

struct Conversion {
  const std::uint8_t* from;
  std::uint8_t* to;
  std::uint64_t count;
};

// Calls kConvertValue(job, i) for each value i.
template <void (*kConvertValue)(const Conversion& job, std::uint64_t i)>
void convert(const void* from, std::uint64_t count, void* to) {
  Conversion job{static_cast<const std::uint8_t*>(from), static_cast<std::uint8_t*>(to), count};
  const auto piece = [](void* context, std::uint64_t number) {
    const FpEnvironment environment;  // of the thread
    const auto& all = *static_cast<Conversion*>(context);
    const std::uint64_t first = number * kPieceValues, last = std::min(first + kPieceValues, all.count);
    for (std::uint64_t i = first; i < last; ++i) kConvertValue(all, i);
  };
  const std::uint64_t pieces = (count + kPieceValues - 1) / kPieceValues;
  if (pieces == 1) return piece(&job, 0);
  parallel_for(resolved_threads(), pieces, piece, &job);
}

}  // namespace pyfilter
