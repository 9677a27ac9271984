// SPDX-License-Identifier: BSD-3-Clause
// Offsets of the parts of a packed tile (docs/format.md, section 7), from the sizes of each warp's blocks.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "stages/cuda/packed/planes.cuh"

namespace pyfilter::cuda {

// The offsets of a tile's parts, in bytes of the tile, except `words` and `size`.
struct PackedTile {
  PackedHead head;
  std::uint32_t descriptors, exceptions, masks, words;  // of the tile
  std::uint32_t parts_end;
  std::uint32_t masked_blocks, own_mask, own_group;                     // of its mask section, as indices
  std::uint32_t own_descriptor, own_exception, own_words, own_present;  // of this thread, as indices
  std::uint32_t tile_words;
  bool with_exceptions, verbatim;
};

// The tile's layout from the shares of its warps. `with_more`: the tile has special or absent blocks.
template <bool kExceptions, class Value>
__device__ __forceinline__ PackedTile lay_out(const WarpShare (&shares)[kWarps], bool with_more,
                                              std::uint32_t tile_flags, std::uint32_t before_in_warp,
                                              std::uint32_t groups_in_warp, std::uint32_t first_bytes) {
  const int warp = static_cast<int>(threadIdx.x / 32);
  const std::uint32_t below = (1u << threadIdx.x % 32) - 1;
  const auto count = [](std::uint32_t bits) { return static_cast<std::uint32_t>(__popc(static_cast<int>(bits))); };
  PackedTile t = {};
  uint4 share[kWarps];  // words, widths, saved, exceptions
#pragma unroll
  for (int w = 0; w < kWarps; ++w) share[w] = *reinterpret_cast<const uint4*>(&shares[w]);
  if constexpr (kExceptions) t.with_exceptions = exceptions_pay(share[0].z + share[1].z + share[2].z + share[3].z);
  std::uint32_t narrowest = 255, widest = 0, words = 0, exception_count = 0, special_count = 0, groups = 0, present = 0;
  const unsigned shift = t.with_exceptions ? 16 : 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    const std::uint32_t taken = t.with_exceptions ? share[w].w : 0;
    if constexpr (kExceptions) {
      const std::uint32_t widths = share[w].y >> shift & 0xFFFF;
      narrowest = min(narrowest, widths & 0xFF);
      widest = max(widest, widths >> 8);
    } else {
      narrowest = min(narrowest, share[w].y);
      widest = max(widest, share[w].z);
    }
    const auto words_of = [&](std::uint32_t both) { return kExceptions ? both >> shift & 0xFFFF : both; };

    if (w == warp) {
      t.own_words = words + words_of(before_in_warp);
      t.own_exception = exception_count + count(taken & below);
    }
    words += words_of(share[w].x);
    if constexpr (kExceptions) exception_count += count(taken);
  }
  if (with_more) {
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      if (w == warp) {
        t.own_descriptor = special_count + count(shares[w].special & below);
        t.own_present = present + count(shares[w].present & below);
        t.own_mask = t.masked_blocks + count(shares[w].masked & below);
        t.own_group = groups + groups_in_warp;
      }
      special_count += count(shares[w].special);
      t.masked_blocks += count(shares[w].masked);
      groups += shares[w].groups;
      present += count(shares[w].present);
    }
  } else {
    present = kPackedBlocks;
    t.own_present = threadIdx.x;
  }
  t.head.base = narrowest;
  t.head.rate_planes = static_cast<std::uint32_t>(bit_width(widest - narrowest));
  t.head.first_bytes = first_bytes;
  t.head.flags =
      tile_flags | (exception_count != 0 ? kPackedExceptions : 0) | (special_count != 0 ? kPackedSpecial : 0);
  t.descriptors = t.head.bytes() + t.head.tile_planes() * kPackedPlaneBytes;
  t.exceptions = t.descriptors + 2 * special_count;
  t.masks = t.exceptions + 2 * exception_count;
  t.parts_end = t.masks + t.masked_blocks + nibble_bytes(groups);
  t.words = (t.parts_end + 3) / 4;
  t.tile_words = t.head.word() == 0 ? 0 : t.words + words;
  const std::uint32_t verbatim_words = 1 + present * 32 * static_cast<std::uint32_t>(sizeof(Value) / 4);
  t.verbatim = t.tile_words > verbatim_words;
  if (t.verbatim) t.tile_words = verbatim_words;
  return t;
}

}  // namespace pyfilter::cuda
