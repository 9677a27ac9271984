// SPDX-License-Identifier: BSD-3-Clause
// Values of a packed tile between array and tile (docs/format.md, section 7.1). Loading repeats the edge as padding;
// storing drops the padding and writes only indices in the requested range.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/plan.hpp"
#include "core/target.hpp"
#include "core/tile_shape.hpp"
#include "stages/blocks.hpp"

PYF_BEGIN_TARGET

// Index of the first value of row `row` of the tile (rows run through y, then z).
template <int S>
KFN std::uint64_t row_index(const Grid& g, const TileBox& box, std::uint32_t y, std::uint32_t z) {
  return S == kChain ? box.first : box.first + (z * g.ny + y) * g.nx;
}

// Copies `inside` values of a row, and repeats the last one up to kCount.
template <std::uint32_t kCount, class T>
KFN void extend_row(const Loose<T>* row, std::uint32_t inside, T* copy) {
  const T last = row[inside - 1];
  if constexpr (kCount <= 8) {
    for (std::uint32_t x = 0; x < kCount; ++x) copy[x] = row[std::min(x, inside - 1)];
  } else if constexpr (sizeof(T) >= 4) {  // masked loads on levels that have them
    for (std::uint32_t x = 0; x < kCount; ++x) copy[x] = x < inside ? static_cast<T>(row[x]) : last;
  } else {
    for (std::uint32_t x = 0; x < kCount; ++x) copy[x] = last;
    std::memcpy(copy, row, inside * sizeof(T));
  }
}

// All 4096 values of a tile, row by row: in the array if they are contiguous there, else a copy.
template <int S, class T>
KFN const Loose<T>* load_tile(const Grid& g, const void* values, const TileBox& box, T* copy) {
  using Tile = TileShape<S>;
  constexpr std::size_t kRowBytes = Tile::kX * sizeof(T);
  if (S == kChain && box.inx == Tile::kX) return loose_values<T>(values, box.first);
  for (std::uint32_t z = 0; z < box.inz; ++z) {
    T* slab = copy + z * Tile::kY * Tile::kX;
    for (std::uint32_t y = 0; y < box.iny; ++y) {
      T* const row = slab + y * Tile::kX;
      const std::uint8_t* const from = value_at<T>(values, row_index<S>(g, box, y, z));
      if constexpr (S !=
                    kColumns) {  // rows are too many streams for hardware prefetchers: prefetch the next tile's rows
        for (std::size_t line = 0; line < kRowBytes; line += 64) __builtin_prefetch(from + kRowBytes + line);
      }
      if (box.inx == Tile::kX)
        std::memcpy(row, from, kRowBytes);
      else
        extend_row<Tile::kX>(loose_values<T>(from, 0), box.inx, row);
    }
    const T* const last = slab + (box.iny - 1) * Tile::kX;
    for (std::uint32_t y = box.iny; y < Tile::kY; ++y) std::memcpy(slab + y * Tile::kX, last, kRowBytes);
  }
  if constexpr (Tile::kZ > 1) {
    constexpr std::uint32_t kSlab = Tile::kY * Tile::kX;
    for (std::uint32_t z = box.inz; z < Tile::kZ; ++z)
      std::memcpy(copy + z * kSlab, copy + (box.inz - 1) * kSlab, kSlab * sizeof(T));
  }
  return loose_values<T>(copy, 0);
}

// Reads the 32 values of a block of a tile, bit for bit.
template <int S, class T>
KFN void take_values(const Loose<T>* tile, std::uint32_t block, T* to) {
  using Tile = TileShape<S>;
  const auto* const from = reinterpret_cast<const std::uint8_t*>(tile) + Tile::first_of(block) * sizeof(T);
  for (std::uint32_t i = 0; i < 32; i += Tile::kBlockX)
    std::memcpy(to + i, from + Tile::within(i) * sizeof(T), Tile::kBlockX * sizeof(T));
}

// Writes them into a tile.
template <int S, class T, class Values>
KFN void put_values(const T* from, std::uint32_t block, Values* tile) {
  using Tile = TileShape<S>;
  static_assert(sizeof(T) == sizeof(Values));
  auto* const to = reinterpret_cast<std::uint8_t*>(tile) + Tile::first_of(block) * sizeof(T);
  for (std::uint32_t i = 0; i < 32; i += Tile::kBlockX)
    std::memcpy(to + Tile::within(i) * sizeof(T), from + i, Tile::kBlockX * sizeof(T));
}

// Reads the 32 values of a present block of a plane or a volume from the array, the edge repeated.
template <int S, class T>
KFN void gather_values(const Grid& g, const TileBox& box, const void* values, std::uint32_t block, T* to) {
  using Tile = TileShape<S>;
  const std::uint32_t x = Tile::block_x(block), inside = std::min(box.inx - x, Tile::kBlockX);
  for (std::uint32_t i = 0; i < 32; i += Tile::kBlockX) {
    const std::uint32_t row = i / Tile::kBlockX;
    const std::uint32_t y = std::min(Tile::block_y(block) + row % Tile::kBlockY, box.iny - 1);
    const std::uint32_t z = std::min(Tile::block_z(block) + row / Tile::kBlockY, box.inz - 1);
    const Loose<T>* const from = loose_values<T>(values, row_index<S>(g, box, y, z) + x);
    if (inside == Tile::kBlockX)
      std::memcpy(to + i, from, Tile::kBlockX * sizeof(T));
    else
      extend_row<Tile::kBlockX>(from, inside, to + i);
  }
}

// Lane mask: all ones for the first `count` values of a row, else 0.
template <class Code, std::uint32_t kX>
struct RowMask {
  alignas(64) Code mask[kX];
  KFN explicit RowMask(std::uint32_t count) {
    for (std::uint32_t x = 0; x < kX; ++x) mask[x] = x < count ? static_cast<Code>(~Code{0}) : Code{0};
  }
};

// Eight values, or codes, of a row, in the level's registers.
template <class Code>
struct ShortRows {
  using Row [[gnu::vector_size(8 * sizeof(Code)), gnu::aligned(sizeof(Code)), gnu::may_alias]] = Code;
};
template <class Code>
using ShortRow = typename ShortRows<Code>::Row;

// All present blocks of a plane one block wide, one after another, as gather_values() reads them.
template <int S, class Code, class T>
KFN void gather_short_rows(const Grid& g, const TileBox& box, const void* values, T* to) {
  using Row = ShortRow<Code>;
  static_assert(TileShape<S>::kBlockX == 8 && sizeof(Code) == sizeof(T));
  const RowMask<Code, 8> inside(box.inx);
  const Row& mask = *reinterpret_cast<const Row*>(inside.mask);
  const std::uint8_t* from = value_at<T>(values, box.first);
  // loads eight values and masks those of the next row; the array's last rows have no next row to read
  std::uint32_t y = 0;
  for (std::uint64_t index = box.first; y < box.iny && index + 8 <= g.values; ++y, index += g.nx) {
    Row row;
    Code end;
    std::memcpy(&row, from, sizeof row);
    std::memcpy(&end, from + (box.inx - 1) * sizeof(T), sizeof end);
    row = (row & mask) | ((end - Row{}) & ~mask);
    std::memcpy(to, &row, sizeof row);
    from += g.nx * sizeof(T);
    to += 8;
  }
  for (; y < box.iny; ++y, from += g.nx * sizeof(T), to += 8) extend_row<8>(loose_values<T>(from, 0), box.inx, to);
  for (; y % TileShape<S>::kBlockY != 0; ++y, to += 8) std::memcpy(to, to - 8, 8 * sizeof(T));
}

// Stores rows of kInside values each, all requested.
template <int S, std::uint32_t kInside, class T>
KFN void store_short_rows(const Grid& g, const T* x, std::uint32_t rows, std::uint8_t* to) {
  for (std::uint32_t y = 0; y < rows; ++y)
    std::memcpy(to + y * g.nx * sizeof(T), x + y * TileShape<S>::kX, kInside * sizeof(T));
}

// Prefetches the target of slice `slice` of kPackedBlocks of a tile, within [start, stop), for later stores. Called
// while the tile is decoded: rows are too many streams for hardware prefetchers, and rows a power of two apart share
// cache sets.
template <int S>
KFN void prefetch_slice(std::uint32_t value_bytes, const Grid& g, const TileBox& box, std::uint32_t slice,
                        std::uint64_t start, std::uint64_t stop, const void* out) {
  using Tile = TileShape<S>;
  constexpr std::uint32_t kRows = Tile::kY * Tile::kZ, kSlices = kRows < kPackedBlocks ? kPackedBlocks / kRows : 1;
  constexpr std::uint32_t kTogether = kRows > kPackedBlocks ? kRows / kPackedBlocks : 1;  // rows of a slice
  const std::uint32_t row = slice / kSlices * kTogether, y = row % Tile::kY, z = row / Tile::kY;
  if (y >= box.iny || z >= box.inz || (S == kColumns && g.nx != box.inx)) return;
  const std::uint32_t x = slice % kSlices * (Tile::kX / kSlices);
  const std::uint64_t index = row_index<S>(g, box, y, z) + x;
  if (x >= box.inx || index < start || index >= stop) return;
  const std::size_t bytes = std::min(box.inx - x, Tile::kX / kSlices) * kTogether * value_bytes;
  ask_for_stores(out, (index - start) * value_bytes, bytes);
}

// Prefetches the target rows of an edge tile, within [start, stop).
template <int S>
KFN void ask_for_rows(std::uint32_t value_bytes, const Grid& g, const TileBox& box, std::uint64_t start,
                      std::uint64_t stop, const void* out) {
  const bool joined = g.nx == box.inx;   // the rows of a slab are contiguous
  if (S == kColumns && !joined) return;  // many rows of few bytes each
  for (std::uint32_t z = 0; z < box.inz; ++z) {
    for (std::uint32_t y = 0; y < (joined ? 1 : box.iny); ++y) {
      const std::uint64_t index = row_index<S>(g, box, y, z);
      if (index < start || index >= stop) continue;
      ask_for_stores(out, (index - start) * value_bytes, box.inx * (joined ? box.iny : 1) * value_bytes);
    }
  }
}

// Stores the values of a tile whose indices are in [start, stop).
template <int S, class T>
inline void store_tile(const Grid& g, const T* x, const TileBox& box, std::uint64_t start, std::uint64_t stop,
                       void* out) {
  using Tile = TileShape<S>;
  if constexpr (S == kColumns || S == kPlane) {  // short rows
    if (box.inx <= 4 && box.first >= start && row_index<S>(g, box, box.iny - 1, 0) + box.inx <= stop) {
      std::uint8_t* const to = static_cast<std::uint8_t*>(out) + (box.first - start) * sizeof(T);
      if (box.inx == 4) return store_short_rows<S, 4>(g, x, box.iny, to);
      if (box.inx == 3) return store_short_rows<S, 3>(g, x, box.iny, to);
      if (box.inx == 2) return store_short_rows<S, 2>(g, x, box.iny, to);
    }
  }
  for (std::uint32_t z = 0; z < box.inz; ++z)
    for (std::uint32_t y = 0; y < box.iny; ++y)
      store_run(x + (z * Tile::kY + y) * Tile::kX, row_index<S>(g, box, y, z), box.inx, start, stop, out);
}

PYF_END_TARGET
