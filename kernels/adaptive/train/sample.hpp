// SPDX-License-Identifier: BSD-3-Clause
// Samples for the weights of a pass (train/equations.hpp), taken from a wave that holds a tile's own values; and the
// most samples that a tile has. Not part of the format.
#pragma once

#include <cstdint>

#include "adaptive/tile.hpp"
#include "adaptive/train/contexts.hpp"
#include "adaptive/train/equations.hpp"

PYF_BEGIN_TARGET

// The range of the values beside a sample; at(distance) is the value at a neighbour, `origin` that at the rest tap.
template <class Wave, class At>
PYF_ON_LANES float sample_range(const Wave& wave, bool refining, std::uint32_t set, float origin, const At& at) {
  float low = origin, high = origin;
  const auto widen = [&](float v) {
    low = v < low ? v : low;
    high = v > high ? v : high;
  };
  if (refining) {
    for (std::uint32_t axis = 0; axis < static_cast<std::uint32_t>(wave.kind); ++axis) {
      if ((set >> axis & 1) == 0) continue;
      widen(at(wave.near[axis]));
      widen(at(wave.next[axis]));
    }
  } else {
    for (std::uint32_t i = 0; i < wave.range_taps; ++i) widen(at(wave.range_tap[i]));
  }
  return high - low;
}
// Samples in calm places count more.
KFN float sample_weight(bool is_border, float range) { return is_border ? 1.0f / 16 : 1 / (range * range + 16); }

KFN std::uint32_t most_samples(const AdaptiveGrid& grid, bool refining, std::uint32_t log2, std::uint32_t every) {
  const LargestTile tile(grid, log2);
  std::uint32_t border = 0;
  if (!refining)
    border = tile.cells() - (grid.kind == TileKind::volume ? tile.planes - 1 : 1) *
                                (grid.kind != TileKind::line ? tile.rows - 1 : tile.rows) * (tile.columns - 1);
  return tile.cells() / every + border / (every < 8 ? 1 : every / 8) + 3;
}
// Of a pass of several turns.
KFN std::uint32_t most_context_samples(const AdaptiveGrid& grid, std::uint32_t log2, std::uint32_t every) {
  return LargestTile(grid, log2).cells() / every + 4;
}

PYF_END_TARGET
