// SPDX-License-Identifier: BSD-3-Clause
// Passes from coefficients to values (docs/format.md, section 13.3), a kernel each. The known values of a pass are a
// grid of their own, without gaps, and so is what it makes: twice as many along its axis. The last pass of the grid
// that is wanted makes values.
#pragma once

#include <cstdint>

#include "progressive/choices.hpp"
#include "progressive/values.hpp"
#include "stages/cuda/progressive/grids.cuh"

namespace pyfilter::cuda {

// From integers to the values that are wanted, [start, stop).
template <class T, class Int>
struct ValueSink {
  using Code = typename FloatTraits<T>::Code;
  PowerOfTwo step;
  T* out;
  std::uint64_t start, stop;
  Code sentinel;
  bool has_sentinel;

  __device__ __forceinline__ ValueSink(const ProgressiveFrame& frame, std::uint64_t first, std::uint64_t last)
      : step(exponent_above(frame.step) - 1),
        out(reinterpret_cast<T*>(frame.out)),
        start(first),
        stop(last),
        sentinel(static_cast<Code>(frame.sentinel)),
        has_sentinel(frame.has_sentinel != 0) {}
  __device__ __forceinline__ void put(std::uint64_t i, Int q) const {
    if (i < start || i >= stop) return;
    const T value = to_value<T>(q, step);
    out[i - start] = has_sentinel ? beside_sentinel(value, sentinel) : value;
  }
};

// Known values and coefficients of a pass to the grid that they make. `put(i, q)` takes integer number i.
template <class Int, int kAxis, class Coefficient, class Put>
__device__ __forceinline__ void inverse_rows(const Int* in, const Extents& from, const Extents& to, bool cubic,
                                             const Limits<Int>& limits, std::uint32_t across,
                                             const Coefficient& coefficient, const Put& put) {
  const auto fx = static_cast<std::uint32_t>(from.x), fy = static_cast<std::uint32_t>(from.y),
             fz = static_cast<std::uint32_t>(from.z), tx = static_cast<std::uint32_t>(to.x),
             ty = static_cast<std::uint32_t>(to.y), tz = static_cast<std::uint32_t>(to.z);
  const std::uint32_t row = blockIdx.x * (kGridThreads / across) + threadIdx.x / across;
  if (row >= fz * fy) return;
  const std::uint32_t y = row % fy, z = row / fy;
  const std::uint64_t stride = kAxis == 0 ? std::uint64_t{fy} * fx : kAxis == 1 ? fx : 1;
  const std::uint32_t evens = kAxis == 0 ? fz : kAxis == 1 ? fy : fx, all = kAxis == 0 ? tz : kAxis == 1 ? ty : tx;
  for (std::uint32_t x = threadIdx.x % across; x < fx; x += across) {
    const std::uint32_t j = kAxis == 0 ? z : kAxis == 1 ? y : x;
    const Int* const line = in + (std::uint64_t{row} * fx + x - j * stride);
    const Int even = line[j * stride];
    const std::uint64_t at = kAxis == 0   ? (std::uint64_t{2 * z} * ty + y) * tx + x
                             : kAxis == 1 ? (std::uint64_t{z} * ty + 2 * y) * tx + x
                                          : std::uint64_t{row} * tx + 2 * x;
    put(at, even);
    if (2 * j + 1 >= all) continue;
    const Neighbours<Int> neighbours =
        neighbours_of<Int>(j, evens, cubic, [&](std::uint64_t i) { return line + i * stride; });
    const Int q = inverse_value(limits, predict_by(neighbours, 0), coefficient(z, y, x));
    put(at + (kAxis == 0 ? std::uint64_t{ty} * tx : kAxis == 1 ? tx : 1), q);
  }
}

// kLast: to values.
template <class T, int kAxis, bool kLast>
__global__ void __launch_bounds__(kGridThreads) inverse_kernel(const __grid_constant__ InversePass pass) {
  using Int = typename ProgressiveTraits<T>::Int;
  const FrameHead& head = pass.job.heads[blockIdx.y];
  if (head.dead != 0) return;
  const ProgressiveUnit& unit = pass.job.shared->layout.unit[pass.unit];
  const UnitPlaces places(unit);
  const std::size_t first_tile = pass.job.shared->first_tile[pass.unit];
  const Int* const slots =
      reinterpret_cast<const Int*>(pass.job.slots.of(blockIdx.y) + first_tile * pass.job.slot_words());
  const Limits<Int> limits{static_cast<Int>(head.head.low), static_cast<Int>(head.head.high)};
  const bool none = head.last[pass.unit] == head.head.planes[pass.unit];
  const auto coefficient = [&](std::uint32_t z, std::uint32_t y, std::uint32_t x) {
    return none ? Int{0} : slots[places.place(z, y, x)];
  };
  const Int* const in = reinterpret_cast<const Int*>(pass.in.of(blockIdx.y));
  const bool cubic = head.head.cubic[pass.unit];
  if constexpr (kLast) {
    const ValueSink<T, Int> sink(pass.job.frames[blockIdx.y], pass.start, pass.stop);
    inverse_rows<Int, kAxis>(in, pass.from, pass.to, cubic, limits, pass.across, coefficient,
                             [&](std::uint64_t i, Int q) { sink.put(i, q); });
  } else {
    Int* const out = reinterpret_cast<Int*>(pass.out.of(blockIdx.y));
    inverse_rows<Int, kAxis>(in, pass.from, pass.to, cubic, limits, pass.across, coefficient,
                             [&](std::uint64_t i, Int q) { out[i] = q; });
  }
}

// What a reader has whose segments end at those of a state, against the integers that were encoded.
template <class T, int kAxis, bool kLast>
__global__ void __launch_bounds__(kGridThreads) measure_kernel(const __grid_constant__ MeasurePass pass) {
  using Int = typename ProgressiveTraits<T>::Int;
  const FrameHead& head = pass.job.heads[blockIdx.y];
  EncodeNote& note = *pass.job.notes.of(blockIdx.y);
  const auto index = static_cast<std::uint32_t>(pass.index);
  if (head.dead != 0 || index >= note.measures) return;
  const ProgressiveUnit& unit = pass.job.shared->layout.unit[pass.unit];
  const UnitPlaces places(unit);
  const std::size_t first_tile = pass.job.shared->first_tile[pass.unit];
  const Int* const slots =
      reinterpret_cast<const Int*>(pass.job.slots.of(blockIdx.y) + first_tile * pass.job.slot_words());
  const Limits<Int> limits{static_cast<Int>(head.head.low), static_cast<Int>(head.head.high)};
  const int planes = head.head.planes[pass.unit],
            p = pass.job.states.of(blockIdx.y)[index * kMostUnits + static_cast<std::uint32_t>(pass.unit)];
  const auto coefficient = [&](std::uint32_t z, std::uint32_t y, std::uint32_t x) {
    return p >= planes ? Int{0} : known_part(slots[places.place(z, y, x)], planes, p);
  };
  const Int* const in = reinterpret_cast<const Int*>(pass.in.of(blockIdx.y));
  const bool cubic = head.head.cubic[pass.unit];
  if constexpr (kLast) {
    const Int* const original = reinterpret_cast<const Int*>(pass.job.grids.of(blockIdx.y)) + pass.job.grid_at[0];
    Int most = 0;
    inverse_rows<Int, kAxis>(in, pass.from, pass.to, cubic, limits, pass.across, coefficient,
                             [&](std::uint64_t i, Int q) {
                               const Int d = q > original[i] ? q - original[i] : original[i] - q;
                               most = d > most ? d : most;
                             });
    if (most != 0) atomicMax(&note.measured[index], static_cast<unsigned long long>(most));
  } else {
    Int* const out = reinterpret_cast<Int*>(pass.out.of(blockIdx.y));
    inverse_rows<Int, kAxis>(in, pass.from, pass.to, cubic, limits, pass.across, coefficient,
                             [&](std::uint64_t i, Int q) { out[i] = q; });
  }
}

// A grid that no pass makes, the coarsest, to values.
template <class T>
__global__ void __launch_bounds__(kGridThreads) roots_to_values_kernel(const __grid_constant__ InversePass pass) {
  using Int = typename ProgressiveTraits<T>::Int;
  if (pass.job.heads[blockIdx.y].dead != 0) return;
  const ValueSink<T, Int> sink(pass.job.frames[blockIdx.y], pass.start, pass.stop);
  const Int* const in = reinterpret_cast<const Int*>(pass.in.of(blockIdx.y));
  for (std::uint64_t i = threadIdx.x; i < pass.from.count(); i += kGridThreads) sink.put(i, in[i]);
}

}  // namespace pyfilter::cuda
