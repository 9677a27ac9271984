// SPDX-License-Identifier: BSD-3-Clause
// Values of a packed tile that is encoded -> codes (encode.hpp): of chains and columns from the tile's values, of
// planes and volumes row by row from the array, of planes with one block in a row (arrays like (N, 3)) block by block.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/plan.hpp"
#include "core/target.hpp"
#include "stages/packed/differences.hpp"
#include "stages/packed/encode_special.hpp"
#include "stages/packed/tile_bits.hpp"
#include "stages/packed/values.hpp"
#include "stages/tile_encode.hpp"

PYF_BEGIN_TARGET

// Values -> codes of the whole tile.
template <class Map, int S>
KFN SpecialBlocks encode_tile_codes(const Map& map, const TileBox& box, const Loose<typename Map::Value>* x,
                                    PackedScratch<Map, S>& s) {
  std::uint32_t misfits = 0;
  for (std::uint32_t run = 0; run < kPackedBlocks; ++run) {
    if constexpr (S == kChain) {
      for (std::size_t line = 0; line < 32 * sizeof(*x); line += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(x + 32 * run) + 4096 + line);
    }
    misfits |= s.misfits[run] =
        static_cast<std::uint32_t>(encode_block<Map, 32>(map, x + 32 * run, s.codes + 32 * run));
  }
  if constexpr (Map::kHasSpecial) {
    if (misfits != 0) {
      s.kinds = 0;
      for (std::uint32_t run = 0; run < kPackedBlocks; ++run) sort_run<Map, S>(map, x + 32 * run, run, s);
      return describe_specials<Map, S>(box, s);
    }
  }
  return {};
}

// Rows and slabs outside the array, as far as present blocks have any, become the last one inside; kRow things a row.
template <int S, std::uint32_t kRow, class T>
KFN void repeat_rows(const TileBox& box, T* rows) {
  constexpr std::uint32_t kSlab = TileShape<S>::kY * kRow;
  const PresentRows present = present_rows<S>(box);
  for (std::uint32_t z = 0; z < box.inz; ++z)
    for (std::uint32_t y = box.iny; y < present.y; ++y)
      std::memcpy(rows + z * kSlab + y * kRow, rows + z * kSlab + (box.iny - 1) * kRow, kRow * sizeof(T));
  for (std::uint32_t z = box.inz; z < present.z; ++z)
    std::memcpy(rows + z * kSlab, rows + (box.inz - 1) * kSlab, present.y * kRow * sizeof(T));
}

// A row of a tile: in the array, or where that ends inside of it a copy.
template <int S, class T>
KFN const Loose<T>* whole_row(const TileBox& box, const Loose<T>* row, T (&copy)[TileShape<S>::kX]) {
  if (box.inx == TileShape<S>::kX) [[likely]]
    return row;
  extend_row<TileShape<S>::kX>(row, box.inx, copy);
  return loose_values<T>(copy, 0);
}

// Values of the array -> codes of a plane with one block in a row, block by block. False where there are misfits.
template <class Map, int S>
KFN bool encode_narrow_rows(const Map& map, const Grid& grid, const TileBox& box, const void* values,
                            PackedScratch<Map, S>& s) {
  using Code = typename Map::Code;
  const std::uint32_t blocks = present_along(box.iny, TileShape<S>::kBlockY);
  // all of them first: rows that were just stored can't be loaded by twos
  if constexpr (sizeof *s.values == sizeof(Code))
    gather_short_rows<S, Code>(grid, box, values, s.values);
  else
    for (std::uint32_t b = 0; b < blocks; ++b) gather_values<S>(grid, box, values, b, s.values + 32 * b);
  std::uint64_t misfits = 0;
  for (std::uint32_t b = 0; b < blocks; ++b) {
    alignas(64) Code q[32];
    misfits |= encode_block<Map, 32>(map, s.values + 32 * b, q);
    put_block<S>(q, b, s.codes.data());
  }
  return misfits == 0;
}

// The special values of a plane or a volume.
template <class Map, int S>
[[gnu::noinline]] inline void sort_rows(const Map& map, const Grid& grid, const TileBox& box, const void* values,
                                        PackedScratch<Map, S>& s) {
  using Value = typename Map::Value;
  using Tile = TileShape<S>;
  constexpr std::uint32_t kRuns = Tile::kX / 32;
  alignas(64) Value copy[Tile::kX];
  s.kinds = 0;
  for (std::uint32_t z = 0; z < box.inz; ++z) {
    for (std::uint32_t y = 0; y < box.iny; ++y) {
      const Loose<Value>* const row = loose_values<Value>(values, row_index<S>(grid, box, y, z));
      const Loose<Value>* const x = whole_row<S, Value>(box, row, copy);
      const std::uint32_t first = (z * Tile::kY + y) * kRuns, runs = present_along(worked_columns<S>(box.inx), 32);
      for (std::uint32_t i = 0; i < runs; ++i) sort_run<Map, S>(map, x + 32 * i, first + i, s);
      for (std::uint32_t i = runs; i < kRuns; ++i)  // nothing is seen there
        for (auto& masks : s.runs.of) masks[first + i] = ~0u;
    }
  }
  for (int kind = 0; kind < 5; ++kind)
    if ((s.kinds >> kind & 1) != 0) repeat_rows<S, kRuns>(box, s.runs.of[kind]);
}

// Values of the array -> codes of a plane or a volume, of the rows that present blocks have. `next`: the tile after it.
template <class Map, int S>
KFN SpecialBlocks encode_tile_rows(const Map& map, const Grid& grid, const TileBox& box, const TileBox& next,
                                   const void* values, PackedScratch<Map, S>& s) {
  using Value = typename Map::Value;
  using Tile = TileShape<S>;
  constexpr std::size_t kRowBytes = Tile::kX * sizeof(Value);
  const std::uint64_t ahead = (next.first - box.first) * sizeof(Value);
  if constexpr (S == kPlane) {
    if (box.inx <= kNarrowest<S> && encode_narrow_rows<Map, S>(map, grid, box, values, s)) return {};
  }
  const std::uint32_t columns = worked_columns<S>(box.inx);
  alignas(64) Value copy[Tile::kX];
  std::uint32_t misfits = 0;
  for (std::uint32_t z = 0; z < box.inz; ++z) {
    for (std::uint32_t y = 0; y < box.iny; ++y) {
      const Loose<Value>* const row = loose_values<Value>(values, row_index<S>(grid, box, y, z));
      // rows are too many streams for hardware prefetchers: those of the next tile
      const std::uint64_t from = reinterpret_cast<std::uintptr_t>(row) + ahead;
      for (std::size_t line = 0; line < kRowBytes; line += 64)
        __builtin_prefetch(reinterpret_cast<const void*>(from + line));
      const Loose<Value>* const x = whole_row<S, Value>(box, row, copy);
      const std::uint32_t first = (z * Tile::kY + y) * Tile::kX;
      for (std::uint32_t i = 0; i < columns; i += 32)
        misfits |= s.misfits[(first + i) / 32] =
            static_cast<std::uint32_t>(encode_block<Map, 32>(map, x + i, s.codes + first + i));
    }
  }
  if constexpr (Map::kHasSpecial) {
    if (misfits != 0) [[unlikely]] {
      sort_rows<Map, S>(map, grid, box, values, s);
      repeat_rows<S, Tile::kX>(box, s.codes.data());
      return describe_specials<Map, S>(box, s);
    }
  }
  repeat_rows<S, Tile::kX>(box, s.codes.data());
  return {};
}

PYF_END_TARGET
