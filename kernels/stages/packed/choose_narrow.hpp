// SPDX-License-Identifier: BSD-3-Clause
// The cost of a sampled tile (choose.hpp) for an entropy coder if its codes are narrow: all orders of a shape at once,
// strip by strip. The results equal those of choose_cpu.hpp.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "stages/packed/choose.hpp"
#include "stages/packed/narrow.hpp"

PYF_BEGIN_TARGET
// Codes of at most this many bits and a sign have differences below 2^21 along three axes.
inline constexpr int kSmallBits = 17;
PYF_END_TARGET

#if defined(PYF_LEVEL_AVX512)
#include "stages/simd/choose_avx512.hpp"
#endif

PYF_BEGIN_TARGET

// Adds coded_width() of the zigzag numbers of eight differences, and kWidthBias. kSmall: the differences are below
// 2^21, so |d + 1/4| is exact and its exponent plus 2 is the width.
template <bool kSmall>
inline constexpr std::uint32_t kWidthBias = kSmall ? 125 : 0;
template <bool kSmall>
KFN void add_widths(const Eight& difference, Eight& widths) {
  using FloatEight [[gnu::vector_size(32)]] = float;
  if constexpr (kSmall) {
    const FloatEight real = __builtin_convertvector((SignedEight)difference, FloatEight) + 0.25f;
    widths += ((Eight)real & 0x7FFFFFFFu) >> 23;
  } else {
    const Eight limit = Eight{} + (1u << 30);
    Eight z;
    zigzag_eight(difference, z);
    const Eight capped = z < limit ? z : limit;
    const Eight exponent = (Eight) __builtin_convertvector((SignedEight)capped, FloatEight) >> 23;
    widths += (exponent - 126) & (Eight)(capped != 0);
  }
}
KFN bool are_small(const Eight& seen) { return bits_of(seen) >> (kSmallBits + 1) == 0; }
KFN void note_code(const Eight& code, Eight& seen) { seen |= code + (1u << kSmallBits); }

template <int kFirst, int kCount>
KFN std::uint32_t sum_of(const Eight& v) {
  std::uint32_t sum = 0;
  for (int i = kFirst; i < kFirst + kCount; ++i) sum += v[i];
  return sum;
}

template <int S>
struct NarrowCosts {
  static constexpr std::uint32_t kX = TileShape<S>::kX, kOrders = S == kVolume ? 3 : 2;
  // width sums of incomplete blocks, by order, row of blocks and position along x
  Eight open[kOrders][S == kVolume ? 4 : 1][S == kPlane || S == kVolume ? kX / 8 : 1];
  std::uint64_t bits[4] = {};  // of complete blocks, by order
  Eight seen{};                // note_code() of all codes
};
template <bool kSmall>
KFN std::uint64_t narrow_block_cost(std::uint32_t widths) {
  return coded_block_cost(widths - 32 * kWidthBias<kSmall>);
}

// Adds a strip of a plane or a volume, for all orders: the differences of tile_differences(), except the tile's first
// value.
template <int S, bool kSmall>
[[gnu::noinline]] inline void add_strip(const TileBox& box, std::uint32_t strip, std::uint32_t rows, NarrowSpace<S>& s,
                                        NarrowCosts<S>& costs) {
  using Tile = TileShape<S>;
  const std::uint32_t z = S == kVolume ? strip : 0, y = S == kVolume ? 0 : strip * kStripRows;
  if (strip == 0) std::memset(s.behind, 0, sizeof s.behind);
  for (std::uint32_t x = 0; x < box.inx; x += 8) {
    const Eight first = x == 0 ? eight_at(kTaken<8>.first) : Eight{};
    Eight above = S == kPlane && strip != 0 ? eight_at(s.above + x) : Eight{}, seen = costs.seen;
    for (std::uint32_t from = 0; from < rows; from += Tile::kBlockY) {
      Eight widths[3] = {};
      for (std::uint32_t row = from; row < from + Tile::kBlockY; ++row) {
        const std::uint32_t* const q = s.row(row) + x;
        const Eight here = eight_at(q), along = here - eight_at(q - 1);
        if (kSmall) note_code(here, seen);
        Eight d[3] = {along - (above & first), along - above, along};
        above = along;
        if constexpr (S == kVolume) {
          Eight& before = eight_at(s.behind[row] + x);
          const Eight behind = before;
          before = d[1];
          d[2] = d[1] - behind;
          if (row == 0) {
            d[0] -= behind & first;
            d[1] -= behind & first;
          }
        }
        for (std::uint32_t order = 0; order < costs.kOrders; ++order) {
          if (strip == 0 && row == 0) d[order] &= ~first;
          add_widths<kSmall>(d[order], widths[order]);
        }
      }
      const auto present = [&](std::uint32_t at) { return is_present<S>(box, Tile::block_of(z, y + from, at)); };
      for (std::uint32_t order = 0; order < costs.kOrders; ++order) {
        if constexpr (S == kPlane) {
          if (present(x)) costs.bits[order + 1] += narrow_block_cost<kSmall>(sum_of<0, 8>(widths[order]));
        } else {
          Eight& open = costs.open[order][from / Tile::kBlockY][x / 8];
          if (strip % 2 == 0) {
            open = widths[order];
            continue;
          }
          const Eight both = open + widths[order];
          if (present(x)) costs.bits[order + 1] += narrow_block_cost<kSmall>(sum_of<0, 4>(both));
          if (present(x + 4)) costs.bits[order + 1] += narrow_block_cost<kSmall>(sum_of<4, 4>(both));
        }
      }
    }
    eight_at(s.above + x) = above;
    costs.seen = seen;
  }
}

// Adds a run of a chain or a column.
template <int S, bool kSmall>
[[gnu::noinline]] inline void add_run(const TileBox& box, std::uint32_t run, NarrowSpace<S>& s, NarrowCosts<S>& costs) {
  const std::uint32_t* const q = s.row(0);
  Eight seen = costs.seen;
  for (std::uint32_t b = 0; b < kRunValues / 32; ++b) {
    if (!is_present<S>(box, b + kRunValues / 32 * run)) continue;
    Eight values{}, differences{};
    for (std::uint32_t i = 32 * b; i < 32 * b + 32; i += 8) {
      Eight here = eight_at(q + i), d = here - eight_at(q + i - 1);
      if (kSmall) note_code(here, seen);
      if (run == 0 && i == 0) here &= ~eight_at(kTaken<8>.first);
      add_widths<kSmall>(d, differences);
      if constexpr (S == kChain) add_widths<kSmall>(here, values);
    }
    costs.bits[1] += narrow_block_cost<kSmall>(sum_of<0, 8>(differences));
    if constexpr (S == kChain) costs.bits[0] += narrow_block_cost<kSmall>(sum_of<0, 8>(values));
  }
  costs.seen = seen;
}

// Bits of a tile's present blocks, by order. False if its codes are not narrow. kSmall: sets `small` to whether the
// codes are small; if not, the bits are invalid.
template <int S, bool kSmall, class Code>
[[gnu::noinline]] inline bool narrow_costs(const AnyMap<Code>& map, const Grid& grid, const void* values,
                                           const TileBox& box, const std::uint8_t* next_tile, void* copy, bool& small,
                                           std::uint64_t (&bits)[4]) {
  NarrowSpace<S> space;
#if defined(PYF_LEVEL_AVX512)
  if constexpr (kSmall) {
    SmallCosts<S> costs;
    const bool narrow =
        narrow_strips<S>(map, grid, values, box, next_tile, copy, space, [&](std::uint32_t strip, std::uint32_t rows) {
          if constexpr (S == kPlane || S == kVolume)
            costs.add_strip(box, strip, rows, space);
          else
            costs.add_run(box, strip, space);
        });
    if (narrow) costs.get(bits);
    if (narrow) small = costs.small();
    return narrow;
  }
#endif
  NarrowCosts<S> costs;
  const bool narrow =
      narrow_strips<S>(map, grid, values, box, next_tile, copy, space, [&](std::uint32_t strip, std::uint32_t rows) {
        if constexpr (S == kPlane || S == kVolume)
          add_strip<S, kSmall>(box, strip, rows, space, costs);
        else
          add_run<S, kSmall>(box, strip, space, costs);
      });
  if (narrow) std::memcpy(bits, costs.bits, sizeof bits);
  if (kSmall && narrow) small = are_small(costs.seen);
  return narrow;
}

// `small`: whether codes of earlier tiles were small, which predicts this tile's.
template <int S, class Code>
inline bool narrow_costs(const AnyMap<Code>& map, const Grid& grid, const void* values, const TileBox& box,
                         const std::uint8_t* next_tile, void* copy, bool& small, std::uint64_t (&bits)[4]) {
  if (small) {
    const bool narrow = narrow_costs<S, true>(map, grid, values, box, next_tile, copy, small, bits);
    if (small) return narrow;
  }
  return narrow_costs<S, false>(map, grid, values, box, next_tile, copy, small, bits);
}

PYF_END_TARGET
