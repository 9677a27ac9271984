// SPDX-License-Identifier: BSD-3-Clause
// The choices that cuszp2 makes once per chunk, from a deterministic sample of it: the step, and a sentinel where the
// caller names none (kernels/cuszp2/FORMAT.md). Only minima, maxima and counts are taken of the sample, so any order
// of evaluation gives the same result. Also the value range, over all values.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/plan.hpp"
#include "core/target.hpp"
#include "stages/quantize.hpp"

namespace pyfilter {

inline constexpr std::size_t kSampleRuns = 64, kSampleRunValues = 16, kSampleValues = kSampleRuns * kSampleRunValues;

}  // namespace pyfilter

PYF_BEGIN_TARGET

// Runs of 16 values spread evenly; all values of a chunk of up to 1024. Returns how many.
template <class T>
inline std::size_t take_sample(const void* values, std::uint64_t count, T (&sample)[kSampleValues]) {
  const auto* from = static_cast<const std::uint8_t*>(values);
  if (count <= kSampleValues) {
    if (count != 0) std::memcpy(sample, from, static_cast<std::size_t>(count) * sizeof(T));
    return static_cast<std::size_t>(count);
  }
  const std::uint64_t last = count - kSampleRunValues;
  for (std::uint64_t run = 0; run < kSampleRuns; ++run) {
    // the product may exceed 64 bits only for counts beyond kMaxChunkBytes
    const std::uint64_t first = last * run / (kSampleRuns - 1);
    std::memcpy(sample + run * kSampleRunValues, from + first * sizeof(T), kSampleRunValues * sizeof(T));
  }
  return kSampleValues;
}

// The largest T that is not above the double x > 0.
template <class T>
inline T round_down(double x) {
  if (x >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  T y = static_cast<T>(x);
  if (static_cast<double>(y) > x)
    y = std::bit_cast<T>(
        static_cast<typename FloatTraits<T>::Code>(std::bit_cast<typename FloatTraits<T>::Code>(y) - 1));
  return y;
}

template <class T>
inline T power_of_two(int exponent) {
  T x = 1;
  for (; exponent < 0; ++exponent) x *= static_cast<T>(0.5);
  for (; exponent > 0; --exponent) x *= static_cast<T>(2);
  return x;
}

template <class T>
struct SampleStatistics {
  T largest = 0;                         // largest |x| that the magic number can round
  T worst = 0;                           // largest |x - x'| among those
  std::size_t fitting = 0, failing = 0;  // finite values within reach and bound, and the others
};

template <class T>
inline SampleStatistics<T> sample_statistics(const Quantizer<T>& p, const T* sample, std::size_t count) {
  using Traits = FloatTraits<T>;
  const T limit = power_of_two<T>(Traits::kFractionBits - 1) * p.step;
  SampleStatistics<T> s;
  T largest = 0, worst = 0;
  std::uint32_t fitting = 0, failing = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const T x = sample[i];
    const T size = absolute(x);
    const bool counts = size <= std::numeric_limits<T>::max() && x != p.sentinel;
    const bool in_reach = counts && size < limit;
    const T decoded = (fused(x, p.inverse_step, Traits::kMagic) - Traits::kMagic) * p.step;
    const T error = absolute(x - decoded);
    largest = in_reach && size > largest ? size : largest;
    worst = in_reach && error > worst ? error : worst;
    fitting += in_reach && error <= p.bound ? 1u : 0u;
    failing += counts && !(in_reach && error <= p.bound) ? 1u : 0u;
  }
  s.largest = largest;
  s.worst = worst;
  s.fitting = fitting;
  s.failing = failing;
  return s;
}

// A value that many share and no quantum reaches: missing data whose fill value nobody declared. The first sampled
// value that is NaN, infinite or out of reach, if it comes at least twice.
template <class T>
inline bool find_sentinel(const Quantizer<T>& p, const T* sample, std::size_t count,
                          typename FloatTraits<T>::Code* bits) {
  using Code = typename FloatTraits<T>::Code;
  const T limit = power_of_two<T>(FloatTraits<T>::kFractionBits - 1) * p.step;
  std::size_t first = count;
  for (std::size_t i = count; i-- > 0;)
    if (!(absolute(sample[i]) < limit)) first = i;
  if (first == count) return false;
  *bits = std::bit_cast<Code>(sample[first]);
  std::size_t same = 0;
  for (std::size_t i = 0; i < count; ++i) same += std::bit_cast<Code>(sample[i]) == *bits ? 1 : 0;
  return same >= 2;
}

// `bound` near a power of two (but not one): there a full step could make one comparison inexact (FORMAT.md).
template <class T>
inline bool full_step_is_exact(T bound) {
  using Code = typename FloatTraits<T>::Code;
  constexpr Code kMask = (Code{1} << FloatTraits<T>::kFractionBits) - 1;
  const Code fraction = std::bit_cast<Code>(bound) & kMask;
  return fraction == 0 || (fraction > 8 && fraction < kMask - 8);
}

// The fill value as a sentinel. Zero of either sign needs none: zeros come back as zeros anyway.
template <class T>
inline bool nonzero_fill(const Request& request, typename FloatTraits<T>::Code* bits) {
  using Code = typename FloatTraits<T>::Code;
  *bits = static_cast<Code>(request.fill);
  if (request.has_fill && static_cast<Code>(*bits << 1) != 0) return true;
  *bits = 0;
  return false;
}

template <class T>
inline StepChoice choose_step(const Request& request, double requested, const void* values, std::uint64_t count) {
  using Traits = FloatTraits<T>;
  using Limits = std::numeric_limits<T>;
  StepChoice choice;
  const T bound = std::min(round_down<T>(requested), static_cast<T>(Limits::max() / 2));
  // below this the reciprocal of the step would overflow or the step lose bits
  if (!(bound >= 4 * Limits::min())) return choice;
  Quantizer<T> p{};
  p.bound = bound;
  p.step = 2 * bound;
  p.inverse_step = 1 / p.step;
  p.has_sentinel = nonzero_fill<T>(request, &p.sentinel_bits);
  p.sentinel = p.has_sentinel ? std::bit_cast<T>(p.sentinel_bits) : Limits::quiet_NaN();

  T sample[kSampleValues];
  const std::size_t sampled = take_sample(values, count, sample);
  if (!p.has_sentinel && find_sentinel(p, sample, sampled, &p.sentinel_bits)) {
    p.has_sentinel = true;
    p.sentinel = std::bit_cast<T>(p.sentinel_bits);
  }
  SampleStatistics<T> s = sample_statistics(p, sample, sampled);

  // |q| <= 2^k: rounding q * step and x / step costs up to 2^(k - fraction bits) of a quantum
  int k = 2;
  while (k < Traits::kFractionBits - 3 && power_of_two<T>(k) * p.step < s.largest) ++k;
  const T shrink = power_of_two<T>(k - (Traits::kFractionBits - 1));
  const bool safe =
      s.failing == 0 && s.worst + shrink * bound <= bound;  // a lattice, or luck: no value is near the bound
  const bool complete = s.failing == 0 && sampled == count;
  if (!((safe || complete) && full_step_is_exact(bound))) {
    p.step = p.step - p.step * shrink;
    p.inverse_step = 1 / p.step;
    s = sample_statistics(p, sample, sampled);
  }
  if (s.failing * 8 > s.failing + s.fitting) return choice;
  choice.quantise = true;
  choice.bound = static_cast<double>(bound);
  choice.step = static_cast<double>(p.step);
  choice.has_sentinel = p.has_sentinel;
  choice.sentinel = p.sentinel_bits;
  return choice;
}

template <class T>
inline bool value_range(const Request& request, const void* values, std::uint64_t count, double* low, double* high) {
  constexpr std::size_t kBatch = 64;
  const auto* from = static_cast<const std::uint8_t*>(values);
  // a fill of zero counts here: HDF5 pads edge chunks with it, and padding must not widen the range
  const T fill = request.has_fill ? std::bit_cast<T>(static_cast<typename FloatTraits<T>::Code>(request.fill))
                                  : std::numeric_limits<T>::quiet_NaN();
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  T lows[kBatch], highs[kBatch];
  for (std::size_t i = 0; i < kBatch; ++i) {
    lows[i] = kInfinity;
    highs[i] = -kInfinity;
  }
  for (std::uint64_t first = 0; first < count; first += kBatch) {
    T x[kBatch];
    const std::size_t here = static_cast<std::size_t>(std::min<std::uint64_t>(kBatch, count - first));
    std::memcpy(x, from + first * sizeof(T), here * sizeof(T));
    for (std::size_t i = here; i < kBatch; ++i) x[i] = kInfinity;
    for (std::size_t i = 0; i < kBatch; ++i) {
      const bool counts = (absolute(x[i]) < kInfinity) & (x[i] != fill);
      lows[i] = counts && x[i] < lows[i] ? x[i] : lows[i];
      highs[i] = counts && x[i] > highs[i] ? x[i] : highs[i];
    }
  }
  *low = static_cast<double>(*std::min_element(lows, lows + kBatch));
  *high = static_cast<double>(*std::max_element(highs, highs + kBatch));
  return *low <= *high;
}

PYF_END_TARGET
