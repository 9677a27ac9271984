// SPDX-License-Identifier: BSD-3-Clause
// Encoding a packed tile (docs/format.md, section 7); decode.hpp is the way back. Steps: values -> codes, special
// values sorted out; differences through the tile; planes of each block; rates, exceptions and sizes; the tile's bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/bits.hpp"
#include "core/plan.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/difference.hpp"
#include "stages/packed/layout.hpp"
#include "stages/packed/lorenzo.hpp"
#include "stages/packed/missing.hpp"
#include "stages/packed/special.hpp"
#include "stages/packed/special_integer.hpp"
#include "stages/packed/values.hpp"
#include "stages/planes.hpp"
#include "stages/tile_encode.hpp"

PYF_BEGIN_TARGET

template <class Map, int S>
struct PackedScratch {
  using Code = typename Map::Code;
  static constexpr int kPlaneRoom = 8 * sizeof(Code);
  alignas(64) typename Map::Value values[4096];
  PaddedCodes<Code, 4096> codes;
  alignas(64) Code differences[S == kChain ? 1 : 4096];
  alignas(64) std::uint32_t planes[kPackedBlocks * kPlaneRoom];
  std::uint8_t width[kPackedBlocks];  // planes before exceptions
  Exception exception[kPackedBlocks];
  std::uint8_t left[kPackedBlocks];  // planes that are written
  PackedSpecial special[kPackedBlocks];
  std::uint32_t mask_residual[kPackedBlocks];
};

// Bits of 128 blocks.
struct BlockBits {
  std::uint32_t words[4] = {};
  void set(int b) { words[b / 32] |= 1u << b % 32; }
  std::uint32_t bit(int b) const { return words[b / 32] >> b % 32 & 1; }
  std::uint32_t count() const {
    std::uint32_t n = 0;
    for (const std::uint32_t w : words) n += static_cast<std::uint32_t>(__builtin_popcount(w));
    return n;
  }
};

// What a tile has besides codes; nothing for most.
struct SpecialBlocks {
  BlockBits described, masked;  // blocks with a descriptor; those whose mask of missing values is not as foretold
  std::uint32_t nibbles = 0;    // of all masks
  std::uint32_t flags = 0;      // of the head
  bool any = false;
};

// Codes that stand in for those that are not seen: along each line the last one seen, at its start the first; for lines
// without any, those of another line (line_source()).
template <class Map, int S>
[[gnu::noinline]] inline void fill_lines(PackedScratch<Map, S>& s) {
  using Code = typename Map::Code;
  using Lines = TileLines<S>;
  std::uint32_t filled[4] = {};
  bool all_filled = true;
  const auto unseen = [&s](std::uint32_t b) { return s.special[b].unseen(); };
  const auto seen_of = [&](int line) {
    return ~line_bits<S>(unseen, line) & (~std::uint64_t{0} >> (64 - Lines::kLength));
  };
  for (int line = 0; line < Lines::kCount; ++line) {
    const std::uint64_t seen = seen_of(line);
    all_filled = all_filled && seen != 0;
    filled[line / 32] |= static_cast<std::uint32_t>(seen != 0) << line % 32;
    if (seen == 0 || seen == ~std::uint64_t{0} >> (64 - Lines::kLength)) continue;
    Code* const q = s.codes + Lines::first_of(line);
    if constexpr (Lines::kStep == 1) {
      forward_fill<Lines::kLength>(q, seen);
    } else {
      alignas(64) Code together[Lines::kLength];
      for (std::uint32_t i = 0; i < Lines::kLength; ++i) together[i] = q[i * Lines::kStep];
      forward_fill<Lines::kLength>(together, seen);
      for (std::uint32_t i = 0; i < Lines::kLength; ++i) q[i * Lines::kStep] = together[i];
    }
  }
  if (all_filled) return;
  for (int line = 0; line < Lines::kCount; ++line) {
    if ((filled[line / 32] >> line % 32 & 1) != 0) continue;
    const int source = line_source<S>(filled, line);
    Code* const q = s.codes + Lines::first_of(line);
    const Code* const from = s.codes + (source < 0 ? 0 : Lines::first_of(source));
    const Code ends[2] = {from[0], from[(Lines::kLength - 1) * Lines::kStep]};
    for (std::uint32_t i = 0; i < Lines::kLength; ++i)
      q[i * Lines::kStep] = source < 0 ? Code{0} : S == kPlane || S == kVolume ? from[i] : ends[source < line];
  }
}

// Masks of missing values against what they are foretold to be, or as they are where that takes less.
template <class Map, int S>
inline void foretell_masks(const TileBox& box, PackedScratch<Map, S>& s, SpecialBlocks& found) {
  std::uint32_t foretold_cost = 0, plain_cost = 0;  // in groups of four bits
  bool all = true;
  const auto mask = [&s](int b) { return b < 0 ? 0 : s.special[b].missing(); };
  for (int b = 0; b < kPackedBlocks; ++b) {
    if (!is_present<S>(box, static_cast<std::uint32_t>(b))) continue;
    const int above = block_above<S>(b), before = block_before<S>(b);
    const std::uint32_t here = mask(b),
                        residual = mask_residual<S>(here, mask(above), mask(before),
                                                    above < 0 || before < 0 ? 0 : mask(block_before<S>(above)));
    s.mask_residual[b] = residual;
    all = all && here == ~0u;
    foretold_cost += residual != 0 ? 2 + static_cast<std::uint32_t>(__builtin_popcount(nibbles_of(residual))) : 0;
    plain_cost += here != 0 ? 2 + static_cast<std::uint32_t>(__builtin_popcount(nibbles_of(here))) : 0;
  }
  if (all) {
    found.flags |= kPackedAllMissing;
    return;
  }
  if (plain_cost == 0) return;
  const bool plain = plain_cost < foretold_cost;
  found.flags |= kPackedMissing | (plain ? kPackedPlainMasks : 0);
  for (int b = 0; b < kPackedBlocks; ++b) {
    if (!is_present<S>(box, static_cast<std::uint32_t>(b))) continue;
    if (plain) s.mask_residual[b] = mask(b);
    if (s.mask_residual[b] == 0) continue;
    found.masked.set(b);
    found.nibbles += static_cast<std::uint32_t>(__builtin_popcount(nibbles_of(s.mask_residual[b])));
  }
}

// Where more blocks have negative values than others, the others are noted.
template <class Map, int S>
inline void note_signs(const TileBox& box, PackedScratch<Map, S>& s, SpecialBlocks& found) {
  int negative = 0, other = 0;
  const auto signs_of = [](const PackedSpecial& special) {
    return ~static_cast<std::uint32_t>(special.sentinel | special.nan | special.verbatim);
  };
  for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
    if (!is_present<S>(box, b)) continue;
    negative += s.special[b].negative != 0 ? 1 : 0;
    other += (~s.special[b].negative & signs_of(s.special[b])) != 0 ? 1 : 0;
  }
  if (negative <= other) return;
  found.flags |= kPackedNegative;
  for (PackedSpecial& special : s.special) {
    special.negative = ~special.negative & signs_of(special);
    special.masks = (special.masks & ~kMaskNegative) | (special.negative != 0 ? kMaskNegative : 0);
  }
}

// Sorts out the special values of a tile with misfits.
template <class Map, int S>
[[gnu::noinline]] inline SpecialBlocks note_special_blocks(const Map& map, const TileBox& box,
                                                           const Loose<typename Map::Value>* x,
                                                           PackedScratch<Map, S>& s) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  SpecialBlocks found;
  bool unseen = false, missing = false;
  for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
    alignas(64) Value values[32];
    alignas(64) Code q[32];
    take_values<S, Value>(x, b, values);
    PackedSpecial& special = s.special[b];
    special = {};
    const std::uint64_t misfits = encode_block<Map, 32>(map, values, q);
    if (misfits != 0) sort_packed(map.quantizer, values, q, misfits, special);
    put_block<S>(q, b, s.codes.data());
    unseen = unseen || special.unseen() != 0;
    missing = missing || special.missing() != 0;
  }
  if (unseen) fill_lines<Map, S>(s);
  if (missing) foretell_masks<Map, S>(box, s, found);
  if constexpr ((Map::kMasks & kMaskNegative) != 0) {
    if ((found.flags & kPackedAllMissing) == 0) note_signs<Map, S>(box, s, found);
  }
  for (std::uint32_t b = 0; b < kPackedBlocks; ++b)
    if (s.special[b].described() != 0 && is_present<S>(box, b)) found.described.set(static_cast<int>(b));
  found.any = found.flags != 0 || found.described.count() != 0;
  return found;
}

// Values -> codes of the whole tile.
template <class Map, int S>
KFN SpecialBlocks encode_tile_codes(const Map& map, const TileBox& box, const Loose<typename Map::Value>* x,
                                    PackedScratch<Map, S>& s) {
  std::uint64_t misfits = 0;
  for (int i = 0; i < kPackedBlocks; ++i) {
    if constexpr (S == kChain) {
      for (std::size_t line = 0; line < 32 * sizeof(*x); line += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(x + 32 * i) + 4096 + line);
    }
    misfits |= encode_block<Map, 32>(map, x + 32 * i, s.codes + 32 * i);
  }
  if constexpr (Map::kHasSpecial) {
    if (misfits != 0) return note_special_blocks<Map, S>(map, box, x, s);
  }
  return {};
}

// Codes -> planes and widths of the present blocks. Returns the tile's first value as a residual.
template <class Map, int S>
KFN typename Map::Code encode_tile_planes(const Map& map, const Plan& plan, const TileBox& box,
                                          PackedScratch<Map, S>& s) {
  using Code = typename Map::Code;
  const Code first = zigzag(map.wrap(s.codes[0]));
  if constexpr (S == kChain) {
    s.codes[-1] = s.codes[0];
  } else {
    tile_differences<S>(plan.order, s.codes.data(), s.differences);
    s.differences[0] = 0;
  }
  for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
    if (!is_present<S>(box, b)) continue;
    alignas(64) Code z[32];
    if constexpr (S == kChain) {
      const Code* const q = s.codes + 32 * b;
      if (plan.order != 0) [[likely]] {
        for (int i = 0; i < 32; ++i) z[i] = zigzag(map.wrap(static_cast<Code>(q[i] - q[i - 1])));
      } else {
        for (int i = 0; i < 32; ++i) z[i] = zigzag(map.wrap(q[i]));
        if (b == 0) z[0] = 0;
      }
    } else {
      take_block<S>(s.differences, b, z);
      for (int i = 0; i < 32; ++i) z[i] = zigzag(map.wrap(z[i]));
    }
    s.width[b] = static_cast<std::uint8_t>(
        bit_width(transpose_planes<1>(z, ~0u, false, s.planes + b * s.kPlaneRoom, s.kPlaneRoom)));
  }
  return first;
}

// Planes that blocks keep, and which have an exception.
template <class Map, int S>
KFN BlockBits choose_exceptions(const Plan& plan, const TileBox& box, PackedScratch<Map, S>& s) {
  BlockBits chosen;
  if (plan.exceptions) {
    std::uint32_t saved = 0;
    for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
      if (!is_present<S>(box, b)) continue;
      const std::uint32_t* const planes = s.planes + b * s.kPlaneRoom;
      s.exception[b] = split_exception(s.width[b], [planes](int p) { return planes[p]; });
      const int fewer = s.width[b] - s.exception[b].planes;
      if (fewer == 0) continue;
      saved += 32 * static_cast<std::uint32_t>(fewer) - kExceptionCost;
      chosen.set(static_cast<int>(b));
    }
    if (exceptions_pay(saved)) {
      for (std::uint32_t b = 0; b < kPackedBlocks; ++b)
        s.left[b] =
            chosen.bit(static_cast<int>(b)) != 0 ? static_cast<std::uint8_t>(s.exception[b].planes) : s.width[b];
      return chosen;
    }
  }
  std::memcpy(s.left, s.width, sizeof s.left);
  return {};
}

inline std::uint8_t* put_bits(const BlockBits& bits, std::uint8_t* to) {
  for (int w = 0; w < 4; ++w) store_le(to + 4 * w, bits.words[w]);
  return to + kPackedPlaneBytes;
}

// Which groups of four bits the masks of missing values have, and the groups.
template <class Map, int S>
[[gnu::noinline]] inline std::uint8_t* write_masks(const SpecialBlocks& special, const PackedScratch<Map, S>& s,
                                                   std::uint8_t* to) {
  std::uint8_t* groups = to + special.masked.count();
  std::uint32_t count = 0;
  for (int b = 0; b < kPackedBlocks; ++b) {
    if (special.masked.bit(b) == 0) continue;
    const std::uint32_t residual = s.mask_residual[b], used = nibbles_of(residual);
    *to++ = static_cast<std::uint8_t>(used);
    for (std::uint32_t rest = used; rest != 0; rest &= rest - 1, ++count) {
      const std::uint32_t group = residual >> 4 * __builtin_ctz(rest) & 15;
      if (count % 2 == 0)
        *groups = static_cast<std::uint8_t>(group);
      else
        *groups++ |= static_cast<std::uint8_t>(group << 4);
    }
  }
  return groups + count % 2;
}

// The values of the present blocks as they are.
template <int S, class T>
inline EncodedTile write_verbatim_tile(const TileBox& box, const Loose<T>* x, std::uint8_t* out) {
  store_le(out, kPackedVerbatim << 16);
  std::uint8_t* to = out + kPackedHeadBytes;
  for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
    if (!is_present<S>(box, b)) continue;
    T values[32];
    take_values<S, T>(x, b, values);
    std::memcpy(to, values, sizeof values);
    to += sizeof values;
  }
  return {static_cast<std::uint32_t>(to - out), false};
}

// Head, masks and planes of a tile: `left` says how many of each present block.
template <class Map, int S>
KFN EncodedTile write_packed_tile(const TileBox& box, const Loose<typename Map::Value>* x, const SpecialBlocks& special,
                                  typename Map::Code first, const BlockBits& exceptions, PackedScratch<Map, S>& s,
                                  std::uint8_t* out) {
  using Value = typename Map::Value;
  // sizes
  PackedHead head;
  int narrowest = 255, widest = 0, present = 0;
  std::uint32_t words = 0, verbatim = 0, mask_words = 0;
  for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
    if (!is_present<S>(box, b)) continue;
    ++present;
    narrowest = std::min<int>(narrowest, s.left[b]);
    widest = std::max<int>(widest, s.left[b]);
    words += s.left[b];
  }
  if (special.any) {
    for (int b = 0; b < kPackedBlocks; ++b) {
      if (special.described.bit(b) == 0) continue;
      verbatim += verbatim_bytes(s.special[b].verbatim_count(), sizeof(Value));
      mask_words += static_cast<std::uint32_t>(__builtin_popcount(s.special[b].described()));
    }
  }
  head.base = static_cast<std::uint32_t>(narrowest);
  head.rate_planes = static_cast<std::uint32_t>(bit_width(static_cast<std::uint32_t>(widest - narrowest)));
  head.first_bytes = static_cast<std::uint32_t>(bit_width(first) + 7) / 8;
  const std::uint32_t exception_count = exceptions.count(), special_count = special.described.count();
  head.flags =
      special.flags | (exception_count != 0 ? kPackedExceptions : 0) | (special_count != 0 ? kPackedSpecial : 0);
  if (head.word() == 0) return {0, false};
  const std::uint32_t parts =
      2 * (special_count + exception_count) + special.masked.count() + nibble_bytes(special.nibbles);
  const std::uint32_t size =
      head.bytes() + head.tile_planes() * kPackedPlaneBytes + (parts + 3) / 4 * 4 + 4 * (words + mask_words) + verbatim;
  if (size > kPackedHeadBytes + static_cast<std::uint32_t>(present) * 32 * sizeof(Value))
    return write_verbatim_tile<S, Value>(box, x, out);

  // head, first value, planes of the tile
  store_le(out, head.word());
  store_le(out + kPackedHeadBytes, static_cast<std::uint64_t>(first));  // what is too much is overwritten
  std::uint8_t* p = out + head.bytes();
  if (head.rate_planes != 0) {
    BlockBits rates[kMostRatePlanes] = {};
    for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
      if (!is_present<S>(box, b)) continue;
      const std::uint32_t above = s.left[b] - head.base;
      for (std::uint32_t r = 0; r < kMostRatePlanes; ++r) rates[r].words[b / 32] |= (above >> r & 1) << b % 32;
    }
    for (std::uint32_t r = 0; r < head.rate_planes; ++r) p = put_bits(rates[r], p);
  }
  if ((head.flags & kPackedExceptions) != 0) p = put_bits(exceptions, p);
  if ((head.flags & kPackedMissing) != 0) p = put_bits(special.masked, p);
  if ((head.flags & kPackedSpecial) != 0) p = put_bits(special.described, p);

  // descriptors, exceptions, masks of missing values, padding
  if (parts != 0) {
    for (int b = 0; b < kPackedBlocks && special_count != 0; ++b) {
      if (special.described.bit(b) == 0) continue;
      *p++ = static_cast<std::uint8_t>(s.special[b].described());
      *p++ = s.special[b].verbatim_count();
    }
    for (int b = 0; b < kPackedBlocks && exception_count != 0; ++b) {
      if (exceptions.bit(b) == 0) continue;
      store_le(p, static_cast<std::uint16_t>(s.exception[b].entry));
      p += 2;
    }
    if ((head.flags & kPackedMissing) != 0) p = write_masks<Map, S>(special, s, p);
    for (std::uint32_t i = parts; i % 4 != 0; ++i) *p++ = 0;
  }

  // words
  for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
    if (!is_present<S>(box, b)) continue;
    if constexpr (Map::kHasSpecial) {
      if (special.any && special.described.bit(static_cast<int>(b)) != 0) [[unlikely]] {
        alignas(64) Value here[32];
        take_values<S, Value>(x, b, here);
        p = write_packed_special(s.special[b], here, p);
      }
    }
    const std::uint32_t* const planes = s.planes + b * s.kPlaneRoom;
    const std::size_t count = s.left[b];
    std::memcpy(p, planes, 64);  // most have at most 16 planes; what is too much is overwritten
    if (count > 16) [[unlikely]]
      std::memcpy(p + 64, planes + 16, 4 * (count - 16));
    p += 4 * count;
  }
  return {static_cast<std::uint32_t>(p - out), false};
}

template <class Map, int S>
inline EncodedTile encode_packed_tile(const Plan& plan, const void* values, std::uint64_t tile, void* scratch,
                                      std::uint8_t* out) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  auto& s = *static_cast<PackedScratch<Map, S>*>(scratch);
  static_assert(sizeof(PackedScratch<Map, S>) <= kScratchBytes);
  const Map map(plan);
  const TileBox box = tile_box<S>(plan.grid, tile);
  const Loose<Value>* x = load_tile<S>(plan.grid, values, box, s.values);
  const SpecialBlocks special = encode_tile_codes<Map, S>(map, box, x, s);
  const Code first = encode_tile_planes<Map, S>(map, plan, box, s);
  const BlockBits exceptions = choose_exceptions<Map, S>(plan, box, s);
  return write_packed_tile<Map, S>(box, x, special, first, exceptions, s, out);
}

PYF_END_TARGET
