// SPDX-License-Identifier: BSD-3-Clause
// From integers to coefficients (docs/format.md, section 13.3): grids, the basis of each unit, and its coefficients in
// the slots of tiles. Every coefficient is made of the integers of one grid, so nothing waits for anything.
#pragma once

#include <cstdint>

#include "progressive/values.hpp"
#include "stages/cuda/progressive/bits.cuh"
#include "stages/cuda/progressive/grids.cuh"

namespace pyfilter::cuda {

inline constexpr int kBasisThreads = 256;

template <class Int>
__device__ __forceinline__ const Int* grid_integers(const ProgressiveEncode& job, int level) {
  return reinterpret_cast<const Int*>(job.grids.of(blockIdx.y)) + job.grid_at[level];
}

// Every second point of a grid.
template <class Int>
__global__ void __launch_bounds__(kGridThreads)
    coarsen_kernel(const __grid_constant__ ProgressiveEncode job, int level, std::uint32_t across) {
  if (job.heads[blockIdx.y].dead != 0) return;
  const Extents from = job.shared->layout.grids[level - 1], to = job.shared->layout.grids[level];
  const auto ty = static_cast<std::uint32_t>(to.y), tx = static_cast<std::uint32_t>(to.x),
             rows = static_cast<std::uint32_t>(to.z * to.y);
  const std::uint32_t row = blockIdx.x * (kGridThreads / across) + threadIdx.x / across;
  if (row >= rows) return;
  const Int* const in = grid_integers<Int>(job, level - 1) + (2 * (row / ty) * from.y + 2 * (row % ty)) * from.x;
  Int* const out = const_cast<Int*>(grid_integers<Int>(job, level)) + std::uint64_t{row} * tx;
  for (std::uint32_t x = threadIdx.x % across; x < tx; x += across) out[x] = in[2 * x];
}

// Coefficients of a unit, by any basis.
template <class Int>
struct UnitForward {
  const Int* grid;
  Extents g;
  int axis;
  Limits<Int> limits;

  // visit(x, coefficient) for points x, x + step, ... of a row.
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
        visit(x, forward_value(limits, predicted, target));
      }
      return;
    }
    // the same stencil all along the row
    const std::uint64_t stride = 2 * (axis == 0 ? plane : g.x), evens = half_up(axis == 0 ? g.z : g.y);
    const std::uint32_t j = axis == 0 ? z : y;
    const Int* const line = axis == 0 ? grid + 2 * std::uint64_t{y} * g.x : grid + z * plane;
    const Int* const targets = line + j * stride + stride / 2;
    const Neighbours<Int> from =
        neighbours_of<Int>(j, evens, cubic, [&](std::uint64_t i) { return line + i * stride; });
    for (; x < end; x += step) {
      Int target = targets[2 * x];
      visit(x, forward_value(limits, predict_by(from, 2 * x), target));
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

// A block a unit: prefers_cubic().
template <class Int>
__global__ void __launch_bounds__(kBasisThreads) choose_basis_kernel(const __grid_constant__ ProgressiveEncode job) {
  __shared__ std::uint64_t room[2][kBasisThreads / 32];
  FrameHead& head = job.heads[blockIdx.y];
  if (head.dead != 0) return;
  const ProgressiveUnit& unit = job.shared->layout.unit[blockIdx.x];
  const UnitForward<Int> forward = unit_forward<Int>(job, unit);
  const std::uint64_t across = (unit.shape.x + kBasisValues - 1) / kBasisValues,
                      all = unit.shape.z * unit.shape.y * across, every = all / kBasisRuns + 1;
  std::uint64_t bits[2] = {0, 0};
  for (std::uint64_t t = threadIdx.x;; t += kBasisThreads) {
    const std::uint64_t i = t / kBasisValues * every;
    if (i >= all) break;
    const std::uint64_t row = i / across, x = i % across * kBasisValues + t % kBasisValues;
    if (x >= unit.shape.x) continue;
    const auto z = static_cast<std::uint32_t>(row / unit.shape.y), y = static_cast<std::uint32_t>(row % unit.shape.y),
               at = static_cast<std::uint32_t>(x);
    for (int cubic = 0; cubic < 2; ++cubic)
      forward.row(z, y, at, at + 1, 1, cubic != 0, [&](std::uint32_t, Int d) { bits[cubic] += coefficient_bits(d); });
  }
  for (int cubic = 0; cubic < 2; ++cubic) {
    const std::uint64_t sum = warp_total(bits[cubic]);
    if (threadIdx.x % 32 == 0) room[cubic][threadIdx.x / 32] = sum;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  std::uint64_t sums[2] = {0, 0};
  for (int cubic = 0; cubic < 2; ++cubic)
    for (const std::uint64_t sum : room[cubic]) sums[cubic] += sum;
  head.head.cubic[blockIdx.x] = sums[1] < sums[0];
}

template <class Int>
__global__ void __launch_bounds__(kGridThreads)
    forward_kernel(const __grid_constant__ ProgressiveEncode job, int u, std::uint32_t across) {
  FrameHead& head = job.heads[blockIdx.y];
  if (head.dead != 0) return;
  const ProgressiveUnit& unit = job.shared->layout.unit[u];
  const UnitForward<Int> forward = unit_forward<Int>(job, unit);
  const UnitPlaces places(unit);
  const bool cubic = head.head.cubic[u];
  Int* const slots = reinterpret_cast<Int*>(job.slots.of(blockIdx.y) + job.shared->first_tile[u] * job.slot_words());
  const auto sx = static_cast<std::uint32_t>(unit.shape.x), sy = static_cast<std::uint32_t>(unit.shape.y);
  const std::uint32_t row = blockIdx.x * (kGridThreads / across) + threadIdx.x / across;
  Int any = 0;
  if (row < static_cast<std::uint32_t>(unit.shape.z) * sy) {
    const std::uint32_t y = row % sy, z = row / sy;
    const CoefficientRow to(places, z, y);
    forward.row(z, y, threadIdx.x % across, sx, across, cubic, [&](std::uint32_t x, Int d) {
      slots[to.place(x)] = d;
      any |= d < 0 ? -d : d;
    });
  }
  any = warp_combined_or(any);
  if (threadIdx.x % 32 == 0 && any != 0)
    atomicOr(&job.notes.of(blockIdx.y)->any[u], static_cast<unsigned long long>(any));
}

}  // namespace pyfilter::cuda
