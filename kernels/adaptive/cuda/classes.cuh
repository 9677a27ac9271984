// SPDX-License-Identifier: BSD-3-Clause
// The classes of a refining pass (refine.hpp) before its first turn, and where their values are in the dense array and
// in the user's array.
#pragma once

#include <cstdint>

#include "adaptive/cuda/refining.cuh"
#include "adaptive/cuda/value_cursor.cuh"

namespace pyfilter::cuda {

// The classes, as bits, that code a value at this place: theirs are never taken before they are coded. In planes and
// lines a neighbour may be taken before.
PYF_LANES std::uint32_t classes_that_code(const Refinement& shape, const KnownRow& row, std::int32_t x) {
  if (!shape.is_volume() || !row.is_inside || x < 0) return 0;
  const auto is_below = [](std::int32_t i, std::uint32_t n) { return i < static_cast<std::int32_t>(n); };
  const std::uint32_t by_z = (is_below(row.z, shape.planes_of(4)) ? 0xF0 : 0) |
                             (is_below(row.z, shape.planes_of(0)) ? 0x0F : 0),
                      by_y = (is_below(row.y, shape.rows_of(2)) ? 0xCC : 0) |
                             (is_below(row.y, shape.rows_of(0)) ? 0x33 : 0),
                      by_x =
                          (is_below(x, shape.columns_of(1)) ? 0xAA : 0) | (is_below(x, shape.columns_of(0)) ? 0x55 : 0);
  return by_z & by_y & by_x;
}

// A cell of the known class, or one outside of the lattice.
struct KnownCell {
  static constexpr std::uint32_t kAtOnce = 4;  // whose loads are on their way together

  CellIndex to;
  std::uint32_t outside;     // bits of the classes that have a copy of its value there
  std::uint32_t step, lane;  // of a value of the lattice
  float value, size;
  std::uint8_t kind;
  bool there, known;

  // `width`: cells of a row
  __device__ __forceinline__ void load(const Refinement& shape, const Dense& dense, const Lattice& lattice,
                                       std::uint32_t number, std::uint32_t width) {
    const KnownRow row(shape, dense, lattice, number / width);
    const std::int32_t x = static_cast<std::int32_t>(number % width) - static_cast<std::int32_t>(shape.lead);
    there = row.columns > 0;
    if (!there) return;
    const std::uint32_t column = KnownRow::nearest(x, static_cast<std::uint32_t>(row.columns));
    const std::size_t at = row.from + column * row.by;
    value = dense.values[at];
    known = row.is_inside && x == static_cast<std::int32_t>(column);
    to = shape.cell(0, row.z, row.y, x);
    outside = ((1u << shape.classes()) - 2) & ~classes_that_code(shape, row, x);
    if (!known) return;
    size = dense.sizes[at];
    kind = dense.kinds[at];
    shape.find(static_cast<std::uint32_t>(row.z), static_cast<std::uint32_t>(row.y), column, &step, &lane);
  }
  __device__ __forceinline__ void store(const Refinement& shape, const UnitScratch& scratch) const {
    scratch.values[to] = value;
#pragma unroll 1
    for (std::uint32_t left = outside; left != 0; left &= left - 1)
      scratch.values[to + static_cast<CellIndex>((static_cast<std::uint32_t>(__ffs(static_cast<int>(left))) - 1) *
                                                 shape.class_cells)] = value;
    if (!known) return;
    scratch.sizes[to] = size;
    if (kind == kSentinel) atomicOr(scratch.masks + step, 1u << lane);
  }
};

// Fills the known class from the dense array. Copies of its values stand for neighbours outside of the lattice, and for
// neighbours that are not coded yet (begin_refining() of the CPU). Warp `part` of `parts` does its part; all call
// wait().
template <class Wait>
PYF_LANES void begin_classes(const Refinement& shape, const Dense& dense, const Lattice& lattice,
                             const UnitScratch& scratch, std::uint32_t part, std::uint32_t parts, const Wait& wait) {
  const auto fours = static_cast<std::uint32_t>((shape.floats() + 3) / 4);
  const std::uint32_t first = part * kRows + this_lane(), stride = parts * kRows;
  for (std::uint32_t i = first; i < fours; i += stride) reinterpret_cast<float4*>(scratch.sizes)[i] = {0, 0, 0, 0};
  const std::uint32_t words = shape.classes() * shape.steps();
  for (std::uint32_t i = first; i < words; i += stride) scratch.masks[i] = 0;
  wait();
  const std::uint32_t width = shape.columns_of(0) + 2 * shape.lead, cells = KnownRow::known_rows(shape) * width;
#pragma unroll 1
  for (std::uint32_t from = first; from < cells; from += KnownCell::kAtOnce * stride) {
    KnownCell cell[KnownCell::kAtOnce];
#pragma unroll
    for (std::uint32_t k = 0; k < KnownCell::kAtOnce; ++k) {
      cell[k].there = from + k * stride < cells;
      if (cell[k].there) cell[k].load(shape, dense, lattice, from + k * stride, width);
    }
#pragma unroll
    for (std::uint32_t k = 0; k < KnownCell::kAtOnce; ++k)
      if (cell[k].there) cell[k].store(shape, scratch);
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
