// SPDX-License-Identifier: BSD-3-Clause
// Regions of a level in which errors are measured (measure.cuh): a lane's points, their neighbours for prediction, and
// a bound of a reader's errors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "progressive/cuda/inverse.cuh"
#include "progressive/layout.hpp"
#include "progressive/tile.hpp"
#include "progressive/transform.hpp"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

// The neighbours of a target: neighbours_of(), for values without an address.
struct Around {
  Stencil stencil;
  bool backwards;  // quadratic: towards smaller numbers
};
template <class Int>
__device__ __forceinline__ Around around(std::uint32_t j, std::uint32_t evens, bool cubic, const Int* any) {
  const Neighbours<Int> from = neighbours_of<Int>(j, evens, cubic, [any](std::uint64_t i) { return any + i; });
  return {from.stencil, from.c < from.a};
}
// Predictions of several targets j, each from known values j - 1, j, j + 1 and j + 2.
template <class Int>
__device__ __forceinline__ Int predict_around(const Around& how, Int before, Int at, Int behind, Int further) {
  switch (how.stencil) {
    case Stencil::copy:
      return at;
    case Stencil::linear:
      return predict<Stencil::linear>(at, behind, Int{0}, Int{0});
    case Stencil::quadratic:
      return how.backwards ? predict<Stencil::quadratic>(behind, at, before, Int{0})
                           : predict<Stencil::quadratic>(at, behind, further, Int{0});
    case Stencil::cubic:
      break;
  }
  return predict<Stencil::cubic>(at, behind, before, further);
}
template <class Int>
__device__ __forceinline__ Wide<Int> predict_around(const Around& how, const Wide<Int>& before, const Wide<Int>& at,
                                                    const Wide<Int>& behind, const Wide<Int>& further) {
  Wide<Int> out;
  if (how.stencil == Stencil::cubic) {
#pragma unroll
    for (unsigned k = 0; k < kWide<Int>; ++k)
      out.v[k] = predict<Stencil::cubic>(at.v[k], behind.v[k], before.v[k], further.v[k]);
  } else {
#pragma unroll
    for (unsigned k = 0; k < kWide<Int>; ++k)
      out.v[k] = predict_around(how, before.v[k], at.v[k], behind.v[k], further.v[k]);
  }
  return out;
}

// A lane's region of a level. Task `number` of the level takes rows first to first + steps - 1 of a plane of known
// points, and of the plane behind it. The lane takes points x to x + kN - 1 of these rows.
template <class Int>
struct MeasuredRegion {
  static constexpr std::uint32_t kN = kWide<Int>;
  std::uint32_t z, first, x, last_x;  // last_x: the end of the points of all lanes of the task
  std::uint32_t evens, odds;          // number of points; the last odd points of a piece belong to its neighbour
  bool end_of_piece;

  // Tasks at the ends of rows come first: their predictions are bad.
  __device__ __forceinline__ MeasuredRegion(const MeasureLevel& pass, std::uint32_t number, std::uint32_t lane) {
    const auto fx = static_cast<std::uint32_t>(pass.from.x), fz = static_cast<std::uint32_t>(pass.from.z),
               tx = static_cast<std::uint32_t>(pass.to.x);
    const std::uint32_t march = number % pass.marches, plane = number / pass.marches % fz,
                        piece = number / pass.marches / fz, step = (pass.pieces > 1 ? pass.lanes - 2 : 0) * kN;
    const bool there = piece < pass.pieces;
    const std::uint32_t p = there ? pass.pieces - 1 - piece : 0;
    z = fz - 1 - plane;
    first = (pass.marches - 1 - march) * pass.steps;
    x = p * step + lane * kN;
    last_x = min(p * step + pass.lanes * kN, fx);
    end_of_piece = (p != 0 && lane == 0) || (p + 1 != pass.pieces && lane + 1 == pass.lanes);
    evens = there && x < fx ? min(kN, fx - x) : 0;
    odds = evens == 0 || end_of_piece ? 0 : min(kN, tx / 2 - x);
    if (evens == 0) x = 0;
  }
};

// The largest coefficient of rows z0 to z1 and y0 to y1, points x0 to x1 - 1, from the maxima of quarter tiles. The
// unit's rows must equal those of its tiles. Each of `lanes` lanes takes some quarters.
__device__ __forceinline__ std::uint64_t largest_coefficient(const ProgressiveEncode& job, int u, std::uint32_t z0,
                                                             std::uint32_t z1, std::uint32_t y0, std::uint32_t y1,
                                                             std::uint32_t x0, std::uint32_t x1, std::uint32_t lane,
                                                             std::uint32_t lanes) {
  const ProgressiveUnit& unit = job.shared->layout.unit[u];
  const auto sz = static_cast<std::uint32_t>(unit.shape.z), sy = static_cast<std::uint32_t>(unit.shape.y),
             sx = static_cast<std::uint32_t>(unit.shape.x);
  if (z0 >= sz || y0 >= sy || x0 >= sx) return 0;
  z1 = min(z1, sz - 1);
  y1 = min(y1, sy - 1);
  x1 = min(x1, sx) - 1;
  // a quarter is two planes of volumes, 32 rows of planes, 1024 values of lines
  const TileForm form = form_of(unit);
  const std::uint32_t qz = form == TileForm::volume ? 2 : 1, qy = form == TileForm::plane ? 32 : 16,
                      qx = form == TileForm::line ? 1024 : 32;
  z0 /= qz, z1 /= qz, y0 /= qy, y1 /= qy, x0 /= qx, x1 /= qx;
  const std::uint32_t nz = z1 - z0 + 1, ny = y1 - y0 + 1, nx = x1 - x0 + 1;
  const std::uint64_t* const largest = job.largest.of(blockIdx.y) + 4 * std::size_t{job.shared->first_tile[u]};
  std::uint64_t most = 0;
  for (std::uint32_t i = lane; i < nz * ny * nx; i += lanes) {
    const std::uint32_t x = x0 + i % nx, y = y0 + i / nx % ny, z = z0 + i / nx / ny;
    std::size_t quarter = x;  // of a line
    if (form == TileForm::plane)
      quarter = 4 * (std::size_t{y / 4} * unit.grid.x + x) + y % 4;
    else if (form == TileForm::volume)
      quarter = 4 * ((std::size_t{z / 4} * unit.grid.y + y) * unit.grid.x + x) + z % 4;
    const std::uint64_t here = largest[quarter];
    most = here > most ? here : most;
  }
  return most;
}

// The maximum over the lanes of a task, returned to all.
__device__ __forceinline__ std::uint64_t largest_of_task(std::uint64_t most, std::uint32_t lanes) {
  for (int d = static_cast<int>(lanes) / 2; d > 0; d /= 2) {
    const std::uint64_t other = __shfl_xor_sync(kAllLanes, most, d);
    most = other > most ? other : most;
  }
  return most;
}

// The rows and planes of the level above from which a region of the finest grid is predicted, and its first point
// there.
template <class Int>
struct RegionAbove {
  std::uint32_t z0, z1, y0, y1, x0;

  __device__ __forceinline__ RegionAbove(const MeasureLevel& pass, const MeasuredRegion<Int>& part)
      : z0(part.z != 0 ? part.z - 1 : 0),
        z1(min(part.z + 2, static_cast<std::uint32_t>(pass.from.z) - 1)),
        y0(part.first != 0 ? part.first - 1 : 0),
        y1(min(part.first + pass.steps + 1, static_cast<std::uint32_t>(pass.from.y) - 1)),
        x0(__shfl_sync(kAllLanes, part.x, 0, static_cast<int>(pass.lanes))) {}
};

// The largest coefficient that the pass along an axis adds to a region.
template <class Int>
__device__ __forceinline__ std::uint64_t largest_of_region(const MeasureLevel& pass, const ProgressiveHead& head,
                                                           const MeasuredRegion<Int>& part, std::uint32_t axis,
                                                           std::uint32_t lane) {
  const RegionAbove<Int> above(pass, part);
  const int u = pass.unit[axis];
  if (u < 0 || head.planes[u] == 0) return 0;
  const std::uint32_t rows = pass.to.z > 1 ? 2 : 1, last = part.first + pass.steps - 1,
                      z0 = axis == 0 ? part.z : rows * part.z, z1 = axis == 0 ? part.z : rows * part.z + 1,
                      y0 = axis == 0   ? above.y0
                           : axis == 1 ? part.first
                                       : 2 * part.first,
                      y1 = axis == 0   ? above.y1
                           : axis == 1 ? last
                                       : 2 * last + 1;
  return largest_of_task(largest_coefficient(pass.job, u, z0, z1, y0, y1, above.x0, part.last_x, lane, pass.lanes),
                         pass.lanes);
}

// A bound of a reader's errors in a region of the finest grid; `largest`: its largest coefficients by axis, 32 numbers
// apart. The same in all lanes of a task.
template <class Int>
__device__ __forceinline__ std::uint64_t bound_of_region(const MeasureLevel& pass, const ProgressiveHead& head,
                                                         const std::int8_t* state, const MeasuredRegion<Int>& part,
                                                         const std::uint64_t* largest, std::uint32_t reader,
                                                         std::uint32_t lane) {
  const RegionAbove<Int> above(pass, part);
  const auto bricks_x = static_cast<std::uint32_t>(tiles_along(pass.from.x, kBrickX)),
             bricks_y = static_cast<std::uint32_t>(tiles_along(pass.from.y, kBrickY));
  const auto* const bricks = reinterpret_cast<const unsigned long long*>(pass.bricks.of(blockIdx.y, reader));
  std::uint64_t bound = 0;
  const std::uint32_t bz = above.z0 / kBrickZ, by = above.y0 / kBrickY, bx = above.x0 / kBrickX,
                      nz = above.z1 / kBrickZ - bz + 1, ny = above.y1 / kBrickY - by + 1,
                      nx = (max(part.last_x, 1u) - 1) / kBrickX - bx + 1;
  for (std::uint32_t i = lane; i < nz * ny * nx; i += pass.lanes) {
    const std::uint32_t x = bx + i % nx, y = by + i / nx % ny, z = bz + i / nx / ny;
    const std::uint64_t here = bricks[(std::size_t{z} * bricks_y + y) * bricks_x + x];
    bound = here > bound ? here : bound;
  }
  bound = largest_of_task(bound, pass.lanes);
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) {
    const int u = pass.unit[axis];
    if (u < 0) continue;
    const int planes = head.planes[u], plane = state[u];
    const std::uint64_t most = largest[32 * axis];
    std::uint64_t error = 0;
    if (plane >= 0) error = plane < planes && most >> plane != 0 ? coefficient_error(planes, plane) : most;
    bound = error_after_pass(bound, head.cubic[u], error);
  }
  return bound;
}

}  // namespace pyfilter::cuda
