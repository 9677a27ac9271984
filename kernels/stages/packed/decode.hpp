// SPDX-License-Identifier: BSD-3-Clause
// Decoding a packed tile (docs/format.md, section 7); encode.hpp is the way there. Head, planes and descriptors are
// read first and must add up to the tile's size; after that no read can leave the tile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/packed/differences.hpp"
#include "stages/packed/layout.hpp"
#include "stages/packed/missing.hpp"
#include "stages/packed/plan.hpp"
#include "stages/packed/special.hpp"
#include "stages/packed/special_integer.hpp"
#include "stages/packed/tile_bits.hpp"
#include "stages/packed/values.hpp"
#include "stages/planes.hpp"
#include "stages/tile_decode.hpp"

PYF_BEGIN_TARGET

inline constexpr Status kBadHead{Code::corrupt, "corrupt frame: a tile's head is not one that its frame allows"};
inline constexpr Status kBadAbsent{Code::corrupt, "corrupt frame: a tile has bits for blocks outside the array"};

// A tile's parts, found and checked.
template <class Code>
struct PackedParts {
  PackedHead head;
  Code first = 0;
  alignas(64) BlockBytes width;  // planes of each block; absent ones have none
  std::uint32_t exceptions[4] = {}, described[4] = {};
  bool has_missing = false;
  std::uint32_t missing[kPackedBlocks];  // masks, if there are any
  const std::uint8_t* descriptors = nullptr;
  const std::uint8_t* entries = nullptr;  // exceptions
  const std::uint8_t* words = nullptr;

  bool is_special(std::uint32_t b) const { return (described[b / 32] >> b % 32 & 1) != 0; }
  bool has_exception(std::uint32_t b) const { return (exceptions[b / 32] >> b % 32 & 1) != 0; }
};

KFN void read_bits(const std::uint8_t* from, std::uint32_t (&to)[4]) {
  for (int w = 0; w < 4; ++w) to[w] = load_le<std::uint32_t>(from + 4 * w);
}
KFN std::uint32_t count_bits(const std::uint32_t (&words)[4]) {
  std::uint32_t n = 0;
  for (const std::uint32_t w : words) n += static_cast<std::uint32_t>(__builtin_popcount(w));
  return n;
}

// Masks of missing values: a byte for each block in `masked`, then groups of four bits; room for the bytes is there.
template <int S>
[[gnu::noinline]] inline Status read_missing(const std::uint32_t (&masked)[4], bool plain, const std::uint8_t* from,
                                             std::size_t room, std::uint32_t (&missing)[kPackedBlocks],
                                             std::size_t* bytes) {
  const std::uint32_t count = count_bits(masked);
  std::uint32_t groups = 0, at = 0;
  if (count > room) return kBadSize;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (from[i] == 0) return kBadRate;
    groups += static_cast<std::uint32_t>(__builtin_popcount(from[i]));
  }
  *bytes = count + nibble_bytes(groups);
  if (*bytes > room) return kBadSize;
  const std::uint8_t *used = from, *const group = from + count;
  for (int b = 0; b < kPackedBlocks; ++b) {
    std::uint32_t residual = 0;
    if ((masked[b / 32] >> b % 32 & 1) != 0) {
      for (std::uint32_t rest = *used++; rest != 0; rest &= rest - 1, ++at) {
        const std::uint32_t bits = group[at / 2] >> 4 * (at % 2) & 15;
        if (bits == 0) return kBadRate;
        residual |= bits << 4 * __builtin_ctz(rest);
      }
    }
    const int above = block_above<S>(b), before = block_before<S>(b);
    const auto mask = [&missing](int block) { return block < 0 ? 0 : missing[block]; };
    missing[b] = plain ? residual
                       : mask_from<S>(residual, mask(above), mask(before),
                                      above < 0 || before < 0 ? 0 : mask(block_before<S>(above)));
  }
  return groups % 2 == 0 || group[groups / 2] >> 4 == 0 ? kOk : kBadPadding;
}

template <class Map, int S>
inline Status find_packed_parts(const PackedPlan& plan, const PresentBlocks& present, const std::uint8_t* bytes,
                                std::size_t size, PackedParts<typename Map::Code>& parts) {
  using Code = typename Map::Code;
  const std::uint32_t word = load_le<std::uint32_t>(bytes);
  constexpr bool kSigns = (Map::kMasks & kMaskNegative) != 0;
  if (!head_allowed(word, packed_rules(sizeof(Code), plan.has_sentinel, plan.step == 0, kSigns))) return kBadHead;
  const PackedHead head = parts.head = read_head(word);
  if ((head.flags & kPackedVerbatim) != 0) {
    parts.words = bytes + kPackedHeadBytes;
    return size == kPackedHeadBytes + static_cast<std::size_t>(present.count) * 32 * sizeof(typename Map::Value)
               ? kOk
               : kBadSize;
  }
  std::size_t at = head.bytes() + std::size_t{head.tile_planes()} * kPackedPlaneBytes;
  if (at > size) return kBadSize;
  std::uint64_t first = 0;
  for (std::uint32_t i = 0; i < (head.first_bytes + 3) / 4 * 4; ++i) {
    if (i < head.first_bytes)
      first |= std::uint64_t{bytes[kPackedHeadBytes + i]} << 8 * i;
    else if (bytes[kPackedHeadBytes + i] != 0)
      return kBadPadding;
  }
  parts.first = static_cast<Code>(first);

  // planes of the tile
  const std::uint8_t* plane = bytes + head.bytes();
  std::uint32_t masked[4] = {};
  BlockBits all;  // blocks that have a bit
  const auto note = [&] {
    for (int w = 0; w < 4; ++w) all.words[w] |= load_le<std::uint32_t>(plane + 4 * w);
  };
  const auto take = [&](std::uint32_t(&to)[4]) {
    read_bits(plane, to);
    note();
    plane += kPackedPlaneBytes;
  };
  numbers_of(plane, head.rate_planes, head.base, parts.width);
  for (std::uint32_t r = 0; r < head.rate_planes; ++r, plane += kPackedPlaneBytes) note();
  if ((head.flags & kPackedExceptions) != 0) take(parts.exceptions);
  if ((head.flags & kPackedMissing) != 0) take(masked);
  if ((head.flags & kPackedSpecial) != 0) take(parts.described);
  if (!present.all()) {
    BlockBits absent{{~0u, ~0u, ~0u, ~0u}};
    for (const std::uint32_t b : present) absent.words[b / 32] &= ~(1u << b % 32);
    for (int b = 0; b < kPackedBlocks; ++b)
      if (absent.bit(b) != 0) parts.width[b] = 0;
    for (int w = 0; w < 4; ++w)
      if ((all.words[w] & absent.words[w]) != 0) return kBadAbsent;
  }
  std::uint32_t planes = 0;
  std::uint8_t highest = 0;
  for (int b = 0; b < kPackedBlocks; ++b) planes += parts.width[b];
  for (int b = 0; b < kPackedBlocks; ++b) highest = std::max(highest, parts.width[b]);
  if (highest > 8 * sizeof(Code)) return kBadRate;

  // descriptors, exceptions, masks of missing values, words
  const std::uint32_t described = count_bits(parts.described), entries = count_bits(parts.exceptions);
  parts.descriptors = bytes + at;
  parts.entries = parts.descriptors + 2 * described;
  std::size_t end = at + 2 * (described + entries);
  if (end > size) return kBadSize;
  parts.has_missing = (head.flags & (kPackedMissing | kPackedAllMissing)) != 0;
  if ((head.flags & kPackedMissing) != 0) {
    std::size_t taken = 0;
    PYF_TRY((read_missing<S>(masked, (head.flags & kPackedPlainMasks) != 0, bytes + end, size - end, parts.missing,
                             &taken)));
    end += taken;
  } else if (parts.has_missing) {
    std::fill(std::begin(parts.missing), std::end(parts.missing), ~0u);
  }
  const std::size_t words_from = (end + 3) / 4 * 4;
  if (words_from > size) return kBadSize;
  for (std::size_t i = end; i < words_from; ++i)
    if (bytes[i] != 0) return kBadPadding;
  std::size_t special = 0;
  for (std::uint32_t i = 0; i < described; ++i) {
    const std::uint32_t masks = parts.descriptors[2 * i], verbatim = parts.descriptors[2 * i + 1];
    if (masks == 0 || (masks & ~(Map::kMasks & ~kMaskSentinel)) != 0 || verbatim > 32 ||
        ((masks & kMaskVerbatim) == 0 && verbatim != 0))
      return kBadRate;
    special +=
        4 * static_cast<std::size_t>(__builtin_popcount(masks)) + verbatim_bytes(verbatim, sizeof(typename Map::Value));
  }
  parts.words = bytes + words_from;
  return words_from + 4 * std::size_t{planes} + special == size ? kOk : kBadSize;
}

// A special block's masks and values, kept until its codes are values.
struct MaskedBlock {
  PackedMasks masks;
  const std::uint8_t* verbatim;
  std::uint32_t block;
};

template <class Map, int S>
struct PackedDecodeSpace {
  using Code = typename Map::Code;
  alignas(64) Code codes[4096];
  alignas(64) typename Map::Value values[4096];
  MaskedBlock masked[kPackedBlocks];
};

// Values of a tile that are not made from codes, into their places; `masked` of the blocks have masks of their own.
template <class Map, int S>
[[gnu::noinline]] inline void place_specials(const Map& map, const PackedParts<typename Map::Code>& parts, int masked,
                                             PackedDecodeSpace<Map, S>& space) {
  using Value = typename Map::Value;
  const bool negative = (parts.head.flags & kPackedNegative) != 0;
  if constexpr ((Map::kMasks & kMaskNegative) != 0) {
    if (negative)
      for (Value& value : space.values) value = -value;
  }
  for (int b = 0, next = 0; b < kPackedBlocks; ++b) {
    const bool has_masks = next < masked && space.masked[next].block == static_cast<std::uint32_t>(b);
    const std::uint32_t missing = parts.has_missing ? parts.missing[b] : 0;
    if (!has_masks && missing == 0) continue;
    alignas(64) Value x[32];
    take_values<S, Value>(loose_values<Value>(space.values, 0), static_cast<std::uint32_t>(b), x);
    if (has_masks) {
      MaskedBlock& block = space.masked[next++];
      block.masks.words[0] = missing;
      apply_packed_masks(map, block.masks, block.verbatim, negative, x);
    } else {
      fill_missing(missing, map.quantizer.sentinel_bits, x);
    }
    put_values<S>(x, static_cast<std::uint32_t>(b), space.values);
  }
}

// Values of a verbatim tile.
template <class Map, int S>
[[gnu::noinline]] inline void store_verbatim(const PackedPlan& plan, const TileBox& box, const std::uint8_t* from,
                                             PackedDecodeSpace<Map, S>& space, std::uint64_t start, std::uint64_t stop,
                                             void* out) {
  for (const std::uint32_t b : present_blocks<S>(box)) {
    typename Map::Value x[32];
    std::memcpy(x, from, sizeof x);
    put_values<S>(x, b, space.values);
    from += sizeof x;
  }
  store_tile<S>(plan.grid, space.values, box, start, stop, out);
}

template <class Map, int S>
inline Status decode_packed_tile(const Plan& base, const std::uint8_t* bytes, std::size_t size, bool uniform,
                                 std::uint64_t tile, std::uint64_t start, std::uint64_t stop, void* out) {
  const auto& plan = static_cast<const PackedPlan&>(base);
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  using Tile = TileShape<S>;
  if (uniform) return kBadHead;
  if (size > max_packed_bytes(sizeof(Value))) return kBadSize;
  const Map map(plan);
  const TileBox box = tile_box<S>(plan.grid, tile);
  const PresentBlocks present = present_blocks<S>(box);
  PackedDecodeSpace<Map, S> space;
  PackedParts<Code> parts;
  if (size != 0) {
    PYF_TRY((find_packed_parts<Map, S>(plan, present, bytes, size, parts)));
    if ((parts.head.flags & kPackedVerbatim) != 0) {
      store_verbatim<Map, S>(plan, box, parts.words, space, start, stop, out);
      return kOk;
    }
  } else {
    std::memset(parts.width, 0, sizeof parts.width);
  }
  const bool special = parts.has_missing || (parts.head.flags & (kPackedSpecial | kPackedNegative)) != 0;
  // a chain whose values all go to one place needs no copy of the tile
  const bool whole = S == kChain && !special && box.inx == Tile::kX && box.first >= start && box.first + 4096 <= stop;
  auto* const to =
      whole ? reinterpret_cast<Loose<Value>*>(static_cast<std::uint8_t*>(out) + (box.first - start) * sizeof(Value))
            : reinterpret_cast<Loose<Value>*>(space.values);

  // planes -> differences in their places; of a chain, values at once
  int masked = 0;
  const std::uint8_t *words = parts.words, *descriptor = parts.descriptors, *entry = parts.entries;
  Code carry = unzigzag(parts.first);
  const bool sums = S != kChain || plan.order != 0;
  // columns are asked for part by part though some blocks are absent: all at once they decode a fifth slower
  const bool ask_by_parts = S == kColumns || present.all();
  const std::uint32_t part_step = S == kColumns ? Tile::kBlocksY * box.inx : kPackedBlocks;
  if (!ask_by_parts) ask_for_rows<S, Value>(plan.grid, box, start, stop, out);
  for (const std::uint32_t b : present) {
    if (whole)
      ask_for_stores(to + 32 * b, kAskedAhead, 32 * sizeof(Value));
    else if (ask_by_parts)
      for (std::uint32_t part = b; part < kPackedBlocks; part += part_step)
        ask_for_part<S, Value>(plan.grid, box, part, start, stop, out);
    const int width = parts.width[b];
    if (parts.is_special(b)) [[unlikely]] {
      const PackedMasks masks = read_packed_masks(descriptor[0], words);
      if (masks.verbatim_count() != descriptor[1]) return kBadCount;
      space.masked[masked++] = {masks, words + masks.bytes, b};
      words += masks.bytes + verbatim_bytes(descriptor[1], sizeof(Value));
      if constexpr (sizeof(Value) < 4) {
        for (std::size_t i = descriptor[1] * sizeof(Value); i % 4 != 0; ++i)
          if (space.masked[masked - 1].verbatim[i] != 0) return kBadPadding;
      }
      descriptor += 2;
    }
    alignas(64) Code z[32];
    const bool exception = parts.has_exception(b);
    if constexpr (S == kChain) {
      if (width == 0 && !exception && sums) {
        for (int i = 0; i < 32; ++i) z[i] = 0;
        map.decode(z, carry, to + 32 * b);
        continue;
      }
      if (!exception && sums) {
        unpack_sums(words, width, z);
        words += 4 * width;
        if (b == 0) carry = static_cast<Code>(carry - z[0]);  // what the planes say of the first value does not count
        map.decode(z, carry, to + 32 * b);
        carry = static_cast<Code>(carry + z[31]);
        continue;
      }
    }
    unpack_planes(words, width, z);
    words += 4 * width;
    if (exception) {
      const auto e = load_le<std::uint16_t>(entry);
      entry += 2;
      if (width < static_cast<int>(8 * sizeof(Code))) {  // to one of them, but loads of all would wait for its store
        const auto above = static_cast<Code>(static_cast<Code>(e >> 5) << width);
        for (int i = 0; i < 32; ++i) z[i] = static_cast<Code>(z[i] + (i == e % 32 ? above : Code{0}));
      }
    }
    for (int i = 0; i < 32; ++i) z[i] = unzigzag(z[i]);
    if constexpr (S == kChain) {
      if (!sums) {
        if (b == 0) z[0] = unzigzag(parts.first);
        map.decode(z, Code{0}, to + 32 * b);
        continue;
      }
      accumulate_1d(z);
      if (b == 0) carry = static_cast<Code>(carry - z[0]);
      map.decode(z, carry, to + 32 * b);
      carry = static_cast<Code>(carry + z[31]);
    } else {
      put_block<S>(z, b, space.codes);
    }
  }

  // sums, and values row by row
  if constexpr (S != kChain) {
    space.codes[0] = unzigzag(parts.first);
    values_of_differences<S>(map, plan.order, present_rows<S>(box), space.codes, space.values);
  }
  if constexpr (Map::kHasSpecial) {
    if (special) [[unlikely]]
      place_specials<Map, S>(map, parts, masked, space);
  }
  if (!whole) store_tile<S>(plan.grid, space.values, box, start, stop, out);
  return kOk;
}

PYF_END_TARGET
