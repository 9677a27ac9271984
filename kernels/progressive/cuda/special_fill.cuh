// SPDX-License-Identifier: BSD-3-Clause
// Coefficients of chunks with missing integers (docs/format.md, section 13.7), from the roots down: predictions replace
// missing integers, and enter the predictions of finer units. Unit by unit here, but for levels with wide rows
// (forward_level_kernel). The CPU's choose_bases().
#pragma once

#include <cstdint>

#include "progressive/cuda/forward.cuh"
#include "progressive/cuda/grids.cuh"
#include "progressive/cuda/params.cuh"
#include "progressive/transform.hpp"

namespace pyfilter::cuda {

// Missing roots become the root before.
template <class Int>
__device__ __forceinline__ void fill_roots(const ProgressiveEncode& job, const ProgressiveHead& head) {
  const ProgressiveLayout& layout = job.shared->layout;
  const Extents g = layout.grids[layout.levels];
  const Int* const roots = reinterpret_cast<const Int*>(job.grids.of(blockIdx.y)) + job.grid_at[layout.levels];
  Int before = static_cast<Int>(head.low);
  for (std::uint64_t i = 0; i < layout.roots; ++i) {
    const Int root = roots[i];
    if (root != kMissing<Int>)
      before = root;
    else
      put_in_grids(job, layout.levels, i / (g.y * g.x), i / g.x % g.y, i % g.x, before);
  }
}

// A point of a unit -> its coefficient, for a unit whose basis is known. A missing integer becomes its prediction.
template <class Int>
struct FillingForward {
  const ProgressiveEncode& job;
  const ProgressiveUnit& unit;
  UnitForward<Int> forward;
  UnitOffsets offsets;
  Int* slots;
  bool cubic;

  __device__ __forceinline__ FillingForward(const ProgressiveEncode& batch, const ProgressiveHead& head, int u)
      : job(batch),
        unit(batch.shared->layout.unit[u]),
        forward(unit_forward<Int>(batch, unit)),
        offsets(unit),
        slots(reinterpret_cast<Int*>(batch.slots_of(blockIdx.y, u))),
        cubic(head.cubic[u]) {}
  // Points x, x + step, ... of a row; returns the OR of the magnitudes of their coefficients.
  __device__ __forceinline__ Int row(std::uint32_t number, std::uint32_t x, std::uint32_t end,
                                     std::uint32_t step) const {
    const auto sy = static_cast<std::uint32_t>(unit.shape.y);
    const std::uint32_t y = number % sy, z = number / sy;
    const CoefficientRow to(offsets, z, y);
    Int any = 0;
    forward.row(z, y, x, end, step, cubic, [&](std::uint32_t at, Int d, Int q, bool missing) {
      slots[to.offset(at)] = d;
      any |= d < 0 ? -d : d;
      if (!missing) return;
      const std::uint32_t to_y = unit.axis == 2 ? y : unit.axis == 1 ? 2 * y + 1 : 2 * y;
      put_in_grids(job, unit.level, unit.axis == 0 ? 2 * z + 1 : z, to_y, unit.axis == 2 ? 2 * at + 1 : 2 * at, q);
    });
    return any;
  }
};

template <class Int>
__global__ void __launch_bounds__(kGridThreads)
    fill_unit_kernel(const __grid_constant__ ProgressiveEncode job, int u, RowShare share) {
  const FrameHead& head = job.heads[blockIdx.y];
  if (head.dead != 0) return;
  const FillingForward<Int> forward(job, head.head, u);
  const Extents shape = forward.unit.shape;
  const RowPart part(share, static_cast<std::uint32_t>(shape.x));
  Int any = 0;
  if (part.row < static_cast<std::uint32_t>(shape.z * shape.y))
    any = forward.row(part.row, part.x, part.end, part.step);
  note_bits(*job.notes.of(blockIdx.y), u, any);
}

// The bases of units `first` to `last` - 1 of a level whose unit along z is done, by a block for each chunk.
inline constexpr int kFillThreads = 1024;
template <class Int>
__global__ void __launch_bounds__(kFillThreads)
    choose_level_bases_kernel(const __grid_constant__ ProgressiveEncode job, int first, int last) {
  FrameHead& head = job.heads[blockIdx.y];
  if (head.dead != 0) return;
  for (int u = first; u < last; ++u) {
    choose_basis<Int, kFillThreads, true>(job, head.head, u);
    __syncthreads();
  }
}

// A block a chunk: the roots, then bases and coefficients of the first `units` units, which are small.
template <class Int>
__global__ void __launch_bounds__(kFillThreads)
    fill_small_units_kernel(const __grid_constant__ ProgressiveEncode job, int units) {
  FrameHead& head = job.heads[blockIdx.y];
  if (head.dead != 0) return;
  if (threadIdx.x == 0) fill_roots<Int>(job, head.head);
  for (int u = 0; u < units; ++u) {
    __syncthreads();
    choose_basis<Int, kFillThreads>(job, head.head, u);
    __syncthreads();
    const FillingForward<Int> forward(job, head.head, u);
    const Extents shape = forward.unit.shape;
    const auto across = static_cast<std::uint32_t>(shape.x),
               points = static_cast<std::uint32_t>(shape.z * shape.y) * across;
    Int any = 0;
    for (std::uint32_t i = threadIdx.x; i < points; i += kFillThreads)
      any |= forward.row(i / across, i % across, i % across + 1, 1);
    note_bits(*job.notes.of(blockIdx.y), u, any);
  }
}

}  // namespace pyfilter::cuda
