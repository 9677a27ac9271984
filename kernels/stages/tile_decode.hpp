// SPDX-License-Identifier: BSD-3-Clause
// Decoding a tile of blocks (docs/format.md, sections 4.3 to 6); tile_encode.hpp is the inverse. Rates and descriptors
// are read first and must add up to the tile's size; after that check no read can leave the tile.
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

inline constexpr Status kBadSize{Code::corrupt, "corrupt frame: a tile's parts do not add up to its size"};
inline constexpr Status kBadRate{Code::corrupt, "corrupt frame: a rate code that its frame does not allow"};
inline constexpr Status kBadPadding{Code::corrupt, "corrupt frame: padding of a tile is not zero"};
inline constexpr Status kBadCount{Code::corrupt,
                                  "corrupt frame: a block's verbatim values are not as many as its mask says"};

// The parts of a tile, as pointers that advance block by block.
struct TileParts {
  const std::uint8_t* rates = nullptr;  // one a block; nullptr: a uniform tile
  std::uint8_t common = 0;              // the rate code of a uniform tile
  const std::uint8_t* descriptors = nullptr;
  const std::uint8_t* outliers = nullptr;
  const std::uint8_t* words = nullptr;
  const std::uint8_t* end = nullptr;

  KFN std::uint8_t rate(int block) const { return rates != nullptr ? rates[block] : common; }
};

// Sums of a tile's part sizes. A tile has at most 128 blocks of 1 KiB, so no sum overflows.
struct TileSizes {
  std::uint32_t outlier_bytes = 0, words = 0, descriptor_bytes = 0;
};

// Adds a special block (rate code 247 to 255).
template <class Map, int D>
inline Status add_special(const Plan& plan, std::uint8_t code, const std::uint8_t* descriptor, const std::uint8_t* end,
                          TileSizes& sizes) {
  constexpr std::uint32_t B = kBlockValues<D>, kValueWords = sizeof(typename Map::Value) / 4;
  const unsigned masks = code - kRateSentinel;
  if (!Map::kHasSpecial) return kBadRate;
  if (code == kRateVerbatim) {
    sizes.words += B * kValueWords;
    return kOk;
  }
  if ((code == kRateSentinel || (masks & kMaskSentinel) != 0) && !plan.has_sentinel) return kBadRate;
  if (code == kRateSentinel) return kOk;
  if (end - descriptor < 2) return kBadSize;
  const std::uint8_t inner = descriptor[0], verbatim = descriptor[1];
  if (inner > kLastPlainRate || verbatim > B || ((masks & kMaskVerbatim) == 0 && verbatim != 0)) return kBadRate;
  const Rate rate = kRates[inner];
  if (rate.planes > 8 * sizeof(typename Map::Code)) return kBadRate;
  sizes.descriptor_bytes += 2;
  sizes.outlier_bytes += rate.outlier_bytes;
  sizes.words +=
      B / 32 * (static_cast<std::uint32_t>(__builtin_popcount(masks)) + rate.planes) + verbatim * kValueWords;
  return kOk;
}

// Finds the parts of a tile and checks that they fill the tile exactly.
template <class Map, int D>
inline Status find_parts(const Plan& plan, const std::uint8_t* bytes, std::size_t size, bool uniform, int blocks,
                         TileParts* parts) {
  constexpr std::uint32_t kHalves = kBlockValues<D> / 32;
  const std::uint8_t* const end = bytes + size;
  const std::size_t rates = !uniform ? static_cast<std::size_t>(blocks) : size != 0 ? 1 : 0;
  if (rates > size || size > max_tile_bytes(sizeof(typename Map::Value))) return kBadSize;
  parts->rates = uniform ? nullptr : bytes;
  parts->common = uniform && size != 0 ? bytes[0] : std::uint8_t{0};
  parts->descriptors = bytes + rates;
  parts->end = end;
  TileSizes sizes;
  std::uint32_t planes = 0;
  int highest = 0, specials = 0;
  std::uint8_t special[kTileBlocks<D>];
  for (int b = 0; b < blocks; ++b) {  // no branch on special blocks: kRates gives them no planes
    const std::uint8_t code = parts->rate(b);
    const Rate rate = kRates[code];
    highest = std::max<int>(highest, rate.planes);
    planes += rate.planes;
    sizes.outlier_bytes += rate.outlier_bytes;
    special[specials] = static_cast<std::uint8_t>(b);
    specials += code >= kRateSentinel ? 1 : 0;
  }
  for (int i = 0; i < specials; ++i) {
    const std::uint8_t code = parts->rate(special[i]);
    if (uniform && is_special_rate(code)) return kBadRate;
    PYF_TRY((add_special<Map, D>(plan, code, parts->descriptors + sizes.descriptor_bytes, end, sizes)));
  }
  if (highest > static_cast<int>(8 * sizeof(typename Map::Code))) return kBadRate;
  sizes.words += planes * kHalves;
  const std::size_t before = rates + sizes.descriptor_bytes + sizes.outlier_bytes;
  const std::size_t words_from = (before + 3) / 4 * 4;
  if (words_from + 4 * std::size_t{sizes.words} != size) return kBadSize;
  for (std::size_t i = before; i < words_from; ++i)
    if (bytes[i] != 0) return kBadPadding;
  parts->outliers = parts->descriptors + sizes.descriptor_bytes;
  parts->words = bytes + words_from;
  return kOk;
}

// The outlier bytes of a block as a number.
KFN std::uint64_t read_outlier(const std::uint8_t* from, int bytes, const std::uint8_t* end) {
  if (end - from >= 8) [[likely]]
    return load_le<std::uint64_t>(from) & (~std::uint64_t{0} >> (64 - 8 * bytes));
  std::uint64_t high = 0;
  for (int i = 0; i < bytes; ++i) high |= static_cast<std::uint64_t>(from[i]) << (8 * i);
  return high;
}

// Reads a block's planes and advances. Returns the number to add to each code: the outlier bytes' share of the first
// residual, which the running sums carry to every value.
template <class Map, int D>
KFN typename Map::Code decode_codes(bool sums, Rate rate, TileParts& parts, typename Map::Code (&q)[kBlockValues<D>]) {
  using Code = typename Map::Code;
  constexpr int B = kBlockValues<D>;
  Code low = 0;
  if constexpr (D == 1) {
    if (sums) low = unpack_sums(parts.words, rate.planes, q);
  }
  if (D != 1 || !sums) {
    unpack_runs<B / 32>(parts.words, rate.planes, q);
    low = q[0];
    for (int i = 0; i < B; ++i) q[i] = unzigzag(q[i]);
    if (sums) accumulate_block<D>(q);
  }
  parts.words += 4 * rate.planes * (B / 32);
  if (rate.outlier_bytes == 0) return 0;
  const std::uint64_t high = read_outlier(parts.outliers, rate.outlier_bytes, parts.end);
  parts.outliers += rate.outlier_bytes;
  const auto whole = static_cast<Code>(low + static_cast<Code>(high << rate.planes));
  const auto carried = static_cast<Code>(unzigzag(whole) - unzigzag(low));
  if (sums) return carried;
  q[0] = static_cast<Code>(q[0] + carried);
  return 0;
}

// Decodes a special block (rate code 247 to 255).
template <class Map, int D>
[[gnu::noinline]] inline Status decode_special(const Map& map, bool sums, std::uint8_t code, TileParts& parts,
                                               typename Map::Value (&x)[kBlockValues<D>]) {
  using Value = typename Map::Value;
  constexpr int B = kBlockValues<D>;
  if (code == kRateSentinel) {
    for (int i = 0; i < B; ++i) x[i] = map.quantizer.sentinel;
    return kOk;
  }
  if (code == kRateVerbatim) {
    std::memcpy(x, parts.words, sizeof x);
    parts.words += sizeof x;
    return kOk;
  }
  const SpecialMasks masks = read_masks<B>(code, parts.words);
  const std::uint8_t inner = parts.descriptors[0], verbatim = parts.descriptors[1];
  parts.descriptors += 2;
  if (masks.verbatim_count() != verbatim) return kBadCount;
  const std::uint8_t* const values = parts.words + masks.bytes;
  parts.words = values + verbatim * sizeof(Value);
  alignas(64) typename Map::Code q[B];
  const auto carried = decode_codes<Map, D>(sums, kRates[inner], parts, q);
  map.decode(q, carried, x);
  apply_masks<Value, B>(map.quantizer, masks, values, x);
  return kOk;
}

// Whether rows are decoded directly into the array: if a row fits one AVX2 register.
template <int D, class Value>
inline constexpr bool kDecodesRows = false;
#if defined(PYF_LEVEL_AVX2)
template <class Value>
inline constexpr bool kDecodesRows<2, Value> = 8 * sizeof(Value) >= 32;
template <class Value>
inline constexpr bool kDecodesRows<3, Value> = 4 * sizeof(Value) >= 32;
#endif

// Stores the values of a block that is whole inside the array, row by row.
template <class Map, int D>
KFN void decode_rows(const Map& map, const typename Map::Code (&q)[64], typename Map::Code carried,
                     const BlockBox<D>& box, void* out) {
  using Value = typename Map::Value;
  constexpr std::uint64_t L = BlockBox<D>::L;
  for (std::uint64_t row = 0; row < 64 / L; ++row) {
    const auto& codes = *reinterpret_cast<const typename Map::Code(*)[L]>(q + row * L);
    map.decode(codes, carried,
               reinterpret_cast<Loose<Value>*>(static_cast<std::uint8_t*>(out) + box.row_at(row) * sizeof(Value)));
  }
}

// A block cursor that also keeps its block's box.
template <int D>
struct BoxCursor : BlockCursor {
  BlockBox<D> box;

  BoxCursor(const Grid& grid, std::uint64_t first_block)
      : BlockCursor(block_at<D>(grid, first_block)), box(grid, *this) {}
  KFN void next(const Grid& grid) {
    advance<D>(grid, *this);
    if (bx == 0) {
      box = BlockBox<D>(grid, *this);
    } else {
      box.first += BlockBox<D>::L;
      box.columns = std::min(BlockBox<D>::L, grid.nx - bx * BlockBox<D>::L);
    }
  }
};
template <>
struct BoxCursor<1> : BlockCursor {
  BoxCursor(const Grid& grid, std::uint64_t first) : BlockCursor(block_at<1>(grid, first)) {}
  KFN void next(const Grid& grid) { advance<1>(grid, *this); }
};

template <class Map, int D>
inline Status decode_tile(const Plan& base, const std::uint8_t* bytes, std::size_t size, bool uniform,
                          std::uint64_t tile, std::uint64_t start, std::uint64_t stop, void* out) {
  const auto& plan = static_cast<const BlockPlan&>(base);
  using Value = typename Map::Value;
  constexpr int B = kBlockValues<D>;
  const Map map(plan);
  const bool sums = plan.mode != 2;
  const std::uint64_t first_block = tile * kTileBlocks<D>;
  const int blocks = static_cast<int>(std::min<std::uint64_t>(kTileBlocks<D>, plan.grid.blocks - first_block));
  TileParts parts;
  PYF_TRY((find_parts<Map, D>(plan, bytes, size, uniform, blocks, &parts)));
  BoxCursor<D> cursor(plan.grid, first_block);
  const bool all_wanted = start == 0 && stop == plan.grid.values;
  constexpr int kAhead = 16;  // blocks
  BlockCursor ahead = cursor;
  if (D != 1 && all_wanted) prefetch_blocks<D, Value, true>(plan.grid, out, ahead, kAhead);
  for (int b = 0; b < blocks; ++b, cursor.next(plan.grid)) {
    if (D != 1 && all_wanted && b % kAhead == 0) prefetch_blocks<D, Value, true>(plan.grid, out, ahead, kAhead);
    alignas(64) Value x[B];
    const std::uint8_t code = parts.rate(b);
    if constexpr (Map::kHasSpecial) {
      if (code >= kRateSentinel) [[unlikely]] {
        PYF_TRY((decode_special<Map, D>(map, sums, code, parts, x)));
        store_block<D>(plan.grid, x, cursor, start, stop, out);
        continue;
      }
    }
    alignas(64) typename Map::Code q[B];
    const auto carried = decode_codes<Map, D>(sums, kRates[code], parts, q);
    if (Loose<Value>* whole = whole_block_at<D, Value>(cursor, start, stop, out); whole != nullptr) {
      ask_for_stores(whole, kAskedAhead, 32 * sizeof(Value));
      map.decode(q, carried, whole);
      continue;
    }
    if constexpr (kDecodesRows<D, Value>) {
      if (all_wanted && cursor.box.interior()) [[likely]] {
        decode_rows<Map, D>(map, q, carried, cursor.box, out);
        continue;
      }
    }
    map.decode(q, carried, x);
    store_block<D>(plan.grid, x, cursor, start, stop, out);
  }
  return kOk;
}

PYF_END_TARGET
