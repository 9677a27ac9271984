// SPDX-License-Identifier: BSD-3-Clause
// The classes of a refining pass (refine.hpp) before its first turn, and where their values are in the dense array and
// in the user's array.
#pragma once

#include <cstdint>

#include "adaptive/cuda/refining.cuh"

namespace pyfilter::cuda {

// Sets up the arrays: the known class from the dense array, and what stands for values outside and for those that are
// not coded yet (begin_refining() of the CPU). Warp `part` of `parts` does its part; wait() is for all of them.
template <class Wait>
PYF_LANES void begin_classes(const Refinement& shape, const Dense& dense, const Lattice& lattice,
                             const UnitScratch& scratch, std::uint32_t part, std::uint32_t parts, const Wait& wait) {
  const auto floats = static_cast<std::uint32_t>(shape.floats());
  const std::uint32_t first = part * kRows + this_lane(), stride = parts * kRows;
  for (std::uint32_t i = first; i < floats; i += stride) scratch.sizes[i] = 0;
  const std::uint32_t words = shape.classes() * shape.steps();
  for (std::uint32_t i = first; i < words; i += stride) scratch.masks[i] = 0;
  wait();
  const auto margin = static_cast<std::int32_t>(Refinement::kMargin), lead = static_cast<std::int32_t>(shape.lead);
  const std::int32_t planes = static_cast<std::int32_t>(shape.planes_of(0)),
                     rows = static_cast<std::int32_t>(shape.rows_of(0)), deep = shape.is_volume() ? margin : 0,
                     high = shape.is_line() ? 0 : margin;
  const auto inside = [](std::int32_t i, std::int32_t n) {
    return static_cast<std::uint32_t>(i < 0 ? 0 : i >= n ? n - 1 : i);
  };
  const std::uint32_t others = (1u << shape.classes()) - 2;  // bits of the classes that are not known
  const auto even_columns = static_cast<std::int32_t>(shape.columns_of(0)),
             odd_columns = static_cast<std::int32_t>(shape.columns_of(1));
  const auto all_rows = static_cast<std::uint32_t>((planes + 2 * deep) * (rows + 2 * high)),
             rows_of_plane = static_cast<std::uint32_t>(rows + 2 * high);
#pragma unroll 1
  for (std::uint32_t number = part; number < all_rows; number += parts) {
    const std::int32_t z = static_cast<std::int32_t>(number / rows_of_plane) - deep,
                       y = static_cast<std::int32_t>(number % rows_of_plane) - high;
    const std::uint32_t row = inside(y, rows), y_all = shape.is_line() ? row : 2 * row, plane = inside(z, planes);
    const auto columns =
        static_cast<std::int32_t>(shape.is_line() ? (lattice.lengths[row] + 1) / 2 : shape.columns_of(0));
    const std::int32_t end = even_columns + lead;
    const bool own = z == static_cast<std::int32_t>(plane) && y == static_cast<std::int32_t>(row);
    const std::size_t from = lattice.index(dense, 2 * plane, y_all, 0), by = std::size_t{2} << lattice.shift_x;
    const CellIndex to = shape.cell(0, z, y, 0);
    // Values of a volume's classes are never taken before they are coded: bits of the classes that have this row.
    std::uint32_t coded = 0;
    if (shape.is_volume() && own) {
      const std::uint32_t parity = this_lane();
      const bool has = parity < shape.classes() && z < static_cast<std::int32_t>(shape.planes_of(parity)) &&
                       y < static_cast<std::int32_t>(shape.rows_of(parity));
      coded = __ballot_sync(kAllRows, has ? 1 : 0);
    }
    const std::uint32_t evens = coded & 0x55, odds = coded & 0xAA;  // by the parity along x
#pragma unroll 1
    for (std::int32_t x = static_cast<std::int32_t>(this_lane()) - lead; x < end && columns > 0;
         x += static_cast<std::int32_t>(kRows)) {
      const std::uint32_t column = inside(x, columns);
      const bool known = own && x == static_cast<std::int32_t>(column);
      const std::size_t at = from + column * by;
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
      shape.find(plane, row, column, &step, &lane);
      atomicOr(scratch.masks + step, 1u << lane);
    }
  }
  wait();
}

// Where a lane's value of a turn is in the array, while a warp walks over a tile.
struct RefinedCursor {
  std::uint64_t index, along, back;  // of the lane's value; to the next one; from the end of a row to the next plane

  PYF_LANES RefinedCursor begin(const AdaptiveTile& tile, const Lattice& lattice, const Refining& r,
                                const RefinedPlace& place) {
    const Refinement& shape = r.shape;
    const auto signed_of = [](std::uint64_t n) { return static_cast<std::int64_t>(n); };
    const std::uint32_t lane = shape.is_line() ? this_lane() : this_lane() % kHalf,
                        y = shape.is_line() ? lane : 2 * lane + Refinement::odd(r.parity, 1);
    const std::int64_t x = 2 * place.x.v + static_cast<std::int32_t>(Refinement::odd(r.parity, 0)),
                       z = shape.is_volume() ? 2 * place.z.v + static_cast<std::int32_t>(Refinement::odd(r.parity, 2))
                                             : 0;
    RefinedCursor c;
    const std::uint64_t step = tile.value_stride << lattice.shift_x;
    c.along = 2 * step;
    c.back = (tile.plane_stride << (lattice.shift_z + 1)) - shape.period * c.along;
    c.index = tile.row(0, y << lattice.shift_y) +
              static_cast<std::uint64_t>(z * signed_of(tile.plane_stride << lattice.shift_z) + x * signed_of(step));
    return c;
  }
  __device__ __forceinline__ void next(const RefinedPlace& place, std::int32_t z) {
    index += along;
    if (place.z.v != z) index += back;
  }
};
// The index of a lane's value in the dense array.
PYF_LANES std::size_t dense_index(const Dense& dense, const Lattice& lattice, const Refining& r,
                                  const RefinedPlace& place) {
  const Refinement& shape = r.shape;
  const std::uint32_t y = shape.is_line() ? this_lane() : 2 * (this_lane() % kHalf) + Refinement::odd(r.parity, 1);
  const std::uint32_t z =
      shape.is_volume() ? 2 * static_cast<std::uint32_t>(place.z.v) + Refinement::odd(r.parity, 2) : 0;
  return lattice.index(dense, z, y, 2 * static_cast<std::uint32_t>(place.x.v) + Refinement::odd(r.parity, 0));
}

}  // namespace pyfilter::cuda
