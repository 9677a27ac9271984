// SPDX-License-Identifier: BSD-3-Clause
// Crops: parts of tiles that stand for them while a model is trained. A crop has the rows of its tile, so that all
// lanes work, and a quarter of the columns. Not part of the format.
//
// Tiles of volumes are not cropped. Their first plane is predicted worse than others. Of a crop it would be a larger
// part, so that other weights and predictors would win (ratios up to 27 % smaller).
#pragma once

#include <cstdint>

#include "adaptive/grid.hpp"
#include "adaptive/layout.hpp"

PYF_BEGIN_TARGET

// The columns of tiles are halved twice, or once where so many values would not be left.
inline constexpr std::uint32_t kLeastCropValues = 8192;

// How the tiles of a grid are cropped.
struct TileCrop {
  std::uint32_t halvings = 0;

  TileCrop() = default;  // whole tiles
  explicit KFN TileCrop(const AdaptiveGrid& grid) {
    if (grid.kind == TileKind::volume) return;
    LargestTile left(grid, 0);
    if (left.cells() < 2 * kLeastCropValues) return;
    left.columns = Lattice::part(left.columns, 1);
    halvings = left.cells() < 2 * kLeastCropValues ? 1 : 2;
  }
  // The crop of a tile; crops of different tiles are at different places.
  KFN AdaptiveTile of(const AdaptiveGrid& grid, std::uint64_t number) const {
    AdaptiveTile tile = grid.tile(number);
    if (halvings == 0) return tile;
    if (tile.values != 0) {  // a line: whole rows of it
      if (tile.values < tile.columns) tile.columns = tile.values;
      tile.rows = tile.values / tile.columns;
      tile.values = 0;
    }
    // the last tiles of folded lines end before their last row does
    const bool ends = grid.existing(tile.row(0, tile.rows - 1), tile.columns) < tile.columns;
    const auto place = static_cast<std::uint32_t>(ends ? 0 : number * 5 % 8);  // 7: the last columns
    const std::uint32_t columns = Lattice::part(tile.columns, halvings);
    tile.first += (tile.columns - columns) * place / 7 * tile.value_stride;
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
    LargestTile tile(grid, log2);
    tile.columns = Lattice::part(Lattice::part(LargestTile(grid, 0).columns, halvings), log2);
    return tile;
  }
};

PYF_END_TARGET
