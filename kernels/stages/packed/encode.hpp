// SPDX-License-Identifier: BSD-3-Clause
// Encoding a packed tile (docs/format.md, section 7); decode.hpp is the inverse. Steps: values -> codes
// (encode_codes.hpp), special values (encode_special.hpp); differences through the tile; planes and exception of each
// block; sizes; the tile's bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/difference.hpp"
#include "stages/packed/any_map.hpp"
#include "stages/packed/differences.hpp"
#include "stages/packed/encode_codes.hpp"
#include "stages/packed/encode_special.hpp"
#include "stages/packed/layout.hpp"
#include "stages/packed/plan.hpp"
#include "stages/packed/tile_bits.hpp"
#include "stages/packed/tile_values.hpp"
#include "stages/planes.hpp"
#include "stages/tile_encode.hpp"

PYF_BEGIN_TARGET

// Splits off a block's widest residual if the others have fewer planes: split_exception() from residuals, not planes.
// `top`: the highest plane of `width`. Returns the remaining planes. `unpredictable`: outliers vary from block to
// block, so a branch costs more than the work.
template <class Code>
KFN int split_widest(const Code* z, int width, std::uint32_t top, bool unpredictable, std::uint16_t* entry) {
  // a row of ones with a single zero
  alignas(64) static constexpr auto kHole = [] {
    std::array<Code, 63> mask{};
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = i == 31 ? Code{0} : static_cast<Code>(~Code{0});
    return mask;
  }();
  if (!unpredictable && (top & (top - 1)) != 0) return width;
  const int widest = __builtin_ctz(top);
  const Code* const others = kHole.data() + 31 - widest;
  Code any = 0;
  for (int i = 0; i < 32; ++i) any |= z[i] & others[i];
  const int planes = std::max(bit_width(any), width - kExceptionBits);
  *entry = static_cast<std::uint16_t>(static_cast<std::uint32_t>(widest) |
                                      static_cast<std::uint32_t>(z[widest] >> std::min(planes, width - 1)) << 5);
  return planes;
}

// Residuals of a block. `shift`: wrap_shift().
template <class Code, int S>
KFN void block_residuals(const PackedPlan& plan, int shift, std::uint32_t b, PackedScratch<Code>& s, Code* z) {
  const auto to_residuals = [&](const auto& difference) {
    if (sizeof(Code) == 8 || shift == 0) [[likely]]
      for (int i = 0; i < 32; ++i) z[i] = zigzag(difference(i));
    else
      for (int i = 0; i < 32; ++i) z[i] = zigzag(wrapped(difference(i), shift));
  };
  if constexpr (S == kChain) {
    const Code* const q = s.codes + 32 * b;
    if (plan.order != 0) [[likely]] {
      to_residuals([q](int i) { return static_cast<Code>(q[i] - q[i - 1]); });
    } else {
      to_residuals([q](int i) { return q[i]; });
      if (b == 0) z[0] = 0;
    }
  } else {
    take_block<S>(s.differences, b, z);
    to_residuals([z](int i) { return z[i]; });
  }
}

// Records a block's widths with and without an exception; `any`: the OR of its residuals.
template <class Code>
KFN void note_width(bool exceptions, bool unpredictable, std::uint32_t b, const Code* z, Code any,
                    PackedScratch<Code>& s) {
  const int width = bit_width(any);
  int kept = width;
  if (exceptions && width != 0)
    kept = split_widest(z, width, s.planes[b * s.kPlaneCapacity + static_cast<std::uint32_t>(width - 1)], unpredictable,
                        &s.exception[b]);
  s.width[b] = static_cast<std::uint8_t>(width);
  s.kept[b] = static_cast<std::uint8_t>(kept);
}

// Codes -> planes and widths of the present blocks, in pairs. Returns the residual of the tile's first value.
template <class Code, int S>
KFN Code encode_tile_planes(const PackedPlan& plan, const TileBox& box, const PresentBlocks& present,
                            PackedScratch<Code>& s) {
  const int shift = wrap_shift(plan);
  const Code first = zigzag(wrapped(s.codes[0], shift));
  if constexpr (S == kChain) {
    s.codes[-1] = s.codes[0];
  } else {
    tile_differences<S>(plan.order, present_rows<S>(box), s.codes.data(), s.differences);
    s.differences[0] = 0;
  }
  if (!present.all()) {
    std::memset(s.width, 0, sizeof s.width);
    std::memset(s.kept, 0, sizeof s.kept);
  }
  const bool unpredictable = S == kPlane && box.inx <= kNarrowest<S>;  // columns of unrelated quantities
  for (int i = 0; i < present.count; i += 2) {
    alignas(64) Code z[64];
    const std::uint32_t a = present.block[i];
    std::uint32_t* const planes = s.planes + a * s.kPlaneCapacity;
    block_residuals<Code, S>(plan, shift, a, s, z);
    if (i + 1 == present.count) [[unlikely]] {
      note_width(plan.exceptions, unpredictable, a, z, transpose_planes<1>(z, ~0u, false, planes, s.kPlaneCapacity), s);
      break;
    }
    const std::uint32_t b = present.block[i + 1];
    block_residuals<Code, S>(plan, shift, b, s, z + 32);
    Code any[2];
    transpose_blocks(z, ~0u, planes, static_cast<int>(b - a) * s.kPlaneCapacity, any);
    note_width(plan.exceptions, unpredictable, a, z, any[0], s);
    note_width(plan.exceptions, unpredictable, b, z + 32, any[1], s);
  }
  return first;
}

// Decides how many planes each block stores, and which blocks have an exception.
template <class Code>
KFN BlockBits choose_exceptions(const PackedPlan& plan, PackedScratch<Code>& s) {
  if (plan.exceptions) {
    BlockBytes split;
    std::uint32_t fewer = 0, count = 0;
    for (int b = 0; b < kPackedBlocks; ++b) split[b] = s.width[b] != s.kept[b] ? 1 : 0;
    for (int b = 0; b < kPackedBlocks; ++b) fewer += static_cast<std::uint32_t>(s.width[b] - s.kept[b]);
    for (int b = 0; b < kPackedBlocks; ++b) count += split[b];
    if (exceptions_pay(32 * fewer - kExceptionCost * count)) {
      std::memcpy(s.left, s.kept, sizeof s.left);
      return plane_of(split, 0);
    }
  }
  std::memcpy(s.left, s.width, sizeof s.left);
  return {};
}

inline std::uint8_t* put_bits(const BlockBits& bits, std::uint8_t* to) {
  for (int w = 0; w < 4; ++w) store_le(to + 4 * w, bits.words[w]);
  return to + kPackedPlaneBytes;
}

// A verbatim tile: the values of the present blocks.
[[gnu::noinline]] inline EncodedTile write_verbatim_tile(const PresentBlocks& present, const TileValues& values,
                                                         std::uint8_t* out) {
  store_le(out, kPackedVerbatim << 16);
  std::uint8_t* to = out + kPackedHeadBytes;
  for (const std::uint32_t b : present) {
    alignas(64) std::uint8_t here[32 * 8];
    block_values(values, b, here);
    std::memcpy(to, here, 32 * values.value_bytes);
    to += 32 * values.value_bytes;
  }
  return {static_cast<std::uint32_t>(to - out), false};
}

// Sums over the planes of the present blocks.
struct PlaneCounts {
  std::uint32_t narrowest = 255, widest = 0, words = 0;
};
KFN PlaneCounts count_planes(const PresentBlocks& present, const BlockBytes& left) {
  std::uint8_t low = 255, high = 0;
  PlaneCounts counts;
  for (int b = 0; b < kPackedBlocks; ++b) high = std::max(high, left[b]);
  for (int b = 0; b < kPackedBlocks; ++b) counts.words += left[b];
  if (present.all())
    for (int b = 0; b < kPackedBlocks; ++b) low = std::min(low, left[b]);
  else
    for (const std::uint8_t b : present) low = std::min(low, left[b]);
  counts.narrowest = low;
  counts.widest = high;
  return counts;
}

// Writes head, masks and planes of a tile; `left`: planes of each present block. Verbatim tiles and special blocks need
// `values`.
template <class Code>
[[gnu::noinline]] EncodedTile write_packed_tile(const PresentBlocks& present, const TileValues& values,
                                                const SpecialBlocks& special, Code first, const BlockBits& exceptions,
                                                PackedScratch<Code>& s, std::uint8_t* out) {
  // sizes
  PackedHead head;
  const PlaneCounts planes_of = count_planes(present, s.left);
  std::uint32_t verbatim = 0, mask_words = 0;
  if (special.any) {
    special.described.for_set([&](std::uint32_t b) {
      verbatim += verbatim_bytes(special_of(s.marks, b).verbatim_count(), values.value_bytes);
      mask_words += static_cast<std::uint32_t>(__builtin_popcount(s.marks.described[b]));
    });
  }
  head.base = planes_of.narrowest;
  head.rate_planes = static_cast<std::uint32_t>(bit_width(planes_of.widest - planes_of.narrowest));
  head.first_bytes = static_cast<std::uint32_t>(bit_width(first) + 7) / 8;
  const std::uint32_t exception_count = exceptions.count(), special_count = special.described.count();
  head.flags =
      special.flags | (exception_count != 0 ? kPackedExceptions : 0) | (special_count != 0 ? kPackedSpecial : 0);
  if (head.word() == 0) return {0, false};
  const std::uint32_t parts =
      2 * (special_count + exception_count) + special.masked.count() + nibble_bytes(special.nibbles);
  const std::uint32_t size = head.bytes() + head.tile_planes() * kPackedPlaneBytes + (parts + 3) / 4 * 4 +
                             4 * (planes_of.words + mask_words) + verbatim;
  if (size > kPackedHeadBytes + static_cast<std::uint32_t>(present.count) * 32 * values.value_bytes)
    return write_verbatim_tile(present, values, out);

  // head, first value, planes of the tile
  store_le(out, head.word());
  store_le(out + kPackedHeadBytes,
           static_cast<std::uint64_t>(first));  // bytes beyond the first value are overwritten by the planes
  std::uint8_t* p = out + head.bytes();
  if (head.rate_planes != 0) {
    alignas(64) BlockBytes above;
    for (int b = 0; b < kPackedBlocks; ++b) {  // absent blocks have width 0
      const auto over = static_cast<std::uint8_t>(s.left[b] - head.base);
      above[b] = s.left[b] > head.base ? over : std::uint8_t{0};
    }
    for (std::uint32_t r = 0; r < head.rate_planes; ++r) p = put_bits(plane_of(above, r), p);
  }
  if ((head.flags & kPackedExceptions) != 0) p = put_bits(exceptions, p);
  if ((head.flags & kPackedMissing) != 0) p = put_bits(special.masked, p);
  if ((head.flags & kPackedSpecial) != 0) p = put_bits(special.described, p);

  // descriptors, exceptions, masks of missing values, padding
  if (parts != 0) {
    special.described.for_set([&](std::uint32_t b) {
      *p++ = s.marks.described[b];
      *p++ = special_of(s.marks, b).verbatim_count();
    });
    exceptions.for_set([&](std::uint32_t b) {
      store_le(p, s.exception[b]);
      p += 2;
    });
    if ((head.flags & kPackedMissing) != 0) p = write_masks(special, s.marks, p);
    for (std::uint32_t i = parts; i % 4 != 0; ++i) *p++ = 0;
  }

  // words
  for (const std::uint32_t b : present) {
    if (special.any && special.described.bit(static_cast<int>(b)) != 0) [[unlikely]] {
      alignas(64) std::uint8_t here[32 * sizeof(Code)];
      block_values(values, b, here);
      p = write_packed_special(special_of(s.marks, b), values.value_bytes, here, p);
    }
    const std::uint32_t* const planes = s.planes + b * s.kPlaneCapacity;
    const std::size_t count = s.left[b];
    copy_bytes<64>(planes,
                   p);  // most blocks have at most 16 planes; words beyond the end are overwritten by the next block
    if (count > 16) [[unlikely]]
      std::memcpy(p + 64, planes + 16, 4 * (count - 16));
    p += 4 * count;
  }
  return {static_cast<std::uint32_t>(p - out), false};
}

template <class Code, int S>
inline EncodedTile encode_packed_tile(const Plan& base, const void* values, std::uint64_t tile, void* scratch,
                                      std::uint8_t* out) {
  const auto& plan = static_cast<const PackedPlan&>(base);
  auto& s = *static_cast<PackedScratch<Code>*>(scratch);
  static_assert(sizeof(PackedScratch<Code>) <= kScratchBytes);
  const AnyMap<Code> map(plan);
  const TileBox box = tile_box<S>(plan.grid, tile);
  const PresentBlocks present = present_blocks<S>(box);
  TileValues tile_values{map.of.value_bytes, plan.grid, box, values, nullptr};
  SpecialBlocks special;
  if constexpr (S == kPlane || S == kVolume) {
    special = encode_tile_rows<Code, S>(map, plan.grid, box, tile_box<S>(plan.grid, tile + 1), values, s);
  } else {
    tile_values.rows = load_values<S>(tile_values, s.values);
    special = encode_tile_codes<Code, S>(map, box, tile_values.rows, s);
  }
  if ((special.flags & kPackedAllMissing) != 0) {  // all codes are 0
    store_le(out, kPackedAllMissing << 16);
    return {kPackedHeadBytes, false};
  }
  const Code first = encode_tile_planes<Code, S>(plan, box, present, s);
  const BlockBits exceptions = choose_exceptions(plan, s);
  return write_packed_tile(present, tile_values, special, first, exceptions, s, out);
}

PYF_END_TARGET
