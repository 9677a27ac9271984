// SPDX-License-Identifier: BSD-3-Clause
// The parts of a packed tile to decode (decode.hpp): head, planes and descriptors, found and checked. They must add up
// to the tile's size; after that check no read can leave the tile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/packed/any_map.hpp"
#include "stages/packed/layout.hpp"
#include "stages/packed/missing.hpp"
#include "stages/packed/plan.hpp"
#include "stages/packed/special.hpp"
#include "stages/packed/tile_bits.hpp"
#include "stages/tile_decode.hpp"

PYF_BEGIN_TARGET

inline constexpr Status kBadHead{Code::corrupt, "corrupt frame: a tile's head is not one that its frame allows"};
inline constexpr Status kBadAbsent{Code::corrupt, "corrupt frame: a tile has bits for blocks outside the array"};

// A special block's masks and values, kept until the block's codes have become values.
struct MaskedBlock {
  PackedMasks masks;
  const std::uint8_t* verbatim;
  std::uint32_t block;
};

// A tile's parts, found and checked.
struct PackedParts {
  PackedHead head;
  std::uint64_t first = 0;
  alignas(64) BlockBytes width;  // planes of each block; 0 for absent blocks
  std::uint32_t exceptions[4] = {}, described[4] = {};
  bool has_missing = false;
  std::uint32_t missing[kPackedBlocks];  // masks of missing values, if the tile has any
  const std::uint8_t* descriptors = nullptr;
  const std::uint8_t* entries = nullptr;  // exceptions
  const std::uint8_t* words = nullptr;
  int masked_count = 0;  // special blocks whose masks have been read
  MaskedBlock masked[kPackedBlocks];

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

// Reads masks of missing values: a byte for each block in `masked`, then groups of four bits. The bytes are known to be
// inside the tile.
template <int S>
inline Status read_missing(const std::uint32_t (&masked)[4], bool plain, const std::uint8_t* from,
                           std::size_t available, std::uint32_t (&missing)[kPackedBlocks], std::size_t* bytes) {
  const std::uint32_t count = count_bits(masked);
  std::uint32_t groups = 0, at = 0;
  if (count > available) return kBadSize;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (from[i] == 0) return kBadRate;
    groups += static_cast<std::uint32_t>(__builtin_popcount(from[i]));
  }
  *bytes = count + nibble_bytes(groups);
  if (*bytes > available) return kBadSize;
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

// Limits of a frame's tiles: sizes in bytes, and kinds of special values.
struct TileLimits {
  std::uint32_t code_bytes, value_bytes;
  unsigned masks;
};
template <class Code>
KFN TileLimits limits_of(const MapFunctions<Code>& map) {
  return {sizeof(Code), map.value_bytes, map.masks};
}

template <int S>
[[gnu::noinline]] Status find_packed_parts(const PackedPlan& plan, const TileLimits& limits,
                                           const PresentBlocks& present, const std::uint8_t* bytes, std::size_t size,
                                           PackedParts& parts) {
  const std::uint32_t word = load_le<std::uint32_t>(bytes);
  const bool signs = (limits.masks & kMaskNegative) != 0;
  if (!head_allowed(word, packed_rules(limits.code_bytes, plan.has_sentinel, plan.step == 0, signs))) return kBadHead;
  const PackedHead head = parts.head = read_head(word);
  if ((head.flags & kPackedVerbatim) != 0) {
    parts.words = bytes + kPackedHeadBytes;
    return size == kPackedHeadBytes + static_cast<std::size_t>(present.count) * 32 * limits.value_bytes ? kOk
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
  parts.first = first;

  // planes of the tile
  const std::uint8_t* plane = bytes + head.bytes();
  std::uint32_t masked[4] = {};
  BlockBits all;  // blocks with a bit in any of the planes
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
  if (highest > 8 * limits.code_bytes) return kBadRate;

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
    if (masks == 0 || (masks & ~(limits.masks & ~kMaskSentinel)) != 0 || verbatim > 32 ||
        ((masks & kMaskVerbatim) == 0 && verbatim != 0))
      return kBadRate;
    special += 4 * static_cast<std::size_t>(__builtin_popcount(masks)) + verbatim_bytes(verbatim, limits.value_bytes);
  }
  parts.words = bytes + words_from;
  return words_from + 4 * std::size_t{planes} + special == size ? kOk : kBadSize;
}

// Reads the masks of special block `b` at `words`; `descriptor` is the block's. Returns the end of its verbatim values,
// or nullptr and the error.
[[gnu::noinline]] inline const std::uint8_t* take_masks(std::uint32_t b, std::uint32_t value_bytes,
                                                        const std::uint8_t* descriptor, const std::uint8_t* words,
                                                        PackedParts& parts, Status& error) {
  const PackedMasks masks = read_packed_masks(descriptor[0], words);
  const std::uint8_t* const verbatim = words + masks.bytes;
  bool padded = true;
  for (std::size_t i = descriptor[1] * value_bytes; i % 4 != 0; ++i)  // padding behind values of one or two bytes
    padded = padded && verbatim[i] == 0;
  parts.masked[parts.masked_count++] = {masks, verbatim, b};
  error = masks.verbatim_count() != descriptor[1] ? kBadCount : kBadPadding;
  return masks.verbatim_count() == descriptor[1] && padded ? verbatim + verbatim_bytes(descriptor[1], value_bytes)
                                                           : nullptr;
}

PYF_END_TARGET
