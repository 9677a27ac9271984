// SPDX-License-Identifier: BSD-3-Clause
// Computes the codes of a tile strip by strip, in 32 bits. All values must be ordinary and all codes at most 28 bits
// wide, as in most tiles. Used for residuals in front of an entropy coder, and for the sample that selects the
// predictor.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/plan.hpp"
#include "core/target.hpp"
#include "core/tile_shape.hpp"
#include "stages/packed/any_map.hpp"
#include "stages/packed/tile_bits.hpp"
#include "stages/packed/tile_values.hpp"
#include "stages/packed/values.hpp"
#include "stages/simd/narrow.hpp"
#include "stages/tile_encode.hpp"

PYF_BEGIN_TARGET

// A strip of a tile, and the data of earlier strips that it needs.
inline constexpr std::uint32_t kStripRows = 16;  // rows of a plane or a slab; of chains and columns: runs
inline constexpr std::uint32_t kRunValues = 1024;
template <int S>
struct NarrowSpace {
  static constexpr std::uint32_t kRow = S == kPlane || S == kVolume ? TileShape<S>::kX : 64, kPad = 16;
  alignas(64) std::uint32_t codes[kStripRows * (kPad + kRow)];  // 0 before each row; or a run and the code before it
  alignas(64) std::uint32_t above[kRow];                        // differences along x of the row above
  alignas(64) std::uint32_t behind[S == kVolume ? kStripRows : 1][kRow];  // differences along x, y of the slab before

  static constexpr std::uint32_t kStride = kPad + kRow;  // distance between rows
  KFN std::uint32_t* row(std::uint32_t r) { return codes + r * kStride + kPad; }
};

// Codes with this many bits and a sign may be shortened: differences along three axes, and to the previous tile, still
// fit 32 bits.
inline constexpr int kNarrowBits = 27;
template <class Code>
KFN bool may_shorten(Code code) {
  return sizeof(Code) == 4 || static_cast<Code>(code + (Code{1} << kNarrowBits)) >> (kNarrowBits + 1) == 0;
}

// Computes the codes of 32 values. Returns 0 if all are ordinary and may be shortened.
template <class Map, class Values>
KFN std::uint64_t narrow_codes(const Map& map, const Values* x, std::uint32_t* q) {
  using Code = typename Map::Code;
  if constexpr (sizeof(Code) == 4) {
    return encode_block<Map, 32>(map, x, q);
  } else {
    alignas(64) Code wide[32];
    const std::uint64_t misfits = encode_block<Map, 32>(map, x, wide);
    return misfits | shorten_codes(wide, std::uint64_t{1} << kNarrowBits, q) >> (kNarrowBits + 1);
  }
}

// Computes codes of runs of 32 values, and notes whether all are ordinary and narrow.
template <class Map>
struct NarrowCodes {
  const Map& map;
  std::uint64_t beyond = 0;

  explicit KFN NarrowCodes(const Map& all) : map(all) {}
  template <class Values>
  KFN void take(const Values* x, std::uint32_t* q) {
    beyond |= narrow_codes(map, x, q);
  }
  [[nodiscard]] KFN bool fit() const { return beyond == 0; }
};
#if defined(PYF_VECTORS)
template <class Map>
concept kQuantizesLinearly = requires(const Map& map) {
  { map.quantizer } -> std::same_as<const Quantizer<typename Map::Value>&>;
};
template <class Map>
  requires kQuantizesLinearly<Map>
struct NarrowCodes<Map> {
  NarrowQuantizer<typename Map::Value> quantizer;
  static constexpr int kAtOnce = decltype(quantizer)::kAtOnce;

  explicit KFN NarrowCodes(const Map& map) : quantizer(map.quantizer, kNarrowBits) {}
  template <class Values>
  KFN void take(const Values* x, std::uint32_t* q) {
    if (quantizer.has_sentinel())
      for (int i = 0; i < 32; i += kAtOnce) quantizer.template take<true>(x + i, q + i);
    else
      for (int i = 0; i < 32; i += kAtOnce) quantizer.template take<false>(x + i, q + i);
  }
  [[nodiscard]] KFN bool fit() const { return quantizer.fits(); }
};
#endif

// Eight words, in the level's registers. Explicit vectors, because compilers split loops over a row that also move
// words. Words in memory need not be aligned. They are read and written by *eight_at(at) and *held_at(at) alone: in a
// reference, and in a pointer of another type, Clang forgets it.
using Eight [[gnu::vector_size(32)]] = std::uint32_t;
using LooseEight [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = std::uint32_t;
KFN LooseEight* eight_at(std::uint32_t* at) { return reinterpret_cast<LooseEight*>(at); }
KFN const LooseEight* eight_at(const std::uint32_t* at) { return reinterpret_cast<const LooseEight*>(at); }

// As many words as a register of the level has, at least eight.
#if defined(PYF_LEVEL_AVX512)
using Words [[gnu::vector_size(64)]] = std::uint32_t;
using LooseWords [[gnu::vector_size(64), gnu::aligned(4), gnu::may_alias]] = std::uint32_t;
KFN LooseWords* held_at(std::uint32_t* at) { return reinterpret_cast<LooseWords*>(at); }
KFN const LooseWords* held_at(const std::uint32_t* at) { return reinterpret_cast<const LooseWords*>(at); }
#else
using Words = Eight;
KFN LooseEight* held_at(std::uint32_t* at) { return eight_at(at); }
KFN const LooseEight* held_at(const std::uint32_t* at) { return eight_at(at); }
#endif
inline constexpr std::uint32_t kHeldWords = sizeof(Words) / sizeof(std::uint32_t);

// The OR of all words, and whether that is 0.
template <class V>
KFN std::uint32_t bits_of(const V& v) {
  std::uint32_t any = 0;
  for (std::size_t i = 0; i < sizeof v / sizeof any; ++i) any |= v[i];
  return any;
}
#if !defined(PYF_VECTORS)
KFN bool is_zero(const Words& v) { return bits_of(v) == 0; }
#endif

// By reference: compilers do not agree on how to return vectors wider than the level's registers.
template <class V>
KFN void zigzag_words(const V& d, V& z) {
  using Signed = decltype(d < d);
  z = (d << 1) ^ (V)((Signed)d >> 31);
}

// All bits set for the first word of a row, else 0.
alignas(64) inline constexpr std::uint32_t kFirstOfRow[16] = {~0u};

// Copies `count` values that are `stride` apart to a contiguous run, padded with the last value.
[[gnu::noinline]] inline void copy_column(std::uint32_t value_bytes, const void* from, std::uint64_t stride,
                                          std::uint32_t count, void* to) {
  with_width(value_bytes, [&]<class U>(U) {
    const Loose<U>* const column = loose_values<U>(from, 0);
    U* const copy = static_cast<U*>(to);
    for (std::uint32_t y = 0; y < count; ++y) copy[y] = column[y * stride];
    for (std::uint32_t y = count; y < kRunValues; ++y) copy[y] = copy[count - 1];
  });
}

// Codes of a tile. In planes and volumes, take(strip, rows) is called for each strip with blocks inside the array. Then
// s.row(r) is row r of the strip, for r below `rows`, with a 0 before it. In chains and columns, take is called for
// each run, with the code before the run. A tile's first run has its own first code there; a column has the code of the
// column before. Returns false, possibly after some calls of take, if a value is special or a code is wide.
// `next_tile`: start of the tile that is read next.
template <int S, class Code, class Take>
KFN bool narrow_strips(const AnyMap<Code>& map, const Grid& grid, const void* values, const TileBox& box,
                       const std::uint8_t* next_tile, void* copy, NarrowSpace<S>& s, const Take& take) {
  const std::uint32_t value_bytes = map.of.value_bytes;
  const auto* const first = static_cast<const std::uint8_t*>(values) + box.first * value_bytes;
  const auto distance = [](const void* from, const void* to) {  // also for addresses in different arrays
    return reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
  };
  if constexpr (S == kPlane || S == kVolume) {
    // rows and slabs beyond the array's edge that belong to present blocks: they repeat the last one inside
    const std::uint32_t rows = present_rows<S>(box).y, slabs = present_rows<S>(box).z;
    const std::size_t row_bytes = grid.nx * value_bytes, slab_bytes = grid.ny * row_bytes;
    ValueRows inside{
        .stride = row_bytes, .columns = box.inx, .width = TileShape<S>::kX, .worked = present_along(box.inx, 32) * 32};
    for (std::uint32_t row = 0; row < kStripRows; ++row) *(s.row(row) - 1) = 0;
    for (std::uint32_t strip = 0; strip < (S == kVolume ? slabs : present_along(rows, kStripRows)); ++strip) {
      const std::uint32_t y = S == kVolume ? 0 : strip * kStripRows, here = std::min(rows - y, kStripRows);
      if (S == kPlane || strip < box.inz) {
        const std::uint8_t* const from = first + (S == kVolume ? strip * slab_bytes : y * row_bytes);
        // rows are too many streams for hardware prefetchers: prefetch those of the next strip or tile
        const std::uint8_t* const next = S == kVolume && strip + 1 < box.inz ? from + slab_bytes
                                         : S == kPlane && y + here < rows    ? from + kStripRows * row_bytes
                                                                             : next_tile;
        inside.first = from;
        inside.ahead = distance(from, next);
        inside.rows = std::min(box.iny - y, here);
        if (!map.of.narrow_rows(map.memory, inside, s.row(0), s.kStride)) return false;
        for (std::uint32_t row = inside.rows; row < here; ++row)
          std::memcpy(s.row(row), s.row(inside.rows - 1), NarrowSpace<S>::kRow * sizeof(std::uint32_t));
      }
      take(strip, here);
    }
  } else {
    std::uint32_t* const q = s.row(0);
    std::uint32_t before = 0;
    ValueRows here{.columns = kRunValues, .width = kRunValues, .worked = kRunValues};
    if constexpr (S == kChain) {
      here.first = load_values<S>({value_bytes, grid, box, values, nullptr}, copy);
      here.ahead = 4096;
    }
    for (std::uint32_t run = 0; run < 4; ++run) {
      if constexpr (S == kColumns) {
        if (run >= box.inx) break;
        copy_column(value_bytes, first + run * value_bytes, grid.nx, box.iny, copy);
        here.first = copy;
      }
      if (!map.of.narrow_rows(map.memory, here, q, 0)) return false;
      here.first = static_cast<const std::uint8_t*>(here.first) + kRunValues * value_bytes;
      *(q - 1) = run == 0 ? q[0] : before;
      before = S == kChain ? q[kRunValues - 1] : q[0];
      take(run, kStripRows);
    }
  }
  return true;
}

PYF_END_TARGET
