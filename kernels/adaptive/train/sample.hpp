// SPDX-License-Identifier: BSD-3-Clause
// Samples for the weights of a pass (train/equations.hpp), taken from a wave that holds a tile's own values; and the
// most samples that a tile has. Not part of the format.
#pragma once

#include <cstdint>

#include "adaptive/refine.hpp"
#include "adaptive/train/contexts.hpp"
#include "adaptive/train/crop.hpp"
#include "adaptive/train/equations.hpp"

PYF_BEGIN_TARGET

// The range of the values beside a sample; at(distance) is the value at a neighbour, `origin` that at the rest tap.
template <class Wave, class At>
PYF_ON_LANES float range_of_wave(const Wave& wave, float origin, const At& at) {
  float low = origin, high = origin;
  for (std::uint32_t i = 0; i < wave.range_taps; ++i) {
    const float v = at(wave.range_tap[i]);
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  return high - low;
}
template <class Refining, class At>
PYF_ON_LANES float range_of_refining(const Refining& refining, float origin, const At& at) {
  float low = origin, high = origin;
  for (std::uint32_t axis = 0; axis < static_cast<std::uint32_t>(refining.shape.kind); ++axis) {
    if ((refining.parity >> axis & 1) == 0) continue;
    const float before = at(refining.before[axis]), behind = at(refining.behind[axis]);
    low = before < low ? before : low;
    low = behind < low ? behind : low;
    high = before > high ? before : high;
    high = behind > high ? behind : high;
  }
  return high - low;
}
// Samples in calm places count more.
KFN float sample_weight(bool is_border, float range) { return is_border ? 1.0f / 16 : 1 / (range * range + 16); }

// One of so many values is sampled. Most steps of refining passes have 32 values: an odd number takes all lanes in
// turn.
KFN std::uint32_t every_of_pass(bool refining, std::uint32_t every) { return refining ? (every - 1) | 1 : every; }

KFN std::uint32_t most_samples(const AdaptiveGrid& grid, const TileCrop& crop, bool refining, std::uint32_t log2,
                               std::uint32_t every) {
  const LargestTile tile = crop.largest(grid, log2);
  every = every_of_pass(refining, every);
  std::uint32_t border = 0;
  if (!refining)
    border = tile.cells() - (grid.kind == TileKind::volume ? tile.planes - 1 : 1) *
                                (grid.kind != TileKind::line ? tile.rows - 1 : tile.rows) * (tile.columns - 1);
  return tile.cells() / every + border / (every < 8 ? 1 : every / 8) + 3;
}
// Of a pass of several turns.
KFN std::uint32_t most_context_samples(const AdaptiveGrid& grid, const TileCrop& crop, std::uint32_t log2,
                                       std::uint32_t every) {
  return crop.largest(grid, log2).cells() / every_of_pass(true, every) + 8;
}

PYF_END_TARGET
