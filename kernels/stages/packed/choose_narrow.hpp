// SPDX-License-Identifier: BSD-3-Clause
// What a sampled tile costs (choose.hpp) where an entropy coder follows and its codes are narrow: every predictor of a
// shape at once, strip by strip. The numbers are those of choose_cpu.hpp.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "stages/packed/choose.hpp"
#include "stages/packed/narrow.hpp"

PYF_BEGIN_TARGET

// Adds coded_width() of the zigzag numbers of eight differences.
KFN void add_widths(const Eight& difference, Eight& widths) {
  using FloatEight [[gnu::vector_size(32)]] = float;
  const Eight limit = Eight{} + (1u << 30);
  Eight z;
  zigzag_eight(difference, z);
  const Eight capped = z < limit ? z : limit;
  const Eight exponent = (Eight) __builtin_convertvector((SignedEight)capped, FloatEight) >> 23;
  widths += (exponent - 126) & (Eight)(capped != 0);
}
template <int kFirst, int kCount>
KFN std::uint32_t sum_of(const Eight& v) {
  std::uint32_t sum = 0;
  for (int i = kFirst; i < kFirst + kCount; ++i) sum += v[i];
  return sum;
}

template <int S>
struct NarrowCosts {
  static constexpr std::uint32_t kX = TileShape<S>::kX, kOrders = S == kVolume ? 3 : 2;
  // widths of blocks that are not complete, by order, row of blocks and place along x
  Eight open[kOrders][S == kVolume ? 4 : 1][S == kPlane || S == kVolume ? kX / 8 : 1];
  std::uint64_t bits[4] = {};  // by order
};

// Adds a strip of a plane or a volume: differences as in tile_differences(), all orders; the tile's first is not one.
template <int S>
[[gnu::noinline]] inline void add_strip(const TileBox& box, std::uint32_t strip, NarrowSpace<S>& s,
                                        NarrowCosts<S>& costs) {
  using Tile = TileShape<S>;
  constexpr std::uint32_t kX = Tile::kX;
  constexpr const TakenMasks<kX>& kMasks = kTaken<kX>;
  if (strip == 0) std::memset(s.behind, 0, sizeof s.behind);
  if (strip == 0 || S == kVolume) std::memset(s.above, 0, sizeof s.above);
  if (S == kPlane || strip % 2 == 0) std::memset(costs.open, 0, sizeof costs.open);
  for (std::uint32_t row = 0; row < kStripRows; ++row) {
    const std::uint32_t* const q = s.row(row);
    const std::uint32_t* const first_behind = row == 0 ? kMasks.first : kMasks.none;
    const bool first_row = strip == 0 && row == 0, completes = row % 4 == 3 && (S == kPlane || strip % 2 == 1);
    for (std::uint32_t x = 0; x < kX; x += 8) {
      const Eight along = eight_at(q + x) - eight_at(q + x - 1), above = eight_at(s.above + x);
      Eight d[3] = {along - (above & eight_at(kMasks.first + x)), along - above, along};
      eight_at(s.above + x) = along;
      if constexpr (S == kVolume) {
        const Eight behind = eight_at(s.behind[row] + x), few = behind & eight_at(first_behind + x);
        eight_at(s.behind[row] + x) = d[1];
        d[2] = d[1] - behind;
        d[0] -= few;
        d[1] -= few;
      }
      for (std::uint32_t order = 0; order < costs.kOrders; ++order) {
        if (first_row && x == 0) d[order] &= ~eight_at(kMasks.first);
        Eight& open = costs.open[order][S == kVolume ? row / 4 : 0][x / 8];
        add_widths(d[order], open);
        if (!completes) continue;
        const std::uint32_t z = S == kVolume ? strip : 0, y = S == kVolume ? row : strip * kStripRows + row;
        const auto present = [&](std::uint32_t at) { return is_present<S>(box, Tile::block_of(z, y, at)); };
        if constexpr (S == kPlane) {
          if (present(x)) costs.bits[order + 1] += coded_block_cost(sum_of<0, 8>(open));
          open = Eight{};
        } else {
          if (present(x)) costs.bits[order + 1] += coded_block_cost(sum_of<0, 4>(open));
          if (present(x + 4)) costs.bits[order + 1] += coded_block_cost(sum_of<4, 4>(open));
        }
      }
    }
  }
}

// Adds a run of a chain or a column.
template <int S>
[[gnu::noinline]] inline void add_run(const TileBox& box, std::uint32_t run, NarrowSpace<S>& s, NarrowCosts<S>& costs) {
  const std::uint32_t* const q = s.row(0);
  for (std::uint32_t b = 0; b < kRunValues / 32; ++b) {
    if (!is_present<S>(box, b + kRunValues / 32 * run)) continue;
    Eight values{}, differences{};
    for (std::uint32_t i = 32 * b; i < 32 * b + 32; i += 8) {
      Eight here = eight_at(q + i), d = here - eight_at(q + i - 1);
      if (run == 0 && i == 0) here &= ~eight_at(kTaken<8>.first);
      add_widths(d, differences);
      if constexpr (S == kChain) add_widths(here, values);
    }
    costs.bits[1] += coded_block_cost(sum_of<0, 8>(differences));
    if constexpr (S == kChain) costs.bits[0] += coded_block_cost(sum_of<0, 8>(values));
  }
}

// Bits of the present blocks of a tile by order. False where its codes are not narrow.
template <int S, class Map>
inline bool narrow_costs(const Map& map, const Grid& grid, const void* values, const TileBox& box,
                         typename Map::Value* copy, std::uint64_t (&bits)[4]) {
  NarrowSpace<S> space;
  NarrowCosts<S> costs;
  const bool narrow = narrow_strips<S>(map, grid, values, box, copy, space, [&](std::uint32_t strip) {
    if constexpr (S == kPlane || S == kVolume)
      add_strip<S>(box, strip, space, costs);
    else
      add_run<S>(box, strip, space, costs);
  });
  if (narrow) std::memcpy(bits, costs.bits, sizeof bits);
  return narrow;
}

PYF_END_TARGET
