// SPDX-License-Identifier: BSD-3-Clause
// The values that a refining pass knows (docs/format.md, section 14.4): those with even coordinates. Outside the tile
// they are copies of the nearest known value.
#pragma once

#include <cstdint>

#include "adaptive/tile.hpp"

PYF_BEGIN_TARGET

// How far neighbours outside of a lattice are, in rows and planes.
inline constexpr std::int32_t kKnownMargin = 3;

// The number of rows in and around a lattice.
template <class Wave>
PYF_ON_LANES std::uint32_t known_rows(const Wave& wave) {
  const std::uint32_t margin = 2 * kKnownMargin, planes = wave.layout.planes, rows = wave.layout.rows;
  return (wave.kind == TileKind::volume ? planes + margin : 1) * (wave.kind != TileKind::line ? rows + margin : rows);
}

template <class Wave>
PYF_ON_LANES void fill_known_row(Wave& wave, const Dense& dense, const Lattice& lattice, std::uint32_t row) {
  const Layout& l = wave.layout;
  const bool deep = wave.kind == TileKind::volume, high = wave.kind != TileKind::line;
  const auto inside = [](std::int32_t i, std::uint32_t n) {  // the nearest even coordinate
    const std::int32_t last = static_cast<std::int32_t>(n - 1) / 2 * 2;
    return static_cast<std::uint32_t>(i < 0 ? 0 : i > last ? last : i) & ~1u;
  };
  const std::uint32_t of_plane = high ? l.rows + 2 * static_cast<std::uint32_t>(kKnownMargin) : l.rows;
  const std::int32_t z = static_cast<std::int32_t>(row / of_plane) - (deep ? kKnownMargin : 0),
                     y = static_cast<std::int32_t>(row % of_plane) - (high ? kKnownMargin : 0),
                     lead = static_cast<std::int32_t>(l.lead), trail = static_cast<std::int32_t>(l.trail);
  const bool z_out = z < 0 || z >= static_cast<std::int32_t>(l.planes),
             y_out = y < 0 || y >= static_cast<std::int32_t>(l.rows);
  const std::uint32_t from_y = high ? inside(y, l.rows) : static_cast<std::uint32_t>(y);
  const auto columns = static_cast<std::int32_t>(high ? lattice.columns : lattice.lengths[y]);
  const std::uint32_t from_z = deep ? inside(z, l.planes) : 0;
  const bool row_known = (!deep || z % 2 == 0 || z_out) && (!high || y % 2 == 0 || y_out);
  const CellIndex to = l.slot(z, y, 0);
  for (std::int32_t x = -lead; x < columns + trail; ++x) {
    const bool out = z_out || y_out || x < 0 || x >= columns;
    if (!out && !(row_known && x % 2 == 0)) continue;
    const std::size_t from = lattice.index(dense, from_z, from_y, inside(x, static_cast<std::uint32_t>(columns)));
    put_cell(wave.values, to + CellIndex{x} * static_cast<CellIndex>(kLaneStride), dense.values[from]);
    if (!out) put_cell(wave.sizes, to + CellIndex{x} * static_cast<CellIndex>(kLaneStride), dense.sizes[from]);
  }
}

PYF_END_TARGET
