// SPDX-License-Identifier: BSD-3-Clause
// The parts of a packed tile (docs/format.md, section 7.2), on CPU and GPU: its head, and the exception of a block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/tile_shape.hpp"

namespace pyfilter {

inline constexpr std::uint32_t kPackedExceptions = 1, kPackedMissing = 2, kPackedSpecial = 4, kPackedAllMissing = 8,
                               kPackedVerbatim = 16, kPackedPlainMasks = 32, kPackedNegative = 64;
inline constexpr std::uint32_t kPackedHeadBytes = 4, kPackedPlaneBytes = 16, kMostRatePlanes = 7;

// A verbatim tile is the largest tile.
constexpr KFN std::size_t max_packed_bytes(std::size_t value_bytes) { return kPackedHeadBytes + 4096 * value_bytes; }

struct PackedHead {
  std::uint32_t base = 0, rate_planes = 0, first_bytes = 0, flags = 0;

  constexpr KFN std::uint32_t word() const { return base | rate_planes << 8 | first_bytes << 12 | flags << 16; }
  // The tile's own bit planes: rates, exceptions, missing values, special blocks.
  constexpr KFN std::uint32_t tile_planes() const {
    return rate_planes + (flags & kPackedExceptions) + (flags >> 1 & 1) + (flags >> 2 & 1);
  }
  // Bytes of the head and the first value, rounded up to words.
  constexpr KFN std::uint32_t bytes() const { return kPackedHeadBytes + (first_bytes + 3) / 4 * 4; }
};

constexpr KFN PackedHead read_head(std::uint32_t word) {
  return {word & 0xFF, word >> 8 & 7, word >> 12 & 0xF, word >> 16 & 0xFF};
}

// Limits that a frame sets for its tiles.
struct PackedRules {
  std::uint32_t code_bytes = 4, flags = 0;
};
constexpr KFN PackedRules packed_rules(std::uint32_t code_bytes, bool has_sentinel, bool exact, bool signs) {
  return {code_bytes, kPackedExceptions | kPackedVerbatim | (exact ? 0 : kPackedSpecial) |
                          (has_sentinel ? kPackedMissing | kPackedAllMissing | kPackedPlainMasks : 0) |
                          (signs ? kPackedNegative : 0)};
}

// Whether a head keeps the limits.
constexpr KFN bool head_allowed(std::uint32_t word, const PackedRules& rules) {
  const PackedHead head = read_head(word);
  const bool known = (word & 0xFF000800u) == 0 && (head.flags & ~rules.flags) == 0;
  const bool sizes = head.base <= 8 * rules.code_bytes && head.first_bytes <= rules.code_bytes;
  const bool missing = (head.flags & (kPackedMissing | kPackedPlainMasks)) != kPackedPlainMasks;
  const bool all_missing =
      (head.flags & kPackedAllMissing) == 0 || (head.flags & (kPackedMissing | kPackedSpecial | kPackedNegative)) == 0;
  const bool verbatim = (head.flags & kPackedVerbatim) == 0 || word == kPackedVerbatim << 16;
  return known && sizes && missing && all_missing && verbatim;
}

// An exception: its position in the block, and its residual's bits above the other residuals' planes.
inline constexpr int kExceptionBits = 11;
inline constexpr std::uint32_t kExceptionCost = 16;  // bits

// Whether the bits that exceptions save exceed their plane of the tile.
constexpr KFN bool exceptions_pay(std::uint32_t saved_bits) { return saved_bits > 8 * kPackedPlaneBytes; }

// Splits off a block's widest residual, found from the top planes: each has exactly one bit set, at the same position.
struct Exception {
  int planes = 0;           // remaining planes
  std::uint32_t entry = 0;  // as stored in the tile
};

// `plane(p)` returns plane p of a block that has `width` planes. No exception: planes == width.
template <class Planes>
KFN Exception split_exception(int width, const Planes& plane) {
  std::uint32_t any = 0, high = 0;
  int p = width;
  while (p > 0 && width - p < kExceptionBits) {
    const std::uint32_t wider = any | plane(p - 1);
    if ((wider & (wider - 1)) != 0) break;
    high = high << 1 | (plane(p - 1) != 0 ? 1u : 0u);
    any = wider;
    --p;
  }
  if (p == width) return {width, 0};
  return {p, static_cast<std::uint32_t>(bit_width(any) - 1) | high << 5};
}

}  // namespace pyfilter
