// SPDX-License-Identifier: BSD-3-Clause
// Crops: parts of tiles that stand for them while a model is trained. A crop has the rows of its tile, so that all
// lanes work, and a quarter of the steps. Not part of the format.
//
// Tiles of volumes are not cropped. Their first plane is predicted worse than others. Of a crop it would be a larger
// part, so that other weights and predictors would win (ratios up to 27 % smaller).
#pragma once

#include <cstdint>

#include "adaptive/grid.hpp"
#include "adaptive/layout.hpp"

PYF_BEGIN_TARGET

// Tiles are halved so often at most, while so many values are left.
inline constexpr std::uint32_t kMostHalvings = 2, kLeastCropValues = 8192;

// How the tiles of a grid are cropped: the larger of planes and columns is halved.
struct TileCrop {
  std::uint32_t planes_log2 = 0, columns_log2 = 0;

  TileCrop() = default;  // whole tiles
  explicit KFN TileCrop(const AdaptiveGrid& grid) {
    if (grid.kind == TileKind::volume) return;
    LargestTile left(grid, 0);
    for (std::uint32_t i = 0; i < kMostHalvings && left.cells() >= 2 * kLeastCropValues; ++i) {
      if (left.planes >= left.columns) {
        ++planes_log2;
        left.planes = half_of(left.planes);
      } else {
        ++columns_log2;
        left.columns = half_of(left.columns);
      }
    }
  }
  // The crop of a tile; crops of different tiles are at different places.
  KFN AdaptiveTile of(const AdaptiveGrid& grid, std::uint64_t number) const {
    AdaptiveTile tile = grid.tile(number);
    if (planes_log2 + columns_log2 == 0) return tile;
    if (tile.values != 0) {  // a line: whole rows of it
      if (tile.values < tile.columns) tile.columns = tile.values;
      tile.rows = tile.values / tile.columns;
      tile.values = 0;
    }
    // the last tiles of folded lines end before their last row does
    const bool ends = grid.existing(tile.row(tile.planes - 1, tile.rows - 1), tile.columns) < tile.columns;
    const auto place = static_cast<std::uint32_t>(ends ? 0 : number * 5 % 8);  // in eighths of what is left out
    const std::uint32_t planes = halved(tile.planes, planes_log2), columns = halved(tile.columns, columns_log2);
    tile.first += (tile.planes - planes) * place / 7 * tile.plane_stride +
                  (tile.columns - columns) * place / 7 * tile.value_stride;
    tile.planes = planes;
    tile.columns = columns;
    return tile;
  }
  // The share of the values that are in crops.
  KFN double share(const AdaptiveGrid& grid) const {
    const AdaptiveTile tile = grid.tile(0), crop = of(grid, 0);
    const std::uint32_t all = tile.values != 0 ? tile.values : tile.planes * tile.rows * tile.columns;
    return static_cast<double>(crop.planes * crop.rows * crop.columns) / all;
  }
  // The largest crop, on a lattice.
  KFN LargestTile largest(const AdaptiveGrid& grid, std::uint32_t log2) const {
    LargestTile tile(grid, 0);
    tile.planes = Lattice::part(halved(tile.planes, planes_log2), log2);
    tile.columns = Lattice::part(halved(tile.columns, columns_log2), log2);
    tile.rows = LargestTile(grid, log2).rows;
    return tile;
  }

 private:
  KFN static std::uint32_t half_of(std::uint32_t n) { return (n + 1) / 2; }
  KFN static std::uint32_t halved(std::uint32_t n, std::uint32_t times) {
    for (; times != 0; --times) n = half_of(n);
    return n;
  }
};

PYF_END_TARGET
