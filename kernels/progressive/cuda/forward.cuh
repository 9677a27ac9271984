// SPDX-License-Identifier: BSD-3-Clause
// From integers to coefficients (docs/format.md, section 13.3): grids, the basis of each unit, and its coefficients in
// the slots of tiles. A coefficient depends on integers of one grid only, so all can be computed at once.
#pragma once

#include <cstdint>

#include "progressive/cuda/bits.cuh"
#include "progressive/cuda/grids.cuh"
#include "progressive/cuda/inverse.cuh"
#include "progressive/values.hpp"

namespace pyfilter::cuda {

template <class Int>
__device__ __forceinline__ const Int* grid_integers(const ProgressiveEncode& job, int level) {
  return reinterpret_cast<const Int*>(job.grids.of(blockIdx.y)) + job.grid_at[level];
}

// Copies every second point of a grid.
template <class Int>
__global__ void __launch_bounds__(kGridThreads)
    coarsen_kernel(const __grid_constant__ ProgressiveEncode job, int level, RowShare share) {
  if (job.heads[blockIdx.y].dead != 0) return;
  const Extents from = job.shared->layout.grids[level - 1], to = job.shared->layout.grids[level];
  const auto ty = static_cast<std::uint32_t>(to.y), tx = static_cast<std::uint32_t>(to.x),
             rows = static_cast<std::uint32_t>(to.z * to.y);
  const RowPart part(share, tx);
  const std::uint32_t row = part.row;
  if (row >= rows) return;
  const Int* const in = grid_integers<Int>(job, level - 1) + (2 * (row / ty) * from.y + 2 * (row % ty)) * from.x;
  Int* const out = const_cast<Int*>(grid_integers<Int>(job, level)) + std::uint64_t{row} * tx;
  for (std::uint32_t x = part.x; x < part.end; x += part.step) out[x] = in[2 * x];
}

// Computes coefficients of a unit, for either basis.
template <class Int>
struct UnitForward {
  const Int* grid;
  Extents g;
  int axis;
  Limits<Int> limits;

  // Of a row of a unit along z or y: known row 0, and the rows that predict all of its points.
  __device__ __forceinline__ const Int* line_of(std::uint32_t z, std::uint32_t y) const {
    return axis == 0 ? grid + 2 * std::uint64_t{y} * g.x : grid + z * g.y * g.x;
  }
  __device__ __forceinline__ Neighbours<Int> neighbours(std::uint32_t z, std::uint32_t y, bool cubic) const {
    const std::uint64_t stride = 2 * (axis == 0 ? g.y * g.x : g.x);
    const Int* const line = line_of(z, y);
    return neighbours_of<Int>(axis == 0 ? z : y, half_up(axis == 0 ? g.z : g.y), cubic,
                              [&](std::uint64_t i) { return line + i * stride; });
  }
  // Calls visit(x, coefficient, integer, whether it was missing) for points x, x + step, ... of a row. A missing
  // integer becomes its prediction.
  template <class Visit>
  __device__ __forceinline__ void row(std::uint32_t z, std::uint32_t y, std::uint32_t x, std::uint32_t end,
                                      std::uint32_t step, bool cubic, const Visit& visit) const {
    const std::uint64_t plane = g.y * g.x;
    if (axis == 2) {
      const Int* const line = grid + z * plane + y * g.x;
      const std::uint64_t evens = half_up(g.x);
      for (; x < end; x += step) {
        const Int predicted = predict_target<Int>(x, evens, cubic, [&](std::uint64_t i) { return line + 2 * i; });
        Int target = line[2 * x + 1];
        const bool missing = target == kMissing<Int>;
        const Int d = forward_value(limits, predicted, target);
        visit(x, d, target, missing);
      }
      return;
    }
    const std::uint64_t stride = axis == 0 ? plane : g.x;  // of the targets' row from the known one before
    const Int* const targets = line_of(z, y) + 2 * (axis == 0 ? z : y) * stride + stride;
    const Neighbours<Int> from = neighbours(z, y, cubic);
    for (; x < end; x += step) {
      Int target = targets[2 * x];
      const bool missing = target == kMissing<Int>;
      const Int d = forward_value(limits, predict_by(from, 2 * x), target);
      visit(x, d, target, missing);
    }
  }
};
template <class Int>
__device__ __forceinline__ UnitForward<Int> unit_forward(const ProgressiveEncode& job, const ProgressiveUnit& unit) {
  const ProgressiveHead& head = job.heads[blockIdx.y].head;
  return {grid_integers<Int>(job, unit.level),
          job.shared->layout.grids[unit.level],
          unit.axis,
          {static_cast<Int>(head.low), static_cast<Int>(head.high)}};
}

// Writes an integer to its places in a grid and all finer ones.
template <class Int>
__device__ __forceinline__ void put_in_grids(const ProgressiveEncode& job, int level, std::uint64_t z, std::uint64_t y,
                                             std::uint64_t x, Int q) {
  Int* const grids = reinterpret_cast<Int*>(job.grids.of(blockIdx.y));
  for (; level >= 0; --level, z *= 2, y *= 2, x *= 2) {
    const Extents g = job.shared->layout.grids[level];
    grids[job.grid_at[level] + (z * g.y + y) * g.x + x] = q;
  }
}

// Even point `i` of a row, in a level whose unit along z is done. The unit along y may be done at the same time: its
// missing integers are predicted.
template <class Int>
__device__ __forceinline__ Int filled_even(const ProgressiveEncode& job, int level, const Limits<Int>& limits,
                                           bool cubic_y, std::uint32_t z, std::uint32_t y, std::uint64_t i) {
  const Extents g = job.shared->layout.grids[level];
  const Int* const plane = grid_integers<Int>(job, level) + z * g.y * g.x;
  const std::uint64_t at = y * g.x + 2 * i, bit = z * g.y * g.x + at;
  if (y % 2 == 0 || (job.special_bits(blockIdx.y, level)[bit / 32] >> (bit % 32) & 1) == 0) return plane[at];
  return clamp_to(limits, predict_target<Int>(y / 2, half_up(g.y), cubic_y,
                                              [&](std::uint64_t row) { return plane + 2 * row * g.x + 2 * i; }));
}

// The coefficient of a point along x in such a level, for choose_basis().
template <class Int>
__device__ __forceinline__ Int coefficient_along_x(const ProgressiveEncode& job, int level, const Limits<Int>& limits,
                                                   bool cubic_y, bool cubic, std::uint32_t z, std::uint32_t y,
                                                   std::uint32_t x) {
  const Extents g = job.shared->layout.grids[level];
  const std::uint64_t evens = half_up(g.x);
  Int near[4] = {};  // known points x - 1 to x + 2
  for (std::uint32_t k = 0; k < 4; ++k)
    if (x + k >= 1 && x + k - 1 < evens) near[k] = filled_even(job, level, limits, cubic_y, z, y, x + k - 1);
  Int target = grid_integers<Int>(job, level)[(z * g.y + y) * g.x + 2 * x + 1];
  const Int predicted = predict_target<Int>(x, evens, cubic, [&](std::uint64_t i) { return near + (i + 1 - x); });
  return forward_value(limits, predicted, target);
}

// prefers_cubic() for a unit, by a block. kPending: the level's unit along y may have missing integers still.
template <class Int, int kThreads, bool kPending = false>
__device__ __forceinline__ void choose_basis(const ProgressiveEncode& job, ProgressiveHead& head, int u) {
  __shared__ std::uint64_t warp_sums[2][kThreads / 32];
  const ProgressiveUnit& unit = job.shared->layout.unit[u];
  const UnitForward<Int> forward = unit_forward<Int>(job, unit);
  const std::uint64_t across = (unit.shape.x + kBasisValues - 1) / kBasisValues,
                      all = unit.shape.z * unit.shape.y * across, every = all / kBasisRuns + 1;
  std::uint64_t bits[2] = {0, 0};
  for (std::uint64_t t = threadIdx.x;; t += kThreads) {
    const std::uint64_t i = t / kBasisValues * every;
    if (i >= all) break;
    const std::uint64_t row = i / across, x = i % across * kBasisValues + t % kBasisValues;
    if (x >= unit.shape.x) continue;
    const auto z = static_cast<std::uint32_t>(row / unit.shape.y), y = static_cast<std::uint32_t>(row % unit.shape.y),
               at = static_cast<std::uint32_t>(x);
    for (int cubic = 0; cubic < 2; ++cubic) {
      if (kPending && unit.axis == 2) {
        bits[cubic] += coefficient_bits(
            coefficient_along_x(job, unit.level, forward.limits, u != 0 && head.cubic[u - 1], cubic != 0, z, y, at));
        continue;
      }
      forward.row(z, y, at, at + 1, 1, cubic != 0,
                  [&](std::uint32_t, Int d, Int, bool) { bits[cubic] += coefficient_bits(d); });
    }
  }
  for (int cubic = 0; cubic < 2; ++cubic) {
    const std::uint64_t sum = warp_total(bits[cubic]);
    if (threadIdx.x % 32 == 0) warp_sums[cubic][threadIdx.x / 32] = sum;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  std::uint64_t sums[2] = {0, 0};
  for (int cubic = 0; cubic < 2; ++cubic)
    for (const std::uint64_t sum : warp_sums[cubic]) sums[cubic] += sum;
  head.cubic[u] = sums[1] < sums[0];
}

// A block a unit, from unit `first` on.
template <class Int, int kThreads>
__global__ void __launch_bounds__(kThreads)
    choose_basis_kernel(const __grid_constant__ ProgressiveEncode job, int first) {
  FrameHead& head = job.heads[blockIdx.y];
  if (head.dead == 0) choose_basis<Int, kThreads>(job, head.head, first + static_cast<int>(blockIdx.x));
}

// The OR of the magnitudes of a unit's coefficients, as a warp's threads have seen them.
template <class Int>
__device__ __forceinline__ void note_bits(EncodeNote& note, int u, Int any) {
  any = warp_combined_or(any);
  // writes only if bits are new; other threads write the same word
  const auto bits = static_cast<unsigned long long>(any);
  if (threadIdx.x % 32 == 0 && (bits & ~*static_cast<volatile unsigned long long*>(&note.any[u])) != 0)
    atomicOr(&note.any[u], bits);
}

// Rows of any length.
template <class Int>
__global__ void __launch_bounds__(kGridThreads)
    forward_kernel(const __grid_constant__ ProgressiveEncode job, int u, RowShare share) {
  FrameHead& head = job.heads[blockIdx.y];
  if (head.dead != 0) return;
  const ProgressiveUnit& unit = job.shared->layout.unit[u];
  const UnitForward<Int> forward = unit_forward<Int>(job, unit);
  const UnitOffsets offsets(unit);
  const bool cubic = head.head.cubic[u];
  Int* const slots = reinterpret_cast<Int*>(job.slots_of(blockIdx.y, u));
  const auto sx = static_cast<std::uint32_t>(unit.shape.x), sy = static_cast<std::uint32_t>(unit.shape.y);
  const RowPart part(share, sx);
  Int any = 0;
  if (part.row < static_cast<std::uint32_t>(unit.shape.z) * sy) {
    const std::uint32_t y = part.row % sy, z = part.row / sy;
    const CoefficientRow to(offsets, z, y);
    forward.row(z, y, part.x, part.end, part.step, cubic, [&](std::uint32_t x, Int d, Int, bool) {
      slots[to.offset(x)] = d;
      any |= d < 0 ? -d : d;
    });
  }
  note_bits(*job.notes.of(blockIdx.y), u, any);
}

// Predictions of targets x, x + 1, ... of a row with at least four known points, from known points x - 1 to x + kN + 1.
// The ends of rows are quadratic, or linear as all others, and the last target is a copy.
template <class Int>
__device__ __forceinline__ Wide<Int> predict_wide_row(std::uint32_t x, std::uint32_t evens, bool cubic, Int before,
                                                      const Wide<Int>& at, Int behind, Int further) {
  constexpr std::uint32_t kN = kWide<Int>;
  const auto number = [&](unsigned i) {  // known point x - 1 + i
    return i == 0 ? before : i <= kN ? at.v[(i - 1) % kN] : i == kN + 1 ? behind : further;
  };
  Wide<Int> out;
#pragma unroll
  for (unsigned k = 0; k < kN; ++k)
    out.v[k] = cubic ? predict<Stencil::cubic>(number(k + 1), number(k + 2), number(k), number(k + 3))
                     : predict<Stencil::linear>(number(k + 1), number(k + 2), Int{0}, Int{0});
  if (cubic && x == 0) out.v[0] = predict<Stencil::quadratic>(number(1), number(2), number(3), Int{0});
  if (x + kN != evens) return out;
  if (cubic) out.v[kN - 2] = predict<Stencil::quadratic>(number(kN), number(kN - 1), number(kN - 2), Int{0});
  out.v[kN - 1] = number(kN);
  return out;
}

// All units of a level whose rows are aligned to 16 bytes. `across` lanes take pieces of `rows` rows, in sequence; a
// lane has the points of two vectors of 16 bytes. Known points predict the others along x; rows without known points
// are predicted from the rows above and below, or in front and behind.
// kFills: the chunk has missing integers, and the unit along z is done. Predictions replace missing integers here and
// in all grids that are read later: measuring errors does not need them in the finest.
template <class Int, bool kFills>
__global__ void __launch_bounds__(kGridThreads) forward_level_kernel(const __grid_constant__ ForwardLevel pass) {
  using Values = Wide<Int>;
  constexpr std::uint32_t kN = kWide<Int>;
  const ProgressiveEncode& job = pass.job;
  const FrameHead& frame = job.heads[blockIdx.y];
  if (frame.dead != 0) return;
  const ProgressiveHead& head = frame.head;
  const ProgressiveLayout& layout = job.shared->layout;
  const Extents g = layout.grids[pass.level];
  const auto tx = static_cast<std::uint32_t>(g.x), ty = static_cast<std::uint32_t>(g.y),
             tz = static_cast<std::uint32_t>(g.z), evens = tx / 2;
  const Limits<Int> limits{static_cast<Int>(head.low), static_cast<Int>(head.high)};
  const Int* const grid = grid_integers<Int>(job, pass.level);
  const std::uint32_t lane = threadIdx.x % pass.across,
                      item = blockIdx.x * (kGridThreads / pass.across) + threadIdx.x / pass.across,
                      group = item / pass.pieces % pass.groups, z = item / pass.pieces / pass.groups,
                      x = (item % pass.pieces * pass.across + lane) * kN;
  const bool there = z < tz && x < evens;
  const std::uint64_t plane = std::uint64_t{ty} * tx;
  const bool cubic_y = pass.unit[1] >= 0 && head.cubic[pass.unit[1]];
  Int any[3] = {0, 0, 0};

  // the known points of a row, and the points between them
  const auto load_evens = [x](const Int* row) {
    const Values low = load_wide(row + 2 * x), high = load_wide(row + 2 * x + kN);
    Values known;
#pragma unroll
    for (unsigned k = 0; k < kN; ++k) known.v[k] = (k < kN / 2 ? low : high).v[2 * k % kN];
    return known;
  };
  // the coefficients of targets, which are the known points of a row (`odd` 0) or the points between them
  const auto put = [&](int axis, std::uint32_t at_z, std::uint32_t at_y, const Values& predicted, Values& target,
                       unsigned odd) {
    const int u = pass.unit[axis];
    const UnitOffsets offsets(layout.unit[u]);
    Values d;
#pragma unroll
    for (unsigned k = 0; k < kN; ++k) {
      const bool missing = kFills && target.v[k] == kMissing<Int>;
      d.v[k] = forward_value(limits, predicted.v[k], target.v[k]);
      any[axis] |= d.v[k] < 0 ? -d.v[k] : d.v[k];
      if (kFills && missing && pass.level != 0)
        put_in_grids(job, pass.level, z, axis == 1 ? 2 * at_y + 1 : at_y, 2 * (x + k) + odd, target.v[k]);
    }
    *reinterpret_cast<Values*>(reinterpret_cast<Int*>(job.slots_of(blockIdx.y, u)) +
                               offsets.tiled_offset(at_z, at_y, x)) = d;
  };
  for (std::uint32_t r = 0; r < pass.rows; ++r) {
    const std::uint32_t y = group * pass.rows + r;
    const bool on = there && y < ty;
    const Int* const row = grid + (on ? z * plane + std::uint64_t{y} * tx : 0);
    Values known = {}, between = {};
    if (on) {
      const Values low = load_wide(row + 2 * x), high = load_wide(row + 2 * x + kN);
#pragma unroll
      for (unsigned k = 0; k < kN; ++k) {
        known.v[k] = (k < kN / 2 ? low : high).v[2 * k % kN];
        between.v[k] = (k < kN / 2 ? low : high).v[2 * k % kN + 1];
      }
    }
    if (on && y % 2 != 0) {
      const Int* const line = grid + z * plane;
      put(1, z, y / 2,
          predict_wide(
              neighbours_of<Int>(y / 2, half_up(ty), cubic_y, [&](std::uint64_t i) { return line + 2 * i * tx; }),
              load_evens),
          known, 0);
    } else if (!kFills && on && z % 2 != 0) {
      const Int* const line = grid + std::uint64_t{y} * tx;
      put(0, z / 2, y / 2,
          predict_wide(neighbours_of<Int>(z / 2, half_up(tz), head.cubic[pass.unit[0]],
                                          [&](std::uint64_t i) { return line + 2 * i * plane; }),
                       load_evens),
          known, 0);
    }
    const auto lanes = static_cast<int>(pass.across);
    Int before = __shfl_up_sync(kAllLanes, known.v[kN - 1], 1, lanes),
        behind = __shfl_down_sync(kAllLanes, known.v[0], 1, lanes),
        further = __shfl_down_sync(kAllLanes, known.v[1], 1, lanes);
    if (!on) continue;
    const auto even = [&](std::uint32_t i) {
      if constexpr (kFills) return filled_even(job, pass.level, limits, cubic_y, z, y, i);
      return row[2 * i];
    };
    if (lane == 0 && x != 0) before = even(x - 1);
    if (lane + 1 == pass.across && x + kN < evens) {
      behind = even(x + kN);
      further = even(min(x + kN + 1, evens - 1));
    }
    put(2, z, y, predict_wide_row<Int>(x, evens, head.cubic[pass.unit[2]], before, known, behind, further), between, 1);
  }
#pragma unroll
  for (int axis = 0; axis < 3; ++axis)
    if (pass.unit[axis] >= 0) note_bits(*job.notes.of(blockIdx.y), pass.unit[axis], any[axis]);
}

}  // namespace pyfilter::cuda
