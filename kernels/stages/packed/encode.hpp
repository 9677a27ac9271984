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
#include "stages/packed/special.hpp"
#include "stages/packed/values.hpp"
#include "stages/planes.hpp"
#include "stages/tile_encode.hpp"

PYF_BEGIN_TARGET

template <class Map, int S>
struct PackedScratch {
  using Code = typename Map::Code;
  static constexpr int kPlaneRoom = 8 * sizeof(Code);
  alignas(64) typename Map::Value values[4096];
  alignas(64) Code codes_pad[kDifferencePad];
  alignas(64) Code codes[4096];
  alignas(64) Code differences[S == kChain ? 1 : 4096];
  alignas(64) std::uint32_t planes[kPackedBlocks * kPlaneRoom];
  std::uint8_t width[kPackedBlocks];  // planes before exceptions
  Exception exception[kPackedBlocks];
  std::uint8_t left[kPackedBlocks];  // planes that are written
  PackedSpecial special[kPackedBlocks];
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

// Which blocks are special and which void; nothing for most tiles.
struct SpecialBlocks {
  BlockBits masked, empty;
  bool any = false;
};

// Sorts out the special values of a tile with misfits. Blocks without an ordinary value take the last code before
// them, in block order, or the first one of all.
template <class Map, int S>
[[gnu::noinline]] inline SpecialBlocks note_special_blocks(const Map& map, const TileBox& box,
                                                           const Loose<typename Map::Value>* x,
                                                           PackedScratch<Map, S>& s) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  SpecialBlocks found;
  Code last = 0;
  bool has_last = false;
  std::uint32_t waiting = 0;  // blocks before the first ordinary value
  const auto fill = [&](std::uint32_t block) {
    Code q[32];
    for (Code& code : q) code = last;
    put_block<S>(q, block, s.codes);
  };
  for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
    alignas(64) Value values[32];
    alignas(64) Code q[32];
    take_values<S, Value>(x, b, values);
    PackedSpecial& special = s.special[b];
    special = {};
    const std::uint64_t misfits = encode_block<Map, 32>(map, values, q);
    if (misfits != 0) note_special(map.quantizer, values, q, misfits, special);
    const std::uint32_t taken = special.unseen();
    if (special.masks != 0 && is_present<S>(box, b)) {
      found.any = true;
      (special.masks == kMaskSentinel && taken == ~0u ? found.empty : found.masked).set(static_cast<int>(b));
    }
    if (taken == ~0u && special.masks != 0) {
      if (!has_last)
        ++waiting;
      else
        fill(b);
      continue;
    }
    put_block<S>(q, b, s.codes);
    if (!has_last) {
      has_last = true;
      last = q[__builtin_ctz(~taken)];
      for (std::uint32_t w = 0; w < waiting; ++w) fill(w);
    }
    last = q[31 - __builtin_clz(~taken)];
  }
  if (!has_last) std::fill(s.codes, s.codes + 4096, Code{0});
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
KFN typename Map::Code encode_tile_planes(const Plan& plan, const TileBox& box, PackedScratch<Map, S>& s) {
  using Code = typename Map::Code;
  const Code first = zigzag(s.codes[0]);
  if constexpr (S == kChain) {
    s.codes_pad[kDifferencePad - 1] = s.codes[0];
  } else {
    tile_differences<S>(plan.order, s.codes, s.differences);
    s.differences[0] = 0;
  }
  for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
    if (!is_present<S>(box, b)) continue;
    alignas(64) Code z[32];
    if constexpr (S == kChain) {
      const Code* const q = s.codes + 32 * b;
      for (int i = 0; i < 32; ++i) z[i] = zigzag(static_cast<Code>(q[i] - q[i - 1]));
    } else {
      take_block<S>(s.differences, b, z);
      for (int i = 0; i < 32; ++i) z[i] = zigzag(z[i]);
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
  const Code first = encode_tile_planes<Map, S>(plan, box, s);
  const BlockBits exceptions = choose_exceptions<Map, S>(plan, box, s);

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
      if (special.masked.bit(b) == 0) continue;
      verbatim += verbatim_bytes(s.special[b].verbatim_count(), sizeof(Value));
      mask_words += static_cast<std::uint32_t>(__builtin_popcount(s.special[b].masks));
    }
  }
  head.base = static_cast<std::uint32_t>(narrowest);
  head.rate_planes = static_cast<std::uint32_t>(bit_width(static_cast<std::uint32_t>(widest - narrowest)));
  head.first_bytes = static_cast<std::uint32_t>(bit_width(first) + 7) / 8;
  const std::uint32_t exception_count = exceptions.count(), void_count = special.empty.count(),
                      special_count = special.masked.count();
  const bool all_void = void_count == static_cast<std::uint32_t>(present);
  head.flags = (exception_count != 0 ? kPackedExceptions : 0) |
               (void_count != 0 ? (all_void ? kPackedAllVoid : kPackedVoid) : 0) |
               (special_count != 0 ? kPackedSpecial : 0);
  if (head.word() == 0) return {0, false};
  const std::uint32_t parts = 2 * (special_count + exception_count);
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
  if ((head.flags & kPackedVoid) != 0) p = put_bits(special.empty, p);
  if ((head.flags & kPackedSpecial) != 0) p = put_bits(special.masked, p);

  // descriptors, exceptions, padding
  if (parts != 0) {
    for (int b = 0; b < kPackedBlocks && special_count != 0; ++b) {
      if (special.masked.bit(b) == 0) continue;
      *p++ = static_cast<std::uint8_t>(s.special[b].masks);
      *p++ = s.special[b].verbatim_count();
    }
    for (int b = 0; b < kPackedBlocks && exception_count != 0; ++b) {
      if (exceptions.bit(b) == 0) continue;
      store_le(p, static_cast<std::uint16_t>(s.exception[b].entry));
      p += 2;
    }
    if (parts % 4 != 0) {
      store_le(p, std::uint16_t{0});
      p += 2;
    }
  }

  // words
  for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
    if (!is_present<S>(box, b)) continue;
    if constexpr (Map::kHasSpecial) {
      if (special.any && special.masked.bit(static_cast<int>(b)) != 0) [[unlikely]] {
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

PYF_END_TARGET
