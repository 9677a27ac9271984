// SPDX-License-Identifier: BSD-3-Clause
// Values of a packed tile -> codes (encode.hpp). Chains and columns are encoded from the tile's values, planes and
// volumes row by row from the array. Planes one block wide (arrays like (N, 3)) are encoded block by block.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/plan.hpp"
#include "core/target.hpp"
#include "stages/packed/any_map.hpp"
#include "stages/packed/encode_special.hpp"
#include "stages/packed/tile_bits.hpp"
#include "stages/packed/tile_values.hpp"
#include "stages/packed/values.hpp"

PYF_BEGIN_TARGET

// Values -> codes of the whole tile. `values`: all of the tile, row by row.
template <class Code, int S>
[[gnu::noinline]] SpecialBlocks encode_tile_codes(const AnyMap<Code>& map, const TileBox& box, const void* values,
                                                  PackedScratch<Code>& s) {
  const ValueRows rows{
      .first = values, .ahead = S == kChain ? 4096 : 0u, .columns = 4096, .width = 4096, .worked = 4096};
  if (map.of.encode_rows(map.memory, rows, s.codes, s.marks.misfits) == 0) return {};
  s.marks.kinds = 0;
  map.of.sort_row(map.memory, rows, 0, s);
  return describe_specials<Code, S>(box, s);
}

// Copies the last row and slab inside the array to the rows and slabs outside that present blocks have; kRow entries a
// row.
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

// Values of the array -> codes of a plane one block wide, block by block. False if there are misfits.
template <class Code>
[[gnu::noinline]] inline bool encode_narrow_rows(const AnyMap<Code>& map, const Grid& grid, const TileBox& box,
                                                 const void* values, PackedScratch<Code>& s) {
  constexpr int S = kPlane;
  const std::uint32_t blocks = present_along(box.iny, TileShape<S>::kBlockY);
  // gather all values first: loads of pairs of rows would wait for stores just made
  with_width(map.of.value_bytes, [&]<class U>(U) {
    U* const to = reinterpret_cast<U*>(s.values);
    if constexpr (sizeof(U) == sizeof(Code))
      gather_short_rows<S, Code>(grid, box, values, to);
    else
      for (std::uint32_t b = 0; b < blocks; ++b) gather_values<S>(grid, box, values, b, to + 32 * b);
  });
  return map.of.encode_blocks(map.memory, s.values, blocks, s.codes.data()) == 0;
}

// Sorts the special values of a plane or a volume; `rows`: the values of its rows.
template <class Code, int S>
[[gnu::noinline]] inline void sort_rows(const AnyMap<Code>& map, const Grid& grid, const TileBox& box, ValueRows rows,
                                        PackedScratch<Code>& s) {
  using Tile = TileShape<S>;
  constexpr std::uint32_t kRuns = Tile::kX / 32;
  const auto* const values = static_cast<const std::uint8_t*>(rows.first);
  s.marks.kinds = 0;
  if (!is_whole<S>(box)) std::memset(&s.marks.runs, 0, sizeof s.marks.runs);  // masks of no block are read, too
  for (std::uint32_t z = 0; z < box.inz; ++z) {
    for (std::uint32_t y = 0; y < box.iny; ++y) {
      rows.first = values + (row_index<S>(grid, box, y, z) - box.first) * map.of.value_bytes;
      const std::uint32_t first = (z * Tile::kY + y) * kRuns;
      map.of.sort_row(map.memory, rows, first, s);
      for (std::uint32_t i = present_along(rows.worked, 32); i < kRuns; ++i)  // runs outside the array have no misfits
        for (auto& masks : s.marks.runs.of) masks[first + i] = ~0u;
    }
  }
  for (int kind = 0; kind < 5; ++kind)
    if ((s.marks.kinds >> kind & 1) != 0) repeat_rows<S, kRuns>(box, s.marks.runs.of[kind]);
}

// Values of the array -> codes of the present blocks' rows of a plane or a volume. `next`: the following tile, to
// prefetch.
template <class Code, int S>
[[gnu::noinline]] inline SpecialBlocks encode_tile_rows(const AnyMap<Code>& map, const Grid& grid, const TileBox& box,
                                                        const TileBox& next, const void* values,
                                                        PackedScratch<Code>& s) {
  using Tile = TileShape<S>;
  if constexpr (S == kPlane) {
    if (box.inx <= kNarrowest<S> && encode_narrow_rows(map, grid, box, values, s)) return {};
  }
  const std::uint32_t bytes = map.of.value_bytes;
  const auto* const first = static_cast<const std::uint8_t*>(values) + box.first * bytes;
  ValueRows rows{.first = first,
                 .stride = grid.nx * bytes,
                 .ahead = (next.first - box.first) * bytes,
                 .rows = box.iny,
                 .columns = box.inx,
                 .width = Tile::kX,
                 .worked = worked_columns<S>(box.inx)};
  std::uint32_t misfits = 0;
  for (std::uint32_t z = 0; z < box.inz; ++z) {
    rows.first = first + z * grid.ny * rows.stride;
    constexpr std::uint32_t kSlab = Tile::kY * Tile::kX;
    misfits |= map.of.encode_rows(map.memory, rows, s.codes + z * kSlab, s.marks.misfits + z * (kSlab / 32));
  }
  if (misfits != 0) [[unlikely]] {
    rows.first = first;
    sort_rows<Code, S>(map, grid, box, rows, s);
  }
  repeat_rows<S, Tile::kX>(box, s.codes.data());
  return misfits != 0 ? describe_specials<Code, S>(box, s) : SpecialBlocks{};
}

PYF_END_TARGET
