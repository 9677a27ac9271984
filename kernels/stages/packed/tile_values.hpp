// SPDX-License-Identifier: BSD-3-Clause
// Values of a packed tile of any width: between array and tile, and bit for bit to and from special blocks. Compiled
// once for each tile shape (tile_instances.hpp), with a case for each width.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/plan.hpp"
#include "core/target.hpp"
#include "stages/packed/decode_parts.hpp"
#include "stages/packed/special.hpp"
#include "stages/packed/tile_bits.hpp"
#include "stages/packed/values.hpp"

PYF_BEGIN_TARGET

// Calls run(U) with U the unsigned integer of a width.
template <class Run>
KFN auto with_width(std::uint32_t value_bytes, const Run& run) {
  switch (value_bytes) {
    case 1:
      return run(std::uint8_t{});
    case 2:
      return run(std::uint16_t{});
    case 4:
      return run(std::uint32_t{});
    default:
      return run(std::uint64_t{});
  }
}

// A tile's values to read: row by row if `rows` is set, else in the array.
struct TileValues {
  std::uint32_t value_bytes;
  const Grid& grid;  // its block_dims are the tile shape
  const TileBox& box;
  const void* array;
  const void* rows;
};

// load_tile(): all values of a tile row by row, in the array or in a copy.
template <int S>
[[gnu::noinline]] const void* load_values(const TileValues& values, void* copy) {
  const Grid grid = values.grid;  // copies: stores to values cannot change them
  const TileBox box = values.box;
  return with_width(values.value_bytes, [&]<class U>(U) -> const void* {
    return load_tile<S>(grid, values.array, box, static_cast<U*>(copy));
  });
}

// Reads the values of a block.
template <int S>
[[gnu::noinline]] void block_values(const TileValues& values, std::uint32_t b, void* to) {
  with_width(values.value_bytes, [&]<class U>(U) {
    if ((S == kPlane || S == kVolume) && values.rows == nullptr) {
      if constexpr (S == kPlane || S == kVolume)
        gather_values<S>(values.grid, values.box, values.array, b, static_cast<U*>(to));
    } else {
      take_values<S>(loose_values<U>(values.rows, 0), b, static_cast<U*>(to));
    }
  });
}

[[gnu::noinline]] inline void block_values(const TileValues& values, std::uint32_t b, void* to) {
  switch (values.grid.block_dims) {
    case kChain:
      return block_values<kChain>(values, b, to);
    case kPlane:
      return block_values<kPlane>(values, b, to);
    case kVolume:
      return block_values<kVolume>(values, b, to);
    default:
      return block_values<kColumns>(values, b, to);
  }
}

// store_tile() for a value width known at run time.
template <int S>
[[gnu::noinline]] void store_values(std::uint32_t value_bytes, const Grid& grid, const void* x, const TileBox& box,
                                    std::uint64_t start, std::uint64_t stop, void* out) {
  with_width(value_bytes, [&]<class U>(U) { store_tile<S>(grid, static_cast<const U*>(x), box, start, stop, out); });
}

// Stores the values of a verbatim tile, read at `from`. `memory`: scratch for the tile.
template <int S>
[[gnu::noinline]] void store_verbatim(std::uint32_t value_bytes, const Grid& grid, const TileBox& box,
                                      const std::uint8_t* from, std::uint64_t start, std::uint64_t stop, void* memory,
                                      void* out) {
  with_width(value_bytes, [&]<class U>(U) {
    for (const std::uint32_t b : present_blocks<S>(box)) {
      U x[32];
      std::memcpy(x, from, sizeof x);
      put_values<S>(x, b, static_cast<U*>(memory));
      from += sizeof x;
    }
  });
  store_values<S>(value_bytes, grid, memory, box, start, stop, out);
}

// Writes the special values of a tile to their positions in `values`.
template <int S>
[[gnu::noinline]] void place_specials(const PackedPlan& plan, const TileLimits& limits, PackedParts& parts,
                                      void* values) {
  const bool negative = (parts.head.flags & kPackedNegative) != 0, signs = (limits.masks & kMaskNegative) != 0;
  with_width(limits.value_bytes, [&]<class U>(U) {
    U* const tile = static_cast<U*>(values);
    if (negative)
      for (int i = 0; i < 4096; ++i) tile[i] = static_cast<U>(tile[i] ^ U{1} << (8 * sizeof(U) - 1));
    const U sentinel = static_cast<U>(plan.has_sentinel ? plan.sentinel : 0);
    for (int b = 0, next = 0; b < kPackedBlocks; ++b) {
      const bool has_masks = next < parts.masked_count && parts.masked[next].block == static_cast<std::uint32_t>(b);
      const std::uint32_t missing = parts.has_missing ? parts.missing[b] : 0;
      if (!has_masks && missing == 0) continue;
      alignas(64) U x[32];
      take_values<S>(loose_values<U>(tile, 0), static_cast<std::uint32_t>(b), x);
      if (has_masks) {
        MaskedBlock& block = parts.masked[next++];
        block.masks.words[0] = missing;
        apply_packed_masks(signs, sentinel, block.masks, block.verbatim, negative, x);
      } else {
        fill_missing(missing, sentinel, x);
      }
      put_values<S>(x, static_cast<std::uint32_t>(b), tile);
    }
  });
}

PYF_END_TARGET
