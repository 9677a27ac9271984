// SPDX-License-Identifier: BSD-3-Clause
// Errors of readers, measured pass by pass for one reader after the other, for arrays with short rows (measure.cuh has
// all others).
#pragma once

#include <cstdint>

#include "progressive/choices.hpp"
#include "progressive/cuda/grids.cuh"
#include "progressive/cuda/inverse.cuh"
#include "progressive/values.hpp"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

// The largest error of integers.
template <class Int>
struct ErrorSink {
  const Int* original;
  const std::uint32_t* special;  // bits of special values, which are ignored; nullptr: there are none
  Int most = 0;

  __device__ __forceinline__ void put(std::uint64_t i, Int q) {
    const Int d = q > original[i] ? q - original[i] : original[i] - q;
    const bool ordinary = special == nullptr || (special[i / 32] >> (i % 32) & 1) == 0;
    most = ordinary && d > most ? d : most;
  }
  __device__ __forceinline__ void put_pair(std::uint64_t i, Int q, Int r) {
    put(i, q);
    put(i + 1, r);
  }
  __device__ __forceinline__ bool wide() const { return true; }
  __device__ __forceinline__ void put_wide(std::uint64_t i, const Wide<Int>& q) {
#pragma unroll
    for (unsigned k = 0; k < kWide<Int>; ++k) put(i + k, q.v[k]);
  }
};

// A reader's coefficients.
template <class Int>
struct KnownCoefficients {
  SlotCoefficients<Int> all;
  int planes, plane;

  __device__ __forceinline__ Int operator()(std::uint64_t offset) const {
    return known_part(all(offset), planes, plane);
  }
  __device__ __forceinline__ Wide<Int> wide(std::uint64_t offset) const {
    Wide<Int> c = all.wide(offset);
#pragma unroll
    for (unsigned k = 0; k < kWide<Int>; ++k) c.v[k] = known_part(c.v[k], planes, plane);
    return c;
  }
};

// Compares a reader whose segments end at a state with the encoded integers.
template <class T, int kAxis, bool kLast>
__global__ void __launch_bounds__(kGridThreads) measure_pass_kernel(const __grid_constant__ MeasurePass pass) {
  using Int = typename ProgressiveTraits<T>::Int;
  const FrameHead& head = pass.job.heads[blockIdx.y];
  EncodeNote& note = *pass.job.notes.of(blockIdx.y);
  const auto index = static_cast<std::uint32_t>(pass.index);
  if (head.dead != 0 || index >= note.measures) return;
  const Int* const slots = reinterpret_cast<const Int*>(pass.job.slots_of(blockIdx.y, pass.unit));
  const int planes = head.head.planes[pass.unit],
            p = pass.job.states.of(blockIdx.y)[index * kMostUnits + static_cast<std::uint32_t>(pass.unit)];
  const KnownCoefficients<Int> coefficient{{slots, p >= planes}, planes, p};
  if constexpr (kLast) {
    ErrorSink<Int> sink{reinterpret_cast<const Int*>(pass.job.grids.of(blockIdx.y)) + pass.job.grid_at[0],
                        pass.job.special_bits(blockIdx.y, 0)};
    inverse_pass<Int, kAxis>(pass, head, coefficient, sink);
    const auto found = static_cast<unsigned long long>(warp_largest(sink.most));
    if (threadIdx.x % 32 == 0 && found > *static_cast<volatile unsigned long long*>(&note.measured[index]))
      atomicMax(&note.measured[index], found);
  } else {
    inverse_pass<Int, kAxis>(pass, head, coefficient, GridSink<Int>{reinterpret_cast<Int*>(pass.out.of(blockIdx.y))});
  }
}

}  // namespace pyfilter::cuda
