// SPDX-License-Identifier: BSD-3-Clause
// Decoding a packed tile (docs/format.md, section 7); encode.hpp is the inverse. Planes -> differences (here) -> codes
// (differences.hpp) -> values (map_steps.hpp), then special values (tile_values.hpp).
#pragma once

#include <cstdint>
#include <cstring>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/packed/any_map.hpp"
#include "stages/packed/decode_parts.hpp"
#include "stages/packed/differences.hpp"
#include "stages/packed/plan.hpp"
#include "stages/packed/tile_bits.hpp"
#include "stages/packed/tile_values.hpp"
#include "stages/packed/values.hpp"
#include "stages/planes.hpp"

PYF_BEGIN_TARGET

template <class Code>
struct PackedDecodeSpace {
  alignas(64) Code codes[4096];
  alignas(64) std::uint8_t values[4096 * sizeof(Code)];  // at the width of the values
};

// Planes of a block -> residuals without their sign. `entry`: the block's exception if it has one; advanced then.
template <class Code>
KFN void unpack_residuals(const std::uint8_t*& words, int width, bool exception, const std::uint8_t*& entry, Code* z) {
  unpack_planes(words, width, z);
  words += 4 * width;
  if (!exception) return;
  const auto e = load_le<std::uint16_t>(entry);
  entry += 2;
  if (width >= static_cast<int>(8 * sizeof(Code))) return;
  // changes one residual by a scalar store; vector loads of all residuals would wait for that store
  const auto above = static_cast<Code>(static_cast<Code>(e >> 5) << width);
  for (int i = 0; i < 32; ++i) z[i] = static_cast<Code>(z[i] + (i == e % 32 ? above : Code{0}));
}

// Planes of a tile -> its differences, in their positions. Prefetches the target of the values meanwhile.
template <class Code, int S>
KFN Status unpack_tile(const PackedPlan& plan, std::uint32_t value_bytes, const TileBox& box,
                       const PresentBlocks& present, PackedParts& parts, std::uint64_t start, std::uint64_t stop,
                       void* out, Code* differences) {
  const std::uint8_t *words = parts.words, *descriptor = parts.descriptors, *entry = parts.entries;
  // columns are prefetched in pieces even if blocks are absent: all at once decodes a fifth slower
  const bool prefetch_by_slices = S == kColumns || present.all();
  const std::uint32_t slice_step = S == kColumns ? TileShape<S>::kBlocksY * box.inx : kPackedBlocks;
  if (!prefetch_by_slices) ask_for_rows<S>(value_bytes, plan.grid, box, start, stop, out);
  for (const std::uint32_t b : present) {
    if (prefetch_by_slices)
      for (std::uint32_t slice = b; slice < kPackedBlocks; slice += slice_step)
        prefetch_slice<S>(value_bytes, plan.grid, box, slice, start, stop, out);
    if (parts.is_special(b)) [[unlikely]] {
      Status error;
      words = take_masks(b, value_bytes, descriptor, words, parts, error);
      if (words == nullptr) return error;
      descriptor += 2;
    }
    alignas(64) Code z[32];
    unpack_residuals(words, parts.width[b], parts.has_exception(b), entry, z);
    for (int i = 0; i < 32; ++i) z[i] = unzigzag(z[i]);
    put_block<S>(z, b, differences);
  }
  differences[0] = unzigzag(static_cast<Code>(parts.first));
  return kOk;
}

// Differences of a tile -> values, for all shapes except chains.
template <class Code, int S>
[[gnu::noinline]] void values_of_differences(const AnyMap<Code>& map, int order, PresentRows present, Code* d,
                                             void* values) {
  using Tile = TileShape<S>;
  constexpr std::uint32_t kX = Tile::kX;
  static_assert(S != kChain);
  if constexpr (S == kColumns) {
    for (std::uint32_t i = 1; i < kX; ++i) d[i] = static_cast<Code>(d[i] + d[i - 1]);
    for (std::uint32_t i = kX; i < present.y * kX; ++i) d[i] = static_cast<Code>(d[i] + d[i - kX]);
    map.of.decode_runs(map.memory, d, present.y * kX / 32, values);
    return;
  }
  constexpr PresentRows kWhole{Tile::kX, Tile::kY, Tile::kZ};
  if (present == kWhole) [[likely]] {
    row_sums<S, kX>(order, kWhole, d);
    map.of.decode_rows(map.memory, d, kX / 32, Tile::kY * Tile::kZ, kX, values);
    return;
  }
  const std::uint32_t columns = worked_columns<S>(present.x);
  if (S == kPlane && columns == kNarrowest<S>) return map.of.decode_narrow(map.memory, order, present, d, values);
  edge_sums<S>(order, present, columns, d);
  for (std::uint32_t z = 0; z < present.z; ++z) {
    const std::uint32_t slab = z * Tile::kY * kX;
    map.of.decode_rows(map.memory, d + slab, columns / 32, present.y, kX,
                       static_cast<std::uint8_t*>(values) + slab * map.of.value_bytes);
  }
}

template <class Code, int S>
inline Status decode_packed_tile(const Plan& base, const std::uint8_t* bytes, std::size_t size, bool uniform,
                                 std::uint64_t tile, std::uint64_t start, std::uint64_t stop, void* out) {
  const auto& plan = static_cast<const PackedPlan&>(base);
  using Tile = TileShape<S>;
  const AnyMap<Code> map(plan);
  const TileLimits limits = limits_of(map.of);
  if (uniform) return kBadHead;
  if (size > max_packed_bytes(limits.value_bytes)) return kBadSize;
  const TileBox box = tile_box<S>(plan.grid, tile);
  const PresentBlocks present = present_blocks<S>(box);
  PackedDecodeSpace<Code> space;
  PackedParts parts;
  if (size != 0) {
    PYF_TRY((find_packed_parts<S>(plan, limits, present, bytes, size, parts)));
    if ((parts.head.flags & kPackedVerbatim) != 0) {
      store_verbatim<S>(limits.value_bytes, plan.grid, box, parts.words, start, stop, space.values, out);
      return kOk;
    }
  } else {
    std::memset(parts.width, 0, sizeof parts.width);
  }
  const bool special = parts.has_missing || (parts.head.flags & (kPackedSpecial | kPackedNegative)) != 0;
  if constexpr (S == kChain) {
    // a chain with one contiguous target needs no copy of the tile
    const bool whole = !special && box.inx == Tile::kX && box.first >= start && box.first + 4096 <= stop;
    if (whole) {
      void* const to = static_cast<std::uint8_t*>(out) + (box.first - start) * limits.value_bytes;
      return map.of.decode_chain(map.memory, plan.order != 0, present, parts,
                                 {to, true, nullptr, nullptr, 0, 0, nullptr});
    }
    if (!present.all()) ask_for_rows<S>(limits.value_bytes, plan.grid, box, start, stop, out);
    PYF_TRY(map.of.decode_chain(map.memory, plan.order != 0, present, parts,
                                {space.values, false, &plan.grid, &box, start, stop, out}));
  } else {
    const PresentRows rows = present_rows<S>(box);
    if (rows.x < worked_columns<S>(rows.x)) [[unlikely]]  // columns of no block are worked, too
      std::memset(space.codes, 0, Tile::kX * Tile::kY * rows.z * sizeof(Code));
    PYF_TRY((unpack_tile<Code, S>(plan, limits.value_bytes, box, present, parts, start, stop, out, space.codes)));
    values_of_differences<Code, S>(map, plan.order, rows, space.codes, space.values);
  }
  if (special) [[unlikely]]
    place_specials<S>(plan, limits, parts, space.values);
  store_values<S>(limits.value_bytes, plan.grid, space.values, box, start, stop, out);
  return kOk;
}

PYF_END_TARGET
