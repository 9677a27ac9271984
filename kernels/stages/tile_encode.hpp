// SPDX-License-Identifier: BSD-3-Clause
// Encoding a tile of blocks (docs/format.md, sections 4.3 to 5); tile_decode.hpp is the inverse. A Map turns values
// into codes: QuantizingMap quantises, BitMap uses the bit patterns. The sizes of all blocks are computed first, then
// the parts are written, so a GPU can do the same with a scan in between.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/block_plan.hpp"
#include "stages/blocks.hpp"
#include "stages/difference.hpp"
#include "stages/planes.hpp"
#include "stages/rate.hpp"
#include "stages/special.hpp"

PYF_BEGIN_TARGET

// Blocks encoded together, stage by stage: enough that a stage does not wait for the stores of the previous stage.
inline constexpr int kGroupBlocks = 8;

// memcpy, with registers of 32 bytes if the target has them.
template <int kBytes>
KFN void copy_bytes(const void* from, std::uint8_t* to) {
#if defined(PYF_LEVEL_AVX2)
  for (int i = 0; i < kBytes; i += 32) store(to + i, load<std::uint8_t>(static_cast<const std::uint8_t*>(from) + i));
#else
  std::memcpy(to, from, kBytes);
#endif
}

// Prefetch distance, in 1-D and otherwise.
inline constexpr std::size_t kPrefetchBytes = 4096;
inline constexpr int kPrefetchBlocks = 2 * kGroupBlocks;

// This many bytes in front of a special block's planes are copied unconditionally, without reading their number.
inline constexpr int kBeforeCopied = 32;

template <class Map, int D>
struct EncodeScratch {
  using Code = typename Map::Code;
  static constexpr int B = kBlockValues<D>;
  alignas(64) typename Map::Value values[kGroupBlocks * B];
  PaddedCodes<Code, kGroupBlocks * B> codes, partial, difference;
  std::uint64_t misfits[kGroupBlocks];
  // planes of each run of 32 values: as many words as a code has bits
  static constexpr int kPlaneCapacity = 8 * sizeof(Code);
  alignas(64) std::uint32_t planes[kTileValues / 32 * kPlaneCapacity];
  alignas(64) Code first[kTileBlocks<D>];  // the whole residual of each block's first value
  std::uint8_t rate[kTileBlocks<D>];       // rate codes, as stored in the tile
  std::uint8_t inner[kTileBlocks<D>];      // rate code of the planes: the same, or the inner rate of a special block
  int descriptors;                         // number of special blocks with a descriptor
  std::uint8_t described[kTileBlocks<D>];
  SpecialBlock special[kTileBlocks<D>];
  // masks and verbatim values of special blocks, one after another; the end; the size of each block's share
  static constexpr std::size_t kBeforeCapacity =
      Map::kHasSpecial ? kTileBlocks<D> * kSpecialBytes<typename Map::Value, B> : 0;
  std::uint8_t before[kBeforeCapacity + kBeforeCopied];
  std::uint8_t* before_end;
  std::uint16_t before_bytes[kTileBlocks<D>];
};

// Whether the values of a group of blocks were gathered into a buffer; 1-D blocks without padding are read in place.
template <int D>
KFN bool gathered(const Grid& grid, const BlockCursor& cursor, int count) {
  return D != 1 || !whole_blocks(grid, cursor, count);
}

// Stage 1 of a block: values -> codes. Returns its misfits, 0 if there are none.
template <class Map, int B, class Values>
KFN std::uint64_t encode_block(const Map& map, const Values* x, typename Map::Code* q) {
  MisfitNotes<typename Map::Code> notes;
  map.template encode<B>(x, q, notes);
  return Map::kHasSpecial ? notes.bits() : 0;
}

// Stage 1 of a group. False if any block has misfits.
template <class Map, int D>
KFN bool encode_codes(const Plan& plan, const Map& map, const void* values, BlockCursor cursor, int count,
                      EncodeScratch<Map, D>& s) {
  using Value = typename Map::Value;
  constexpr int B = kBlockValues<D>;
  std::uint64_t any = 0;
  if (!gathered<D>(plan.grid, cursor, count)) {
    const Loose<Value>* x = loose_values<Value>(values, cursor.index * 32);
    for (int b = 0; b < count; ++b) {
      // hardware prefetchers stop at the end of a page; software prefetch does not
      for (std::size_t line = 0; line < B * sizeof(Value); line += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(x + b * B) + kPrefetchBytes + line);
      any |= s.misfits[b] = encode_block<Map, B>(map, x + b * B, s.codes + b * B);
    }
    return any == 0;
  }
  for (int b = 0; b < count;) {
    int run = 1;
    if constexpr (D == 1)
      load_last(plan.grid, values, cursor.index, s.values + b * B);
    else
      run = load_run<D>(plan.grid, values, cursor, count - b, s.values + b * B);
    advance<D>(plan.grid, cursor, static_cast<std::uint64_t>(run));
    b += run;
  }
  for (int b = 0; b < count; ++b) any |= s.misfits[b] = encode_block<Map, B>(map, s.values + b * B, s.codes + b * B);
  return any == 0;
}

// Stage 1 of a group with misfits: sorts special values into masks. Returns the special blocks, as bits.
template <class Map, int D>
[[gnu::noinline]] inline unsigned note_specials(const Map& map, const Loose<typename Map::Value>* x, int first,
                                                int count, EncodeScratch<Map, D>& s) {
  constexpr int B = kBlockValues<D>;
  unsigned looked_at = 0, special = 0;
  for (int b = 0; b < count; ++b) looked_at |= static_cast<unsigned>(s.misfits[b] != 0) << b;
  for (unsigned rest = looked_at; rest != 0; rest &= rest - 1) {
    const int b = __builtin_ctz(rest);
    note_special<B>(map.quantizer, x + b * B, s.codes + b * B, s.misfits[b], s.special[first + b]);
    special |= static_cast<unsigned>(s.special[first + b].masks != 0) << b;
  }
  return special;
}

// Rates of a group's special blocks, and their masks and verbatim values, written while the values are still in cache.
template <class Map, int D>
[[gnu::noinline]] inline void rate_specials(const Loose<typename Map::Value>* x, int first, unsigned special,
                                            EncodeScratch<Map, D>& s) {
  using Value = typename Map::Value;
  constexpr int B = kBlockValues<D>;
  for (unsigned rest = special; rest != 0; rest &= rest - 1) {
    const int i = __builtin_ctz(rest), b = first + i;
    s.rate[b] = special_rate<Value, B>(s.special[b], s.inner[b]);
    std::uint8_t* const end = write_special<Value, B>(s.special[b], s.rate[b], x + i * B, s.before_end);
    s.before_bytes[b] = static_cast<std::uint16_t>(end - s.before_end);
    s.before_end = end;
    if (is_special_rate(s.rate[b])) [[likely]]
      s.described[s.descriptors++] = static_cast<std::uint8_t>(b);
    else
      s.inner[b] = 0;  // no planes, no outlier bytes
  }
}

// Residuals of block `b` of a group. kSums: the differences of the whole group already exist.
template <class Map, int D, bool kSums>
KFN void encode_residuals(EncodeScratch<Map, D>& s, int b, typename Map::Code* z) {
  constexpr int B = kBlockValues<D>;
  const typename Map::Code* q = s.codes + b * B;
  if constexpr (!kSums) {
    zigzag_block<Map, B>(q, z);
  } else if constexpr (D == 1) {
    zigzag_differences<Map, B>(q, z);
  } else if constexpr (kDifferencesInRegisters) {
    alignas(64) typename Map::Code d[B];
    differences<D>(q, s.partial.data(), d, 1);
    zigzag_block<Map, B>(d, z);
  } else {
    zigzag_block<Map, B>(s.difference + b * B, z);
  }
}

// Records the rate of a block: `any` is the OR of its residuals, z0 the first residual.
template <class Map, int D>
KFN void note_rate(EncodeScratch<Map, D>& s, int b, bool outlier, typename Map::Code any, typename Map::Code z0) {
  s.first[b] = z0;
  const int width = bit_width(any);
  s.inner[b] = s.rate[b] = choose_rate(width, outlier ? bit_width(z0) : width);
}

// Stage 2 of a group: codes -> planes and rates. Runs of 32 values go in pairs: one block, or two 1-D blocks.
template <class Map, int D, bool kSums>
KFN void encode_planes(bool outlier, int first, int count, EncodeScratch<Map, D>& s) {
  using Code = typename Map::Code;
  constexpr int B = kBlockValues<D>;
  const std::uint32_t counted = outlier ? ~1u : ~0u;
  if constexpr (D != 1 && kSums && !kDifferencesInRegisters)
    differences<D>(s.codes.data(), s.partial.data(), s.difference.data(), count);
  for (int b = 0; b < count; ++b) {
    alignas(64) Code z[64];
    std::uint32_t* planes = s.planes + (first + b) * (B / 32) * s.kPlaneCapacity;
    encode_residuals<Map, D, kSums>(s, b, z);
    if (D == 1 && b + 1 < count) {
      encode_residuals<Map, D, kSums>(s, b + 1, z + 32);
      Code any[2];
      transpose_blocks(z, counted, planes, s.kPlaneCapacity, any);
      note_rate(s, first + b, outlier, any[0], z[0]);
      note_rate(s, first + ++b, outlier, any[1], z[32]);
    } else {
      const Code any = transpose_planes<B / 32>(z, counted, false, planes, s.kPlaneCapacity);
      note_rate(s, first + b, outlier, any, z[0]);
    }
  }
}

template <class Map, int D>
KFN void encode_planes(const BlockPlan& plan, int first, int count, EncodeScratch<Map, D>& s) {
  if (plan.mode != 2) [[likely]]
    encode_planes<Map, D, true>(plan.mode == 0, first, count, s);
  else
    encode_planes<Map, D, false>(false, first, count, s);
}

// Whether a 1-D tile holds only sentinels, as over land or outside a domain: such a tile is one rate code.
template <class Map>
[[gnu::noinline]] inline bool only_sentinels(const Map& map, const Grid& grid, const void* values, std::uint64_t tile) {
  const std::uint64_t first = tile * kTileValues, last = std::min(first + kTileValues, grid.values);
  const std::uint8_t* const end = value_at<typename Map::Value>(values, last);
  for (const std::uint8_t* at = value_at<typename Map::Value>(values, first); at != end;) {
    constexpr std::size_t kTogether = 128;
    typename Map::Code bits[kTogether], differing = 0;
    const std::size_t bytes = std::min<std::size_t>(sizeof bits, static_cast<std::size_t>(end - at));
    if (bytes < sizeof bits) std::fill(std::begin(bits), std::end(bits), map.quantizer.sentinel_bits);
    std::memcpy(bits, at, bytes);
    for (const typename Map::Code value : bits) differing |= value ^ map.quantizer.sentinel_bits;
    if (differing != 0) return false;
    at += bytes;
  }
  return true;
}

template <class Map, int D>
inline EncodedTile encode_tile(const Plan& base, const void* values, std::uint64_t tile, void* scratch,
                               std::uint8_t* out) {
  const auto& plan = static_cast<const BlockPlan&>(base);
  using Value = typename Map::Value;
  constexpr int B = kBlockValues<D>;
  auto& s = *static_cast<EncodeScratch<Map, D>*>(scratch);
  static_assert(sizeof(EncodeScratch<Map, D>) <= kScratchBytes);
  const Map map(plan);
  if constexpr (Map::kHasSpecial && D == 1) {
    if (map.quantizer.has_sentinel && only_sentinels(map, plan.grid, values, tile)) [[unlikely]] {
      store_le(out, std::uint32_t{kRateSentinel});
      return {4, true};
    }
  }
  const std::uint64_t first_block = tile * kTileBlocks<D>;
  const int blocks = static_cast<int>(std::min<std::uint64_t>(kTileBlocks<D>, plan.grid.blocks - first_block));
  BlockCursor cursor = block_at<D>(plan.grid, first_block), ahead;
  if constexpr (D != 1) ahead = block_at<D>(plan.grid, first_block + kPrefetchBlocks);
  s.descriptors = 0;
  s.before_end = s.before;
  std::memset(s.before_bytes, 0, sizeof s.before_bytes);
  for (int b = 0; b < blocks; b += kGroupBlocks) {
    const int here = std::min(kGroupBlocks, blocks - b);
    if constexpr (D != 1) prefetch_blocks<D, Value>(plan.grid, values, ahead, kGroupBlocks);
    const bool plain = encode_codes<Map, D>(plan, map, values, cursor, here, s);
    if constexpr (Map::kHasSpecial) {
      const Loose<Value>* x = gathered<D>(plan.grid, cursor, here) ? loose_values<Value>(s.values, 0)
                                                                   : loose_values<Value>(values, cursor.index * 32);
      const unsigned special = plain ? 0 : note_specials<Map, D>(map, x, b, here, s);
      encode_planes<Map, D>(plan, b, here, s);
      if (special != 0) [[unlikely]]
        rate_specials<Map, D>(x, b, special, s);
    } else {
      encode_planes<Map, D>(plan, b, here, s);
    }
    for (int i = 0; i < here; ++i) advance<D>(plan.grid, cursor);
  }

  // sizes
  std::size_t outlier_bytes = 0;
  bool uniform = s.descriptors == 0;
  for (int b = 0; b < blocks; ++b) {
    uniform &= s.rate[b] == s.rate[0];
    outlier_bytes += kRates[s.inner[b]].outlier_bytes;
  }
  if (uniform && s.rate[0] == 0) return {0, true};

  // rates, descriptors, outlier bytes, padding, words
  std::uint8_t* p = out;
  const std::size_t rates = uniform ? 1 : static_cast<std::size_t>(blocks);
  std::memcpy(p, s.rate, rates);
  p += rates;
  for (int i = 0; i < s.descriptors; ++i) {
    *p++ = s.inner[s.described[i]];
    *p++ = s.special[s.described[i]].verbatim_count();
  }
  for (int b = 0; b < blocks && outlier_bytes != 0; ++b) {
    const Rate rate = kRates[s.inner[b]];
    const auto first = static_cast<std::uint64_t>(s.first[b]);
    store_le(p, rate.planes < 64 ? first >> rate.planes
                                 : std::uint64_t{0});  // bytes beyond the outlier are overwritten by the next part
    p += rate.outlier_bytes;
  }
  std::memset(p, 0, 4);
  std::uint8_t* words = out + (p - out + 3) / 4 * 4;

  const std::uint8_t* before = s.before;
  for (int b = 0; b < blocks; ++b) {
    if constexpr (Map::kHasSpecial) {
      const std::size_t bytes = s.before_bytes[b];
      copy_bytes<kBeforeCopied>(before,
                                words);  // mostly 0 bytes; copied bytes beyond the end are overwritten by the planes
      if (bytes > kBeforeCopied) [[unlikely]]
        std::memcpy(words + kBeforeCopied, before + kBeforeCopied, bytes - kBeforeCopied);
      before += bytes;
      words += bytes;
    }
    const std::size_t rate_planes = kRates[s.inner[b]].planes;
    for (int half = 0; half < B / 32; ++half) {
      const std::uint32_t* planes = s.planes + (b * (B / 32) + half) * s.kPlaneCapacity;
      copy_bytes<64>(
          planes, words);  // most blocks have at most 16 planes; words beyond the end are overwritten by the next block
      if (rate_planes > 16) [[unlikely]]
        std::memcpy(words + 64, planes + 16, 4 * (rate_planes - 16));
      words += 4 * rate_planes;
    }
  }
  return {static_cast<std::uint32_t>(words - out), uniform};
}

PYF_END_TARGET
