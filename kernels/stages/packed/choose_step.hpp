// SPDX-License-Identifier: BSD-3-Clause
// The step of a chunk with a bound relative to each value, and whether quantising pays. Sample and rules are those of
// stages/sample.hpp.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "core/plan.hpp"
#include "core/target.hpp"
#include "stages/logarithm.hpp"
#include "stages/sample.hpp"

PYF_BEGIN_TARGET

// The widest step that keeps the bound after the decoder rounds to T, or 0 if no step is worth it. The step is a
// binary32, so products with codes of up to 29 bits are exact.
template <class T>
KFN double log_step_of(double bound) {
  const double usable = bound - (sizeof(T) == 4 ? 0x1p-23 : 0x1p-40);
  if (usable <= bound / 2) return 0;
  const double step = usable < 0.125 ? usable * log2_series(usable * usable)  // the series gives log2 of this quotient
                                     : log2_of((1 + usable) / (1 - usable));
  return static_cast<double>(round_down<float>(step * (1 - 0x1p-40)));
}

// Whether a value has a logarithm: it is finite and not zero.
template <class T>
KFN bool has_logarithm(T x) {
  return (x != 0) & (absolute(x) <= std::numeric_limits<T>::max());
}

// Adds a sampled value to the counts of values whose codes keep the bound, and of values whose codes do not.
template <class T>
struct SampledLogarithm {
  bool fitting, failing;

  KFN SampledLogarithm(const LogQuantizer<T>& p, T x) {
    using Code = typename FloatTraits<T>::Code;
    const bool counts = has_logarithm(x) & !(p.has_sentinel & (std::bit_cast<Code>(x) == p.sentinel_bits));
    const bool fits = log_fits(p, x, log_code(p, x));
    fitting = counts & fits;
    failing = counts & !fits;
  }
};

// The sentinel: the fill value, unless it is an undeclared zero. Otherwise the first sampled value that is zero,
// infinite or NaN, if the sample has it twice.
template <class T>
inline bool choose_log_sentinel(const Request& request, const T* sample, std::size_t count,
                                typename FloatTraits<T>::Code* bits) {
  using Code = typename FloatTraits<T>::Code;
  if (nonzero_fill<T>(request.has_fill, request.fill, bits)) return true;
  std::size_t first = count, same = 0;
  for (std::size_t i = count; i-- > 0;)
    if (!has_logarithm(sample[i])) first = i;
  if (first == count) return false;
  const Code wanted = std::bit_cast<Code>(sample[first]);
  for (std::size_t i = 0; i < count; ++i) same += std::bit_cast<Code>(sample[i]) == wanted ? 1 : 0;
  if (same >= 2) *bits = wanted;
  return same >= 2;
}

template <class T>
inline StepChoice choose_log_step(const Request& request, const void* values, std::uint64_t count) {
  using Code = typename FloatTraits<T>::Code;
  StepChoice choice;
  const auto bound = static_cast<double>(round_down<T>(request.bound));
  const double step = log_step_of<T>(bound);
  if (step == 0) return choice;
  T sample[kSampleValues];
  const std::size_t sampled = take_sample(values, count, sample);
  Code sentinel = 0;
  const bool has_sentinel = choose_log_sentinel(request, sample, sampled, &sentinel);
  const LogQuantizer<T> p = make_log_quantizer<T>(bound, step, has_sentinel, sentinel);
  std::uint64_t fitting = 0, failing = 0;
  for (std::size_t i = 0; i < sampled; ++i) {
    const SampledLogarithm<T> value(p, sample[i]);
    fitting += value.fitting ? 1 : 0;
    failing += value.failing ? 1 : 0;
  }
  if (too_tight(failing, fitting)) return choice;
  choice.quantise = true;
  choice.bound = bound;
  choice.step = step;
  choice.has_sentinel = has_sentinel;
  choice.sentinel = sentinel;
  return choice;
}

PYF_END_TARGET
