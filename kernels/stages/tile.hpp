// SPDX-License-Identifier: BSD-3-Clause
// A tile of blocks, encoded and decoded (docs/format.md, sections 4.3 to 5). A Map turns values into codes and back:
// cuszp2 quantises (QuantizingMap), lossless takes the bits as they are (BitMap). Sizes are fixed first, for all
// blocks of the tile, then the parts are written, so that a GPU does the same with a scan in between.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/bits.hpp"
#include "core/plan.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/blocks.hpp"
#include "stages/difference.hpp"
#include "stages/planes.hpp"
#include "stages/rate.hpp"
#include "stages/special.hpp"

PYF_BEGIN_TARGET

template <int D>
inline constexpr int kTileBlocks = kTileValues / kBlockValues<D>;

// Blocks encoded together, stage by stage: long enough that a stage never waits for the stores of the one before.
inline constexpr int kGroupBlocks = 8;

inline constexpr std::size_t kPrefetchBytes = 4096;

template <class Code>
KFN bool any_misfit(const Code* misfits, int blocks) {
  Code any[kLanes] = {};
  for (int b = 0; b < blocks; ++b)
    for (std::size_t lane = 0; lane < kLanes; ++lane) any[lane] |= misfits[static_cast<std::size_t>(b) * kLanes + lane];
  Code all = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) all |= any[lane];
  return all != 0;
}

template <class Map, int D>
struct EncodeScratch {
  using Code = typename Map::Code;
  static constexpr int B = kBlockValues<D>;
  alignas(64) typename Map::Value values[kGroupBlocks * B];
  alignas(64) Code codes_pad[kDifferencePad];
  alignas(64) Code codes[kGroupBlocks * B];
  alignas(64) Code partial_pad[kDifferencePad];
  alignas(64) Code partial[kGroupBlocks * B];
  alignas(64) Code difference_pad[kDifferencePad];
  alignas(64) Code difference[kGroupBlocks * B];
  alignas(64) Code misfits[kGroupBlocks * kLanes];
  // planes of each run of 32 values, room for as many as a code has bits
  static constexpr int kPlaneRoom = 8 * sizeof(Code);
  alignas(64) std::uint32_t planes[kTileValues / 32 * kPlaneRoom];
  alignas(64) Code first[kTileBlocks<D>];  // residual of the first value, all its bits
  std::uint8_t rate[kTileBlocks<D>];       // as in the tile
  std::uint8_t inner[kTileBlocks<D>];      // rate of the planes: the same, or the inner one of a special block
  SpecialBlock<typename Map::Value, B> special[kTileBlocks<D>];
};

// Stage 1 of a group: values -> codes. False if any block has misfits.
template <class Map, int D>
KFN bool encode_codes(const Plan& plan, const Map& map, const void* values, BlockCursor cursor, int count,
                      EncodeScratch<Map, D>& s) {
  using Value = typename Map::Value;
  constexpr int B = kBlockValues<D>;
  if (D == 1 && whole_blocks(plan.grid, cursor, count)) {
    const Loose<Value>* x = loose_values<Value>(values, cursor.index * 32);
    for (int b = 0; b < count; ++b) {
      // hardware prefetchers stop at the end of a page; this does not
      for (std::size_t line = 0; line < B * sizeof(Value); line += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(x + b * B) + kPrefetchBytes + line);
      map.template encode<B>(x + b * B, s.codes + b * B, s.misfits + b * kLanes);
    }
  } else {
    for (int b = 0; b < count; ++b, advance<D>(plan.grid, cursor)) load_block<D>(plan.grid, values, cursor, s.values + b * B);
    for (int b = 0; b < count; ++b) map.template encode<B>(s.values + b * B, s.codes + b * B, s.misfits + b * kLanes);
  }
  if constexpr (!Map::kHasSpecial) return true;
  return !any_misfit(s.misfits, count);
}

// Stage 1 for a group with misfits: sorts out which values of which blocks are special.
template <class Map, int D>
[[gnu::noinline]] inline void note_specials(const Plan& plan, const Map& map, const void* values, BlockCursor cursor,
                                            int first, int count, EncodeScratch<Map, D>& s) {
  using Value = typename Map::Value;
  constexpr int B = kBlockValues<D>;
  for (int b = 0; b < count; ++b, advance<D>(plan.grid, cursor)) {
    if (!any_misfit(s.misfits + b * kLanes, 1)) continue;
    Value x[B];
    load_block<D>(plan.grid, values, cursor, x);
    note_special<Value, B>(map.quantizer, x, s.codes + b * B, s.special[first + b]);
  }
}

// Stage 2 of a group: codes -> planes and rates.
template <class Map, int D>
KFN void encode_planes(const Plan& plan, int first, int count, EncodeScratch<Map, D>& s) {
  using Code = typename Map::Code;
  constexpr int B = kBlockValues<D>;
  const bool outlier = plan.mode == 0;
  const std::uint32_t counted = outlier ? ~1u : ~0u;
  const Code* d = plan.mode == 2 ? s.codes : differences<D>(s.codes, s.partial, s.difference, count);
  for (int b = 0; b < count; ++b) {
    Code z[B];
    zigzag_block<Map, B>(d + b * B, z);
    std::uint32_t* planes = s.planes + (first + b) * (B / 32) * s.kPlaneRoom;
    Code any = transpose_planes<B == 64>(z, counted, planes);
    if constexpr (B == 64) any |= transpose_planes<true>(z + 32, ~0u, planes + s.kPlaneRoom);
    const Code z0 = zigzag(Map::wrap(d[b * B]));
    s.first[first + b] = z0;
    const int width = bit_width(any);
    s.inner[first + b] = s.rate[first + b] = choose_rate(width, outlier ? bit_width(z0) : width);
  }
}

template <class Map, int D>
inline EncodedTile encode_tile(const Plan& plan, const void* values, std::uint64_t tile, void* scratch, std::uint8_t* out) {
  using Value = typename Map::Value;
  constexpr int B = kBlockValues<D>;
  auto& s = *static_cast<EncodeScratch<Map, D>*>(scratch);
  static_assert(sizeof(EncodeScratch<Map, D>) <= kScratchBytes);
  const Map map(plan);
  const std::uint64_t first_block = tile * kTileBlocks<D>;
  const int blocks = static_cast<int>(std::min<std::uint64_t>(kTileBlocks<D>, plan.grid.blocks - first_block));
  BlockCursor cursor = block_at<D>(plan.grid, first_block);
  for (int b = 0; b < blocks; b += kGroupBlocks) {
    const int here = std::min(kGroupBlocks, blocks - b);
    if constexpr (Map::kHasSpecial)
      for (int i = 0; i < here; ++i) s.special[b + i].masks = 0;
    const bool plain = encode_codes<Map, D>(plan, map, values, cursor, here, s);
    if constexpr (Map::kHasSpecial) {
      if (!plain) [[unlikely]]
        note_specials<Map, D>(plan, map, values, cursor, b, here, s);
    }
    encode_planes<Map, D>(plan, b, here, s);
    for (int i = 0; i < here; ++i) advance<D>(plan.grid, cursor);
  }

  // sizes
  std::size_t outlier_bytes = 0, descriptors = 0;
  bool uniform = true;
  for (int b = 0; b < blocks; ++b) {
    if constexpr (Map::kHasSpecial) {
      if (s.special[b].masks != 0) [[unlikely]]
        s.rate[b] = special_rate<Value, B>(s.special[b], s.inner[b]);
      descriptors += is_special_rate(s.rate[b]) ? 1 : 0;
    }
    uniform = uniform && s.rate[b] == s.rate[0];
    outlier_bytes += s.rate[b] >= kRateSentinel && !is_special_rate(s.rate[b]) ? 0 : kRates[s.inner[b]].outlier_bytes;
  }
  uniform = uniform && descriptors == 0;
  if (uniform && s.rate[0] == 0) return {0, true};

  // rates, descriptors, outlier bytes, padding, words
  std::uint8_t* p = out;
  const std::size_t rates = uniform ? 1 : static_cast<std::size_t>(blocks);
  std::memcpy(p, s.rate, rates);
  p += rates;
  if constexpr (Map::kHasSpecial) {
    for (int b = 0; b < blocks && descriptors != 0; ++b) {
      if (!is_special_rate(s.rate[b])) continue;
      *p++ = s.inner[b];
      *p++ = s.special[b].verbatim_count();
    }
  }
  for (int b = 0; b < blocks && outlier_bytes != 0; ++b) {
    if (s.rate[b] >= kRateSentinel && !is_special_rate(s.rate[b])) continue;
    const Rate rate = kRates[s.inner[b]];
    store_le(p, static_cast<std::uint64_t>(s.first[b]) >> rate.planes);  // what is too much is overwritten
    p += rate.outlier_bytes;
  }
  std::memset(p, 0, 4);
  std::uint8_t* words = out + (p - out + 3) / 4 * 4;

  for (int b = 0; b < blocks; ++b) {
    if constexpr (Map::kHasSpecial) {
      if (s.rate[b] >= kRateSentinel) [[unlikely]] {
        words = write_special<Value, B>(s.special[b], s.rate[b], words);
        if (!is_special_rate(s.rate[b])) continue;
      }
    }
    const std::size_t rate_planes = kRates[s.inner[b]].planes;
    for (int half = 0; half < B / 32; ++half) {
      const std::uint32_t* planes = s.planes + (b * (B / 32) + half) * s.kPlaneRoom;
      std::memcpy(words, planes, 64);  // most have at most 16 planes; what is too much is overwritten
      if (rate_planes > 16) [[unlikely]]
        std::memcpy(words + 64, planes + 16, 4 * (rate_planes - 16));
      words += 4 * rate_planes;
    }
  }
  return {static_cast<std::uint32_t>(words - out), uniform};
}

// Where the parts of a block are, found before any value is decoded.
struct BlockPlace {
  std::uint8_t rate, inner, verbatim;
  std::uint32_t outlier_at, words_at;  // bytes from the start of the tile
};

// Reads rates and descriptors; sets the place of every block. Fails unless the sizes add up to the tile's.
template <class Map, int D>
inline Status place_blocks(const Plan& plan, const std::uint8_t* bytes, std::size_t size, bool uniform, int blocks,
                           BlockPlace* places) {
  constexpr std::uint32_t B = kBlockValues<D>;
  constexpr int kCodeBits = 8 * sizeof(typename Map::Code);
  constexpr Status kBad{pyfilter::Code::corrupt, "corrupt frame: a tile's parts do not add up to its size"};
  constexpr Status kBadRate{pyfilter::Code::corrupt, "corrupt frame: a rate code that its frame does not allow"};
  const std::size_t rates = size == 0 && uniform ? 0 : uniform ? 1 : static_cast<std::size_t>(blocks);
  if (rates > size || (size == 0 && !uniform)) return kBad;
  const std::uint8_t common = rates == 0 ? std::uint8_t{0} : bytes[0];
  if (uniform && is_special_rate(common)) return kBadRate;
  std::uint32_t descriptor_at = static_cast<std::uint32_t>(rates), outlier_bytes = 0;
  // a block of 64 doubles has at most 128 words of values and 6 of masks: no sum here can overflow
  std::uint32_t words = 0;
  for (int b = 0; b < blocks; ++b) {
    BlockPlace& place = places[b];
    place.rate = place.inner = uniform ? common : bytes[b];
    place.verbatim = 0;
    if (place.rate >= kRateSentinel) [[unlikely]] {
      if (!Map::kHasSpecial) return kBadRate;
      const unsigned masks = place.rate - kRateSentinel;
      if (place.rate == kRateSentinel || (is_special_rate(place.rate) && (masks & kMaskSentinel) != 0))
        if (!plan.has_sentinel) return kBadRate;
      place.words_at = words;
      place.outlier_at = outlier_bytes;
      if (is_special_rate(place.rate)) {
        if (descriptor_at + 2 > size) return kBad;
        place.inner = bytes[descriptor_at];
        place.verbatim = bytes[descriptor_at + 1];
        descriptor_at += 2;
        if (place.inner > kLastPlainRate || place.verbatim > B) return kBadRate;
        if ((masks & kMaskVerbatim) == 0 && place.verbatim != 0) return kBadRate;
        words += (B / 32) * static_cast<std::uint32_t>(__builtin_popcount(masks)) +
                 place.verbatim * static_cast<std::uint32_t>(sizeof(typename Map::Value) / 4);
      } else {
        if (place.rate == kRateVerbatim) words += B * static_cast<std::uint32_t>(sizeof(typename Map::Value)) / 4;
        continue;
      }
    }
    const Rate rate = kRates[place.inner];
    if (rate.planes > kCodeBits) return kBadRate;
    if (place.rate == place.inner) place.words_at = words;
    place.outlier_at = outlier_bytes;
    outlier_bytes += rate.outlier_bytes;
    words += rate.planes * (B / 32);
  }
  const std::size_t outliers_from = descriptor_at;
  const std::size_t words_from = (outliers_from + outlier_bytes + 3) / 4 * 4;
  if (words_from + 4 * std::size_t{words} != size) return kBad;
  for (std::size_t i = outliers_from + outlier_bytes; i < words_from; ++i)
    if (bytes[i] != 0) return Status{pyfilter::Code::corrupt, "corrupt frame: padding of a tile is not zero"};
  for (int b = 0; b < blocks; ++b) {
    places[b].outlier_at += static_cast<std::uint32_t>(outliers_from);
    places[b].words_at = static_cast<std::uint32_t>(words_from) + 4 * places[b].words_at;
  }
  return kOk;
}

// Codes of a block from its planes and outlier bytes. Returns what has to be added to each: the outlier bytes' share
// of the first residual, which differences carry on to every value.
template <class Map, int D>
KFN typename Map::Code decode_codes(const Plan& plan, const std::uint8_t* tile, const std::uint8_t* words,
                                    const BlockPlace& place, typename Map::Code (&q)[kBlockValues<D>]) {
  using Code = typename Map::Code;
  constexpr int B = kBlockValues<D>;
  const Rate rate = kRates[place.inner];
  for (int half = 0; half < B; half += 32) unpack_planes(words + 4 * rate.planes * (half / 32), rate.planes, q + half);
  const Code low = q[0];
  for (int i = 0; i < B; ++i) q[i] = unzigzag(q[i]);
  Code carried = 0;
  if (rate.outlier_bytes != 0) {
    std::uint64_t high = 0;
    for (int i = 0; i < rate.outlier_bytes; ++i) high |= static_cast<std::uint64_t>(tile[place.outlier_at + static_cast<std::uint32_t>(i)]) << (8 * i);
    const auto whole = static_cast<Code>(low + static_cast<Code>(high << rate.planes));
    carried = static_cast<Code>(unzigzag(whole) - unzigzag(low));
  }
  if (plan.mode != 2) {
    accumulate<D>(q);
  } else {
    q[0] = static_cast<Code>(q[0] + carried);
    carried = 0;
  }
  return carried;
}

template <class Map, int D>
inline Status decode_tile(const Plan& plan, const std::uint8_t* bytes, std::size_t size, bool uniform, std::uint64_t tile,
                          void* /*scratch*/, std::uint64_t start, std::uint64_t stop, void* out) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  constexpr int B = kBlockValues<D>;
  const Map map(plan);
  const std::uint64_t first_block = tile * kTileBlocks<D>;
  const int blocks = static_cast<int>(std::min<std::uint64_t>(kTileBlocks<D>, plan.grid.blocks - first_block));
  BlockPlace places[kTileBlocks<D>];
  PYF_TRY((place_blocks<Map, D>(plan, bytes, size, uniform, blocks, places)));
  BlockCursor cursor = block_at<D>(plan.grid, first_block);
  for (int b = 0; b < blocks; ++b, advance<D>(plan.grid, cursor)) {
    const BlockPlace& place = places[b];
    const std::uint8_t* words = bytes + place.words_at;
    alignas(64) Value x[B];
    SpecialMasks masks{};
    if constexpr (Map::kHasSpecial) {
      if (place.rate >= kRateSentinel) [[unlikely]] {
        if (place.rate == kRateSentinel) {
          for (int i = 0; i < B; ++i) x[i] = map.quantizer.sentinel;
        } else if (place.rate == kRateVerbatim) {
          std::memcpy(x, words, sizeof x);
        } else {
          masks = read_masks<B>(place.rate, words);
          if (masks.verbatim_count() != place.verbatim)
            return Status{pyfilter::Code::corrupt, "corrupt frame: a block's verbatim values are not as many as its mask says"};
          words += masks.bytes + place.verbatim * sizeof(Value);
        }
        if (!is_special_rate(place.rate)) {
          store_block<D>(plan.grid, x, cursor, start, stop, out);
          continue;
        }
      }
    }
    alignas(64) Code q[B];
    const Code carried = decode_codes<Map, D>(plan, bytes, words, place, q);
    if (!masks.any()) [[likely]] {
      if (Loose<Value>* whole = whole_place<D, Value>(cursor, start, stop, out); whole != nullptr) {
        map.decode(q, carried, whole);
        continue;
      }
    }
    map.decode(q, carried, x);
    if constexpr (Map::kHasSpecial) {
      if (masks.any()) [[unlikely]]
        apply_masks<Value, B>(map.quantizer, masks, bytes + place.words_at + masks.bytes, x);
    }
    store_block<D>(plan.grid, x, cursor, start, stop, out);
  }
  return kOk;
}

PYF_END_TARGET
