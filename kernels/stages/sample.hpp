// SPDX-License-Identifier: BSD-3-Clause
// Choices made once per chunk from a deterministic sample: whether to quantise, and a sentinel if the caller names none
// (docs/format.md, section 6). They use only counts and the first of some values, so any order of evaluation gives the
// same result. Also the value range, over all values.
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

// Index of sampled value `k`: runs of 16 values spread evenly; all values of a chunk of up to 1024.
KFN std::uint64_t sample_index(std::uint64_t count, std::uint64_t k) {
  if (count <= kSampleValues) return k;
  // the product would exceed 64 bits only for counts beyond kMaxChunkBytes
  return (count - kSampleRunValues) * (k / kSampleRunValues) / (kSampleRuns - 1) + k % kSampleRunValues;
}

}  // namespace pyfilter

PYF_BEGIN_TARGET

// The number of values in the sample.
template <class T>
inline std::size_t take_sample(const void* values, std::uint64_t count, T (&sample)[kSampleValues]) {
  const auto* from = static_cast<const std::uint8_t*>(values);
  if (count <= kSampleValues) {
    if (count != 0) std::memcpy(sample, from, static_cast<std::size_t>(count) * sizeof(T));
    return static_cast<std::size_t>(count);
  }
  for (std::size_t k = 0; k < kSampleValues; k += kSampleRunValues)
    std::memcpy(sample + k, from + sample_index(count, k) * sizeof(T), kSampleRunValues * sizeof(T));
  return kSampleValues;
}

// The largest T not above the double x > 0.
template <class T>
KFN T round_down(double x) {
  if (x >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  T y = static_cast<T>(x);
  if (static_cast<double>(y) > x)
    y = std::bit_cast<T>(
        static_cast<typename FloatTraits<T>::Code>(std::bit_cast<typename FloatTraits<T>::Code>(y) - 1));
  return y;
}

// Counts of sampled values: finite ones whose codes keep the bound, finite ones whose codes do not, and values (finite
// or not) out of reach.
template <class T>
struct SampleCounts {
  typename FloatTraits<T>::Code fitting = 0, failing = 0, unreached = 0;
};

// Adds one sampled value to the counts.
template <class T>
struct SampledValue {
  bool fitting, failing, unreached;

  KFN SampledValue(const Quantizer<T>& p, T x) {
    const bool finite = (absolute(x) <= std::numeric_limits<T>::max()) & (x != p.sentinel);
    const bool fits = keeps_bound(p, x, decoded_value(p.step, magic_form(p, x))) & in_reach(p, x);
    fitting = finite & fits;
    failing = finite & !fits;
    unreached = !in_reach(p, x);
  }
};

template <class T>
inline SampleCounts<T> count_fitting(const Quantizer<T>& p, const T* sample, std::size_t count) {
  using Code = typename FloatTraits<T>::Code;
  SampleCounts<T> counts;
  for (std::size_t i = 0; i < count; ++i) {
    const SampledValue<T> value(p, sample[i]);
    counts.fitting += static_cast<Code>(value.fitting);
    counts.failing += static_cast<Code>(value.failing);
    counts.unreached += static_cast<Code>(value.unreached);
  }
  return counts;
}

// A value out of reach that many samples share: missing data with an undeclared fill value. It is the first sampled
// value that is NaN, infinite or out of reach, if it occurs at least twice.
template <class T>
inline bool find_sentinel(const Quantizer<T>& p, const T* sample, std::size_t count,
                          typename FloatTraits<T>::Code* bits) {
  using Code = typename FloatTraits<T>::Code;
  std::size_t first = count;
  for (std::size_t i = count; i-- > 0;)
    if (!in_reach(p, sample[i])) first = i;
  if (first == count) return false;
  *bits = std::bit_cast<Code>(sample[first]);
  std::size_t same = 0;
  for (std::size_t i = 0; i < count; ++i) same += std::bit_cast<Code>(sample[i]) == *bits ? 1 : 0;
  return same >= 2;
}

// The fill value as a sentinel. A zero of either sign needs no sentinel: zeros decode to zeros anyway.
template <class T>
KFN bool nonzero_fill(bool has_fill, std::uint64_t fill, typename FloatTraits<T>::Code* bits) {
  using Code = typename FloatTraits<T>::Code;
  *bits = static_cast<Code>(fill);
  if (has_fill && static_cast<Code>(*bits << 1) != 0) return true;
  *bits = 0;
  return false;
}

// The bound of a chunk, or 0 if it is too small for a step: the step's reciprocal would overflow, or the step lose
// bits.
template <class T>
KFN T usable_bound(double requested) {
  using Limits = std::numeric_limits<T>;
  if (!(requested > 0)) return 0;
  const T rounded = round_down<T>(requested), highest = static_cast<T>(Limits::max() / 2);
  const T bound = rounded < highest ? rounded : highest;
  return bound >= 4 * Limits::min() ? bound : 0;
}

// Whether the bound is too tight for the data: more than an eighth of the sampled finite values fail.
KFN bool too_tight(std::uint64_t failing, std::uint64_t fitting) { return failing * 8 > failing + fitting; }

template <class T>
inline StepChoice choose_step(const Request& request, double requested, const void* values, std::uint64_t count) {
  StepChoice choice;
  const T bound = usable_bound<T>(requested);
  if (bound == 0) return choice;
  typename FloatTraits<T>::Code sentinel;
  const bool declared = nonzero_fill<T>(request.has_fill, request.fill, &sentinel);
  const T step = request.step > 0 ? static_cast<T>(request.step) : step_of(bound);
  Quantizer<T> p = make_quantizer(bound, step, declared, sentinel);
  T sample[kSampleValues];
  const std::size_t sampled = take_sample(values, count, sample);
  SampleCounts<T> counts = count_fitting(p, sample, sampled);
  if (!declared && counts.unreached != 0 && find_sentinel(p, sample, sampled, &sentinel)) {
    p = make_quantizer(bound, p.step, true, sentinel);
    counts = count_fitting(p, sample, sampled);
  }
  if (too_tight(counts.failing, counts.fitting)) return choice;
  choice.quantise = true;
  choice.bound = static_cast<double>(bound);
  choice.step = static_cast<double>(p.step);
  choice.has_sentinel = p.has_sentinel;
  choice.sentinel = p.sentinel_bits;
  return choice;
}

// Smallest and largest ordinary values, in as many accumulators as vector registers hold, so that the loop stays in
// registers.
template <class T>
struct ValueRange {
  static constexpr std::size_t kAccumulators = 128 / sizeof(T);
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  T lows[kAccumulators], highs[kAccumulators];

  ValueRange() {
    std::fill_n(lows, kAccumulators, kInfinity);
    std::fill_n(highs, kAccumulators, -kInfinity);
  }
  // Values that equal `fill` or `other` do not count.
  KFN void add(const std::uint8_t* from, std::size_t count, T fill, T other) {
    T x[kAccumulators];
    std::memcpy(x, from, count * sizeof(T));
    for (std::size_t i = count; i < kAccumulators; ++i) x[i] = kInfinity;
    for (std::size_t i = 0; i < kAccumulators; ++i) {
      const bool counts = (absolute(x[i]) < kInfinity) & (x[i] != fill) & (x[i] != other);
      const T low = counts ? x[i] : kInfinity, high = counts ? x[i] : -kInfinity;
      lows[i] = low < lows[i] ? low : lows[i];
      highs[i] = high > highs[i] ? high : highs[i];
    }
  }
};

template <class T>
inline bool value_range(const Request& request, const void* values, std::uint64_t count, double* low, double* high) {
  constexpr std::size_t kAccumulators = ValueRange<T>::kAccumulators;
  const auto* from = static_cast<const std::uint8_t*>(values);
  // a fill value of zero counts: HDF5 pads edge chunks with it, and padding must not widen the range
  const T fill = request.has_fill ? std::bit_cast<T>(static_cast<typename FloatTraits<T>::Code>(request.fill))
                                  : std::numeric_limits<T>::quiet_NaN();
  const T other = request.without_zeros ? T{0} : fill;
  ValueRange<T> range;
  const std::uint64_t whole = count / kAccumulators;
  for (std::uint64_t i = 0; i < whole; ++i, from += kAccumulators * sizeof(T))
    range.add(from, kAccumulators, fill, other);
  range.add(from, static_cast<std::size_t>(count % kAccumulators), fill, other);
  *low = static_cast<double>(*std::min_element(range.lows, range.lows + kAccumulators));
  *high = static_cast<double>(*std::max_element(range.highs, range.highs + kAccumulators));
  return *low <= *high;
}

PYF_END_TARGET
