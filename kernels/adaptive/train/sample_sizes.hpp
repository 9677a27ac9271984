// SPDX-License-Identifier: BSD-3-Clause
// How many tiles and values of a chunk a trainer samples, and which tiles are counted for its tables. Not part of the
// format.
#pragma once

#include <cstdint>

#include "adaptive/grid.hpp"
#include "adaptive/train/crop.hpp"
#include "adaptive/train/trial.hpp"

PYF_BEGIN_TARGET

inline constexpr std::uint32_t kMostSampled = 32;

// The share of a tile's values that a pass codes.
KFN double share_of_pass(TileKind kind, bool refining, std::uint32_t log2) {
  const auto axes = static_cast<std::uint32_t>(kind);
  double part = 1;
  for (std::uint32_t axis = 0; axis < axes; ++axis) part /= static_cast<double>(1u << log2);
  return refining ? part * (1 - 1.0 / static_cast<double>(1u << axes)) : part;
}

// How many tiles and values of a chunk are sampled. Of a tile only its crop is.
struct SampleSizes {
  std::uint64_t tiles, values;
  TileCrop crop;
  double cropped;  // the share of values that are in crops

  explicit KFN SampleSizes(const AdaptiveGrid& grid)
      : tiles(grid.tiles()), values(grid.own_values()), crop(grid), cropped(crop.share(grid)) {}
  // Tiles for weights; for the first and the second trial of candidates; for the contexts of the chosen one.
  KFN std::uint32_t sampled_tiles(bool fast) const { return fast ? part_of(8, 4, 16) : part_of(4, 8, 32); }
  KFN std::uint32_t first_tried(const AdaptiveGrid& grid) const {
    const std::uint64_t components = grid.components < 4 ? grid.components : 4;
    return part_of(1, 0, 2 * components * (grid.kind == TileKind::line ? 2 : 1));
  }
  KFN std::uint32_t tried() const { return part_of(8, 2, 12); }
  // Tiles to compare axes on.
  KFN std::uint32_t rated() const { return part_of(1, 0, 16); }
  KFN std::uint32_t finished_tiles(bool fast) const { return fast ? part_of(8, 1, 4) : part_of(6, 3, 9); }
  // Of the values that a pass codes in `sampled` tiles, one of so many is sampled.
  KFN std::uint32_t every_sample(std::uint32_t sampled, double share) const {
    return at_least_one(in_tiles(sampled) * share / enough(1500, 64, 14000));
  }
  KFN std::uint32_t every_context(std::uint32_t sampled, double wanted) const {
    return at_least_one(in_tiles(sampled) / wanted);
  }
  KFN double wanted_in_trial(bool fast) const { return enough(1000, 256, fast ? 3000 : 5000); }
  KFN double wanted_at_end(bool fast) const { return fast ? enough(2000, 128, 10000) : enough(4000, 64, 20000); }

 private:
  // The number of samples: larger chunks take more.
  KFN double enough(double least, double part, double most) const {
    const double wanted = least + static_cast<double>(values) / part;
    return wanted < most ? wanted : most;
  }
  // The number of sampled tiles: 1 / `part` of all, within `least` and `most`.
  KFN std::uint32_t part_of(std::uint64_t part, std::uint64_t least, std::uint64_t most) const {
    const std::uint64_t own = tiles / part, within = own < least ? least : own > most ? most : own;
    return static_cast<std::uint32_t>(within < tiles ? within : tiles);
  }
  KFN double in_tiles(std::uint32_t sampled) const {
    return cropped * static_cast<double>(values) / static_cast<double>(tiles) * static_cast<double>(sampled);
  }
  KFN static std::uint32_t at_least_one(double every) { return every < 1 ? 1 : static_cast<std::uint32_t>(every); }
};

// The tiles that are counted for the tables of a chunk, and how many of their symbols.
struct CountedTiles {
  std::uint64_t tiles, count;

  explicit KFN CountedTiles(std::uint64_t all) : tiles(all), count(all < kMostCountedTiles ? all : kMostCountedTiles) {}
  KFN std::uint64_t number(std::uint64_t i) const { return i * tiles / count + tiles / count / 2; }
  KFN std::uint32_t every() const { return count > kAllCountedTiles ? 4 * kCountedAtOnce : kCountedAtOnce; }
  KFN double share() const { return static_cast<double>(kCountedAtOnce) / static_cast<double>(every()); }
};

PYF_END_TARGET
