// SPDX-License-Identifier: BSD-3-Clause
// Readers whose errors are measured, and the memory that a block needs for them (measured_block.hpp).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/target.hpp"
#include "progressive/choices.hpp"
#include "progressive/cpu/measured_finest.hpp"
#include "progressive/cpu/measured_runs.hpp"
#include "progressive/cpu/points.hpp"
#include "progressive/scan.hpp"

namespace pyfilter {

// A reader: it has the segments of unit u down to plane state[u].
struct MeasuredReader {
  int segment = 0;  // the last one
  std::int8_t state[kMostUnits] = {};
  std::atomic<std::uint64_t> error{0};  // the largest one of an ordinary value
};

}  // namespace pyfilter

PYF_BEGIN_TARGET

inline constexpr std::uint64_t kMostEnds = 3;  // of a row: points whose neighbours the edge changes

template <class Int>
struct MeasuredSizes {
  std::uint64_t runs = 0, numbers = 0;
  std::size_t bytes() const {
    return static_cast<std::size_t>(runs * sizeof(MeasuredRun<Int>) + numbers * sizeof(Int));
  }
};

// Places of a row of points of a grid.
template <class T, class Int>
inline std::uint64_t row_entries(const ProgressiveLayout& layout, int level, std::uint64_t points) {
  return level == 1 && FinestGrid<T, Int>::serves(layout) ? (points + kChunk - 1) / kChunk * kChunk : points;
}

template <class T, class Int>
inline MeasuredSizes<Int> measured_sizes(const ProgressiveLayout& layout, Extents block) {
  using Finest = FinestGrid<T, Int>;
  constexpr std::uint64_t kPadding = kChunkPadding;
  MeasuredSizes<Int> total;
  std::uint64_t side[3] = {block.z, block.y, block.x}, made[3] = {0, 0, 0};
  for (int k = 0; k < layout.levels; ++k) {
    const Extents g = layout.grids[k + 1];
    const std::uint64_t evens[3] = {g.z, g.y, g.x};
    std::uint64_t next[3];
    for (int a = 0; a < 3; ++a) next[a] = std::min(evens[a], side[a] / 2 + 4);
    const std::uint64_t rows[3] = {(side[0] / 2 + 1) * next[1], side[0] * (side[1] / 2 + 1), side[0] * side[1]};
    const bool finest = k == 0 && Finest::serves(layout);
    if (finest) total.numbers += Finest::numbers({side[0], side[1], side[2]}, {next[0], next[1], next[2]});
    for (int a = 0; a < 3 && !finest; ++a) {
      total.numbers += 2 * rows[a] * (next[2] + (a == 2 ? kMostEnds : 0));  // coefficients, integers
      if (a != 2 || k != 0) made[a] = std::max(made[a], rows[a] * next[2]);
    }
    total.numbers += 2 * kPadding + next[0] * next[1] * row_entries<T, Int>(layout, k + 1, next[2]);  // grid k + 1
    if (!finest) total.runs += rows[0] + rows[1] + 2 * side[0] * (1 + kMostEnds);
    for (int a = 0; a < 3; ++a) side[a] = next[a];
  }
  for (const std::uint64_t numbers : made) total.numbers += 2 * kPadding + numbers;
  return total;
}

PYF_END_TARGET
