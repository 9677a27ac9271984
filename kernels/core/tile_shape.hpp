// SPDX-License-Identifier: BSD-3-Clause
// Shapes of packed tiles and of their blocks (docs/format.md, section 7.1): coordinates of position i of block b.
#pragma once

#include <cstdint>

#include "core/grid.hpp"

namespace pyfilter {

// Numbers of tile shapes in requests and frames.
inline constexpr int kChain = 1, kPlane = 2, kVolume = 3, kColumns = 4;

struct TileExtent {
  std::uint32_t z, y, x;     // extents of a tile, in values
  std::uint32_t bz, by, bx;  // extents of a block
};

// Indexed by tile shape; 0 is no shape.
inline constexpr TileExtent kTileExtents[5] = {
    {0, 0, 0, 0, 0, 0}, {1, 1, 4096, 1, 1, 32}, {1, 64, 64, 1, 4, 8}, {8, 16, 32, 2, 4, 4}, {1, 1024, 4, 1, 32, 1},
};

inline constexpr int kPackedBlocks = 128;  // of a tile, 32 values each

template <int S>
struct TileShape {
  static constexpr TileExtent kExtent = kTileExtents[S];
  static constexpr std::uint32_t kZ = kExtent.z, kY = kExtent.y, kX = kExtent.x;
  static constexpr std::uint32_t kBlockZ = kExtent.bz, kBlockY = kExtent.by, kBlockX = kExtent.bx;
  static constexpr std::uint32_t kBlocksZ = kZ / kBlockZ, kBlocksY = kY / kBlockY, kBlocksX = kX / kBlockX;

  // Coordinates of a block's first position in its tile. Blocks are numbered along z, then y, then x. So the lanes of a
  // warp hold neighbours along z and y, and only differences along x need values of another warp.
  static constexpr std::uint32_t block_z(std::uint32_t b) { return b % kBlocksZ * kBlockZ; }
  static constexpr std::uint32_t block_y(std::uint32_t b) { return b / kBlocksZ % kBlocksY * kBlockY; }
  static constexpr std::uint32_t block_x(std::uint32_t b) { return b / (kBlocksZ * kBlocksY) * kBlockX; }
  static constexpr std::uint32_t block_of(std::uint32_t z, std::uint32_t y, std::uint32_t x) {
    return z / kBlockZ + kBlocksZ * (y / kBlockY + kBlocksY * (x / kBlockX));
  }
  static constexpr std::uint32_t position_of(std::uint32_t z, std::uint32_t y, std::uint32_t x) {
    return (z % kBlockZ * kBlockY + y % kBlockY) * kBlockX + x % kBlockX;
  }
  // Index of a position in its tile, row by row: of block b's first position; of position i, relative to that.
  static constexpr std::uint32_t first_of(std::uint32_t b) { return (block_z(b) * kY + block_y(b)) * kX + block_x(b); }
  static constexpr std::uint32_t within(std::uint32_t i) {
    return (i / kBlockX / kBlockY * kY + i / kBlockX % kBlockY) * kX + i % kBlockX;
  }
};

// Where a tile begins in the array, and its extent inside the array.
struct TileBox {
  std::uint64_t first;          // index of its first value
  std::uint32_t inz, iny, inx;  // extent inside the array
};

template <int S>
constexpr TileBox tile_box(const Grid& g, std::uint64_t tile) {
  using Extent = TileShape<S>;
  if constexpr (S == kChain) {
    const std::uint64_t first = tile * Extent::kX, left = g.values - first;
    return {first, 1, 1, left < Extent::kX ? static_cast<std::uint32_t>(left) : Extent::kX};
  }
  const std::uint64_t tx = tile % g.gx, row = tile / g.gx, ty = row % g.gy, slab = row / g.gy, tz = slab % g.gz;
  const std::uint64_t x = tx * Extent::kX, y = ty * Extent::kY, z = tz * Extent::kZ;
  const auto inside = [](std::uint64_t left, std::uint32_t side) {
    return left < side ? static_cast<std::uint32_t>(left) : side;
  };
  return {((slab / g.gz * g.nz + z) * g.ny + y) * g.nx + x, inside(g.nz - z, Extent::kZ), inside(g.ny - y, Extent::kY),
          inside(g.nx - x, Extent::kX)};
}

// A quotient and what is left, in 32 bits where that suffices: a GPU divides 64 bits by a hundred instructions.
struct Quotient {
  std::uint64_t whole, rest;

  constexpr Quotient(std::uint64_t a, std::uint64_t b) : whole(0), rest(0) {
    if ((a | b) >> 32 == 0) {
      const auto x = static_cast<std::uint32_t>(a), y = static_cast<std::uint32_t>(b);
      whole = x / y;
      rest = x % y;
    } else {
      whole = a / b;
      rest = a % b;
    }
  }
};
// The box of the tile that holds a value.
template <int S>
constexpr TileBox tile_box_of_value(const Grid& g, std::uint64_t index) {
  using Tile = TileShape<S>;
  if constexpr (S == kChain) return tile_box<S>(g, index / Tile::kX);
  const Quotient row(index, g.nx), plane(row.whole, g.ny), slab(plane.whole, g.nz);
  const auto first = [](std::uint64_t at, std::uint32_t side) { return at / side * side; };
  const std::uint64_t x = first(row.rest, Tile::kX), y = first(plane.rest, Tile::kY), z = first(slab.rest, Tile::kZ);
  const auto inside = [](std::uint64_t left, std::uint32_t side) {
    return left < side ? static_cast<std::uint32_t>(left) : side;
  };
  return {((slab.whole * g.nz + z) * g.ny + y) * g.nx + x, inside(g.nz - z, Tile::kZ), inside(g.ny - y, Tile::kY),
          inside(g.nx - x, Tile::kX)};
}

// Whether a block is present: it has at least one value of the array.
template <int S>
constexpr bool is_present(const TileBox& box, std::uint32_t b) {
  using Tile = TileShape<S>;
  return Tile::block_x(b) < box.inx && Tile::block_y(b) < box.iny && Tile::block_z(b) < box.inz;
}

}  // namespace pyfilter
