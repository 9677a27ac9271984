// SPDX-License-Identifier: BSD-3-Clause
// The classes of a refining pass (refine.hpp) before its first turn, and where their values are in the dense array and
// in the user's array.
#pragma once

#include <cstdint>

#include "adaptive/cuda/refining.cuh"
#include "adaptive/cuda/value_cursor.cuh"

namespace pyfilter::cuda {

// Fills the known class from the dense array. Copies of its values stand for neighbours outside of the lattice, and for
// neighbours that are not coded yet (begin_refining() of the CPU). Warp `part` of `parts` does its part; all call
// wait().
template <class Wait>
PYF_LANES void begin_classes(const Refinement& shape, const Dense& dense, const Lattice& lattice,
                             const UnitScratch& scratch, std::uint32_t part, std::uint32_t parts, const Wait& wait) {
  const auto floats = static_cast<std::uint32_t>(shape.floats());
  const std::uint32_t first = part * kRows + this_lane(), stride = parts * kRows;
  for (std::uint32_t i = first; i < floats; i += stride) scratch.sizes[i] = 0;
  const std::uint32_t words = shape.classes() * shape.steps();
  for (std::uint32_t i = first; i < words; i += stride) scratch.masks[i] = 0;
  wait();
  const std::uint32_t others = (1u << shape.classes()) - 2;  // bits of the classes that are not known
  const auto even_columns = static_cast<std::int32_t>(shape.columns_of(0)),
             odd_columns = static_cast<std::int32_t>(shape.columns_of(1)), lead = static_cast<std::int32_t>(shape.lead);
  const std::uint32_t rows = KnownRow::known_rows(shape);
#pragma unroll 1
  for (std::uint32_t number = part; number < rows; number += parts) {
    const KnownRow row(shape, dense, lattice, number);
    const std::int32_t end = row.columns > 0 ? even_columns + lead : -lead;
    const CellIndex to = shape.cell(0, row.z, row.y, 0);
    // Values of a volume's classes are never taken before they are coded: bits of the classes that have this row.
    std::uint32_t coded = 0;
    if (shape.is_volume() && row.is_inside) {
      const std::uint32_t parity = this_lane();
      const bool has = parity < shape.classes() && row.z < static_cast<std::int32_t>(shape.planes_of(parity)) &&
                       row.y < static_cast<std::int32_t>(shape.rows_of(parity));
      coded = __ballot_sync(kAllRows, has ? 1 : 0);
    }
    const std::uint32_t evens = coded & 0x55, odds = coded & 0xAA;  // by the parity along x
#pragma unroll 1
    for (std::int32_t x = static_cast<std::int32_t>(this_lane()) - lead; x < end;
         x += static_cast<std::int32_t>(kRows)) {
      const std::uint32_t column = KnownRow::nearest(x, static_cast<std::uint32_t>(row.columns));
      const bool known = row.is_inside && x == static_cast<std::int32_t>(column);
      const std::size_t at = row.from + column * row.by;
      const float value = dense.values[at];
      const CellIndex cell = to + x * static_cast<CellIndex>(shape.stride);
      scratch.values[cell] = value;
      std::uint32_t outside = others;
      if (x >= 0) outside &= ~((x < even_columns ? evens : 0) | (x < odd_columns ? odds : 0));
#pragma unroll 1
      for (; outside != 0; outside &= outside - 1)
        scratch
            .values[cell + static_cast<CellIndex>((static_cast<std::uint32_t>(__ffs(static_cast<int>(outside))) - 1) *
                                                  shape.class_cells)] = value;
      if (!known) continue;
      scratch.sizes[cell] = dense.sizes[at];
      if (dense.kinds[at] != kSentinel) continue;
      std::uint32_t step = 0, lane = 0;
      shape.find(static_cast<std::uint32_t>(row.z), static_cast<std::uint32_t>(row.y), column, &step, &lane);
      atomicOr(scratch.masks + step, 1u << lane);
    }
  }
  wait();
}

// The point of this lane. Before its row x is below 0, modulo 2^32.
PYF_LANES LatticePoint point_of(const Refining& r, const RefinedPlace& place) {
  const std::uint32_t p = r.parity;
  return {r.shape.is_volume() ? 2 * static_cast<std::uint32_t>(place.z.v) + Refinement::odd(p, 2) : 0,
          r.shape.is_line() ? this_lane() : 2 * (this_lane() % kHalf) + Refinement::odd(p, 1),
          2 * static_cast<std::uint32_t>(place.x.v) + Refinement::odd(p, 0)};
}
// Where the lane's value of a turn is in the array, and in the dense array.
PYF_LANES ValueCursor cursor_of_turn(const AdaptiveTile& tile, const Lattice& lattice, const Refining& r,
                                     const RefinedPlace& place) {
  const LatticePoint point = point_of(r, place);
  const std::uint64_t step = tile.value_stride << lattice.shift_x;
  ValueCursor c;
  c.along = 2 * step;
  c.back = (tile.plane_stride << (lattice.shift_z + 1)) - r.shape.period * c.along;
  c.index = tile.row(point.z << lattice.shift_z, point.y << lattice.shift_y) +
            static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(point.x)}) * step;
  return c;
}
PYF_LANES std::size_t dense_index(const Dense& dense, const Lattice& lattice, const Refining& r,
                                  const RefinedPlace& place) {
  const LatticePoint point = point_of(r, place);
  return lattice.index(dense, point.z, point.y, point.x);
}

}  // namespace pyfilter::cuda
