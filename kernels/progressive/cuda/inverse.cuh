// SPDX-License-Identifier: BSD-3-Clause
// Passes from coefficients to values (docs/format.md, section 13.3), a kernel each. A pass reads its known values from
// one dense grid and writes another with twice as many values along its axis. The last pass of the requested grid
// writes values.
#pragma once

#include <cstdint>
#include <type_traits>

#include "progressive/cuda/grids.cuh"
#include "progressive/values.hpp"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

// The number of values that are read and written at once, aligned to that number.
template <class Int>
inline constexpr std::uint32_t kWide = 16 / sizeof(Int);
// A thread's values of a row, for RowBlocks.
template <class Int>
inline constexpr std::uint32_t kPassEach = 8 * kWide<Int>;
template <class Value>
struct alignas(16) Wide {
  Value v[16 / sizeof(Value)];
};
template <class Value>
__device__ __forceinline__ bool is_wide(const Value* at) {
  return reinterpret_cast<std::uintptr_t>(at) % 16 == 0;
}
template <class Value>
__device__ __forceinline__ Wide<Value> load_wide(const Value* at) {
  return *reinterpret_cast<const Wide<Value>*>(at);
}

// Converts integers to the requested values, [start, stop).
template <class T, class Int>
struct ValueSink {
  using Code = typename FloatTraits<T>::Code;
  PowerOfTwo step;
  T* out;
  std::uint64_t start, stop;
  Code sentinel;
  bool has_sentinel, whole;  // whole: requests all values, and pairs are aligned

  __device__ __forceinline__ ValueSink(const ProgressiveFrame& frame, std::uint64_t first, std::uint64_t last,
                                       std::uint64_t count)
      : step(exponent_above(frame.step) - 1),
        out(reinterpret_cast<T*>(frame.out)),
        start(first),
        stop(last),
        sentinel(static_cast<Code>(frame.sentinel)),
        has_sentinel(frame.has_sentinel != 0),
        whole(first == 0 && last == count && reinterpret_cast<std::uintptr_t>(frame.out) % (2 * sizeof(T)) == 0) {}
  __device__ __forceinline__ void put(std::uint64_t i, Int q) const {
    if (i < start || i >= stop) return;
    out[i - start] = value_of(q);
  }
  __device__ __forceinline__ void put_pair(std::uint64_t i, Int q, Int r) const {
    if (whole && i % 2 == 0) {
      struct alignas(2 * sizeof(T)) Pair {
        T first, second;
      };
      *reinterpret_cast<Pair*>(out + i) = {value_of(q), value_of(r)};
      return;
    }
    put(i, q);
    put(i + 1, r);
  }
  __device__ __forceinline__ bool wide() const { return whole && is_wide(out); }
  __device__ __forceinline__ void put_wide(std::uint64_t i, const Wide<Int>& q) const {
    Wide<T> values;
#pragma unroll
    for (unsigned k = 0; k < kWide<Int>; ++k) values.v[k] = value_of(q.v[k]);
    *reinterpret_cast<Wide<T>*>(out + i) = values;
  }
  __device__ __forceinline__ T value_of(Int q) const {
    const T value = to_value<T>(q, step);
    return has_sentinel ? beside_sentinel(value, sentinel) : value;
  }
};

// Predictions from adjacent neighbours.
template <class Int>
__device__ __forceinline__ Wide<Int> predict_wide(Stencil stencil, Wide<Int> a, const Wide<Int>& b, const Wide<Int>& c,
                                                  const Wide<Int>& d) {
  const auto by = [&](auto one) {
#pragma unroll
    for (unsigned k = 0; k < kWide<Int>; ++k) a.v[k] = predict<one(), Int>(a.v[k], b.v[k], c.v[k], d.v[k]);
  };
  switch (stencil) {
    case Stencil::copy:
      break;
    case Stencil::linear:
      by(std::integral_constant<Stencil, Stencil::linear>());
      break;
    case Stencil::quadratic:
      by(std::integral_constant<Stencil, Stencil::quadratic>());
      break;
    case Stencil::cubic:
      by(std::integral_constant<Stencil, Stencil::cubic>());
      break;
  }
  return a;
}
// load(neighbour) loads one neighbour.
template <class Int, class Load>
__device__ __forceinline__ Wide<Int> predict_wide(const Neighbours<Int>& from, Load&& load) {
  const Wide<Int> a = load(from.a);
  Wide<Int> b = {}, c = {}, d = {};
  if (from.b != nullptr) b = load(from.b);
  if (from.c != nullptr) c = load(from.c);
  if (from.d != nullptr) d = load(from.d);
  return predict_wide(from.stencil, a, b, c, d);
}
// Predictions of targets x, x + 1, ... of a line along x, from known values x - 1 to x + kN + 1; known(i) is value i.
template <class Int, class Known>
__device__ __forceinline__ Wide<Int> predict_wide_along(std::uint32_t x, std::uint32_t evens, bool cubic, Int before,
                                                        const Wide<Int>& at, Int behind, Int further, Known&& known) {
  constexpr std::uint32_t kN = kWide<Int>;
  Wide<Int> out;
#pragma unroll
  for (unsigned k = 0; k < kN; ++k) {
    const auto number = [&](unsigned i) {
      return i == 0 ? before : i <= kN ? at.v[(i - 1) % kN] : i == kN + 1 ? behind : further;
    };
    out.v[k] = cubic ? predict<Stencil::cubic>(number(k + 1), number(k + 2), number(k), number(k + 3))
                     : predict<Stencil::linear>(number(k + 1), number(k + 2), Int{0}, Int{0});
  }
  // the ends, with other stencils
  const auto again = [&](std::uint32_t j) { return predict_target<Int>(j, evens, cubic, known); };
  if (x == 0) out.v[0] = again(0);
  if (x + kN == evens) {
    out.v[kN - 2] = again(evens - 2);
    out.v[kN - 1] = again(evens - 1);
  }
  return out;
}

// Merges known values and coefficients of a pass into its output grid. `put(i, q)` stores integer i, put_pair(i, q, r)
// integers i and i + 1, put_wide(i, q) as many as are read at once.
template <class Int, int kAxis, class Coefficient, class Sink>
__device__ __forceinline__ void inverse_rows(const Int* in, const Extents& from, const Extents& to, bool cubic,
                                             const Limits<Int>& limits, const RowShare& share,
                                             const UnitOffsets& offsets, const Coefficient& coefficient, Sink&& sink) {
  const auto fx = static_cast<std::uint32_t>(from.x), fy = static_cast<std::uint32_t>(from.y),
             fz = static_cast<std::uint32_t>(from.z), tx = static_cast<std::uint32_t>(to.x),
             ty = static_cast<std::uint32_t>(to.y), tz = static_cast<std::uint32_t>(to.z);
  constexpr std::uint32_t kN = kWide<Int>;
  const RowPart part(share, fx), wide_part(share, fx, kN);
  const std::uint32_t row = part.row;
  if (row >= fz * fy) return;
  const std::uint32_t y = row % fy, z = row / fy;
  const CoefficientRow row_offsets(offsets, z, y);
  const bool wide = !offsets.merged && fx % kN == 0 && is_wide(in) && sink.wide();
  const auto add = [&](const Wide<Int>& predicted, std::uint32_t x) {
    Wide<Int> out = coefficient.wide(row_offsets.offset(x));
#pragma unroll
    for (unsigned k = 0; k < kN; ++k) out.v[k] = inverse_value(limits, predicted.v[k], out.v[k]);
    return out;
  };
  if constexpr (kAxis == 2) {
    const Int* const line = in + std::uint64_t{row} * fx;
    const std::uint64_t at = std::uint64_t{row} * tx;
    const auto known = [&](std::uint64_t i) { return line + i; };
    if (wide && tx == 2 * fx) {
      for (std::uint32_t x = wide_part.x; x < wide_part.end; x += wide_part.step) {
        const Wide<Int> even = load_wide(line + x),
                        odd = add(
                            predict_wide_along<Int>(x, fx, cubic, line[x - (x != 0 ? 1 : 0)], even,
                                                    line[min(x + kN, fx - 1)], line[min(x + kN + 1, fx - 1)], known),
                            x);
        Wide<Int> low, high;
#pragma unroll
        for (unsigned k = 0; k < kN; ++k) {
          low.v[k] = k % 2 == 0 ? even.v[k / 2] : odd.v[k / 2];
          high.v[k] = k % 2 == 0 ? even.v[(kN + k) / 2] : odd.v[(kN + k) / 2];
        }
        sink.put_wide(at + 2 * x, low);
        sink.put_wide(at + 2 * x + kN, high);
      }
      return;
    }
    for (std::uint32_t x = part.x; x < part.end; x += part.step) {
      const Int even = line[x];
      if (2 * x + 1 >= tx) {
        sink.put(at + 2 * x, even);
        continue;
      }
      const Int predicted = predict_target<Int>(x, fx, cubic, known);
      sink.put_pair(at + 2 * x, even, inverse_value(limits, predicted, coefficient(row_offsets.offset(x))));
    }
  } else {  // one stencil for the whole row
    const std::uint64_t stride = kAxis == 0 ? std::uint64_t{fy} * fx : fx;
    const std::uint32_t evens = kAxis == 0 ? fz : fy, all = kAxis == 0 ? tz : ty, j = kAxis == 0 ? z : y;
    const Int* const line = in + (std::uint64_t{row} * fx - j * stride);
    const Neighbours<Int> neighbours =
        neighbours_of<Int>(j, evens, cubic, [&](std::uint64_t i) { return line + i * stride; });
    const std::uint64_t at = kAxis == 0 ? (std::uint64_t{2 * z} * ty + y) * tx : (std::uint64_t{z} * ty + 2 * y) * tx;
    const std::uint64_t further = kAxis == 0 ? std::uint64_t{ty} * tx : tx;
    const Int* const evens_of_row = line + j * stride;
    const bool odd = 2 * j + 1 < all;
    if (wide) {
      for (std::uint32_t x = wide_part.x; x < wide_part.end; x += wide_part.step) {
        sink.put_wide(at + x, load_wide(evens_of_row + x));
        if (odd)
          sink.put_wide(at + further + x,
                        add(predict_wide(neighbours, [x](const Int* from) { return load_wide(from + x); }), x));
      }
      return;
    }
    for (std::uint32_t x = part.x; x < part.end; x += part.step) {
      sink.put(at + x, evens_of_row[x]);
      if (odd)
        sink.put(at + further + x,
                 inverse_value(limits, predict_by(neighbours, x), coefficient(row_offsets.offset(x))));
    }
  }
}

// Stores integers to a grid.
template <class Int>
struct GridSink {
  Int* out;

  __device__ __forceinline__ void put(std::uint64_t i, Int q) const { out[i] = q; }
  __device__ __forceinline__ void put_pair(std::uint64_t i, Int q, Int r) const {
    if (i % 2 == 0) {
      struct alignas(2 * sizeof(Int)) Pair {
        Int first, second;
      };
      *reinterpret_cast<Pair*>(out + i) = {q, r};
      return;
    }
    out[i] = q;
    out[i + 1] = r;
  }
  __device__ __forceinline__ bool wide() const { return is_wide(out); }
  __device__ __forceinline__ void put_wide(std::uint64_t i, const Wide<Int>& q) const {
    *reinterpret_cast<Wide<Int>*>(out + i) = q;
  }
};

// Reads coefficients from the slots of a unit, with the planes so far; `none`: no plane is there.
template <class Int>
struct SlotCoefficients {
  const Int* slots;
  bool none;

  __device__ __forceinline__ Int operator()(std::uint64_t offset) const { return none ? Int{0} : slots[offset]; }
  __device__ __forceinline__ Wide<Int> wide(std::uint64_t offset) const {
    return none ? Wide<Int>{} : load_wide(slots + offset);
  }
};

// Runs a pass of a block's frame, with coefficients by their offset in the unit's slots.
template <class Int, int kAxis, class Pass, class Coefficient, class Sink>
__device__ __forceinline__ void inverse_pass(const Pass& pass, const FrameHead& head, const Coefficient& coefficient,
                                             Sink&& sink) {
  const UnitOffsets offsets(pass.job.shared->layout.unit[pass.unit]);
  const Limits<Int> limits{static_cast<Int>(head.head.low), static_cast<Int>(head.head.high)};
  inverse_rows<Int, kAxis>(reinterpret_cast<const Int*>(pass.in.of(blockIdx.y)), pass.from, pass.to,
                           head.head.cubic[pass.unit], limits, pass.share, offsets, coefficient, sink);
}

// kLast: writes values.
template <class T, int kAxis, bool kLast>
__global__ void __launch_bounds__(kGridThreads) inverse_kernel(const __grid_constant__ InversePass pass) {
  using Int = typename ProgressiveTraits<T>::Int;
  const FrameHead& head = pass.job.heads[blockIdx.y];
  if (head.dead != 0) return;
  const Int* const slots = reinterpret_cast<const Int*>(pass.job.slots_of(blockIdx.y, pass.unit));
  const SlotCoefficients<Int> coefficient{slots, head.last[pass.unit] == head.head.planes[pass.unit]};
  if constexpr (kLast) {
    const ValueSink<T, Int> sink(pass.job.frames[blockIdx.y], pass.start, pass.stop, pass.to.count());
    inverse_pass<Int, kAxis>(pass, head, coefficient, sink);
  } else {
    inverse_pass<Int, kAxis>(pass, head, coefficient, GridSink<Int>{reinterpret_cast<Int*>(pass.out.of(blockIdx.y))});
  }
}

// Converts the coarsest grid, which no pass makes, to values.
template <class T>
__global__ void __launch_bounds__(kGridThreads) roots_to_values_kernel(const __grid_constant__ InversePass pass) {
  using Int = typename ProgressiveTraits<T>::Int;
  if (pass.job.heads[blockIdx.y].dead != 0) return;
  const ValueSink<T, Int> sink(pass.job.frames[blockIdx.y], pass.start, pass.stop, pass.from.count());
  const Int* const in = reinterpret_cast<const Int*>(pass.in.of(blockIdx.y));
  for (std::uint64_t i = threadIdx.x; i < pass.from.count(); i += kGridThreads) sink.put(i, in[i]);
}

}  // namespace pyfilter::cuda
