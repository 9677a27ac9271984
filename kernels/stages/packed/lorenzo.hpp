// SPDX-License-Identifier: BSD-3-Clause
// Differences and sums of the codes of a packed tile, row by row (docs/format.md, section 7.3): first along x, then y,
// then z. Along an axis beyond the order only the line through the tile's first position is differenced, so that one
// value of the tile is left whole. Columns are differenced along y first.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "core/tile_shape.hpp"
#include "stages/difference.hpp"
#include "stages/packed/tile_bits.hpp"
#include "stages/planes.hpp"

PYF_BEGIN_TARGET

// a += the same `stride` before, at the first `width` of every `run` values from `stride` to `end`.
template <class Code>
KFN void sum_forward(Code* a, std::uint32_t stride, std::uint32_t end, std::uint32_t run, std::uint32_t width) {
  for (std::uint32_t row = stride; row < end; row += run) {
    Code* const here = a + row;
    for (std::uint32_t i = 0; i < width; ++i)
      here[i] = static_cast<Code>(here[i] + here[static_cast<std::int64_t>(i) - stride]);
  }
}

// All ones for the first `count` values of a row, else 0.
template <class Code, std::uint32_t kX>
struct RowMask {
  alignas(64) Code mask[kX];
  KFN explicit RowMask(std::uint32_t count) {
    for (std::uint32_t x = 0; x < kX; ++x) mask[x] = x < count ? static_cast<Code>(~Code{0}) : Code{0};
  }
};

// Codes q -> differences d of the rows that present blocks have; of columns, of the whole tile; not for chains. q[-1]
// is read, and does not count.
template <int S, class Code>
inline void tile_differences(int order, const PresentRows& present, const Code* q, Code* d) {
  using Tile = TileShape<S>;
  constexpr std::uint32_t kX = Tile::kX, kY = Tile::kY, kZ = Tile::kZ;
  static_assert(S != kChain);
  if constexpr (S == kColumns) {
    for (std::uint32_t i = 0; i < kX; ++i) d[i] = static_cast<Code>(q[i] - (i != 0 ? q[i - 1] : 0));
    for (std::uint32_t i = kX; i < 4096; ++i) d[i] = static_cast<Code>(q[i] - q[i - kX]);
    return;
  }
  // all axes in one pass, with what the last row, and the rows of the last slab, were differenced to so far
  const RowMask<Code, kX> along_y(order >= 2 ? kX : 1), along_z(order >= 3 ? kX : 0), first_z(order >= 3 ? kX : 1);
  alignas(64) Code above[kX], before[kZ > 1 ? kY * kX : 1];
  if constexpr (kZ > 1) std::memset(before, 0, sizeof before);
  for (std::uint32_t z = 0; z < present.z; ++z, q += (kY - present.y) * kX, d += (kY - present.y) * kX) {
    std::memset(above, 0, sizeof above);
    for (std::uint32_t y = 0; y < present.y; ++y, q += kX, d += kX) {
      [[maybe_unused]] Code* const slab = before + (kZ > 1 ? y * kX : 0);
      [[maybe_unused]] const Code* const mask_z = (y == 0 ? first_z : along_z).mask;
      for (std::uint32_t x = 0; x < kX; ++x) {
        const auto here =
            static_cast<Code>(q[x] - (q[static_cast<std::int64_t>(x) - 1] & kNeighbour<Code, 1, kX, kX>.mask[x]));
        auto row = static_cast<Code>(here - (above[x] & along_y.mask[x]));
        above[x] = here;
        if constexpr (kZ > 1) {
          const Code in_slab = row;
          row = static_cast<Code>(row - (slab[x] & mask_z[x]));
          slab[x] = in_slab;
        }
        d[x] = row;
      }
    }
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
  constexpr int kRowBytes = Tile::kBlockX * sizeof(Code), kJoined = kJoinedRows<kRowBytes>;
  const auto* const from = reinterpret_cast<const std::uint8_t*>(tile + Tile::first_of(block));
  for (std::uint32_t i = 0; i < 32; i += kJoined * Tile::kBlockX) {
    const std::uint8_t* rows[kJoined];
    for (std::uint32_t k = 0; k < kJoined; ++k) rows[k] = from + Tile::within(i + k * Tile::kBlockX) * sizeof(Code);
    join_rows<kRowBytes>(rows, reinterpret_cast<std::uint8_t*>(to + i));
  }
}
template <int S, class Code>
KFN void put_block(const Code* from, std::uint32_t block, Code* tile) {
  using Tile = TileShape<S>;
  Code* const to = tile + Tile::first_of(block);
  for (std::uint32_t i = 0; i < 32; i += Tile::kBlockX) {
    if constexpr (Tile::kBlockX * sizeof(Code) == 16)
      std::memcpy(to + Tile::within(i), from + i, 16);
    else  // which memcpy would do in halves
      for (std::uint32_t x = 0; x < Tile::kBlockX; ++x) to[Tile::within(i) + x] = from[i + x];
  }
}

PYF_END_TARGET
