// SPDX-License-Identifier: BSD-3-Clause
// The cost of predictors for a sampled tile (choose.hpp) in front of an entropy coder, if the tile's codes are narrow.
// All orders of a tile shape are computed at once, strip by strip. The costs equal those of choose_cpu.hpp.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "stages/packed/choose.hpp"
#include "stages/packed/narrow.hpp"

PYF_BEGIN_TARGET

// Codes with this many bits and a sign have small differences along three axes.
inline constexpr int kSmallBits = 17;

// Adds width_note() of differences, widths plus kWidthBias. kSmall: differences are below 2^21; then |d| + 1/2 is exact
// as a float, and its exponent is the width.
template <bool kSmall>
inline constexpr std::uint32_t kWidthBias = kSmall ? kSmallWidthBase : 0;
template <bool kSmall>
KFN void add_widths(const Words& difference, Words& notes) {
  using Floats [[gnu::vector_size(sizeof(Words))]] = float;
  using Integers [[gnu::vector_size(sizeof(Words))]] = std::int32_t;
  constexpr std::int32_t kZero = kWidthBias<kSmall>;
  Words width;
  if constexpr (kSmall) {
    const Words real = (Words) __builtin_convertvector((Integers)difference, Floats) & 0x7FFFFFFFu;
    width = (Words)((Floats)real + 0.5f) >> 23;
  } else {
    const Words limit = Words{} + (1u << 30), sign = (Words)((Integers)difference >> 31);
    const Words magnitude = (difference ^ sign) - sign;
    const Words capped = magnitude < limit ? magnitude : limit;
    const Words exponent = (Words) __builtin_convertvector((Integers)capped, Floats) >> 23;
    width = (exponent - 126) & (Words)(capped != 0);
  }
  notes += width + ((Words)((Integers)width > kZero) & 1u << kNonzeroAt) +
           ((Words)((Integers)width > kZero + 1) & 1u << kAboveOneAt) + (difference >> 31 << kNegativeAt);
}
KFN bool are_small(const Words& seen) { return bits_of(seen) >> (kSmallBits + 1) == 0; }
KFN void note_code(const Words& code, Words& seen) { seen |= code + (1u << kSmallBits); }

// The sum of each group of four words.
using FourSums = std::uint32_t[kHeldWords / 4];
KFN void sum_fours(const Words& v, FourSums& sums) {
#if defined(PYF_VECTORS)
  const U32 all = sums_of_four(v);
  for (std::uint32_t i = 0; i < kHeldWords / 4; ++i) sums[i] = all[4 * i];
#else
  for (std::uint32_t i = 0; i < kHeldWords / 4; ++i) sums[i] = v[4 * i] + v[4 * i + 1] + v[4 * i + 2] + v[4 * i + 3];
#endif
}
KFN std::uint32_t sum_of(const Words& v) {
  FourSums sums;
  sum_fours(v, sums);
  std::uint32_t sum = 0;
  for (const std::uint32_t four : sums) sum += four;
  return sum;
}

template <int S>
struct NarrowCosts {
  static constexpr std::uint32_t kX = TileShape<S>::kX, kOrders = S == kVolume ? 3 : 2;
  // widths of incomplete blocks: by order, row of blocks, and position along x
  Words open[kOrders][S == kVolume ? 4 : 1][S == kPlane || S == kVolume ? kX / kHeldWords : 1];
  CodedSums sums[4];  // by order
  Words seen{};       // OR of note_code() of all codes

  template <bool kSmall>
  KFN void add(std::uint32_t order, std::uint32_t notes) {
    sums[order].add(notes - 32 * kWidthBias<kSmall>);
  }
};

// Adds a strip of a plane or a volume: differences of all orders, as in tile_differences(). The tile's first value has
// no difference.
template <int S, bool kSmall>
[[gnu::noinline]] inline void add_strip(const TileBox& box, std::uint32_t strip, std::uint32_t rows, NarrowSpace<S>& s,
                                        NarrowCosts<S>& costs) {
  using Tile = TileShape<S>;
  const std::uint32_t z = S == kVolume ? strip : 0, y = S == kVolume ? 0 : strip * kStripRows;
  if (strip == 0) std::memset(s.behind, 0, sizeof s.behind);
  for (std::uint32_t x = 0; x < box.inx; x += kHeldWords) {
    const Words first = x == 0 ? *held_at(kFirstOfRow) : Words{};
    Words above = S == kPlane && strip != 0 ? *held_at(s.above + x) : Words{}, seen = costs.seen;
    for (std::uint32_t from = 0; from < rows; from += Tile::kBlockY) {
      Words widths[3] = {};
      for (std::uint32_t row = from; row < from + Tile::kBlockY; ++row) {
        const std::uint32_t* const q = s.row(row) + x;
        const Words here = *held_at(q), along = here - *held_at(q - 1);
        if (kSmall) note_code(here, seen);
        Words d[3] = {along - (above & first), along - above, along};
        above = along;
        if constexpr (S == kVolume) {
          const Words behind = *held_at(s.behind[row] + x);
          *held_at(s.behind[row] + x) = d[1];
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
      FourSums sums;
      const auto present = [&](std::uint32_t at) { return is_present<S>(box, Tile::block_of(z, y + from, at)); };
      for (std::uint32_t order = 0; order < costs.kOrders; ++order) {
        if constexpr (S == kPlane) {
          sum_fours(widths[order], sums);
          for (std::uint32_t k = 0; k < kHeldWords; k += 8)
            if (present(x + k)) costs.template add<kSmall>(order + 1, sums[k / 4] + sums[k / 4 + 1]);
        } else {
          Words& open = costs.open[order][from / Tile::kBlockY][x / kHeldWords];
          if (strip % 2 == 0) {
            open = widths[order];
            continue;
          }
          const Words both = open + widths[order];
          sum_fours(both, sums);
          for (std::uint32_t k = 0; k < kHeldWords; k += 4)
            if (present(x + k)) costs.template add<kSmall>(order + 1, sums[k / 4]);
        }
      }
    }
    *held_at(s.above + x) = above;
    costs.seen = seen;
  }
}

// Adds a run of a chain or a column.
template <int S, bool kSmall>
[[gnu::noinline]] inline void add_run(const TileBox& box, std::uint32_t run, NarrowSpace<S>& s, NarrowCosts<S>& costs) {
  const std::uint32_t* const q = s.row(0);
  Words seen = costs.seen;
  for (std::uint32_t b = 0; b < kRunValues / 32; ++b) {
    if (!is_present<S>(box, b + kRunValues / 32 * run)) continue;
    Words values{}, differences{};
    for (std::uint32_t i = 32 * b; i < 32 * b + 32; i += kHeldWords) {
      Words here = *held_at(q + i), d = here - *held_at(q + i - 1);
      if (kSmall) note_code(here, seen);
      if (run == 0 && i == 0) here &= ~*held_at(kFirstOfRow);
      add_widths<kSmall>(d, differences);
      if constexpr (S == kChain) add_widths<kSmall>(here, values);
    }
    costs.template add<kSmall>(1, sum_of(differences));
    if constexpr (S == kChain) costs.template add<kSmall>(0, sum_of(values));
  }
  costs.seen = seen;
}

// Computes the cost of a tile's present blocks for each order. Returns false if codes are not narrow. kSmall: sets
// `small`; if it becomes false, the costs are invalid.
template <int S, bool kSmall, class Code>
[[gnu::noinline]] inline bool narrow_costs(const AnyMap<Code>& map, const Grid& grid, const void* values,
                                           const TileBox& box, const std::uint8_t* next_tile, void* copy, bool& small,
                                           std::uint64_t (&bits)[4]) {
  NarrowSpace<S> space;
  NarrowCosts<S> costs;
  const bool narrow =
      narrow_strips<S>(map, grid, values, box, next_tile, copy, space, [&](std::uint32_t strip, std::uint32_t rows) {
        if constexpr (S == kPlane || S == kVolume)
          add_strip<S, kSmall>(box, strip, rows, space, costs);
        else
          add_run<S, kSmall>(box, strip, space, costs);
      });
  for (int order = 0; order < 4 && narrow; ++order) bits[order] = costs.sums[order].cost(box.inz * box.iny * box.inx);
  if (kSmall && narrow) small = are_small(costs.seen);
  return narrow;
}

// `small`: whether the previous tile's codes were small, which most likely holds for this tile, too.
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
