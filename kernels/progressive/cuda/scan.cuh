// SPDX-License-Identifier: BSD-3-Clause
// From values to integers: the CPU's scan_values() and fill_integers() (docs/format.md, section 13.3;
// kernels/progressive/FORMAT.md). Only minima, maxima and counts are used, so the order of threads changes nothing.
#pragma once

#include <cstdint>
#include <limits>

#include "core/bound.hpp"
#include "progressive/cuda/bits.cuh"
#include "progressive/cuda/params.cuh"
#include "progressive/scan.hpp"
#include "progressive/values.hpp"
#include "stages/cuda/chunk_plan.cuh"

namespace pyfilter::cuda {

inline constexpr int kScanThreads = 256;

template <class T>
struct ScanTraits {
  using Code = typename FloatTraits<T>::Code;
  static constexpr Code kMagnitude = static_cast<Code>(~Code{0}) >> 1;
  static constexpr Code kInfinity = std::bit_cast<Code>(std::numeric_limits<T>::infinity());
};

// Calls visit(value) for a thread's share of a chunk.
template <class T, class Visit>
__device__ __forceinline__ void visit_values(const T* values, std::uint64_t count, const Visit& visit) {
  constexpr std::uint64_t kPer = 16 / sizeof(T);
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kScanThreads,
                      thread = std::uint64_t{blockIdx.x} * kScanThreads + threadIdx.x;
  std::uint64_t done = 0;
  if (reinterpret_cast<std::uintptr_t>(values) % 16 == 0) {
    done = count / kPer * kPer;
#pragma unroll 2
    for (std::uint64_t i = thread; i < count / kPer; i += stride) {
      const uint4 piece = reinterpret_cast<const uint4*>(values)[i];
      const T* const x = reinterpret_cast<const T*>(&piece);
#pragma unroll
      for (std::uint64_t k = 0; k < kPer; ++k) visit(kPer * i + k, x[k]);
    }
  }
  for (std::uint64_t i = done + thread; i < count; i += stride) visit(i, values[i]);
}

template <class T>
__device__ __forceinline__ const T* chunk_values(const ProgressiveEncode& job) {
  return reinterpret_cast<const T*>(job.values + blockIdx.y * job.value_stride);
}
// The fill value, if it can be the sentinel.
template <class T>
__device__ __forceinline__ bool usable_fill(const ProgressiveEncode& job) {
  using Code = typename FloatTraits<T>::Code;
  return job.has_fill && (static_cast<Code>(job.fill) & ScanTraits<T>::kMagnitude) != 0;
}

template <class Code, class Combine>
__device__ __forceinline__ Code warp_combined(Code own, const Combine& combine) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) own = combine(own, __shfl_xor_sync(kAllLanes, own, d));
  return own;
}

// The integer of a value.
template <class T>
struct IntegerOf {
  using Int = typename ProgressiveTraits<T>::Int;
  PowerOfTwo scale;
  bool narrow;  // scales in binary32
  float factor;

  __device__ __forceinline__ explicit IntegerOf(int exponent) : scale(-exponent) {
    const double whole = scale.first * scale.second;
    narrow = sizeof(T) == 4 && scales_in_binary32(whole);
    factor = static_cast<float>(whole);
  }
  __device__ __forceinline__ Int operator()(T value) const {
    if constexpr (sizeof(T) == 4)
      if (narrow) return integer_within<T, Int>(nearest_integer(value * factor));
    return integer_within<T, Int>(nearest_integer(scale.times(static_cast<double>(value))));
  }
};

static __device__ __forceinline__ void begin_note(EncodeNote& note) {
  note.outcome = Outcome::progressive;
  note.measures = 0;
  note.largest = note.special = note.second = note.positive = note.negative = note.clashing = 0;
  note.low = std::numeric_limits<long long>::max();
  note.high = std::numeric_limits<long long>::min();
  note.look = 0;
  note.first_odd = ~0ull;
  note.fill_seen = 0;
}
// A thread a chunk. A template only because it is included where templates are.
template <class T>
__global__ void __launch_bounds__(32) begin_chunks_kernel(const __grid_constant__ ProgressiveEncode job) {
  EncodeNote& note = *job.notes.of(blockIdx.y);
  if (threadIdx.x == 0) begin_note(note);
  for (int u = static_cast<int>(threadIdx.x); u < kMostUnits; u += 32) note.any[u] = 0;
  for (int i = static_cast<int>(threadIdx.x); i < kMostMeasures; i += 32) note.measured[i] = 0;
}

template <class T>
__global__ void __launch_bounds__(kScanThreads) scan_values_kernel(const __grid_constant__ ProgressiveEncode job) {
  using Code = typename FloatTraits<T>::Code;
  using Traits = ScanTraits<T>;
  const bool has_fill = usable_fill<T>(job);
  const Code fill = static_cast<Code>(job.fill);
  Code largest = 0;
  std::uint32_t special = 0, fills = 0;
  unsigned long long first = ~0ull;  // that is not finite
  visit_values(chunk_values<T>(job), job.count, [&](std::uint64_t i, T value) {
    const Code bits = std::bit_cast<Code>(value), magnitude = bits & Traits::kMagnitude;
    const bool is_fill = has_fill && bits == fill, odd = magnitude >= Traits::kInfinity || is_fill;
    largest = odd || magnitude <= largest ? largest : magnitude;
    special += odd ? 1 : 0;
    fills |= is_fill ? 1 : 0;
    if (magnitude >= Traits::kInfinity && i < first) first = i;
  });
  largest = warp_combined(largest, [](Code a, Code b) { return a > b ? a : b; });
  special = warp_total(special);
  if (special != 0) {
    first = warp_combined(first, [](unsigned long long a, unsigned long long b) { return a < b ? a : b; });
    fills = warp_total(fills);
  }
  if (threadIdx.x % 32 != 0) return;
  EncodeNote& note = *job.notes.of(blockIdx.y);
  if (first != ~0ull) atomicMin(&note.first_odd, first);
  if (fills != 0) atomicOr(&note.fill_seen, 1u);
  if (largest != 0) atomicMax(&note.largest, static_cast<unsigned long long>(largest));
  if (special != 0) atomicAdd(&note.special, static_cast<unsigned long long>(special));
}

// A block of 64 a chunk: whether some values are near the largest one; most chunks need no second scan.
template <class T>
__global__ void __launch_bounds__(64) look_kernel(const __grid_constant__ ProgressiveEncode job) {
  using Code = typename FloatTraits<T>::Code;
  EncodeNote& note = *job.notes.of(blockIdx.y);
  const auto largest = static_cast<Code>(note.largest);
  const T* const values = chunk_values<T>(job);
  bool near = false;
  if (threadIdx.x < job.count) {
    const Code magnitude = std::bit_cast<Code>(values[job.count / 64 * threadIdx.x]) & ScanTraits<T>::kMagnitude;
    near = magnitude<largest&& static_cast<double>(std::bit_cast<T>(magnitude))> static_cast<double>(
               std::bit_cast<T>(largest)) /
           kUndeclaredFactor;
  }
  const bool any = __syncthreads_or(near ? 1 : 0) != 0;
  if (threadIdx.x == 0) note.look = !usable_fill<T>(job) && note.special == 0 && largest != 0 && !any ? 1 : 0;
}

template <class T>
__global__ void __launch_bounds__(kScanThreads) second_look_kernel(const __grid_constant__ ProgressiveEncode job) {
  using Code = typename FloatTraits<T>::Code;
  EncodeNote& note = *job.notes.of(blockIdx.y);
  if (note.look == 0) return;
  const auto largest = static_cast<Code>(note.largest);
  Code second = 0;
  std::uint32_t positive = 0, negative = 0;
  visit_values(chunk_values<T>(job), job.count, [&](std::uint64_t, T value) {
    const Code bits = std::bit_cast<Code>(value), magnitude = bits & ScanTraits<T>::kMagnitude;
    second = magnitude == largest || magnitude <= second ? second : magnitude;
    positive += bits == largest ? 1 : 0;
    negative += bits == (largest | ~ScanTraits<T>::kMagnitude) ? 1 : 0;
  });
  if (second != 0) atomicMax(&note.second, static_cast<unsigned long long>(second));
  if (positive != 0) atomicAdd(&note.positive, static_cast<unsigned long long>(positive));
  if (negative != 0) atomicAdd(&note.negative, static_cast<unsigned long long>(negative));
}

// A thread a chunk: the step.
template <class T>
__global__ void __launch_bounds__(32)
    choose_step_kernel(const __grid_constant__ ProgressiveEncode job, const RangeKeys* ranges) {
  using Code = typename FloatTraits<T>::Code;
  EncodeNote& note = *job.notes.of(blockIdx.y);
  FrameHead& head = job.heads[blockIdx.y];
  if (threadIdx.x != 0) return;
  const auto value_of = [](unsigned long long magnitude) {
    return static_cast<double>(std::bit_cast<T>(static_cast<Code>(magnitude)));
  };
  double bound = job.bound;
  if (job.bound_mode == Bound::relative) {
    const RangeKeys keys = ranges[blockIdx.y];
    bound = keys.high == 0 ? 0 : resolve_relative(job.bound, value_of_key(~keys.low), value_of_key(keys.high));
  }
  const bool undeclared = note.look != 0 && value_of(note.largest) / kUndeclaredFactor > value_of(note.second) &&
                          (note.positive == 0) != (note.negative == 0) && note.positive + note.negative >= 2;
  const bool finite_fill =
      usable_fill<T>(job) && (static_cast<Code>(job.fill) & ScanTraits<T>::kMagnitude) < ScanTraits<T>::kInfinity;
  note.has_sentinel = finite_fill || undeclared ? 1 : 0;
  note.sentinel = finite_fill ? job.fill : 0;
  if (undeclared) {
    const auto magnitude = static_cast<Code>(note.largest);
    note.sentinel = note.positive != 0 ? magnitude : static_cast<Code>(magnitude | ~ScanTraits<T>::kMagnitude);
    note.largest = note.second;
  }
  const double largest = value_of(note.largest);
  note.in_range =
      note.has_sentinel != 0 &&
              absolute(static_cast<double>(std::bit_cast<T>(static_cast<Code>(note.sentinel)))) <= 2 * largest
          ? 1
          : 0;
  if ((job.bound_mode != Bound::none && bound == 0) || !choose_exponent<T>(largest, bound, &note.exponent))
    note.outcome = Outcome::elsewhere;
  else if (undeclared || note.special != 0)
    note.outcome = Outcome::special;
  head.dead = note.outcome != Outcome::progressive ? 1 : 0;
}

template <class T>
__global__ void __launch_bounds__(kScanThreads) quantise_kernel(const __grid_constant__ ProgressiveEncode job) {
  using Int = typename ProgressiveTraits<T>::Int;
  using Code = typename FloatTraits<T>::Code;
  EncodeNote& note = *job.notes.of(blockIdx.y);
  if (job.heads[blockIdx.y].dead != 0) return;
  const IntegerOf<T> integer(note.exponent);
  const PowerOfTwo step(note.exponent);
  const bool in_range = note.in_range != 0;
  const auto sentinel = static_cast<Code>(note.sentinel);
  Int* const out = reinterpret_cast<Int*>(job.grids.of(blockIdx.y)) + job.grid_at[0];
  Int low = std::numeric_limits<Int>::max(), high = std::numeric_limits<Int>::min();
  std::uint32_t clashing = 0;
  const auto make = [&](T value) {
    const Int q = integer(value);
    low = min(low, q);
    high = max(high, q);
    if (in_range && std::bit_cast<Code>(to_value<T>(q, step)) == sentinel) ++clashing;
    return q;
  };
  constexpr std::uint64_t kPer = 16 / sizeof(T);
  const T* const values = chunk_values<T>(job);
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kScanThreads,
                      thread = std::uint64_t{blockIdx.x} * kScanThreads + threadIdx.x;
  std::uint64_t done = 0;
  if (reinterpret_cast<std::uintptr_t>(values) % 16 == 0) {
    done = job.count / kPer * kPer;
#pragma unroll 2
    for (std::uint64_t i = thread; i < job.count / kPer; i += stride) {
      struct alignas(16) Values {
        T x[kPer];
      };
      struct alignas(16) Integers {
        Int q[kPer];
      } made;
      const Values piece = reinterpret_cast<const Values*>(values)[i];
#pragma unroll
      for (std::uint64_t k = 0; k < kPer; ++k) made.q[k] = make(piece.x[k]);
      reinterpret_cast<Integers*>(out)[i] = made;
    }
  }
  for (std::uint64_t i = done + thread; i < job.count; i += stride) out[i] = make(values[i]);
  low = warp_combined(low, [](Int a, Int b) { return a < b ? a : b; });
  high = warp_combined(high, [](Int a, Int b) { return a > b ? a : b; });
  clashing = warp_total(clashing);
  if (threadIdx.x % 32 != 0) return;
  if (low <= high) {
    atomicMin(&note.low, static_cast<long long>(low));
    atomicMax(&note.high, static_cast<long long>(high));
  }
  if (clashing != 0) atomicAdd(&note.clashing, static_cast<unsigned long long>(clashing));
}

// A thread a chunk: the range of the integers, and whether they decode to finite values.
template <class T>
__global__ void __launch_bounds__(32) check_range_kernel(const __grid_constant__ ProgressiveEncode job) {
  EncodeNote& note = *job.notes.of(blockIdx.y);
  FrameHead& head = job.heads[blockIdx.y];
  if (threadIdx.x != 0 || head.dead != 0) return;
  const PowerOfTwo step(note.exponent);
  const double most = static_cast<double>(std::numeric_limits<T>::max());
  if (note.low > note.high) note.low = note.high = 0;  // all values are special
  head.head.low = note.low;
  head.head.high = note.high;
  if (note.clashing != 0)
    note.outcome = Outcome::special;
  else if (absolute(step.times(static_cast<double>(note.low))) > most ||
           absolute(step.times(static_cast<double>(note.high))) > most)
    note.outcome = Outcome::raw;
  head.dead = note.outcome != Outcome::progressive ? 1 : 0;
}

}  // namespace pyfilter::cuda
