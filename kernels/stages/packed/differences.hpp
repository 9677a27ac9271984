// SPDX-License-Identifier: BSD-3-Clause
// Differences and sums of the codes of a packed tile, row by row (docs/format.md, section 7.3): first along x, then y,
// then z. In edge tiles only the present blocks are processed. Along axes beyond the order, only the line through the
// tile's first position is differenced, so that a tile has one whole code. Columns are differenced along y first.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "core/tile_shape.hpp"
#include "stages/difference.hpp"
#include "stages/packed/tile_bits.hpp"
#include "stages/packed/values.hpp"
#include "stages/planes.hpp"

PYF_BEGIN_TARGET

// a[i] += a[i - stride] at the first `width` positions of every `run`, from `stride` to `end`.
template <class Code>
KFN void sum_forward(Code* a, std::uint32_t stride, std::uint32_t end, std::uint32_t run, std::uint32_t width) {
  for (std::uint32_t row = stride; row < end; row += run) {
    Code* const here = a + row;
    for (std::uint32_t i = 0; i < width; ++i)
      here[i] = static_cast<Code>(here[i] + here[static_cast<std::int64_t>(i) - stride]);
  }
}

// Codes q -> differences d of the first kWidth columns of the present blocks' rows, for planes and volumes.
template <int S, std::uint32_t kWidth, class Code>
inline void row_differences(int order, PresentRows present, const Code* q, Code* d) {
  using Tile = TileShape<S>;
  constexpr std::uint32_t kX = Tile::kX, kY = Tile::kY, kZ = Tile::kZ;
  // all axes in one pass; keeps the partial differences of the last row, and of the last slab's rows
  const RowMask<Code, kWidth> along_y(order >= 2 ? kWidth : 1), along_z(order >= 3 ? kWidth : 0),
      first_z(order >= 3 ? kWidth : 1);
  alignas(64) Code above[kWidth], before[kZ > 1 ? kY * kX : 1];
  if constexpr (kZ > 1) std::memset(before, 0, sizeof before);
  for (std::uint32_t z = 0; z < present.z; ++z, q += (kY - present.y) * kX, d += (kY - present.y) * kX) {
    std::memset(above, 0, sizeof above);
    for (std::uint32_t y = 0; y < present.y; ++y, q += kX, d += kX) {
      [[maybe_unused]] Code* const slab = before + (kZ > 1 ? y * kX : 0);
      [[maybe_unused]] const Code* const mask_z = (y == 0 ? first_z : along_z).mask;
      for (std::uint32_t x = 0; x < kWidth; ++x) {
        const auto here = static_cast<Code>(
            q[x] - (q[static_cast<std::int64_t>(x) - 1] & kNeighbour<Code, 1, kWidth, kWidth>.mask[x]));
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

// Eight values shifted up by kBy positions; zeros enter.
template <int kBy, class Code>
KFN void move_up(const ShortRow<Code>& row, ShortRow<Code>& moved) {
  constexpr auto from = [](int i) { return i < kBy ? 0 : 8 + i - kBy; };
  constexpr ShortRow<Code> kNone{};
#if defined(__clang__)
  moved = __builtin_shufflevector(kNone, row, from(0), from(1), from(2), from(3), from(4), from(5), from(6), from(7));
#else  // GCC 11 has no __builtin_shufflevector()
  constexpr ShortRow<Code> kFrom{from(0), from(1), from(2), from(3), from(4), from(5), from(6), from(7)};
  moved = __builtin_shuffle(kNone, row, kFrom);
#endif
}

// Codes -> differences of a plane one block wide.
template <int S, class Code>
inline void narrow_differences(int order, PresentRows present, const Code* q, Code* d) {
  using Row = ShortRow<Code>;
  const RowMask<Code, 8> along_y(order >= 2 ? 8 : 1);
  const Row& mask = *reinterpret_cast<const Row*>(along_y.mask);
  Row above{};
  for (std::uint32_t y = 0; y < present.y; ++y, q += TileShape<S>::kX, d += TileShape<S>::kX) {
    const Row& row = *reinterpret_cast<const Row*>(q);
    Row before;
    move_up<1, Code>(row, before);
    const Row here = row - before;
    *reinterpret_cast<Row*>(d) = here - (above & mask);
    above = here;
  }
}

// Codes q -> differences d of the present blocks' rows (columns: of the whole tile); not for chains. q[-1] is read and
// its value ignored.
template <int S, class Code>
inline void tile_differences(int order, PresentRows present, const Code* q, Code* d) {
  constexpr std::uint32_t kX = TileShape<S>::kX;
  static_assert(S != kChain);
  if constexpr (S == kColumns) {
    for (std::uint32_t i = 0; i < kX; ++i) d[i] = static_cast<Code>(q[i] - (i != 0 ? q[i - 1] : 0));
    for (std::uint32_t i = kX; i < 4096; ++i) d[i] = static_cast<Code>(q[i] - q[i - kX]);
  } else if constexpr (S == kPlane) {
    const std::uint32_t columns = worked_columns<S>(present.x);
    if (columns == kX) [[likely]]
      return row_differences<S, kX>(order, present, q, d);
    if (columns == 32) return row_differences<S, 32>(order, present, q, d);
    narrow_differences<S>(order, present, q, d);
  } else {
    row_differences<S, kX>(order, present, q, d);
  }
}

// Sums along z and y of the first kWidth columns of the present blocks' rows, in place.
template <int S, std::uint32_t kWidth, class Code>
KFN void row_sums(int order, PresentRows present, Code* d) {
  using Tile = TileShape<S>;
  constexpr std::uint32_t kX = Tile::kX, kSlab = kX * Tile::kY;
  if constexpr (Tile::kZ > 1) {
    if (order >= 3)
      sum_forward(d, kSlab, present.z * kSlab, kSlab, present.y * kX);
    else
      sum_forward(d, kSlab, present.z * kSlab, kSlab, 1);
  }
  for (std::uint32_t z = 0; z < present.z; ++z) {
    if (order >= 2)
      sum_forward(d + z * kSlab, kX, present.y * kX, kX, kWidth);
    else
      sum_forward(d + z * kSlab, kX, present.y * kX, kX, 1);
  }
}

// The sums of an edge tile: `columns` are worked_columns().
template <int S, class Code>
[[gnu::noinline]] inline void edge_sums(int order, PresentRows present, std::uint32_t columns, Code* d) {
  if (S == kPlane && columns == 32) return row_sums<S, 32>(order, present, d);
  row_sums<S, TileShape<S>::kX>(order, present, d);
}

// Copies the 32 differences of a block into consecutive memory, and back.
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
    else  // memcpy would use two halves
      for (std::uint32_t x = 0; x < Tile::kBlockX; ++x) to[Tile::within(i) + x] = from[i + x];
  }
}

PYF_END_TARGET
