// SPDX-License-Identifier: BSD-3-Clause
// Differences and sums of the codes of a packed tile, row by row (docs/format.md, section 7.3): first along x, then y,
// then z. Along an axis beyond the order only the line through the tile's first position is differenced, so that one
// value of the tile is left whole. Columns are differenced along y first.
#pragma once

#include <cstdint>

#include "core/target.hpp"
#include "core/tile_shape.hpp"
#include "stages/planes.hpp"

PYF_BEGIN_TARGET

// to = from differenced along x, the first of each row as it is.
template <std::uint32_t kX, class Code>
KFN void difference_rows(const Code* from, Code* to, std::uint32_t rows) {
  for (std::uint32_t r = 0; r < rows; ++r, from += kX, to += kX) {
    to[0] = from[0];
    for (std::uint32_t x = 1; x < kX; ++x) to[x] = static_cast<Code>(from[x] - from[x - 1]);
  }
}

// a -= the same `stride` before, at the first `width` of every `run` values from `stride` to `end`, from the end on.
template <class Code>
KFN void difference_back(Code* a, std::uint32_t stride, std::uint32_t end, std::uint32_t run, std::uint32_t width) {
  for (std::uint32_t row = end; row > stride; row -= run) {
    Code* const here = a + row - run;
    for (std::uint32_t i = 0; i < width; ++i)
      here[i] = static_cast<Code>(here[i] - here[static_cast<std::int64_t>(i) - stride]);
  }
}

template <class Code>
KFN void sum_forward(Code* a, std::uint32_t stride, std::uint32_t end, std::uint32_t run, std::uint32_t width) {
  for (std::uint32_t row = stride; row < end; row += run) {
    Code* const here = a + row;
    for (std::uint32_t i = 0; i < width; ++i)
      here[i] = static_cast<Code>(here[i] + here[static_cast<std::int64_t>(i) - stride]);
  }
}

// Codes q -> differences d, both whole tiles; not for chains.
template <int S, class Code>
inline void tile_differences(int order, const Code* q, Code* d) {
  using Tile = TileShape<S>;
  constexpr std::uint32_t kX = Tile::kX, kY = Tile::kY, kZ = Tile::kZ, kSlab = kX * kY;
  static_assert(S != kChain);
  if constexpr (S == kColumns) {
    for (std::uint32_t i = 0; i < kX; ++i) d[i] = static_cast<Code>(q[i] - (i != 0 ? q[i - 1] : 0));
    for (std::uint32_t i = kX; i < 4096; ++i) d[i] = static_cast<Code>(q[i] - q[i - kX]);
    return;
  }
  difference_rows<kX>(q, d, kY * kZ);
  const std::uint32_t y_width = order >= 2 ? kX : 1;
  for (std::uint32_t z = 0; z < kZ; ++z) {
    if (y_width == kX)
      difference_back(d + z * kSlab, kX, kSlab, kX, kX);
    else
      difference_back(d + z * kSlab, kX, kSlab, kX, 1);
  }
  if constexpr (kZ > 1) {
    if (order >= 3)
      difference_back(d, kSlab, 4096, kSlab, kSlab);
    else
      difference_back(d, kSlab, 4096, kSlab, 1);
  }
}

// The sums along z and y, in place; those along x are left to whoever turns rows into values. Columns: all sums.
template <int S, class Code>
inline void tile_sums(int order, Code* d) {
  using Tile = TileShape<S>;
  constexpr std::uint32_t kX = Tile::kX, kY = Tile::kY, kZ = Tile::kZ, kSlab = kX * kY;
  static_assert(S != kChain);
  if constexpr (S == kColumns) {
    for (std::uint32_t i = 1; i < kX; ++i) d[i] = static_cast<Code>(d[i] + d[i - 1]);
    for (std::uint32_t i = kX; i < 4096; ++i) d[i] = static_cast<Code>(d[i] + d[i - kX]);
    return;
  }
  if constexpr (kZ > 1) {
    if (order >= 3)
      sum_forward(d, kSlab, 4096, kSlab, kSlab);
    else
      sum_forward(d, kSlab, 4096, kSlab, 1);
  }
  for (std::uint32_t z = 0; z < kZ; ++z) {
    if (order >= 2)
      sum_forward(d + z * kSlab, kX, kSlab, kX, kX);
    else
      sum_forward(d + z * kSlab, kX, kSlab, kX, 1);
  }
}

// The 32 differences of a block, one after the other, and back.
template <int S, class Code>
KFN void take_block(const Code* tile, std::uint32_t block, Code* to) {
  using Tile = TileShape<S>;
  const Code* const from = tile + Tile::first_of(block);
  for (std::uint32_t i = 0; i < 32; i += Tile::kBlockX)
    for (std::uint32_t x = 0; x < Tile::kBlockX; ++x) to[i + x] = from[Tile::within(i) + x];
}
template <int S, class Code>
KFN void put_block(const Code* from, std::uint32_t block, Code* tile) {
  using Tile = TileShape<S>;
  Code* const to = tile + Tile::first_of(block);
  for (std::uint32_t i = 0; i < 32; i += Tile::kBlockX)
    for (std::uint32_t x = 0; x < Tile::kBlockX; ++x) to[Tile::within(i) + x] = from[i + x];
}

PYF_END_TARGET
